"""`over`: a select with window functions, as a query over a head that has their values.

    select k, sum(x) over (partition by k order by d) + 1 from t

    @v.rows1(k, d, x) :- t(k, d, x).                            what the functions read, and what is given out
    .decl @v.window2(k, d, x, s) window 0 1+l sum,2,0,p,*,0     a value beside each row (`language/window_functions.py`)
    v(k, s + 1)       :- @v.window2(k, _, _, s).

Functions over one partitioning in one order are one head; where there are several, each reads the one before. What
`qualify` asks, and what rows are ordered by, sees these columns. `distinct on (a)` is `qualify row_number() over
(partition by a ...) = 1`, and of functions some are written by others: `cume_dist` is a count by a count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.first_rows import OrderedColumn
from lftj.language.names import BAG, COPIES
from lftj.language.types import DECIMAL, DURATION, FLOAT, NUMBER
from lftj.language.window_functions import DISTINCT, ByValue, WindowFunction, WindowFunctions
from lftj.sql.aggregate_heads import is_aggregate
from lftj.sql.conversions import has_cast, shown
from lftj.sql.from_clause import add_from
from lftj.sql.grouping import own_nodes
from lftj.sql.heads import QueryHeads
from lftj.sql.query_scope import Beside, Derived, Outside, QueryScope, aliases_of
from lftj.sql.select_block import Output, SelectBlock, rows_of
from lftj.sql.sql_expressions import holds, value
from lftj.sql.stars import expanded, output_name, star_of
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.written_quantiles import CONT, check_between, fraction_given, taken_as, with_fraction_of
from lftj.sql.written_windows import QUANTILE, WrittenBound, WrittenWindow, written
from lftj.values.type_table import family_of

if TYPE_CHECKING:
    from lftj.sql.queries import Queries
    from lftj.sql.scope import Case


def has_windows(select: exp.Select) -> bool:
    """Whether a select has window functions."""
    if select.args.get("qualify") is not None:
        return True
    parts = [*select.expressions, *_ordered(select)]
    return any(isinstance(node, exp.Window) for part in parts for node in own_nodes(part))


def _ordered(select: exp.Select) -> list[exp.Expr]:
    order = select.args.get("order")
    return [item.this for item in order.expressions] if order is not None else []


# What adds values up, or their squares.
_OF_NUMBERS = ("sum", "mean", "var_pop", "var_samp", "stddev_pop", "stddev_samp")


class WindowedSelect:
    """A select with window functions while it is translated.

    `rows`: sees the tables of `from`, `scope` the values beside their rows · `select`: as `written` has it · `names`:
    what its expressions are called, as they were written before · `values`: the cases of what these are made of, by
    their texts: columns of the rows, and values of functions.
    """

    def __init__(self, queries: Queries, select: exp.Select, around: Outside | None) -> None:
        self.queries, self.text = queries, queries.text
        self.scope = QueryScope(queries, around)
        self.rows = QueryScope(queries, Beside(self.scope))
        self.scope.aliases = self.rows.aliases = aliases_of(select)
        add_from(self.rows, select)
        self.select = written(select, self.text, lambda node: self.rows.own(node) is not None)
        self.names = [output_name(node) for node in select.expressions]
        order = zip(_ordered(select), _ordered(self.select), strict=True)
        self._order = {node.sql("duckdb"): plain for node, plain in order}
        self.values: dict[str, list[Case]] = {}
        self._read: dict[str, exp.Expr] = {}
        self._windows: dict[str, WrittenWindow] = {}
        for part in self._parts():
            self._collect(part)
        if not self._windows:
            raise self.text.error(
                "`qualify` without a window function",
                self.select.args["qualify"],
                why="it selects rows by values over windows",
                remedy="write `where`, or `having` of groups",
            )

    def _parts(self) -> Iterator[exp.Expr]:
        """The expressions that see the values of functions."""
        for node in self.select.expressions:
            if star_of(node) is None:
                yield node.unalias()
        qualify = self.select.args.get("qualify")
        if qualify is not None:
            yield qualify.this
        names = {name.casefold() for name in self.names}
        for node in _ordered(self.select):
            named = isinstance(node, exp.Column) and not node.table and node.name.casefold() in names
            if not (named or isinstance(node, exp.Literal | exp.Var)):
                yield node

    def _collect(self, node: exp.Expr) -> None:
        """Note what an expression needs of the rows: what functions read, and columns and aggregates beside them."""
        if not any(isinstance(part, exp.Window) for part in own_nodes(node)):
            self._read.setdefault(node.sql("duckdb"), node)
            return
        for part in node.walk(prune=lambda n: isinstance(n, exp.Window | exp.Query | exp.Column) or is_aggregate(n)):
            if isinstance(part, exp.Query):
                raise self.text.unsupported(
                    "a subquery beside a window function", part, "give each out by itself in a subquery of `from`"
                )
            if isinstance(part, exp.Window):
                window = WrittenWindow.of(part, self.text)
                self._windows.setdefault(part.sql("duckdb"), window)
                for read in window.reads:
                    self._read.setdefault(read.sql("duckdb"), read)
            elif isinstance(part, exp.Column) or is_aggregate(part):
                self._read.setdefault(part.sql("duckdb"), part)

    def block(self) -> SelectBlock:
        """The block over the head with the values."""
        scope = self.scope
        base = self.queries.block_of(self._rows(), None, scope=self.rows)
        outputs = base.outputs
        base.outputs, given = _distinct_outputs(outputs)
        derived = rows_of(self.queries, [base], word="rows")
        rows, places = self._heads(derived, given)
        source = scope.add(Derived(rows, derived.parameters), "")
        columns = list(source.columns.values())
        self.values = {text: columns[at - len(derived.parameters)] for text, at in places.items()}
        block = SelectBlock(scope, [], self._distinct, windowed=self)
        qualify = self.select.args.get("qualify")
        if qualify is not None:
            scope.body.conditions.append(holds(self.replaced(qualify.this), scope))
        read = max(len(self._read), 1)
        stars = ((output, columns[at]) for output, at in zip(outputs[read:], given[read:], strict=True))
        for node, name in zip(self.select.expressions, self.names, strict=True):
            if star_of(node) is not None:
                many = len(expanded(base.scope if base.grouping is None else base.grouping.rows, [node]))
                block.outputs += [Output(output.name, cases, node) for output, cases in islice(stars, many)]
                continue
            inner = node.unalias()
            block.outputs.append(Output(name, block.value(inner), inner))
        return block

    @property
    def _distinct(self) -> bool:
        return self.select.args.get("distinct") is not None

    def _rows(self) -> exp.Select:
        """The select that gives out what functions read, then the columns that `*` stands for."""
        rows = self.select.copy()
        for part in ("order", "limit", "offset", "distinct", "qualify", "windows", "with_"):
            rows.set(part, None)
        given = [exp.alias_(node.copy(), f"r{at}", quoted=True) for at, node in enumerate(self._read.values())]
        given = given or [exp.alias_(exp.Literal.number(1), "r0", quoted=True)]
        stars = (node.copy() for node in self.select.expressions if star_of(node) is not None)
        rows.set("expressions", [*given, *stars])
        return rows

    def replaced(self, node: exp.Expr) -> exp.Expr:
        """An expression over the values: its parts that are columns of the head are replaced by these."""

        def place(part: exp.Expr) -> exp.Expr:
            found = None if isinstance(part, exp.Literal) else self.values.get(part.sql("duckdb"))
            return part if found is None else self.scope.placeholder(found, part)

        # Who orders the rows knows the select as it was before.
        return self._order.get(node.sql("duckdb"), node).copy().transform(place)

    # Heads

    def _heads(self, derived: Derived, given: Sequence[int]) -> tuple[Rows, dict[str, int]]:
        """(the rows with all values, the column of each text). `given`: of what is read, by its place."""
        outside = len(derived.parameters)
        places = {text: outside + at for text, at in zip(self._read, given, strict=False)}
        rows = derived.rows
        together: dict[tuple[tuple[int, ...], tuple[OrderedColumn, ...]], dict[str, WrittenWindow]] = {}
        for text, window in self._windows.items():
            partition = (*range(outside), *dict.fromkeys(places[node.sql("duckdb")] for node in window.partition))
            order = tuple(
                OrderedColumn(
                    places[item.this.sql("duckdb")], bool(item.args.get("desc")), bool(item.args["nulls_first"])
                )
                for item in window.order
            )
            together.setdefault((partition, order), {})[text] = window
        for (partition, order), windows in together.items():
            width = len(rows.columns)
            functions, columns = [], []
            for at, (text, window) in enumerate(windows.items()):
                function, column = self._function(window, places, rows)
                functions.append(function)
                columns.append(column)
                places[text] = width + at
            rows = window_head(self.queries.heads, rows, WindowFunctions(partition, order, tuple(functions)), columns)
        return rows, places

    def _function(
        self, window: WrittenWindow, places: dict[str, int], rows: Rows
    ) -> tuple[WindowFunction, OutputColumn]:
        """A function, and the column of its values."""
        at = -1 if window.argument is None else places[window.argument.sql("duckdb")]
        low, high = (
            ByValue(*(places[part.sql("duckdb")] for part in end)) if isinstance(end, WrittenBound) else end
            for end in (window.low, window.high)
        )
        function = WindowFunction(window.name, at, window.number, window.rows, low, high, window.skips_nulls)
        if window.name in ("row_number", "rank", "dense_rank", "ntile", "count", DISTINCT):
            return function, OutputColumn(window.name, NUMBER, False)
        column = rows.columns[at]
        if window.name == QUANTILE:
            op = self._quantile(window.node.this, column.type)
            return function._replace(name=op), OutputColumn(window.name, AGGREGATES[op].result_of(column.type), True)
        if window.name in _OF_NUMBERS and family_of(column.type) not in (NUMBER, FLOAT, DECIMAL):
            other = "cast it, or " if has_cast(column.type, FLOAT) else ""
            other = "add it up in a subquery with `group by`, or " if column.type == DURATION else other
            raise self.text.error(
                f"`{self.text.call(window.node.this)}` of {shown(column.type)}",
                window.node,
                why="a window adds up numbers, doubles and decimals only",
                remedy=f"{other}take `min`, `max` or `count`",
            )
        kept = window.name not in _OF_NUMBERS or window.name == "sum"
        return function, OutputColumn(window.name, column.type if kept else FLOAT, True)

    def _quantile(self, node: exp.Expr, type_: str) -> str:
        """The aggregate of a median, or another quantile, of values of a type."""
        op, taken = taken_as(node, type_)
        if taken is not node.this:
            raise self.text.unsupported(
                f"`{self.text.call(node)}` of {shown(type_)} over a window", node, "cast the value to timestamp"
            )
        if op == CONT:
            check_between(node, type_, self.text)
        given = fraction_given(node, self.text)
        return with_fraction_of(op, given, [] if given is None else value(given, self.rows), self.text)


def _distinct_outputs(outputs: Sequence[Output]) -> tuple[list[Output], list[int]]:
    """(those of the outputs that have different values, the place of each output's among them)."""
    kept: list[Output] = []
    places: list[int] = []
    for output in outputs:
        places.append(next((at for at, other in enumerate(kept) if other.cases == output.cases), len(kept)))
        if places[-1] == len(kept):
            kept.append(output)
    return kept, places


def window_head(heads: QueryHeads, rows: Rows, windows: WindowFunctions, columns: Sequence[OutputColumn]) -> Rows:
    """The head with the values of functions, in `columns`, beside each of some rows."""
    name = heads.name("window")
    every = (*rows.columns, *columns)
    attributes = [ast.Attribute(f"c{at}", column.declared) for at, column in enumerate(every)]
    variables = [heads.variable(column.name, column.nullable) for column in rows.columns]
    # What stands there says of which type a value is; which one it is, the mark says.
    values = [ast.Constant(None if column.nullable else 0, column.type) for column in columns]
    copies = [heads.variable(COPIES, False)] if rows.bag else []
    attributes += [ast.Attribute(COPIES, NUMBER)] if rows.bag else []
    qualifiers = (BAG, windows.text) if rows.bag else (windows.text,)
    heads.items.append(ast.Declaration(name, tuple(attributes), qualifiers, functional=rows.bag))
    body = [ast.Atom(rows.name, (*variables, *copies))]
    heads.rule(name, [*variables, *values, *copies], body, functional=rows.bag)
    # Copies of a row may have different values.
    return Rows.of(name, every, bag=True) if rows.bag else Rows(name, every, False, rows.keys)
