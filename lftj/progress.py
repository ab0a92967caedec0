"""The progress line: what long work is doing, on stderr, after two seconds.

Quick work prints nothing. After `PATIENCE` seconds of work a line appears and is rewritten in place ten times a second;
it disappears when the work ends. It is shown where stderr is a terminal, or where `LFTJ_PROGRESS=1` asks for it (then
as lines of their own, one every two seconds); `LFTJ_PROGRESS=0` switches it off.

The line is drawn by a thread, so that it moves while a file is cut, rows are sorted or kernels compile as well: the
work itself only says what it is about (`step`) and how far it has come (`rows`).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0
_LIVE_EVERY, _PLAIN_EVERY = 0.1, 2.0


class Progress:
    """The line of one database. Steps may nest; the innermost is shown."""

    def __init__(self) -> None:
        wish = os.environ.get("LFTJ_PROGRESS", "")
        self._live = wish != "0" and sys.stderr is not None and sys.stderr.isatty()
        self._shown = self._live or wish == "1"
        self._steps: list[str] = []
        self._detail = ""
        self._done = threading.Event()
        self._painter: threading.Thread | None = None

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Work called `what` goes on inside the block."""
        outermost = not self._steps
        self._steps.append(what)
        self._detail = ""
        if outermost and self._shown:
            self._done.clear()
            self._painter = threading.Thread(target=self._paint, args=(time.monotonic(),), daemon=True)
            self._painter.start()
        try:
            yield
        finally:
            self._steps.pop()
            if outermost:
                self.close()

    def rows(self, what: str) -> Callable[[int], None]:
        """A function to be told how many rows `what` has by now."""

        def told(rows: int) -> None:
            self._detail = f" {what}, {rows:,} rows" if rows else f" {what}"

        return told

    def _paint(self, started: float) -> None:
        """Draw until the work is done, then take the line away."""
        if self._done.wait(PATIENCE):
            return
        while True:
            seconds = time.monotonic() - started
            step = self._steps[-1:] or [""]  # the work may end at any moment
            text = f"lftj: {step[0]}{self._detail}, {seconds:.0f} s (Ctrl-C stops)"
            sys.stderr.write(f"\r{text[:79]:<79}" if self._live else f"{text}\n")
            sys.stderr.flush()
            if self._done.wait(_LIVE_EVERY if self._live else _PLAIN_EVERY):
                break
        if self._live:
            sys.stderr.write("\r" + " " * 79 + "\r")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line away, before anything else is written."""
        self._done.set()
        if self._painter is not None:
            self._painter.join()
            self._painter = None
