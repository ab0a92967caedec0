"""Outer joins of which `where` keeps the rows without a match only, beside DuckDB.

Catches: rows that match and are left out though null may stand in them, or because another join fills with null; a
column of the other side, or of another table, that is taken for one of the right side.
"""

from __future__ import annotations

import pytest

from lftj.language.clause import INTERNAL
from tests.sql.against_duckdb import Pair

pytest.importorskip("duckdb")

# The rows that match are not made: a key, what is not null, and what is equated has a value in them.
WITHOUT = [
    "select u.n, t.id from u left join t on u.a = t.id where t.id is null",
    "select u.n from u left join t on u.a = t.a where t.a is null",
    "select u.n from u left join t on u.a = t.a and t.b = 'x' where t.id is null and u.n > 0",
    "select t.id, k from t left join w on k = a where k is null",
    "select t.id from t left join w on k = a left join u on u.a = t.a where k is null",
    "select t.id, u.n from t left join u on u.a = t.a left join w on k = u.n where (k is null)",
    "select count(*) as n from t left join w on k = a where w.K is null",
    "select t.id, w.x from t left join w on k = a and x > 1 where k is null",
    "select q.id from (select t.id, t.a from t left join w on k = a where k is null) q join u on u.a = q.a",
    "select * from t left join w on k = a where k is null",
]
# They are, since where null is asked for it may stand in a row that matches, or comes again.
WITH = [
    "select u.n, t.id from u left join t on u.a = t.id where t.a is null",
    "select u.n, t.id from u left join t on u.a = t.id where u.a is null",
    "select u.n, t.id from u left join t on u.a = t.id where t.id is null or u.n = 1",
    "select u.n, t.id from u left join t on u.a = t.id where t.id is not null",
    "select u.n, t.id from u left join t on u.a = t.id where not (t.id is null and u.n = 1)",
    "select u.n, t.id, w.k from u left join t on u.a = t.id right join w on k = t.id where t.id is null",
    "select u.n, t.id, w.k from u left join t on u.a = t.id full join w on k = u.n where t.id is null",
    "select t.id, w.x from t left join w on k = a where x is null",
    "select t.id, u.n from t left join u on u.a = t.a or u.n = t.id where u.a is null",
    "select t.id, u.n from t left join u on coalesce(u.a, 1) = t.a where u.a is null",
    "select t.id, u.n from t right join u on u.a = t.a where t.a is null",
]


@pytest.mark.parametrize("query", [*WITHOUT, *WITH])
def test_rows_without_a_match(query: str) -> None:
    pair = Pair(seed=len(query))
    pair.follow(query)
    joins: dict[str, bool] = {}  # whether the head of a join has a rule for the rows that match
    for head, rules in pair.db._state.strata.by_head.items():
        if head.startswith(f"{INTERNAL}v0.join"):
            joins[head] = any(not rule.negated for rule in rules)
    assert all(joins.values()) == (query in WITH), joins
