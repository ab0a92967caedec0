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
