"""Recompute: heads are evaluated again, and compared with what they were. Nothing is kept.

For bulk changes, for rules that no other strategy fits, and where it is asked for. What kind of heads they are decides
how they are evaluated: ordinary clauses, an aggregate, a recursive component, path counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from lftj.evaluate.aggregate import aggregated
from lftj.evaluate.by_columns import asked_reading, read_rows, rows_by_columns
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.first_of_order import derive_first
from lftj.evaluate.undefined_groups import undefined_groups_of
from lftj.evaluate.window_values import derive_windows
from lftj.join.run import Counters, Limits
from lftj.language.clause import Clause
from lftj.language.first_rows import FIRST
from lftj.language.thresholds import THRESHOLDS
from lftj.language.window_functions import WINDOW
from lftj.maintain.derivations import DECLARED, kept_content, why_not_followed
from lftj.maintain.report import Reason, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Kept, Staged
from lftj.paths.count import derive_paths
from lftj.plan.join_stats import JoinStatsByJoin
from lftj.program.aliases import alias_of
from lftj.program.declare_paths import NUMBERS, PATHS
from lftj.program.evaluation import Evaluation
from lftj.program.state import State
from lftj.program.strata import Heads
from lftj.program.undefined import UndefinedRows
from lftj.recursion import semi_naive
from lftj.recursion.key_by_key import KeyByKey
from lftj.recursion.key_rules import key_rules_of
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.triggers.kept_thresholds import by_sorting
from scantree.consolidate import consolidated
from scantree.version import Rows, Version


@dataclass(slots=True)
class Evaluated:
    """Heads from scratch.

    `relations`: with their contents · `evaluations`: how each clause was evaluated · `undefined`: groups of an
    aggregate without a result · `more`, `join_stats`: of a recursive component.
    """

    relations: Mapping[str, StoredRelation]
    evaluations: dict[Clause, Evaluation]
    undefined: tuple[UndefinedRows, ...] = ()
    steps: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    join_stats: JoinStatsByJoin | None = None


# What makes the contents of heads that no rule derives, by the first word of their mark (`Aggregate.op`).
MAKERS: dict[str, Callable[[Evaluator, Clause, Limits], Version]] = {
    PATHS: derive_paths,
    NUMBERS: derive_paths,
    THRESHOLDS: by_sorting,
    FIRST: derive_first,
    WINDOW: derive_windows,
}

# Whether such a head may change in a commit that changes nothing it reads, by the same word.
TICKING: dict[str, Callable[[Evaluator, State, Clause], bool]] = {}


def ticking(evaluator: Evaluator, state: State, clauses: Sequence[Clause]) -> list[str]:
    """The heads of marked clauses that may change in a commit after `state` though nothing that they read does."""
    found = []
    for clause in clauses:
        assert clause.aggregate is not None
        ticks = TICKING.get(clause.aggregate.op.partition(" ")[0])
        if ticks is not None and ticks(evaluator, state, clause):
            found.append(clause.head)
    return found


def maker_of(clause: Clause) -> Callable[[Evaluator, Clause, Limits], Version] | None:
    """What makes the content of the clause's head, if no rule derives it."""
    return None if clause.aggregate is None else MAKERS.get(clause.aggregate.op.partition(" ")[0])


def evaluate(evaluator: Evaluator, heads: Heads, limits: Limits, *, followed: bool = False) -> Evaluated:
    """`heads` over the evaluator's state, from scratch, with their facts.

    `followed`: changes are expected to be followed from here on, and find the key orders that a walk has built.
    """
    began = time.thread_time_ns()
    if heads.acyclic:
        return _key_by_key(evaluator, heads, limits)
    if heads.recursive:
        fixpoint, done = semi_naive.evaluate(evaluator, heads.names, limits)
        more = {"rounds": fixpoint.rounds, "examined": 0, "returned": 0}
        found = {head: fixpoint.relations[head] for head in heads.names}
        return Evaluated(found, done, (), fixpoint.joins.steps, more, fixpoint.joins.join_stats)
    relation, clauses = evaluator.relations[heads.name], heads.clauses
    undefined: tuple[UndefinedRows, ...] = ()
    if clauses and (make := maker_of(clauses[0])) is not None:
        return Evaluated({heads.name: relation.successor(make(evaluator, clauses[0], limits))}, {})
    if clauses and clauses[0].aggregate is not None:
        content, evaluation, without_result = aggregated(evaluator, clauses[0], limits)
        done, undefined = {clauses[0]: evaluation}, undefined_groups_of(clauses[0], without_result)
    elif (below := alias_of(clauses, evaluator.relations)) and not len(relation.facts):
        content = evaluator.relations[below].content
        counters = Counters(rows=len(content))
        done = {clauses[0]: Evaluation(clauses[0], None, counters, instead=f"it has the rows of `{below}`")}
    elif evaluator.passes(heads.name) and (unsorted := _as_they_come(evaluator, heads, limits)) is not None:
        content, done = unsorted
    else:
        chunks: list[Rows] = []
        rows = evaluator.rows if followed else partial(_rows, evaluator)
        done = {clause: rows(clause, limits, chunks.append) for clause in clauses}
        in_order = len(clauses) == 1 and not len(relation.facts) and done[clauses[0]].sorted
        if len(relation.facts):
            chunks.append(relation.facts.columns())
        content = relation.assemble(chunks, in_order=in_order)
    if clauses:
        done[clauses[0]].cpu = done[clauses[0]].elsewhere + time.thread_time_ns() - began
    steps = sum(part.counters.steps for one in done.values() for part in one.parts() if part.counters)
    return Evaluated({heads.name: relation.successor(content)}, done, undefined, steps)


def _as_they_come(
    evaluator: Evaluator, heads: Heads, limits: Limits
) -> tuple[Version, dict[Clause, Evaluation]] | None:
    """The content of a head that one clause derives, row by row of what it reads by columns; None if it does not."""
    relation = evaluator.relations[heads.name]
    if len(heads.clauses) != 1 or len(relation.facts):
        return None
    (clause,) = heads.clauses
    reading = asked_reading(evaluator, clause, in_order=False)
    if reading is None or not reading.distinct(clause, evaluator.relations):
        return None
    chunks: list[Rows] = []
    done = read_rows(evaluator, clause, reading, limits, chunks.append)
    if done is None:
        return None
    rows = np.concatenate([np.empty((relation.arity, 0), np.int64), *chunks], axis=1)
    repeats = evaluator.relations[reading.base.relation].repeats  # of a bag, whose copies the clause hands on
    return relation.as_they_come(rows, repeats=repeats), {clause: done}


def _rows(evaluator: Evaluator, clause: Clause, limits: Limits, emit: Callable[[Rows], None]) -> Evaluation:
    """Give the rows of an ordinary clause to `emit`."""
    chunks: list[Rows] = []
    found = rows_by_columns(evaluator, clause, limits, chunks.append)
    if found is None:
        return evaluator.rows(clause, limits, emit)
    if chunks and any(evaluator.relations[read].repeats for read in clause.reads):
        rows = np.concatenate(chunks, axis=1)
        chunks = [np.vstack(consolidated(rows[:-1], rows[-1]))]
    for chunk in chunks:
        emit(chunk)
    return found


def _key_by_key(evaluator: Evaluator, heads: Heads, limits: Limits) -> Evaluated:
    """A component that is evaluated key by key."""
    relations = evaluator.relations
    empty = {head: relations[head].build(np.empty((relations[head].arity, 0), np.int64), 0) for head in heads.names}
    made = KeyByKey(evaluator, key_rules_of(evaluator, heads), heads.clauses, relations, empty, limits)
    made.run(made.all_keys())
    found = {head: relations[head].successor(content) for head, content in made.contents.items()}
    return Evaluated(found, {}, (), made.computed, {"keys": made.computed})


class Recompute:
    """The strategy that evaluates heads again."""

    name = "recompute"

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits all heads."""
        return ""

    def kept(self, step: Step, heads: Heads) -> Kept | None:
        """Nothing is kept."""
        return None

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """Why no other strategy keeps the heads."""
        if self.name in step.asked(heads):
            return DECLARED
        return step.kept.costs_of(heads).why_not or why_not_followed(heads)

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate the heads, and compare."""
        made = evaluate(step.evaluator, heads, limits)
        relations: dict[str, StoredRelation] = {}
        changes: dict[str, Change] = {}
        for head, relation in made.relations.items():
            before = step.before.relations.get(head)
            # New heads had their facts, and nothing else.
            old = step.after[head].content if before is None or not heads.recursive else before.content
            changes[head] = Change.between(old, relation.content)
            relations[head] = relation
            if not heads.recursive:
                content = kept_content(old, relation.content, changes[head])
                relations[head] = step.after[head].successor(content, change=changes[head])
        work = [
            RuleWork(i, sum(c.steps for c in counted), 0, 0, 0, done.seconds, sum(c.abandoned for c in counted))
            for i, clause in enumerate(heads.clauses)
            if not heads.recursive and (done := made.evaluations.get(clause)) is not None
            for counted in [[part.counters for part in done.parts() if part.counters]]
        ]
        return Staged(
            self.name,
            why,
            relations,
            changes,
            made.evaluations,
            made.steps,
            work=work,
            more=made.more,
            undefined=made.undefined,
            join_stats=made.join_stats,
        )

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """Nothing is kept."""
        return {"why": self.unprepared(step, heads)}

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """One line."""
        return [f"{indent}follows changes by evaluation: {explained['why']}"]


RECOMPUTE = Recompute()


class FromContents:
    """What strategies have in common that go on from contents: evaluating from scratch makes all they need.

    `follows`: how they follow changes, in words · `why`: what is to be known of that, where it is the same for all.
    """

    follows: str
    why = ""

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """The heads are new."""
        return "there is nothing to go on from"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate from scratch."""
        return RECOMPUTE.prepare(step, heads, why, limits)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """Nothing is kept that has to be made."""
        return {"why": self.why, "recorded": True, "current": heads.name not in step.state.stale}

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """One line."""
        return [f"{indent}follows changes {self.follows}: {explained['why']}"]
