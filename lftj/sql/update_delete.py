"""`update`, `delete` and `truncate`: rows that a select finds, and what takes their place.

    delete from t where a = 1                    the rows that `select * from t where a = 1` gives, all their copies
    delete from t using u where t.a = u.a        those that meet some row of `u`
    update t set a = a + 1 where b = 'x'         the rows that go and those that come, from one select
    update t set b = u.b from u where t.a = u.a  a row has the values of the rows of `u` that it meets

A row that meets several rows of `from` which give it different values is refused: nothing says which of them it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlglot import exp

from lftj.program.state import State
from lftj.sql.catalogue import Catalogue, Table
from lftj.sql.change_target import assignments, changed_table, columns_of, refuse_parts
from lftj.sql.defaults import blank_row
from lftj.sql.given_rows import codes_for, is_default, null_error, typed_answer
from lftj.sql.one_off import Codes, answer
from lftj.sql.places import SqlText
from lftj.sql.room import Changing
from lftj.sql.row_changes import copies_there, erase_all, erase_rows, insert_rows, shown


def delete(room: Changing, statement: exp.Delete, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out a `delete`."""
    refuse_parts(
        statement,
        source,
        returning="`returning`",
        order="`order by` in `delete`",
        limit="`limit` in `delete`",
        tables="`delete` from several tables",
    )
    if statement.args.get("cluster"):
        raise source.unsupported("`on cluster`", statement)
    table = changed_table(statement.this, catalogue, source)
    where, others = statement.args.get("where"), statement.args.get("using")
    if where is None and not others:
        erase_all(room, table)
        return
    query = _over(statement.this, others or (), columns_of(table, statement.this), where)
    found = answer(room, room._present(), query.distinct() if others else query, source)
    erase_rows(room, table, found.rows, copies_there(room, table, found.rows))


def truncate(room: Changing, statement: exp.TruncateTable, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out a `truncate`."""
    for node in statement.expressions:
        erase_all(room, changed_table(node, catalogue, source))


def update(room: Changing, statement: exp.Update, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out an `update`."""
    refuse_parts(
        statement,
        source,
        returning="`returning`",
        order="`order by` in `update`",
        limit="`limit` in `update`",
    )
    table = changed_table(statement.this, catalogue, source)
    assigned = assignments(table, statement.expressions, source)
    given = statement.args.get("from_")
    change_rows(
        room, table, statement.this, assigned, [given.this] if given else [], statement.args.get("where"), source
    )


def change_rows(
    room: Changing,
    table: Table,
    target: exp.Expr,
    assigned: dict[int, exp.Expr],
    others: Sequence[exp.Expr],
    where: exp.Expr | None,
    source: SqlText,
    *,
    state: State | None = None,
) -> None:
    """Give the columns `assigned` their values, in the rows of `target` that meet rows of `others` `where` it says.

    `state`: with what the others name, if the transaction does not have it.
    """
    given = {place: value for place, value in assigned.items() if not is_default(value)}
    values = [exp.alias_(value.copy(), f"value {place}", quoted=True) for place, value in given.items()]
    query = _over(target, others, [*columns_of(table, target), *values], where)
    width = len(table.columns)
    types = [None] * width + [table.columns[place].type for place in given]
    found = typed_answer(room, query.distinct() if others else query, types, source, state=state)
    old, new = found.rows[:width], found.rows[:width].copy()
    blank = blank_row(room._present(), table)
    for place in assigned.keys() - given.keys():
        code = blank[place]
        if code is None:
            raise null_error(table, table.columns[place], assigned[place], source)
        new[place] = code
    for number, (place, value) in enumerate(given.items()):
        new[place] = codes_for(table, place, found.rows[width + number], found.columns[width + number], value, source)
    if others:
        old, new = _one_each(room, table, old, new, others[0], source)
    copies = copies_there(room, table, old)
    erase_rows(room, table, old, copies)
    insert_rows(room, table, new, copies)


def _over(
    target: exp.Expr, others: Sequence[exp.Expr], shown: Sequence[exp.Expr], where: exp.Expr | None
) -> exp.Select:
    """The select of `shown` over a table and the others that a statement names."""
    query = exp.Select(expressions=shown, from_=exp.From(this=target.copy()), where=where)
    joins: list[exp.Expr] = []
    for other in others:
        first = other.copy()
        joins += [exp.Join(this=first), *(first.args.pop("joins", None) or ())]
    query.set("joins", joins)
    return query


def _one_each(
    room: Changing, table: Table, old: Codes, new: Codes, node: exp.Expr, source: SqlText
) -> tuple[Codes, Codes]:
    """The rows `old`, in key order, each once, with the row of `new` that takes its place; an error if two do."""
    again = (old[:, 1:] == old[:, :-1]).all(axis=0)
    different = again & (new[:, 1:] != new[:, :-1]).any(axis=0)
    if different.any():
        at = int(np.argmax(different))
        before, one, two = (shown(room, table, row) for row in (old[:, at], new[:, at], new[:, at + 1]))
        raise source.error(
            f"`update ... from` gives the row {before} two values: {one} and {two}",
            node,
            why="it meets several rows of `from`, and nothing says which of them counts; nothing was changed",
            remedy="let `where` leave one of them, or set the column by a subquery with `min` or `max`",
        )
    first = np.append(True, ~again)[: old.shape[1]]
    return np.compress(first, old, axis=1), np.compress(first, new, axis=1)
