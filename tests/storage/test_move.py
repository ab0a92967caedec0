"""Moving words within the arena: ranges that overlap, none at all, and ends that are checked like any other access.

Catches: a copy that reads what it has written; a move that the bounds-checked suite would let run over the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scantree import _jit
from tests.conftest import BOUNDSCHECK, JIT

move: Any = _jit.move


@pytest.mark.parametrize(("to", "start", "n"), [(3, 0, 7), (0, 3, 7), (2, 2, 5), (9, 0, 1), (10, 0, 0), (0, 10, 0)])
def test_ranges_may_overlap(to: int, start: int, n: int) -> None:
    words = np.arange(10)
    expected = words.copy()
    expected[to : to + n] = words[start : start + n]
    move(words, to, start, n)
    assert words.tolist() == expected.tolist()


@pytest.mark.skipif(not (JIT and BOUNDSCHECK), reason="needs bounds-checked kernels")
@pytest.mark.parametrize(("to", "start", "n"), [(4, 0, 7), (0, 4, 7), (10, 0, 1)])
def test_ends_are_checked(to: int, start: int, n: int) -> None:
    with pytest.raises(IndexError):
        move(np.arange(10), to, start, n)
