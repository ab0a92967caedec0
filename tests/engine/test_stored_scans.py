"""Scans that a stored relation keeps: through commits, discarded commits, loads and snapshots.

Catches: a scan that a small change leaves behind, one that a discarded commit leaves, one built over other rows.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.store.order_stores import ScanOrder
from lftj.store.stored import StoredRelation
from scantree.scan import KEY_MAX, KEY_MIN, Monoid
from tests.engine.histories import check_stored

Row = tuple[int, ...]
MODEL = {Monoid.COUNT: len, Monoid.SUM: sum}


def folded(rows: set[Row], prefix: Row, order: Row, monoid: Monoid, column: int) -> int:
    """The fold of the rows that begin with `prefix` in key order `order`."""
    values = [row[column] for row in rows if tuple(row[c] for c in order)[: len(prefix)] == prefix]
    if monoid == Monoid.MIN:
        return min(values, default=KEY_MAX)
    return max(values, default=KEY_MIN) if monoid == Monoid.MAX else MODEL[monoid](values)


def expect(relation: StoredRelation, rows: set[Row]) -> None:
    """Every scan that is built, and those that are not, fold `rows`."""
    check_stored(relation)
    for built in relation.built - set(relation.orders):
        assert isinstance(built, ScanOrder)
        version = relation.scan_version(*built)
        assert version.scan() == folded(rows, (), *built)
        for key in range(3):
            lo, hi = version.seek((key,)), version.seek((key + 1,))
            assert version.scan(lo, hi) == folded(rows, (key,), *built)


rows_of_three = st.tuples(*[st.integers(0, 3)] * 3)
asked = st.tuples(st.sampled_from(list(permutations(range(3)))), st.sampled_from(Monoid), st.integers(0, 2))


@given(
    first=st.sets(rows_of_three, max_size=40),
    steps=st.lists(st.tuples(st.booleans(), st.sets(rows_of_three, max_size=6), st.none() | asked), max_size=5),
)
def test_scans_follow_every_change(first: set[Row], steps: list[tuple[bool, set[Row], Any]]) -> None:
    db = lftj.Database._sized(".decl r(a:number, b:number, c:number)", page_rows=2, directory_rows=2)
    db.load("r", sorted(first))
    rows = set(first)
    for insert, change, scan in steps:
        before, kept = db._relations["r"], set(rows)
        if scan is not None:
            before.scan_version(*scan)
        with db.transaction() as tx:
            (tx.insert if insert else tx.erase)("r", sorted(change))
        rows = rows | change if insert else rows - change
        expect(db._relations["r"], rows)
        expect(before, kept)


def stored(n: int) -> tuple[lftj.Database, StoredRelation]:
    db = lftj.Database._sized(".decl r(a:number, b:number)", page_rows=4, directory_rows=4)
    db.load("r", np.arange(2 * n).reshape(n, 2))
    return db, db._relations["r"]


def test_built_once_and_carried_along() -> None:
    db, relation = stored(100)
    version = relation.scan_version((1, 0), Monoid.MAX, 0)
    assert relation.scan_version((1, 0), Monoid.MAX, 0) is version
    assert relation.scan_version((0, 1), Monoid.COUNT, 0) is relation.scan_version((0, 1), Monoid.COUNT, 1)
    with db.transaction() as tx:
        tx.insert("r", [(500, 0)])
    after = db._relations["r"]
    assert after.built == relation.built
    assert after.scan_version((1, 0), Monoid.MAX, 0).scan() == 500
    assert version.scan() == 198


def test_a_large_change_drops_scans() -> None:
    db, relation = stored(100)
    relation.scan_version((0, 1), Monoid.SUM, 1)
    with db.transaction() as tx:
        tx.insert("r", [(1000 + i, 1) for i in range(50)])
    assert db._relations["r"].built == {(0, 1)}
    assert db._relations["r"].scan_version((0, 1), Monoid.SUM, 1).scan() == 100 * 100 + 50


def test_forgotten_with_a_discarded_commit() -> None:
    db, relation = stored(50)
    relation.scan_version((0, 1), Monoid.MIN, 1)
    kept = relation.built
    with suppress(RuntimeError), db.transaction() as tx:
        tx.rules("m(x) :- r(x, _).")
        assert len(tx.preview()["m"].inserted) == 50
        relation.scan_version((1, 0), Monoid.COUNT, 0)
        raise RuntimeError
    assert db._relations["r"].built == kept


def test_a_snapshot_builds_its_own() -> None:
    db, relation = stored(50)
    relation.scan_version((0, 1), Monoid.SUM, 0)
    frozen = relation.frozen()
    frozen.scan_version((1, 0), Monoid.SUM, 0)
    assert len(frozen.built) == len(relation.built) + 1
    assert frozen.scan_version((0, 1), Monoid.SUM, 0) is relation.scan_version((0, 1), Monoid.SUM, 0)
    relation.forget(ScanOrder((0, 1), Monoid.SUM, 0))
    assert relation.built == {(0, 1)}
    assert db.memory()["r"].keys() == {"a, b"}


def test_memory_names_scans() -> None:
    db, relation = stored(50)
    relation.scan_version((1, 0), Monoid.MAX, 0)
    relation.scan_version((0, 1), Monoid.COUNT, 1)
    assert list(db.memory()["r"]) == ["a, b", "scan: max of a, in order b, a", "scan: count, in order a, b"]


@pytest.mark.parametrize("monoid", Monoid)
def test_no_columns(monoid: Monoid) -> None:
    db = lftj.Database(".decl flag()")
    relation = db._relations["flag"]
    if monoid == Monoid.COUNT:
        assert relation.scan_version((), monoid, 0).scan() == 0
        with db.transaction() as tx:
            tx.insert("flag", [()])
        assert db._relations["flag"].scan_version((), monoid, 0).scan() == 1
