r"""Writing: columns of codes to files that Souffle, other tools and `lftj.io.sources.read` read back to the same rows.

    .csv .tsv .txt .facts (each also .gz, .zst), and anything with `write(bytes)`: text  .parquet  .arrow .feather .ipc

A file is written *beside* its target under a temporary name, chunk by chunk, and *renamed* over it when it is complete:
whoever reads the target sees the old file or the new one. A target that is no regular file (a pipe, /dev/stdout) is
written straight.

Text. One row per line, "\n" ends each. `delimiter=None` takes the extension's (comma for .csv, else tab); Souffle's own
files are tab separated whatever their name, so its command line passes "\t". `headers=True` puts the column names on
the first line. With `rfc4180=True` (the default where the delimiter is a comma) a text that needs quotes gets them;
without, a symbol that holds the delimiter or a line end is refused, because no reader could tell. Floats are printed
with as many digits as it takes to read the same float back. Arity 0: a line () per row; only text holds it. A symbol
relation of one column whose first row is its column's name reads back only with header=False.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.errors import DataError
from lftj.io.files import COMPRESSIONS, KNOWN, FormatError, told_format
from lftj.io.lines import BOM
from lftj.io.text import TextError, check_delimiter
from lftj.values.codes import Schema, decode_array
from lftj.values.faults import shown, with_article
from lftj.values.gate import to_arrow
from lftj.values.symbols import SymbolTable

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 1 << 16
_NUMERIC = frozenset("0123456789+-.einf")


class UnwritableTextError(DataError):
    """A symbol that the chosen text format has no way to write."""


class UnwritableFileError(DataError, OSError):
    """A target that cannot be written: no such folder, no permission, no space."""

    __str__ = DataError.__str__


def write(
    schema: Schema,
    columns: Sequence[NDArray[np.int64]],
    symbols: SymbolTable,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    delimiter: str | None = None,
    headers: bool = False,
    rfc4180: bool | None = None,
    compress: bool = False,
    format: str | None = None,
    rows: int | None = None,
) -> None:
    """Write a relation to a path, in the format its extension tells, or as text to a binary stream (which stays open).

    `format` ("text", "parquet", "arrow") overrides the extension; `compress=True` gzips text whatever the name. `rows`
    is needed for arity 0.
    """
    count = len(columns[0]) if columns else rows
    assert count is not None, "with arity 0 the number of rows has to be said"
    if not isinstance(target, str | os.PathLike):
        _write_text(
            schema,
            columns,
            symbols,
            target,
            "\t" if delimiter is None else delimiter,
            headers,
            rfc4180,
            count,
            "the stream",
        )
        return
    path = Path(target).expanduser()
    told, told_delimiter, compression = told_format(path)
    chosen = format or told or ("text" if delimiter is not None else "")
    if chosen not in ("text", "parquet", "arrow"):
        raise FormatError(
            f"format={format!r} is unknown" if format else f"the name {path.name!r} tells no format",
            where=str(path),
            why="formats are text, parquet and arrow" if format else f"known are {KNOWN}",
            remedy="give another format=" if format else "rename the target, or give format= or delimiter=",
        )
    if chosen != "text":
        _check_binary(schema, path, chosen, delimiter, headers, rfc4180, compress or compression is not None)
        with _replacing(path) as stream:
            _write_binary(schema, columns, symbols, stream, chosen)
        return
    delimiter = delimiter if delimiter is not None else (told_delimiter or "\t")
    with _replacing(path) as stream, _compressing(stream, "gzip" if compress else compression) as sink:
        _write_text(schema, columns, symbols, sink, delimiter, headers, rfc4180, count, str(path))


# --- text -------------------------------------------------------------------------------------------------------------


def _write_text(
    schema: Schema,
    columns: Sequence[NDArray[np.int64]],
    symbols: SymbolTable,
    sink: Any,
    delimiter: str,
    headers: bool,
    rfc4180: bool | None,
    rows: int,
    target: str,
) -> None:
    quoting = delimiter == "," if rfc4180 is None else rfc4180
    check_delimiter(delimiter, quoting, target)
    if set(delimiter) & _NUMERIC and set(schema.types) - {"symbol"}:
        raise TextError(
            f"{delimiter!r} cannot be a delimiter of numbers",
            where=target,
            why="numbers are written with the same characters",
            remedy="give another delimiter=",
        )
    start = b""
    if headers and schema.arity:
        import pyarrow as pa

        names = [
            _symbol_texts(pa.array([name]), delimiter, quoting, name, schema, target)[0].as_py()
            for name in schema.names
        ]
        start = (delimiter.join(names) + "\n").encode()
    first = True
    for lo in range(0, rows, CHUNK_ROWS):
        hi = min(rows, lo + CHUNK_ROWS)
        chunk = start + _lines(
            schema, [codes[lo:hi] for codes in columns], symbols, delimiter, quoting, hi - lo, target
        )
        # A reader takes a BOM at the start of a file for a mark; a text that begins with one needs the mark before it.
        sink.write(BOM + chunk if first and chunk.startswith(BOM) else chunk)
        start, first = b"", False
    if start:
        sink.write(start)


def _lines(
    schema: Schema,
    columns: Sequence[NDArray[np.int64]],
    symbols: SymbolTable,
    delimiter: str,
    quoting: bool,
    rows: int,
    target: str,
) -> bytes:
    """The text of some rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not schema.arity:
        return b"()\n" * rows
    texts = [
        _symbol_texts(symbols.decode(codes), delimiter, quoting, column.name, schema, target)
        if column.type == "symbol"
        else pc.cast(pa.array(decode_array(codes, column.type)), pa.large_string())
        for column, codes in zip(schema.columns, columns, strict=True)
    ]
    large = [pa.scalar(text, pa.large_string()) for text in (delimiter, "", "\n")]
    joined = pc.binary_join_element_wise(*texts, large[0]) if len(texts) > 1 else texts[0]
    lines = pc.binary_join_element_wise(joined, large[1], large[2])  # line + "\n" + ""
    offsets = np.frombuffer(lines.buffers()[1], np.int64)
    data: bytes = lines.buffers()[2].slice(int(offsets[lines.offset])).to_pybytes()
    return data[: int(offsets[lines.offset + len(lines)] - offsets[lines.offset])]


def _symbol_texts(texts: pa.Array, delimiter: str, quoting: bool, column: str, schema: Schema, target: str) -> pa.Array:
    """Texts as they stand in the file: quoted where they must be; refused where they cannot be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = texts.cast(pa.large_string())
    special = pc.match_substring(texts, delimiter)
    for length in range(1, len(delimiter)):  # ":" before "::" would be cut one character early
        special = pc.or_(special, pc.ends_with(texts, delimiter[:length]))
    for mark in ("\n", "\r", '"') if quoting else ("\n", "\r"):
        special = pc.or_(special, pc.match_substring(texts, mark))
    if not pc.any(special).as_py():
        return texts
    if not quoting:
        text = texts.filter(special)[0].as_py()
        raise UnwritableTextError(
            f"column `{column}` of `{schema.name}`: {shown(text)} holds the delimiter {delimiter!r} or a line end",
            where=target,
            why="without quotes no reader could tell it from two fields or rows",
            remedy="write with rfc4180=True, or to .parquet",
        )
    quote = pa.scalar('"', pa.large_string())
    nothing = pa.scalar("", pa.large_string())
    quoted = pc.binary_join_element_wise(quote, pc.replace_substring(texts, '"', '""'), quote, nothing)
    return pc.if_else(special, quoted, texts)


# --- binary -----------------------------------------------------------------------------------------------------------


def _check_binary(
    schema: Schema, path: Path, format: str, delimiter: str | None, headers: bool, rfc4180: bool | None, compress: bool
) -> None:
    given = {
        "delimiter": delimiter is not None,
        "headers": headers,
        "rfc4180": rfc4180 is not None,
        "compress": compress,
    }
    for option in (name for name, is_given in given.items() if is_given):
        raise FormatError(
            f"{option}= does not apply to {with_article(format)} file",
            where=str(path),
            why=f"{with_article(format)} file is written in one form",
            remedy=f"leave {option}= out",
        )
    if not schema.arity:
        raise FormatError(
            f"{with_article(format)} file holds no rows without columns",
            where=str(path),
            why="its rows are the values of its columns",
            remedy="write a relation of arity 0 as text",
        )


def _write_binary(
    schema: Schema, columns: Sequence[NDArray[np.int64]], symbols: SymbolTable, stream: IO[bytes], format: str
) -> None:
    import pyarrow.ipc as ipc
    import pyarrow.parquet as parquet

    empty = to_arrow(schema, [codes[:0] for codes in columns], symbols)
    opened = (
        parquet.ParquetWriter(stream, empty.schema, write_page_checksum=True)
        if format == "parquet"
        else ipc.new_file(stream, empty.schema)
    )
    with opened as writer:
        for lo in range(0, len(columns[0]), CHUNK_ROWS * 16):
            writer.write_table(to_arrow(schema, [codes[lo : lo + CHUNK_ROWS * 16] for codes in columns], symbols))


# --- files ------------------------------------------------------------------------------------------------------------


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes that of `path` when the block ends well, and vanishes otherwise."""
    path = path.resolve()
    direct = path.exists() and not path.is_file() and not path.is_dir()
    beside = path if direct else path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as stream:
            yield stream
        if not direct:
            os.replace(beside, path)
    except OSError as error:
        if isinstance(error, DataError):
            raise
        why = (
            f"the folder {str(path.parent)!r} does not exist"
            if not path.parent.is_dir()
            else (error.strerror or str(error))
        )
        raise UnwritableFileError(
            "the file cannot be written", where=str(path), why=why, remedy="check the folder and its permissions"
        ) from error
    finally:
        if not direct:
            beside.unlink(missing_ok=True)


@contextmanager
def _compressing(stream: IO[bytes], compression: str | None) -> Iterator[Any]:
    import pyarrow as pa

    assert compression is None or compression in COMPRESSIONS.values()
    if compression is None:
        yield stream
        return
    with pa.CompressedOutputStream(pa.PythonFile(stream, mode="w"), compression) as sink:
        yield sink
        sink.flush()
