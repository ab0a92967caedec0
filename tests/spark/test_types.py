"""Columns of every type, and null, in partitions: what one database says, here and after changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import lftj
from spark_bridge.bridge_errors import BatchError
from spark_bridge.change_tables import ChangeTables, merged, table_of
from spark_bridge.driver import Partitioned
from spark_bridge.keys import OP
from spark_bridge.local import InProcess
from spark_bridge.plan import Pattern
from tests.types.cases import CASES, TYPES


@pytest.mark.parametrize("type", TYPES)
def test_partitions_hold_every_type(type: str, tmp_path: Path) -> None:
    text = f".decl e(x:{type}?, y:{type}?)\ntwo(x, z) :- e(x, y), e(y, z).\nsink(y) :- e(_, y), !is_null(y).\n"
    of = CASES[type].of
    rows = [(of(i % 4), of((3 * i + 1) % 5)) for i in range(8)] + [(None, of(1)), (of(2), None), (None, None)]
    db = lftj.Database(text)
    db.load("e", rows)
    schemas = {name: db._relations[name].schema for name in db}

    def given() -> pa.Table:
        return table_of(db["e"], schemas["e"])

    query = Partitioned.create(InProcess(), text, {"e": given()}, checkpoint=tmp_path / "q", partitions=3)

    def check() -> None:
        for name in ("two", "sink"):
            expected = table_of(db[name], schemas[name])
            assert sorted(map(str, query.table(name).to_pylist())) == sorted(map(str, expected.to_pylist()))

    check()
    gone = given().slice(0, 2)
    come = lftj.Database(f".decl e(x:{type}?, y:{type}?)")
    come.load("e", [(of(4), of(0)), (None, of(3))])
    more = table_of(come["e"], schemas["e"])
    ops = [-1] * gone.num_rows + [1] * more.num_rows
    query.apply({"e": pa.concat_tables([gone, more]).append_column(OP, pa.array(ops, pa.int64()))}, batch_id="1")
    with db.transaction() as tx:
        tx.erase("e", list(db["e"])[:2])
        tx.insert("e", [(of(4), of(0)), (None, of(3))])
    check()


@pytest.mark.parametrize("type", TYPES)
def test_keys_that_may_be_null_meet_those_that_may_not(type: str, tmp_path: Path) -> None:
    """Those of `unsigned?`, and negative ones of `float?`, were placed elsewhere, and rows were missing."""
    values = CASES[type].values
    text = f".decl e(x:{type}) .decl f(x:{type}?)\nboth(x) :- e(x), f(x).\nalone(x) :- e(x), !f(x)."
    db = lftj.Database(text)
    db.load("e", [(value,) for value in values])
    db.load("f", [(value,) for value in values[1:]] + [(None,)], on_error="quarantine")  # one has the code of null
    tables = {name: table_of(db[name], db._relations[name].schema) for name in db}
    inputs = {name: tables[name] for name in ("e", "f")}
    query = Partitioned.create(InProcess(), text, inputs, checkpoint=tmp_path / "q", partitions=5)
    assert query.state.layout(0).plan.outputs["both"] == Pattern("x", (0,))
    for name, expected in tables.items():
        assert sorted(map(str, query.table(name).to_pylist())) == sorted(map(str, expected.to_pylist())), name


def test_null_is_refused_where_it_is_not_admitted(tmp_path: Path) -> None:
    with pytest.raises(BatchError, match="row 1"):
        Partitioned.create(
            InProcess(),
            ".decl e(x:date, y:date)\np(x) :- e(x, _).",
            {"e": pa.table({"x": pa.array([0, None], pa.date32()), "y": pa.array([0, 0], pa.date32())})},
            checkpoint=tmp_path / "q",
            partitions=2,
        )


@pytest.mark.parametrize("type", TYPES)
def test_what_is_left_of_changes_is_what_was_inserted_last(type: str) -> None:
    """Each row once, whatever came and went in between, and how often; erased first, then inserted."""
    of, rng = CASES[type].of, Random(1)
    db = lftj.Database(f".decl e(x:{type}?, _op_max:{type}?)")
    db.load("e", [(x, y) for x in (None, of(0), of(1)) for y in (None, of(2), of(3))])
    schema = db._relations["e"].schema
    known = table_of(db["e"], schema)

    def some(most: int) -> set[int]:
        return set(rng.sample(range(known.num_rows), rng.randint(0, most)))

    def taken(rows: Iterable[int]) -> pa.Table:
        return known.take(pa.array(rows, pa.int64()))

    for _ in range(20):
        held = some(6)
        changes = [ChangeTables(taken(some(2)), taken(held))]
        for _ in range(rng.randint(1, 4)):
            gone, come = some(3), some(3)
            held = held - gone | come
            changes.append(ChangeTables(taken([*gone, *gone]), taken([*come, *come])))
        found = merged(schema, changes)
        assert found.schema == known.schema
        assert Counter(map(str, found.to_pylist())) == Counter(map(str, taken(held).to_pylist()))
