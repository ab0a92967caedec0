"""Ctrl-C at a given line of some files, wherever Python could raise it."""

from __future__ import annotations

import dis
import sys
from functools import cache
from itertools import dropwhile, islice
from types import CodeType, FrameType
from typing import Any


@cache
def leaves_a_block(code: CodeType, offset: int) -> bool:
    """Whether a block has run to its end here, and its manager's exit is called next.

    Python looks for signals where a function begins, after calls and where a loop goes back, none of which is between
    the two; a trace function that raised here would be the only one that can, and leave a lock locked for ever.
    """
    there = (made for made in dis.get_instructions(code) if made.offset >= offset)
    called = list(islice(dropwhile(lambda made: made.opname == "SWAP", there), 3))
    return all(made.opname == "LOAD_CONST" and made.argval is None for made in called)


class Interrupt:
    """KeyboardInterrupt at the `at`-th line that is run in files at `places`; `done`: whether there was one."""

    def __init__(self, at: int, places: tuple[str, ...]) -> None:
        self.left, self.places, self.done = at, places, False

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(self.places):
            return None
        if event == "line" and not self.done and not leaves_a_block(frame.f_code, frame.f_lasti):
            self.left -= 1
            if self.left < 0:
                self.done = True
                raise KeyboardInterrupt
        return self

    def __enter__(self) -> Interrupt:
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


class InterruptedCall:
    """KeyboardInterrupt at the `at`-th place where Python looks for signals: a function begins, or one of C has ended.

    Other than `Interrupt`, it comes nowhere else; it may come in a `__del__`, where Python prints it and goes on.
    `done`: whether there was one.
    """

    def __init__(self, at: int) -> None:
        self.left, self.done = at, False

    def __call__(self, frame: FrameType, event: str, called: object) -> None:
        own = frame.f_code is InterruptedCall.__exit__.__code__ or called is sys.setprofile
        if event in ("call", "c_return") and not own and not self.done:
            self.left -= 1
            if self.left < 0:
                self.done = True
                raise KeyboardInterrupt

    def __enter__(self) -> InterruptedCall:
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
