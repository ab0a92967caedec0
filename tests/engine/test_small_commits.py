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


@pytest.mark.parametrize(
    ("columns", "strategy"), [(3, "auto"), (3, "trace"), (5, "delta"), (17, "auto"), (40, "delta")]
)
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
    assert ("triggers" if strategy == "auto" else strategy) in used


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
    assert tx.stats["heads"]["n"]["parts"]["@n.1"]["strategy"] == "triggers"
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


TEXTS = ["a1", "a2", "b1", "b22", ""]
# How often every binding of the columns counts, given (k, x, y) of its row, or None where the row is none.
TEXT_HEADS: dict[str, tuple[str, Any]] = {
    'having[k] = count : {{ {a_kx}, contains("a", x) }}.': lambda x, y: (1, 1) if "a" in x else None,
    "lengths[k] = sum strlen(x) : {{ {a_kx} }}.": lambda x, y: (len(x), 1),
    'numbers[k] = sum z : {{ {a_kx}, x != "", z = to_number(substr(x, 1, -1)), z > 1 }}.': (
        lambda x, y: (int(x[1:]), 1) if x and int(x[1:]) > 1 else None
    ),
    'level[k] = mean y : {{ {a_kxy}, !match("a.*", x) }}.': lambda x, y: (y, 1) if not x.startswith("a") else None,
    'either[k] = sum y : {{ {a_kxy}, (contains("2", x) ; y > 0) }}.': (
        lambda x, y: (y, 1) if "2" in x or y > 0 else None
    ),
    'plain[k] = count : {{ {a_kxy}, (y = 0 ; y = 1, x = "a1") }}.': (
        lambda x, y: (1, 1) if y == 0 or (y == 1 and x == "a1") else None
    ),
    'joined[k] = count : {{ {a_kx}, b(cat(x, "!"), _) }}.': lambda x, y: (1, 2) if x in ("a1", "b22") else None,
}


def text_rules(columns: int) -> str:
    others = columns - 3
    text = f".decl a(k:number, x:symbol, y:number{''.join(f', c{i}:number' for i in range(others))})\n"
    text += ".decl b(x:symbol, n:number)\n"
    atoms = {"a_kx": atom("a", "k x", columns), "a_kxy": atom("a", "k x y", columns)}
    return text + "\n".join(TEXT_HEADS).format(**atoms)


def text_row(rng: random.Random, columns: int) -> tuple[Any, ...]:
    return rng.randrange(3), rng.choice(TEXTS), rng.randrange(3), *(rng.randrange(2) for _ in range(columns - 3))


@pytest.mark.parametrize("columns", [4, 40])
@pytest.mark.parametrize("strategy", ["auto", "recompute", "trace"])
def test_wildcards_beside_texts_and_disjunctions_count_rows(columns: int, strategy: str) -> None:
    rng = random.Random(f"{columns} {strategy}")
    heads = [rule.split("[")[0] for rule in TEXT_HEADS]
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(text_rules(columns), **({} if strategy == "auto" else {"maintain": dict.fromkeys(heads, strategy)}))
    rows = {text_row(rng, columns) for _ in range(25)}
    db.load("a", sorted(rows))
    db.load("b", [("a1!", 1), ("a1!", 2), ("b22!", 1), ("b22!", 2), ("c!", 1)])
    for _ in range(8 if JIT else 2):
        for head, binding in zip(heads, TEXT_HEADS.values(), strict=True):
            found: dict[int, list[int]] = {}
            for k, x, y, *_ in rows:
                if (value := binding(x, y)) is not None:
                    found.setdefault(k, []).extend([value[0]] * value[1])
            as_mean = head == "level"
            assert dict(db[head]) == {k: sum(v) / len(v) if as_mean else sum(v) for k, v in found.items()}, head
        gone, come = rng.sample(sorted(rows), 2), [text_row(rng, columns) for _ in range(2)]
        rows = rows - set(gone) | set(come)
        with db.transaction() as tx:
            tx.erase("a", gone)
            tx.insert("a", come)


@pytest.mark.jit_only
def test_a_wide_table_with_a_condition_on_texts_is_followed_at_the_price_of_a_narrow_one() -> None:
    """Steps of a commit, and bytes that are kept: each wildcard was a column of all records."""

    heads = [rule.split("[")[0] for rule in TEXT_HEADS]

    def price(columns: int) -> tuple[list[tuple[int, ...]], int]:
        rng = random.Random(1)
        db = lftj.Database(text_rules(columns))
        rows = [(rng.randrange(99), rng.choice(TEXTS), rng.randrange(3)) for _ in range(2_000)]
        db.load("a", [(*row, *[i] * (columns - 3)) for i, row in enumerate(rows)])
        db.load("b", [(f"{text}!", i) for i, text in enumerate(TEXTS)])
        work = []
        for i in range(6):
            assert all(len(db[head]) for head in heads)
            with db.transaction() as tx:
                tx.insert("a", [(i, f"a{i}", 1, *[-1 - i] * (columns - 3))])
            parts = [part for head in heads for part in tx.stats["heads"][head]["parts"].values()]
            work.append(tuple(sum(told[name] for told in parts) for name in ("steps", "removed", "added")))
        assert {told["strategy"] for told in parts} <= {"none", "trace", "delta", "triggers"}
        memory = db.memory()
        assert len(memory["a"]) == 1, "another key order of all columns is kept"
        return work[2:], sum(sum(memory[head].values()) for head in heads)

    (wide_work, wide_bytes), (narrow_work, narrow_bytes) = price(40), price(4)
    assert wide_work == narrow_work
    assert sum(map(sum, narrow_work)) > 0
    assert wide_bytes <= 1.5 * narrow_bytes


def test_a_text_without_a_value_beside_wildcards_is_an_error_that_names_no_wildcard() -> None:
    db = lftj.Database(
        ".decl a(k:number, x:symbol, u:number)\n"
        'n[k] = sum to_number(x) : { a(k, x, _), x != "none" }.  m[k] = sum x : { a(x, _, k) }.'
    )
    db.load("a", [(1, "5", 0), (1, "5", 1), (1, "none", 0)])
    assert dict(db["n"]) == {1: 10}
    with pytest.raises(EvaluationError, match="with k = 2, x = 'bad': a functor"), db.transaction() as tx:
        tx.insert("a", [(2, "bad", 0)])
    with db.transaction() as tx:
        tx.insert("a", [(1, "7", 4)])
    assert dict(db["n"]) == {1: 17}


@pytest.mark.parametrize("strategy", ["trace", "delta"])
@pytest.mark.parametrize("variables", [40, 70, pytest.param(130, marks=pytest.mark.jit_only)])
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


@pytest.mark.jit_only  # planning it takes as long, and its kernels see nothing else
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
