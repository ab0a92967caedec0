"""Functions of SQL over random texts and numbers with null, compared with DuckDB row by row.

Catches: places counted in bytes or in halves of characters beyond the BMP, an end before its beginning, lengths that
are negative or larger than any text, shifts by more bits than there are.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from lftj.language.time_formats import read, written
from tests.conftest import JIT

pytest.importorskip("sqlglot")
pytest.importorskip("duckdb")

from tests.duckdb_databases import duckdb_database

EXPRESSIONS = """
left(s, n); right(s, n); substring(s, n); substring(s, n, m); substring(s, m, n); left(s, n + m); right(s, -n)
substring(s, 2, n); substring(s, n, 2); substring(s, -2, n); left(s, far); right(s, -far); substring(s, 1, far)
substring(s, -far, far); substring(s, far, -far); substring(s, far); substring(s, -far); lpad(s, n::int, f)
rpad(s, n::int, f); lpad(s, m::int, '😀b'); rpad(s, 7, '*'); ltrim(s, t); rtrim(s, t); trim(s, t); trim(s); ltrim(s)
rtrim(s, ' é😀'); trim(leading 'a' from s); substring(reverse(s), n, m); left(s || t, n) || right(t, m)
trunc(x, 1); trunc(x, 0); trunc(x, -1); trunc(x, 9); trunc(n, -1); trunc(far, -3); trunc(-far, -9); n >> m; far >> m
far >> n; -far >> n; abs(n) << abs(m); abs(n) << 3; 1 << abs(n); n >> far; -far >> far; 0 << abs(far)
x % 0.7; x % (n * 2 + 1); -x % 12.25; mod(n, 1.5)
position(t in s); contains(s, t); starts_with(s, t); ends_with(s, t); greatest(n, m, far); least(s, t, f)
"""
TEXTS = (
    "",
    "a",
    "ab",
    " a b ",
    "é",
    "e",
    "😀",
    "a😀é",
    "\U0001f600\U00010348ab",
    "ß a",
    "aab baa",
    "  ",
    "日本語テキスト",
)


@pytest.mark.parametrize("seed", range(4 if JIT else 1))
def test_values_are_those_of_duckdb(seed: int) -> None:
    random = Random(seed)

    def row(at: int) -> tuple[Any, ...]:
        s, t = ("".join(random.choices(TEXTS, k=random.randrange(4))) if random.random() > 0.1 else None for _ in "st")
        n, m = (random.choice((None, 0, 1, -1, 2, -2, 3, -5, 7, 12, -12)) for _ in "nm")
        far = random.choice((None, 2**31, 2**32 - 5, 10**6, -(2**31), 64))
        x = None if random.random() < 0.1 else Decimal(random.randrange(-(10**9), 10**9)) / 1000
        return at, s, t, random.choice(("*", "xyz", "é😀", None)), n, m, far, x

    columns = "k int primary key, s varchar, t varchar, f varchar, n bigint, m bigint, far bigint, x decimal(12, 3)"
    db, duck = lftj.Database(), duckdb_database()
    rows = [row(at) for at in range(60)]
    for one in (db.sql, duck.execute):
        one(f"create table v ({columns})")
    duck.executemany("insert into v values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.load("v", rows)
    for text in EXPRESSIONS.replace("\n", ";").strip(";").split(";"):
        found = dict(map(tuple, db.sql(f"select k, {text} as x from v")))
        expected = dict(duck.execute(f"select k, {text} from v").fetchall())
        wrong = {at: (found[at], expected[at]) for at in expected if found[at] != expected[at]}
        assert not wrong, (text, [(rows[at], values) for at, values in wrong.items()])


def test_formats_write_all_times_as_duckdb() -> None:
    """Weeks and days at the ends of years, hours of twelve, and years of fewer than four digits."""
    random, format = (
        Random(1),
        "%Y %y %-y %m %-m %d %-d %j %-j %a %b %A %B %u %w %G %V %U %W %H %-H %I %-I %p %M %S %f %g",
    )
    first, last = dt.datetime.min, dt.datetime.max
    times = [
        dt.datetime(random.randrange(1, 9999), random.choice((1, 12)), random.randrange(1, 32)) for _ in range(200)
    ]
    times += [first + (last - first) * random.random() for _ in range(200)]
    db, duck = lftj.Database(), duckdb_database()
    for one in (db.sql, duck.execute):
        one("create table v (t timestamp primary key)")
    rows = [(time,) for time in sorted({first, *times})]
    duck.executemany("insert into v values (?)", rows)
    db.load("v", rows)
    text = f"select t, strftime(t, '{format}') as of_time, strftime(t::date, '{format}') as of_date from v order by t"
    assert [tuple(row) for row in db.sql(text)] == duck.execute(text).fetchall()


def test_formats_read_texts_as_duckdb() -> None:
    """Numbers without zeros, names in either case, and texts that are nearly written as the format says."""
    random = Random(2)
    parts = [f"%{letter}" for letter in "YymdHIMSgfaAbBphcxXT"] + ["%-d", "%-m", "%%"]
    others = ["2024", "24", "0", "05", "31", "60", "500", "1234567", "may", "Tuesday", "am", "%", "1969", "12 ", ""]
    gaps = ["-", " ", "/", ":", "", "  ", "x"]
    duck, met = duckdb_database(), 0
    for _ in range(3_000):
        format = text = ""
        time = dt.datetime(random.choice((1950, 1999, 2024)), 1, 1) + dt.timedelta(seconds=random.random() * 3e7)
        for i in range(random.randrange(1, 6)):
            part, gap = random.choice(parts if i else parts[:-1]), random.choice(gaps)
            word = written(time, part) if random.random() < 0.8 else random.choice(others)
            format += part + gap
            text += (word.lower() if random.random() < 0.2 else word) + (gap if random.random() < 0.95 else " ")
        ((expected,),) = duck.execute(f"select try_strptime(?, '{format}')", [text]).fetchall()
        try:
            found = read(text, format)
        except ValueError:
            found = None
        if not isinstance(expected, str):  # of the year 0
            assert (text, format, found) == (text, format, expected)
        met += found is not None
    assert met > 1_000


def test_a_format_that_is_none_is_no_type_either() -> None:
    """No text would be written so."""
    db = lftj.Database(".decl q(s:symbol, f:symbol) r(s) :- q(s, f), reads_as(f, s).")
    db.load("q", [("5", "%d"), ("x", "%d"), ("55", "%m")])
    assert list(db["r"]) == [("5",)]
    with pytest.raises(EvaluationError, match="reads no part of a time"), db.transaction() as tx:
        tx.insert("q", [("5", "%Q")])


def test_texts_that_are_no_times_are_null_and_change_with_their_rows() -> None:
    db = lftj.Database()
    db.sql(
        "create table t (id int primary key, s text); create view v as select id, try_strptime(s, '%d.%m.%Y') as at "
        "from t; create view w as select id, strptime(s, '%d.%m.%Y')::date as at from t where s like '%.%.2024'"
    )
    db.sql("insert into t values (1, '31.5.2024'), (2, '31.6.2024.'), (3, null), (4, '1.1.0000')")
    assert list(db["v"]) == [(1, dt.datetime(2024, 5, 31)), (2, None), (3, None), (4, None)]
    assert list(db["w"]) == [(1, dt.date(2024, 5, 31))]
    changed = db.sql("update t set s = '30.6.2024' where id = 2")
    assert (list(changed["v"].erased), list(changed["v"].inserted)) == ([(2, None)], [(2, dt.datetime(2024, 6, 30))])
    with pytest.raises(EvaluationError, match="is not written as"):
        db.sql("insert into t values (5, 'x.1.2024')")
    assert len(db["v"]) == 4
