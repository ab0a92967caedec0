"""Names of columns: every column of a stream has its own, whichever operator makes it.

Catches: two columns of one name, of which later operators read one for the other.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lftj
from lftj import streams
from lftj.errors import DataError
from lftj.streams.stream import Stream

ROWS = [(1, 10), (1, 20), (2, 30)]


def step(build: Callable[[Stream], Stream], k: str = "k", v: str = "v") -> streams.WeightedRows:
    """What a circuit of changes gives for `ROWS`, in columns of these names."""
    circuit = streams.Circuit()
    circuit.output("o", build(circuit.input("a", **{k: int, v: int})))
    return circuit.incremental().step({"a": ROWS})["o"]


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda a: a.rename(k="v"), "v"),
        (lambda a: a.select("k", "v", "k"), "k"),
        (lambda a: a.map("k", "k"), "k"),
        (lambda a: a.map("k", k="v + 1"), "k"),
        (lambda a: a.apply(lambda k: k, "k", v=int), "v"),
        (lambda a: a.group_by("k").top(2, "v", number="v"), "v"),
        (lambda a: a.group_by("k").lag("v", "v", fill=0).group_by("k").lag("v", "-v", fill=-1), "lag_v"),
        (lambda a: a.group_by("k").lead("v", "v", fill=0, name="k"), "k"),
        (lambda a: a.group_by("k", "v", "k"), "k"),
    ],
)
def test_a_second_column_of_a_name_is_refused(build: Callable[[Stream], Stream], name: str) -> None:
    with pytest.raises(DataError, match=f"the stream would have two columns `{name}`\n  why: columns are known by"):
        step(build)


@pytest.mark.parametrize(
    "build", [lambda a: a.rename(k=5), lambda a: a.group_by("k").lag("v", "v", fill=0, name=5)], ids=["rename", "lag"]
)
def test_a_name_that_is_no_text_is_refused(build: Callable[[Stream], Stream]) -> None:
    with pytest.raises(DataError, match="5 cannot name a column"):
        step(build)


@pytest.mark.parametrize("name", ["count", "max", "count_distinct"])
def test_an_aggregate_of_the_name_of_its_group_is_refused(name: str) -> None:
    aggregate = streams.count() if name == "count" else getattr(streams, name)("v")
    with pytest.raises(DataError) as caught:
        step(lambda a: a.group_by("k").aggregate(k=aggregate))
    assert str(caught.value) == (
        "the stream would have two columns `k`\n"
        "  why: columns are known by their names\n"
        "  do: give the aggregate another name"
    )


@pytest.mark.parametrize("name", ["rows_", "which_", "value_", "of_n_", "where_0_", "result_of_0_", "result_of__1_"])
def test_any_name_of_a_group_and_of_its_aggregates(name: str) -> None:
    """Columns that an aggregate makes within are called otherwise than those of users."""
    for aggregate, one, two in (
        (streams.count(where="v > 10"), 1, 1),
        (streams.sum("v + 1"), 32, 31),
        (streams.max("v + 1"), 21, 31),
        (streams.count_distinct("v"), 2, 1),
    ):
        expected = {(1, one): 1, (2, two): 1}
        assert step(lambda a: a.group_by(name).aggregate(n=aggregate), k=name) == expected  # noqa: B023
        assert step(lambda a: a.group_by("k").aggregate(**{name: aggregate})) == expected  # noqa: B023
    assert step(lambda a: a.map(s=f"{name} + 1", t="v"), k=name) == {(2, 10): 1, (2, 20): 1, (3, 30): 1}


@pytest.mark.parametrize("name", ["·rows", "·rows 0", "·value", "·which", "·of n", "·where 0", "··value"])
def test_a_group_of_the_name_of_an_inner_column(name: str) -> None:
    """`·value` beside `count_distinct` was a ValueError."""
    for aggregate in (
        streams.count_distinct("v"),
        streams.sum("v"),
        streams.max("v"),
        streams.mean("v", where="v > 1"),
    ):
        rows = step(lambda a: a.group_by("k").aggregate(n=aggregate, m=streams.count_distinct("v")))  # noqa: B023
        for key, names in ((name, ("n", "m")), ("k", (name, "m"))):
            made = dict(zip(names, (aggregate, streams.count_distinct("v")), strict=True))
            assert step(lambda a: a.group_by(key).aggregate(**made), k=key) == rows  # noqa: B023


@pytest.mark.parametrize("name", ["first name", "größe", "a-b", "1st", "", "·weight", '"', "x), y("])
def test_a_column_that_no_expression_can_name_is_there(name: str) -> None:
    """Filters on other columns ended in a syntax error, and one of the name of our weights held these."""
    expected = {(1, 20): 1, (2, 30): 1}
    assert step(lambda a: a.filter("v > 10"), k=name) == expected
    assert step(lambda a: a.map(name, w="v + 1"), k=name) == {(1, 11): 1, (1, 21): 1, (2, 31): 1}
    assert step(lambda a: a.group_by(name).aggregate(n=streams.count(where="v > 10")), k=name) == {(1, 1): 1, (2, 1): 1}
    none = {(1, 10, 0): 1, (1, 20, 0): 1, (2, 30, 0): 1}
    other = {name: "v", "v": "w"}
    found = step(lambda a: a.left_join(a.rename(**other).filter("v > 5"), on={"v": "v"}, fill={"w": 0}), k=name)
    assert found == none


def test_names_can_be_exchanged() -> None:
    assert step(lambda a: a.rename(k="v", v="k").filter("k > 15")) == {(1, 20): 1, (2, 30): 1}


def test_a_column_may_be_the_key_of_two_others() -> None:
    circuit = streams.Circuit()
    a, b = circuit.input("a", k=int, v=int), circuit.input("b", id=int, w=int)
    on, fill = {"k": "id", "v": "id"}, {"k": 0, "v": 0, "w": -1}
    circuit.output("semi", a.semijoin(b, on))
    circuit.output("full", a.full_join(b, on, fill=fill))
    given = {"a": [(1, 1), (1, 2), (3, 3)], "b": [(1, 10), (2, 20)]}
    for made in (circuit, circuit.incremental()):
        found = made.step(given)
        assert found["semi"] == {(1, 1): 1}
        assert found["full"] == {(1, 1, 10): 1, (1, 2, -1): 1, (3, 3, -1): 1, (2, 2, 20): 1}


def test_a_column_of_the_name_of_the_others_key_is_filled() -> None:
    """The rows of the right stream alone had their key in it, whatever `fill` said."""
    circuit = streams.Circuit()
    a, b = circuit.input("a", k=int, id=int), circuit.input("b", id=int, w=int)
    circuit.output("full", a.full_join(b, {"k": "id"}, fill={"id": -1, "w": 0}))
    for made in (circuit, circuit.incremental()):
        assert made.step({"a": [(1, 5)], "b": [(1, 10), (2, 20)]})["full"] == {(1, 5, 10): 1, (2, -1, 20): 1}


def test_what_no_row_lacks_is_not_filled() -> None:
    circuit = streams.Circuit()
    a, b = circuit.input("a", k=int, v="number?"), circuit.input("b", k=int, w=int)
    every = {"k": 0, "w": -1}
    circuit.output("left", a.left_join(b, "k", fill=every))
    assert circuit.step({"a": [(1, None)]})["left"] == {(1, None, -1): 1}
    for value in (0, "of another type"):
        with pytest.raises(DataError) as caught:
            a.left_join(b, "k", fill={**every, "v": value})
    assert str(caught.value) == (
        "`fill` names `v`, which no row lacks\n"
        "  why: it is a column of the left stream, and a left join has the rows of that with their own values\n"
        "  do: name columns of the other stream; `map` with `coalesce(v, ...)` gives null a value"
    )


def test_a_name_of_a_stream_is_a_text() -> None:
    """A cycle without a delay, which is told by names, was a TypeError."""
    with pytest.raises(lftj.Error, match="`name` cannot be 5\n  why: prints and errors call the stream by it"):
        streams.Circuit().input("a", k=int).named(5)  # type: ignore[arg-type]
