r"""Writing text: columns of codes to lines that Souffle, other tools and `read_text.py` read back to the same rows.

One row per line, "\n" ends each. With quoting a text that needs quotes gets them; without, a symbol that holds the
delimiter or a line end is refused, because no reader could tell. Floats are printed with as many digits as it takes to
read the same float back. Arity 0: a line () per row. A symbol relation of one column whose first row is its column's
name reads back only with header=False.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lftj.errors import DataError
from lftj.io.content import CHUNK_ROWS, Content
from lftj.io.lines import BOM
from lftj.io.read_text import TextError, check_delimiter
from lftj.values import arrow_arrays
from lftj.values.faults import shown
from lftj.values.gate import arrow_column
from lftj.values.schema import Column
from lftj.values.type_table import family_of, type_of

if TYPE_CHECKING:
    import pyarrow as pa

_NUMERIC = frozenset("0123456789+-.einf")
# The types whose text Arrow writes as `read_text.py` reads it.
_PLAIN = ("number", "unsigned", "float")


class UnwritableTextError(DataError):
    """A symbol that the chosen text format has no way to write."""


def write_text(content: Content, sink: IO[bytes]) -> None:
    """Write all rows as lines."""
    schema = content.schema
    check_delimiter(content.delimiter, content.quoting, content.target)
    if set(content.delimiter) & _NUMERIC and {family_of(t) for t in schema.types} - {"symbol"}:
        raise TextError(
            f"{content.delimiter!r} cannot be a delimiter of numbers",
            where=content.target,
            why="numbers are written with the same characters",
            remedy="give another delimiter=",
        )
    start = b""
    if content.headers and schema.arity:
        names = [_symbol_texts(arrow_arrays.texts([name]), name, content)[0].as_py() for name in schema.names]
        start = (content.delimiter.join(names) + "\n").encode()
    first = True
    for lo in range(0, content.rows, CHUNK_ROWS):
        hi = min(content.rows, lo + CHUNK_ROWS)
        chunk = start + _lines(content, content.chunk(lo, hi), hi - lo)
        # A reader takes a BOM at the start of a file for a mark; a text that begins with one needs the mark before it.
        sink.write(BOM + chunk if first and chunk.startswith(BOM) else chunk)
        start, first = b"", False
    if start:
        sink.write(start)


def _lines(content: Content, columns: Sequence[NDArray[np.int64]], rows: int) -> bytes:
    """The text of some rows."""
    import pyarrow.compute as pc

    if not content.schema.arity:
        return b"()\n" * rows
    texts = [_texts(codes, column, content) for column, codes in zip(content.schema.columns, columns, strict=True)]
    large = arrow_arrays.texts((content.delimiter, "", "\n"))
    joined = pc.binary_join_element_wise(*texts, large[0]) if len(texts) > 1 else texts[0]
    lines = pc.binary_join_element_wise(joined, large[1], large[2])  # line + "\n" + ""
    offsets = np.frombuffer(lines.buffers()[1], np.int64)
    data: bytes = lines.buffers()[2].slice(int(offsets[lines.offset])).to_pybytes()
    return data[: int(offsets[lines.offset + len(lines)] - offsets[lines.offset])]


def _texts(codes: NDArray[np.int64], column: Column, content: Content) -> pa.Array:
    """The fields of a column; null is an empty field."""
    import pyarrow as pa
    import pyarrow.compute as pc

    made = type_of(column.type)
    if made.family in _PLAIN:
        fields = pc.cast(arrow_column(codes, column.type, content.symbols), pa.large_string())
        return fields.fill_null("") if made.nullable else fields
    if made.family == "symbol":
        fields = arrow_column(codes, column.type, content.symbols)
    else:
        distinct, places = np.unique(codes, return_inverse=True)
        values = content.symbols.values(distinct, column.type)
        shown_values = arrow_arrays.texts(["" if v is None else made.text(v) for v in values])
        missing = np.array([v is None for v in values], bool)[places] if made.nullable else None
        fields = shown_values.take(arrow_arrays.numbers(places, missing))
    if made.nullable:
        if made.in_dictionary and pc.any(pc.equal(pc.binary_length(fields), 0)).as_py():
            raise UnwritableTextError(
                f"column `{column.name}` of `{content.schema.name}`: an empty value cannot be told from null",
                where=content.target,
                why="an empty field of a column with null is null",
                remedy="write to .parquet, or fill in another value",
            )
        fields = fields.fill_null("")
    return _symbol_texts(fields, column.name, content)


def _symbol_texts(texts: pa.Array, column: str, content: Content) -> pa.Array:
    """Texts as they stand in the file: quoted where they must be; refused where they cannot be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    delimiter = content.delimiter
    texts = texts.cast(pa.large_string())
    special = pc.match_substring(texts, delimiter)
    for length in range(1, len(delimiter)):  # ":" before "::" would be cut one character early
        special = pc.or_(special, pc.ends_with(texts, delimiter[:length]))
    for mark in ("\n", "\r", '"') if content.quoting else ("\n", "\r"):
        special = pc.or_(special, pc.match_substring(texts, mark))
    if not pc.any(special).as_py():
        return texts
    if not content.quoting:
        text = texts.filter(special)[0].as_py()
        raise UnwritableTextError(
            f"column `{column}` of `{content.schema.name}`: {shown(text)} holds the delimiter {delimiter!r} "
            "or a line end",
            where=content.target,
            why="without quotes no reader could tell it from two fields or rows",
            remedy="write with rfc4180=True, or to .parquet",
        )
    quote = pa.scalar('"', pa.large_string())
    nothing = pa.scalar("", pa.large_string())
    quoted = pc.binary_join_element_wise(quote, pc.replace_substring(texts, '"', '""'), quote, nothing)
    return pc.if_else(special, quoted, texts)
