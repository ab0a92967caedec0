"""The column `_weight` of whatever a step is given, and columns that it has beside.

Catches: a retraction that becomes an insert because the source is of another kind; a batch that is None and ends its
source; columns that are passed over without a word.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lftj import streams
from lftj.errors import DataError, DataWarning

TABLE = pa.table({"k": [1, 2], "t": ["x", "y"], "_weight": [2, -1]})
WANTED = {(1, "x"): 2, (2, "y"): -1}


@dataclass
class Row:
    k: int
    t: str
    _weight: int


def circuit() -> streams.Circuit:
    made = streams.Circuit()
    made.output("o", made.input("a", k=int, t=str))
    return made


def stepped(source: Any) -> dict[Any, int]:
    return dict(circuit().step({"a": source})["o"])


class Stream:
    """Anything with an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "stream": Stream,
    "duckdb": lambda: duckdb.sql("select 1 as k, 'x' as t, 2 as _weight union all select 2, 'y', -1"),
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.from_arrow(TABLE),
    "columns": TABLE.to_pydict,
    "dicts": TABLE.to_pylist,
    "generator": lambda: (row for row in TABLE.to_pylist()),
    "view": lambda: dict(enumerate(TABLE.to_pylist())).values(),
    "dataclasses": lambda: [Row(1, "x", 2), Row(2, "y", -1)],
    "numpy": lambda: np.array([(1, "x", 2), (2, "y", -1)], [("k", int), ("t", "U1"), ("_weight", int)]),
}


def test_a_z_set_without_rows_is_one_of_any_stream() -> None:
    """It was refused, since nothing tells its columns; a list without rows was not."""
    assert stepped(streams.zset([], [])) == {}
    z = streams.zset(list(WANTED), list(WANTED.values()))
    assert z + streams.zset([]) == WANTED
    assert stepped(z - z) == {}


@pytest.mark.parametrize("kind", SOURCES)
def test_weights_of_objects(kind: str) -> None:
    assert stepped(SOURCES[kind]()) == WANTED


def files(folder: Path) -> list[Path]:
    frame, rows = TABLE.to_pandas(), TABLE.to_pylist()
    arrays = [[1, "x", 2], [2, "y", -1]]
    frame.to_csv(folder / "named.csv", index=False)
    frame.to_csv(folder / "plain.csv", index=False, header=False)
    frame.to_csv(folder / "named.tsv", index=False, sep="\t")
    frame.to_csv(folder / "packed.csv.gz", index=False)
    pq.write_table(TABLE, folder / "rows.parquet")
    with pa.ipc.new_file(folder / "rows.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    (folder / "objects.json").write_text(json.dumps(rows))
    (folder / "arrays.json").write_text(json.dumps(arrays))
    (folder / "objects.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "arrays.ndjson").write_text("".join(json.dumps(row) + "\n" for row in arrays))
    return sorted(folder.iterdir())


def test_weights_of_files(tmp_path: Path) -> None:
    """Those that a run takes count in a step, and in files that only steps take."""
    for path in files(tmp_path):
        assert stepped(path) == stepped([str(path)]) == WANTED, path.name
        with path.open("rb") as file:
            assert stepped(file) == WANTED, path.name
        if path.suffix not in (".json", ".gz"):
            (delta,) = circuit().run({"a": path})
            assert dict(delta["o"]) == WANTED, path.name


def test_files_without_weights(tmp_path: Path) -> None:
    for name, text in {
        "a.csv": "k,t\n1,_weight\n",
        "b.csv": "1,_weight\n",
        "a.json": '[{"k": 1, "t": "_weight"}]',
        "b.json": '[[1, "_weight"]]',
    }.items():
        (tmp_path / name).write_text(text)
        assert stepped(tmp_path / name) == {(1, "_weight"): 1}
    (tmp_path / "empty.csv").write_text("")
    assert stepped(tmp_path / "empty.csv") == {}
    with pytest.raises(DataError, match="3 values where 2 are due"):
        stepped([(1, "x", 2)])  # rows in memory have weights by name only


def test_a_column_of_ones_own() -> None:
    made = streams.Circuit()
    made.output("o", made.input("a", k=int, _weight=int))
    for source in (pa.table({"k": [1], "_weight": [2]}), [{"k": 1, "_weight": 2}]):
        assert dict(made.step({"a": source})["o"]) == {(1, 2): 1}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"k": [1], "t": ["x"], "_weight": [1.5]}, "column `_weight` of `a`: 1.5 is a float"),
        ([{"k": 1, "t": "x", "_weight": 2}, {"k": 1, "t": "x"}], "has no `_weight`"),
        ([{"k": 1, "t": "x"}, {"k": 1, "t": "x", "_weight": 2}], "has no `_weight`"),
        (pl.LazyFrame({"k": [1], "t": ["x"]}), r"(?s)LazyFrame holds no rows yet.*call collect\(\) on it first"),
    ],
    ids=["float", "later", "first", "lazy"],
)
def test_refused(source: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        stepped(source)


def test_runs_over_readers_and_none() -> None:
    """A batch that is None is no rows; it ended its source."""
    assert [dict(delta["o"]) for delta in circuit().run({"a": [TABLE.to_reader(), None, [(3, "z")]]})] == [
        WANTED,
        {},
        {(3, "z"): 1},
    ]

    async def batches() -> AsyncIterator[Any]:
        yield None
        yield TABLE.to_reader()

    async def collected() -> list[dict[Any, int]]:
        return [dict(delta["o"]) async for delta in circuit().run_async({"a": batches()})]

    assert asyncio.run(collected()) == [{}, WANTED]
    made = streams.Circuit()
    made.output("o", made.input("a", k=int) + made.input("b", k=int))
    found = [dict(d["o"]) for d in made.run({"a": [None, [(1,)], None], "b": [[(2,)], None]})]
    assert found == [{(2,): 1}, {(1,): 1}, {}]


@pytest.mark.parametrize(
    "source",
    [
        pa.record_batch({"k": [1], "z": [0], "t": ["x"], "_weight": [2]}),
        pa.table({"k": [1], "z": [0], "t": ["x"], "_weight": [2]}),
        [{"k": 1, "z": 0, "t": "x", "_weight": 2}],
        {"k": [1], "z": [0], "t": ["x"], "_weight": [2]},
    ],
    ids=["batch", "table", "dicts", "columns"],
)
def test_other_columns_are_told_of_once(source: Any) -> None:
    made = circuit()
    with pytest.warns(DataWarning, match=r"(?s)columns passed over: `z`\n.*do: leave these columns out") as told:
        assert dict(made.step({"a": source})["o"]) == {(1, "x"): 2}
    assert [Path(one.filename).name for one in told] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dict(made.step({"a": source})["o"]) == {(1, "x"): 2}
        made.step({})


@pytest.mark.parametrize("kind", ["table", "dicts"])
def test_a_step_whose_warning_is_an_error_is_not_made(kind: str) -> None:
    """It was made, what it gave was lost, and the same rows passed the next time."""
    made = circuit()
    made.step()
    rows = [{"k": 1, "z": 0, "t": "x"}]
    source = rows if kind == "dicts" else pa.Table.from_pylist(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(DataWarning, match="columns passed over: `z`"):
                made.step({"a": source})
    with pytest.warns(DataWarning, match="columns passed over: `z`"):
        assert dict(made.step({"a": source})["o"]) == {(1, "x"): 1}


def test_what_a_failed_step_passed_over_is_told_of_later() -> None:
    """It was taken for told, though the step had failed before anybody was told."""
    made = streams.Circuit()
    made.output("o", made.input("a", k=int) + made.input("b", k=int))
    more = pa.table({"k": [1], "z": [0]})
    made.step()  # what rows are read by stays from now on
    with pytest.raises(DataError):
        made.step({"a": more, "b": [("x",)]})
    with pytest.warns(DataWarning, match="columns passed over: `z`"):
        made.step({"a": more})
