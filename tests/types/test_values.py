"""Each type by itself: order, its text, its constants, its extremes, and what it refuses."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lftj
from lftj.language import parse, to_text
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import is_type, type_of
from tests.types.cases import BERLIN, CASES, TYPES, UTC


@pytest.mark.parametrize("type", TYPES)
def test_values_come_back_in_order(type: str) -> None:
    values = CASES[type].values
    db = lftj.Database(f".decl v(x:{type}) lt(x, y) :- v(x), v(y), x < y.\n.decl w(x:{type}) w(x) :- v(x).")
    db.load("v", [(v,) for v in reversed(values)])
    assert [v for (v,) in db["v"]] == values
    assert list(db["w"]) == [(v,) for v in values]
    assert len(db["lt"]) == len(values) * (len(values) - 1) // 2
    assert all((a, b) in db["lt"] and (b, a) not in db["lt"] for a, b in pairwise(values))
    assert (db["v"].scan("min"), db["v"].scan("max")) == (values[0], values[-1])


@pytest.mark.parametrize("type", TYPES)
def test_codes_and_texts_are_inverted(type: str) -> None:
    made, table = type_of(type), SymbolTable()
    values = [*CASES[type].values, *map(CASES[type].of, range(8))]
    codes = np.array([table.intern_value(v, type) for v in values], np.int64)
    assert table.values(codes, type) == values
    assert [table.value(int(c), type) for c in codes] == values
    assert [made.shown(made.parse(made.text(v))) for v in values] == values
    order = table.order(codes, type)
    assert [values[i] for i in np.argsort(order, kind="stable")] == sorted(values)


@pytest.mark.parametrize("type", TYPES)
def test_constants_are_read_as_they_are_written(type: str) -> None:
    for value in CASES[type].values:
        if value in (float("inf"), -float("inf")):
            continue  # which rule text has no spelling for
        text = f"p({type_of(type).literal(value)}).\n"
        program = parse(text)
        assert parse(to_text(program)) == program
        db = lftj.Database(f".decl p(x:{type})\n{text}")
        assert list(db["p"]) == [(value,)]
        built = lftj.Program()
        built.fact(built.relation("p", x=type)(lftj.unsigned(value) if type == "unsigned" else value))
        assert parse(built.to_text()) == built.ast()
        assert list(lftj.Database(built)["p"]) == [(value,)]


@pytest.mark.parametrize(("type", "value", "why"), [(t, v, why) for t in TYPES for v, why in CASES[t].bad])
def test_what_does_not_fit_says_why(type: str, value: Any, why: str) -> None:
    db = lftj.Database(f".decl v(i:number, x:{type})")
    good = CASES[type].values[0]
    with pytest.raises(lftj.DataError) as caught:
        db.load("v", [(0, good), (1, value)])
    text = str(caught.value)
    assert text.startswith(f"list, row 1 (from 0): 1 bad row: column `x` of `v`: {value!r} {why}")
    assert "\n  why: " in text
    assert "\n  do: " in text
    assert len(db["v"]) == 0
    with pytest.raises(lftj.DataError, match="column `x` of `v`"):
        (1, value) in db["v"]  # noqa: B015
    with pytest.raises(lftj.DataError, match="is not a value"):
        db.load("v", [(1, None)])


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("2024-05-31 12:30:00.5", "timestamp", dt.datetime(2024, 5, 31, 12, 30, 0, 500000)),
        ("2024-05-31T12:30+02:00", "timestamp", dt.datetime(2024, 5, 31, 10, 30)),
        ("2024-05-31", "timestamp", dt.datetime(2024, 5, 31)),
        ("2024-05-31T12:30:00", 'timestamp("Europe/Berlin")', dt.datetime(2024, 5, 31, 10, 30, tzinfo=UTC)),
        ("2024-05-31T12:30:00Z", 'timestamp("Europe/Berlin")', dt.datetime(2024, 5, 31, 14, 30, tzinfo=BERLIN)),
        ("PT1H30M", "duration", dt.timedelta(hours=1.5)),
        ("-P1DT0.5S", "duration", -dt.timedelta(days=1, seconds=0.5)),
        ("01:30:00", "duration", dt.timedelta(hours=1.5)),
        ("2 days, 0:00:01", "duration", dt.timedelta(days=2, seconds=1)),
        ("1w2d3h4m5.5s", "duration", dt.timedelta(9, 5.5, hours=3, minutes=4)),
        ("15ms", "duration", dt.timedelta(milliseconds=15)),
        ("1.5", "decimal(10,2)", Decimal("1.50")),
        ("-.500", "decimal(10,2)", Decimal("-0.50")),
        ("TRUE", "bool", True),
        ("0", "bool", False),
        ("00FF", "bytes", b"\x00\xff"),
        ("{123E4567-E89B-12D3-A456-426614174000}", "uuid", "123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_other_spellings(text: str, type: str, value: Any) -> None:
    made = type_of(type)
    shown = made.shown(made.parse(text))
    assert shown == value or str(shown) == value


@pytest.mark.parametrize(
    ("type", "text", "why"),
    [
        ("date", "2024-02-30", "is not a day of the calendar"),
        ("date", "24-02-03", "is not a date"),
        ("date", "2024-02-03 ", "is not a date"),
        ("timestamp", "2024-02-03T25:00:00", "is no time of the calendar"),
        ("timestamp", "2024-02-03T00:00:00.0000001", "is finer than a microsecond"),
        ("duration", "1x", "is not a duration"),
        ("duration", "", "is not a duration"),
        ("duration", "999999999d", "does not fit into duration"),
        ("decimal(10,2)", "1e5", "is not a decimal(10,2)"),
        ("decimal(10,2)", "0.123", "has more than 2 digits behind the point"),
        ("bool", "yes", "is not a bool"),
        ("bytes", "0", "is not bytes"),
        ("uuid", "1234", "is not a uuid"),
    ],
)
def test_a_bad_field_names_its_line(type: str, text: str, why: str, tmp_path: Any) -> None:
    path = tmp_path / "v.csv"
    good = type_of(type).text(CASES[type].values[0])
    path.write_text(f"0,{good}\n1,{text}\n")
    db = lftj.Database(f".decl v(i:number, x:{type})")
    with pytest.raises(lftj.DataError) as caught:
        db.load("v", path)
    assert str(caught.value).startswith(f"{path}:2: ") or f"{path}:2" in str(caught.value)
    assert why in str(caught.value)
    assert "\n  do: " in str(caught.value)
    rejects = db.load("v", path, on_error="quarantine")
    assert [(r.line, why in r.reason) for r in rejects] == [(2, True)]
    assert list(db["v"]) == [(0, CASES[type].values[0])]


@pytest.mark.parametrize(
    "name",
    ["decimal", "decimal(19,2)", "decimal(2,3)", "decimal(0,0)", 'timestamp("Nowhere/Town")', "date(3)", "number??"],
)
def test_names_of_no_type(name: str) -> None:
    assert not is_type(name)
    with pytest.raises(lftj.ProgramError) as caught:
        lftj.Database(f".decl p(x:{name})")
    assert "\n  why: " in str(caught.value)
    assert "\n  do: " in str(caught.value)


@pytest.mark.parametrize(
    ("word", "type"),
    [
        ("int", "number"),
        ("string", "symbol"),
        ("str", "symbol"),
        ("text", "symbol"),
        ("boolean", "bool"),
        ("blob", "bytes"),
    ],
)
def test_words_of_other_languages_get_a_hint(word: str, type: str) -> None:
    with pytest.raises(lftj.ProgramError, match=f"unknown type `{word}`(.|\n)*do: write `{type}`"):
        lftj.Database(f".decl p(x:{word})")


def test_aliases_and_spaces() -> None:
    db = lftj.Database(
        '.type Money = decimal(10, 2)\n.type When <: timestamp( "Europe/Berlin" )\n'
        ".decl p(a:Money?, b:When, c:decimal( 4 ))"
    )
    assert str(db["p"].schema if hasattr(db["p"], "schema") else db["p"]).startswith(
        'p(a:decimal(10,2)?, b:timestamp("Europe/Berlin"), c:decimal(4,0))'
    )


TIMES = ["date", "timestamp", 'timestamp("Europe/Berlin")', "duration"]


def without_unit(make: Any, value: Any) -> Any:
    """A time of numpy that has no unit: numpy warns of these since 2.5, and still gives them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return make(value)


@pytest.mark.parametrize(
    "missing",
    [pd.NaT, without_unit(np.datetime64, "NaT"), np.datetime64("NaT", "us"), without_unit(np.timedelta64, "NaT")],
)
@pytest.mark.parametrize("type", [*TIMES, "number", "float", "decimal(5,2)", "symbol"])
def test_every_nat_is_null(type: str, missing: Any) -> None:
    """pandas' NaT is a datetime to Python, numpy's timedelta64 an integer."""
    db = lftj.Database(f".decl t(v:{type})  .decl n(v:{type}?)")
    db.load("n", [(missing,)])
    assert list(db["n"]) == [(None,)]
    assert (missing,) in db["n"]
    with pytest.raises(lftj.DataError, match="null is not a value"):
        db.load("t", [(missing,)])
    rejects = db.load("t", [(missing,)], on_error="quarantine")
    assert rejects is not None
    assert len(rejects) == 1
    with pytest.raises(lftj.DataError, match="is not a value"):
        assert (missing,) in db["t"]
    for name in "tn":
        with pytest.raises(lftj.DataError, match="cannot be null"):
            db.query(f"{name}($v)", v=missing)


@pytest.mark.parametrize(
    "value", [np.timedelta64(1, "s"), np.timedelta64(1, "ns"), without_unit(np.timedelta64, 1)], ids=str
)
@pytest.mark.parametrize("type", ["number", "unsigned", "float", "decimal(5,2)"])
def test_a_timedelta64_is_no_number(type: str, value: Any) -> None:
    db = lftj.Database(f".decl t(v:{type})")
    with pytest.raises(lftj.DataError, match="is a timedelta64, not"):
        db.load("t", [(value,)])
    with pytest.raises(lftj.DataError, match="is a timedelta64, not"):
        assert (value,) in db["t"]
    with pytest.raises(lftj.DataError, match="is a timedelta64, not"):
        db.query("t($v)", v=value)
    relation = lftj.Program().relation("t", v=type)
    with pytest.raises(lftj.errors.BuilderError, match="a value of type timedelta64 cannot be a term"):
        relation(value)


def test_python_types_in_the_builder() -> None:
    p = lftj.Program()
    p.input("t", a=dt.datetime, b=dt.date, c=dt.timedelta, d=Decimal, e=bool, f=bytes, g=int | None, h="date?")
    assert p.to_text().splitlines()[0] == (
        ".decl t(a:timestamp, b:date, c:duration, d:decimal(18,2), e:bool, f:bytes, g:number?, h:date?)"
    )


@pytest.mark.parametrize("kind", ["m", "M"])
@pytest.mark.parametrize("count", [1, 25])
@pytest.mark.parametrize(
    ("unit", "nanos"), [("W", 604_800 * 10**9), ("h", 3600 * 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)]
)
def test_times_of_numpy_are_read_to_the_ends_of_their_units(unit: str, nanos: int, count: int, kind: str) -> None:
    """Numpy's own conversion is a unit off there, and refuses arrays with anything beyond since numpy 2.5."""
    size, least = nanos * count, 1000
    most = (2**63 - 1) * least // size
    numbers = [
        n for n in (0, 1, -1, 40, 1000, most, -most, most + 1, -most - 1, 2**63 - 1, 1 - 2**63) if abs(n) < 2**63
    ]
    values = np.array(numbers, np.int64).view(f"{kind}8[{count}{unit}]")
    db = lftj.Database(f".decl t(n:number, v:{'duration' if kind == 'm' else 'timestamp'})")
    db.load("t", {"n": np.arange(len(numbers)), "v": values}, on_error="quarantine")
    micros = {
        i: n * size // least for i, n in enumerate(numbers) if n * size % least == 0 and abs(n * size // least) < 2**63
    }
    if kind == "M":
        far = dt.datetime.max - dt.datetime(1970, 1, 1)
        micros = {
            i: n for i, n in micros.items() if -62_135_596_800_000_000 <= n <= far // dt.timedelta(microseconds=1)
        }
    found = db["t"].to_numpy()
    assert {int(i): int(v.astype(np.int64)) for i, v in zip(found["n"], found["v"], strict=True)} == micros


def test_fold_says_which_of_the_times_that_the_clocks_show_twice_is_meant() -> None:
    db = lftj.Database('.decl v(t:timestamp("Europe/Berlin"))')
    db.load("v", [(dt.datetime(2024, 10, 27, 2, 30, fold=fold),) for fold in (0, 1)])
    assert [at.astimezone(UTC).hour for (at,) in db["v"]] == [0, 1]


def test_constants_that_the_clocks_show_twice_are_two() -> None:
    """Python compares times of one zone by what its clocks show: instants an hour apart were one constant."""
    early, late = "@2024-10-27T00:30:00Z", "@2024-10-27T01:30:00Z"
    db = lftj.Database(
        f"""
        .decl v(t:timestamp("Europe/Berlin"))
        v({early}).  v({late}).
        within(t)  :- v(t), t >= {early}, t < {late}.
        neither(t) :- v(t), t != {early}, t != {late}.
        either(t)  :- v(t), t = {early} ; v(t), t = {late}.
        """
    )
    first, second = (dt.datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in (0, 1))
    assert [at.astimezone(UTC) for (at,) in db["v"]] == [first, second]
    assert [at.astimezone(UTC) for (at,) in db["within"]] == [first]
    assert [len(db["neither"]), len(db["either"])] == [0, 2]
    # One after the other: what is compiled of the first question is not for the second.
    assert [db.query(f"v(t), t < {bound}").count() for bound in (early, late)] == [0, 1]
    assert [at.astimezone(UTC) for (at,) in db.query(f"v(t), t = {late}")] == [second]


def test_a_decimal_of_too_many_digits_in_a_rule() -> None:
    """What is said of the type of a column is not true of the constant: it has more digits."""
    with pytest.raises(lftj.ProgramError) as caught:
        lftj.Database("a(0.0000000000000000001d).")
    assert str(caught.value) == (
        "<rules>:1:3: error: the constant `0.0000000000000000001d` has more than 18 digits\n"
        "    a(0.0000000000000000001d).\n"
        "      ^^^^^^^^^^^^^^^^^^^^^^\n"
        "  why: a decimal has up to 18 digits\n"
        "  do: correct it"
    )
    program = lftj.Program()
    with pytest.raises(lftj.Error) as told:
        program.input("n", kg=Decimal)(Decimal("1E+30"))
    assert str(told.value).partition(": ")[2] == (
        "Decimal('1E+30') has more than 18 digits\n"
        "  why: a decimal has up to 18 digits\n"
        "  do: give a decimal of up to 18 digits, or a float"
    )
