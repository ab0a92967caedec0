"""Where a walk is cut for several threads: keys of its first variable.

The cuts divide the domain of the first variable into ranges of about equal work: as many rows of the largest relation
that takes part there. `lftj.join.ranges` walks them beside each other.

A walk is not cut where its first variable is computed (a constant, or none at all), where its first row ends it, where
what hangs below a first depth of one candidate is counted part by part, or where it is expected to be short.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lftj.join.profile import draw_rows
from lftj.plan.joinplan import JoinPlan
from scantree.version import Version

Ints = npt.NDArray[np.int64]

# Estimated steps from which on a walk is cut: threads take about 0.3 ms to begin and to end, and a step some 10 ns or
# more (bench/threads.py).
LEAST_STEPS = 200_000.0
# Ranges per thread: work per row differs, and who is done early takes another range.
PER_THREAD = 8


def cuts_of(plan: JoinPlan, versions: Mapping[tuple[str, tuple[int, ...]], Version], threads: int) -> Ints | None:
    """The least keys of all ranges but the first, ascending; None if the walk of `plan` is not to be cut."""
    first = plan.depths[0]
    if first.definition is not None or plan.until == 0 or plan.cost < LEAST_STEPS:
        return None
    drawn = max((versions[plan.nodes[i].predicate, plan.nodes[i].key_order] for i in first.participants), key=len)
    ranges = min(PER_THREAD * threads, len(drawn))
    if ranges < 2:
        return None
    rows = np.empty((drawn.store.shape.cols, ranges - 1), np.int64)
    at = np.arange(1, ranges) * len(drawn) // ranges
    draw_rows(drawn.store.arena.space.mem, drawn.root, drawn.store.shape, at, rows)
    cuts = np.unique(rows[0])
    # Nothing lies below the least key.
    cuts = cuts[cuts > drawn.row(drawn.begin())[0]]
    return cuts if len(cuts) else None
