"""Facts of heads in partitions: what one database says of them, or an error that says what to do. Those of aggregates
whose groups cross partitions, and those from which a recursion of least values starts.

Catches: a fact that is added to the value that rules derive, or counted as one partition's part of it; a conflict of
the two that nobody sees; facts that become parts when keys are placed anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.errors import EvaluationError, KeyConflictError
from spark_bridge.bridge_errors import BatchError
from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess
from tests.spark.twin import rows_of

pytestmark = [
    pytest.mark.jit_only,  # as many rows as it takes to keep parts
    pytest.mark.filterwarnings("ignore:.*occurs only once"),
]
DECLARED = """
.decl r(k:number, g:number, v:number)
.decl s(k:number, v:number)
.decl tot(g:number) -> t:number
"""
Changes = dict[str, list[tuple[int, ...]]]
OPS = ("sum v", "count", "min v", "max v")
KEYS = np.arange(30_000)
R = np.stack([KEYS, KEYS % 50, KEYS % 7], axis=1)
S = np.stack([KEYS, KEYS % 7], axis=1)
MONDAY: Changes = {"r": [(40_000, 77, 5, 1), (40_001, 77, 5, 1)], "s": [(40_000, 5, 1)]}
TUESDAY: Changes = {"s": [(40_001, 5, 1)]}


def rule(op: str) -> str:
    return f"{DECLARED}tot[g] = {op} : {{ r(k, g, v), s(k, v) }}.\n"


def create(folder: Path, text: str, rows: int = 30_000, **more: Any) -> Partitioned:
    inputs = {"r": R[:rows], "s": S[:rows], **more}
    return Partitioned.create(InProcess(), text, inputs, checkpoint=folder, partitions=3)


def one_database(text: str, **more: Any) -> lftj.Database:
    db = lftj.Database(text)
    for name, rows in {"r": R, "s": S, **more}.items():
        db.load(name, rows)
    return db


def insert(db: lftj.Database, changes: Changes) -> None:
    with db.transaction() as tx:
        for name, rows in changes.items():
            tx.insert(name, [row[:-1] for row in rows])


@pytest.mark.parametrize("op", OPS)
def test_a_batch_of_them_is_refused_by_name(tmp_path: Path, op: str) -> None:
    query = create(tmp_path / "q", rule(op))
    assert query.in_parts("tot", 0)
    before = rows_of(query.table("tot"))
    for fact in ((77, 5, 1), (*before[3], 1), (*before[3], -1)):
        with pytest.raises(BatchError, match="`tot` is kept in parts, and takes no facts") as refused:
            query.apply({**MONDAY, "tot": [fact]}, batch_id="b")
        assert "`tot`" in refused.value.remedy
        assert "__part" not in str(refused.value)
    assert query.version == 0
    assert query.apply(MONDAY, batch_id="b").version == 1
    assert sorted(rows_of(query.table("tot"))) == sorted({*before, (77, 1 if op == "count" else 5)})


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("given", ["input", "text"])
def test_those_given_at_first_are_whole_values(tmp_path: Path, op: str, given: str) -> None:
    value = 1 if op == "count" else 5
    text, more = rule(op), dict[str, Any](tot=[(77, value), (78, 9)])
    if given == "text":
        text, more = f"{text}tot(77, {value}). tot(78, 9).", {}
    query, db = create(tmp_path / "q", text, **more), one_database(text, **more)
    assert sorted(rows_of(query.table("tot"))) == sorted(db["tot"])
    query.apply(MONDAY, batch_id="monday")  # rules derive the fact
    insert(db, MONDAY)
    assert sorted(rows_of(query.table("tot"))) == sorted(db["tot"])
    assert rows_of(query.delta("tot", 0).signed()) == []
    if op in ("sum v", "count"):  # and then another value
        with pytest.raises(KeyConflictError):
            insert(db, TUESDAY)
        with pytest.raises(EvaluationError, match=r"`tot` has two values under one key: tot\[77\]"):
            query.apply(TUESDAY, batch_id="tuesday")
    with pytest.raises(EvaluationError, match=r"`tot` has two values under one key"):
        query.apply({"tot": [(77, value - 1, 1)]}, batch_id="wednesday")
    query.apply({"tot": [(77, value, -1)]}, batch_id="thursday")
    query.apply(TUESDAY, batch_id="friday")
    with db.transaction() as tx:
        tx.erase("tot", [(77, value)])
        tx.insert("s", [(40_001, 5)])
    assert sorted(rows_of(query.table("tot"))) == sorted(db["tot"])
    assert query.verify()["ok"]


def test_one_that_conflicts_at_first(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"`tot` has two values under one key: tot\[3\]"):
        create(tmp_path / "q", rule("sum v"), tot=[(3, 1)])


def test_placing_keys_anew_keeps_them_whole(tmp_path: Path) -> None:
    """Of the few rows at first, groups are whole; of those that are there later, parts would spare many."""
    text = rule("sum v")
    query = create(tmp_path / "q", text, rows=50)
    query.apply({"tot": [(77, 5, 1)]}, batch_id="fact")
    ones = np.ones((len(R) - 50, 1), np.int64)
    query.apply({"r": np.hstack([R[50:], ones]), "s": np.hstack([S[50:], ones])}, batch_id="many")
    query.rescale(2)
    db = one_database(text, tot=[(77, 5)])
    assert sorted(rows_of(query.table("tot"))) == sorted(db["tot"])
    query.apply(MONDAY, batch_id="monday")
    insert(db, MONDAY)
    assert sorted(rows_of(query.table("tot"))) == sorted(db["tot"])
    with pytest.raises(EvaluationError, match=r"`tot` has two values under one key: tot\[77\]"):
        query.apply(TUESDAY, batch_id="tuesday")
    assert query.verify()["ok"]


def test_a_relation_of_their_own_as_the_error_says(tmp_path: Path) -> None:
    text = f".decl given(g:number, t:number)\n{rule('sum v')}tot(g, t) :- given(g, t).\n"
    query, db = create(tmp_path / "q", text), one_database(text)
    days: dict[str, Changes] = {"fact": {"given": [(77, 5, 1)]}, "monday": MONDAY}
    for day, changes in days.items():
        query.apply(changes, batch_id=day)
        insert(db, changes)
        assert sorted(rows_of(query.table("tot"))) == sorted(db["tot"])
    with pytest.raises(EvaluationError, match=r"`tot` has two values under one key: tot\[77\]"):
        query.apply(TUESDAY, batch_id="tuesday")
    assert query.verify()["ok"]


STARTS = (
    "dist[7, 0] = 3. dist[2, 1] = 0.",
    "dist[7, 0] = min 3 : { 1 < 2 }. dist[2, 1] = min 0 : { 1 < 2 }.",
    "dist[s, b] = min d : { s = 7, b = 0, d = 3 ; b = 1, s = x, x = 2, d = 0 ; dist(s, a, m), e(a, b, w), d = m + w }.",
    "dist[7, 0] = min 3 : { 1 < 2 }. dist[7, 0] = min 9 : { 1 < 2 }. dist[s, b] = min 0 : { s = 2, b = 1 }.",
)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("partitions", [1, 4])
def test_a_recursion_of_least_values_starts_from_what_is_written(tmp_path: Path, start: str, partitions: int) -> None:
    """Where they were written in braces they were refused, as no atom holds the key to partition by."""
    text = f"""
        .decl e(a:number, b:number, w:number)
        .decl dist(s:number, a:number) -> d:number
        {start}
        dist[s, b] = min m + w : {{ dist(s, a, m), e(a, b, w) }}.
        far(a, b) :- dist(s, a, _), dist(s, b, _), a != b.
    """
    rows = [(0, 1, 3), (1, 2, 4), (0, 2, 1), (2, 3, 1)]
    query = Partitioned.create(InProcess(), text, {"e": rows}, checkpoint=tmp_path / "q", partitions=partitions)
    db = lftj.Database(text)
    db.load("e", rows)

    def same() -> None:
        for name in ("dist", "far"):
            assert sorted(rows_of(query.table(name))) == sorted(db[name]), name

    same()
    query.apply({"e": [(2, 3, 1, -1), (3, 0, 1, 1)], "dist": [(5, 0, 2, 1)]}, batch_id="b")
    with db.transaction() as tx:
        tx.erase("e", [(2, 3, 1)])
        tx.insert("e", [(3, 0, 1)])
        tx.insert("dist", [(5, 0, 2)])
    same()
    query.rescale(3)
    query.apply({"dist": [(5, 0, 2, -1)]}, batch_id="c")
    with db.transaction() as tx:
        tx.erase("dist", [(5, 0, 2)])
    same()
    assert query.verify()["ok"]


def test_a_name_like_that_of_a_place_is_the_users(tmp_path: Path) -> None:
    text = """
        .decl e(a:number, b:number)
        here__1(x) :- e(x, _).
        dist[s, b] = min d : { s = 1, b = 1, d = 0 ; dist(s, a, m), e(a, b), d = m + 1 }.
        here(s, b) :- dist(s, b, _), here__1(s).
    """
    query = Partitioned.create(InProcess(), text, {"e": [(1, 2), (2, 3)]}, checkpoint=tmp_path / "q", partitions=2)
    assert sorted(rows_of(query.table("here"))) == [(1, 1), (1, 2), (1, 3)]
    assert sorted(rows_of(query.table("here__1"))) == [(1,), (2,)]
