"""The report of a commit about a head: how it was derived and why so, and what that took.

Statistics are rarely read, and their words would take as long as the join of one changed row: raw values are kept and
formatted on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class RuleWork(NamedTuple):
    """What one rule took: the number of its clause, steps, records removed and added, surgeries, seconds.

    `abandoned`: steps of walks that were abandoned for a better key order.
    """

    clause: int
    steps: int
    removed: int
    added: int
    surgeries: int
    seconds: float
    abandoned: int = 0


class Causes(NamedTuple):
    """Why a head was derived: its `rules` changed, or its `facts`, or the relations `names` that it reads, or nothing.

    `moved`: rules changed that it was derived together with, or is from now on.
    """

    rules: bool
    moved: bool
    facts: bool
    names: list[str]

    def __str__(self) -> str:
        if self.rules:
            return "its rules changed"
        if self.moved:
            return "the rules of its recursion changed"
        named = [f"`{name}`" for name in self.names]
        if not self.facts and not named:
            return "a commit was made"
        return f"{', '.join(['its facts', *named] if self.facts else named)} changed"


class CostComparison(NamedTuple):
    """The nanoseconds that `following` so many changed `rows`, and evaluating `anew`, are estimated to take.

    `lost`: those for filling the maps once more that evaluating would give up (0: they do not count beside the others).
    """

    rows: int
    following: float
    anew: float
    lost: float = 0.0

    def __str__(self) -> str:
        anew = f"{_milliseconds(self.anew)} anew"
        if self.lost:
            anew += f" and {_milliseconds(self.lost)} for its maps after that"
        return f"{_milliseconds(self.following)} for {amount(self.rows, 'changed row')}, {anew}"


class Withheld(NamedTuple):
    """Why maps could not be made for a head that triggers keep, or (`made`) not follow: because of the rows."""

    why: str
    made: bool = False

    def __str__(self) -> str:
        return self.why if self.made else f"its maps cannot be made: {self.why}"


class RowCount(NamedTuple):
    """The number of changed rows; `but`: why another strategy that was asked for is not used (empty: none was)."""

    rows: int
    but: str

    def __str__(self) -> str:
        return f"{amount(self.rows, 'row')} changed{f' ({self.but})' if self.but else ''}"


# Why a strategy was chosen: in words, or as the numbers that say it.
Reason = str | CostComparison | RowCount | Withheld


class HeadReport(NamedTuple):
    """How a head was derived: the `strategy`, its `causes` and the `reason` for the strategy, and the cost.

    `more`: figures that only some strategies have.
    """

    strategy: str
    causes: Causes
    reason: Reason
    steps: int
    removed: int
    added: int
    seconds: float
    more: Mapping[str, Any] = {}  # nobody writes to it

    @property
    def why(self) -> str:
        """Why the head was derived, and why so."""
        return f"{self.causes}; {self.reason}"

    def stats(self) -> dict[str, Any]:
        """The statistics of a head, as `Transaction.stats` describes them."""
        return {
            "strategy": self.strategy,
            "why": self.why,
            "steps": self.steps,
            "removed": self.removed,
            "added": self.added,
            "seconds": self.seconds,
            **self.more,
        }


def _milliseconds(nanoseconds: float) -> str:
    return f"about {nanoseconds / 1e6:,.1f} ms" if nanoseconds >= 50_000 else "under 0.1 ms"


def amount(count: int, noun: str) -> str:
    """The count with its noun: 1 row, 2 rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(bytes: int) -> str:
    """Bytes for people."""
    return f"{bytes / 1e6:,.1f} MB" if bytes >= 50_000 else f"{bytes / 1e3:,.1f} kB"
