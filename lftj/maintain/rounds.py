"""Rounds: a recursive component follows changes by the rounds of its rows (lftj/recursion).

    suspects   rows of some derivation that is no longer there: which of them go, in order of their rounds
    returning  rows that went and have a derivation still: they come back, in a new round
    new        rows that the inserted rows, and those that returned, derive: semi-naive rounds from there

New rounds begin past the greatest so far, so that every row stays younger than some derivation of it. Rounds need not
be the least possible. What is different where rows are the best of their key is in min_max_fixpoint.py. Bulk changes
are evaluated from scratch, and so is a component whose rounds are not known.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lftj.join.run import Limits
from lftj.maintain.recompute import FromContents
from lftj.maintain.report import Reason, RowCount
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, KeptContents, Staged
from lftj.plan.join_stats import ran_joins
from lftj.program.components import Noted
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.recursion.closure import as_run, run_as_written, written_of
from lftj.recursion.component_joins import Joins
from lftj.recursion.fixpoint import STOPS, Deltas, Fixpoint, not_among, settle
from lftj.recursion.min_max_fixpoint import TooManyError, UnsettledError
from lftj.recursion.retraction import Retraction
from lftj.recursion.round_column import as_facts, has_rounds, rounds_of
from lftj.recursion.semi_naive import fixpoint_kind, joins_of
from lftj.recursion.variant_plans import Relations
from lftj.store.change import ERASED, INSERTED, Change
from lftj.store.stored import StoredRelation
from scantree.version import Rows, Version

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


class KeptRounds(KeptContents):
    """The planned joins of a component, whose contents hold the rounds.

    `top`: no round is greater · `seen`: the contents that this holds for (None: for none).
    """

    strategy = "rounds"

    def __init__(self, heads: Heads, joins: Joins, top: int, contents: Mapping[str, Version]) -> None:
        self.clauses, self.joins, self.top = heads.clauses, joins, top
        self._fixpoint = fixpoint_kind(joins)
        self.seen: dict[str, weakref.ref[Version]] | None = None
        self.hold_for(contents)

    def hold_for(self, contents: Mapping[str, Version]) -> None:
        """It holds for these contents of the heads from now on."""
        self.seen = {head: weakref.ref(content) for head, content in contents.items()}

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether this is of `heads`, over the contents before the step."""
        before, after = step.before.relations, step.after
        if self.seen is None or self.clauses != heads.clauses or not step.new_heads.isdisjoint(heads.names):
            return False
        for head, content in self.seen.items():
            if head not in before or content() is not before[head].content:
                return False
        # What is run otherwise than it is written has no facts.
        return self.joins.as_written or not any(len(after[head].facts) for head in heads.names)

    def _changes(self, step: Step, heads: Heads) -> tuple[Changes, Changes]:
        """(the changes of what the rules read of lower strata, those of the heads' facts)."""
        below, facts = step.changes, step.fact_changes
        return (
            {name: below[name] for name in heads.reads if name in below and name in self.joins.below},
            {head: facts[head] for head in heads.names if head in facts},
        )

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Worth it unless many rows changed, or many that supported others; where it is asked for, always."""
        below, facts = self._changes(step, heads)
        count = sum([len(change.kinds) for change in (*below.values(), *facts.values())])
        asked = step.asked(heads)
        if count >= min(BULK_ROWS, LOST_ROWS) and asked.isdisjoint(FORCED):
            many = self._too_many(step, heads, count, below, facts)
            if many:
                return Cost(many, worth=False)
        return Cost(RowCount(count, UNTRACED if TRACE in asked else ""))

    def _too_many(self, step: Step, heads: Heads, count: int, below: Changes, facts: Changes) -> str:
        relations = step.after
        rows = sum(len(relations[name]) for name in self.joins.below)
        rows += sum(len(relations[head].facts) for head in heads.names)
        if count >= BULK_ROWS and count > BULK_PART * rows:
            return f"{count:,} rows changed where there are {rows:,}"
        lost = sum(_count(change, ERASED) for change in (*below.values(), *facts.values()))
        lost += sum(_count(change, INSERTED) for name, change in below.items() if name in self.joins.negates)
        derived = sum(len(relations[head]) for head in heads.names)
        if lost >= LOST_ROWS and lost * derived > LOST_PART * rows * (rows + derived):
            return f"{lost:,} rows that supported others went where there are {rows:,}"
        return ""

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> StagedRounds:
        """Examine what lost support, and go on from what is new."""
        try:
            return self._maintained(step, heads, why, limits)
        except TooManyError as many:
            raise Declined(str(many)) from None
        except UnsettledError:
            raise Declined("values lost their support, and rules that are not monotone may find others") from None

    def _maintained(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> StagedRounds:
        before, joins = step.before.relations, self.joins
        joins.begin()
        fixpoint = self._fixpoint(step.evaluator, joins, heads.names, dict(step.after), limits)
        waiting = {head: fixpoint.relations[head].defer_orders() for head in heads.names}
        try:
            lost = propagate(fixpoint, before, *self._changes(step, heads), self.top)
        except STOPS as stop:
            raise fixpoint.located(stop) from None
        found: dict[str, StoredRelation] = {}
        changes: Changes = {}
        returned = 0
        for head in heads.names:
            relation, gone = fixpoint.relations[head], lost.rows.get(head)
            change = fixpoint.change(head, before[head], [] if gone is None else [gone])
            relation.settle_orders(waiting[head], change)
            if gone is not None:
                if joins.ops:  # of best values, others went too
                    returned += not_among(gone, change.of_kind(ERASED)).shape[1]
                else:
                    returned += gone.shape[1] - _count(change, ERASED)
            found[head], changes[head] = relation, change
        more = {"rounds": fixpoint.rounds, "examined": lost.examined + fixpoint.examined, "returned": returned}
        same = all(relation.content is before[head].content for head, relation in found.items())
        top = self.top if same else fixpoint.round
        staged = StagedRounds(self.strategy, why, found, changes, kept=self, rounds=self, top=top)
        staged.steps, staged.more, staged.join_stats = joins.steps, more, joins.join_stats
        return staged


@dataclass(slots=True, kw_only=True)
class StagedRounds(Staged):
    """A component after a commit. `top`: no round of it is greater."""

    rounds: KeptRounds
    top: int

    def adopt(self) -> None:
        """What was staged holds. Interrupted half way, what is kept holds for no contents, and is made again."""
        kept = self.rounds
        kept.seen, kept.top = None, self.top
        kept.hold_for({head: relation.content for head, relation in self.relations.items()})


# The next content of a component --------------------------------------------------------------------------------------


class Lost(NamedTuple):
    """By head, the rows that went, some of which may have come back; how many rows were examined for that."""

    rows: Deltas
    examined: int


def propagate(
    fixpoint: Fixpoint, before: Relations, changes: Mapping[str, Change], facts: Mapping[str, Change], top: int
) -> Lost:
    """Bring the members in `fixpoint.relations` to what they are after a change; what went on the way.

    `fixpoint.relations`: those below as they are after it, the members as before it · `before`: all as before it ·
    `changes` of those below · `facts`: changes of the members' facts · `top`: no round is greater.
    """
    fixpoint.round = top
    negated = {name: changes[name] for name in fixpoint.joins.negates if name in changes}
    unsupported = [
        found for name, change in changes.items() for found in fixpoint.dependents(name, change.of_kind(ERASED), before)
    ]
    for name, change in negated.items():
        unsupported += fixpoint.dependents(name, change.of_kind(INSERTED), before, negated=True)
    gone: Deltas = {}
    for head, change in facts.items():
        # A fact that a better value stood before is not there.
        erased = rounds_of(fixpoint.relations[head], change.of_kind(ERASED))
        if erased.shape[1]:
            gone[head] = erased
    removed, derivable, examined = Deltas(), Deltas(), 0
    if unsupported or gone:
        retraction = Retraction(fixpoint)
        retraction.suspect(unsupported)
        if gone:
            retraction.remove(gone, {head: rows[:-1] for head, rows in gone.items()})
        retraction.examine()
        removed, derivable, examined = retraction.rows_removed(), retraction.rows_derivable(), retraction.examined
    new = _new_facts(fixpoint, facts, removed) if facts or removed else {}
    fixpoint.begin_round(fixpoint.round + 1)
    found = _returning(fixpoint, removed, derivable, new) if removed else {}
    for name, change in changes.items():
        fixpoint.ask(fixpoint.joins.delta_rules(name), fixpoint.relations, change.of_kind(INSERTED), found)
    for name, change in negated.items():
        fixpoint.ask(fixpoint.joins.delta_rules(name, negated=True), fixpoint.relations, change.of_kind(ERASED), found)
    for head, rows in fixpoint.grow(found).items():
        new[head] = rows if head not in new else fixpoint.distinct([new[head], rows], len(rows))
    fixpoint.go_on(new)
    settle(fixpoint)
    fixpoint.finish()
    for head in fixpoint.heads:
        if fixpoint.relations[head].content is not before[head].content:
            content, as_written = fixpoint.relations[head].content, fixpoint.joins.as_written
            fixpoint.evaluator.rounds.note(content, fixpoint.round, as_written=as_written)
    return Lost(removed, examined)


def _returning(fixpoint: Fixpoint, removed: Deltas, derivable: Deltas, new: Deltas) -> dict[str, list[Rows]]:
    """The rows that went and have a derivation still, by head, those without that are `new` as facts."""
    found: dict[str, list[Rows]] = {}
    for head, rows in fixpoint.may_return(removed, derivable).items():
        back = fixpoint.returning(head, not_among(rows, new[head]) if head in new else rows)
        if back.shape[1]:
            found[head] = [back]
    return found


def _new_facts(fixpoint: Fixpoint, facts: Mapping[str, Change], removed: Deltas) -> Deltas:
    """Store the members' new facts, and those that removed rows stood before; the rows that were not there."""
    new: Deltas = {}
    for head in {**facts, **removed}:
        relation = fixpoint.relations[head]
        rows = [facts[head].of_kind(INSERTED)] if head in facts else []
        if head in removed:
            rows.append(fixpoint.uncovered(head, removed[head]))
        come = fixpoint.distinct(rows, relation.arity)
        if not come.shape[1]:
            continue
        there = relation.content.contains(come)
        fixpoint.relations[head] = as_facts(relation, np.compress(there, come, axis=1))
        fresh = np.compress(~there, come, axis=1)
        if fresh.shape[1]:
            held, fixpoint.round = fixpoint.round, 0
            new |= fixpoint.grow({head: [fresh]})
            fixpoint.round = held
    return new


def _count(change: Change, kind: int) -> int:
    return int((change.kinds == kind).sum())


class Rounds(FromContents):
    """The strategy of recursive components."""

    name = "rounds"
    follows = "by rounds"

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits recursive components."""
        if heads.acyclic:
            return "it is evaluated key by key"
        return "" if heads.recursive else "its rules are not recursive"

    def kept(self, step: Step, heads: Heads) -> KeptRounds | None:
        """The rounds of the contents before the step."""
        why, noted = self._known(step, heads)
        if why or noted is None:
            return None
        joins = joins_of(step.evaluator, heads.names, as_written=noted.as_written)
        return KeptRounds(heads, joins, noted.top, {head: step.before.relations[head].content for head in heads.names})

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
        lines = super().lines(explained, indent)
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
