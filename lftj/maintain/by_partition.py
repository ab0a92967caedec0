"""Window: heads with values of window functions follow changes by the partitions that have changed rows.

    changed rows   say which partitions are to be looked at
    for these      the rows below, after the change, and the head's, before it, are read under the partition's columns
    computed anew  are the values of the rows of these partitions; what differs is the change

A row that comes may give every row behind it another number, so a change of a partition of k rows costs O(k log k),
whatever the size of the relation. Where more than half of all rows are in such partitions, all are computed anew.
"""

from __future__ import annotations

import time

import numpy as np

from lftj.evaluate.window_values import windowed, windows_of
from lftj.join.run import Limits
from lftj.language.window_functions import has_windows
from lftj.maintain.copied_rows import KeptOfCopies, below_of, exchanged
from lftj.maintain.recompute import FromContents
from lftj.maintain.report import Reason, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, Staged
from lftj.program.strata import Heads
from lftj.store.stored import StoredRelation
from scantree.consolidate import numbered
from scantree.version import Rows

# More of the rows than this part in changed partitions: all are computed anew.
MOST = 1 / 2
WHY = "the partitions that have changed rows are computed anew"


class KeptWindow(KeptOfCopies):
    """Nothing but the contents, in key orders that begin with the columns of the partition."""

    strategy = "window"

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Worth it where there are partitions, unless more rows changed than there are."""
        if not windows_of(heads.clauses[0]).partition:
            return Cost("all rows are one partition", worth=False)
        below = below_of(heads)
        return Cost(WHY, worth=len(step.changes[below].kinds) <= len(step.after[below].content))

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Compute the partitions with changed rows anew."""
        began = time.perf_counter()
        name, below = below_of(heads), step.after[below_of(heads)]
        change, relation, clause = step.changes[name], step.after[heads.name], heads.clauses[0]
        windows = windows_of(clause)
        partitions, _ = numbered(change.rows[list(windows.partition)])
        rows = _under(below, windows.partition, partitions)
        limits.look(rows.shape[1])
        if rows.shape[1] > MOST * len(below):
            raise Declined(f"{rows.shape[1]:,} of {len(below):,} rows are in partitions that changed")
        before = _under(relation, windows.partition, partitions)
        after = windowed(rows, clause, relation.schema, step.evaluator.symbols)
        made, difference = exchanged(relation, before, after)
        steps = rows.shape[1] + before.shape[1]
        return Staged(
            self.strategy,
            why,
            {heads.name: made},
            {heads.name: difference},
            steps=steps,
            work=[RuleWork(0, steps, 0, 0, len(change.kinds), time.perf_counter() - began)],
            kept=KeptWindow(heads, below.content),
        )


def _under(relation: StoredRelation, partition: tuple[int, ...], partitions: Rows) -> Rows:
    """The rows int64[arity, n] of distinct partitions int64[k, m]."""
    order = (*partition, *(at for at in range(relation.arity) if at not in partition))
    found = relation.order(order).rows_under(partitions)
    rows = np.empty_like(found)
    rows[list(order)] = found
    return rows


class ByPartition(FromContents):
    """The strategy of heads with values of window functions."""

    name = "window"
    follows = "by partitions"
    why = WHY

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits the heads of `over`."""
        return "" if heads.clauses and has_windows(heads.clauses[0]) else "it has no values of window functions"

    def kept(self, step: Step, heads: Heads) -> KeptWindow | None:
        """What holds for the contents before the step."""
        before, below = step.before.relations, below_of(heads)
        if heads.name in step.new_heads or heads.name in step.before.stale or below not in step.changes:
            return None
        return KeptWindow(heads, before[below].content) if below in before else None

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """It is computed with this change."""
        return "its values are computed for the first time"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate; the contents are what is kept."""
        staged = super().prepare(step, heads, why, limits)
        staged.kept = KeptWindow(heads, step.after[below_of(heads)].content)
        return staged
