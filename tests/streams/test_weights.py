"""Weights of all of int64: sums, products and totals are exact, or the step is refused.

Catches: products and sums that wrap, words of an accumulator that do not hold a change, a value that is refused though
its type holds it.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from lftj import streams
from lftj.errors import DataError, EvaluationError
from lftj.streams.zsets import WeightOverflowError
from tests.conftest import JIT, examples
from tests.engine.programs import seeds
from tests.streams import reference as plain
from tests.streams.recipes import weighted
from tests.streams.reference import Z

TICKS = 4 if JIT else 2

some = examples(60, 5)


def z(plain_zset: Z) -> streams.WeightedRows:
    return weighted(plain_zset, "number")


HUGE = (2**63 - 1, -(2**63), 2**62, -(2**62), 2**32, -(2**32), 1, -1, 3)


@given(st.sampled_from(HUGE), st.sampled_from(HUGE))
@some
def test_weights_beyond_int64_are_refused(one: int, two: int) -> None:
    """Sums, products and inverses are exact or a `WeightOverflowError`: of Z-sets, and of every operator that adds."""
    a, b = z({(1, 1): one}), z({(1, 1): two})
    fits = {op: -(2**63) <= value < 2**63 for op, value in {"+": one + two, "-": -one, "*": one * two}.items()}
    if fits["+"]:
        assert a + b == plain.made([((1, 1), one + two)])
    else:
        with pytest.raises(WeightOverflowError):
            a + b
    if fits["-"]:
        assert -a == {(1, 1): -one}
    else:
        with pytest.raises(WeightOverflowError):
            operator.neg(a)
    joined = streams.Circuit()
    left, right = (joined.input(name, a=int, b=int) for name in ("l", "r"))
    joined.output("o", left.semijoin(right, on="a") + left.join(right, on=["a", "b"]) - left.semijoin(right, on="a"))
    summed, counted = streams.Circuit(), streams.Circuit()
    summed.output("o", summed.input("l", a=int, b=int).integrate())
    counted.output("o", counted.input("l", a=int, b=int).group_by("a").aggregate(n=streams.count()))
    for circuit, steps, value, fit in (
        (joined, [{"l": a, "r": b}], one * two, fits["*"]),
        (joined.incremental(), [{"l": a}, {"r": b}], one * two, fits["*"]),
        (summed, [{"l": a}, {"l": b}], one + two, fits["+"]),
        (counted.incremental(), [{"l": a}, {"l": b}], one + two, fits["+"]),
    ):
        *before, last = steps
        for step in before:
            circuit.step(step)
        if not fit:
            with pytest.raises(WeightOverflowError):
                circuit.step(last)
            assert circuit.step({})["o"] == ({(1, 1): one} if circuit is summed else {})
        elif circuit is counted:
            assert circuit.step(last)["o"] == plain.made([((1, value), 1), ((1, one), -1)])


@pytest.mark.parametrize(
    "give",
    [
        lambda made: streams.zset([(1,)], np.array([2**63], np.uint64)),
        lambda made: streams.zset([(1,)], [2**63]),
        lambda made: streams.zset([(1,)], [1.7]),
        lambda made: streams.zset([(1,)], ["1"]),
        lambda made: made.step({"i": pa.table({"a": [1], "_weight": pa.array([2**63], pa.uint64())})}),
    ],
    ids=["uint64", "int", "float", "text", "table"],
)
def test_what_is_no_weight_is_refused(give: Callable[[streams.Circuit], object]) -> None:
    """It is neither wrapped nor cut: a number beyond int64, a float, a text."""
    circuit = streams.Circuit()
    circuit.output("o", circuit.input("i", a=int))
    with pytest.raises(DataError, match="the weights are no 64-bit integers"):
        give(circuit)
    largest = pa.table({"a": [1], "_weight": pa.array([2**63 - 1], pa.uint64())})
    assert circuit.step({"i": largest})["o"] == {(1,): 2**63 - 1}


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(HUGE)), max_size=6), st.booleans())
@some
def test_weights_fit_row_by_row(given_rows: list[tuple[int, int]], counted: bool) -> None:
    """What other rows weigh is no reason to refuse a row; equal rows add up, however large sums are between."""
    rows = [(a,) for a, _ in given_rows]
    total = plain.made((row, weight) for row, (_, weight) in zip(rows, given_rows, strict=True))
    if not all(-(2**63) <= weight < 2**63 for weight in total.values()):
        with pytest.raises(WeightOverflowError):
            streams.zset(rows, [weight for _, weight in given_rows], columns={"a": int})
        return
    made = streams.zset(rows, [weight for _, weight in given_rows], columns={"a": int})
    assert made == total
    if counted:
        circuit = streams.Circuit()
        circuit.output("o", circuit.input("i", a=int).group_by("a").aggregate(n=streams.count()))
        expected = {(*row, weight): 1 for row, weight in total.items()}
        assert circuit.step({"i": made})["o"] == circuit.incremental().step({"i": made})["o"] == expected


LARGE_WEIGHTS = (2**62 - 1, -(2**62) + 1, 2**31, -(2**31), 2**40 + 3, -(2**40) - 3, 1, -1, 7)
EXTREME: dict[str, tuple[Any, ...]] = {
    "number": (2**63 - 1, -(2**63), 2**31, -1, 0, 3, -(2**62)),
    "unsigned": (2**64 - 1, 2**63, 2**32, 0, 1, 3),
    "decimal(18,2)": tuple(map(Decimal, ("9999999999999999.99", "-9999999999999999.99", "0.01", "-0.03", "0", "1.50"))),
    "duration": tuple(dt.timedelta(microseconds=n) for n in (2**63 - 1, -(2**63) + 1, 2**31, -1, 0, 3)),
    "float": (1.5, -1.5, 1.7e308, -1.7e308, 5e-324, -5e-324, 3.0, 2.0**-1022, float("inf"), 0.1),
}


def exact(value: Any) -> Fraction:
    return Fraction(value // dt.timedelta(microseconds=1) if isinstance(value, dt.timedelta) else value)


def expected_total(op: str, kind: str, rows: Z) -> Any:
    """The total of a group with a count that is not zero, by Python's integers and fractions; None if it has none."""
    infinite = {row[1]: sum(w for other, w in rows.items() if other[1] == row[1]) for row in rows if row[1] == math.inf}
    finite = {row: weight for row, weight in rows.items() if row[1] != math.inf}
    count = sum(rows.values())
    if infinite.get(math.inf):
        return math.copysign(math.inf, infinite[math.inf] * (count if op == "mean" else 1))
    total = sum((exact(row[1]) * weight for row, weight in finite.items()), Fraction(0))
    if kind == "duration":
        micros = round(total / (count if op == "mean" else 1))
        return dt.timedelta(microseconds=micros) if -(2**63) < micros < 2**63 else None
    if op == "sum" and kind == "decimal(18,2)":
        cents = int(total * 100)
        return Decimal(cents).scaleb(-2) if abs(cents) < 10**18 else None
    if op == "sum" and kind != "float":
        low, high = (0, 2**64) if kind == "unsigned" else (-(2**63), 2**63)
        return int(total) if low <= total < high else None
    try:
        return float(total / (count if op == "mean" else 1)) + 0.0
    except OverflowError:
        return None


@given(seeds, st.sampled_from(sorted(EXTREME)), st.sampled_from(("sum", "mean")))
@examples(150, 8)
def test_totals_of_any_weights(rng: Random, kind: str, op: str) -> None:
    """Sums and means are exact for all weights of int64, and refused only where the result has no value in its type."""
    circuit = streams.Circuit()._sized(2, 2)
    rows = circuit.input("i", a=int, b=kind)
    circuit.output("o", rows.group_by("a").aggregate(x=getattr(streams, op)("b"), n=streams.count()))
    made, held, before = circuit.incremental(), dict[plain.Row, int](), dict[plain.Row, int]()
    for _ in range(3 * TICKS):
        change = plain.made(
            ((rng.randrange(2), rng.choice(EXTREME[kind])), rng.choice(LARGE_WEIGHTS))
            for _ in range(rng.choice((1, 2)))
        )
        if held and not rng.randrange(3):
            row = rng.choice(sorted(held))
            change = {row: min(max(-held[row], -(2**63)), 2**63 - 1)}
        after = plain.add(held, change)
        note(f"{change}")
        counts = {key: sum(of.values()) for key, of in plain.groups(after, (0,)).items()}
        totals = {key: expected_total(op, kind, of) for key, of in plain.groups(after, (0,)).items() if counts[key]}
        fits = all(-(2**63) <= n < 2**63 for n in counts.values())
        given_now = {"i": streams.zset(list(change), list(change.values()), columns={"a": int, "b": kind})}
        if not fits or None in totals.values():
            with pytest.raises(EvaluationError):
                made.step(given_now)
            continue
        held, expected = after, {(*key, totals[key], counts[key]): 1 for key in totals}
        assert made.step(given_now)["o"] == plain.minus(expected, before)
        before = expected


@pytest.mark.parametrize("key", [(), ("a",)])
def test_many_large_weights_leave_nothing_behind(key: tuple[str, ...]) -> None:
    """Pieces of float sums are made small before they leave int64, as often as it takes."""
    circuit = streams.Circuit()._sized(2, 2)
    rows = circuit.input("i", a=int, b=float)
    circuit.output("o", rows.group_by(*key).aggregate(x=streams.sum("b")), whole=True)
    made, count, often = circuit.incremental(), 40 if JIT else 3, 2**27
    values = (0.1, -3.0000000000000004, 1e290)
    for step in range(2 * count):
        weight = often if step < count else -often
        made.step({"i": streams.zset([(n, v) for n in range(2) for v in values], [weight] * 6)})
        held = min(step + 1, 2 * count - 1 - step)
        expected = float(sum(Fraction(v) for v in values) * often * held) if held else None
        groups = [(n,) for n in range(2)] if key else [()]
        times = 1 if key else 2
        assert made.value("o") == ({} if held == 0 else {(*group, expected * times): 1 for group in groups})
