r"""Text files: CSV, TSV, Souffle's facts, of any delimiter.

A file is *laid out* from its first lines (header or not, how many fields, which column is which), then *read fast*:
pyarrow cuts the fields, and each column converts in bulk. If anything at all is odd (a ragged row, text that does not
convert, an unclosed quote, invalid UTF-8, a blank line), the fast reading is thrown away and the file is *read
carefully*, record by record (`lftj.io.lines`), so that every bad row is known with its line. Both readings agree on
every file that the fast one accepts.

What text means:

    delimiter   .csv comma; .tsv .txt .facts tab; `delimiter=` overrides; longer than one byte it is read carefully
    quoting     RFC 4180 where the delimiter is a comma; else quotes are data, as in Souffle; `quoting=` overrides
    header      the first line is one if the declared column names are among its fields, in any order (with positions in
                `columns=`: if the picked fields are the declared names), and refused if some of them are; `header=`
                overrides; names in `columns=` need one; after header=True fields match by name if the declared names
                are among them, by position if none is
    values      see `lftj.io.fields`; a BOM at the start of the file is not text
    blank line  with one column a row like any other (the empty symbol), with more a ragged row; an empty file: no rows
    arity 0     every line is ()

Traps of pyarrow.csv that this avoids: it pads a blank line with empty fields, takes an unclosed quote at the end of the
file for a value and "NA" for null; see also `_Guarded`. Columns are read as bytes or text, so only the cutting of
fields is its business.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lftj.errors import DataError
from lftj.io.fields import bulk_part, text_part
from lftj.io.file import File
from lftj.io.lines import HEAD_BYTES, Record, records
from lftj.io.pick import Columns, ColumnsError, listed
from lftj.io.pick import named as are_named
from lftj.io.read_ahead import LetGo, in_blocks
from lftj.io.read_options import ReadOptions
from lftj.io.staging import ColumnPart, Finding, Staging
from lftj.values.faults import Fault, counted, shown
from lftj.values.schema import Schema
from lftj.values.type_table import family_of, in_dictionary, is_nullable

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 4 << 20  # of text per pyarrow batch: 1, 4 and 16 MB are equally quick, and 4 MB keeps few strings alive
CHUNK_ROWS = 50_000  # of the careful reader
_PEEKED = 100


class TextError(DataError):
    """An option of a text file, or the file as a whole, that cannot be read."""


class TextLayout(NamedTuple):
    """How a text file is cut: `width` fields per row, of which `positions` are the columns of the relation."""

    delimiter: bytes
    quoting: bool
    header: bool
    width: int
    positions: list[int]


def read_text(file: File, staging: Staging, options: ReadOptions) -> None:
    """Read one text file into `staging`."""
    with file.reading():
        if not staging.schema.arity:
            _read_units(file, staging)
            return
        layout = laid_out(file, staging, options)
        if layout is not None:
            read_rows(file, layout, staging)


def read_rows(file: File, layout: TextLayout, staging: Staging) -> None:
    """Read the rows of a text file that is laid out."""
    batches = _read_fast(file, layout, staging.schema.types)
    if batches is None:
        _read_carefully(file, layout, staging)
        return
    start = 0
    for rows, parts in batches:
        staging.add(file.name, parts, _Lines(file, layout, start, rows), in_text=True)
        start += rows


class _Lines(Sequence[int]):
    """The lines of `rows` rows of a file after the first `start`, which the fast reader does not know.

    All these rows are good, so few ask for a line: the file is read for it.
    """

    def __init__(self, file: File, layout: TextLayout, start: int, rows: int) -> None:
        self._file, self._layout, self._start, self._rows = file, layout, start, rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, row: Any) -> Any:
        line, before = 0, self._start + row + int(self._layout.header)
        with self._file.reading(), self._file.open() as stream:
            for record in islice(records(stream, self._layout.delimiter, self._layout.quoting), before + 1):
                line = record.line
        return self._file.lines_before + line


# --- layout -----------------------------------------------------------------------------------------------------------


def check_delimiter(delimiter: object, quoting: bool, source: str) -> None:
    """Refuse a delimiter that no file can be cut by."""
    if not isinstance(delimiter, str) or not delimiter or set(delimiter) & set('\r\n"' if quoting else "\r\n"):
        raise TextError(
            f"{delimiter!r} cannot be a delimiter",
            where=source,
            why="a delimiter stands between two fields of one line, and cannot be what ends a line or quotes a field",
            remedy="give a character or a text without line ends" + (" and quotes" if quoting else ""),
        )


def laid_out(file: File, staging: Staging, options: ReadOptions) -> TextLayout | None:
    """The layout of a file, from its first records; None if it is empty."""
    relation, columns, header = staging.schema, options.columns, options.header
    quoting = file.delimiter == "," if options.quoting is None else options.quoting
    check_delimiter(file.delimiter, quoting, file.name)
    delimiter = file.delimiter.encode()
    with file.open() as stream:
        file.check_text(stream.read(HEAD_BYTES))
    with file.open() as stream:
        peeked = [record for record, _ in zip(records(stream, delimiter, quoting), range(_PEEKED), strict=False)]
    if not peeked:
        return None
    if peeked[0].fields is None and (header or columns is not None):
        raise TextError(
            "the first line opens a quote that is never closed",
            where=f"{file.name}:1",
            why="all that follows would be one field of the first line",
            remedy="close the quote, or read with quoting=False",
        )
    first = [_decoded(field) for field in peeked[0].fields or ()]
    named = columns is not None and any(isinstance(wanted, str) for wanted in columns.values())
    if named and header is False:
        raise ColumnsError(
            "columns= picks by name, but header=False says that there are no names",
            where=file.name,
            why="names are looked up in the header",
            remedy="give positions (from 0)",
        )
    if header is None:
        header = named or _looks_like_header(first, relation, columns, file.name)
    if header:
        return TextLayout(delimiter, quoting, True, len(first), staging.pick(columns, first, len(first), file.name))
    widths = {1 if record.text == b"" else len(record.fields or ()) for record in peeked}
    if columns is None and (len(widths) > 1 or first == [""] or peeked[0].fields is None):
        return TextLayout(delimiter, quoting, False, relation.arity, list(range(relation.arity)))
    if columns is None and len(first) < relation.arity:
        raise ColumnsError(
            f"the lines have {counted(len(first), 'field')}, {relation} takes {relation.arity}",
            where=f"{file.name}:1",
            why=f"the delimiter is {file.delimiter!r}, the first line {shown(_decoded(peeked[0].text))}",
            remedy="give the right delimiter= or declare fewer columns",
        )
    positions = staging.pick(columns, None, len(first), file.name)
    return TextLayout(delimiter, quoting, False, len(first), positions)


def _looks_like_header(first: Sequence[str], relation: Schema, columns: Columns | None, source: str) -> bool:
    names = relation.names
    if columns is None:
        looks = are_named(relation, first) or sorted(first) == sorted(names)
        found = [name for name in names if name in first]
        if not looks and relation.declared and found and not _may_be_row(relation, first):
            missing = [name for name in names if first.count(name) != 1]
            # A name that several columns have picks none of them.
            picks = [field if first.count(field) == 1 else at for at, field in enumerate(first)]
            raise ColumnsError(
                f"the first line names {listed(found)}, but not {listed(missing)} once",
                where=f"{source}:1",
                why=f"it may be a header that does not fit {relation}, or a row",
                remedy="if it is a row, say header=False; else say which column is which, as in "
                f"columns={dict(zip(names, picks, strict=False))}",
            )
    else:
        picks = [columns[name] for name in names]
        looks = all(
            isinstance(at, int) and 0 <= at < len(first) and first[at] == name
            for at, name in zip(picks, names, strict=True)
        )
    if looks and not relation.declared:
        raise ColumnsError(
            f"the first line may be a header or a row of {relation}",
            where=f"{source}:1",
            why=f"`{relation.name}` is not declared: its columns have the names of a rule's variables",
            remedy="say header=True or header=False, or declare it",
        )
    return looks


def _may_be_row(relation: Schema, first: Sequence[str]) -> bool:
    """Whether a line that holds names of columns holds them only as texts, and none in the column of that name."""
    if len(first) != relation.arity:
        return False
    named = [(field, c) for field, c in zip(first, relation.columns, strict=True) if field in relation.names]
    return all(c.type.removesuffix("?") == "symbol" and field != c.name for field, c in named)


# --- fast -------------------------------------------------------------------------------------------------------------


class _Guarded(io.RawIOBase):
    r"""A stream with guards against what pyarrow's reader gets wrong without a word.

    An unclosed quote: one more row, `last`, stands at the end; such a quote swallows it, and is noticed by that.
    A block that ends between \r and \n (arrow #51368 loses the \n inside quotes): the \r waits for the next block.
    A NUL byte (arrow #50481: special characters near it are overlooked): the stream ends there and is marked `odd`.
    """

    def __init__(self, stream: pa.NativeFile, last: bytes) -> None:
        self._stream, self._last, self._held, self._end = stream, last, b"", b"\n"
        self.odd = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        more: bytes = self._stream.read(size - len(self._held))
        block = self._held + more
        if b"\0" in block:
            self.odd = True
            return b""
        self._held = b""
        if more and block.endswith(b"\r"):
            block, self._held = block[:-1], b"\r"
            if not block:
                return self.read(size)
        if block:
            self._end = block[-1:]
            return block
        last, self._last = self._last, b""
        return last if not last or self._end in b"\r\n" else b"\n" + last


def _read_fast(file: File, layout: TextLayout, types: Sequence[str]) -> list[tuple[int, list[ColumnPart]]] | None:
    """The whole file as (rows, parts), or None if anything about it needs the careful reader."""
    import pyarrow as pa
    import pyarrow.csv as csv

    if len(layout.delimiter) != 1:
        return None
    # Several columns may take one field: it is read as text if all of these are texts, else as bytes.
    others = {str(p) for p, type in zip(layout.positions, types, strict=True) if family_of(type) != "symbol"}
    texts = {str(p) for p in layout.positions} - others
    wanted = list(dict.fromkeys(str(p) for p in layout.positions))
    read = csv.ReadOptions(
        use_threads=False,
        block_size=BLOCK_BYTES,
        column_names=[str(i) for i in range(layout.width)],
        skip_rows_after_names=int(layout.header),
    )
    parse = csv.ParseOptions(
        delimiter=layout.delimiter.decode(),
        quote_char='"' if layout.quoting else False,
        double_quote=layout.quoting,
        newlines_in_values=layout.quoting,
        ignore_empty_lines=False,
    )
    convert = csv.ConvertOptions(
        column_types={name: pa.string() if name in texts else pa.binary() for name in wanted},
        include_columns=wanted,
        strings_can_be_null=False,
        quoted_strings_can_be_null=False,
    )
    last = layout.delimiter.join([b"0"] * layout.width) + b"\n" if layout.quoting else b""
    done: list[tuple[int, list[ColumnPart]]] = []
    with file.open() as stream:
        guarded = _Guarded(stream, last)
        let_go = LetGo(guarded)
        try:
            # The reader is dropped with the frame of this call.
            whole, held = _all_but_last(csv.open_csv(in_blocks(guarded), read, parse, convert), layout, types, done)
        except pa.ArrowInvalid:
            whole, held = False, None
        whole = whole and not guarded.odd
        del guarded
        let_go.wait()
    if not whole:
        return None
    if layout.quoting:
        if held is None or any(column[-1].as_buffer().to_pybytes() != b"0" for column in held.columns):
            return None
        held = held.slice(0, held.num_rows - 1)
    return done if held is None or _converted(held, layout, types, done) else None


def _all_but_last(
    batches: Iterable[pa.RecordBatch],
    layout: TextLayout,
    types: Sequence[str],
    done: list[tuple[int, list[ColumnPart]]],
) -> tuple[bool, pa.RecordBatch | None]:
    """(whether all batches but the last were converted, the last that has rows). Raises `ArrowInvalid`."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is not None and not _converted(held, layout, types, done):
            return False, None
        held = batch
    return True, held


def _converted(
    batch: pa.RecordBatch, layout: TextLayout, types: Sequence[str], done: list[tuple[int, list[ColumnPart]]]
) -> bool:
    """Convert one batch; False if some value does not."""
    parts = []
    for position, type in zip(layout.positions, types, strict=True):
        column = batch.column(str(position))
        part = bulk_part(column, type)
        if part is None:
            return False
        parts.append(part)
    if layout.width > 1 and all(_may_be_empty(type) for type in types) and _any_row_empty(batch):
        return False
    done.append((batch.num_rows, parts))
    return True


def _may_be_empty(type: str) -> bool:
    """Whether an empty field reads as a value of the type."""
    return is_nullable(type) or in_dictionary(type)


def _any_row_empty(batch: pa.RecordBatch) -> bool:
    """Whether some row has nothing but empty texts: it may be a blank line, which pyarrow pads."""
    import pyarrow.compute as pc

    empty = np.ones(batch.num_rows, bool)
    for column in batch.columns:
        empty &= pc.equal(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return bool(empty.any())


# --- careful ----------------------------------------------------------------------------------------------------------


def _read_carefully(file: File, layout: TextLayout, staging: Staging) -> None:
    """Read record by record; every bad row is told with its line."""
    places: list[int] = []
    rows: list[list[bytes]] = []
    misshapen: list[tuple[int, Finding]] = []

    def flush() -> None:
        fields = list(zip(*rows, strict=True)) if rows else [()] * layout.width
        parts = [text_part(fields[p], type) for p, type in zip(layout.positions, staging.schema.types, strict=True)]
        staging.add(file.name, parts, places.copy(), in_text=True, misshapen=misshapen)
        for held in (places, rows, misshapen):
            held.clear()

    with file.open() as stream:
        for index, record in enumerate(records(stream, layout.delimiter, layout.quoting)):
            if layout.header and index == 0:
                continue
            line = file.lines_before + record.line
            if record.fields is not None and len(record.fields) == layout.width:
                places.append(line)
                rows.append(record.fields)
            else:
                misshapen.append((line, _shape_finding(record, layout)))
            if len(rows) + len(misshapen) >= CHUNK_ROWS:
                flush()
    flush()


def _shape_finding(record: Record, layout: TextLayout) -> Finding:
    text = _decoded(record.text)
    due = f"{counted(layout.width, 'field')} {'is' if layout.width == 1 else 'are'}"
    if record.fields is None:
        text = text.splitlines()[0]  # the rest of the file is inside the quote
        fault = Fault(
            "opens a quote that is never closed",
            "inside quotes, line ends are data",
            "close the quote, or read with quoting=False",
        )
    elif not record.text:
        return Finding(
            text, "the line", Fault(f"is blank where {due} due", "a blank line is not a row", "delete the line")
        )
    else:
        why = f"the delimiter is {layout.delimiter.decode()!r}"
        fault = Fault(f"has {counted(len(record.fields), 'field')} where {due} due", why, "correct the line")
    return Finding(text, shown(text), fault)


def _read_units(file: File, staging: Staging) -> None:
    """Arity 0: every line is ()."""
    rows = 0
    misshapen = []
    with file.open() as stream:
        for record in records(stream, b"\t", False):
            if record.text == b"()":
                rows += 1
            else:
                text = _decoded(record.text)
                fault = Fault(
                    "is not ()",
                    f"`{staging.schema.name}` has no columns; its only row is ()",
                    "write () or delete the line",
                )
                misshapen.append((record.line, Finding(text, shown(text), fault)))
    staging.add(file.name, [], range(rows), in_text=True, misshapen=misshapen)


def _decoded(text: bytes) -> str:
    """Text for a message, whatever its bytes are."""
    return text.decode(errors="backslashreplace")
