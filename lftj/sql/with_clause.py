"""`with`: queries that have a name within another, and those that read themselves.

A query that is read several times is one head, unless nothing groups its rows: then its body is merged into each query
that reads it.

    with recursive r as (select ... union select ... from r)     one head with the rules of both, of which one reads it

`union` stops when no new row comes. `union all` would give a row once for each way to derive it: it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.sql.limits import limited
from lftj.sql.query_scope import Derived, QueryScope
from lftj.sql.view import OutputColumn, Rows

if TYPE_CHECKING:
    from lftj.sql.queries import Queries


class CommonTable:
    """A query of `with`."""

    def __init__(self, queries: Queries, node: exp.CTE, before: dict[str, CommonTable], *, recursive: bool) -> None:
        self.queries, self.query, self.name = queries, node.this, node.alias
        alias = node.args.get("alias")
        self.columns = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
        self.tables = dict(before)
        self.node = node
        self.recursive = recursive and any(
            table.name.casefold() == self.name.casefold() for table in node.this.find_all(exp.Table)
        )
        self._derived: Derived | None = None

    def add(self, scope: QueryScope, called: str, columns: Sequence[str], node: exp.Expr) -> None:
        """Add it to the tables of a scope."""
        from lftj.sql.from_clause import append, merged

        names = columns or self.columns
        if self._derived is None and not self.recursive:
            with self.queries.within(self.tables):
                block = self.queries.block(self.query, None)
                if block is not None and block.mergeable:
                    append(scope, merged(scope, block, called, names), node)
                    return
                self._derived = (
                    self.queries.rows_of(self.query, None) if block is None else self.queries.rows_of_block(block)
                )
        if self._derived is None:
            self._derived = self._recursive()
        append(scope, scope.add(self._derived, called, names), node)

    def _recursive(self) -> Derived:
        """The head of a query that reads itself."""
        from lftj.sql.select import rows_of
        from lftj.sql.set_operations import _operands, _unified

        text, query = self.queries.text, self.query
        if not isinstance(query, exp.Union) or self._reads(query.left):
            raise text.unsupported(
                "a recursive query that is no `union` of a start and a step",
                self.node,
                "write `select ... union select ...`, of which only the second reads it",
            )
        if not query.args.get("distinct"):
            raise text.unsupported(
                f"`union all` in the recursive query `{self.name}`",
                self.node,
                "write `union`: each row is there once then, and rows that come again end the recursion",
            )
        for part in query.find_all(exp.Query):
            if limited(part) and self._reads(part):
                raise text.unsupported(
                    f"`limit` in the recursive query `{self.name}`",
                    part.args.get("limit") or part.args.get("offset"),
                    "limit what reads it",
                )
        for join in query.right.find_all(exp.Join):
            if join.side and isinstance(join.parent, exp.Select) and self._reads(join.parent):
                raise text.unsupported(
                    f"an outer join in the step of the recursive query `{self.name}`",
                    join,
                    "use an inner join: which rows are met by none is known once the recursion has ended",
                )
        for node in query.right.find_all(exp.Not, exp.Except):
            if self._reads(node.right if isinstance(node, exp.Except) else node):
                raise text.unsupported(
                    f"`{node.key}` over the recursive query `{self.name}` in its own step",
                    node,
                    "ask so in a query that reads it: what it does not have is known once the recursion has ended",
                )
        with self.queries.within(self.tables):
            start = _operands(self.queries, query.left, None, each_once=True)
            first = start[0].outputs
            heads = self.queries.heads
            columns = tuple(
                OutputColumn(
                    output.name,
                    next((case.type for case in output.cases if case.type), "number"),
                    any(case.nullable for block in start for case in block.outputs[at].cases),
                )
                for at, output in enumerate(first)
            )
            name = heads.name("recursive")
            rows = Rows.of(name, columns, bag=False)
            for nullable in (False, True):
                made = tuple(OutputColumn(c.name, c.type, c.nullable or nullable) for c in columns)
                rows = Rows.of(name, made, bag=False)
                self._derived = Derived(rows)
                before = len(heads.items)
                with self.queries.within({**self.tables, self.name.casefold(): self}):
                    step = _operands(self.queries, query.right, None, each_once=True)
                    if any(block.grouping is not None for block in step):
                        raise text.unsupported(
                            f"an aggregate in the step of the recursive query `{self.name}`",
                            self.node,
                            "aggregate over the recursive query, in a query that reads it",
                        )
                    blocks = _unified(self.queries, [*start, *step], query)
                    if nullable or not any(
                        case.nullable and not column.nullable
                        for block in step
                        for output, column in zip(block.outputs, columns, strict=True)
                        for case in output.cases
                    ):
                        rows_of(self.queries, blocks, distinct=True, name=name)
                        break
                del heads.items[before:]
        return Derived(rows)

    def _reads(self, node: exp.Expr) -> bool:
        return any(table.name.casefold() == self.name.casefold() for table in node.find_all(exp.Table))
