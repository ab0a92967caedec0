"""Columns that both sides of a `using` or `natural` join have, and that are one column of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from lftj.language.diagnostics import did_you_mean
from lftj.sql.places import in_place_of
from lftj.sql.query_scope import FromTable, NamedColumn, QueryScope, named
from lftj.sql.scope import Case


class SharedColumn(NamedTuple):
    """A column that both sides of a join have. `node`: where the text says so."""

    left: NamedColumn
    right: NamedColumn
    node: exp.Expr

    def written(self, side: NamedColumn) -> exp.Column:
        """The column of a side, as `on` would name it."""
        return in_place_of(self.node, exp.column(side.name, side.table.name or None))


def equality(scope: QueryScope, shared: SharedColumn, left: list[Case], right: list[Case]) -> exp.Expr:
    """The predicate that the values of a shared column are equal: `left` and `right`, as the scope has them."""
    sides = zip((left, right), (shared.left, shared.right), strict=True)
    first, second = (scope.placeholder(cases, shared.written(side)) for cases, side in sides)
    return exp.EQ(this=first, expression=second)


def merge(shared: SharedColumn, cases: list[Case]) -> None:
    """Let one column stand for the two of a join, in the place of that of the left side."""
    shared.left.table.shared[shared.left.name] = cases
    shared.right.table.hidden.add(shared.right.name)


def shared_columns(
    scope: QueryScope, join: exp.Join, left: Sequence[FromTable], right: Sequence[FromTable]
) -> list[SharedColumn]:
    """The columns that `using` names, or that both sides of a natural join have."""
    wanted = [(part.name, part) for part in join.args.get("using") or ()]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        own = dict.fromkeys(name for source in left for name in source.columns if name not in source.hidden)
        wanted = [(name, join.this) for name in own if named(right, name)]
        if not wanted:
            raise scope.source.error(
                "a natural join without a column in common",
                join.this,
                why="it joins rows that are alike in the columns that both sides have",
                remedy="say how with `on`, or write `cross join`",
            )
    return [
        SharedColumn(_side(scope, left, name, node), _side(scope, right, name, node), node) for name, node in wanted
    ]


def _side(scope: QueryScope, sources: Sequence[FromTable], name: str, node: exp.Expr) -> NamedColumn:
    found = named(sources, name)
    if len(found) == 1:
        return found[0]
    raise scope.source.error(
        f"ambiguous column `{name}`" if found else f"unknown column `{name}`",
        node,
        why="a column that a join shares is in one table on each side",
        remedy=did_you_mean(name, [n for s in sources for n in s.columns], "say with `on` which columns are joined"),
    )
