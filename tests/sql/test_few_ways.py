"""Queries that split into many ways: linear in what they are made of, and the same rows as one rule for each way gives.

Catches: 2^k rules for k values that may be null, 3^k for k `case`s; a head that lacks rows of null, or has two values
for a row; what is computed for rows that a condition around it leaves out; parameters of kept statements in such heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, product
from random import Random
from typing import Any

import pytest

import lftj
from bench.triggers_run import differ
from tests.conftest import IN_CI, JIT
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")

from lftj.sql import cases, computed_columns, first_hits, query_scope

K = 6
COLUMNS = [f"c{i}" for i in range(K)]
EACH = {
    "arithmetic": "{c} + 1",
    "coalesce": "coalesce({c}, 0)",
    "case": "case when {c} > 1 then {c} else 0 end",
    "predicate": "{c} > 1",
    "cast": "cast({c} as varchar)",
    "text": "upper('a' || {c})",
    "scalar subquery": "(select max(u.{c}) from t u where u.g = t.g)",
    "count subquery": "(select count(*) from t u where u.{c} = t.g)",
}
GROUPED = {
    "sums": "coalesce(sum({c}), 0)",
    "means": "sum({c}) / count({c})",
    "counts": "count(*) filter (where {c} > 1)",
}
TOGETHER = {
    "sum": " + ".join(f"coalesce({c}, 0)" for c in COLUMNS),
    "sum of cases": " + ".join(f"(case when {c} > 1 then 1 else 0 end)" for c in COLUMNS),
    "concat": " || ".join(f"coalesce(cast({c} as varchar), '')" for c in COLUMNS),
    "when": "case " + " ".join(f"when {c} > 1 then {i}" for i, c in enumerate(COLUMNS)) + " else -1 end",
    "greatest": f"greatest({', '.join(COLUMNS)})",
    "first": f"coalesce({', '.join(COLUMNS)})",
    "guarded": "coalesce(c0, 0) + case when g <> 0 then (coalesce(c1, 0) + coalesce(c2, 0)) // g end + coalesce(c3, 1)",
}
CONDITIONS = {
    "or": " or ".join(f"{c} in (1, 2)" for c in COLUMNS),
    "and": " and ".join(f"({a} > 0 or {b} = 2)" for a, b in pairwise(COLUMNS)),
    "not": f"not ({' and '.join(f'{c} < 3' for c in COLUMNS)})",
}
QUERIES = {
    **{name: f"select id, {', '.join(form.format(c=c) for c in COLUMNS)} from t" for name, form in EACH.items()},
    **{f"{name} of a bag": f"select {', '.join(EACH[name].format(c=c) for c in COLUMNS)} from b t" for name in EACH},
    **{n: f"select g, {', '.join(f.format(c=c) for c in COLUMNS)} from t group by g" for n, f in GROUPED.items()},
    **{f"{n} of all": f"select {', '.join(f.format(c=c) for c in COLUMNS)} from t" for n, f in GROUPED.items()},
    **{f"{name}, together": f"select id, {text} from t" for name, text in TOGETHER.items()},
    **{f"{name}, of a bag": f"select {text} from b t" for name, text in TOGETHER.items()},
    "sum of sums": f"select g, sum({TOGETHER['sum']}), max({TOGETHER['when']}) from t group by g",
    **{f"where {name}": f"select id from t where {text}" for name, text in CONDITIONS.items()},
    **{f"where {name}, of a bag": f"select c0, c1 from b where {text}" for name, text in CONDITIONS.items()},
    "groups": f"select {', '.join(f'{c} + 1' for c in COLUMNS)}, count(*), sum(g) from b group by all",
    "outer join": f"select t.id, {', '.join(f'u.{c} + t.{c}' for c in COLUMNS)} from t left join t u on u.id = t.g",
    "distinct": f"select distinct {', '.join(f'{c} // 2' for c in COLUMNS)} from b",
    "union": f"select {', '.join(f'{c} + 1' for c in COLUMNS)} from b union all select {', '.join(COLUMNS)} from t",
    "join": f"select t.id, b.g, {', '.join(f't.{c} + b.{c}' for c in COLUMNS)} from t join b on b.g = t.g",
}


FEWS = [1, cases.FEW]
# In CI each query with one of the two.
PAIRS = [
    (few, name)
    for i, name in enumerate(QUERIES)
    for j, few in enumerate(FEWS)
    if not IN_CI or (i + i // len(EACH) + j) % 2
]


@pytest.fixture(params=FEWS)
def few(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (cases, computed_columns, first_hits, query_scope):
            patch.setattr(module, "FEW", request.param)
        yield request.param


def rows(rng: Random, ids: range) -> list[str]:
    """Rows in SQL, of which a third of the values are null."""
    values = [[rng.choice(["null", rng.randrange(3), rng.randrange(5)]) for _ in range(K + 1)] for _ in ids]
    return [f"({', '.join(map(str, [i, *row]))})" for i, row in zip(ids, values, strict=True)]


@pytest.mark.skipif(not JIT, reason="interpreted kernels take minutes for it")
@pytest.mark.parametrize(("few", "name"), PAIRS, indirect=["few"])
def test_rows_are_those_of_duckdb(name: str, few: int) -> None:
    db, rival = lftj.Database(), duckdb_database()
    columns = ", ".join(f"{c} int" for c in ("g", *COLUMNS))
    for make in (f"create table t (id int primary key, {columns})", f"create table b (id int, {columns})"):
        db.sql(make)
        rival.execute(make)
    db.sql(f"create view v as {QUERIES[name]}")
    # Of a rule for each way there would be 256 and more.
    assert few == 1 or sum(c.head.startswith(("v", "@v")) for c in db._state.strata.clauses) < 200
    rng = Random(name)
    for i in range(2 if IN_CI else 4):
        new = ", ".join(rows(rng, range(20 * i, 20 * i + 20)))
        statements = [
            f"insert into t values {new}",
            f"insert into b values {new}, {new}",
            f"update t set c0 = null, c1 = coalesce(c1, 1) + 1 where id % 3 = {i % 3}",
            f"delete from b where id % 5 = {i}",
            f"delete from t where id % 7 = {i}",
        ]
        for statement in statements:
            rival.execute(statement)
        db.sql(";".join(statements))
        expected: list[Any] = rival.execute(QUERIES[name]).fetchall()
        assert differ(db.sql("select * from v"), expected) == ""
    assert differ(db.sql(QUERIES[name]), expected) == ""


def test_what_a_condition_leaves_out_is_not_computed(few: int) -> None:
    """A head of its own would divide by 0, and add up beyond 64 bits."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, a int, b int, n bigint)")
    db.sql(f"insert into t values (1, 6, 2, 1), (2, 5, 0, {2**63 - 1}), (3, null, 3, 2), (4, 4, null, null)")
    parts = " + ".join(["coalesce(a, 0) // b", *(f"coalesce({c}, {i})" for i, c in product(range(2), "abn"))])
    of_t = re.sub(r"\b([abn])\b", r"t.\1", parts)
    db.sql(f"""
        create view v as select id, case when b > 0 then {parts} end as x from t;
        create view w as select id, coalesce(a, b) as y, {parts} as x from t where b <> 0;
        create view o as select id from t where b = 0 or (a // b > 1 and coalesce(n, 0) + 1 > coalesce(b, a));
        create view f as select sum({parts}) filter (where b <> 0) as s from t;
        create view n as select id, case when b <> 0 then nullif({parts}, 1) end as x from t;
        create view i as select id, if(b <> 0, nullif({parts}, 1), 0) as x from t;
        create view c as select id, case when b <> 0 then case {parts} when {3 + 2 * 9} then 2 end end as x from t;
        create view k as select id, case when b <> 0 then cast({parts} as bool) end as x from t;
        create view l as select id from t where not (b = 0 or nullif({parts}, 1) < 0);
        create view s as select x from (select b, {parts} as x from t where id > 0) s where b <> 0;
        create view j as select t.id from t join t u on ({of_t}) > u.id
            and t.b <> 0 where u.id = 1;
    """)
    one, three = 3 + 2 * (6 + 2 + 1), 0 + (0 + 3 + 2) + (1 + 3 + 2)
    assert sorted(db["v"]) == [(1, one), (2, None), (3, three), (4, None)]
    assert sorted(db["w"]) == [(1, 6, one), (3, 3, three)]
    assert sorted(db["o"]) == [(2,)]
    assert list(db["f"]) == [(one + three,)]
    assert sorted(db["n"]) == [(1, one), (2, None), (3, three), (4, None)]
    assert sorted(db["i"]) == [(1, one), (2, 0), (3, three), (4, 0)]
    assert sorted(db["c"]) == [(1, 2), (2, None), (3, None), (4, None)]
    assert sorted(db["k"]) == [(1, True), (2, None), (3, True), (4, None)]
    assert sorted(db["l"]) == [(1,), (3,)]
    assert sorted(db["j"]) == [(1,), (3,)]
    assert sorted(db["s"]) == sorted(((one, 1), (three, 1)))


@pytest.mark.parametrize("shown", ["id", "id, " + ", ".join(f"{c} + 1 as o{c}" for c in COLUMNS)])
@pytest.mark.parametrize(
    "where",
    [
        f"a // b > 1 and ({CONDITIONS['or']}) and b <> 0",
        "(a // b > 1 or d = 2) and (b > 0 or b < 0)",
        f"(a // b > 1 or d = 2) and ({CONDITIONS['or']}) and (b > 0 or b < 0)",
    ],
)
def test_conditions_leave_out_rows_for_one_another(where: str, shown: str, few: int) -> None:
    """Whatever their order: the head of one would divide by 0 in a row that a later one excludes."""
    db = lftj.Database()
    db.sql(f"create table t (id int primary key, a int, b int, d int, {', '.join(f'{c} int' for c in COLUMNS)})")
    db.sql(f"create view v as select {shown} from t where {where}")
    for row in ((1, 6, 2, 1, 1), (2, 5, 0, 3, 1), (3, 9, 3, 2, 2), (4, None, 1, 1, 1)):
        db.sql(f"insert into t (id, a, b, d, c0) values ({', '.join('null' if v is None else str(v) for v in row)})")
    assert sorted(row[0] for row in db["v"]) == [1, 3]


def test_parameters_in_such_heads(few: int) -> None:
    """Kept statements are asked again with other values."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, " + ", ".join(f"{c} int" for c in COLUMNS) + ")")
    for i in range(9):
        values = {c: None if (i + j) % 3 == 0 else i * j for j, c in enumerate(COLUMNS)}
        names = ", ".join(f"${c}" for c in COLUMNS)
        db.sql(f"insert into t values ($id, {names})", id=i, **values)
    columns = ", ".join(f"{c} + $more" for c in COLUMNS)
    for more, least in ((1, 3), (2, 5), (40, 0)):
        found = sorted(db.sql(f"select id, {columns} from t where id >= $least", more=more, least=least))
        assert found == [
            (i, *(None if (i + j) % 3 == 0 else i * j + more for j in range(K))) for i in range(9) if i >= least
        ]
        db.sql(f"update t set {', '.join(f'{c} = {c} + $more' for c in COLUMNS)} where id = $id", more=more, id=least)
        db.sql(f"update t set {', '.join(f'{c} = {c} - $more' for c in COLUMNS)} where id = $id", more=more, id=least)


def test_a_recursive_step_is_not_taken_apart(few: int) -> None:
    """A head beside it would be derived together with it."""
    db = lftj.Database()
    db.sql("create table e (x int, y int, w int); insert into e values (1, 2, null), (2, 3, 5), (3, 4, 1)")
    db.sql("""
        create view r as with recursive r (x, a, b, c) as (
            select 1, 0, cast(null as int), 0
            union all
            select y, a + w, coalesce(b, 0) + 1, case when w > 1 then c + 1 else c end from r join e on e.x = r.x
        ) select * from r
    """)
    assert sorted(db["r"], key=lambda row: row[0]) == [
        (1, 0, None, 0, 1),
        (2, None, 1, 0, 1),
        (3, None, 2, 1, 1),
        (4, None, 3, 1, 1),
    ]


def test_a_condition_of_too_many_alternatives_is_refused_in_words_of_sql() -> None:
    """Parts of the body were to have rules of their own, and no place was named."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, a int, b text); create table k (p int, v int)")
    db.sql("insert into t values (1, 1, 'x'), (2, null, 'y'), (3, 3, null); insert into k values (1, 1), (3, null)")
    values = "id, case b when 'x' then a when 'y' then id else 7 end as y, case when a > 1 then a end as z from t"
    met = "y in (select v from k where p = q.z) or z in (select p from k where v = q.y)"
    asked = f"select id, case when {met} then 1 end as c from"
    for text in (f"{asked} (select {values}) q", f"create view w as {asked} (select {values}) q"):
        with pytest.raises(lftj.ProgramError) as refused:
            db.sql(text)
        assert refused.value.what == "a condition splits into more than 1,024 alternatives"
        assert refused.value.where.startswith("<sql>:1:1")
    db.sql(f"create view q as select {values}")
    assert list(db.sql(f"{asked} q order by id")) == [(1, None), (2, None), (3, None)]


@pytest.mark.parametrize(
    "step",
    [
        "select a.id, b.v + 1 as v from {0} a join {0} b on a.id = b.id",
        "select a.id, b.v + 1 as v from {0} a left join {0} b on a.id = b.id",
        "select id, v + 1 as v from {0} where id in (select id from {0})",
        "select id, v + 1 as v from t where id in (select id from {0}) and id in (select id from {0} where v > 0)",
    ],
)
def test_queries_that_each_read_the_one_before_twice(step: str) -> None:
    """One more has a few more atoms and rules, and not twice as many."""
    sizes = []
    for depth in (6, 12):
        named = ["w0 as (select id, v from t)", *(f"w{i + 1} as ({step.format(f'w{i}')})" for i in range(depth))]
        query = f"with {', '.join(named)} select id, v from w{depth}"
        db = lftj.Database()
        db.sql("create table t (id int primary key, v int); insert into t values (1, 5), (2, 6)")
        db.sql(f"create view x as {query}")
        sizes.append(sum(1 + len(clause.atoms) for clause in db._strata.clauses))
        more = 1 if "from t where" in step else depth
        expected = [(1, 5 + more), (2, 6 + more)]
        assert list(db.sql(f"{query} order by id")) == list(db.sql("select * from x order by id")) == expected
        db.sql("insert into t values (3, 7); delete from t where id = 1")
        assert list(db.sql("select * from x order by id")) == [(2, 6 + more), (3, 7 + more)]
    assert sizes[1] < 4 * sizes[0], sizes
