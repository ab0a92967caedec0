"""The staging of a feed: its rows can be placed, and what is beside those of the relation is read as what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lftj.io.convert import ColumnTypeError
from lftj.io.rejects import placed
from lftj.io.staging import ColumnPart, Finding, Staging
from lftj.values.schema import Column, Schema
from lftj.values.symbols import StagedTexts


class FeedStaging(Staging):
    """The rows of a piece of a feed; one that is bad is refused, and with it the piece.

    `kinds`: of columns that may hold one of several types, by their places, which: the first that fits the values that
    come first is that of the column in `schema` from then on.
    """

    def __init__(self, schema: Schema, kinds: Mapping[int, Sequence[str]], *, extra: str) -> None:
        super().__init__(schema, quarantine=False, extra=extra, apart=False)
        self._kinds = dict(kinds)
        self._places: list[tuple[str, Sequence[int] | NDArray[np.int64], bool]] = []

    def check(self, at: int, check: Callable[[Column], None]) -> None:
        """As `Staging.check`; leaves the types that fit."""
        fitting = []
        for column in self._tried(at):
            with suppress(ColumnTypeError):
                check(column)
                fitting.append(column.type)
        if not fitting:
            super().check(at, check)
        if at in self._kinds:
            self._kinds[at] = fitting

    def part(self, at: int, make: Callable[[Column], ColumnPart]) -> ColumnPart:
        """As `Staging.part`, of the first type that fits, else of that which fits the furthest."""
        if at not in self._kinds:
            return super().part(at, make)
        found, refused = list[tuple[Column, ColumnPart]](), list[ColumnTypeError]()
        for column in self._tried(at):
            try:
                found.append((column, make(column)))
            except ColumnTypeError as error:
                refused.append(error)
            else:
                if not len(found[-1][1].bad):
                    break
        if not found:
            raise refused[0]
        column, part = max(found, key=lambda pair: _reach(pair[1]))
        if _rows(part):
            self._settle(at, column)
        return part

    def _tried(self, at: int) -> list[Column]:
        column = self.schema.columns[at]
        return [replace(column, type=kind) for kind in self._kinds.get(at, (column.type,))]

    def _settle(self, at: int, column: Column) -> None:
        before, after = self.schema.columns[:at], self.schema.columns[at + 1 :]
        self.schema = replace(self.schema, columns=(*before, column, *after))
        self._kinds.pop(at, None)

    def add(
        self,
        source: str,
        parts: Sequence[ColumnPart],
        places: Sequence[int] | NDArray[np.int64],
        *,
        in_text: bool = False,
        misshapen: Iterable[tuple[int, Finding]] = (),
    ) -> None:
        """As `Staging.add`; remembers the places. Text is read as what `schema` says, so that is what it is."""
        if len(places):
            for at in list(self._kinds):
                self._settle(at, self.schema.columns[at])
        super().add(source, parts, places, in_text=in_text, misshapen=misshapen)
        self._places.append((source, places, in_text))

    def where(self, row: int) -> str:
        """The place of a row, all of which were good."""
        for source, places, in_text in self._places:
            if row < len(places):
                return placed(source, int(places[row]), in_text)
            row -= len(places)
        raise IndexError(row)


def _rows(part: ColumnPart) -> int:
    return part.codes.rows if isinstance(part.codes, StagedTexts) else len(part.codes)


def _reach(part: ColumnPart) -> int:
    """The rows before the first that is bad."""
    return int(part.bad[0]) if len(part.bad) else _rows(part)
