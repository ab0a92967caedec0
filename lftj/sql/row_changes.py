"""Rows that go and come: what a statement has found, as batches of the open transaction."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.errors import KeyConflictError
from lftj.evaluate.key_conflicts import shown_row
from lftj.sql.catalogue import Table
from lftj.sql.room import Changing
from lftj.store.change import COPIES, ERASE, INSERT, UPSERT, Batch
from lftj.store.copies import copies_of, with_copies
from lftj.values import gate
from scantree.consolidate import counted

Codes = npt.NDArray[np.int64]


def insert_rows(room: Changing, table: Table, rows: Codes, copies: Codes) -> None:
    """Insert `rows` int64[columns, n], each so often; a row that a set has already is a `KeyConflictError`."""
    relation = room._relation(table.name)
    if table.bag:
        room._add(table.name, relation, Batch(with_copies(rows, rows.shape[1], copies), rows.shape[1], INSERT))
        return
    if table.key:
        present = room._present().relations[table.name].facts
        again = (copies > 1) | present.contains(rows)
        if not again.any() and rows.shape[1] > 1:
            distinct = counted([rows])
            if distinct.shape[1] < rows.shape[1]:
                rows, again = distinct[:-1], distinct[-1] > 1
        if again.any():
            raise _twice(room, table, rows[:, int(np.argmax(again))])
    room._add(table.name, relation, Batch(rows, rows.shape[1], INSERT))


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


def replace_rows(room: Changing, table: Table, rows: Codes) -> None:
    """Let rows take the place of those with their keys; of several with one key the last counts."""
    room._add(table.name, room._relation(table.name), Batch(rows, rows.shape[1], UPSERT))


def copies_there(room: Changing, table: Table, rows: Codes) -> Codes:
    """How often each of the distinct `rows`, in key order, is in a table."""
    if not table.bag:
        return np.ones(rows.shape[1], np.int64)
    return copies_of(room._present().relations[table.name].facts, rows)


def shown(room: Changing, table: Table, row: Codes) -> str:
    """A row int64[columns] as messages write it."""
    schema = table.schema.given
    return shown_row(schema, gate.decode_row(row.tolist(), schema, room._evaluator.symbols))


def erase_rows(room: Changing, table: Table, rows: Codes, copies: Codes) -> None:
    """Erase `rows` int64[columns, n], so many copies of each."""
    relation, count = room._relation(table.name), rows.shape[1]
    if table.bag:
        room._add(table.name, relation, Batch(with_copies(rows, count, -copies), count, COPIES))
    else:
        room._add(table.name, relation, Batch(rows, count, ERASE))


def erase_all(room: Changing, table: Table) -> None:
    """Erase all rows."""
    rows = room._present().relations[table.name].facts.columns()
    if table.bag:
        erase_rows(room, table, rows[:-1], rows[-1])
    else:
        erase_rows(room, table, rows, np.ones(rows.shape[1], np.int64))
