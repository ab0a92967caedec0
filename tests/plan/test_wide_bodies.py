"""Bodies with many variables that one atom alone holds: they are bound together, and planning takes about as long."""

from __future__ import annotations

import inspect
import random
import sys
from typing import Any

import pytest

import lftj
from lftj.plan import matches
from lftj.plan.keyorder import CROWDED


def table(n: int) -> lftj.Database:
    return lftj.Database(f".decl wide({', '.join(f'c{i}:number' for i in range(n))})  .decl t(a:number, b:number)")


def names(n: int, **given: Any) -> str:
    """The variables of a row; one that is not given occurs nowhere else."""
    return ", ".join(str(given.get(f"c{i}", f"_x{i}")) for i in range(n))


def estimates(monkeypatch: pytest.MonkeyPatch, n: int, rule: str) -> int:
    """How many estimates planning a rule over a table of so many columns takes, followed by deltas and in a trace."""
    made, real = 0, matches.Matches._estimate

    def count(self: matches.Matches, bit: int, mask: int) -> Any:
        nonlocal made
        made += 1
        return real(self, bit, mask)

    db = table(n)
    db.load("wide", [tuple(range(n)), tuple(range(1, n + 1))])
    db.load("t", [(0, 1), (1, 2)])
    db.rules(rule)
    with monkeypatch.context() as patch:
        patch.setattr(matches.Matches, "_estimate", count)
        list(db["p"])
        for i in range(3):
            with db.transaction() as tx:
                tx.insert("wide", [tuple(range(5 + i, n + 5 + i))])
    return made


@pytest.mark.parametrize("rule", ["all", "some", "joined", "selected", "counted"])
def test_estimates_grow_with_the_columns(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    def of(n: int) -> str:
        head, every = ", ".join(f"_x{i}" for i in range(n)), names(n)
        return {
            "all": f"p({head}) :- wide({every}).",
            "some": f"p(_x3) :- wide({every}).",
            "joined": f"p({head}, y) :- wide({every}), t(_x1, y).",
            "selected": f"p({head}) :- wide({every}), _x2 > 1, !t(_x0, _x1).",
            "counted": f"p(_x5, n) :- n = count : {{ wide({every}) }}, t(_x5, _).",
        }[rule]

    few, many = (estimates(monkeypatch, n, of(n)) for n in (24, 72))
    # Three times as many columns; it was their square, and the cube of them in some.
    assert many <= 4 * few


def test_conditions_on_every_column_are_planned_by_few_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them was begun with, both ways: 127,000 estimates for 72 columns of one table."""

    def of(n: int) -> str:
        head, conditions = ", ".join(f"_x{i}" for i in range(n)), ", ".join(f"_x{i} != {500 + i}" for i in range(n))
        return f"p({head}) :- wide({names(n)}), {conditions}."

    few, many = (estimates(monkeypatch, n, of(n)) for n in (24, 72))
    assert many <= 10 * few  # the square: each column is compared with those that are left


def test_wide_rules_derive_what_narrow_ones_do() -> None:
    n, rng = CROWDED + 8, random.Random(5)
    db, other = table(n), {f"c{i}": f"_z{i}" for i in range(n)} | {"c2": "_x2"}
    db.rules(f"""
        p(_x1, y, _x9) :- wide({names(n)}), t(_x3, y), _x5 > 1.
        q(_x1) :- wide({names(n)}), !t(_x0, _x1).
        m[_x2] = sum _x4 : {{ wide({names(n)}), t(_x7, _) }}.
        two(_x1, _z1) :- wide({names(n)}), wide({names(n, **other)}), t(_x3, _z4).
    """)
    wide: set[tuple[int, ...]] = set()
    pairs: set[tuple[int, int]] = set()
    for _ in range(40):
        row, pair = tuple(rng.randrange(4) for _ in range(n)), (rng.randrange(4), rng.randrange(4))
        with db.transaction() as tx:
            if wide and rng.random() < 0.3:
                gone = rng.choice(sorted(wide))
                tx.erase("wide", [gone])
                wide.discard(gone)
            tx.insert("wide", [row])
            (tx.erase if pair in pairs else tx.insert)("t", [pair])
        wide.add(row)
        pairs ^= {pair}
        assert set(db["p"]) == {(r[1], b, r[9]) for r in wide for a, b in pairs if r[3] == a and r[5] > 1}
        assert set(db["q"]) == {(r[1],) for r in wide if (r[0], r[1]) not in pairs}
        bound = [(r[2], r[4]) for r in wide for a, _ in pairs if a == r[7]]
        assert dict(db["m"]) == {key: sum(v for k, v in bound if k == key) for key, _ in bound}
        assert set(db["two"]) == {(r[1], s[1]) for r in wide for s in wide if r[2] == s[2] and (r[3], s[4]) in pairs}


def test_groups_are_bound_before_columns_of_the_same_table() -> None:
    """The columns that one table alone has are bound together: the first of them is a group here, and `k` is not."""
    n, rng = CROWDED, random.Random(7)
    columns = ", ".join(f"c{i}" for i in range(n))
    db = lftj.Database(f"""
        .decl t({names(n).replace(",", ":number,")}:number, g:number, k:number)
        .decl u({names(n).replace(",", ":number,")}:number, z:number)
        of[g] = sum k : {{ t({columns}, g, k), u({columns}, _) }}.
        by[g, z] = sum k : {{ t({columns}, g, k), u({columns}, z) }}.
    """)
    joined = [tuple(rng.randrange(3) for _ in range(n)) for _ in range(10)]
    one, other = ([(rng.choice(joined), i % 7, i) for i in range(60)] for _ in range(2))
    db.load("t", [(*columns, g, k) for columns, g, k in one])
    db.load("u", [(*columns, k) for columns, _, k in other])
    found = [(g, z, k) for columns, g, k in one for same, _, z in other if same == columns]
    assert dict(db["of"]) == {key: sum(k for g, _, k in found if g == key) for key, _, _ in found}
    assert set(db["by"]) == {(g, z, sum(k for a, b, k in found if (a, b) == (g, z))) for g, z, _ in found}


def test_a_long_chain_is_planned_without_deep_calls() -> None:
    """Each variable took four calls within those of the one before: a RecursionError of Python from some 250 on."""
    n, before = 80, sys.getrecursionlimit()
    db = lftj.Database(".decl e(a:number, b:number)")
    db.load("e", [(i, i + 1) for i in range(n + 3)])
    db.rules(f"c(x0, x{n}) :- " + ", ".join(f"e(x{i}, x{i + 1})" for i in range(n)) + ".")
    sys.setrecursionlimit(len(inspect.stack(0)) + 4 * n - 120)
    try:
        assert list(db["c"]) == [(i, i + n) for i in range(4)]
    finally:
        sys.setrecursionlimit(before)
