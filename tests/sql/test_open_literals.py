"""Statements that differ in their literals: they do what they do when they are met for the first time.

Two databases carry out the same statements. One meets texts of the same shape again and again; the other meets each
with another number of blanks behind it, and takes it as it stands.

Catches: a literal whose type follows that of the first, a position or a length that is taken for a value, a text that
means a date, an error that says other words the second time.
"""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

import lftj
from tests.conftest import JIT
from tests.sql.test_kept_statements import contents, outcome, refused

pytest.importorskip("sqlglot")

from lftj.sql import kept_statements, question, statements
from lftj.sql.open_literals import open_places, shape_of
from lftj.sql.places import SqlText

TABLES = """
create table item (id int primary key, name text, price decimal(10, 2), made date, size bigint not null default 7);
create table line (item int, qty int, note text, at timestamp, ratio double);
create table kind (u ubigint, flag boolean, long interval, key uuid, bytes blob, small utinyint);
insert into item values (1, 'tea', 1.5, '2024-01-01', 3), (2, 'jam', null, null, 4), (3, '2', 2, '2024-01-02', -1);
insert into line values (1, 2, 'x', null, 0.5), (1, 2, 'x', null, 0.5), (2, 1, null, '2024-01-02 00:00:00', 2);
insert into kind values (1, true, interval '1 day', '00000000-0000-0000-0000-000000000001', 'ab', 7);
create view sold as
    select name, sum(qty * price) as total from line join item on line.item = item.id group by name;
"""
# Literals by kinds: those of one kind have one mark. Those in the last lines are none, or are left as they are.
LITERALS = [
    line.split(" | ")
    for line in r"""
0 | 1 | 2 | 3 | 7 | 10 | 255 | 256 | 999999999999999999
-0 | -1 | -2 | -3 | -999999999999999999
1.0 | 1.00 | 1.5 | 2.50 | 0.001 | 0.0 | 123456789012.12345 | 2.005
-1.5 | -0.0 | -2.00
'1' | '2' | '' | 'tea' | 'x' | 'O''Neil' | '''' | '-3' | '1.50' | '1e1' | ' 2 ' | 'ä' | '\x41' | 'yes' | 'true' | 't'
'2024-01-02' | '2024-1-2' | '2024-02-30' | '2024-01-02 03:04:05' | '2024-01-02T03:04' | '1h' | '1 day' | 'x'
'00000000-0000-0000-0000-000000000001' | '00000000000000000000000000000002' | 'AB000000-0000-0000-0000-000000000001'
1e0 | 2. | .5 | 007 | null | true | 2::int | (2) | 1+1 | -(1) | - 1 | 1e400 | default | date'2024-01-02'
9223372036854775807 | -9223372036854775807 | 4611686018427387904 | 18446744073709551615 | 1000000000000000000
'a' || 'b' | 'a'  'b' | e'a' | interval '1' day | current_date
""".strip().split("\n")
]
TEXTS = (
    "insert into item values ({}, {}, {}, {}, {})",
    "insert into item (id, name) values ({}, {}), ({}, 'b')",
    "insert into item (id, price) values ({}, {}) on conflict (id) do update set price = {}, size = item.size + {}",
    "insert or replace into item (id, made) values ({},{})",
    "insert into line values ({}, 1, {}, {}, {})",
    "insert into kind (u, flag, long) values ({}, {}, {})",
    "insert into kind (key, bytes, small) values ({}, {}, {})",
    "update item set name = {}, price = {} where id = {}",
    "update item set made = {}, size={} where id = {} and size < {}",
    "update line set at = {}, ratio = {} where item = {} or qty = {}",
    "update kind set u = {}, flag = {}, long = {}, small = {}",
    "update kind set key = {}, bytes = {} where small = {}",
    "update line set qty = qty + {} where note = {}",
    "delete from item where id = {}",
    "delete from line where item = {} and note <> {} and ({} < qty)",
    "delete from kind where u > {} and flag = {}",
    "select * from item where id = {}",
    "select name from item where price >= {} and made <= {}",
    "select {}, id from item where size > {} order by {}, id limit 2",
    "select note, count(*) as n from line where qty < {} group by note having count(*) >= {} order by n, 1",
    "select * from line where ratio = {} and qty = {}",
    "select * from line where at < {} and item <> {}",
    "select * from kind where small = {} and key = {}",
    "select size, {} as x from item where name like {} and id between {} and {}",
    "select l.qty from line l left join item i on l.item = i.id and i.size <> {} where l.qty = {} and i.size > {}",
    "select total from sold where total > {} and name = {}",
    "select size from item where size = {} union all select qty from line where qty = {}",
    "select extract(year from made) as y, round(price, {}) as r from item where id in ({}, {}) and size > {}",
)


@pytest.mark.parametrize("seed", range(5 if JIT else 1))
def test_a_text_of_a_known_shape_does_what_it_says(seed: int) -> None:
    known, fresh = (lftj.Database._sized(page_rows=4, directory_rows=4) for _ in range(2))
    for db in (known, fresh):
        db.sql(TABLES)
    picked = random.Random(seed)
    for number in range(10 if JIT else 3):
        text = picked.choice(TEXTS)
        kinds = [picked.choice(LITERALS) for _ in range(6)]
        for again in range(6):
            made = text.format(*map(picked.choice, kinds))
            assert outcome(known, made, {}) == outcome(fresh, made + " " * (6 * number + again + 1), {}), made
            assert contents(known) == contents(fresh), made


def test_only_the_literals_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the third time on nothing is parsed, nor translated."""
    db = lftj.Database()
    db.sql(TABLES)
    texts = (
        "insert into item values ({0}, 'it''s {0}', {0}.5, '2024-01-0{1}', -{0})",
        "insert into item (id, size) values ({0}, 7) on conflict (id) do update set size = item.size + 1",
        "update item set name = 'x {0}', size = {0} where id = {0}",
        "select name, 'as it is' as said from item where id = {0} and name >= 'x {0}' order by 1 limit 1",
        "select count(*) from item where made = '2024-01-05' and {0} = id",
        "delete from item where id = {0} and made < '2024-02-01'",
    )
    for n in range(100, 106):
        for text in texts:
            db.sql(text.format(n, n % 8 + 1))
    for module, name in ((statements, "parsed"), (kept_statements, "parsed"), (question, "translated")):
        monkeypatch.setattr(module, name, refused)
    for n in range(106, 110):
        insert, upsert, update, select, count, delete = (text.format(n, n % 8 + 1) for text in texts)
        db.sql(insert)
        db.sql(upsert)
        assert next(row for row in db["item"] if row[0] == n)[1:3] == (f"it's {n}", Decimal(f"{n}.5"))
        db.sql(update)
        assert list(db.sql(select)) == [(f"x {n}", "as it is")]
        assert list(db.sql(count)) == [(int(n % 8 == 4),)]
        db.sql(delete)
    assert sorted(row[0] for row in db["item"]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "open_ones"),
    [
        (
            "insert into t values (1, -2, 3.5, 'a''b', 1e3, 007, .5, 1 + 1), (4, 5, null, default)",
            "1 -2 3.5 'a''b' 4 5",
        ),
        ("insert into t (a) values (1) on conflict (a) do update set b = 2", "1"),
        ("update t set a = 1, b = b + 2, c = 3.5, d = 'x' where e = 4 and (5 > f and g <> -6)", "1 'x' 4 5 -6"),
        ("delete from t where a = 1 or b = 2", ""),
        ("delete from t where a = 1 and b in (2, 3) and c like 'x' and d + 4 = 5 and e = 6.5", "1"),
        ("select a + 1, round(b, 2) from t where a = date '2024-01-01' and b = 3 group by 1 limit 4", "3"),
        ("select a from t where a = 1::int and b = -2 and c = - 3 and d = 4e0", "-2"),
        ("select a from t where a = 1 union select a from t where a = 2", ""),
        ("select a from t join u on t.b = 1 where (select max(c) from v where d = 2) = 3", ""),
    ],
)
def test_what_is_left_open(text: str, open_ones: str) -> None:
    _, literals = shape_of(text)
    statement = statements.parsed(SqlText(text), {})[0]
    assert " ".join(literals[place] for place in open_places(statement, text)) == open_ones


@pytest.mark.parametrize("text", ['select 1 as "a 2"', "select 1 -- it's 2", "select 1 /* 2 */", "select e'1', 2"])
def test_a_text_with_other_signs_is_known_by_itself(text: str) -> None:
    assert shape_of(text) == (text, ())


def test_a_mistake_leaves_a_shape_open() -> None:
    """What is wrong in one text is not what texts like it have in common."""
    db = lftj.Database()
    db.sql("create table t (a int, d date)")
    for day in ("01", "30", "30", "31", "02"):
        if day > "29":
            with pytest.raises(lftj.ProgramError, match=f"1:26: error: column `d` of `t`: 2024-02-{day}"):
                db.sql(f"insert into t values (1, '2024-02-{day}')")
        else:
            db.sql(f"insert into t values (1, '2024-02-{day}')")
    kept, given = kept_statements.kept_statement(db, "insert into t values (2, '2024-02-03')", {})
    assert kept is not None
    assert dict(given) == {"0": 2, "1": "2024-02-03"}


def test_a_text_that_means_no_value_is_refused_where_no_row_is_set() -> None:
    db = lftj.Database()
    db.sql("create table t (a int, p decimal(5, 2), d date)")
    for text in ("1.5", "2.5", "3.5", "1h"):
        for where in ("a = 1", "a = $a"):
            statement, given = f"update t set p = '{text}' where {where}", {"a": 1} if "$" in where else {}
            if text == "1h":
                with pytest.raises(lftj.ProgramError, match="`1h` is no decimal"):
                    db.sql(statement, **given)
            else:
                db.sql(statement, **given)
    for day in ("2024-01-01", "2024-01-02", "2024-02-30"):
        if day == "2024-02-30":
            with pytest.raises(lftj.ProgramError, match="`2024-02-30` is no date"):
                db.sql("update t set d = $d", d=day)
        else:
            db.sql("update t set d = $d", d=day)
