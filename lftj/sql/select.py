"""A select, translated: `from`, `where`, what it groups by and computes over windows, and what it gives out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.sql.from_clause import add_from
from lftj.sql.grouping import Grouping, is_grouped
from lftj.sql.query_scope import Outside, QueryScope, aliases_of
from lftj.sql.select_block import Output, SelectBlock
from lftj.sql.sql_expressions import conjuncts, holds
from lftj.sql.stars import expanded
from lftj.sql.windowed_select import WindowedSelect, has_windows

if TYPE_CHECKING:
    from lftj.sql.queries import Queries

# What a select may have, by the names that sqlglot gives it; all else is refused by name.
_KNOWN = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order", "limit", "offset"}
_KNOWN |= {"windows", "qualify"}
_NAMES = {"sample": "`using sample`", "pivots": "`pivot`"}


def block_of(
    queries: Queries,
    select: exp.Select,
    around: Outside | None,
    *,
    given: bool = True,
    scalar: bool = False,
    scope: QueryScope | None = None,
) -> SelectBlock:
    """The block of a select; not `given`: without the columns that it gives out, which nobody reads.

    `scalar`: it is a value, and what it is of no rows is told elsewhere · `scope`: sees its tables, if one does.
    """
    _check(queries, select)
    if has_windows(select):
        return WindowedSelect(queries, select, around).block()
    if scope is None:
        scope = QueryScope(queries, around)
        scope.aliases = aliases_of(select)
        add_from(scope, select)
    where = select.args.get("where")
    if where is not None:
        for part in conjuncts(where.this):
            scope.body.conditions.append(holds(part, scope))
    distinct = select.args.get("distinct")
    grouping = None
    columns = expanded(scope, select.expressions) if given or is_grouped(select) else []
    inner = scope
    if is_grouped(select):
        grouping = Grouping(scope, select, columns, scalar=scalar)
        inner = grouping.scope
    block = SelectBlock(inner, [], distinct is not None, grouping)
    for name, node, cases in columns if given else ():
        given_out = cases if cases is not None and grouping is None else block.value(node)
        block.outputs.append(Output(name, given_out, node))
    return block


def _check(queries: Queries, select: exp.Select) -> None:
    for name, part in select.args.items():
        if part and name not in _KNOWN:
            node = part[0] if isinstance(part, list) else part
            shown = _NAMES.get(name, f"`{name.strip('_')}`")
            raise queries.text.unsupported(f"{shown} in a query", node if isinstance(node, exp.Expr) else select)
    distinct = select.args.get("distinct")
    assert distinct is None or not distinct.args.get("on"), "written by a window (`without_distinct_on`)"
