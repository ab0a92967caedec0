"""Staging: where the rows of a load wait until all of it is known to be good.

A reader hands over *batches*: one `ColumnPart` per column of the schema, with the places of the rows. Numeric parts are
codes already; parts of a symbol column stay texts. Bad rows are taken out on the way in and added to `Rejects`. When
every source is read, `finish` joins the batches and interns the texts of all columns in one step: it is the only place
where a load touches the symbol table, so a load that raises has changed nothing.

    add(batch) ... end_of_source() ... add(batch) ... end_of_source() -> finish(symbols) -> Loaded

Degenerate cases: no batch at all gives empty columns; with arity 0 a batch is just a number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lftj.io.pick import Columns, check_named, listed, pick
from lftj.io.rejects import KEPT_ON_RAISE, BadRowsError, Reject, Rejects
from lftj.values.arrow_arrays import flags
from lftj.values.codes import as_codes
from lftj.values.faults import Fault, not_spelled
from lftj.values.schema import Column, Schema
from lftj.values.symbols import StagedTexts, SymbolTable, coded
from lftj.values.type_table import type_of

NO_ROWS: NDArray[np.int64] = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The outcome of a read: code arrays in schema order; `rejects` is None unless bad rows were to be quarantined.

    `source_rows` counts the rows of the source, bad ones included; `rows` the good ones, which for arity 0 no column
    tells. `note`: what of the source was passed over, in words; "" if nothing was.
    """

    columns: list[NDArray[np.int64]]
    rejects: Rejects | None
    source_rows: int
    note: str = ""

    @property
    def rows(self) -> int:
        """The number of rows loaded (duplicates counted)."""
        return self.source_rows - (0 if self.rejects is None else len(self.rejects))


class Finding(NamedTuple):
    """What is wrong with a value or row: its text as the user wrote it, the same as messages show it, the fault."""

    text: str
    shown: str
    fault: Fault


class ColumnPart(NamedTuple):
    """One column of one batch. The codes of the rows `bad` (ascending) mean nothing; `describe` tells why for one."""

    codes: NDArray[np.int64] | StagedTexts
    bad: NDArray[np.int64] = NO_ROWS
    describe: Callable[[int], Finding] | None = None


class Staging:
    """The rows of one load, before it is committed. `extra`: what is to be done with columns that nothing picks.

    `only`: the columns whose texts somebody reads; those of others are not interned, and their codes mean nothing.
    `quarantine`: bad rows are kept apart · `apart`: they may be, if the user asks for it.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        quarantine: bool,
        extra: str = "note",
        only: frozenset[int] | None = None,
        apart: bool = True,
    ) -> None:
        self.schema, self._only = schema, only
        self.source_rows = 0
        self._extra = extra
        self._passed_over: dict[str, str] = {}
        self._quarantine, self._apart = quarantine, apart
        self._columns: list[list[NDArray[np.int64] | StagedTexts]] = [[] for _ in schema.columns]
        self._rejects = Rejects()
        self._bad_rows = 0

    def pick(
        self,
        columns: Columns | None,
        names: Sequence[str] | None,
        width: int,
        source: str,
        *,
        by_name: bool = False,
    ) -> list[int]:
        """The position in a source of each column of the relation (`lftj.io.pick`); remembers what is passed over.

        `by_name`: the columns of the source have no order, so that names alone count.
        """
        if by_name:
            check_named(self.schema, columns, names or (), source)
        positions = pick(self.schema, columns, names, width, source, extra=self._extra)
        if columns is None and names is not None and width > len(positions):
            self._passed_over[source] = listed([name for at, name in enumerate(names) if at not in positions])
        return positions

    def check(self, at: int, check: Callable[[Column], None]) -> None:
        """Check that a source has what column `at` of the relation takes, before any rows of it are read."""
        check(self.schema.columns[at])

    def part(self, at: int, make: Callable[[Column], ColumnPart]) -> ColumnPart:
        """What `make` makes of the values of column `at` in a batch."""
        return make(self.schema.columns[at])

    def add(
        self,
        source: str,
        parts: Sequence[ColumnPart],
        places: Sequence[int] | NDArray[np.int64],
        *,
        in_text: bool = False,
        misshapen: Iterable[tuple[int, Finding]] = (),
    ) -> None:
        """Take one batch: row i of every part is at line or row `places[i]`. `misshapen` rows are in no part."""
        rejects = [
            (
                place,
                Reject(source, place, "", found.text, f"{found.shown} {found.fault.reason}", *found.fault[1:], in_text),
            )
            for place, found in misshapen
        ]
        self.source_rows += len(places) + len(rejects)
        self._bad_rows += len(rejects)
        good: NDArray[np.bool_] | None = None
        if any(len(part.bad) for part in parts):
            good = np.ones(len(places), bool)
            for column, part in zip(self.schema.columns, parts, strict=True):
                fresh = part.bad[good[part.bad]]
                good[part.bad] = False
                self._bad_rows += len(fresh)
                wanted = fresh if self._quarantine else fresh[:KEPT_ON_RAISE]
                for row in wanted.tolist():
                    assert part.describe is not None, "a part with bad rows says what is wrong with them"
                    found, place = part.describe(row), int(places[row])
                    reason = f"column `{column.name}` of `{self.schema.name}`: {found.shown} {found.fault.reason}"
                    remedy = found.fault.remedy
                    if in_text and place == 1 and _may_be_a_header(found, column):
                        remedy += "; if line 1 is a header, say header=True"
                    reject = Reject(source, place, column.name, found.text, reason, found.fault.why, remedy, in_text)
                    rejects.append((place, reject))
        for _, reject in sorted(rejects, key=lambda pair: pair[0]):
            if self._quarantine or len(self._rejects) < KEPT_ON_RAISE:
                self._rejects.append(reject)
        for held, part in zip(self._columns, parts, strict=True):
            codes = part.codes if good is None else _filtered(part.codes, good)
            held.append(codes.reduced() if held and isinstance(codes, StagedTexts) else codes)

    def end_of_source(self) -> None:
        """Raise if the source that ends here had bad rows and they are not to be quarantined."""
        if self._bad_rows and not self._quarantine:
            raise BadRowsError(self._rejects, self._bad_rows, apart=self._apart)

    def reads(self, column: int) -> bool:
        """Whether somebody reads the texts of a column."""
        return self._only is None or column in self._only

    def finish(self, symbols: SymbolTable) -> Loaded:
        """Intern the texts that somebody reads, and give the columns."""
        if self._only is not None:
            for i, held in enumerate(self._columns):
                if i not in self._only:
                    held[:] = [np.zeros(c.rows, np.int64) if isinstance(c, StagedTexts) else c for c in held]
        staged = [chunk for held in self._columns for chunk in held if isinstance(chunk, StagedTexts)]
        interned = iter(coded(staged, symbols.intern_array))
        columns = [
            _joined([next(interned) if isinstance(chunk, StagedTexts) else chunk for chunk in held])
            for held in self._columns
        ]
        return Loaded(columns, self._rejects if self._quarantine else None, self.source_rows, self._note())

    def _note(self) -> str:
        if not self._passed_over:
            return ""
        source, names = next(iter(self._passed_over.items()))
        others = len(self._passed_over) - 1
        return (
            f"{source}: columns passed over: {names}"
            + (f" (and so in {others} more)" if others else "")
            + f"\n  why: {self.schema} has no such columns, and all of its own are there by name"
            + '\n  do: pick the columns with columns=, or refuse such sources with extra="error"'
        )


def _may_be_a_header(found: Finding, column: Column) -> bool:
    return column.type != "symbol" and found.fault == not_spelled(type_of(column.type)) and found.text.isidentifier()


def _filtered(codes: NDArray[np.int64] | StagedTexts, good: NDArray[np.bool_]) -> NDArray[np.int64] | StagedTexts:
    """The good rows. Texts that only bad rows used go as well: what was not loaded is not interned."""
    if not isinstance(codes, StagedTexts):
        return codes[good]
    missing = None if codes.missing is None else codes.missing[good]
    if codes.indices is None:
        return StagedTexts(None, codes.texts.filter(flags(good)), missing)
    indices = codes.indices[good]
    used = np.zeros(len(codes.texts), bool)
    used[indices] = True
    return StagedTexts((np.cumsum(used) - 1)[indices], codes.texts.filter(flags(used)), missing)


def _joined(chunks: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    if len(chunks) == 1:
        return as_codes(chunks[0])
    return np.concatenate(chunks) if chunks else np.empty(0, np.int64)
