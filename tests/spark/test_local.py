"""Partitions in processes of this machine: their databases outlive a call, and the processes outlive nobody."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from spark_bridge import holder
from spark_bridge.doors import alive
from spark_bridge.driver import Partitioned
from spark_bridge.local import Processes
from spark_bridge.partition import FAULTS
from tests.spark.graph import Graph

pytestmark = pytest.mark.jit_only  # processes of their own, each with its kernels


@pytest.mark.parametrize("point", ["before", "output", "state"])
def test_a_process_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    monkeypatch.setenv(FAULTS, str(tmp_path))
    graph = Graph()
    query = graph.create(Processes(), tmp_path / "q")
    graph.check_delta(query, query.apply(graph.changes(), batch_id="0"))
    assert not any(part["rebuilt"] for part in query.metrics()["last"])
    before = [part["process"] for part in query.metrics()["last"]]
    (tmp_path / f"{point}-1-kill").touch()
    graph.check_delta(query, query.apply(graph.changes(), batch_id="1"))
    after = [part["process"] for part in query.metrics()["last"]]
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)
    assert [part["rebuilt"] for part in query.metrics()["last"]] == [False, True]
    query.close()
    _gone(after)


def test_a_process_that_was_stopped_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder, "DOOR_SECONDS", 0.5)
    graph = Graph()
    query = graph.create(Processes(), tmp_path / "q")
    stopped = query.metrics()["last"][0]["process"]
    os.kill(stopped, signal.SIGSTOP)
    graph.check_delta(query, query.apply(graph.changes(), batch_id="0"))
    os.kill(stopped, signal.SIGCONT)
    graph.check_delta(query, query.apply(graph.changes(), batch_id="1"))
    assert not any(part["rebuilt"] for part in query.metrics()["last"])
    query.close()
    os.kill(stopped, signal.SIGKILL)


def test_another_driver_uses_the_same_processes(tmp_path: Path) -> None:
    graph = Graph()
    query = graph.create(Processes(), tmp_path / "q")
    other = Partitioned.open(Processes(), tmp_path / "q")
    graph.check_delta(other, other.apply(graph.changes(), batch_id="0"))
    assert not any(part["rebuilt"] for part in other.metrics()["last"])
    graph.check_delta(query, query.apply(graph.changes(), batch_id="1"))
    assert not any(part["rebuilt"] for part in query.metrics()["last"])
    query.close()


def test_a_nursery_that_was_killed(tmp_path: Path) -> None:
    graph, executor = Graph(), Processes()
    query = graph.create(executor, tmp_path / "q")
    nursery, first = executor._nursery, query.metrics()["last"][0]["process"]
    assert nursery is not None
    for process in nursery.pid, first:
        os.kill(process, signal.SIGKILL)
    nursery.wait()
    _gone([first])
    graph.check_delta(query, query.apply(graph.changes(), batch_id="0"))
    assert [part["rebuilt"] for part in query.metrics()["last"]] == [True, False]
    query.close()


class WithoutNursery(Processes):
    """As on a node whose Spark has a daemon of its own: whoever asks first starts a nursery."""

    def _get_ready(self) -> None:
        pass


def test_a_nursery_is_started_by_who_needs_it(tmp_path: Path) -> None:
    graph, executor = Graph(), WithoutNursery()
    query = graph.create(executor, tmp_path / "q")
    graph.check_delta(query, query.apply(graph.changes(), batch_id="0"))
    parts = query.metrics()["last"]
    assert not any(part["rebuilt"] for part in parts)
    (nursery,) = [process for process in holder._started if process.poll() is None]
    query.close()
    _gone([part["process"] for part in parts])
    nursery.terminate()
    nursery.wait()
    executor._path.unlink()


def _gone(processes: list[int]) -> None:
    until = time.monotonic() + 20
    while any(alive(process) for process in processes):
        assert time.monotonic() < until
        time.sleep(0.05)
