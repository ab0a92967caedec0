"""Python functions over Arrow columns: what they may give, and what happens when they give something else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lftj
from lftj import streams


def circuit_of(build):
    circuit = streams.Circuit()
    circuit.output("out", build(circuit.input("x", a=int, b=str, f=float)))
    return circuit.incremental()


def test_a_function_adds_columns_of_every_type():
    circuit = circuit_of(
        lambda x: x.apply(
            lambda a, b, f: (pc.add(a, 1), pc.utf8_upper(b), pc.multiply(f, 0.5)), "a", "b", "f", n=int, t=str, h=float
        )
    )
    assert circuit.step({"x": [(1, "é", 3.0), (2, "", -1.0)]})["out"] == {
        (1, "é", 3.0, 2, "É", 1.5): 1,
        (2, "", -1.0, 3, "", -0.5): 1,
    }
    gone = circuit.step({"x": streams.zset([(1, "é", 3.0)], [-2])})["out"]
    assert gone == {(1, "é", 3.0, 2, "É", 1.5): -2}


def test_a_list_is_the_values_of_a_column():
    """It was taken for several columns: `gave 0 values of z for 1 rows`. Where several are due, it is these."""
    circuit = circuit_of(lambda x: x.apply(lambda a: [v.as_py() + 1 for v in a], "a", z=int).select("a", "z"))
    assert circuit.step({"x": [(1, "", 0.0)]})["out"] == {(1, 2): 1}
    assert circuit.step({"x": [(2, "", 0.0), (3, "", 0.0)]})["out"] == {(2, 3): 1, (3, 4): 1}
    circuit = circuit_of(lambda x: x.apply(lambda a: ([0, 0], ["u", "v"]), "a", flat=True, z=str).select("a", "z"))
    assert circuit.step({"x": [(1, "", 0.0)]})["out"] == {(1, "u"): 1, (1, "v"): 1}
    circuit = circuit_of(lambda x: x.apply(lambda a: [a, a], "a", y=int, z=int).select("a", "y", "z"))
    assert circuit.step({"x": [(1, "", 0.0)]})["out"] == {(1, 1, 1): 1}


def test_a_flat_function_gives_any_number_of_rows_for_each():
    def words(text):
        lists = pc.split_pattern(text, " ")
        return pc.list_parent_indices(lists), pc.list_flatten(lists)

    circuit = circuit_of(lambda x: x.apply(words, "b", flat=True, word=str).select("a", "word"))
    assert circuit.step({"x": [(1, "to be to", 0.0), (2, "x", 0.0)]})["out"] == {
        (1, "to"): 2,
        (1, "be"): 1,
        (2, "x"): 1,
    }
    assert circuit.step({})["out"] == {}


def _raises(a):
    raise KeyError("oops")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_raises, "raised KeyError"),
        (lambda a: pa.array([1]), "gave 1 values of `n` for 2 rows"),
        (lambda a: (a, a), "gave 2 columns, not 1"),
        (lambda a: 7, "gave 0 values"),
        (lambda a: pa.array([1, None]), "null"),
        (lambda a: pa.array(["x", "y"]), "`n`"),
    ],
)
def test_a_function_that_gives_no_column_leaves_the_circuit_as_it_was(function, says):
    calls = []

    def first_well(a):
        calls.append(len(a))
        return pc.add(a, 1) if len(calls) != 2 else function(a)

    circuit = circuit_of(lambda x: x.apply(first_well, "a", n=int).group_by().aggregate(s=streams.sum("n")))
    circuit.step({"x": [(1, "", 0.0)]})
    with pytest.raises(lftj.Error, match=says):
        circuit.step({"x": [(2, "", 0.0), (3, "", 0.0)]})
    assert circuit.step({"x": [(4, "", 0.0)]})["out"] == {(2,): -1, (7,): 1}


def test_bad_row_numbers_of_a_flat_function_are_refused():
    for numbers in ([0, 5], [-1, 0], [0.5, 1.0]):
        circuit = circuit_of(lambda x: x.apply(lambda a: (np.array(numbers), a), "a", flat=True, n=int))  # noqa: B023
        with pytest.raises(lftj.Error, match="rows' numbers"):
            circuit.step({"x": [(1, "", 0.0), (2, "", 0.0)]})


def test_what_makes_no_sense_is_refused_when_it_is_written():
    x = streams.Circuit().input("x", a=int)
    for build in (
        lambda: x.apply(pc.add, "b", n=int),
        lambda: x.apply(pc.add, "a", a=int),
        lambda: x.apply("a + 1", "a", n=int),  # type: ignore[arg-type]
        lambda: x.apply(pc.add, "a", n=complex),
    ):
        with pytest.raises(lftj.Error):
            build()


def test_values_of_another_type_are_refused_without_advice_for_loads():
    """It said to keep the good rows with `on_error=`, which no step has."""
    circuit = circuit_of(lambda x: x.apply(lambda a: [None, 1], "a", y=int))
    with pytest.raises(lftj.DataError) as caught:
        circuit.step({"x": [(1, "", 0.0), (2, "", 0.0)]})
    assert str(caught.value) == (
        "dict, row 0 (from 0): 1 bad row: column `y` of `<lambda>`: null is not a value\n"
        "  why: a column of type number holds no nulls\n"
        "  do: declare the column `number?`, drop the rows without a value or fill them in"
    )
