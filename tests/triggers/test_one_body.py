"""Heads of one body, whose maps are one program.

Catches: a head that misses a run of the others, or runs the events once more; maps that stay ahead after a transaction
that failed or was interrupted; one head that has no result, or whose operand no map can hold, and takes the others with
it; bodies that only look alike.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError, KeyConflictError
from lftj.maintain.body_maps import BodyMaps
from lftj.triggers.maps import Maps
from lftj.triggers.one_body import form_of
from tests.conftest import JIT, examples
from tests.engine import programs

RULES = """
.decl o(k:number, d:number)
.decl l(k:number, p:number, x:number, u:unsigned, f:float)
.decl price(k:number) -> v:number
n[d] = count : { o(k, d), l(k, _, x, _, _), x < 7 }.
a[d] = sum p : { o(k, d), l(k, p, x, _, _), x < 7 }.
b[d] = sum p * x + k : { o(k, d), l(k, p, x, _, _), x < 7 }.
m[d] = mean p : { o(k, d), l(k, p, x, _, _), x < 7 }.
u[d] = sum w : { o(k, d), l(k, _, x, w, _), x < 7 }.
f[d] = sum w : { o(k, d), l(k, _, x, _, w), x < 7 }.
other[d] = sum p : { o(k, d), l(k, p, x, _, _), x < 8 }.
above(d, s) :- a[d] = s, n[d] > 1.
"""
HEADS = ("n", "a", "b", "m", "u", "f", "other")
BIG = 2**63


def expected(o: set[Any], l: set[Any]) -> dict[str, set[Any]]:  # noqa: E741
    groups: dict[int, list[tuple[Any, ...]]] = {}
    for k, d in o:
        for other, *rest in l:
            if k == other:
                groups.setdefault(d, []).append((k, *rest))
    found: dict[str, set[Any]] = {head: set() for head in (*HEADS, "above")}
    for d, rows in groups.items():
        if rows:
            eight = [row for row in rows if row[2] < 8]
            if eight:
                found["other"].add((d, sum(row[1] for row in eight)))
        rows = [row for row in rows if row[2] < 7]
        if not rows:
            continue
        total = sum(p for _, p, *_ in rows)
        found["n"].add((d, len(rows)))
        found["a"].add((d, total))
        found["b"].add((d, sum(p * x + k for k, p, x, _, _ in rows)))
        found["m"].add((d, total / len(rows)))
        found["u"].add((d, sum(row[3] for row in rows)))
        found["f"].add((d, sum(row[4] for row in rows)))
        if len(rows) > 1:
            found["above"].add((d, total))
    return found


def random_blocks(rng: Random) -> list[tuple[str, int, list[tuple[Any, ...]]]]:
    def row(name: str) -> tuple[Any, ...]:
        if name == "o":
            return rng.randrange(3), rng.randrange(2)
        if rng.random() < 0.05:
            return 2, 8, 6, BIG, 0.5  # one row: no unsigned holds the sum of two
        return rng.randrange(3), rng.randrange(9), rng.randrange(5, 9), rng.randrange(4), rng.choice((0.5, 2.0))

    blocks = []
    for _ in range(rng.choice((1, 1, 4))):
        name = rng.choice("ool")
        blocks.append((name, rng.choice((1, 1, -1)), [row(name) for _ in range(rng.choice((1, 1, 3)))]))
    return blocks


class Undone(Exception):
    pass


def transacted(db: lftj.Database, blocks: list[tuple[str, int, list[tuple[Any, ...]]]], *, fails: bool) -> None:
    with db.transaction() as tx:
        for name, sign, rows in blocks:
            (tx.insert if sign > 0 else tx.erase)(name, rows)
        if fails:
            tx.preview()  # everything is computed by then
            raise Undone


@pytest.mark.parametrize("maintain", ["triggers", "auto"])
@examples(40, 2)
@given(rng=programs.seeds)
def test_every_head_is_what_loops_say(maintain: str, rng: Random) -> None:
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    heads = [head for head in HEADS if head != "f"] if maintain == "triggers" else HEADS
    db.rules(RULES, maintain=dict.fromkeys(heads, maintain))
    held: dict[str, set[Any]] = {"o": set(), "l": set()}
    for _ in range(8 if JIT else 3):
        blocks, way = random_blocks(rng), rng.choice(("tx", "tx", "apply", "undone", "fails"))
        if way == "fails":
            with pytest.raises(KeyConflictError):
                transacted(db, [*blocks, ("price", 1, [(1, 1), (1, 2)])], fails=False)
        elif way == "undone":
            with pytest.raises(Undone):
                transacted(db, blocks, fails=True)
        else:
            if way == "apply":
                db.apply(blocks)
            else:
                transacted(db, blocks, fails=False)
            for name, sign, rows in blocks:
                (held[name].update if sign > 0 else held[name].difference_update)(rows)
        for head, rows in expected(held["o"], held["l"]).items():
            assert set(db[head]) == rows, head


def ran(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often maps are run, by rows or by events, and filled."""
    counts: Counter[str] = Counter()

    def counted(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return real(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    counted(BodyMaps, "run")
    counted(BodyMaps, "run_row")
    counted(BodyMaps, "fill")
    return counts


SAME = """
.decl o(k:number, d:number)
.decl l(k:number, p:number, x:number)
n[d] = count : { o(k, d), l(k, _, _) }.
a[d] = sum p : { o(k, d), l(k, p, _) }.
b[d] = sum x : { o(k, d), l(k, _, x) }.
m[d] = mean p : { o(k, d), l(k, p, _) }.
"""
SAME_HEADS = ("n", "a", "b", "m")


def same() -> lftj.Database:
    db = lftj.Database()
    db.rules(SAME, maintain=dict.fromkeys(SAME_HEADS, "triggers"))
    db.load("o", [(k, k % 3) for k in range(30)])
    db.load("l", [(k, k, 1) for k in range(30)])
    assert [len(db[head]) for head in SAME_HEADS] == [3, 3, 3, 3]
    return db


def test_events_are_run_once_for_all_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    db = same()
    counts = ran(monkeypatch)
    with db.transaction() as tx:
        tx.insert("l", [(1, 5, 2)])
    assert counts == {"run_row": 1}
    assert {tx.stats["heads"][head]["parts"][f"@{head}.1"]["strategy"] for head in SAME_HEADS} == {"triggers"}
    counts.clear()
    with db.transaction() as tx:
        tx.insert("l", [(1, 5, 3), (2, 5, 2)])
        tx.erase("o", [(4, 1)])
    assert counts == {"run": 1}
    counts.clear()
    db.apply([("l", 1, [(1, 7, 7)]), ("l", -1, [(1, 7, 7)])], watch=SAME_HEADS)
    assert counts == {"run": 1}
    as_if_never_followed(db)


def test_maps_are_told_once_and_by_whom_they_are_shared() -> None:
    db = same()
    assert [name for name in db.memory() if "triggers: maps" in str(db.memory()[name])] == ["n"]
    assert "shared with `a`, `b`, `m`" in str(db.explain("n"))
    assert "l.1(c0, c1, c2) of l" in str(db.explain("n"))
    with db.transaction() as tx:
        tx.remove_rules("n")
    assert sum("triggers: maps" in str(sizes) for sizes in db.memory().values()) == 1


def test_a_head_whose_operand_no_map_holds_leaves_the_others() -> None:
    rules = """
    .decl o(k:number, d:number)
    .decl l(k:number, p:number, u:unsigned)
    a[d] = sum p : { o(k, d), l(k, p, _) }.
    u[d] = sum w : { o(k, d), l(k, _, w) }.
    n[d] = count : { o(k, d), l(k, _, _) }.
    """
    db = lftj.Database()
    db.rules(rules, maintain=dict.fromkeys("aun", "triggers"))
    db.load("o", [(1, 1)])
    db.load("l", [(1, 2, 3)])
    for row in ((1, 3, BIG), (1, 4, 4)):
        with db.transaction() as tx:
            tx.insert("l", [row])
    by = {head: tx.stats["heads"][head]["parts"][f"@{head}.1"]["strategy"] for head in "aun"}
    assert (by["a"], by["n"]) == ("triggers", "triggers")
    assert [set(db[head]) for head in "aun"] == [{(1, 9)}, {(1, BIG + 7)}, {(1, 3)}]


def as_if_never_followed(db: lftj.Database) -> None:
    plain = lftj.Database(SAME)
    for name in ("o", "l"):
        plain.load(name, db[name])
    assert all(set(db[head]) == set(plain[head]) for head in SAME_HEADS)


def test_a_sum_out_of_range_takes_all_back(monkeypatch: pytest.MonkeyPatch) -> None:
    db = same()
    with pytest.raises(EvaluationError, match="out of the range"), db.transaction() as tx:
        tx.insert("l", [(1, 2**63 - 1, 0)])
    counts = ran(monkeypatch)
    with db.transaction() as tx:
        tx.insert("l", [(1, 60, 2)])
    assert counts == {"run_row": 1}
    as_if_never_followed(db)


def test_heads_come_and_go() -> None:
    db = same()
    db.rules("c[d] = sum p - x : { o(k, d), l(k, p, x) }.", maintain={"c": "triggers"})
    with db.transaction() as tx:
        tx.insert("l", [(1, 50, 2)])
    assert dict(db["c"])[1] == sum(k - 1 for k in range(1, 30, 3)) + 48
    with db.transaction() as tx:
        tx.remove_rules("c")
        tx.insert("l", [(1, 70, 2)])
    with db.transaction() as tx:
        tx.insert("l", [(1, 60, 2)])
    as_if_never_followed(db)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interruption_leaves_no_maps_ahead(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    db = same()
    real = Maps.run

    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        if when == "after":
            real(self, *args, **kwargs)
        raise KeyboardInterrupt

    rows = [(1, 5, 3), (2, 5, 2)]
    with monkeypatch.context() as patch:
        patch.setattr(Maps, "run", run)
        with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
            tx.insert("l", rows)
    with db.transaction() as tx:
        tx.insert("l", rows)
    as_if_never_followed(db)


def test_bodies_that_only_look_alike_have_other_forms() -> None:
    rules = """
    .decl e(x:number, y:number, z:number)
    .decl g(x:number)
    a[x] = sum z : { e(x, y, z), g(y) }.
    b[x] = sum z : { e(x, z, y), g(y) }.
    c[y] = sum z : { e(x, y, z), g(y), x > 0 }.
    d[x] = sum z : { e(x, y, z), g(y), x > 1 }.
    f[x] = sum z : { e(x, y, z), g(y), x > 0 }.
    g2[x] = sum y : { e(x, y, z), g(z), x > 1 }.
    h[x] = sum y : { e(x, y, _), g(y) }.
    """
    clauses = {c.head: c for c in lftj.Database(rules)._state.strata.clauses if c.aggregate is not None}
    forms: dict[Any, set[str]] = {}
    for head, clause in clauses.items():
        forms.setdefault(form_of(clause), set()).add(head)
    assert {frozenset(heads) for heads in forms.values()} == {
        frozenset({"@a.1", "@h.1"}),
        frozenset({"@b.1"}),
        frozenset({"@c.1"}),
        frozenset({"@d.1"}),
        frozenset({"@f.1"}),
        frozenset({"@g2.1"}),
    }


@pytest.mark.jit_only
def test_heads_of_one_body_with_another_between_them() -> None:
    """What one head sorted in between is not the order of the lines that the heads of the body share.

    The order was in memory that the sort of the next head of many rows wrote to.
    """
    rng = Random(1)
    db = lftj.Database()
    rules = """
        .decl o(k:number, g:number)
        .decl l(k:number, p:number)
        a[g] = count : { o(k, g), l(k, _) }.
        m(p, g) :- l(k, p), o(k, g).
        b[g] = sum p : { o(k, g), l(k, p) }.
        c(g, n, s) :- a(g, n), b(g, s).
    """
    db.rules(rules, maintain={"a": "triggers", "b": "triggers"})
    db.load("o", [(k, k % 900) for k in range(3000)])
    db.evaluate()
    rows: set[tuple[int, int]] = set()
    for n in (1, 600, 700, 2000, 1):
        batch = [(rng.randrange(3000), rng.randrange(100)) for _ in range(n)]
        with db.transaction() as tx:
            tx.insert("l", batch)
        rows |= set(batch)
        groups: dict[int, list[int]] = {}
        for k, p in rows:
            groups.setdefault(k % 900, []).append(p)
        assert set(db["c"]) == {(g, len(found), sum(found)) for g, found in groups.items()}
