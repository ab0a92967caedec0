"""Small commits, and what they must not depend on: by counts and structure, since times depend on the machine."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import evaluator as evaluate
from tests.conftest import JIT

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")


def wide(name: str, columns: int) -> str:
    return f".decl {name}({', '.join(f'c{i}:number' for i in range(columns))})\n"


def atom(name: str, named: str, columns: int) -> str:
    shown = named.split()
    return f"{name}({', '.join([*shown, *['_'] * (columns - len(shown))])})"


def row(rng: random.Random, columns: int, keys: int = 3) -> tuple[int, ...]:
    """Few values in the first columns, and two in the others, so that rows agree in what is named."""
    return (*(rng.randrange(keys) for _ in range(2)), *(rng.randrange(2) for _ in range(columns - 2)))


def change(rng: random.Random, db: lftj.Database, rows: dict[str, set[Any]], columns: int, most: int = 3) -> Any:
    with db.transaction() as tx:
        for name in rows:
            for _ in range(rng.randint(0, most)):
                if rows[name] and rng.random() < 0.5:
                    gone = rng.choice(sorted(rows[name]))
                    rows[name].discard(gone)
                    tx.erase(name, [gone])
                else:
                    come = row(rng, columns)
                    rows[name].add(come)
                    tx.insert(name, [come])
    return tx


HEADS = """
  total[k] = sum x : {{ {a_kx}, {b_ky}, y > 0 }}.
  pairs[k] = count : {{ {a_k}, {b_k} }}.
  alone[k] = mean x : {{ {a_kx} }}.
  all[] = count : {{ {a}, {b} }}.
  same[k] = count : {{ {a_k}, {a_k} }}.
  barred[k] = count : {{ {a_kx}, !{b_kx} }}.
  within[k] = sum x + y : {{ {a_kx}, {a_xy}, {b_ky} }}.
"""


def rules(columns: int) -> str:
    atoms = {
        f"{name}{'_' if named else ''}{named}": atom(name, " ".join(named), columns)
        for name in "ab"
        for named in ("", "k", "kx", "ky", "xy")
    }
    return wide("a", columns) + wide("b", columns) + HEADS.format(**atoms)


def expected(a: set[Any], b: set[Any]) -> dict[str, set[Any]]:
    """Every binding of all columns, one by one."""
    total: Counter[int] = Counter()
    seen, pairs, same, barred = Counter(), Counter(), Counter(), Counter()
    sums: Counter[int] = Counter()
    within: dict[int, int] = {}
    looked = {r[:2] for r in b}
    for r, s in product(a, b):
        if r[0] == s[0]:
            pairs[r[0]] += 1
            if s[1] > 0:
                total[r[0]] += r[1]
                seen[r[0]] += 1
    for r, s in product(a, a):
        if r[0] == s[0]:
            same[r[0]] += 1
        if r[1] == s[0]:
            for t in b:
                if t[0] == r[0] and t[1] == s[1]:
                    within[r[0]] = within.get(r[0], 0) + r[1] + s[1]
    for r in a:
        sums[r[0]] += r[1]
        if r[:2] not in looked:
            barred[r[0]] += 1
    count = Counter(r[0] for r in a)
    return {
        "total": {(k, total[k]) for k in seen},
        "pairs": set(pairs.items()),
        "alone": {(k, sums[k] / count[k]) for k in count},
        "all": {(len(a) * len(b),)} if a and b else {(0,)},
        "same": set(same.items()),
        "barred": set(barred.items()),
        "within": set(within.items()),
    }


@pytest.mark.parametrize(("columns", "strategy"), [(3, "auto"), (3, "trace"), (5, "delta"), (17, "auto"), (40, "auto")])
def test_wildcards_of_aggregates_count_rows(columns: int, strategy: str) -> None:
    rng = random.Random(f"{columns} {strategy}")
    options = (
        {} if strategy == "auto" else {"maintain": dict.fromkeys(("total", "pairs", "within", "barred"), strategy)}
    )
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(rules(columns), **options)
    rows: dict[str, set[Any]] = {name: {row(rng, columns) for _ in range(9)} for name in "ab"}
    for name, held in rows.items():
        db.load(name, sorted(held))
    used = set()
    for _ in range(8 if JIT else 5):
        for head, wanted in expected(rows["a"], rows["b"]).items():
            assert set(db[head]) == wanted, head
        tx = change(rng, db, rows, columns)
        parts = [told.get("parts", {}).items() for told in tx.stats["heads"].values()]
        used |= {told["strategy"] for found in parts for name, told in found if name.startswith("@total")}
    for head, wanted in expected(rows["a"], rows["b"]).items():
        assert set(db[head]) == wanted, head
    assert ("delta" if strategy == "auto" else strategy) in used


def test_a_binding_counts_as_often_as_the_rows_of_its_atoms_combine() -> None:
    """Past 2^31 bindings of a group, which no walk has to enumerate, and past what can be counted at all."""
    db = lftj.Database(".decl a(k:number, u:number)\nn[k] = count : { a(k, _), a(k, _), a(k, _), a(k, _) }.")
    db.load("a", [(1, u) for u in range(300)] + [(2, 0)])
    assert set(db["n"]) == {(1, 300**4), (2, 1)}
    with db.transaction() as tx:
        tx.insert("a", [(1, 300), (2, 1)])
    assert set(db["n"]) == {(1, 301**4), (2, 16)}
    with db.transaction() as tx:
        tx.erase("a", [(1, 300), (2, 0)])
    assert set(db["n"]) == {(1, 300**4), (2, 1)}
    assert tx.stats["heads"]["n"]["parts"]["@n.1"]["strategy"] == "delta"
    nine = ", ".join(["a(k, _)"] * 9)
    db = lftj.Database(f".decl a(k:number, u:number)\nn[k] = count : {{ {nine} }}.")
    db.load("a", [(1, u) for u in range(300)])
    with pytest.raises(EvaluationError, match="an aggregate ranges over about 2e\\+22 bindings"):
        len(db["n"])


@pytest.mark.parametrize("kind", ["number", "unsigned", "float"])
def test_sums_of_multiplicities_are_exact(kind: str) -> None:
    """Weights and operands whose products leave a word by halves; each group's bindings below what a sum may hold."""
    rng = random.Random(kind)
    near = {"number": -(2**31), "unsigned": 0, "float": -1e300}[kind]
    db = lftj.Database(
        f".decl a(k:number, x:{kind}, u:number)\n.decl b(k:number, u:number)\n"
        "s[k] = sum x : { a(k, x, _), b(k, _) }.  m[k] = mean x : { a(k, x, _), b(k, _) }."
    )
    b = {(k, u) for k in range(3) for u in range(1, 5 * (k + 1))}
    a: set[Any] = set()
    db.load("b", sorted(b))
    for _ in range(4):
        with db.transaction() as tx:
            for _ in range(5):
                x: Any = near / rng.randint(1, 9) if kind == "float" else near + rng.randrange(2**31)
                come = (rng.randrange(3), x, rng.randrange(4))
                a.add(come)
                tx.insert("a", [come])
            gone = rng.choice(sorted(a))
            a.discard(gone)
            tx.erase("a", [gone])
        every = [(k, x) for k, x, _ in a for other, _ in b if other == k]
        for k in range(3):
            values = [x for group, x in every if group == k]
            exact = math.fsum(values) if kind == "float" else sum(values)
            assert dict(db["s"]).get(k) == (exact if values else None)
            # Which of the two nearest floats a mean is, its own tests say.
            mean = pytest.approx(exact / len(values), rel=1e-15) if values else None
            assert dict(db["m"]).get(k) == mean


def test_minimum_of_a_body_keeps_no_wildcards() -> None:
    columns = 40
    text = wide("a", columns) + wide("b", columns)
    db = lftj.Database(text + f"low[k] = min x : {{ {atom('a', 'k x', columns)}, {atom('b', 'k', columns)}, x > 0 }}.")
    rng = random.Random(5)
    rows: dict[str, set[Any]] = {name: {row(rng, columns) for _ in range(8)} for name in "ab"}
    for name, held in rows.items():
        db.load(name, sorted(held))
    for _ in range(4):
        keys = {r[0] for r in rows["b"]}
        wanted = {k: min((r[1] for r in rows["a"] if r[0] == k and r[1] > 0), default=None) for k in keys}
        assert dict(db["low"]) == {k: x for k, x in wanted.items() if x is not None}
        change(rng, db, rows, columns)
    assert len(db._state.relations["@low.1.all"].schema.names) == 2


@pytest.mark.parametrize("strategy", ["trace", "delta"])
@pytest.mark.parametrize("variables", [40, 70, 130])
def test_no_rule_has_too_many_variables_to_be_maintained(variables: int, strategy: str) -> None:
    half = variables // 2
    named = [[f"{name}{i}" for i in range(half)] for name in "xy"]
    text = wide("a", half + 1) + wide("b", half + 1)
    text += f"p({', '.join(named[0] + named[1])}) :- a(k, {', '.join(named[0])}), b(k, {', '.join(named[1])})."
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(text, maintain={"p": strategy})
    rng = random.Random(variables)
    rows: dict[str, set[Any]] = {name: {row(rng, half + 1) for _ in range(6)} for name in "ab"}
    for name, held in rows.items():
        db.load(name, sorted(held))
    used = set()
    for _ in range(3):
        assert set(db["p"]) == {(*r[1:], *s[1:]) for r in rows["a"] for s in rows["b"] if r[0] == s[0]}
        tx = change(rng, db, rows, half + 1)
        used |= {told["strategy"] for told in tx.stats["heads"].values()}
    assert strategy in used


def test_a_rule_of_seventy_atoms_is_planned_and_maintained() -> None:
    path = ", ".join(f"e(x{i}, x{i + 1})" for i in range(70))
    db = lftj.Database(f".decl e(x:number, y:number)\np(x0, x70) :- {path}.")
    rows = {(i, i + 1) for i in range(75)}
    db.load("e", sorted(rows))
    assert set(db["p"]) == {(i, i + 70) for i in range(6)}
    for gone, come in [((3, 4), (3, 104)), ((104, 4), (3, 4)), ((72, 73), (104, 4))]:
        with db.transaction() as tx:
            tx.erase("e", [gone])
            tx.insert("e", [come])
        rows = rows - {gone} | {come}
        reached = {x: {x} for x, _ in rows}
        for x in reached:
            for _ in range(70):
                reached[x] = {z for y, z in rows if y in reached[x]}
        assert set(db["p"]) == {(x, z) for x, found in reached.items() for z in found}


@pytest.mark.parametrize("strategy", ["recompute", "trace"])
def test_a_plan_lives_until_sizes_change_by_half(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    search = evaluate.OrderSearch

    def counted(body: Any, *args: Any, **options: Any) -> Any:
        asked.append(body.atoms[0].predicate)
        return search(body, *args, **options)

    monkeypatch.setattr(evaluate, "OrderSearch", counted)
    db = lftj.Database(".decl e(x:number, y:number)\n.decl f(x:number)")
    db.rules("p(x, z) :- e(x, y), e(y, z), f(x).", maintain={"p": strategy})
    rows = {(i, i * 7 % 40) for i in range(40)}
    db.load("e", sorted(rows))
    db.load("f", [(i,) for i in range(40)])

    def answer() -> set[Any]:
        return {(x, z) for x, y in rows for u, z in rows if u == y and x < 40}

    assert set(db["p"]) == answer()
    planned = len(asked)
    assert planned > 0
    for i in range(8):
        if strategy == "trace":  # what was recorded is outdated by a load, and recorded anew
            db.load("f", [(200 + i,)])
        with db.transaction() as tx:
            tx.insert("e", [(100 + i, i)])
        rows.add((100 + i, i))
        assert tx.stats["heads"]["p"]["strategy"] in ("recompute", "trace")
        assert set(db["p"]) == answer()
    again = len(asked)
    assert again <= planned + 1  # a trace is planned for itself, the first time it is recorded
    with db.transaction() as tx:
        tx.insert("e", [(1_000 + i, 1) for i in range(60)])
    rows |= {(1_000 + i, 1) for i in range(60)}
    assert set(db["p"]) == answer()
    if strategy == "recompute":
        assert len(asked) == again + 1
    assert [evaluate.about_as_many(100, n) for n in (49, 50, 150, 151)] == [False, True, True, False]


def test_a_new_text_in_another_column_does_not_rank_all_texts_anew() -> None:
    db = lftj.Database(
        ".decl t(x:symbol, y:symbol)\n.decl other(n:symbol)\np(x, y) :- t(x, y), x < y.  low[] = min x : { t(x, _) }."
    )
    db.load("other", [(f"name {i:05}",) for i in range(2_000)])
    rows = {(f"k{i % 7}", f"k{i % 11}") for i in range(30)}
    db.load("t", sorted(rows))
    assert set(db["p"]) == {(x, y) for x, y in rows if x < y}
    ranked = db._symbols._ranks.rebuilt
    assert ranked == 1
    for i in range(40):
        come = (f"new {i:04}", f"k{i}")
        rows.add(come)
        with db.transaction() as tx:
            tx.insert("other", [(f"another {i:04}",)])
            tx.insert("t", [come])
        assert set(db["p"]) == {(x, y) for x, y in rows if x < y}
        assert set(db["low"]) == {(min(x for x, _ in rows),)}
    assert db._symbols._ranks.rebuilt == ranked


def test_statistics_of_a_head_count_its_parts_in() -> None:
    db = lftj.Database(".decl a(k:number, x:number)\n.decl b(k:number)")
    db.rules("s[k] = sum x : { a(k, x), b(k) }.", maintain={"s": "trace"})
    db.load("a", [(k, x) for k in range(4) for x in range(5)])
    db.load("b", [(k,) for k in range(4)])
    len(db["s"])
    for x in (10, 11):
        with db.transaction() as tx:
            tx.insert("a", [(1, x)])
    (told,) = tx.stats["heads"].values()
    (part,) = told["parts"].values()
    assert part["steps"] > 0
    assert told["steps"] >= part["steps"]
    assert told["seconds"] > part["seconds"] > 0
    assert tx.stats["total"]["steps"] == told["steps"]
