"""Quantiles: random histories against sorted lists and fractions, of all types, at all parts, and what they take.

Catches: a rank that is one off where the part falls on a row, a value that comes often and counts once, a group whose
last row went, a descent that ends in the wrong page, a mean of two that is rounded twice or leaves its words, an order
of texts by their codes, counts that two rules share and one takes along.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import BuilderError, EvaluationError
from tests.aggregates.join_history import Rows, change
from tests.conftest import JIT, examples
from tests.engine.programs import seeds
from tests.plain.aggregates import quantile

DAY = dt.datetime(2024, 2, 29, 12)
# Of each type some values, and whether there is something between two.
VALUES: dict[str, tuple[tuple[Any, ...], bool]] = {
    "number": ((0, 1, -1, 2, 7, 2**63 - 1, -(2**63), 2**53 + 1), True),
    "unsigned": ((0, 1, 5, 2**64 - 1, 2**63, 2**63 - 1), True),
    "float": ((0.0, -0.5, 0.1, 1e300, -1e308, 1.7e308, math.inf, -math.inf, 5e-324, 1e-320), True),
    "decimal(18,2)": (tuple(Decimal(text) for text in ("0.01", "-0.02", "3.10", "-9999999999999999.99", "7")), True),
    "timestamp": (tuple(DAY + dt.timedelta(microseconds=step) for step in (0, 1, 4, 10**6, -(10**15))), True),
    "duration": (tuple(dt.timedelta(microseconds=step) for step in (0, 1, 4, -3, 10**15)), True),
    "symbol": (("b", "a", "", "é", "ab", "B"), False),
    "date": ((dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(2025, 1, 1)), False),
    "bool": ((False, True), False),
    "number?": ((0, 3, 1 - 2**63, None), True),
    "float?": ((0.5, -math.inf, None), True),
    "symbol?": (("b", "a", None), False),
}
PARTS = ("0", "0.25", "0.5", "0.9", "1", "0.333333333", "0.000000001")
TOO_MANY = r"`quantile_disc\(0\.5\)` of a group that counts more than 2\^63 - 1 values"
STRATEGIES = (None, "recompute", "trace", "delta", "triggers")
Row = tuple[Any, ...]


def between(part: str, ordered: list[Any]) -> Any:
    """What `quantile_cont` is of values in order."""
    first = ordered[0]
    if isinstance(first, dt.datetime | dt.timedelta):
        zero = DAY if isinstance(first, dt.datetime) else dt.timedelta()
        place = Fraction(part) * (len(ordered) - 1)
        micro = [(value - zero) // dt.timedelta(microseconds=1) for value in ordered]
        lower, upper = micro[math.floor(place)], micro[math.ceil(place)]
        return zero + dt.timedelta(microseconds=round(lower + (upper - lower) * (place % 1)))
    return quantile(f"quantile_cont({part})", ordered)


def grouped(rows: set[Row], *by: int, value: int = 2) -> dict[Row, list[Any]]:
    """The values of each group that are not null, in order."""
    found: dict[Row, list[Any]] = {}
    for row in rows:
        if row[value] is not None:
            found.setdefault(tuple(row[c] for c in by), []).append(row[value])
    return {group: sorted(values) for group, values in found.items()}


@examples(150, 12)
@given(rng=seeds, kind=st.sampled_from(tuple(VALUES)), strategy=st.sampled_from(STRATEGIES))
def test_histories(rng: Random, kind: str, strategy: str | None) -> None:
    values, cont = VALUES[kind]
    parts = rng.sample(PARTS, 2)
    text = f".decl r(g:number, h:symbol, v:{kind})\n"
    for n, part in enumerate(parts):
        text += f"disc{n}[g] = quantile_disc({part}) v : {{ r(g, _, v) }}.\n"
        text += f"all{n}(x) :- x = quantile_disc({part}) v : {{ r(_, _, v) }}.\n"
        if cont:
            text += f"cont{n}[h] = quantile_cont({part}) v : {{ r(_, h, v) }}.\n"
    db = lftj.Database._sized("", page_rows=rng.choice((2, 4)), directory_rows=2)
    db.rules(text, maintain=dict.fromkeys(["disc0", "all1"], strategy) if strategy else {})
    some = [(rng.randrange(3), rng.choice("yxé"), rng.choice(values)) for _ in range(30)]
    facts = set(rng.sample(some, rng.choice((0, 3, 30))))
    db.load("r", list(facts))

    def check() -> None:
        for n, part in enumerate(parts):
            disc = f"quantile_disc({part})"
            expected = {(*group, quantile(disc, own)) for group, own in grouped(facts, 0).items()}
            assert set(db[f"disc{n}"]) == expected
            assert set(db[f"all{n}"]) == {(quantile(disc, own),) for own in grouped(facts).values()}
            if cont:
                assert set(db[f"cont{n}"]) == {(*group, between(part, own)) for group, own in grouped(facts, 1).items()}

    check()
    for _ in range(6 if JIT else 3):
        before = {name: set(db[name]) for name in ("disc0", "all1")}
        with db.transaction() as tx:
            for row in rng.sample(some, rng.choice((1, 1, 3, 15))):
                if rng.random() < 0.5 and row in facts:
                    tx.erase("r", [row])
                    facts.discard(row)
                else:
                    tx.insert("r", [row])
                    facts.add(row)
        check()
        for name, was in before.items():
            now = set(db[name])
            assert set(tx.delta[name].inserted) == now - was
            assert set(tx.delta[name].erased) == was - now


@examples(60, 6)
@given(rng=seeds)
def test_a_binding_counts_as_often_as_it_says(rng: Random) -> None:
    """Over a join, with counts below 1, and with a value that is a term."""
    text = """
    .decl r(g:number, v:number, n:number)
    .decl s(g:number, h:number)
    d[h] = quantile_disc(0.5) counted(v * v, n) : { r(g, v, n), s(g, h) }.
    c[h] = quantile_cont(0.3) counted(v, n + 1) : { r(g, v, n), s(g, h) }.
    same[h] = quantile_disc(0.5) h : { s(_, h) }.
    """
    db = lftj.Database(text)
    r: Rows = set()
    s: Rows = set()
    for _ in range(5 if JIT else 2):
        joined = change(db, rng, r, s)
        squares = {h: [v * v for v, n in own for _ in range(n)] for h, own in joined.items()}
        plain = {h: [v for v, n in own for _ in range(n + 1)] for h, own in joined.items()}
        assert dict(db["d"]) == {h: quantile("quantile_disc(0.5)", sorted(own)) for h, own in squares.items() if own}
        assert dict(db["c"]) == {h: quantile("quantile_cont(0.3)", sorted(own)) for h, own in plain.items() if own}
        assert dict(db["same"]) == {h: h for _, h in s}


@pytest.mark.parametrize(
    ("part", "values", "expected"),
    [
        ("0.5", [-math.inf, math.inf], -math.inf),
        ("0.6", [-math.inf, math.inf], math.inf),
        ("0.5", [-math.inf, 3.0], -math.inf),
        ("0.1", [3.0, math.inf], math.inf),
        ("0.5", [5e-324, 1e-323], 1e-323),  # whose halves are no floats
        ("0.5", [-1.7e308, 1.7e308], 0.0),
        ("0.5", [1.5e308, 1.75e308], float(Fraction(1.5e308) / 2 + Fraction(1.75e308) / 2)),
    ],
)
def test_between_floats(part: str, values: list[float], expected: float) -> None:
    db = lftj.Database(f".decl r(v:float) m(x) :- x = quantile_cont({part}) v : {{ r(v) }}.")
    db.load("r", [(value,) for value in values])
    assert list(db["m"]) == [(expected,)]


def test_what_counts_once_and_what_counts_as_it_says_are_told_apart() -> None:
    db = lftj.Database(""".decl r(v:number, n:number)
    once(x) :- x = quantile_disc(0.5) v : { r(v, n), n > 0 }.
    said(x) :- x = quantile_disc(0.5) counted(v, n) : { r(v, n) }.""")
    db.load("r", [(1, 1), (2, 1), (3, 9)])
    assert (list(db["once"]), list(db["said"])) == ([(2,)], [(3,)])


def test_steps_grow_with_the_logarithm_of_the_rows() -> None:
    steps = []
    for size in (1_000, 16_000) if JIT else (100, 400):
        db = lftj.Database._sized("", page_rows=4, directory_rows=4)
        db.rules(".decl r(v:number) m(x) :- x = quantile_cont(0.5) v : { r(v) }.")
        db.load("r", [(i,) for i in range(size)])
        taken = []
        for i in range(5):
            with db.transaction() as tx:
                tx.insert("r", [(size + i,)])
            taken.append(tx.stats["heads"]["m"]["steps"])
        assert list(db["m"]) == [((size + 4) / 2,)]
        steps.append(min(taken))
    assert steps[1] < 2 * steps[0]


def test_quantiles_of_the_same_braces_share_their_counts() -> None:
    """Nor does one that goes take them along."""
    db = lftj.Database(""".decl r(g:number, v:number)
    low[g] = quantile_disc(0.1) v : { r(g, v) }.
    high[k] = quantile_cont(0.9) x : { r(k, x) }.
    other[g] = quantile_cont(0.9) v : { r(v, g) }.""")
    db.load("r", [(1, 5), (1, 7), (2, 4)])
    db.evaluate()
    assert str(db.explain()).count("-> count:number") == 2
    with db.transaction() as tx:
        tx.remove_rules("low")
    with db.transaction() as tx:
        tx.insert("r", [(2, 9), (1, 5)])
        tx.erase("r", [(1, 7)])
    assert list(db["high"]) == [(1, 5.0), (2, 8.5)]
    db.rules("low[g] = quantile_disc(0.1) v : { r(g, v) }.")
    assert list(db["low"]) == [(1, 5), (2, 4)]


def test_more_values_than_a_word_counts_are_refused() -> None:
    db = lftj.Database(""".decl r(v:number, n:number)
    m(x) :- x = quantile_disc(0.5) counted(v, n) : { r(v, n) }.""")
    db.load("r", [(1, 2**62), (2, 2**62 - 1)])
    assert list(db["m"]) == [(1,)]
    with pytest.raises(EvaluationError, match=TOO_MANY), db.transaction() as tx:
        tx.insert("r", [(3, 1)])
    assert list(db["m"]) == [(1,)]
    db = lftj.Database(""".decl r(v:number, n:number)
    m(x) :- x = quantile_disc(0.5) counted(v, n) : { r(v, n) }.""")
    db.load("r", [(1, 2**62), (2, 2**62), (3, 1)])
    with pytest.raises(EvaluationError, match=TOO_MANY):
        list(db["m"])


def test_it_is_built_and_printed() -> None:
    program = lftj.Program()
    sale = program.input("sale", item=str, price=int)
    v, i = lftj.variables("v, i")
    (median,) = program.relations("median")
    program.rule(median[i] == lftj.agg.quantile_cont(0.50, v, sale(i, v)))
    assert "median[i] = quantile_cont(0.5) v : { sale(i, v) }." in program.to_text()
    assert str(lftj.agg.quantile_cont(Fraction(3, 4), v, sale(i, v))).startswith("quantile_cont(0.75)")
    for wrong in (1.5, "0.5", None, True, v, Fraction(1, 3)):
        with pytest.raises(BuilderError, match="`quantile_disc` without a fraction from 0 to 1"):
            lftj.agg.quantile_disc(wrong, v, sale(i, v))


def test_a_relation_may_have_the_name() -> None:
    db = lftj.Database(".decl quantile_disc(x:number) p(x) :- quantile_disc(x).")
    db.load("quantile_disc", [(3,)])
    assert list(db["p"]) == [(3,)]
