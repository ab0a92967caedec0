"""Commits that fail: at every step, in every way, the database is as it was before.

Catches: half of a commit that others see, pages or key orders that a failed one leaves behind, a lock that is not
released.
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.errors import EvaluationError, MemoryLimitError, TimeoutExpired
from lftj.evaluate.evaluator import Evaluator
from lftj.maintain import commit as commits
from lftj.maintain.clause_trace import ClauseTrace
from lftj.maintain.commit import Commit
from lftj.store.stored import StoredRelation
from scantree.memory import Arena, ArenaFullError
from scantree.scan import Monoid
from scantree.version import Store, Version
from tests.conftest import JIT
from tests.injected import Sweep

PROGRAM = """
.decl e(x:number, y:number)
.decl s(x:number, name:symbol)
path(x, z) :- e(x, y), e(y, z).
named(x, n) :- path(x, _), s(x, n).
named(x, "none") :- e(x, _), x > 5.
out(n) :- named(_, n).
"""
EDGES = [(i, i + 1) for i in range(40)]


def database(**options: Any) -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=4, **options)
    db.rules(PROGRAM, maintain={"path": "trace"})
    db.load("e", EDGES)
    db.load("s", [(1, "a"), (2, "b"), (3, "a")])
    db.evaluate()
    db.query("e(x, y), y = 3", order=("y", "x")).count()
    db._relations["e"].scan_version((1, 0), Monoid.SUM, 0)
    db._relations["path"].scan_version((0, 1), Monoid.MAX, 1)
    return db


def change(tx: Any) -> None:
    tx.insert("e", [(2, 7), (50, 1)])
    tx.erase("e", [(3, 4)])
    tx.insert("s", [(50, "new")])
    tx.insert("named", [(0, "fact")])


def picture(db: lftj.Database) -> dict[str, Any]:
    """All rows of everything, in every key order, by raw codes; and the memory."""
    gc.collect()
    state = db._state
    return {
        "rows": {
            name: [relation.facts.columns().tolist()]
            + [(order, relation.order(order).columns().tolist()) for order in sorted(relation.orders)]
            + [(scan, relation.scan_version(*scan).scan()) for scan in sorted(relation.built - set(relation.orders))]
            for name, relation in state.relations.items()
        },
        "stale": state.stale,
        "clauses": state.strata.clauses,
        "order": state.strata.order,
        "directives": state.directives,
        "memory": db.memory(),
    }


def contents(db: lftj.Database) -> dict[str, list[Any]]:
    return {name: list(db[name]) for name in db}


def works(db: lftj.Database) -> dict[str, list[Any]]:
    """What the database holds after the change is made for good, by another thread: no lock was left."""
    done: list[dict[str, list[Any]]] = []

    def work() -> None:
        with db.transaction() as tx:
            change(tx)
        done.append(contents(db))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert done
    return done[0]


def expected() -> dict[str, list[Any]]:
    db = database()
    with db.transaction() as tx:
        change(tx)
    fresh = lftj.Database(PROGRAM)
    fresh.load("e", [row for row in EDGES if row != (3, 4)] + [(2, 7), (50, 1)])
    fresh.load("s", [(1, "a"), (2, "b"), (3, "a"), (50, "new")])
    fresh.load("named", [(0, "fact")])
    assert contents(db) == contents(fresh)
    return contents(db)


def commit(db: lftj.Database) -> BaseException | None:
    """Make the change; what was raised, without the frames that hold on to pages."""
    try:
        with db.transaction() as tx:
            change(tx)
    except BaseException as error:
        error.__traceback__ = error.__context__ = None
        return error
    return None


STEPS: list[tuple[Any, str]] = [
    (Version, "update"),
    (Version, "delta"),
    (Store, "assemble"),
    (StoredRelation, "successor"),
    (StoredRelation, "order"),
    (ClauseTrace, "record"),
    (Evaluator, "plan"),
    (commits, "follow"),
    (Commit, "run"),
    (Arena, "room"),
]
LATE = TimeoutExpired("late", why="slow", remedy="wait")
ERRORS = [KeyboardInterrupt(), RuntimeError("bug"), LATE, ArenaFullError(2, 1)]


@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_a_failure_at_every_step(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after = expected()
    db = database()
    before, state = picture(db), db._state
    sweep, number = Sweep(owner, name, after=True), 0
    while True:
        number += 1
        # Without memory for a key order the order goes; that is no failure.
        error = ERRORS[number % (3 if name in ("update", "room") else 4)]
        db._evaluator._plans.clear()  # what was planned before a failure is kept
        with monkeypatch.context() as patch:
            sweep.inject(patch, error)
            raised = commit(db)
        if raised is None:
            break
        assert raised is error or isinstance(raised, MemoryLimitError)
        assert db._state is state
        error.__traceback__ = None
        assert picture(db) == before
    assert number > 1
    assert contents(db) == after


class Injector:
    """Raises KeyboardInterrupt at one moment: a call, a return, or the return of a C function, at one line of lftj's.

    That is where CPython runs signal handlers; it does so nowhere else but at the end of a loop's round. The call of
    `__exit__` itself is left out: no Python code can guard the moment before its own first instruction. Without a
    moment it notes all there are.
    """

    def __init__(self, moment: tuple[str, int, str, str] | None = None) -> None:
        self.moment, self.raised = moment, False
        self.moments: dict[tuple[str, int, str, str], None] = {}

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event == "c_call" or (event == "call" and name == "__exit__") or name.startswith("<"):
            return
        rooms = ("/lftj/maintain/", "/lftj/store/", "/lftj/program/", "/lftj/evaluate/")
        if not any(room in file for room in rooms) and not file.endswith("/lftj/transaction.py"):
            return
        moment = (file, frame.f_lineno, event, name)
        self.moments[moment] = None
        if moment == self.moment:
            sys.setprofile(None)
            self.raised = True
            raise KeyboardInterrupt


def commit_under(injector: Injector, db: lftj.Database) -> None:
    tx = db.transaction()
    tx.__enter__()
    change(tx)
    try:
        sys.setprofile(injector)
        tx.__exit__(None, None, None)
    except KeyboardInterrupt as stop:
        stop.__traceback__ = None
    finally:
        sys.setprofile(None)


def test_ctrl_c_at_every_moment() -> None:
    """A commit is seen as a whole or not at all, whichever moment Ctrl-C comes at, and the database goes on."""
    every = Injector()
    commit_under(every, database())
    after = expected()
    db = database()
    before, state = picture(db), db._state
    seen_after = 0
    # Every moment of the publication, where what strategies staged takes effect; of the rest a part.
    published = [m for m in every.moments if m[3] in ("publish", "adopt", "hold_for")]
    for moment in dict.fromkeys([*published, *list(every.moments)[:: 4 if JIT else 40]]):
        injector = Injector(moment)
        commit_under(injector, db)
        assert injector.raised, moment
        if db._state is state:
            assert picture(db) == before, moment
        else:
            seen_after += 1
            assert contents(db) == after, moment
            db = database()
            before, state = picture(db), db._state
    assert len(every.moments) > 100
    assert seen_after < 20
    assert works(db) == after


# Limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.jit_only
def test_a_memory_limit() -> None:
    db = lftj.Database(".decl n(x:number)  pair(x, y) :- n(x), n(y).", memory_limit=1 << 20)
    db.load("n", np.arange(100)[:, None])
    assert len(db["pair"]) == 10_000
    before, state = picture(db), db._state
    with pytest.raises(MemoryLimitError) as caught, db.transaction() as tx:
        tx.insert("n", np.arange(200_000)[:, None])
    assert caught.value.why == "the change was not made; the database is as it was before"
    del caught
    assert picture(db) == before
    with pytest.raises(MemoryLimitError) as caught, db.transaction() as tx:
        tx.insert("n", np.arange(600)[:, None])  # the facts fit, the pairs do not
    del caught
    assert picture(db) == before
    assert db._state is state
    with db.transaction() as tx:
        tx.insert("n", [(100,)])
    assert len(tx.delta["pair"].inserted) == 201


@pytest.mark.jit_only
def test_a_time_limit() -> None:
    db = lftj.Database(".decl n(x:number)  never(a) :- n(a), n(b), n(c), n(d), n(e), a + b + c + d + e < 0.")
    db.prepare()
    with db.transaction() as tx:
        tx.insert("n", [(i,) for i in range(5)])
    before, state = picture(db), db._state
    with pytest.raises(TimeoutExpired) as caught, db.transaction(timeout=0.2) as tx:
        tx.insert("n", np.arange(2_000)[:, None])
    assert str(caught.value) == (
        "the time limit of 0.2 s ran out after 0 rows\n"
        "  why: evaluation was stopped; the database is as it was before\n"
        "  do: raise `timeout=`, or look at `explain()` for a cheaper key order"
    )
    del caught
    assert db._state is state
    assert picture(db) == before
    with db.transaction(timeout=60) as tx:
        tx.insert("n", [(7,)])
    assert list(tx.delta) == ["n"]


def test_an_error_of_a_rule() -> None:
    db = lftj.Database(".decl e(x:number, y:number)  q(x, z) :- e(x, y), z = 6 / y, z > 0.")
    db.load("e", [(1, 2)])
    assert list(db["q"]) == [(1, 3)]
    before = picture(db)
    with pytest.raises(EvaluationError, match="division by zero") as caught, db.transaction() as tx:
        tx.insert("e", [(1, 0)])
    del caught
    assert picture(db) == before


def test_a_transaction_repairs_what_could_not_be_evaluated() -> None:
    """A load is not evaluated at once: the row that a rule fails at is there, and a transaction must get it out."""
    db = lftj.Database(".decl e(x:number, y:number)  q(z) :- e(_, y), z = 6 / y, z > 0.  r(z) :- q(z), z < 9.")
    db.load("e", [(1, 2), (1, 0)])
    with pytest.raises(EvaluationError):
        db["r"]
    with db.transaction() as tx:
        tx.erase("e", [(1, 0)])
    assert set(tx.delta) == {"e"}
    with pytest.raises(EvaluationError) as caught:
        tx.delta["r"]
    assert str(caught.value) == (
        "the change of `r` is not known\n"
        "  why: it could not be evaluated before the transaction: division by zero\n"
        "  do: read `r` to see what it is now"
    )
    assert list(db["r"]) == [(3,)]
    with db.transaction() as tx:
        tx.insert("e", [(1, 3)])
    assert list(tx.delta["r"].inserted) == [(2,)]


def test_rules_that_could_not_be_evaluated_can_be_removed() -> None:
    db = lftj.Database(".decl e(x:number)  q(z) :- e(x), z = 6 / x, z > 0.  r(z) :- q(z).  q(5).")
    db.load("e", [(0,)])
    with db.transaction() as tx:
        tx.remove_rules("q")
    assert list(db["q"]) == [(5,)]
    assert list(db["r"]) == [(5,)]
    assert list(tx.delta) == []
    with pytest.raises(EvaluationError, match="the change of `q` is not known"):
        tx.delta["q"]


def test_ctrl_c_in_the_block() -> None:
    db = database()
    before, state = picture(db), db._state

    def pressed(tx: Any) -> None:
        change(tx)
        tx.preview()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
        pressed(tx)
    assert db._state is state
    assert picture(db) == before
    assert works(db) == expected()
