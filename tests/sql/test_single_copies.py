"""Joins of tables without a key: rows that are there once each, or not, beside loops over the rows.

Catches: copies that are left out of a sum though a row is there twice, before or after a change; one table's that are
left out for another's; a sum beside the count that nothing adds up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given

import lftj
from lftj.evaluate import single_copies
from lftj.evaluate.factorised import Counting
from lftj.join.run import Limits
from tests.conftest import examples
from tests.engine.programs import seeds

Row = tuple[int, int]

COUNTED = "select count(*) as n from e x join f y on x.b = y.a join e z on y.b = z.a"
TABLES = "create table e (a int not null, b int not null); create table f (a int not null, b int not null)"
JOINS = {
    "select count(*) as n from e x join f y on x.b = y.a": lambda e, f: _grouped(e, f, lambda x, y: ((), 1)),
    "select x.a, count(*) as n from e x join f y on x.b = y.a group by x.a": lambda e, f: _grouped(
        e, f, lambda x, y: ((x[0],), 1)
    ),
    "select sum(x.a * y.b) as n from e x join f y on x.b = y.a": lambda e, f: _grouped(
        e, f, lambda x, y: ((), x[0] * y[1])
    ),
    "select y.b, sum(x.a) as n from e x join f y on x.b = y.a where x.a < 3 group by y.b": lambda e, f: _grouped(
        e, f, lambda x, y: ((y[1],), x[0]) if x[0] < 3 else None
    ),
    "select x.a, y.b, count(*) as n from e x join e y on x.b = y.a group by x.a, y.b": lambda e, f: _grouped(
        e, e, lambda x, y: ((x[0], y[1]), 1)
    ),
}


def _grouped(
    one: list[Row], other: list[Row], of: Callable[[Row, Row], tuple[tuple[int, ...], int] | None]
) -> set[tuple[int, ...]]:
    """The rows of an aggregate over the rows of two tables that join, but for sums that are 0."""
    sums = Counter[tuple[int, ...]]()
    for x in one:
        for y in other:
            if x[1] == y[0] and (found := of(x, y)) is not None:
                sums[found[0]] += found[1]
    return {(*group, total) for group, total in sums.items() if total}


@given(rng=seeds)
@examples(60, 6)
def test_copies_are_multiplied_where_there_are_some(rng: Random) -> None:
    rows: dict[str, list[Row]] = {}
    db = lftj.Database()
    db.sql(TABLES)
    for name in "ef":
        pairs = [(a, b) for a in range(6) for b in range(6)]
        rows[name] = rng.sample(pairs, rng.randint(0, 20))
        rows[name] += rng.sample(rows[name], min(len(rows[name]), rng.choice([0, 0, 1, 3])))
        db.load(name, rows[name])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_copies, "PASSED", rng.choice([0, 8, 1000]))
        for _ in range(4):
            for text, plain in JOINS.items():
                # Of no rows a count is 0, and a sum null.
                assert {row for row in db.sql(text) if row[-1]} == plain(rows["e"], rows["f"]), text
            name = rng.choice("ef")
            if rows[name] and rng.random() < 0.5:
                gone = rng.choice(rows[name])
                rows[name].remove(gone)
                with db.transaction() as tx:
                    tx.erase(name, [gone])
            else:
                more = rng.choice([*rows[name], (rng.randrange(6), rng.randrange(6))])
                rows[name].append(more)
                with db.transaction() as tx:
                    tx.insert(name, [more])


def test_what_is_left_out_follows_the_rows() -> None:
    """Only the copies of a table whose rows are there once each."""
    db = lftj.Database()
    db.sql(f"{TABLES}; create view v as {COUNTED}")
    db.load("e", [(i % 7, i) for i in range(40)])
    db.load("f", [(i, i % 5) for i in range(40)])

    def left_out() -> list[str]:
        clauses = [c for held in db._state.strata.by_head.values() for c in held if c.aggregate is not None]
        clause = next(c for c in clauses if len(c.atoms) == 3)
        counting = Counting.of(db._evaluator, clause, Limits())
        assert counting is not None
        return sorted({a.predicate for a in clause.atoms if a.args[-1].name in counting.ones})

    assert left_out() == ["e", "f"]
    before = set(db["v"])
    with db.transaction() as tx:
        tx.insert("f", [(3, 3)])
    assert left_out() == ["e"]
    assert before != set(db["v"]) == set(db.sql(COUNTED))
    with db.transaction() as tx:
        tx.erase("f", [(3, 3)])
    assert left_out() == ["e", "f"]
    assert set(db["v"]) == before
