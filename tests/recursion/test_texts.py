"""Texts computed in recursion: what has no value, what has no end, and what is left when something goes.

Random programs and histories of such rules are in test_histories.py (`programs.py`).

Catches: a text without a value that is not seen since its head is there already, a memory limit that texts do not
count for, a row that only itself supports and that stays.
"""

from __future__ import annotations

import pytest

import lftj

PATHS = """
    .decl inside(folder:symbol, name:symbol)
    path("/", "").
    path(name, cat(p, "/", name)) :- path(folder, p), inside(folder, name).
"""


def test_paths_follow_what_moves() -> None:
    db = lftj.Database(PATHS)
    db.load("inside", [("/", "usr"), ("usr", "lib"), ("lib", "python3")])
    assert list(db["path"])[1:] == [("lib", "/usr/lib"), ("python3", "/usr/lib/python3"), ("usr", "/usr")]
    with db.transaction() as tx:
        tx.erase("inside", [("usr", "lib")])
        tx.insert("inside", [("/", "lib")])
    assert list(tx.delta["path"].erased) == [("lib", "/usr/lib"), ("python3", "/usr/lib/python3")]
    assert list(tx.delta["path"].inserted) == [("lib", "/lib"), ("python3", "/lib/python3")]
    assert tx.stats["heads"]["path"]["strategy"] == "rounds"


def test_a_row_that_only_itself_supports_goes() -> None:
    """`b` makes `ab`, of which `b` is the end: two rows that support one another, and nothing else once `a` is gone."""
    db = lftj.Database("""
        .decl begin(t:symbol)
        seen(t) :- begin(t).
        seen(cat("a", t)) :- seen(t), strlen(t) = 1.
        seen(substr(t, 1, 1)) :- seen(t), strlen(t) = 2.
    """)
    db.load("begin", [("b",), ("c",)])
    assert list(db["seen"]) == [("ab",), ("ac",), ("b",), ("c",)]
    with db.transaction() as tx:
        tx.erase("begin", [("b",)])
    assert list(tx.delta["seen"].erased) == [("ab",), ("b",)]


@pytest.mark.parametrize("loaded", [True, False])
def test_a_text_without_a_value_is_an_error_though_its_head_is_there(loaded: bool) -> None:
    db = lftj.Database("""
        .decl y(a:number, s:symbol)
        y(a, "0") :- y(a, s), to_number(s) < 100.
    """)
    if loaded:
        db.load("y", [(1, "1"), (1, "x")])
        with pytest.raises(lftj.errors.EvaluationError, match="has no value"):
            list(db["y"])
        return
    db.load("y", [(1, "1")])
    assert list(db["y"]) == [(1, "0"), (1, "1")]
    with pytest.raises(lftj.errors.EvaluationError), db.transaction() as tx:
        tx.insert("y", [(1, "x")])
    assert list(db["y"]) == [(1, "0"), (1, "1")]


def test_texts_count_for_the_memory_limit() -> None:
    db = lftj.Database(".decl b(x:symbol)  n(x) :- b(x).  n(cat(x, x)) :- n(x).", memory_limit="4MB")
    assert list(db["n"]) == []
    with pytest.raises(lftj.errors.MemoryLimitError, match="round"), db.transaction() as tx:
        tx.insert("b", [("a",)])
    assert list(db["n"]) == []


def test_what_has_no_end_is_told_with_a_bound_of_texts() -> None:
    db = lftj.Database(PATHS)
    db.load("inside", [("/", "a")])
    db.evaluate()
    with pytest.raises(lftj.errors.TimeoutExpired) as stopped, db.transaction(timeout=0.2) as tx:
        tx.insert("inside", [("a", "a")])
    assert "as in `strlen(x) < 1000`" in str(stopped.value)
    assert list(db["path"]) == [("/", ""), ("a", "/a")]
