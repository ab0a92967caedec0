"""What happens when something goes wrong: the message, and a database that is as it was.

Catches: half of a program or a load that stays behind, a stop that is noticed late, a message that names the wrong
values.
"""

from __future__ import annotations

import datetime as dt
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.errors import EvaluationError, MemoryLimitError, TimeoutExpired, UnknownRelationError

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]
PROGRAM = ".decl e(x:number, y:number)\ntri(x, y, z) :- e(x, y), e(y, z), e(x, z)."


def small() -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("e", EDGES)
    return db


def state(db: lftj.Database) -> tuple[Any, ...]:
    return tuple((name, tuple(db[name])) for name in db), db.directives, len(db._strata.clauses)


# Programs and loads ---------------------------------------------------------------------------------------------


def test_a_program_with_an_error_adds_nothing() -> None:
    db = small()
    before = state(db)
    with pytest.raises(lftj.ProgramError):
        db.rules(".decl new(x:number)\nnew(1). e(7, 8). p(x) :- new(x). q(y) :- e(x, x).\n.output p")
    assert state(db) == before


def test_a_key_order_that_does_not_fit_adds_nothing() -> None:
    db = small()
    before = state(db)
    with pytest.raises(lftj.DataError):
        db.rules("p(x) :- e(x, _).", key_orders={"p": ("x", "y")})
    with pytest.raises(UnknownRelationError):
        db.rules("p(x) :- e(x, _).", key_orders={"q": ("x",)})
    assert state(db) == before


def test_a_load_with_an_error_changes_nothing() -> None:
    db = small()
    before = state(db)
    with pytest.raises(lftj.DataError):
        db.load("e", [(5, 6), (7, "x")])
    assert state(db) == before


def test_facts_for_a_relation_that_is_still_empty() -> None:
    """An empty relation was taken for an unknown one, because it is falsy: KeyError."""
    db = lftj.Database(".decl p() .decl e(x:number, y:number) q() :- p().")
    db.rules("p(). e(1, 2).")
    assert list(db["q"]) == [()]
    assert list(db["e"]) == [(1, 2)]


# Errors of evaluation -------------------------------------------------------------------------------------------


def test_division_by_zero_names_rule_and_values() -> None:
    db = small()
    db.rules("half(x, q) :- e(x, y), z = y - 3, e(z, _), q = x / z.\nquot(x, y) :- e(x, y), w = 6 / (y - 2), w > 0.")
    with pytest.raises(EvaluationError) as caught:
        db["quot"]
    assert str(caught.value) == (
        "<rules>:2:1: in `quot(x, y) :- e(x, y), w = 6 / (y - 2), w > 0.` with x = 1, y = 2: division by zero\n"
        "  why: the quotient has no value; nothing was changed\n"
        "  do: exclude the divisor 0 in the body, e.g. `y != 0`"
    )
    assert list(db["tri"]) == [(1, 2, 3)]
    assert list(db["half"]) == [(3, 3)]
    assert isinstance(caught.value, ArithmeticError)


def test_division_by_zero_of_constants_names_no_values() -> None:
    db = small()
    with pytest.raises(EvaluationError) as caught:
        db.query("e(x, y), y > 1 / 0").count()
    assert caught.value.where == "<query>:1:1: in `e(x, y), y > 1 / 0`"


def test_a_remainder_by_zero_is_a_division_by_zero() -> None:
    with pytest.raises(EvaluationError, match="with x = 1, y = 2: division by zero"):
        list(small().query("e(x, y), z = x % (y - 2)"))


def test_values_below_and_beside_the_failing_depth_are_not_named() -> None:
    """Registers of deeper depths hold 0 or the values of an earlier binding; they were shown as values."""
    db = lftj.Database(".decl e(x:number, y:number)")
    db.load("e", [(1, 1), (1, 2), (2, 0)])
    with pytest.raises(EvaluationError) as caught:
        list(db.query("e(x, y), z = 6 / y, e(w, z)", order=("x", "y", "z", "w")))
    assert caught.value.where == "<query>:1:1: in `e(x, y), z = 6 / y, e(w, z)` with x = 2, y = 0"


def test_a_float_without_a_value() -> None:
    db = lftj.Database(".decl f(x:float)")
    db.load("f", [(float("inf"),), (0.5,)])
    with pytest.raises(EvaluationError) as caught:
        db.query("f(x), y = x - x").count()
    assert str(caught.value) == (
        "<query>:1:1: in `f(x), y = x - x` with x = inf: an arithmetic result is not a number, or not in the range of "
        "its type\n"
        "  why: `inf - inf` could not be stored as a key; nothing was changed\n"
        "  do: bound the arguments in the body"
    )


def test_a_text_without_a_value() -> None:
    db = lftj.Database(".decl s(x:symbol)\nn(y) :- s(x), y = to_number(x).")
    db.load("s", [("12",), ("x1",)])
    with pytest.raises(EvaluationError) as caught:
        db["n"]
    assert str(caught.value) == (
        "<rules>:2:1: in `n(y) :- s(x), y = to_number(x).` with x = 'x1': a functor of the rule has no value: "
        '`to_number("x1")`\n'
        "  why: 'x1' is not an integer; nothing was changed\n"
        "  do: exclude such texts in the body, e.g. with `match`"
    )
    assert list(db["s"]) == [("12",), ("x1",)]
    assert list(db.query('s(x), match("[0-9]+", x), y = strlen(x)')) == [("12", 2)]


def test_a_month_that_no_calendar_has() -> None:
    """Such texts were to be excluded, and there is none."""
    db = lftj.Database(".decl d(x:date)\nn(y) :- d(x), y = add_months(x, 1).")
    db.load("d", [(dt.date(9999, 12, 31),)])
    with pytest.raises(EvaluationError) as caught:
        db["n"]
    assert str(caught.value).endswith("\n  do: bound the arguments in the body")


def test_a_count_beyond_int64() -> None:
    db = lftj.Database(".decl n(x:number) .decl none(x:number)")
    db.load("n", np.arange(2**12)[:, None])
    text = ", ".join(f"n(x{i})" for i in range(6))
    with pytest.raises(EvaluationError) as caught:
        db.query(text).count()
    assert str(caught.value) == (
        f"<query>:1:1: in `{text}`: the count exceeds the int64 range\n"
        "  why: counts are multiplied, not enumerated, and can be larger than any answer that could be listed\n"
        "  do: count parts of the body separately"
    )
    assert db.query("n(a), n(b), n(c), n(d), n(e)").count() == 2**60
    # Raised before the part that makes it zero was looked at.
    assert db.query(f"{text}, none(y)").count() == 0
    assert db.query("n(x), x < 3").count() == 3


def test_unknown_relations() -> None:
    db = small()
    with pytest.raises(UnknownRelationError) as caught:
        db["trie"]
    assert str(caught.value) == (
        "there is no relation `trie`\n  why: no rule or declaration names it\n  do: did you mean `tri`?"
    )
    with pytest.raises(KeyError):
        db.load("f", [(1, 2)])
    assert "tri" in db
    assert "trie" not in db


# Limits ---------------------------------------------------------------------------------------------------------


def test_a_memory_limit_changes_nothing() -> None:
    db = lftj.Database(PROGRAM, memory_limit=1 << 20)
    db.load("e", EDGES)
    before = state(db)
    many = np.stack([np.arange(200_000), np.arange(200_000)], axis=1)
    with pytest.raises(MemoryLimitError) as caught:
        db.load("e", many)
    assert caught.value.why == "the change was not made; the database is as it was before"
    assert state(db) == before
    db.load("e", [(4, 5)])
    assert len(db["e"]) == 5


@pytest.mark.jit_only
def test_a_memory_limit_in_the_middle_of_a_rule() -> None:
    db = lftj.Database(".decl n(x:number)  p(x, y) :- n(x), n(y).", memory_limit=1 << 20)
    db.load("n", np.arange(600)[:, None])
    with pytest.raises(MemoryLimitError):
        db["p"]
    assert db.query("n(x), n(y)").count() == 360_000
    assert len(db["n"]) == 600


ITEMS = """
.decl item(name:symbol, code:number, price:number) primary-key (code)
chain(x, z) :- item(_, x, y), item(_, y, z), item(_, x, z).
dear[p] = max c : { item(_, c, p) }.
"""


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.load_changes("item", [{"name": "x", "code": 7, "price": 7, "op": "u"}]),
        lambda db: upserted(db, "item", ("x", 7, 7)),
        lambda db: db.explain(),
        lambda db: db.query("item(n, c, p), item(n, p, c), c < p").explain(),
    ],
    ids=["load_changes", "upsert", "explain", "explain a query"],
)
def test_a_memory_limit_in_whatever_call_is_told_as_one(call: Callable[[lftj.Database], object]) -> None:
    """They raised what the pages say, which is no error of lftj's."""
    db = lftj.Database(ITEMS)
    db.load("item", [(f"s{i % 7}", i, i) for i in range(600)])
    before, refused = list(db["item"]), 0
    for room in (0, 2_000, 20_000, 1 << 30):
        db._arena.limit = db._arena.used + room
        try:
            call(db)
        except MemoryLimitError:
            refused += 1
            assert list(db["item"]) == before
    assert refused < 4, "there is room in the end"


def upserted(db: lftj.Database, name: str, row: tuple[Any, ...]) -> None:
    with db.transaction() as tx:
        tx.upsert(name, [row])


def endless() -> lftj.Database:
    """`n(a), ..., a + b + c + d + e < 0` has no answer and takes a lifetime to find that out."""
    db = small()
    db.rules(".decl n(x:number)")
    db.load("n", np.arange(1_000)[:, None])
    db.prepare()  # compiling takes longer than these tests wait
    return db


ENDLESS = "n(a), n(b), n(c), n(d), a + b + c + d < 0"
MANY_ROWS = "n(a), n(b), n(c)"


@pytest.mark.jit_only  # it is looked at after so many steps, which interpreted are nine seconds
@pytest.mark.parametrize("ask", [lambda q: q.count(), list], ids=["count", "list"])
def test_a_time_limit(ask: Callable[[Any], Any]) -> None:
    db = endless()
    list(db.query("n(a), n(b), a + b < 0, b < 5"))  # compiled by now
    start = time.monotonic()
    with pytest.raises(TimeoutExpired) as caught:
        ask(db.query(ENDLESS, timeout=0.3))
    assert time.monotonic() - start < 0.8
    assert str(caught.value) == (
        "the time limit of 0.3 s ran out after 0 rows\n"
        "  why: evaluation was stopped; the database is as it was before\n"
        "  do: raise `timeout=`, or look at `explain()` for a cheaper key order"
    )
    assert list(db["tri"]) == [(1, 2, 3)]
    assert db.query("n(x), x < 3").count() == 3


def test_a_time_limit_on_rules_leaves_them_to_be_evaluated_later() -> None:
    db = endless()
    db.rules(f"few(x) :- n(x), x < 3.\nnever(a) :- {ENDLESS}.")
    with pytest.raises(TimeoutExpired):
        db.evaluate(timeout=0.2)
    assert len(db["few"]) == 3
    assert db.evaluate("few", timeout=30) is None


@pytest.mark.jit_only
@pytest.mark.parametrize("text", [ENDLESS, MANY_ROWS, "n(a), n(b), n(c), n(d), s(a, b, c, d)"])
def test_ctrl_c_stops_a_join(text: str) -> None:
    """Within 0.2 s (0.5 s allowed: two cores, other work), and the database answers as before."""
    db = endless()
    db.rules(".decl s(a:number, b:number, c:number, d:number)")
    db.load("s", np.array([[i % 7, i % 11, i % 13, 0] for i in range(1_000)]))
    before = state(db)
    list(db.query("n(a), n(b), a + b < 0, b < 5"))
    if "s(" in text:
        db.rules("guard(a) :- n(a), n(b), n(c), n(d), a * b + c * d < -1.")
        text = "guard(a)"
    pressed = []

    timer = threading.Timer(0.4, lambda: (pressed.append(time.monotonic()), signal.pthread_kill(main, signal.SIGINT)))
    main = threading.main_thread().ident
    assert main is not None
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(db.query(text))
    stopped = time.monotonic()
    assert stopped - pressed[0] < 0.5
    assert state_without(db, "guard") == before[0]
    assert db.query("n(x), x < 3").count() == 3


def state_without(db: lftj.Database, name: str) -> tuple[Any, ...]:
    return tuple((other, tuple(db[other])) for other in db if other != name)


def test_a_failure_while_a_secondary_order_follows_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts were replaced before the key orders: an error in between left facts that the content did not have."""
    from scantree.version import Version

    db = small()
    db.load("e", [(i, i + 1) for i in range(100, 200)])
    assert db.query("e(x, y), y = 3", order=("y", "x")).count() == 2
    assert len(db.memory()["e"]) == 2
    before = state(db)

    def broken(self: Version, new: Version) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Version, "delta", broken)
        with pytest.raises(KeyboardInterrupt):
            db.load("e", [(7, 8)])
    assert state(db) == before
    db.load("e", [(7, 9)])
    assert (7, 8) not in db["e"]
    assert db.query("e(x, y), y = 9", order=("y", "x")).count() == 1


def test_no_memory_for_a_secondary_order_drops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order goes, the load succeeds: it was a raw ArenaFullError with the facts replaced already."""
    from lftj.store import stored
    from scantree.memory import ArenaFullError
    from scantree.version import Version

    monkeypatch.setattr(stored, "BEHIND_PART", 0.0)
    db = small()
    db.load("e", [(i, i + 1) for i in range(100, 200)])
    assert db.query("e(x, y), y = 3", order=("y", "x")).count() == 2
    update, calls = Version.update, []

    def second_fails(self: Version, *args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise ArenaFullError(2, 1)
        return update(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Version, "update", second_fails)
        db.load("e", [(7, 3)])
    assert len(calls) == 2
    assert list(db.memory()["e"]) == ["x, y"]
    assert db.query("e(x, y), y = 3", order=("y", "x")).count() == 3


# Readers --------------------------------------------------------------------------------------------------------


def test_what_was_handed_out_stays() -> None:
    db = small()
    edges, triangles, query = db["e"], db["tri"], db.query("e(x, y)")
    asked = list(query)
    db.load("e", [(2, 4), (0, 1)])
    db.rules("e(9, 9).")
    assert list(edges) == [(1, 2), (1, 3), (2, 3), (3, 4)]
    assert list(triangles) == [(1, 2, 3)]
    assert list(query) == asked
    assert list(db["tri"]) == [(1, 2, 3), (2, 3, 4), (9, 9, 9)]
    assert len(db.query("e(x, y)")) == 7


def test_readers_in_threads_during_loads() -> None:
    """Each reader sees whole states: as many triangles as the edges it saw make, whatever the writer does."""
    db = lftj.Database._sized(".decl n(x:number)  pair(x, y) :- n(x), n(y).", page_rows=4, directory_rows=4)
    db.load("n", [(0,)])
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            held = []
            while not done.is_set():
                relation = db["pair"]
                k = round(len(relation) ** 0.5)
                assert list(relation) == [(x, y) for x in range(k) for y in range(k)]
                held.append((relation, k))
            for relation, k in held:
                assert len(list(relation)) == k * k
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(1, 25):
        db.load("n", [(i,)])
        time.sleep(0.002)
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    used = db.memory()["total"]["pages"]
    del readers
    assert used < 3_000_000
