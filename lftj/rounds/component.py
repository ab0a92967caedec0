"""Evaluating a component from scratch: semi-naive, round by round.

    round 0   facts
    round 1   what the rules derive from the strata below, and from facts of the component
    round r   what has a derivation with a row of round r - 1, and is not there yet

A head that is there already is never proposed: a variant's last atom is the head's own negation, looked at while it
walks (variants.forward). What a round proposes twice is made distinct before it is stored. Semi-naive evaluation: F.
Bancilhon, R. Ramakrishnan, SIGMOD 1986; the delta of nonlinear rules: every atom in turn ranges over the new rows, the
others over all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lftj.engine.evaluate import Evaluation, Evaluator
from lftj.engine.stored import StoredRelation
from lftj.engine.undefined import look_for_error
from lftj.errors import TimeoutExpired
from lftj.join.run import Counters, Limits
from lftj.language.clause import Clause
from lftj.rounds import variants
from lftj.rounds.content import grown, with_rounds
from lftj.rounds.deltajoin import DeltaJoin
from lftj.values.codes import Column, Schema
from scantree.memory import ArenaFullError

Rows = npt.NDArray[np.int64]
Deltas = dict[str, Rows]


class Joins:
    """The variants of the clauses of a component, made when they are first asked for."""

    def __init__(self, clauses: Iterable[Clause], members: Iterable[str]) -> None:
        self.clauses, self.members = tuple(clauses), frozenset(members)
        self._forward: dict[tuple[int, int | None], DeltaJoin] = {}
        self._consumers: dict[tuple[int, int], DeltaJoin] = {}
        self._checks: dict[int, DeltaJoin] = {}

    def forward(self, c: int, i: int | None) -> DeltaJoin:
        """Clause `c`: new heads by atom `i` over changed rows."""
        if (c, i) not in self._forward:
            self._forward[c, i] = DeltaJoin(variants.forward(self.clauses[c], i))
        return self._forward[c, i]

    def consumers(self, c: int, i: int) -> DeltaJoin:
        """Clause `c`: heads of the derivations that atom `i` has with changed rows."""
        if (c, i) not in self._consumers:
            self._consumers[c, i] = DeltaJoin(variants.consumers(self.clauses[c], i))
        return self._consumers[c, i]

    def check(self, c: int) -> DeltaJoin:
        """Clause `c`: which of the asked rows it derives."""
        if c not in self._checks:
            self._checks[c] = DeltaJoin(*variants.check(self.clauses[c], self.members))
        return self._checks[c]

    def positive(self, name: str) -> Iterator[tuple[int, int]]:
        """(clause, atom) of all positive atoms over `name`."""
        for c, clause in enumerate(self.clauses):
            for i, atom in enumerate(clause.atoms):
                if atom.predicate == name:
                    yield c, i

    def negative(self, name: str) -> Iterator[tuple[int, int]]:
        """(clause, atom) of all negated atoms over `name`."""
        for c, clause in enumerate(self.clauses):
            for i, atom in enumerate(clause.negated):
                if atom.predicate == name:
                    yield c, len(clause.atoms) + i

    def begin(self) -> None:
        """Count from zero."""
        for join in self._all():
            join.steps, join.trouble = 0, False

    @property
    def steps(self) -> int:
        """Steps of all runs so far."""
        return sum(join.steps for join in self._all())

    @property
    def trouble(self) -> set[int]:
        """The clauses in which a term had no value."""
        found = {c for (c, _), join in self._forward.items() if join.trouble}
        return found | {c for c, join in self._checks.items() if join.trouble}

    def _all(self) -> Iterator[DeltaJoin]:
        yield from self._forward.values()
        yield from self._consumers.values()
        yield from self._checks.values()


@dataclass(slots=True)
class Work:
    """A component while it is evaluated or maintained: the relations as they are so far, and what was done.

    `relations`: those below, and the members; a member's content grows and shrinks here only.
    """

    evaluator: Evaluator
    joins: Joins
    heads: tuple[str, ...]
    relations: dict[str, StoredRelation]
    limits: Limits
    round: int = 0
    rounds: int = 0
    rows: int = 0
    at: Clause | None = None
    schemas: dict[int, Schema] = field(default_factory=dict)

    def changed(self, arity: int, rows: Rows) -> StoredRelation:
        """`rows` int64[arity, n], distinct and in order, as the relation of changed rows."""
        schema = self.schemas.get(arity)
        if schema is None:
            columns = tuple(Column(f"c{i}", "number") for i in range(arity))
            schema = self.schemas[arity] = Schema(variants.CHANGED, columns)
        made = StoredRelation(
            schema, self.evaluator.arena, page_rows=self.evaluator.page_rows, dir_rows=self.evaluator.dir_rows
        )
        return made.successor(made.assemble([rows], in_order=True))

    def run(self, join: DeltaJoin, over: Mapping[str, StoredRelation], rows: Rows | None, limit: int | None) -> Rows:
        """The heads that `join` finds over relations `over`, changed rows being `rows`."""
        if rows is not None:
            over = {**over, variants.CHANGED: self.changed(len(rows), rows)}
        self.at = join.clause
        if limit is None:
            return join.rows(self.evaluator, over, self.limits)
        return join.rows(self.evaluator, over, self.limits, limit)

    @contextmanager
    def told(self) -> Iterator[None]:
        """What stops the work in between is told the rule and the round it was in."""
        try:
            yield
        except TimeoutExpired as stop:
            raise TimeoutExpired(stop.what, where=self.place, why=stop.why, remedy=stop.remedy) from None
        except ArenaFullError as full:
            full.where = self.place
            raise

    @property
    def place(self) -> str:
        """The rule and the round that the work is in."""
        return "" if self.at is None else f"{self.at.span}: in `{self.at.text}`, round {self.round}"

    def distinct(self, chunks: list[Rows], arity: int) -> Rows:
        """The distinct rows of chunks, in order."""
        if len(chunks) == 1:
            return chunks[0]
        return self.evaluator.distinct(chunks, arity)[0]

    def grow(self, found: Mapping[str, list[Rows]]) -> Deltas:
        """Store the rows found for each head, in the present round; what is new."""
        new: Deltas = {}
        for head, chunks in found.items():
            relation = self.relations[head]
            rows = self.distinct(chunks, relation.arity)
            if rows.shape[1]:
                self.relations[head] = grown(relation, rows, self.round)
                new[head] = rows
                self.rows += rows.shape[1]
        self.limits.look(self.rows)
        return new

    def go_on(self, new: Deltas) -> None:
        """Rounds from the rows that are `new`, until there are none."""
        while new:
            self.round += 1
            self.rounds += 1
            found: dict[str, list[Rows]] = {}
            for name, rows in new.items():
                for c, i in self.joins.positive(name):
                    heads = self.run(self.joins.forward(c, i), self.relations, rows, None)
                    if heads.shape[1]:
                        found.setdefault(self.joins.clauses[c].head, []).append(heads)
            new = self.grow(found)


def joins_of(evaluator: Evaluator, heads: tuple[str, ...]) -> Joins:
    """The variants of the clauses of `heads`, kept from one evaluation to the next."""
    strata, kept = evaluator.state.strata, evaluator.rounds.joins
    clauses = tuple(clause for head in heads for clause in strata.of(head))
    if clauses not in kept:
        for others in [others for others in kept if not set(others) <= set(strata.clauses)]:
            del kept[others]
        kept[clauses] = Joins(clauses, heads)
    joins: Joins = kept[clauses]
    joins.begin()
    return joins


def _evaluate(work: Work) -> None:
    joins = work.joins
    new: Deltas = {}
    for head in work.heads:
        relation = work.relations[head]
        facts = relation.facts.columns()
        work.relations[head] = with_rounds(relation, facts, 0)
        if len(relation.facts):
            new[head] = facts if relation.arity else np.empty((0, 1), np.int64)
    work.round = 1
    found: dict[str, list[Rows]] = {}
    for c, clause in enumerate(joins.clauses):
        if not joins.members & clause.reads.keys():
            found.setdefault(clause.head, []).append(work.run(joins.forward(c, None), work.relations, None, None))
    for name, rows in new.items():
        for c, i in joins.positive(name):
            found.setdefault(joins.clauses[c].head, []).append(
                work.run(joins.forward(c, i), work.relations, rows, None)
            )
    work.go_on(work.grow(found))
    settle(work)


def evaluate(evaluator: Evaluator, heads: tuple[str, ...], limits: Limits) -> tuple[Work, dict[Clause, Evaluation]]:
    """The component `heads` over the evaluator's state, from scratch: its relations are in `Work.relations`."""
    joins = joins_of(evaluator, heads)
    work = Work(evaluator, joins, heads, dict(evaluator.relations), limits)
    with work.told():
        _evaluate(work)
    for head in heads:
        evaluator.rounds.note(work.relations[head].content, work.round)
    done = {}
    for c, clause in enumerate(joins.clauses):
        first = next((join for (k, _), join in joins._forward.items() if k == c), None) or joins.forward(c, None)
        done[clause] = Evaluation(
            clause, first.plan({**work.relations, variants.CHANGED: _none(work, first)}), Counters()
        )
    return work, done


def settle(work: Work) -> None:
    """Raise `EvaluationError` if a row of a clause is in error over what the component has come to."""
    for c in work.joins.trouble:
        state = work.evaluator.state
        staged = work.evaluator.over(state._replace(relations=work.relations))
        look_for_error(staged, work.joins.clauses[c], work.limits)


def _none(work: Work, join: DeltaJoin) -> StoredRelation:
    """No changed rows, of the arity that `join` reads."""
    columns = next((len(a.args) for a in join.clause.atoms if a.predicate == variants.CHANGED), 0)
    return work.changed(columns, np.empty((columns, 0), np.int64))
