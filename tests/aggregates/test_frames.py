"""Sums and means of floats and extremes over frames that go along the rows: what each frame by itself has.

Catches: what has left a frame and is still in its sum or its extreme; frames that are empty, or lie apart; a sum that
is rounded from what was rounded; infinities that come and go; values that are not present.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from lftj.join.frames import best_of_frames, sums_of_frames
from lftj.values.codes import encode_float, float_of
from tests.conftest import examples

Frames = list[tuple[int, int]]


@st.composite
def frames(draw: st.DrawFn, n: int) -> Frames:
    """Frames [low, high) of n rows, neither end of which goes back."""
    ends = st.lists(st.integers(0, n), min_size=n, max_size=n).map(sorted)
    lows, highs = draw(ends), draw(ends)
    return [(low, max(low, high)) for low, high in zip(lows, highs, strict=True)]


def ends(held: Frames) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    low, high = np.array(held, np.int64).reshape(len(held), 2).T
    return low.copy(), high.copy()


VALUES = st.sampled_from([1.0, 0.1, -0.1, 1e16, -1e16, 5e-324, -5e-324, 0.0, 1e300, -1e300, math.inf]) | st.floats(
    allow_nan=False
)


@given(st.data(), st.lists(st.tuples(VALUES, st.booleans()), max_size=25), st.booleans())
@examples(400, 30)
def test_sums_and_means(data: st.DataObject, rows: list[tuple[float, bool]], mean: bool) -> None:
    held = data.draw(frames(len(rows)))
    codes = encode_float(np.array([value for value, _ in rows], np.float64))
    each = [[value for value, there in rows[low:high] if there] for low, high in held]
    counts = [max(len(values), 1) if mean else 1 for values in each]
    present = np.array([there for _, there in rows], bool)
    found = sums_of_frames(codes, present, *ends(held), np.array(counts, np.int64))
    want = [sum_of(values, count) for values, count in zip(each, counts, strict=True)]
    if None in want:
        assert found is None
    else:
        assert found is not None
        assert [float_of(code) for code in found.tolist()] == want


def sum_of(values: list[float], count: int) -> float | None:
    """The sum by a count, rounded once; None if there is none."""
    infinite = {value for value in values if math.isinf(value)}
    if infinite:
        return infinite.pop() if len(infinite) == 1 else None
    try:
        return float(Fraction(sum(map(Fraction, values)), count))
    except OverflowError:
        return None


@given(st.data(), st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=25), st.booleans())
@examples(300, 30)
def test_extremes(data: st.DataObject, rows: list[tuple[int, bool]], last: bool) -> None:
    held = data.draw(frames(len(rows)))
    ranks, present = np.array([rank for rank, _ in rows], np.int64), np.array([there for _, there in rows], bool)
    found = best_of_frames(ranks, present, *ends(held), last=last).tolist()
    for (low, high), at in zip(held, found, strict=True):
        own = [rank for rank, there in rows[low:high] if there]
        assert (at >= 0) == bool(own)
        if own:
            assert low <= at < high
            assert rows[at] == ((max if last else min)(own), True)
