"""Copies and pickles: of explanations they are the same, of what lives in a database's memory they are refused.

Catches: an error of Python's about locks or mappings, which says neither what nor why, and a copy of a database that
shares half of it.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import lftj
from lftj import streams
from lftj.errors import ArgumentError

PROGRAM = """
    .decl e(a:number, b:number)  .decl d(a:number, b:number)
    t(x, y) :- e(x, y), e(y, _).
    w(cat("n", to_string(x))) :- e(x, _).
"""


def database() -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("e", [(1, 2), (2, 3), (3, 1)])
    return db


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


HELD = [
    "a Circuit",
    "a CommitFeed",
    "a Database",
    "a Deltas",
    "a PathCounts",
    "a PreparedQuery",
    "a Snapshot",
    "a SqlResult",
    "a Transaction",
    "a WeightedRows",
    "the delta of `t`",
    "the query 't(x, y)'",
    "the relation `t`",
]


def held() -> dict[str, Any]:
    """What users hold, by the words that an error has for it: `HELD`."""
    db = database()
    counts = db.path_counts("d", into="paths")
    feed = db.changes()
    with db.transaction() as tx:
        tx.insert("e", [(3, 2)])
    return {
        "a Database": db,
        "a Snapshot": db.snapshot(),
        "the relation `t`": db["t"],
        "the delta of `t`": tx.delta["t"],
        "a Deltas": tx.delta,
        "the query 't(x, y)'": db.query("t(x, y)"),
        "a PreparedQuery": db.prepare_query("t($x, y)"),
        "a Transaction": tx,
        "a CommitFeed": feed,
        "a PathCounts": counts,
        "a Circuit": streams.Circuit(),
        "a WeightedRows": streams.zset([(1, 2)], [1]),
        "a SqlResult": db.sql("select * from e"),
    }


@pytest.mark.parametrize("what", HELD)
def test_what_lives_in_a_database_is_refused_by_name(what: str) -> None:
    """It was an error about `mmap.mmap` or `_thread.RLock`."""
    thing = held()[what]
    for taken in (pickle.dumps, copy.deepcopy):
        with pytest.raises(ArgumentError, match="can be neither pickled nor copied") as refused:
            taken(thing)
        assert refused.value.what.startswith(f"{what} can")
        assert refused.value.remedy
    for within in ({"rows": thing}, [thing]):
        with pytest.raises(ArgumentError, match="can be neither"):
            pickle.dumps(within)


@pytest.mark.parametrize("what", ["the relation `t`", "the delta of `t`", "a Deltas", "a Snapshot"])
def test_a_shallow_copy_of_what_never_changes_is_that(what: str) -> None:
    thing = held()[what]
    assert copy.copy(thing) is thing


def test_a_database_is_copied_by_branch_alone() -> None:
    """A shallow copy had the relations of the other, and counted its blocks apart."""
    db = database()
    with pytest.raises(ArgumentError, match=r"db\.branch\(\)"):
        copy.copy(db)
    other = db.branch()
    with other.transaction() as tx:
        tx.insert("e", [(7, 7)])
    assert (len(db["e"]), len(other["e"])) == (3, 4)


@pytest.mark.parametrize("take", [pickled, copy.copy, copy.deepcopy])
def test_explanations_are_copied_and_pickled(take: Callable[[Any], Any]) -> None:
    """`string indices must be integers`: they were made of their own text."""
    db = database()
    db.evaluate()
    with db.transaction() as tx:
        tx.insert("e", [(3, 2)])
    for explanation in (db.explain(), db.explain("t"), db.query("t(x, y), x < y").explain(), lftj.Database().explain()):
        again = take(explanation)
        assert type(again) is type(explanation)
        assert (str(again), again.data, again.json()) == (str(explanation), explanation.data, explanation.json())


@pytest.mark.parametrize("take", [pickled, copy.copy, copy.deepcopy])
def test_what_is_plain_is_copied_and_pickled(take: Callable[[Any], Any]) -> None:
    db = database()
    metrics = db.metrics()
    for plain in (db["t"].columns, db.memory(), metrics.as_dict(), list(db["w"]), db.directives):
        assert take(plain) == plain
    assert take(db["t"].columns)["x"] == "number"
    assert take(metrics).as_dict() == metrics.as_dict()
