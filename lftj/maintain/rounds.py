"""Rounds: a recursive component follows changes by the rounds of its rows.

Rows that may have lost their support are examined in order of their rounds, and what is new goes on from round to
round (lftj/recursion). Bulk changes are evaluated from scratch, and so is a component whose rounds are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason, RowCount
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, Staged
from lftj.plan.join_stats import JoinStats, JoinStatsByJoin, of_clause, purpose
from lftj.program.components import Noted
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.recursion.closure import as_run, run_as_written, written_of
from lftj.recursion.fixpoint import STOPS, not_among
from lftj.recursion.min_max_fixpoint import TooManyError, UnsettledError
from lftj.recursion.propagation import maintain
from lftj.recursion.round_column import has_rounds
from lftj.recursion.semi_naive import fixpoint_of, joins_of
from lftj.store.change import ERASED, INSERTED, Change
from lftj.store.stored import StoredRelation

# A change of such a part of what the rules read is evaluated anew, unless it is small in any case.
BULK_ROWS, BULK_PART = 1_000, 1 / 8
# The same where support goes: rows that may have lost theirs are looked at one by one, and each that goes has others
# looked at. If such a part of what is read goes, and with it as much of what is derived, that takes as long as storing
# all of it anew (bench.erased): for closures, which derive far more than they read, between one row in two hundred and
# one in fifty; for reachability, which derives less, later.
LOST_ROWS, LOST_PART = 100, 1 / 100
# What may be asked for, and recursive rules cannot do.
TRACE, UNTRACED = "trace", "recursive rules keep no traces"
# What asks for being maintained, however much changes.
FORCED = (TRACE, "delta")
Changes = dict[str, Change]


class KeptRounds:
    """The rounds of a component, which its contents hold, and its planned joins."""

    strategy = "rounds"

    def __init__(self, step: Step, heads: Heads, noted: Noted) -> None:
        self.clauses, self.top = heads.clauses, noted.top
        self.joins = joins_of(step.evaluator, heads.names, as_written=noted.as_written)
        before, after = step.before.relations, step.after
        self.below: Changes = {name: change for name, change in step.changes.items() if name in self.joins.below}
        self.facts: Changes = {
            head: Change.between(before[head].facts, after[head].facts)
            for head in heads.names
            if after[head].facts is not before[head].facts
        }
        self.count = sum([len(change.kinds) for change in self._all()])

    def _all(self) -> Iterator[Change]:
        yield from self.below.values()
        yield from self.facts.values()

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Made for the step: it holds."""
        return True

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Worth it unless many rows changed, or many that supported others; where it is asked for, always."""
        many = self._too_many(step, heads)
        return Cost(many or RowCount(self.count, UNTRACED if TRACE in step.asked(heads) else ""), worth=not many)

    def _too_many(self, step: Step, heads: Heads) -> str:
        if self.count < min(BULK_ROWS, LOST_ROWS) or not step.asked(heads).isdisjoint(FORCED):
            return ""
        relations = step.after
        rows = sum(len(relations[name]) for name in self.joins.below)
        rows += sum(len(relations[head].facts) for head in heads.names)
        if self.count >= BULK_ROWS and self.count > BULK_PART * rows:
            return f"{self.count:,} rows changed where there are {rows:,}"
        lost = sum(_count(change, ERASED) for change in self._all())
        lost += sum(_count(change, INSERTED) for name, change in self.below.items() if name in self.joins.negates)
        derived = sum(len(relations[head]) for head in heads.names)
        if lost >= LOST_ROWS and lost * derived > LOST_PART * rows * (rows + derived):
            return f"{lost:,} rows that supported others went where there are {rows:,}"
        return ""

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Examine what lost support, and go on from what is new."""
        try:
            return self._maintained(step, heads, why, limits)
        except TooManyError as many:
            raise Declined(str(many)) from None
        except UnsettledError:
            raise Declined("values lost their support, and rules that are not monotone may find others") from None

    def _maintained(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        before, joins = step.before.relations, self.joins
        fixpoint = fixpoint_of(step.evaluator, joins, heads.names, dict(step.after), limits)
        waiting = {head: fixpoint.relations[head].defer_orders() for head in heads.names}
        try:
            retraction = maintain(fixpoint, before, self.below, self.facts, self.top)
        except STOPS as stop:
            raise fixpoint.located(stop) from None
        found: dict[str, StoredRelation] = {}
        changes: Changes = {}
        returned, removed = 0, retraction.rows_removed()
        for head in heads.names:
            relation, gone = fixpoint.relations[head], removed.get(head)
            change = fixpoint.change(head, before[head], [] if gone is None else [gone])
            relation.settle_orders(waiting[head], change)
            if gone is not None:
                if joins.ops:  # of best values, others went too
                    returned += not_among(gone, change.of_kind(ERASED)).shape[1]
                else:
                    returned += gone.shape[1] - _count(change, ERASED)
            found[head], changes[head] = relation, change
        more = {"rounds": fixpoint.rounds, "examined": retraction.examined + fixpoint.examined, "returned": returned}
        return Staged(self.strategy, why, found, changes, steps=joins.steps, more=more, join_stats=joins.join_stats)

    def memory(self) -> dict[str, int]:
        """Nothing beside the contents, which hold the rounds."""
        return {}


def _count(change: Change, kind: int) -> int:
    return int((change.kinds == kind).sum())


class Rounds:
    """The strategy of recursive components."""

    name = "rounds"

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits recursive components."""
        if heads.acyclic:
            return "it is evaluated key by key"
        return "" if heads.recursive else "its rules are not recursive"

    def kept(self, step: Step, heads: Heads) -> KeptRounds | None:
        """The rounds of the contents before the step."""
        why, noted = self._known(step, heads)
        return None if why or noted is None else KeptRounds(step, heads, noted)

    def _known(self, step: Step, heads: Heads) -> tuple[str, Noted | None]:
        """(why the rounds cannot be gone on from, empty if they can; what is known of them)."""
        before = step.before.relations
        if not step.new_heads.isdisjoint(heads.names):
            return "evaluated for the first time", None
        noted = step.evaluator.rounds.of([before[head].content for head in heads.names])
        if noted is None or not all(has_rounds(before[head]) for head in heads.names):
            return "its rounds are not known", None
        if not noted.as_written and (given := [head for head in heads.names if len(step.after[head].facts)]):
            return f"`{given[0]}` has facts: its rules are run as they are written from here on", None
        return "", noted

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """Why the rounds cannot be gone on from."""
        return self._known(step, heads)[0]

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate from scratch: that makes the rounds."""
        return RECOMPUTE.prepare(step, heads, why, limits)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """Whether the rounds are known, a bound of them, and what the joins did in the last commit."""
        state = step.state
        shown = ", ".join(f"`{member}`" for member in heads.names)
        relation = state.relations[head]
        noted = None if head in state.stale else step.evaluator.rounds.of([relation.content])
        ran = step.kept.join_stats.get(head, {})
        return {
            "why": f"{shown} {'is' if len(heads.names) == 1 else 'are'} recursive",
            "recorded": has_rounds(relation),
            "current": head not in state.stale,
            "component": list(heads.names),
            "rounds": None if noted is None else noted.top,
            "closure": _closure(step, heads, noted),
            "bytes_per_row": sum(relation.memory().values()) / max(1, len(relation)),
            "joins": [{"ran": ran_joins(ran, clause)} for clause in state.strata.of(head)],
        }

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """What is known of the rounds, and how a closure is run."""
        lines = [f"{indent}follows changes by rounds: {explained['why']}"]
        if explained["current"] and explained["rounds"] is not None:
            lines[0] += f"; rounds up to {explained['rounds']:,}, {explained['bytes_per_row']:,.0f} bytes a row"
        if explained["closure"] is not None:
            lines.append(f"{indent}  a transitive closure, run as {explained['closure']}")
        return lines


def _closure(step: Step, heads: Heads, noted: Noted | None) -> str | None:
    """The clause that a transitive closure is run by, if it is written otherwise."""
    state = step.state
    written = written_of(state.strata, heads.names)
    as_written = run_as_written(state, heads.names) if noted is None else noted.as_written
    run = as_run(written, as_written=as_written)
    return next((str(clause) for clause, other in zip(run, written, strict=True) if clause != other), None)


def ran_joins(stats: JoinStatsByJoin, clause: Clause) -> list[dict[str, Any]]:
    """What the joins of a clause of a component did in the last commit."""
    found = []
    for key, one in of_clause(stats, clause):
        plan = one.plan
        order, looked_up = ([], []) if plan is None else (list(plan.order), list(plan.looked_up))
        planned = {"key_order": order, "looked_up": looked_up}
        found.append({"finds": purpose(key, one.clause), **planned, **figures(one)})
    return found


def figures(one: JoinStats) -> dict[str, Any]:
    """What a join did, for explanations."""
    return {"runs": one.runs, "rows": one.rows, "steps": one.steps, "seconds": one.seconds}
