"""Functional predicates against plain dicts: what conflicts, what an upsert replaces, and what a refusal leaves.

Catches: two values of a key that were published, a conflict that is none, a neighbour on another page, an upsert that
did not see what its transaction collected before, a refused commit that left something behind.
"""

from __future__ import annotations

import io
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lftj
from lftj.errors import EvaluationError, KeyConflictError, MissingKeyError
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.engine.functions import functional, make_functional
from tests.engine.histories import check_stored, source
from tests.injected import Sweep
from tests.trace.test_failures import picture

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

Row = tuple[Any, ...]
Rows = set[Row]

PROGRAM = """
.decl f(a:number, b:symbol, v:float)
.decl one(v:number)
.decl e(x:number, y:number)
.decl g(x:number, y:number)
.decl h(b:symbol, v:float)
.decl k(x:number, w:number)
g(x, y) :- e(x, y).
h(b, v) :- f(_, b, v).
h("c", 0.5) :- one(v), v > 1.
k(x, y + v) :- g(x, y), one(v).
"""
SCHEMAS = {
    "f": ("number", "symbol", "float"),
    "one": ("number",),
    "e": ("number", "number"),
    "g": ("number", "number"),
    "h": ("symbol", "float"),
    "k": ("number", "number"),
}
FUNCTIONAL = ("f", "one", "g", "h", "k")
READS = {"g": ("e",), "h": ("f", "one"), "k": ("g", "one")}
VALUES = {"number": (0, 1, 2), "symbol": ("a", "b", "c"), "float": (0.5, 1.5)}


def contents(facts: dict[str, Rows]) -> dict[str, Rows]:
    """What the relations hold, conflicts included."""
    found = {name: set(facts[name]) for name in SCHEMAS}
    found["g"] |= facts["e"]
    found["h"] |= {(b, v) for _, b, v in facts["f"]} | {("c", 0.5) for (v,) in facts["one"] if v > 1}
    found["k"] |= {(x, y + v) for x, y in found["g"] for (v,) in facts["one"]}
    return found


def conflicts(rows: Rows) -> list[Row]:
    """The keys with more than one value."""
    return [key for key, n in Counter(row[:-1] for row in rows).items() if n > 1]


def cannot(found: dict[str, Rows]) -> set[str]:
    """Heads that cannot be evaluated: they, or what they read, have two values under one key."""
    bad: set[str] = set()
    for head, reads in READS.items():
        if conflicts(found[head]) or bad & set(reads):
            bad.add(head)
    return bad


class Functions(RuleBasedStateMachine):
    """Loads and transactions on functional predicates, base and derived."""

    @initialize(maintain=st.sampled_from(("auto", "trace", "delta", "triggers", "recompute")))
    def begin(self, maintain: str) -> None:
        self.db = lftj.Database._sized(page_rows=2, directory_rows=2, buffer_rows=3)
        self.db.rules(PROGRAM, maintain=dict.fromkeys(READS, maintain))
        make_functional(self.db, FUNCTIONAL)
        self.facts: dict[str, Rows] = {name: set() for name in SCHEMAS}

    def some(self, rng: Random, name: str, most: int = 3) -> list[Row]:
        return [tuple(rng.choice(VALUES[kind]) for kind in SCHEMAS[name]) for _ in range(rng.choice((1, 1, 2, most)))]

    @rule(rng=programs.seeds)
    def load(self, rng: Random) -> None:
        name = rng.choice(sorted(SCHEMAS))
        rows = self.some(rng, name)
        after = self.facts[name] | set(rows)
        if name in FUNCTIONAL and conflicts(after):
            before, state = picture(self.db), self.db._state
            with pytest.raises(KeyConflictError) as caught:
                self.db.load(name, source(rng, rows, SCHEMAS[name]))
            self.told(caught.value, {name: after})
            del caught
            assert picture(self.db) == before
            assert self.db._state is state
        else:
            self.db.load(name, source(rng, rows, SCHEMAS[name]))
            self.facts[name] = after

    @rule()
    def look(self) -> None:
        expected = contents(self.facts)
        bad = cannot(expected)
        for name in SCHEMAS:
            if name in bad:
                with pytest.raises(KeyConflictError) as caught:
                    self.db[name]
                self.told(caught.value, expected)
                assert name in self.db._state.stale
            else:
                assert set(self.db[name]) == expected[name]
                self.values(self.db[name], expected[name])

    def values(self, relation: lftj.Relation, rows: Rows) -> None:
        if relation.name in FUNCTIONAL:
            for row in rows:
                assert relation[row[:-1]] == relation.get(row[:-1]) == row[-1]
                if len(row) == 2:
                    assert relation[row[0]] == row[-1]
            assert relation.get({"f": (7, "a"), "h": "zz", "one": ()}.get(relation.name, 7), 5) == (
                5 if relation.name != "one" or not rows else next(iter(rows))[0]
            )

    def told(self, error: KeyConflictError, found: dict[str, Rows]) -> None:
        """The rows of the error are in conflict."""
        first, second = error.rows
        assert first != second
        assert first[:-1] == second[:-1]
        assert {first, second} <= found[error.relation]

    @rule(rng=programs.seeds, preview=st.booleans(), missing=st.sampled_from(("ignore", "error")))
    def transact(self, rng: Random, preview: bool, missing: str) -> None:
        facts = {name: set(rows) for name, rows in self.facts.items()}
        before = contents(facts)
        broken = cannot(before)
        seen, state = picture(self.db), self.db._state
        try:
            with self.db.transaction(missing=missing) as tx:
                for _ in range(rng.choice((1, 1, 2, 3, 5))):
                    self.call(rng, tx, facts)
                if preview:
                    tx.preview()
        except KeyConflictError as error:
            error.__traceback__ = error.__context__ = None
            after = contents(facts)
            self.told(error, after)
            if preview:
                assert self.db._state is state
            assert picture(self.db) == seen
            return
        after = contents(facts)
        assert not any(conflicts(facts[name]) for name in FUNCTIONAL)
        assert not cannot(after) - broken
        self.facts = facts
        for name in SCHEMAS:
            if name not in broken:
                assert set(tx.delta[name].inserted) == after[name] - before[name]
                assert set(tx.delta[name].erased) == before[name] - after[name]
                if name in FUNCTIONAL:
                    for row in after[name] - before[name]:
                        assert tx.delta[name].inserted[row[:-1]] == row[-1]

    def call(self, rng: Random, tx: Any, facts: dict[str, Rows]) -> None:
        op = rng.choice(("insert", "erase", "upsert", "upsert", "upsert"))
        name = rng.choice(FUNCTIONAL if op == "upsert" else sorted(SCHEMAS))
        rows = self.some(rng, name)
        if op == "erase":
            rows = [row for row in rows if row in facts[name]] or sorted(facts[name])[:1]
            tx.erase(name, source(rng, rows, SCHEMAS[name]))
            facts[name] -= set(rows)
        elif op == "insert":
            tx.insert(name, source(rng, rows, SCHEMAS[name]))
            facts[name] |= set(rows)
        else:
            tx.upsert(name, source(rng, rows, SCHEMAS[name]))
            last = {row[:-1]: row for row in rows}
            facts[name] = {row for row in facts[name] if row[:-1] not in last} | set(last.values())

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "db"):
            for relation in self.db._relations.values():
                check_stored(relation)
                if relation.schema.functional:
                    assert relation.content.pair(relation.arity - 1) is None
                    assert relation.facts.pair(relation.arity - 1) is None


TestFunctions = Functions.TestCase
TestFunctions.settings = examples(60, 6, stateful_step_count=15 if JIT else 8)


# What is told ---------------------------------------------------------------------------------------------------------

PRICES = """
.decl price(item:symbol, cost:float)
.decl offer(item:symbol, shop:symbol, cost:float)
.decl best(item:symbol, cost:float)
.decl label(item:symbol, text:symbol)
best(i, c * 2.0) :- price(i, c).
best(i, c) :- offer(i, _, c), c > 1.0.
label(i, cat(i, s)) :- offer(i, s, _).
"""


def prices(**sizes: int) -> lftj.Database:
    db = functional(PRICES, "price", "best", "label", **sizes)
    db.load("price", [("anvil", 3.0), ("rope", 1.5)])
    return db


def refusal(call: Any) -> str:
    with pytest.raises(KeyConflictError) as caught:
        call()
    return str(caught.value)


RULES_REMEDY = (
    "let the rules derive one value per key, by an aggregate such as `max` or by conditions of which one holds"
)
FROM_OFFER = "<rules>:7:1: `best(i, c) :- offer(i, _, c), c > 1.0.`"
FROM_PRICE = "<rules>:6:1: `best(i, c * 2.0) :- price(i, c).`"
BEST = "best(item:symbol) -> cost:float is a functional predicate; nothing was changed"
FACTS = """\
`price` has two values under one key: price["anvil"] = 3.0 and price["anvil"] = 4.0
  price["anvil"] = 3.0: a fact (loaded or inserted)
  price["anvil"] = 4.0: a fact (loaded or inserted)
  why: price(item:symbol) -> cost:float is a functional predicate; nothing was changed
  do: give each key one value; `tx.upsert` replaces the value that is there"""


def insert(db: lftj.Database, name: str, *rows: Row, preview: bool = False) -> None:
    with db.transaction() as tx:
        tx.insert(name, list(rows))
        if preview:
            tx.preview()


def test_two_facts() -> None:
    db = prices()
    assert refusal(lambda: db.load("price", [("anvil", 4.0)])) == FACTS
    assert refusal(lambda: db.rules('price("new", 1). price("anvil", 4).')) == FACTS
    assert refusal(lambda: insert(db, "price", ("new", 1.0), ("anvil", 4.0))) == FACTS
    assert refusal(lambda: insert(db, "price", ("anvil", 4.0), preview=True)) == FACTS
    assert list(db["price"]) == [("anvil", 3.0), ("rope", 1.5)]
    with pytest.raises(KeyConflictError) as caught:
        insert(db, "price", ("anvil", 4.0))
    error = caught.value
    assert (error.relation, error.rows) == ("price", (("anvil", 3.0), ("anvil", 4.0)))
    assert error.derivations == ("a fact (loaded or inserted)",) * 2
    assert isinstance(error, lftj.DataError)
    assert isinstance(error, EvaluationError)


def test_a_fact_and_a_rule() -> None:
    db = prices()
    told = f"""\
<rules>:6:1: `best` has two values under one key: best["anvil"] = 5.0 and best["anvil"] = 6.0
  best["anvil"] = 5.0: a fact (loaded or inserted)
  best["anvil"] = 6.0: {FROM_PRICE} with i = "anvil", c = 3.0
  why: {BEST}
  do: erase the fact, or make the rule leave its key out"""
    assert refusal(lambda: insert(db, "best", ("anvil", 5.0))) == told
    insert(db, "best", ("anvil", 6.0))
    assert db["best"] == {("anvil", 6.0), ("rope", 3.0)}
    db = prices()
    db.load("best", [("anvil", 5.0)])
    assert refusal(lambda: db["best"]) == told


def test_two_rules() -> None:
    db = prices()
    told = f"""\
<rules>:7:1: `best` has two values under one key: best["anvil"] = 2.5 and best["anvil"] = 6.0
  best["anvil"] = 2.5: {FROM_OFFER} with i = "anvil", c = 2.5
  best["anvil"] = 6.0: {FROM_PRICE} with i = "anvil", c = 3.0
  why: {BEST}
  do: {RULES_REMEDY}"""
    for shop in ("me", "you", "they"):  # the third time the head is followed
        assert refusal(lambda: insert(db, "offer", ("anvil", "us", 2.5), ("nail", "us", 9.0))) == told
        assert refusal(lambda: insert(db, "offer", ("anvil", "us", 2.5), preview=True)) == told
        with db.transaction() as tx:
            tx.insert("offer", [(shop, "us", 6.0)])
        assert list(tx.delta) == ["offer", "best", "label"]
    assert "best" in db._kept.heads
    db.load("offer", [("anvil", "them", 2.5)])
    assert refusal(lambda: db["best"]) == told
    assert "best" in db._state.stale


def test_one_rule() -> None:
    db = prices()
    told = f"""\
<rules>:7:1: `best` has two values under one key: best["nail"] = 2.5 and best["nail"] = 7.5
  best["nail"] = 2.5: {FROM_OFFER} with i = "nail", c = 2.5
  best["nail"] = 7.5: {FROM_OFFER} with i = "nail", c = 7.5
  why: {BEST}
  do: {RULES_REMEDY}"""
    assert refusal(lambda: insert(db, "offer", ("nail", "us", 7.5), ("nail", "them", 2.5))) == told


def test_a_rule_that_computes_texts() -> None:
    db = prices()
    assert refusal(lambda: insert(db, "offer", ("nail", "us", 0.5), ("nail", "me", 0.5))) == (
        '<rules>:8:1: `label` has two values under one key: label["nail"] = "nailus" and label["nail"] = "nailme"\n'
        '  label["nail"] = "nailus": <rules>:8:1: `label(i, cat(i, s)) :- offer(i, s, _).` with i = "nail", s = "us"\n'
        '  label["nail"] = "nailme": <rules>:8:1: `label(i, cat(i, s)) :- offer(i, s, _).` with i = "nail", s = "me"\n'
        "  why: label(item:symbol) -> text:symbol is a functional predicate; nothing was changed\n"
        f"  do: {RULES_REMEDY}"
    )


def test_constants_in_heads_and_no_variables() -> None:
    db = functional(".decl e(x:number) .decl m(x:number) m(1) :- e(_). m(2) :- e(x), x > 5.", "m")
    insert(db, "e", (1,))
    told = refusal(lambda: insert(db, "e", (7,)))
    assert "m[] = 1: <rules>:1:37: `m(1) :- e(_).`\n" in told
    assert "m[] = 2: <rules>:1:51: `m(2) :- e(x), x > 5.` with x = 7\n" in told
    assert db["m"][()] == 1
    with db.transaction() as tx:
        tx.erase("e", [(1,)])
    assert db["m"].get((), 0) == 0


def test_a_conflict_that_a_load_brought_is_repaired() -> None:
    db = prices()
    db.load("offer", [("anvil", "us", 2.5)])
    refusal(lambda: db["best"])
    with db.transaction() as tx:
        tx.erase("offer", [("anvil", "us", 2.5)])
    with pytest.raises(EvaluationError, match="the change of `best` is not known"):
        tx.delta["best"]
    assert db["best"] == {("anvil", 6.0), ("rope", 3.0)}


def test_rules_of_a_transaction() -> None:
    db = prices()
    before = picture(db)
    with pytest.raises(KeyConflictError), db.transaction() as tx:
        tx.rules('price(i, c + 1.0) :- price2(i, c). .decl price2(i:symbol, c:float) price2("rope", 1.0).')
    assert "price2" not in db
    del tx
    assert picture(db) == before
    with db.transaction() as tx:
        tx.rules('price(i, c + 1.0) :- price2(i, c). .decl price2(i:symbol, c:float) price2("rope", 0.5).')
        tx.upsert("price", [("anvil", 1.0)])
    assert db["best"] == {("anvil", 2.0), ("rope", 3.0)}
    with pytest.raises(KeyConflictError), db.transaction() as tx:
        tx.upsert("price", [("rope", 1.0)])


def test_inputs_are_all_or_nothing(tmp_path: Any) -> None:
    (tmp_path / "price.facts").write_text("nail\t1\nnail\t2\n")
    db = prices()
    db.rules(".input price")
    with pytest.raises(
        lftj.DataError, match=r'`price` cannot be read: `price` has two values under one key: price\["n'
    ):
        db.read_inputs(tmp_path)
    assert len(db["price"]) == 2


# Upserts --------------------------------------------------------------------------------------------------------------


def test_every_source() -> None:
    db = prices()
    sources: list[Any] = [
        [("anvil", 1.0)],
        iter([("anvil", 2.0)]),
        {"cost": [3.0], "item": ["anvil"]},
        pd.DataFrame({"item": ["anvil"], "cost": [4.0]}),
        np.array([("anvil", 5.0)], [("item", "O"), ("cost", "f8")]),
    ]
    for n, given in enumerate(sources, 1):
        with db.transaction() as tx:
            assert tx.upsert("price", given) is None
        assert db["price"] == {("anvil", float(n)), ("rope", 1.5)}
        assert list(tx.delta["price"].erased) == [("anvil", 3.0 if n == 1 else n - 1.0)]
    with db.transaction(missing="error") as tx:
        rejects = tx.upsert("price", [("rope", 9), ("anvil", "?"), ("x", 1)], on_error="quarantine")
        tx.erase("price", [("rope", 9.0)])
    assert rejects is not None
    assert db["price"] == {("anvil", 5.0), ("x", 1.0)}
    with pytest.raises(lftj.DataError), db.transaction() as tx:
        tx.upsert("price", [("anvil", 7.0), ("x", None)])


def test_many_rows() -> None:
    rng = np.random.default_rng(1)
    db = functional(".decl v(a:number, b:number, c:number)", "v", page_rows=4 if JIT else 2, directory_rows=4)
    n = 3000 if JIT else 100
    expected: dict[tuple[int, int], int] = {}
    for size in (n, n, 1, 50, n):
        rows = rng.integers(0, 40, (size, 3))
        with db.transaction() as tx:
            tx.upsert("v", rows[: size // 2])
            tx.upsert("v", rows[size // 2 :])
        expected |= {(a, b): c for a, b, c in rows.tolist()}
        assert {(a, b): c for a, b, c in db["v"]} == expected
        assert len(db["v"]) == len(expected)
        check_stored(db._relations["v"])


def test_nothing_new_changes_nothing() -> None:
    db = prices()
    state = db._state
    with db.transaction() as tx:
        tx.upsert("price", [("anvil", 3.0)])
        tx.upsert("price", [])
    assert list(tx.delta) == []
    with db.transaction() as tx:
        tx.insert("price", [("anvil", 7.0)])
        tx.upsert("price", [("anvil", 3.0)])
    assert list(tx.delta) == []
    assert db._state.relations is state.relations


def test_not_a_function() -> None:
    db = prices()
    with db.transaction() as tx, pytest.raises(lftj.DataError) as caught:
        tx.upsert("offer", [("nail", "us", 1.0)])
    assert str(caught.value) == (
        "`offer` is not a functional predicate, so none of its columns is a key\n"
        "  why: it is declared as offer(item:symbol, shop:symbol, cost:float)\n"
        "  do: use `tx.erase` and `tx.insert`, or declare it with its value after an arrow, as in "
        "`.decl price(item:symbol) -> cost:float`"
    )


# Values by key ------------------------------------------------------------------------------------------------------


def test_values() -> None:
    db = prices()
    price = db["price"]
    assert price["anvil"] == price[("anvil",)] == 3.0
    assert price.get("nail") is None
    assert price.get("nail", 0.0) == 0.0
    with pytest.raises(MissingKeyError) as caught:
        price["nail"]
    assert isinstance(caught.value, KeyError)
    assert str(caught.value) == (
        "`price` has no value for 'nail'\n"
        "  why: no row of price(item:symbol) -> cost:float has this key\n"
        "  do: ask with `.get(key, default)`, or iterate over `price` for the keys it has"
    )
    with pytest.raises(lftj.DataError, match=r"^the key \('a', 'b'\) has 2 values, price\(item:symbol\) takes 1"):
        price["a", "b"]
    with pytest.raises(lftj.DataError, match="column `item` of `price`"):
        price.get(3)
    with pytest.raises(lftj.DataError) as refused:
        db["offer"]["anvil", "us"]
    assert str(refused.value) == (
        "`offer` has no keys to ask for: it is not a functional predicate\n"
        "  why: its columns are offer(item:symbol, shop:symbol, cost:float)\n"
        "  do: ask `row in`, or iterate over the rows; `db.query` selects some of them"
    )
    assert pd.DataFrame(price.df()).shape == (2, 2)
    assert np.array(price, dtype=object).shape == (2, 2)


def test_a_file_of_changes(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from lftj.cli.updates import apply_updates

    db = prices()
    lines = b"=price anvil 4\n=price nail 1\n=price nail 2\n\n-price nail 2\n+price nail 3\n\n+price nail 4\n"
    with pytest.raises(KeyConflictError):
        apply_updates(db, io.BytesIO(lines), "x", None, stats=False)
    assert capsysbinary.readouterr().out == (
        b"-best anvil 6.0\n+best anvil 8.0\n+best nail 4.0\n\n-best nail 4.0\n+best nail 6.0\n\n"
    )
    assert db["price"] == {("anvil", 4.0), ("nail", 3.0), ("rope", 1.5)}


def test_after_a_refused_preview_the_block_goes_on() -> None:
    db = prices()
    with db.transaction() as tx:
        tx.insert("price", [("anvil", 4.0)])
        assert refusal(tx.preview) == FACTS
        tx.upsert("price", [("anvil", 5.0)])
        assert list(tx.preview()["best"].inserted) == [("anvil", 10.0)]
    assert db["best"] == {("anvil", 10.0), ("rope", 3.0)}


# Failures in between --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pair", "rows_under", "contains"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("bug")])
@pytest.mark.parametrize("after", [False, True])
def test_a_failure_at_every_call(name: str, error: BaseException, after: bool) -> None:
    from scantree.version import Version

    db = prices(page_rows=2, directory_rows=2)
    db.load("best", [("far", 0.0)])
    db.evaluate()
    before, state = picture(db), db._state
    sweep, number = Sweep(Version, name, after=after), 0
    while True:
        number += 1
        raised: BaseException | None = None
        with pytest.MonkeyPatch.context() as patch:
            sweep.inject(patch, error)
            try:
                with db.transaction() as tx:
                    tx.upsert("price", [("anvil", 4.0), ("nail", 1.0)])
                    tx.insert("offer", [("anvil", "us", 2.5)])
            except BaseException as found:
                found.__traceback__ = found.__context__ = None
                raised = found
        del tx
        assert db._state is state
        assert picture(db) == before
        if raised is not error:
            break
    assert isinstance(raised, KeyConflictError)
    assert number > 1


def test_the_derivation_is_not_worth_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the binding cannot be looked for any more, the conflict is told without it."""
    from lftj.errors import TimeoutExpired
    from lftj.evaluate import key_conflicts as engine

    def late(*args: Any) -> None:
        raise TimeoutExpired("late", why="it is a test", remedy="wait")

    monkeypatch.setattr(engine, "_binding", late)
    db = prices()
    told = refusal(lambda: insert(db, "offer", ("nail", "us", 7.5), ("nail", "them", 2.5)))
    assert 'best["nail"] = 2.5: one of its rules\n' in told


def test_only_keys_of_inserted_rows_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from scantree.version import Version

    db = functional(".decl v(a:number, b:number) .decl w(a:number, b:number) w(a, b) :- v(a, b), a >= 0.", "v", "w")
    db.load("v", np.stack([np.arange(1000)] * 2, axis=1))
    db.evaluate()
    asked: list[int] = []
    pair = Version.pair

    def noted(version: Version, keys: int, prefixes: Any = None) -> Any:
        asked.append(len(version) if prefixes is None else prefixes.shape[1])
        return pair(version, keys, prefixes)

    monkeypatch.setattr(Version, "pair", noted)
    insert(db, "v", (2000, 1), (2001, 1))
    insert(db, "v", (2002, 1))
    assert asked == [2, 2, 1, 1]
