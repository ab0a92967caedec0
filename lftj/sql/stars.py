"""`*`: the columns that it stands for, some of them left out, replaced or named otherwise.

select * exclude (a) replace (b + 1 as b) rename (c as d) from t
select t.* exclude (a), u.b from t join u using (k)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from lftj.language.diagnostics import did_you_mean
from lftj.sql.places import as_duckdb
from lftj.sql.query_scope import NamedColumn, QueryScope
from lftj.sql.scope import Case


def output_name(node: exp.Expr) -> str:
    """What an item of `select` is called: its alias; a column, cast or not, by its name; all else as it is written."""
    inner = node.unalias()
    if isinstance(node, exp.Alias):
        return node.alias
    column = inner.unnest()
    while isinstance(column, exp.Cast):
        column = column.this.unnest()
    return column.name if isinstance(column, exp.Column) else as_duckdb(inner).lower()


def star_of(node: exp.Expr) -> exp.Star | None:
    """The star of `*` or `t.*`; None of any other expression."""
    star = node.this if isinstance(node, exp.Column) else node
    return star if isinstance(star, exp.Star) else None


def expanded(scope: QueryScope, nodes: Sequence[exp.Expr]) -> list[tuple[str, exp.Expr, list[Case] | None]]:
    """The columns that are given out, names and expressions; of those of `*` the cases."""
    found: list[tuple[str, exp.Expr, list[Case] | None]] = []
    for node in nodes:
        star = star_of(node)
        if star is None:
            found.append((output_name(node), node.unalias(), None))
            continue
        table = node.table if isinstance(node, exp.Column) else ""
        sources = [source for source in scope.sources if not table or source.name.casefold() == table.casefold()]
        if not sources and table and scope.sees(table):
            raise scope.source.unsupported(f"`{table}.*` of the query around", node, "name its columns")
        if not sources:
            raise scope.source.error(
                f"unknown table `{table}`" if table else "`*` without `from`",
                node,
                why="`*` stands for the columns of the tables of `from`",
                remedy="name columns, or add the table to `from`",
            )
        every = [
            NamedColumn(source, name)
            for source in sources
            for name in source.columns
            if table or name not in source.hidden
        ]
        found += _changed(scope, star, every, alone=not table)
    return found


def _changed(
    scope: QueryScope, star: exp.Star, columns: Sequence[NamedColumn], *, alone: bool
) -> Iterator[tuple[str, exp.Expr, list[Case] | None]]:
    """The columns of `*` as `exclude`, `replace` and `rename` have them.

    `alone`: it is not that of one table, so that a column that a join shares is what its name alone means.
    """
    changes: dict[int, exp.Expr | None] = {}  # None: left out
    for what in ("except_", "replace", "rename"):
        for part in star.args.get(what) or ():
            meant = part if what == "except_" else part.this if what == "rename" else exp.column(part.alias)
            found = [at for at, column in enumerate(columns) if _is_meant(meant, column)]
            shown, names = meant.sql("duckdb"), [column.name for column in columns]
            if not found or any(at in changes for at in found):
                raise scope.source.error(
                    f"`*` changes the column `{shown}` twice" if found else f"`*` has no column `{shown}`",
                    part,
                    why="each column of `*` may be left out, replaced or named otherwise, once",
                    remedy="say once what is to become of it"
                    if found
                    else did_you_mean(meant.name, names, "name a column of the tables of `from`"),
                )
            changes |= dict.fromkeys(found, part if what == "rename" else None)
            if what == "replace":  # one value stands for all columns of the name, as in DuckDB
                changes[found[0]] = part
    if columns and [*changes.values()] == [None] * len(columns):
        why, remedy = "nothing is left to give out", "leave out fewer columns"
        raise scope.source.error("`*` without columns", star, why=why, remedy=remedy)
    for at, column in enumerate(columns):
        name, own = column.name, column.table.columns[column.name]
        cases = column.cases if alone else own
        node = exp.column(name, (column.table.name or None) if cases == own else None)
        change = changes.get(at)
        if at not in changes:
            yield name, node, cases
        elif change is not None:
            yield (name, change.this, None) if change.arg_key == "replace" else (change.alias, node, cases)


def _is_meant(meant: exp.Expr, column: NamedColumn) -> bool:
    """Whether a column, which may have its table before it, is one of those that `*` stands for."""
    table = meant.args.get("table")
    same = table is None or table.name.casefold() == column.table.name.casefold()
    return same and column.name.casefold() == meant.name.casefold()
