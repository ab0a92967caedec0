"""What circuits are fed from: files, frames, Arrow streams, iterators; and the command that does it.

Catches: rows lost or doubled at the edges of batches and pieces, weights that are not read, a tail that misses lines.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lftj
from lftj import streams
from lftj.streams import batches as sources
from lftj.streams import whole_rows
from tests.cli.conftest import Shell, shell

__all__ = ["shell"]
ROWS = [(i % 7, float(i), f"name {i % 3}\n,ü") for i in range(100)]


def circuit() -> streams.Circuit:
    made = streams.Circuit("bids")
    bid = made.input("bid", auction=int, price=float, who=str)
    made.output("all", bid)
    made.output("count", bid.group_by("auction").aggregate(n=streams.count()))
    return made.incremental()


def totals(steps: Any) -> dict[str, dict[Any, int]]:
    """What all steps add up to."""
    found: dict[str, dict[Any, int]] = {}
    for deltas in steps:
        for name, delta in deltas.items():
            for row, weight in delta:
                rows = found.setdefault(name, {})
                rows[row] = rows.get(row, 0) + weight
    return {name: {row: weight for row, weight in rows.items() if weight} for name, rows in found.items()}


def table(weights: list[int] | None = None) -> pa.Table:
    auction, price, who = zip(*ROWS, strict=True)
    made = pa.table({"extra": price, "who": who, "auction": auction, "price": price})
    return made if weights is None else made.append_column("_weight", pa.array(weights))


def test_rows_of_a_zset_that_can_be_read_once_only() -> None:
    """They were read for the types of their columns, and there were none left."""
    table = pa.table({"k": [1, 2], "t": ["x", "y"]})
    assert list(streams.zset(table.to_reader())) == list(streams.zset(table)) == [((1, "x"), 1), ((2, "y"), 1)]
    assert list(streams.zset((k, k) for k in (1, 2))) == [((1, 1), 1), ((2, 2), 1)]


@pytest.mark.parametrize("rows", [pa.chunked_array([[1, 2]]), pd.Series([1, 2]), "bids.csv", [{"k": 1}], {"k": [1]}, 3])
def test_rows_of_a_zset_whose_columns_are_not_known(rows: Any) -> None:
    """A column was an error of pyarrow, and the first letter of a text the name of a file."""
    with pytest.raises(lftj.errors.ArgumentError, match="need `columns=`"):
        streams.zset(rows)


def test_a_first_line_that_names_no_column_is_a_row(tmp_path: Path) -> None:
    """It was left out, where `db.load` takes it."""
    path = tmp_path / "bids.csv"
    path.write_text("1,2.5,a\n1,3,b\n")
    assert totals(circuit().run({"bid": path}))["all"] == {(1, 2.5, "a"): 1, (1, 3.0, "b"): 1}
    path.write_text("1,2.5,a,2\n1,3,b,-1\n")
    assert totals(circuit().run({"bid": path}))["all"] == {(1, 2.5, "a"): 2, (1, 3.0, "b"): -1}


def test_a_first_line_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bids.csv"
    path.write_bytes(b"auction,\xffprice,who\n1,2,a\n")
    with pytest.raises(lftj.errors.DataError, match=r"bids\.csv:1: the first line names .*, but not `price` once"):
        list(circuit().run({"bid": path}))


def files(folder: Path) -> dict[str, Path]:
    found = {kind: folder / f"bids.{kind}" for kind in ("ndjson", "csv", "tsv", "parquet", "arrow")}
    rows = table().to_pylist()
    found["ndjson"].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    frame = table().to_pandas()
    frame["who"] = frame["who"].str.replace("\n", " ")
    frame.to_csv(found["csv"], index=False)
    frame.to_csv(found["tsv"], index=False, sep="\t")
    pq.write_table(table(), found["parquet"])
    with pa.ipc.new_file(found["arrow"], table().schema) as writer:
        writer.write_table(table(), max_chunksize=13)
    return found


def wanted(clean: bool) -> dict[Any, int]:
    return {(a, p, w.replace("\n", " ") if clean else w): 1 for a, p, w in ROWS}


@pytest.mark.parametrize("rows", [1, 7, 100, 1000])
@pytest.mark.parametrize("kind", ["ndjson", "csv", "tsv", "parquet", "arrow"])
def test_files(tmp_path: Path, kind: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE", 100)  # lines are cut in many places
    found = totals(circuit().run({"bid": files(tmp_path)[kind]}, rows=rows))
    assert found["all"] == wanted(clean=kind in ("csv", "tsv"))
    assert found["count"] == {(a, sum(row[0] == a for row in ROWS)): 1 for a in range(7)}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_files_whose_names_are_no_utf8(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / os.fsdecode(b"M\xfcnchen")
    folder.mkdir()
    moved = files(tmp_path)[kind].rename(folder / f"bids.{kind}")
    assert totals(circuit().run({"bid": moved}))["all"] == wanted(clean=kind == "csv")


@pytest.mark.parametrize("form", ["reader", "frame", "batches", "rows"])
def test_objects(form: str) -> None:
    source: Any = {
        "reader": pa.RecordBatchReader.from_batches(table().schema, table().to_batches(max_chunksize=9)),
        "frame": pd.DataFrame(ROWS, columns=["auction", "price", "who"]),
        "batches": [table().slice(0, 60), table().slice(60)],
        "rows": [ROWS[:30], ROWS[30:]],
    }[form]
    assert totals(circuit().run({"bid": source}, rows=8))["all"] == wanted(clean=False)


def test_what_comes_out_goes_in_again() -> None:
    """A column `_weight` says how often rows are there."""
    first, second = circuit(), circuit()
    for weights in ([1] * 100, [-1] * 50 + [2] * 50):
        delta = first.step({"bid": table(weights).drop_columns(["extra"])})
        assert delta["all"].arrow()["_weight"].to_pylist() == delta["all"]._zset.weights.tolist()
        assert second.step({"bid": delta["all"]})["count"] == delta["count"]
        again = circuit().step({"bid": delta["all"].arrow()})
        assert again["all"] == delta["all"]


def test_a_file_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unfinished lines wait for their end."""
    monkeypatch.setattr(sources, "PAUSE", 0.01)
    path = tmp_path / "bids.ndjson"
    path.write_text('{"auction": 1, "price": 2.0, "who"')
    more = [': "ann"}\n{"auction": 2, "pri', 'ce": 1.0, "who": "bob"}\n']

    def append() -> None:
        with path.open("a") as file:
            for part in more:
                file.write(part)
                file.flush()

    writer = threading.Timer(0.05, append)
    writer.start()
    steps = circuit().run({"bid": path}, follow=True)
    seen: list[Any] = []
    while len(seen) < 2:
        seen += [row for row, _ in next(steps)["all"]]
    writer.join()
    assert seen == [(1, 2.0, "ann"), (2, 1.0, "bob")]


def test_asynchronous_sources() -> None:
    async def bids() -> AsyncIterator[list[Any]]:
        for lo in range(0, 100, 40):
            await asyncio.sleep(0)
            yield ROWS[lo : lo + 40]

    async def all_steps() -> list[Any]:
        return [deltas async for deltas in circuit().run_async({"bid": bids()})]

    steps = asyncio.run(all_steps())
    assert len(steps) == 3
    assert totals(steps)["all"] == wanted(clean=False)


@pytest.mark.parametrize(("name", "content"), [("row.ndjson", "{}\n{}\n{}\n"), ("row.csv", "()\n()\n()\n")])
def test_rows_without_columns_are_as_many_as_there_are(tmp_path: Path, name: str, content: str) -> None:
    """They were as many as a batch may have."""
    made = streams.Circuit()
    made.output("o", made.input("row"))
    (tmp_path / name).write_text(content)
    for rows, found in ((10, [3]), (2, [2, 1])):
        steps = made.incremental().run({"row": tmp_path / name}, rows=rows)
        assert [dict(step["o"]) for step in steps] == [{(): n} for n in found]


def test_a_step_of_a_task_that_is_cancelled_is_not_made() -> None:
    """It was made nevertheless, and nobody got what it gave."""
    begun, go = threading.Event(), threading.Event()

    def slow(column: Any) -> Any:
        begun.set()
        assert go.wait(10)
        return column

    made = streams.Circuit()
    made.output("o", made.input("a", k=int).apply(slow, "k", z=int), whole=True)
    run = made.incremental()

    async def cancelled() -> None:
        task = asyncio.ensure_future(anext(run.run_async({"a": [[(1,)], [(2,)]]})))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()

    asyncio.run(cancelled())
    assert not run.value("o")
    assert run.step({"a": [(1,)]})["o"] == {(1, 1): 1}


def test_a_step_beside_another_one_is_made_again_after_it() -> None:
    made = streams.Circuit()
    total = made.input("a", k=int).group_by().aggregate(n=streams.count())
    calls: list[int] = []

    def other(column: Any) -> Any:
        calls.append(len(calls))
        return column

    made.output("n", total.apply(other, "n", z=int))
    run = made.incremental()

    async def beside() -> Any:
        publish = run._published

        def after_another(found: Any) -> Any:
            run._published = publish  # type: ignore[method-assign]
            run.step({"a": [(1,)]})
            return publish(found)

        run._published = after_another  # type: ignore[method-assign]
        batches = iter([iter([(2,), (3,)])])
        return [deltas["n"] async for deltas in run.run_async({"a": batches})]

    assert asyncio.run(beside()) == [{(1, 1): -1, (3, 3): 1}]
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("sources", "message"),
    [(5, "`sources` cannot be 5"), ({"bids": 1}, "the circuit has no input 'bids'")],
)
def test_what_an_asynchronous_run_cannot_read_is_refused_as_in_any_run(sources: Any, message: str) -> None:
    """It ended in an AttributeError."""

    async def all_steps() -> list[Any]:
        return [deltas async for deltas in circuit().run_async(sources)]

    with pytest.raises(lftj.Error, match=message):
        asyncio.run(all_steps())
    with pytest.raises(lftj.Error, match=message):
        list(circuit().run(sources))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "bids.ndjson",
            '{"auction": "x", "price": 1, "who": ""}\n',
            "{path}:1: 1 bad row: column `auction` of `bid`: 'x' is a str, not a number",
        ),
        (
            "bids.csv",
            "auction,price,who\nx,1,a\n",
            "{path}:2: 1 bad row: column `auction` of `bid`: 'x' is not a number",
        ),
        ("bids.txt", "1", "{path} cannot be read"),
        ("bids.parquet", "nothing", "{path} cannot be read"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    made = circuit()
    with pytest.raises(lftj.DataError) as caught:
        list(made.run({"bid": path}))
    assert str(caught.value).partition("\n")[0] == message.format(path=path)
    assert made.step({"bid": ROWS})["count"] == circuit().step({"bid": ROWS})["count"]


def test_text_is_read_from_a_pipe(tmp_path: Path) -> None:
    """There was said to be no file, though a step and `Database.load` read one."""
    pipe = tmp_path / "bids.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("auction,price,who\n1,5,a\n",), daemon=True)
    writer.start()
    expected = dict(circuit().step({"bid": [(1, 5.0, "a")]})["count"])
    assert [dict(deltas["count"]) for deltas in circuit().run({"bid": pipe})] == [expected]
    writer.join()
    os.mkfifo(tmp_path / "bids.parquet")
    with pytest.raises(lftj.DataError, match=r"bids\.parquet is no regular file"):
        list(circuit().run({"bid": tmp_path / "bids.parquet"}))


def test_sources_of_other_kinds() -> None:
    with pytest.raises(lftj.DataError, match="rows cannot be read from an object of type int"):
        list(circuit().run({"bid": 5}))
    with pytest.raises(lftj.DataError, match=r"there is no file nowhere\.csv"):
        list(circuit().run({"bid": "nowhere.csv"}))
    with pytest.raises(lftj.DataError, match="only text files can be followed"):
        list(circuit().run({"bid": [ROWS]}, follow=True))
    with pytest.raises(lftj.DataError, match="no input 'bids'"):
        list(circuit().run({"bids": [ROWS]}))
    with pytest.raises(lftj.DataError, match="the column `_weight` is of type double"):
        circuit().step({"bid": table().append_column("_weight", pa.array([0.5] * 100))})


PROGRAM = """
from lftj import streams
circuit = streams.Circuit("bids")
bid = circuit.input("bid", auction=int, price=float, who=str)
circuit.output("top", bid.group_by("auction").top(1, "-price"))
"""
BIDS = '{"auction":1,"price":2.5,"who":"ann"}\n{"auction":1,"price":3.5,"who":"bob"}\n'


def test_the_command(shell: Shell) -> None:
    shell.write({"c.py": PROGRAM, "b.ndjson": BIDS})
    found = shell(
        "stream", str(shell.folder / "c.py"), "--input", f"bid={shell.folder / 'b.ndjson'}", "--rows", "1", "--stats"
    )
    assert [json.loads(line) for line in found.out.splitlines()] == [
        {"_output": "top", "_weight": 1, "auction": 1, "price": 2.5, "who": "ann"},
        {"_output": "top", "_weight": -1, "auction": 1, "price": 2.5, "who": "ann"},
        {"_output": "top", "_weight": 1, "auction": 1, "price": 3.5, "who": "bob"},
    ]
    assert found.code == 0
    assert found.err.startswith("2 steps\ncircuit bids, of changes, after 2 ticks\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.py"], 2, "there is no file none.py"),
        (["empty.py"], 2, "empty.py makes no circuit"),
        (["c.py", "--input", "bid"], 2, "--input bid names no file for an input"),
        (["c.py", "--rows", "none"], 2, "--rows none is not a number of rows"),
        (["c.py", "--input", "bidd=b.ndjson"], 2, "the circuit has no input 'bidd'"),
        (["c.py", "--input", "bid=c.ndjson"], 3, "there is no file c.ndjson"),
        (["c.py", "--input", "bid=."], 3, ". is a folder"),
        (["."], 2, ". is a folder"),
    ],
)
def test_the_command_refuses(shell: Shell, arguments: list[str], code: int, message: str) -> None:
    shell.write({"c.py": PROGRAM, "b.ndjson": BIDS, "empty.py": ""})
    found = shell("stream", *arguments)
    assert (found.code, found.out) == (code, "")
    assert f"error: {message}\n" in found.err


@pytest.mark.parametrize(
    ("name", "text", "code", "told"),
    [
        (
            "p.dl",
            ".decl e(a:number)\n",
            1,
            "p.dl:1:1: error: this is not Python: invalid syntax\n    .decl e(a:number)\n    ^\n"
            "  why: a circuit is made by a Python file\n"
            "  do: correct it; a program of rules or of SQL is run by `lftj run`\n",
        ),
        (
            "c.py",
            "import json\nimport no_module_of_this_name\n",
            2,
            "c.py:2: error: an import fails: No module named 'no_module_of_this_name'\n"
            f"  why: the Python that runs it is {sys.executable}, and modules beside the file are found too\n"
            "  do: install what is missing there, or check the name\n",
        ),
    ],
)
def test_what_makes_no_circuit_is_told(shell: Shell, name: str, text: str, code: int, told: str) -> None:
    shell.write({name: text})
    assert shell("stream", name) == (code, "", told)


def test_what_the_code_of_a_circuit_raises_is_shown_where_it_is(shell: Shell) -> None:
    """It was a traceback through the command line of lftj."""
    shell.write(
        {
            "c.py": "import beside\n\ndef made(n):\n    return 'ü' + beside.made(n)\n\nmade(2)\n",
            "beside.py": "import json\n\ndef made(n):\n    return made(n - 1) if n else json.loads('')\n",
            "none.py": "open('none.json')\n",
            "stopped.py": "raise SystemExit(7)\n",
        }
    )
    beside = shell.folder / "beside.py"
    end = "  why: a circuit is made by running a Python file\n  do: correct it; `{} {}` prints the whole traceback\n"
    python = Path(sys.executable).name
    assert shell("stream", "c.py") == (
        1,
        "",
        f"{beside}:4:34: error: json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"
        "        return made(n - 1) if n else json.loads('')\n"
        "                                     ^^^^^^^^^^^^^^\n"
        f"  called from: {beside}:4:12\n"
        "        return made(n - 1) if n else json.loads('')\n"
        "               ^^^^^^^^^^^\n"
        "  called from: c.py:4:18\n"
        "        return 'ü' + beside.made(n)\n"
        "                     ^^^^^^^^^^^^^^\n"
        "  called from: c.py:6:1\n"
        "    made(2)\n"
        "    ^^^^^^^\n" + end.format(python, "c.py"),
    )
    assert shell("stream", "none.py") == (
        1,
        "",
        "none.py:1:1: error: FileNotFoundError: [Errno 2] No such file or directory: 'none.json'\n"
        "    open('none.json')\n"
        "    ^^^^^^^^^^^^^^^^^\n" + end.format(python, "none.py"),
    )
    with pytest.raises(SystemExit):
        shell("stream", "stopped.py")


@pytest.mark.parametrize("how", ["replaced", "cut"])
def test_a_file_that_begins_anew_cannot_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """What was written to it from then on was waited for in the old one, without a word."""
    monkeypatch.setattr(sources, "PAUSE", 0.01)
    path, other = tmp_path / "bids.ndjson", tmp_path / "others.ndjson"
    path.write_text('{"auction": 1, "price": 2.0, "who": "ann"}\n')
    steps = circuit().run({"bid": path}, follow=True)
    assert [row for row, _ in next(steps)["all"]] == [(1, 2.0, "ann")]
    if how == "cut":
        path.write_text("")
    else:
        other.write_text('{"auction": 1, "price": 2.0, "who": "ann"}\n' * 2)
        other.rename(path)
    with pytest.raises(lftj.DataError, match=rf"bids\.ndjson was {how} while it was followed"):
        next(steps)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("seed", range(6))
def test_rows_are_whole_wherever_pieces_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, end: str, seed: int
) -> None:
    """A line break in quotes at the end of a piece made two rows of one. In a TSV file quotes are text."""
    random, delimiter = Random(seed), "," if kind == "csv" else "\t"
    inside = ["a", end, ",", chr(9), chr(34) * 2] if kind == "csv" else ["a", ",", '"']

    def field() -> str:
        if random.random() < 0.5:
            return f'"{"".join(random.choices(inside, k=random.randrange(5)))}"'
        return "x" + "".join(random.choices(["a", '"', "\t" if kind == "csv" else ","], k=random.randrange(3)))

    text = f"a{delimiter}b{end}" + "".join(field() + delimiter + field() + end for _ in range(5))
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(text.encode())

    def read() -> list[tuple[str, str]]:
        batches = sources.batches(path, {"a": "symbol", "b": "symbol"})
        return [(row["a"], row["b"]) for batch in batches for row in batch.to_pylist()]

    expected = read()
    db = lftj.Database(".decl t(a:symbol, b:symbol)")
    db.load("t", path)
    assert set(db["t"]) == set(expected)
    for size in range(1, len(text)):
        monkeypatch.setattr(sources, "PIECE", size)
        assert read() == expected, (size, text)


def test_a_quote_that_is_not_closed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took in the rest of the file, at a cost that grew with the square of it."""
    monkeypatch.setattr(whole_rows, "MOST", 100)
    monkeypatch.setattr(sources, "PIECE", 32)
    path = tmp_path / "notes.csv"
    path.write_text('id,note\n1,a\n2,"b\n' + "3,c\n" * 100)
    made = streams.Circuit()
    made.output("all", made.input("row", id=int, note=str))
    with pytest.raises(lftj.DataError, match=r"notes\.csv: the row from line 3 on has no end"):
        list(made.incremental().run({"row": path}))


def test_a_followed_file_waits_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PAUSE", 0.01)
    path = tmp_path / "rows.csv"
    path.write_text('a,b,c\n1,"x\ny",')
    found = sources.batches(path, {"a": "number", "b": "symbol", "c": "number"}, follow=True)

    def append() -> None:
        with path.open("a") as file:
            file.write("5\n")

    threading.Timer(0.1, append).start()
    assert next(found).to_pylist() == [{"a": 1, "b": "x\ny", "c": 5}]


def test_a_followed_file_does_not_wait_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was appended to one was looked at when something was appended to the other, too."""
    monkeypatch.setattr(sources, "PAUSE", 0.01)
    for name in ("a", "b"):
        (tmp_path / f"{name}.ndjson").write_text('{"x": 1}\n')
    made = streams.Circuit()
    made.output("both", made.input("a", x=int).join(made.input("b", x=int), on="x"))
    made.output("all", made.input("c", x=int))
    steps = made.incremental().run({name: tmp_path / f"{name}.ndjson" for name in ("a", "b")}, follow=True)
    assert dict(next(steps)["both"]) == {(1,): 1}
    with (tmp_path / "b.ndjson").open("a") as file:
        file.write('{"x": 1}\n')
    assert dict(next(steps)["both"]) == {(1,): 1}


@pytest.mark.parametrize("rows", [0, -1, "x", True])
def test_batches_have_a_row_or_more(tmp_path: Path, rows: Any) -> None:
    """With a number below 0, nothing at all was read, without a word."""
    path = tmp_path / "bids.csv"
    path.write_text("auction,price,who\n1,2.5,a\n")
    with pytest.raises(lftj.errors.ArgumentError, match="`rows` cannot be"):
        list(circuit().run({"bid": path}, rows=rows))
