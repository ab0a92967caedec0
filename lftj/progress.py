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
from contextlib import AbstractContextManager, contextmanager, nullcontext

PATIENCE = 2.0
_LIVE_EVERY, _PLAIN_EVERY = 0.1, 2.0
_NOT_SHOWN = nullcontext()
# Columns of the line; what it ends with where there is room.
WIDE, HINT = 79, " (Ctrl-C stops)"


class Progress:
    """The line of one database. Steps may nest; the innermost is shown."""

    def __init__(self) -> None:
        wish = os.environ.get("LFTJ_PROGRESS", "")
        self._live = wish != "0" and sys.stderr is not None and sys.stderr.isatty()
        self._shown = self._live or wish == "1"
        self._steps: list[str] = []
        self._detail = ""
        self._since: float | None = None  # when the outermost step began
        self._drawn = False
        self._lock = threading.Lock()
        self._painter: threading.Thread | None = None

    def step(self, what: str) -> AbstractContextManager[None]:
        """Work called `what` goes on inside the block."""
        return self._step(what) if self._shown else _NOT_SHOWN

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        outermost = not self._steps
        self._steps.append(what)
        self._detail = ""
        if outermost:
            self._begin()
        try:
            yield
        finally:
            self._steps.pop()
            if outermost:
                self.close()

    def rows(self, what: Callable[[], str]) -> Callable[..., None] | None:
        """A function to be told how many rows, or other units, `what()` has by now; None if nobody is to see it."""
        if not self._shown:
            return None
        named = what()

        def told(count: int, unit: str = "rows", stage: str = "") -> None:
            parts = [named, stage, f"{count:,} {unit}" if count else ""]
            self._detail = " " + ", ".join(part for part in parts if part)

        return told

    def _begin(self) -> None:
        with self._lock:
            self._since = time.monotonic()
            if self._painter is None:
                # One thread for many steps: a stream of commits begins thousands a second.
                self._painter = threading.Thread(target=self._paint, daemon=True)
                self._painter.start()

    def _paint(self) -> None:
        """Draw while a step goes on for longer than `PATIENCE`; end when there has been none for as long."""
        idle_since = None
        last = 0.0
        while True:
            time.sleep(_LIVE_EVERY)
            with self._lock:
                now = time.monotonic()
                if self._since is None:
                    idle_since = now if idle_since is None else idle_since
                    if now - idle_since > PATIENCE:
                        self._painter = None
                        return
                    continue
                idle_since = None
                if now - self._since < PATIENCE or (not self._live and now - last < _PLAIN_EVERY):
                    continue
                last = now
                step = self._steps[-1:] or [""]  # the work may end at any moment
                text = f"lftj: {step[0]}{self._detail}, {now - self._since:.0f} s"
                text += "" if self._live and len(text + HINT) > WIDE else HINT
                sys.stderr.write(f"\r{text[:WIDE]:<{WIDE}}" if self._live else f"{text}\n")
                sys.stderr.flush()
                self._drawn = True

    def close(self) -> None:
        """Take the line away, before anything else is written."""
        with self._lock:
            self._since = None
            if self._drawn and self._live:
                sys.stderr.write("\r" + " " * WIDE + "\r")
                sys.stderr.flush()
            self._drawn = False
