"""Folds over frames that go along the rows: what each frame by itself has; and where values say that frames end.

Catches: what has left a frame and is still in its sum or its extreme; frames that are empty, or lie apart; a sum that
is rounded from what was rounded; infinities that come and go; values that are not present; ranks that are one off.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from lftj.evaluate.variances import VARIANCES
from lftj.join.frames import (
    best_of_frames,
    distinct_in_frames,
    ends_by_value,
    modes_of_frames,
    ranked_in_frames,
    sums_of_frames,
)
from lftj.values.codes import encode_float, float_of
from tests.conftest import examples
from tests.plain.aggregates import Empty, Overflow
from tests.plain.aggregates import variance as plain_variance

Frames = list[tuple[int, int]]


@st.composite
def frames(draw: st.DrawFn, n: int) -> Frames:
    """Frames [low, high) of n rows, whose ends go forward; or back, too."""
    ends = st.lists(st.integers(0, n), min_size=n, max_size=n)
    lows, highs = (draw(ends.map(sorted) if draw(st.booleans()) else ends) for _ in "ab")
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


@given(st.data(), st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=25))
@examples(400, 30)
def test_ranks_modes_and_distinct_values(data: st.DataObject, rows: list[tuple[int, bool]]) -> None:
    held = data.draw(frames(len(rows)))
    numbers, present = np.array([number for number, _ in rows], np.int64), np.array([there for _, there in rows], bool)
    wanted = np.array([data.draw(st.lists(st.integers(0, 6), min_size=len(rows), max_size=len(rows))) for _ in "ab"])
    ranked = ranked_in_frames(numbers, present, *ends(held), wanted.astype(np.int64).reshape(2, len(rows)))
    modes, distinct = (fold(numbers, present, *ends(held)).tolist() for fold in (modes_of_frames, distinct_in_frames))
    for i, (low, high) in enumerate(held):
        own = sorted(number for number, there in rows[low:high] if there)
        assert ranked[:, i].tolist() == [own[rank] if rank < len(own) else -1 for rank in wanted[:, i].tolist()]
        assert modes[i] == max(own, key=lambda number: (own.count(number), -number), default=-1)
        assert distinct[i] == len(set(own))


NEAR_AND_FAR = st.sampled_from([1e200, -1e200, 1e16, 1e16 + 2, 5e-324, 1e-160, 0.1, 0.0, 3.0, math.inf, -math.inf])
LEAST = st.sampled_from([5e-324, 2.5e-308, -2.5e-308, 0.0])


@given(
    st.data(),
    st.lists(st.tuples(st.integers(-(2**62), 2**62) | st.integers(10**17, 10**17 + 3), st.booleans()), max_size=20)
    | st.lists(st.tuples(NEAR_AND_FAR, st.booleans()), max_size=20)
    | st.lists(st.tuples(LEAST, st.booleans()), max_size=8),
    st.sampled_from(sorted(VARIANCES)),
)
@examples(600, 30)
def test_variances(data: st.DataObject, rows: list[tuple[float, bool]], op: str) -> None:
    held, variance = data.draw(frames(len(rows))), VARIANCES[op]
    of_floats = any(isinstance(value, float) for value, _ in rows)
    values = [value for value, _ in rows]
    codes = encode_float(np.array(values, np.float64)) if of_floats else np.array(values, np.int64)
    each = [[value for value, there in rows[low:high] if there] for low, high in held]
    counts, present = np.array([*map(len, each)], np.int64), np.array([there for _, there in rows], bool)
    storage = "float" if of_floats else "number"
    found, without = variance.of_frames(codes, storage, storage, present, *ends(held), counts)
    for own, code, none in zip(each, found.tolist(), without.tolist(), strict=True):
        try:
            assert (none, float_of(code)) == (False, plain_variance(op, own))
        except Empty:
            assert none or float_of(code) == 0.0
        except Overflow:
            assert none


@given(
    st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(-5, 5), st.integers(-3, 3)), max_size=25),
    st.booleans(),
    st.booleans(),
)
@examples(300, 30)
def test_ends_by_value(rows: list[tuple[int, int | None, int]], nulls_first: bool, beyond: bool) -> None:
    places = sorted((part, (value is None) != nulls_first, value or 0, value is not None) for part, value, _ in rows)
    part = [place[0] for place in places]
    begin = np.array([part.index(number) for number in part], np.int64)
    end = begin + np.array([part.count(number) for number in part], np.int64)
    values, present = (np.array([place[i] for place in places], kind) for i, kind in ((2, np.int64), (3, bool)))
    bounds = values + np.array([away for _, _, away in rows], np.int64)
    found = ends_by_value(values, present, bounds, begin, end, nulls_first=nulls_first, beyond=beyond).tolist()
    for i in np.flatnonzero(present).tolist():
        own = [j for j in range(len(places)) if part[j] == part[i] and present[j]]
        assert found[i] == next((j for j in own if values[j] >= bounds[i] + beyond), own[-1] + 1)
