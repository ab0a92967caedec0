"""Batches of several stages: refused by a late one, killed, overtaken or damaged between two; and stages on Spark.

Catches: a batch that counts twice or in part, files that are left behind, a database that went on without its batch.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj.errors import EvaluationError
from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess, Processes
from spark_bridge.stages import make_stages
from tests.spark.dying_driver import exit_code
from tests.spark.staged import DECLARED, TOTALS, Both, Replayed
from tests.spark.test_damage import HOWS, damage
from tests.spark.test_protocol import Watched, all_is_named
from tests.spark.twin import rows_of, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*occurs only once"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
DIVIDING = (
    DECLARED + "n[c] = sum v : { r(_, b, v, _), s(b, c) }. m[] = count : { n(_c, _x) }. q(c, 12 / x) :- n(c, x), m(_)."
)


# Refusals and deaths between stages ----------------------------------------------------------------------------------


def test_a_batch_that_a_later_stage_refuses_changes_nothing(tmp_path: Path) -> None:
    """The earlier ones have changed their databases: they step back, and nothing is built again."""
    plan, executor = make_stages(DIVIDING), InProcess()
    rows = {"r": [(i, i, 2, 0.5) for i in range(6)], "s": [(i, "xy"[i % 2]) for i in range(6)]}
    inputs = {name: table(plan.schemas[name], found) for name, found in rows.items()}
    query = Partitioned.create(executor, DIVIDING, inputs, checkpoint=tmp_path / "q", partitions=3)
    before = {name: sorted(rows_of(query.table(name))) for name in ("n", "q")}
    assert before["q"] == [("x", 2), ("y", 2)]
    bad = table(plan.schemas["r"], [(9, 0, -6, 0.5)], [1])
    for _ in range(2):
        with pytest.raises(EvaluationError, match="division by zero"):
            query.apply({"r": bad}, batch_id="b")
        assert query.version == 0
        assert {name: sorted(rows_of(query.table(name))) for name in ("n", "q")} == before
    good = table(plan.schemas["r"], [(9, 0, -2, 0.5)], [1])
    done = query.apply({"r": good}, batch_id="b")
    assert (done.version, done.repeated) == (1, False)
    assert not any(part["rebuilt"] for part in query.metrics()["last"])
    assert sorted(rows_of(query.delta("q", 0).signed())) == [("x", 2, -1), ("x", 3, 1)]
    assert query.verify()["ok"]


def driver(
    folder: Path,
    point: str,
    both: Both,
    changes: dict[str, pa.Table] | None,
    executor: Callable[[], InProcess] = InProcess,
) -> int:
    """A driver in a process of its own, which creates or applies, and is killed at a point; its exit code."""
    faults = folder / "faults"
    faults.mkdir()
    (faults / f"{point}-kill").touch()

    def work() -> int:
        made = executor()
        if changes is None:
            Partitioned.create(made, both.text, both.inputs(), checkpoint=folder / "q", partitions=2)
            return 0
        version = Partitioned.open(made, folder / "q").apply(changes, batch_id="b").version
        made.close()
        return 10 + version

    code = exit_code(work, faults)
    assert not (faults / f"{point}-kill").exists()
    return code


@pytest.mark.parametrize(
    "point", ["stage-1", "stage-2", "before1-1", "output1-0", "state2-1", "worked-0", "committed-0"]
)
def test_a_driver_that_dies_within_a_batch(point: str, tmp_path: Path) -> None:
    """The batch is sent again: it counts once, and nothing is left of the first try."""
    both = Both(TOTALS, 2)
    query = both.create(tmp_path / "q")
    changes = both.changes()
    assert driver(tmp_path, point, both, changes) == -signal.SIGKILL
    assert query.version == (point == "committed-0")
    again = Partitioned.open(InProcess(), tmp_path / "q")
    done = again.apply(changes, batch_id="b")
    assert (done.version, done.repeated) == (1, point == "committed-0")
    both.check(again)
    both.batches(again, 1)
    both.unchanged(again, again.compact())
    all_is_named(again)
    assert again.verify()["ok"]


@pytest.mark.parametrize("point", ["stage-1", "output2-1", "create-worked-0"])
def test_a_driver_that_dies_while_it_creates(point: str, tmp_path: Path) -> None:
    both = Both(TOTALS, 3)
    assert driver(tmp_path, point, both, None) == -signal.SIGKILL
    query = both.create(tmp_path / "q", partitions=3)
    all_is_named(query)
    both.batches(query, 1)


@pytest.mark.jit_only
@pytest.mark.parametrize("point", ["before1-1", "output1-0", "state2-1"])
def test_a_process_that_dies_within_a_stage(point: str, tmp_path: Path) -> None:
    """It is replaced, builds its database from files that were committed, and what it is sent comes once."""
    both = Both(TOTALS, 4)
    query = both.create(tmp_path / "q")
    changes = both.changes()
    assert driver(tmp_path, point, both, changes, Processes) == 11
    both.check(query)
    assert query.apply(changes, batch_id="b").repeated
    assert query.verify()["ok"]


class Staged(Watched):
    """Calls `between` once, when the first stage of a work is done."""

    between: Callable[[], object] | None = None

    def run(self, requests: Any) -> Any:
        if requests[0]["stage"] == 1 and self.between is not None:
            between, self.between = self.between, None
            between()
        return super().run(requests)


def test_a_driver_that_is_overtaken_between_stages(tmp_path: Path) -> None:
    """The other one commits, another batch or the same: the first begins again from there."""
    both, executor = Both(TOTALS, 5), Staged()
    query = both.create(tmp_path / "q", executor)
    other = Partitioned.open(InProcess(), tmp_path / "q")
    first, second = both.changes(), both.changes()
    executor.between = lambda: other.apply(first, batch_id="first")
    assert query.apply(second, batch_id="second").version == 2
    both.check(query)
    third = both.changes()
    executor.between = lambda: other.apply(third, batch_id="third")
    done = query.apply(third, batch_id="third")
    assert (done.version, done.repeated) == (3, True)
    both.check(query)
    both.check(other)
    fourth, fifth = both.changes(), both.changes()

    def commit_and_clear_away() -> None:
        other.apply(fourth, batch_id="fourth")
        other.compact()
        both.history.insert(-1, both.history[-2])

    executor.between = commit_and_clear_away
    assert query.apply(fifth, batch_id="fifth").version == 6
    both.check(query)
    both.batches(query, 1)
    assert query.verify()["ok"]


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Both, list[Any]]]:
    """Checkpoints to damage copies of, without another placement and with one; their twins, and two more batches."""
    found = []
    for rescaled in (False, True):
        folder, both = tmp_path_factory.mktemp("made") / "q", Both(TOTALS, 5 * rescaled)
        query = both.create(folder)
        both.batches(query, 2)
        both.unchanged(query, query.compact())
        both.batches(query, 1)
        if rescaled:
            both.unchanged(query, query.rescale(3))
        history = list(both.history)
        coming = [(both.changes(), both.history[-1]) for _ in range(2)]
        both.history = history
        found.append((folder, both, coming))
    return found


@pytest.mark.parametrize("kind", ["facts", "replica", "output", "journal"])
@pytest.mark.parametrize("version", [0, 2, 3, 4, 5])
def test_damaged_files(kind: str, version: int, tmp_path: Path, histories: list[tuple[Path, Both, list[Any]]]) -> None:
    """Of all stages at once, at the first base, a batch, a compaction, a batch after it, and another placement."""
    made, before, coming = histories[version == 5]
    shutil.copytree(made, tmp_path / "q")
    both, how = Replayed(before, coming), HOWS[version % len(HOWS)]
    query = Partitioned.open(InProcess(), tmp_path / "q")
    commit = query.checkpoint.commit(version)
    found = commit["journal"] if kind == "journal" else [p[kind] for p in commit["parts"] if p.get(kind)]
    for file in found:
        damage(tmp_path / "q" / file["folder"] / file["name"], how, Random(version))
    again = Partitioned.open(InProcess(), tmp_path / "q")
    told = again.verify()
    assert (len(told["damaged"]), told["wrong"]) == (len(found), {})
    both.batches(again, 1)
    both.unchanged(again, again.compact())
    both.batches(again, 1)
    both.unchanged(again, again.compact())
    assert Partitioned.open(InProcess(), tmp_path / "q").verify()["ok"]


def test_verify_sees_what_was_sent_and_did_not_arrive(tmp_path: Path) -> None:
    both, executor = Both(TOTALS), InProcess()
    query = both.create(tmp_path / "q", executor)
    (state,) = executor.worker._states.values()
    part = next(part for part in state.checkpoint.commit(0)["parts"] if part["stage"] == 1 and part.get("facts"))
    part["facts"] = None
    told = query.verify()
    assert not told["ok"]
    assert set(told["wrong"]) == {part["partition"]}


# Spark ---------------------------------------------------------------------------------------------------------------


def on_spark(spark: Any, both: Both, folder: Path) -> Any:
    from spark_bridge import SparkQuery

    frames = {name: spark.createDataFrame(rows) for name, rows in both.inputs().items()}
    return SparkQuery.create(spark, both.text, frames, checkpoint=folder, partitions=2)


@pytest.mark.spark
@pytest.mark.jit_only
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    """A stage is a job within the same apply; frames are read from the stage that answers."""
    both = Both(TOTALS, 8)
    query = on_spark(spark, both, tmp_path / "q")
    for i in range(2):
        changes = both.changes()
        frames = {name: spark.createDataFrame(rows) for name, rows in changes.items()} if i else changes
        assert query.apply(frames, batch_id=str(i)).version == i + 1
        assert query.apply(frames, batch_id=str(i)).repeated
        both.check(query._query)
        for name in both.heads:
            assert {tuple(row) for row in query.result(name).collect()} == both.history[-1][name]
    both.unchanged(query._query, query.compact())
    both.unchanged(query._query, query.rescale(3))
    query.apply(both.changes(), batch_id="last")
    both.check(query._query)
    assert query.verify()["ok"]
    query.close()


@pytest.mark.spark
@pytest.mark.jit_only
@pytest.mark.parametrize("point", ["before1", "output1", "state2"])
def test_a_task_that_is_killed_within_a_stage(spark: Any, faults: Path, tmp_path: Path, point: str) -> None:
    """Spark runs it again, and the batch counts once."""
    both = Both(TOTALS, 9)
    query = on_spark(spark, both, tmp_path / "q")
    for partition in (0, 1):
        wish = faults / f"{point}-{partition}-kill"
        wish.touch()
        changes = both.changes()
        assert query.apply(changes, batch_id=str(partition)).version == partition + 1
        assert not wish.exists()
        assert query.apply(changes, batch_id=str(partition)).repeated
        both.check(query._query)
    assert query.verify()["ok"]
    query.close()
