"""Branches of databases with views of SQL: what is changed there is followed as in the database itself."""

from __future__ import annotations

from random import Random

import pytest

import lftj

TABLE = "create table t(a int, b int, s text)"
VIEWS = [
    "select upper(s) c from t where a <= b",
    "select s || '-' c, count(*) n from t where a <= b group by 1",
    "select case when a > b then 1 else 2 end i, s || '-' c from t",
    "select concat(s, '-', a) c, sum(b) n, max(s) m from t where a < b + 1 group by 1",
    "select distinct lower(s) c from t where a <> b",
    "select x.s || y.s c, count(*) n from t x join t y on x.a = y.b where x.b <= y.a group by 1",
    "select s, a from t where not exists (select 1 from t u where u.s = upper(t.s) and u.a <= t.b)",
    "select s, rank() over (partition by a order by b, s) r from t where a <= b",
]


@pytest.mark.parametrize("text", VIEWS)
def test_a_view_follows_in_a_branch(text: str) -> None:
    """A head whose maps were not made yet was evaluated by its join alone: texts that it computes were left out."""
    random = Random(text)

    def rows(number: int) -> list[tuple[int, int, str]]:
        return [(random.randrange(4), random.randrange(4), random.choice("pqPQ")) for _ in range(number)]

    db, held = lftj.Database(), rows(40)
    db.sql(TABLE)
    db.load("t", held)
    db.sql(f"create view v as {text}")
    for _ in range(4):
        branch, come, go = db.branch(), rows(2), random.sample(held, 1)
        for one in (branch, db):
            with one.transaction() as tx:
                tx.erase("t", go)
                tx.insert("t", come)
        for row in go:
            held.remove(row)
        held += come
        anew = lftj.Database()
        anew.sql(TABLE)
        anew.load("t", held)
        expected = sorted(anew.sql(text))
        assert sorted(branch.sql("select * from v")) == expected
        assert sorted(db.sql("select * from v")) == expected
        assert sorted(branch["v"]) == sorted(db["v"])
        assert len(branch.diff(db)) == 0
