"""Columns that both sides of a `using` or `natural` join have, and that are one column of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from lftj.language.diagnostics import did_you_mean
from lftj.sql.query_scope import FromTable, QueryScope
from lftj.sql.scope import Case


@dataclass(frozen=True, slots=True)
class SharedColumn:
    """A column that both sides of a join have. `source`, `column`: the place of that of the right side."""

    name: str
    left: list[Case]
    right: list[Case]
    source: FromTable
    column: str


def equality(scope: QueryScope, left: list[Case], right: list[Case]) -> exp.Expr:
    """The predicate that two values are equal."""
    return exp.EQ(this=scope.placeholder(left), expression=scope.placeholder(right))


def merge(scope: QueryScope, shared: SharedColumn, cases: list[Case]) -> None:
    """Let one column stand for the two of a join."""
    scope.merged[shared.name] = cases
    shared.source.hidden.add(shared.column)


def shared_columns(
    scope: QueryScope,
    join: exp.Join,
    left: Sequence[FromTable],
    right: Sequence[FromTable],
    merged: dict[str, list[Case]],
) -> list[SharedColumn]:
    """The columns that `using` names, or that both sides of a natural join have; `merged`: of joins on the left."""
    named = [(part.name, part) for part in join.args.get("using") or ()]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        own = dict.fromkeys(name for source in left for name in source.columns if name not in source.hidden)
        named = [(name, join.this) for name in own if any(source.find(name) is not None for source in right)]
        if not named:
            raise scope.source.error(
                "a natural join without a column in common",
                join.this,
                why="it joins rows that are alike in the columns that both sides have",
                remedy="say how with `on`, or write `cross join`",
            )
    found = []
    for name, node in named:
        kept = merged.get(name.casefold())
        if kept is None:
            source, own_name = _side(scope, left, name, node)
            kept = source.columns[own_name]
        source, own_name = _side(scope, right, name, node)
        found.append(SharedColumn(name.casefold(), kept, source.columns[own_name], source, own_name))
    return found


def _side(scope: QueryScope, sources: Sequence[FromTable], name: str, node: exp.Expr) -> tuple[FromTable, str]:
    found = [(source, own) for source in sources if (own := source.find(name)) is not None and own not in source.hidden]
    if len(found) == 1:
        return found[0]
    raise scope.source.error(
        f"ambiguous column `{name}`" if found else f"unknown column `{name}`",
        node,
        why="a column that a join shares is in one table on each side",
        remedy=did_you_mean(name, [n for s in sources for n in s.columns], "say with `on` which columns are joined"),
    )
