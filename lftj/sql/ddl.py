"""Definitions of tables and views: types of columns, names that are free or taken, what stands before a name."""

from __future__ import annotations

from sqlglot import exp

from lftj.language.clause import INTERNAL
from lftj.language.diagnostics import did_you_mean
from lftj.sql.catalogue import Catalogue, Table
from lftj.sql.places import SqlText, nowhere
from lftj.values.type_table import is_type, without_null

_TYPES = {
    "number": ("TINYINT", "SMALLINT", "INT", "MEDIUMINT", "BIGINT"),
    "unsigned": ("UBIGINT", "UINT64"),
    "float": ("FLOAT", "DOUBLE"),
    "symbol": ("TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR"),
    "bool": ("BOOLEAN",),
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ", "TIMESTAMP_S", "TIMESTAMP_MS"),
    'timestamp("UTC")': ("TIMESTAMPTZ", "TIMESTAMPLTZ"),
    "duration": ("INTERVAL",),
    "uuid": ("UUID",),
    "bytes": ("BLOB", "VARBINARY", "BINARY"),
}
# The bits of the signed types that are held as numbers of more.
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "MEDIUMINT": 32}
# The largest value of the unsigned types that are held as numbers; the smallest is 0.
_MOST = {
    **dict.fromkeys(("UTINYINT", "UINT8"), 2**8 - 1),
    **dict.fromkeys(("USMALLINT", "UINT16"), 2**16 - 1),
    **dict.fromkeys(("UINT", "UINT32"), 2**32 - 1),
}
_BY_NAME = {name: type for type, names in _TYPES.items() for name in names} | dict.fromkeys(_MOST, "number")
_SQL_NAMES = {
    "number": "bigint",
    "unsigned": "ubigint",
    "float": "double",
    "symbol": "text",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "duration": "interval",
    "uuid": "uuid",
    "bytes": "blob",
}
_TYPES_REMEDY = "use bigint, double, decimal(p, s), text, boolean, date, timestamp, timestamptz, interval, uuid or blob"
# DuckDB's, of a decimal without digits.
_DECIMAL = (18, 3)


def type_name(node: exp.DataType, source: SqlText) -> str:
    """The type of lftj, without `?`, that a type of SQL is held in."""
    name = _name(node)
    if name == "DECIMAL":
        if not all(part.name.isdecimal() for part in node.expressions):
            raise source.unsupported(f"the type `{node.sql('duckdb')}`", node, "write `decimal(18, 2)`")
        digits = [int(part.name) for part in node.expressions] or list(_DECIMAL)
        found = f"decimal({digits[0]},{digits[1] if len(digits) > 1 else 0})"
        if is_type(found):
            return found
        remedy = "decimals have up to 18 digits: write `decimal(18, 2)`, or `double`"
        raise source.unsupported(f"the type `{node.sql('duckdb')}`", node, remedy)
    if name in _BY_NAME:
        return _BY_NAME[name]
    written = node.sql("duckdb").lower()
    if name == "USERDEFINED":
        raise source.error(
            f"there is no type `{written}`",
            node if node.find(exp.Identifier) else node.parent,
            why="lftj knows the types of DuckDB that docs/sql.md lists",
            remedy=did_you_mean(written, (*map(str.lower, _BY_NAME), "integer", "decimal", "numeric"), _TYPES_REMEDY),
        )
    raise source.unsupported(f"the type `{written}`", node, _TYPES_REMEDY)


def most_of(node: exp.DataType) -> int | None:
    """The largest value of an unsigned type that is held as a number; None of another type."""
    return _MOST.get(_name(node))


def range_of(node: exp.DataType) -> tuple[int, int] | None:
    """The least and the largest value of a type that is held as numbers, of which it has fewer; None of another."""
    name = _name(node)
    if name in _BITS:
        return -(2 ** (_BITS[name] - 1)), 2 ** (_BITS[name] - 1) - 1
    return (0, _MOST[name]) if name in _MOST else None


def _name(node: exp.DataType) -> str:
    """The name of a type, in capitals: the parser's, or that which is written where it knows none."""
    kind = node.this
    name = kind.name if hasattr(kind, "name") else str(kind)
    written = node.sql("duckdb").upper() if name == "USERDEFINED" else ""
    return written if written in _BY_NAME else name


def sql_type(type: str) -> exp.DataType:
    """The type of SQL for one of lftj."""
    plain = without_null(type)
    if plain in _SQL_NAMES:
        return exp.DataType.build(_SQL_NAMES[plain], dialect="duckdb")
    return nowhere(exp.DataType.build("timestamptz" if plain.startswith("timestamp") else plain, dialect="duckdb"))


# --- names ------------------------------------------------------------------------------------------------------------


def name_of(table: exp.Expr, source: SqlText) -> str:
    """The name of a table or view; one of another schema or database is refused."""
    if table.args.get("db") or table.args.get("catalog"):
        raise source.unsupported("names with a schema in front", table, f"write `{table.name}`: there is one schema")
    if not isinstance(table.this, exp.Identifier) or not table.name:
        raise source.unsupported(f"`{table.sql('duckdb')}` in the place of a table", table)
    return table.name


def known_table(node: exp.Expr, catalogue: Catalogue, source: SqlText) -> Table:
    """The table or view that a node names; an error with a suggestion if there is none."""
    name = name_of(node, source)
    found = catalogue.table(name)
    if found is None:
        raise source.error(
            f"there is no table `{name}`",
            node,
            why="no statement and no rule defines it",
            remedy=did_you_mean(name, catalogue.names, "create it first, with `create table` or `create view`"),
        )
    return found


def check_free(node: exp.Expr, catalogue: Catalogue, source: SqlText) -> None:
    """An error if there is a table or view of the name that a node is to be defined under."""
    name = name_of(node, source)
    if name.startswith(INTERNAL):
        raise source.error(
            f"`{name}` cannot name a table or view",
            node,
            why=f"names that begin with `{INTERNAL}` are those of parts of views and tables",
            remedy="choose another name",
        )
    found = catalogue.table(name)
    if found is not None:
        kind = "view" if found.view else "table"
        raise source.error(
            f"there is already a {kind} `{found.name}`",
            node,
            why="a name stands for one table or view, in any case",
            remedy=f"choose another name, or `drop {kind} {found.name}` first"
            + ("; `create or replace view` defines it anew" if found.view else ""),
        )


def refuse_properties(create: exp.Create, source: SqlText) -> None:
    """Refuse what stands between `create` and the name and would change its meaning."""
    properties = create.args.get("properties")
    for given in properties.expressions if properties else ():
        if isinstance(given, exp.MaterializedProperty):
            continue  # every view is
        if isinstance(given, exp.WithDataProperty) and create.args.get("kind") == "TABLE" and create.expression:
            continue
        kind = "temporary tables" if isinstance(given, exp.TemporaryProperty) else f"`{given.sql('duckdb').lower()}`"
        raise source.unsupported(kind, create.this, "leave it out; a database in memory is temporary")
