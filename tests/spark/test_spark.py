"""The same protocol on Spark: tasks that are retried, workers and executors that are killed, streams, the command line.

Only processes that the session of the test started are killed, by their own hand (`partition.stop_at`) or by their id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from spark_bridge import __main__ as command
from spark_bridge import example
from spark_bridge import spark as on_spark
from spark_bridge.bridge_errors import BatchError, PlanError
from spark_bridge.doors import node_folder
from spark_bridge.driver import Applied, Partitioned
from spark_bridge.local import InProcess
from spark_bridge.preflight import missing
from spark_bridge.spark_query import SparkQuery
from tests.conftest import JIT, ROOT
from tests.spark.graph import OUTPUTS, PROGRAM, Graph

pytestmark = [
    pytest.mark.spark,
    pytest.mark.jit_only,
    pytest.mark.filterwarnings("ignore"),  # of pandas, py4j and sockets that pyspark leaves open
    pytest.mark.skipif(bool(missing()) or not JIT, reason=f"Spark tests: {missing() or 'compiled only'}"),
]


class OnSpark:
    """A query on Spark beside the database that holds everything."""

    def __init__(self, spark: Any, folder: Path, seed: int = 0, partitions: int = 2, **options: Any) -> None:
        self.spark, self.graph = spark, Graph(seed)
        inputs = {name: spark.createDataFrame(table) for name, table in self.graph.inputs().items()}
        self.query = SparkQuery.create(spark, PROGRAM, inputs, checkpoint=folder, partitions=partitions, **options)
        self.batches = 0

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in frame.collect())

    def batch(self) -> None:
        """A batch of changes, compared."""
        changes = {name: self.spark.createDataFrame(t) for name, t in self.graph.changes().items()}
        self.batches += 1
        done = self.query.apply(changes, batch_id=f"b{self.batches}")
        assert (done.version, done.repeated) == (self.query.version, False)
        self.check_delta()
        again = self.query.apply(changes, batch_id=f"b{self.batches}")
        assert (again.version, again.changed, again.repeated) == (done.version, done.changed, True)

    def check_delta(self) -> None:
        version = self.query.version
        for name in ("tri", "named"):
            delta, last = self.rows(self.query.delta(name, version - 1)), self.graph.last[name]
            assert [row[:-1] for row in delta if row[-1] == 1] == sorted(last.inserted), name
            assert [row[:-1] for row in delta if row[-1] == -1] == sorted(last.erased), name

    def check(self) -> None:
        for name in OUTPUTS:
            assert self.rows(self.query.result(name)) == sorted(self.graph.db[name]), name

    def holders(self) -> list[int]:
        return [int(part["process"]) for part in self.query.metrics()["last"]]


def test_a_query(spark: Any, tmp_path: Path) -> None:
    both = OnSpark(spark, tmp_path / "q", partitions=3)
    both.check()
    first = both.holders()
    both.batch()
    assert both.holders() == first
    assert not any(part["rebuilt"] for part in both.query.metrics()["last"])
    both.query.compact()
    both.batch()
    assert both.query.verify()["ok"]
    both.query.rescale(2)
    both.batch()
    both.check()
    assert "replicated" in str(both.query.estimate())
    old = both.rows(both.query.result("tri", version=both.query.version - 1))
    assert old != both.rows(both.query.result("tri")) or not both.graph.last["tri"]
    both.query.close()
    again = SparkQuery.open(spark, tmp_path / "q")
    both.query = again
    both.batch()
    both.check()
    again.close()


def test_refusals(spark: Any, tmp_path: Path) -> None:
    edges = spark.createDataFrame([(1, 2), (2, 3)], "a bigint, b bigint")
    with pytest.raises(PlanError, match="`t` cannot be derived partition by partition"):
        SparkQuery.create(
            spark,
            ".decl e(a:number, b:number) t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z).",
            {"e": edges},
            checkpoint=tmp_path / "n",
        )
    query = SparkQuery.create(
        spark,
        ".decl e(a:number, b:number) t(x, z) :- e(x, y), e(y, z).",
        {"e": edges},
        checkpoint=tmp_path / "q",
        partitions=2,
        holders=False,
    )
    with pytest.raises(
        BatchError, match="column `b` of `e` does not take these rows\n  why: it is a number: the rows have string"
    ):
        query.apply({"e": spark.createDataFrame([(1, "x", 1)], "a bigint, b string, _op int")}, batch_id="b")
    assert query.version == 0
    done = query.apply({"e": spark.createDataFrame([(3, 4, 1)], "a bigint, b bigint, _op int")}, batch_id="b")
    assert done.changed == {"e": (0, 1), "t": (0, 1)}
    more = [(i, i + 1, 1) for i in range(10, 30)]  # in both partitions, and none is erased in either
    query.apply({"e": spark.createDataFrame(more, "a bigint, b bigint, _op int")}, batch_id="more")
    assert sorted(tuple(row) for row in query.delta("e", 1).collect()) == more
    query.close()


TYPES = """
.decl r(u:unsigned, f:float, s:symbol, n:number)
kept(u, f, s) :- r(u, f, s, n), n > 0.
any() :- r(_, _, _, _).
"""


@pytest.mark.parametrize(("small", "few"), [(0, 0), (1 << 20, 0), (1 << 20, 1 << 20)])
def test_types_by_the_driver_and_by_jobs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int, few: int
) -> None:
    """What is small goes through the driver, the rest through jobs, with requests in functions: the same answers."""
    monkeypatch.setattr(on_spark, "SMALL_BYTES", small - 1)
    monkeypatch.setattr(on_spark, "SMALL_ROWS", few)
    monkeypatch.setattr(on_spark, "REQUEST_BYTES", small)
    columns = "u decimal(20,0), f double, s string, n bigint"
    rows = [(i * (2**60), -i / 2, "é" * i, i - 3) for i in range(8)]
    frame = spark.createDataFrame([(Decimal(u), *rest) for u, *rest in rows], columns)
    query = SparkQuery.create(spark, TYPES, {"r": frame}, checkpoint=tmp_path / "q", partitions=2, replicate=["any"])

    def told(answer: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in answer.collect())

    assert told(query.result("kept")) == [row[:3] for row in rows if row[3] > 0]
    assert told(query.result("any")) == [(True,)]
    gone = spark.createDataFrame([(Decimal(u), *rest, -1) for u, *rest in rows[1:]], columns + ", _op int")
    query.apply({"r": gone}, batch_id="a")
    assert told(query.delta("kept", 0)) == [(*row[:3], -1) for row in rows if row[3] > 0]
    assert told(query.delta("any", 0)) == []
    moved = [(Decimal(u), *rest, op) for (u, *rest), op in ((rows[0], -1), (rows[1], 1))]
    query.apply({"r": spark.createDataFrame(moved, columns + ", _op int")}, batch_id="b")
    last = spark.createDataFrame([(Decimal(rows[1][0]), *rows[1][1:], -1)], columns + ", _op int")
    query.apply({"r": last}, batch_id="c")
    assert told(query.result("any")) == told(query.result("kept")) == []
    assert told(query.delta("any", 0)) == [(True, -1)]
    assert query.result("kept").schema == query.delta("kept", 0).drop("_op").schema
    with pytest.raises(
        BatchError, match="column `n` of `r` does not take these rows\n  why: it is a number: row 0 has none"
    ):
        query.apply({"r": last.selectExpr("u", "f", "s", "cast(null as bigint) n", "_op")}, batch_id="d")
    query.close()


@pytest.mark.parametrize("point", ["task", "before", "output", "state", "return", "returned"])
def test_a_worker_is_killed(spark: Any, faults: Path, tmp_path: Path, point: str) -> None:
    """Before evaluation, after output, after state, after return; "task" and "return" in Spark's own worker."""
    both = OnSpark(spark, tmp_path / "q", seed=len(point))
    for partition in (0, 1):
        wish = faults / f"{point}-{partition}-kill"
        wish.touch()
        both.batch()
        assert not wish.exists()
    both.check()
    both.query.compact()
    both.query.compact()
    assert both.query.verify()["ok"]
    both.query.close()


def test_a_holder_that_was_suspended_finishes_late(spark: Any, faults: Path, tmp_path: Path) -> None:
    both = OnSpark(spark, tmp_path / "q", seed=3)
    (stopped,) = both.holders()[:1]
    (faults / "output-0-stop").touch()
    changes = {name: spark.createDataFrame(t) for name, t in both.graph.changes().items()}
    failed: list[BaseException] = []

    def apply() -> None:
        try:
            both.query.apply(changes, batch_id="lost")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=apply)
    thread.start()
    until = time.monotonic() + 120
    while (faults / "output-0-stop").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert [path.suffix for path in faults.glob("output-0-stop*")] == [f".{stopped}"], "the one that stopped"
    other = SparkQuery.open(spark, tmp_path / "q")
    both.query, first = other, both.query
    done = other.apply(changes, batch_id="lost")  # another driver goes on
    assert not done.repeated, f"{stopped} is {Path(f'/proc/{stopped}/stat').read_text().split()[2]}, {both.holders()}"
    both.check()
    os.kill(stopped, signal.SIGCONT)
    thread.join(120)
    assert not thread.is_alive()
    assert not failed
    assert other.version == done.version
    both.check()
    both.batch()
    first.close()
    other.close()


def test_a_stream(spark: Any, tmp_path: Path) -> None:
    both, arriving = OnSpark(spark, tmp_path / "q"), tmp_path / "arriving"
    arriving.mkdir()
    source = spark.readStream.schema("a bigint, b bigint, _op bigint").parquet(str(arriving))

    def drain() -> None:
        writer = source.writeStream.foreachBatch(both.query.foreach_batch("edge"))
        writer = writer.option("checkpointLocation", str(tmp_path / "stream"))
        stream = writer.trigger(availableNow=True).start()
        assert stream.awaitTermination(120)

    for i in range(2):
        changes = both.graph.changes()
        pyarrow.parquet.write_table(changes["edge"], arriving / f"{i}.parquet")
        done = both.query.apply({"name": spark.createDataFrame(changes["name"])}, batch_id=f"n{i}")
        drain()
        assert both.query.version == done.version + 1
        both.check()
    both.query.close()


def test_the_commands(spark: Any, tmp_path: Path) -> None:
    """Each as the command line runs it, on the session of the suite."""

    def run(*arguments: object) -> tuple[dict[str, Any], int]:
        return command._run(spark, command.parser().parse_args(list(map(str, arguments))))

    graph, at = Graph(), ("--checkpoint", tmp_path / "q")
    (tmp_path / "q.dl").write_text(PROGRAM)
    inputs: list[object] = []
    for name, table in graph.inputs().items():
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
        inputs += ["--input", f"{name}={tmp_path / name}.parquet"]
    program = ("--program", tmp_path / "q.dl", *inputs, "--partitions", 2)
    assert run("estimate", *program)[0]["share"] == 1
    assert run("create", *program, *at)[0]["version"] == 0
    changes = graph.changes()
    rows = zip(*(column.to_pylist() for column in changes["edge"].columns), strict=True)
    (tmp_path / "edge.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    pyarrow.parquet.write_table(changes["name"], tmp_path / "name-changes.parquet")
    given = ["--changes", f"edge={tmp_path / 'edge.tsv'}", "--changes", f"name={tmp_path / 'name-changes.parquet'}"]
    delta = ["--delta", f"tri={tmp_path / 'delta'}"]
    assert run("apply", *given, *at, "--batch-id", "b", *delta)[0]["version"] == 1
    assert run("apply", *given, *at, "--batch-id", "b")[0]["repeated"]
    assert pyarrow.parquet.read_table(tmp_path / "delta").num_rows == len(graph.last["tri"].inserted) + len(
        graph.last["tri"].erased
    )
    told, code = run("verify", *at)
    assert (code, told["ok"]) == (0, True)
    assert run("rescale", *at, "--partitions", 3) == ({"version": 2}, 0)
    assert run("compact", *at) == ({"version": 3}, 0)
    (tmp_path / "arriving").mkdir()
    pyarrow.parquet.write_table(graph.changes()["edge"], tmp_path / "arriving" / "1.parquet")
    assert run("serve", *at, "--changes", f"edge={tmp_path / 'arriving'}", "--once")[0] == {"version": 4}
    run("result", *at, "--output", f"tri={tmp_path / 'tri'}")
    found = pyarrow.parquet.read_table(tmp_path / "tri").to_pylist()
    assert sorted(tuple(row.values()) for row in found) == sorted(graph.db["tri"])


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    """In a process of its own: exit codes, and what goes where."""
    (tmp_path / "q.dl").write_text(".decl e(a:number, b:number) t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z).")
    line = [sys.executable, "-W", "ignore", "-m", "spark_bridge", "--master", "local[2,4]"]
    for arguments, code, told in (
        (["create", "--program", tmp_path / "q.dl", "--checkpoint", tmp_path / "q"], 1, "cannot be derived"),
        (["verify", "--checkpoint", tmp_path / "q"], 3, "holds no checkpoint that was finished"),
    ):
        done = subprocess.run([*line, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (code, "")
        assert told in done.stderr


@pytest.mark.slow
def test_spark_submit(tmp_path: Path) -> None:
    """The two commands of the README and `verify`, each a run of PySpark's own script; what it is told is kept."""
    import pyspark

    graph, at = Graph(), ("--checkpoint", tmp_path / "q")
    (tmp_path / "q.dl").write_text(PROGRAM)
    script = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    options = ["--master", "local[2,4]", "--driver-memory", "768m", "--conf", "spark.ui.showConsoleProgress=true"]

    def run(*arguments: object) -> tuple[dict[str, Any], int]:
        line = [str(script), *options, str(command.__file__), *map(str, arguments)]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=environment)
        (told,) = done.stdout.splitlines() or [done.stderr]
        assert "RuntimeWarning" not in done.stderr, done.stderr
        return json.loads(told), done.returncode

    def files(tables: dict[str, Any], option: str) -> list[object]:
        found: list[object] = []
        for name, table in tables.items():
            pyarrow.parquet.write_table(table, tmp_path / f"{name}{option}.parquet")
            found += [option, f"{name}={tmp_path / name}{option}.parquet"]
        return found

    inputs = files(graph.inputs(), "--input")
    told, code = run("create", "--program", tmp_path / "q.dl", *inputs, "--partitions", 2, *at)
    assert (told["version"], told["partitions"], code) == (0, 2, 0)
    changes = files(graph.changes(), "--changes")
    for repeated in (False, True):
        told, code = run("apply", *changes, *at, "--batch-id", "monday")
        assert (told["version"], told["repeated"], code) == (1, repeated, 0)
    assert run("verify", *at) == ({"version": 1, "damaged": [], "wrong": {}, "ok": True}, 0)
    query = Partitioned.open(InProcess(), tmp_path / "q")
    counts = {name: (gone, come) for name, (gone, come) in told["changed"].items()}
    graph.check_delta(query, Applied(1, "monday", counts))
    damaged = next((tmp_path / "q" / "output").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    told, code = run("verify", *at)
    assert (len(told["damaged"]), code) == (1, command.FOUND)


@pytest.mark.slow
def test_the_example(tmp_path: Path) -> None:
    """Each file that arrives is a batch, and the last count is that of the engine in one process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "LFTJ_SPARK_NODE_DIR": "/tmp"}
    line = [sys.executable, "-W", "ignore", "-m", "spark_bridge.example"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    held: set[tuple[int, ...]] = set()
    parts, expected = example.stretches(), []
    for i, part in enumerate(parts):
        rows = example.changes(parts[:i], part)
        edges = list(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True))
        before = _triangles(held)
        for edge, op in zip(edges, rows["_op"].to_pylist(), strict=True):
            (held.add if op > 0 else held.discard)(edge)
        after = _triangles(held)
        come, gone = len(after - before), len(before - after)
        expected.append(
            f"file {i}: +{come} -{gone} triangles, {len(after)} now" if i else f"at first: {come} triangles"
        )
    assert done.stdout.splitlines() == expected


def _triangles(edges: set[tuple[int, ...]]) -> set[tuple[int, int, int]]:
    after: dict[int, set[int]] = {}
    for x, y in edges:
        after.setdefault(x, set()).add(y)
    return {(x, y, z) for x, y in edges for z in after[x] & after.get(y, set())}


CLUSTER = """
import os, signal, sys, time
from pathlib import Path
from spark_bridge.preflight import session
from tests.spark.test_spark import OnSpark

def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(c) for c in (task / "children").read_text().split()]
    return found

def executors(pid):
    found = []
    for child in children(pid):
        line = Path(f"/proc/{child}/cmdline").read_bytes()
        found += [child] if b"CoarseGrainedExecutorBackend" in line and b"java" in line.split(bytes(1))[0] else []
        found += executors(child)
    return found

spark = session("local-cluster[2,1,1024]", spark__driver__memory="512m", spark__executor__memory="512m",
    spark__executorEnv__PYTHONPATH=os.environ["PYTHONPATH"],
    spark__executorEnv__LFTJ_CACHE_DIR=os.environ["LFTJ_CACHE_DIR"],
    spark__executorEnv__LFTJ_SPARK_FAULTS=os.environ["LFTJ_SPARK_FAULTS"])
spark.sparkContext.setLogLevel("OFF")
both = OnSpark(spark, Path(sys.argv[1]))
both.batch()
killed = executors(os.getpid())
assert len(killed) == 2, killed
os.kill(killed[0], signal.SIGKILL)
both.batch()
faults = Path(os.environ["LFTJ_SPARK_FAULTS"])
for point in ("before", "output", "state", "return"):
    (faults / f"{point}-1-kill").touch()
    both.batch()
    assert not (faults / f"{point}-1-kill").exists()
both.check()
assert both.query.verify()["ok"]
both.query.close()
spark.stop()
sys.stdout.write("exact")
"""


@pytest.mark.slow
def test_an_executor_is_killed(tmp_path: Path) -> None:
    """A cluster of two executors on this machine, in a process of its own: one session per process."""
    faults = tmp_path / "faults"
    faults.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LFTJ_SPARK_FAULTS": str(faults)}
    command = [sys.executable, "-W", "ignore", "-c", CLUSTER, str(tmp_path / "q")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "exact"), done.stderr[-3000:]


def test_sockets_go_with_their_holders(spark: Any, tmp_path: Path) -> None:
    both = OnSpark(spark, tmp_path / "q")
    mine = f"{both.query._query.checkpoint.query['identity'][:16]}-*.sock"
    assert len(list(node_folder().glob(mine))) == 2
    both.query.close()
    time.sleep(0.5)
    assert list(node_folder().glob(mine)) == []
