"""A sliding window over a stream of messages, each a commit, with everything derived from it kept up to date.

A program of the demonstration, over the messages of the last `DAYS` days: a message that arrives is inserted, those
that have become too old are erased, and everything derived follows in the same transaction. Beside it the same commits
are made by a database that evaluates its rules again, for as many as that takes a moment.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

import lftj

DAYS = 30
SECONDS = DAYS * 24 * 3600
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimedCommit:
    """One commit: the message that arrived, how many left, the rows that came and went, the seconds it took."""

    sender: int
    receiver: int
    at: int
    left: int
    came: list[tuple[object, ...]]
    gone: list[tuple[object, ...]]
    seconds: float

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.at, UTC).strftime("%b %d %H:%M:%S")
        signed = [("+", row) for row in self.came] + [("-", row) for row in self.gone]
        shown = " ".join(f"{sign}{','.join(map(str, row))}" for sign, row in signed[:2])
        more = f" and {len(signed) - 2} more" if len(signed) > 2 else ""
        return f"{when}  {self.sender:>4} to {self.receiver:<4}  {shown}{more}"


class Window:
    """`program` over the window of `messages` (rows sender, receiver, time) that ends at message `first`.

    Its `heads` are kept up to date as `maintain` says; commits tell what came to the last of them and went.
    """

    def __init__(self, program: str, messages: Rows, first: int, heads: Sequence[str], *, maintain: str) -> None:
        self.shown = heads[-1]
        self.messages = messages[np.argsort(messages[:, 2], kind="stable")]
        self.next = first
        self.oldest = self._oldest(first - 1)
        self.db = lftj.Database()
        self.db.rules(program, maintain=dict.fromkeys(heads, maintain))
        self.db.load("message", self.messages[self.oldest : first])
        self.db.evaluate()

    def _oldest(self, i: int) -> int:
        """The first message that is in the window when message `i` arrives."""
        return int(np.searchsorted(self.messages[:, 2], self.messages[i, 2] - SECONDS))

    def arrive(self) -> TimedCommit:
        """The next message arrives."""
        i, oldest = self.next, self._oldest(self.next)
        sender, receiver, at = self.messages[i].tolist()
        began = time.perf_counter()
        with self.db.transaction() as tx:
            tx.insert("message", [(sender, receiver, at)])
            if oldest > self.oldest:
                tx.erase("message", self.messages[self.oldest : oldest])
        seconds = time.perf_counter() - began
        left, self.oldest, self.next = oldest - self.oldest, oldest, i + 1
        delta = tx.delta[self.shown]
        return TimedCommit(sender, receiver, at, left, list(delta.inserted), list(delta.erased), seconds)

    def stream(self, count: int) -> Iterator[TimedCommit]:
        """The next `count` messages arrive; on a terminal stderr tells how far it is."""
        live = sys.stderr is not None and sys.stderr.isatty()
        for n in range(count):
            if live and n % 50 == 0:
                sys.stderr.write(f"\r     {n:,} of {count:,} messages ...")
                sys.stderr.flush()
            yield self.arrive()
        if live:
            sys.stderr.write(f"\r{'':40}\r")
            sys.stderr.flush()
