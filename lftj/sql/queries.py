"""From a query to rules: `translated`, and what its parts share.

    select                 `select.py`: `from`, `where`, what is given out; `grouping.py` where rows are grouped
    union, intersect ...   `set_operations.py`
    values                 `values.py`
    with                   `with_clause.py`

A query becomes a head with a row for each of its rows. Where rows can repeat, the head is a bag: its last column says
how often each is there, and is a sum over the bindings of the body. Where they cannot, as what they hold tells apart
the rows that they come from, it is a set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from lftj.errors import ProgramError
from lftj.language import ast
from lftj.language.diagnostics import TooDeepError
from lftj.language.names import BAG, COPIES, VIEW
from lftj.sql.branches import MOST, TooManyWays
from lftj.sql.catalogue import Catalogue, unlike
from lftj.sql.computed_columns import computed_apart
from lftj.sql.from_clause import add_from
from lftj.sql.grouping_sets import without_grouping_sets
from lftj.sql.heads import QueryHeads, or_null
from lftj.sql.known_aggregates import with_known_aggregates
from lftj.sql.limits import first_of_each, first_rows, limited, with_given_order
from lftj.sql.nesting import placed
from lftj.sql.ordering import Ordering, ordering_of, with_parts_behind, without_parameters, written
from lftj.sql.places import SqlText, is_unsupported
from lftj.sql.query_scope import Beside, Derived, Outside, QueryScope
from lftj.sql.scope import Case, Conjunction
from lftj.sql.select import block_of
from lftj.sql.select_block import SelectBlock, rows_of
from lftj.sql.set_operations import set_operation
from lftj.sql.subqueries import by_case, predicate, scalar
from lftj.sql.values import values
from lftj.sql.view import OutputColumn, Rows, View
from lftj.sql.with_clause import CommonTable, clauses_of, knowing
from lftj.sql.written_quantiles import without_within_group
from lftj.sql.written_windows import without_distinct_on


def translated(
    query: exp.Expr, catalogue: Catalogue, name: str, text: SqlText, named: Sequence[str] = (), *, ordered: bool = True
) -> View:
    """The rules of a query, whose head is to be called `name`.

    `text`: where it stands, for errors · `named`: names of its columns, where not as the query has them · `ordered`:
    its rows are asked for in its order.
    `lftj.ProgramError` names what is wrong with the query, its place and what to do.
    """
    try:
        with placed(text, query):
            return Queries(catalogue, name, text).view(query, named, ordered)
    except TooManyWays:
        raise text.error(
            f"this query splits into more than {MOST:,} rules",
            query,
            why="each way to meet its conditions, and to choose the cases of its values, becomes a rule",
            remedy="split the query, or compute a part of it as columns of a view",
        ) from None


class Queries:
    """The translation of one query and the queries in it."""

    def __init__(self, catalogue: Catalogue, name: str, text: SqlText) -> None:
        self.catalogue = catalogue
        self.text = text
        self.heads = QueryHeads(name)
        self._common: dict[str, CommonTable] = {}
        self._checks = True  # what no rule reads

    def view(self, query: exp.Expr, named: Sequence[str], ordered: bool) -> View:
        """The whole query as a view."""
        query = self.plain(query, None)
        order = ordering_of(query, self.text)
        if order.nodes and not ordered:
            self._check(query, None)
            order.nodes = []
        with self.knowing(query):
            found = self._ordered(query, None, order, extended=True, name=self.heads.view)
        return self._view(found, named, order)

    def _view(self, found: Derived, named: Sequence[str], order: Ordering) -> View:
        """The view over the head of the query."""
        width = len(found.columns) - order.hidden
        if named and len(named) != width:
            raise self.text.error(
                f"{len(named)} names for {width} columns",
                None,
                why="each column has one name",
                remedy=f"name {width} columns",
            )
        columns: list[OutputColumn] = []
        for at, column in enumerate(found.columns):
            wanted = named[at] if named and at < width else column.name
            columns.append(replace(column, name=unlike(wanted, [c.name for c in columns])))
        bag, name = found.rows.bag, self.heads.view
        attributes = [ast.Attribute(column.name, column.declared) for column in columns]
        if bag:
            attributes.append(ast.Attribute(unlike(COPIES, [column.name for column in columns]), "number"))
        if found.rows.name != name:
            variables = [self.heads.variable(attribute.name, False) for attribute in attributes]
            self.heads.rule(name, variables, [ast.Atom(found.rows.name, tuple(variables))], functional=bag)
        declared = ast.Declaration(name, tuple(attributes), (BAG, VIEW) if bag else (VIEW,), functional=bag)
        items = (declared, *self.heads.items)
        return View(items, name, tuple(columns), bag, order.hidden, tuple(order.columns), order.limit, order.offset)

    # Queries

    def rows_of(self, query: exp.Expr, around: Outside | None, *, distinct: bool = False) -> Derived:
        """The head with the rows of a query; `distinct`: how often a row is there does not matter."""
        query = self._subquery(query, around)
        with self.knowing(query, around):
            return self._rows_of(query, around, distinct=distinct)

    def _rows_of(self, query: exp.Expr, around: Outside | None, *, distinct: bool) -> Derived:
        if limited(query):
            found = self._first(query, around)
        elif isinstance(query, exp.SetOperation):
            found = set_operation(self, query, around, distinct)
        elif isinstance(query, exp.Values):
            found = values(self, query, around)
        elif isinstance(query, exp.Select):
            return self.rows_of_block(self.block_of(query, around), distinct=distinct)
        else:
            what = f"`{query.key}` as a query"
            raise self.text.unsupported(what, query, "write `select`, `values` or a set operation")
        return self._each_once(found) if distinct and found.rows.bag else found

    def _ordered(
        self, query: exp.Expr, around: Outside | None, order: Ordering, *, extended: bool = False, name: str = ""
    ) -> Derived:
        """The head with the rows of a query, and of what they are ordered by: `extended` by columns for it."""
        if isinstance(query, exp.Select):
            block = self.block_of(query, around)
            order.resolve(self, [output.name for output in block.outputs], block, extended=extended)
            return rows_of(self, [block], name=name)
        found = self._rows_of(_whole(query), around, distinct=False)
        order.resolve(self, [column.name for column in found.columns], None)
        return found

    def block(self, query: exp.Expr, around: Outside | None) -> SelectBlock | None:
        """The block of a select; None of any other query."""
        query = self._subquery(query, around)
        if not isinstance(query, exp.Select) or limited(query):
            return None
        with self.knowing(query, around):
            return self.block_of(query, around)

    def block_of(self, query: exp.Select, around: Outside | None, scope: QueryScope | None = None) -> SelectBlock:
        """The block of a select whose queries of `with` are known; `scope`: sees its tables, if one does."""
        return block_of(self, query, around, scope=scope)

    def rows_of_block(self, block: SelectBlock, *, distinct: bool = False) -> Derived:
        """The head with the rows of a block."""
        return rows_of(self, [block], distinct=distinct)

    def some(self, query: exp.Expr, around: Outside) -> Derived:
        """The head that says for which parameters a query has a row."""
        inner = self.plain(query, around)
        if isinstance(inner, exp.Select) and not limited(inner):
            if inner.args.get("order") is not None or not all(map(_is_plain, inner.expressions)):
                self._check(inner, around)
            with self.knowing(inner, around):
                block = block_of(self, inner, around, given=False)
                return rows_of(self, [block], distinct=True, word="some")
        if inner.args.get("limit") is not None and inner.args.get("offset") is None:
            inner = inner.copy()  # whether there is a row does not depend on it, unless it is 0
            if written(inner.args["limit"]):
                inner.set("limit", None)
        found = self.rows_of(inner, around, distinct=True)
        # Not one row for each that is found: who asks whether there is one may count how often.
        name, fixed = self.heads.name("some"), [parameter.variable for parameter in found.parameters]
        rest = [ast.Wildcard()] * len(found.columns)
        self.heads.rule(name, fixed, [ast.Atom(found.rows.name, (*fixed, *rest))])
        return Derived(Rows.of(name, found.rows.columns[: len(fixed)], bag=False), found.parameters)

    def scalar(self, query: exp.Expr, around: Outside) -> tuple[Derived, bool]:
        """The head with the value of a query that has at most one row for each value of its parameters.

        And whether it has a row for all of them: it is an aggregate of all rows, without parameters.
        """
        inner = self._subquery(query, around)
        if isinstance(inner, exp.Select) and not limited(inner):
            with self.knowing(inner, around):
                block = block_of(self, inner, around, scalar=True)
                if len(block.outputs) == 1:
                    single = block.grouping is not None and block.grouping.single
                    every = block.grouping is not None and block.grouping.always and not block.grouping.partial
                    derived = rows_of(self, [block], distinct=True, word="value", functional=not single)
                    return derived, every and block.grouping.having is None  # type: ignore[union-attr]
                return rows_of(self, [block], distinct=True), False
        with self.knowing(inner, around):
            found = self._rows_of(inner, around, distinct=True)
        if len(found.columns) != 1:
            return found, False
        limit = inner.args.get("limit")
        first = limit is not None and limit.expression == exp.Literal.number(1)
        return self._each_once(found, functional=True, around=None if first else around), False

    def computed_apart(self, scope: QueryScope, values: list[list[Case]]) -> list[list[Case]]:
        """Values of many cases in an expression, each of one that a head has; as they are, where none can have them."""
        return computed_apart(scope, values)

    def scalar_subquery(self, scope: QueryScope, node: exp.Subquery) -> list[Case]:
        """The value of `(select ...)` in an expression that `scope` sees."""
        return scalar(scope, node)

    def predicate(self, scope: QueryScope, node: exp.Expr, truth: bool) -> list[Conjunction]:
        """Where a predicate over a subquery is true or, if not `truth`, false."""
        return predicate(scope, node, truth)

    def by_case(self, scope: QueryScope, node: exp.Expr) -> list[tuple[Conjunction, exp.Expr]]:
        """A predicate over a subquery for each case of the value that it compares, and where that is the value."""
        return by_case(scope, node)

    def plain(self, query: exp.Expr, around: Outside | None) -> exp.Expr:
        """A query without parentheses, and without what others say: groupings by a union, first rows by windows."""
        query = without_distinct_on(without_parameters(unwrapped(query)), self.text)
        query = with_known_aggregates(without_within_group(query, self.text), self.text)

        def has_column(node: exp.Column) -> bool:
            return self._has_column(query, node, around)

        return without_grouping_sets(query, self.text, has_column)

    def _has_column(self, select: exp.Expr, node: exp.Column, around: Outside | None) -> bool:
        """Whether a table of `from` has a column that is named alone."""
        other = self._apart()
        scope = QueryScope(other, around and around.apart(other))
        with other.knowing(select, scope.around):
            add_from(scope, select)
        return scope.own(node) is not None

    def _subquery(self, query: exp.Expr, around: Outside | None) -> exp.Expr:
        """A query within another, without parentheses; what it is ordered by is given out if that matters."""
        query = self.plain(query, around)
        if limited(query):
            return with_given_order(query, self.text)
        if query.args.get("order") is not None:
            self._check(query, around)
        return query

    def _check(self, query: exp.Expr, around: Outside | None) -> None:
        """Refuse mistakes in what no rule reads: what a query of `exists` gives out, an order without `limit`."""
        if not self._checks:
            return
        other = self._apart()
        try:
            outside = around and around.apart(other)
            with other.knowing(query, outside):
                other._ordered(query, outside, ordering_of(query, self.text), extended=True)
        except (TooManyWays, RecursionError, TooDeepError):
            pass
        except ProgramError as error:
            if not is_unsupported(error):
                raise

    def _apart(self) -> Queries:
        """Another translation, of a query whose rules nobody reads."""
        other = Queries(self.catalogue, self.heads.view, self.text)
        other._common, other._checks = self._common, False
        other.heads.nullable, other.heads.recursive = dict(self.heads.nullable), self.heads.recursive
        return other

    def _first(self, query: exp.Expr, around: Outside | None) -> Derived:
        """The head with the first rows of a query that asks for some of its rows only."""
        if query.args.get("limit") is None:
            raise self.text.unsupported("`offset` without `limit` in a subquery or view", query.args["offset"])
        order = ordering_of(query, self.text)
        whole = query.copy()
        for part in ("order", "limit", "offset"):
            whole.set(part, None)
        scope = QueryScope(self, around)
        found = self._ordered(whole, Beside(scope), order)
        if found.parameters:
            return first_of_each(scope, found, order)
        return Derived(first_rows(self.heads, found.rows, order))

    def _each_once(self, derived: Derived, *, functional: bool = False, around: Outside | None = None) -> Derived:
        """The head with the distinct rows of another; `functional`: as in `rows_of`, `around` asks for its values."""
        rows = derived.rows
        name = self.heads.name("value" if functional else "rows")
        variables = [self.heads.variable(column.name, column.nullable) for column in rows.columns]
        copies = [ast.Wildcard()] if rows.bag else []
        body: list[ast.Literal] = [ast.Atom(rows.name, (*variables, *copies))]
        if around is not None and derived.parameters and not self.heads.recursive:
            given = variables[: len(derived.parameters)]
            body += [ast.Atom(around.domain(derived.parameters, asked=True), tuple(given)), *or_null(self.heads, given)]
        self.heads.rule(name, variables, body, functional=functional)
        return Derived(Rows.of(name, rows.columns, bag=False), derived.parameters)

    # Names

    @property
    def names(self) -> list[str]:
        """The names of all tables, views and queries of `with`."""
        return [*self.catalogue.names, *(table.name for table in self._common.values())]

    def common(self, name: str) -> CommonTable | None:
        """The query of `with` of this name."""
        return self._common.get(name.casefold())

    @contextmanager
    def within(self, tables: Mapping[str, CommonTable]) -> Iterator[None]:
        """Let only these queries of `with` be known."""
        before, self._common = self._common, dict(tables)
        try:
            yield
        finally:
            self._common = before

    @contextmanager
    def knowing(self, query: exp.Expr, around: Outside | None = None) -> Iterator[None]:
        """Let the queries of the `with` of a query be known, which stands in the query `around`."""
        before = self._common
        try:
            for clause in clauses_of(query):
                for node in clause.expressions:
                    recursive = bool(clause.args.get("recursive"))
                    table = CommonTable(self, node, self._common, around, recursive=recursive)
                    self._common = {**self._common, table.name.casefold(): table}
            yield
        finally:
            self._common = before


def _is_plain(node: exp.Expr) -> bool:
    """Whether nothing can be wrong with what a query gives out: a constant, or `*`."""
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean) or (
        isinstance(node, exp.Star) and not any(node.args.values())
    )


def _whole(query: exp.Expr) -> exp.Expr:
    """The query without its limit, which is for the answer."""
    if not limited(query):
        return query
    whole = query.copy()
    for part in ("limit", "offset"):
        whole.set(part, None)
    return whole


def unwrapped(query: exp.Expr) -> exp.Expr:
    """A query without parentheses around it, and with what stands before and behind them: `(select ...) limit 3`."""
    around: list[exp.Expr] = []
    while isinstance(query, exp.Subquery | exp.Paren) and not query.args.get("joins"):
        around.append(query)
        query = query.this
    for parentheses in reversed(around):
        query = knowing(with_parts_behind(query, parentheses), parentheses.args.get("with_"))
    return query
