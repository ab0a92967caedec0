"""Scans as users ask for them, against plain Python over the rows: any interval, key order, monoid and history.

Catches: an end of an interval off by one, folds of pages that are gone, the order of symbols by code where texts count,
sums that round or overflow, readers that disturb each other.
"""

from __future__ import annotations

import gc
import math
import operator
import threading
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import DataError, EvaluationError, MemoryLimitError
from lftj.store.page_folds import PageFolds
from lftj.values.codes import NUMBER_MAX, NUMBER_MIN, UNSIGNED_MAX
from tests.conftest import JIT, examples

Row = tuple[Any, ...]

TYPES = {"a": "number", "b": "unsigned", "c": "float", "d": "symbol"}
DECLARED = ".decl r(" + ", ".join(f"{name}:{type}" for name, type in TYPES.items()) + ")  p(d, c, a) :- r(a, _, c, d)."
NAMES = tuple(TYPES)
# Without commutativity and as it is: the answer shows the order of the rows.
SEQUENCE = lftj.monoid("sequence", combine=operator.add, identity=(), lift=lambda value: (value,))
GCD = lftj.monoid("gcd", combine=math.gcd, identity=0, lift=lambda value: hash(value) & 0xFF, commutative=True)
MONOIDS = ["count", "sum", "mean", "min", "max", "cat", "sequence", GCD]

numbers = st.integers(0, 3) | st.sampled_from([NUMBER_MIN, NUMBER_MAX])
unsigned = st.integers(0, 3) | st.just(UNSIGNED_MAX)
floats = st.sampled_from([0.0, 1.0, 0.1, -0.1, 1e300, -1e300, 5e-324, 1e-300, 2.5])
texts = st.sampled_from(["", "b", "a", "é", "ab", "zz"])
rows_of_r = st.tuples(numbers, unsigned, floats, texts)


def folded(monoid: Any, values: list[Any]) -> Any:
    """What a scan has to answer for the values of a column, in the order of the rows."""
    name = monoid if isinstance(monoid, str) else monoid.name
    is_float = bool(values) and isinstance(values[0], float)
    if name == "count":
        return len(values)
    if name == "sum":
        return math.fsum(values) if is_float else sum(values)
    if name == "mean":
        return float(sum(map(Fraction, values)) / len(values)) if values else None
    if name in ("min", "max"):
        return (min if name == "min" else max)(values, default=None)
    if name == "cat":
        return "".join(values)
    return tuple(values) if name == "sequence" else math.gcd(*(hash(value) & 0xFF for value in values))


def within(rows: set[Row], order: tuple[int, ...], lo: Row, hi: Row) -> list[Row]:
    """The rows of an interval, in key order, symbols by their texts."""
    keyed = sorted((tuple(row[c] for c in order), row) for row in rows)
    return [row for key, row in keyed if key[: len(lo)] >= lo and key[: len(hi)] <= hi]


def refused(types: tuple[str, ...], order: tuple[int, ...], lo: Row, hi: Row, monoid: Any, column: int) -> bool:
    """Is it a scan that `DataError` is for?"""
    shared = 0
    while shared < min(len(lo), len(hi)) and lo[shared] == hi[shared]:
        shared += 1
    over = any(types[order[i]] == "symbol" for i in range(shared, max(len(lo), len(hi))))
    return over or ((types[column] == "symbol") != (monoid == "cat") and monoid in ("sum", "mean", "cat"))


def expect(relation: Any, rows: set[Row], draw: Any) -> None:
    """A random scan of a relation that has to hold `rows`."""
    names, types = tuple(relation.columns), tuple(relation.columns.values())
    shuffled = draw(st.permutations(range(len(names))))
    given_order = tuple(shuffled[: draw(st.integers(0, len(names)))])
    order = (*given_order, *(c for c in range(len(names)) if c not in given_order))
    row = st.sampled_from(sorted(rows)) if rows else st.nothing()
    source = {"number": numbers, "unsigned": unsigned, "float": floats, "symbol": texts}
    key = st.tuples(*[source[types[c]] for c in order]) | row.map(lambda row: tuple(row[c] for c in order))
    lo = draw(key)[: draw(st.integers(0, len(order)))]
    hi = draw(st.sampled_from([lo, draw(key)]))[: draw(st.integers(0, len(order)))]
    column, monoid = draw(st.integers(0, len(names) - 1)), draw(st.sampled_from(MONOIDS))
    options: dict[str, Any] = {"lo": lo or None, "hi": hi or None}
    if given_order:
        options["order"] = [names[c] for c in given_order]
    if refused(types, order, lo, hi, monoid, column):
        with pytest.raises(lftj.DataError):
            relation.scan(monoid, names[column], **options)
        return
    values = [row[column] for row in within(rows, order, lo, hi)]
    found, wanted = relation.scan(monoid, column, **options), folded(monoid, values)
    assert found == wanted
    assert not values or type(found) is type(wanted)


def projected(rows: set[Row]) -> set[Row]:
    return {(d, c, a) for a, _, c, d in rows}


def check_folds(db: lftj.Database) -> None:
    for relation in db._relations.values():
        for folds in relation._folds.values():
            folds.check()


@examples(33, 8)
@given(
    data=st.data(),
    first=st.sets(rows_of_r, max_size=30),
    changes=st.lists(st.tuples(st.booleans(), st.sets(rows_of_r, max_size=4)), max_size=6),
)
def test_every_scan_after_every_change(data: st.DataObject, first: set[Row], changes: list[Any]) -> None:
    db = lftj.Database._sized(DECLARED, page_rows=2, directory_rows=2)
    db.load("r", list(first))
    rows, kept = set(first), []
    for insert, change in [(True, set()), *changes]:
        with db.transaction() as tx:
            (tx.insert if insert else tx.erase)("r", list(change))
        before, rows = rows, rows | change if insert else rows - change
        for _ in range(3):
            expect(db["r"], rows, data.draw)
            expect(db["p"], projected(rows), data.draw)
        check_folds(db)
        expect(tx.delta["r"].inserted, rows - before, data.draw)
        expect(tx.delta["p"].erased, projected(before) - projected(rows), data.draw)
        kept.append((db["r"] if len(kept) % 2 else db.snapshot()["r"], rows))
        held, then = data.draw(st.sampled_from(kept))
        expect(held, then, data.draw)
    answer = db.query("r(a, b, c, d), a > 0").relation()
    expect(answer, {row for row in rows if row[0] > 0}, data.draw)


runs = st.sets(st.tuples(st.integers(0, 2), texts, st.integers(0, 1), texts), max_size=25)


@given(data=st.data(), first=runs, changes=st.lists(runs, max_size=3))
def test_texts_in_order_within_runs(data: st.DataObject, first: set[Row], changes: list[set[Row]]) -> None:
    """Few keys before the texts, so that most rows tie, over the borders of pages and directory pages."""
    db = lftj.Database._sized(".decl t(x:number, w:symbol, y:number, v:symbol)", page_rows=2, directory_rows=2)
    db.load("t", list(first))
    rows = set(first)
    for change in [set(), *changes]:
        with db.transaction() as tx:
            tx.erase("t", list(change & rows))
            tx.insert("t", list(change - rows))
        rows ^= change
        for _ in range(4):
            lo, hi = (data.draw(st.tuples(st.integers(0, 2)) | st.just(())) for _ in range(2))
            order = data.draw(st.sampled_from([(0, 1, 2, 3), (0, 2, 1, 3), (2, 1, 0, 3), (2, 0, 3, 1)]))
            found = db["t"].scan("sequence", "v", lo=lo or None, hi=hi or None, order=order)
            assert found == tuple(row[3] for row in within(rows, order, lo, hi))
        check_folds(db)


# -- examples ---------------------------------------------------------------------------------------------------------

SALES = [(1, 1, 5), (1, 2, 8), (1, 3, 3), (2, 1, 7), (2, 2, 12), (2, 3, 9), (2, 4, 1), (3, 1, 20), (3, 2, 4), (4, 1, 6)]


def sales() -> lftj.Database:
    db = lftj.Database._sized(".decl sales(region:number, store:number, amount:number)", page_rows=2, directory_rows=2)
    db.load("sales", SALES)
    return db


def test_sales_of_a_region() -> None:
    """The paper's example (section 3.1), and the same after its greatest sale is gone."""
    db = sales()
    assert db["sales"].scan("max", lo=(2,), hi=(2,)) == 12
    assert db["sales"].scan("sum", "amount", lo=(2, 3)) == 9 + 1 + 20 + 4 + 6
    assert db["sales"].scan("count", order=["store"], lo=(2,), hi=(3,)) == 5
    assert db["sales"].scan("mean", lo=(2,), hi=(2,)) == 7.25
    with db.transaction() as tx:
        tx.erase("sales", [(2, 2, 12)])
    assert db["sales"].scan("max", lo=(2,), hi=(2,)) == 9
    assert tx.delta["sales"].erased.scan("max") == 12


def test_of_a_functional_predicate() -> None:
    db = lftj.Database._sized(".decl price(shop:symbol, item:number) -> cost:float", page_rows=2, directory_rows=2)
    db.load("price", [("s", 1, 2.5), ("s", 2, 0.25), ("r", 1, 9.0), ("s", 7, 4.0)])
    assert db["price"].scan("min", lo=("s",), hi=("s",)) == 0.25
    assert db["price"].scan("sequence", lo=("s", 2), hi=("s", 7)) == (0.25, 4.0)
    assert db["price"].scan("sum", order=("item",), lo=(1,), hi=(1,)) == 11.5
    assert db["price"].scan("sequence", "shop") == ("r", "s", "s", "s")


def test_of_no_rows() -> None:
    db = lftj.Database(".decl n(x:number) .decl u(x:unsigned) .decl f(x:float) .decl s(x:symbol) .decl flag()")
    for name in "nuf":
        assert [db[name].scan(m) for m in ("count", "sum", "mean", "min", "max")] == [0, 0, None, None, None]
        assert [db[name].scan(m, lo=(1,), hi=(2,)) for m in ("count", "sum", "max")] == [0, 0, None]
    assert [db["s"].scan(m) for m in ("count", "min", "max", "cat", "sequence")] == [0, None, None, "", ()]
    assert db["s"].scan("cat", lo=("never seen",), hi=("never seen",)) == ""
    assert db["flag"].scan("count") == 0
    assert isinstance(db["f"].scan("sum"), float)


def test_the_order_of_texts_counts_where_rows_tie() -> None:
    """Texts came in another order than their own, so that their codes are in another order."""
    db = lftj.Database._sized(".decl t(g:symbol, place:number, word:symbol)", page_rows=2, directory_rows=2)
    db.load("t", [("y", 2, "z"), ("x", 1, "q"), ("y", 1, "o"), ("y", 1, "b"), ("y", 3, "a"), ("x", 9, "A")])
    group = {"lo": ("y",), "hi": ("y",)}
    assert db["t"].scan("cat", **group) == "boza"
    with db.transaction() as tx:
        tx.erase("t", [("y", 1, "o")])
    assert db["t"].scan("cat", **group) == "bza"
    assert db["t"].scan("cat") == "qAbza"
    assert db["t"].scan("cat", order=("word",)) == "Aabqz"
    assert db["t"].scan("max", "g") == "y"


@pytest.mark.parametrize("seed", range(3))
def test_texts_are_in_key_order_where_another_column_holds_null(seed: int) -> None:
    """The rows of one key were sorted by their values, and nothing compares with None."""
    db = lftj.Database._sized(
        ".decl q(x:number, s:symbol, n:number?, u:unsigned?, t:symbol?)", page_rows=2, directory_rows=2
    )
    assert db["q"].scan("cat", "s") == ""
    rng, texts = Random(seed), "dbac"
    for size in (3, 30):
        choices = ((0, 1), texts, (None, 2), (None, 2), (None, *"ba"))
        with db.transaction() as tx:
            tx.insert("q", [tuple(map(rng.choice, choices)) for _ in range(size)])
        for relation, first in product((db["q"], tx.delta["q"].inserted), ((), ("u",), ("t", "x"), ("n", "s"))):
            order = [*first, *(name for name in ("x", "s", "n", "u", "t") if name not in first)]
            # Null comes first, but for unsigned, which has no code before 0.
            ordered = sorted(
                ({"x": x, "s": s, "n": n or 0, "u": u or 9, "t": t or ""} for x, s, n, u, t in relation),
                key=lambda row: [row[name] for name in order],
            )
            assert relation.scan("cat", "s", order=first) == "".join(row["s"] for row in ordered)


def test_sums_that_no_float_and_no_int64_holds() -> None:
    db = lftj.Database._sized(".decl n(x:number, y:number) .decl f(x:number, y:float)", page_rows=2, directory_rows=2)
    db.load("n", [(i, NUMBER_MAX - i) for i in range(50)])
    assert db["n"].scan("sum") == 50 * NUMBER_MAX - sum(range(50))
    values = [1e308, 1e308, -1e308, 1.0, 1e-300, -1e308, 3.5]
    db.load("f", list(enumerate(values)))
    assert db["f"].scan("sum") == 4.5
    assert db["f"].scan("mean") == 4.5 / 7
    with pytest.raises(EvaluationError, match=r"^the sum of these rows is too large for a float\n"):
        db["f"].scan("sum", lo=(0,), hi=(1,))
    db.load("f", [(10, math.inf), (11, -math.inf)])
    assert db["f"].scan("sum", hi=(10,)) == math.inf
    assert db["f"].scan("mean", lo=(11,)) == -math.inf
    with pytest.raises(EvaluationError, match=r"^the sum of these rows is not defined\n"):
        db["f"].scan("sum")


def test_float_sums_are_those_of_fsum() -> None:
    rng = np.random.default_rng(5)
    n = 5000 if JIT else 300
    values = rng.standard_normal(n) * 10.0 ** rng.integers(-300, 300, n)
    db = lftj.Database._sized(".decl f(k:number, v:float)", page_rows=16, directory_rows=4)
    db.load("f", {"k": np.arange(n), "v": values})
    alive = dict(enumerate(values.tolist()))
    for _ in range(20):
        gone = rng.choice(list(alive), 10, replace=False).tolist()
        with db.transaction() as tx:
            tx.erase("f", [(k, alive.pop(k)) for k in gone])
        assert db["f"].scan("sum") == math.fsum(alive.values())
        lo, hi = sorted(rng.integers(0, n, 2).tolist())
        assert db["f"].scan("sum", lo=(lo,), hi=(hi,)) == math.fsum(v for k, v in alive.items() if lo <= k <= hi)


def test_what_is_no_number_and_no_text() -> None:
    """What is proposed works: values of other types are not joined either, and are no symbols."""
    db = lftj.Database(".decl t(paid:bool, id:uuid)")
    with pytest.raises(DataError) as caught:
        db["t"].scan("sum", "paid")
    assert str(caught.value) == (
        "column `paid` holds values of type bool, which have no sum\n"
        "  why: a bool is not added\n"
        '  do: name a column of numbers, or ask for "min", "max" or "count"'
    )
    with pytest.raises(DataError) as caught:
        db["t"].scan("count", order=("id",), lo=(UUID(int=1),))
    assert str(caught.value) == (
        "an interval runs over column `id`, which holds values of type uuid\n"
        "  why: values of type uuid are not kept in order\n"
        "  do: give the same value at both ends, and the same values before it; or begin the key order with other "
        "columns: order=(...)"
    )


REFUSALS: list[tuple[dict[str, Any], str]] = [
    (
        {"monoid": "gdc"},
        "there is no monoid 'gdc'\n  why: built in are count, sum, min, max, mean, cat\n  do: did you mean `gcd`?",
    ),
    (
        {"monoid": "sum", "column": "stor"},
        "`t` has no column 'stor'\n  why: its columns are store, name\n  do: did you mean `store`?",
    ),
    (
        {"monoid": "sum", "column": 2},
        "`t` has no column 2\n  why: its columns are store, name\n  do: give a name, or a number from 0 on",
    ),
    (
        {"monoid": "sum"},
        "column `name` holds symbols, which have no sum\n"
        "  why: symbols are texts, and are not added\n"
        '  do: name a column of numbers, or ask for "min", "max", "cat" or "count"',
    ),
    (
        {"monoid": "cat", "column": 0},
        "column `store` holds no texts to concatenate\n"
        "  why: cat joins texts\n"
        "  do: name a symbol column, or register a monoid with `lift=str`",
    ),
    (
        {"monoid": "count", "lo": 2},
        "2 is not the beginning of a row of `t`\n"
        "  why: an interval of keys is told by the first values of its rows\n"
        "  do: give the first values of a row as a tuple or list, (1,) for one",
    ),
    (
        {"monoid": "count", "lo": (1, "a", 3)},
        "(1, 'a', 3) has 3 values, a row of `t` has 2\n"
        "  why: an interval of keys is told by the first values of its rows\n"
        "  do: give at most one value per column",
    ),
    (
        {"monoid": "count", "order": "name"},
        "`order` cannot be 'name'\n  why: it is columns in an order, a tuple or list of names or numbers\n"
        '  do: give a tuple, as in `order=("store",)` for one column',
    ),
    (
        {"monoid": "count", "order": ("name", 1)},
        "a key order names a column twice\n"
        "  why: a row has one place in the order of its columns\n"
        "  do: name every column at most once",
    ),
    (
        {"monoid": "count", "lo": (1, "a"), "hi": (1, "b")},
        "an interval runs over column `name`, which holds symbols\n"
        "  why: symbols are not kept in the order of their texts\n"
        "  do: give the same text at both ends, and the same values before it; or begin the key order with other "
        "columns: order=(...)",
    ),
]


@pytest.mark.parametrize(("options", "text"), REFUSALS, ids=lambda value: repr(value) if value is dict else "")
def test_refusals(options: dict[str, Any], text: str) -> None:
    db = lftj.Database(".decl t(store:number, name:symbol)")
    db.load("t", [(1, "a")])
    with pytest.raises(lftj.DataError) as caught:
        db["t"].scan(**options)
    assert str(caught.value) == text


def test_refused_without_columns_and_without_memory() -> None:
    db = lftj.Database(".decl flag() .decl n(x:number)", memory_limit=1 << 20)
    with pytest.raises(lftj.DataError) as caught:
        db["flag"].scan("sum")
    assert str(caught.value) == (
        "flag() has no column to scan\n"
        "  why: a relation without columns holds one row or none, and no values\n"
        '  do: ask for "count"'
    )
    db.load("n", np.arange(100_000)[:, None])
    with pytest.raises(MemoryLimitError):
        db["n"].scan("sum", lo=(5,))
    assert len(db["n"]) == 100_000


# -- registered monoids -----------------------------------------------------------------------------------------------


def test_registering() -> None:
    first = lftj.monoid("longest", combine=lambda a, b: max(a, b, key=len), identity="")
    db = lftj.Database('.decl s(x:symbol)  s("aa"). s("b"). s("ccc").')
    assert db["s"].scan("longest") == db["s"].scan(first) == "ccc"
    lftj.monoid("longest", combine=max, identity=0, lift=len, commutative=True)
    assert db["s"].scan("longest") == 3
    assert db["s"].scan(first) == "ccc"
    for name, why in (("sum", "the name is built in"), ("", "it is empty")):
        with pytest.raises(lftj.DataError) as caught:
            lftj.monoid(name, combine=max, identity=0)
        assert str(caught.value) == (f"a monoid cannot be called {name!r}\n  why: {why}\n  do: choose another name")
    with pytest.raises(lftj.DataError, match=r"^`lift` cannot be 3\n"):
        lftj.monoid("m", combine=max, identity=0, lift=3)  # type: ignore[arg-type]


def test_a_function_that_fails_or_scans_itself() -> None:
    db = sales()
    troubles = [ZeroDivisionError(), KeyboardInterrupt()]

    def combine(a: int, b: int) -> int:
        if 20 in (a, b) and troubles:
            raise troubles.pop()
        assert db["sales"].scan(nested, lo=(9,)) == 0
        return max(a, b)

    nested = lftj.monoid("nested", combine=combine, identity=0, commutative=True)
    for kind in (KeyboardInterrupt, ZeroDivisionError):
        with pytest.raises(kind):
            db["sales"].scan("nested")
    assert db["sales"].scan("nested") == 20
    check_folds(db)


# -- what it costs ----------------------------------------------------------------------------------------------------


def only(db: lftj.Database, name: str) -> PageFolds:
    (folds,) = db._relations[name]._folds.values()
    return folds


@pytest.mark.jit_only
def test_steps_after_a_change_do_not_grow() -> None:
    """From 10^3 to 10^6 rows: a few pages are folded anew, and their directory pages and the tree above them.

    A change is two rows, which may lie in two pages; the ends of the second interval are two more.
    """
    lftj.monoid("xor", combine=operator.xor, identity=0, commutative=True)
    most = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        db = lftj.Database(".decl n(x:number, y:number)")
        values = np.random.default_rng(n).permutation(n)
        db.load("n", np.stack([np.arange(n), values], axis=1))
        true = int(np.bitwise_xor.reduce(values))
        assert db["n"].scan("xor") == true
        folds, steps = only(db, "n"), []
        assert folds.leaves >= n / 256
        for k in range(0, n, n // 20):
            leaves, joins = folds.leaves, folds.joins
            with db.transaction() as tx:
                tx.erase("n", [(k, int(values[k]))])
                tx.insert("n", [(k, -1)])
            true ^= int(values[k]) ^ -1
            assert db["n"].scan("xor") == true
            assert only(db, "n") is folds
            lo, hi = sorted((k, n // 3))
            inside = np.where(np.arange(n) % (n // 20) == 0, np.where(np.arange(n) <= k, -1, values), values)
            assert db["n"].scan("xor", lo=(lo,), hi=(hi,)) == int(np.bitwise_xor.reduce(inside[lo : hi + 1]))
            steps.append((folds.leaves - leaves, folds.joins - joins))
        assert max(leaves for leaves, _ in steps) <= 2 + 2
        most.append(max(joins for _, joins in steps))
    # One directory page anew, two in part, and the tree over the root's entries twice.
    assert all(joins <= 3 * 64 + 4 * math.log2(max(2, n)) for n, joins in zip((1e3, 1e4, 1e5, 1e6), most, strict=True))


def test_memory_is_that_of_the_pages() -> None:
    """What is remembered of pages that went goes, and the pages with it."""
    db = lftj.Database._sized(".decl n(x:number, y:number)", page_rows=4, directory_rows=4)
    db.load("n", np.arange(800).reshape(400, 2))
    expected = set(map(tuple, np.arange(800).reshape(400, 2).tolist()))
    known, rng = set(), np.random.default_rng(1)
    for _ in range(60):
        row = (int(rng.integers(0, 800)), 7)
        with db.transaction() as tx:
            (tx.erase if row in expected else tx.insert)("n", [row])
        expected ^= {row}
        assert db["n"].scan("gcd") == folded("gcd", [y for _, y in expected])
        folds = only(db, "n")
        folds.check()
        known.add(len(folds))
    content = db._relations["n"].content
    assert len(folds) <= content.pages * 2
    gc.collect()
    db._arena.collect()
    assert db._arena.used == content.memory()


def test_what_nobody_looks_at_is_dropped() -> None:
    db = lftj.Database._sized(".decl n(x:number)", page_rows=4, directory_rows=4)
    db.load("n", np.arange(80)[:, None])
    db["n"].scan("gcd")
    for i in range(9):
        with db.transaction() as tx:
            tx.insert("n", [(100 + i,)])
        assert len(db._relations["n"]._folds) == 1
    for i in range(5):
        with db.transaction() as tx:
            tx.insert("n", [(200 + i,)])
    assert not db._relations["n"]._folds
    assert db["n"].scan("gcd") == folded("gcd", [*range(80), *range(100, 109), *range(200, 205)])


def test_scans_are_kept_and_carried_along() -> None:
    db = sales()
    db["sales"].scan("max", lo=(2,))
    db["sales"].scan("sum", lo=(2,))
    scans = dict(db._relations["sales"]._scans)
    db["sales"].scan("max", lo=(1,), hi=(3,))
    assert db._relations["sales"]._scans == scans
    with db.transaction() as tx:
        tx.insert("sales", [(5, 5, 50)])
    assert db._relations["sales"]._scans.keys() == scans.keys()
    held = db["sales"]
    with db.transaction() as tx:
        tx.insert("sales", [(6, 6, 60)])
    gc.collect()
    assert held.scan("max") == 50
    assert held.scan("sequence", lo=(5,)) == (50,)


# -- threads ----------------------------------------------------------------------------------------------------------


def test_readers_and_a_writer() -> None:
    """Every commit moves an amount from one account to another: whoever scans sees one total, at any moment."""
    db = lftj.Database._sized(".decl account(id:number, name:symbol, amount:number)", page_rows=4, directory_rows=4)
    n, commits = 60, 40 if JIT else 6
    rows = {i: (i, f"n{i}", 100 + i) for i in range(n)}
    db.load("account", list(rows.values()))
    lftj.monoid("total", combine=operator.add, identity=0, lift=int)
    total, names = sum(amount for *_, amount in rows.values()), "".join(name for _, name, _ in rows.values())
    troubles: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                for source in (db, db.snapshot()):
                    relation = source["account"]
                    assert relation.scan("sum") == relation.scan("total") == total
                    assert relation.scan("cat", "name") == names
                    assert relation.scan("count", order=("amount",), lo=(-(10**6),)) == n
        except BaseException as error:
            troubles.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    rng = np.random.default_rng(3)
    for _ in range(commits):
        a, b = rng.choice(n, 2, replace=False).tolist()
        with db.transaction() as tx:
            for i, amount in ((a, -10), (b, 10)):
                tx.erase("account", [rows[i]])
                rows[i] = (*rows[i][:2], rows[i][2] + amount)
                tx.insert("account", [rows[i]])
    done.set()
    for reader in readers:
        reader.join(60)
    assert not troubles, troubles[0]
    check_folds(db)
