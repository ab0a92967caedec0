"""Change feeds and parameters of queries over every type, and null in them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import lftj
from lftj.values.type_table import to_stored, type_of
from tests.types.cases import CASES, TYPES
from tests.types.test_null import SQL


@pytest.mark.parametrize("type", TYPES)
def test_feeds_of_every_type(type: str) -> None:
    values = [CASES[type].of(i) for i in range(2)]
    rows: list[tuple[Any, ...]] = [
        (1, values[0], "+1"),
        (2, None, "+1"),
        (3, values[1], "+1"),
        (1, values[0], "-1"),
        (2, values[1], "+1"),
        (3, None, "+1"),
        (2, None, "-1"),
    ]
    held = {(3, values[1]), (2, values[1]), (3, None)}
    source = lftj.Database(f".decl t(i:number, v:{type}?)")
    source.load("t", [row[:2] for row in rows])
    column = source["t"].arrow().schema.field("v").type
    names = ("i", "v", "op")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    table = pa.table({"i": columns["i"], "v": source_column(source, type, columns["v"], column), "op": columns["op"]})
    dicts = [dict(zip(names, row, strict=True)) for row in rows]
    for feed in (rows, dicts, iter(rows), table, pa.RecordBatchReader.from_batches(table.schema, table.to_batches(2))):
        db = lftj.Database(f".decl t(i:number, v:{type}?)\nknown(i) :- t(i, v), !is_null(v).")
        db.load_changes("t", feed, batch_rows=3)
        assert set(db["t"]) == held
        assert set(db["known"]) == {(2,), (3,)}


def source_column(db: lftj.Database, type: str, values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values as the Arrow column in which the engine gives them out."""
    by_value = dict(zip([v for _, v in db["t"]], db["t"].arrow().column("v").to_pylist(), strict=True))
    plain = [v.bytes if hasattr(v, "bytes") else v for v in (by_value[v] for v in values)]
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(plain, kind.storage_type))
    return pa.array(plain, kind)


@pytest.mark.parametrize("type", TYPES)
def test_feeds_of_functional_predicates(type: str) -> None:
    one, two = CASES[type].of(0), CASES[type].of(1)
    db = lftj.Database(f".decl p(k:{type}?) -> v:{type}?")
    db.load_changes("p", [(one, None, "c"), (None, one, "c"), (one, two, "u"), (None, None, "u"), (two, one, "c")])
    assert set(db["p"]) == {(one, two), (None, None), (two, one)}
    db.load_changes("p", [(None, one, "d")])
    assert set(db["p"]) == {(one, two), (two, one)}


def test_feeds_refuse_null_where_no_column_admits_it() -> None:
    db = lftj.Database(".decl t(i:number, v:date)")
    with pytest.raises(lftj.DataError, match="declare the column `date\\?`"):
        db.load_changes("t", [(1, None, "+1")])
    assert not db["t"]


def test_deltas_are_feeds() -> None:
    for type in TYPES:
        declared = f".decl t(i:number, v:{type}?)"
        one, two = lftj.Database(declared), lftj.Database(declared)
        for erased, inserted in (([], [(1, None), (2, CASES[type].of(0))]), ([(1, None)], [(3, CASES[type].of(1))])):
            with one.transaction() as tx:
                tx.erase("t", erased)
                tx.insert("t", inserted)
            two.load_changes("t", tx.delta["t"], op="_op")
            assert list(two["t"]) == list(one["t"]), type


@pytest.mark.parametrize("type", TYPES)
def test_parameters_of_every_type(type: str) -> None:
    db = lftj.Database(f".decl t(i:number, v:{type}) .decl n(i:number, v:{type}?)")
    values = CASES[type].values
    db.load("t", list(enumerate(values)))
    null = type_of(f"{type}?").null
    held = {i for i, value in enumerate(values) if i and to_stored(value, type) != null}
    db.load("n", [*((i, values[i]) for i in held), (-1, None)])
    for name, there in (("t", set(range(len(values)))), ("n", held)):
        point, less, not_in = (
            db.prepare_query(text.format(name)) for text in ("{0}(i, $v)", "{0}(i, v), v < $v", "t(i, $v), !{0}(i, $v)")
        )
        assert point.parameters == {"v": type}
        for place, value in enumerate(values):
            if name == "n" and to_stored(value, type) == null:
                with pytest.raises(lftj.DataError, match="null"):
                    point(v=value)
                continue
            at = [(place,)] if place in there else []
            assert list(point(v=value)) == at
            assert list(db.query(f"{name}(i, $v)", v=value)) == at
            assert set(less(v=value)) == {(i, values[i]) for i in there if i < place}
            assert list(not_in(v=value)) == ([] if at else [(place,)])
        for bad, _ in CASES[type].bad:
            with pytest.raises(lftj.DataError, match=r"`\$v` cannot be"):
                point(v=bad)


@pytest.mark.parametrize("type", SQL)
def test_null_for_a_parameter_is_refused(type: str) -> None:
    db = lftj.Database(f".decl n(i:number, v:{type}?)")
    db.load("n", [(1, None), (2, CASES[type].of(0))])
    for text in ("n(i, $v)", "n(i, v), v = $v", "n(i, v), v != $v", "n(i, _), !n(i, $v)"):
        for missing in (None, pd.NA):
            with pytest.raises(lftj.DataError) as caught:
                list(db.query(text, v=missing))
            assert "is_null" in str(caught.value), str(caught.value)
