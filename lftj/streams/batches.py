"""Sources: what streams are fed from, in batches, and how a circuit runs over them.

    batches("bids.ndjson")                    a file: .ndjson or .jsonl, .csv, .tsv, .parquet, .arrow
    batches("bids.ndjson", follow=True)       the same, and what is appended to it, for ever (text files)
    batches(reader)                           an Arrow record batch reader, or anything with an Arrow stream
    batches(frame)                            a pandas or polars frame
    batches(iterable)                         what it gives is one batch each

    for deltas in circuit.run({"bid": source}): ...            until all sources end
    async for deltas in circuit.run_async({"bid": source}): ...   sources may be asynchronous iterators

A batch is an Arrow table (or whatever a user's iterable gives) for one input at one tick, or None, which is no rows; a
column `_weight` of it says how often rows are there. Files are read a piece at a time (whole_rows.py): memory does not
grow with them. Their rows are those that `Database.load` reads in them (text_rows.py).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lftj.arguments import count, file_name
from lftj.errors import DataError
from lftj.io.lines import BOM
from lftj.io.rejects import BadRowsError
from lftj.io.typed import reader_of
from lftj.streams.text_rows import KINDS, TextRows
from lftj.streams.weighted import WEIGHT
from lftj.streams.whole_rows import MOST, WholeRows

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 10_000
# Bytes of a text file that are read at a time, and seconds between two looks at one that is followed.
PIECE, PAUSE = 1 << 20, 0.2
# What a followed file gives where nothing has been appended to it.
NOTHING_YET = object()
# What stands for the next batch of a source that has ended. None is a batch: one without rows, as `step` takes it.
ENDED = object()

Types = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FromFile:
    """A batch of a file that is no text: an Arrow `table` of its rows from the one numbered `first` on."""

    table: pa.Table
    path: Path
    first: int

    @contextmanager
    def told(self) -> Iterator[None]:
        """Let errors about the table name the file, and the row there."""
        try:
            yield
        except BadRowsError as error:
            error.moved(str(self.path), self.first)
            raise
        except DataError as error:
            error.placed(str(self.path))
            raise


def batches(
    source: Any, types: Types, *, name: str = "row", rows: int = ROWS, follow: bool = False, wait: bool = True
) -> Iterator[Any]:
    """The batches of a source, of at most `rows` rows. `types`: of the columns, by name; others are passed over.

    `name`: what messages call what the rows are for.
    Without `wait`, a file that is followed gives `NOTHING_YET` where nothing has been appended to it. `DataError` for
    files of another kind, and for text that is not a row.
    """
    rows = count("rows", rows, "rows of a batch") or ROWS
    if isinstance(source, str | Path):
        found = _of_file(Path(file_name(source)), name, types, rows, follow)
        return _waited_for(found) if follow and wait else found
    if follow:
        raise DataError(
            "only text files can be followed",
            why="of other sources nobody can append to what was read",
            remedy="leave `follow` out, or give an iterator that waits for more",
        )
    if hasattr(source, "__arrow_c_stream__"):
        return _of_arrow(source, types, rows)
    if isinstance(source, Iterable):
        return iter(source)
    raise DataError(
        f"rows cannot be read from an object of type {type(source).__name__}",
        why="a source is a file, an Arrow stream, a frame or an iterable of batches",
        remedy='give one of these, as in `{"bid": "bids.ndjson"}`',
    )


def _of_arrow(source: Any, types: Types, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    reader = reader_of(source)
    names = reader.schema.names
    if any(name in types for name in names):
        names = [name for name in names if name in types or name == WEIGHT]
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in reader:
        for lo in range(0, len(batch), rows):
            waiting.append(_sliced(batch, lo, rows).select(names))
            count += len(waiting[-1])
            if count >= rows:
                yield pa.Table.from_batches(waiting)
                waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting)


def _sliced(table: pa.Table | pa.RecordBatch, lo: int, rows: int) -> Any:
    """At most so many rows from one on. Of a table without columns Arrow gives more than there are, if asked for."""
    return table.slice(lo, min(rows, len(table) - lo))


def _of_file(path: Path, name: str, types: Types, rows: int, follow: bool) -> Iterator[Any]:
    suffix = path.suffix.lower()
    # Text is read from front to back, and so from a pipe, too.
    if not path.is_file() and not (suffix in KINDS and path.is_fifo()):
        is_folder, is_there = path.is_dir(), path.exists()
        what = f"{path} is {'a folder' if is_folder else 'no regular file'}" if is_there else f"there is no file {path}"
        raise DataError(
            what,
            why="a source is read from one file" if is_folder else "a source is read from it",
            remedy="give a file in it" if is_folder else "check the path",
        )
    if suffix in KINDS:
        return _of_text(path, TextRows(path, name, types), rows, follow)
    if follow or suffix not in (".parquet", ".arrow", ".feather"):
        known = ", ".join(KINDS) if follow else ", ".join([*KINDS, ".parquet", ".arrow"])
        raise DataError(
            f"{path} cannot be {'followed' if follow else 'read'}",
            why=f"the kind of a file is told by its ending, and these are {known}",
            remedy="convert it, or rename it if the ending is wrong",
        )
    return _numbered(path, _of_arrow(_open(path, suffix), types, rows))


def _numbered(path: Path, tables: Iterator[pa.Table]) -> Iterator[FromFile]:
    first = 0
    for table in tables:
        yield FromFile(table, path, first)
        first += len(table)


def _open(path: Path, suffix: str) -> Any:
    import pyarrow as pa

    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            file = pq.ParquetFile(_native(path))
            return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
        return pa.ipc.open_stream(_native(path)) if _is_stream(path) else _of_ipc_file(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} cannot be read", why=str(error), remedy="make sure that it is what its ending says"
        ) from None


def _native(path: Path) -> pa.NativeFile:
    """A file for Arrow, whatever bytes its name has."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path))


def _is_stream(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(6) != b"ARROW1"


def _of_ipc_file(path: Path) -> Any:
    import pyarrow as pa

    file = pa.ipc.open_file(_native(path))
    return pa.RecordBatchReader.from_batches(file.schema, (file.get_batch(i) for i in range(file.num_record_batches)))


def _of_text(path: Path, reader: TextRows, rows: int, follow: bool) -> Iterator[Any]:
    """Whole rows, as they come; one that is not finished waits for its end, or the end of a file not followed.

    Of a file that is followed `NOTHING_YET`, where nothing has been appended to it.
    """
    found, begun = WholeRows(reader.quoted), False
    with path.open("rb") as file:
        while True:
            piece = file.read(PIECE if begun else max(PIECE, len(BOM)))
            ended = not piece
            if not begun:
                piece, begun = piece.removeprefix(BOM), not ended
            whole = found.rest() if ended and not follow else found.take(piece)
            if found.too_long:
                raise DataError(
                    f"{path}: the row from line {reader.line} on has no end within {MOST >> 20} MiB",
                    why="a quote that is not closed takes everything behind it into its field",
                    remedy="close the quote",
                )
            if whole:
                table = reader.table(whole)
                for lo in range(0, len(table), rows):
                    yield _sliced(table, lo, rows)
            if ended:
                if not follow:
                    return
                _check_same(path, file)
                yield NOTHING_YET


def _waited_for(found: Iterator[Any]) -> Iterator[Any]:
    for batch in found:
        if batch is NOTHING_YET:
            time.sleep(PAUSE)
        else:
            yield batch


def _check_same(path: Path, file: BinaryIO) -> None:
    """`DataError` if a file that is followed is another one now, or has been cut: nothing more would come of it."""
    here = os.fstat(file.fileno())
    try:
        there = path.stat()
    except OSError:  # moved away, where somebody may append to it still
        return
    if stat.S_ISREG(here.st_mode) and (not os.path.samestat(here, there) or there.st_size < file.tell()):
        raise DataError(
            f"{path} was {'replaced' if not os.path.samestat(here, there) else 'cut'} while it was followed",
            why="its rows so far are in the circuit, and only what is appended can be followed",
            remedy="append to the file; where it begins anew, begin the stream anew",
        )


def ticks(sources: Mapping[str, Iterator[Any]]) -> Iterator[dict[str, Any]]:
    """What is given at each tick: the next batch of every source that has one, until all have ended."""
    left = dict(sources)
    while left:
        given = _taken(left, {name: next(source, ENDED) for name, source in left.items()})
        come = {name: batch for name, batch in given.items() if batch is not NOTHING_YET}
        if come:
            yield come
        elif given:
            time.sleep(PAUSE)


async def ticks_async(sources: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """The same; sources may be asynchronous iterators. A tick waits for a batch of every source that goes on."""
    left = {name: aiter(s) if hasattr(s, "__aiter__") else iter(s) for name, s in sources.items()}
    while left:
        batches = {
            name: await anext(source, ENDED) if hasattr(source, "__anext__") else next(source, ENDED)
            for name, source in left.items()
        }
        if given := _taken(left, batches):
            yield given


def _taken(left: dict[str, Any], batches: Mapping[str, Any]) -> dict[str, Any]:
    """The batches that are there; sources without one have ended, and are no longer `left`."""
    for name, batch in batches.items():
        if batch is ENDED:
            del left[name]
    return {name: batch for name, batch in batches.items() if batch is not ENDED}
