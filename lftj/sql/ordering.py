"""`order by`, `limit` and `offset` of a whole query: what is done to the rows of its answer.

What rows are sorted by is a column that the query gives out, by its name, its alias or its position; or another
expression, which becomes a column that is not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.sql.places import SqlText
from lftj.sql.select_block import Output, SelectBlock
from lftj.sql.view import Order

if TYPE_CHECKING:
    from lftj.sql.queries import Queries


@dataclass(slots=True)
class Ordering:
    """The order of an answer. `hidden`: how many columns at the end are there to sort by only."""

    nodes: list[exp.Ordered]
    limit: int | None
    offset: int
    columns: list[Order] = field(default_factory=list)
    hidden: int = 0

    def resolve(self, queries: Queries, names: list[str], block: SelectBlock | None) -> None:
        """Find the columns to sort by among those of the answer; others are added to the block."""
        width = len(names)
        for node in self.nodes:
            if isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL":
                self.columns += [_order(at, node) for at in range(width)]
                continue
            at = self._position(queries, node.this, names, block, width)
            self.columns.append(_order(at, node))

    def _position(
        self, queries: Queries, node: exp.Expr, names: list[str], block: SelectBlock | None, width: int
    ) -> int:
        position = position_of(node, width, queries.text)
        if position is not None:
            return position
        if isinstance(node, exp.Column) and not node.table:
            for at, name in enumerate(names):
                if name.casefold() == node.name.casefold():
                    return at
        if block is None or block.distinct:
            raise queries.text.unsupported(
                "`order by` what the query does not give out",
                node,
                "give it out, or order by a column that it gives out",
            )
        cases = block.value(node)
        for at, output in enumerate(block.outputs):
            if output.cases == cases:
                return at
        self.hidden += 1
        block.outputs.append(Output(f"order_{self.hidden}", cases, node))
        return len(block.outputs) - 1


def position_of(node: exp.Expr, width: int, text: SqlText) -> int | None:
    """The index of the column that a whole number stands for, of `width` that a query gives out; None of all else."""
    if not isinstance(node, exp.Literal) or not node.is_int:
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


def _order(at: int, node: exp.Ordered) -> Order:
    return Order(at, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


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
    found = node.expression if isinstance(node, exp.Limit | exp.Offset) else node
    if not isinstance(found, exp.Literal) or found.is_string or not found.this.isdigit():
        raise text.unsupported(f"`{node.sql('duckdb')}`", node, "write a number")
    return int(found.this)
