"""Injected failures: a function that raises at one of its calls, before its work or after it.

A sweep makes it fail once for each place that it is called from, the first and the second time of a run: the second
finds the work of the first half done. `make thorough` makes each call fail.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from tests.conftest import ROOT, THOROUGH

TESTS = str(ROOT / "tests")
# Calls from one place that a sweep makes fail.
TIMES = 2


def fails_at(
    patch: pytest.MonkeyPatch, owner: Any, name: str, number: int, error: BaseException, *, after: bool
) -> list[int]:
    """Make call `number` of a function raise, before or after its work."""
    function, calls = getattr(owner, name), [0]

    def failing(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        mine = calls[0] == number  # the function may call itself
        if mine and not after:
            raise error
        result = function(*args, **options)
        if mine:
            raise error
        return result

    patch.setattr(owner, name, failing)
    return calls


class Sweep:
    """Makes a function fail, run after run, at a call that no run before has failed at, until there is none left."""

    def __init__(self, owner: Any, name: str, *, after: bool) -> None:
        self.owner, self.name, self.after = owner, name, after
        self.tried: set[tuple[Any, int]] = set()

    def inject(self, patch: pytest.MonkeyPatch, error: BaseException) -> None:
        """Make the first call that was not tried yet raise `error`, before its work or after it."""
        function, counts, raised = getattr(self.owner, self.name), dict[Any, int](), [False]

        def failing(*args: Any, **options: Any) -> Any:
            place = None if THOROUGH else _place(sys._getframe(1))
            counts[place] = counts.get(place, 0) + 1
            call = place, counts[place]
            mine = not raised[0] and call not in self.tried and (THOROUGH or call[1] <= TIMES)
            if mine:
                self.tried.add(call)
                raised[0] = True
                if not self.after:
                    raise error
            result = function(*args, **options)
            if mine:
                raise error
            return result

        patch.setattr(self.owner, self.name, failing)


def _place(frame: FrameType | None) -> tuple[tuple[str, int], ...]:
    """Where a call comes from: the lines of lftj that are being executed, up to that of the test."""
    lines = []
    while frame is not None and not frame.f_code.co_filename.startswith(TESTS):
        lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)
