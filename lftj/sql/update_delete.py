"""`update`, `delete` and `truncate`: rows that a select finds, and what takes their place.

    delete from t where a = 1                    the rows that `select * from t where a = 1` gives, all their copies
    delete from t using u where t.a = u.a        those that meet some row of `u`
    update t set a = a + 1 where b = 'x'         the rows that go and those that come, from one select
    update t set b = u.b from u where t.a = u.a  a row has the values of the rows of `u` that it meets

A `with` before the statement is that of the select; no query of it has the name of the table that is changed.

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
from lftj.sql.given_rows import check_fits, codes_for, is_default, null_error, typed_answer
from lftj.sql.parameters import Given
from lftj.sql.places import SqlText
from lftj.sql.question import Codes, Question
from lftj.sql.room import Changing
from lftj.sql.row_changes import copies_there, erase_all, erase_rows, insert_rows, shown


class DeleteStatement:
    """A `delete`: of all rows if nothing is asked."""

    __slots__ = ("_question", "_table", "tables")

    def __init__(self, statement: exp.Delete, catalogue: Catalogue, source: SqlText) -> None:
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
        self._table = changed_table(statement.this, catalogue, source)
        self.tables = (self._table,)
        clause = _with_of(statement, source)
        self._question: Question | None = None
        where, others = statement.args.get("where"), statement.args.get("using")
        if where is not None or others:
            query = _over(statement.this, others or (), columns_of(self._table, statement.this), where, clause)
            self._question = Question(query.distinct() if others else query, source)

    def carry_out(self, room: Changing, given: Given) -> None:
        """Erase the rows."""
        if self._question is None:
            erase_all(room, self._table)
            return
        found = self._question.answer(room, room._present(), given)
        erase_rows(room, self._table, found.rows, copies_there(room, self._table, found.rows))


class TruncateStatement:
    """A `truncate`."""

    __slots__ = ("tables",)

    def __init__(self, statement: exp.TruncateTable, catalogue: Catalogue, source: SqlText) -> None:
        refuse_parts(
            statement,
            source,
            cluster="`truncate` on a cluster",
            identity="what becomes of numbers that count on in `truncate`",
            option="`cascade` or `restrict` in `truncate`",
            partition="a partition in `truncate`",
        )
        self.tables = [changed_table(node, catalogue, source) for node in statement.expressions]

    def carry_out(self, room: Changing, given: Given) -> None:
        """Erase all rows of its tables."""
        for table in self.tables:
            erase_all(room, table)


class UpdateStatement:
    """An `update`."""

    __slots__ = ("_change", "tables")

    def __init__(self, statement: exp.Update, catalogue: Catalogue, source: SqlText) -> None:
        refuse_parts(
            statement,
            source,
            returning="`returning`",
            order="`order by` in `update`",
            limit="`limit` in `update`",
        )
        table = changed_table(statement.this, catalogue, source)
        self.tables = (table,)
        assigned = assignments(table, statement.this.alias_or_name, statement.expressions, source)
        given = statement.args.get("from_")
        others, where = [given.this] if given else [], statement.args.get("where")
        self._change = RowChange(
            table, statement.this, assigned, others, where, source, clause=_with_of(statement, source)
        )

    def carry_out(self, room: Changing, given: Given) -> None:
        """Change the rows."""
        self._change.carry_out(room, given)


class RowChange:
    """The columns `assigned` get their values, in the rows of `target` that meet rows of `others` `where` it says.

    `clause`: the `with` whose names all of these may have.
    """

    __slots__ = ("_assigned", "_others", "_question", "_source", "_table", "_types")

    def __init__(
        self,
        table: Table,
        target: exp.Expr,
        assigned: dict[int, exp.Expr],
        others: Sequence[exp.Expr],
        where: exp.Expr | None,
        source: SqlText,
        *,
        clause: exp.Expr | None = None,
    ) -> None:
        self._table, self._assigned, self._others, self._source = table, assigned, others, source
        computed = self._computed()
        values = [exp.alias_(value.copy(), f"value {place}", quoted=True) for place, value in computed.items()]
        query = _over(target, others, [*columns_of(table, target), *values], where, clause)
        self._question = Question(query.distinct() if others else query, source)
        self._types = [None] * len(table.columns) + [table.columns[place].type for place in computed]

    def _computed(self) -> dict[int, exp.Expr]:
        """What is assigned, but for defaults."""
        return {place: value for place, value in self._assigned.items() if not is_default(value)}

    def carry_out(self, room: Changing, given: Given, state: State | None = None) -> None:
        """Change the rows. `state`: with what the others name, if the transaction does not have it."""
        table, source = self._table, self._source
        width = len(table.columns)
        for place, value in self._computed().items():
            check_fits(value, table.columns[place].type, given, source)
        found = typed_answer(room, self._question, self._types, source, state=state, given=given)
        old, new = found.rows[:width], found.rows[:width].copy()
        blank, computed = blank_row(room._present(), table), self._computed()
        for place in self._assigned.keys() - computed.keys():
            code = blank[place]
            if code is None:
                raise null_error(table, table.columns[place], self._assigned[place], source)
            new[place] = code
        for at, (place, value) in enumerate(computed.items(), width):
            new[place] = codes_for(table, place, found.rows[at], found.columns[at], value, source)
        if self._others:
            old, new = _one_each(room, table, old, new, self._others[0], source)
        copies = copies_there(room, table, old)
        erase_rows(room, table, old, copies)
        insert_rows(room, table, new, copies)


def _with_of(statement: exp.Expr, source: SqlText) -> exp.Expr | None:
    """The `with` of a statement; an error if a query of it has the name of the table that the statement changes."""
    clause: exp.Expr | None = statement.args.get("with_")
    target = statement.this
    for node in clause.expressions if clause is not None else ():
        if node.alias.casefold() == target.name.casefold():
            raise source.error(
                f"`{target.name}` is a query of `with`, and its rows cannot be changed",
                target,
                why="a name of `with` goes before that of a table",
                remedy=f"give the query another name, as in `with other_{target.name} as (...)`",
            )
    return clause


def _over(
    target: exp.Expr,
    others: Sequence[exp.Expr],
    shown: Sequence[exp.Expr],
    where: exp.Expr | None,
    clause: exp.Expr | None,
) -> exp.Select:
    """The select of `shown` over a table and the others that a statement names."""
    query = exp.Select(expressions=shown, from_=exp.From(this=target.copy()), where=where)
    joins: list[exp.Expr] = []
    for other in others:
        first = other.copy()
        joins += [exp.Join(this=first), *(first.args.pop("joins", None) or ())]
    query.set("joins", joins)
    query.set("with_", None if clause is None else clause.copy())
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
