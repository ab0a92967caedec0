r"""Rows of a text file that comes in pieces, as Arrow tables: the rows that `Database.load` reads in such a file.

    reader = TextRows(Path("bids.csv"), "bid", {"auction": "number", "who": "symbol"})
    reader.table(b"auction,who\n1,ann\n")     two columns, one row
    reader.table(b"2,bob\n")                  the same columns

The readers of lftj/io say what text means, and what of it is refused, with its line. How lines are cut into fields is
found out from the first piece. JSON is cut into values by Arrow, which does so many times as quickly, where there is no
doubt that these are the same (`_quickly`).

A file may have one more column than its rows: `_weight`, how often each is there. Then all of its rows have it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lftj.errors import DataError
from lftj.io.convert import arrow_part
from lftj.io.fields import bulk_part
from lftj.io.file import File
from lftj.io.json_text import JSON_FAMILIES, read_ndjson
from lftj.io.lines import BOM, records
from lftj.io.pick import ColumnsError, listed
from lftj.io.read_ahead import in_memory
from lftj.io.read_options import DEFAULTS
from lftj.io.read_text import TextLayout, laid_out, read_rows, read_text
from lftj.io.staging import Staging
from lftj.streams.weighted import WEIGHT
from lftj.values import arrow_arrays, gate
from lftj.values.schema import Column, Schema
from lftj.values.symbols import StagedTexts, coded
from lftj.values.type_table import family_of, type_of, without_null

if TYPE_CHECKING:
    import pyarrow as pa

# The kinds of text by the ending of a name, with the delimiter of fields; rows of JSON have none.
KINDS = {".ndjson": "", ".jsonl": "", ".csv": ",", ".tsv": "\t"}
_FORMS = {b"{": "objects", b"[": "arrays"}
# Integers from here on may be no floats.
_INEXACT = 2.0**53


class TextRows:
    """Reads the pieces of one file, each of whole lines, in their order. `line`: the first of the next piece."""

    def __init__(self, path: Path, name: str, types: Mapping[str, str]) -> None:
        self._file = File(path, "text", KINDS[path.suffix.lower()], None)
        self._schema = Schema(name, tuple(Column(column, type_) for column, type_ in types.items()))
        self._weighted: Schema | None = None  # the columns with the weight, where the file has it
        if WEIGHT not in types:
            self._weighted = replace(self._schema, columns=(*self._schema.columns, Column(WEIGHT, "number")))
        self._has_weights: bool | None = None  # as far as that is known
        self._layout: TextLayout | None = None
        self._form = b""  # what rows of JSON begin with: of an object, or of an array
        self.line = 1

    @property
    def quoted(self) -> str | None:
        """The delimiter of fields that may be in quotes; None: none may."""
        return "," if self._file.delimiter == "," else None

    def table(self, text: bytes) -> pa.Table:
        """The rows of the next piece, without the BOM that the file may begin with."""
        # The readers take a BOM at the start for a mark; a text that begins with one needs the mark before it.
        content = BOM + text if text.startswith(BOM) else text
        file = replace(self._file, content=content, lines_before=self.line - 1)
        self.line += text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
        if file.delimiter:
            return self._of_lines(file)
        self._check_form(text)
        found = self._quickly(text)
        if found is None:
            if self._weighted is not None:
                self._know_weights(_json_weights(text, self._schema.arity))
            found = self._read(lambda staging: read_ndjson(file, staging, DEFAULTS))
        return found

    def _read(self, read: Callable[[Staging], None]) -> pa.Table:
        """What a reader fills a staging with."""
        schema = self._weighted if self._has_weights and self._weighted is not None else self._schema
        staging, texts = Staging(schema, quarantine=False, apart=False), _Texts()
        try:
            read(staging)
        except ColumnsError as error:
            # Loads are told to pick columns, and circuits have no way to.
            error.remedy = f"let the file have the columns {listed(schema.names)}"
            error.placed(error.where)
            raise
        staging.end_of_source()
        loaded = staging.finish(texts)  # type: ignore[arg-type]
        return gate.to_arrow(schema, loaded.columns, texts, rows=loaded.rows)  # type: ignore[arg-type]

    def _know_weights(self, found: set[bool]) -> None:
        """Take note of whether rows have weights."""
        if len(found | ({self._has_weights} - {None})) > 1:
            raise DataError(
                f"some rows of {self._file.name} have a `{WEIGHT}`, and others have none",
                why="it says how often each row is there",
                remedy="give every row one, or none",
            )
        if found:
            self._has_weights = True in found

    # -- fields -------------------------------------------------------------------------------------------------------

    def _of_lines(self, file: File) -> pa.Table:
        if not self._schema.arity:
            return self._read(lambda staging: read_text(file, staging, DEFAULTS))
        if self._has_weights is None:
            self._has_weights = self._weighted is not None and self._first_has_weight(file)

        def read(staging: Staging) -> None:
            with file.reading():
                if self._layout is None:
                    self._layout = laid_out(file, staging, DEFAULTS)
                if self._layout is not None:
                    read_rows(file, self._layout, staging)
                    # The header is in the first piece.
                    self._layout = self._layout._replace(header=False)

        return self._read(read)

    def _first_has_weight(self, file: File) -> bool:
        """Whether a first line names weights, or has a field for them and names nothing."""
        with file.open() as stream:
            record = next(records(stream, file.delimiter.encode(), self.quoted is not None), None)
        fields = [] if record is None or record.fields is None else record.fields
        first = [field.decode(errors="backslashreplace") for field in fields]
        return WEIGHT in first or (len(first) == self._schema.arity + 1 and not {*first} & {*self._schema.names})

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def _check_form(self, text: bytes) -> None:
        """Refuse a piece whose rows are of another form than those before it; within one the reader does."""
        form = text.lstrip()[:1]
        if form in _FORMS and self._form and form != self._form:
            raise DataError(
                f"rows that are {_FORMS[form]} come after {_FORMS[self._form]}",
                where=self._file.name,
                why="the first row says how all are read",
                remedy="give rows of one kind",
            )
        self._form = self._form or (form if form in _FORMS else b"")

    def _quickly(self, text: bytes) -> pa.Table | None:
        """Rows of JSON as Arrow reads them; None where there is doubt whether Python would, or a row is to be told.

        Arrow takes lines with several objects and objects of several lines, a key that is not there for null, integers
        for floats that they do not equal, numbers beyond the largest float for infinity, and any bytes for texts.
        """
        import pyarrow as pa
        import pyarrow.json as pj

        lines = [line for line in map(bytes.strip, text.splitlines()) if line]
        if not lines or not all(line[:1] + line[-1:] == b"{}" for line in lines) or not _is_utf8(text):
            return None
        wanted = {column.name: _in_json(column.type) for column in self._schema.columns}
        fields = pa.schema([*({WEIGHT: pa.int64()} | wanted).items()])
        options = pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore")
        size = pj.ReadOptions(block_size=len(text), use_threads=False)
        try:
            table = pj.read_json(in_memory(text), read_options=size, parse_options=options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if len(table) != len(lines) or any(table.column(name).null_count for name in wanted):
            return None
        for name, type_ in zip(self._schema.names, self._schema.types, strict=True):
            values = _values(table.column(name).combine_chunks(), type_)
            if values is None:
                return None
            table = table.set_column(table.schema.get_field_index(name), name, values)
        if self._weighted is None:
            return table
        nulls = table.column(WEIGHT).null_count
        if 0 < nulls < len(table):
            return None
        self._know_weights({not nulls})
        return table.drop_columns([WEIGHT]) if nulls else table


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _in_json(type_: str) -> pa.DataType:
    """The Arrow type of what JSON holds for a type: of most a text."""
    import pyarrow as pa

    return type_of(type_).arrow_type() if family_of(type_) in JSON_FAMILIES else pa.string()


def _values(column: pa.Array, type_: str) -> pa.Array | None:
    """The values of a column that Arrow has read; None if it may have read others, or some is none of the type."""
    import pyarrow as pa

    made = type_of(type_)
    if made.family == "symbol":
        return column
    if made.family in JSON_FAMILIES:
        inexact = made.family == "float" and not (np.abs(column.to_numpy()) < _INEXACT).all()
        return None if inexact or len(arrow_part(column, type_).bad) else column
    part, texts = bulk_part(column.cast(pa.binary()), without_null(type_)), _Texts()
    if part is None:
        return None
    codes = coded([part.codes], texts.intern_array)[0] if isinstance(part.codes, StagedTexts) else part.codes
    if made.nullable and (codes == made.null).any():
        return None
    return gate.arrow_column(codes, type_, texts)  # type: ignore[arg-type]


def _json_weights(text: bytes, arity: int) -> set[bool]:
    """Whether rows of JSON have weights: some do, some do not. A row that is none says nothing."""
    found = set[bool]()
    for line in text.splitlines():
        if WEIGHT.encode() not in line and not line.lstrip().startswith(b"["):
            found.add(False)
            continue
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            found.add(WEIGHT in row)
        elif isinstance(row, list) and arity <= len(row) <= arity + 1:
            found.add(len(row) > arity)
    return found


class _Texts:
    """The texts of one piece as they come, in place of a symbol table: nothing is interned."""

    def __init__(self) -> None:
        self._texts: pa.Array | None = None

    def intern_array(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        self._texts = texts
        return np.arange(len(texts))

    def texts(self) -> pa.Array:
        return arrow_arrays.texts([]) if self._texts is None else self._texts

    def decode(self, codes: npt.NDArray[np.int64]) -> pa.Array:
        return self.texts().take(arrow_arrays.numbers(codes))
