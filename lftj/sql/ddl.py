"""Definitions: `create table`, `create view`, `drop`, as declarations and rules of the open transaction.

    create table sale (item text not null, qty int)              a bag: .decl sale(item:symbol, qty:number?) ->
                                                                 copies:number bag
    create table city (id int primary key, name text)            .decl city(id:number, name:symbol?) primary-key (id)

A column may be null unless it is `not null` or in the key. What a definition says and lftj does not check is refused by
its name: `unique`, `check`, foreign keys and defaults would else be promises that nobody keeps.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from lftj.language import ast
from lftj.language.diagnostics import did_you_mean
from lftj.language.names import BAG, COPIES, PRIMARY_KEY
from lftj.sql.catalogue import Catalogue, Table, find, unlike
from lftj.sql.places import SqlText
from lftj.values.type_table import is_type, without_null

_TYPES = {
    "number": ("TINYINT", "SMALLINT", "INT", "MEDIUMINT", "BIGINT", "UTINYINT", "USMALLINT", "UINT"),
    "unsigned": ("UBIGINT",),
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
_BY_NAME = {name: type for type, names in _TYPES.items() for name in names}
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
_CONSTRAINTS = {
    exp.UniqueColumnConstraint: "`unique`",
    exp.CheckColumnConstraint: "`check`",
    exp.DefaultColumnConstraint: "`default`",
    exp.Reference: "foreign keys",
    exp.ForeignKey: "foreign keys",
    exp.GeneratedAsIdentityColumnConstraint: "identity columns",
    exp.AutoIncrementColumnConstraint: "identity columns",
    exp.ComputedColumnConstraint: "generated columns",
}
_REMEDIES = {
    "`unique`": "make it the primary key, or write a view that shows what is there twice",
    "`check`": "write a view that shows the rows that should not be there, and watch it with `db.on_commit`",
    "foreign keys": "write a view that shows the rows without a partner, and watch it with `db.on_commit`",
    "`default`": "give the value in each `insert`",
}


def type_name(node: exp.DataType, source: SqlText) -> str:
    """The type of lftj, without `?`, that a type of SQL is held in."""
    kind = node.this
    name = kind.name if hasattr(kind, "name") else str(kind)
    if name == "DECIMAL":
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


def sql_type(type: str) -> exp.DataType:
    """The type of SQL for one of lftj."""
    plain = without_null(type)
    if plain in _SQL_NAMES:
        return exp.DataType.build(_SQL_NAMES[plain], dialect="duckdb")
    return exp.DataType.build("timestamptz" if plain.startswith("timestamp") else plain, dialect="duckdb")


def table_declaration(create: exp.Create, source: SqlText) -> ast.Declaration:
    """The declaration of a `create table` with columns."""
    schema = create.this
    name, span = name_of(schema.this, source), source.span(schema.this)
    columns: list[tuple[exp.ColumnDef, str, bool]] = []
    key: list[str] = []
    for item in schema.expressions:
        if isinstance(item, exp.ColumnDef):
            not_null, primary = _constraints(item, source)
            if item.kind is None:
                raise source.error(
                    f"column `{item.name}` has no type",
                    item,
                    why="a column holds values of one type",
                    remedy=f"write it behind the name, as in `{item.name} bigint`",
                )
            if primary and key:
                raise _two_keys(name, item, source)
            key += [item.name] if primary else []
            columns.append((item, type_name(item.kind, source), not (not_null or primary)))
        elif isinstance(item, exp.Constraint) and len(item.expressions) == 1:
            key = _key(item.expressions[0], key, name, source)
        else:
            key = _key(item, key, name, source)
    names = [item.name for item, _, _ in columns]
    _check_columns(name, columns, source)
    keys = [_key_column(part, names, name, schema, source) for part in key]
    attributes = [
        ast.Attribute(item.name, f"{type}?" if null and item.name not in keys else type, source.span(item))
        for item, type, null in columns
    ]
    if keys:
        return ast.Declaration(name, tuple(attributes), (f"{PRIMARY_KEY} ({', '.join(keys)})",), span)
    attributes.append(ast.Attribute(unlike(COPIES, names), "number", span))
    return ast.Declaration(name, tuple(attributes), (BAG,), span, functional=True)


def _constraints(item: exp.ColumnDef, source: SqlText) -> tuple[bool, bool]:
    """Whether a column is declared `not null`, and whether it is the primary key."""
    not_null = primary = False
    for constraint in item.constraints:
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint):
            not_null = not kind.args.get("allow_null")
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            primary = True
        elif isinstance(kind, exp.CommentColumnConstraint):
            continue
        else:
            raise _refused(constraint if constraint.find(exp.Identifier) else item, kind, source)
    return not_null, primary


def _key(item: exp.Expr, key: list[str], name: str, source: SqlText) -> list[str]:
    """The columns of the key after one more constraint of the table."""
    if not isinstance(item, exp.PrimaryKey):
        raise _refused(item, item, source)
    if key:
        raise _two_keys(name, item, source)
    return [part.name for part in item.expressions]


def _refused(place: exp.Expr, kind: exp.Expr | None, source: SqlText) -> Exception:
    named = next((words for type, words in _CONSTRAINTS.items() if isinstance(kind, type)), "")
    feature = named or f"`{'' if kind is None else kind.sql('duckdb').lower()}` in a table"
    return source.unsupported(feature, place, _REMEDIES.get(named, "leave it out"))


def _two_keys(name: str, node: exp.Expr, source: SqlText) -> Exception:
    return source.error(
        f"`{name}` has two primary keys",
        node,
        why="a table has one primary key, of one or several columns",
        remedy="write one `primary key (a, b)` behind the columns",
    )


def _check_columns(name: str, columns: Iterable[tuple[exp.ColumnDef, str, bool]], source: SqlText) -> None:
    seen: list[str] = []
    for item, _, _ in columns:
        if find(item.name, seen) is not None:
            raise source.error(
                f"column `{item.name}` of `{name}` is declared twice",
                item,
                why="columns are known by their names, in any case",
                remedy="give every column its own name",
            )
        seen.append(item.name)


def _key_column(part: str, names: list[str], name: str, node: exp.Expr, source: SqlText) -> str:
    found = find(part, names)
    if found is None:
        raise source.error(
            f"the primary key of `{name}` names `{part}`, which is no column",
            node,
            why=f"its columns are {', '.join(names)}",
            remedy=did_you_mean(part, names, "name columns of the table"),
        )
    return found


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
