"""Transactions: random histories against the model, and the parts of the promise one by one.

Catches: a delta that is not the difference of the contents, a head that was not derived again, a key order that did not
follow, a last word that was not the last, a transaction that left something behind.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import sys
import threading
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lftj
from lftj import transaction
from lftj.errors import DataWarning, UnknownRelationError
from lftj.results import async_block
from tests.conftest import FULL, JIT, examples
from tests.engine import programs
from tests.engine.histories import Twin, check_stored, new_rule, some_rows, source
from tests.interrupt import Interrupt

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]
PROGRAM = ".decl e(x:number, y:number)\ntri(x, y, z) :- e(x, y), e(y, z), e(x, z)."


def small(**options: Any) -> lftj.Database:
    db = lftj.Database._sized(PROGRAM, **options)
    db.load("e", EDGES)
    return db


# Histories ------------------------------------------------------------------------------------------------------


class Stop(Exception):
    """Raised inside a block."""


class Histories(RuleBasedStateMachine):
    """Loads, transactions, rules and readers in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[Any, dict[str, set[Any]]]] = []
        self.heard: list[tuple[str, set[Any], set[Any]]] = []
        self.number = 0

    @initialize(rng=programs.seeds, kinds=st.sampled_from((programs.TYPES, ("number",), ("symbol",))))
    def begin(self, rng: Random, kinds: tuple[str, ...]) -> None:
        case = programs.make_case(rng, kinds=kinds)
        note("\n".join(case.parts))
        self.twin = Twin(case.sizes)
        for part in case.parts:
            self.twin.db.rules(part)
            self.twin.extend(part)
        for name, rows in case.loads:
            self.twin.db.load(name, rows)
            self.twin.put(name, rows)
        self.watched = list(self.twin.db)
        for name in self.watched:
            self.twin.db.on_commit(name, lambda d, name=name: self.heard.append((name, set(d.inserted), set(d.erased))))

    @rule(rng=programs.seeds)
    def load(self, rng: Random) -> None:
        name = rng.choice(sorted(self.twin.db))
        rows = some_rows(rng, self.twin, name)
        note(f"load {name} {rows}")
        self.twin.db.load(name, source(rng, rows, self.twin.schema(name)))
        self.twin.put(name, rows)

    @rule()
    def look(self) -> None:
        self.twin.verify()

    @rule()
    def hold(self) -> None:
        self.held.append((self.twin.db.snapshot(), copy.deepcopy(self.twin.contents())))

    @rule(rng=programs.seeds)
    def ask(self, rng: Random) -> None:
        """A query before a change leaves key orders that have to follow."""
        body = programs.make_body(rng, self.twin.program.kinds, most=2)
        len(self.twin.db.query(", ".join(body.literals)))

    @rule(rng=programs.seeds, fails=st.booleans(), missing=st.sampled_from(("ignore", "error")))
    def transact(self, rng: Random, fails: bool, missing: str) -> None:
        twin = self.twin
        before, facts, program = twin.contents(), copy.deepcopy(twin.facts), twin.program
        self.heard.clear()
        previewed = None
        try:
            with twin.db.transaction(missing=missing) as tx:
                for _ in range(rng.choice((0, 1, 1, 2, 3, 5))):
                    previewed = None
                    self.call(rng, tx, missing)
                    if rng.random() < 0.15:
                        previewed = tx.preview()
                assert {name: set(twin.db[name]) for name in twin.db} == {n: before[n] for n in twin.db}
                if fails:
                    raise Stop
        except Stop:
            twin.facts, twin.program = facts, program
            assert twin.contents() == before
            assert self.heard == []
            return
        after = twin.contents()
        for deltas in (tx.delta, previewed) if previewed is not None else (tx.delta,):
            changed = {name for name in after if after[name] != before.get(name, set())}
            assert set(deltas) == changed
            for name in after:
                assert set(deltas[name].inserted) == after[name] - before.get(name, set())
                assert set(deltas[name].erased) == before.get(name, set()) - after[name]
                for row in after[name]:
                    assert (row in deltas[name].inserted) == (row not in before.get(name, set()))
        assert [name for name, _, _ in self.heard] == [name for name in self.watched if name in changed]
        for name, inserted, erased in self.heard:
            assert (inserted, erased) == (after[name] - before[name], before[name] - after[name])

    def call(self, rng: Random, tx: Any, missing: str) -> None:
        twin = self.twin
        kind = rng.choice(("insert", "insert", "insert", "erase", "erase", "erase", "rules", "remove", "bad"))
        heads = twin.heads()
        name = rng.choice(sorted(twin.program.kinds))
        if kind == "rules" and self.number < 4:
            text = new_rule(rng, twin, self.number)
            self.number += 1
            note(text)
            tx.rules(text)
            twin.extend(text)
        elif kind == "remove" and heads:
            head = rng.choice(heads)
            tx.remove_rules(head)
            twin.drop(head)
        elif kind == "bad" and twin.schema(name):
            rows = some_rows(rng, twin, name)
            with pytest.raises(lftj.DataError):
                (tx.insert if rng.random() < 0.5 else tx.erase)(name, [*rows, (None,) * len(twin.schema(name))])
        elif kind == "insert":
            rows = some_rows(rng, twin, name)
            note(f"insert {name} {rows}")
            tx.insert(name, source(rng, rows, twin.schema(name)))
            twin.put(name, rows)
        elif kind == "erase":
            rows = some_rows(rng, twin, name)
            note(f"erase {name} {rows}")
            given = source(rng, rows, twin.schema(name))
            if missing == "error" and not set(rows) <= twin.facts.get(name, set()):
                with pytest.raises(lftj.DataError, match="to erase"):
                    tx.erase(name, given)
            else:
                tx.erase(name, given)
                twin.take(name, rows)

    @invariant()
    def snapshots_stay(self) -> None:
        for snapshot, contents in self.held[-2:]:
            assert {name: set(snapshot[name]) for name in snapshot} == contents

    def teardown(self) -> None:
        if hasattr(self, "twin"):
            self.twin.verify()


TestHistories = Histories.TestCase
TestHistories.settings = examples(40, 5, stateful_step_count=15 if JIT else 6)


# The promise, part by part -----------------------------------------------------------------------------------------


def test_the_example_of_the_design() -> None:
    db = small()
    with db.transaction() as tx:
        tx.insert("e", [(2, 4)])
        tx.erase("e", [(1, 2), (9, 9)])
        assert list(db["tri"]) == [(1, 2, 3)]
    delta = tx.delta["tri"]
    assert list(delta.inserted) == [(2, 3, 4)]
    assert list(delta.erased) == [(1, 2, 3)]
    assert (2, 3, 4) in delta.inserted
    assert (1, 2, 3) not in delta.inserted
    assert delta.inserted.columns == db["tri"].columns
    assert delta.inserted.numpy().tolist() == [[2, 3, 4]]
    assert delta.erased.df().shape == delta.erased.pl().shape == (1, 3)
    assert repr(tx.delta) == (
        "Deltas:\n"
        "  Delta of e(x:number, y:number): 1 inserted, 1 erased\n"
        "  Delta of tri(x:number, y:number, z:number): 1 inserted, 1 erased"
    )
    assert tx.delta["e"].erased == {(1, 2)}
    heads, total = tx.stats["heads"], tx.stats["total"]
    assert heads["tri"]["why"].startswith("`e` changed; ")
    assert heads["tri"]["steps"] == total["steps"] > 0
    assert heads["tri"]["removed"] == heads["tri"]["added"] == total["added"] == 0
    assert 0 < heads["tri"]["seconds"] < total["seconds"]


def test_nothing_is_a_change_too() -> None:
    db = small()
    state = db._state
    with db.transaction() as tx:
        tx.insert("e", [])
        tx.insert("e", [(1, 2)])
        tx.erase("e", [(7, 7)])
        tx.insert("e", [(8, 8)])
        tx.erase("e", [(8, 8)])
    assert list(tx.delta) == []
    assert not tx.delta["e"]
    assert list(tx.delta["e"].inserted) == list(tx.delta["tri"].erased) == []
    assert repr(tx.delta) == "Deltas: nothing changed"
    assert tx.stats["heads"] == {}
    assert db._state is state


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_last_word_counts(size: int) -> None:
    """Within one call and across calls, whatever way the rows come in."""
    db = small()
    rows = [(100 + i, i) for i in range(size)]
    with db.transaction() as tx:
        tx.erase("e", np.array(rows))
        tx.insert("e", rows)
        tx.insert("e", iter(rows[:1] * 2))
        tx.erase("e", {"x": [1], "y": [2]})
        tx.erase("e", [(2, 3), (2, 3)])
        tx.insert("e", [(2, 3)])
    assert set(db["e"]) == {(1, 3), (2, 3), (3, 4), *rows}
    assert set(tx.delta["e"].inserted) == set(rows)
    assert set(tx.delta["e"].erased) == {(1, 2)}


def test_the_rows_are_those_of_the_call() -> None:
    """The caller's array may change before the commit."""
    db = small()
    array = np.array([[7, 7]])
    with db.transaction() as tx:
        tx.insert("e", array)
        array[:] = 8
    assert list(tx.delta["e"].inserted) == [(7, 7)]


def test_a_fact_that_is_derived_as_well() -> None:
    db = lftj.Database(".decl e(x:number) .decl p(x:number)  p(x) :- e(x).  p(1). p(2). e(1).")
    with db.transaction() as tx:
        tx.erase("p", [(1,), (2,)])
    assert list(db["p"]) == [(1,)]
    assert set(tx.delta) == {"p"}
    assert list(tx.delta["p"].erased) == [(2,)]
    with db.transaction() as tx:
        tx.erase("e", [(1,)])
    assert list(tx.delta["p"].erased) == [(1,)]


def test_every_type_and_the_arity_none() -> None:
    db = lftj.Database(".decl s(n:symbol, w:float, u:unsigned)  .decl f()  q(n) :- s(n, w, _), w > 0.0, f().")
    with db.transaction() as tx:
        tx.insert("s", [("a", 1, 2**64 - 1), ["b", -0.0, 0]])
        tx.insert("f", [()])
    assert list(db["s"]) == [("a", 1.0, 2**64 - 1), ("b", 0.0, 0)]
    assert list(tx.delta["q"].inserted) == [("a",)]
    assert list(tx.delta["f"].inserted) == [()]
    assert () in tx.delta["f"].inserted
    known = len(db._symbols)
    with db.transaction() as tx:
        tx.erase("s", [("unknown", 1.0, 1), ("a", 1.0, 2**64 - 1)])
        tx.erase("f", [()])
        with pytest.raises(lftj.DataError):
            tx.insert("s", [("new", 1.0, 1), ("newer", float("nan"), 1)])
    assert len(db._symbols) == known
    assert list(tx.delta["q"].erased) == [("a",)]
    assert list(tx.delta["f"].erased) == [()]


def test_a_call_that_raises_adds_nothing_and_the_block_goes_on() -> None:
    db = small()
    with db.transaction() as tx:
        tx.insert("e", [(5, 6)])
        for rows in ([(7, 8), (9, "x")], [(7, 8), (2**63, 1)], [(7, 8), (1,)], [(7, 8), (True, 1)], [(7, 8), (1.5, 1)]):
            with pytest.raises(lftj.DataError):
                tx.insert("e", rows)
            with pytest.raises(lftj.DataError):
                tx.erase("e", [(1, 2), *rows])
    assert list(tx.delta["e"].inserted) == [(5, 6)]
    assert list(tx.delta["e"].erased) == []


def test_the_message_of_a_bad_row_is_that_of_load() -> None:
    db = small()
    with pytest.raises(lftj.DataError) as by_load:
        db.load("e", [(1, 2), (3, "x")])
    with pytest.raises(lftj.DataError) as by_insert, db.transaction() as tx:
        tx.insert("e", [(1, 2), (3, "x")])
    assert str(by_insert.value) == str(by_load.value)


def test_bad_rows_can_be_set_apart() -> None:
    db = small()
    with db.transaction() as tx:
        rejects = tx.insert("e", [(7, 8), (9, "x")], on_error="quarantine")
        assert tx.insert("e", [(8, 8)], on_error="quarantine") is not None
    assert rejects is not None
    assert len(rejects) == 1
    assert set(tx.delta["e"].inserted) == {(7, 8), (8, 8)}


def test_previews() -> None:
    db = small()
    heard: list[Any] = []
    db.on_commit("e", heard.append)
    state = None
    with db.transaction() as tx:
        tx.insert("e", [(2, 4)])
        first = tx.preview()
        state = db._state
        tx.erase("e", [(2, 4), (1, 2)])
        second = tx.preview()
        assert db._state is state
        assert list(second["tri"].erased) == [(1, 2, 3)]
        computed = tx._commit
        assert list(db["e"]) == sorted(EDGES)
        assert heard == []
    assert list(first["tri"].inserted) == [(2, 3, 4)]
    assert list(second["e"].inserted) == []
    assert tx._done is computed  # used, not computed again
    assert list(tx.delta["tri"].erased) == [(1, 2, 3)]


def test_missing_rows() -> None:
    db = lftj.Database(PROGRAM + ".decl s(n:symbol, x:number)")
    db.load("e", EDGES)
    db.load("s", [("a", 1)])
    with db.transaction(missing="error") as tx:
        tx.insert("e", [(1, 2), (8, 8)])
        tx.erase("e", [(8, 8)])
        with pytest.raises(lftj.DataError) as caught:
            tx.erase("e", [(1, 2), (8, 8)])
        assert str(caught.value) == (
            "`e` has no row (8, 8) to erase\n"
            '  why: missing="error" asks for this\n'
            '  do: erase rows that were inserted, or use missing="ignore"'
        )
        with pytest.raises(lftj.DataError) as caught:
            tx.erase("s", [("a", 1), ("b", 1)])
        assert caught.value.what == "`s` has no row ('b', 1) to erase"
        with pytest.raises(lftj.DataError) as caught:
            tx.erase("s", [("a", 2)])
        assert caught.value.what == "`s` has no row ('a', 2) to erase"
        with pytest.raises(lftj.DataError) as caught:
            tx.erase("tri", [(1, 2, 3)])
        assert caught.value.why.startswith("only facts can be erased, and this row is derived by ")
        tx.erase("s", [("a", 1)])
    assert set(tx.delta) == {"s"}
    with pytest.raises(lftj.DataError) as caught:
        db.transaction(missing="warn")
    assert str(caught.value) == (
        "`missing` cannot be 'warn'\n"
        "  why: it says what to do about rows to erase that are no facts\n"
        '  do: give `missing="ignore"` or `missing="error"`'
    )


# Rules ----------------------------------------------------------------------------------------------------------


def test_rules_come_and_go() -> None:
    db = small()
    with db.transaction() as tx:
        tx.rules("two(x, z) :- e(x, y), e(y, z).  tri(x, x, x) :- e(x, _).  e(4, 5).  .decl new(x:symbol)")
        tx.insert("new", [("a",)])
        assert set(tx.preview()) == {"two", "tri", "e", "new"}
        with pytest.raises(lftj.ProgramError):
            tx.rules("bad(x) :- e(y, y).")
        assert "two" not in db
    assert set(tx.delta["two"].inserted) == {(1, 3), (1, 4), (2, 4), (3, 5)}
    assert set(tx.delta["tri"].inserted) == {(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4)}
    assert tx.stats["heads"]["two"]["why"].startswith("its rules changed; ")
    assert list(db["new"]) == [("a",)]
    with db.transaction() as tx:
        tx.remove_rules("tri")
        tx.insert("tri", [(0, 0, 0), (1, 2, 3)])
    assert list(db["tri"]) == [(0, 0, 0), (1, 2, 3)]
    assert list(tx.delta["tri"].inserted) == [(0, 0, 0)]
    assert len(tx.delta["tri"].erased) == 4
    with db.transaction() as tx:
        tx.rules("tri(x, y, 9) :- e(x, y), x > 3.", key_orders={"tri": ("y", "x")})
    assert list(tx.delta["tri"].inserted) == [(4, 5, 9)]


def test_rules_of_a_failed_transaction_leave_nothing() -> None:
    db = small()
    before = list(db), db.directives, db._strata.clauses

    def change(tx: Any) -> None:
        tx.rules(".decl more(x:number)\n.output more\nmore(x) :- e(x, _).")
        tx.remove_rules("tri")
        raise Stop

    with pytest.raises(Stop), db.transaction() as tx:
        change(tx)
    assert (list(db), db.directives, db._strata.clauses) == before
    assert list(db["tri"]) == [(1, 2, 3)]


def test_no_rules_to_remove() -> None:
    db = small()
    with db.transaction() as tx:
        with pytest.raises(UnknownRelationError) as caught:
            tx.remove_rules("e")
        assert str(caught.value) == (
            "no rule derives `e`\n"
            "  why: it has no rules that could be removed\n"
            "  do: erase its facts, if these are meant"
        )
        with pytest.raises(UnknownRelationError, match="there is no relation `trie`"):
            tx.remove_rules("trie")
        tx.remove_rules("tri")
        with pytest.raises(UnknownRelationError, match="no rule derives `tri`"):
            tx.remove_rules("tri")


# Memory ---------------------------------------------------------------------------------------------------------


def test_memory_is_flat() -> None:
    """Over 100,000 transactions of one row, with a key order that follows and deltas that are read."""
    db = lftj.Database._sized(".decl e(x:number, y:number) .decl s(n:symbol)", page_rows=4, directory_rows=4)
    db.load("e", [(i, i) for i in range(200)])
    db.query("e(x, y), y = 3", order=("y", "x")).count()
    assert len(db._relations["e"].orders) == 2
    gc.collect()
    gc.disable()
    apart = 10_000 if FULL else 40
    try:
        used = []
        for i in range(10 * apart if FULL else 5 * apart):
            row = [(i // 2 % 50 * 7, -1)]
            with db.transaction() as tx:
                if i % 2:
                    tx.erase("e", row)
                else:
                    tx.insert("e", row)
            if i % 10 == 0:
                assert len(tx.delta["e"].inserted) == 1
            if i % apart == apart - 1:
                used.append(db.memory()["total"]["pages"])
    finally:
        gc.enable()
    assert max(used) <= min(used) * 1.1
    check_stored(db._relations["e"])


def test_pages_are_shared_with_held_versions() -> None:
    """A snapshot costs the pages that changed since, no more."""
    db = lftj.Database._sized(".decl e(x:number)", page_rows=4, directory_rows=4)
    db.load("e", np.arange(4_000)[:, None])
    before = db.memory()["total"]["pages"]
    held = db.snapshot()
    for i in range(10):
        with db.transaction() as tx:
            tx.erase("e", [(i,)])
    assert db.memory()["total"]["pages"] < before * 1.2
    assert len(held["e"]) == 4_000
    assert len(db["e"]) == 3_990


# Rows that rules derive ------------------------------------------------------------------------------------------


def test_erasing_a_row_that_only_rules_derive_is_told() -> None:
    db = lftj.Database(PROGRAM)
    db.load("e", EDGES)
    db.load("tri", [(1, 2, 3), (7, 8, 9)])
    assert list(db["tri"]) == [(1, 2, 3), (7, 8, 9)]
    with db.transaction() as tx:  # a fact, and derived: the fact goes
        tx.erase("tri", [(1, 2, 3)])
    assert tx.stats["derived"] == {}
    with pytest.warns(DataWarning) as told, db.transaction() as tx:  # noqa: PT031 - it is told at the block's end
        tx.erase("tri", [(1, 2, 3), (5, 5, 5)])
        tx.erase("tri", [(1, 2, 3), (7, 8, 9)])
    assert [str(warning.message) for warning in told] == [
        "of `tri`, rows were erased that only rules derive, so they are still there\n"
        "  why: only facts can be erased, and `tri` is derived by <rules>:2:1: "
        "`tri(x, y, z) :- e(x, y), e(y, z), e(x, z).`\n"
        '  do: erase the facts that the rule reads, or change the rule; missing="error" refuses such rows'
    ]
    assert told[0].filename == __file__
    assert tx.stats["derived"] == {"tri": 1}
    assert list(db["tri"]) == [(1, 2, 3)]
    with db.transaction() as tx:  # what it is derived from goes, too
        tx.erase("tri", [(1, 2, 3)])
        tx.erase("e", [(1, 2)])
    assert tx.stats["derived"] == {}
    with db.transaction() as tx:  # it is a fact in the end
        tx.insert("e", [(1, 2)])
        tx.erase("tri", [(1, 2, 3)])
        tx.insert("tri", [(1, 2, 3)])
    assert tx.stats["derived"] == {}


def test_a_row_that_only_rules_derive_is_missing() -> None:
    db = lftj.Database(PROGRAM)
    db.load("e", EDGES)
    with db.transaction(missing="error") as tx:
        with pytest.raises(lftj.DataError) as caught:  # evaluates what is not up to date
            tx.erase("tri", [(1, 2, 3)])
        assert str(caught.value) == (
            "`tri` has no fact (1, 2, 3) to erase, though it has the row\n"
            "  why: only facts can be erased, and this row is derived by <rules>:2:1: "
            "`tri(x, y, z) :- e(x, y), e(y, z), e(x, z).` with x = 1, y = 2, z = 3\n"
            '  do: erase the facts that the rule reads, change the rule, or use missing="ignore"'
        )
        with pytest.raises(lftj.DataError, match=r"has no row \(1, 2, 4\) to erase"):
            tx.erase("tri", [(1, 2, 4)])
        tx.insert("e", [(9, 9)])
    assert (9, 9, 9) in db["tri"]


def test_heads_that_are_not_up_to_date_are_not_evaluated_to_tell_of_erases() -> None:
    db = lftj.Database(PROGRAM)
    db.load("e", EDGES)
    with db.transaction() as tx:
        tx.erase("tri", [(1, 2, 3)])
    assert tx.stats["derived"] == {}
    assert "tri" in db._state.stale
    assert list(db["tri"]) == [(1, 2, 3)]


@pytest.mark.parametrize("place", ["__enter__", "__exit__", "_finish"])
def test_a_block_that_an_interrupt_kept_from_its_end_is_gone_with_its_frame(place: str) -> None:
    """The database was inside a transaction for good, and its lock held."""
    db = small()

    def interrupt(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == place and frame.f_code.co_filename.endswith("transaction.py"):
            raise KeyboardInterrupt

    def work() -> None:
        with db.transaction() as tx:
            tx.insert("e", [(5, 6)])

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        work()
    except KeyboardInterrupt:
        sys.settrace(before)
    assert (5, 6) not in set(db["e"])

    def commit(row: tuple[int, int]) -> None:
        with db.transaction() as tx:
            tx.insert("e", [row])

    commit((7, 8))
    thread = threading.Thread(target=commit, args=((8, 9),), daemon=True)
    thread.start()
    thread.join(20)
    assert {(7, 8), (8, 9)} <= set(db["e"])


def test_an_interrupt_as_a_block_begins_keeps_nobody_from_writing() -> None:
    """The lock that it had just taken was locked for good."""
    db, at, interrupted = small(), 0, True
    places = (transaction.__file__, async_block.__file__)
    while interrupted:
        tx = db.transaction()
        with contextlib.suppress(KeyboardInterrupt), Interrupt(at, places) as interrupt:
            tx.__enter__()
        interrupted = interrupt.done
        if not interrupted:
            tx.__exit__(None, None, None)
        del tx

        def commit(row: tuple[int, int] = (at, at)) -> None:
            with db.transaction() as tx:
                tx.insert("e", [row])

        thread = threading.Thread(target=commit, daemon=True)
        thread.start()
        thread.join(20)
        assert (at, at) in db["e"]
        at += 1
    assert at > 5
