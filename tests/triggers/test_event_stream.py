"""Streams of events: `Database.apply` beside one transaction for every event.

Catches: a log that is not the head after each event; events that change nothing and count all the same, or the other
way round; a stream that a head above misses, or gets in another order; a stream that fails and leaves something behind;
pages that are written to while a snapshot has them, or copied where nobody has.
"""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis.strategies import DataObject, data, integers, lists, sampled_from, tuples

import lftj
from lftj.errors import (
    ArgumentError,
    DataError,
    EvaluationError,
    KeyConflictError,
    MemoryLimitError,
    UnknownRelationError,
)
from lftj.maintain import body_maps
from lftj.results import event_blocks
from scantree import amend
from scantree.lagging import LaggingVersion
from scantree.memory import Arena
from scantree.version import Version
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.injected import Sweep

RULES = """
.decl o(k:number, d:number, r:number)
.decl l(k:number, p:number, x:number, s:symbol)
.decl f(k:number) -> v:number
rev[d] = sum p * r : { o(k, d, r), l(k, p, x, s), x < 7, substr(s, 0, 1) = "a" }.
cnt[d] = count : { o(k, d, _), l(k, _, _, _), !o(d, k, k) }.
tot(s) :- s = sum p * (100 - x) : { l(_, p, x, _) }.
num(n) :- n = count : { l(_, p, _, _), o(p, _, _) }.
avg[s] = mean p - r : { o(k, _, r), l(k, p, _, s), p > r + 3 }.
pairs[n] = count : { cnt[d] = n, o(_, d, _) }.
sums[d] = sum v : { o(k, d, _), f[k] = v }.
high(d, s) :- rev[d] = s, cnt[d] > 1.
"""
HEADS = ("rev", "cnt", "tot", "num", "avg", "pairs", "sums")
Block = tuple[str, Any, list[tuple[Any, ...]]]


def made() -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(RULES, maintain=dict.fromkeys(HEADS, "triggers"))
    return db


def random_row(rng: Random, name: str) -> tuple[Any, ...]:
    def below(n: int) -> int:
        return rng.randrange(n)

    if name == "o":
        return below(4), below(4), below(4)
    return (below(4), below(9)) if name == "f" else (below(4), below(9), below(9), rng.choice("ab") + rng.choice("xy"))


def random_blocks(rng: Random) -> list[Block]:
    blocks: list[Block] = []
    for _ in range(rng.choice((1, 3, 8))):
        name, n = rng.choice("olf"), rng.choice((1, 1, 4, 0))
        ops = [rng.choice(("insert", "insert", "delete")) for _ in range(n)]
        op = ops if rng.random() < 0.5 or not n else ops[0]
        blocks.append((name, op, [random_row(rng, name) for _ in range(n)]))
    return blocks


def in_some_form(rng: Random, block: Block) -> tuple[str, Any, Any]:
    """A block as it is, or with its rows as a table or a record batch, whose integers are of either width."""
    name, op, rows = block
    if not rows or rng.random() < 0.4:
        return block
    types = [rng.choice((pa.int64(), pa.int32())) if value.__class__ is int else pa.string() for value in rows[0]]
    columns = [pa.array(column, type) for column, type in zip(zip(*rows, strict=True), types, strict=True)]
    form = rng.choice((pa.table, pa.record_batch))
    return name, op, form(columns, names=[f"c{i}" for i in range(len(columns))])


def one_by_one(db: lftj.Database, name: str, op: str, row: tuple[Any, ...]) -> None:
    with db.transaction() as tx:
        if name != "f":
            getattr(tx, "insert" if op == "insert" else "erase")(name, [row])
        elif op == "insert":
            tx.upsert(name, [row])
        else:
            tx.erase(name, [(row[0], value) for value in range(9)])


@examples(20, 3)
@given(programs.seeds)
@pytest.mark.filterwarnings("ignore:.*occurs only once")
def test_the_log_is_the_head_after_each_event(rng: Random) -> None:
    db, plain = made(), made()
    for _ in range(6 if JIT else 2):
        blocks = random_blocks(rng)
        note(f"{blocks}")
        state = {head: set(db[head]) for head in HEADS}
        given = blocks if rng.random() < 0.5 else [in_some_form(rng, block) for block in blocks]
        with patch.object(event_blocks, "BLOCKS", rng.choice((1, 2, 1024))):
            done = db.apply(given, watch=HEADS)
        logs: dict[str, dict[int, list[tuple[tuple[Any, ...], int]]]] = {head: {} for head in HEADS}
        for head in HEADS:
            for line in done.logs[head].to_pylist():
                number, *row, kind = line.values()
                logs[head].setdefault(number, []).append((tuple(row), kind))
        number = 0
        for name, op, rows in blocks:
            ops = [op] * len(rows) if isinstance(op, str) else op
            for one, row in zip(ops, rows, strict=True):
                one_by_one(plain, name, one, row)
                for head in HEADS:
                    for line, kind in logs[head].pop(number, []):
                        assert (line in state[head]) == (kind < 0)
                        (state[head].add if kind > 0 else state[head].remove)(line)
                    assert state[head] == set(plain[head])
                number += 1
        assert done.events == number
        assert not any(logs.values())
        for head in (*HEADS, "high", "o", "l", "f"):
            assert set(db[head]) == set(plain[head])


# What no trigger keeps changes at no known event, nor does what reads it, be it by a trigger.
UNKNOWN = {
    "below": "d(k) :- o(k, _, _), l(k, _, _, _).  h[] = count : { d(_) }.",
    "two below": "d(k) :- o(k, _, _). c(k) :- d(k), !l(k, _, _, _). n(k) :- c(k), k > 0. h[] = count : { n(_) }.",
    "an extreme": "h[k] = max d : { o(k, d, _) }.",
    "a join": "h(k, d) :- o(k, d, _), d > 1.",
    "recursion": "h(k, d) :- o(k, d, _).  h(k, e) :- h(k, d), o(d, e, _).",
    "sums in the body": "h[] = sum d : { o(_, d, r), t = sum w : { o(_, w, _) }, s = sum w : { o(_, w, q), q < r }, "
    "2*s + r < t, d != 1 }.",
    "or zero": "c(d) :- o(_, d, _).  c(0) :- !o(_, _, _).  h[] = count : { c(_) }.",
    "an alias": "m[k] = max d : { o(k, d, _) }.  h(k, m) :- m[k] = m.",
}
CANCELLED: list[Block] = [("o", "delete", [(1, 2, 3)]), ("o", "insert", [(1, 2, 3)])]


@pytest.mark.parametrize("rules", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("blocks", [CANCELLED, [("o", "insert", [(1, 3, 3), (0, 1, 3)]), ("o", "delete", [(1, 2, 3)])]])
@pytest.mark.filterwarnings("ignore:.*occurs only once")
def test_a_head_that_is_not_known_event_by_event_has_no_log(rules: str, blocks: list[Block]) -> None:
    """It had an empty one where the events cancel out, and one with all at the last event where a trigger is above."""
    db = lftj.Database(RULES.split("rev[d]")[0] + rules)
    db.load("o", [(1, 2, 3), (0, 1, 1)])
    db.load("l", [(1, 4, 0, "a"), (0, 1, 0, "a")])
    before = set(db["h"])
    with pytest.raises(DataError, match="`h` is not known event by event") as told:
        db.apply(blocks, watch=["h"])
    below = {"below": "d", "two below": "n", "an alias": "m"}
    for name, read in below.items():
        assert (f"it reads `{read}`, which triggers do not keep" in str(told.value)) == (rules == UNKNOWN[name])
    assert set(db["h"]) == before
    assert db.apply([("f", "insert", [(1, 1)])], watch=["h"]).logs["h"].num_rows == 0  # it reads no `f`
    db.apply(blocks)
    plain = lftj.Database(RULES.split("rev[d]")[0] + rules)
    for name in "olf":
        plain.load(name, list(db[name]))
    assert set(db["h"]) == set(plain["h"])


@pytest.mark.parametrize(
    ("rule", "row", "why"),
    [
        ("h[k] = sum d : { o(k, d, r), l(k, _, _, _) }.", (1, 2**63 - 1, 0), "a sum kept by triggers leaves the range"),
        ("h[k] = sum 9 / d : { o(k, d, r), l(k, _, _, _) }.", (5, 0, 0), "what is computed of `o` has no value"),
        (
            "h[d] = sum v : { o(k, d, _), b(k, v) }.",
            (9, 1, 1),
            "the sum of a group is out of the range of decimal(18,0)",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*occurs only once")
def test_what_forbids_a_log_is_told(rule: str, row: tuple[int, ...], why: str) -> None:
    """It said that triggers do not keep the head, and to ask for what was asked for."""
    db = lftj.Database(
        f"{RULES.split('rev[d]')[0]} .decl b(k:number, v:decimal(18,0)) {rule}", maintain={"h": "triggers"}
    )
    db.load("o", [(1, 1, 3)])
    db.load("l", [(1, 4, 0, "a")])
    db.load("b", [(1, 1), (9, 10**18 - 1)])
    db.evaluate()
    blocks = (
        [("o", "+1", [row]), ("o", "-1", [row])] if "b(" in rule else [("o", "+1", [row]), ("o", "-1", [(1, 1, 3)])]
    )
    with pytest.raises(DataError) as told:
        db.apply(blocks, watch=["h"])
    assert why in told.value.why
    assert told.value.remedy.startswith("take out the rows that forbid it")
    assert db.apply([("o", "+1", [(1, 2, 4)])], watch=["h"]).logs["h"].num_rows


@pytest.mark.parametrize(
    ("rule", "counts"),
    [("h[k] = count : { p(k, _) }.", True), ("h(k) :- p(k, d), d > 1.", False), ("h[k] = max d : { p(k, d) }.", False)],
)
def test_triggers_are_proposed_for_what_they_can_keep(rule: str, counts: bool) -> None:
    """Each such head was to be kept by triggers, which then kept it in another way and refused it again."""
    db = lftj.Database(f".decl p(k:number, d:number) {rule}", maintain={"h": "recompute"})
    with pytest.raises(DataError, match="`h` is not known event by event") as told:
        db.apply([("p", "+1", [(1, 2)])], watch=["h"])
    assert ("triggers" in told.value.remedy) == counts
    assert told.value.remedy.startswith("watch a count, sum or mean")


DEFAULTS = {
    "of several rows": "c(d) :- a(d).  c(0) :- !a(_).",
    "of another value": "m[] = sum d : { a(d) }.  c(d) :- m[] = d.  c(1) :- !m(_).",
    "never": "m[] = mean d : { a(d) }.  c(d) :- m[] = d.  c(z) :- !m(_), z = 0.0, z > 1.0.",
    "of a constant group": "c[1] = count : { a(_) }.",
    "of groups": 'c["x", 1] = count : { a(_) }.',
}


@pytest.mark.parametrize("rules", DEFAULTS.values(), ids=DEFAULTS)
@pytest.mark.parametrize("maintain", ["auto", "recompute"])
def test_what_looks_like_a_total_or_zero_is_followed_as_what_it_is(rules: str, maintain: str) -> None:
    """Heads above such heads were wrong from the first call of `apply` on, as if one row at most were below them."""
    above = "n[] = count : { c(_, _, _) }." if '"x"' in rules else "n[] = count : { c(_, _) }."
    if "c[" not in rules:
        above = "n[] = count : { c(_) }."
    text = f".decl a(d:number)\n{rules}\n{above}"
    db = lftj.Database()
    db.rules(text, maintain={"n": maintain})
    db.evaluate()
    held: set[int] = set()
    for op, values in ((1, [5]), (1, [6, 7]), (-1, [5, 6]), (-1, [7]), (1, [0]), (1, [8]), (-1, [0, 8])):
        db.apply([("a", f"{op:+d}", [(value,) for value in values])])
        (held.update if op > 0 else held.difference_update)(values)
        plain = lftj.Database(text)
        plain.load("a", [(value,) for value in held])
        assert list(db["c"]) == list(plain["c"])
        assert list(db["n"]) == list(plain["n"])


def test_what_is_given_and_what_is_told() -> None:
    db = made()
    db.load("o", [(1, 1, 5)])
    rows = np.array([[1, 2, 3], [1, 1, 5], [1, 2, 3], [7, 7, 7]])
    done = db.apply([("o", np.array([1, -1, 1, -1]), rows), ("l", "+1", [(1, 4, 0, "a")])], watch=("rev", "num"))
    assert (done.events, done.effective) == (5, 3)
    assert sorted(done.delta["o"].inserted) == [(1, 2, 3)]
    assert done.logs["rev"].to_pylist() == [{"event": 4, "d": 2, "c1": 12, "change": 1}]
    assert done.logs["num"].num_rows == 0
    assert done.stats["heads"]["rev"]["parts"]["@rev.1"]["strategy"] == "triggers"
    assert "5 events, 3 of them effective" in str(done)
    assert db.apply([]).events == 0


def test_a_row_that_comes_and_goes_is_in_the_log_alone() -> None:
    db = made()
    db.load("o", [(1, 1, 5)])
    done = db.apply([("l", "+1", [(1, 4, 0, "a")]), ("l", "-1", [(1, 4, 0, "a")])], watch=["rev", "tot"])
    assert [tuple(line.values()) for line in done.logs["rev"].to_pylist()] == [(0, 1, 20, 1), (1, 1, 20, -1)]
    told = [tuple(line.values()) for line in done.logs["tot"].to_pylist()]
    assert told == [(0, 0, -1), (0, 400, 1), (1, 400, -1), (1, 0, 1)]
    assert list(done.delta) == []


def as_rows(block: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in block]


@pytest.mark.parametrize("form", [list, pa.Table.from_pylist, as_rows])
def test_an_error_says_where_its_row_stands_in_its_own_block(form: Any) -> None:
    db = made()
    blocks = [[{"k": 1, "d": 1, "r": i} for i in range(3)], [{"k": 1, "d": 1, "r": i} for i in (7, None, 8)]]
    with pytest.raises(DataError) as told:
        db.apply([("o", "+1", form(block)) for block in blocks])
    assert "row 1 (from 0)" in str(told.value)
    assert "quarantine" not in str(told.value)  # which events have not
    assert len(db["o"]) == 0


@pytest.mark.parametrize(
    ("events", "watch", "error", "told"),
    [
        ([("o", "+1")], (), ArgumentError, "iterable of blocks"),
        ([("o", "swap", [(1, 2, 3)])], (), DataError, "is no operation"),
        ([("o", ["+1", "-1"], [(1, 2, 3)])], (), ArgumentError, "the block has 1 row\n"),
        ([("q", "+1", [(1,)])], (), UnknownRelationError, "`q`"),
        ([("o", "+1", [(1, 2)])], (), DataError, "has 2 values where 3 are due"),
        ([("o", "+1", [(1, 2, 3)]), ("l", "+1", [(1, 1, 1, "a")])], ("high",), DataError, "not known event by event"),
        ([("f", "+1", [(1, 2), (1, 3)])], (), KeyConflictError, "two values"),
        ([("f", "+1", [(1, 2)]), ("f", "insert", [(1, 3)])], (), DataError, "about keys"),
        ([("o", "+1", [(1, 1, 1)])], ("nothing",), UnknownRelationError, "`nothing`"),
    ],
)
def test_what_is_refused_changes_nothing(events: Any, watch: Any, error: type[Exception], told: str) -> None:
    db = made()
    db.apply([("o", "+1", [(1, 1, 5), (1, 2, 6)]), ("l", "+1", [(1, 4, 0, "a"), (1, 5, 0, "a")])])
    before = {name: sorted(db[name]) for name in (*HEADS, "high", "o", "l", "f")}
    with pytest.raises(error, match=told):
        db.apply(events, watch=watch)
    assert {name: sorted(db[name]) for name in before} == before
    db.apply([("l", -1, [(1, 4, 0, "a")])])
    assert sorted(db["rev"]) == [(1, 25), (2, 30)]


def test_a_refused_watch_names_the_sums_that_can_be_watched() -> None:
    """It advised `maintain=`, also where that was given and no sum was the head itself."""
    db = made()
    with pytest.raises(DataError) as told:
        db.apply([("o", "+1", [(1, 2, 3)]), ("l", "+1", [(1, 1, 1, "a")])], watch=["high"])
    assert told.value.remedy == "watch `rev` or `cnt`, which it is derived from"


def test_a_refused_watch_of_a_view_names_its_sums() -> None:
    pytest.importorskip("sqlglot")
    db = lftj.Database()
    db.sql("create table t (a int not null, b int)")
    db.sql("create view v as select a, sum(b) as s from t group by a having count(*) > 1", maintain={"v": "triggers"})
    with pytest.raises(DataError) as told:
        db.apply([("t", "+1", [(1, 2), (1, 3)])], watch=["v"])
    assert told.value.remedy == "watch `@v.sum3` or `@v.sum1`, which it is derived from"
    done = db.apply([("t", "+1", [(1, 2), (1, 3)])], watch=["@v.sum3", "@v.sum1"])
    assert [line["change"] for line in done.logs["@v.sum1"].to_pylist()] == [1, -1, 1]
    assert done.logs["@v.sum3"].num_rows == 3


def test_a_division_by_zero_in_the_middle_changes_nothing() -> None:
    db = lftj.Database()
    db.rules(
        ".decl a(k:number, n:number, z:number)\n.decl b(k:number)\ns[k] = sum n / z : { a(k, n, z), b(k) }.",
        maintain={"s": "triggers"},
    )
    db.apply([("b", "+1", [(1,)]), ("a", "+1", [(1, 10, 2)])])
    with pytest.raises(EvaluationError, match="division by zero"):
        db.apply([("a", "+1", [(1, 9, 3), (1, 1, 0)])])
    done = db.apply([("a", "+1", [(1, 9, 3)])], watch=["s"])
    assert sorted(db["s"]) == [(1, 8)]
    assert done.logs["s"].num_rows == 2


@given(data())
@examples(20)
def test_streams_of_a_bag_count_its_copies(choices: DataObject) -> None:
    """`db.apply` took the number of copies for a column of the row, and erased nothing."""
    made_of = choices.draw(lists(tuples(sampled_from([1, -1]), integers(0, 2), integers(0, 1)), max_size=12))
    first = choices.draw(lists(tuples(integers(0, 2), integers(0, 1)), max_size=4))
    dbs = [lftj.Database._sized(page_rows=4, directory_rows=4) for _ in range(2)]
    for db in dbs:
        db.sql("create table t (a bigint not null, b bigint not null)")
        db.rules("s[b] = sum a * c : { t(a, b, c) }.", maintain={"s": "triggers"})
        db.load("t", first)
    report = dbs[0].apply([("t", change, [row]) for change, *row in made_of], watch=["s"])
    state, seen = dict(dbs[0]["s"]), dict(dbs[1]["s"])
    for change, *row in made_of:
        with dbs[1].transaction() as tx:
            (tx.insert if change > 0 else tx.erase)("t", [tuple(row)])
    assert list(dbs[0]["t"]) == list(dbs[1]["t"])
    assert state == dict(dbs[1]["s"])
    for row in report.logs["s"].to_pylist():
        if row["change"] > 0:
            seen[row["b"]] = row["c1"]
        else:
            assert seen.pop(row["b"]) == row["c1"]
    assert seen == state


def test_maps_are_made_anew_for_relations_that_have_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """From nothing, twice as many rows by each call: answers and logs are those of maps that were never made anew."""
    text = """.decl r(a:number, b:number) .decl s(b:number, c:number) .decl t(c:number, d:number)
t4[a] = sum d : { r(a, b), s(b, c), t(c, d) }."""
    rng, logs, answers = Random(7), [], []
    events = [(name, 1, (rng.randrange(6), rng.randrange(6))) for _ in range(120) for name in "rst"]
    events += [(name, -1, row) for name, _, row in rng.sample(events, 100)]
    for grown in (1.0, 1e9):
        monkeypatch.setattr(body_maps, "MANY_ROWS", 0)
        monkeypatch.setattr(body_maps, "OUTGROWN", grown)
        db = lftj.Database()
        db.rules(text, maintain={"t4": "triggers"})
        len(db["t4"])
        at, size, log = 0, 5, []
        while at < len(events):
            blocks = [(name, sign, [row]) for name, sign, row in events[at : at + size]]
            table = db.apply(blocks, watch=["t4"]).logs["t4"].to_pydict()
            log += [(at + row[0], *row[1:]) for row in zip(*table.values(), strict=True)]
            at, size = at + size, size * 2
        logs.append(log)
        answers.append(list(db["t4"]))
    assert logs[0] == logs[1]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("key", ["symbol", "symbol?"])
def test_a_head_whose_key_may_be_null_is_known_event_by_event(key: str) -> None:
    """Groups of null join nothing, so what counts them has no null: the head has its rows all the same."""
    db = lftj.Database(f".decl r(k:{key}, c:number)  .decl s(k:{key}, b:number)  .decl q(k:{key}) -> n:number")
    db.rules("q[k] = sum c * b : { r(k, c), s(k, b) }.", maintain={"q": "triggers"})
    null = [(None, 3)] * (key == "symbol?")
    applied = db.apply([("r", "+1", [("a", 1), *null]), ("s", "+1", [("a", 2), ("a", 5), *null])], watch=["q"])
    assert applied.stats["heads"]["q"]["strategy"] == "alias"
    assert [(row["n"], row["change"]) for row in applied.logs["q"].to_pylist()] == [(2, 1), (2, -1), (7, 1)]
    assert list(db["q"]) == [("a", 7)]


def many(db: lftj.Database) -> tuple[list[Block], set[tuple[int, ...]]]:
    """Events that replace a row in each of many pages of `o`, which they fill; and the rows after them."""
    rows = [(k, k % 7, k % 5) for k in range(400)]
    db.load("o", rows)
    db.load("l", [(k, k % 3, k % 8, "ax") for k in range(400)])
    db.evaluate()
    gone = rows[::9]
    come = [(k, d, r + 1) for k, d, r in gone]
    return [("o", -1, gone), ("o", 1, come)], set(rows) - set(gone) | set(come)


def test_a_snapshot_stays_as_it_is_while_a_stream_replaces_rows() -> None:
    db = made()
    events, after = many(db)
    before = {name: set(db[name]) for name in ("o", *HEADS)}
    rows = iter(db["o"])
    first = next(rows)
    shot = db.snapshot()
    db.apply(events)
    assert {name: set(shot[name]) for name in before} == before
    assert {first, *rows} == before["o"]
    assert set(db["o"]) == after
    plain = made()
    plain.load("o", after)
    plain.load("l", db["l"])
    assert all(set(db[head]) == set(plain[head]) for head in HEADS)


def test_pages_of_facts_that_nobody_else_has_are_written_to() -> None:
    """Nothing of a commit holds the state before once it is over, nor do reports or maps."""
    db = made()
    events, after = many(db)
    relation = db._evaluator.state.relations["o"]
    root, _ = relation.facts.root, db.apply([("o", 1, [(0, 0, 9)])])
    del relation
    assert db._evaluator.state.relations["o"].facts.root != root  # one row: its page is copied
    root = db._evaluator.state.relations["o"].facts.root
    done = db.apply(events)
    assert db._evaluator.state.relations["o"].facts.root == root
    assert set(db["o"]) == after | {(0, 0, 9)}
    assert len(done.delta["o"].inserted) == len(done.delta["o"].erased) == 45


def test_an_interruption_once_a_stream_is_published_leaves_it_published() -> None:
    db = made()
    events, after = many(db)
    db.apply([("o", 1, [(0, 0, 8)])])
    after.add((0, 0, 8))
    settle = LaggingVersion.settle

    def interrupted(version: LaggingVersion) -> None:
        settle(version)
        if len(version) == len(after):
            raise KeyboardInterrupt  # that of the facts, which nothing reads before they are published

    with patch.object(LaggingVersion, "settle", interrupted), pytest.raises(KeyboardInterrupt):
        db.apply(events)
    assert set(db["o"]) == after
    db.apply([("o", 1, [(0, 0, 9)])])
    assert set(db["o"]) == after | {(0, 0, 9)}


@pytest.mark.parametrize("held", [False, True])
def test_a_stream_without_memory_changes_nothing(held: bool) -> None:
    """What it publishes can be read without more memory than it had, if pages have to be copied for a snapshot too."""
    db = made()
    events, after = many(db)
    lines = list(db["l"])
    events += [("l", -1, lines[::9]), ("l", 1, [(k, p + 1, x, s) for k, p, x, s in lines[::9]])]
    arena, before = db._evaluator.arena, {name: set(db[name]) for name in ("o", "l", *HEADS)}
    shot = db.snapshot() if held else None
    for room in range(0, 1 << 21, 1 << 12):
        arena.limit = arena.used + room
        try:
            db.apply(events)
        except MemoryLimitError:
            arena.limit = None
            assert {name: set(db[name]) for name in before} == before
        else:
            break
    assert room
    assert set(db["o"]) == after
    assert len(set(db["l"])) == len(lines)
    arena.limit = None
    assert shot is None or {name: set(shot[name]) for name in before} == before


def test_rows_that_only_go_from_a_relation_with_a_key_lag() -> None:
    """Nobody looks for two of one key among what is left."""
    db = made()
    rows = [(k, k % 9) for k in range(400)]
    db.load("f", rows)
    db.evaluate()
    db.apply([("f", -1, [rows[7]])])
    root = db._evaluator.state.relations["f"].facts.root
    db.apply([("f", -1, rows[::9])])
    assert db._evaluator.state.relations["f"].facts.root == root
    assert set(db["f"]) == set(rows) - {rows[7], *rows[::9]}
    with pytest.raises(KeyConflictError):
        db.apply([("f", 1, [(1, 8)]), ("f", -1, [rows[2]])])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name"), [(Version, "update"), (Arena, "room"), (amend, "amend_pages"), (LaggingVersion, "settle")]
)
def test_a_stream_that_fails_is_done_or_is_not(owner: Any, name: str, after: bool) -> None:
    db = made()
    events, _ = many(db)
    db.apply([("o", 1, [(0, 0, 8)])])
    sweep, errors = Sweep(owner, name, after=after), (KeyboardInterrupt(), RuntimeError("bug"))
    back = [(name, -op, rows) for name, op, rows in reversed(events)]
    names, number, failed = ("o", "l", "f", *HEADS, "high"), 0, True
    states = [{name: set(db[name]) for name in names}]
    plain = made()
    many(plain)
    plain.apply([("o", 1, [(0, 0, 8)])])
    plain.apply(events)
    states.append({name: set(plain[name]) for name in names})
    done = False
    while failed:
        number, failed = number + 1, False
        with pytest.MonkeyPatch.context() as patching:
            sweep.inject(patching, errors[number % 2])
            try:
                db.apply(back if done else events)
            except (KeyboardInterrupt, RuntimeError) as error:
                failed, error.__traceback__ = True, None
        shown = {name: set(db[name]) for name in names}
        assert shown == states[done] or shown == states[not done]
        assert failed or shown != states[done]
        done = shown == states[True]
        for relation in db._evaluator.state.relations.values():
            relation.content.check()
    assert number > 2
