"""The progress line: what long work is doing, on stderr or in the notebook, after two seconds.

Quick work prints nothing. After `PATIENCE` seconds of work a line appears; it is rewritten in place while the work goes
on and disappears when the work ends. Where it is shown, the first that holds:

    `LFTJ_PROGRESS=0`     nowhere
    stderr is a terminal  on its last line, as wide as the terminal is at that moment
    a Jupyter kernel      in the output of the cell
    `LFTJ_PROGRESS=1`     on stderr, as lines of their own, one every two seconds
    elsewhere             nowhere

The line is drawn by a thread, so that it moves while a file is cut, rows are sorted or kernels compile as well: the
work itself only says what it is about (`step`) and how far it has come (`rows`).
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, TextIO

from scantree._compiling import compiling

PATIENCE = 2.0
# Seconds between two draws: a message to a notebook travels to the browser and is stored there for a while.
_LIVE_EVERY, _NOTEBOOK_EVERY, _PLAIN_EVERY = 0.1, 0.5, 2.0
_NOT_SHOWN = nullcontext()


class Line(Protocol):
    """Where the line is shown."""

    def every(self) -> float:
        """Seconds between two draws."""

    def draw(self, text: str, end: str) -> None:
        """Show `text` and `end`; where they do not fit, the text is cut."""

    def clear(self) -> None:
        """Take the line away, if it was drawn."""


class TerminalLine:
    """The line of a terminal that stderr is."""

    HINT = " (Ctrl-C stops)"

    def __init__(self) -> None:
        self._width = 0  # of what stands there

    def every(self) -> float:
        """Often enough to look alive."""
        return _LIVE_EVERY

    def draw(self, text: str, end: str) -> None:
        """The text is cut at the terminal's width; the hint is left out where there is no room for it."""
        room = _columns() - 1  # a line that fills the last column wraps in some terminals
        whole = text + end + self.HINT
        if len(whole) > room:
            whole = (text[: max(0, room - len(end))] + end)[:room]
        self._rewrite(whole)

    def clear(self) -> None:
        """Blank it and go back to its start."""
        if self._width:
            self._rewrite("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _rewrite(self, text: str) -> None:
        columns = _columns()
        if self._width < columns:
            sys.stderr.write(f"\r{text:<{self._width}}")
        else:
            # The terminal has become narrower, and what stood on one line now takes several.
            above = (self._width - 1) // columns
            sys.stderr.write((f"\x1b[{above}A" if above else "") + f"\r\x1b[J{text}")
        sys.stderr.flush()
        self._width = len(text)


class PlainLines:
    """Lines on stderr, which may be a file: none is taken away."""

    def every(self) -> float:
        """Seldom: every line stays."""
        return _PLAIN_EVERY

    def draw(self, text: str, end: str) -> None:
        """A line of any length."""
        sys.stderr.write(f"{text}{end}{TerminalLine.HINT}\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave what was written."""


class NotebookLine:
    """An output of the cell that is running, empty when the work ends; one serves all work of a cell.

    IPython is there when a kernel runs, and rewrites an output by itself; rich would need ipywidgets for it.
    """

    HINT = " (interrupt the kernel to stop)"

    def __init__(self, shell: Any) -> None:
        self._shell, self._cell = shell, -1
        self._handle: Any = None
        self._drawn = False

    def every(self) -> float:
        """Less often than on a terminal."""
        return _NOTEBOOK_EVERY

    def draw(self, text: str, end: str) -> None:
        """The browser wraps what is too long."""
        self._show(text + end + self.HINT)
        self._drawn = True

    def clear(self) -> None:
        """Empty the output: taking it away would take the cell's other outputs as well."""
        if self._drawn:
            self._show("")
            self._drawn = False

    def _show(self, text: str) -> None:
        from IPython.display import display

        from lftj import html

        shown = {"text/plain": text, "text/html": html.text(text) if text else ""}
        if self._handle is None or (text and self._cell != self._shell.execution_count):
            self._cell = self._shell.execution_count
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def line_here() -> Line | None:
    """Where this process shows a progress line; None: nowhere."""
    wish = os.environ.get("LFTJ_PROGRESS", "")
    if wish == "0":
        return None
    if sys.stderr is not None and sys.stderr.isatty():
        return TerminalLine()
    # In a kernel IPython has been imported; elsewhere it need not be there.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return NotebookLine(shell)
    return PlainLines() if wish == "1" else None


def _columns() -> int:
    """The width of the terminal, which may have been resized: of stderr's, as stdout may be a file."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:  # a stream without a descriptor
        columns = 0
    return columns or shutil.get_terminal_size().columns


class Progress:
    """The line of one database. Steps may nest; the innermost is shown."""

    def __init__(self) -> None:
        self.line = line_here()
        self._steps: list[str] = []
        self._detail = ""
        self._since: float | None = None  # when the outermost step began
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._painter: threading.Thread | None = None

    def step(self, what: str) -> AbstractContextManager[None]:
        """Work called `what` goes on inside the block."""
        return _NOT_SHOWN if self.line is None else self._step(what, self.line)

    @contextmanager
    def _step(self, what: str, line: Line) -> Iterator[None]:
        outermost = not self._steps
        self._steps.append(what)
        self._detail = ""
        if outermost:
            self._begin(line)
        try:
            yield
        finally:
            self._steps.pop()
            if outermost:
                self.close()

    def rows(self, what: Callable[[], str]) -> Callable[..., None] | None:
        """A function to be told how many rows, or other units, `what()` has by now; None if nobody is to see it."""
        if self.line is None:
            return None
        named = what()

        def told(count: int, unit: str = "rows", stage: str = "") -> None:
            parts = [named, stage, f"{count:,} {unit}" if count else ""]
            self._detail = " " + ", ".join(part for part in parts if part)

        return told

    def _alone(self) -> threading.Lock:
        """The lock; of a child that was forked, which has none of its parent's threads, its own."""
        if self._pid != os.getpid():
            self._lock, self._pid, self._painter = threading.Lock(), os.getpid(), None
        return self._lock

    def _begin(self, line: Line) -> None:
        with self._alone():
            self._since = time.monotonic()
            if self._painter is None:
                # One thread for many steps: a stream of commits begins thousands a second.
                painter = threading.Thread(target=self._paint, args=(line,), daemon=True)
                try:
                    painter.start()
                except RuntimeError as error:
                    # Ctrl-C within the wait of `start` unlocks the lock that it waits for, which is what is raised.
                    if isinstance(error.__context__, KeyboardInterrupt):
                        raise error.__context__ from None
                    raise
                finally:
                    self._painter = painter if painter.is_alive() else None

    def _paint(self, line: Line) -> None:
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
                if now - self._since < PATIENCE or now - last < line.every():
                    continue
                last = now
                step = self._steps[-1:] or [""]  # the work may end at any moment
                compiling.lines.add(id(self))
                line.draw(f"lftj: {step[0]}{self._detail}{compiling.note()}", f", {now - self._since:.0f} s")

    def close(self) -> None:
        """Take the line away, before anything else is written."""
        with self._alone():
            self._since = None
            if self.line is not None:
                self.line.clear()
            compiling.lines.discard(id(self))


def wants_colour(stream: TextIO) -> bool:
    """Whether colours make sense on a stream: a terminal, and neither NO_COLOR nor TERM=dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
