"""Walks that are cut into ranges: rows in the order of one walk, counts, counters, errors and limits as of one.

Catches: a key at a seam that is met twice or never, rows out of order, a count that is added up wrongly, an error of
one range that is lost or told differently, workers that go on after a limit.
"""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError, TimeoutExpired
from lftj.join import ranges
from lftj.join.run import Limits
from lftj.plan import cuts
from lftj.program.evaluation import Evaluation
from scantree.crew import Shift
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.engine.programs import seeds
from tests.injected import fails_at

EDGES = [(x, y) for x in range(30) for y in range(30) if (x * 7 + y * 3) % 5 < 2]
TRIANGLE = ".decl e(x:number, y:number)\ntri(x, y, z) :- e(x, y), e(y, z), e(x, z)."


def asked(threads: int, case: Any) -> list[Any]:
    """What a database with so many threads says to a question, and how it went."""
    schemas, rows, question, sizes = case
    db = lftj.Database._sized(
        "\n".join(programs.declaration(*item) for item in schemas.items()), threads=threads, **sizes
    )
    for name, given_rows in rows.items():
        db.load(name, given_rows)
    query = db.query(question)
    counted = db.query(question)
    return [counted.count(), list(query), counted._evaluation, query._evaluation]


def alike(one: Evaluation, many: Evaluation) -> None:
    """The counters of `many` ranges are those of one walk; only where several atoms meet may steps differ."""
    expected, found = one.counters, many.counters
    assert expected is not None
    assert found is not None
    assert found.matches == expected.matches or not expected.matches
    assert (found.rows, found.opens) == (expected.rows, expected.opens)
    first = many.plan.depths[0] if many.plan.depths else None
    if found.ranges == 1 or first is None or (len(first.participants) == 1 and not first.negated):
        assert (found.steps, found.seeks) == (expected.steps, expected.seeks)
    else:
        meeting = 2 * found.ranges * (len(first.participants) + len(first.negated) + 1)
        assert abs(found.steps - expected.steps) <= meeting
        assert found.seeks - found.steps == expected.seeks - expected.steps


@examples(300, 10)
@given(seeds)
def test_questions_are_answered_as_by_one_thread(rng: Random) -> None:
    least, cuts.LEAST_STEPS = cuts.LEAST_STEPS, 0.0
    try:
        case = programs.make_question(rng)
        one, many = asked(1, case), asked(rng.choice((2, 3)), case)
    finally:
        cuts.LEAST_STEPS = least
    assert many[:2] == one[:2]
    for before, after in zip(one[2:], many[2:], strict=True):
        alike(before, after)


def triangles(threads: int, **options: Any) -> lftj.Database:
    db = lftj.Database._sized(TRIANGLE, threads=threads, page_rows=4, directory_rows=4, buffer_rows=8, **options)
    db.load("e", EDGES)
    return db


def test_a_walk_is_cut(forced: None) -> None:
    one, two = triangles(1), triangles(2)
    assert list(two["tri"]) == list(one["tri"])
    (before,), (after,) = (db._state.evaluations.values() for db in (one, two))
    assert (before.counters.ranges, after.counters.ranges) == (1, 16)
    alike(before, after)
    assert one["tri"].numpy().tolist() == two["tri"].numpy().tolist()


@pytest.mark.parametrize(
    "question",
    ["e(3, y), e(y, z)", "e(_, _)", "e(x, y), e(z, w)", "x = 3, e(x, y)"],
    ids=["constant", "no variable", "apart", "computed"],
)
def test_what_is_not_cut_is_walked_at_once(forced: None, question: str) -> None:
    one, two = triangles(1).query(question), triangles(2).query(question)
    assert two.count() == one.count()
    assert two._evaluation is not None
    assert two._evaluation.counters is not None
    assert two._evaluation.counters.ranges == 1


def test_small_walks_are_not_cut() -> None:
    db = triangles(2)
    db.evaluate()
    (evaluation,) = db._state.evaluations.values()
    assert evaluation.counters.ranges == 1


def test_the_ends_of_the_key_range(forced: None) -> None:
    low, high = -(2**63), 2**63 - 1
    edges = [(a, b) for a in (low, low + 1, 0, high - 1, high) for b in (low, 0, high)]
    answers = []
    for threads in (1, 3):
        db = lftj.Database._sized(TRIANGLE, threads=threads, page_rows=2, directory_rows=2)
        db.load("e", edges)
        query = db.query("e(x, y), x > 0")
        answers.append((list(db["tri"]), query.count(), db.query("e(x, _)").count(), list(db.query("e(x, y), x >= y"))))
    assert answers[0] == answers[1]


PRODUCT = ", ".join(f"e(x, y{i})" for i in range(9))
ERRORS = {
    # 3 x 200^9: one range alone is too large, and says for which x.
    "a count": ([(x, y) for x in range(3) for y in range(200)], lambda db: db.query(PRODUCT).count(), "x = 0"),
    # 40 x 100^9: no range is, their sum is.
    "a sum of counts": ([(x, y) for x in range(40) for y in range(100)], lambda db: db.query(PRODUCT).count(), "int64"),
    "a term": (EDGES, lambda db: db["p"], "division by zero"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_has_no_value_is_the_same_error(case: str, forced: None) -> None:
    rows, ask, what = ERRORS[case]
    told = []
    for threads in (1, 2):
        db = lftj.Database(".decl e(x:number, y:number)\np(x, z) :- e(x, y), z = x / y.", threads=threads)
        db.load("e", rows)
        with pytest.raises(EvaluationError) as caught:
            ask(db)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert what in told[0]


def at_work() -> int:
    """Threads of crews that run something."""
    return sum(
        any(frame.f_code.co_name == "_go" for frame in frames_of(ident))
        for ident, thread in threading._active.items()  # type: ignore[attr-defined]
        if thread.name.startswith("lftj")
    )


def frames_of(ident: int) -> list[Any]:
    import sys

    frame, found = sys._current_frames().get(ident), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


@pytest.mark.jit_only  # it is made of what Python does between kernels
@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize(
    ("owner", "name"), [(Limits, "look"), (Shift, "wait")], ids=["a limit", "an interrupt while waiting"]
)
def test_what_is_stopped_is_not_published(
    forced: None, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    db = triangles(2)
    with monkeypatch.context() as patch:
        calls = fails_at(patch, owner, name, number, KeyboardInterrupt(), after=False)
        try:
            db.evaluate()
        except KeyboardInterrupt:
            assert "tri" in db._state.stale
            assert at_work() == 0
        else:
            assert calls[0] < number
    assert list(db["tri"]) == list(triangles(1)["tri"])


def test_a_time_limit_stops_all_threads(forced: None) -> None:
    db = triangles(2)
    with pytest.raises(TimeoutExpired):
        db.evaluate(timeout=0.0)
    assert at_work() == 0
    assert len(db["tri"]) == len(triangles(1)["tri"])


def test_an_error_in_a_worker_is_raised(forced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    db = triangles(2)
    with monkeypatch.context() as patch:
        fails_at(patch, ranges, "_begin", 3, MemoryError("in a worker"), after=False)
        with pytest.raises(MemoryError, match="in a worker"):
            db.evaluate()
    assert at_work() == 0
    assert list(db["tri"]) == list(triangles(1)["tri"])


def test_rows_that_nobody_wants_any_more_stop_the_walk(forced: None) -> None:
    """Whoever takes rows one chunk after the other may leave."""
    db = triangles(2)
    evaluator = db._evaluator
    (clause,) = db._state.strata.of("tri")

    def enough(rows: Any) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        evaluator.rows(clause, Limits(), enough)
    assert at_work() == 0


@pytest.mark.skipif(not JIT, reason="as many threads wait for each other, but longer")
def test_several_threads_ask_at_a_time(forced: None) -> None:
    db = triangles(2)
    expected = list(triangles(1)["tri"])
    wrong: list[Any] = []

    def ask() -> None:
        snapshot = db.snapshot()
        for _ in range(10):
            if list(snapshot.query("e(x, y), e(y, z), e(x, z)")) != expected:
                wrong.append(1)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for i in range(20):
        with db.transaction() as tx:
            tx.insert("e", [(100 + i, 200 + y) for y in range(30)])
    for asker in askers:
        asker.join()
    assert not wrong
    assert len(db["e"]) == len(EDGES) + 600
    assert np.array_equal(db["tri"].numpy(), np.array(expected))
