"""Outer joins: a head with the rows that match, and with those of a side that match nothing, null beside them.

A semi join keeps the rows of the left side that `@v.match2` below has, and an anti join the others.

    l left join r on c      @v.join1(l.., r..)     :- l(..), r(..), c.
                            @v.join1(l.., null..)  :- l(..), !@v.match2(l's columns in c).
                            @v.match2(l's columns) :- r(..), c.

Where a query asks for rows that match nothing, as by `... on r.a = l.b where r.a is null`, the first rule is left out.

The head has the columns that the query names and those that tell the rows of a side apart; so that a row of it comes
from one row of each side, and its copies are the product of theirs. That of a full join has a column that says of which
rule a row is: a row of nulls may be one of either side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import NUMBER
from lftj.sql.branches import QueryBody
from lftj.sql.catalogue import unlike
from lftj.sql.query_scope import Beside, Derived, FromTable, QueryParameter, QueryScope, named
from lftj.sql.scope import Case
from lftj.sql.select_block import Output, SelectBlock, rows_of
from lftj.sql.semi_joins import negative, positive
from lftj.sql.shared_columns import equality, merge, shared_columns
from lftj.sql.sql_expressions import conjuncts, holds, value
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.whole_numbers import product_of

# The value of a column, by its position; that of a parameter.
Values = Callable[[int], list[Case]]
Outer = Callable[[QueryParameter], list[Case]]


def _parameter(scope: QueryScope, of: QueryParameter) -> list[Case]:
    """What a parameter of a side is in the body of a join, whose query around has the value."""
    return scope.parameter(list(of.outside), of.variable.name, of.node)


class _Placed(NamedTuple):
    """A table of a side, and the positions in its relation of the columns, and of what they are that a join shares."""

    table: FromTable
    columns: dict[str, int]
    shared: dict[str, int]

    @property
    def places(self) -> list[tuple[str, int]]:
        """All positions, with the names of the columns."""
        return [*self.columns.items(), *self.shared.items()]


class _JoinSide:
    """One side of a join: one relation, and the positions of the columns that its tables in `from` have in it."""

    def __init__(self, derived: Derived, tables: Sequence[_Placed]) -> None:
        self.derived = derived
        self.tables = tables

    def add(self, scope: QueryScope, outside: Outer | None = None, other: Values | None = None) -> list[list[Case]]:
        """Add it to the body of a scope, and its tables; its columns.

        `outside`: what a value of the query around is in the scope · `other`: the columns of the other side there.
        """
        cases = list(scope.add(self.beside(outside, other), "").columns.values())
        self.show(scope, dict(enumerate(cases)))
        return cases

    def beside(self, outside: Outer | None, other: Values | None) -> Derived:
        """Its relation, in a scope where its parameters have these values."""
        if outside is None:
            return self.derived
        parameters = [replace(p, outside=tuple(outside(p))) for p in self.derived.parameters]
        return replace(self.derived, parameters=tuple(parameters))

    def show(self, scope: QueryScope, columns: Mapping[int, list[Case]]) -> None:
        """Add its tables to a scope, with those of their columns that are given."""
        for table, places, shared in self.tables:
            given, joined = ({n: columns[at] for n, at in own.items() if at in columns} for own in (places, shared))
            scope.sources.append(FromTable(table.name, given, set(table.hidden), joined))


class _LateralSide(_JoinSide):
    """The right side of a left join that names columns of the left: `named`, their positions, for each parameter."""

    def __init__(self, derived: Derived, tables: Sequence[_Placed], named: list[int]) -> None:
        super().__init__(derived, tables)
        self.named = named

    def beside(self, outside: Outer | None, other: Values | None) -> Derived:
        """Its relation, for the values of columns of the other side."""
        assert other is not None
        parameters = zip(self.derived.parameters, self.named, strict=True)
        return replace(self.derived, parameters=tuple(replace(p, outside=tuple(other(at))) for p, at in parameters))


def _lateral_side(scope: QueryScope, join: exp.Join, side: str, left: _JoinSide, first: int) -> _JoinSide:
    """The side of a subquery that sees the tables to the left of it."""
    node = join.this
    if side != "LEFT" or not isinstance(node.this, exp.Subquery):
        raise scope.source.unsupported(f"`lateral` in a {side.lower()} join", node, "use a left join, or an inner one")
    inside = QueryScope(scope.queries, Beside(scope))
    columns = left.add(inside, partial(_parameter, inside))
    places = {cases[0].term: at for at, cases in enumerate(columns)}
    with inside.joining(first):
        derived = scope.queries.rows_of(node.this.this, inside)
    parameters = [places.get(p.outside[0].term, -1) for p in derived.parameters]
    if -1 in parameters:
        remedy = "let it name columns of the tables that it is joined to, alone"
        raise scope.source.unsupported("`lateral` that names the query around, in an outer join", node, remedy)
    alias = node.args.get("alias")
    given = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
    names: dict[str, int] = {}
    for at, column in enumerate(derived.columns):
        names[unlike(given[at] if at < len(given) else column.name, names)] = at
    return _LateralSide(derived, [_Placed(FromTable(node.alias, {}), names, {})], parameters)


def outer_join(scope: QueryScope, join: exp.Join, side: str, right: QueryScope, first: int) -> None:
    """Join the tables of `right` to those of the scope, which has the rows of the join then.

    `side`: "LEFT", "RIGHT" or "FULL" · of a lateral join `right` is empty, and gets what its subquery gives out ·
    `first`: of the tables that the join is of; a left join has others before a comma beside each of its rows.
    """
    left_side = side_of(scope, join)
    left_side.derived = left_side.beside(partial(_parameter, scope), None)  # what the scope itself calls it
    if isinstance(join.this, exp.Lateral):
        right_side: _JoinSide = _lateral_side(scope, join, side, left_side, first)
        right_side.show(right, {at: [] for at in range(len(right_side.derived.columns))})
    else:
        right_side = side_of(right, join)
    made = _Join(scope, join, left_side, right_side, first)
    made.rules(side)
    scope.body, scope.sources = QueryBody(), []
    made.show(scope, side)
    before = len(scope.sources) - len(right.sources)
    for shared in shared_columns(scope, join, scope.sources[first:before], scope.sources[before:]):
        kept = shared.right.cases if side == "RIGHT" else shared.left.cases
        if side == "FULL":
            both = equality(scope, shared, shared.left.cases, shared.right.cases)
            kept = value(exp.Coalesce(this=both.this, expressions=[both.expression]), scope)
        merge(shared, kept)


def semi_join(scope: QueryScope, join: exp.Join, right: QueryScope, first: int, *, anti: bool) -> None:
    """Keep the rows of a scope that a row of `right` matches; with `anti` those that none matches."""
    match = QueryScope(scope.queries, scope)
    side_of(right, join).add(match, lambda p: match.parameter(_parameter(scope, p), p.variable.name, p.node))
    both = QueryScope(scope.queries, None)
    both.sources = [*scope.sources[first:], *match.sources]
    for column in [node for part in _on(join) for node in part.find_all(exp.Column)]:
        if column.find_ancestor(exp.Query, exp.Join) is join:
            both.own(column)  # an error of a name that either side has
    found = _matching(scope, match, join, first, left=True)
    scope.body.conditions.append(negative(scope, found) if anti else positive(scope, found, ()))


def _matching(scope: QueryScope, match: QueryScope, join: exp.Join, first: int, *, left: bool) -> Derived:
    """The head that says for which rows of a scope the other side of a join has a row, whose tables `match` has.

    `left`: the scope is that of the left side.
    """
    of_left = (scope if left else match).sources[first:]
    of_right = (match if left else scope).sources
    for shared in shared_columns(match, join, of_left, of_right):
        own, other = (shared.right, shared.left) if left else (shared.left, shared.right)
        parameter = match.parameter(other.cases, other.name)
        sides = (parameter, own.cases) if left else (own.cases, parameter)
        match.body.conditions.append(holds(equality(match, shared, *sides), match))
    for table in match.sources:  # what a name alone means is told of both sides together
        meant = [(name, named([*of_left, *of_right], name)) for name in table.columns]
        table.hidden |= {name for name, found in meant if found and found[0].table is not table}
    with scope.joining(first):
        for part in _on(join):
            match.body.conditions.append(holds(part, match))
    return rows_of(scope.queries, [SelectBlock(match, [])], distinct=True, word="match")


def side_of(scope: QueryScope, node: exp.Expr) -> _JoinSide:
    """The tables of a scope as one relation."""
    if len(scope.body.atoms) == 1 and not scope.body.conditions:
        row = scope.body.atoms[0]
        places = {variable: at for at, variable in enumerate(row.variables)}
        columns = [cases for s in scope.sources for own in (s.columns, s.shared) for cases in own.values()]
        if all(len(cases) == 1 and cases[0].term in places for cases in columns):
            at = {cases[0]: places[cases[0].term] for cases in columns if isinstance(cases[0].term, ast.Variable)}
            tables = [
                _Placed(s, *({name: at[c[0]] for name, c in own.items()} for own in (s.columns, s.shared)))
                for s in scope.sources
            ]
            return _JoinSide(Derived(row.rows), tables)
    block, tables = SelectBlock(scope, []), [_Placed(source, {}, {}) for source in scope.sources]
    found: dict[tuple[Case, ...], int] = {}
    for table in tables:
        for name, cases in table.table.columns.items():
            found[tuple(cases)] = table.columns[name] = len(block.outputs)
            block.outputs.append(Output(name, cases, node))
    for table in tables:
        for name, cases in table.table.shared.items():  # often it is one of the columns that it stands for
            table.shared[name] = found.setdefault(tuple(cases), len(block.outputs))
            if table.shared[name] == len(block.outputs):
                block.outputs.append(Output(name, cases, node))
    return _JoinSide(rows_of(scope.queries, [block], word="side"), tables)


class _Join:
    """The head of one join."""

    def __init__(self, scope: QueryScope, join: exp.Join, left: _JoinSide, right: _JoinSide, first: int) -> None:
        self.outer, self.join, self.sides, self.first = scope, join, (left, right), first
        self.heads = scope.heads
        self.name = self.heads.name("join")
        self.bag = any(side.derived.rows.bag for side in self.sides)
        wanted = _wanted(join)
        self.kept = [self._kept(side, wanted) for side in self.sides]
        # The bodies, and for each side its columns in it; none where the side is null.
        self.bodies: list[tuple[QueryScope, list[list[list[Case]] | None]]] = []
        self.parameters: dict[tuple[Case, ...], QueryParameter] = {}

    @staticmethod
    def _kept(side: _JoinSide, wanted: set[str] | None) -> list[int]:
        """The positions among the columns of a side of those that the head has."""
        shift = len(side.derived.parameters)
        named = {
            at for table in side.tables for name, at in table.places if wanted is None or name.casefold() in wanted
        }
        key = min(side.derived.rows.keys, key=len)
        return sorted(named | {at - shift for at in key if at >= shift})

    def rules(self, side: str) -> None:
        """Make the rules."""
        both = QueryScope(self.outer.queries, Beside(self.outer))
        outside = partial(_parameter, both)
        left = self.sides[0].add(both, outside)
        columns = [left, self.sides[1].add(both, outside, left.__getitem__)]
        before = len(self.sides[0].tables)
        with both.joining(self.first):
            for part in _on(self.join):
                both.body.conditions.append(holds(part, both))
        for shared in shared_columns(both, self.join, both.sources[self.first : before], both.sources[before:]):
            both.body.conditions.append(holds(equality(both, shared, shared.left.cases, shared.right.cases), both))
        self.bodies.append((both, [*columns]))
        for at, sides in enumerate((("LEFT", "FULL"), ("RIGHT", "FULL"))):
            if side in sides:
                self._unmatched(at)
        self.parameters = {key: p for scope, _ in self.bodies for key, p in scope.parameters.items()}
        for number, (scope, found) in enumerate(self.bodies):
            if number == 0 and side == "LEFT" and self._leaves_out_matches():
                continue
            self._rules_of(scope, found, [ast.Constant(number, NUMBER)] if side == "FULL" else [])

    def _leaves_out_matches(self) -> bool:
        """Whether `where` asks for null in a column of the right side that has a value in all rows that match.

        Another join that fills with null might have such rows again.
        """
        query = self.join.parent
        if not isinstance(query, exp.Select) or query.args.get("where") is None:
            return False
        if any(str(other.args.get("side") or "").upper() in ("RIGHT", "FULL") for other in query.args["joins"]):
            return False
        parts = [part.unnest() for part in conjuncts(query.args["where"].this)]
        asked = [part for part in parts if isinstance(part, exp.Is)]
        return any(isinstance(part.expression, exp.Null) and self._has_value(part.this) for part in asked)

    def _has_value(self, node: exp.Expr) -> bool:
        """Whether a node is a column of the right side, and has a value in all rows that match."""
        if not isinstance(node, exp.Column):
            return False
        of, name = node.table.casefold(), node.name.casefold()
        found = [
            (side, at)
            for side in self.sides
            for table in side.tables
            if not of or table.table.name.casefold() == of
            for called, at in table.columns.items()
            if called.casefold() == name
        ]
        if len(found) != 1 or found[0][0] is not self.sides[1]:
            return False
        parts = [part.unnest() for part in _on(self.join)]
        equated = [side for part in parts if isinstance(part, exp.EQ) for side in (part.this, part.expression)]
        return not found[0][0].derived.columns[found[0][1]].nullable or node in equated

    def _unmatched(self, at: int) -> None:
        """The rows of a side that no row of the other matches."""
        scope = QueryScope(self.outer.queries, Beside(self.outer))
        columns = self.sides[at].add(scope, partial(_parameter, scope))
        match = QueryScope(self.outer.queries, scope)  # the columns of the other side are parameters there
        self.sides[1 - at].add(
            match,
            lambda p: match.parameter(_parameter(scope, p), p.variable.name, p.node),
            lambda place: match.parameter(columns[place], "column"),
        )
        found = _matching(scope, match, self.join, self.first, left=at == 0)
        scope.body.conditions.append(negative(scope, found))
        self.bodies.append((scope, [columns, None] if at == 0 else [None, columns]))

    def _rules_of(self, scope: QueryScope, found: list[list[list[Case]] | None], number: list[ast.Constant]) -> None:
        own = [scope.parameter(list(key), p.variable.name)[0].term for key, p in self.parameters.items()]
        terms = [term for term in own if term is not None]
        for side, kept, columns in zip(self.sides, self.kept, found, strict=True):
            for at in kept:
                term = None if columns is None else columns[at][0].term
                terms.append(term or ast.Constant(None, side.derived.columns[at].type))
        for branch in scope.body.branches(self.heads.nullable):
            args = [branch.term(term) for term in terms]
            copies = [product_of(branch.copies)] if self.bag else []
            self.heads.rule(self.name, [*args, *number, *copies], scope.closed(branch, args).body, functional=self.bag)

    def show(self, scope: QueryScope, side: str) -> None:
        """Put the tables of both sides, over the head, into a scope."""
        columns = [OutputColumn(p.variable.name, p.type, p.nullable) for p in self.parameters.values()]
        keys = set(range(len(columns)))
        places: list[dict[int, int]] = [{}, {}]
        for of, kept, place, nulls in zip(self.sides, self.kept, places, ("RIGHT FULL", "LEFT FULL"), strict=True):
            key = min(of.derived.rows.keys, key=len)
            for at in kept:
                place[at] = len(columns) - len(self.parameters)
                if at + len(of.derived.parameters) in key:
                    keys.add(len(columns))
                column = of.derived.columns[at]
                columns.append(replace(column, nullable=column.nullable or side in nulls))
        if side == "FULL":
            keys.add(len(columns))
            columns.append(OutputColumn("part", NUMBER, False))
        rows = Rows(self.heads.sure(self.name, columns, copies=self.bag), tuple(columns), self.bag, (frozenset(keys),))
        cases = list(scope.add(Derived(rows, tuple(self.parameters.values())), "").columns.values())
        for of, place in zip(self.sides, places, strict=True):
            of.show(scope, {at: cases[where] for at, where in place.items()})


def _on(join: exp.Join) -> list[exp.Expr]:
    on = join.args.get("on")
    return [] if on is None else conjuncts(on)


def _wanted(join: exp.Join) -> set[str] | None:
    """The names of columns that the query around the join mentions; None if it has a `*`."""
    query = join.find_ancestor(exp.Select)
    if query is None or any(
        isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count) for node in query.walk()
    ):
        return None
    names = {node.name.casefold() for node in query.find_all(exp.Column)}
    for other in query.find_all(exp.Join):
        if str(other.args.get("method") or ""):
            return None
        names |= {part.name.casefold() for part in other.args.get("using") or ()}
    return names
