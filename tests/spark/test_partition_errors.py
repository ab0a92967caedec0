"""What a partition raises reaches whoever asked, in the words of the user's program.

Catches: a holder that never answers as it ran into an error of the machine, so its caller waits for ever; one that is
asked again and takes a database for what it no longer is; errors that speak of the rules and relations which a
partition is given, and nobody wrote.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from spark_bridge import LocalQuery, WorkError
from spark_bridge.driver import Partitioned
from spark_bridge.holder import Holder
from spark_bridge.local import InProcess
from spark_bridge.plan import PART
from spark_bridge.store import OUTPUT, STATE
from tests.spark.twin import rows_of

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")
PAIRS = ".decl n(x:number) .decl m(x:number, y:number)  pair(x, y, z) :- m(x, y), n(z)."
NUMBERS = [(i,) for i in range(3)]
CHANGES = [(i, i * i, 1) for i in range(20)]
EDGES = ".decl e(a:number, b:number)  "


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for those of sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def within_a_minute(what: Callable[[], None]) -> None:
    """Call it in a thread that nobody waits for longer."""
    done: list[BaseException | None] = []

    def call() -> None:
        try:
            what()
            done.append(None)
        except BaseException as error:
            done.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(60)
    assert done == [None]


def unwritable(checkpoint: Path, folder: str) -> Path:
    """Put a file where a folder of the checkpoint was; where that is now."""
    moved = checkpoint / (folder + ".moved")
    (checkpoint / folder).rename(moved)
    (checkpoint / folder).touch()
    return moved


def mended(checkpoint: Path, folder: str, moved: Path) -> None:
    (checkpoint / folder).unlink()
    moved.rename(checkpoint / folder)


def applied_after_all(query: Any, db: lftj.Database, checkpoint: Path, folder: str) -> None:
    """A batch that cannot be written raises a clear error, and takes effect when it is sent again."""
    moved = unwritable(checkpoint, folder)
    with pytest.raises(WorkError, match="a partition could not do its work: FileExistsError") as raised:
        query.apply({"m": CHANGES}, batch_id="b")
    assert "send it again" in raised.value.remedy
    assert raised.value.where == "(partition 0)"
    assert query.version == 0
    mended(checkpoint, folder, moved)
    assert query.apply({"m": CHANGES}, batch_id="b").version == 1
    with db.transaction() as tx:
        tx.insert("m", [row[:-1] for row in CHANGES])


@pytest.mark.parametrize("folder", [STATE, OUTPUT])
def test_an_error_of_the_machine(tmp_path: Path, folder: str) -> None:
    db = lftj.Database(PAIRS)
    db.load("n", NUMBERS)
    checkpoint = tmp_path / "q"
    query = Partitioned.create(InProcess(), PAIRS, {"n": NUMBERS, "m": []}, checkpoint=checkpoint, partitions=2)
    applied_after_all(query, db, checkpoint, folder)
    assert sorted(rows_of(query.table("pair"))) == sorted(db["pair"])
    assert query.verify()["ok"]


@pytest.mark.jit_only
def test_an_error_of_the_machine_in_a_process(short: Path) -> None:
    db = lftj.Database(PAIRS)
    db.load("n", NUMBERS)
    with LocalQuery.create(PAIRS, {"n": NUMBERS, "m": []}, checkpoint=short / "q", processes=2) as query:
        within_a_minute(lambda: applied_after_all(query, db, short / "q", OUTPUT))
        assert sorted(rows_of(query.result("pair"))) == sorted(db["pair"])
        assert query.verify()["ok"]


@pytest.mark.spark
@pytest.mark.jit_only
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("holders", [True, False])
def test_an_error_of_the_machine_on_spark(spark: Any, short: Path, holders: bool) -> None:
    from spark_bridge import SparkQuery

    db = lftj.Database(PAIRS)
    db.load("n", NUMBERS)
    inputs = {"n": spark.createDataFrame(NUMBERS, "x long"), "m": spark.createDataFrame([], "x long, y long")}
    query = SparkQuery.create(spark, PAIRS, inputs, checkpoint=short / "q", partitions=2, holders=holders)

    class Changes:
        """Of the query, with rows as data frames."""

        version = property(lambda self: query.version)

        def apply(self, changes: dict[str, Any], batch_id: str) -> Any:
            frames = {name: spark.createDataFrame(rows, "x long, y long, _op int") for name, rows in changes.items()}
            return query.apply(frames, batch_id=batch_id)

    applied_after_all(Changes(), db, short / "q", OUTPUT)
    assert sorted(map(tuple, query.result("pair").collect())) == sorted(db["pair"])
    query.close()


@pytest.mark.spark
def test_a_task_on_spark_is_tried_again_before_its_error_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of one machine may be none on another: the first time the task fails, and Spark sees to the rest."""
    pyspark = pytest.importorskip("pyspark")
    from spark_bridge.spark import partition_task

    attempt = 0
    context = SimpleNamespace(attemptNumber=lambda: attempt)
    monkeypatch.setattr(pyspark, "TaskContext", SimpleNamespace(get=lambda: context))
    query = Partitioned.create(InProcess(), PAIRS, {"n": NUMBERS, "m": []}, checkpoint=tmp_path / "q", partitions=2)
    unwritable(tmp_path / "q", OUTPUT)
    identity, token = query.checkpoint.query["identity"], query.checkpoint.commit(0)["token"]
    request = {"work": "compact", "folder": str(tmp_path / "q"), "query": identity, "stage": 0}
    request |= {"version": 0, "token": token, "target": 1}
    task = partition_task(False, request)
    with pytest.raises(RuntimeError, match="a partition could not do its work"):
        list(task([0]))
    attempt = 1
    (line,) = task([0])
    assert "a partition could not do its work" in json.loads(line)["error"]["what"]


class Broken:
    """A worker that dies of what is not even an exception."""

    def run(self, request: Any) -> Any:
        raise SystemExit(1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whoever_asks_is_never_left_waiting(short: Path) -> None:
    ours, holders = socket.socketpair()
    holder = Holder(short / "h.sock", 0)
    holder.worker = Broken()  # type: ignore[assignment]
    try:
        with ours:
            ours.sendall(b'{"work": "apply"}\n')
            serving = threading.Thread(target=holder._serve, args=(holders,), daemon=True)
            serving.start()
            ours.settimeout(30)
            assert ours.recv(1) == b""
            serving.join(30)
    finally:
        holder.server.close()


# In the user's words --------------------------------------------------------------------------------------------------


def refused(folder: Path, text: str, inputs: dict[str, Any], changes: dict[str, Any]) -> lftj.Error:
    query = Partitioned.create(InProcess(), text, inputs, checkpoint=folder, partitions=2)
    with pytest.raises(EvaluationError) as raised:
        query.apply(changes, batch_id="b")
    return raised.value


def test_a_rule_that_has_no_value_is_the_users(tmp_path: Path) -> None:
    text = EDGES + "j(x, 10 / y) :- e(x, y), e(x, _)."
    error = refused(tmp_path / "q", text, {"e": [(1, 1)]}, {"e": [(5, 0, 1), (6, 1, 1)]})
    assert error.where == "<rules>:1:30: in `j(x, 10 / y) :- e(x, y), e(x, _).` with x = 5, y = 0 (partition 0)"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (EDGES + "t[x] = sum 10 / y : { e(x, y), e(x, _) }.", [(5, 0, 1)]),
        (EDGES + "t[x] = sum y : { e(x, y), e(x, _) }.", [(5, 2**62, 1), (5, 2**62 + 1, 1)]),
        (EDGES + "t[x] = sum y : { e(x, y) }.  u(x, 10 / s) :- t[x] = s.", [(5, 3, 1), (5, -3, 1)]),
        (EDGES + "t[] = sum y : { e(_, y) }.  u(x, 10 / s) :- t[] = s, e(x, _).", [(5, 3, 1), (5, -3, 1)]),
        (EDGES + ".decl f(x:number) -> y:number  f(x, y) :- e(x, y), e(x, _).", [(5, 1, 1), (5, 2, 1)]),
        (
            EDGES + ".decl f(x:number) -> y:number  g(x, y) :- f(x, y), e(x, _).  f(x, y) :- e(x, y).",
            [(5, 1, 1), (5, 2, 1)],
        ),
    ],
)
def test_no_name_or_place_of_a_partition_is_in_an_error(tmp_path: Path, text: str, rows: list[Any]) -> None:
    error = refused(tmp_path / "q", text, {"e": []}, {"e": rows})
    shown = "\n".join([str(error), *error.details])
    assert "__" not in shown
    assert "_1" not in shown.replace("_w1", "")
    assert "<rules>:" not in shown or "<rules>:1:" in shown


def test_two_facts_under_one_key_are_told_by_the_users_name(tmp_path: Path) -> None:
    text = EDGES + ".decl f(x:number) -> y:number  j(x, y) :- e(x, _), f(x, y)."
    error = refused(tmp_path / "q", text, {"e": [(1, 1)], "f": [(1, 1)]}, {"f": [(1, 2, 1)]})
    assert error.what == "`f` has two values under one key: f[1] = 1 and f[1] = 2"
    assert error.details == (
        "f[1] = 1: a fact (loaded or inserted)",
        "f[1] = 2: a fact (loaded or inserted)",
    )


def test_names_that_read_like_those_of_partitions(tmp_path: Path) -> None:
    """A relation of the user's may be called what the copy of another one is."""
    text = ".decl e(a:number, b:number) .decl e__x_0(a:number, b:number)  j(x, 10 / y) :- e(x, y), e__x_0(x, _)."
    inputs = {"e": [(1, 1)], "e__x_0": [(5, 5)]}
    error = refused(tmp_path / "q", text, inputs, {"e": [(5, 0, 1)]})
    assert "in `j(x, 10 / y) :- e(x, y), e__x_0(x, _).` with" in error.where


def test_a_part_that_is_out_of_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_bridge.planner.SPARED", 0.0)  # parts, though they spare next to no rows here
    text = ".decl r(k:number, g:number, v:number) .decl s(k:number)  tot[g] = sum v : { r(k, g, v), s(k) }."
    inputs = {"r": [(1, 7, 2**62), (1, 7, 2**62 + 1)], "s": []}
    query = Partitioned.create(InProcess(), text, inputs, checkpoint=tmp_path / "q", partitions=2)
    assert query.state.layout(0).plan.outputs["tot"].kind == PART
    with pytest.raises(EvaluationError, match="the sum of a group is out of the range of number") as raised:
        query.apply({"s": [(1, 1)]}, batch_id="b")
    assert "in `tot[g] = sum v : { r(k, g, v), s(k) }.`" in raised.value.where
