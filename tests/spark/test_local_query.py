"""`LocalQuery`: the partitions in processes of this machine, no Spark anywhere, and nothing left when it is over."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import lftj
from lftj.errors import ArgumentError, EvaluationError, UnknownRelationError
from lftj.values.schema import Column, Schema
from spark_bridge import __main__ as command
from spark_bridge import local
from spark_bridge.bridge_errors import BatchError, PlanError, SetupError, StateError
from spark_bridge.doors import alive, node_folder
from spark_bridge.driver import Partitioned
from spark_bridge.holder import HolderDiedError
from spark_bridge.keys import canonical
from spark_bridge.local import InProcess
from spark_bridge.local_query import LocalQuery
from spark_bridge.local_tables import arrow_of
from tests.conftest import ROOT
from tests.spark.graph import OUTPUTS, PROGRAM, Graph
from tests.spark.twin import rows_of

processes_of_its_own = pytest.mark.jit_only


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for those of sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def same(graph: Graph, query: LocalQuery) -> None:
    for name in OUTPUTS:
        assert sorted(rows_of(query.result(name))) == sorted(graph.db[name]), name


def batch(graph: Graph, query: LocalQuery) -> None:
    done = query.apply(graph.changes(), batch_id=str(query.version))
    for name in OUTPUTS:
        delta = rows_of(query.delta(name, done.version - 1))
        assert sorted(row[:-1] for row in delta if row[-1] == 1) == sorted(graph.last[name].inserted), name
        assert sorted(row[:-1] for row in delta if row[-1] == -1) == sorted(graph.last[name].erased), name
    same(graph, query)


def holders(query: LocalQuery) -> list[int]:
    return [int(part["process"]) for part in query.metrics()["last"]]


@processes_of_its_own
def test_a_query() -> None:
    """Everything a query can, in a temporary checkpoint; then nothing of it is left."""
    graph = Graph()
    with LocalQuery.create(PROGRAM, graph.inputs(), processes=2, maintain={"tri": "trace"}) as query:
        seen = set(holders(query))
        assert len(seen) == 2
        assert os.getpid() not in seen
        same(graph, query)
        batch(graph, query)
        assert set(holders(query)) == seen
        assert not any(part["rebuilt"] for part in query.metrics()["last"])
        query.rescale(3)
        batch(graph, query)
        seen |= set(holders(query))
        assert len(seen) == 5
        query.compact()
        assert query.verify() == {"version": 4, "damaged": [], "wrong": {}, "ok": True}
        assert "replicated" in str(query.estimate())
        assert query.schemas["edge"].names == ("a", "b")
        folder = query._query.checkpoint.folder
        identity = query._query.checkpoint.query["identity"][:16]
        assert folder.exists()
    assert not folder.exists()
    until(lambda: not any(map(alive, seen)))
    assert list(node_folder().glob(f"{identity}-*")) == []
    assert list(node_folder().glob(f"{os.getpid()}-*.nursery")) == []
    query.close()
    with pytest.raises(StateError, match="this query was closed"):
        query.result("tri")


@processes_of_its_own
def test_a_checkpoint_is_opened_with_fewer_processes(tmp_path: Path) -> None:
    """And it is that of any other executor."""
    graph = Graph(3)
    made = graph.create(InProcess(), tmp_path / "q", partitions=5)
    query = LocalQuery.open(tmp_path / "q", processes=2)
    batch(graph, query)
    assert len(set(holders(query))) == 2
    batch(graph, query)
    assert not any(part["rebuilt"] for part in query.metrics()["last"])
    seen = holders(query)
    del query  # one that nobody holds any more is closed
    until(lambda: not any(map(alive, seen)))
    graph.check(made)
    assert made.verify()["ok"]


@processes_of_its_own
def test_what_is_refused_leaves_nothing(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(short))
    monkeypatch.setattr("tempfile.tempdir", None)
    text = ".decl e(a:number, b:number)  q(x, 10 / y) :- e(x, y)."
    for rows, program, error in (
        ([(i, i) for i in range(9)], text, EvaluationError),  # all but one of the processes are done
        ([("x", 1)], text, lftj.DataError),
        ([(1, 1)], ".decl e(a:number, b:number)  t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z).", PlanError),
    ):
        with pytest.raises(error):
            LocalQuery.create(program, {"e": rows}, processes=2)
        assert list(short.glob("lftj-query-*")) == []
    assert list(node_folder().iterdir()) == []
    with pytest.raises(PlanError, match="processes=0"):
        LocalQuery.create(text, {}, processes=0)


def test_a_process_that_dies_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "start_nursery", lambda *_: subprocess.Popen(["true"]))
    monkeypatch.setattr(local, "ask", lambda requests, **_: [None] * len(requests))
    with pytest.raises(HolderDiedError, match="process that holds partition 0 ended in the middle of its work"):
        Graph().create(local.Processes(), tmp_path / "q")


ENDLESS = """
import sys
import numpy as np
from spark_bridge import LocalQuery
rows = np.arange(4000).reshape(-1, 1)
text = ".decl e(x:number) .decl f(y:number)  n[x] = count : { e(x), f(y), f(z), f(w), x + y * z = w * w + 1 }."
if sys.argv[1] == "short":
    import os
    with LocalQuery.create(text, {"e": rows[:2], "f": rows[:5]}, processes=2) as query:
        if not os.fork():
            sys.exit(0)  # the end of a child is not that of the query
        os.wait()
        assert query.result("n").num_rows
        assert query.apply({"e": [(3, 1)]}, batch_id="b").version == 1
        assert not any(part["rebuilt"] for part in query.metrics()["last"])
    sys.exit(bool({"pyspark", "py4j"} & set(sys.modules)))
LocalQuery.create(text, {"e": rows, "f": rows}, processes=2)
"""


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    except OSError:
        pass
    return found


@processes_of_its_own
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_interrupted_or_killed(short: Path, how: signal.Signals) -> None:
    """In the middle of an evaluation that would take hours: its processes end, and at Ctrl-C its folder goes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(short)}
    driver = subprocess.Popen([sys.executable, "-c", ENDLESS, "long"], env=environment, stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(descendants(driver.pid)) == 3 and len(list(short.glob("*/*.sock"))) == 2)
        time.sleep(0.3)  # they are at work
        left = descendants(driver.pid)
        assert len(left) == 3
        driver.send_signal(how)
        assert driver.wait(60) == -how
    finally:
        driver.kill()
        driver.wait()
    until(lambda: not any(map(alive, left)))
    assert len(list(short.glob("lftj-query-*"))) == (how == signal.SIGKILL)
    until(lambda: list(short.glob("*/*.sock")) == [])


@processes_of_its_own
def test_a_call_that_is_interrupted(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of such an evaluation, by a driver that lives on: its processes end, and its folder goes."""
    monkeypatch.setenv("TMPDIR", str(short))
    monkeypatch.setattr("tempfile.tempdir", None)
    before, seen = set(descendants(os.getpid())), list[int]()

    def interrupt() -> None:
        try:
            until(lambda: len(list(short.glob("*/*.sock"))) == 2)
            time.sleep(0.3)
            seen.extend(set(descendants(os.getpid())) - before)
        finally:  # however that went: the evaluation would take hours
            os.kill(os.getpid(), signal.SIGINT)

    text = ENDLESS.partition('text = "')[2].partition('"')[0]
    rows = np.arange(4000).reshape(-1, 1)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        LocalQuery.create(text, {"e": rows, "f": rows}, processes=2)
    thread.join()
    assert len(seen) == 3
    until(lambda: not any(map(alive, seen)))
    assert list(short.glob("lftj-query-*")) == []
    assert list(node_folder().iterdir()) == []


def test_a_folder_with_too_long_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LFTJ_SPARK_NODE_DIR", str(tmp_path / ("x" * 60)))
    with pytest.raises(SetupError, match=r"(?s)too long a name for a folder of sockets.*LFTJ_SPARK_NODE_DIR"):
        local.Processes()


@processes_of_its_own
def test_nothing_of_spark_is_imported(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": "", "JAVA_HOME": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", ENDLESS, "short"], env=environment).returncode == 0


# Sources -------------------------------------------------------------------------------------------------------------

MIXED = Schema("r", (Column("n", "number"), Column("s", "symbol"), Column("f", "float"), Column("u", "unsigned")))
ROWS = [(1, "é", 0.5, 2**63), (-2, "", 2.0, 0)]
COLUMNS = dict(zip(MIXED.names, map(list, zip(*ROWS, strict=True)), strict=True))
OPS = {"_op": [1, -1]}


def _written(folder: Path, columns: dict[str, Any], kind: str) -> Any:
    """A source of each kind that a load takes."""
    table = pa.table(columns | {"u": pa.array(columns["u"], pa.uint64())})
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "tsv":
        rows = zip(*columns.values(), strict=True)
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    else:
        made: dict[str, Callable[[], Any]] = {
            "table": lambda: table,
            "stream": lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
            "dict": lambda: columns,
            "rows": lambda: list(zip(*columns.values(), strict=True)),
            "pandas": lambda: pytest.importorskip("pandas").DataFrame(columns, index=[7, 9]),
            "polars": lambda: pytest.importorskip("polars").from_arrow(table),
        }
        return made[kind]()
    return path


@pytest.mark.parametrize("kind", ["table", "stream", "dict", "rows", "pandas", "polars", "parquet", "tsv"])
def test_sources(tmp_path: Path, kind: str) -> None:
    rows, ops = canonical(arrow_of(_written(tmp_path, COLUMNS, kind), MIXED), MIXED, changes=False)
    assert (rows_of(rows), ops.tolist()) == (ROWS, [1, 1])
    source = _written(tmp_path, COLUMNS | OPS, kind)
    rows, ops = canonical(arrow_of(source, MIXED, changes=True), MIXED, changes=True)
    assert (rows_of(rows), ops.tolist()) == (ROWS, OPS["_op"])


def test_arrays_and_units() -> None:
    pair, unit = Schema("e", (Column("a", "number"), Column("b", "number"))), Schema("u", ())
    rows, ops = canonical(arrow_of(np.array([[1, 2, -1]]), pair, changes=True), pair, changes=True)
    assert (rows_of(rows), ops.tolist()) == ([(1, 2)], [-1])
    rows, _ = canonical(arrow_of([(), ()], unit), unit, changes=False)
    assert rows_of(rows) == [(), ()]
    rows, ops = canonical(arrow_of([(-1,)], unit, changes=True), unit, changes=True)
    assert (rows_of(rows), ops.tolist()) == ([()], [-1])


def test_sources_that_do_not_fit() -> None:
    pair = Schema("e", (Column("a", "number"), Column("b", "number")))
    with pytest.raises(lftj.DataError, match="only in part"):
        arrow_of({"x": [1], "b": [2]}, pair)
    with pytest.raises(BatchError, match="give the columns a, b, _op"):
        arrow_of({"x": [1], "b": [2], "_op": [1]}, pair, changes=True)
    with pytest.raises(lftj.DataError, match="has 2 values where 3 are due"):
        arrow_of([(1, 2)], pair, changes=True)


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("rows.there", "1,2{}", {"delimiter": ","}, "the extension '.there' tells no format"),
        ("rows.csv", '1,"2{}', {"quoting": False, "on_error": "quarantine"}, "opens a quote that is never closed"),
        ("rows.json", '{{"a": 1, "b": 2{}}}', {"format": "ndjson"}, "not an array of rows"),
    ],
)
def test_what_only_an_option_of_load_reads(
    tmp_path: Path, name: str, text: str, options: dict[str, Any], words: str
) -> None:
    """The remedies named options that neither `create` nor `apply` has; the relation that `load` fills is a source."""
    program, path = ".decl e(a:number, b:number)  p(a) :- e(a, _).", tmp_path / name
    path.write_text(text.format(""))
    with pytest.raises(BatchError, match=words) as refused:
        Partitioned.create(InProcess(), program, {"e": path}, checkpoint=tmp_path / "q", partitions=2)
    assert "a query takes no options, so say it to `lftj.Database.load`, and give that relation" in str(refused.value)
    assert "on_error" not in str(refused.value)
    db = lftj.Database(".decl e(a:number, b:number) .decl more(a:number, b:number, _op:number)")
    db.load("e", path, **options)
    query = Partitioned.create(InProcess(), program, {"e": db["e"]}, checkpoint=tmp_path / "q", partitions=2)
    assert rows_of(query.table("p")) == [(row[0],) for row in db["e"]]
    path.write_text(text.format(', "_op": 1' if name.endswith("json") else ",1"))
    with pytest.raises(BatchError, match=r"say it to `lftj\.Database\.load`"):
        query.apply({"e": path}, batch_id="b")
    db.load("more", path, **options)
    assert query.apply({"e": db["more"]}, batch_id="b").version == 1


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ([(1, 2, "u")], "'u'"),
        ({"a": [1], "c": [2], "_op": [1.5]}, r"1\.5"),
        (pa.table({"a": [1], "c": [2], "_op": [None]}), "None"),
        ("1,2,u\n", "u"),
    ],
)
def test_an_op_that_says_nothing(tmp_path: Path, source: Any, shown: str) -> None:
    """It was to be declared a symbol, and no program declares it."""
    if isinstance(source, str):
        (tmp_path / "rows.csv").write_text(source)
        source = tmp_path / "rows.csv"
    schema = Schema("b", (Column("a", "number"), Column("c", "number")))
    with pytest.raises(BatchError, match=rf"the changes of `b` have _op = {shown}\n(?s:.*)do: give 1 or -1"):
        canonical(arrow_of(source, schema, changes=True), schema, changes=True)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("a,c,_op\n1,2,1\n1,3,0\n", "rows.csv:3"),
        ("1,2,1\n1,3,5\n", "rows.csv:2"),
        ([(1, 2, 1), (1, 3, -2)], "list, row 1 (from 0)"),
    ],
)
def test_a_number_that_is_no_op_is_placed(tmp_path: Path, source: Any, where: str) -> None:
    """Neither the file nor the row was told."""
    if isinstance(source, str):
        (tmp_path / "rows.csv").write_text(source)
        source = tmp_path / "rows.csv"
    schema = Schema("b", (Column("a", "number"), Column("c", "number")))
    with pytest.raises(BatchError, match="the changes of `b` have _op = ") as caught:
        arrow_of(source, schema, changes=True)
    assert caught.value.where.endswith(where)


def test_remedies_of_bad_rows_and_columns_name_no_options() -> None:
    pair = Schema("e", (Column("a", "number"), Column("b", "number")))
    for source in ([(1, "x")], [(1,)], {"a": [1], "b": [2], "c": [3]}, [{"a": 1}]):
        with pytest.raises(lftj.DataError) as refused:
            arrow_of(source, pair)
        assert not re.search(r"[a-z_]=", str(refused.value)), str(refused.value)
    with pytest.raises(BatchError, match="have no column `_op`") as lacking:
        canonical(pa.table({"a": [1], "b": [2]}), pair, changes=True)
    assert "withColumn" not in str(lacking.value)


def test_a_batch_replaces_a_value_as_its_refusal_says(tmp_path: Path) -> None:
    """It proposed `tx.upsert`, and there is no transaction."""
    text = ".decl f(a:number) -> v:number  g(a, v + 1) :- f(a, v)."
    query = Partitioned.create(InProcess(), text, {"f": [(1, 2)]}, checkpoint=tmp_path / "q", partitions=2)
    with pytest.raises(
        EvaluationError, match=r"two values under one key(?s:.*)a fact \(loaded or inserted\)"
    ) as refused:
        query.apply({"f": [(1, 3, 1)]}, batch_id="b")
    assert "erase the value that is there in the same batch" in refused.value.remedy
    query.apply({"f": [(1, 3, 1), (1, 2, -1)]}, batch_id="b")
    assert rows_of(query.table("g")) == [(1, 4)]


def test_what_is_proposed_for_a_head_makes_the_program_run() -> None:
    """To replicate all that a program derives was proposed, and led to the next refusal."""
    text = ".decl e(a:number, b:number)  t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z)."
    with pytest.raises(PlanError) as refused:
        LocalQuery.estimate_for(text, {}, partitions=2)
    assert refused.value.remedy == "evaluate it with lftj.Database, on one machine"
    text += " p(y) :- t(y, _)."
    with pytest.raises(PlanError) as refused:
        LocalQuery.estimate_for(text, {}, partitions=2)
    assert refused.value.remedy.startswith('replicate=["t"] lets every partition derive all of it')
    assert "t(y, _): partitioned by y" in LocalQuery.estimate_for(text, {}, partitions=2, replicate=["t"]).plan


def test_an_estimate_for_relations_that_are_not_there() -> None:
    with pytest.raises(UnknownRelationError, match="there is no relation `c`"):
        LocalQuery.estimate_for(PAIRS, {"c": [(1, 2)]}, partitions=2)


PAIRS = ".decl b(a:number, c:number)  g(a) :- b(a, _)."


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda query: query.apply(5, batch_id="y"), "`changes` cannot be 5"),
        (lambda query: query.apply({}, batch_id=5), "`batch_id` cannot be 5"),
        (lambda query: query.delta("g", since="a"), "`since` cannot be 'a'"),
        (lambda query: query.delta("g", since=None), "`since` cannot be None"),
        (lambda query: query.delta("g", since=0, until="a"), "`until` cannot be 'a'"),
        (lambda query: query.table("g", 1.5), r"`version` cannot be 1\.5"),
    ],
)
def test_arguments_of_other_kinds(tmp_path: Path, ask: Callable[[Partitioned], object], words: str) -> None:
    query = Partitioned.create(InProcess(), PAIRS, {"b": [(5, 6)]}, checkpoint=tmp_path / "state", partitions=1)
    with pytest.raises(ArgumentError, match=words):
        ask(query)
    assert query.version == 0
    assert rows_of(query.table("g")) == [(5,)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"program": None}, "`program` cannot be None"),
        ({"inputs": None}, "`inputs` cannot be None"),
        ({"partitions": 1.5}, r"`partitions` cannot be 1\.5"),
        ({"partitions": "2"}, "`partitions` cannot be '2'"),
        ({"outputs": "g"}, r"`outputs` cannot be 'g'[^`]*`outputs=\[\"tri\"\]`"),
        ({"replicate": "g"}, "`replicate` cannot be 'g'"),
        ({"maintain": "trace"}, "`maintain` cannot be 'trace'"),
        ({"partition_memory": "a lot"}, "`partition_memory` cannot be 'a lot'"),
        ({"checkpoint": 5}, "`checkpoint` cannot be 5"),
        ({"checkpoint": ""}, "`checkpoint` cannot be ''"),
    ],
)
def test_options_of_other_kinds_make_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], words: str
) -> None:
    """An empty folder was the present one, a text was taken letter by letter, the others failed somewhere within."""
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"program": PAIRS, "inputs": {}, "checkpoint": tmp_path / "state", "partitions": 1}
    with pytest.raises(ArgumentError, match=words):
        Partitioned.create(InProcess(), **options | given)
    assert list(tmp_path.iterdir()) == []


def test_memory_in_words_and_processes_that_are_no_number(tmp_path: Path) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "partitions": 1, "partition_memory": "2GiB"}
    query = Partitioned.create(InProcess(), PAIRS, {"b": [(5, 6)]}, **options)
    assert query.checkpoint.query["memory"] == 2 << 30
    with pytest.raises(ArgumentError, match=r"`partitions` cannot be 1\.5"):
        query.rescale(1.5)  # type: ignore[arg-type]
    for processes in (1.5, "2", True):
        with pytest.raises(ArgumentError, match="`processes` cannot be"):
            LocalQuery.open(tmp_path / "state", processes=processes)  # type: ignore[arg-type]


def test_a_checkpoint_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"file cannot be made a checkpoint\s+why: .*Not a directory"):
        Partitioned.create(InProcess(), PAIRS, {}, checkpoint=tmp_path / "file", partitions=1)


# The command line ----------------------------------------------------------------------------------------------------


@processes_of_its_own
def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, at = Graph(), ("--checkpoint", tmp_path / "q", "--processes", 2)
    (tmp_path / "q.dl").write_text(PROGRAM)

    def run(*arguments: object) -> tuple[Any, int]:
        code = command.main(list(map(str, arguments)))
        told = capsys.readouterr()
        return json.loads(told.out) if told.out else told.err, code

    inputs: list[object] = []
    for name, rows in graph.inputs().items():
        (tmp_path / name).mkdir()  # as Spark writes it
        pyarrow.parquet.write_table(rows, tmp_path / name / "part-0.parquet")
        inputs += ["--input", f"{name}={tmp_path / name}"]
    assert run("estimate", "--program", tmp_path / "q.dl", *inputs, "--processes", 2)[0]["share"] == 1
    told, code = run("create", "--program", tmp_path / "q.dl", *inputs, *at)
    assert (told["version"], told["partitions"], code) == (0, 2, 0)
    changes = graph.changes()
    given: list[object] = []
    for name, rows in changes.items():
        path = tmp_path / f"{name}.tsv"
        lines = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
        given += ["--changes", f"{name}={path}"]
    told, code = run("apply", *given, *at, "--batch-id", "b", "--delta", f"tri={tmp_path / 'delta'}")
    assert (told["version"], told["repeated"], code) == (1, False, 0)
    delta = pyarrow.parquet.read_table(tmp_path / "delta")
    assert delta.num_rows == len(graph.last["tri"].inserted) + len(graph.last["tri"].erased)
    assert run("apply", *given, *at, "--batch-id", "b")[0]["repeated"]
    assert run("rescale", "--checkpoint", tmp_path / "q", "--processes", 3) == ({"version": 2}, 0)
    assert run("verify", *at)[0]["ok"]
    assert run("result", *at, "--output", f"tri={tmp_path / 'tri'}") == ({"version": 2}, 0)
    assert sorted(rows_of(pyarrow.parquet.read_table(tmp_path / "tri"))) == sorted(graph.db["tri"])
    told, code = run("result", *at, "--output", f"tri={tmp_path / 'tri'}")
    assert (code, "File exists" in told) == (command.DATA_REFUSED, True)
    graph.check(Partitioned.open(InProcess(), tmp_path / "q"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "--checkpoint", "q", "--processes", "0"], "'0' is no number of 1 or more"),
        (["rescale", "--checkpoint", "q", "--processes", "2", "--partitions", "2"], "not allowed with argument"),
        (["rescale", "--checkpoint", "q"], "one of the arguments --processes --partitions is required"),
        (["serve", "--checkpoint", "q", "--changes", "e=x", "--processes", "2"], "unrecognized arguments"),
    ],
)
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_program_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--program", str(tmp_path / "no.dl"), "--checkpoint", str(tmp_path / "q"), "--processes", "1"]
    assert command.main(["create", *arguments]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path / 'no.dl'}: no such program file\n  why: the working directory is" in told


def test_a_target_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the system says stood alone, as `[Errno 2] No such file or directory`."""
    (tmp_path / "p.dl").write_text(".decl e(x:number, y:number)\nt(x) :- e(x, _).\n")
    (tmp_path / "e.csv").write_text("1,2\n")
    query = ["--checkpoint", str(tmp_path / "q"), "--processes", "1"]
    given = ["--program", str(tmp_path / "p.dl"), "--input", f"e={tmp_path / 'e.csv'}"]
    assert command.main(["create", *given, *query]) == 0
    capsys.readouterr()
    for target, why, remedy in (
        ("no/t.parquet", "No such file or directory", "check the folder and its permissions"),
        ("e.csv", "File exists", "name another: nothing is overwritten"),
    ):
        assert command.main(["result", "--output", f"t={tmp_path / target}", *query]) == 3
        told = capsys.readouterr().err
        assert told == f"{tmp_path / target}: the file cannot be written\n  why: {why}\n  do: {remedy}\n"
