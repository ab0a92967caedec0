"""Writing entries of the log, and the texts that they may name, as transactions of SQLite.

Functions over the container and the table of texts: what waits can be written by who has nothing else of a database
that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lftj.durable import ends
from lftj.durable.container import Container
from lftj.durable.entry import LogEntry, encoded
from lftj.durable.hashes import hash_of
from lftj.store.change import Change
from lftj.values.arrow_arrays import texts
from lftj.values.symbols import SymbolTable

if TYPE_CHECKING:
    from sqlite3 import Connection

    import pyarrow as pa

# Changes of derived relations; None where it is known only that there are some, which is kept as `NOT_KEPT`.
NOT_KEPT = b"?"
Deltas = Mapping[str, Change | None]


class Waiting(NamedTuple):
    """An entry that is not written yet."""

    seq: int
    time: float
    entry: LogEntry
    deltas: Deltas
    symbols: int


def write_entry(container: Container, seq: int, now: float, entry: LogEntry) -> int:
    """Write an entry alone: most are, and take as long as what is done for them. Returns its bytes."""
    body = entry.encoded()
    container.insert_entry(seq, now, body)
    return len(body)


def write_entries(container: Container, symbols: SymbolTable, entries: Sequence[Waiting], known: int) -> int:
    """Write entries, and the texts that they may name, in one transaction. Returns their bytes.

    `known`: so many texts at least are in the file.
    """
    written = 0

    def write(connection: Connection) -> None:
        nonlocal written
        for made in entries:
            written += write_entry(container, made.seq, made.time, made.entry)
            for name, change in made.deltas.items():
                body = NOT_KEPT if change is None else encoded(change)
                last = ends.last_of(container, ends.of_deltas(name))
                delta = (name, made.seq, last, body, hash_of(body, name, made.seq, last, made.time))
                connection.execute("insert into deltas values (?, ?, ?, ?, ?)", delta)

    write_with_symbols(container, symbols, entries[-1].symbols, known, write)
    return written


def write_with_symbols(
    container: Container, symbols: SymbolTable, upto: int, known: int, write: Callable[[Connection], None]
) -> None:
    """Write in a transaction, and the texts of codes below `upto` with it that are not in the file yet."""

    def write_both(connection: Connection) -> None:
        if upto > known:
            first = symbols_there(container)  # an interrupt may have come before this was noted
            if upto > first:
                body = _texts(symbols, first, upto)
                row = (first, upto - first, body, hash_of(body, first, upto - first))
                connection.execute("insert into symbols values (?, ?, ?, ?)", row)
        write(connection)

    container.transact(write_both)


def symbols_there(container: Container) -> int:
    """How many texts are in the file."""
    sql = "select first + count from symbols order by first desc limit 1"
    found = container.connection.execute(sql).fetchone()
    return 0 if found is None else int(found[0])


def _texts(symbols: SymbolTable, low: int, high: int) -> bytes:
    """The texts of the codes [low, high) as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    batch = pa.record_batch([texts(symbols.few(np.arange(low, high)))], names=["text"])
    options = pa.ipc.IpcWriteOptions(compression="zstd" if high - low > 1000 else None)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def texts_of(body: bytes) -> pa.Array:
    """The texts of such bytes, as a large_string array."""
    import pyarrow as pa

    return pa.ipc.open_stream(pa.py_buffer(body)).read_next_batch().column(0)
