"""Drivers on Spark that die, or race: each is a process of the test's own, stopped at a point and killed by its id.

The batch is sent again by a new driver. Answers and changes are those of the engine in one process, whichever point the
first driver got to: nothing lost, nothing twice.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_bridge.doors import alive
from spark_bridge.driver import Applied, Partitioned
from spark_bridge.local import InProcess
from spark_bridge.partition import FAULTS
from spark_bridge.preflight import missing
from tests.conftest import JIT, ROOT
from tests.spark.graph import PROGRAM, Graph
from tests.spark.test_protocol import all_is_named
from tests.spark.test_spark import OnSpark

pytestmark = [
    pytest.mark.spark,
    pytest.mark.jit_only,
    pytest.mark.filterwarnings("ignore"),  # of pandas, py4j and sockets that pyspark leaves open
    pytest.mark.skipif(bool(missing()) or not JIT, reason=f"Spark tests: {missing() or 'compiled only'}"),
]

LOCAL, CLUSTER = "local[2,4]", "local-cluster[2,1,1024]"
WAIT = 240.0  # seconds until something is taken to hang

DRIVER = """
import json, os, pickle, sys
from pathlib import Path
from spark_bridge.preflight import session
from spark_bridge.spark_query import SparkQuery

master, folder, *batches = sys.argv[1:]
passed = {f"spark__executorEnv__{k}": os.environ[k] for k in ("PYTHONPATH", "LFTJ_CACHE_DIR", "LFTJ_SPARK_FAULTS")}
spark = session(master, spark__driver__memory="512m", spark__executor__memory="512m", **passed)
spark.sparkContext.setLogLevel("OFF")
load = lambda name: {k: spark.createDataFrame(t) for k, t in pickle.loads(Path(name).read_bytes()).items()}
if not list((Path(folder) / "commits").glob("*.json")):
    program, inputs = Path(batches.pop(0)), batches.pop(0)
    SparkQuery.create(spark, program.read_text(), load(inputs), checkpoint=folder, partitions=2).close()
with SparkQuery.open(spark, folder) as query:
    for i, batch in enumerate(batches):
        if i:
            sys.stdin.readline()
        done = query.apply(load(batch), batch_id=Path(batch).name)
        print(json.dumps([done.version, done.batch_id, done.changed, done.repeated]), flush=True)
    if not batches:
        print(json.dumps(query.verify()["ok"]))
spark.stop()
"""


def until(what: Any) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that these did."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


class Driver:
    """A driver in a process of its own, which sends batches to a checkpoint, each but the first when it is asked to."""

    def __init__(self, folder: Path, master: str, *arguments: Path, stop: str = "") -> None:
        self.faults = folder.parent / f"faults-{time.monotonic_ns()}"
        self.faults.mkdir()
        self.wish = self.faults / f"{stop}-stop"
        if stop:
            self.wish.touch()
        environment = {**os.environ, FAULTS: str(self.faults), "PYTHONPATH": str(ROOT)}
        line = [sys.executable, "-W", "ignore", "-c", DRIVER, master, str(folder), *map(str, arguments)]
        self.errors = (self.faults / "stderr").open("w+")
        self.process = subprocess.Popen(
            line,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def stopped(self) -> int:
        """Wait until a process of the driver has stopped at its point; which one."""
        until(lambda: not self.wish.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.told_errors()
        ((at, *_),) = [[int(path.suffix[1:])] for path in self.faults.glob(f"{self.wish.name}.*")]
        until(lambda: Path(f"/proc/{at}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        return at

    def kill(self) -> list[int]:
        """Kill it by its id; the processes it had started."""
        left = descendants(self.process.pid)
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.wait(WAIT) == -signal.SIGKILL
        return left

    def answers(self) -> list[Any]:
        """What it printed, when it has ended well."""
        out, _ = self.process.communicate(timeout=WAIT)
        assert self.process.returncode == 0, self.told_errors()
        return [json.loads(line) for line in out.splitlines()]

    def told_errors(self) -> str:
        self.errors.seek(0)
        return self.errors.read()[-3000:]


@contextmanager
def driver(folder: Path, master: str, *arguments: Path, stop: str = "") -> Iterator[Driver]:
    """A driver, and nothing of it at the end."""
    made = Driver(folder, master, *arguments, stop=stop)
    try:
        yield made
    finally:
        with suppress(ProcessLookupError):
            made.process.kill()
        made.process.wait(WAIT)
        made.errors.close()
        for pipe in (made.process.stdin, made.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def kept(path: Path, tables: Mapping[str, pa.Table]) -> Path:
    """Tables in a file, for a driver to read."""
    path.write_bytes(pickle.dumps(dict(tables)))
    return path


def slow(value: object) -> Any:
    """One of the cases for which the suite has no time: a driver takes half a minute to come up."""
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.mark.parametrize("point", [slow("journaled"), "worked", slow("committed"), "output"])
def test_a_driver_is_killed(spark: Any, tmp_path: Path, point: str) -> None:
    """After the journal, after all tasks, after the commit; "output" while a task is still at work, which ends late."""
    both = OnSpark(spark, tmp_path / "q", seed=len(point))
    changes = both.graph.changes()
    with driver(tmp_path / "q", LOCAL, kept(tmp_path / "lost", changes), stop=f"{point}-0") as first:
        at = first.stopped()
        assert (at == first.process.pid) == (point != "output")
        left = first.kill()
    assert both.query.version == (1 if point == "committed" else 0)
    frames = {name: spark.createDataFrame(table) for name, table in changes.items()}
    done = both.query.apply(frames, batch_id="lost")
    assert (done.version, done.repeated) == (1, point == "committed")
    both.check_delta()
    if point == "output":
        os.kill(at, signal.SIGCONT)
    until(lambda: not any(map(alive, [*left, at])))
    both.check()
    both.batch()
    both.query.compact()
    both.query.compact()
    assert both.query.verify()["ok"]
    both.check()
    both.query.close()


@pytest.mark.parametrize("same", [True, slow(False)])
def test_two_drivers_race(spark: Any, tmp_path: Path, same: bool) -> None:
    """One has all its tasks done when the other commits: it is told of its own batch, or begins again from there."""
    both = OnSpark(spark, tmp_path / "q", seed=5)
    changes = both.graph.changes()
    last = both.graph.last
    late = changes if same else both.graph.changes()
    name = "first" if same else "second"
    with driver(tmp_path / "q", LOCAL, kept(tmp_path / name, late), stop="worked-0") as other:
        other.stopped()
        frames = {name: spark.createDataFrame(table) for name, table in changes.items()}
        done = both.query.apply(frames, batch_id="first")
        assert (done.version, done.repeated) == (1, False)
        both.graph.last, last = last, both.graph.last
        both.check_delta()
        both.graph.last = last
        os.kill(other.process.pid, signal.SIGCONT)
        ((version, batch, _, repeated),) = other.answers()
    assert (version, batch, repeated) == ((1, "first", True) if same else (2, "second", False))
    assert both.query.version == version
    both.check_delta()
    both.check()
    both.batch()
    assert both.query.verify()["ok"]
    both.query.close()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["create-journaled", "create-worked"])
def test_a_driver_is_killed_while_it_creates(tmp_path: Path, point: str) -> None:
    """The next one creates in the same folder, and nothing of the first is left."""
    graph, folder = Graph(len(point)), tmp_path / "q"
    (tmp_path / "program").write_text(PROGRAM)
    given = (tmp_path / "program", kept(tmp_path / "inputs", graph.inputs()))
    with driver(folder, LOCAL, *given, stop=f"{point}-0") as first:
        assert first.stopped() == first.process.pid
        left = first.kill()
    until(lambda: not any(map(alive, left)))
    with driver(folder, LOCAL, *given) as second:
        assert second.answers() == [True]
    query = Partitioned.open(InProcess(), folder)
    graph.check(query)
    all_is_named(query)


@pytest.mark.slow
def test_drivers_of_a_cluster_are_killed_one_after_the_other(tmp_path: Path) -> None:
    """Executors in processes of their own; each new driver sends again what the one before it died of."""
    graph, folder = Graph(7), tmp_path / "q"
    (tmp_path / "program").write_text(PROGRAM)
    inputs = kept(tmp_path / "inputs", graph.inputs())
    first = (tmp_path / "program", inputs)
    batches: list[Path] = []
    done: list[Any] = []
    for point in ("journaled", "worked", "committed"):
        again = batches[-1:]
        batches.append(kept(tmp_path / point, graph.changes()))
        arguments = (*(first if len(batches) == 1 else ()), *again, batches[-1])
        # The point is passed by the batch that is sent again as well, so its wish comes when that one is through.
        with driver(folder, CLUSTER, *arguments, stop=f"{point}-0" if not again else "") as made:
            if again:
                assert made.process.stdout is not None
                assert made.process.stdin is not None
                done.append(json.loads(made.process.stdout.readline()))
                made.wish = made.faults / f"{point}-0-stop"
                made.wish.touch()
                made.process.stdin.write("\n")
                made.process.stdin.flush()
            assert made.stopped() == made.process.pid
            left = made.kill()
        until(lambda left=left: not any(map(alive, left)))
        query = Partitioned.open(InProcess(), folder)
        assert query.version == len(batches) - (point != "committed")
    with driver(folder, CLUSTER, batches[-1]) as made:
        done += made.answers()
    with driver(folder, CLUSTER) as made:
        assert made.answers() == [True]
    assert [(version, repeated) for version, _, _, repeated in done] == [(1, False), (2, False), (3, True)]
    query = Partitioned.open(InProcess(), folder)
    version, batch, changed, repeated = done[-1]
    counts = {name: (gone, come) for name, (gone, come) in changed.items()}
    graph.check_delta(query, Applied(version, batch, counts, repeated))
    assert query.verify()["ok"]
