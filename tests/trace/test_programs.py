"""Traces inside transactions: whole programs, every head of which is maintained by its trace.

Catches: changes that do not flow from stratum to stratum; a support that counts wrongly where several rules, several
bindings or facts stand behind a row; an outdated trace that is taken for a good one; a snapshot that sees a commit.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lftj
from lftj.evaluate.text_steps import step
from lftj.join.run import Limits
from lftj.maintain.clause_delta import ClauseDelta
from lftj.maintain.clause_trace import ClauseTrace
from lftj.maintain.delta import count_clause
from lftj.maintain.step import Step
from lftj.maintain.text_trace import TextTrace, mapped
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.engine.histories import Twin, check_stored, some_rows
from tests.trace.traced import rows_of

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

# Several strata, several rules per head, projections, facts beside rules, every type.
GRAPH = """
.decl e(x:number, y:number)
.decl s(x:number, n:symbol)
.decl near(x:number, y:number)
near(x, y) :- e(x, y).
near(y, x) :- e(x, y).
two(x, z) :- near(x, y), near(y, z), x != z.
tri(x, y, z) :- e(x, y), e(y, z), e(x, z).
corner(x) :- tri(x, _, _).
corner(x) :- tri(_, x, _).
corner(x) :- tri(_, _, x).
named(n) :- corner(x), s(x, n).
together(n, m) :- two(x, y), s(x, n), s(y, m), n < m.
"""
VALUES = """
.decl w(x:number, f:float)
.decl k(n:symbol, u:unsigned)
.decl heavy(x:number, f:float)
heavy(x, f) :- w(x, f), f >= 0.5.
heavy(x, g) :- w(x, f), g = f + 0.5, f < 0.5.
same(x, y) :- w(x, f), heavy(y, f), x <= y.
linked(n, x) :- k(n, u), heavy(x, _), u = itou(x).
linked(n, x + 1) :- k(n, 1), w(x, 0.5).
names(n) :- linked(n, _).
names(max(n, m)) :- linked(n, x), linked(m, x), n != m.
high(n) :- k(n, u), u > 2.
"""
COMPUTED = """
.decl p(a:number, b:number, c:number)
.decl u(a:number)
loop(a, b) :- p(a, b, a).
loop(a, a) :- p(a, a, 1), u(1).
up(a, b) :- p(a, b, _), b > a.
up(a, b) :- u(a), b = a + 1.
far(a, c - a) :- up(a, b), up(b, c), p(_, _, c), c != a.
far(a, 0) :- loop(a, b), b <= a.
"""
# Maps, filters, atoms that wait for a text and texts that are computed from what these bind.
TEXTS = """
.decl s(x:number, n:symbol)
.decl k(n:symbol, u:unsigned)
.decl q(n:symbol, x:number)
shown(x, cat(n, "!")) :- s(x, n).
shown(x, n) :- k(n, u), x = utoi(u), strlen(n) > 0, !contains("a", n).
first(t) :- s(_, n), t = substr(n, 0, 1), match("[a-z]*", t).
known(z, x) :- s(x, n), z = cat(n, "b"), k(z, _).
twice(w, v) :- s(x, n), z = cat(n, "b"), q(z, w), w >= x, v = cat(z, to_string(w)).
deep(m, x) :- twice(x, v), m = substr(v, 0, 2), q(m, y), s(y, cat(m, "")).
"""


def forced(db: lftj.Database, granularity: str | None = None, strategy: str = "trace") -> None:
    """Maintain every head by its trace (or as said) from here on."""
    state = db._evaluator.state
    rules = {clause.rule for clause in state.strata.clauses}
    db._evaluator.state = state._replace(
        maintain=dict.fromkeys(rules, strategy),
        granularity=dict.fromkeys(rules, granularity) if granularity else {},
    )


def recorded_again(db: lftj.Database, trace: Any, relations: Any) -> list[Any]:
    """The rows of a trace recorded now, which it is compared with, and those between its parts with theirs."""
    evaluator = db._evaluator
    if isinstance(trace, TextTrace):
        rows = np.concatenate(recorded_again(db, trace.inner, relations) or [trace_rows(trace.inner)], axis=1)
        if trace.outer is None:
            return [mapped(trace.split, rows, rows.shape[1], evaluator.symbols)[0]]
        stepped = step(trace.split, rows, rows.shape[1], evaluator.symbols)
        check_stored(trace.between)
        assert sorted(rows_of([trace.between.content.columns()])) == sorted(rows_of([stepped.rows]))
        return recorded_again(db, trace.outer, {**relations, trace.between.name: trace.between})
    versions = {order: relations[order[0]].order(order[1]) for order in trace.orders}
    fresh = ClauseTrace(trace.plan, trace.trace_plan, db._arena, evaluator._encode, evaluator.symbols.ranks)
    chunks = fresh.record(versions, Limits())
    trace.indexes.check()
    assert trace.indexes.packings.keys() == fresh.indexes.packings.keys()
    for s in fresh.indexes.packings:
        assert trace.indexes.records(s).tolist() == fresh.indexes.records(s).tolist(), trace.site_name(s)
        assert trace.indexes.count(s) == fresh.indexes.count(s)
    return chunks


def trace_rows(trace: ClauseTrace) -> Any:
    """No rows, of the width of those of `trace`."""
    return np.empty((len(trace.plan.head), 0), np.int64)


def check_traces(db: lftj.Database) -> int:
    """Every trace that is up to date equals one recorded now, and every support counts; how many there are.

    Of what is followed by delta, the support.
    """
    evaluator, state, checked = db._evaluator, db._state, 0
    for head, held in db._kept.heads.items():
        if not held.holds_for(Step.at_rest(evaluator, db._kept), state.strata.heads_of(head)):
            continue
        derived: Counter[tuple[int, ...]] = Counter()
        for clause, trace in zip(held.clauses, held.traces, strict=True):
            if isinstance(trace, ClauseDelta):
                chunks = count_clause(evaluator, clause, Limits())[1]
            else:
                chunks = recorded_again(db, trace, state.relations)
            derived.update(rows_of(chunks))
            checked += 1
        relation = state.relations[head]
        if held.support is None:
            assert set(derived.values()) <= {1}
            assert not len(relation.facts)
        else:
            held.support.check()
            assert {tuple(row[:-1]): row[-1] for row in held.support.columns().T.tolist()} == dict(derived)
    return checked


# Histories ------------------------------------------------------------------------------------------------------


class Stop(Exception):
    """Raised inside a block."""


class TracedHistories(RuleBasedStateMachine):
    """Transactions, loads, rules and readers, on databases whose heads are all traced, in tiny buffers."""

    strategy = "trace"

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[Any, dict[str, set[Any]]]] = []

    @initialize(rng=programs.seeds, text=st.sampled_from((GRAPH, VALUES, COMPUTED, TEXTS, TEXTS, None, None)))
    def begin(self, rng: Random, text: str | None) -> None:
        case = programs.make_case(rng, kinds=rng.choice((("number",), ("number", "float", "unsigned"), programs.TYPES)))
        parts = [text] if text else case.parts
        note("\n".join(parts))
        self.twin = Twin({**case.sizes, "buffer_rows": rng.choice((1, 3, 64))})
        self.twin.db._evaluator.trace_room = rng.choice((4, 4, 16, None))
        self.granularity = rng.choice(("node", "interval", None))
        for part in parts:
            self.twin.db.rules(part)
            self.twin.extend(part)
        for name in sorted(self.twin.program.kinds):
            heads = self.twin.heads()
            if name not in heads or rng.random() < 0.3:
                rows = programs.make_rows(rng, self.twin.schema(name), most=3 if name in heads else programs.MOST)
                self.twin.db.load(name, rows)
                self.twin.put(name, rows)

    @rule(rng=programs.seeds, fails=st.sampled_from((False, False, False, True)))
    def transact(self, rng: Random, fails: bool) -> None:
        twin = self.twin
        forced(twin.db, self.granularity, self.strategy)
        before, facts = twin.contents(), copy.deepcopy(twin.facts)
        try:
            with twin.db.transaction() as tx:
                for _ in range(rng.choice((1, 1, 2, 3))):
                    name = rng.choice(sorted(twin.program.kinds))
                    rows = some_rows(rng, twin, name)
                    insert = rng.random() < 0.5
                    note(f"{'insert' if insert else 'erase'} {name} {rows}")
                    (tx.insert if insert else tx.erase)(name, rows)
                    (twin.put if insert else twin.take)(name, rows)
                    if rng.random() < 0.2:
                        tx.preview()
                if fails:
                    tx.preview()
                    raise Stop
        except Stop:
            twin.facts = facts
            assert check_traces(twin.db) >= 0
            return
        after = twin.contents()
        assert set(tx.delta) == {name for name in after if after[name] != before[name]}
        for name in tx.delta:
            assert set(tx.delta[name].inserted) == after[name] - before[name]
            assert set(tx.delta[name].erased) == before[name] - after[name]
        for name in twin.db:
            assert set(twin.db[name]) == after[name]
        check_traces(twin.db)

    @rule(rng=programs.seeds)
    def load(self, rng: Random) -> None:
        """Now the traces of what is above are outdated."""
        name = rng.choice(sorted(self.twin.db))
        rows = some_rows(rng, self.twin, name)
        note(f"load {name} {rows}")
        self.twin.db.load(name, rows)
        self.twin.put(name, rows)

    @rule()
    def hold(self) -> None:
        self.held.append((self.twin.db.snapshot(), copy.deepcopy(self.twin.contents())))

    @invariant()
    def snapshots_stay(self) -> None:
        for snapshot, contents in self.held[-2:]:
            assert {name: set(snapshot[name]) for name in snapshot} == contents

    def teardown(self) -> None:
        if hasattr(self, "twin"):
            self.twin.verify()
            check_traces(self.twin.db)


TestTracedHistories = TracedHistories.TestCase
TestTracedHistories.settings = examples(60, 6, stateful_step_count=12 if JIT else 6)


class DeltaHistories(TracedHistories):
    """The same where heads follow by delta, but for those that compute texts."""

    strategy = "delta"


TestDeltaHistories = DeltaHistories.TestCase
TestDeltaHistories.settings = examples(60, 6, stateful_step_count=12 if JIT else 6)


# One by one -----------------------------------------------------------------------------------------------------


def twin_of(text: str, rows: dict[str, list[Any]], **sizes: int) -> Twin:
    """A program with rows, every head of it traced."""
    twin = Twin({"page_rows": 4, "directory_rows": 2, "buffer_rows": 3, **sizes})
    twin.db._evaluator.trace_room = 4
    twin.db.rules(text)
    twin.extend(text)
    for name, some in rows.items():
        twin.db.load(name, some)
        twin.put(name, some)
    forced(twin.db)
    with twin.db.transaction() as tx:  # what a trace is recorded by
        for name in twin.program.kinds:
            given = list(rows.get(name, ()))[:1]
            tx.erase(name, given)
    with twin.db.transaction() as tx:
        for name in twin.program.kinds:
            tx.insert(name, list(rows.get(name, ()))[:1])
    return twin


def change(twin: Twin, **calls: list[Any]) -> Any:
    """A transaction that inserts (`name`) and erases (`_name`); its strategies."""
    forced(twin.db)
    with twin.db.transaction() as tx:
        for name, rows in calls.items():
            if name.startswith("_"):
                tx.erase(name[1:], rows)
                twin.take(name[1:], rows)
            else:
                tx.insert(name, rows)
                twin.put(name, rows)
    twin.verify()
    assert check_traces(twin.db)
    return {head: stats["strategy"] for head, stats in tx.stats["heads"].items()}


EDGES = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4)]


def test_a_change_flows_through_all_strata() -> None:
    twin = twin_of(GRAPH, {"e": EDGES, "s": [(1, "a"), (2, "b"), (3, "a"), (4, "c")]})
    used = change(twin, _e=[(1, 3)], e=[(1, 4)])
    assert used == dict.fromkeys(used, "trace")
    assert {"near", "two", "tri", "corner"} <= set(used)
    used = change(twin, e=[(1, 3)], _e=[(1, 4), (3, 4)], s=[(9, "z")], _s=[(4, "c")])
    assert used == dict.fromkeys(used, "trace")
    assert {"named", "together"} <= set(used)


def test_rows_with_several_derivations() -> None:
    """A row goes with its last derivation or fact, whichever that is."""
    twin = twin_of(
        ".decl e(x:number, y:number)\n.decl n(x:number)\nn(x) :- e(x, _).\nn(y) :- e(_, y).\nm(x) :- n(x), e(x, x).",
        {"e": [(1, 1), (1, 2), (2, 1)]},
    )
    assert change(twin, _e=[(1, 2)]) == {"n": "trace"} | {"m": "trace"}
    assert list(twin.db["n"]) == [(1,), (2,)]
    assert change(twin, n=[(1,), (7,)])["n"] == "trace"
    change(twin, _e=[(1, 1), (2, 1)])
    assert list(twin.db["n"]) == [(1,), (7,)]
    change(twin, e=[(7, 7)], _n=[(7,)])
    assert list(twin.db["n"]) == [(1,), (7,)]
    assert list(twin.db["m"]) == [(7,)]
    change(twin, _e=[(7, 7)], _n=[(1,)])
    assert len(twin.db["n"]) == len(twin.db["m"]) == 0


def test_facts_and_rules_on_one_predicate() -> None:
    """A head derived once per row has no support until it gets its first fact."""
    twin = twin_of(".decl e(x:number, y:number)\n.decl f(x:number, y:number)\nf(y, x) :- e(x, y).", {"e": EDGES})
    assert change(twin, e=[(9, 9)]) == {"f": "trace"}
    assert twin.db._kept.heads["f"].support is None
    change(twin, f=[(9, 9), (5, 5)], _e=[(9, 9)])
    assert (9, 9) in twin.db["f"]
    change(twin, _f=[(9, 9)], e=[(5, 5)])
    assert (9, 9) not in twin.db["f"]
    change(twin, _f=[(5, 5)])
    assert (5, 5) in twin.db["f"]


def test_guards_are_evaluated_again() -> None:
    """What is not traced stands between heads that are."""
    twin = twin_of(
        ".decl e(x:number, y:number)\n.decl s(x:number, n:symbol)\n"
        "a(x, n) :- e(x, _), s(x, n).\nb(x, cat(n, n)) :- a(x, n).\nc(x, n) :- b(x, n), e(_, x), s(_, _).",
        {"e": EDGES, "s": [(2, "a"), (3, "b")]},
    )
    used = change(twin, s=[(2, "c")], _e=[(1, 3)])
    assert used == {"a": "trace", "b": "trace", "c": "recompute"}


def test_a_load_between_transactions() -> None:
    twin = twin_of(GRAPH, {"e": EDGES, "s": [(1, "a"), (2, "b")]})
    twin.db.load("e", [(4, 1)])
    twin.put("e", [(4, 1)])
    assert change(twin, e=[(4, 2)])["tri"] == "trace"
    assert change(twin, _e=[(4, 2)])["tri"] == "trace"


@pytest.mark.parametrize("granularity", ["node", "interval"])
def test_symbols_keep_their_order(granularity: str) -> None:
    """Texts are compared by rank, and a new text in the middle moves the ranks of those behind it."""
    twin = twin_of(
        '.decl s(x:number, n:symbol)\nbefore(n, m) :- s(x, n), s(x, m), n < m.\nfirst(x) :- s(x, n), n < "k".',
        {"s": [(1, "b"), (1, "m"), (2, "z"), (2, "m")]},
    )
    forced(twin.db, granularity)
    change(twin, s=[(1, "c"), (1, "a"), (2, "mm")])
    change(twin, s=[(2, ""), (3, "k"), (3, "j")], _s=[(1, "b"), (2, "z")])


def test_snapshots_are_read_while_commits_go_on() -> None:
    """Readers in other threads see one state each, whatever is maintained, adopted and given back meanwhile."""
    twin = twin_of(GRAPH, {"e": EDGES, "s": [(1, "a"), (2, "b"), (3, "a")]})
    snapshot, expected = twin.db.snapshot(), copy.deepcopy(twin.contents())
    done, wrong = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            seen = {name: set(snapshot[name]) for name in snapshot}
            if seen != expected:
                wrong.append(seen)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        rng = Random(5)
        for _ in range(60 if JIT else 10):
            rows = [(rng.randrange(6), rng.randrange(6)) for _ in range(3)]
            change(twin, e=rows[:2], _e=rows[2:])
    finally:
        done.set()
        for reader in readers:
            reader.join(60)
    assert wrong == []


def test_texts_follow_a_change_in_few_steps() -> None:
    """Every commit that concerned a rule with texts evaluated it wholly."""
    db = lftj.Database(
        ".decl s(x:number, n:symbol)\n.decl k(n:symbol, y:number)\n"
        'shown(x, cat(n, "!")) :- s(x, n), strlen(n) > 1.\nknown(x, y) :- s(x, n), k(cat("a", n), y).'
    )
    n = 2000 if JIT else 30
    db.load("s", [(i, f"t{i % 97}") for i in range(n)])
    db.load("k", [(f"at{i}", i) for i in range(97)])
    for row in ((n, "first"), (n + 1, "t5"), (n + 2, "t7")):
        with db.transaction() as tx:
            tx.insert("s", [row])
            tx.erase("s", [(7, "t7")])
    told = tx.stats["heads"]
    assert {head: told[head]["strategy"] for head in told} == {"shown": "trace", "known": "trace"}
    assert told["shown"]["steps"] < 10
    assert told["known"]["steps"] < 20
    assert list(tx.delta["shown"].inserted) == [(n + 2, "t7!")]
    assert list(tx.delta["known"].inserted) == [(n + 2, 7)]
    with db.transaction() as tx:
        tx.erase("k", [("at7", 7)])
    assert set(tx.delta) == {"k", "known"}
    assert all(y == 7 for _, y in tx.delta["known"].erased)
    check_traces(db)
    assert any("between parts" in part for part in db.memory()["known"])
    assert "then" in db.explain("known").data["strata"][0]["rules"][0]["trace"]
    assert "·" in str(db.explain("known"))
