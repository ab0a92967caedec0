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
from lftj.sql.given_rows import constant_rows, null_error, selected_rows
from lftj.sql.on_conflict import GivenRows, conflict_of, insert_beside
from lftj.sql.places import SqlText
from lftj.sql.room import Changing
from lftj.sql.row_changes import insert_rows


def insert(room: Changing, statement: exp.Insert, catalogue: Catalogue, source: SqlText) -> None:
    """Carry out an `insert`."""
    refuse_parts(
        statement,
        source,
        returning="`returning`",
        overwrite="`insert overwrite`",
        by_name="`insert by name`",
    )
    target = statement.this
    named = [part.name for part in target.expressions] if isinstance(target, exp.Schema) else None
    table = changed_table(target.this if isinstance(target, exp.Schema) else target, catalogue, source)
    places = places_of(table, named, target, source)
    conflict = conflict_of(statement, table, places, source)
    query, blank = statement.expression, blank_row(room._present(), table)
    if query is None:
        places = []
    for place, column in enumerate(table.columns):
        if place not in places and blank[place] is None:
            raise null_error(table, column, target, source)
    if query is not None and statement.args.get("with_") is not None:
        query = query.copy()
        query.set("with_", statement.args["with_"])
    written = query is None or isinstance(query, exp.Values)
    if query is None:
        rows, copies = np.array([blank], np.int64).T.copy(), np.ones(1, np.int64)
    elif isinstance(query, exp.Values):
        rows = constant_rows(room, table, places, blank, query, source)
        copies = np.ones(rows.shape[1], np.int64)
    else:
        rows, copies = selected_rows(room, table, places, blank, query, source)
    if conflict is None:
        insert_rows(room, table, rows, copies)
    else:
        insert_beside(room, table, GivenRows(rows, copies, written), conflict, source)
