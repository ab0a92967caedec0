"""Null in every position: what rules derive is what DuckDB answers to the same question, under changes and strategies.

SQL's null is unknown: a condition on it does not hold, `distinct`, `group by` and `union` take it as a value. The one
thing that is not SQL's is said in docs/types.md: a group that an aggregate asks for from outside is never null.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from tests.conftest import JIT
from tests.duckdb_databases import duckdb_database
from tests.types.cases import CASES

# head, its rule, the same as a query over q(x, y), r(x) and s(k, v)
RULES = {
    "pass": ("pass(x, y) :- q(x, y).", "select x, y from q"),
    "column": ("column(y) :- q(_, y).", "select y from q"),
    "join": ("join(x, y) :- q(x, y), r(x).", "select q.x, y from q join r on q.x = r.x"),
    "own": ("own(x) :- q(x, x).", "select x from q where x = y"),
    "pair": ("pair(x, z) :- q(x, y), q(z, y).", "select a.x, b.x from q a join q b on a.y = b.y"),
    "less": ("less(x, y) :- q(x, y), x < y.", "select x, y from q where x < y"),
    "not_equal": ("not_equal(x, y) :- q(x, y), x != y.", "select x, y from q where x != y"),
    "cross": ("cross(x, y) :- r(x), r(y), x <= y.", "select a.x, b.x from r a, r b where a.x <= b.x"),
    "none": ("none(x) :- q(x, _), !r(x).", "select x from q where not exists (select 1 from r where r.x = q.x)"),
    "none2": (
        "none2(x, y) :- q(x, y), !q(y, x).",
        "select x, y from q where not exists (select 1 from q o where o.x = q.y and o.y = q.x)",
    ),
    "any": (
        "any(x, y) :- q(x, y), !(r(z), z < x).",
        "select x, y from q where not exists (select 1 from r where r.x < q.x)",
    ),
    "lost": ("lost(y) :- q(x, y), is_null(x).", "select y from q where x is null"),
    "known": ("known(x) :- q(x, _), !is_null(x).", "select x from q where x is not null"),
    "else": ("else(coalesce(x, y)) :- q(x, y).", "select coalesce(x, y) from q"),
    "first": (
        "first(z) :- q(x, y), z = coalesce(x, y).",
        "select a from (select coalesce(x, y) as a from q) where a is not null",
    ),
    "first_less": (
        "first_less(x, y) :- q(x, y), r(z), coalesce(x, y) < z.",
        "select q.x, y from q, r where coalesce(q.x, y) < r.x",
    ),
    "first_none": (
        "first_none(x, y) :- q(x, y), is_null(coalesce(x, y)).",
        "select x, y from q where coalesce(x, y) is null",
    ),
    "first_known": (
        "first_known(x) :- q(x, y), !is_null(coalesce(y, x)).",
        "select x from q where coalesce(y, x) is not null",
    ),
    "first_joined": (
        "first_joined(x, y) :- q(x, y), r(coalesce(x, y)).",
        "select q.x, y from q join r on coalesce(q.x, y) = r.x",
    ),
    "first_lost": (
        "first_lost(x, y) :- q(x, y), !r(coalesce(x, y)).",
        "select x, y from q where not exists (select 1 from r where r.x = coalesce(q.x, y))",
    ),
    "first_most": (
        "first_most(z) :- z = max coalesce(x, y) : { q(x, y) }.",
        "select max(coalesce(x, y)) from q having max(coalesce(x, y)) is not null",
    ),
    "second": (
        "second(coalesce(coalesce(x, y), z)) :- q(x, y), q(y, z).",
        "select coalesce(a.x, a.y, b.y) from q a join q b on a.y = b.x",
    ),
    "either": ("either(x) :- r(x).\neither(x) :- q(_, x).", "select x from r union select y from q"),
    "cnt": ("cnt[k] = count : { s(k, _) }.", "select k, count(*) from s group by k"),
    "least": ("least[k] = min v : { s(k, v) }.", "select k, min(v) from s group by k having min(v) is not null"),
    "most": ("most[k] = max v : { s(k, v) }.", "select k, max(v) from s group by k having max(v) is not null"),
    "all": ("all(n) :- n = count : { s(_, _) }.", "select count(*) from s"),
    "top": ("top(v) :- v = max w : { s(_, w) }.", "select max(v) from s having max(v) is not null"),
    "asked": (
        "asked(x, n) :- r(x), n = count : { s(x, _) }.",
        "select x, (select count(*) from s where k = x) from r where x is not null",
    ),
    "nowhere": (
        "nowhere(x, y) :- q(x, y), !(is_null(x), s(y, v), r(v)).",
        "select x, y from q where not (x is null and exists (select 1 from s join r on v = r.x where k = q.y))",
    ),
    "none_of": (
        "none_of[y] = count : { q(x, y), !(is_null(x), s(y, v), r(v)) }.",
        "select y, count(*) from q where not (x is null and exists (select 1 from s join r on v = r.x where k = q.y)) "
        "group by y",
    ),
    "none_beside": (
        "none_beside(x, y) :- q(x, y), r(y), !(is_null(x), or_null(x), or_null(y), !s(y, _)).",
        "select q.x, y from q join r on y = r.x where not (q.x is null and y not in (select k from s where k = q.y))",
    ),
    "none_marked": (
        "none_marked(x, y) :- q(x, y), !(is_null(x), or_null(y), !s(y, _)).",
        "select x, y from q where x is not null or exists (select 1 from s where k is not distinct from q.y)",
    ),
    "none_counted": (
        "none_counted(n) :- n = count : { q(x, y), or_null(y), !(is_null(x), or_null(y), !s(y, _)) }.",
        "select count(*) from q where x is not null or exists (select 1 from s where k is not distinct from q.y)",
    ),
    "none_folded": (
        "none_folded(n) :- n = count : { q(x, y), !(is_null(x), or_null(y), !s(y, _)) }.",
        "select count(*) from q where x is not null or exists (select 1 from s where k is not distinct from q.y)",
    ),
    "twice": (
        "twice(n) :- n = count : { q(_, y), !(!s(y, _)) }.",
        "select count(*) from q where exists (select 1 from s where k = y)",
    ),
    "best": (
        "best(k, v) :- s(k, v), v = max w : { s(_, w) }.",
        "select k, v from s where v = (select max(v) from s)",
    ),
}
SUMS = {
    "total": ("total[k] = sum v : { s(k, v) }.", "select k, sum(v) from s group by k having sum(v) is not null"),
    "avg": ("avg[k] = mean v : { s(k, v) }.", "select k, avg(v) from s group by k having avg(v) is not null"),
    "more": ("more(x + y) :- q(x, y).", "select x + y from q where x + y is not null"),
}
SQL = {
    "number": "bigint",
    "unsigned": "ubigint",
    "float": "double",
    "symbol": "varchar",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "duration": "interval",
    "decimal(10,2)": "decimal(10,2)",
    "uuid": "uuid",
    "bytes": "blob",
}
DECLARED = ".decl q(x:{0}?, y:{0}?) .decl r(x:{0}?) .decl s(k:{0}?, v:{0}?)\n"


def rules_of(type: str) -> dict[str, tuple[str, str]]:
    return {**RULES, **(SUMS if type in ("number", "decimal(10,2)") else {})}


class Pair:
    """A database and DuckDB, with the same facts."""

    def __init__(self, type: str, rng: Random, maintain: str = "auto") -> None:
        self.type, self.rng = type, rng
        self.rules = rules_of(type)
        self.facts: dict[str, set[Any]] = {"q": set(), "r": set(), "s": set()}
        self.db = lftj.Database(DECLARED.format(type))
        self.db.rules("\n".join(rule for rule, _ in self.rules.values()), maintain=dict.fromkeys(self.rules, maintain))
        self.con = duckdb_database()

    def some(self, n: int) -> list[tuple[Any, ...]]:
        def value() -> Any:
            return None if self.rng.random() < 0.3 else CASES[self.type].of(self.rng.randrange(4))

        return [(value(), value()) for _ in range(n)]

    def step(self) -> None:
        with self.db.transaction() as tx:
            for name, width in (("q", 2), ("r", 1), ("s", 2)):
                come = {row[:width] for row in self.some(self.rng.randrange(4))}
                gone = set(self.rng.sample(sorted(self.facts[name], key=repr), min(1, len(self.facts[name]))))
                tx.erase(name, list(gone))
                tx.insert(name, list(come))
                self.facts[name] = self.facts[name] - gone | come

    def check(self) -> None:
        kind = SQL[self.type]
        for name, columns in (("q", "x, y"), ("r", "x"), ("s", "k, v")):
            typed = ", ".join(f"{c} {kind}" for c in columns.split(", "))
            self.con.execute(f"create or replace table {name} ({typed})")
            if self.facts[name]:
                marks = ", ".join("?" * len(columns.split(", ")))
                self.con.executemany(f"insert into {name} values ({marks})", [list(row) for row in self.facts[name]])
        for name, (rule, query) in self.rules.items():
            expected = {
                tuple(map(self.plain, row)) for row in self.con.execute(f"select distinct * from ({query})").fetchall()
            }
            assert {tuple(map(self.plain, row)) for row in self.db[name]} == expected, (rule, self.facts)

    def plain(self, value: Any) -> Any:
        return float(value) if isinstance(value, Decimal) and self.type == "number" else value


@pytest.mark.parametrize("type", SQL)
def test_null_is_sqls(type: str) -> None:
    pair = Pair(type, Random(type))
    for _ in range(6 if JIT else 1):
        pair.step()
        pair.check()


@pytest.mark.parametrize("maintain", ["trace", "delta", "triggers", "recompute"])
def test_null_under_every_strategy(maintain: str) -> None:
    for type in ("number", "symbol", "unsigned"):
        rng = Random(f"{maintain} {type}")
        pair = Pair(type, rng, maintain=maintain)
        for name in pair.rules:
            list(pair.db[name])
        for _ in range(8 if JIT else 1):
            pair.step()
            pair.check()


def test_null_in_recursion() -> None:
    db = lftj.Database(".decl e(x:number?, y:number?)\npath(x, y) :- e(x, y).\npath(x, z) :- path(x, y), e(y, z).")
    db.load("e", [(None, 1), (1, None), (1, 2), (2, 3), (None, None)])
    assert set(db["path"]) == {(None, 1), (1, None), (1, 2), (2, 3), (None, None), (None, 2), (None, 3), (1, 3)} | {
        (None, None)
    }
    with db.transaction() as tx:
        tx.erase("e", [(2, 3)])
        tx.insert("e", [(2, None)])
    assert set(db["path"]) == {(None, 1), (1, None), (1, 2), (2, None), (None, None), (None, 2)}


def test_a_column_admits_null_only_where_it_says_so() -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        lftj.Database(".decl q(x:date?) .decl p(x:date)\np(x) :- q(x).")
    text = str(caught.value)
    assert "`x` may be null, and column `x` of `p` is date" in text
    assert "!is_null(x)" in text
    assert "coalesce(x, ...)" in text
    assert "`date?`" in text
    db = lftj.Database(".decl q(x:date?) .decl p(x:date) .decl o(x:date?)\np(x) :- q(x), !is_null(x).\no(x) :- q(x).")
    db.load("q", [(None,), (dt.date.max,)])
    assert list(db["p"]) == [(dt.date.max,)]
    assert list(db["o"]) == [(None,), (dt.date.max,)]
    with pytest.raises(lftj.DataError, match="declare the column `date\\?`"):
        db.load("p", [(None,)])


def test_null_is_a_key_and_a_row_like_others() -> None:
    db = lftj.Database(
        '.decl price(item:symbol?) -> cost:decimal(4,2)?\nhas(i, c) :- price(i, c).\none(c) :- price[i] = c, i = "a".'
    )
    db.load("price", [(None, Decimal(1)), ("a", None), ("b", Decimal(2))])
    assert (None, Decimal(1)) in db["price"]
    assert db["price"][None] == Decimal(1)
    assert db["price"].get("a", 7) is None
    assert list(db["one"]) == [(None,)]
    with pytest.raises(lftj.DataError, match="two values under one key"):
        db.load("price", [(None, Decimal(2))])
    with db.transaction() as tx:
        tx.upsert("price", [(None, None)])
    assert list(db["has"]) == [(None, None), ("a", None), ("b", Decimal(2))]
    assert list(db.query("price(i, c), is_null(c)")) == [(None, None), ("a", None)]
    assert list(db.query("price(i, c), c < 3")) == [("b", Decimal(2))]


@pytest.mark.parametrize(
    ("kind", "extreme", "written", "zero"),
    [("number", -(2**63), str(-(2**63)), "0"), ("unsigned", 2**64 - 1, f"{2**64 - 1}u", "0u")],
)
def test_the_value_whose_code_is_null_meets_no_null(kind: str, extreme: int, written: str, zero: str) -> None:
    """A column without null may hold it; it joined with null, and a constant was found in null's row."""
    db = lftj.Database(f"""
        .decl t(x:{kind})
        .decl n(x:{kind}?)
        both(x)  :- t(x), n(x).
        only(x)  :- t(x), !n(x).
        there(x) :- t(x), n({written}).
        none(x)  :- t(x), !n({written}).
        of(x, c) :- t(x), c = count : {{ n(x) }}.
        made(x)  :- t(x), n(x - {zero}).
        ask(x)   :- t(x), seen[x - {zero}] = _.
        .decl seen(x:{kind}?) -> y:number
        seen[x] = 1 :- n(x).
        about(x, c) :- t(x), c = count : {{ n(x - {zero}) }}.
    """)
    db.load("t", [(extreme,), (1,), (2,)])
    db.load("n", [(None,), (1,)])
    for come, gone in (([], []), ([(2,)], [(None,)]), ([(None,)], [(1,)])):
        with db.transaction() as tx:
            tx.insert("n", come)
            tx.erase("n", gone)
        known = {x for (x,) in db["n"] if x is not None}
        for name in ("both", "made", "ask"):
            assert {x for (x,) in db[name]} == known & {1, 2}, name
        assert dict(db["about"]) == dict(db["of"])
        assert {x for (x,) in db["only"]} == {extreme, 1, 2} - known
        assert not len(db["there"])
        assert len(db["none"]) == 3
        assert dict(db["of"]) == {x: int(x in known) for x in (extreme, 1, 2)}


@pytest.mark.parametrize("maintain", ["auto", "delta", "trace", "triggers", "recompute"])
@pytest.mark.parametrize(("kind", "extreme"), [("number", -(2**63)), ("unsigned", 2**64 - 1)])
def test_null_meets_no_row_with_the_value_of_its_code_where_it_is_negated(
    kind: str, extreme: int, maintain: str
) -> None:
    """Null found that value in a negated atom, and where null matches null the value found null."""
    rules = """
        free(k)   :- n(k, x), !t(x, _).
        of[k]     = count : { n(k, x), !t(x, _) }.
        apart(k)  :- n(k, x), !(t(x, y), y < 5).
        alike(k)  :- n(k, x), !t(x, _), or_null(x).
        beside(x) :- t(x, _), !n(_, x), or_null(x).
    """
    db = lftj.Database(f".decl t(x:{kind}, y:number)  .decl n(k:number, x:{kind}?)")
    db.rules(rules, maintain=dict.fromkeys(("free", "of", "apart", "alike", "beside"), maintain))
    db.load("n", [(1, None), (2, 3), (3, 4)])
    db.load("t", [(3, 1)])
    for come, gone in (([], []), ([(extreme, 2)], []), ([(4, 1)], [(3, 1)]), ([], [(extreme, 2)])):
        with db.transaction() as tx:
            tx.insert("t", come)
            tx.erase("t", gone)
        there = {x for x, _ in db["t"]}
        free = [k for k, x in [(1, None), (2, 3), (3, 4)] if x not in there]
        for name in ("free", "apart", "alike"):
            assert [k for (k,) in db[name]] == free, name
        assert list(db["of"]) == [(k, 1) for k in free]
        assert {x for (x,) in db["beside"]} == there - {3, 4}


@pytest.mark.parametrize(("kind", "extreme"), [("number", -(2**63)), ("unsigned", 2**64 - 1)])
@pytest.mark.parametrize(
    "rule", ["h(v) :- w(v).", "h(v + v - v) :- w(v).", "m[0] = max v : { w(v) }.  h(v) :- m[0] = v."]
)
def test_the_value_whose_code_is_null_is_refused_where_null_may_be(kind: str, extreme: int, rule: str) -> None:
    """The greatest unsigned became null without a word."""
    db = lftj.Database(f".decl w(v:{kind})  .decl h(v:{kind}?)  .decl m(k:number) -> v:{kind}? " + rule)

    def put() -> None:
        with db.transaction() as tx:
            tx.insert("w", [(extreme,)])
            tx.erase("w", [(5,)])

    db.load("w", [(5,)])
    assert list(db["h"]) == [(5,)]
    with pytest.raises(EvaluationError, match=f"{extreme} does not fit into a column that admits null"):
        put()
    assert list(db["h"]) == [(5,)]


def test_a_head_derives_null_by_its_constant() -> None:
    db = lftj.Database("""
        .decl t(a:number, b:decimal(10,2))
        .decl g(a:number, b:symbol?)
        g(1, null).
        g(2, "x").
        left(a, b)    :- t(a, b).
        left(a, null) :- t(a, _).
        only[a] = null :- t(a, _).
    """)
    db.load("t", [(1, Decimal("1.50"))])
    assert list(db["g"]) == [(1, None), (2, "x")]
    assert list(db["left"]) == [(1, None), (1, Decimal("1.50"))]
    assert list(db["only"]) == [(1, None)]
    db.load("t", [(2, Decimal("2.50"))])
    assert list(db["only"]) == [(1, None), (2, None)]


@pytest.mark.parametrize(
    "rule",
    [
        "q(x) :- g(x, null).",
        "q(x) :- g(x, _), !g(x, null).",
        "q(x) :- g(x, y), y = null.",
        "q(x + null) :- g(x, _).",
        "q[x] = max null : { g(x, _) }.",
    ],
)
def test_null_is_refused_where_it_would_match_nothing(rule: str) -> None:
    with pytest.raises(lftj.ProgramError, match="null where a value is matched, compared or computed with"):
        lftj.Database(f".decl g(a:number, b:symbol?)\n{rule}")


def test_null_matches_null_where_the_body_says_so() -> None:
    """After every step the heads are what the definition says; `c` has no null, so that it matches none."""
    db = lftj.Database("""
        .decl a(k:number?, s:symbol?, v:number)
        .decl b(k:number?, s:symbol?, w:number?)
        .decl c(k:number)
        both(k, s, v, w) :- a(k, s, v), b(k, s, w), or_null(k), or_null(s).
        one(k, s, v, w)  :- a(k, s, v), b(k, s, w), or_null(k).
        neither(k, s, v) :- a(k, s, v), !b(k, s, _), or_null(k), or_null(s).
        missing(k, s, v) :- a(k, s, v), !b(k, s, _), or_null(k).
        there(k, v)      :- a(k, _, v), c(k), or_null(k).
        count_of[k, s] = count : { a(k, s, _), b(k, s, _), or_null(k), or_null(s) }.
        more(k, x)       :- a(k, _, _), x = k + 1, or_null(k).
    """)
    a: set[Any] = set()
    b: set[Any] = set()
    c: set[Any] = {(1,)}
    db.load("c", c)
    random = Random(3)
    for _ in range(25):
        with db.transaction() as tx:
            for rows, name, last in ((a, "a", (1, 2)), (b, "b", (None, 1, 2))):
                row = (random.choice((None, 1, 2)), random.choice((None, "x")), random.choice(last))
                (tx.erase if row in rows else tx.insert)(name, [row])
                rows ^= {row}
        joined = [(k, s, v, w) for k, s, v in a for k2, s2, w in b if (k, s) == (k2, s2)]
        keys = {(k, s) for k, s, _ in b}
        assert {*db["both"]} == {*joined}
        assert {*db["one"]} == {row for row in joined if row[1] is not None}
        assert {*db["neither"]} == {row for row in a if row[:2] not in keys}
        assert {*db["missing"]} == {row for row in a if row[:2] not in keys or row[1] is None}
        assert {*db["there"]} == {(k, v) for k, _, v in a if k == 1}
        assert {*db["count_of"]} == {(*key, sum(row[:2] == key for row in joined)) for key in {r[:2] for r in joined}}
        assert {*db["more"]} == {(k, k + 1) for k, _, _ in a if k is not None}


@pytest.mark.parametrize("maintain", ["auto", "delta", "trace", "recompute"])
@pytest.mark.parametrize(
    ("body", "derived"),
    [
        ('cat(d, "") = x, c(d, x)', {(1,), (4,)}),
        ('cat(d, "") = x, or_null(d), c(d, x)', {(1,), (4,)}),
        ("strlen(d) = n, to_string(n) = x, c(d, x)", set()),
        ('cat(d, "") = x, contains("a", d), c(d, x)', {(1,), (4,)}),
        ('substr(cat("z", d), 1, 9) = x, !is_null(i), c(d, x)', {(1,), (4,)}),
    ],
)
def test_no_text_is_computed_of_null_that_another_atom_keeps_out(
    body: str, derived: set[tuple[int]], maintain: str
) -> None:
    """Texts are computed before all atoms are joined, so that the text of null was asked for, which is an error."""
    db = lftj.Database(".decl o(i: number, d: symbol?)\n.decl c(d: symbol, x: symbol)")
    db.rules(f"p(i) :- o(i, d), {body}.", maintain={"p": maintain})
    with db.transaction() as tx:
        tx.insert("o", [(1, "a"), (2, None), (3, "y")])
        tx.insert("c", [("a", "a"), ("b", "b")])
    with db.transaction() as tx:
        tx.insert("o", [(4, "a"), (5, None)])
    assert set(db["p"]) == derived


def test_a_condition_on_null_in_braces_holds_for_what_is_not_folded() -> None:
    """`!is_null(b)` was dropped together with the condition on the folded `c`, and the group of null was there."""
    db = lftj.Database("""
        .decl t(b:symbol?, c:number?)
        most[b]    = max c : { t(b, c), !is_null(b) }.
        total[b]   = sum c : { t(b, c), !is_null(b) }.
        of_null[b] = max c : { t(b, c), is_null(b) }.
        nothing[b] = max c : { t(b, c), is_null(c) }.
    """)
    db.load("t", [(None, 1), ("a", 2), ("a", None), (None, None)])
    assert list(db["most"]) == [("a", 2)]
    assert list(db["total"]) == [("a", 2)]
    assert list(db["of_null"]) == [(None, 1)]
    assert list(db["nothing"]) == []


@pytest.mark.parametrize("maintain", ["auto", "delta", "trace", "recompute"])
def test_groups_of_null_stay_where_braces_compute_texts_and_count(maintain: str) -> None:
    """The atom is read a second time for its wildcard, and a group whose key is null did not meet itself."""
    db = lftj.Database()
    db.rules(
        """
        .decl r(a:number?, c:symbol?, d:number?, k:number)
        total[a] = sum k : { r(a, c, _, k), substr(c, 0, 1) = "x" }.
        """,
        maintain={"total": maintain},
    )
    db.load("r", [(None, "xy", 1, 1), (None, "xy", None, 1), (1, "x", 1, 2), (2, None, 1, 3), (None, "y", 1, 4)])
    assert {*db["total"]} == {(None, 2), (1, 2)}
    with db.transaction() as tx:
        tx.insert("r", [(None, "x", 2, 5), (3, "x", None, 1)])
        tx.erase("r", [(None, "xy", 1, 1), (1, "x", 1, 2)])
    assert {*db["total"]} == {(None, 6), (3, 1)}
    assert {*tx.delta["total"].erased} == {(None, 2), (1, 2)}


@pytest.mark.parametrize(
    ("rule", "rows", "changed"),
    [
        ("h[x] = min v : { n(x, v) }.", [(1, 2)], [(1, 2), (2, 5)]),
        ("h[x] = max v : { n(x, v) }.", [(1, 3)], [(1, 3), (2, 5)]),
        ("h[x] = cat s : { m(x, s) }.", [(1, "ab")], [(1, "ab")]),
        ("h(x) :- n(x, _), !o(x).", [(1,)], [(2,)]),
    ],
)
def test_a_rule_over_rows_without_null_is_replaced_in_one_transaction(
    rule: str, rows: list[Any], changed: list[Any]
) -> None:
    """The rows without null had left the state with the rule, and were taken for a relation that was there."""
    facts = """
        .decl n(x:number, v:number?)  n(1, 2). n(1, 3). n(1, null).
        .decl m(x:number, s:symbol?)  m(1, "a"). m(1, "b"). m(1, null).
        .decl o(x:number?)            o(null).
    """
    db = lftj.Database(facts + rule)
    for expected in (rows, changed, changed):
        with db.transaction() as tx:
            tx.remove_rules("h")
            tx.rules(rule)
            if expected == changed:
                tx.insert("n", [(2, 5), (2, None)])
                tx.insert("o", [(1,)])
        assert list(db["h"]) == expected
    with db.transaction() as tx:
        tx.insert("n", [(3, 4)])
        tx.insert("m", [(3, "c")])
    assert (3,) in {row[:1] for row in tx.delta["h"].inserted}


def test_rows_without_null_of_a_table_that_is_dropped_and_created_anew() -> None:
    """They have the name they had, and other columns."""
    db = lftj.Database()
    db.sql("create table n (x bigint primary key, v bigint)")
    db.sql("insert into n values (1, 2), (2, null)")
    db.rules("h[x] = min v : { n(x, v) }.")
    assert list(db["h"]) == [(1, 2)]
    with db.transaction() as tx:
        tx.remove_rules("h")
        tx.sql("drop table n")
        tx.sql("create table n (x bigint primary key, v bigint, w bigint not null)")
        tx.sql("insert into n values (1, 7, 1), (2, null, 1)")
        tx.rules("h[x] = min v : { n(x, v, _) }.")
    assert list(db["h"]) == [(1, 7)]


@pytest.mark.parametrize("query", ["n(x, NULL)", "n(x, _), !n(x, NULL)", "n(NULL, NULL)"])
@pytest.mark.parametrize(("type", "extreme"), [("number", -(2**63)), ("unsigned", 2**64 - 1)])
def test_a_query_with_the_value_whose_code_is_null_is_refused(type: str, extreme: int, query: str) -> None:
    """It was refused as a negation of what it did not negate, and where it did, null matched the value."""
    db = lftj.Database(f".decl n(x:{type}, y:{type}?)")
    db.load("n", [(1, None), (2, 3)])
    with pytest.raises(lftj.ProgramError) as caught:
        db.query(query.replace("NULL", str(extreme)))
    assert len(caught.value.diagnostics) == 1
    assert caught.value.what == f"column `y` of `n` never holds {extreme}"
    assert caught.value.why == f"it is {type}?, where the code of this value is that of null"
    assert caught.value.remedy == f"ask for null with `is_null`, or declare the column `{type}`"


@pytest.mark.parametrize(
    ("group", "without"),
    [
        ("r(x, z), e(z)", [None, 9]),
        ("r(x, z), z > 0", [None, 9]),
        ("r(x, z), e(z), !is_null(x)", [None, 9]),
        ("r(x, z), e(z), is_null(x)", [None, 7, 9]),
        ("r(x, z), e(z), or_null(x)", [9]),
        ("n(_z, x), e(_)", [None, 9]),  # null in `z` is a row all the same
        ("n(z, x), is_null(z)", [None, 9]),
        ("is_null(x), e(z), z = 1", [7, 9]),
        ("e(z), x > z + 6", [None, 7]),
        ("e(_z), x > 7", [None, 7]),
        ("e(_), x > 7", [None, 7]),  # it was taken apart, and false for null
        ("v(9), x > 7", [7]),  # no variable of its own
        ("r(x, z), !(r(x, w), w > z)", [None, 9]),
        ("r(x, z), !(e(w), w > z, is_null(x))", [None, 9]),
    ],
)
@pytest.mark.parametrize("maintain", ["auto", "delta", "trace", "recompute"])
def test_null_equals_nothing_in_a_negated_conjunction(group: str, without: list[int | None], maintain: str) -> None:
    """It matched null there, where the conjunction has variables of its own and so is a relation."""
    db = lftj.Database(
        ".decl v(x:number?)  .decl r(x:number?, y:number)  .decl n(y:number?, x:number?)  .decl e(y:number)"
    )
    db.rules(f"h(x) :- v(x), !({group}).  c(k) :- k = count : {{ v(x), !({group}) }}.", maintain={"h": maintain})
    rows: dict[str, list[tuple[int | None, ...]]] = {
        "v": [(None,), (7,), (9,)],
        "r": [(None, 1), (7, 1)],
        "n": [(None, None), (None, 7)],
        "e": [(1,)],
    }
    for name, given in rows.items():
        db.load(name, given)
    assert [x for (x,) in db["h"]] == without
    for name in ("r", "e", "v", "n"):
        for change in ("erase", "insert"):
            with db.transaction() as tx:
                getattr(tx, change)(name, rows[name])
            list(db["h"])
        assert [x for (x,) in db["h"]] == without
        assert list(db["c"]) == [(len(without),)]


@pytest.mark.parametrize("where", ["r(x, x)", "r(x, _), s(x)", "r(x, y), s(x), s(y), or_null(y)"])
def test_the_groups_of_a_sum_are_those_in_which_null_matches_null(where: str) -> None:
    """What binds a group was asked for once more, without what lets null match null."""
    db = lftj.Database(".decl r(x:number?, y:number?)  .decl s(x:number?)  .decl v(x:number)")
    db.rules(f"h(x, n) :- {where}, n = sum x : {{ v(x) }}, or_null(x).")
    db.load("r", [(None, None), (1, 1), (2, 3)])
    db.load("s", [(None,), (1,)])
    db.load("v", [(1,)])
    assert list(db["h"]) == [(None, 0), (1, 1)]
    with db.transaction() as tx:
        tx.erase("r", [(None, None)])
    assert list(db["h"]) == [(1, 1)]
