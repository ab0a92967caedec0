"""An entry of the log as bytes: what one transaction, load or change of rules did to facts and rules.

    header     a line of JSON: the steps of the program (program_log.py), and per relation its name, how many bytes
               follow, and whether they are rows, the list of the pages that its facts are from now on (segments.py), or
               the rows of a relation that was dropped
    bodies     per relation an Arrow IPC message, a record batch of columns c0, c1, ... (int64, codes) and `kind` (int8:
               1 inserted, -1 erased), or such a list

The rows are the net change of facts. Codes of texts are those of the table `symbols`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lftj.store.change import Change
from lftj.values.arrow_arrays import numbers, values_of

if TYPE_CHECKING:
    import pyarrow as pa

Step = dict[str, Any]
# Rows up to which the beginnings of messages are kept.
FEW = 16


class LogEntry(NamedTuple):
    """`changes` of facts by relation · `pages`: lists of pages, of facts loaded in bulk · `steps`: of the program.

    `dropped`: the facts of relations that were dropped, as erased, where history is kept.
    """

    changes: Mapping[str, Change] = {}
    pages: Mapping[str, bytes] = {}
    steps: tuple[Step, ...] = ()
    dropped: Mapping[str, Change] = {}

    def encoded(self) -> bytes:
        """The entry as bytes."""
        if len(self.changes) == 1 and not (self.pages or self.steps or self.dropped):
            ((name, change),) = self.changes.items()
            body = encoded(change)
            return _header(((name, len(body), "rows"),)) + body
        bodies = [*(encoded(change) for change in self.changes.values()), *self.pages.values()]
        named = [*((name, "rows") for name in self.changes), *((name, "pages") for name in self.pages)]
        if self.dropped:
            bodies += [encoded(change) for change in self.dropped.values()]
            named += [(name, "dropped") for name in self.dropped]
        listed = tuple([(name, len(body), kind) for (name, kind), body in zip(named, bodies, strict=True)])
        if not self.steps:
            return b"".join([_header(listed), *bodies])
        header = {"r": listed, "steps": self.steps}
        return b"".join([json.dumps(header).encode(), b"\n", *bodies])

    @classmethod
    def decoded(cls, body: bytes) -> LogEntry:
        """The entry that such bytes are."""
        end = body.index(b"\n")
        header, at = json.loads(body[:end]), end + 1
        changes, pages, dropped = {}, {}, {}
        for name, size, kind in header["r"]:
            part = body[at : at + size]
            at += size
            if kind == "rows":
                changes[name] = decoded(part)
            elif kind == "pages":
                pages[name] = part
            else:
                dropped[name] = decoded(part)
        return cls(changes, pages, tuple(header.get("steps", ())), dropped)


@lru_cache(256)  # small commits are of the same relations and sizes again and again
def _header(listed: tuple[tuple[str, int, str], ...]) -> bytes:
    return json.dumps({"r": listed}).encode() + b"\n"


@cache
def _schema(arity: int) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([*((f"c{i}", pa.int64()) for i in range(arity)), ("kind", pa.int8())])


def encoded(change: Change) -> bytes:
    """A change as an Arrow IPC message.

    Of few rows what comes before the values is kept: making it takes longer than all the rest of a small commit.
    """
    n = len(change.kinds)
    if n <= FEW:
        before = _before_values(len(change.rows), n)
        if before:
            kinds = change.kinds.tobytes()
            return b"".join([before, change.rows.tobytes(), kinds, bytes(-n % 8)])
    return _message(change)


@cache
def _before_values(arity: int, n: int) -> bytes:
    """What an encoded change of so many columns and rows begins with; empty if its values are not laid out plainly."""
    change = Change(np.arange(arity * n, dtype=np.int64).reshape(arity, n), np.ones(n, np.int8))
    whole, values = _message(change), change.rows.tobytes() + change.kinds.tobytes() + bytes(-n % 8)
    return whole[: len(whole) - len(values)] if whole.endswith(values) else b""


def _message(change: Change) -> bytes:
    import pyarrow as pa

    columns = [*map(numbers, change.rows), numbers(change.kinds)]
    batch = pa.RecordBatch.from_arrays(columns, schema=_schema(len(change.rows)))
    message: bytes = batch.serialize().to_pybytes()
    return len(change.rows).to_bytes(2, "little") + message


def decoded(body: bytes) -> Change:
    """The change that such a message is."""
    import pyarrow as pa

    schema = _schema(int.from_bytes(body[:2], "little"))
    batch = pa.ipc.read_record_batch(pa.py_buffer(body[2:]), schema)
    *columns, kinds = batch.columns
    rows = np.empty((len(columns), batch.num_rows), np.int64)
    for row, column in zip(rows, columns, strict=True):
        row[:] = values_of(column)
    return Change(rows, values_of(kinds).astype(np.int8))


def netted(changes: list[Change]) -> Change:
    """The net of changes of one relation, one after the other: a row that came and went is in none."""
    if len(changes) == 1:
        return changes[0]
    from scantree.consolidate import consolidated

    rows = np.concatenate([change.rows for change in changes], axis=1)
    weights = np.concatenate([change.kinds for change in changes]).astype(np.int64)
    rows, weights = consolidated(np.ascontiguousarray(rows), weights)
    moved = weights != 0
    return Change(rows.compress(moved, axis=1), weights[moved].astype(np.int8))


def inverse(change: Change) -> Change:
    """The change that takes another one back."""
    return Change(change.rows, -change.kinds)
