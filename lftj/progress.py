"""The progress line: what long work is doing, on stderr, after two seconds.

Quick work prints nothing. After `PATIENCE` seconds in one step a line appears and is rewritten in place ten times a second at most; it disappears when the step ends.
It is shown where stderr is a terminal, or where `LFTJ_PROGRESS=1` asks for it (then as lines of their own, once a second).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0


class Progress:
    """The line of one database. Steps may nest; the innermost is shown."""

    def __init__(self) -> None:
        wish = os.environ.get("LFTJ_PROGRESS", "")
        self._live = wish != "0" and sys.stderr is not None and sys.stderr.isatty()
        self._plain = wish == "1" and not self._live
        self._steps: list[str] = []
        self._started = 0.0
        self._last = 0.0
        self._drawn = False

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Work called `what` goes on inside the block."""
        if not self._steps:
            self._started = time.monotonic()
        self._steps.append(what)
        try:
            yield
        finally:
            self._steps.pop()
            if not self._steps:
                self.close()

    def rows(self, what: str) -> Callable[[int], None]:
        """A function to be told how many rows `what` has by now."""

        def told(rows: int) -> None:
            self._draw(f"{what}, {rows:,} rows" if rows else what)

        return told

    def _draw(self, what: str) -> None:
        now = time.monotonic()
        if not (self._live or self._plain) or now - self._started < PATIENCE or now - self._last < (0.1 if self._live else 1.0):
            return
        self._last = now
        step = f"{self._steps[-1]} " if self._steps else ""
        text = f"lftj: {step}{what}, {now - self._started:.0f} s (Ctrl-C stops)"
        sys.stderr.write(f"\r{text:<79}"[:80] if self._live else text + "\n")
        sys.stderr.flush()
        self._drawn = self._live

    def close(self) -> None:
        """Take the line away."""
        if self._drawn:
            sys.stderr.write("\r" + " " * 79 + "\r")
            sys.stderr.flush()
            self._drawn = False
