r"""JSON: one array of rows (.json), or a row per line (.ndjson, .jsonl); a row is an object, by name, or an array.

    [{"src": 1, "dst": 2},      {"src": 1, "dst": 2}        [1, 2]
     {"src": 2, "dst": 3}]      {"src": 2, "dst": 3}        [2, 3]

Values are those of Python's reader: integers of any size, exactly; 1.0 is a float and no number; `Infinity` is read and
written, and a number beyond the largest float does not fit into one. Values of types that JSON does not have (dates,
times, decimals, uuids, bytes) are texts, written and read as those of a file of lines are; a decimal may also be a
number, which is taken digit by digit.

A line that is not JSON is a bad row, with its line; blank lines are none. In an array rows count from 0, and one that
does not end is no file to read. An object that has a column twice is a bad row. Rows are written as objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import MAX_EMAX, Decimal, InvalidOperation
from itertools import chain, islice
from math import isinf
from typing import IO, Any

from lftj.io.content import Content
from lftj.io.convert import list_part
from lftj.io.fields import text_value
from lftj.io.file import File, UnreadableFileError
from lftj.io.lines import BOM, lines
from lftj.io.read_options import ReadOptions
from lftj.io.row_forms import RowReader
from lftj.io.staging import ColumnPart, Finding, Staging
from lftj.values import faults
from lftj.values.faults import Fault, shown
from lftj.values.gate import to_rows
from lftj.values.type_table import family_of, from_stored, type_of, without_null
from lftj.values.value_type import ValueType

CHUNK_ROWS = 50_000
_PEEKED = 100
# The types whose values JSON has; all others are written as texts.
JSON_FAMILIES = ("number", "unsigned", "float", "symbol", "bool")
_BRACKETS = (b"{}", b"[]")
# The end of a name in an object, or what looks so in a text.
_NAME = re.compile(rb'"[ \t\r\n]*:')


def read_ndjson(file: File, staging: Staging, options: ReadOptions) -> None:
    """Read one file of a row per line."""
    reader = RowReader(staging, options.columns, file.name, in_text=True, part=_part)
    values = _JsonReader(staging, options)
    with file.reading(), file.open() as stream:
        first = file.lines_before + 1
        numbered = enumerate(lines(stream), first)
        while some := list(islice(numbered, CHUNK_ROWS)):
            if some[0][0] == first:
                file.check_text(b"".join(line for _, line in some[:_PEEKED]))
            stripped = [(number, line.strip()) for number, line in some]
            kept = [(number, line) for number, line in stripped if line]
            rows = _together([line for _, line in kept], values)
            if rows is not None:
                reader.add([number for number, _ in kept], rows)
                continue
            places, rows, misshapen = [], [], []
            for number, line in kept:
                row = _row(line, values)
                if isinstance(row, Finding):
                    misshapen.append((number, row))
                else:
                    places.append(number)
                    rows.append(row)
            reader.add(places, rows, misshapen)


def _together(texts: list[bytes], values: _JsonReader) -> list[Any] | None:
    """The rows of all lines, read as one array, which is thrice as quick; None where a line may be none, or several."""
    if not all(text[:1] + text[-1:] in _BRACKETS for text in texts):
        return None
    try:
        # No text goes on in the next line: a line end within one is not JSON.
        rows: list[Any] = values.of(b"[" + b",\n".join(texts) + b"]")
    except (ValueError, RecursionError):
        return None
    # `[1], [2]` on one line, and an array over two lines within a row, make up for each other.
    held = (row.values() if type(row) is dict else row for row in rows if type(row) in (dict, list))
    nested = any(type(value) in (dict, list) for value in chain.from_iterable(held))
    return rows if len(rows) == len(texts) and not nested and not values.twice else None


def _row(text: bytes, values: _JsonReader) -> Any:
    """The row of a line, or what is wrong with it."""
    try:
        row = values.of(text)
        if (fault := values.fault(row)) is None:
            return row
    except UnicodeDecodeError:
        fault = faults.not_utf8()
    except (ValueError, RecursionError) as error:
        fault = Fault(f"is not JSON: {_first(error)}", "every line is a row: an object or an array", "correct the line")
    decoded = text.decode(errors="backslashreplace")
    return Finding(decoded, shown(decoded), fault)


def _first(error: BaseException) -> str:
    """What the reader of JSON says, with the place in the line."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return str(error).partition("\n")[0]


def read_json(file: File, staging: Staging, options: ReadOptions) -> None:
    """Read one file that is an array of rows."""
    with file.reading(), file.open() as stream:
        text: bytes = stream.read()
    file.check_text(text)
    values = _JsonReader(staging, options)
    try:
        rows = values.of(text.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        place = f"line {error.lineno}, column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
        why = f"{place}{getattr(error, 'msg', str(error))}"
        raise _unreadable(file, "the file is not JSON", why) from None
    if not isinstance(rows, list):
        raise _unreadable(
            file, "the file is not an array of rows", f"it holds {_JSON_KINDS.get(type(rows), 'a value')}"
        )
    reader = RowReader(staging, options.columns, file.name, part=_part)
    for lo in range(0, len(rows), CHUNK_ROWS):
        chunk, places = rows[lo : lo + CHUNK_ROWS], [*range(lo, min(lo + CHUNK_ROWS, len(rows)))]
        misshapen = []
        if values.twice:
            found = [(i, row, values.fault(row)) for i, row in zip(places, chunk, strict=True)]
            misshapen = [(i, Finding(shown(row), shown(row), fault)) for i, row, fault in found if fault]
            places, chunk = [i for i, _, fault in found if not fault], [row for _, row, fault in found if not fault]
        reader.add(places, chunk, misshapen)


_JSON_KINDS = {dict: "one object", str: "a text", int: "a number", float: "a number", type(None): "null"}


class _JsonReader:
    """Python's reader, which takes the last one of two values by one name without a word; here `twice` has these.

    `twice`: the objects of the last text that have a column twice, with its name, by their identity. Numbers keep their
    digits where some column is decimal.
    """

    def __init__(self, staging: Staging, options: ReadOptions) -> None:
        exact = any(family_of(type) == "decimal" for type in staging.schema.types)
        self._float = _decimal if exact else _number
        columns = options.columns
        picked = [*(staging.schema.names if columns is None else columns.values())]
        # By a position any may be meant.
        self._names = None if any(isinstance(name, int) for name in picked) else {*picked}
        self.twice: dict[int, tuple[dict[str, Any], str]] = {}

    def of(self, text: bytes) -> Any:
        """The value of a text; raises what Python does if it is no UTF-8, or no JSON."""
        self.twice = {}
        decoded = text.decode()
        made = json.loads(decoded, parse_float=self._float)
        names = sum(len(row) for row in (made if type(made) is list else [made]) if type(row) is dict)
        # Objects that keep fewer names than are written have one twice, or are in one another. Colons are quickly
        # counted, and are in texts, too: in times.
        if names != text.count(b":") and names != sum(1 for _ in _NAME.finditer(text)):
            made = json.loads(decoded, parse_float=self._float, object_pairs_hook=self._object)
        return made

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs if self._names is None or name in self._names]
            again = next((name for i, name in enumerate(names) if name in names[:i]), None)
            if again is not None:
                self.twice[id(made)] = made, again
        return made

    def fault(self, row: object) -> Fault | None:
        """Why a row of the last text is none that can be read; None if it can."""
        if id(row) not in self.twice:
            return None
        name = self.twice[id(row)][1]
        return Fault(f"has `{name}` twice", "a row has one value by each name", f"give it one `{name}`")


def _number(text: str) -> float | Decimal:
    """A float; of a number beyond the largest one its digits, since `Infinity` is a float of JSON, too."""
    number = float(text)
    return _decimal(text) if isinf(number) else number


def _decimal(text: str) -> Decimal:
    """A number with its digits; where no Decimal has its exponent, with one as far beyond what columns hold."""
    try:
        return Decimal(text)
    except InvalidOperation:
        digits, _, exponent = text.lower().partition("e")
        return Decimal(f"{digits}e{'-' if exponent[0] == '-' else ''}{MAX_EMAX // 2}")


def _part(values: Sequence[object], type: str) -> ColumnPart:
    """The codes of the values of a column, of which some may be texts of values that JSON does not have."""
    family = family_of(type)
    if family not in JSON_FAMILIES:
        read = _read_texts(values, without_null(type))
    elif Decimal in map(_class_of, values):
        read = _read_decimals(values, family)
    else:
        return list_part(values, type)
    part = list_part(read, type)

    def describe(row: int) -> Finding:
        fault, value = read[row], values[row]
        if isinstance(fault, Fault):
            text = str(value) if isinstance(value, Decimal) else shown(value)
            return Finding(text, text, fault)
        assert part.describe is not None, "rows of values of Python are told apart"
        return part.describe(row)

    return part._replace(describe=describe)


def _read_texts(values: Sequence[object], plain: str) -> list[Any]:
    """The values, of the type `plain` where they are texts; a `Fault` where a text writes none."""
    known, read = dict[str, Any](), list(values)
    for row, value in enumerate(read):
        if isinstance(value, str):
            if value not in known:
                stored = text_value(value.encode(errors="surrogatepass"), plain)
                known[value] = stored if isinstance(stored, Fault) else from_stored(stored, plain)
            read[row] = known[value]
    return read


def _read_decimals(values: Sequence[object], family: str) -> list[Any]:
    """The values, floats where they are decimals; a `Fault` where a column of floats is to hold one beyond them."""
    read = list(values)
    for row, value in enumerate(read):
        if isinstance(value, Decimal):
            number = float(value)
            read[row] = faults.float_overflow() if family == "float" and isinf(number) else number
    return read


def _class_of(value: object) -> type:
    return value.__class__


def _unreadable(file: File, what: str, why: str) -> UnreadableFileError:
    return UnreadableFileError(
        what,
        where=file.name,
        why=why,
        remedy='write an array of objects or arrays; name a file with a row per line .ndjson, or give format="ndjson"',
    )


def write_ndjson(content: Content, sink: IO[bytes]) -> None:
    """Write one object per line."""
    for line in _objects(content):
        sink.write(f"{line}\n".encode())


def write_json(content: Content, sink: IO[bytes]) -> None:
    """Write one array of objects, each on a line of its own."""
    sink.write(b"[")
    for i, line in enumerate(_objects(content)):
        sink.write(f"{',' if i else ''}\n{line}".encode())
    sink.write(b"\n]\n")


def _objects(content: Content) -> Iterator[str]:
    names, types = content.schema.names, list(map(type_of, content.schema.types))
    for row in to_rows(content.schema, content.columns, content.symbols, rows=content.rows):
        yield json.dumps(dict(zip(names, json_values(row, types), strict=True)), ensure_ascii=False)


def json_values(row: Iterable[Any], types: Sequence[ValueType]) -> list[Any]:
    """The values of a row as JSON has them: texts where it has none of the type."""
    return [
        value if value is None or kind.family in JSON_FAMILIES else kind.text(value)
        for value, kind in zip(row, types, strict=True)
    ]
