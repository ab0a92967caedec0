"""`with`: queries that have a name within another, and those that read themselves.

A query that is read several times is one head, unless nothing groups its rows: then its body is merged into each query
that reads it. Of a large body this happens once: where each name reads the one before twice, it would double each time.

What stands within what has a `with` may have one of its own, whose names go before those around it:

    with a as (...) insert into t with b as (...) select ...        the select knows `a` and `b`
    with a as (...) (with b as (...) select ...) limit 2

Its own `with` then has that around it as its `with_`. Those that read themselves are in recursive_query.py.

A query of the `with` of a subquery that names columns of the query around is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.sql.from_clause import append, check_names, merged
from lftj.sql.query_scope import Derived, FromTable, Outside, QueryParameter, QueryScope
from lftj.sql.recursive_query import RecursiveQuery
from lftj.sql.scope import Case

if TYPE_CHECKING:
    from lftj.sql.queries import Queries
    from lftj.sql.select_block import SelectBlock

# A query of more atoms and rules is merged into the first that reads it, and is a head for the others.
LARGE = 16


def knowing(query: exp.Expr, clause: exp.Expr | None) -> exp.Expr:
    """A query that knows the names of a `with` around it, too."""
    if clause is None:
        return query
    made = last = query.copy()
    while last.args.get("with_") is not None:
        last = last.args["with_"]
    last.set("with_", clause.copy())
    return made


def with_queries_knowing(node: exp.Expr, clause: exp.Expr) -> exp.Expr:
    """An expression, or a list of them, whose queries know the names of a `with` around it."""
    made = node.copy()
    for part in list(made.walk(prune=lambda part: isinstance(part, exp.Query))):
        if isinstance(part, exp.Query):
            query = part.this if isinstance(part, exp.Subquery) else part
            query.replace(knowing(query, clause))
    return made


def clauses_of(query: exp.Expr) -> list[exp.Expr]:
    """The `with` that a query knows: those around it, and its own as the last."""
    found, clause = list[exp.Expr](), query.args.get("with_")
    while clause is not None:
        found.append(clause)
        clause = clause.args.get("with_")
    return found[::-1]


class CommonTable:
    """A query of `with`. `around`: what the query that has the `with` sees of the one around it."""

    def __init__(
        self,
        queries: Queries,
        node: exp.CTE,
        before: dict[str, CommonTable],
        around: Outside | None,
        *,
        recursive: bool,
    ) -> None:
        self.queries, self.query, self.name = queries, node.this, node.alias
        alias = node.args.get("alias")
        self.columns = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
        self.tables = dict(before)
        self.node = node
        self.recursive = recursive and any(
            table.name.casefold() == self.name.casefold() for table in node.this.find_all(exp.Table)
        )
        self._around = None if around is None else _AroundWith(queries, self.name, self.recursive, around)
        self._derived: Derived | None = None
        self._was_merged = False

    def add(self, scope: QueryScope, called: str, columns: Sequence[str], node: exp.Expr) -> None:
        """Add it to the tables of a scope."""
        names = columns or self.columns
        if self._derived is None and not self.recursive:
            rules = len(self.queries.heads.items)
            with self.queries.within(self.tables):
                block = self.queries.block(self.query, self._around)
                if block is not None and block.mergeable and not (self._was_merged and self._is_large(block, rules)):
                    self._was_merged = True
                    self._append(scope, merged(scope, block, called, names), columns, node)
                    return
                self._derived = (
                    self.queries.rows_of(self.query, self._around)
                    if block is None
                    else self.queries.rows_of_block(block)
                )
        if self._derived is None:
            known = {**self.tables, self.name.casefold(): self}
            with self.queries.within(known), self.queries.knowing(self.query, self._around):
                self._derived = RecursiveQuery(self.queries, self.node, self._around).derived(self._called)
        self._append(scope, scope.add(self._derived, called, names), columns, node)

    def _is_large(self, block: SelectBlock, rules: int) -> bool:
        """Whether the body of its block is large, with the rules since there were so many."""
        return len(block.scope.body.atoms) + len(self.queries.heads.items) - rules > LARGE

    def _append(self, scope: QueryScope, source: FromTable, columns: Sequence[str], node: exp.Expr) -> None:
        """Add it to `from`; an error if `with`, or `from`, names more columns than it has."""
        check_names(scope, self.columns, len(source.columns), self.node)
        check_names(scope, columns, len(source.columns), node)
        append(scope, source, node)

    def _called(self, derived: Derived) -> None:
        """Let the name stand for this head."""
        self._derived = derived


@dataclass(frozen=True, slots=True)
class _AroundWith:
    """The query around one that has a `with`, as a query of that sees it: its columns are there, and refused."""

    queries: Queries
    name: str
    recursive: bool
    around: Outside

    def found(self, node: exp.Column) -> list[Case] | None:
        """Raise an error about a column of the query around."""
        if not self.has(node):
            return None
        remedy = f"write the query in `from`, in the place of `{self.name}`"
        if self.recursive:
            remedy = f"read the table that has it in `{self.name}`, give its key out, and compare that where it is read"
        what = f"`{node.sql('duckdb')}` of the query around, in `{self.name}` of `with`"
        raise self.queries.text.unsupported(what, node, remedy)

    def has(self, node: exp.Column) -> bool:
        """Whether a query around has a column."""
        return self.around.has(node)

    def names(self, node: exp.Column) -> list[str]:
        """None: no column of the query around may be meant."""
        return []

    def domain(self, parameters: Sequence[QueryParameter], *, asked: bool = False) -> str:
        """Of no parameter, as none is found."""
        raise AssertionError(parameters)

    def apart(self, queries: Queries) -> _AroundWith:
        """The same for another translation, which changes nothing here."""
        return _AroundWith(queries, self.name, self.recursive, self.around.apart(queries))
