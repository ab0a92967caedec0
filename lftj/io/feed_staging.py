"""The staging of a feed: its rows can be placed, and what is beside those of the relation is read as what it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lftj.io.rejects import placed
from lftj.io.staging import ColumnPart, Finding, Staging
from lftj.values.schema import Schema


class FeedStaging(Staging):
    """The rows of a piece of a feed; one that is bad is refused, and with it the piece."""

    def __init__(self, schema: Schema, *, extra: str) -> None:
        super().__init__(schema, quarantine=False, extra=extra, apart=False)
        self._places: list[tuple[str, Sequence[int] | NDArray[np.int64], bool]] = []

    def add(
        self,
        source: str,
        parts: Sequence[ColumnPart],
        places: Sequence[int] | NDArray[np.int64],
        *,
        in_text: bool = False,
        misshapen: Iterable[tuple[int, Finding]] = (),
    ) -> None:
        """As `Staging.add`; remembers the places."""
        super().add(source, parts, places, in_text=in_text, misshapen=misshapen)
        self._places.append((source, places, in_text))

    def where(self, row: int) -> str:
        """The place of a row, all of which were good."""
        for source, places, in_text in self._places:
            if row < len(places):
                return placed(source, int(places[row]), in_text)
            row -= len(places)
        raise IndexError(row)
