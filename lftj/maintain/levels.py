"""Levels: recursion along acyclic data follows changes from key to key, level by level above the rows that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lftj.join.run import Limits
from lftj.maintain.recompute import FromContents
from lftj.maintain.report import Reason, RowCount
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, KeptContents, Staged
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.recursion.key_by_key import KeyByKey
from lftj.recursion.key_rules import key_rules_of
from lftj.store.change import Change

# A change of such a part of the rows is evaluated anew, unless it is small in any case.
BULK_ROWS, BULK_PART = 1_000, 1 / 8


class KeptLevels(KeptContents):
    """Nothing beside the contents: the order of keys is found again for those above a change."""

    strategy = "levels"

    def __init__(self, step: Step, heads: Heads) -> None:
        self.clauses = heads.clauses
        before, after = step.before.relations, step.after
        self._facts = {
            head: Change.between(before[head].facts, after[head].facts)
            for head in heads.names
            if after[head].facts is not before[head].facts
        }
        changed = [change for name, change in step.changes.items() if name in heads.reads]
        self._count = sum(len(change.kinds) for change in (*changed, *self._facts.values()))

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Made for the step: it holds."""
        return True

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Worth it unless many rows changed."""
        if self._count >= BULK_ROWS:
            rows = sum(len(step.after[name]) for name in heads.reads if name not in heads.names)
            if self._count > BULK_PART * rows:
                return Cost(f"{self._count:,} rows changed where there are {rows:,}", worth=False)
        return Cost(RowCount(self._count, ""))

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Compute the keys of rows that changed, and those above whose values change with them."""
        contents = {head: step.before.relations[head].content for head in heads.names}
        rules = key_rules_of(step.evaluator, heads)
        made = KeyByKey(step.evaluator, rules, heads.clauses, step.after, contents, limits)
        made.follow(made.keys_of(step.changes, self._facts))
        changes = {head: made.change(head) for head in heads.names}
        relations = {
            head: step.after[head].successor(made.contents[head], change=changes[head]) for head in heads.names
        }
        more = {"keys": made.computed}
        return Staged(self.strategy, why, relations, changes, steps=made.computed, more=more)


class Levels(FromContents):
    """The strategy of recursion along acyclic data."""

    name = "levels"
    follows = "by levels"

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits components that are evaluated key by key."""
        return "" if heads.acyclic else "its rules are not evaluated key by key"

    def kept(self, step: Step, heads: Heads) -> KeptLevels | None:
        """The contents before the step, if the rules are those of before."""
        return KeptLevels(step, heads) if step.new_heads.isdisjoint(heads.names) else None

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """The rules are new."""
        return "evaluated for the first time"

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """The rows along which keys are computed."""
        rules = key_rules_of(step.evaluator, heads)
        return {
            "why": "each value is computed from those of other keys, along acyclic rows",
            "recorded": True,
            "current": head not in step.state.stale,
            "component": list(heads.names),
            "rows": list(dict.fromkeys(rule.rows for rules_of in rules.of.values() for rule in rules_of)),
        }
