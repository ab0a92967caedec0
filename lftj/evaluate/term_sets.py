"""Which sets of terms to ask a body for: those that may have no value together while the rest of the body holds.

The sets are visited from the small to the large, those of one size in the order of the text. There are 2^n of n terms,
so most of them must be passed over:

    one term too many    Every term of a set leaves out a condition that the others do not. Were one to leave out none,
                         the set without it has the same rest and asks for less.
    no such row          A set stands for those that begin with it, too. If no row has its terms without a value and
                         meets the conditions that need none of the terms behind it, it has no rest, nor have they.

What remains is about one set per term and combination of terms that have no value together in some row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.evaluate.rest_of_body import relaxed, terms_of
from lftj.language.clause import Apply, Clause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lftj.evaluate.evaluator import Evaluator
    from lftj.join.run import Limits
    from lftj.store.stored import StoredRelation

Rows = npt.NDArray[np.int64]
Terms = tuple[Apply, ...]


def ask_for_sets(
    evaluator: Evaluator,
    clause: Clause,
    terms: Sequence[Apply],
    ask: Callable[[Terms], bool],
    limits: Limits,
    also: Mapping[str, StoredRelation],
) -> None:
    """Call `ask` with the sets of `terms` that may have no value while the rest of `clause` holds, and the empty one.

    `ask` says whether the rest met another term without a value: if not, no larger set is asked for.
    """
    needed_by = [{i for i, c in enumerate(clause.compares) if term in terms_of(c)} for term in terms]

    def all_leave_out(some: tuple[int, ...]) -> bool:
        others = (set[int]().union(*(needed_by[j] for j in some if j != i)) for i in some)
        return len(some) == 1 or all(needed_by[i] - more for i, more in zip(some, others, strict=True))

    waiting: deque[tuple[int, ...]] = deque([()])
    while waiting:
        some = waiting.popleft()
        behind = range(some[-1] + 1 if some else 0, len(terms))
        larger = [one for i in behind if all_leave_out(one := (*some, i))]
        without = tuple(terms[i] for i in some)
        undecided = [terms[i] for i in behind]
        # One look may spare many, but not one.
        if len(larger) > 1 and not _may_hold(evaluator, relaxed(clause, without, undecided), limits, also):
            continue
        if ask(without):
            waiting += larger


def _may_hold(evaluator: Evaluator, parts: list[Clause], limits: Limits, also: Mapping[str, StoredRelation]) -> bool:
    """Whether each of the `parts` of a body holds for some row."""
    for part in parts:
        limits.look(0)
        found: list[Rows] = []
        evaluator.walk(part, limits, found.append, also=also)
        if not any(rows.shape[1] for rows in found):
            return False
    return True
