"""The statements of a text, carried out one after the other in a transaction.

    create table · create view · drop        the rules of the transaction      (create_table.py, ddl.py)
    insert                                   its rows                          (insert.py, on_conflict.py)
    delete · update · truncate               its rows                          (update_delete.py)
    select                                   asked over what is there so far   (one_off.py)

All of a text is in one transaction: all of it happens, or nothing. A change of rows is planned, and then carried out:
the plan of a text that comes again is kept (kept_statements.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sqlglot import exp

from lftj.errors import UnknownRelationError
from lftj.language import ast
from lftj.language.clause import owner
from lftj.language.diagnostics import did_you_mean
from lftj.language.visitors import atoms_of
from lftj.program.rule_options import RuleOptions
from lftj.sql import ddl
from lftj.sql.catalogue import Catalogue, Table, catalogue_of
from lftj.sql.create_table import create_table
from lftj.sql.insert import InsertStatement
from lftj.sql.nesting import placed
from lftj.sql.one_off import selected
from lftj.sql.parameters import NOTHING, Given
from lftj.sql.places import SqlText
from lftj.sql.question import NO_OPTIONS, Question
from lftj.sql.results import SqlResult
from lftj.sql.room import Changing, Session
from lftj.sql.syntax_errors import not_a_statement
from lftj.sql.update_delete import DeleteStatement, TruncateStatement, UpdateStatement
from lftj.sql.view_parts import with_new_parts
from lftj.sql.view_rules import folds, view_of
from lftj.values.schema import Schema
from lftj.values.type_table import is_nullable, without_null

# What to do instead of a statement that is not supported, by its first word.
_REMEDIES = {
    **dict.fromkeys(("explain", "analyze"), "call `db.explain(view)`, or `lftj explain report.sql view` in the shell"),
    **dict.fromkeys(("describe", "show", "summarize"), "print `db`, or `db[table].columns` for the types of a table"),
    **dict.fromkeys(("set", "pragma", "reset", "use"), "leave it out: options are arguments of `lftj.Database`"),
    "alter": "create a table with other columns, and fill it by `insert into ... select ... from` the old one",
    "copy": "load a file by `db.load(table, path)`, and write one by `db[table].to_csv(path)`",
    "export": "save the database in a file of its own: `lftj.Database(path=...)`",
    "attach": "open the other file by `lftj.Database(path=...)`, and load its relations",
    "merge": "use `insert or replace`, `update ... where exists (...)` and `delete ... where exists (...)`",
    "create": "lftj has `create table` and `create view`",
    "drop": "write `drop table ...` or `drop view ...`",
    **dict.fromkeys(("prepare", "execute", "deallocate"), "call `db.sql(text, name=value)`, with `$name` in the text"),
    **dict.fromkeys(("vacuum", "checkpoint"), "leave it out: lftj reclaims memory by itself"),
    **dict.fromkeys(("grant", "revoke"), "leave it out: whoever has the database may do everything"),
    "comment": "leave it out, or write it as `-- ...`",
}
_TRANSACTIONS = {exp.Transaction: "begin", exp.Commit: "commit", exp.Rollback: "rollback"}


def is_query(statement: exp.Expression) -> bool:
    """Whether a statement asks, and changes nothing."""
    return isinstance(statement, exp.Query | exp.Values)


def without_brackets(statements: list[exp.Expression]) -> list[exp.Expression]:
    """The statements of a text without `begin` in front and `commit` behind: it is one transaction anyway."""
    if len(statements) > 2 and isinstance(statements[0], exp.Transaction) and isinstance(statements[-1], exp.Commit):
        return statements[1:-1]
    return statements


def defined(statement: exp.Expression) -> set[str]:
    """The names of tables and views that a statement defines."""
    if not isinstance(statement, exp.Create) or statement.find(exp.Table) is None:
        return set()
    target = statement.this.this if isinstance(statement.this, exp.Schema) else statement.this
    return {target.name}


def options_for(
    key_orders: Mapping[str, tuple[str, ...]] | None,
    maintain: Mapping[str, str] | None,
    granularity: Mapping[str, str] | None,
    statements: Sequence[exp.Expression],
) -> RuleOptions:
    """What is asked for the views that statements define; `UnknownRelationError` for another name."""
    options = RuleOptions.of(key_orders, maintain, granularity)
    views = [name for statement in statements for name in defined(statement)]
    for option, by_head in options._asdict().items():
        for head in by_head:
            if head not in views:
                raise UnknownRelationError(
                    f"`{option}` is given for `{head}`, which no statement of this text defines",
                    why="it holds for views that are created with it",
                    remedy=did_you_mean(head, views, "name a view of the same text"),
                )
    return options


def carry_out(
    session: Session, statement: exp.Expression, source: SqlText, options: RuleOptions = NO_OPTIONS
) -> SqlResult | None:
    """Carry out one statement; a query gives its answer. `options`: of views, by name."""
    state = session._present()
    if is_query(statement):
        return selected(session, state, Question(statement, source))
    catalogue = catalogue_of(state)
    if isinstance(statement, CHANGES):
        planned(statement, catalogue, source).carry_out(session, NOTHING)
        return None
    match statement:
        case exp.Create():
            with placed(source, statement):
                _create(session, statement, catalogue, source, options)
        case exp.Drop():
            _drop(session, statement, catalogue, source)
        case exp.Transaction() | exp.Commit() | exp.Rollback():
            savepoint = statement.args.get("savepoint") is not None
            raise source.error(node=statement, **not_a_statement(_TRANSACTIONS[type(statement)], savepoint=savepoint))
        case _:
            word = source.word(statement)
            remedy = _REMEDIES.get(word) or _REMEDIES.get(statement.key, "leave it out")
            raise source.unsupported(f"`{word}`", statement, remedy)
    return None


class RowStatement(Protocol):
    """A statement that changes rows of `tables`, planned."""

    @property
    def tables(self) -> Sequence[Table]:
        """The tables whose rows it changes."""

    def carry_out(self, room: Changing, given: Given) -> None:
        """Change them. `given`: the values of parameters that the statement leaves open."""


_ROW_STATEMENTS: dict[type[exp.Expr], Callable[[Any, Catalogue, SqlText], RowStatement]] = {
    exp.Insert: InsertStatement,
    exp.Delete: DeleteStatement,
    exp.Update: UpdateStatement,
    exp.TruncateTable: TruncateStatement,
}
# The statements that change rows.
CHANGES = tuple(_ROW_STATEMENTS)


def planned(statement: exp.Expr, catalogue: Catalogue, source: SqlText) -> RowStatement:
    """What a statement of `CHANGES` does to rows."""
    with placed(source, statement):
        return _ROW_STATEMENTS[type(statement)](statement, catalogue, source)


# --- create -----------------------------------------------------------------------------------------------------------


def _create(session: Session, create: exp.Create, catalogue: Catalogue, source: SqlText, options: RuleOptions) -> None:
    kind = str(create.args.get("kind") or "").lower()
    if kind not in ("table", "view"):
        remedy = "lftj finds the order in which to read tables by itself" if kind == "index" else "leave it out"
        raise source.unsupported(f"`create {kind}`", create.this, remedy)
    ddl.refuse_properties(create, source)
    target = create.this.this if isinstance(create.this, exp.Schema) else create.this
    if create.args.get("exists") and catalogue.table(ddl.name_of(target, source)) is not None:
        return
    if kind == "view":
        _create_view(session, create, target, catalogue, source, options)
        return
    if create.args.get("replace") and (before := catalogue.table(ddl.name_of(target, source))) is not None:
        if before.view:
            ddl.check_free(target, catalogue, source)
        _refuse_readers(session, before.name, "`create or replace table`", target, source)
        create_table(session, create, target, source, replaced=before.name)
        return
    ddl.check_free(target, catalogue, source)
    create_table(session, create, target, source)


def _create_view(
    session: Session,
    create: exp.Create,
    target: exp.Expression,
    catalogue: Catalogue,
    source: SqlText,
    options: RuleOptions,
) -> None:
    name, query = ddl.name_of(target, source), create.expression
    if not isinstance(query, exp.Expression) or not is_query(query):
        raise source.error("a view has no query", target, why="it shows what a query gives", remedy="add `as select`")
    named = [part.name for part in create.this.expressions] if isinstance(create.this, exp.Schema) else []
    before = catalogue.table(name)
    if before is None or not create.args.get("replace"):
        ddl.check_free(target, catalogue, source)
        _add_view(session, view_of(query, named, name, catalogue, source), name, options)
        return
    if not before.view:
        ddl.check_free(target, catalogue, source)
    program = view_of(query, named, before.name, catalogue, source)
    _refuse_cycle(session, program, before.name, query, target, source)
    _make_room(session, program, before.schema, target, source)
    _add_view(session, program, before.name, options)


def _add_view(session: Session, program: ast.Program, name: str, options: RuleOptions) -> None:
    taken = session._evaluator.relations.keys() | session._present().relations.keys()
    program = with_new_parts(program, taken)
    rules = [item for item in program.items if isinstance(item, ast.Rule)]
    heads = {head.name for rule in rules for head in rule.heads if rule.body or folds(head) or head.name == name}
    key_orders = {head: order for head, order in options.key_orders.items() if head == name}
    # What is asked for a view holds for its parts too.
    maintain, granularity = (
        dict.fromkeys(heads, by_head[name]) if name in by_head else {}
        for by_head in (options.maintain, options.granularity)
    )
    session._extended(program, RuleOptions(key_orders, maintain, granularity))


def _refuse_cycle(
    session: Session, program: ast.Program, name: str, query: exp.Expr, target: exp.Expr, source: SqlText
) -> None:
    """An error if a view would be derived from itself, which would have no rows: nothing is there to begin with."""
    rules = [item for item in program.items if isinstance(item, ast.Rule)]
    parts = {head.name for rule in rules for head in rule.heads} - {name}  # those of before may have the same names
    below = session._present().strata.below
    reads = dict.fromkeys(atom.name for rule in rules for atom in atoms_of(rule) if atom.name not in parts)
    through = next((owner(read) for read in reads if name in below([read])), None)
    if through is not None:
        tables = (table for table in query.find_all(exp.Table) if table.name.casefold() == through.casefold())
        raise source.error(
            f"the view `{name}` would read itself" + (f", through `{through}`" if through != name else ""),
            next(tables, target),
            why="a view is what its query gives, and has no rows before",
            remedy="read tables or other views instead; a query that goes on from its own rows is `with recursive`",
        )


def _make_room(session: Session, program: ast.Program, before: Schema, target: exp.Expression, source: SqlText) -> None:
    """Take the rules of a view away, for others. What reads it goes on, if its columns stay."""
    declared = next(item for item in program.items if isinstance(item, ast.Declaration) and item.name == before.name)
    constants = len(session._present().relations[before.name].facts)  # of a declaration in the text of rules
    other = "in the place of facts" if constants else _difference(declared, before)
    if not other:
        session.remove_rules(before.name)
        return
    why = "they read its columns as these are, whether these may be null, and how often a row is there"
    _refuse_readers(session, before.name, f"another definition {other}", target, source, why)
    session._drop(before.name)


def _difference(declared: ast.Declaration, before: Schema) -> str:
    """In what the columns of a view differ from those before; "" if they do not."""
    after = {a.name: a.type for a in declared.attributes[: -1 if declared.functional else None]}
    there = {c.name: c.type for c in (before.given if before.functional else before).columns}
    if {n: without_null(t) for n, t in after.items()} != {n: without_null(t) for n, t in there.items()}:
        return "with other columns"
    if list(after) != list(there):
        return "with the columns in another order"
    for name, type in after.items():
        if type != there[name]:
            return f"whose column `{name}` {'may be' if is_nullable(type) else 'is never'} null"
    if declared.functional != before.functional:
        return f"whose rows {'may repeat' if declared.functional else 'are there once each'}"
    return ""


# --- drop -------------------------------------------------------------------------------------------------------------


def _drop(session: Session, drop: exp.Drop, catalogue: Catalogue, source: SqlText) -> None:
    kind = str(drop.args.get("kind") or "").lower()
    tables = drop.args.get("tables") or ([drop.this] if drop.this is not None else [])
    if kind not in ("table", "view"):
        raise source.unsupported(f"`drop {kind}`", drop)
    if drop.args.get("cascade"):
        raise source.unsupported("`cascade`", drop, "drop the views that read it first, in the same text")
    for node in tables:
        if drop.args.get("exists") and catalogue.table(ddl.name_of(node, source)) is None:
            continue
        table = ddl.known_table(node, catalogue, source)
        if table.view != (kind == "view"):
            other = "view" if table.view else "table"
            raise source.error(
                f"`{table.name}` is a {other}, not a {kind}",
                node,
                why="a table has rows of its own, and a view those that its definition gives",
                remedy=f"write `drop {other} {table.name}`",
            )
        _refuse_readers(session, table.name, f"`drop {kind}`", node, source)
        session._drop(table.name)


def _refuse_readers(
    session: Session,
    name: str,
    what: str,
    node: exp.Expression,
    source: SqlText,
    why: str = "what they derive would have no meaning without it",
) -> None:
    readers = dict.fromkeys(owner(head) for head in session._present().strata.readers(name) if owner(head) != name)
    if readers:
        shown = ", ".join(f"`{reader}`" for reader in readers)
        raise source.error(
            f"{what}: `{name}` is read by {shown}",
            node,
            why=why,
            remedy="drop these first, in the same text if you like",
        )
