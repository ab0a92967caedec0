"""count, sum and mean: random histories against dicts and loops, whatever strategy follows them.

Catches: a binding that counted twice or not at all, a result that depends on the history, a group that stayed without
bindings, accumulators that are not those of an evaluation from scratch, a failed commit that left something behind.
"""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import accumulators
from lftj.evaluate.aggregate import folding_of
from lftj.language.clause import Apply, Clause, Compare, Value, Var
from lftj.maintain.derivations import KeptDerivations
from tests.aggregates.cases import add, aggregate, folded, grouped
from tests.conftest import JIT
from tests.engine.histories import check_stored
from tests.engine.programs import seeds

VALUES: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, -1, 5, 2**31, -(2**32) - 7, 2**40 + 3, -(2**45)),
    "unsigned": (0, 1, 7, 2**32, 2**33 + 5, 2**50),
    "float": (0.0, 0.1, -0.1, 1e300, -1e300, 5e-324, -2.5e-308, 3.0, 1e16, 1.0, float("inf")),
}
Row = tuple[Any, ...]


def bindings(facts: set[Row], other: set[tuple[int]]) -> dict[str, list[Row]]:
    """What the clauses of `clauses` bind, by head."""
    return {
        "by_g": [(g, v) for g, h, v in facts],
        "by_gh": [(g, h, v) for g, h, v in facts],
        "all": [(v,) for g, h, v in facts],
        "joined": [(h, v) for g, h, v in facts if (h,) in other],
        "pairs": [(g, v) for g, h, v in facts for g2, h2, v2 in facts if g2 == h],
        "above": [(g, v) for g, h, v in facts if h > 1],
    }


def clauses(op: str, kind: str) -> list[Clause]:
    g, h, k, v, w = (Var(name, "number") for name in "ghkvw")
    v, w = Var("v", kind), Var("w", kind)
    operand = None if op == "count" else v
    f = ("f", (g, h, v))
    return [
        aggregate("by_g", op, [g], operand, [f], rule=1),
        aggregate("by_gh", op, [g, h], operand, [f], rule=2),
        aggregate("all", op, [], operand, [f], rule=3),
        aggregate("joined", op, [h], operand, [f, ("o", (h,))], rule=4),
        aggregate("pairs", op, [g], operand, [f, ("f", (h, k, w))], rule=5),
        aggregate("above", op, [g], operand, [f], [Compare(">", h, Value(1, "number"))], rule=6),
    ]


def expected(op: str, kind: str, rows: list[Row], groups: int) -> set[Row]:
    cut = [row[:groups] for row in rows] if op == "count" else rows
    return {(*group, folded(op, kind, values)) for group, values in grouped(cut, groups).items()}


def check_accumulators(db: lftj.Database, clause: Clause, rows: list[Row]) -> None:
    """What is kept equals, row for row, what a recording from scratch would keep."""
    held = db._kept.heads.get(clause.head)
    if not isinstance(held, KeptDerivations) or held.accumulators is None:
        return
    held.accumulators.table.check()
    folding, gathering = folding_of(clause), accumulators.Gathering(folding_of(clause))
    db._evaluator.rows(clause, lftj.join.run.Limits(), gathering.add)
    fresh = accumulators.Accumulators.of(db._arena, folding, gathering.sums(), page_rows=4, dir_rows=2)
    assert (held.accumulators.table.columns() == fresh.table.columns()).all()
    assert held.accumulators.table.columns()[folding.groups].sum() == len(rows)
    if fresh.segments is not None:
        held.accumulators.segments.check()
        assert (held.accumulators.segments.columns() == fresh.segments.columns()).all()


@given(
    rng=seeds,
    op=st.sampled_from(("count", "sum", "mean")),
    kind=st.sampled_from(tuple(VALUES)),
    strategy=st.sampled_from((None, "trace", "trace", "recompute")),
)
def test_histories(rng: Random, op: str, kind: str, strategy: str | None) -> None:
    db = lftj.Database._sized(f".decl f(g:number, h:number, v:{kind}) .decl o(h:number)", page_rows=2, directory_rows=2)
    made = clauses(op, kind)
    for clause in made:
        add(db, clause, strategy)
    some = [(rng.randrange(3), rng.randrange(3), rng.choice(VALUES[kind])) for _ in range(30)]
    facts, other = set(rng.sample(some, rng.choice((0, 3, 12)))), {(1,)}
    db.load("f", list(facts))
    db.load("o", list(other))

    def verify() -> dict[str, set[Row]]:
        found = {}
        for clause in made:
            bound = bindings(facts, other)[clause.head]
            want = expected(op, kind, bound, clause.aggregate.groups)
            assert set(db[clause.head]) == want, clause.head
            check_stored(db._relations[clause.head])
            check_accumulators(db, clause, bound)
            found[clause.head] = want
        return found

    before = verify() if rng.random() < 0.7 else None
    for _ in range(5):
        with db.transaction() as tx:
            for row in rng.sample(some, rng.choice((0, 1, 1, 4, 12))):
                if rng.random() < 0.5 and row in facts:
                    tx.erase("f", [row])
                    facts.discard(row)
                else:
                    tx.insert("f", [row])
                    facts.add(row)
            if rng.random() < 0.3:
                (tx.insert if (2,) not in other else tx.erase)("o", [(2,)])
                other ^= {(2,)}
        after = verify()
        if before is not None:
            for head, rows in after.items():
                assert set(tx.delta[head].inserted) == rows - before[head]
                assert set(tx.delta[head].erased) == before[head] - rows
        before = after


def test_columns_that_nothing_names_are_counted_and_an_aggregate_may_keep_a_trace() -> None:
    db = lftj.Database(".decl f(g:number, h:number, v:number)")
    for clause, how in zip(clauses("sum", "number")[:3], (None, "trace", "recompute"), strict=True):
        add(db, clause, how)
    for row in (1, 2, 3), (1, 2, 4), (1, 3, 5):
        with db.transaction() as tx:
            tx.insert("f", [row])
    assert "follows changes by triggers" in str(db.explain("by_g"))  # of `h` only the rows are counted
    assert "follows changes by its trace, as declared (recorded)" in str(db.explain("by_gh"))
    assert db.memory()["by_g"]["triggers: maps"] > 0
    assert set(db._kept.heads) == {"by_g", "by_gh"}


def test_an_operand_may_be_an_expression() -> None:
    db = lftj.Database(".decl f(g:number, v:number)")
    g, v = Var("g", "number"), Var("v", "number")
    add(db, aggregate("s", "sum", [g], Apply("*", (v, v), "number"), [("f", (g, v))]))
    db.load("f", [(1, 2), (1, -2), (2, 3)])
    assert list(db["s"]) == [(1, 8), (2, 9)]
    for change in ("insert", (1, 5)), ("erase", (1, 2)):
        with db.transaction() as tx:
            getattr(tx, change[0])("f", [change[1]])
    assert list(db["s"]) == [(1, 29), (2, 9)]


def test_a_rule_that_computes_texts() -> None:
    """Each binding counts, although two of them have the same length."""
    db = lftj.Database(".decl w(g:number, t:symbol)")
    g, t = Var("g", "number"), Var("t", "symbol")
    add(db, aggregate("s", "sum", [g], Apply("strlen", (t,), "number"), [("w", (g, t))]))
    add(db, aggregate("n", "count", [g], None, [("w", (g, t))], [Compare("contains", Value("a", "symbol"), t)], rule=2))
    db.load("w", [(1, "ab"), (1, "ba"), (1, "c"), (2, "xyz")])
    assert list(db["s"]) == [(1, 5), (2, 3)]
    assert list(db["n"]) == [(1, 2)]
    with db.transaction() as tx:
        tx.insert("w", [(1, "ca"), (2, "aa")])
        tx.erase("w", [(1, "ab")])
    assert list(db["s"]) == [(1, 5), (2, 5)]
    assert list(db["n"]) == [(1, 2), (2, 1)]


@pytest.mark.parametrize("strategy", ["trace", "recompute"])
def test_variables_of_either_part_of_a_rule_that_computes_texts_count(strategy: str) -> None:
    db = lftj.Database(".decl r(x:symbol, y:symbol, k:number) .decl q(z:symbol, w:number)")
    x, y, z = (Var(name, "symbol") for name in "xyz")
    k, w = Var("k", "number"), Var("w", "number")
    joined = Compare("=", z, Apply("cat", (x, y), "symbol"))
    add(db, aggregate("n", "count", [x], None, [("r", (x, y, k)), ("q", (z, w))], [joined]), strategy)
    db.load("r", [("a", "b", 1), ("a", "b", 2), ("a", "", 1)])
    db.load("q", [("ab", 1), ("ab", 2), ("a", 1)])
    assert list(db["n"]) == [("a", 5)]
    for change, row, want in ("erase", ("ab", 1), 3), ("insert", ("a", 7), 4):
        with db.transaction() as tx:
            getattr(tx, change)("q", [row])
        assert list(db["n"]) == [("a", want)]


def test_bindings_of_existential_variables_count() -> None:
    """Without an aggregate the search would end at the first witness, and a column nobody asks for have no level."""
    db = lftj.Database(".decl a(x:number, y:number) .decl b(y:number, z:number)")
    x, y, z = (Var(name, "number") for name in "xyz")
    add(db, aggregate("n", "count", [x], None, [("a", (x, y)), ("b", (y, z))]))
    db.load("a", [(1, 1), (1, 2)])
    db.load("b", [(1, 5), (1, 6), (2, 5), (3, 5)])
    assert list(db["n"]) == [(1, 3)]


# Integers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["number", "unsigned"])
@pytest.mark.parametrize("strategy", ["trace", "recompute"])
def test_integer_sums_are_exact_up_to_the_ends_of_the_type(kind: str, strategy: str) -> None:
    top = 2**63 - 1 if kind == "number" else 2**64 - 1
    db = lftj.Database(f".decl f(g:number, k:number, v:{kind})")
    g, k, v = Var("g", "number"), Var("k", "number"), Var("v", kind)
    add(db, aggregate("s", "sum", [g], v, [("f", (g, k, v))]), strategy)
    add(db, aggregate("m", "mean", [g], v, [("f", (g, k, v))], rule=2), strategy)
    db.load("f", [(1, 0, top - 1), (2, 0, 7)])
    for _ in range(2):
        with db.transaction() as tx:
            tx.insert("f", [(1, 1, 1)])
        assert list(db["s"]) == [(1, top), (2, 7)]
        before = db._state
        with pytest.raises(EvaluationError) as caught, db.transaction() as tx:
            tx.insert("f", [(2, 2, 3), (1, 2, 1)])
        assert db._state is before
        assert caught.value.render() == (
            f"<rules>: in `sum rule` with g = 1: the sum of a group is out of the range of {kind}\n"
            "  why: it could not be stored as a value, or is one of 2^31 bindings and more; nothing was changed\n"
            "  do: sum floats (`itof`, `utof`)"
        )
        # The sum leaves the type and comes back within a transaction; what is left is the first of them.
        with db.transaction() as tx:
            tx.insert("f", [(1, 3, top)])
            tx.erase("f", [(1, 0, top - 1), (1, 1, 1)])
        assert list(db["s"]) == [(1, top), (2, 7)]
        with db.transaction() as tx:
            tx.erase("f", [(1, 3, top)])
            tx.insert("f", [(1, 0, top - 1)])
        assert dict(db["m"]) == {1: float(top - 1), 2: 7.0}


def test_a_sum_that_is_out_of_range_at_first_may_be_repaired() -> None:
    db = lftj.Database(".decl f(v:number)")
    v = Var("v", "number")
    add(db, aggregate("s", "sum", [], v, [("f", (v,))]))
    db.load("f", [(2**63 - 1,), (1,)])
    with pytest.raises(EvaluationError, match="in `sum rule`: the sum of a group"):
        list(db["s"])
    with db.transaction() as tx:
        tx.erase("f", [(1,)])
    assert list(db["s"]) == [(2**63 - 1,)]


# Floats ---------------------------------------------------------------------------------------------------------------


def mixed(rng: Random, n: int) -> list[float]:
    """Floats from 1e-300 to 1e300, many of which nearly cancel."""
    found = set()
    while len(found) < n:
        value = math.ldexp(rng.uniform(-1, 1), rng.randint(-1000, 1000))
        found.add(value)
        if rng.random() < 0.5:
            found.add(-value * (1 + rng.choice((0, 2**-52, 2**-30))))
    return list(found)


def test_float_sums_are_fsum_whatever_the_history() -> None:
    rng, n = Random(7), 10_000 if JIT else 200
    values = mixed(rng, n)
    db = lftj.Database(".decl f(g:number, v:float)")
    g, v = Var("g", "number"), Var("v", "float")
    add(db, aggregate("s", "sum", [g], v, [("f", (g, v))]), "trace")
    add(db, aggregate("m", "mean", [], v, [("f", (g, v))], rule=2), "trace")
    rows = [(rng.randrange(3), value) for value in values]
    there = set(rows[: n // 2])
    with db.transaction() as tx:
        tx.insert("f", list(there))
    for _ in range(10):
        with db.transaction() as tx:
            gone = set(rng.sample(sorted(there), n // 20))
            come = set(rng.sample(rows, n // 20)) - gone
            tx.erase("f", list(gone))
            tx.insert("f", list(come))
        there = there - gone | come
        assert tx.stats["heads"]["s"]["strategy"] == "trace"
        for group, values in grouped(there, 1).items():
            assert dict(db["s"])[group[0]] == math.fsum(values)
        assert list(db["m"]) == [(float(sum(Fraction(value) for _, value in there) / len(there)),)]
    with db.transaction() as tx:
        tx.erase("f", list(there))
    held = db._kept.heads["s"].accumulators
    assert len(held.table) == len(held.segments) == len(db["s"]) == 0


@pytest.mark.parametrize("strategy", ["trace", "recompute"])
def test_infinities_and_sums_beyond_the_floats(strategy: str) -> None:
    inf, top = math.inf, 1.7976931348623157e308
    db = lftj.Database(".decl f(g:number, v:float)")
    g, v = Var("g", "number"), Var("v", "float")
    add(db, aggregate("s", "sum", [g], v, [("f", (g, v))]), strategy)
    db.load("f", [(1, top), (1, 1.0), (2, 1.0)])
    for _ in range(2):
        assert dict(db["s"]) == {1: top, 2: 1.0}
        for rows, message in (
            ([(1, inf), (1, -inf), (2, 5.0)], "the sum of inf and -inf has no value"),
            ([(2, top), (1, top / 2)], "the sum of a group is out of the range of float"),
        ):
            with pytest.raises(EvaluationError, match=f"with g = 1: {message}"), db.transaction() as tx:
                tx.insert("f", rows)
            assert dict(db["s"]) == {1: top, 2: 1.0}
        with db.transaction() as tx:
            tx.insert("f", [(1, inf), (1, top / 2), (2, -inf)])
        assert dict(db["s"]) == {1: inf, 2: -inf}
        with db.transaction() as tx:
            tx.erase("f", [(1, inf), (2, -inf), (1, top / 2)])
    # Where partial sums overflow, fsum gives up; the sum is a float all the same.
    with db.transaction() as tx:
        tx.insert("f", [(1, top / 2), (1, -top / 2)])
    assert dict(db["s"])[1] == top


def test_negative_zero_and_subnormal_sums() -> None:
    db = lftj.Database(".decl f(v:float)")
    v = Var("v", "float")
    add(db, aggregate("s", "sum", [], v, [("f", (v,))]))
    db.load("f", [(-0.0,)])
    assert [math.copysign(1, value) for (value,) in db["s"]] == [1.0]
    with db.transaction() as tx:
        tx.insert("f", [(5e-324,), (-1e-323,), (2.2250738585072014e-308,)])
    assert list(db["s"]) == [(math.fsum([5e-324, -1e-323, 2.2250738585072014e-308]),)]


# Parts ----------------------------------------------------------------------------------------------------------------


@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    erased=st.integers(0, 10),
    count=st.integers(1, 40) | st.integers(1, 2**31 - 1),
)
def test_rounding(values: list[float], erased: int, count: int) -> None:
    """Values come and go; the digits that are left, divided by a count, are rounded to the nearest float."""
    from lftj.join import exactsum
    from lftj.values.codes import encode_float, float_of

    left = values[erased:]
    codes = encode_float(np.array(values + values[:erased]))
    weights = np.array([1] * len(values) + [-1] * len(values[:erased]))
    _, rows, sums = exactsum.segments_of(codes, weights, np.zeros(1, np.int64))
    for divisor in (1, count):
        try:
            want = float(sum(map(Fraction, left)) / divisor)
        except OverflowError:
            continue
        digits = np.zeros(exactsum.DIGITS, np.int64)
        digits[rows[1]] = sums
        assert float_of(exactsum.round_digits(digits, divisor, 0, exactsum.DIGITS)) == want


@pytest.mark.parametrize(
    "values",
    [
        [0.1, 0.2, 0.3],
        [0.1] * 3 + [0.7, 1e16],
        [1.7e308, 1.7e308],
        [-5e-324, 0.0],
        [5e-324, 1e-323],
        [2.0**53, 1, 1, 1],
    ],
    ids=str,
)
def test_a_mean_in_a_rule_is_that_of_a_scan(values: list[float]) -> None:
    """The last bit differed: of floats the rounded sum was divided, and the quotient rounded once more."""
    db = lftj.Database(".decl f(k:number, v:float)  m[] = mean v : { f(_, v) }.")
    rows = list(enumerate(values))
    db.load("f", rows)
    for left in range(len(rows), 0, -1):
        want = float(sum(map(Fraction, values[:left])) / left)
        ((mean,),) = db["m"]
        assert mean == db["f"].scan("mean") == want
        assert math.copysign(1, mean) == math.copysign(1, db["f"].scan("mean")) == math.copysign(1, want + 0.0)
        with db.transaction() as tx:
            tx.erase("f", rows[left - 1 : left])


def test_bindings_are_summed_while_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulators.Gathering, "ROOM", 7)
    rng = Random(3)
    for kind, values in VALUES.items():
        folding = accumulators.Folding("sum", 1, kind)
        rows = np.array([[rng.randrange(4) for _ in range(60)], [int(rng.choice((0, 3, 2**50))) for _ in range(60)]])
        whole = accumulators.sums_of(folding, rows, np.ones(60, np.int64))
        gathering = accumulators.Gathering(folding)
        for i in range(0, 60, 5):
            gathering.add(rows[:, i : i + 5])
        for a, b in zip(whole, gathering.sums(), strict=True):
            assert a.shape == b.shape, (kind, values)
            assert (a == b).all()
