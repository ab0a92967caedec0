"""What a commit tells of a head: how it was derived and why so, and what that took.

Few ask, and after a transaction of one row its words would take as long as its join: so it is kept as it was found, and
said in words when somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Causes(NamedTuple):
    """What a head was derived for: its `rules`, its `facts`, or the relations that it reads, have changed.

    `moved`: rules have changed that it was derived together with, or is from now on.
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
        return f"{', '.join(['its facts', *named] if self.facts else named)} changed"


class Weighed(NamedTuple):
    """Following `rows` changed rows, and evaluating anew, are estimated to take so many nanoseconds."""

    rows: int
    following: float
    anew: float

    def __str__(self) -> str:
        return f"{_milliseconds(self.following)} for {_rows(self.rows, 'changed ')}, {_milliseconds(self.anew)} anew"


class Counted(NamedTuple):
    """So many rows changed; `but` a wish for something else could not be granted (empty: there was none)."""

    rows: int
    but: str

    def __str__(self) -> str:
        return f"{_rows(self.rows)} changed{f' ({self.but})' if self.but else ''}"


# Why a strategy was chosen: in words, or as counts that say it.
Reason = str | Weighed | Counted


class Told(NamedTuple):
    """`strategy` as in strategy.py, of which `more` may tell more · `causes` and `reason`, together why it was."""

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


def _rows(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}{'row' if count == 1 else 'rows'}"
