"""Groups that have a row and groups that have none, and rows that are given for columns that admit null.

Catches: a mean of no rows that stops the circuit, where min and max leave the group out; an operand that is computed
for rows that do not count; an order that names a column twice.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from lftj import streams
from lftj.errors import DataError, EvaluationError
from lftj.streams.group_aggregates import GroupAggregate
from tests.streams.reference import SPREAD, quantile, spread


def stepped(rows: object, made: type = int, **aggregates: GroupAggregate) -> list[dict[tuple[object, ...], int]]:
    """What aggregates by `k` give for rows (k, v), as a whole and as a change."""
    circuit = streams.Circuit("c")
    circuit.output("o", circuit.input("s", k=int, v=made).group_by("k").aggregate(**aggregates))
    return [dict(one.step({"s": rows})["o"]) for one in (circuit, circuit.incremental())]


@pytest.mark.parametrize("made", [int, float])
@pytest.mark.parametrize("op", ["mean", "min", "max", "var_pop"])
def test_a_group_without_a_row_that_counts_has_no_row(op: str, made: type) -> None:
    aggregate = getattr(streams, op)("v", where="v > 0" if made is int else "v > 0.0")
    rows = [(1, made(4)), (1, made(-1)), (2, made(-1))]
    for found in stepped(rows, made, x=aggregate, n=streams.count()):
        assert found == {(1, 0 if op == "var_pop" else 4, 2): 1}


def test_means_with_conditions_follow_rows_that_come_and_go() -> None:
    circuit = streams.Circuit("c")
    source = circuit.input("s", k=int, v=int)
    means = {"p": streams.mean("v", where="v > 0"), "q": streams.mean("v", where="v < 9")}
    circuit.output("o", source.group_by("k").aggregate(**means, d=streams.count_distinct("v")))
    run = circuit.incremental()
    assert dict(run.step({"s": [(1, -2)]})["o"]) == {}
    assert dict(run.step({"s": [(1, 4)]})["o"]) == {(1, 4.0, 1.0, 2): 1}
    assert dict(run.step({"s": streams.zset([(1, 4)], [-1])})["o"]) == {(1, 4.0, 1.0, 2): -1}


@pytest.mark.parametrize("names", ["mn", "nm"])
def test_a_group_without_a_value_to_count_has_no_row_whatever_else_is_counted(names: str) -> None:
    """Where values of two expressions were counted, the second gave 0, and the first no row."""
    of = {"m": streams.count_distinct("v"), "n": streams.count_distinct("k")}
    for found in stepped(streams.zset([(1, 5), (1, 6), (2, 5)], [1, -1, 1]), **{name: of[name] for name in names}):
        assert found == {(2, 1, 1): 1}


@pytest.mark.parametrize("where", [None, "v > 0"])
@pytest.mark.parametrize("others", [{}, {"m": streams.max("v")}, {"m": streams.count_distinct("v", where="v > 4")}])
def test_a_condition_that_all_rows_meet_changes_no_count_of_values(
    where: str | None, others: dict[str, GroupAggregate]
) -> None:
    """With one the group was there by the sum of its weights: group 1 was left out, and group 2 had 0 values."""
    rows = streams.zset([(1, 5), (1, 6), (2, 5), (3, 5)], [1, -1, -1, 1])
    for found in stepped(rows, n=streams.count_distinct("v", where=where), **others):
        last = {name: 5 if aggregate.op == "max" else 1 for name, aggregate in others.items()}
        assert found == {(k, 1, *last.values()): 1 for k in (1, 3)}


def test_a_group_of_rows_that_do_not_count_has_no_values_while_it_has_a_row() -> None:
    circuit = streams.Circuit("c")
    values = circuit.input("s", k=int, v=int).group_by("k")
    circuit.output("o", values.aggregate(n=streams.count_distinct("6 / v", where="v > 0")))
    run = circuit.incremental()
    assert dict(run.step({"s": [(1, 0)]})["o"]) == {(1, 0): 1}
    assert dict(run.step({"s": streams.zset([(1, 2), (1, 3)], [1, -1])})["o"]) == {(1, 0): -1, (1, 1): 1}
    assert dict(run.step({"s": streams.zset([(1, 0), (1, 2)], [-1, -1])})["o"]) == {(1, 1): -1}


@pytest.mark.parametrize("rows", [[(1, 5), (2, 6)], streams.zset([(1, 5), (2, 6)], [1, 1])])
def test_rows_without_null_are_rows_of_a_column_that_admits_it(rows: object) -> None:
    circuit = streams.Circuit("c")
    circuit.output("o", circuit.input("s", k=int, v="number?").filter("!is_null(v)"))
    assert dict(circuit.step({"s": rows})["o"]) == {(1, 5): 1, (2, 6): 1}


def test_texts_of_a_zset_are_rows_of_a_column_that_admits_null() -> None:
    circuit = streams.Circuit("c")
    circuit.output("o", circuit.input("s", k=int, v="symbol?"))
    assert dict(circuit.step({"s": streams.zset([(1, "x")], [2])})["o"]) == {(1, "x"): 2}


def test_the_number_that_stands_for_null_is_refused_where_null_may_stand() -> None:
    circuit = streams.Circuit("c")
    circuit.output("o", circuit.input("s", v="number?"))
    with pytest.raises(DataError, match=r"column `v` of s.* cannot hold -9223372036854775808"):
        circuit.step({"s": streams.zset([(-(2**63),)], [1])})
    assert dict(circuit.step({"s": [(1,)]})["o"]) == {(1,): 1}


def test_the_copies_of_a_row_are_one_place_of_lag_and_lead_and_several_of_top() -> None:
    circuit = streams.Circuit("c")
    groups = circuit.input("s", k=int, v=int).group_by("k")
    circuit.output("lead", groups.lead("v", "v", fill=0))
    circuit.output("lag", groups.lag("v", "v", fill=0))
    circuit.output("top", groups.top(2, "v"))
    found = circuit.step({"s": [(1, 5), (1, 5), (1, 9)]})
    assert dict(found["lead"]) == {(1, 5, 9): 2, (1, 9, 0): 1}
    assert dict(found["lag"]) == {(1, 5, 0): 2, (1, 9, 5): 1}
    assert dict(found["top"]) == {(1, 5): 2}


@pytest.mark.parametrize(
    ("op", "value"), [("count", 3), ("sum", 8), ("mean", 8 / 3), ("min", 1), ("max", 6), ("count_distinct", 2)]
)
def test_an_operand_has_a_value_for_the_rows_that_count(op: str, value: float) -> None:
    """A sum, a count or a mean was refused for a row without a value that its `where` leaves out."""
    where = "v != 0, 6 / v > 0"
    aggregate = streams.count(where=where) if op == "count" else getattr(streams, op)("6 / v", where=where)
    rows = [(1, 6), (1, 6), (1, 1), (1, 0), (1, -2), (2, 0)]
    for found in stepped(rows, x=aggregate, n=streams.count()):
        assert found[1, value, 5] == 1


def test_an_operand_without_a_value_for_a_row_that_counts_is_refused() -> None:
    with pytest.raises(EvaluationError, match="`x = sum 6 / v where v < 5` has no value for some row"):
        stepped([(1, 6), (1, 0)], x=streams.sum("6 / v", where="v < 5"))


def test_different_values_are_counted_beside_a_sum_of_durations() -> None:
    hour = dt.timedelta(hours=1)
    made = {"n": streams.count_distinct("v"), "sum": streams.sum("v")}
    for found in stepped([(1, hour), (1, hour), (1, 2 * hour)], dt.timedelta, **made):
        assert found == {(1, 2, 4 * hour): 1}


def test_null_is_no_value_that_is_counted() -> None:
    values = streams.Circuit("c").input("s", k=int, v="number?").group_by("k")
    with pytest.raises(DataError, match="column `n`: what is folded may be null"):
        values.aggregate(n=streams.count_distinct("v"))


def test_what_is_told_to_do_about_null_can_be_done() -> None:
    """A filter alone was said to do, after which the column admits null as before."""
    circuit = streams.Circuit("c")
    source = circuit.input("s", k=int, v="number?")
    known = source.filter("!is_null(v)")
    with pytest.raises(DataError, match=r"do: fold `coalesce\(x, 0\)`.*; with `filter\(.*\)` before it, or `where="):
        known.group_by("k").aggregate(n=streams.sum("v"))
    with pytest.raises(DataError, match=r"do: compute with `coalesce\(v, ...\)`.*; with `filter\(.*\)` before it"):
        known.map("k", w="v * 2")
    circuit.output("filter", known.group_by("k").aggregate(n=streams.sum("coalesce(v, 0)")))
    circuit.output("where", source.group_by("k").aggregate(n=streams.min("coalesce(v, 0)", where="!is_null(v)")))
    circuit.output("map", known.map("k", w="coalesce(v, 0) * 2"))
    made = circuit.step({"s": [(1, None), (1, 5), (2, None)]})
    assert dict(made["filter"]) == dict(made["where"]) == {(1, 5): 1}
    assert dict(made["map"]) == {(1, 10): 1}


@pytest.mark.parametrize("by", [("v", "v"), ("v", "-v"), ["v", "k", "-v"]])
def test_an_order_may_name_a_column_again(by: object) -> None:
    """The rows had a column more than the stream, and could not be shown."""
    circuit = streams.Circuit("c")
    groups = circuit.input("s", k=int, v=int).group_by("k")
    circuit.output("top", groups.top(1, by))
    circuit.output("lag", groups.lag("v", by, fill=0))
    for one in (circuit, circuit.incremental()):
        found = one.step({"s": [(1, 5), (1, 9)]})
        assert dict(found["top"]) == {(1, 5): 1}
        assert dict(found["lag"]) == {(1, 5, 0): 1, (1, 9, 5): 1}


@pytest.mark.parametrize("far", [2**63, 2**70])
def test_places_beyond_64_bits_are_beyond_all_rows(far: int) -> None:
    circuit = streams.Circuit("c")
    groups = circuit.input("s", k=int, v=int).group_by("k")
    circuit.output("top", groups.top(far, "v"))
    circuit.output("lag", groups.lag("v", "v", fill=0, offset=far))
    circuit.output("lead", groups.lead("v", "v", fill=0, offset=far))
    for one in (circuit, circuit.incremental()):
        found = one.step({"s": [(1, 5), (1, 9)]})
        assert dict(found["top"]) == {(1, 5): 1, (1, 9): 1}
        assert dict(found["lag"]) == dict(found["lead"]) == {(1, 5, 0): 1, (1, 9, 0): 1}


def test_a_row_without_a_match_has_null_where_nothing_fills_a_column_that_admits_it() -> None:
    circuit = streams.Circuit("c")
    left, right = circuit.input("l", k=int, v="date?"), circuit.input("r", k=int, w="symbol?", x=int)
    circuit.output("left", left.left_join(right, on="k", fill={"x": 0}))
    circuit.output("full", left.full_join(right, on="k", fill={"x": 0}))
    with pytest.raises(DataError, match="a row without a match has no value for `x`"):
        left.left_join(right, on="k")
    unfilled = right.select("k", "w")
    assert left.left_join(unfilled, on="k").columns == left.full_join(unfilled, on="k").columns
    given = {"l": [(1, None), (2, dt.date(2024, 5, 31))], "r": [(2, "a", 5), (3, "b", 6)]}
    both = {(1, None, None, 0): 1, (2, dt.date(2024, 5, 31), "a", 5): 1}
    for one in (circuit, circuit.incremental()):
        found = one.step(given)
        assert dict(found["left"]) == both
        assert dict(found["full"]) == {**both, (3, None, "b", 6): 1}


def test_the_first_rows_of_a_stream_without_columns() -> None:
    """Of whole values it ended in a ValueError of numpy."""
    circuit = streams.Circuit("c")
    rows = circuit.input("s", k=int).select().group_by()
    circuit.output("top", rows.top(2, ()))
    circuit.output("first", rows.first(()))
    for one in (circuit, circuit.incremental()):
        found = one.step({"s": [(1,), (2,), (2,)]})
        assert (dict(found["top"]), dict(found["first"])) == ({(): 2}, {(): 1})


@pytest.mark.parametrize("type_", ["number?", "unsigned?", "symbol?", "date?"])
def test_null_is_first_in_an_order_of_any_type(type_: str) -> None:
    """It was last in an order of unsigned numbers, whose greatest code is that of null."""
    low, high = {"symbol?": ("a", "b"), "date?": (dt.date(1, 1, 1), dt.date.max)}.get(type_, (0, 5))
    circuit = streams.Circuit("c")
    groups = circuit.input("s", k=int, v=type_).group_by("k")
    circuit.output("least", groups.top(1, "v"))
    circuit.output("greatest", groups.first("-v"))
    circuit.output("equal", groups.top(1, "k"))
    circuit.output("lag", groups.lag("v", "v", fill=high))
    circuit.output("lead", groups.lead("v", "-v", fill=high))
    none, least, greatest = (1, None), (1, low), (1, high)
    for one in (circuit, circuit.incremental()):
        found = one.step({"s": [greatest, none, least]})
        assert [list(found[name]) for name in ("least", "greatest", "equal")] == [
            [(none, 1)],
            [(greatest, 1)],
            [(none, 1)],
        ]
        assert dict(found["lag"]) == {(*none, high): 1, (*least, None): 1, (*greatest, low): 1}
        assert dict(found["lead"]) == {(*greatest, low): 1, (*least, None): 1, (*none, high): 1}


@pytest.mark.parametrize("count", [2**62, 2**63 - 1])
def test_weights_of_top_may_add_up_beyond_64_bits(count: int) -> None:
    """The fifth row was among the first ones again: the weights before it added up to 2**64."""
    circuit, large = streams.Circuit("c"), 2**62
    circuit.output("o", circuit.input("s", k=int, v=int).group_by("k").top(count, "v", number="n"))
    rows = streams.zset([(k, v) for k in (1, 2) for v in range(5)], [large] * 10)
    expected = {(k, 0, 1): large for k in (1, 2)}
    expected |= {(k, 1, large + 1): count - large for k in (1, 2) if count > large}
    for one in (circuit, circuit.incremental()):
        assert one.step({"s": rows})["o"] == expected


OPERATORS = ["count", "sum", "mean", "min", "max", "count_distinct", "quantile_disc", "quantile_cont", *SPREAD]


def documented(op: str, where: bool, rows: Counter[tuple[int, int]]) -> float | None:
    """The value for rows (v, c) with weights, as group_aggregates.py says it; None: there is none.

    `where`: of rows with c > 0.
    """
    values, others = Counter[int](), 0
    for (v, c), weight in rows.items():
        if c > 0 or not where:
            values[v] += weight
        else:
            others += weight
    held = [v for v, weight in values.items() if weight > 0]
    if op in ("min", "max"):
        return (min(held) if op == "min" else max(held)) if held else None
    if op == "count_distinct":
        return len(held) if held or others > 0 else None
    if op.startswith("quantile"):
        return quantile(op, 0.25, [(v, values[v]) for v in held]) if held else None
    if op in SPREAD:
        return spread(op, values.items()) if rows.total() else None
    count, total = values.total(), sum(v * weight for v, weight in values.items())
    if rows.total() == 0 or (op == "mean" and count == 0):
        return None
    return {"count": count, "sum": total}.get(op, total / count if count else 0)


def test_which_groups_have_a_row_is_as_the_docs_say_whatever_the_weights() -> None:
    negative = 0
    for seed in range(60):
        rng, circuit = Random(seed), streams.Circuit()
        wheres = {op: rng.random() < 0.5 for op in rng.sample(OPERATORS, rng.randint(1, 3))}
        aggregates = {
            f"a_{op}": getattr(streams, op)(
                *["v"] * (op != "count"), *[0.25] * op.startswith("quantile"), where="c > 0" if where else None
            )
            for op, where in wheres.items()
        }
        source = circuit.input("s", k=int, v=int, c=int)
        circuit.output("o", source.group_by("k").aggregate(**aggregates))
        changes, groups, made = circuit.incremental(), (Counter[tuple[int, int]](), Counter[tuple[int, int]]()), {}
        for _ in range(4):
            change = [(rng.randint(0, 1), rng.randint(-1, 2), rng.randint(0, 1)) for _ in range(3)]
            weights = rng.choices([-2, -1, 1, 2], k=3)
            for (k, v, c), weight in zip(change, weights, strict=True):
                groups[k][v, c] += weight
            delta = changes.step({"s": streams.zset(change, weights, columns={"k": int, "v": int, "c": int})})["o"]
            for row, weight in delta:
                made[row] = made.get(row, 0) + weight
            wanted = {
                (k, *found): 1
                for k, rows in enumerate(groups)
                if None not in (found := tuple(documented(op, where, rows) for op, where in wheres.items()))
            }
            assert {row: weight for row, weight in made.items() if weight} == wanted, seed
            negative += sum(rows.total() < 0 for rows in groups)
    assert negative > 60


DAY = dt.timedelta(days=1)


@pytest.mark.parametrize(
    ("made", "values", "disc", "cont"),
    [
        (float, [0.5, 2.0, 1e300, -3.0], 0.5, 1.25),
        ("decimal(9,2)", [Decimal("0.50"), Decimal("2.00"), Decimal("9.00"), Decimal("-3.00")], Decimal("0.50"), 1.25),
        (dt.timedelta, [DAY, 3 * DAY, 9 * DAY, -DAY], DAY, 2 * DAY),
        (
            dt.datetime,
            [dt.datetime(2026, 1, d) for d in (1, 3, 9)] + [dt.datetime(2025, 1, 1)],
            dt.datetime(2026, 1, 1),
            dt.datetime(2026, 1, 2),
        ),
        ("symbol", ["b", "c", "d", "a"], "b", None),
    ],
)
def test_quantiles_of_every_kind_of_value(made: object, values: list[object], disc: object, cont: object) -> None:
    """Values come in another order than theirs."""
    asked = {"disc": streams.quantile_disc("v", 0.5)}
    asked |= {} if cont is None else {"cont": streams.quantile_cont("v", Fraction(1, 2))}
    circuit = streams.Circuit("c")
    circuit.output("o", circuit.input("s", k=int, v=made).group_by("k").aggregate(**asked))
    for one in (circuit, circuit.incremental()):
        assert dict(one.step({"s": [(1, value) for value in values]})["o"]) == {
            (1, disc, *([cont] * (len(asked) - 1))): 1
        }


def test_weights_of_quantiles_may_not_add_up_beyond_64_bits() -> None:
    large = 1 << 62
    for rows, ok in (([(1, 5), (1, 6)], True), ([(1, 5), (1, 6), (1, 7)], False)):
        circuit = streams.Circuit("c")
        source = circuit.input("s", k=int, v=int)
        circuit.output("o", source.group_by("k").aggregate(m=streams.quantile_disc("v", 0.75)))
        run = circuit.incremental()
        given = {"s": streams.zset(rows, [large - 1] * len(rows))}
        if ok:
            assert dict(run.step(given)["o"]) == {(1, 6): 1}
            continue
        with pytest.raises(EvaluationError, match="quantile_disc"):
            run.step(given)
        assert dict(run.step({"s": [(1, 5)]})["o"]) == {(1, 5): 1}, "the step was not made"


def test_weights_of_variances_may_not_be_beyond_their_words() -> None:
    circuit = streams.Circuit("c")
    circuit.output("o", circuit.input("s", k=int, v=int).group_by("k").aggregate(m=streams.var_pop("v")))
    run = circuit.incremental()
    with pytest.raises(EvaluationError, match="var_pop"):
        run.step({"s": streams.zset([(1, 5)], [1 << 40])})
    assert dict(run.step({"s": [(1, 5), (1, 7)]})["o"]) == {(1, 1.0): 1}, "the step was not made"


@pytest.mark.parametrize("word", ["quantile_disc", "quantile_cont"])
@pytest.mark.parametrize("at", [1.5, -0.1, "0.5", None, True, float("nan"), Fraction(1, 3)])
def test_fractions_are_from_0_to_1_and_have_few_digits(word: str, at: object) -> None:
    with pytest.raises(DataError, match="no fraction from 0 to 1"):
        getattr(streams, word)("v", at)


def test_what_an_aggregate_has_no_value_of_is_refused_by_its_type() -> None:
    source = streams.Circuit("c").input("s", k=int, v=dt.timedelta, w=str)
    for aggregate, type_ in ((streams.var_pop("v"), "duration"), (streams.quantile_cont("w", 0.5), "symbol")):
        with pytest.raises(DataError, match=f"is of type {type_}"):
            source.group_by("k").aggregate(x=aggregate)
