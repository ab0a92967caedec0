"""Queries with parameters against the same queries with the values written in the text.

What each part catches: the values of every type in every place (registers, bounds, texts); answers that are long, walks
that are, and terms without a value, which leave the kept walk; commits, loads, rules and snapshots between two
questions; and what is refused, in full text.
"""

from __future__ import annotations

import datetime as dt
import random
import threading
from typing import Any

import pytest

import lftj
from lftj.evaluate import kept_walk
from lftj.results import answers

PROGRAM = """
.decl e(a:number, b:number)
.decl w(a:number, x:float)
.decl u(a:number, n:unsigned)
.decl s(who:symbol, b:number)
.decl v(who:symbol) -> level:number
two(x, z) :- e(x, y), e(y, z).
"""
KEYS = 8


def filled(seed: int, **options: Any) -> lftj.Database:
    rng = random.Random(seed)
    db = lftj.Database._sized(PROGRAM, **options) if options else lftj.Database(PROGRAM)
    db.load("e", {(rng.randrange(KEYS), rng.randrange(KEYS)) for _ in range(24)})
    db.load("w", {(rng.randrange(KEYS), rng.choice((-2.5, 0.0, 0.5, 1.5))) for _ in range(10)})
    db.load("u", {(rng.randrange(KEYS), rng.choice((0, 3, 2**64 - 1))) for _ in range(10)})
    db.load("s", {(rng.choice("abcd"), rng.randrange(KEYS)) for _ in range(12)})
    db.load("v", {name: rng.randrange(KEYS) for name in "abc"}.items())
    return db


# The query, and the values that each of its parameters may have: their texts and themselves.
NUMBERS = [(str(n), n) for n in (-1, 0, 1, 2, 3, 5, 7)]
FLOATS = [("-2.5", -2.5), ("0.0", -0.0), ("0.5", 0.5), ("1.5", 1.5), ("2.0", 2)]
UNSIGNED = [("0u", 0), ("3u", 3), (f"{2**64 - 1}u", 2**64 - 1)]
TEXTS = [(f'"{text}"', text) for text in ("a", "b", "d", "nobody")] + [(r'"sa\"id"', 'sa"id')]
CASES: list[tuple[str, dict[str, list[tuple[str, Any]]]]] = [
    ("e($x, y)", {"x": NUMBERS}),
    ("e(x, $y)", {"y": NUMBERS}),
    ("e($x, $y)", {"x": NUMBERS, "y": NUMBERS}),
    ("e($x, $x)", {"x": NUMBERS}),
    ("e($x, y), e(y, z), !e($x, z)", {"x": NUMBERS}),
    ("two($x, z), e(z, w), w != $w", {"x": NUMBERS, "w": NUMBERS}),
    ("e(x, y), x >= $low, y < $high", {"low": NUMBERS, "high": NUMBERS}),
    ("e(x, y), x + $n = y", {"n": NUMBERS}),
    ("e(x, y), z = x * $n - $n, z > y", {"n": NUMBERS}),
    ("e($x + 1, y)", {"x": NUMBERS}),
    ("e(_, _), w($x, y)", {"x": NUMBERS}),
    ("!e($x, $x), w(a, y)", {"x": NUMBERS}),
    ("w(a, $x)", {"x": FLOATS}),
    ("w(a, x), x > $low, z = x * $low", {"low": FLOATS}),
    ("u(a, $n)", {"n": UNSIGNED}),
    ("u(a, n), n >= $low", {"low": UNSIGNED}),
    ("s($who, b)", {"who": TEXTS}),
    ("s($who, b), !s($other, b)", {"who": TEXTS, "other": TEXTS}),
    ("s(who, b), who != $who", {"who": TEXTS}),
    ("s(who, b), who < $who, b != $b", {"who": TEXTS, "b": NUMBERS}),
    ("s(who, b), z = $who, z > who", {"who": TEXTS}),
    ("v[$who] = n", {"who": TEXTS}),
    ("s(who, b), v[who] > $least", {"least": NUMBERS}),
    ("s(who, b), cat(who, $end) = z, z != $not", {"end": TEXTS, "not": TEXTS}),
    ("s(who, b), contains($part, who)", {"part": TEXTS}),
    ("s(who, b), strlen($who) = b", {"who": TEXTS}),
    ("s(who, b), n = to_number(cat(to_string(b), to_string(b + $b))), b + $b >= 0", {"b": NUMBERS}),
]


@pytest.mark.parametrize(("text", "values"), CASES, ids=[text for text, _ in CASES])
@pytest.mark.parametrize("sizes", [{}, {"page_rows": 4, "directory_rows": 4, "buffer_rows": 3}], ids=["large", "tiny"])
def test_values_are_as_if_written(text: str, values: dict[str, list[tuple[str, Any]]], sizes: dict[str, int]) -> None:
    db = filled(1, **sizes)
    prepared = db.prepare_query(text)
    rng = random.Random(text)
    for round in range(6):
        chosen = {name: rng.choice(choices) for name, choices in values.items()}
        written = text
        for name in sorted(chosen, key=len, reverse=True):
            written = written.replace(f"${name}", chosen[name][0])
        given = {name: value for name, (_, value) in chosen.items()}
        expected = db.query(written)
        for answer in (db.query(text, **given), prepared(**given), db.snapshot().query(text, **given)):
            assert list(answer) == list(expected), given
            assert len(answer) == answer.count() == len(expected)
            assert bool(answer) == bool(expected)
            assert list(answer.relation().columns.values()) == list(expected.relation().columns.values())
        assert db.query(text, **given).count() == len(expected)
        with db.transaction() as tx:  # the next round is over other rows
            tx.insert("e", [(round, 7 - round)])
            tx.erase("e", [next(iter(db["e"]))])
            tx.insert("s", [("abcd"[round % 4], round)])


def test_forms_of_an_answer() -> None:
    db = filled(2)
    answer = db.prepare_query("s($who, b)")(who="a")
    rows = [(b,) for who, b in db["s"] if who == "a"]
    assert rows
    assert list(answer) == rows
    assert answer == set(rows)
    assert rows[0] in answer
    assert (99,) not in answer
    assert answer.df()["b"].tolist() == answer.pl()["b"].to_list() == answer.arrow()["b"].to_pylist()
    assert answer.numpy().tolist() == [list(row) for row in rows]
    assert answer.relation().scan("count") == len(rows)
    assert answer.stats["rows"] == len(rows)
    assert "$who" in str(answer.explain())
    assert "query(b:number)" in repr(answer)


@pytest.mark.jit_only
def test_long_answers_and_long_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    db = lftj.Database(".decl e(a:number, b:number)")
    db.load("e", [(a, b) for a in range(40) for b in range(40)])
    for text in "e(x, y), x != $n, e(y, z)", "e($n, x), e(x, y)":
        expected = db.query(text.replace("$n", "7"))
        assert len(expected) > kept_walk.ROOM
        assert list(db.prepare_query(text)(n=7)) == list(db.query(text, n=7)) == list(expected)
        assert db.query(text, n=7).count() == len(expected)
    # A walk of more steps than the first slice has, with a short answer.
    text = "e(x, y), e(y, z), e(z, x), x + y + z > $n"
    assert list(db.prepare_query(text)(n=116)) == list(db.query(text.replace("$n", "116"))) == [(39, 39, 39)]


@pytest.mark.jit_only
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("step", ["lower", "walk_once"])
def test_a_question_that_was_interrupted_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, step: str, error: type[BaseException]
) -> None:
    db = filled(12)
    prepared = db.prepare_query("e($x, y), e(y, z)")
    expected = {x: list(db.query(f"e({x}, y), e(y, z)")) for x in range(KEYS)}

    def failing(*args: object, **options: object) -> None:
        raise error

    for x in range(KEYS):
        with monkeypatch.context() as patch:
            patch.setattr(kept_walk, step, failing)
            with pytest.raises(error):
                prepared(x=x)
        assert list(prepared(x=x)) == expected[x]
        db.load("e", [(100 + i, 1) for i in range(100 * 2**x)])  # so many that the next question plans again


def test_a_term_without_a_value_is_the_same_error() -> None:
    db = filled(3)
    prepared = db.prepare_query("e(x, y), z = x / $n")
    assert list(prepared(n=2)) == list(db.query("e(x, y), z = x / 2"))
    with pytest.raises(lftj.Error, match="division by zero"):
        prepared(n=0)
    assert list(prepared(n=1)) == list(db.query("e(x, y), z = x / 1"))
    with pytest.raises(lftj.Error, match="is not a regular expression"):
        db.query("s(who, b), match($pattern, who)", pattern="(").relation()


def test_it_stays_valid() -> None:
    db = filled(4)
    prepared = db.prepare_query("two($x, z)")

    def expected(x: int) -> list[tuple[Any, ...]]:
        return [(z,) for y, z in sorted({(0, c) for a, b in db["e"] if a == x for d, c in db["e"] if d == b})]

    assert list(prepared(x=1)) == expected(1)
    db.load("e", [(1, 2), (2, 77)])
    assert (77,) in prepared(x=1)
    assert list(prepared(x=1)) == expected(1)
    with db.transaction() as tx:
        tx.insert("e", [(1, 500), (500, 501)])
        assert (501,) not in prepared(x=1)  # the transaction has not committed
    assert (501,) in prepared(x=1)
    with db.transaction() as tx:
        tx.erase("e", db["e"])
    assert list(prepared(x=1)) == []
    db.load("e", [(a, a + 1) for a in range(500)])
    assert list(prepared(x=1)) == [(3,)]
    with db.transaction() as tx:
        tx.remove_rules("two")
        tx.rules("two(x, x) :- e(x, _).")
    assert list(prepared(x=1)) == [(1,)]


def test_columns_of_another_type() -> None:
    """The relation is declared anew, as a rule's head that comes back with another type."""
    db = lftj.Database('.decl e(a:number)  .decl t(a:symbol)  e(1).  t("1").  p(x) :- e(x).')
    prepared = db.prepare_query("p($x)")
    assert prepared.parameters == {"x": "number"}
    assert len(prepared(x=1)) == 1
    snapshot = db.snapshot()
    db._evaluator.state = db._state.without_rules("p")._replace(
        relations={name: relation for name, relation in db._state.relations.items() if name != "p"}
    )
    with pytest.raises(lftj.ProgramError, match="relation `p`"):
        prepared(x=1)
    db.rules("p(x) :- t(x).")
    assert prepared.parameters == {"x": "symbol"}
    assert len(prepared(x="1")) == 1
    with pytest.raises(lftj.DataError, match="which is an int, not a symbol"):
        prepared(x=1)
    assert len(snapshot.prepare_query("p($x)")(x=1)) == 1


def test_a_text_that_no_row_has_is_not_kept() -> None:
    db = filled(5)
    prepared = db.prepare_query("s($who, b)")
    before = len(db._symbols)
    assert [list(prepared(who=f"stranger {i}")) for i in range(50)] == [[]] * 50
    assert len(db._symbols) == before
    lazy = db.query("s($who, b)", who="late")
    db.load("s", [("late", 5)])
    assert list(lazy) == [(5,)]


def test_queries_are_kept_by_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "KEPT_QUERIES", 3)
    db = filled(6)
    prepared = db.prepare_query("e($x, y)")
    expected = list(prepared(x=1))
    assert db._compiled("e($x, y)", None) is db._compiled("e($x, y)", None)
    for i in range(10):
        assert list(db.query(f"e($x, y), y >= {-i}", x=1)) == expected
        assert len(db._known) <= 3
    assert list(prepared(x=1)) == expected


def test_a_query_that_is_asked_again_and_again_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went in the order in which it had come, whoever used it."""
    monkeypatch.setattr(answers, "KEPT_QUERIES", 3)
    db = filled(6)
    often = db._compiled("e($x, y)", None)
    for i in range(10):
        list(db.query(f"e(x, y), y >= {i}"))
        assert db._compiled("e($x, y)", None) is often


def test_many_threads_ask_one_prepared_query() -> None:
    db = filled(7)
    snapshot = db.snapshot()
    prepared = snapshot.prepare_query("e($x, y), e(y, z)")
    expected = {x: list(snapshot.query(f"e({x}, y), e(y, z)")) for x in range(KEYS)}
    wrong: list[int] = []

    def ask(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(200):
            x = rng.randrange(KEYS)
            if list(prepared(x=x)) != expected[x]:
                wrong.append(x)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.jit_only
def test_order_and_timeout() -> None:
    db = filled(8)
    text = "e($x, y), e(y, z)"
    for order in ("y", "z"), ("z", "y"):
        prepared = db.prepare_query(text, order=order)
        assert list(prepared(x=1)) == list(db.query(text, x=1, order=order)) == list(db.query("e(1, y), e(y, z)"))
        assert [v for v in prepared(x=1).stats["key_order"] if not v.startswith("$")] == list(order)
    with pytest.raises(lftj.DataError):
        db.prepare_query(text, order=("y", "nobody"))
    with pytest.raises(lftj.DataError, match="`timeout` cannot be -1"):
        db.prepare_query(text, timeout=-1)
    db.load("e", [(a, b) for a in range(300) for b in range(300)])
    with pytest.raises(TimeoutError):
        db.prepare_query("e(x, y), e(y, z), e(z, $w)", timeout=0.0)(w=3)


@pytest.mark.parametrize("option", ["order", "timeout"])
def test_an_option_given_with_the_values(option: str) -> None:
    """It is not proposed again: a prepared query has its options from the start."""
    asked = filled(1).prepare_query("e($x, y)")
    with pytest.raises(lftj.DataError) as caught:
        asked(x=1, **{option: 1})
    assert str(caught.value) == (
        f"in `e($x, y)`: the query has no parameter `${option}`\n"
        f"  why: `{option}=` is an option of a query, and a prepared one has it for all its calls\n"
        f"  do: give `{option}=` to `prepare_query`"
    )


def test_parameters_and_columns_of_a_prepared_query() -> None:
    prepared = filled(9).prepare_query("w(a, x), s($who, a), x > $least")
    assert list(prepared.parameters.items()) == [("who", "symbol"), ("least", "float")]
    assert prepared.columns == {"a": "number", "x": "float"}
    assert repr(prepared) == ("PreparedQuery('w(a, x), s($who, a), x > $least') of (who:symbol, least:float)")
    assert "$who" in str(prepared.explain(who="a", least=1))


def test_a_query_has_columns_as_its_answer_and_a_prepared_query_have() -> None:
    """It had none, though it is a table as a relation is."""
    db = lftj.Database('.decl t(a:number, at:timestamp("Europe/Berlin")?, kg:decimal(5,2)?)  t(1, null, null).')
    for text in ("t(a, x, y)", "t(1, x, _), is_null(x)", "t(a, _, _), y = a + 1", "t(1, _, _)", "t($a, x, y)"):
        query = db.query(text, **({"a": 1} if "$" in text else {}))
        columns = query.columns
        assert repr(query).endswith("not evaluated yet")
        assert list(columns.items()) == list(query.relation().columns.items()) == list(query.columns.items())
        assert columns == db.prepare_query(text).columns
    asked = db.query("t(a, x, y)")
    with db.transaction() as tx:
        tx.erase("t", [(1, None, None)])
    assert asked.columns == {"a": "number", "x": 'timestamp("Europe/Berlin")?', "y": "decimal(5,2)?"}
    with pytest.raises(lftj.DataError, match="has no column 'z'"):
        asked.columns["z"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "s($who, b)",
        {},
        "in `s($who, b)`: the parameter `$who` has no value\n"
        "  why: every parameter of a query is given its value with each question\n"
        "  do: give `who=...`",
    ),
    (
        "s($who, $b)",
        {"whom": "a"},
        "in `s($who, $b)`: the query has no parameter `$whom`\n"
        "  why: it has the parameters `$who`, `$b`\n"
        "  do: did you mean `who`?",
    ),
    (
        "s(who, b)",
        {"tiemout": 3},
        "in `s(who, b)`: the query has no parameter `$tiemout`\n"
        "  why: its text has no `$`\n"
        "  do: did you mean `timeout`?",
    ),
    (
        "s(who, b)",
        {"x": 3},
        "in `s(who, b)`: the query has no parameter `$x`\n"
        "  why: its text has no `$`\n"
        "  do: leave `x=` out, or write `$x` where its value is to stand",
    ),
    (
        "s($who, b)",
        {"who": 3},
        "<query>:1:3: in `s($who, b)`: `$who` cannot be 3, which is an int, not a symbol\n"
        "  why: it is a symbol here, as column `who` of `s`; a symbol is text (str)\n"
        "  do: give `who=` a symbol",
    ),
    (
        "e($x, y)",
        {"x": 2**63},
        "<query>:1:3: in `e($x, y)`: `$x` cannot be 9223372036854775808, which does not fit into number\n"
        "  why: it is a number here, as column `a` of `e`; a number is an integer from -9223372036854775808 to "
        "9223372036854775807\n"
        "  do: give `x=` a number",
    ),
    (
        "$a = $b",
        {"a": 1, "b": 2},
        "<query>:1:1: error: the type of `$a` is not known\n    $a = $b\n    ^^\n"
        "  why: a parameter has the type of the column or the term that it stands in or is compared with\n"
        "  do: use `$a` as an argument of an atom, or compare it with a variable of one\n\n"
        "<query>:1:6: error: the type of `$b` is not known\n    $a = $b\n         ^^\n"
        "  why: a parameter has the type of the column or the term that it stands in or is compared with\n"
        "  do: use `$b` as an argument of an atom, or compare it with a variable of one",
    ),
    (
        "e($timeout, y)",
        {"timeout": 1},
        "<query>:1:3: error: a parameter cannot be named `$timeout`\n    e($timeout, y)\n      ^^^^^^^^\n"
        "  why: `timeout=` is an option of queries\n"
        "  do: give it another name, such as `$timeout_`",
    ),
    (
        "e($x.y, y)",
        {"x": 1},
        "<query>:1:3: error: `$x.y` is no parameter\n    e($x.y, y)\n      ^^^^\n"
        "  why: a parameter is `$` and one name, by which its value is given\n"
        "  do: write `$x_y`",
    ),
    (
        "s($x, $x)",
        {"x": 1},
        "<query>:1:7: error: type conflict: `$x` is number here, as column `b` of `s`, and symbol elsewhere\n"
        "    s($x, $x)\n          ^^\n"
        "  symbol, as column `who` of `s`: <query>:1:3\n    s($x, $x)\n      ^^\n"
        "  why: a column, and a variable of a rule, holds values of one type\n"
        "  do: use one type, or convert with `to_number`, `to_unsigned`, `to_float` or `to_string`",
    ),
]


@pytest.mark.parametrize(("text", "given", "message"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_is_refused(text: str, given: dict[str, Any], message: str) -> None:
    db = filled(10)
    with pytest.raises(lftj.DataError if "error:" not in message else lftj.ProgramError) as caught:
        db.query(text, **given)
    assert str(caught.value) == message
    if "error:" not in message:
        assert isinstance(caught.value, TypeError)
        with pytest.raises(lftj.DataError) as again:
            db.prepare_query(text)(**given)
        assert str(again.value) == message


def test_a_parameter_that_may_be_a_date_or_a_timestamp() -> None:
    db = lftj.Database(".decl day(d:date)  .decl year(y:number)  year(2024).")
    with pytest.raises(lftj.ProgramError) as caught:
        db.query("year(y), year($when) < y", when=3)
    assert str(caught.value) == (
        "<query>:1:15: error: the type of `$when` is not known: it may be date or timestamp here\n"
        "    year(y), year($when) < y\n"
        "                  ^^^^^\n"
        "  why: a parameter has the type of the column or the term that it stands in or is compared with\n"
        "  do: use `$when` as an argument of an atom, or compare it with a variable of one"
    )
    with pytest.raises(lftj.ProgramError, match=r"`\$when` is not known: it may be date or timestamp here"):
        db.prepare_query("year(y), add_months($when, y) = add_months($when, 1)")
    db.load("day", [(dt.date(2023, 5, 1),)])
    assert list(db.query("day($when), year(y), year($when) < y", when=dt.date(2023, 5, 1))) == [(2024,)]


def test_a_parameter_in_a_rule() -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        lftj.Database(".decl e(a:number, b:number)  p(x) :- e(x, $who).")
    assert str(caught.value) == (
        "<rules>:1:43: error: the parameter `$who` stands outside of a query\n"
        "    .decl e(a:number, b:number)  p(x) :- e(x, $who).\n"
        "                                              ^^^^\n"
        "  why: a parameter gets its value when a query is asked, and a rule holds for all values\n"
        '  do: use a variable or a constant here, and ask the rule\'s head: `db.query("p($who, x)", who=...)`'
    )


def test_a_value_is_never_text() -> None:
    db = filled(11)
    hostile = '"), s(who, b), v("a'
    assert list(db.query("s($who, b)", who=hostile)) == []
    db.load("s", [(hostile, 3)])
    assert list(db.query("s($who, b)", who=hostile)) == [(3,)]
