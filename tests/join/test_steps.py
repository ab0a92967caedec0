"""The kernel takes exactly the steps of the canonical leapfrog, however it is sliced and by whichever path.

Catches: a shortcut (fused depths, pair leaves, jump tables) that looks at less or more than the leapfrog it stands
for; a walk that loses its place when it is resumed. Maintenance will rely on both.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from bench import graphs, steps
from lftj.evaluate.evaluator import Evaluator
from lftj.join import expression_vm, first_key_index, triejoin
from lftj.join import run as running
from lftj.join.run import Limits, Run
from lftj.language.checker import check_query
from tests.join.leapfrog import Leapfrog

MAX = 2**63 - 1
# name -> (arity of each relation, body)
SHAPES = {
    "triangle": ({"e": 2}, "e(a,b), e(b,c), e(a,c)"),
    "triangle, three relations": ({"r": 2, "s": 2, "t": 2}, "r(a,b), s(b,c), t(a,c)"),
    "4-clique": ({"e": 2}, "e(a,b), e(a,c), e(a,d), e(b,c), e(b,d), e(c,d)"),
    "4-cycle": ({"e": 2}, "e(a,b), e(b,c), e(a,d), e(d,c)"),
    "directed cycle": ({"e": 2}, "e(a,b), e(b,c), e(c,d), e(d,a)"),
    "intersection": ({"r": 1, "s": 1, "t": 1}, "r(a), s(a), t(a)"),
    "two sets": ({"r": 1, "s": 1}, "r(a), s(a)"),
    "path": ({"e": 2}, "e(a,b), e(b,c), e(c,d)"),
    "star": ({"r": 2, "s": 2, "t": 2}, "r(a,b), s(a,c), t(a,d)"),
    "ternary": ({"t": 3, "e": 2}, "t(a,b,c), e(a,b), e(c,b)"),
    "Loomis-Whitney": ({"t": 3}, "t(a,b,c), t(b,c,d), t(a,c,d), t(a,b,d)"),
    "product": ({"r": 1, "s": 1, "t": 1}, "r(a), s(b), t(c)"),
    "late join": ({"r": 2, "s": 2, "t": 2}, "r(a,c), s(b,c), t(a,b)"),
}


@pytest.fixture(autouse=True)
def jumps_on_small_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_key_index, "LEAST", 1)


def data_of(draw: Any, arities: dict[str, int]) -> dict[str, set[tuple[int, ...]]]:
    pool = draw(st.sampled_from((range(3), range(5), (0, 1, 2, MAX - 1, MAX))))
    key = st.sampled_from(pool)
    return {n: draw(st.sets(st.tuples(*[key] * k), max_size=14 if k > 1 else 5)) for n, k in arities.items()}


def database(data: dict[str, Any], arities: dict[str, int], **sizes: int) -> lftj.Database:
    declarations = (f".decl {n}({', '.join(f'c{i}:number' for i in range(k))})" for n, k in arities.items())
    db = lftj.Database._sized("\n".join(declarations), **sizes)
    for name, rows in data.items():
        db.load(name, sorted(rows))
    return db


def prepared(db: lftj.Database, text: str, order: tuple[str, ...], *, counting: bool = False) -> tuple[Run, Leapfrog]:
    """A walk over the query in the given order, and the plain one it has to equal."""
    evaluator: Evaluator = db._evaluator
    clause = check_query(text, db._schemas())
    body, plan = evaluator.plan(clause, counting=counting, order=order)
    run = evaluator._run(clause, body, plan, Limits(), {})
    assert run is not None
    atoms = []
    for atom, (_, predicate, columns) in zip(body.atoms, plan.uses, strict=True):
        atoms.append((predicate, columns, tuple(v for c in columns if (v := atom.columns[c]) is not None)))
    return run, Leapfrog(atoms, plan.order, {name: set(db[name]) for name in db})


def without_shortcuts(run: Run) -> Run:
    """The same walk by the generic path: no fused depths, and leaves that run a code, of one idle move."""
    depths, code = run.walk.depths, run.walk.code
    depths[:, triejoin.FUSED], depths[:, triejoin.AHEAD] = 0, -1
    bare = (depths[:, triejoin.LEAF] == 1) & (depths[:, triejoin.CODE_LO] == depths[:, triejoin.CODE_HI])
    depths[bare, triejoin.CODE_LO], depths[bare, triejoin.CODE_HI] = len(code), len(code) + 1
    run.walk = run.walk._replace(code=np.vstack([code, [[expression_vm.MOVE, 0, 0, 0]]]))
    return run


def rows_of(run: Run, order: tuple[str, ...], head: tuple[str, ...]) -> list[tuple[int, ...]]:
    """The rows in the order of the walk, their columns in key order."""
    columns = [head.index(v) for v in order]
    return [tuple(row[c] for c in columns) for chunk in run.chunks() for row in chunk.T.tolist()]


@st.composite
def joins(draw: Any) -> tuple[str, dict[str, Any], tuple[str, ...], dict[str, int]]:
    name = draw(st.sampled_from(sorted(SHAPES)))
    arities, text = SHAPES[name]
    head = tuple(dict.fromkeys(c for c in text if c in "abcd" and c not in arities))
    order = draw(st.permutations(head))
    sizes = {"page_rows": draw(st.sampled_from((2, 4, 8))), "directory_rows": draw(st.sampled_from((2, 4)))}
    return name, data_of(draw, arities), tuple(order), sizes


@given(joins(), st.sampled_from((1, 2, 7, 1000)), st.sampled_from((1, 3, 64)), st.booleans())
def test_steps_and_rows(join: tuple[Any, ...], budget: int, buffer: int, generic: bool) -> None:
    """Any slice, any buffer, with and without shortcuts: the rows, their order and the steps of the plain leapfrog."""
    name, data, order, sizes = join
    arities, text = SHAPES[name]
    db = database(data, arities, **sizes, buffer_rows=buffer)
    run, plain = prepared(db, text, order)
    assert run.walk.control[triejoin.COUNTING] == 0
    head = tuple(str(term) for term in check_query(text, db._schemas()).head_args)
    before = running.SLICE
    running.SLICE = budget << 4
    try:
        found = rows_of(without_shortcuts(run) if generic else run, tuple(plain.order), head)
    finally:
        running.SLICE = before
    assert found == plain.rows()
    assert run.counters.steps == plain.steps
    assert run.counters.rows == len(found)
    if found:
        assert run.counters.matches[-1] == len(found)


@given(joins(), st.sampled_from((1, 2, 7, 1000)), st.booleans())
def test_counts(join: tuple[Any, ...], budget: int, generic: bool) -> None:
    name, data, order, sizes = join
    arities, text = SHAPES[name]
    db = database(data, arities, **sizes)
    run, plain = prepared(db, text, order, counting=True)
    before = running.SLICE
    running.SLICE = budget << 4
    try:
        count = (without_shortcuts(run) if generic else run).count()
    finally:
        running.SLICE = before
    assert count == len(plain.rows())
    if name in ("triangle", "4-clique", "two sets", "intersection", "triangle, three relations"):
        assert run.counters.steps == plain.steps
    else:  # parts are counted apart, runs without being walked
        assert run.counters.steps <= plain.steps + 1


@pytest.mark.parametrize("name", SHAPES)
def test_every_order_of_every_shape(name: str) -> None:
    arities, text = SHAPES[name]
    data = {n: {tuple((i * p + i // 3) % 4 for p in range(1, k + 1)) for i in range(11)} for n, k in arities.items()}
    db = database(data, arities, page_rows=2, directory_rows=2)
    head = tuple(str(term) for term in check_query(text, db._schemas()).head_args)
    answers = set()
    for order in permutations(head):
        run, plain = prepared(db, text, order)
        found = rows_of(run, order, head)
        assert found == plain.rows()
        assert run.counters.steps == plain.steps
        answers.add(frozenset(tuple(row[order.index(v)] for v in head) for row in found))
    assert len(answers) == 1


@pytest.mark.jit_only
@pytest.mark.parametrize("graph", ["ego-Facebook", "even", "skewed", "hubs"])
def test_triangle_steps_are_bounded_by_smaller_degrees(graph: str) -> None:
    """Intersecting the two runs of every arc costs at most twice the shorter one."""
    made = {"even": (0.0, 0.0, 1), "skewed": (0.6, 0.6, 2), "hubs": (1.0, 0.4, 3)}
    rows = graphs.power_law(2_000, 20_000, *made[graph]) if graph in made else graphs.load(graph).rows
    count, counters = steps.triangle_steps(rows)
    assert count > 0
    assert 0 < counters["steps"] <= 2 * steps.min_degree_sum(rows)


def test_triangle_steps_grow_with_the_agm_bound() -> None:
    """On complete tripartite graphs the answer itself grows as |E|^1.5."""
    parts = (2, 4, 6) if not hasattr(triejoin.triejoin, "signatures") else (8, 16, 32, 64)
    taken = []
    for part in parts:
        count, counters = steps.triangle_steps(graphs.tripartite(part))
        assert count == part**3
        taken.append(counters["steps"])
    assert steps.growth([3 * part**2 for part in parts], taken) <= 1.55


def test_no_jump_table_reaches_the_greatest_key() -> None:
    """The table has an entry for the key after the greatest; at the end of int64 the fill wrapped and never ended."""
    rows = np.array([(MAX - i, j) for i in range(8) for j in range(10)])
    db = lftj.Database(".decl e(a:number, b:number)")
    db.load("e", rows)
    assert first_key_index.jump_table(db["e"]._version) is None
    assert db.query("e(x, y), e(z, y), e(x, w)").count() == 80 * 8 * 10
