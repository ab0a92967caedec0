"""Scan: of min, max, cat and quantiles, each group that a change touches is read anew (group_scan.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from lftj.evaluate import group_scan
from lftj.evaluate.aggregate import scan_of
from lftj.evaluate.group_scan import GroupScan
from lftj.join.run import Limits
from lftj.maintain.cost import FOLLOWED, MANY, SCANNED, RebuildCost
from lftj.maintain.recompute import FromContents
from lftj.maintain.report import CostComparison, Reason, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, KeptContents, Staged
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads


class KeptScan(KeptContents):
    """A key order of the relation below, or a scan of it, which that relation holds."""

    strategy = "scan"

    def __init__(self, heads: Heads, scan: GroupScan) -> None:
        self.clauses, self.scan = heads.clauses, scan

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Nothing can be outdated: the relation carries its key orders and scans along."""
        return True

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Reading the groups beside evaluating; of few changed rows, and where "trace" is asked for, worth it."""
        below, rows = step.after[self.scan.relation], len(step.changes[self.scan.relation].kinds)
        if rows < MANY or "trace" in step.asked(heads):
            return Cost(self.scan.describe(below))
        done = step.before.evaluations.get(heads.clauses[0])
        again = RebuildCost(rows=len(below), stored=1).measured(0.0 if done is None else done.cpu)
        return Cost(CostComparison(rows, FOLLOWED + SCANNED * rows, again.nanoseconds(1, 1.0)))

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Read the touched groups."""
        began = time.perf_counter()
        relation, found = step.after[heads.name], self.scan
        content, below = relation.content, step.changes[found.relation]
        change, steps = group_scan.followed(found, step.after[found.relation], below, content, step.evaluator.symbols)
        limits.look(len(change.kinds))
        if len(change.kinds):
            content, _ = content.update(change.rows, change.kinds)
        work = [RuleWork(0, steps, 0, 0, len(below.kinds), time.perf_counter() - began)]
        made = relation.successor(content, change=change)
        return Staged(self.strategy, why, {heads.name: made}, {heads.name: change}, steps=steps, work=work)


class Scan(FromContents):
    """The strategy of min, max, cat and quantiles."""

    name = "scan"
    follows = "by scans"

    def _scan(self, step: Step, heads: Heads) -> GroupScan | None:
        return None if heads.recursive or not heads.clauses else scan_of(step.evaluator, heads.clauses[0])

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits a head that is one min, max, cat or quantile."""
        return "" if self._scan(step, heads) is not None else "it is no min, max, cat or quantile"

    def kept(self, step: Step, heads: Heads) -> KeptScan | None:
        """The scan, if the relation below changed and the head was there."""
        found = self._scan(step, heads)
        usable = found is not None and heads.name not in step.new_heads and found.relation in step.changes
        return KeptScan(heads, found) if usable and found is not None else None

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """What is read of a touched group."""
        found = self._scan(step, heads)
        assert found is not None
        return {"why": found.describe(step.after[found.relation])}
