"""Versions and who makes them: sending again, racing, attempts that end too late, drivers that die.

Everything in this process but the drivers that are killed, which are processes of the test's own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import lftj
from lftj.language.options import VALUES
from spark_bridge import store
from spark_bridge.bridge_errors import BatchError, PlanError, StateError
from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess, Processes
from spark_bridge.store import Body, write_json
from tests.spark.dying_driver import exit_code
from tests.spark.graph import PROGRAM, Graph


class Watched(InProcess):
    """Calls `before` once, when the next requests are about to be run, and `after` when they were; remembers them."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] | None = None
        self.after: Callable[[], object] | None = None
        self.requests: Sequence[Body] = ()

    def run(self, requests: Sequence[Body]) -> list[Body]:
        before, self.before = self.before, None
        if before is not None:
            before()
        self.requests = requests
        found = super().run(requests)
        after, self.after = self.after, None
        if after is not None:
            after()
        return found


def test_a_batch_is_applied_once(tmp_path: Path) -> None:
    graph, executor = Graph(), InProcess()
    query = graph.create(executor, tmp_path / "q")
    changes = graph.changes()
    done = query.apply(changes, batch_id="b")
    graph.check_delta(query, done)
    again = query.apply({n: t.take(list(range(t.num_rows))[::-1]) for n, t in changes.items()}, batch_id="b")
    assert (again.version, again.changed, again.repeated) == (done.version, done.changed, True)
    assert query.version == 1
    with pytest.raises(BatchError, match="batch 'b' was committed before, with other rows"):
        query.apply({"edge": changes["edge"]}, batch_id="b")
    query.compact()
    query.compact()
    assert Partitioned.open(InProcess(), tmp_path / "q").apply(changes, batch_id="b").version == done.version
    graph.check(query)


def test_of_two_drivers_one_commits_and_the_other_follows(tmp_path: Path) -> None:
    graph, executor = Graph(), Watched()
    query = graph.create(executor, tmp_path / "q")
    other = Partitioned.open(InProcess(), tmp_path / "q")
    first, second = graph.changes(), graph.changes()
    executor.before = lambda: other.apply(first, batch_id="first")
    assert query.apply(second, batch_id="second").version == 2
    assert other.checkpoint.batch("first")["version"] == 1  # type: ignore[index]
    graph.check(query)
    graph.check(other)


def test_two_drivers_with_one_batch_apply_it_once(tmp_path: Path) -> None:
    graph, executor = Graph(), Watched()
    query = graph.create(executor, tmp_path / "q")
    other = Partitioned.open(InProcess(), tmp_path / "q")
    changes = graph.changes()
    executor.before = lambda: other.apply(changes, batch_id="b")
    done = query.apply(changes, batch_id="b")
    assert (done.version, done.repeated, query.version) == (1, True, 1)
    graph.check_delta(query, done)


def test_an_attempt_that_ends_too_late_changes_nothing(tmp_path: Path) -> None:
    """It was given up before it wrote anything; another driver made the version, and then it goes on after all."""
    graph, executor = Graph(), Watched()
    query = graph.create(executor, tmp_path / "q")
    other = Partitioned.open(InProcess(), tmp_path / "q")
    changes = graph.changes()

    def suspend(requests: Sequence[Body]) -> list[Body]:
        executor.requests = requests
        raise KeyboardInterrupt

    executor.run = suspend  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        query.apply(changes, batch_id="b")
    del executor.run
    done = other.apply(changes, batch_id="b")
    graph.check_delta(other, done)
    late = [executor.worker.run(request) for request in executor.requests]
    assert [result["facts"] is None and result["output"] is None for result in late] == [False, False]
    graph.check_delta(other, done)
    done = query.apply(graph.changes(), batch_id="next")  # in the worker that holds the late states
    graph.check_delta(query, done)
    query.compact()
    query.compact()
    assert query.verify()["ok"]
    graph.check(query)


def test_a_refused_batch_changes_nothing_and_is_undone(tmp_path: Path) -> None:
    """One partition is refused, the others have changed their databases: they step back."""
    text = ".decl e(a:number, b:number) q(x, 10 / y) :- e(x, y). two(x, z) :- e(x, y), e(y, z)."
    executor = InProcess()
    rows = pa.table({"a": list(range(20)), "b": [i % 7 + 1 for i in range(20)]})
    query = Partitioned.create(executor, text, {"e": rows}, checkpoint=tmp_path / "q", partitions=4)
    before = sorted(query.table("two").to_pylist(), key=str)
    bad = pa.table({"a": [3, 50, 51, 52, 53], "b": [0, 1, 2, 3, 4], "_op": [1] * 5})
    with pytest.raises(lftj.Error, match="division by zero"):
        query.apply({"e": bad}, batch_id="b")
    assert query.version == 0
    assert sorted(query.table("two").to_pylist(), key=str) == before
    good = bad.slice(1)
    done = query.apply({"e": good}, batch_id="b")
    assert not any(part["rebuilt"] for part in query.metrics()["last"])
    assert done.changed["e"] == (0, 4)
    assert query.verify()["ok"]


def test_rule_options_reach_the_partitions(tmp_path: Path) -> None:
    graph = Graph()
    query = graph.create(InProcess(), tmp_path / "q", maintain={"tri": "recompute", "degree": "trace"})
    graph.check_delta(query, query.apply(graph.changes(), batch_id="0"))
    graph.check_delta(query, query.apply(graph.changes(), batch_id="1"))
    ways = [part["heads"]["tri__x_0"] for part in query.metrics()["last"] if "tri__x_0" in part["heads"]]
    assert set(ways) == {"recompute"}
    for name, how in (("edge", "trace"), ("tri", "magic")):
        with pytest.raises(PlanError, match="maintain=") as caught:
            graph.create(InProcess(), tmp_path / "p", maintain={name: how})
        listed = ", ".join(VALUES["maintain"])
        assert str(caught.value).endswith(f"do: name a relation that rules derive, and one of {listed}")
    graph.create(InProcess(), tmp_path / "d", maintain={"tri": "delta"})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pa.table({"a": [1], "b": [2]}), "have no column `_op`"),
        (pa.table({"a": [1], "b": [2], "_op": [2]}), "_op = 2"),
        (pa.table({"a": [1], "_op": [1]}), "takes 2 columns, the rows have 1: a"),
        (pa.table({"a": [1], "b": ["x"], "_op": [1]}), "why: it is a number: the rows have string"),
        (pa.table({"a": [1, None], "b": [1, 2], "_op": [1, 1]}), "why: it is a number: row 1 has none"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, source: pa.Table, message: str) -> None:
    query = Graph().create(InProcess(), tmp_path / "q")
    with pytest.raises(BatchError, match=message):
        query.apply({"edge": source}, batch_id="b")
    assert query.version == 0


def test_what_is_not_there(tmp_path: Path) -> None:
    graph = Graph()
    with pytest.raises(StateError, match="holds no checkpoint that was finished"):
        Partitioned.open(InProcess(), tmp_path / "q")
    query = graph.create(InProcess(), tmp_path / "q")
    with pytest.raises(StateError, match="holds a checkpoint already"):
        graph.create(InProcess(), tmp_path / "q")
    with pytest.raises(lftj.Error, match="no relation `what`"):
        query.table("what")
    for i in range(4):
        query.apply(graph.changes(), batch_id=str(i))
    query.compact()
    query.compact()
    with pytest.raises(StateError, match="there is no version 0 any more"):
        query.table("tri", 0)
    assert query.table("tri", 5).num_rows == query.table("tri").num_rows
    query.rescale(3)
    with pytest.raises(StateError, match="version 7 placed keys anew"):
        query.delta("tri", 6)


def test_files_stay_few(tmp_path: Path) -> None:
    graph = Graph()
    query = graph.create(InProcess(), tmp_path / "q", partitions=3)
    counts = []
    for i in range(12):
        query.apply(graph.changes(), batch_id=str(i))
        if i % 3 == 2:
            query.compact()
            counts.append(sum(len(files) for _, _, files in os.walk(tmp_path / "q")))
    assert max(counts[1:]) == counts[1]
    graph.check(query)
    deltas = query.delta("tri", query.checkpoint.kept().start)
    assert deltas.inserted.num_rows + deltas.erased.num_rows > 0


def killed_at(
    point: str, folder: Path, work: str, rows: dict[str, pa.Table], executor: Callable[[], InProcess] = InProcess
) -> None:
    """A driver in a process of its own, that is killed at a point."""
    faults = folder / "faults"
    faults.mkdir()
    (faults / f"{point}-0-kill").touch()

    def drive() -> None:
        if work == "create":
            Partitioned.create(executor(), PROGRAM, rows, checkpoint=folder / "q", partitions=2)
        else:
            Partitioned.open(executor(), folder / "q").apply(rows, batch_id="b")

    assert exit_code(drive, faults) == -signal.SIGKILL


@pytest.mark.parametrize("point", ["journaled", "worked", "committed"])
def test_a_driver_that_dies(tmp_path: Path, point: str) -> None:
    graph = Graph()
    query = graph.create(InProcess(), tmp_path / "q")
    changes = graph.changes()
    killed_at(point, tmp_path, "apply", changes)
    assert query.version == (1 if point == "committed" else 0)
    done = Partitioned.open(InProcess(), tmp_path / "q").apply(changes, batch_id="b")
    assert (done.version, done.repeated) == (1, point == "committed")
    graph.check_delta(query, done)
    query.compact()
    query.compact()
    graph.check(query)
    assert query.verify()["ok"]


# Drivers that create -------------------------------------------------------------------------------------------------


def all_is_named(query: Partitioned) -> None:
    """Every file of a checkpoint is one that a commit speaks of."""
    folder = query.checkpoint.folder
    named = {file["name"] for version in query.checkpoint.kept() for file in query.checkpoint.files(version)}
    assert {path.name for path in folder.rglob("*.part")} == named
    tokens = {f"{v}-{query.checkpoint.commit(v)['token']}" for v in query.checkpoint.kept()}
    assert {path.stem for path in query.checkpoint.commits.iterdir()} == tokens | set(map(str, query.checkpoint.kept()))


@pytest.mark.parametrize(
    ("point", "executor"),
    [
        ("create-journaled", InProcess),
        ("create-worked", InProcess),
        ("create-committed", InProcess),
        pytest.param("create-worked", Processes, marks=pytest.mark.jit_only),
    ],
)
def test_a_driver_that_dies_while_it_creates(tmp_path: Path, point: str, executor: type[InProcess]) -> None:
    """Before the commit the next one creates, with nothing left of the first; after it, the query is there."""
    graph = Graph()
    killed_at(point, tmp_path, "create", graph.inputs(), executor)
    assert list((tmp_path / "q").rglob("*.part")) != []
    if point == "create-committed":
        with pytest.raises(StateError, match=r"(?s)holds a checkpoint already.*open it with `open`"):
            graph.create(InProcess(), tmp_path / "q")
        query = Partitioned.open(InProcess(), tmp_path / "q")
    else:
        with pytest.raises(StateError, match=r"(?s)its creation did not get so far.*create the query there"):
            Partitioned.open(InProcess(), tmp_path / "q")
        query = graph.create(InProcess(), tmp_path / "q", partitions=3)
    graph.check(query)
    all_is_named(query)
    graph.check_delta(query, query.apply(graph.changes(), batch_id="b"))
    assert query.verify()["ok"]


def test_a_commit_that_was_never_made_is_cleared_away(tmp_path: Path) -> None:
    """A driver that died with its commit written under the other names, and not yet under the one that counts."""
    graph = Graph()
    query = graph.create(InProcess(), tmp_path / "q")
    (query.checkpoint.commits / "0.json").rename(query.checkpoint.commits / "0-0123.draft")
    again = graph.create(InProcess(), tmp_path / "q")
    all_is_named(again)
    graph.check(again)


@pytest.mark.parametrize("late", ["before", "after", "between"])
def test_of_two_drivers_that_create_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    """The other is told, whether its own evaluation was still to come, or done, or even its commit was written."""
    graph, executor = Graph(), Watched()

    def win() -> None:
        monkeypatch.undo()
        graph.create(InProcess(), tmp_path / "q", partitions=3)

    def written(path: Path, body: Body) -> None:
        write_json(path, body)
        if path.suffix == ".draft":
            win()

    if late == "between":
        monkeypatch.setattr(store, "write_json", written)
    else:
        setattr(executor, late, win)
    with pytest.raises(StateError, match=r"(?s)was created by another driver.*committed first.*open it with `open`"):
        graph.create(executor, tmp_path / "q")
    assert executor.worker._kept == {}
    query = Partitioned.open(InProcess(), tmp_path / "q")
    assert query.state.partitions(0) == 3
    graph.check(query)
    all_is_named(query)
    assert query.verify()["ok"]


def test_a_creation_that_is_refused_leaves_no_database(tmp_path: Path) -> None:
    executor = InProcess()
    text = ".decl e(a:number, b:number) q(x, 10 / y) :- e(x, y)."
    rows = pa.table({"a": list(range(9)), "b": list(range(9))})
    with pytest.raises(lftj.Error, match="division by zero"):
        Partitioned.create(executor, text, {"e": rows}, checkpoint=tmp_path / "q", partitions=4)
    assert executor.worker._kept == {}
    query = Partitioned.create(executor, text, {"e": rows.slice(1)}, checkpoint=tmp_path / "q", partitions=4)
    all_is_named(query)
