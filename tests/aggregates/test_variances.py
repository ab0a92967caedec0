"""Variances and standard deviations: random histories against fractions, of all types, and what a change takes.

Catches: a sum of squares that is rounded, or cancels out far from 0; a digit that is carried into the wrong segment; a
square that wraps; a sample's divisor where all are asked for; a group of one value that has a sample's variance; a
value that is taken away and leaves something behind; infinities that are summed; a binding that counts once where it
says how often.
"""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj import streams
from lftj.errors import EvaluationError
from tests.aggregates.join_history import Rows, change
from tests.conftest import JIT, examples
from tests.engine.programs import seeds
from tests.plain.aggregates import variance

VALUES: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, -1, 7, 2**63 - 1, -(2**63), 2**32, -(2**32) - 1, 2**53 + 1),
    "unsigned": (0, 1, 5, 2**64 - 1, 2**63, 2**32 - 1),
    "float": (0.0, -0.5, 0.1, 1e9 + 0.1, 1e9 + 0.2, -1e153, 5e-324, 1e-320, 2.5e-160),
    "decimal(18,2)": tuple(Decimal(text) for text in ("0.01", "-0.02", "3.10", "-9999999999999999.99", "7")),
    "number?": (0, 3, 1 - 2**63, None),
    "float?": (0.5, -2.5, None),
}
STRATEGIES = (None, "recompute", "trace", "delta")
POP = ("var_pop", "stddev_pop")
OPS = (*POP, "var_samp", "stddev_samp")
Row = tuple[Any, ...]


def expected(op: str, rows: set[Row], by: int) -> dict[Any, float]:
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if row[2] is not None:
            groups.setdefault(row[by], []).append(row[2])
    return {group: variance(op, own) for group, own in groups.items() if len(own) > 1 or op in POP}


@examples(150, 12)
@given(rng=seeds, kind=st.sampled_from(tuple(VALUES)), strategy=st.sampled_from(STRATEGIES))
def test_histories(rng: Random, kind: str, strategy: str | None) -> None:
    one, other = rng.sample(OPS, 2)
    text = f".decl r(g:number, h:symbol, v:{kind})\n"
    text += f"a[g] = {one} v : {{ r(g, _, v) }}.\nb[h] = {other} v : {{ r(_, h, v) }}.\n"
    db = lftj.Database._sized("", page_rows=rng.choice((2, 4)), directory_rows=2)
    db.rules(text, maintain={"a": strategy} if strategy else {})
    some = [(rng.randrange(3), rng.choice("yxé"), rng.choice(VALUES[kind])) for _ in range(30)]
    facts = set(rng.sample(some, rng.choice((0, 3, 30))))
    db.load("r", list(facts))
    for _ in range(6 if JIT else 3):
        was = set(db["a"])
        assert was == {*expected(one, facts, 0).items()}
        assert set(db["b"]) == {*expected(other, facts, 1).items()}
        with db.transaction() as tx:
            for row in rng.sample(some, rng.choice((1, 1, 3, 15))):
                (tx.erase if row in facts else tx.insert)("r", [row])
                facts ^= {row}
        assert set(db["a"]) == {*expected(one, facts, 0).items()}
        assert set(tx.delta["a"].inserted) == set(db["a"]) - was
        assert set(tx.delta["a"].erased) == was - set(db["a"])


@examples(40, 4)
@given(rng=seeds, kind=st.sampled_from(("number", "unsigned", "float", "decimal(18,4)")))
def test_values_that_lie_close_together_far_from_zero(rng: Random, kind: str) -> None:
    """What is left of the sums is far less than these: by two floats for each, or by integers where they cancel out."""
    far = rng.choice((10**3, 10**6, 10**9, 10**13))
    db = lftj.Database._sized("", page_rows=4, directory_rows=2)
    db.rules(f".decl r(i:number, v:{kind})" + "".join(f" {op}(x) :- x = {op} v : {{ r(_, v) }}." for op in OPS))
    facts: dict[int, Any] = {}
    for _ in range(6 if JIT else 3):
        with db.transaction() as tx:
            for i in rng.sample(range(60), 12):
                step = rng.choice((0, 1, 2, rng.randrange(1000)))
                value = far + step if kind in ("number", "unsigned") else far + step / 1024
                value = Decimal(f"{value:.4f}") if kind.startswith("decimal") else value
                tx.erase("r", [(i, facts.pop(i))] if i in facts else [])
                facts[i] = value
                tx.insert("r", [(i, value)])
        for op in OPS:
            assert list(db[op]) == [(variance(op, [*facts.values()]),)]


@examples(60, 6)
@given(rng=seeds)
def test_a_binding_counts_as_often_as_it_says(rng: Random) -> None:
    """Over a join, with counts below 1, and with a value that is a term; not told apart from others of its value."""
    db = lftj.Database("""
    .decl r(g:number, v:number, n:number)
    .decl s(g:number, h:number)
    c[h] = var_samp counted(v * v, n) : { r(g, v, n), s(g, h) }.
    d[h] = stddev_pop v : { r(g, v, _), s(g, h) }.
    """)
    r: Rows = set()
    s: Rows = set()
    for _ in range(5 if JIT else 2):
        joined = change(db, rng, r, s)
        counted = {h: [v * v for v, n in own for _ in range(n)] for h, own in joined.items()}
        plain = {h: [v for v, _ in own] for h, own in joined.items()}
        assert dict(db["c"]) == {h: variance("var_samp", own) for h, own in counted.items() if len(own) > 1}
        assert dict(db["d"]) == {h: variance("stddev_pop", own) for h, own in plain.items()}


@pytest.mark.parametrize("before", [[], [(5, 10, 1), (6, 20, 1)]])
def test_counts_that_would_leave_their_words_are_refused(before: list[Row]) -> None:
    """Four values that counted 2^62 times each were none, and the variance of the others was below 0."""
    text = ".decl r(i:number, v:number, n:number) m(x) :- x = var_pop counted(v, n) : { r(_, v, n) }."
    db, circuit = lftj.Database(text), streams.from_rules(text)
    db.load("r", before)
    was = list(db["m"])
    some, columns = [(i, i, 2**62) for i in range(4)], {"i": int, "v": int, "n": int}
    what = "a value counts 4,611,686,018,427,387,904 times in `var_pop`"
    with pytest.raises(EvaluationError, match=what), db.transaction() as tx:
        tx.insert("r", some)
    assert list(db["m"]) == was == [(25.0,)] * (len(before) > 0)
    with pytest.raises(EvaluationError, match=what):
        circuit.step({"r": streams.zset(some, columns=columns)})
    fresh = lftj.Database(text)
    fresh.load("r", some)
    with pytest.raises(EvaluationError, match=what):
        list(fresh["m"])
    with db.transaction() as tx:  # the most that one counts; together they are too many
        tx.insert("r", [(7, 1, 2**31 - 2)])
        tx.erase("r", before)
    assert list(db["m"]) == [(0.0,)]
    with pytest.raises(EvaluationError, match="2\\^31 bindings"), db.transaction() as tx:
        tx.insert("r", [(8, 1, 2), (9, 2, 2**31 - 1)])
    assert list(db["m"]) == [(0.0,)]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([math.inf, 3.0, 4.0], "the stddev_samp of inf has no value"),
        ([-math.inf, 3.0], "the stddev_samp of inf has no value"),
        ([1.7e308, -1.7e308], "the stddev_samp of a group is out of the range of float"),
    ],
)
def test_a_group_without_a_value_is_refused_where_it_is_asked_for(values: list[float], what: str) -> None:
    db = lftj.Database(""".decl r(g:number, v:float)
    .decl asked(g:number)
    m(g, x) :- asked(g), x = stddev_samp v : { r(g, v) }.""")
    db.load("r", [(1, 2.5), (1, 4.5), (3, 0.5)] + [(2, value) for value in values])
    db.load("asked", [(1,), (3,)])  # the one of a single value has none, and that is no error
    assert list(db["m"]) == [(1, math.sqrt(2.0))]
    with pytest.raises(EvaluationError, match=what), db.transaction() as tx:
        tx.insert("asked", [(2,)])
    assert list(db["m"]) == [(1, math.sqrt(2.0))]
    with db.transaction() as tx:
        tx.insert("asked", [(2,)])
        tx.erase("r", [(2, value) for value in values])
        tx.insert("r", [(2, 1.0), (2, 3.0)])
    assert list(db["m"]) == [(1, math.sqrt(2.0)), (2, math.sqrt(2.0))]


def test_the_largest_deviation_of_floats_is_one_whose_variance_is_none() -> None:
    db = lftj.Database(".decl r(v:float) m(x) :- x = stddev_pop v : { r(v) }. p(x) :- x = var_pop v : { r(v) }.")
    db.load("r", [(1.7e308,), (-1.7e308,)])
    assert list(db["m"]) == [(1.7e308,)]
    with pytest.raises(EvaluationError, match="the var_pop of a group is out of the range of float"):
        list(db["p"])


def test_a_change_takes_as_many_steps_whatever_the_size_of_its_group() -> None:
    steps = []
    for size in (1_000, 16_000) if JIT else (100, 400):
        db = lftj.Database._sized("", page_rows=64, directory_rows=16)
        db.rules(".decl r(g:number, v:number) m[g] = var_pop v : { r(g, v) }.", maintain={"m": "delta"})
        db.load("r", [(1, i) for i in range(size)])
        taken = []
        for i in range(5):
            with db.transaction() as tx:
                tx.insert("r", [(1, size + i)])
            taken.append(tx.stats["heads"]["m"]["steps"])
        n = size + 5
        assert list(db["m"]) == [(1, (n * n - 1) / 12)]
        steps.append(min(taken))  # the first one makes what is kept
    assert steps[0] == steps[1]


def test_variances_of_the_same_rows_are_summed_in_one_pass() -> None:
    names = dict(zip("abcd", OPS, strict=True))
    text = "".join(f"{name}[g] = {op} v : {{ r(_, v, g) }}.\n" for name, op in names.items())
    db = lftj.Database._sized(f".decl r(i:number, v:number, g:number)\n{text}", columns_from=0)
    rows = {(i, i * i % 7, i % 3) for i in range(600 if JIT else 30)}
    db.load("r", list(rows))
    db.evaluate()
    for name, op in names.items():
        assert dict(db[name]) == expected(op, {(g, i, v) for i, v, g in rows}, 0)
        assert "once for 4 aggregates" in str(db.explain(name))


def test_a_relation_may_have_the_name() -> None:
    """Words that are young reserve no names; a declaration with an arrow is no aggregate."""
    db = lftj.Database("""
    .decl var_pop(k:number) -> v:float
    stddev_pop(v) :- var_pop(_, v).
    var_samp[k] = var_pop x : { var_pop(k, x) }.
    """)
    db.load("var_pop", [(1, 2.5), (2, 0.5)])
    assert (list(db["stddev_pop"]), list(db["var_samp"])) == ([(0.5,), (2.5,)], [(1, 0.0), (2, 0.0)])
