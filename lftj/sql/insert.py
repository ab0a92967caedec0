"""`insert`: the rows that a statement gives, and what becomes of those whose key is there.

    insert into t values (1, 'x'), (2, null)     constants are read by the types of their columns
    insert into t (b, a) select y, x from u      what is left out has its default, else null (defaults.py)
    insert ... on conflict ...                   `on_conflict.py`, as `insert or replace` and `insert or ignore`

Without one of the last, conflicts of keys are found when the transaction commits, so that a statement may put right
what one before it left; only a row that is there already, which a set would not notice, is refused at once.
"""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from lftj.sql.catalogue import Catalogue
from lftj.sql.change_target import changed_table, places_of, refuse_parts
from lftj.sql.defaults import blank_row
from lftj.sql.given_rows import ConstantRows, null_error, selected_rows
from lftj.sql.on_conflict import ConflictingInsert, GivenRows, conflict_of
from lftj.sql.parameters import Given
from lftj.sql.places import SqlText
from lftj.sql.question import Question
from lftj.sql.room import Changing
from lftj.sql.row_changes import insert_rows
from lftj.sql.with_clause import knowing, with_queries_knowing


class InsertStatement:
    """An `insert`."""

    __slots__ = ("_conflict", "_places", "_rows", "_source", "_table", "_target", "tables")

    def __init__(self, statement: exp.Insert, catalogue: Catalogue, source: SqlText) -> None:
        refuse_parts(
            statement,
            source,
            returning="`returning`",
            overwrite="`insert overwrite`",
            by_name="`insert by name`",
        )
        target = statement.this
        named = target.expressions if isinstance(target, exp.Schema) else None
        into = target.this if isinstance(target, exp.Schema) else target
        refuse_parts(into, source, partition="`partition` of a table")
        table = changed_table(into, catalogue, source)
        self._table, self.tables = table, (table,)
        places = places_of(table, named, source)
        statement = _with_names_known(statement)
        conflict = conflict_of(statement, table, places, source)
        self._conflict = None if conflict is None else ConflictingInsert(table, conflict, catalogue, source)
        self._source, self._target = source, target
        query = statement.expression
        self._places = [] if query is None else places
        self._rows: ConstantRows | Question | None = None
        if isinstance(query, exp.Values):
            self._rows = ConstantRows(table, places, query, source)
        elif query is not None:
            self._rows = Question(query, source)

    def carry_out(self, room: Changing, given: Given) -> None:
        """Insert the rows."""
        table, places, source = self._table, self._places, self._source
        blank = blank_row(room._present(), table)
        for place, column in enumerate(table.columns):
            if place not in places and blank[place] is None:
                raise null_error(table, column, self._target, source)
        if isinstance(self._rows, Question):
            rows, copies = selected_rows(room, table, places, blank, self._rows, source, given)
        else:
            if self._rows is None:
                rows = np.array([blank], np.int64).T.copy()
            else:
                rows = self._rows.codes(room, blank, given)
            copies = np.ones(rows.shape[1], np.int64)
        if self._conflict is None:
            insert_rows(room, table, rows, copies)
        else:
            written = not isinstance(self._rows, Question)
            self._conflict.carry_out(room, GivenRows(rows, copies, written), given)


def _with_names_known(statement: exp.Insert) -> exp.Insert:
    """The statement, the names of whose `with` all queries in it know: that of the rows, and those in expressions."""
    clause, rows, conflict = (statement.args.get(part) for part in ("with_", "expression", "conflict"))
    if clause is None:
        return statement
    made = statement.copy()
    if rows is not None:
        written = isinstance(rows, exp.Values)
        made.set("expression", with_queries_knowing(rows, clause) if written else knowing(rows, clause))
    if conflict is not None:
        made.set("conflict", with_queries_knowing(conflict, clause))
    return made
