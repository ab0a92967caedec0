"""The mean of intervals: the nearest microsecond, half to even, whether rows repeat or not.

Catches: one rounding of rows that a key tells apart, and another of those that may repeat.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import pytest

import lftj

pytest.importorskip("sqlglot")

HALVES = [[0, 1], [-1, 0], [1, 2], [-2, -1], [2, 3], [-3, -2], [0, 0, 0, 2], [0, 0, 0, 6], [-6, 0, 0, 0], [-5, 5]]
OTHERS = [[7], [0, 0, 1], [0, 1, 1], [-1, 0, 0], [-1, -1, 0], [0, 1, 1, 1, 0], [86_400_000_000, 1, 0]]


@pytest.fixture(scope="module")
def db() -> lftj.Database:
    made = lftj.Database()
    made.sql("""
        create table keyed (id int primary key, x interval);
        create table bag (x interval);
        create view by_key as select avg(x) as mean from keyed;
        create view by_bag as select avg(x) as mean from bag;
        create view twice as select avg(x) as mean from (select x from keyed union all select x from keyed) s;
        create view by_case as select avg(case when id < 1 then x else x end) as mean from keyed;
    """)
    return made


@pytest.mark.parametrize("lengths", HALVES + OTHERS, ids=str)
def test_a_mean_is_rounded_half_to_even(db: lftj.Database, lengths: list[int]) -> None:
    intervals = [dt.timedelta(microseconds=length) for length in lengths]
    with db.transaction() as tx:
        tx.sql("delete from keyed; delete from bag")
        tx.insert("keyed", list(enumerate(intervals)))
        for length in lengths:
            tx.sql("insert into bag values ($x)", x=dt.timedelta(microseconds=length))
    mean = dt.timedelta(microseconds=round(Fraction(sum(lengths), len(lengths))))
    for view in ("by_key", "by_bag", "twice", "by_case"):
        assert list(db[view]) == [(mean,)], view
