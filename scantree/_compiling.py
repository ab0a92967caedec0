"""What is being compiled at this moment, for those who show it: the announcer of `_jit`, and progress lines.

Nothing here needs numba: a progress line is there before anything is compiled.
"""

from __future__ import annotations

import math
import os
import time

# Seconds of compiling after which it is announced, and without compiling that end a pause.
PATIENCE, PAUSE = 1.0, 0.5


class Compiling:
    """Kernels of this process. Those that are compiled one soon after the other are one pause, however short each is.

    `kept`: whether the cache takes them; else every process compiles its own.
    `lines`: progress lines on the screen, by identity. They say it too, and nothing else may be written where they are.
    """

    def __init__(self) -> None:
        self.made, self.depth = 0, 0  # kernels that are compiled; those under way, one for the sake of the other
        self.began = self.ended = -math.inf  # the pause; the last kernel
        self.kept = True
        self.lines: set[int] = set()
        self._spent, self._since = 0.0, 0.0

    def start(self) -> None:
        """A kernel begins."""
        now = time.monotonic()
        if not self.depth:
            self._since = now
            if now - self.ended > PAUSE:
                self.began = now
        self.depth += 1

    def end(self) -> None:
        """It is over."""
        self.depth -= 1
        self.made += 1
        self.ended = time.monotonic()
        if not self.depth:
            self._spent += self.ended - self._since

    def wait(self) -> float:
        """Seconds until the pause is long enough to be announced."""
        return max(0.0, self.began + PATIENCE - time.monotonic())

    def text(self) -> str:
        """What users read: how many kernels, and how long it took, so far in this process."""
        seconds = self._spent + (time.monotonic() - self._since if self.depth else 0.0)
        often = "once on this machine" if self.kept else "in each process (`lftj doctor` says why)"
        return f"compiling kernels, {often}: {self.made} so far, {seconds:.0f} s"

    def note(self) -> str:
        """The part of a progress line that says it; empty if nothing is compiled, or it is not to be said."""
        if not self.depth or self.wait() or is_quiet():
            return ""
        return f", compiling kernels{' once on this machine' if self.kept else ''} ({self.made} so far)"


compiling = Compiling()


def is_quiet() -> bool:
    """Whether the user asked not to hear of compiling."""
    return os.environ.get("LFTJ_QUIET") == "1"
