"""`*`: the columns that it stands for, some of them left out, replaced or named otherwise.

select * exclude (a) replace (b + 1 as b) rename (c as d) from t
select t.* exclude (a), u.b from t join u using (k)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from lftj.language.diagnostics import did_you_mean
from lftj.sql.query_scope import QueryScope
from lftj.sql.scope import Case


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
            inner = node.this if isinstance(node, exp.Alias) else node
            found.append((node.alias_or_name or inner.sql("duckdb").lower(), inner, None))
            continue
        table = node.table if isinstance(node, exp.Column) else ""
        sources = [source for source in scope.sources if not table or source.name.casefold() == table.casefold()]
        if not sources:
            raise scope.source.error(
                f"unknown table `{table}`" if table else "`*` without `from`",
                node,
                why="`*` stands for the columns of the tables of `from`",
                remedy="name columns, or add the table to `from`",
            )
        every = [
            (name, exp.column(name, source.name or None), cases if table else scope.merged.get(name.casefold(), cases))
            for source in sources
            for name, cases in source.columns.items()
            if table or name not in source.hidden
        ]
        found += _changed(scope, star, every)
    return found


def _changed(
    scope: QueryScope, star: exp.Star, columns: Sequence[tuple[str, exp.Column, list[Case]]]
) -> Iterator[tuple[str, exp.Expr, list[Case] | None]]:
    """The columns of `*` as `exclude`, `replace` and `rename` have them."""
    changes: dict[int, exp.Expr] = {}
    for what in ("except_", "replace", "rename"):
        for part in star.args.get(what) or ():
            meant = part if what == "except_" else part.this if what == "rename" else exp.column(part.alias)
            found = [at for at, (name, node, _) in enumerate(columns) if _is_meant(meant, name, node)]
            shown, names = meant.sql("duckdb"), [name for name, _, _ in columns]
            if not found or any(at in changes for at in found):
                raise scope.source.error(
                    f"`*` changes the column `{shown}` twice" if found else f"`*` has no column `{shown}`",
                    part,
                    why="each column of `*` may be left out, replaced or named otherwise, once",
                    remedy="say once what is to become of it"
                    if found
                    else did_you_mean(meant.name, names, "name a column of the tables of `from`"),
                )
            changes |= dict.fromkeys(found, part)
    if columns and len(changes) == len(columns) and len(star.args.get("except_") or ()) == len(changes):
        why, remedy = "nothing is left to give out", "leave out fewer columns"
        raise scope.source.error("`*` without columns", star, why=why, remedy=remedy)
    for at, (name, node, cases) in enumerate(columns):
        change = changes.get(at)
        if change is None:
            yield name, node, cases
        elif isinstance(change, exp.Alias):
            yield (name, change.this, None) if change.arg_key == "replace" else (change.alias, node, cases)


def _is_meant(meant: exp.Expr, name: str, node: exp.Column) -> bool:
    """Whether a column, which may have its table before it, is one of those that `*` stands for."""
    table = meant.args.get("table")
    same = table is None or table.name.casefold() == node.table.casefold()
    return same and name.casefold() == meant.name.casefold()
