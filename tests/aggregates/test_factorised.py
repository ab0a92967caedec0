"""Counts and sums by blocks: random bodies beside the plain evaluator, with memos that hold next to nothing.

Catches: a block that was counted for other keys than those it depends on, or is taken for empty because its sum is 0; a
factor that is not multiplied, or twice; groups whose rows are not added up; a product that left 64 bits unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import evaluator, factorised, overdue
from lftj.evaluate.accumulators import Gathering
from lftj.evaluate.factorised import folded_of
from lftj.join.block_memo import TRIED
from lftj.join.join_state import IDLE, SLOTS
from lftj.language.clause import Clause
from lftj.plan import lowering
from lftj.plan.body import body_of
from lftj.plan.joinplan import choice_of, plan_join
from scantree.consolidate import consolidated
from tests.conftest import JIT, examples
from tests.engine.programs import seeds
from tests.plain.evaluate import evaluate, parse

Ints = npt.NDArray[np.int64]

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

DECLARED = """
.decl e(x:number, y:number)
.decl r(x:number, y:number)
.decl t(x:number, y:number, z:number)
.decl u(x:number)
"""
ARITIES = {"e": 2, "r": 2, "t": 3, "u": 1}
NAMES = "abcdef"


def atom(rng: Random, names: str) -> str:
    name = rng.choice([*ARITIES])
    args = [rng.choice(["_", "1", "2"]) if rng.random() < 0.15 else rng.choice(names) for _ in range(ARITIES[name])]
    return f"{name}({', '.join(args)})"


def body(rng: Random) -> tuple[list[str], list[str]]:
    """(literals, the variables that atoms bind)."""
    names = NAMES[: rng.randint(2, 6)]
    atoms = [atom(rng, names) for _ in range(rng.randint(2, 4))]
    bound = sorted({c for text in atoms for c in text[2:] if c in NAMES})
    literals = list(atoms)
    for _ in range(rng.choice([0, 0, 1, 2]) if len(bound) > 1 else 0):
        one, other = rng.sample(bound, 2)
        literals.append(
            rng.choice([f"{one} < {other}", f"{one} != {other}", f"{one} >= 2", f"!e({one}, {other})", f"!u({one})"])
        )
    return literals, bound


def rule(rng: Random, at: int) -> str:
    literals, bound = body(rng)
    groups = rng.sample(bound, min(len(bound), rng.choice([0, 0, 1, 1, 2])))
    left = [v for v in bound if v not in groups]
    op = rng.choice(["count", "count", "sum", "mean"]) if left else "count"
    operand = "" if op == "count" else f" {' * '.join(rng.sample(left, min(len(left), rng.randint(1, 3))))}"
    head = f"h{at}[{', '.join(groups)}]" if groups else f"h{at}(n)"
    if groups:
        return f"{head} = {op}{operand} : {{ {', '.join(literals)} }}."
    return f"{head} :- n = {op}{operand} : {{ {', '.join(literals)} }}."


def aggregates(db: lftj.Database) -> Iterator[Clause]:
    for clauses in db._state.strata.by_head.values():
        yield from (clause for clause in clauses if clause.aggregate is not None)


@given(rng=seeds)
@examples(300, 15)
def test_random_bodies(rng: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # With few slots counts are forgotten, and memos given up.
        for name in ("LEAST_SLOTS", "MOST_SLOTS"):
            patch.setattr(lowering, name, 1 << rng.choice([0, 2, 12]))
        patch.setattr(Gathering, "ROOM", rng.choice([1, 5, 1 << 20]))
        check(rng)


def check(rng: Random) -> None:
    data = {
        name: sorted({tuple(rng.randint(-1, 4) for _ in range(arity)) for _ in range(rng.randint(0, 14))})
        for name, arity in ARITIES.items()
    }
    text = DECLARED + "\n".join(rule(rng, at) for at in range(3))
    db = lftj.Database(text)
    for name, rows in data.items():
        db.load(name, rows)
    expected = evaluate(parse(text), data)
    for at in range(3):
        assert set(map(tuple, db[f"h{at}"])) == expected[f"h{at}"], (text, data)
    literals, _ = body(rng)
    rows = db.query(", ".join(literals))
    assert rows.count() == len(list(rows)), (literals, data)


def test_most_of_them_are_counted_by_blocks() -> None:
    """Else the random test would show nothing."""
    found = 0
    for seed in range(100):
        rng = Random(seed)
        db = lftj.Database(DECLARED + "\n".join(rule(rng, at) for at in range(3)))
        found += sum(folded_of(clause, body_of(clause)) is not None for clause in aggregates(db))
    assert found > 150


def test_a_sum_of_zero_is_a_row() -> None:
    db = lftj.Database(
        f"{DECLARED} s[b] = sum a * c : {{ e(a, b), r(b, c) }}. s0(n) :- n = mean a * c : {{ e(a, b), r(b, c) }}."
    )
    db.load("e", [(1, 1), (-1, 1), (5, 2), (0, 3)])
    db.load("r", [(1, 7), (3, 9)])
    assert dict(db["s"]) == {1: 0, 3: 0}
    assert list(db["s0"]) == [(0.0,)]


def test_each_key_is_counted_once() -> None:
    """The steps are those of a path that is counted from its end, and not those of its bindings."""
    n = 30
    db = lftj.Database(
        f"""{DECLARED}
        n(k) :- k = count : {{ e(a, b), r(b, c), e(c, d) }}.
        m[a] = count : {{ e(a, b), r(b, c), e(c, d) }}.
        """
    )
    db.load("e", [(i, j) for i in range(n) for j in range(n)])
    db.load("r", [(i, j) for i in range(n) for j in range(n)])
    assert list(db["n"]) == [(n**4,)]
    assert dict(db["m"]) == dict.fromkeys(range(n), n**3)
    assert db.query("e(a, b), r(b, c), e(c, d)").count() == n**4


LARGE = 3_000_000_000


@pytest.mark.parametrize(
    ("e", "r", "expected"),
    [
        # Each product is one of 64 bits, and so is their sum; the sum of magnitudes is not.
        ([(LARGE, 1), (-LARGE, 1)], [(1, LARGE), (1, LARGE - 1)], {1: 0}),
        ([(LARGE, 1)], [(1, LARGE)], {1: LARGE * LARGE}),
        ([(2**62, 1), (-(2**62), 1)], [(1, 1), (1, 1)], {1: 0}),
        ([(-(2**63), 1)], [(1, 1)], {1: -(2**63)}),
    ],
)
def test_what_leaves_64_bits_on_the_way(
    e: list[tuple[int, int]], r: list[tuple[int, int]], expected: dict[int, int]
) -> None:
    db = lftj.Database(f"{DECLARED} s[b] = sum a * c : {{ e(a, b), r(b, c) }}.")
    db.load("e", e)
    db.load("r", r)
    assert dict(db["s"]) == expected


PRICES = """
create table item (id int not null, price decimal(10, 2) not null, g int);
create table sale (item int not null, qty int not null, rate decimal(4, 2) not null);
"""


def test_decimals_are_multiplied_by_their_digits() -> None:
    db = lftj.Database()
    db.sql(PRICES)
    db.sql("insert into item values (1, 3.20, 7), (2, 4.50, 7), (3, 0, null), (3, 0, null), (4, -1.25, 8)")
    db.sql("insert into sale values (1, 2, 0.5), (1, 2, 0.5), (2, 1, 1), (3, 5, 0), (4, 4, 0.25), (9, 1, 1)")
    asked = "g, sum(qty * price) as s, sum(qty * price * rate) as r, sum(price) as p, avg(qty) as a, count(*) as n"
    rows = list(db.sql(f"select {asked} from sale join item on item = id group by g order by g nulls first"))
    assert rows == [
        (None, Decimal(0), Decimal(0), Decimal(0), 5.0, 2),
        (7, Decimal("17.30"), Decimal("10.90"), Decimal("10.90"), 5 / 3, 3),
        (8, Decimal("-5.00"), Decimal("-1.25"), Decimal("-1.25"), 4.0, 1),
    ]


@pytest.mark.parametrize("price", ["99999999.99", "-99999999.99"])
def test_a_product_beyond_the_digits_of_its_type_is_an_error(price: str) -> None:
    """So it is where other bindings make up for it: the sum would have been one of the type."""
    db = lftj.Database()
    db.sql(PRICES)
    db.sql(f"insert into item values (1, {price}, 7), (1, -({price}), 7)")
    db.sql("insert into sale values (1, 200000000, 1)")
    with pytest.raises(EvaluationError):
        list(db.sql("select g, sum(qty * price) as s from sale join item on item = id group by g"))
    assert list(db.sql("select g, sum(price) as s from sale join item on item = id group by g")) == [(7, 0)]


def test_a_product_of_zero_does_not_hide_one_out_of_range() -> None:
    db = lftj.Database(f"{DECLARED} s[b] = sum checked_mul(checked_mul(a, c), d) : {{ e(a, b), r(b, c), t(b, _, d) }}.")
    db.load("e", [(LARGE * 2, 1)])
    db.load("r", [(1, LARGE * 2)])
    db.load("t", [(1, 0, 0)])
    with pytest.raises(EvaluationError):
        len(db["s"])


def test_a_sum_out_of_range_is_an_error() -> None:
    db = lftj.Database(f"{DECLARED} s[b] = sum a * c : {{ e(a, b), r(b, c) }}.")
    db.load("e", [(LARGE, 1), (LARGE + 1, 1)])
    db.load("r", [(1, LARGE)])
    with pytest.raises(EvaluationError, match="sum"):
        len(db["s"])


@pytest.mark.parametrize("rows", [1, 100, 128, 256, 300])
def test_bindings_of_a_group_that_cannot_be_counted_are_an_error(rows: int) -> None:
    """They come in rows of 2^56 each: 128 of them leave 64 bits, and 256 come to nothing."""
    db = lftj.Database(f"{DECLARED} m[g] = count : {{ u(a), e(b, _), e(c, _), e(d, _), e(f, _), g = a - a }}.")
    db.load("u", [(i,) for i in range(rows)])
    db.load("e", [(i, 0) for i in range(1 << 14)])
    if rows == 1:
        assert list(db["m"]) == [(0, 1 << 56)]
        return
    with pytest.raises(EvaluationError, match="bindings"):
        len(db["m"])


def test_a_count_beyond_64_bits_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """To enumerate them instead would never end; of wildcards, of which few rows come, it says how many there are."""
    monkeypatch.setattr(factorised, "ENUMERATED", 1 << 10)
    every = ", ".join(f"u({v})" for v in "abcdfgh")
    db = lftj.Database(f"{DECLARED} m(k) :- k = count : {{ {every}, {', '.join(f'{v} >= 0' for v in 'abcdfgh')} }}.")
    db.rules(f"n(k) :- k = count : {{ {every} }}.")
    if not JIT:  # to try orders takes a minute
        monkeypatch.setattr(evaluator, "LAST", 1 << 10)
        monkeypatch.setattr(evaluator, "best_of", lambda choices, planned, *_, **__: planned(choices[0]))
    db.load("u", [(i,) for i in range(1 << 10)])
    with pytest.raises(EvaluationError, match="int64"):
        len(db["m"])
    with pytest.raises(EvaluationError, match=r"ranges over about 1e\+21 bindings"):
        len(db["n"])


def test_rows_of_a_group_are_added_up_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group whose terms are bound late has a row per binding: all of them at once take more memory than the data."""
    together = []

    def spied(groups: Ints, words: Ints) -> tuple[Ints, Ints]:
        together.append(groups.shape[1])
        return consolidated(groups, words)

    monkeypatch.setattr(factorised, "consolidated", spied)
    monkeypatch.setattr(Gathering, "ROOM", 100)
    db = lftj.Database(f"{DECLARED} m[g] = sum a : {{ e(a, b), r(b, c), g = c - c }}.")
    db._evaluator.buffer_rows = 10
    db.load("e", [(i, j) for i in range(40) for j in range(40)])
    db.load("r", [(i, j) for i in range(40) for j in range(40)])
    assert list(db["m"]) == [(0, sum(range(40)) * 40 * 40)]
    assert len(together) > 10
    assert max(together) < 200


def test_explain_tells_of_rows_that_were_counted_apart() -> None:
    db = lftj.Database(f"{DECLARED} m[a] = count : {{ e(a, _), r(a, _) }}.")
    db.load("e", [(i % 7, i) for i in range(50)])
    db.load("r", [(i % 5, i) for i in range(50)])
    assert len(db["m"]) == 5
    (done,) = (done for clause, done in db._state.evaluations.items() if clause.aggregate is not None)
    assert done.counters is not None
    assert done.plan.folded is not None
    assert done.counters.matches == (5, 5, 5)


def test_explain_tells_of_key_orders_that_were_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "FLOOR", 20)
    monkeypatch.setattr(overdue, "LATE", 0.01)
    abandoned = 0
    for seed in range(20):
        rng = Random(seed)
        atoms = [f"t({', '.join(rng.sample(NAMES, 3))})" for _ in range(4)]
        db = lftj.Database(f"{DECLARED} m[a] = count : {{ e(a, _), {', '.join(atoms)} }}.")
        db._evaluator.pilot_from = 1e9
        db.load("e", [(i, i) for i in range(5)])
        db.load("t", sorted({(rng.randint(0, 9), rng.randint(0, 9), rng.randint(0, 9)) for _ in range(60)}))
        len(db["m"])
        (done,) = (done for clause, done in db._state.evaluations.items() if clause.aggregate is not None)
        assert done.counters is not None
        assert (done.counters.abandoned > 0) == bool(done.plan.abandoned)
        abandoned += done.counters.abandoned > 0
    assert abandoned


def test_what_is_counted_at_once_is_not_remembered() -> None:
    """To look a count up takes longer than to count the rows of a run, and memory as large as the data."""
    db = lftj.Database(f"{DECLARED} m[b] = sum z : {{ e(a, b), t(a, x, z), r(b, c), e(b, d), d > 1 }}.")
    evaluator = db._evaluator
    (clause,) = aggregates(db)
    body, plan = evaluator.plan(clause, order=("a", "b", "x", "z", "c", "d"))
    folded = folded_of(clause, body)
    counted = plan_join(body, choice_of(plan), evaluator.relations, counting=True, folded=folded)
    remembered = [counted.depths[block.top].variable for block in counted.blocks if block.keys is not None]
    assert remembered == ["z", "d"]


SQUARE = "e(a, b), e(a, c), r(b, d), r(c, d)"


def idle_after_counting(db: lftj.Database, expected: int, order: tuple[str, ...]) -> list[bool]:
    """Of each memo, whether it is not asked at the end."""
    found: list[Ints] = []
    with pytest.MonkeyPatch.context() as patch:
        made = lowering._blocks
        patch.setattr(lowering, "_blocks", lambda *a: found.append((both := made(*a))[0]) or both)
        assert db.query(SQUARE, order=order).count() == expected
    return [bool(block[IDLE]) for block in found[-1] if block[SLOTS]]


def loaded(db: lftj.Database, e: list[tuple[int, int]], r: list[tuple[int, int]]) -> int:
    db.load("e", e)
    db.load("r", r)
    return len(list(db.query(SQUARE)))


def test_a_memo_of_cheap_counts_that_answers_rarely_is_left_idle() -> None:
    rng, n = Random(1), 900
    db = lftj.Database(DECLARED)
    e, r = (sorted({(rng.randrange(n), rng.randrange(n)) for _ in range(3 * n)}) for _ in range(2))
    expected = loaded(db, e, r)
    assert len(e) * 3 > TRIED
    assert idle_after_counting(db, expected, ("a", "b", "c", "d")) == [True]


def test_an_idle_memo_is_asked_again_where_counts_take_more() -> None:
    """Pairs that come once have few rows each; then the same dear pair comes again and again."""
    db, few, many = lftj.Database(DECLARED), 2 * TRIED, 40
    e = [(a, a) for a in range(few)] + [(few + i, few + k) for i in range(2 * TRIED // 9) for k in range(3)]
    r = [(a, a) for a in range(few)] + [(few + k, 2 * d + (k > 0)) for k in range(3) for d in range(many)]
    expected = loaded(db, e, r)
    assert idle_after_counting(db, expected, ("a", "b", "c", "d")) == [False]


def test_groups_that_would_come_last_come_first() -> None:
    """Two stars: of the enumeration the group is the last variable, so that it is met for each of its bindings."""
    n = 60
    db = lftj.Database(f"{DECLARED} h[a] = sum d : {{ e(a, b), r(b, c), e(c, d) }}.")
    db.load("e", [(i, j) for i in range(n) for j in range(3)] + [(i % 3, n + i) for i in range(n)])
    db.load("r", [(i % 3, i) for i in range(n)])
    e, r = list(db["e"]), list(db["r"])
    expected: dict[int, int] = {}
    for (a, b), (b_, c), (c_, d) in ((x, y, z) for x in e for y in r if y[0] == x[1] for z in e if z[0] == y[1]):
        assert (b, c) == (b_, c_)
        expected[a] = expected.get(a, 0) + d
    assert dict(db["h"]) == expected
    (clause,) = aggregates(db)
    done = db._state.evaluations[clause]
    assert done.plan.order[0] == "a"
    assert done.counters is not None
    assert done.counters.steps < len(e) * 4, done.counters.steps
