"""`on conflict`: what becomes of rows to be inserted whose key is there, and of the rows that have it.

    insert into t values (1, 'x') on conflict do nothing              `insert or ignore into t values (1, 'x')`
    insert into t values (1, 'x') on conflict (id) do update set b = excluded.b where t.b < excluded.b
    insert or replace into t (id, b) values (1, 'x')                  `do update set b = excluded.b`

The rows to be inserted become a relation beside the tables, which stands as `excluded` in one select with the table:
it gives the rows that meet one of the same key, and their new values. The other rows are inserted. In `set` and `where`
a name alone is a column of the table; so the columns of that relation have names that nobody writes.

Two rows of one statement may have one key. With `do nothing` the first of `values` counts, with `insert or replace` the
last; where nothing says which comes first, as of the rows of a select, it is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from lftj.errors import ProgramError
from lftj.sql.catalogue import Catalogue, Table, find, unlike
from lftj.sql.change_target import assignments, places_of
from lftj.sql.parameters import Given
from lftj.sql.places import SqlText
from lftj.sql.question import Codes, Question, with_rows
from lftj.sql.room import Changing
from lftj.sql.row_changes import insert_rows, replace_rows, shown
from lftj.sql.update_delete import RowChange
from lftj.values.schema import Column
from lftj.values.type_table import is_nullable, type_of
from scantree.consolidate import numbered, runs_of

# What statements call the rows to be inserted, and what the select over them does: a name that nobody writes.
EXCLUDED, ALIAS = "excluded", "excluded rows"


class Conflict(NamedTuple):
    """What is asked for.

    `keys`: the positions of the columns of each key that counts · `assigned`: what `do update` sets; None: `do nothing`
    · `replaces`: it is `insert or replace` · `target`: the table, as the statement names it · `node`: what asks for it.
    """

    keys: tuple[tuple[int, ...], ...]
    assigned: dict[int, exp.Expr] | None
    where: exp.Expr | None
    replaces: bool
    target: exp.Expr
    node: exp.Expr


class GivenRows(NamedTuple):
    """The rows int64[columns, n] to be inserted, how often each, and whether they are `written` one after the other."""

    rows: Codes
    copies: Codes
    written: bool


def conflict_of(statement: exp.Insert, table: Table, places: Sequence[int], source: SqlText) -> Conflict | None:
    """What an insert into the columns at `places` asks for; None if nothing."""
    target = statement.this.this if isinstance(statement.this, exp.Schema) else statement.this
    asked, word = statement.args.get("conflict"), str(statement.args.get("alternative") or "").lower()
    if asked is None and not word:
        return None
    feature = f"`insert or {word}`" if word else "`on conflict`"
    node = asked or statement
    if word not in ("", "replace", "ignore") or (word and asked is not None):
        raise source.unsupported(feature, node, "write `on conflict do nothing` or `on conflict do update set ...`")
    if asked is not None and asked.args.get("duplicate"):
        raise source.unsupported("`on duplicate key`", asked, "write `on conflict (a) do update set ...`")
    nothing = word == "ignore" or (asked is not None and str(asked.args["action"]).upper() == "DO NOTHING")
    keys = _keys(table, asked, feature, not nothing, node, source)
    if asked is None:
        assigned = {place: _excluded(table, place) for place in places} if word == "replace" else None
        return Conflict(keys, assigned, None, word == "replace", target, node)
    if nothing:
        return Conflict(keys, None, None, False, target, node)
    written = assignments(table, target.alias_or_name, asked.expressions, source)
    assigned = {place: _read_excluded(table, value, source) for place, value in written.items()}
    where = asked.args.get("where")
    return Conflict(
        keys, assigned, None if where is None else _read_excluded(table, where.this, source), False, target, node
    )


def _keys(
    table: Table, asked: exp.Expr | None, feature: str, changes: bool, node: exp.Expr, source: SqlText
) -> tuple[tuple[int, ...], ...]:
    """The keys of a table that count: the one that is named, else all; if a row `changes`, there is one."""
    names = [column.name for column in table.columns]
    keys = tuple(tuple(names.index(name) for name in key) for key in table.keys)
    if not keys:
        raise source.error(
            f"{feature} into `{table.name}`, which has no key",
            node,
            why="rows are in conflict where they are alike in a primary key, or in columns that are `unique`",
            remedy="use `insert`, or create the table with a primary key",
        )
    shown_keys = " or ".join(f"({', '.join(names[place] for place in columns)})" for columns in keys)
    if len(keys) > 1 and changes and (asked is None or not asked.args.get("conflict_keys")):
        raise source.error(
            f"{feature} into `{table.name}`, which has several keys: {shown_keys}",
            node,
            why="a row may be in conflict with several rows, and one of them is to change",
            remedy=f"name the key: `on conflict ({', '.join(names[place] for place in keys[0])}) do update set ...`",
        )
    if asked is None:
        return keys
    for part, what in (("constraint", "`on conflict on constraint`"), ("index_predicate", "`where` behind a key")):
        if asked.args.get(part) is not None:
            raise source.unsupported(what, asked.args[part], "name the columns of the key: `on conflict (a, b)`")
    named = asked.args.get("conflict_keys") or []
    if not named:
        return keys
    key = places_of(table, named, source)
    if set(key) not in [set(columns) for columns in keys]:
        raise source.error(
            f"({', '.join(names[place] for place in key)}) is no key of `{table.name}`",
            named[0],
            why="rows that are alike there may both be in the table",
            remedy=f"write `on conflict {shown_keys}`",
        )
    return (tuple(key),)


def _excluded(table: Table, place: int) -> exp.Expr:
    """A column of the row to be inserted."""
    return exp.column(
        exp.to_identifier(_hidden(table.columns[place].name), quoted=True), exp.to_identifier(ALIAS, quoted=True)
    )


def _hidden(name: str) -> str:
    return f"{EXCLUDED} {name}"


def _read_excluded(table: Table, node: exp.Expr, source: SqlText) -> exp.Expr:
    """An expression in which `excluded.c` is the column of the relation of the rows to be inserted."""
    names = [column.name for column in table.columns]

    def read(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table.casefold() != EXCLUDED:
            return part
        found = find(part.name, names)
        if found is None:
            places_of(table, [part], source)
        column = _excluded(table, names.index(found or ""))
        column.meta.update(part.this.meta)
        return column

    made = node.copy().transform(read)
    made.parent = node.parent  # where it stands, if no part of it has a place
    return made


# --- carried out ------------------------------------------------------------------------------------------------------


class ConflictingInsert:
    """An insert that says what becomes of rows whose keys are in the table."""

    __slots__ = ("_change", "_columns", "_conflict", "_met", "_name", "_source", "_table")

    def __init__(self, table: Table, conflict: Conflict, catalogue: Catalogue, source: SqlText) -> None:
        self._table, self._conflict, self._source = table, conflict, source
        self._name = unlike(EXCLUDED, map(str.casefold, catalogue.names))
        self._columns = tuple(Column(_hidden(column.name), column.type) for column in table.columns)
        excluded = exp.alias_(exp.to_table(self._name, quoted=True), exp.to_identifier(ALIAS, quoted=True), table=True)
        alike = [_alike(table, key, conflict.target) for key in conflict.keys]
        every = [_excluded(table, place) for place in range(len(self._columns))]
        self._met: list[Question] = []
        for condition in alike:
            query = exp.Select(expressions=[part.copy() for part in every], from_=exp.From(this=excluded.copy()))
            query.set("joins", [exp.Join(this=conflict.target.copy())])
            self._met.append(Question(query.where(condition).distinct(), source))
        self._change: RowChange | None = None
        if conflict.assigned is not None:
            where = exp.Where(this=exp.and_(alike[0], *([] if conflict.where is None else [conflict.where])))
            self._change = RowChange(table, conflict.target, conflict.assigned, [excluded], where, source)

    def carry_out(self, room: Changing, given: GivenRows, parameters: Given) -> None:
        """Insert the rows whose keys are not in the table, and do as the conflict says with the others."""
        table, conflict, source = self._table, self._conflict, self._source
        count = given.rows.shape[1]
        rows, order, starts = runs_of(np.ascontiguousarray(given.rows))
        rows, order = rows[:, starts], np.arange(count) if order is None else order
        copies = np.add.reduceat(given.copies[order], starts) if count else given.copies
        if conflict.assigned is None:
            taken = rows
        else:
            last = order[np.append(starts[1:], count) - 1] if count else order
            taken = rows[:, _one_per_key(room, table, rows, copies, last, given, conflict, source)]
            primary = [table.columns[place].name for place in conflict.keys[0]] == list(table.key)
            if primary and conflict.replaces and len(conflict.assigned) == len(table.columns):
                replace_rows(room, table, taken)
                return
        state = with_rows(room, room._present(), self._name, self._columns, taken)
        met = np.zeros(rows.shape[1], np.bool_)
        for question in self._met:
            # Those that meet a row, and not those that meet none: a join with few rows is quick in a large table too.
            met[_positions(rows, question.answer(room, state, parameters).rows)] = True
        new = np.flatnonzero(~met)
        if self._change is None:
            first = order[starts[new]]
            new = _first_ones(room, table, rows, new[np.argsort(first)], given, conflict, source)
        else:
            self._change.carry_out(room, parameters, state)
        known = np.any([_without_null(table, key, rows[:, new]) for key in conflict.keys], axis=0)
        insert_rows(room, table, np.ascontiguousarray(rows[:, new]), np.where(known, 1, copies[new]))


def _positions(rows: Codes, some: Codes) -> Codes:
    """Where each of `some` of the `rows`, both distinct and in order, stands among them."""
    return numbered(np.concatenate([rows, some], axis=1))[1][rows.shape[1] :]


def _alike(table: Table, key: tuple[int, ...], target: exp.Expr) -> exp.Expr:
    """Whether a row of the table has the key of a row to be inserted."""
    alias = target.alias_or_name
    return exp.and_(
        *(
            exp.EQ(
                this=exp.column(exp.to_identifier(table.columns[place].name, quoted=True), alias),
                expression=_excluded(table, place),
            )
            for place in key
        )
    )


def _one_per_key(
    room: Changing,
    table: Table,
    rows: Codes,
    copies: Codes,
    last: npt.NDArray[np.intp],
    given: GivenRows,
    conflict: Conflict,
    source: SqlText,
) -> npt.NDArray[np.intp]:
    """The positions of the distinct `rows` that count where a row changes: one of each key, that which stands last."""
    (key,) = conflict.keys
    known = _without_null(table, key, rows)
    if not conflict.replaces and (copies[known] > 1).any():
        raise _twice(room, table, rows[:, np.flatnonzero(known & (copies > 1))[0]], conflict, source)
    order = np.argsort(-last)
    order = order[known[order]]
    _, sorted_by_key, starts = runs_of(np.ascontiguousarray(rows[list(key)][:, order]))
    chosen = starts if sorted_by_key is None else sorted_by_key[starts]
    if len(chosen) < len(order) and not (conflict.replaces and given.written):
        raise _twice(room, table, rows[:, np.delete(order, chosen)[0]], conflict, source)
    return np.sort(np.concatenate([order[chosen], np.flatnonzero(~known)]))


def _first_ones(
    room: Changing, table: Table, rows: Codes, new: Codes, given: GivenRows, conflict: Conflict, source: SqlText
) -> Codes:
    """Those of `new`, positions of rows in the order of the statement, that no row before them is in conflict with."""
    keys = [(list(key), _without_null(table, key, rows[:, new])) for key in conflict.keys]
    if all(len(runs_of(np.ascontiguousarray(rows[key][:, new[k]]))[2]) == np.count_nonzero(k) for key, k in keys):
        return new
    kept, seen = list[int](), set[tuple[int, ...]]()
    for at, position in enumerate(new.tolist()):
        row = rows[:, position]
        own = {(number, *row[key].tolist()) for number, (key, known) in enumerate(keys) if known[at]}
        if own.isdisjoint(seen):
            kept.append(position)
            seen |= own
        elif not given.written:
            raise _twice(room, table, row, conflict, source)
    return np.array(kept, np.int64)


def _without_null(table: Table, key: tuple[int, ...], rows: Codes) -> npt.NDArray[np.bool_]:
    """Which rows have a key that can be another's: null is like nothing."""
    found = np.ones(rows.shape[1], np.bool_)
    for place in key:
        type = table.columns[place].type
        if is_nullable(type):
            found &= rows[place] != type_of(type).null
    return found


def _twice(room: Changing, table: Table, row: Codes, conflict: Conflict, source: SqlText) -> ProgramError:
    update = conflict.assigned is not None and not conflict.replaces
    return source.error(
        f"the rows to be inserted into `{table.name}` have a key twice: that of {shown(room, table, row)}",
        conflict.node,
        why="`do update` changes each row once" if update else "nothing says which of the rows of a query comes first",
        remedy="give one row for each key, by `group by` or `select distinct`",
    )
