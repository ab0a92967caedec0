"""Random programs and queries: the engine against the reference evaluator.

Catches: everything that makes an answer wrong. Pages, directories and output buffers are tiny, so runs cross pages and
walks are resumed in the middle; domains are tiny, so keys collide; some keys are the ends of int64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import lftj
from lftj.join import first_key_index
from lftj.language.checker import check_query
from lftj.language.clause import Var
from lftj.plan import sampling
from tests.engine import programs
from tests.engine.programs import Case
from tests.plain.evaluate import evaluate, parse
from tests.plain.syntax import Unsigned

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")


@pytest.fixture(autouse=True, scope="module")
def jumps_on_small_relations() -> Iterator[None]:
    """Jump tables are for large relations with dense keys; forced here wherever there is room for one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_key_index, "LEAST", 1)
        patch.setattr(first_key_index, "SPREAD", 64)
        yield


KINDS = (programs.TYPES, ("number",), ("number",), ("symbol",), ("number", "symbol"))


def ordered(rows: set[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows)


def types_of(row: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(int if isinstance(value, Unsigned) else type(value) for value in row)


def assert_same(relation: lftj.Relation, expected: set[tuple[Any, ...]]) -> None:
    """All ways to look at a relation agree with the expected rows."""
    rows = list(relation)
    assert rows == ordered(expected)
    assert [types_of(row) for row in rows] == [types_of(row) for row in ordered(expected)]
    assert not any(isinstance(value, Unsigned) for row in rows for value in row)
    assert len(relation) == len(expected)
    assert bool(relation) == bool(expected)
    assert all(row in relation for row in rows)
    if relation.columns:
        table = relation.arrow()
        assert [tuple(row.values()) for row in table.to_pylist()] == rows
        array = relation.numpy()
        assert [tuple(row) for row in array.tolist()] == rows
    relation._version.check()


def run(case: Case) -> None:
    note("\n".join(case.parts))
    note(f"{case.loads}\n{case.later}\n{case.sizes}")
    program = parse("\n".join(case.parts))
    db = lftj.Database._sized(**case.sizes)
    for i, part in enumerate(case.parts):
        db.rules(part)
        if i:  # asked before all rules and data are there: what was evaluated must become stale
            for name in list(db):
                len(db[name])
    data: dict[str, list[tuple[Any, ...]]] = {}
    for wave in (case.loads, case.later):
        for name, rows in wave:
            db.load(name, rows)
            data.setdefault(name, []).extend(rows)
        expected = evaluate(program, data)
        for name in case.schemas:
            assert_same(db[name], expected[name])


@given(programs.cases())
def test_programs_of_all_types(case: Case) -> None:
    run(case)


@given(programs.seeds, st.sampled_from(KINDS))
def test_programs_with_many_answers(rng: Random, kinds: tuple[str, ...]) -> None:
    run(programs.make_case(rng, kinds=kinds))


@given(programs.cases(kinds=("number",)))
def test_programs_over_numbers(case: Case) -> None:
    """More joins: all columns are of one type."""
    run(case)


@given(programs.cases(kinds=("symbol",), derived=2))
def test_programs_over_symbols(case: Case) -> None:
    """More texts: rules are evaluated in several steps."""
    run(case)


@given(programs.cases(kinds=("number",), derived=2))
def test_programs_with_orders_chosen_by_pilot_runs(case: Case) -> None:
    """Pilot runs are for expensive joins; forced here on every join."""
    before = sampling.WORTHWHILE
    sampling.WORTHWHILE = 0.0
    try:
        run(case)
    finally:
        sampling.WORTHWHILE = before


@given(programs.questions())
def test_queries(question: tuple[Any, ...]) -> None:
    """Listing and counting, under the chosen order and under forced ones."""
    ask(question, Random(0))


@given(programs.seeds)
def test_queries_with_many_answers(rng: Random) -> None:
    ask(programs.make_question(rng), rng)


def ask(question: tuple[Any, ...], rng: Random) -> None:
    schemas, data, text, sizes = question
    note(f"{schemas}\n{data}\n{text}\n{sizes}")
    declared = "\n".join(programs.declaration(n, s) for n, s in schemas.items())
    db = lftj.Database._sized(declared, **sizes)
    for name, rows in data.items():
        db.load(name, rows)
    clause = check_query(text, {name: db[name]._schema for name in schemas})
    head = ", ".join(v.name for v in clause.head_args if isinstance(v, Var))
    expected = evaluate(parse(f"{declared}\nanswer({head}) :- {text}."), data)["answer"]
    query = db.query(text)
    assert query.count() == len(expected)
    assert_same(query.relation(), expected)
    assert query.count() == len(query) == len(expected)
    names = [v.name for v in clause.variables() if not v.name.startswith("_")]
    orders = list(permutations(names)) if len(names) <= 3 else [tuple(rng.sample(names, len(names))) for _ in range(6)]
    for order in orders:
        note(f"order {order}")
        assert db.query(text, order=order).count() == len(expected)
        assert list(db.query(text, order=order)) == ordered(expected)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8), min_size=2, max_size=5),
    st.builds(programs.make_sizes, programs.seeds),
)
def test_products_are_counted_by_multiplying(relations: list[list[tuple[int, int]]], sizes: dict[str, int]) -> None:
    names = [f"r{i}" for i in range(len(relations))]
    db = lftj.Database._sized("\n".join(f".decl {name}(a:number, b:number)" for name in names), **sizes)
    for name, rows in zip(names, relations, strict=True):
        db.load(name, rows)
    text = ", ".join(f"{name}(x{i}, y{i})" for i, name in enumerate(names))
    assert db.query(text).count() == math.prod(len(set(rows)) for rows in relations)
    star = ", ".join(f"{name}(x, y{i})" for i, name in enumerate(names))
    common = [math.prod(sum(a == x for a, _ in set(rows)) for rows in relations) for x in range(4)]
    assert db.query(star).count() == sum(common)


def test_extreme_keys_join() -> None:
    """The ends of int64 are keys like all others, at every depth."""
    ends = [programs.MIN, programs.MIN + 1, -1, 0, 1, programs.MAX - 1, programs.MAX]
    rows = [(a, b) for a in ends for b in ends]
    db = lftj.Database._sized(".decl e(a:number, b:number)", page_rows=4, directory_rows=2)
    db.load("e", np.array(rows))
    assert db.query("e(x,y), e(y,z), e(x,z)").count() == 7**3
    assert list(db.query("e(x,y), y > x")) == [(a, b) for a, b in rows if b > a]
    assert list(db.query(f"e(x,y), y >= {programs.MAX}")) == [(a, programs.MAX) for a in ends]
    assert db.query(f"e(x,y), y > {programs.MAX}").count() == 0
    assert db.query(f"e(x,y), y < {programs.MIN}").count() == 0
