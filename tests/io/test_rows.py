"""Iterables of rows: bulk where all is plain, row by row where not; rows counted from 0."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from lftj.io.rejects import BadRowsError

E2 = "src:number dst:number"
KEEP = ', or keep the good rows with on_error="quarantine"'
NUMBER = "a number is an integer from -9223372036854775808 to 9223372036854775807"
Edge = namedtuple("Edge", "src dst")


@pytest.mark.parametrize(
    ("rows", "declared", "expected"),
    [
        ([(1, 2), [3, 4]], E2, [(1, 2), (3, 4)]),
        ({(1, 2)}, E2, [(1, 2)]),
        (((i, -i) for i in range(3)), E2, [(0, 0), (1, -1), (2, -2)]),
        ([Edge(1, 2)], E2, [(1, 2)]),
        ([np.array([1, 2]), (np.int8(3), 4)], E2, [(1, 2), (3, 4)]),
        ([], E2, []),
        ([(), ()], "", [(), ()]),
        ([(1,)], "x:float", [(1.0,)]),
        ([(1,), (2.5,), (np.float32(0.5),)], "x:float", [(1.0,), (2.5,), (0.5,)]),
        ([(-(2**63),), (2**63 - 1,)], "x:number", [(-(2**63),), (2**63 - 1,)]),
        ([(0,), (2**64 - 1,)], "x:unsigned", [(0,), (2**64 - 1,)]),
        ([("",), (np.str_("é"),)], "x:symbol", [("",), ("é",)]),
    ],
)
def test_rows(reader, rows, declared, expected):
    assert reader.rows(rows, declared) == expected


def test_positions(reader):
    assert reader.rows([(1, "x", 3)], E2, columns={"src": 2, "dst": 0}) == [(3, 1)]


@pytest.mark.parametrize(
    ("row", "text", "why", "remedy"),
    [
        ((1,), "(1,) has 1 value where 2 are due", "`edge` takes rows of 2", "give every row all its values"),
        (
            (1, 2, 3),
            "(1, 2, 3) has 3 values where 2 are due",
            "`edge` takes rows of 2",
            "give every row all its values",
        ),
        ("ab", "'ab' is not a row", "it is of type str", "give rows as tuples or lists, (1,) for one column"),
        (5, "5 is not a row", "it is of type int", "give rows as tuples or lists, (1,) for one column"),
        (None, "null is not a row", "it is of type NoneType", "give rows as tuples or lists, (1,) for one column"),
        (
            {"a": 1, "b": 2},
            "{'a': 1, 'b': 2} is not a row",
            "it is of type dict",
            "give rows as tuples or lists, (1,) for one column",
        ),
        (
            (1, "x"),
            "column `dst` of `edge`: 'x' is a str, not a number",
            NUMBER,
            "convert it to int first or declare the column `symbol`",
        ),
        (
            (1, True),
            "column `dst` of `edge`: True is a bool, not a number",
            NUMBER,
            "convert it to int first or declare the column `bool`",
        ),
        (
            (1, 2.0),
            "column `dst` of `edge`: 2.0 is a float, not a number",
            NUMBER,
            "convert it to int first or declare the column `float`",
        ),
        (
            (1, 2**63),
            "column `dst` of `edge`: 9223372036854775808 does not fit into number",
            NUMBER,
            "declare the column `unsigned`",
        ),
        (
            (None, 1),
            "column `src` of `edge`: null is not a value",
            "a column of type number holds no nulls",
            "declare the column `number?`, drop the rows without a value or fill them in",
        ),
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 1000])
def test_bad_rows(reader, monkeypatch, row, text, why, remedy, chunk):
    monkeypatch.setattr("lftj.io.rows.CHUNK_ROWS", chunk)
    rows = [(1, 2), (3, 4), row, (5, 6)]
    for source, name in ((rows, "list"), ((r for r in rows), "generator")):
        assert reader.refusal(source, E2, error=BadRowsError) == (
            f"{name}, row 2 (from 0): 1 bad row: {text}\n  why: {why}\n  do: {remedy}{KEEP}"
        )
    loaded = reader.load(rows, E2, on_error="quarantine")
    assert [(r.line, r.reason) for r in loaded.rejects] == [(2, text)]
    assert [column.tolist() for column in loaded.columns] == [[1, 3, 5], [2, 4, 6]]


def test_misshapen_and_misfit_rows_keep_their_order(reader):
    rows = [(1, "x"), (2,), (3, 4), ("y", 5), 6]
    assert [r.line for r in reader.load(rows, E2, on_error="quarantine").rejects] == [0, 1, 3, 4]


def test_an_exception_of_the_generator_passes(reader):
    def rows():
        yield ("new", 1)
        raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own"):
        reader.load(rows(), "a:symbol b:number")
    assert len(reader.symbols) == 0
