"""What is said of data frames of pandas whose values are missing, or whose columns went into the index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import lftj
from lftj.errors import DataError
from lftj.io.convert import ColumnTypeError
from lftj.io.pick import ColumnsError

KEEP = 'give its `.astype("Int64")`, which keeps missing values'
DROP = 'drop these rows (`dropna`) or fill them in (`fillna`), and give the `.astype("int64")` of the column'
APART = 'or keep the good rows with on_error="quarantine"'


def loaded(declaration: str, source: Any, **options: Any) -> list[tuple[Any, ...]]:
    db = lftj.Database(f".decl r({declaration})")
    db.load("r", source, **options)
    return list(db["r"])


def refused(declaration: str, source: Any, error: type[DataError] = DataError, **options: Any) -> DataError:
    with pytest.raises(error) as caught:
        loaded(declaration, source, **options)
    return caught.value


@pytest.mark.parametrize("type", ["number", "unsigned", "number?"])
def test_integers_that_a_missing_value_made_floats(type: str) -> None:
    frame = pd.DataFrame({"a": [1, None, 3, None]})
    error = refused(f"a: {type}", frame, ColumnTypeError)
    plain = type.removesuffix("?")
    article = "an unsigned" if plain == "unsigned" else "a number"
    assert error.what == (
        "column `a` of `r`: the source's column `a` has no value in rows 1, 3 (from 0), "
        f"and so is a float64, not {article}"
    )
    assert (
        error.why == "pandas turns integers into floats where one is missing, and floats are not turned back silently"
    )
    assert error.remedy == (KEEP if type == "number?" else f"{DROP}; or declare it `{plain}?`, and {KEEP}")


def test_what_the_message_says_to_do_is_enough() -> None:
    frame = pd.DataFrame({"a": [1, None, 3]})
    assert loaded("a: number", frame.dropna().astype("int64")) == [(1,), (3,)]
    assert loaded("a: number", frame.fillna(0).astype("int64")) == [(0,), (1,), (3,)]
    assert set(loaded("a: number?", frame.astype("Int64"))) == {(1,), (None,), (3,)}


def test_the_first_of_many_rows_are_named() -> None:
    frame = pd.DataFrame({"a": [1.0] + [np.nan] * 9})
    assert "has no value in rows 1, 2, 3, 4, 5, ... (from 0; 9 in all)" in refused("a: number", frame).what
    assert "has no value in row 1 (from 0)," in refused("a: number", {"a": frame.a[:2]}).what


@pytest.mark.parametrize("values", [[1.5, None], [1.0, float("inf"), None], [1.0, 2.0]])
def test_floats_are_refused_as_floats(values: list[float | None]) -> None:
    for type in ("number", "number?"):
        error = refused(f"a: {type}", pd.DataFrame({"a": values}), ColumnTypeError)
        assert error.what.endswith("the source's column `a` is a float64, not a number")


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("symbol", pd.Series(["x", np.nan, "y"], dtype=object)),
        ("number", pd.Series([1, np.nan, 2], dtype=object)),
        ("float", pd.Series([1.5, np.nan, 2.5])),
        ("float", pd.Series([1.5, np.nan, 2.5], dtype=object)),
    ],
)
def test_nan_is_a_missing_value(type: str, values: pd.Series) -> None:
    """It was said to be a float that should be converted to text; only a column of floats had it as a null."""
    frame = pd.DataFrame({"a": values})
    error = refused(f"a: {type}", frame)
    assert str(error) == (
        "DataFrame, row 1 (from 0): 1 bad row: column `a` of `r`: null is not a value\n"
        f"  why: a column of type {type} holds no nulls\n"
        f"  do: declare the column `{type}?`, drop the rows without a value or fill them in, {APART}"
    )
    there = [(value,) for value in values.dropna()]
    assert set(loaded(f"a: {type}?", frame)) == {*there, (None,)}
    assert loaded(f"a: {type}", frame, on_error="quarantine") == there
    assert frame.a[1] is values[1] or np.isnan(frame.a[1])  # the frame is left as it is


@pytest.mark.parametrize("type", ["symbol", "number", "date", "float"])
@pytest.mark.parametrize("dtype", [object, "float64"])
def test_a_column_without_values(type: str, dtype: Any) -> None:
    frame = pd.DataFrame({"a": pd.Series([np.nan, np.nan], dtype=dtype)})
    error = refused(f"a: {type}", frame)
    assert str(error).startswith(
        "DataFrame, row 0 (from 0): 2 bad rows; the first: column `a` of `r`: null is not a value\n"
    )
    assert loaded(f"a: {type}?", frame) == [(None,)]


FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [3, 4]})


@pytest.mark.parametrize(
    ("frame", "columns", "levels"),
    [
        (FRAME.set_index("a"), None, "`a`"),
        (FRAME.set_index(["a", "b"]), None, "`a`, `b`"),
        (FRAME.set_index(["a", "b"])["c"], None, "`a`, `b`"),
        (FRAME.set_index("a").rename_axis("key"), None, "`key`"),
        (FRAME.set_index("a"), {"a": "a", "b": "b", "c": "c"}, "`a`"),
        (FRAME.assign(d=5, e=6).set_index("a"), None, "`a`"),
    ],
)
def test_columns_that_are_in_the_index(frame: Any, columns: Any, levels: str) -> None:
    error = refused("a: number, b: symbol, c: number", frame, ColumnsError, columns=columns)
    assert error.why == f"the index of a frame is not read, and this one's has {levels}"
    assert error.remedy == "give its `.reset_index()`, which makes columns of the index"
    renamed = {name: 0 if name == "a" else name for name in "abc"}
    assert loaded("a: number, b: symbol, c: number", frame.reset_index(), columns=renamed) == [(1, "x", 3), (2, "y", 4)]


def test_an_index_with_the_name_of_a_column_is_not_left_out_silently() -> None:
    """Position matched the other columns, if they were as many."""
    frame = pd.DataFrame({"x": [1, 2], "y": ["p", "q"]}, index=pd.Index([7, 8], name="a"))
    assert str(refused("a: number, b: symbol", frame, ColumnsError)) == (
        "DataFrame: `a` of r(a:number, b:symbol) is in the index, and the columns are `x`, `y`\n"
        "  why: the index of a frame is not read, and position would match the columns, none of which has such a name\n"
        "  do: give its `.reset_index()`, which makes columns of the index, "
        "or `.reset_index(drop=True)`, which leaves it out"
    )
    assert loaded("a: number, b: symbol", frame.reset_index(drop=True)) == [(1, "p"), (2, "q")]
    by_name = frame.reset_index()[["a", "y"]].rename(columns={"y": "b"})
    assert loaded("a: number, b: symbol", by_name) == [(7, "p"), (8, "q")]
    counts = pd.DataFrame({"a": [5, 5, 6]}).groupby("a").size()
    assert "`a` of r(a:number)" in refused("a: number", counts, ColumnsError).what
    levels = pd.DataFrame({"x": [1], "y": [2]}, index=pd.MultiIndex.from_tuples([(3, 4)], names=["b", "a"]))
    assert "`b`, `a` of r(a:number, b:number) are in the index" in refused("a: number, b: number", levels).what


def test_an_index_with_the_name_of_a_column_beside_the_column() -> None:
    frame = pd.DataFrame({"a": [1], "b": ["p"]}, index=pd.Index([7], name="a"))
    assert loaded("a: number, b: symbol", frame) == [(1, "p")]
    other = frame.rename(columns={"a": "x", "b": "y"})
    assert loaded("a: number, b: symbol", other, columns={"a": "x", "b": "y"}) == [(1, "p")]
    assert loaded("a: number, b: symbol", other.rename_axis("key")) == [(1, "p")]


def test_an_index_that_nobody_asks_for_is_not_named() -> None:
    for frame in (FRAME[["b"]], FRAME[["b"]].rename_axis("other")):
        assert "index" not in str(refused("a: number, b: symbol, c: number", frame, ColumnsError))
    by_name = {"a": "z", "b": "b"}
    assert "index" not in str(refused("a: number, b: symbol", FRAME.set_index("a"), ColumnsError, columns=by_name))


def test_an_index_as_a_column_of_a_dict() -> None:
    assert set(loaded("a: symbol?", {"a": pd.Index(["x", np.nan], dtype=object)})) == {("x",), (None,)}
    pairs = pd.MultiIndex.from_tuples([("x", 1), ("y", 2)])
    assert "is a tuple, not a symbol" in refused("a: symbol", {"a": pairs}).what
