"""Queries as statements ask them: translated into rules once, and evaluated over a state that is not published.

The query becomes a head like that of a view, under a name that no relation has. A state with its rules is made beside
the one that is asked, evaluated as far as the head needs, and forgotten; what lies below it and is up to date is read
as it is.

A question may be asked again and again, of later states and with other values of its parameters: what the query is
translated to is kept while the relations that it reads have the columns that they had, and no rules have changed. The
walks of rules are kept too (lftj/evaluate/kept_walk.py), from the second time on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from lftj.errors import EvaluationError, KeyConflictError
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.first_of_order import comparable
from lftj.evaluate.kept_walk import KeptWalk
from lftj.join.run import Limits
from lftj.language.clause import INTERNAL, Clause, Parameter, parameters_of
from lftj.language.first_rows import OrderedColumn
from lftj.maintain.refresh import refresh
from lftj.maintain.step import KeptHeads
from lftj.program.extend import extended
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.program.strata import Strata
from lftj.results.answer_errors import out_of_memory
from lftj.sql.catalogue import catalogue_of
from lftj.sql.leading_rows import RowsOfRule, leading_rows, rule_of_rows
from lftj.sql.nesting import placed
from lftj.sql.parameters import NOTHING, Given
from lftj.sql.places import SqlText
from lftj.sql.queries import translated
from lftj.sql.view import View
from lftj.store.stored import StoredRelation
from lftj.values import gate
from lftj.values.schema import Column, Schema
from lftj.values.type_table import is_nullable, type_of
from scantree.consolidate import counted
from scantree.memory import ArenaFullError
from scantree.sort import sorting

Codes = npt.NDArray[np.int64]
NO_OPTIONS = RuleOptions.of(None, None, None)
# Characters of a statement that errors show.
SHOWN = 100
# Rows are put in order as a whole unless fewer than one in so many are wanted.
SELECTED = 8


class Asking(Protocol):
    """Where a query is asked from: an open `Transaction`."""

    _evaluator: Evaluator

    def _limits(self) -> Callable[[str], Limits]: ...


class Answer(NamedTuple):
    """Distinct `rows` int64[columns, n] in key order, how often each is there (`copies` int64[n]), and the columns."""

    rows: Codes
    copies: Codes
    columns: tuple[Column, ...]


class _TranslatedQuery(NamedTuple):
    """What a query is translated to, over a program.

    `own`: the state of its rules alone, with the relations that they derive and the facts of these · `heads`: the
    derived ones · `strata`, `names`: the rules of the program and the names of its relations, without those · `reads`:
    what it reads of the program, with the columns that these relations had · `parameters`: by name · `walks`: of rules
    of one head over the program, if the query is no more · `rule`: the one that its first rows come from, if there is
    one and it has a limit.
    """

    view: View
    own: State
    heads: frozenset[str]
    strata: Strata
    names: frozenset[str]
    reads: Mapping[str, Schema]
    parameters: Mapping[str, Parameter]
    walks: tuple[KeptWalk, ...]
    rule: RowsOfRule | None

    def holds(self, state: State) -> bool:
        """Whether the query means the same over `state`."""
        relations = state.relations
        if state.strata is not self.strata or relations.keys() != self.names:
            return False
        for name, schema in self.reads.items():
            relation = relations.get(name)
            if relation is None or (relation.schema is not schema and relation.schema != schema):
                return False
        return True

    def over(self, state: State) -> State:
        """`state` with the rules of the query, whose heads are stale."""
        return self.own._replace(
            relations={**state.relations, **self.own.relations},
            stale=state.stale | self.heads,
            evaluations=state.evaluations,
            stopped=state.stopped,
            undefined=state.undefined,
        )


class Question:
    """A query, to be asked once or many times.

    `query`: its `$name` are open where they are `Placeholder` nodes with a type as their `kind` · `source`: where it
    stands, for errors.
    """

    __slots__ = ("_enumerated", "_others", "_times", "_translation", "query", "source")

    def __init__(self, query: exp.Expr, source: SqlText) -> None:
        self.query, self.source = query, source
        self._translation: _TranslatedQuery | None = None
        self._times = 0
        self._enumerated = 0  # up to so many rows, joins below aggregates are enumerated; of more it is looked at
        self._others: dict[Any, Question] = {}

    def also(self, key: Any, make: Callable[[], exp.Expr]) -> Question:
        """Another question about this one's answer, known by `key`; it is kept with this one."""
        other = self._others.get(key)
        if other is None:
            other = self._others[key] = Question(make(), self.source)
        return other

    def answer(self, asking: Asking, state: State, given: Given = NOTHING) -> Answer:
        """The rows over a state, in key order; of a query with a limit those that its order puts first."""
        evaluator = asking._evaluator
        found, view = self.rows(evaluator, state, asking._limits(), given)
        width = len(view.columns) - view.hidden
        if view.limit is not None or view.offset:
            order = positions(found, view, evaluator)
        elif view.hidden:
            order = np.repeat(np.arange(found.rows.shape[1]), found.copies)
        else:
            return found
        rows = counted([np.ascontiguousarray(found.rows[:width, order])])
        return Answer(rows[:-1], rows[-1], found.columns[:width])

    def below(self, evaluator: Evaluator, state: State) -> frozenset[str]:
        """The stale heads of a state that the query reads."""
        made = self._over(evaluator, state)
        return state.stale & state.strata.below(made.reads)

    def rows(
        self, evaluator: Evaluator, state: State, limits: Callable[[str], Limits], given: Given
    ) -> tuple[Answer, View]:
        """(the rows over a state, with those of hidden columns; what the query is there).

        Of a query with a limit rows may be missing that are not among its first ones.
        """
        made = self._over(evaluator, state)
        staged = evaluator.over(made.over(state)).giving(self._codes(made, given, evaluator))
        name = made.view.name
        size = sum(len(state.relations[read]) for read in made.reads)
        kept = KeptHeads(passing=True) if size >= self._enumerated else None
        self._times += 1
        try:
            refresh(staged, made.reads, limits, kept=kept)  # an error of a rule below is told as such
            short = _short(made.walks, staged) if made.walks and self._times > 1 else None
            if short is None and made.rule is not None:
                short = leading_rows(staged, made.rule, made.view, limits(name))
            if short is None:
                self._evaluate(staged, name, limits, kept)
            relation = staged.state.relations[name]
            # Rows that another head has, as they came, are sorted now.
            rows = relation.content.columns() if short is None else short
        except ArenaFullError as full:
            raise out_of_memory(full) from None
        if kept is not None and not kept.heads:
            self._enumerated = 2 * size
        columns = _columns(made.view, relation.schema)
        if made.view.bag:
            return Answer(rows[:-1], rows[-1], columns), made.view
        return Answer(rows, np.ones(rows.shape[1], np.int64), columns), made.view

    def _evaluate(self, staged: Evaluator, name: str, limits: Callable[[str], Limits], kept: KeptHeads | None) -> None:
        try:
            refresh(staged, (name,), limits, kept=kept, once=True)
        except EvaluationError as error:
            raise self._told(error) from None

    def _codes(self, made: _TranslatedQuery, given: Given, evaluator: Evaluator) -> Mapping[str, int]:
        return {
            name: gate.encode_value(given[name], parameter.type, evaluator.symbols)
            for name, parameter in made.parameters.items()
        }

    def _told(self, error: EvaluationError) -> EvaluationError:
        """An error of a rule in the words of the statement that the rule is made of."""
        text = " ".join(self.source.text.split())
        where = f"{self.source.span(self.query)}: in `{text if len(text) <= SHOWN else f'{text[: SHOWN - 3]}...'}`"
        if isinstance(error, KeyConflictError) and error.relation.startswith(INTERNAL):
            one, other = (repr(row[-1]) for row in error.rows)
            return KeyConflictError(
                f"a subquery that stands for a value has several: {one} and {other}",
                relation=error.relation,
                rows=error.rows,
                derivations=error.derivations,
                where=where,
                why="it is one value for each row of the query around; nothing was changed",
                remedy="let it give one row, by an aggregate, a condition, or `order by ... limit 1`",
            )
        if type(error) is not EvaluationError:
            return error
        _, _, row = error.where.partition("` with ")
        return EvaluationError(
            error.what.replace("a functor of the rule", "a function"),
            where=f"{where} with {row}" if row else where,
            why=error.why,
            remedy=error.remedy.replace(" in the body", " by `where`").replace("`match`", "`like`"),
        )

    def _over(self, evaluator: Evaluator, state: State) -> _TranslatedQuery:
        made = self._translation
        if made is None or not made.holds(state):
            made = self._translation = self._translated(evaluator, state)
        return made

    def _translated(self, evaluator: Evaluator, state: State) -> _TranslatedQuery:
        name = "select"
        while name in state.relations:
            name += "_"
        view = translated(self.query, catalogue_of(state), name, self.source)
        try:
            with placed(self.source, self.query):
                added = extended(state, view.program, NO_OPTIONS, _new_relation(evaluator), evaluator.symbols)
            after = added.state
            for fact, (rows, count) in added.facts.items():
                after = after.with_facts(fact, after.relations[fact].with_facts(rows, count))
        except ArenaFullError as full:
            raise out_of_memory(full) from None
        fresh = {name: relation for name, relation in after.relations.items() if name not in state.relations}
        clauses = [clause for head in fresh for clause in after.strata.of(head)]
        reads = {read: state.relations[read].schema for c in clauses for read in c.reads if read in state.relations}
        parameters = {parameter.name: parameter for clause in clauses for parameter in _parameters(clause)}
        return _TranslatedQuery(
            view,
            after._replace(relations=fresh, stale=frozenset(), evaluations={}, stopped={}, undefined={}),
            added.heads,
            state.strata,
            frozenset(state.relations),
            reads,
            parameters,
            tuple(KeptWalk(clause, None) for clause in clauses) if _is_plain(view, clauses, fresh) else (),
            None if view.limit is None else rule_of_rows(view, after.strata.of, fresh),
        )


def _is_plain(view: View, clauses: list[Clause], fresh: Mapping[str, StoredRelation]) -> bool:
    """Whether a query is rules of one head, which has no facts, over the relations of the program."""
    head = fresh.get(view.name)
    alone = len(fresh) == 1 and head is not None and not len(head.facts)
    return alone and not view.bag and all(clause.aggregate is None for clause in clauses)


def _short(walks: tuple[KeptWalk, ...], staged: Evaluator) -> Codes | None:
    """The rows that walks give, distinct and in order; None if one of them is for an evaluation."""
    chunks = []
    for walk in walks:
        found = walk.rows(staged, staged.given)
        if found is None:
            return None
        chunks.append(found[0])
    if len(chunks) == 1:
        return chunks[0]
    rows, count = staged.distinct(chunks, chunks[0].shape[0])
    return rows[:, :count]


def _parameters(clause: Clause) -> list[Parameter]:
    in_atoms = [arg for atom in (*clause.atoms, *clause.negated) for arg in atom.args]
    compared = [term for compare in clause.compares for term in (compare.left, compare.right)]
    return list(parameters_of((*clause.head_args, *in_atoms, *compared)))


def _columns(view: View, schema: Schema) -> tuple[Column, ...]:
    return tuple(Column(column.name, type) for column, type in zip(view.columns, schema.types, strict=False))


def with_rows(asking: Asking, state: State, name: str, columns: tuple[Column, ...], rows: Codes) -> State:
    """The state with one more table, of distinct rows int64[columns, n], under a name that none has."""
    relation = _new_relation(asking._evaluator)(Schema(name, columns))
    relations = {**state.relations, name: relation}
    return state._replace(relations=relations).with_facts(name, relation.with_facts(rows, rows.shape[1]))


def _new_relation(evaluator: Evaluator) -> Callable[[Schema], StoredRelation]:
    return partial(StoredRelation, arena=evaluator.arena, page_rows=evaluator.page_rows, dir_rows=evaluator.dir_rows)


# --- order ------------------------------------------------------------------------------------------------------------


def positions(found: Answer, view: View, evaluator: Evaluator) -> npt.NDArray[np.int64]:
    """The positions of the rows that a query gives out, in its order: by what it says, then by all columns."""
    values = [
        comparable(row, column.type, evaluator.symbols) for row, column in zip(found.rows, found.columns, strict=True)
    ]
    keys = [key for item in view.order for key in _sort_keys(values, found, item)]
    end = None if view.limit is None else view.offset + view.limit
    order = _sorted([*keys, *values], end) if values else np.arange(found.rows.shape[1])
    order = np.repeat(order, found.copies[order])
    return order[view.offset : end]


def _sorted(keys: list[Codes], end: int | None) -> npt.NDArray[np.int64]:
    """The first `end` positions, at least, in the order of the first of `keys` int64[n], then of the next."""
    if end is None or end >= len(keys[0]) // SELECTED:
        return sorting(np.stack(keys))[0]
    chosen, alike = list[Codes](), np.arange(len(keys[0]))
    for key in keys if end else []:
        # Those below the last that is wanted are among the first; those like it are told apart by the next key.
        held = key[alike]
        last = np.partition(held, end - 1)[end - 1]
        chosen.append(alike[held < last])
        alike, end = alike[held == last], end - len(chosen[-1])
    some = np.concatenate([*chosen, alike[:end]])
    return some[np.lexsort([key[some] for key in keys[::-1]])]


def _sort_keys(values: list[Codes], found: Answer, item: OrderedColumn) -> list[Codes]:
    """What to sort by for one item of `order by`: where null is put, and then the values."""
    column, codes = found.columns[item.column], values[item.column]
    keys = [~codes if item.descending else codes]
    if is_nullable(column.type):
        null = found.rows[item.column] == type_of(column.type).null
        keys[0] = np.where(null, 0, keys[0])
        keys.insert(0, (null != item.nulls_first).astype(np.int64))
    return keys
