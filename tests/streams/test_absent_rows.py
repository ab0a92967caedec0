"""Rows that come and go in one value are not there: nothing that fails is computed of them.

Operators need not put what they give in normal form. Catches: a row that an antijoin takes away, or two rows that were
never there together, for which a later map has no value.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from lftj import streams
from lftj.errors import EvaluationError

MOST = (1 << 63) - 1


@pytest.mark.parametrize("rows", [2, 5, 100])
def test_what_an_antijoin_takes_away_needs_no_value(rows: int) -> None:
    """It was refused where the rows were many."""
    circuit = streams.Circuit()
    row, bad = circuit.input("row", a=int, b=int), circuit.input("bad", a=int)
    circuit.output("o", row.antijoin(bad, on="a").map("a", y="100 / b"))
    circuit.output("many", (row - row.filter("b = 0")).group_by().aggregate(s=streams.sum("100 / b")))
    expected = {(i, 100 // i): 1 for i in range(1, rows)}
    for one in (circuit, circuit.incremental()):
        found = one.step({"row": [(i, i) for i in range(rows)], "bad": [(0,)]})
        assert dict(found["o"]) == expected
        assert dict(found["many"]) == {(sum(y for _, y in expected),): 1}


def test_pairs_that_were_never_there_together_need_no_value() -> None:
    circuit = streams.Circuit()
    left, right = circuit.input("left", k=int, a=int), circuit.input("right", k=int, b=int)
    circuit.output("o", left.join(right, on="k").map("k", y="a / b"))
    made = circuit.incremental()
    made.step({"left": [(i, 6) for i in range(20)], "right": [(i, 2) for i in range(1, 20)]})
    out = made.step(
        {
            "left": streams.zset([(0, 6), *((i, 8) for i in range(1, 20))], [-1] + [1] * 19),
            "right": [(0, 0)],
        }
    )
    assert dict(out["o"]) == {(i, 4): 1 for i in range(1, 20)}


def test_a_row_that_is_there_needs_a_value_however_it_came() -> None:
    circuit = streams.Circuit()
    x = circuit.input("x", a=int)
    circuit.output("o", (x - x.filter("a = 0")).map(y="1 / (a - 1)"))
    for one in (circuit, circuit.incremental()):
        with pytest.raises(EvaluationError, match="has no value"):
            one.step({"x": [(i,) for i in range(20)]})
        assert dict(one.step({"x": [(2,)]})["o"]) == {(1,): 1}


def test_a_function_is_asked_of_rows_that_are_there() -> None:
    asked: list[int] = []

    def inverse(column: pa.Array) -> list[float]:
        asked.extend(column.to_pylist())
        return [1 / value for value in column.to_pylist()]

    circuit = streams.Circuit()
    x = circuit.input("x", a=int)
    circuit.output("o", (x - x.filter("a = 0")).apply(inverse, "a", y=float))
    out = circuit.incremental().step({"x": [(i,) for i in range(20)]})["o"]
    assert dict(out) == {(i, 1 / i): 1 for i in range(1, 20)}
    assert sorted(asked) == list(range(1, 20))


def test_a_window_that_no_row_is_in_may_be_beyond_64_bits() -> None:
    circuit = streams.Circuit()
    x = circuit.input("x", t=int)
    circuit.output("o", (x - x.filter("t > 1000")).tumbling("t", 10))
    found = circuit.incremental().step({"x": [*((10 * i + 1,) for i in range(20)), (MOST,)]})["o"]
    assert dict(found) == {(10 * i + 1, 10 * i, 10 * i + 10): 1 for i in range(20)}
