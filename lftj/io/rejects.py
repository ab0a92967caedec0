"""Rejects: the rows of a source that could not be loaded, each with its place and the reason.

A row is *bad* when it has the wrong number of fields or one of its values has a `Fault`. Under `on_error="raise"` the
first bad row of a source becomes a `BadRowsError` that also says how many there are; under "quarantine" every bad row
is kept here, once, with the first fault found in it, and the good rows load. A row is therefore either loaded or
reported, never dropped silently.

`line` is the line of a text file, counted from 1, the header included; for a source without lines (Arrow, DataFrames,
numpy, tuples) it is the row, counted from 0 as Python counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lftj.errors import DataError
from lftj.values.faults import counted

if TYPE_CHECKING:
    import pyarrow as pa

# What `BadRowsError.rejects` keeps of a source; the count is always complete.
KEPT_ON_RAISE = 20
SHOWN_IN_REPR = 5


def placed(source: str, line: int, in_text: bool) -> str:
    """The place of a row as a message names it: file:line, or source and row."""
    return f"{source}:{line}" if in_text else f"{source}, row {line} (from 0)"


@dataclass(frozen=True, slots=True)
class Reject:
    """One bad row. `column` is "" where the row as a whole is at fault; `text` is that of the value, or of the row."""

    source: str
    line: int
    column: str
    text: str
    reason: str
    why: str = ""
    remedy: str = ""
    in_text: bool = True

    @property
    def where(self) -> str:
        """The place as a message names it."""
        return placed(self.source, self.line, self.in_text)

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


class Rejects:
    """The bad rows of a load, in source order. A sequence of `Reject`; `arrow()` gives a table."""

    def __init__(self) -> None:
        self._rejects: list[Reject] = []

    def append(self, reject: Reject) -> None:
        """Add one bad row."""
        self._rejects.append(reject)

    def __len__(self) -> int:
        return len(self._rejects)

    def __iter__(self) -> Iterator[Reject]:
        return iter(self._rejects)

    def __getitem__(self, index: int) -> Reject:
        return self._rejects[index]

    def arrow(self) -> pa.Table:
        """A table with the columns source, line, column, text, reason."""
        import pyarrow as pa

        fields = {
            "source": pa.string(),
            "line": pa.int64(),
            "column": pa.string(),
            "text": pa.string(),
            "reason": pa.string(),
        }
        return pa.table(
            {name: pa.array([getattr(r, name) for r in self._rejects], type) for name, type in fields.items()}
        )

    def __repr__(self) -> str:
        if not self._rejects:
            return "no bad rows"
        lines = [counted(len(self), "bad row")] + [f"  {reject}" for reject in self._rejects[:SHOWN_IN_REPR]]
        if len(self) > SHOWN_IN_REPR:
            lines.append(f"  ... and {len(self) - SHOWN_IN_REPR} more")
        return "\n".join(lines)


class BadRowsError(DataError):
    """Rows of a source were refused and nothing was loaded. `count` bad rows; `rejects` holds the first of them.

    `apart`: whether they could have been kept apart.
    """

    def __init__(self, rejects: Rejects, count: int, *, apart: bool = True) -> None:
        self.rejects, self.count = rejects, count
        first = rejects[0]
        opening = f"{counted(count, 'bad row')}: " if count == 1 else f"{counted(count, 'bad row')}; the first: "
        remedy = first.remedy + (', or keep the good rows with on_error="quarantine"' if apart else "")
        super().__init__(opening + first.reason, where=first.where, why=first.why, remedy=remedy)

    def moved(self, source: str, rows: int) -> None:
        """Say that the source is a part of another, after so many of its rows."""
        moved = Rejects()
        for reject in self.rejects:
            moved.append(replace(reject, source=source, line=reject.line + rows))
        self.rejects = moved
        self.placed(moved[0].where)
