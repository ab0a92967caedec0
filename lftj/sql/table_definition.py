"""What `create table` says of a table: its columns, its key, what columns hold if nothing is said, and constraints.

    create table sale (item text not null, qty int)              a bag: .decl sale(item:symbol, qty:number?) ->
                                                                 copies:number bag
    create table city (id int primary key, name text)            .decl city(id:number, name:symbol?) primary-key (id)

A column may be null unless it is `not null` or in the key; one of a small unsigned type has a check of its values. What
a definition says and lftj does not check is refused by its name: it would else be a promise that nobody keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from lftj.errors import ProgramError
from lftj.language import ast
from lftj.language.diagnostics import did_you_mean
from lftj.language.names import BAG, COPIES, PRIMARY_KEY
from lftj.sql.catalogue import find, unlike
from lftj.sql.ddl import most_of, name_of, type_name
from lftj.sql.places import SqlText

CHECK, UNIQUE, FOREIGN = "check", "unique", "foreign"
_REFUSED = {
    exp.GeneratedAsIdentityColumnConstraint: "identity columns",
    exp.AutoIncrementColumnConstraint: "identity columns",
    exp.ComputedColumnConstraint: "generated columns",
}


@dataclass(frozen=True, slots=True)
class TableConstraint:
    """`check`, `unique` or a foreign key.

    `columns`: of a key · `condition`: of a check · `references`: the other table, and its columns as they are named
    (none: its primary key) · `name`: that it is given, or "".
    """

    kind: str
    node: exp.Expr
    name: str = ""
    columns: tuple[str, ...] = ()
    condition: exp.Expr | None = None
    references: tuple[exp.Expr, tuple[str, ...]] | None = None


@dataclass(slots=True)
class TableDefinition:
    """`columns`: name, type, whether null is admitted · `key`: of the primary key · `defaults`: by column."""

    name: str
    columns: list[tuple[exp.ColumnDef, str, bool]] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    defaults: dict[str, exp.Expr] = field(default_factory=dict)
    constraints: list[TableConstraint] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [item.name for item, _, _ in self.columns]

    def declaration(self, node: exp.Expr, source: SqlText) -> ast.Declaration:
        """The relation that holds the rows."""
        span = source.span(node)
        attributes = [
            ast.Attribute(item.name, f"{type}?" if null and item.name not in self.key else type, source.span(item))
            for item, type, null in self.columns
        ]
        if self.key:
            quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in self.key)  # with blanks and commas
            return ast.Declaration(self.name, tuple(attributes), (f"{PRIMARY_KEY} ({quoted})",), span)
        attributes.append(ast.Attribute(unlike(COPIES, self.names), "number", span))
        return ast.Declaration(self.name, tuple(attributes), (BAG,), span, functional=True)


def definition_of(create: exp.Create, source: SqlText) -> TableDefinition:
    """What a `create table` with columns says."""
    schema = create.this
    made = TableDefinition(name_of(schema.this, source))
    for item in schema.expressions:
        if isinstance(item, exp.ColumnDef):
            _column(made, item, source)
        elif isinstance(item, exp.Constraint) and len(item.expressions) == 1:
            _of_table(made, item.expressions[0], item.name, source)
        else:
            _of_table(made, item, "", source)
    _check_columns(made, source)
    made.key = _resolved(made.key, made, "the primary key", schema, source)
    made.constraints = [
        TableConstraint(
            said.kind,
            said.node,
            said.name,
            tuple(_resolved(said.columns, made, words_of(said), said.node, source)),
            said.condition,
            said.references,
        )
        for said in made.constraints
    ]
    return made


def words_of(constraint: TableConstraint) -> str:
    """A constraint as messages name it."""
    columns = ", ".join(constraint.columns)
    if constraint.condition is not None:
        words = f"`check ({constraint.condition.sql('duckdb')})`"
    elif constraint.references is None:
        words = f"`unique ({columns})`"
    else:
        table, named = constraint.references
        theirs = f" ({', '.join(named)})" if named else ""
        words = f"`foreign key ({columns}) references {table.name}{theirs}`"
    return f"`{constraint.name}`, {words}" if constraint.name else words


def _column(made: TableDefinition, item: exp.ColumnDef, source: SqlText) -> None:
    """Add a column, and what is said of it."""
    not_null = primary = False
    for constraint in item.constraints:
        kind = constraint.kind
        place = constraint if constraint.find(exp.Identifier) else item
        if isinstance(kind, exp.NotNullColumnConstraint):
            not_null = not kind.args.get("allow_null")
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            primary = True
        elif isinstance(kind, exp.DefaultColumnConstraint):
            made.defaults[item.name] = kind.this
        elif isinstance(kind, exp.UniqueColumnConstraint):
            _check_unique(kind, place, source)
            made.constraints.append(TableConstraint(UNIQUE, place, constraint.name, (item.name,)))
        elif isinstance(kind, exp.CheckColumnConstraint):
            made.constraints.append(TableConstraint(CHECK, kind.this, constraint.name, condition=kind.this))
        elif isinstance(kind, exp.Reference):
            made.constraints.append(_foreign((item.name,), kind, constraint.name, source))
        elif not isinstance(kind, exp.CommentColumnConstraint):
            raise _refused(place, kind, source)
    if item.kind is None:
        raise source.error(
            f"column `{item.name}` has no type",
            item,
            why="a column holds values of one type",
            remedy=f"write it behind the name, as in `{item.name} bigint`",
        )
    if primary and made.key:
        raise _two_keys(made.name, item, source)
    most = most_of(item.kind)
    if most is not None:
        low, high = (exp.Literal.number(value) for value in (0, most))
        within = exp.Between(this=exp.Column(this=item.this.copy()), low=low, high=high)
        made.constraints.append(TableConstraint(CHECK, item, condition=within))
    made.key += [item.name] if primary else []
    made.columns.append((item, type_name(item.kind, source), not (not_null or primary)))


def _of_table(made: TableDefinition, item: exp.Expr, name: str, source: SqlText) -> None:
    """Add what is said of the whole table."""
    if isinstance(item, exp.PrimaryKey):
        if made.key:
            raise _two_keys(made.name, item, source)
        made.key = [part.name for part in item.expressions]
    elif isinstance(item, exp.UniqueColumnConstraint):
        _check_unique(item, item, source)
        columns = tuple(part.name for part in item.this.expressions)
        made.constraints.append(TableConstraint(UNIQUE, item, name, columns))
    elif isinstance(item, exp.CheckColumnConstraint):
        made.constraints.append(TableConstraint(CHECK, item.this, name, condition=item.this))
    elif isinstance(item, exp.ForeignKey):
        columns = tuple(part.name for part in item.expressions)
        made.constraints.append(_foreign(columns, item.args["reference"], name, source))
    else:
        raise _refused(item, item, source)


def _check_unique(unique: exp.UniqueColumnConstraint, place: exp.Expr, source: SqlText) -> None:
    if any(part for name, part in unique.args.items() if name != "this"):
        why = "null is like nothing, so that several rows may have it"
        remedy = "write `unique` alone, and `not null` where there is to be no null"
        raise source.error("`unique` with something behind it", place, why=why, remedy=remedy)


def _foreign(columns: tuple[str, ...], reference: exp.Reference, name: str, source: SqlText) -> TableConstraint:
    """The constraint of `references`."""
    if options := reference.args.get("options"):
        said = str(options[0]).lower()
        raise source.unsupported(f"`{said}`", reference, "leave it out, and delete or update both tables in one text")
    target = reference.this
    named = tuple(part.name for part in target.expressions) if isinstance(target, exp.Schema) else ()
    table = target.this if isinstance(target, exp.Schema) else target
    return TableConstraint(FOREIGN, table, name, columns, references=(table, named))


def _refused(place: exp.Expr, kind: exp.Expr | None, source: SqlText) -> ProgramError:
    named = next((words for type, words in _REFUSED.items() if isinstance(kind, type)), "")
    if kind is not None and kind.args.get("expression") is not None:
        named = "generated columns"
    return source.unsupported(
        named or f"`{'' if kind is None else kind.sql('duckdb').lower()}` in a table", place, "leave it out"
    )


def _two_keys(name: str, node: exp.Expr, source: SqlText) -> ProgramError:
    return source.error(
        f"`{name}` has two primary keys",
        node,
        why="a table has one primary key, of one or several columns",
        remedy="write one `primary key (a, b)` behind the columns",
    )


def _check_columns(made: TableDefinition, source: SqlText) -> None:
    for at, (item, _, _) in enumerate(made.columns):
        if find(item.name, made.names[:at]) is not None:
            raise source.error(
                f"column `{item.name}` of `{made.name}` is declared twice",
                item,
                why="columns are known by their names, in any case",
                remedy="give every column its own name",
            )


def _resolved(named: Iterable[str], made: TableDefinition, what: str, node: exp.Expr, source: SqlText) -> list[str]:
    """The columns that are named, as they are declared."""
    found = []
    for part in named:
        column = find(part, made.names)
        if column is None:
            raise source.error(
                f"{what} of `{made.name}` names `{part}`, which is no column",
                node,
                why=f"its columns are {', '.join(made.names)}",
                remedy=did_you_mean(part, made.names, "name columns of the table"),
            )
        found.append(column)
    return found
