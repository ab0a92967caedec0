"""Columns that nobody reads: the same answers without them, and texts that nobody looks at are not interned.

Catches: places that still count by the wide rows after columns went, columns that only a condition or a key needs, and
bad values in a column that is not read.
"""

from __future__ import annotations

import importlib
import pkgutil

import pyarrow as pa
import pytest

import lftj
from lftj import streams
from lftj.streams.operators import Operator, Project

ROWS = {"a": [1, 2, 3, 3], "b": ["x", "y", "z", "z"], "c": [10, 20, 30, 40], "d": ["p", "q", "r", "s"]}
OTHER = {"k": [1, 3, 3], "m": ["one", "three", "drei"], "n": [7, 8, 9]}


def circuit_of(build):
    circuit = streams.Circuit()
    one = circuit.input("one", a=int, b=str, c=int, d=str)
    two = circuit.input("two", k=int, m=str, n=int)
    circuit.output("out", build(one, two))
    return circuit


BUILDS = {
    "projection": lambda one, two: one.select("c"),
    "condition on another column": lambda one, two: one.filter('b = "z"').select("c"),
    "map": lambda one, two: one.map("a", twice="c * 2").select("twice"),
    "join": lambda one, two: one.join(two, on={"a": "k"}).select("c", "n"),
    "join by key alone": lambda one, two: one.join(two, on={"a": "k"}).select("n"),
    "nothing of one side": lambda one, two: one.join(two, on={"a": "k"}).filter("n > 7").select("d"),
    "antijoin": lambda one, two: one.antijoin(two, on={"a": "k"}).select("b"),
    "sum": lambda one, two: (one.select("a", "c") + two.select("k", "n")).select("c"),
    "negation": lambda one, two: (-one).select("a"),
    "groups": lambda one, two: one.group_by("a").aggregate(n=streams.count(), m=streams.max("c")).select("m"),
    "top": lambda one, two: one.group_by("a").top(1, by="-c").select("d"),
    "function": lambda one, two: one.apply(lambda c: pa.array([v.as_py() + 1 for v in c]), "c", e=int).select("e"),
    "two readers": lambda one, two: one.select("a") + one.filter('d != "q"').map(a="c"),
    "delay": lambda one, two: one.delay().select("c"),
}


@pytest.mark.parametrize("name", BUILDS)
def test_the_answers_are_those_of_all_columns(name, monkeypatch):
    steps = [
        {"one": pa.table(ROWS), "two": pa.table(OTHER)},
        {"one": streams.zset([(1, "x", 10, "p")], [-1]), "two": [(2, "two", 5)]},
        {"one": [(3, "z", 50, "t")], "two": streams.zset([(3, "drei", 9)], [-1])},
    ]
    narrow = circuit_of(BUILDS[name]).incremental()
    monkeypatch.setattr("lftj.streams.incremental.narrowed", lambda graph: graph)
    wide = circuit_of(BUILDS[name]).incremental()
    for step in steps:
        assert narrow.step(step)["out"] == wide.step(step)["out"]
    assert narrow.inputs == wide.inputs
    assert narrow.outputs == wide.outputs


def inheriting(classes):
    """Classes that take `narrowed` from an operator that they are a kind of: it would make one of these of them."""
    found = []
    for one in classes:
        definers = [base for base in one.__mro__ if "narrowed" in vars(base)]
        if definers[0] not in (one, Operator):
            found.append(one.__name__)
    return found


def operators():
    """All classes of operators."""
    for module in pkgutil.iter_modules(streams.__path__):
        importlib.import_module(f"lftj.streams.{module.name}")
    found, open_classes = [], [Operator]
    while open_classes:
        found.append(open_classes.pop())
        # Those of other tests are of no interest.
        open_classes += [one for one in found[-1].__subclasses__() if one.__module__.startswith("lftj.")]
    return found


def test_every_kind_of_a_narrowed_operator_says_itself_how():
    classes = operators()
    assert {"Map", "Project", "Plus", "Negate", "IntervalJoin", "Lookup"} <= {one.__name__ for one in classes}
    assert inheriting(classes) == []
    assert inheriting([type("Twice", (Project,), {})]) == ["Twice"]


def test_texts_that_nobody_looks_at_are_not_interned():
    circuit = circuit_of(BUILDS["condition on another column"]).incremental()
    circuit.step({"one": pa.table(ROWS), "two": pa.table(OTHER)})
    assert sorted(circuit._room.symbols.texts().to_pylist()) == ["x", "y", "z"]


def test_a_bad_value_in_a_column_that_nobody_reads_is_refused():
    circuit = circuit_of(BUILDS["projection"]).incremental()
    for bad in ({**ROWS, "d": [1, 2, 3, 4]}, {**ROWS, "d": ["p", None, "r", "s"]}):
        with pytest.raises(lftj.Error, match="`d`"):
            circuit.step({"one": pa.table(bad)})
    assert circuit.step({"one": pa.table(ROWS)})["out"] == {(10,): 1, (20,): 1, (30,): 1, (40,): 1}
