"""Filters that give values to variables: `filter("z = v + 1, z > 11")` is what the body of a rule is.

Catches: a variable that no column is at a step, an equation without a value that passes unnoticed.
"""

from __future__ import annotations

import re

import pytest

import lftj
from lftj import streams
from lftj.errors import DataError, EvaluationError
from tests.engine.test_one_by_one import calls_of
from tests.streams import reference as plain

ROWS = [(1, 10, None), (1, 20, 7), (2, 30, 7)]
TYPES = {"k": int, "v": int, "n": "number?"}


def filtered(condition: str) -> streams.WeightedRows:
    circuit = streams.Circuit()
    circuit.output("o", circuit.input("a", **TYPES).filter(condition))
    return circuit.incremental().step({"a": ROWS})["o"]


@pytest.mark.parametrize(
    "condition",
    [
        "z = v + 1, z > 11",
        "y = z * 2, v + 1 = z, y > 22",
        "z = y, y = v, z < 30",
        "z = v + 1, z = k * 11 + 10",
        "_z = v + 1",
        "z = n, z > k",
        "_z = n",
        "z = n, is_null(z)",
        'z = cat(to_string(v), "x"), match("[12].*", z)',
        "z = 60 / (k - 1), k > 1, z > v",
    ],
)
def test_a_variable_has_the_value_that_an_equation_gives(condition: str) -> None:
    """The rows are those of a rule with the same body."""
    database = lftj.Database()
    database.rules(f".decl a(k:number, v:number, n:number?)\nq(k, v, n) :- a(k, v, n), {condition}.")
    database.load("a", ROWS)
    assert filtered(condition) == plain.made((row, 1) for row in database["q"])


def test_the_where_of_an_aggregate_gives_values_too() -> None:
    circuit = streams.Circuit()
    where = "z = v + 1, z > 11"
    made = {name: getattr(streams, name)("v", where=where) for name in ("sum", "max", "count_distinct")}
    circuit.output("o", circuit.input("a", **TYPES).group_by("k").aggregate(**made))
    assert circuit.incremental().step({"a": ROWS})["o"] == {(1, 20, 20, 1): 1, (2, 30, 30, 1): 1}


@pytest.mark.parametrize("condition", ["!row(k, k, n)", "row(k, x, _), x > 7", "k > 1, row(_, _, _)", "!edge(k)"])
def test_an_atom_is_refused(condition: str) -> None:
    """Atoms of the relation that expressions are checked with passed unnoticed, or their variables were no columns."""
    message = f"`{re.escape(condition)}` holds an atom of a relation\n  why: a row is looked at by itself"
    with pytest.raises(DataError, match=message):
        filtered(condition)
    groups = streams.Circuit().input("a", **TYPES).group_by("k")
    with pytest.raises(DataError, match=message):
        groups.aggregate(n=streams.count(where=condition))


def test_an_expression_with_an_atom_is_refused_by_its_own_name() -> None:
    with pytest.raises(DataError, match=r"`z = k, row\(_, v, n\)` holds an atom of a relation"):
        streams.Circuit().input("a", **TYPES).map(z="k, row(_, v, n)")


def test_an_equation_without_a_value_is_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"`z = 60 / \(k - 1\)` has no value"):
        filtered("z = 60 / (k - 1)")


def test_what_is_no_condition_is_refused() -> None:
    stream = streams.Circuit().input("a", **TYPES)
    with pytest.raises(lftj.Error, match="`condition` cannot be None"):
        stream.filter(None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="`s = v \\+ 1, v > 10` holds a condition"):
        stream.map(s="v + 1, v > 10")


@pytest.mark.parametrize("op", ["sum", "max", "count_distinct"])
def test_an_expression_takes_as_many_calls_in_a_stream_of_many_columns(op: str) -> None:
    """All columns of the row were parsed and checked with each expression."""

    def compiled(columns: int) -> None:
        names = [f"c{i}" for i in range(columns)]
        made = {f"x{i}": getattr(streams, op)(name, where=f"{name} > 2") for i, name in enumerate(names[:5])}
        streams.Circuit().input("a", **dict.fromkeys(names, int)).group_by().aggregate(**made)

    compiled(5)
    few, many = calls_of(lambda: compiled(5)), calls_of(lambda: compiled(100))
    assert many <= few + 25 * 95, (few, many)  # the names are looked through for each


def test_a_condition_that_names_no_column_is_one_of_all_rows() -> None:
    assert filtered("1 < 2") == dict.fromkeys(ROWS, 1)
    assert not len(filtered('"c" = "b"'))


@pytest.mark.parametrize("atom", ["row()", "row_(v)", "row(k, v, n, k)"])
def test_an_atom_of_any_number_of_columns_is_refused(atom: str) -> None:
    with pytest.raises(DataError, match="holds an atom of a relation"):
        filtered(f"v > 1, {atom}")
