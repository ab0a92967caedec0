"""Crews: every worker works, what one raises is raised, and nobody works any more when a shift is over.

Catches: an error that is lost, a worker that goes on after Ctrl-C, an interrupted wait that leaves workers behind, a
crew that is of no use after a failure.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from scantree.crew import Crew, Shift


def awaited(crew: Crew, work: Callable[[int, Shift], None], workers: int | None = None) -> None:
    with crew.shift(work, workers) as shift:
        while not shift.over:
            shift.wait(1.0)


def finished(crew: Crew, workers: int = 3) -> set[int]:
    """The numbers with which a shift calls its work."""
    seen: set[int] = set()
    awaited(crew, lambda i, shift: seen.add(i), workers)
    return seen


def test_every_worker_works() -> None:
    assert finished(Crew(2)) == {0, 1, 2}


def test_an_error_of_a_worker_is_raised_and_stops_the_others() -> None:
    crew, begun, ended = Crew(2), threading.Barrier(2), threading.Event()

    def work(i: int, shift: Shift) -> None:
        begun.wait(10)
        if i == 0:
            raise ValueError("of a worker")
        while True:
            try:
                shift.look(0)
            except BaseException:
                ended.set()
                raise
            time.sleep(0.001)

    with pytest.raises(ValueError, match="of a worker"):
        awaited(crew, work)
    assert ended.is_set()
    assert finished(crew) == {0, 1, 2}


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_a_block_that_raises_waits_for_the_workers(error: type[BaseException]) -> None:
    crew, begun = Crew(2), threading.Barrier(3)
    ended: list[int] = []

    def work(i: int, shift: Shift) -> None:
        begun.wait(10)
        while not shift.stopped:
            time.sleep(0.001)
        time.sleep(0.02)
        ended.append(i)

    def meanwhile() -> None:
        with crew.shift(work):
            begun.wait(10)
            raise error

    with pytest.raises(error):
        meanwhile()
    assert sorted(ended) == [0, 1]
    assert finished(crew) == {0, 1, 2}


def test_a_second_interrupt_waits_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from scantree import crew as module

    crew, waits, ended = Crew(2), [0], []
    wait = module.wait

    def interrupted(*args: Any) -> Any:
        waits[0] += 1
        if waits[0] == 1:
            raise KeyboardInterrupt
        return wait(*args)

    def work(i: int, shift: Shift) -> None:
        time.sleep(0.02)
        ended.append(i)

    monkeypatch.setattr(module, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt), crew.shift(work):
        pass
    assert len(ended) <= 2
    assert waits[0] == 2


def test_an_interrupt_while_a_shift_begins_leaves_nobody_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    crew, ended = Crew(2), []
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: Any, *args: Any) -> Any:
        future = submit(pool, *args)
        if args[-1] == 1:
            raise KeyboardInterrupt
        return future

    def work(i: int, shift: Shift) -> None:
        time.sleep(0.02)
        ended.append(i)

    with monkeypatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt), crew.shift(work):
            pass
    known = list(ended)
    time.sleep(0.05)
    assert ended == known
    assert finished(crew) == {0, 1, 2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_that_was_forked_has_threads_of_its_own() -> None:
    """It waited for those of its parent."""
    crew = Crew(2)
    assert finished(crew) == {0, 1, 2}
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if finished(crew) == {0, 1, 2} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert finished(crew) == {0, 1, 2}
