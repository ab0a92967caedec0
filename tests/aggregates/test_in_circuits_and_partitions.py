"""Quantiles and variances in circuits and in partitions: what they are in a database.

Catches: a value whose group is in several partitions, a sample of one value that has a variance, a change of a group
that is reported twice, a count by which a value weighs that is left out.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given

import lftj
from lftj import streams
from lftj.errors import EvaluationError
from tests.conftest import JIT, examples
from tests.engine.programs import seeds

HEADS = "cdtuvw"
Row = tuple[Any, ...]


@examples(40, 4)
@given(rng=seeds)
def test_circuits_agree(rng: Random) -> None:
    text = """
    .decl r(g:number, v:float)
    .decl s(g:number, t:symbol)
    c[g] = quantile_cont(0.3) v : { r(g, v), s(g, _) }.
    d[g] = quantile_disc(0.9) v : { r(g, v) }.
    t(x) :- x = quantile_disc(0.4) t : { s(_, t) }.
    u[g] = stddev_samp v : { r(g, v), s(g, _) }.
    v[t] = var_pop counted(v, g) : { r(g, v), s(g, t) }.
    w(x) :- x = var_samp v : { r(_, v) }.
    """
    db, circuit = lftj.Database(text), streams.from_rules(text)
    kept: dict[str, set[Row]] = {name: set() for name in HEADS}
    facts: dict[str, set[Row]] = {"r": set(), "s": set()}
    for _ in range(5 if JIT else 2):
        changes: dict[str, dict[Row, int]] = {"r": {}, "s": {}}
        for _ in range(8):
            name = rng.choice("rs")
            row = (rng.randrange(3), rng.choice((0.5, 1.5, -2.0, 8.25)) if name == "r" else rng.choice("bac"))
            if row not in changes[name]:
                changes[name][row] = -1 if row in facts[name] else 1
                facts[name] ^= {row}
        with db.transaction() as tx:
            for name, rows in changes.items():
                tx.insert(name, [row for row, weight in rows.items() if weight > 0])
                tx.erase(name, [row for row, weight in rows.items() if weight < 0])
        columns = {"r": {"g": int, "v": float}, "s": {"g": int, "t": str}}
        given = {n: streams.zset(list(rows), list(rows.values()), columns=columns[n]) for n, rows in changes.items()}
        made = circuit.step(given)
        for name in kept:
            change = made[name]
            kept[name] = kept[name] - {tuple(row) for row in change.erased} | {tuple(row) for row in change.inserted}
        assert kept == {name: set(db[name]) for name in HEADS}


def test_a_circuit_refuses_a_variance_of_inf_where_two_values_ask_for_it() -> None:
    circuit = streams.from_rules(".decl r(v:float) w(x) :- x = var_samp v : { r(v) }. n(x) :- x = count : { r(_) }.")
    given = [streams.zset([(value,)], columns={"v": float}) for value in (math.inf, 1.0)]
    assert list(circuit.step({"r": given[0]})["w"].inserted) == []
    with pytest.raises(EvaluationError, match="the var_samp of a group has no value") as refused:
        circuit.step({"r": given[1]})
    assert refused.value.why.startswith("it is out of the range of float, or one of its values is inf or -inf")
    assert list(circuit.step({"r": -given[0]})["n"].inserted) == [(0,)]
    assert list(circuit.step({"r": given[1]})["w"].inserted) == []


@pytest.mark.jit_only
def test_partitions_agree() -> None:
    from spark_bridge import LocalQuery

    rules = """
    .decl r(g:number, v:number)
    .decl s(g:number, t:symbol)
    d[g] = quantile_disc(0.5) v : { r(g, v) }.
    a(x) :- x = quantile_cont(0.9) v : { r(_, v) }.
    c[t] = quantile_cont(0.5) counted(v, g) : { r(g, v), s(g, t) }.
    u[g] = stddev_samp v : { r(g, v), s(g, _) }.
    v[t] = var_pop counted(v, g) : { r(g, v), s(g, t) }.
    w(x) :- x = var_samp v : { r(_, v) }.
    y(x) :- x = stddev_pop counted(v, g) : { r(g, v) }.
    """
    r, s = [(i % 5, i * i % 17) for i in range(40)], [(i % 5, "abc"[i % 3]) for i in range(20)]
    db = lftj.Database(rules)
    db.load("r", r)
    db.load("s", s)
    with LocalQuery.create(rules, {"r": r, "s": s}, processes=2) as query:
        query.apply({"r": [(3, 100, 1), (0, 0, -1)], "s": [(4, "d", 1)]}, batch_id="one")
        with db.transaction() as tx:
            tx.insert("r", [(3, 100)])
            tx.erase("r", [(0, 0)])
            tx.insert("s", [(4, "d")])
        for name in "dacuvwy":
            assert {tuple(row.values()) for row in query.result(name).to_pylist()} == set(db[name]), name
