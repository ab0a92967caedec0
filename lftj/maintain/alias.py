"""Alias: a head that is another relation under a new name shares its content, and its changes.

    deg(x, n) :- @deg.1(x, n).      the last step of most aggregates, and of any renaming

Such a head needs no trace and no pages. It has a content of its own only while it has facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lftj.join.run import Limits
from lftj.maintain.recompute import FromContents
from lftj.maintain.report import Causes, Reason
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, KeptContents, Staged
from lftj.program.aliases import alias_of
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.store.change import Change
from lftj.store.stored import StoredRelation


class KeptAlias(KeptContents):
    """The name of the relation below, whose content is the head's. `causes`: of every commit that shares it."""

    strategy = "alias"

    def __init__(self, heads: Heads, below: str) -> None:
        self.clauses, self.below = heads.clauses, below
        self.why = f"it has the rows of `{below}`"
        self.causes = Causes(False, False, False, [below])

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether the head shared the content of the relation below, and may go on so."""
        before, after, name = step.before.relations, step.after, heads.name
        return (
            self.below in step.changes
            and name not in step.new_heads
            and self.clauses == heads.clauses
            and before[name].content is before[self.below].content
            and not after[self.below].content.store.hidden
            and not len(after[name].facts)
        )

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """There is nothing to do."""
        return Cost(self.why)

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Take the content and the change of the relation below."""
        made, change = self.shared(step, heads.name)
        return Staged(self.strategy, why, {heads.name: made}, {heads.name: change}, kept=self)

    def shared(self, step: Step, head: str) -> tuple[StoredRelation, Change]:
        """(the head with the content of the relation below, its change)."""
        change = step.changes[self.below]
        return step.after[head].successor(step.after[self.below].content, change=change), change


class Alias(FromContents):
    """The strategy of heads that copy another relation."""

    name = "alias"
    follows = "without work"

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits a head whose one rule copies a relation, before the step and after it."""
        if heads.recursive or not alias_of(heads.clauses, step.after):
            return "its rules do more than copy a relation"
        return "it has facts of its own" if len(step.after[heads.name].facts) else ""

    def kept(self, step: Step, heads: Heads) -> KeptAlias | None:
        """The relation below, if the head was its alias before the step."""
        before = step.before.relations
        if heads.name in step.new_heads or len(before[heads.name].facts):
            return None
        below = alias_of(heads.clauses, before)
        return KeptAlias(heads, below) if below in step.changes else None

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """Why the step cannot share yet."""
        return "it has shared no content yet"

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """What it has the rows of."""
        return {"why": f"it has the rows of `{alias_of(heads.clauses, step.after)}`"}
