"""Null in the joins of streams, against rules over the same rows; where rows are grouped it is a value."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pytest

import lftj
from lftj import streams
from lftj.streams.stream import Stream
from tests.types.cases import CASES

RULES = """.decl l(a:number, k:{0}?) .decl r(k:{0}?, b:number)
inner(a, k, b) :- l(a, k), r(k, b).
semi(a, k) :- l(a, k), r(k, _).
anti(a, k) :- l(a, k), !r(k, _).
left(a, k, b) :- inner(a, k, b).
left(a, k, 0) :- anti(a, k).
lost(k, b) :- r(k, b), !l(_, k).
full(a, k, b) :- left(a, k, b).
full(0, k, b) :- lost(k, b).
"""
HEADS = ("inner", "semi", "anti", "left", "full")
KINDS = ("number", "unsigned", "symbol", "date", "decimal(10,2)", "bytes")


def joins(left: Stream, right: Stream) -> dict[str, Stream]:
    return {
        "inner": left.join(right, on="k"),
        "semi": left.semijoin(right, on="k"),
        "anti": left.antijoin(right, on="k"),
        "left": left.left_join(right, on="k", fill={"b": 0}),
        "full": left.full_join(right, on="k", fill={"a": 0, "b": 0}),
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("incremental", [True, False])
def test_joins_say_what_rules_say(kind: str, incremental: bool) -> None:
    rng, db = Random(kind), lftj.Database(RULES.format(kind))
    circuit = streams.Circuit()
    left, right = circuit.input("l", a=int, k=f"{kind}?"), circuit.input("r", k=f"{kind}?", b=int)
    for name, stream in joins(left.integrate().distinct(), right.integrate().distinct()).items():
        circuit.output(name, stream)
    running = circuit.incremental() if incremental else circuit
    found: dict[str, set[Any]] = {name: set() for name in HEADS}

    def key() -> Any:
        return None if rng.random() < 0.4 else CASES[kind].of(rng.randrange(3))

    for _ in range(4):
        rows = {
            "l": sorted({(rng.randrange(1, 4), key()) for _ in range(3)} - set(db["l"]), key=repr),
            "r": sorted({(key(), rng.randrange(1, 4)) for _ in range(3)} - set(db["r"]), key=repr),
        }
        with db.transaction() as tx:
            for name in rows:
                tx.insert(name, rows[name])
        told = running.step(rows)
        for name in HEADS:
            if incremental:
                found[name] = found[name] - set(told[name].erased) | set(told[name].inserted)
            else:
                assert set(dict(told[name]).values()) <= {1}
                found[name] = set(dict(told[name]))
            assert found[name] == set(db[name]), name


def test_a_column_without_null_is_not_joined_with_it() -> None:
    """The code of null is a value of a column that has none."""
    circuit = streams.Circuit()
    left, right = circuit.input("l", k="number?", a=int), circuit.input("r", k=int, b=int)
    circuit.output("one", left.join(right, on="k"))
    circuit.output("two", right.join(left, on="k"))
    circuit.output("kept", right.left_join(left, on="k", fill={"a": 0}))
    told = circuit.step({"l": [(None, 1)], "r": [(-(2**63), 2)]})
    assert not told["one"]
    assert not told["two"]
    assert set(dict(told["kept"])) == {(-(2**63), 2, 0)}


@pytest.mark.parametrize("incremental", [True, False])
@pytest.mark.parametrize(("kind", "value"), [("number", -(2**63)), ("unsigned", 2**64 - 1)])
@pytest.mark.parametrize("nullable", ["l", "r"])
def test_the_code_of_null_is_no_key_of_a_full_join_with_null(
    kind: str, value: int, nullable: str, incremental: bool
) -> None:
    """The row came out with null for its key."""
    circuit = streams.Circuit()
    types = {name: f"{kind}?" if name == nullable else kind for name in "lr"}
    left, right = circuit.input("l", k=types["l"], a=int), circuit.input("r", k=types["r"], b=int)
    circuit.output("full", left.full_join(right, on="k", fill={"a": 0, "b": 0}))
    running = circuit.incremental() if incremental else circuit
    other = "r" if nullable == "l" else "l"
    with pytest.raises(lftj.Error) as caught:
        running.step({other: [(value, 2)]})
    assert caught.value.what.endswith(f"` brings {value} to a column that admits null")
    near = value - 1 if kind == "unsigned" else value + 1
    told = running.step({other: [(near, 2)], nullable: [(None, 1)]})
    rows = [(near, 2, 0), (None, 0, 1)] if nullable == "r" else [(near, 0, 2), (None, 1, 0)]
    assert dict(told["full"]) == dict.fromkeys(rows, 1)


@pytest.mark.parametrize(
    ("one", "two", "made"),
    [
        ("decimal(4,2)", "decimal(10,2)", "decimal(10,2)"),
        ("decimal(10,2)", "decimal(4,2)", "decimal(10,2)"),
        ("decimal(4,2)?", "decimal(10,2)", "decimal(10,2)?"),
        ("decimal(4,2)", "decimal(10,2)?", "decimal(10,2)?"),
    ],
)
def test_the_key_of_a_full_join_has_room_for_the_decimals_of_both(one: str, two: str, made: str) -> None:
    """Decimals of the right stream were given out in a type that does not hold them."""
    circuit = streams.Circuit()
    left, right = circuit.input("l", k=one, a=int), circuit.input("r", k=two, b=int)
    full = left.full_join(right, on="k", fill={"a": 0, "b": 0})
    assert full.columns["k"] == made
    circuit.output("full", full)
    large, small, both = Decimal("12345678.00"), Decimal("1.00"), Decimal("2.00")
    wide, narrow = ("r", "l") if one.startswith("decimal(4") else ("l", "r")
    told = circuit.incremental().step({wide: [(large, 1), (both, 2)], narrow: [(small, 3), (both, 4)]})
    told["full"].to_arrow().validate(full=True)
    assert {row[0] for row, _ in told["full"]} == {large, small, both}


def test_near_in_time_and_looked_up() -> None:
    circuit = streams.Circuit()
    left, right = circuit.input("l", k="symbol?", s=int), circuit.input("r", k="symbol?", t=int)
    circuit.output("near", left.interval_join(right, on="k", time=("s", "t"), within=(0, 5)))
    circuit.output("found", left.lookup(right, on="k"))
    told = circuit.incremental().step({"l": [(None, 1), ("a", 1)], "r": [(None, 2), ("a", 3)]})
    assert dict(told["near"]) == {("a", 1, 3): 1}
    assert dict(told["found"]) == {("a", 1, 3): 1}


def test_groups_sets_and_keys_take_null_as_a_value() -> None:
    circuit = streams.Circuit()
    rows = circuit.input("l", k="number?", v=int)
    circuit.output("group", rows.group_by("k").aggregate(n=streams.count(), most=streams.max("v")))
    circuit.output("both", rows.intersect(circuit.input("r", k="number?", v=int)))
    told = circuit.incremental().step({"l": [(None, 1), (None, 2), (1, 5)], "r": [(None, 2), (1, 6)]})
    assert dict(told["group"]) == {(None, 2, 2): 1, (1, 1, 5): 1}
    assert dict(told["both"]) == {(None, 2): 1}


def test_two_values_under_null_are_refused() -> None:
    circuit = streams.from_rules(".decl price(item:symbol?) -> cost:number\nhas(c) :- price(_, c).")
    circuit.step({"price": [(None, 1)]})
    with pytest.raises(lftj.Error, match="two"):
        circuit.step({"price": [(None, 2)]})
