"""Bags against plain counters, primary keys against plain dicts: what calls count, refuse, and tell as differences.

Catches: copies counted in another order than that of the calls, a row with no copy left that is still there, repeated
rows of a load counted once, a key conflict that is none (or is not seen, wherever the key columns stand), a refused
change that left something behind.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lftj
from lftj.errors import DataError, EvaluationError, KeyConflictError
from lftj.evaluate import key_conflicts
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.engine.histories import check_stored, source
from tests.trace.test_failures import picture

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

PROGRAM = """
.decl sale(shop:number, item:symbol) -> copies:number bag
.decl tick() -> copies:number bag
.decl first(id:number, name:symbol, size:number) primary-key (id)
.decl last(name:symbol, size:number, id:number) primary-key (id)
.decl both(a:number, n:symbol, b:number) primary-key (b, a)
.decl sold(shop:number, n:number)
sold(s, n) :- n = sum c : { sale(s, _, c) }, sale(s, _, _).
often(i) :- sale(_, i, c), c > 2.
named(n) :- first(i, n, _), last(_, _, i).
"""
KEYS = {"first": (0,), "last": (2,), "both": (2, 0)}
TYPES = {
    "sale": ("number", "symbol"),
    "first": ("number", "symbol", "number"),
    "last": ("symbol", "number", "number"),
    "both": ("number", "symbol", "number"),
}
VALUES = {"number": (0, 1, 2), "symbol": ("a", "b")}

Facts = dict[str, Any]


def contents(facts: Facts) -> dict[str, set[tuple[Any, ...]]]:
    found = {name: set(facts[name]) for name in KEYS}
    found["sale"] = {(*row, n) for row, n in facts["sale"].items()}
    sums: Counter[int] = Counter()
    for (shop, _), n in facts["sale"].items():
        sums[shop] += n
    found["sold"] = set(sums.items())
    found["often"] = {(item,) for (_, item), n in facts["sale"].items() if n > 2}
    ids = {row[2] for row in facts["last"]}
    found["named"] = {(name,) for i, name, _ in facts["first"] if i in ids}
    return found


def conflict(name: str, rows: set[tuple[Any, ...]]) -> bool:
    return len({tuple(row[at] for at in KEYS[name]) for row in rows}) < len(rows)


class Tables(RuleBasedStateMachine):
    """Loads and transactions on bags and on relations with primary keys."""

    @initialize(nearby=st.sampled_from((0, 2, 10**6)), looked_up=st.booleans())
    def begin(self, nearby: int = 0, looked_up: bool = False) -> None:
        # Rows that begin alike are compared, or keys of inserted rows are looked up, or those of all are sorted.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(key_conflicts, "LARGE_PART", 9.0 if nearby else 1 / 8)
        self.patch.setattr(key_conflicts, "SOME_NEARBY", nearby)
        self.patch.setattr(key_conflicts, "NEARBY", 0)
        self.patch.setattr(key_conflicts, "LARGE_UNORDERED_PART", 9.0 if looked_up else 1 / 64)
        self.db = lftj.Database._sized(PROGRAM, page_rows=2, directory_rows=2, buffer_rows=3)
        self.facts: Facts = {"sale": Counter(), **{name: set() for name in KEYS}}

    def teardown(self) -> None:
        self.patch.undo()

    def some(self, rng: Random, name: str, most: int = 4) -> list[tuple[Any, ...]]:
        count = rng.choice((1, 1, 2, 3, most))
        return [tuple(rng.choice(VALUES[kind]) for kind in TYPES[name]) for _ in range(count)]

    @rule(rng=programs.seeds)
    def load(self, rng: Random) -> None:
        name = rng.choice(sorted(TYPES))
        rows = self.some(rng, name, 9)
        if name == "sale":
            self.db.load(name, source(rng, rows, TYPES[name]))
            self.facts[name].update(rows)
            return
        after = self.facts[name] | set(rows)
        if conflict(name, after):
            before, state = picture(self.db), self.db._state
            with pytest.raises(KeyConflictError) as caught:
                self.db.load(name, source(rng, rows, TYPES[name]))
            self.told(caught.value, {name: after})
            del caught
            assert picture(self.db) == before
            assert self.db._state is state
        else:
            self.db.load(name, source(rng, rows, TYPES[name]))
            self.facts[name] = after

    def told(self, error: KeyConflictError, facts: Facts) -> None:
        first, second = error.rows
        assert first != second
        assert {first, second} <= facts[error.relation]
        key = KEYS[error.relation]
        assert [first[at] for at in key] == [second[at] for at in key]

    @rule(rng=programs.seeds, missing=st.sampled_from(("ignore", "error")), fail=st.booleans())
    def transact(self, rng: Random, missing: str, fail: bool) -> None:
        facts = {name: rows.copy() for name, rows in self.facts.items()}
        before = contents(facts)
        for name in before:
            assert set(self.db[name]) == before[name]
        seen, state = picture(self.db), self.db._state
        try:
            with self.db.transaction(missing=missing) as tx:
                for _ in range(rng.choice((1, 1, 2, 3, 6))):
                    self.call(rng, tx, facts, missing)
                if fail and rng.random() < 0.3:
                    raise RuntimeError
        except (KeyConflictError, RuntimeError) as error:
            error.__traceback__ = error.__context__ = None
            if isinstance(error, KeyConflictError):
                self.told(error, facts)
            assert picture(self.db) == seen
            assert self.db._state is state
            return
        assert not any(conflict(name, facts[name]) for name in KEYS)
        self.facts = facts
        after = contents(facts)
        for name in after:
            assert set(self.db[name]) == after[name]
            assert set(tx.delta[name].inserted) == after[name] - before[name]
            assert set(tx.delta[name].erased) == before[name] - after[name]

    def call(self, rng: Random, tx: Any, facts: Facts, missing: str) -> None:
        name = rng.choice(("sale", "sale", *KEYS))
        rows = self.some(rng, name)
        op = rng.choice(("insert", "insert", "erase", "upsert"))
        if op == "upsert" and name != "sale":
            tx.upsert(name, source(rng, rows, TYPES[name]))
            last = {tuple(row[at] for at in KEYS[name]): row for row in rows}
            others = {row for row in facts[name] if tuple(row[at] for at in KEYS[name]) not in last}
            facts[name] = others | set(last.values())
        elif op == "upsert":
            counted = [(*row, rng.choice((0, 1, 3))) for row in rows]
            tx.upsert(name, source(rng, counted, (*TYPES[name], "number")))
            for *row, n in counted:
                facts[name][tuple(row)] = n
        elif op == "insert":
            tx.insert(name, source(rng, rows, TYPES[name]))
            facts[name].update(rows)
        elif name == "sale":
            less = Counter(rows)
            if missing == "error" and any(n > facts[name][row] for row, n in less.items()):
                with pytest.raises(DataError, match="has no row"):
                    tx.erase(name, source(rng, rows, TYPES[name]))
                return
            tx.erase(name, source(rng, rows, TYPES[name]))
            facts[name].subtract(less)
        else:
            rows = [row for row in rows if row in facts[name]] or sorted(facts[name])[:1]
            tx.erase(name, source(rng, rows, TYPES[name]))
            facts[name] -= set(rows)
        facts["sale"] = +facts["sale"]

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "db"):
            for relation in self.db._relations.values():
                check_stored(relation)
                if relation.schema.bag:
                    assert relation.content.pair(relation.arity - 1) is None
                    assert not relation.content.columns()[-1:].size or relation.content.columns()[-1].min() > 0


TestTables = Tables.TestCase
TestTables.settings = examples(20, 4, stateful_step_count=20, deadline=None)


def test_copies_are_taken_in_the_order_of_the_calls() -> None:
    db = lftj.Database(".decl t(a:number) -> copies:number bag")
    with db.transaction() as tx:
        tx.erase("t", [(1,)])  # there is none, so nothing goes
        tx.insert("t", [(1,), (1,)])
        tx.erase("t", [(1,)])
    assert list(db["t"]) == [(1, 1)]
    with db.transaction() as tx:
        tx.erase("t", [(1,), (1,), (1,)])
        tx.insert("t", [(1,)])
    assert list(db["t"]) == [(1, 1)]
    assert not tx.delta["t"]
    with db.transaction() as tx:
        tx.upsert("t", [(1, 5), (2, 7)])
        tx.insert("t", [(1,), (2,)])
        tx.upsert("t", [(2, 0)])
    assert list(db["t"]) == [(1, 6)]
    assert list(tx.delta["t"].inserted) == [(1, 6)]
    assert list(tx.delta["t"].erased) == [(1, 1)]


def test_a_bag_without_columns_counts() -> None:
    db = lftj.Database(PROGRAM)
    with db.transaction() as tx:
        tx.insert("tick", [(), (), ()])
        tx.erase("tick", [()])
    assert list(db["tick"]) == [(2,)]
    db.load("tick", [(), ()])
    assert list(db["tick"]) == [(4,)]


@pytest.mark.skipif(not JIT, reason="many rows")
def test_a_large_load_counts_repeated_rows() -> None:
    db = lftj.Database(".decl t(a:number, b:number) -> copies:number bag")
    rows = np.random.default_rng(1).integers(-50, 50, (200_000, 2))
    db.load("t", rows[:150_000])
    db.load("t", rows[150_000:])
    db.load("t", rows[:10])
    distinct, counts = np.unique(np.concatenate([rows, rows[:10]]), axis=0, return_counts=True)
    assert np.array_equal(db["t"].numpy(), np.column_stack([distinct, counts]))
    with db.transaction(missing="error") as tx:
        tx.erase("t", rows)
    left, counts = np.unique(rows[:10], axis=0, return_counts=True)
    assert np.array_equal(db["t"].numpy(), np.column_stack([left, counts]))


def test_facts_and_feeds_of_bags() -> None:
    db = lftj.Database('.decl t(a:symbol) -> copies:number bag  t("x", 2). t["y"] = 1.')
    assert list(db["t"]) == [("x", 2), ("y", 1)]
    db.rules('t("x", 3).')
    db.load_changes("t", [{"a": "x", "op": "d"}, {"a": "y", "op": "d"}, {"a": "z", "op": "c"}, {"a": "z", "op": "c"}])
    assert list(db["t"]) == [("x", 4), ("z", 2)]


def test_a_feed_replaces_rows_by_their_primary_key() -> None:
    db = lftj.Database(".decl city(name:symbol, id:number) primary-key (id)")
    db.load("city", [("Rome", 1), ("Oslo", 2), ("Bonn", 3)])
    feed = [("Roma", 1, "u"), ("", 2, "d"), ("Bari", 4, "c"), ("Baku", 4, "u")]
    db.load_changes("city", [dict(zip(("name", "id", "op"), row, strict=True)) for row in feed])
    assert set(db["city"]) == {("Roma", 1), ("Bonn", 3), ("Baku", 4)}


def test_copies_that_cannot_be() -> None:
    db = lftj.Database(".decl t(a:number) -> copies:number bag")
    with pytest.raises(DataError) as caught, db.transaction() as tx:
        tx.upsert("t", [(1, -2)])
    assert str(caught.value) == (
        "`t` was to have a row -2 times\n"
        "  why: it is a bag, and its last column `copies` is how often a row is there\n"
        "  do: insert a row once or more often; an upsert with 0 takes all of its copies"
    )
    with db.transaction() as tx:
        tx.upsert("t", [(1, 2**63 - 1)])
    with pytest.raises(EvaluationError, match="more often than a number can say"), db.transaction() as tx:
        tx.insert("t", [(1,)])
    with pytest.raises(EvaluationError, match="more often than a number can say"), db.transaction() as tx:
        tx.insert("t", [(1,), (2,)])
    assert list(db["t"]) == [(1, 2**63 - 1)]


def test_copies_are_counted_row_by_row() -> None:
    """The rows of a bag may be there more often, all together, than a number can say."""
    most = 2**63 - 1
    db = lftj.Database(".decl t(a:number) -> copies:number bag")
    with db.transaction() as tx:
        tx.upsert("t", [(1, most), (2, most - 1), (3, most - 5)])
    db.load("t", [(4,), (2,), (4,)])
    with db.transaction() as tx:
        tx.insert("t", [(3,)] * 3 + [(5,)] * 2)
        tx.erase("t", [(1,), (4,)])
    assert dict(db["t"]) == {1: most - 1, 2: most, 3: most - 2, 4: 1, 5: 2}
    with pytest.raises(EvaluationError, match="more often than a number can say"), db.transaction() as tx:
        tx.insert("t", [(2,), (6,)])
    with pytest.raises(EvaluationError, match="more often than a number can say"):
        db.load("t", [(6,), (3,), (3,), (3,)])
    assert dict(db["t"]) == {1: most - 1, 2: most, 3: most - 2, 4: 1, 5: 2}


def test_a_bag_holds_rows_or_is_derived() -> None:
    db = lftj.Database(".decl e(a:number) -> copies:number bag  .decl v(a:number) -> copies:number bag")
    db.load("e", [(1,), (1,)])
    db.rules("v(a, c) :- e(a, c).")
    assert list(db["v"]) == [(1, 2)]
    for change in (lambda: db.load("v", [(1,)]), lambda: db.rules("v(9, 1).")):
        with pytest.raises(DataError, match="rules derive `v`, and nothing else can be put there"):
            change()
    with pytest.raises(DataError, match="`e` has rows of its own, and no rule can derive others"):
        db.rules("e(1, 2) :- e(1, _).")
    with pytest.raises(DataError, match="`w` has rows of its own"):
        db.rules(".decl w(a:number) -> copies:number bag  w(1, 1).  w(a, c) :- v(a, c).")
    fresh = lftj.Database(".decl e(a:number) -> copies:number bag  .decl v(a:number)")
    with fresh.transaction() as tx:
        tx.insert("e", [(1,)])
        with pytest.raises(DataError, match="`e` has rows of its own"):
            tx.rules("e(a, 1) :- v(a).")
    assert "e" not in fresh._strata.by_head


def test_a_key_conflict_names_key_rows_and_remedy() -> None:
    db = lftj.Database(".decl city(name:symbol, id:number) primary-key (id)")
    db.load("city", [("Rome", 1), ("Oslo", 2)])
    with pytest.raises(KeyConflictError) as caught, db.transaction() as tx:
        tx.insert("city", [("Bonn", 2)])
    assert caught.value.rows in ((("Oslo", 2), ("Bonn", 2)), (("Bonn", 2), ("Oslo", 2)))
    text = str(caught.value)
    assert "`city` has two rows with the key id = 2: " in text
    assert 'city("Bonn", 2): a fact (loaded or inserted)' in text
    assert "why: the primary key of `city` is (id); nothing was changed" in text
    assert "do: give each row a key of its own; `tx.upsert` replaces the row that is there" in text
    with db.transaction() as tx:
        tx.erase("city", [("Oslo", 2)])
        tx.insert("city", [("Bonn", 2)])
    assert set(db["city"]) == {("Rome", 1), ("Bonn", 2)}


def test_a_key_that_begins_as_rows_do_needs_no_key_order() -> None:
    db = lftj.Database(".decl line(order:number, part:symbol, number:number) primary-key (order, number)")
    db.load("line", [(order, f"part {number * order % 7}", number) for order in range(500) for number in range(4)])
    with db.transaction() as tx:
        tx.insert("line", [(3, "part 9", 4), (501, "part 1", 0)])
    assert list(db._relations["line"].orders) == [(0, 1, 2)]
    with pytest.raises(KeyConflictError) as caught, db.transaction() as tx:
        tx.insert("line", [(3, "part 8", 4)])
    assert sorted(caught.value.rows) == [(3, "part 8", 4), (3, "part 9", 4)]
    with db.transaction() as tx:
        tx.insert("line", [(7, f"more {number}", 4 + number) for number in range(600)])  # they all begin alike
    with pytest.raises(KeyConflictError), db.transaction() as tx:
        tx.insert("line", [(7, "other", 300)])
    assert len(db["line"]) == 2_602


@pytest.mark.parametrize("columns", ["i:number, n:number", "n:number, i:number"])
def test_a_head_with_a_primary_key_is_checked(columns: str) -> None:
    places = "i, n" if columns.startswith("i") else "n, i"
    db = lftj.Database(
        f".decl r({columns}) primary-key (i)  .decl a(i:number, n:number) .decl b(i:number, n:number)"
        f" r({places}) :- a(i, n). r({places}) :- b(i, n)."
    )
    db.load("a", [(1, 1), (2, 5)])
    db.load("b", [(1, 1), (3, 5)])
    assert len(db["r"]) == 3
    with pytest.raises(KeyConflictError, match="two rows with the key i = 1"), db.transaction() as tx:
        tx.insert("b", [(1, 2)])
    assert len(db["r"]) == 3
    db.load("b", [(2, 6)])
    with pytest.raises(KeyConflictError, match="two rows with the key i = 2"):
        db["r"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".decl t(a:number) bag", "`t` is a bag without a number of copies"),
        (".decl t(a:number) -> c:float bag", "`t` is a bag without a number of copies"),
        (".decl t(a:number) primary-key (b)", "the primary key of `t` is of columns that it does not have"),
        (".decl t(a:number?, b:number) primary-key (a)", "the primary key of `t` is of `a`, which may be null"),
        (".decl t(a:number, b:number) primary-key (a) primary-key (b)", "`t` has 2 primary keys"),
        (".decl t(a:number) -> b:number primary-key (a)", "the primary key of `t` is of a functional predicate"),
    ],
)
def test_declarations_that_cannot_be(text: str, what: str) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        lftj.Database(text)
    assert caught.value.diagnostics[0].what == what


def test_a_second_declaration_has_to_say_the_same() -> None:
    db = lftj.Database(".decl t(a:number, b:number) primary-key (a)  .decl s(a:number) -> n:number bag")
    db.rules(".decl t(a:number, b:number) primary-key (a)  .decl s(a:number) -> n:number bag")
    for text in (".decl t(a:number, b:number)", ".decl s(a:number) -> n:number"):
        with pytest.raises(lftj.ProgramError, match="is declared again, differently"):
            db.rules(text)


def test_a_refused_load_keeps_no_key_order_that_it_built() -> None:
    state = Tables()
    state.begin()
    for seed in (1295, 134375, 6964963, 183):
        state.load(rng=Random(seed))
    state.teardown()
