r"""Change files: rows to insert, erase and upsert, in transactions, as text that is read line by line.

    # a comment                      lines that begin with # are skipped
    +edge 1 2                        insert the row (1, 2) of `edge`
    -name 3 "Ann Lee"                erase a row; a value with spaces is quoted, with the escapes of rule text
    =price anvil 3                   of a functional predicate: the key has this value now, whatever it had
                                     a blank line commits what was collected; so does the end of the file
    +ready                           the row of a relation without columns
    +sale anvil 2 3                  of a bag: the row (anvil, 2), three times; once without the last number
    +"old sale" anvil 2              a relation whose name has a space, as names of SQL may, is quoted, too

Values are separated by spaces or tabs and read as files are (`lftj.io.fields`), typed by the declaration. A value is
a bare word, taken as it is, or quoted; the bare word `null` is null in a column that admits it, and `""` are bytes
without any. What changed is written in the same form (`change_line`), so that the deltas of one process are a change
file for another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lftj.errors import DataError, Diagnostic, Span
from lftj.io.fields import text_value
from lftj.io.lines import BOM, is_utf16
from lftj.language.diagnostics import did_you_mean
from lftj.language.notation import ESCAPES_SHOWN, UnknownEscapeError, symbol_text, symbol_value
from lftj.values.faults import Fault, counted, not_utf8, shown
from lftj.values.schema import Schema
from lftj.values.type_table import family_of, from_stored, in_dictionary, is_nullable, type_of
from lftj.values.value_type import Misfit

Row = tuple[object, ...]

INSERT, ERASE, UPSERT = "+", "-", "="
NULL, NOTHING = "null", '""'
_WORD = re.compile(rb'("(?:[^"\\]|\\.)*"(?![^ \t])|[^ \t"][^ \t]*)[ \t]*')


class ChangeFileError(DataError):
    """A line of a change file was refused, and its transaction with it. `span` is the place."""

    def __init__(self, what: str, span: Span, *, why: str = "", remedy: str = "") -> None:
        self.span = span
        super().__init__(what, where=str(span), why=why, remedy=remedy)

    def render(self) -> str:
        """The message, with the line."""
        return Diagnostic(self.what, self.span, why=self.why, remedy=self.remedy).render()


class ChangeRun(NamedTuple):
    """Rows of one relation, all to be inserted (`op` INSERT), all to be erased or all to be upserted."""

    op: str
    relation: str
    rows: list[Row]


class FileTransaction(NamedTuple):
    """One transaction: its runs in the order of the file, and the lines it stands on."""

    runs: list[ChangeRun]
    first_line: int
    last_line: int

    @property
    def size(self) -> int:
        """How many rows it names."""
        return sum(len(run.rows) for run in self.runs)


def transactions(lines: Iterable[bytes], schemas: Mapping[str, Schema], source: str) -> Iterator[FileTransaction]:
    """The transactions of a change file; raises `ChangeFileError` at a bad line, when it is reached.

    Every blank line ends one, which may be empty, so that whoever drives a pipe gets an answer to each.
    """
    runs: list[ChangeRun] = []
    number = first = 0
    for number, line in enumerate(lines, 1):
        first = first or number
        text = line.rstrip(b"\r\n")
        if number == 1:
            if is_utf16(line):
                fault = not_utf8()
                raise ChangeFileError("the file is UTF-16 text", Span(source), why=fault.why, remedy=fault.remedy)
            text = text.removeprefix(BOM)
        if not text.strip(b" \t"):
            yield FileTransaction(runs, first, number)
            runs, first = [], 0
        elif not text.startswith(b"#"):
            try:
                op, relation, row, copies = _change(text, schemas)
            except _Bad as bad:
                raise bad.error(text, source, number, first) from None
            if not runs or runs[-1].op != op or runs[-1].relation != relation:
                runs.append(ChangeRun(op, relation, []))
            runs[-1].rows.extend([row] * copies)
    if runs:
        yield FileTransaction(runs, first, number)


def change_line(op: str, schema: Schema, row: Row) -> str:
    """A row of a relation that was inserted or erased, as a line without its end."""
    words = [_written(value, column.type) for value, column in zip(row, schema.columns, strict=True)]
    return f"{op}{' '.join([_word(schema.name), *words])}"


def _written(value: object, type: str) -> str:
    if value is None:
        return NULL
    if isinstance(value, str):
        return symbol_text(value) if value == NULL and is_nullable(type) else _word(value)
    return type_of(type).text(value) or NOTHING


def _word(text: str) -> str:
    """A text as a bare word if it can be one, else in quotes."""
    bare = text and not text.startswith('"') and all(char.isprintable() and char != " " for char in text)
    return text if bare else symbol_text(text)


class _Bad(Exception):
    """What is wrong with a line, from byte `at` on, `width` bytes long."""

    def __init__(self, at: int, width: int, what: str, why: str, remedy: str) -> None:
        self.at, self.width, self.what, self.why, self.remedy = at, width, what, why, remedy

    def error(self, line: bytes, source: str, number: int, first: int) -> ChangeFileError:
        """The error, placed. The transaction began at line `first`."""
        column = len(line[: self.at].decode(errors="replace")) + 1
        end = column + max(1, len(line[self.at : self.at + self.width].decode(errors="replace")))
        lines = f"line {number}" if first == number else f"lines {first} to {number}"
        dropped = f"nothing of its transaction ({lines}) was applied"
        span = Span(source, number, column, number, end, line.decode(errors="replace"))
        return ChangeFileError(
            self.what, span, why=f"{self.why}; {dropped}" if self.why else dropped, remedy=self.remedy
        )


def _change(line: bytes, schemas: Mapping[str, Schema]) -> tuple[str, str, Row, int]:
    """The sign, the relation, the row, and how often it comes or goes."""
    op = chr(line[0])
    if op not in (INSERT, ERASE, UPSERT):
        word = _WORD.match(line)
        raise _Bad(
            0,
            word.end(1) if word else 1,
            "a change begins with `+`, `-` or `=`",
            "the sign says what to do with the row",
            "write `+edge 1 2` to insert a row, `-edge 1 2` to erase one, `=price anvil 3` to give a key another"
            " value, `# ...` for a comment",
        )
    if not line[1:2].strip():
        raise _Bad(
            0,
            1,
            f"no relation is named after `{op}`",
            "the row is one of a relation",
            f"write `{op}edge 1 2`, without a space after `{op}`",
        )
    words = _words(line)
    at, end = words[0]
    name = _name(line[at:end])
    if name not in schemas:
        remedy = did_you_mean(name, schemas, "declare it with `.decl`")
        raise _Bad(at, end - at, f"there is no relation `{name}`", "no rule or declaration names it", remedy)
    schema = schemas[name]
    if op == UPSERT and not schema.has_key:
        raise _Bad(
            at,
            end - at,
            f"`{name}` is not a functional predicate, so none of its columns is a key",
            f"it is declared as {schema}",
            f"erase a row with `-{name}`, insert one with `+{name}`",
        )
    values, copies = words[1:], 1
    if op != UPSERT:
        if schema.bag and len(values) == schema.arity:
            copies = _copies(line, *values.pop(), schema)
        schema = schema.given
    if len(values) != schema.arity:
        many = len(values) > schema.arity
        place, stop = (values[schema.arity][0], len(line)) if many else (len(line), len(line) + 1)
        raise _Bad(
            place,
            stop - place,
            f"{counted(len(values), 'value')} for `{name}`, which takes {schema.arity}",
            f"it is declared as {schema}",
            "quote values that hold spaces"
            if many and any(in_dictionary(type) or family_of(type) == "timestamp" for type in schema.types)
            else "give each column one value",
        )
    return (
        op,
        name,
        tuple(_value(line, *place, c.name, c.type, name) for place, c in zip(values, schema.columns, strict=True)),
        copies,
    )


def _name(word: bytes) -> str:
    """The relation that a word names: tables of SQL may have names with spaces, which are quoted as values are."""
    name = _unquoted(word, "symbol") if word.startswith(b'"') else word
    return name if isinstance(name, str) else word.decode(errors="replace")


def _copies(line: bytes, at: int, end: int, schema: Schema) -> int:
    """The number at the end of a line about a bag."""
    column = schema.columns[-1]
    copies = _value(line, at, end, column.name, column.type, schema.name)
    if not isinstance(copies, int) or copies < 1:
        raise _Bad(
            at,
            end - at,
            f"{copies} copies of a row of `{schema.name}`",
            f"it is declared as {schema}, and its last column says how often a row comes or goes",
            "give a number from 1, or leave it out for one copy",
        )
    return copies


def _words(line: bytes) -> list[tuple[int, int]]:
    """Where the words after the sign begin and end."""
    words = []
    at = 1
    while at < len(line):
        found = _WORD.match(line, at)
        if found is None:
            raise _Bad(
                at,
                len(line) - at,
                "the quoted text does not end as it should",
                'it ends with `"`, before a space or the end of the line',
                'close it with `"`, and write a quote inside it as `\\"`',
            )
        words.append(found.span(1))
        at = found.end()
    return words


def _value(line: bytes, at: int, end: int, column: str, type: str, relation: str) -> object:
    field = line[at:end]
    if field == NULL.encode() and is_nullable(type):
        return None
    if field == NOTHING.encode() and family_of(type) == "bytes":
        return b""
    value = _unquoted(field, type) if field.startswith(b'"') else text_value(field, type)
    if isinstance(value, Fault):
        text = shown(field.decode(errors="backslashreplace"))
        raise _Bad(at, end - at, f"column `{column}` of `{relation}`: {text} {value.reason}", value.why, value.remedy)
    return from_stored(value, type)


def _unquoted(literal: bytes, type: str) -> int | str | Fault:
    """As `text_value`, of a field in quotes."""
    try:
        text = str(type_of("symbol").read(symbol_value(literal.decode())))
        return text if family_of(type) == "symbol" else text_value(text.encode(), type)
    except UnicodeDecodeError:
        return not_utf8()
    except UnknownEscapeError as error:
        return Fault(f"holds the unknown escape `{error}`", "", ESCAPES_SHOWN)
    except Misfit as misfit:
        return misfit.fault
