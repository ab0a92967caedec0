"""Paths: path counts follow their edges by products, and the numbers that rules read follow the counts.

An edge that comes or goes changes the counts by the paths to it times the paths from it (lftj/paths/products.py).
"""

from __future__ import annotations

import time

import numpy as np

from lftj.join.run import Limits
from lftj.maintain.copied_rows import below_of
from lftj.maintain.recompute import FromContents
from lftj.maintain.report import Reason, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, KeptContents, Staged
from lftj.paths.count import check_range
from lftj.paths.products import counts_after
from lftj.program.declare_paths import NUMBERS, counts_paths
from lftj.program.strata import Heads
from lftj.store.change import Change
from lftj.store.stored import StoredRelation

# A change of so many edges, and such a part of all, is counted anew.
BULK_ROWS, BULK_PART = 1_000, 1 / 8


def _many(change: Change, edges: StoredRelation) -> bool:
    return len(change.kinds) >= BULK_ROWS and len(change.kinds) > BULK_PART * len(edges)


class KeptCounts(KeptContents):
    """Nothing beside the counts themselves, which are the content of the head."""

    strategy = "paths"

    def __init__(self, heads: Heads) -> None:
        self.clauses = heads.clauses

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Nothing can be outdated."""
        return True

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Worth it for all numbers, and for few edges."""
        below = below_of(heads)
        if _copies(heads):
            return Cost("the counts changed, and numbers of them are copied")
        changed = step.changes[below]
        if _many(changed, step.after[below]):
            return Cost("many edges changed", worth=False)
        return Cost(f"{len(changed.kinds):,} edges changed")

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Add and take products, or copy the counts that numbers hold; `CountRangeError` if one is no number."""
        began = time.perf_counter()
        changed, relation, clause = step.changes[below_of(heads)], step.after[heads.name], heads.clauses[0]
        content, steps = relation.content, 0
        if _copies(heads):
            check_range(step.evaluator, heads.name, step.after[below_of(heads)].content)
            kept = changed.rows[0] == 0
            change = Change(np.compress(kept, changed.rows[1:], axis=1), changed.kinds[kept])
            if len(change.kinds):
                content, _ = content.update(change.rows, change.kinds)
        else:
            found = counts_after(step.evaluator, clause, changed, limits)
            if found is None:
                raise Declined("many pairs changed")
            made, change, steps = found
            content = made if len(change.kinds) else content
        work = [RuleWork(0, steps, 0, 0, len(changed.kinds), time.perf_counter() - began)]
        after = relation.successor(content, change=change)
        return Staged(self.strategy, why, {heads.name: after}, {heads.name: change}, steps=steps, work=work)


def _copies(heads: Heads) -> bool:
    """Whether the head holds the counts that are numbers, for rules to read."""
    aggregate = heads.clauses[0].aggregate
    return aggregate is not None and aggregate.op == NUMBERS


class Paths(FromContents):
    """The strategy of path counts."""

    name = "paths"
    follows = "by products"
    why = "an edge changes the counts by the paths to it times the paths from it"

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits the two heads of path counts."""
        return "" if heads.clauses and counts_paths(heads.clauses[0]) else "it counts no paths"

    def kept(self, step: Step, heads: Heads) -> KeptCounts | None:
        """The counts, if the head was there and what it reads changed."""
        return KeptCounts(heads) if heads.name not in step.new_heads and below_of(heads) in step.changes else None
