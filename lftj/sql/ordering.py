"""`order by`, `limit` and `offset` of a whole query: what is done to the rows of its answer.

What rows are sorted by is a column that the query gives out, by its name, its alias or its position; or another
expression, which becomes a column that is not shown.

A query in parentheses may have an order of its own, and another one behind them:

    (select a from t) order by b limit 2                  select a from t order by b limit 2
    (select a from t order by b limit 3) limit 2          select a from t order by b limit 2
    (select a from t order by b limit 3) order by a       select * from (select a from t order by b limit 3) order by a
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language.first_rows import OrderedColumn
from lftj.sql.parameters import is_parameter
from lftj.sql.places import SqlText
from lftj.sql.select_block import Output, SelectBlock

if TYPE_CHECKING:
    from lftj.sql.queries import Queries


@dataclass(slots=True)
class Ordering:
    """The order of an answer. `hidden`: how many columns at the end are there to sort by only."""

    nodes: list[exp.Ordered]
    limit: int | None
    offset: int
    columns: list[OrderedColumn] = field(default_factory=list)
    hidden: int = 0

    def resolve(self, queries: Queries, names: list[str], block: SelectBlock | None, *, extended: bool = False) -> None:
        """Find the columns to sort by among those of the answer; others are added to the block, if it may be so."""
        width = len(names)
        for node in self.nodes:
            if isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL":
                self.columns += [_order(at, node) for at in range(width)]
                continue
            at = position_of(node.this, width, queries.text)
            if at is None and isinstance(node.this, exp.Column) and not node.this.table:
                at = _named(node.this, names, block, queries.text)
            if at is None:
                at = self._computed(queries, node.this, block if extended else None)
            self.columns.append(_order(at, node))

    def _computed(self, queries: Queries, node: exp.Expr, block: SelectBlock | None) -> int:
        """The column with the value of an expression."""
        cases = None if block is None else block.value(node)
        for at, output in enumerate(block.outputs if block is not None else ()):
            if output.cases == cases:
                return at
        if block is None or cases is None or block.distinct:
            raise queries.text.unsupported(
                "`order by` what the query does not give out",
                node,
                "give it out, or order by a column that it gives out",
            )
        self.hidden += 1
        block.outputs.append(Output(f"order_{self.hidden}", cases, node))
        return len(block.outputs) - 1


def _named(node: exp.Column, names: list[str], block: SelectBlock | None, text: SqlText) -> int | None:
    """The index of the column that a name alone stands for: of several, that to which `as` gives it."""
    found = [at for at, name in enumerate(names) if name == node.name]
    found = found or [at for at, name in enumerate(names) if name.casefold() == node.name.casefold()]
    if len(found) > 1 and block is not None:
        found = [at for at in found if isinstance(block.outputs[at].node.parent, exp.Alias)] or found
        if all(block.outputs[at].cases == block.outputs[found[0]].cases for at in found):
            found = found[:1]
    if len(found) > 1:
        raise text.error(
            f"ambiguous column `{node.name}`",
            node,
            why=f"the query gives out {len(found)} columns of this name",
            remedy="order by a position, as in `order by 1`, or give one of them another name",
        )
    return found[0] if found else None


def position_of(node: exp.Expr, width: int, text: SqlText) -> int | None:
    """The index of the column that a whole number stands for, of `width` that a query gives out; None of all else.

    A parameter is no position: what a text means would depend on its values.
    """
    if not isinstance(node, exp.Literal) or not node.is_int or is_parameter(node):
        return None
    at = int(node.this)
    if not 1 <= at <= width:
        raise text.error(
            f"there is no column {at}",
            node,
            why=f"the query gives out {width}, counted from 1",
            remedy="correct the number, or write the name of a column",
        )
    return at - 1


def _order(at: int, node: exp.Ordered) -> OrderedColumn:
    return OrderedColumn(at, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def ordering_of(query: exp.Expr, text: SqlText) -> Ordering:
    """The order that a query asks for."""
    order = query.args.get("order")
    limit = _number(query.args.get("limit"), text)
    return Ordering(
        list(order.expressions) if order is not None else [], limit, _number(query.args.get("offset"), text) or 0
    )


def _number(node: exp.Expr | None, text: SqlText) -> int | None:
    if node is None:
        return None
    found = written(node)
    if found is None:
        remedy = "write `limit` and a number" if isinstance(node, exp.Fetch) else "write a number"
        raise text.unsupported(f"`{node.sql('duckdb')}`", node, remedy)
    return found


def written(node: exp.Expr) -> int | None:
    """The number of a `limit` or `offset`; None if it is not written as one."""
    found = node.expression if isinstance(node, exp.Limit | exp.Offset) else node
    if not isinstance(found, exp.Literal) or found.is_string or not found.this.isdigit():
        return None
    return int(found.this)


def without_parameters(query: exp.Expr) -> exp.Expr:
    """The query without the parameters that it is ordered by: they are alike in all rows."""
    order = query.args.get("order")
    if order is None or not any(is_parameter(item.this) for item in order.expressions):
        return query
    made = query.copy()
    left = [item for item in made.args["order"].expressions if not is_parameter(item.this)]
    made.set("order", exp.Order(expressions=left) if left else None)
    return made


# --- parentheses ------------------------------------------------------------------------------------------------------


def with_parts_behind(query: exp.Expr, behind: exp.Expr) -> exp.Expr:
    """A query with the order, limit and offset that stand behind the parentheses around it, which `behind` has."""
    order, limit, offset = (behind.args.get(part) for part in ("order", "limit", "offset"))
    if order is None and limit is None and offset is None:
        return query
    limited = any(query.args.get(part) is not None for part in ("limit", "offset"))
    if limited and order is None:
        ends = _first_of_first(query, behind)
        if ends is not None:
            limit, offset = ends
            limited = False
    made = query.copy()
    if limited or (order is not None and _has_first_of_groups(query)):  # another order would choose other rows
        made = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=made)))
    if order is not None:  # rows that are alike in it are in the order that they had
        before = made.args.get("order")
        items = [*order.expressions, *(before.expressions if before is not None else ())]
        made.set("order", exp.Order(expressions=[item.copy() for item in items]))
    for part, node in (("limit", limit), ("offset", offset)):
        made.set(part, None if node is None else node.copy())
    return made


def _has_first_of_groups(query: exp.Expr) -> bool:
    """Whether a query is `distinct on`, so that its order says which rows it has."""
    distinct = query.args.get("distinct")
    return isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None


def _first_of_first(query: exp.Expr, behind: exp.Expr) -> tuple[exp.Expr | None, exp.Expr | None] | None:
    """The limit and offset of the first rows of the first rows of a query; None where one is not written as a number.

    So they are in the query's order, which a query around it would not know.
    """
    numbers: list[int | None] = []
    for of in (query, behind):
        for part in ("limit", "offset"):
            node = of.args.get(part)
            numbers.append(None if node is None else written(node))
            if node is not None and numbers[-1] is None:
                return None
    limit, offset, most, skipped = numbers
    limits = [] if limit is None else [max(0, limit - (skipped or 0))]
    limits += [] if most is None else [most]
    start = (offset or 0) + (skipped or 0)
    return (
        exp.Limit(expression=exp.Literal.number(min(limits))) if limits else None,
        exp.Offset(expression=exp.Literal.number(start)) if start else None,
    )
