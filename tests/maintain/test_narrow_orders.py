"""Narrow key orders: of the columns that are read and a primary key, which determines the others.

Relations are large enough for key orders to follow changes, at once or some commits later, and rows change where nobody
reads them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import lftj
from lftj.evaluate import evaluator
from lftj.plan.body import body_of
from scantree.version import Store
from tests.conftest import examples
from tests.engine import programs
from tests.plain.evaluate import evaluate, parse

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

Row = tuple[int, ...]
COLUMNS = {"wide": "v:number, b:number, k:number, c:number, e:number, f:number", "o": "x:number, y:number, z:number"}
KEYS = {"wide": " primary-key (k)", "o": " primary-key (x, z)"}
RULES = {
    "joined": "joined(b, z) :- wide(_, b, _, c, _, _), o(c, _, z).",
    "lone": "lone(b) :- wide(_, b, _, c, _, _), !o(c, _, _).",
    "absent": "absent(x, z) :- o(x, _, z), !wide(_, x, _, z, _, _).",
    "first": "first(v, b) :- wide(v, b, k, _, _, _), o(b, _, z), k < 9 * z.",
    "counted": "counted(b, n) :- o(b, _, _), n = count : { wide(_, b, _, c, _, _), o(c, y, _) }.",
    "summed": "summed[b] = sum e + z : { wide(_, b, _, c, e, _), o(c, _, z) }.",
    "most": "most(b, m) :- o(b, _, _), m = max e : { wide(_, b, _, c, e, _), o(c, _, _) }.",
    "top": "top[b] = max f : { wide(_, b, _, _, _, f) }.",
    "middle": "middle[b] = quantile_disc(0.5) f : { wide(_, b, _, _, _, f) }.",
    "between": "between(b) :- wide(_, b, _, _, e, f), o(b, _, z), e < z, z < f.",
    "over": "over(b, x) :- wide(_, b, _, _, e, _), o(x, _, z), e > z.",
    "mutual": "mutual(b, c) :- wide(_, b, _, c, _, _), wide(_, c, _, b, _, _).",
    "reached": "reached(b, c) :- wide(_, b, _, c, 0, _).  reached(b, d) :- reached(b, c), wide(_, c, _, d, 0, _).",
    "kept": ".decl kept(b:number, c:number, k:number, v:number) primary-key (k)"
    "  kept(b, c, k, v) :- wide(v, b, k, c, 5, _)."
    "  kept(c, b, k + 1000, 0) :- kept(b, c, k, _), o(c, _, _), k < 3000.",
    "above": "above(b, n) :- o(b, _, _), n = count : { kept(b, _, _, _) }.",
}
ASKED = (
    ("b, c, e", "wide(_, b, _, c, e, _), o(c, _, e)"),
    ("b, k, y", "wide(_, b, k, 3, _, _), o(b, y, _)"),
    ("c, z", "o(c, _, z), !wide(_, _, _, c, z, _)"),
)
ROWS = 300


def text_of(heads: list[str], *, keyed: bool) -> str:
    declared = [f".decl {name}({columns}){KEYS[name] if keyed else ''}" for name, columns in COLUMNS.items()]
    return "\n".join((*declared, *(RULES[head] for head in heads)))


def wide_row(random: Random, key: int) -> Row:
    return (*(random.randrange(n) for n in (99, 25)), key, *(random.randrange(n) for n in (25, 6, 9)))


def some_changes(random: Random, wide: dict[int, Row]) -> tuple[list[Row], list[Row]]:
    """Rows that go and rows that come: of some keys only in a column that few rules read, or in all, or none come."""
    gone, come = [], []
    for key in random.sample(sorted(wide), random.choice((1, 2, 8))):
        gone.append(row := wide[key])
        if random.random() < 0.8:
            other = wide_row(random, key)
            come.append((other[0], *row[1:]) if random.random() < 0.6 else other)
    return gone, come


@examples(50, 3)
@given(programs.seeds, st.sampled_from(("delta", "trace", "recompute", "auto")))
def test_histories_of_rows_that_change_where_nobody_reads(random: Random, maintain: str) -> None:
    heads = random.sample(sorted(RULES), 4)
    if "above" in heads and "kept" not in heads:
        heads.insert(0, "kept")
    note(f"{maintain} {heads}")
    program = parse(text_of(heads, keyed=False))
    db = lftj.Database._sized(page_rows=random.choice((4, 64)), directory_rows=4, columns_from=1 << 13)
    db.rules(text_of(heads, keyed=True), maintain={head: maintain for head in heads if head != "kept"})
    wide = {key: wide_row(random, key) for key in range(ROWS)}
    others = {(random.randrange(25), random.randrange(9)): random.randrange(9) for _ in range(60)}

    def facts() -> dict[str, list[Row]]:
        return {"wide": [*wide.values()], "o": [(x, y, z) for (x, z), y in others.items()]}

    for name, rows in facts().items():
        db.load(name, rows)
    contents = evaluate(program, facts())
    for _ in range(8):
        if random.random() < 0.4:
            shown, body = random.choice(ASKED)
            declared = text_of([], keyed=False)
            assert set(db.query(body)) == evaluate(parse(f"{declared}\nq({shown}) :- {body}."), facts())["q"]
        with db.transaction() as tx:
            for _ in range(random.choice((1, 1, 2))):
                gone, come = some_changes(random, wide)
                if random.random() < 0.3:
                    tx.upsert("wide", come)
                    gone = [row for row in gone if row[2] in {key for _, _, key, *_ in come}]
                else:
                    tx.erase("wide", gone)
                    tx.insert("wide", come)
                for row in gone:
                    wide.pop(row[2], None)
                wide |= {row[2]: row for row in come}
            if random.random() < 0.3:
                (x, z), y = random.choice(sorted(others)), random.randrange(9)
                tx.upsert("o", [(x, y, z)])
                others[x, z] = y
        before, contents = contents, evaluate(program, facts())
        for head in heads:
            assert set(db[head]) == contents[head], head
            assert set(tx.delta[head].inserted) == contents[head] - before[head], head
            assert set(tx.delta[head].erased) == before[head] - contents[head], head


def orders_of(db: Any) -> int:
    """Bytes of the key orders of `wide` that rules read: neither the declared one nor that by which keys are found."""
    return sum(size for order, size in db._state.relations["wide"].memory().items() if order[0] not in (0, 2))


@pytest.mark.parametrize("maintain", ["delta", "trace"])
@pytest.mark.parametrize("head", ["joined", "counted", "summed", "top"])
def test_a_key_takes_less_memory(maintain: str, head: str) -> None:
    """TPC-H's lines have 16 columns; q8 reads five, and each of its key orders had all of them."""
    random, found = Random(1), []
    rows = [wide_row(random, key) for key in range(3_000)]
    for keyed in (True, False):
        db = lftj.Database(text_of([], keyed=keyed))
        db.rules(RULES[head], maintain={head: maintain} if head != "top" else {})
        db.load("wide", rows)
        db.load("o", [(x, x, 1) for x in range(25)])
        for change in (tuple(range(6)), rows[7]):
            with db.transaction() as tx:
                tx.upsert("wide", [change]) if keyed else tx.insert("wide", [change])
        found.append(orders_of(db))
        assert len(db[head])
    assert 0 < found[0] < 0.75 * found[1]


@pytest.mark.parametrize("maintain", ["delta", "trace"])
def test_what_nobody_reads_is_not_followed(maintain: str) -> None:
    random = Random(1)
    db = lftj.Database(text_of([], keyed=True))
    db.rules(RULES["joined"] + RULES["summed"], maintain=dict.fromkeys(("joined", "summed"), maintain))
    rows = [wide_row(random, key) for key in range(3_000)]
    db.load("wide", rows)
    db.load("o", [(x, x, 1) for x in range(25)])
    steps = []
    for change in ([(1, *rows[5][1:])], [(2, *rows[5][1:])], [(3, 4, 5, 6, 5, 4)]):
        with db.transaction() as tx:
            tx.upsert("wide", change)
        assert set(tx.delta["wide"].inserted) == {*change}
        steps.append(sum(head["steps"] for head in tx.stats["heads"].values()))
    assert steps[1] == 0 < steps[2]


def test_a_table_of_the_same_name_may_have_another_key() -> None:
    """A plan is known by its rule: that of the first table counted rows by a column that is no key of the second."""
    db = lftj.Database._sized(columns_from=1 << 30)
    question = "select t.c, count(*) as n from u, t where t.d = u.x and u.y < 3 group by t.c"
    rest = "c int not null, d int not null, e int not null, f int not null"
    db.sql("create table u (x int primary key, y int not null, z int not null)")
    db.load("u", [(x, x, 0) for x in range(500)])
    for first, second in (("int primary key", "int not null"), ("int not null", "int primary key")):
        db.sql(f"create table t (a {first}, b {second}, {rest})")
        unique = first.endswith("key")
        rows = [(i if unique else i // 2_000, i // 2_000 if unique else i, 1, i % 500, 0, 0) for i in range(4_000)]
        db.load("t", rows)
        db.sql(f"create view n as {question}", maintain={"n": "delta"})
        for y, verb, n in ((5, "erase", 16), (1, "insert", 24), (5, "erase", 16), (1, "insert", 24)):
            with db.transaction() as tx:
                tx.upsert("u", [(1, y, 0)])
                getattr(tx, verb)("t", [rows[1]])
            assert [*db["n"]] == [(1, n)]
        assert any(len(order) < 6 for order in db._state.relations["t"].orders)
        db.sql("drop view n; drop table t")


@pytest.mark.parametrize("together", [False, True])
def test_a_table_that_recursion_reads_may_have_another_key(together: bool) -> None:
    random = Random(3)
    db = lftj.Database._sized(columns_from=1 << 30)
    query = "select b, c from t where e < 2 union select r.x, t.c from r join t on r.y = t.b where t.e < 2"
    view = f"create view v as with recursive r(x, y) as ({query}) select x, y from r"
    rest = "b int not null, c int not null, e int not null"

    def reached(rows: list[Row]) -> set[Row]:
        found, new = set[Row](), {(b, c) for _, b, c, e, _ in rows if e < 2}
        below: dict[int, list[int]] = {}
        for b, c in new:
            below.setdefault(b, []).append(c)
        while new := new - found:
            found |= new
            new = {(x, z) for x, y in new for z in below.get(y, ())}
        return found

    for key in (0, 4):
        first, last = (f"int {'primary key' if at == key else 'not null'}" for at in (0, 4))
        table = f"create table t (a {first}, {rest}, f {last})"
        texts = [*(["drop view v; drop table t"] if key else []), table, view]
        for text in ["; ".join(texts)] if together else texts:
            db.sql(text)
        rows = {}
        for k in range(1_000):
            row = [random.randrange(n) for n in (5, 40, 40, 20, 5)]
            row[key] = k
            rows[k] = tuple(row)
        db.load("t", [*rows.values()])
        for _ in range(40):
            k, like = random.choice(sorted(rows)), random.choice([k for k, row in rows.items() if row[3] < 2])
            with db.transaction() as tx:
                if random.random() < 0.5:
                    tx.erase("t", [rows.pop(like)])
                else:
                    rows[k] = (*rows[like][:key], k, *rows[like][key + 1 :])
                    tx.upsert("t", [rows[k]])
            assert {*db["v"]} == reached([*rows.values()])


def test_what_is_folded_is_in_the_key_order() -> None:
    """One that begins with the groups need not have it."""
    db = lftj.Database(".decl t(k:number, b:number, c:number, d:number, name:symbol) primary-key (k)")
    db.rules("linked(b) :- t(_, b, c, _, _), t(_, c, b, _, _).", maintain={"linked": "delta"})
    db.load("t", [(k, k % 7, k % 5, 0, f"name {k}") for k in range(1_000)])
    db.prepare()
    with db.transaction() as tx:
        tx.upsert("t", [(3, 4, 5, 6, "zoe")])
    assert any(len(order) < 5 for order in db._state.relations["t"].orders)
    db.rules("last[b] = max name : { t(_, b, _, _, name) }.")
    for name in ("zoe", "zora"):
        with db.transaction() as tx:
            tx.upsert("t", [(9, 4, 5, 6, name)])
        assert dict(db["last"])[4] == max(name, "zoe")


def test_narrow_key_orders_are_kept_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random, path = Random(1), tmp_path / "wide.lftj"
    program, heads = text_of(["joined", "counted"], keyed=True), {"joined": "delta", "counted": "trace"}
    rows = [wide_row(random, key) for key in range(ROWS)]
    with lftj.Database(program, maintain=heads, path=path) as db:
        db.load("wide", rows)
        db.load("o", [(x, x, 1) for x in range(25)])
        for key in (1, 2):
            with db.transaction() as tx:
                tx.upsert("wide", [wide_row(random, key)])
        before = [*db._state.relations["wide"].orders]
        assert min(map(len, before)) < 6
        db.checkpoint(traces=True)
    monkeypatch.setattr(Store, "reorder", lambda *_: pytest.fail("a key order was built again"))
    with lftj.Database(program, maintain=heads, path=path) as db:
        assert [*db._state.relations["wide"].orders] == before
        with db.transaction() as tx:
            tx.upsert("wide", [changed := wide_row(random, 3)])
        reference = parse(text_of(["joined", "counted"], keyed=False))
        now = {name: [*db[name]] for name in COLUMNS}
        assert changed in now["wide"]
        contents = evaluate(reference, now)
        assert {head: {*db[head]} for head in heads} == {head: contents[head] for head in heads}


def test_traces_of_an_earlier_version_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which told bindings apart by all columns, so that its plans had more depths."""
    random, path = Random(1), tmp_path / "wide.lftj"
    program, heads = text_of(["summed"], keyed=True), {"summed": "trace"}
    with monkeypatch.context() as patch:
        patch.setattr(evaluator, "body_of", lambda clause, *, keys, **options: body_of(clause, **options))
        with lftj.Database(program, maintain=heads, path=path) as db:
            db.load("wide", [wide_row(random, key) for key in range(ROWS)])
            db.load("o", [(x, x, 1) for x in range(25)])
            for key in (1, 2):
                with db.transaction() as tx:
                    tx.upsert("wide", [wide_row(random, key)])
            db.checkpoint(traces=True)
    with lftj.Database(program, maintain=heads, path=path) as db:
        for key in (3, 4):
            with db.transaction() as tx:
                tx.upsert("wide", [wide_row(random, key)])
            contents = evaluate(parse(text_of(["summed"], keyed=False)), {name: [*db[name]] for name in COLUMNS})
            assert {*db["summed"]} == contents["summed"]


@pytest.mark.parametrize("columns_from", [1 << 30, 0])
def test_a_key_may_be_broken_before_a_transaction_ends(columns_from: int) -> None:
    """In the narrow key orders, which follow what a transaction has so far, two rows of one key would be one."""
    random = Random(1)
    db = lftj.Database._sized(columns_from=columns_from)
    db.sql("create table t (v int not null, b int not null, k int primary key, c int not null, e int not null)")
    question = "select t.b, count(*) as n from t join t s on t.c = s.b and t.b = s.c group by t.b"
    db.sql(f"create view n as {question}", maintain={"n": "delta"})
    rows = {k: (random.randrange(99), random.randrange(9), k, random.randrange(9), 0) for k in range(1_000)}
    db.load("t", [*rows.values()])

    def counted(held: list[Row]) -> dict[int, int]:
        ways = Counter((b, c) for _, b, _, c, _ in held)
        found = Counter[int]()
        for (b, c), n in ways.items():
            found[b] += n * ways[c, b]
        return {b: n for b, n in found.items() if n}

    for k in range(2):
        rows[k] = (5, 6, k, 7, 5)
        with db.transaction() as tx:
            tx.upsert("t", [rows[k]])
    assert any(len(order) < 5 for order in db._state.relations["t"].orders)
    for k in range(3):
        old, new = rows[k], (100, *rows[k][1:])
        with db.transaction() as tx:
            tx.insert("t", [new])
            for asked in (question, "select b, n from n"):
                assert dict(tx.sql(asked) or ()) == counted([*rows.values(), new])
            tx.erase("t", [old])
            rows[k] = new
            for asked in (question, "select b, n from n"):
                assert dict(tx.sql(asked) or ()) == counted([*rows.values()])
        assert dict(db["n"]) == counted([*rows.values()])


def test_a_transaction_drops_a_table_whose_key_it_has_looked_at() -> None:
    db = lftj.Database()
    db.sql("create table t (id int primary key, b int not null, c text not null)")
    db.load("t", [(i, i % 7, f"x{i}") for i in range(300)])
    with db.transaction() as tx:
        tx.insert("t", [(1_000, 1, "y")])
        assert len(tx.sql("select b from t where id > 200") or ()) == 100
        tx.sql("drop table t")
        tx.sql("create table t (a int not null, id int primary key)")
        tx.insert("t", [(1, 1), (2, 2)])
        assert [*(tx.sql("select * from t") or ())] == [(1, 1), (2, 2)]
        for rows, n in ([(3, 2)], 3), ([(4, 4)], 4):
            tx.insert("t", rows)
            assert [*(tx.sql("select count(*) as n from t, t as s where t.a = s.a") or ())] == [(n,)]
        tx.erase("t", [(2, 2)])
    assert [*db["t"]] == [(1, 1), (3, 2), (4, 4)]
