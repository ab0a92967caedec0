"""Sources: what streams are fed from, in batches, and how a circuit runs over them.

    batches("bids.ndjson")                    a file: .ndjson or .jsonl, .csv, .tsv, .parquet, .arrow
    batches("bids.ndjson", follow=True)       the same, and what is appended to it, for ever (text files)
    batches(reader)                           an Arrow record batch reader, or anything with an Arrow stream
    batches(frame)                            a pandas or polars frame
    batches(iterable)                         what it gives is one batch each

    for deltas in circuit.run({"bid": source}): ...            until all sources end
    async for deltas in circuit.run_async({"bid": source}): ...   sources may be asynchronous iterators

A batch is an Arrow table (or whatever a user's iterable gives) for one input at one tick; a column `_weight` of it says
how often rows are there. Files are read a piece at a time (whole_rows.py): memory does not grow with them.
"""

from __future__ import annotations

import io
import os
import stat
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lftj.arguments import count
from lftj.errors import DataError
from lftj.streams.weighted import WEIGHT
from lftj.streams.whole_rows import MOST, WholeRows
from lftj.values.type_table import type_of

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 10_000
# Bytes of a text file that are read at a time, and seconds between two looks at one that is followed.
PIECE, PAUSE = 1 << 20, 0.2
# What a followed file gives where nothing has been appended to it.
NOTHING_YET = object()
TEXT = {".ndjson": "json", ".jsonl": "json", ".csv": "csv", ".tsv": "tsv"}

Types = Mapping[str, str]


def batches(source: Any, types: Types, *, rows: int = ROWS, follow: bool = False, wait: bool = True) -> Iterator[Any]:
    """The batches of a source, of at most `rows` rows. `types`: of the columns, by name; others are passed over.

    Without `wait`, a file that is followed gives `NOTHING_YET` where nothing has been appended to it. `DataError` for
    files of another kind, and for text that is no row.
    """
    rows = count("rows", rows, "rows of a batch") or ROWS
    if isinstance(source, str | Path):
        found = _of_file(Path(source), types, rows, follow)
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

    reader = pa.RecordBatchReader.from_stream(source)
    names = [name for name in reader.schema.names if name in types or name == WEIGHT]
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in reader:
        for lo in range(0, len(batch), rows):
            waiting.append(batch.slice(lo, rows).select(names))
            count += len(waiting[-1])
            if count >= rows:
                yield pa.Table.from_batches(waiting)
                waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting)


def _of_file(path: Path, types: Types, rows: int, follow: bool) -> Iterator[pa.Table]:
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DataError(
            f"there is no file {path}", why="a source is read from it", remedy="look for a slip in the path"
        )
    if suffix in TEXT:
        return _of_text(path, TEXT[suffix], types, rows, follow)
    if follow or suffix not in (".parquet", ".arrow", ".feather"):
        known = ", ".join(TEXT) if follow else ", ".join([*TEXT, ".parquet", ".arrow"])
        raise DataError(
            f"{path} cannot be {'followed' if follow else 'read'}",
            why=f"the kind of a file is told by its ending, and these are {known}",
            remedy="convert it, or rename it if the ending is wrong",
        )
    return _of_arrow(_open(path, suffix), types, rows)


def _open(path: Path, suffix: str) -> Any:
    import pyarrow as pa

    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            file = pq.ParquetFile(path)
            return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
        return pa.ipc.open_stream(path) if _is_stream(path) else _of_ipc_file(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} cannot be read", why=str(error), remedy="make sure that it is what its ending says"
        ) from None


def _is_stream(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(6) != b"ARROW1"


def _of_ipc_file(path: Path) -> Any:
    import pyarrow as pa

    file = pa.ipc.open_file(path)
    return pa.RecordBatchReader.from_batches(file.schema, (file.get_batch(i) for i in range(file.num_record_batches)))


def _of_text(path: Path, kind: str, types: Types, rows: int, follow: bool) -> Iterator[Any]:
    """Whole rows, as they come; one that is not finished waits for its end, or the end of a file not followed.

    Of a file that is followed `NOTHING_YET`, where nothing has been appended to it.
    """
    found, header, line = WholeRows(_DELIMITERS.get(kind)), b"", 1
    with path.open("rb") as file:
        while True:
            piece = file.read(PIECE)
            whole = found.take(piece) if piece or follow else found.rest()
            if found.too_long:
                raise DataError(
                    f"{path}: the row from line {line} on has no end within {MOST >> 20} MiB",
                    why="a quote that is not closed takes everything behind it into its field",
                    remedy="close the quote",
                )
            if kind != "json" and not header and whole:
                first, _, rest = whole.partition(b"\n")
                header = _header(first + b"\n", kind, types, f"{path}, from line 1")
                if header == first + b"\n":
                    whole, line = rest, 2
            if whole.strip():
                table = _parsed(header + whole, kind, types, f"{path}, from line {line}")
                for lo in range(0, len(table), rows):
                    yield table.slice(lo, rows)
            line += whole.count(b"\n")
            if not piece:
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


def _header(first: bytes, kind: str, types: Types, place: str) -> bytes:
    """The line that names the columns: the first one, if it names one of them; else that line is a row."""
    names = _names(first, kind, types, place)
    if any(name in types for name in names):
        return first
    own = [*types, WEIGHT] if len(names) == len(types) + 1 else list(types)
    return _DELIMITERS[kind].join(own).encode() + b"\n"


def _names(line: bytes, kind: str, types: Types, place: str) -> list[str]:
    import pyarrow.csv as pc

    with _told(types, place):
        options = pc.ParseOptions(delimiter=_DELIMITERS[kind])
        return list(pc.read_csv(io.BytesIO(line), parse_options=options).column_names)


@contextmanager
def _told(types: Types, place: str) -> Iterator[None]:
    """Tell what Arrow says of lines as an error of the source."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise DataError(
            f"a line of {place} is no row",
            why=str(error),
            remedy=f"its columns are {', '.join(f'{n}:{t}' for n, t in types.items())}; correct the line",
        ) from None


def _parsed(text: bytes, kind: str, types: Types, place: str) -> pa.Table:
    """The rows of whole lines of text."""
    import pyarrow as pa

    wanted = {name: type_of(type_).arrow_type() for name, type_ in types.items()}
    with _told(types, place):
        if kind == "json":
            import pyarrow.json as pj

            fields = pa.schema([*wanted.items(), (WEIGHT, pa.int64())])
            options = pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore")
            size = pj.ReadOptions(block_size=max(len(text), 1), use_threads=False)
            table = pj.read_json(io.BytesIO(text), read_options=size, parse_options=options)
            return table.drop([WEIGHT]) if table.column(WEIGHT).null_count == len(table) else table
        import pyarrow.csv as pc

        names = _names(text.partition(b"\n")[0] + b"\n", kind, types, place)
        convert = pc.ConvertOptions(
            column_types={**wanted, WEIGHT: pa.int64()},
            include_columns=[name for name in names if name in wanted or name == WEIGHT],
            strings_can_be_null=False,
        )
        return pc.read_csv(
            io.BytesIO(text),
            read_options=pc.ReadOptions(block_size=max(len(text), 1), use_threads=False),
            parse_options=pc.ParseOptions(delimiter=_DELIMITERS[kind]),
            convert_options=convert,
        )


_DELIMITERS = {"csv": ",", "tsv": "\t"}


def ticks(sources: Mapping[str, Iterator[Any]]) -> Iterator[dict[str, Any]]:
    """What is given at each tick: the next batch of every source that has one, until all have ended."""
    left = dict(sources)
    while left:
        given = _taken(left, {name: next(source, None) for name, source in left.items()})
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
            name: await anext(source, None) if hasattr(source, "__anext__") else next(source, None)
            for name, source in left.items()
        }
        if given := _taken(left, batches):
            yield given


def _taken(left: dict[str, Any], batches: Mapping[str, Any]) -> dict[str, Any]:
    """The batches that are there; sources without one have ended, and are no longer `left`."""
    for name, batch in batches.items():
        if batch is None:
            del left[name]
    return {name: batch for name, batch in batches.items() if batch is not None}
