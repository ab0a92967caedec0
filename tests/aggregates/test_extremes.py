"""min, max and cat: random histories against dicts and loops, and the steps that a touched group takes.

Catches: an extreme that stayed when its last row went, a group that was not looked at, an order that a rule shares
with another although its groups do not begin it, a concatenation that depends on the history.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.language.clause import Clause, Var
from tests.aggregates.cases import add, aggregate, folded, grouped
from tests.conftest import JIT
from tests.engine.histories import check_stored
from tests.engine.programs import seeds

VALUES: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, -1, 2**63 - 1, -(2**63)),
    "unsigned": (0, 1, 2**64 - 1, 2**63, 2**63 - 1),
    "float": (0.0, -0.5, 1e300, float("inf"), float("-inf"), 5e-324),
    "symbol": ("b", "a", "", "é", "ab", "B"),
}
# Group columns of relation r(g, h, s, v), as heads name them; the last has the columns in another order.
GROUPS = {"by_": (), "by_g": (0,), "by_h": (1,), "by_gh": (0, 1), "by_gs": (0, 2), "by_sg": (2, 0), "by_ghs": (0, 1, 2)}
Row = tuple[Any, ...]


def clauses(rng: Random, kind: str) -> list[Clause]:
    """Some of min, max (and cat) of v by some of the groups, and of g by h."""
    columns = (Var("g", "number"), Var("h", "number"), Var("s", "symbol"), Var("v", kind))
    ops = ("min", "max", "cat") if kind == "symbol" else ("min", "max")
    made = []
    for number, name in enumerate(rng.sample(sorted(GROUPS), 4), 1):
        for op in rng.sample(ops, rng.choice((1, 2))):
            by = [columns[c] for c in GROUPS[name]]
            made.append(aggregate(f"{op}_{name}", op, by, columns[3], [("r", columns)], rule=10 * number + len(op)))
    made.append(aggregate("least_g", "min", [columns[1]], columns[0], [("r", columns)], rule=99))
    return made


def expected(clause: Clause, kind: str, facts: set[Row]) -> set[Row]:
    op = clause.aggregate.op
    if clause.head == "least_g":
        rows = [(h, g) for g, h, s, v in facts]
        return {(*group, min(values)) for group, values in grouped(rows, 1).items()}
    by = GROUPS[clause.head.split("_", 1)[1]]
    # In the order of the other columns as declared, then of the value: what `cat` is defined by.
    rest = [c for c in range(4) if c not in by]
    rows = [(*(row[c] for c in by), row[3]) for row in sorted(facts, key=lambda row: [row[c] for c in rest])]
    return {(*group, folded(op, kind, values)) for group, values in grouped(rows, len(by)).items()}


@given(rng=seeds, kind=st.sampled_from(tuple(VALUES)), strategy=st.sampled_from((None, None, "recompute")))
def test_histories(rng: Random, kind: str, strategy: str | None) -> None:
    text = f".decl r(g:number, h:number, s:symbol, v:{kind})"
    db = lftj.Database._sized(text, page_rows=rng.choice((2, 4)), directory_rows=2)
    made = clauses(rng, kind)
    for clause in made:
        add(db, clause, strategy)
    some = [(rng.randrange(3), rng.randrange(2), rng.choice("yxé"), rng.choice(VALUES[kind])) for _ in range(40)]
    facts = set(rng.sample(some, rng.choice((0, 3, 30))))
    db.load("r", list(facts))
    before: dict[str, set[Row]] | None = None
    for step in range(6):
        if step:
            with db.transaction() as tx:
                for row in rng.sample(some, rng.choice((0, 1, 1, 3, 15))):
                    if rng.random() < 0.5 and row in facts:
                        tx.erase("r", [row])
                        facts.discard(row)
                    else:
                        tx.insert("r", [row])
                        facts.add(row)
            assert {told["strategy"] for told in tx.stats["heads"].values()} <= {strategy or "scan"}
        elif rng.random() < 0.3:
            continue
        after = {}
        for clause in made:
            want = after[clause.head] = expected(clause, kind, facts)
            assert set(db[clause.head]) == want, clause
            assert len(db[clause.head]) == len(want)
            if before is not None:
                assert set(tx.delta[clause.head].inserted) == want - before[clause.head]
                assert set(tx.delta[clause.head].erased) == before[clause.head] - want
        check_stored(db._relations["r"])
        before = after


def follow(clauses_: list[Clause], rows: list[Row], changes: list[tuple[str, Row]]) -> tuple[lftj.Database, list[Any]]:
    """The database after the changes, each a transaction, and the statistics of the heads."""
    db = lftj.Database(".decl r(g:number, t:number, v:number)")
    for clause in clauses_:
        add(db, clause)
    db.load("r", rows)
    db.evaluate()
    told = []
    for kind, row in changes:
        with db.transaction() as tx:
            getattr(tx, kind)("r", [row])
        told.append(tx.stats["heads"])
    return db, told


G, T, V = (Var(name, "number") for name in "gtv")
R = [("r", (G, T, V))]


@pytest.mark.parametrize("levels", [1, 2], ids=["ends", "scan"])
def test_the_extreme_goes_and_the_next_one_is_found_in_few_steps(levels: int) -> None:
    """Steps do not grow with the rows of the group, but for the halvings among ever more pages."""
    taken = []
    for n in (1_000, 10_000, 100_000) if JIT else (100, 1_000):
        made = [aggregate("top", "max", [G], V, R), aggregate("fine", "max", [G, T], V, R, rule=2)][:levels]
        rows = [(g, t, t * 7 % n) for g in (1, 2) for t in range(n)]
        top = [(g, t, v) for g, t, v in rows if v == n - 1]
        db, told = follow(made, rows, [("erase", top[0]), ("insert", top[0]), ("erase", top[1])])
        assert set(db["top"]) == {(1, n - 1), (2, n - 2)}
        assert {t["top"]["strategy"] for t in told} == {"scan"}
        taken.append(max(t["top"]["steps"] for t in told[1:]))
    # Of a scan the rows and entries at both ends of the run are folded one by one: up to two pages of each.
    assert max(taken) <= (120 if levels == 1 else 120 + 2 * 256 + 2 * 64)
    if levels == 1:
        assert taken[-1] - taken[0] <= 4 * 7


def test_rules_at_several_levels_of_detail_share_one_order() -> None:
    coarse, fine = aggregate("c", "max", [G], V, R), aggregate("f", "max", [G, T], V, R, rule=2)
    db, told = follow([coarse, fine], [(1, 2, 3), (1, 3, 5), (2, 1, 1)], [("erase", (1, 3, 5)), ("insert", (2, 2, 9))])
    assert (set(db["c"]), set(db["f"])) == ({(1, 3), (2, 9)}, {(1, 2, 3), (2, 1, 1), (2, 2, 9)})
    assert told[1]["c"]["why"].endswith("folds the rows of a touched group by the scan of v in r[g, t, v]")
    assert told[1]["f"]["why"].endswith("takes the last row of a touched group in r[g, t, v]")
    assert set(db.memory()["r"]) == {"g, t, v", "scan: max of v, in order g, t, v"}
    explained = str(db.explain("c"))
    assert "follows changes by scans: folds the rows of a touched group by the scan of v in r[g, t, v]" in explained
    assert db.explain("c").data["strata"][0]["upkeep"]["by"] == "scan"


def test_a_single_level_takes_the_ends_of_a_plain_order() -> None:
    least, greatest = aggregate("l", "min", [G], V, R), aggregate("h", "max", [G], V, R, rule=2)
    db, told = follow([least, greatest], [(1, 2, 3), (1, 3, 5)], [("erase", (1, 3, 5))])
    assert (list(db["l"]), list(db["h"])) == ([(1, 3)], [(1, 3)])
    assert told[0]["l"]["why"].endswith("takes the first row of a touched group in r[g, v, t]")
    assert set(db.memory()["r"]) == {"g, t, v", "g, v, t"}


def test_new_rules_are_evaluated_and_then_followed() -> None:
    db, _ = follow([aggregate("l", "min", [G], V, R)], [(1, 2, 3)], [("insert", (1, 1, 1))])
    add(db, aggregate("f", "min", [G, T], V, R, rule=2))
    with db.transaction() as tx:
        tx.insert("r", [(1, 0, 0)])
    assert (set(db["l"]), set(db["f"])) == ({(1, 0)}, {(1, 0, 0), (1, 1, 1), (1, 2, 3)})


def test_bulk_changes_are_evaluated() -> None:
    n = 20_000 if JIT else 12_000
    db = lftj.Database(".decl r(g:number, t:number, v:number)")
    add(db, aggregate("h", "max", [G], V, R))
    db.load("r", [(1, 1, 1)])
    with db.transaction() as tx:
        tx.insert("r", [(i % 7, i, i) for i in range(n)])
    assert tx.stats["heads"]["h"]["strategy"] == "recompute"
    assert set(db["h"]) == {(i % 7, i) for i in range(n - 7, n)}


def test_a_head_over_a_derived_relation() -> None:
    """The relation below is derived: what its trace finds is what the groups are touched by."""
    db = lftj.Database(".decl e(x:number, y:number) r(x, z, z) :- e(x, y), e(y, z).")
    add(db, aggregate("h", "max", [G], V, R, rule=2))
    db.load("e", [(1, 2), (2, 3), (2, 4), (4, 1)])
    assert set(db["h"]) == {(1, 4), (2, 1), (4, 2)}
    for change, row, want in ("erase", (2, 4), {(1, 3), (4, 2)}), ("insert", (3, 9), {(1, 3), (2, 9), (4, 2)}):
        with db.transaction() as tx:
            getattr(tx, change)("e", [row])
        assert set(db["h"]) == want
        assert tx.stats["heads"]["h"]["strategy"] == "scan"
