"""Maintenance that fails, at every step and in every way: contents, records and memory are as before.

Catches: half of a change adopted, records staged by one head and kept when the next one fails, pages that nobody
gives back, arrays of an interrupted run that the next one takes for its own.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError, MemoryLimitError, TimeoutExpired
from lftj.join import trace_update
from lftj.maintain import derivations, step
from lftj.maintain.clause_trace import ClauseTrace
from lftj.maintain.derivations import KeptDerivations
from scantree.check import check_arena
from scantree.filter import BranchFilter
from scantree.memory import GRAIN, Arena, ArenaFullError, Size
from scantree.version import Version
from sensitivity import index
from sensitivity.index import SensitivityIndexes
from tests.conftest import JIT
from tests.injected import Sweep, fails_at
from tests.trace.test_programs import check_traces, forced

PROGRAM = """
.decl e(x:number, y:number)
.decl s(x:number, name:symbol)
path(x, z) :- e(x, y), e(y, z).
tri(x, y, z) :- e(x, y), e(y, z), e(x, z).
named(x, n) :- path(x, _), s(x, n).
named(x, "none") :- e(x, _), x > 5.
out(n) :- named(_, n).
"""
EDGES = [(i, i + d) for i in range(24 if JIT else 8) for d in (1, 2)]
FAR = 1 << 62


def database(granularity: str | None = "interval") -> lftj.Database:
    """A database whose heads are all traced, and maintained once, in tiny buffers."""
    db = lftj.Database._sized(PROGRAM, page_rows=4, directory_rows=4, buffer_rows=3)
    db._evaluator.trace_room = 4
    db.load("e", EDGES)
    db.load("s", [(1, "a"), (2, "b"), (3, "a")])
    for edge in ((30, 31), (31, 30), (30, 30)):
        forced(db, granularity)
        with db.transaction() as tx:
            tx.insert("e", [edge])
            tx.insert("s", [(30 + edge[0] - edge[1], "c")])
            tx.insert("named", [(*edge[:1], "fact")])
    assert {stats["strategy"] for stats in tx.stats["heads"].values()} == {"trace"}
    forced(db, granularity)
    return db


def change(tx: Any, far: bool) -> None:
    tx.insert("e", [(2, 7), (50, 1), (1, 50)] + ([(FAR, 1), (1, FAR)] if far else []))
    tx.erase("e", [(3, 4), (30, 31)])
    tx.insert("s", [(50, "new")])
    tx.erase("s", [(1, "a")])
    tx.insert("named", [(0, "fact")])


def followed(db: lftj.Database) -> dict[str, KeptDerivations]:
    """What is kept of heads whose derivations are followed."""
    return {head: held for head, held in db._kept.heads.items() if isinstance(held, KeptDerivations)}


def picture(db: lftj.Database) -> dict[str, Any]:
    """All rows, records and supports; and the memory of all but branch filters."""
    gc.collect()
    db._arena.collect()
    state, heads = db._state, followed(db)
    filters = {f.page: f.mask + 1 for held in heads.values() for t in held.parts for f in t.filters.values()}
    return {
        "rows": {name: relation.content.columns().tolist() for name, relation in state.relations.items()},
        "facts": {name: relation.facts.columns().tolist() for name, relation in state.relations.items()},
        "stale": state.stale,
        "records": {
            head: [[t.indexes.records(s).tolist() for s in t.indexes.packings] for t in held.parts]
            for head, held in heads.items()
        },
        "supports": {head: held.support.columns().tolist() for head, held in heads.items() if held.support is not None},
        "memory": db._arena.used - sum(8 * GRAIN * Size(1, words).grains for words in filters.values()),
    }


def check_pages(db: lftj.Database) -> None:
    """Nothing lives in the arena but relations, supports and indexes, and each page is held as often as counted."""
    gc.collect()
    heads = followed(db).values()
    versions = [v for r in db._state.relations.values() for v in (r.facts, *map(r.order, [*r.orders]))]
    versions += [held.support for held in heads if held.support is not None]
    versions += [t.indexes._view(s) for held in heads for t in held.parts for s in t.indexes.packings]
    assert not any(trace.filters for held in heads for trace in held.parts)
    check_arena(db._arena, list({version.root: version for version in versions}.values()))


def contents(db: lftj.Database) -> dict[str, list[Any]]:
    return {name: list(db[name]) for name in db}


def expected(far: bool) -> dict[str, list[Any]]:
    """The contents after the change, by evaluation from scratch."""
    before, fresh = database(), lftj.Database(PROGRAM)
    for name in ("e", "s", "named"):
        relation = before._relations[name]
        symbols = {"e": [], "s": [1], "named": [1]}[name]
        rows = [
            tuple(before._evaluator.symbols.text(v) if c in symbols else v for c, v in enumerate(row))
            for row in relation.facts.columns().T.tolist()
        ]
        fresh.load(name, rows)
    with fresh.transaction() as tx:
        change(tx, far)
    return contents(fresh)


def commit(db: lftj.Database, far: bool) -> BaseException | None:
    """Make the change; what was raised, without the frames that hold on to pages."""
    try:
        with db.transaction() as tx:
            change(tx, far)
    except BaseException as error:
        error.__traceback__ = error.__context__ = None
        return error
    return None


STEPS: list[tuple[Any, str]] = [
    (trace_update, "maintain"),
    (index, "stage_sites"),
    (SensitivityIndexes, "stage"),
    (SensitivityIndexes, "repacked"),
    (ClauseTrace, "maintain"),
    (BranchFilter, "add"),
    (Version, "update"),
    (step, "trace_change"),
    (derivations, "change_of_rows"),
    (derivations, "count_in"),
    (Arena, "room"),
]
LATE = TimeoutExpired("late", why="slow", remedy="wait")
ERRORS = [KeyboardInterrupt(), RuntimeError("bug"), LATE, ArenaFullError(2, 1)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_a_failure_at_every_step(owner: Any, name: str, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that maintains is called anew for every few records, so that it fails in all stages of its work."""
    then = expected(far=True)
    db = database(None if name == "add" else "interval")
    before, state = picture(db), db._state
    # Each head is maintained after some others have staged their changes.
    sweep, number = Sweep(owner, name, after=after), 0
    while True:
        number += 1
        error = ERRORS[number % (3 if name in ("update", "room") else 4)]
        with monkeypatch.context() as patch:
            sweep.inject(patch, error)
            raised = commit(db, far=True)
        if raised is None:
            break
        assert raised is error or isinstance(raised, MemoryLimitError)
        assert db._state is state
        error.__traceback__ = None
        assert picture(db) == before, number
    assert number > 1
    assert contents(db) == then
    assert check_traces(db) == 5
    del state
    if name != "add":
        check_pages(db)


@pytest.mark.parametrize("granularity", ["node", "interval"])
def test_failures_leave_nothing_for_the_next_run(granularity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failure is followed by a transaction that must be right, on the same traces."""
    db = database(granularity)
    for number in range(1, 40 if JIT else 8):
        error = ERRORS[number % 4]
        with monkeypatch.context() as patch:
            fails_at(patch, trace_update, "maintain", number, error, after=bool(number % 2))
            raised = commit(db, far=number % 5 == 0)
        assert (raised is None) or raised is error or isinstance(raised, MemoryLimitError)
        error.__traceback__ = None
        forced(db, granularity)
        with db.transaction() as tx:
            tx.insert("e", [(number % 7, number % 5), (number, 3)])
            tx.erase("e", [(number % 5, number % 5 + 1), (2, 7), (FAR, 1)])
        assert {stats["strategy"] for stats in tx.stats["heads"].values()} == {"trace"}
        assert check_traces(db) == 5
        forced(db, granularity)


@pytest.mark.parametrize("name", ["_filters", "_run"])
def test_a_failure_after_records_were_packed_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next change needs no wider fields: it must not be written in the layout that went with the failed one."""
    db = database("node")
    for after in (False, True):
        error = ArenaFullError(2, 1)
        with monkeypatch.context() as patch:
            fails_at(patch, ClauseTrace, name, 1, error, after=after)
            assert isinstance(commit(db, far=True), MemoryLimitError)
        forced(db, "node")
        with db.transaction() as tx:
            tx.insert("e", [(3 + after, 1), (4 + after, 2)])
            tx.erase("e", [(5 + 2 * after, 6 + 2 * after)])
        assert {stats["strategy"] for stats in tx.stats["heads"].values()} == {"trace"}
        assert check_traces(db) == 5


class Injector:
    """Raises KeyboardInterrupt at one moment: a call, a return, or the return of a C function, at one line of lftj's.

    That is where CPython runs signal handlers. Without a moment it notes all there are.
    """

    FILES = (
        "/lftj/maintain/clause_trace.py",
        "/lftj/maintain/derivations.py",
        "/lftj/maintain/prepare.py",
        "/lftj/maintain/choose.py",
        "/sensitivity/index.py",
    )

    LATER = ("__del__", "give_back", "drop_sites")  # whenever something is collected; what they raise is not passed on

    def __init__(self, moment: tuple[str, int, str] | None = None) -> None:
        self.moment, self.raised = moment, False
        self.moments: dict[tuple[str, int, str], None] = {}

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event == "c_call" or name.startswith("<") or name in self.LATER or not file.endswith(self.FILES):
            return
        moment = (file, frame.f_lineno, event)
        self.moments[moment] = None
        if moment == self.moment:
            sys.setprofile(None)
            self.raised = True
            raise KeyboardInterrupt


def commit_under(injector: Injector, db: lftj.Database) -> None:
    tx = db.transaction()
    tx.__enter__()
    change(tx, far=False)
    try:
        sys.setprofile(injector)
        tx.__exit__(None, None, None)
    except KeyboardInterrupt as stop:
        stop.__traceback__ = None
    finally:
        sys.setprofile(None)


@pytest.mark.slow
def test_ctrl_c_at_every_moment_of_maintenance() -> None:
    every = Injector()
    commit_under(every, database())
    db = database()
    before, state = picture(db), db._state
    then = expected(far=False)
    for moment in list(every.moments)[:: 1 if JIT else 8]:
        injector = Injector(moment)
        commit_under(injector, db)
        assert injector.raised, moment
        now = picture(db)
        if now == before:
            assert db._state is state
        else:  # some traces are adopted: before the state is, they belong to no content
            if db._state is state:
                assert all(now[what] == before[what] for what in ("rows", "facts", "stale")), moment
            else:
                assert contents(db) == then, moment
            assert check_traces(db) <= 5
            assert commit(db, far=True) is None
            assert check_traces(db) == 5
            del state
            check_pages(db)
            db = database()
            before, state = picture(db), db._state
    assert len(every.moments) > 50
    assert commit(db, far=False) is None
    assert contents(db) == then
    assert check_traces(db) == 5
    del state
    check_pages(db)


def test_a_memory_limit() -> None:
    """The records do not fit, whatever part of them was staged before."""
    db = database()
    before, state = picture(db), db._state
    for spare in (0, 2_000, 8_000, 20_000, 40_000):
        db._arena.limit = db._arena.used + spare
        raised = commit(db, far=True)
        db._arena.limit = None
        if raised is None:
            break
        assert isinstance(raised, MemoryLimitError)
        assert db._state is state
        assert picture(db) == before
    else:
        assert commit(db, far=True) is None
    assert contents(db) == expected(far=True)
    assert check_traces(db) == 5


def test_an_error_of_a_rule_in_the_middle_of_maintenance() -> None:
    """A division by zero that only a changed row meets: heads maintained before it are put back."""
    db = lftj.Database._sized(
        ".decl e(x:number, y:number)\na(x, z) :- e(x, y), e(y, z).\nb(x, z) :- a(x, y), z = 12 / y, z > 1.",
        page_rows=2,
        directory_rows=2,
    )
    db.load("e", [(1, 2), (2, 3), (3, 4)])
    for edge in ((4, 5), (5, 6)):
        forced(db)
        with db.transaction() as tx:
            tx.insert("e", [edge])
    before = picture(db)
    for _ in range(2):
        with pytest.raises(EvaluationError, match="division by zero") as caught, db.transaction() as tx:
            tx.insert("e", [(5, 0)])
        caught.value.__traceback__ = caught.value.__context__ = None
        del caught, tx
        assert picture(db) == before
        assert check_traces(db) == 2
    forced(db)
    with db.transaction() as tx:
        tx.insert("e", [(5, 1)])
    assert list(tx.delta["b"].inserted) == [(4, 12), (5, 6)]
    assert check_traces(db) == 2
