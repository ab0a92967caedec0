"""Change feeds against plain replay: whole commits in order, from every offset, whatever ends them.

Catches: a change applied out of order or twice, a commit made in part or cut elsewhere, an offset that skips or
repeats rows, a row under another number, a feed that is refused after half of it took effect.
"""

from __future__ import annotations

import datetime as dt
import gc
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lftj
from lftj.errors import DataError, DataWarning, TransactionError
from lftj.io import change_feed
from lftj.io.change_feed import FeedError, FeedRows
from lftj.io.rejects import BadRowsError
from lftj.maintain.commit import Commit
from lftj.values.symbols import SymbolTable
from tests.conftest import examples

EDGE = ".decl edge(src:number, dst:symbol)  .decl seen(d:symbol)  seen(d) :- edge(_, d)."
PRICE = ".decl price(item:symbol) -> cost:number  dear(i) :- price[i] > 1."
COMES = ["+1", "+", "1", "insert", "I", "c", "Create", "r"]
GOES = ["-1", "-", "delete", "D", "d"]
REPLACES = ["u", "UPDATE", "upsert", "="]


def replayed(rows: list[tuple[Any, ...]], functional: bool) -> list[set[tuple[Any, ...]]]:
    """The content after each row of a feed (a, b, op), as plain Python."""
    held: set[tuple[Any, ...]] = set()
    states = []
    for a, b, op in rows:
        by_key = functional and op.lower() not in ("+1", "+", "1", "-1", "-")
        if by_key:
            held = {row for row in held if row[0] != a}
        if op in GOES:
            held = held - {(a, b)}
        else:
            held = held | {(a, b)}
        states.append(held)
    return states


def cuts(rows: list[tuple[Any, ...]], size: int, txs: list[int] | None) -> list[int]:
    """Where the commits end."""
    if txs is None:
        return [*range(size, len(rows), size), len(rows)] if rows else []
    return [i for i in range(1, len(rows) + 1) if i == len(rows) or txs[i] != txs[i - 1]]


def sources(rows: list[tuple[Any, ...]], names: list[str]) -> dict[str, Any]:
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    table = pa.table(columns) if rows else pa.table({name: pa.array([], pa.string()) for name in names})
    dicts = [dict(zip(names, row, strict=True)) for row in rows]
    return {
        "tuples": rows,
        "dicts": dicts,
        "generator": (row for row in rows),
        "generator of dicts": iter(dicts),
        "columns": columns,
        "arrow": table,
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
    }


KINDS = sorted(sources([(1, "a", "c")], ["x", "y", "op"]))


@examples(150, 10)
@given(st.data(), st.booleans(), st.sampled_from(KINDS), st.integers(1, 4))
def test_feeds_are_what_replay_says(data: Any, functional: bool, kind: str, size: int) -> None:
    ops = st.sampled_from([*COMES, *GOES, *(REPLACES if functional else [])])
    keys, rest = ("abc", [1, 2, 3]) if functional else ([1, 2, 3], "abc")
    rows = data.draw(st.lists(st.tuples(st.sampled_from(keys), st.sampled_from(rest), ops), min_size=1, max_size=14))
    with_tx = data.draw(st.booleans())
    txs = data.draw(st.lists(st.sampled_from([1, 2, 3]), min_size=len(rows), max_size=len(rows))) if with_tx else None
    states = replayed(rows, functional)
    ends = cuts(rows, size, txs)
    # +1 of another value than the key has is a conflict, which other tests are about.
    assume(not functional or all(len(dict(held)) == len(held) for held in (states[end - 1] for end in ends)))
    name, program = ("price", PRICE) if functional else ("edge", EDGE)
    names = ["item", "cost"] if functional else ["src", "dst"]
    given_rows = [(*row, tx) for row, tx in zip(rows, txs, strict=True)] if txs else rows
    names += ["op", "tx"] if txs else ["op"]
    start = data.draw(st.sampled_from([0, *ends]))
    db = lftj.Database(program)
    db.load(name, sorted(states[start - 1]) if start else [])
    found = []
    report = db.load_changes(
        name,
        sources(given_rows, names)[kind],
        tx="tx" if txs else None,
        batch_rows=size,
        start=start,
        on_commit=lambda report: found.append((report.offset, set(db[name]))),
    )
    # A batch of the rest begins at `start`.
    wanted = [end for end in ends if end > start] if txs else [start + end for end in cuts(rows[start:], size, None)]
    assert [end for end, _ in found] == wanted
    assert all(held == states[end - 1] for end, held in found)
    assert (report.rows, report.commits, report.offset) == (len(rows) - start, len(found), len(rows))
    other = "dear" if functional else "seen"
    assert set(db[other]) == ({(k,) for k, v in db[name] if v > 1} if functional else {(d,) for _, d in db[name]})


ROWS = [(1, "a", "c"), (2, "b", "c"), (1, "a", "d"), (3, "a", "c"), (2, "b", "d"), (4, "z", "c"), (4, "z", "d")]


@pytest.mark.parametrize("offset", range(len(ROWS) + 1))
@pytest.mark.parametrize("how", ["list", "iterator"])
def test_it_goes_on_from_every_offset(offset: int, how: str) -> None:
    """Interrupted after any row, the rest of the feed gives what the whole does."""
    db = lftj.Database(EDGE)

    def source() -> Any:
        return ROWS if how == "list" else iter(ROWS)

    def stop(report: Any) -> None:
        if report.offset == offset:
            raise KeyboardInterrupt

    if offset:
        with pytest.raises(KeyboardInterrupt) as caught:
            db.load_changes("edge", source(), batch_rows=1, on_commit=stop)
        reached = caught.value.report.offset  # type: ignore[attr-defined]
        assert caught.value.__notes__ == [
            "of the changes of `edge` were committed: "
            f"{offset} rows in {offset} commits; go on with start={offset}".replace(
                "1 rows in 1 commits", "1 row in 1 commit"
            )
        ]
    else:
        reached = db.load_changes("edge", source(), batch_rows=1, on_commit=stop).offset
    assert reached == (offset or len(ROWS))
    assert set(db["edge"]) == replayed(ROWS, False)[reached - 1]
    report = db.load_changes("edge", source(), batch_rows=3, start=reached)
    assert report.offset == len(ROWS)
    assert set(db["edge"]) == replayed(ROWS, False)[-1]


@pytest.mark.parametrize("at", range(3))
def test_an_interrupted_commit_leaves_whole_ones(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    db = lftj.Database(EDGE)
    run, count = Commit.run, iter(range(100))

    def interrupted(commit: Commit) -> None:
        run(commit)
        if next(count) == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(Commit, "run", interrupted)
    feed = db.changes()
    with pytest.raises(KeyboardInterrupt) as caught:
        db.load_changes("edge", ROWS, batch_rows=2)
    assert caught.value.report.offset == 2 * at  # type: ignore[attr-defined]
    assert set(db["edge"]) == (replayed(ROWS, False)[2 * at - 1] if at else set())
    assert len(feed.waiting()) == at
    db.load_changes("edge", ROWS, batch_rows=2, start=2 * at)
    assert set(db["edge"]) == replayed(ROWS, False)[-1]


def test_a_commit_that_fails() -> None:
    db = lftj.Database(EDGE + " half(10 / x) :- edge(x, _).")
    list(db["half"])
    with pytest.raises(lftj.Error, match="half") as caught:
        db.load_changes("edge", [(1, "a", 1), (2, "b", 1), (0, "c", 1), (5, "d", 1)], batch_rows=1)
    assert caught.value.report.offset == 2  # type: ignore[attr-defined]
    assert list(db["half"]) == [(5,), (10,)]
    shop = lftj.Database(PRICE)
    with pytest.raises(lftj.Error, match="two values") as caught:
        shop.load_changes("price", [("a", 1, "+1"), ("a", 2, "+1")])
    assert (list(shop["price"]), caught.value.report.rows) == ([], 0)  # type: ignore[attr-defined]


def test_keys() -> None:
    """Words are about keys, signs about rows."""
    db = lftj.Database(PRICE)
    db.load_changes("price", [("a", 1, "c"), ("b", 1, "r"), ("a", 2, "u"), ("b", 7, "d"), ("c", 3, "u"), ("b", 9, "c")])
    assert list(db["price"]) == [("a", 2), ("b", 9), ("c", 3)]
    db.load_changes("price", [("a", 5, "+1"), ("a", 2, "-1"), ("c", 9, "-1"), ("b", 0, "d")])
    assert list(db["price"]) == [("a", 5), ("c", 3)]
    db.load_changes("price", [("a", 0, "d"), ("a", 6, "u"), ("c", 1, "u"), ("c", 1, "d")], batch_rows=4)
    assert list(db["price"]) == [("a", 6)]
    one = lftj.Database(".decl k() -> v:number")
    one.load_changes("k", [(1, "c"), (2, "u"), (3, "d"), (4, "c"), (5, "u")])
    assert list(one["k"]) == [(5,)]
    yes = lftj.Database(".decl yes()")
    yes.load_changes("yes", [{"op": 1}, {"op": -1}, {"op": 1}])
    assert list(yes["yes"]) == [()]


def test_files(tmp_path: Path) -> None:
    db = lftj.Database(EDGE)
    (tmp_path / "e.csv").write_text("dst,op,src,tx\na,c,1,7\nb,c,2,7\na,d,1,8\n")
    with pytest.warns(DataWarning, match="columns passed over: `tx`"):
        assert db.load_changes("edge", tmp_path / "e.csv").commits == 1
    assert list(db["edge"]) == [(2, "b")]
    report = db.load_changes("edge", tmp_path / "e.csv", tx="tx")
    assert (report.rows, report.commits, report.offset) == (3, 2, 3)
    assert str(report) == "3 rows in 2 commits; go on with start=3"
    lines = "".join(json.dumps({"op": op, "src": a, "dst": b, "tx": "t1"}) + "\n" for a, b, op in ROWS)
    (tmp_path / "e.ndjson").write_text(lines)
    assert db.load_changes("edge", tmp_path / "e.ndjson", tx="tx").commits == 1
    assert db.load_changes("edge", io.StringIO(lines), tx="tx", format="ndjson", start=3).rows == 4
    pa.parquet.write_table(pa.table({"src": [9], "dst": ["q"], "op": pa.array([1], pa.int8())}), tmp_path / "e.parquet")
    db.load_changes("edge", str(tmp_path / "e.parquet"))
    assert (9, "q") in db["edge"]
    number = '{"src": 10, "dst": "q", "op": 1}\n'  # read twice, since `op` is no text
    assert db.load_changes("edge", io.StringIO(number), format="ndjson").rows == 1
    assert db.load_changes("edge", pa.table({"src": [11], "dst": ["q"], "op": [1]}).to_reader()).rows == 1
    assert {(10, "q"), (11, "q")} <= set(db["edge"])
    assert db.load_changes("edge", []).rows == db.load_changes("edge", iter(())).rows == 0
    assert "t1" not in db._symbols.decode(np.arange(len(db._symbols))).to_pylist()


def test_any_time_tells_transactions_apart() -> None:
    for one, two in (
        (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)),
        (dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        (b"a", b"b"),
    ):
        rows = [{"src": i, "dst": "a", "op": 1, "at": one if i < 2 else two} for i in range(3)]
        for source in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows)):
            assert lftj.Database(EDGE).load_changes("edge", source, tx="at").commits == 2


def test_what_is_no_op_and_no_tx_is_named_as_the_feeds() -> None:
    good = {"src": 1, "dst": "a", "op": 1, "at": 1}
    for bad, where, what in (
        ({"at": None}, "list, row 1", "holds null"),
        ({"at": "x"}, "list, row 1", "holds 'x'"),
        ({"op": None}, "list, row 1", "holds null"),
    ):
        with pytest.raises(DataError) as info:
            lftj.Database(EDGE).load_changes("edge", [good, good | bad], tx="at")
        name = next(iter(bad))
        assert str(info.value).startswith(f"{where} (from 0): 1 bad row: the feed's column `{name}` {what}\n")
        assert "quarantine" not in str(info.value)
        with pytest.raises(DataError, match="row 1 "):
            lftj.Database(EDGE).load_changes("edge", iter([good, good | bad]), tx="at", batch_rows=1)
    with pytest.raises(DataError, match="the feed's column `at` is a float64") as info:
        lftj.Database(EDGE).load_changes("edge", pd.DataFrame([good | {"at": 1.5}]), tx="at")
    with pytest.raises(DataError) as info:
        lftj.Database(EDGE).load_changes("edge", [good | {"src": "x"}])
    assert "quarantine" not in str(info.value)


def test_deltas_are_feeds() -> None:
    first, second = lftj.Database(EDGE), lftj.Database(EDGE)
    feed = first.changes("edge")
    for rows in ([(1, "a")], [(1, "b"), (2, "a")], [(3, "c")]):
        with first.transaction() as tx:
            tx.insert("edge", rows)
            tx.erase("edge", [(1, "a")] if len(rows) > 1 else [])
    for deltas in feed.waiting():
        second.load_changes("edge", deltas["edge"], op="_op")
    assert list(first["edge"]) == list(second["edge"])


def test_columns_by_other_names() -> None:
    db = lftj.Database(EDGE)
    frame = pd.DataFrame({"__op": ["c"], "to": ["x"], "from": [1], "lsn": [5]})
    db.load_changes("edge", frame, op="__op", tx="lsn", columns={"src": "from", "dst": "to"})
    db.load_changes("edge", [("+", "y", 2)], columns={"op": 0, "dst": 1, "src": 2})
    assert list(db["edge"]) == [(1, "x"), (2, "y")]


def endless() -> Iterator[tuple[int, str, int]]:
    i = 0
    while True:
        yield i, "x", 1
        i += 1


@pytest.mark.parametrize("tx", ["t", None])
def test_a_commit_of_many_pieces_is_joined_once(tx: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece was joined with all before it: 400,000 rows of one transaction in pieces of 20 took 22 seconds."""
    joined, join = 0, FeedRows.joined

    def counted(parts: Sequence[FeedRows]) -> FeedRows:
        nonlocal joined
        joined += sum(map(len, parts))
        return join(parts)

    monkeypatch.setattr(FeedRows, "joined", staticmethod(counted))
    db = lftj.Database(".decl e(a:number)")
    pieces = [{"a": [3 * i, 3 * i + 1], "op": [1, 1], **({"t": [i // 90] * 2} if tx else {})} for i in range(100)]
    batches = [pa.RecordBatch.from_pydict(piece) for piece in pieces]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    report = db.load_changes("e", reader, tx=tx, batch_rows=180)
    assert (report.rows, report.commits) == (200, 2)
    assert len(db["e"]) == 200
    assert joined <= 2 * 200


def test_iterators_are_read_as_they_come() -> None:
    db = lftj.Database(EDGE)

    def stop(report: Any) -> None:
        if report.commits == 3:
            raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough") as caught:
        db.load_changes("edge", endless(), batch_rows=10, on_commit=stop)
    assert caught.value.report.offset == len(db["edge"]) == 30  # type: ignore[attr-defined]


def test_what_a_piece_takes_does_not_grow_with_the_feed() -> None:
    """The texts of all pieces were kept, each text of `tx` for ever, and each piece looked through all of them."""
    db, kept = lftj.Database(EDGE), []
    others = {id(table): table for table in gc.get_objects() if type(table) is SymbolTable}

    def look(report: Any) -> None:
        tables = [table for table in gc.get_objects() if type(table) is SymbolTable and id(table) not in others]
        kept.append(max(map(len, tables)))

    rows = ((i, f"d{i}", "+", f"t{i // 3}") for i in range(60))
    report = db.load_changes(
        "edge",
        (dict(zip(("src", "dst", "op", "at"), row, strict=True)) for row in rows),
        tx="at",
        batch_rows=2,
        on_commit=look,
    )
    assert (report.commits, len(db["seen"])) == (20, 60)  # of two pieces each, or of one and a half
    assert max(kept) <= 5


@pytest.mark.parametrize(
    ("rows", "error", "what", "row"),
    [
        ([(1, "a", "c"), ("2", "b", "c")], BadRowsError, "column `src` of `edge`: '2' is a str, not a number", 1),
        ([(1, "a", "c"), (2, "b", "c"), (3, "c")], BadRowsError, "(3, 'c') has 2 values where 3 are due", 2),
        ([(1, "a", "c"), (2, "b", "c"), (3, "c", "x")], FeedError, "`op` is 'x', which is no operation", 2),
        ([(1, "a", 1), (2, "b", 1), (3, "c", 0)], FeedError, "`op` is 0, which is no operation", 2),
        (
            [(1, "a", "c"), (1, "a", "u")],
            FeedError,
            "`op` is 'u', which replaces the row of a key, and edge(src:number, dst:symbol) has no keys",
            1,
        ),
        ([(1, "a", "c"), (2, "b", None)], BadRowsError, "the feed's column `op` holds null", 1),
        ([(1, "a", 1.0)], BadRowsError, "the feed's column `op` holds 1.0", 0),
    ],
)
def test_bad_rows_are_told_by_number(rows: list[Any], error: type, what: str, row: int) -> None:
    db = lftj.Database(EDGE)
    with pytest.raises(error) as caught:
        db.load_changes("edge", rows, batch_rows=1)
    assert what in caught.value.what
    assert str(row) in caught.value.where
    assert (list(db["edge"]), caught.value.report.offset) == ([], 0)  # all of it is checked first
    with pytest.raises(error) as caught:
        db.load_changes("edge", iter(rows), batch_rows=1)
    assert what in caught.value.what
    assert f"row {row} " in caught.value.where
    assert caught.value.report.offset == len(db["edge"]) == row  # an iterator is checked as it comes


def test_refusals(tmp_path: Path) -> None:
    db = lftj.Database(EDGE + ".decl odd(op:number)")
    (tmp_path / "e.csv").write_text("src,dst,op\n1,a,c\n2,b,what\n")
    with pytest.raises(FeedError) as caught:
        db.load_changes("edge", tmp_path / "e.csv")
    assert str(caught.value) == (
        f"{tmp_path / 'e.csv'}:3: `op` is 'what', which is no operation\n"
        "  why: a feed says of each row what happened to it, and nothing of this one was done\n"
        "  do: give +1 or -1, insert or delete (c, r, i or d), or of a functional predicate update (u)"
    )
    for options, message in (
        ({"start": -1}, "`start` cannot be -1"),
        ({"start": 8}, "`start` cannot be 8"),
        ({"batch_rows": 0}, "`batch_rows` cannot be 0"),
        ({"op": 5}, "`op` cannot be 5"),
        ({"op": "src"}, "`op` cannot be 'src'"),
        ({"op": "x", "tx": "x"}, "`op` cannot be 'x'"),
        ({"op": "what"}, "the columns `src`, `dst`, `op` match those of"),
    ):
        with pytest.raises(lftj.DataError, match=message):
            db.load_changes("edge", pa.table({"src": [1], "dst": ["a"], "op": [1]}), **options)
    with pytest.raises(lftj.DataError, match="`op` cannot be 'op'"):
        db.load_changes("odd", [(1, 1)])
    with pytest.raises(lftj.Error, match="there is no relation `egde`"):
        db.load_changes("egde", [])
    with db.transaction(), pytest.raises(TransactionError, match="`load_changes` inside a transaction"):
        db.load_changes("edge", [])
    assert list(db["edge"]) == []


def test_a_wrong_op_is_placed_in_its_file(tmp_path: Path) -> None:
    """It was placed by its row in the feed, which of several files is a row of none."""
    db, names = lftj.Database(EDGE), ("src", "dst", "op")
    rows = [(1, "a", "c"), (2, "b", "what"), (3, "c", "d")]
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    (tmp_path / "1.csv").write_text("src,dst,op\n1,a,c\n2,b,c\n")
    (tmp_path / "2.csv").write_text('1,"a\nb",c\n2,b,what\n')
    (tmp_path / "e.ndjson").write_text("\n\n".join(map(json.dumps, objects)))
    (tmp_path / "e.json").write_text(json.dumps(objects))
    pa.parquet.write_table(pa.Table.from_pylist(objects), tmp_path / "e.parquet")
    for source, where, row in (
        (str(tmp_path / "*.csv"), f"{tmp_path / '2.csv'}:3", 3),
        ([tmp_path / "1.csv", tmp_path / "e.ndjson"], f"{tmp_path / 'e.ndjson'}:3", 3),
        (tmp_path / "e.json", f"{tmp_path / 'e.json'}, row 1 (from 0)", 1),
        (tmp_path / "e.parquet", f"{tmp_path / 'e.parquet'}, row 1 (from 0)", 1),
        (objects, "row 1 of the feed (from 0)", 1),
        (iter(objects), "row 1 of the feed (from 0)", 1),
    ):
        with pytest.raises(FeedError, match="`op` is 'what'") as caught:
            db.load_changes("edge", source)
        assert (caught.value.where, caught.value.row) == (where, row)
    bag = lftj.Database(".decl sale(item:symbol) -> copies:number bag")
    (tmp_path / "bag.csv").write_text("item,copies,op\ntea,1,c\ntea,0,c\n")
    with pytest.raises(FeedError, match="`copies` is 0") as caught:
        bag.load_changes("sale", tmp_path / "bag.csv")
    assert caught.value.where == f"{tmp_path / 'bag.csv'}:3"


DAY = dt.date(2024, 1, 1)


@pytest.mark.parametrize(
    ("op", "tx"), [(1, 7), (1, 2**63), ("c", 7), (1, "a"), ("c", DAY), (1, dt.datetime(2024, 1, 1)), (1, b"x")]
)
def test_kinds_are_found_in_one_reading(op: Any, tx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair of kinds was tried by reading the source from its start: up to eighteen times."""
    rows = [{"src": i, "dst": "a", "op": op, "tx": tx} for i in range(9)]
    frame = pd.DataFrame(rows)
    sources: list[Any] = [rows, iter(rows), [tuple(row.values()) for row in rows], frame, pa.Table.from_pandas(frame)]
    sources += [{name: frame[name].tolist() for name in frame}, pa.Table.from_pandas(frame).to_reader()]
    pa.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "e.parquet")
    with pa.ipc.new_file(tmp_path / "e.arrow", pa.Table.from_pandas(frame).schema) as sink:
        sink.write_table(pa.Table.from_pandas(frame))
    sources += [tmp_path / "e.parquet", tmp_path / "e.arrow"]
    if isinstance(tx, int | str):
        (tmp_path / "e.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "e.json").write_text(json.dumps(rows))
        frame.to_csv(tmp_path / "e.csv", index=False)
        sources += [tmp_path / f"e.{kind}" for kind in ("ndjson", "json", "csv")]
    read, fill = 0, change_feed.fill

    def counted(*given: Any) -> None:
        nonlocal read
        read += 1
        fill(*given)

    monkeypatch.setattr(change_feed, "fill", counted)
    for source in sources:
        db, read = lftj.Database(EDGE), 0
        assert db.load_changes("edge", source, tx="tx").commits == 1
        assert (len(db["edge"]), read) == (9, 1), source


def test_kinds_that_come_later_are_found_by_reading_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lftj.io.rows.CHUNK_ROWS", 2)
    db = lftj.Database(EDGE)
    rows = [(i, "a", 1, tx) for i, tx in enumerate([1, 1, 2**63, 2**63, 2**63 + 1])]
    assert db.load_changes("edge", rows, tx="tx").commits == 3
    (tmp_path / "1.csv").write_text("7,b,1\n")
    pa.parquet.write_table(pa.table({"src": [8], "dst": ["b"], "op": [1]}), tmp_path / "2.parquet")
    assert db.load_changes("edge", [tmp_path / "1.csv", tmp_path / "2.parquet"]).rows == 2
    assert sorted(x for x, _ in db["edge"]) == [0, 1, 2, 3, 4, 7, 8]
    with pytest.raises(BadRowsError, match="the feed's column `tx` holds 'x'") as caught:
        db.load_changes("edge", [(1, "a", 1, 1), (1, "a", 1, 2), (1, "a", 1, "x")], tx="tx")
    assert caught.value.where == "list, row 2 (from 0)"


class GivesOneIterator:
    """Rows that are given once, by something that is no iterator itself."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


@pytest.mark.parametrize("op", ["i", 1])
@pytest.mark.parametrize("names", [(), ("src", "dst", "op")])
def test_what_is_read_once_is_tried_once(op: object, names: tuple[str, ...]) -> None:
    """An op of another kind than the first that was tried: the rows were gone, and nothing was committed, or said."""
    given = [(1, "a", op), (2, "b", op), (3, "c", op)]
    rows: list[Any] = [dict(zip(names, row, strict=True)) for row in given] if names else given
    db = lftj.Database(EDGE)
    report = db.load_changes("edge", GivesOneIterator(rows))
    assert (report.rows, list(db["edge"])) == (3, [row[:2] for row in given])


def test_copies_of_what_is_read_once() -> None:
    """To see whether copies are named, the rows were read, and those of a bag were gone."""
    for rows, copies in (([("a",), ("b",), ("a",)], [2, 1]), ([{"item": "a", "n": 2}, {"item": "b", "n": 1}], [2, 1])):
        db = lftj.Database(".decl sale(item:symbol) -> n:number bag")
        db.load("sale", GivesOneIterator(rows))
        assert list(db["sale"]) == list(zip("ab", copies, strict=True))
        db.load_changes("sale", GivesOneIterator([{**row, "op": 1} for row in rows if isinstance(row, dict)]))
        assert len(db["sale"]) == 2


@pytest.mark.parametrize("tx", [None, "tx"])
def test_a_feed_without_the_column_that_is_named(tx: str | None) -> None:
    db = lftj.Database(EDGE)
    with pytest.raises(lftj.DataError) as caught:
        db.load_changes("edge", [{"src": 1, "dst": "a", **({"op": 1} if tx else {})}], tx=tx)
    assert "op= names the column that says what happened to each row" in caught.value.remedy
    assert ("tx= that which tells commits apart" in caught.value.remedy) == (tx is not None)
    assert not len(db["edge"])
