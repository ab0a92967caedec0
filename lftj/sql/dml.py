"""Changes: `insert`, `delete`, `update` and `truncate`, as rows that an open transaction inserts and erases.

    insert into t values (1, 'x'), (2, null)     constants are read by the types of their columns
    insert into t (b, a) select y, x from u      what is left out is null
    insert or replace into t values (1, 'x')     the row takes the place of the one with its primary key
    delete from t where a = 1                    the rows that `select * from t where a = 1` gives, all their copies
    update t set a = a + 1 where b = 'x'         the rows that go and those that come, from one select

Each statement sees what those before it changed. Rows of a bag go and come with their copies. Conflicts of keys are
found when the transaction commits, so that a statement may put right what one before it left; only a row that is there
already, which a set would not notice, is refused at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from lftj.errors import KeyConflictError, ProgramError
from lftj.evaluate.key_conflicts import shown_row
from lftj.io.fields import text_value
from lftj.language.diagnostics import counted, did_you_mean
from lftj.language.types import DECIMAL, decimal_of, scale_of
from lftj.program.state import State
from lftj.sql.catalogue import Catalogue, Table, find
from lftj.sql.ddl import known_table, sql_type, type_name
from lftj.sql.one_off import Answer, Asking, answer
from lftj.sql.places import SqlText
from lftj.store.change import COPIES, ERASE, INSERT, UPSERT, Batch
from lftj.store.copies import with_copies
from lftj.store.stored import StoredRelation
from lftj.values import gate
from lftj.values.codes import Column
from lftj.values.decimal_type import Decimals
from lftj.values.faults import Fault, stands_for_null
from lftj.values.type_table import family_of, from_stored, in_dictionary, is_nullable, type_of, without_null

Codes = npt.NDArray[np.int64]


class Changing(Asking, Protocol):
    """What statements change: a `Transaction`."""

    def _present(self) -> State: ...

    def _relation(self, name: str) -> StoredRelation: ...

    def _add(self, name: str, relation: StoredRelation, batch: Batch) -> None: ...


def insert(room: Changing, statement: exp.Insert, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out an `insert`."""
    _refuse(
        statement,
        source,
        conflict="`on conflict`",
        returning="`returning`",
        overwrite="`insert overwrite`",
        by_name="`insert by name`",
    )
    target = statement.this
    named = [part.name for part in target.expressions] if isinstance(target, exp.Schema) else None
    table = _changed(target.this if isinstance(target, exp.Schema) else target, catalogue, source)
    places = _places(table, named, target, source)
    for place, column in enumerate(table.columns):
        if place not in places and not is_nullable(column.type):
            raise _null(table, column, target, source)
    query = statement.expression
    if query is None:
        raise source.unsupported("`insert ... default values`", statement, "give the values")
    if statement.args.get("with_") is not None:
        query = query.copy()
        query.set("with_", statement.args["with_"])
    if isinstance(query, exp.Values):
        rows = _constants(room, table, places, query, source)
        copies = np.ones(rows.shape[1], np.int64)
    else:
        rows, copies = _selected(room, table, places, query, source)
    alternative = statement.args.get("alternative")
    if alternative is None:
        _insert(room, table, rows, copies)
    else:
        _replace(room, table, rows, str(alternative), statement, source)


def delete(room: Changing, statement: exp.Delete, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out a `delete`."""
    _refuse(
        statement,
        source,
        using="`delete ... using`",
        returning="`returning`",
        order="`order by` in `delete`",
        limit="`limit` in `delete`",
        tables="`delete` from several tables",
    )
    if statement.args.get("cluster"):
        raise source.unsupported("`on cluster`", statement)
    table = _changed(statement.this, catalogue, source)
    where = statement.args.get("where")
    if where is None:
        _erase_all(room, table)
        return
    query = exp.Select(
        expressions=_columns(table, statement.this), from_=exp.From(this=statement.this.copy()), where=where
    )
    found = answer(room, room._present(), query, source)
    _erase(room, table, found.rows, found.copies)


def truncate(room: Changing, statement: exp.TruncateTable, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out a `truncate`."""
    for node in statement.expressions:
        _erase_all(room, _changed(node, catalogue, source))


def update(room: Changing, statement: exp.Update, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out an `update`."""
    _refuse(
        statement,
        source,
        from_="`update ... from`",
        returning="`returning`",
        order="`order by` in `update`",
        limit="`limit` in `update`",
    )
    table = _changed(statement.this, catalogue, source)
    assigned: dict[int, exp.Expression] = {}
    for item in statement.expressions:
        column = item.this if isinstance(item, exp.EQ) else None
        if not isinstance(column, exp.Column):
            raise source.unsupported(f"`set {item.sql('duckdb')}`", item, "write `set column = value, ...`")
        (place,) = _places(table, [column.name], column, source)
        if place in assigned:
            raise source.error(
                f"`{column.name}` is set twice",
                item,
                why="a column has one value in each row",
                remedy="leave one of the two out",
            )
        assigned[place] = item.expression
    values = [exp.alias_(value.copy(), f"value {place}", quoted=True) for place, value in assigned.items()]
    query = exp.Select(
        expressions=[*_columns(table, statement.this), *values],
        from_=exp.From(this=statement.this.copy()),
        where=statement.args.get("where"),
    )
    width = len(table.columns)
    types = [None] * width + [table.columns[place].type for place in assigned]
    found = _typed(room, query, types, source)
    old, new = found.rows[:width], found.rows[:width].copy()
    for number, (place, value) in enumerate(assigned.items()):
        new[place] = _into(table, place, found.rows[width + number], found.columns[width + number], value, source)
    _erase(room, table, old, found.copies)
    _insert(room, table, new, found.copies)


# --- the table that is changed ----------------------------------------------------------------------------------------


# What says the same as a part of a statement that is not supported.
_INSTEAD = {
    "conflict": "write `insert or replace`, or `insert ... select ... where a not in (select a from t)`",
    "from_": "write `set a = (select ...) where exists (select ...)`",
    "using": "write `where exists (select ...)`, or `where a in (select ...)`",
    "returning": "leave it out: `db.sql` returns the rows that came and went",
}


def _refuse(statement: exp.Expression, source: SqlText, **features: str) -> None:
    for part, feature in features.items():
        given = statement.args.get(part)
        if given:
            node = given if isinstance(given, exp.Expression) else statement
            raise source.unsupported(feature, node, _INSTEAD.get(part, "write the statement without it"))


def _changed(node: exp.Expression, catalogue: Catalogue, source: SqlText) -> Table:
    table = known_table(node, catalogue, source)
    if table.view:
        raise source.error(
            f"`{table.name}` is a view, and its rows cannot be changed",
            node,
            why="they are what its definition, or its rules, derive",
            remedy="change the tables that it reads",
        )
    return table


def _places(table: Table, named: Sequence[str] | None, node: exp.Expression, source: SqlText) -> list[int]:
    """The positions of the columns that are named; of all, if none are."""
    columns = [column.name for column in table.columns]
    if named is None:
        return list(range(len(columns)))
    places: list[int] = []
    for name in named:
        found = find(name, columns)
        if found is None:
            raise source.error(
                f"`{table.name}` has no column `{name}`",
                node,
                why=f"its columns are {', '.join(columns)}",
                remedy=did_you_mean(name, columns, "name one of these"),
            )
        if columns.index(found) in places:
            raise source.error(
                f"column `{found}` is named twice",
                node,
                why="a row has one value in each column",
                remedy="leave one of the two out",
            )
        places.append(columns.index(found))
    return places


def _columns(table: Table, node: exp.Expression) -> list[exp.Expression]:
    """The columns of a table, as a select names them."""
    alias = node.alias_or_name
    return [exp.column(exp.to_identifier(column.name, quoted=True), alias) for column in table.columns]


# --- values -----------------------------------------------------------------------------------------------------------


def _constants(room: Changing, table: Table, places: list[int], values: exp.Values, source: SqlText) -> Codes:
    """The rows int64[columns, n] of `values (...), (...)`."""
    rows = [_nulls(table) for _ in values.expressions]
    for row, item in zip(rows, values.expressions, strict=True):
        nodes = item.expressions if isinstance(item, exp.Tuple) else [item.this]
        _check_count(table, places, len(nodes), item, source)
        computed: list[tuple[int, exp.Expression]] = []
        for place, node in zip(places, nodes, strict=True):
            code = _constant(room, table, table.columns[place], node, source)
            if code is None:
                computed.append((place, node))
            else:
                row[place] = code
        if computed:
            parts = [exp.alias_(node.copy(), f"value {place}", quoted=True) for place, node in computed]
            types = [table.columns[place].type for place, _ in computed]
            found = _typed(room, exp.Select(expressions=parts), types, source)
            for number, (place, node) in enumerate(computed):
                codes = _into(table, place, found.rows[number], found.columns[number], node, source)
                row[place] = int(codes[0])
    return np.array(rows, np.int64).reshape(len(rows), len(table.columns)).T.copy()


def _nulls(table: Table) -> list[int]:
    """The codes of a row of nulls; those of columns that are not nullable are replaced."""
    return [type_of(column.type).null for column in table.columns]


def _check_count(table: Table, places: list[int], given: int, node: exp.Expression, source: SqlText) -> None:
    if given != len(places):
        named = ", ".join(table.columns[place].name for place in places)
        raise source.error(
            f"{counted(given, 'value')} for {counted(len(places), 'column')} of `{table.name}`",
            node,
            why=f"the columns are {named}",
            remedy="give each of them one value, or name those that have one behind the table",
        )


def _constant(room: Changing, table: Table, column: Column, node: exp.Expression, source: SqlText) -> int | None:
    """The code of a constant in a column; None if it has to be computed."""
    inner, negative = (node.this, True) if isinstance(node, exp.Neg) else (node, False)
    family, fault, text = family_of(column.type), None, ""
    if isinstance(inner, exp.Null) and not negative:
        if not is_nullable(column.type):
            raise _null(table, column, node, source)
        return type_of(column.type).null
    if isinstance(inner, exp.Boolean) and family == "bool":
        return int(bool(inner.this))
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and inner.this.is_string:
        if type_name(inner.to, source) != without_null(column.type):
            return None
        inner = inner.this
        text = inner.name
    elif isinstance(inner, exp.Literal):
        if not inner.is_string and family not in ("number", "unsigned", "float", "decimal"):
            return None
        text = f"-{inner.name}" if negative else inner.name
    else:
        return None
    if family == "symbol":
        return gate.encode_value(text, without_null(column.type), room._evaluator.symbols)
    found = text_value(text.encode(), without_null(column.type))
    if isinstance(found, Fault):
        fault = found
    elif isinstance(found, str):
        return int(room._evaluator.symbols.intern_one(found))
    elif is_nullable(column.type) and found == type_of(column.type).null:
        fault = stands_for_null(type_of(column.type))
    else:
        return found
    raise _misfit(table, column, text, fault, node, source)


def _null(table: Table, column: Column, node: exp.Expression, source: SqlText) -> ProgramError:
    return source.error(
        f"column `{column.name}` of `{table.name}` cannot be null",
        node,
        why="it is in the primary key" if column.name in table.key else "it is declared `not null`",
        remedy="give it a value in each row; no column has a default",
    )


def _misfit(
    table: Table, column: Column, text: str, fault: Fault, node: exp.Expression, source: SqlText
) -> ProgramError:
    return source.error(
        f"column `{column.name}` of `{table.name}`: {text} {fault.reason}",
        node,
        why=fault.why,
        remedy=f"write {type_of(column.type).article}, or a text that spells one",
    )


# --- selected rows ----------------------------------------------------------------------------------------------------


def _selected(
    room: Changing, table: Table, places: list[int], query: exp.Expression, source: SqlText
) -> tuple[Codes, Codes]:
    """The rows int64[columns, n] that a query gives, and how often each is there."""
    types: list[str | None] = [table.columns[place].type for place in places]
    found = _typed(room, query, types, source, table=table)
    rows = np.empty((len(table.columns), found.rows.shape[1]), np.int64)
    rows[:] = np.array(_nulls(table), np.int64)[:, None]
    for number, place in enumerate(places):
        rows[place] = _into(table, place, found.rows[number], found.columns[number], query, source)
    return rows, found.copies


def _typed(
    room: Changing,
    query: exp.Expression,
    types: Sequence[str | None],
    source: SqlText,
    *,
    table: Table | None = None,
) -> Answer:
    """The answer of a query whose columns have the given types, by casts where it has others; None: as it is."""
    state = room._present()
    found = answer(room, state, query, source)
    if table is not None and len(found.columns) != len(types):
        raise source.error(
            f"{counted(len(found.columns), 'column')} for {counted(len(types), 'column')} of `{table.name}`",
            query,
            why="a column of the select is put into each of them, in order",
            remedy="select as many columns, or name those that are given behind the table",
        )
    other = [
        number
        for number, (column, type) in enumerate(zip(found.columns, types, strict=True))
        if type is not None and not _alike(column.type, type)
    ]
    if not other:
        return found
    names = [f"c{number}" for number in range(len(types))]
    inner = exp.TableAlias(this=exp.to_identifier("given"), columns=[exp.to_identifier(name) for name in names])
    parts = [
        exp.alias_(exp.Cast(this=exp.column(name, "given"), to=sql_type(type)), name)
        if number in other and type is not None
        else exp.column(name, "given")
        for number, (name, type) in enumerate(zip(names, types, strict=True))
    ]
    given = exp.Subquery(this=query.copy(), alias=inner)
    return answer(room, state, exp.Select(expressions=parts, from_=exp.From(this=given)), source)


def _alike(given: str, target: str) -> bool:
    """Whether codes of one type are codes of the other; of a decimal with fewer digits `_into` looks at the values."""
    given, target = without_null(given), without_null(target)
    if family_of(given) == family_of(target) == DECIMAL:
        return scale_of(given) == scale_of(target)
    return given == target


def _into(table: Table, place: int, codes: Codes, column: Column, node: exp.Expression, source: SqlText) -> Codes:
    """Codes of a column of an answer, for a column of a table of the same type."""
    target, made = table.columns[place], type_of(table.columns[place].type)
    if isinstance(made, Decimals):
        wide = (np.abs(codes) > made.high) & ~(is_nullable(column.type) & (codes == made.null))
        if wide.any():
            value = from_stored(int(codes[np.argmax(wide)]), decimal_of(made.scale))
            fault = Fault(f"does not fit into {made.plain}", made.takes, "")
            raise _misfit(table, target, str(value), fault, node, source)
    if is_nullable(target.type) == is_nullable(column.type) or not (codes == made.null).any():
        return codes
    if is_nullable(column.type):
        raise _null(table, target, node, source)
    if in_dictionary(target.type):
        return codes
    value = from_stored(made.null, without_null(target.type))
    raise _misfit(table, target, str(value), stands_for_null(made), node, source)


# --- rows that go and come --------------------------------------------------------------------------------------------


def _insert(room: Changing, table: Table, rows: Codes, copies: Codes) -> None:
    relation = room._relation(table.name)
    if table.bag:
        room._add(table.name, relation, Batch(with_copies(rows, rows.shape[1], copies), rows.shape[1], INSERT))
        return
    if table.key:
        present = room._present().relations[table.name].facts
        again = (copies > 1) | present.contains(rows)
        if not again.any() and rows.shape[1] > 1:
            distinct, counts = np.unique(rows, axis=1, return_counts=True)
            if (counts > 1).any():
                rows, again = distinct, counts > 1
        if again.any():
            raise _twice(room, table, rows[:, int(np.argmax(again))])
    room._add(table.name, relation, Batch(rows, rows.shape[1], INSERT))


def _replace(
    room: Changing, table: Table, rows: Codes, alternative: str, statement: exp.Expression, source: SqlText
) -> None:
    """`insert or replace`: rows take the place of those with their keys; of several with one key the last counts."""
    if alternative.lower() != "replace":
        raise source.unsupported(f"`insert or {alternative.lower()}`", statement, "use `insert ... select ... where`")
    if not table.key:
        raise source.error(
            f"`insert or replace` into `{table.name}`, which has no primary key",
            statement,
            why="a row takes the place of the one that has its key",
            remedy="use `insert`, or create the table with a primary key",
        )
    room._add(table.name, room._relation(table.name), Batch(rows, rows.shape[1], UPSERT))


def _twice(room: Changing, table: Table, codes: Codes) -> KeyConflictError:
    row: tuple[Any, ...] = gate.decode_row(codes.tolist(), table.schema, room._evaluator.symbols)
    return KeyConflictError(
        f"`{table.name}` would have the row {shown_row(table.schema, row)} twice",
        relation=table.name,
        rows=(row, row),
        derivations=("it is there", "it was to be inserted"),
        why=f"its primary key is ({', '.join(table.key)}); nothing was changed",
        remedy="give each row a key of its own; `insert or replace` replaces the row that is there",
    )


def _erase(room: Changing, table: Table, rows: Codes, copies: Codes) -> None:
    relation, count = room._relation(table.name), rows.shape[1]
    if table.bag:
        room._add(table.name, relation, Batch(with_copies(rows, count, -copies), count, COPIES))
    else:
        room._add(table.name, relation, Batch(rows, count, ERASE))


def _erase_all(room: Changing, table: Table) -> None:
    rows = room._present().relations[table.name].facts.columns()
    if table.bag:
        _erase(room, table, rows[:-1], rows[-1])
    else:
        _erase(room, table, rows, np.ones(rows.shape[1], np.int64))
