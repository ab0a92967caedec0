"""Feeds and loads of bags: the numbers of copies that a source names.

Catches: the copy of a table without a primary key that drifts from it; a column of copies that is passed over.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.errors import DataError
from lftj.io.change_feed import FeedError

BAG = ".decl sale(item:symbol, qty:number) -> copies:number bag"


def bag(*rows: tuple[str, int]) -> lftj.Database:
    made = lftj.Database(BAG)
    made.load("sale", rows)
    return made


def through(form: str, folder: Path) -> Callable[[Any], Any]:
    """What a relation or difference is given on as."""

    def given(rows: Any) -> Any:
        if form in ("csv", "parquet"):
            path = folder / f"rows.{form}"
            rows.to_csv(path) if form == "csv" else rows.to_parquet(path)
            return path
        forms = {"itself": lambda: rows, "arrow": rows.arrow, "pandas": rows.df, "polars": rows.pl}
        forms |= {"dicts": rows.arrow().to_pylist, "reader": rows.arrow().to_reader}
        forms |= {"generator": lambda: iter(rows.arrow().to_pylist()), "columns": rows.arrow().to_pydict}
        return forms[form]()

    return given


FORMS = ["itself", "arrow", "reader", "pandas", "polars", "dicts", "generator", "columns", "csv", "parquet"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_rows", [1, None])
def test_differences_keep_a_copy(form: str, batch_rows: int | None, tmp_path: Path) -> None:
    ours, theirs, rng, given = bag(), bag(), random.Random(form), through(form, tmp_path)
    rows = [(item, qty) for item in ("tea", "jam") for qty in (1, 2)]
    for _ in range(12):
        with ours.transaction() as tx:
            tx.insert("sale", rng.choices(rows, k=rng.randrange(4)))
            tx.erase("sale", rng.choices(rows, k=rng.randrange(3)))
        theirs.load_changes("sale", given(tx.delta["sale"]), op="_op", batch_rows=batch_rows)
        assert list(theirs["sale"]) == list(ours["sale"])


def test_differences_of_sql_tables() -> None:
    """The second row of a kind was lost, and with the third none was left to go."""
    pytest.importorskip("sqlglot")
    ours, theirs = lftj.Database(), lftj.Database()
    for db in (ours, theirs):
        db.sql("create table sale (item text, qty int)")
    for n in (1, 2, 3):
        delta = ours.sql("insert into sale values ('tea', 1)")
        assert theirs.load_changes("sale", delta["sale"], op="_op").commits == 1  # type: ignore[index]
        assert list(theirs["sale"]) == [("tea", 1, n)]


def test_without_copies_a_row_is_one(tmp_path: Path) -> None:
    db = bag(("tea", 1))
    db.load_changes("sale", [("tea", 1, "+1"), ("tea", 1, "+1"), ("jam", 1, "-1")])
    db.load_changes("sale", [{"item": "tea", "qty": 1, "op": "d"}])
    (tmp_path / "feed.csv").write_text("item,qty,op\njam,2,+1\n")
    db.load_changes("sale", tmp_path / "feed.csv")
    assert list(db["sale"]) == [("jam", 2, 1), ("tea", 1, 2)]
    # A column of that name may say what happened.
    db.load_changes("sale", [{"item": "tea", "qty": 1, "copies": -1}], op="copies")
    assert list(db["sale"]) == [("jam", 2, 1), ("tea", 1, 1)]


def test_columns_that_are_named() -> None:
    db = bag()
    feed = [{"what": "tea", "qty": 1, "n": 3, "op": 1, "tx": 7}, {"what": "tea", "qty": 1, "n": 2, "op": -1, "tx": 7}]
    picked = {"item": "what", "qty": "qty"}
    assert db.load_changes("sale", feed, tx="tx", columns={**picked, "copies": "n"}).commits == 1
    assert list(db["sale"]) == [("tea", 1, 1)]
    db.load_changes("sale", feed[:1], columns=picked)
    assert list(db["sale"]) == [("tea", 1, 2)]


@pytest.mark.parametrize("copies", [0, -2])
def test_numbers_that_are_none(copies: int) -> None:
    db = bag(("tea", 1))
    feed = [{"item": "tea", "qty": 1, "copies": 1, "op": 1}, {"item": "tea", "qty": 1, "copies": copies, "op": 1}]
    with pytest.raises(FeedError, match=f"`copies` is {copies}") as caught:
        db.load_changes("sale", feed)
    assert caught.value.row == 1
    with pytest.raises(DataError, match=f"was to have a row {copies} times"):
        db.load("sale", [{"item": "tea", "qty": 1, "copies": copies}])
    assert list(db["sale"]) == [("tea", 1, 1)]


@pytest.mark.parametrize("form", FORMS)
def test_loads_take_copies(form: str, tmp_path: Path) -> None:
    ours, theirs = bag(("tea", 1), ("jam", 1), ("tea", 1)), bag(("tea", 1))
    theirs.load("sale", through(form, tmp_path)(ours["sale"]))
    assert list(theirs["sale"]) == [("jam", 1, 1), ("tea", 1, 3)]


def test_loads_without_copies() -> None:
    db = bag()
    for source in ([("tea", 1)] * 2, iter([("tea", 1)]), {"item": ["tea"], "qty": [1]}, np.array([("tea", 1)], object)):
        db.load("sale", source)
    db.load("sale", [{"item": "tea", "qty": 1, "copies": 9}], columns={"item": "item", "qty": "qty"})
    assert list(db["sale"]) == [("tea", 1, 6)]
