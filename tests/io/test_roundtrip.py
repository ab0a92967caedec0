"""Whatever can be written reads back to the same rows; bulk and fast reading keep to the careful rule."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lftj.io.fields import numeric_codes, text_value
from lftj.io.read_options import ReadOptions
from lftj.io.sources import read
from lftj.io.write import write
from lftj.values.faults import Fault
from lftj.values.gate import encode_row, to_arrow, to_numpy, to_pandas, to_polars, to_rows
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable
from tests.conftest import examples

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(
    ["", "NA", "null", '"', '""', "a\r", "\n", "\ufeff", "c0", ",", "()", "0"]
)
PLAIN_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n"), max_size=5
) | st.sampled_from(["", "NA", '"', '"a"', "\ufeff", "c0", "0"])
VALUES = {
    "number": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1]),
    "unsigned": st.integers(0, 2**64 - 1) | st.sampled_from([0, 2**64 - 1]),
    "float": st.floats(allow_nan=False),
}
FORMATS = [
    ("r.csv", {}),
    ("r.csv", {"headers": True}),
    ("r.csv.gz", {}),
    ("r.tsv.zst", {"rfc4180": True}),
    ("r.dat", {"delimiter": "|", "rfc4180": True, "headers": True}),
    ("r.dat", {"delimiter": "::", "rfc4180": True}),
    ("r.tsv", {}),
    ("r.facts", {"headers": True}),
    ("r.csv", {"delimiter": "\t", "rfc4180": False}),
    ("r.parquet", {}),
    ("r.arrow", {}),
]


@st.composite
def relations(draw, text=ANY_TEXT, max_arity=4):
    types = draw(st.lists(st.sampled_from(["number", "unsigned", "float", "symbol"]), min_size=1, max_size=max_arity))
    schema = Schema("r", tuple(Column(f"c{i}", type) for i, type in enumerate(types)))
    values = VALUES | {"symbol": text}
    return schema, draw(st.lists(st.tuples(*[values[type] for type in types]), max_size=8))


def columns_of(rows, schema, symbols):
    codes = [encode_row(row, schema, symbols) for row in rows]
    return [np.array([row[i] for row in codes], np.int64) for i in range(schema.arity)]


def same(rows, others):
    """Equal rows; 0.0 where -0.0 went in."""
    return list(rows) == list(others) and all(
        not isinstance(v, float) or v != 0 or math.copysign(1, v) == 1 for row in others for v in row
    )


@examples(250)
@given(st.data(), st.sampled_from(FORMATS))
def test_files(data, format):
    name, options = format
    plain = options.get("rfc4180") is False or name in ("r.tsv", "r.facts")
    schema, rows = data.draw(relations(PLAIN_TEXT if plain else ANY_TEXT))
    symbols = SymbolTable()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(schema, columns_of(rows, schema, symbols), symbols, path, **options)
        text = {} if name in ("r.parquet", "r.arrow") else {"header": options.get("headers", False)}
        if "delimiter" in options:
            text["delimiter"] = options["delimiter"]
        if "rfc4180" in options:
            text["quoting"] = options["rfc4180"]
        for fast in (True, False):
            fresh = SymbolTable()
            with (
                mock.patch("lftj.io.read_text._read_fast", return_value=None)
                if not fast
                else mock.patch("lftj.io.read_text.CHUNK_ROWS", 3)
            ):
                loaded = read(path, schema, fresh, ReadOptions(**text))
            fresh.check()
            assert same(rows, list(to_rows(schema, loaded.columns, fresh)))


@examples(60)
@given(relations())
def test_frames_and_arrays(relation):
    schema, rows = relation
    symbols = SymbolTable()
    columns = columns_of(rows, schema, symbols)
    forms = [form(schema, columns, symbols) for form in (to_arrow, to_pandas, to_polars, to_numpy)]
    for form in [*forms, list(to_rows(schema, columns, symbols))]:
        fresh = SymbolTable()
        loaded = read(form, schema, fresh)
        assert same(rows, list(to_rows(schema, loaded.columns, fresh)))


def test_arity_zero(tmp_path):
    schema, symbols = Schema("flag", ()), SymbolTable()
    for rows in (0, 1):
        write(schema, [], symbols, tmp_path / "flag.csv", rows=rows)
        assert read(tmp_path / "flag.csv", schema, symbols).rows == rows
        for form in (to_arrow, to_pandas, to_numpy, lambda *a, rows: list(to_rows(*a, rows=rows))):
            assert read(form(schema, [], symbols, rows=rows), schema, symbols).rows == rows


NUMERIC_TEXT = st.text("0123456789+-.eEinfatyIN _x", max_size=8) | st.from_regex(
    r"-?[0-9]{1,22}|-?[0-9]*\.?[0-9]*([eE][-+]?[0-9]{1,3})?|[-+]?(inf|nan|infinity)", fullmatch=True
)


@examples(1000)
@given(st.sampled_from(["number", "unsigned", "float"]), st.lists(NUMERIC_TEXT, min_size=1, max_size=3))
def test_bulk_reading_of_fields_keeps_to_the_rule(type, texts):
    fields = [text.encode() for text in texts]
    bulk = numeric_codes(pa.array(fields, pa.binary()), type)
    rule = [text_value(field, type) for field in fields]
    if bulk is not None:
        assert bulk.tolist() == rule
    else:
        assert any(isinstance(value, Fault) for value in rule) or any(len(field) > 19 for field in fields)


@given(st.floats(allow_nan=False))
def test_floats_read_as_python_reads_them(value):
    for text in (repr(value), f"{value:.25e}", f"{value:.3g}"):
        field = text.lstrip("+").encode()
        bulk = numeric_codes(pa.array([field], pa.binary()), "float")
        if bulk is not None:
            assert bulk.tolist() == [text_value(field, "float")]


RAW = st.lists(
    st.sampled_from(
        [b"a", b'"', b",", b"\n", b"\r", b"\r\n", b"1", b"\xff", b"\xc3\xa9", b"\t", b"c0", b"\x00", b'""']
    ),
    max_size=14,
).map(b"".join)


# Long values switch pyarrow's vector code on; they, and blocks of a few rows, are where it goes wrong.
LONG = st.lists(
    st.sampled_from(
        [b"some longer text", b"12345678", b'"', b'""', b'","', b'"\n"', b",", b"\n", b"\r\n", b"\xff", b"\x00"]
    ),
    max_size=40,
).map(b"".join)
QUOTED = st.lists(
    st.tuples(
        *[st.lists(st.sampled_from([b"some longer text", b'""', b",", b"\r\n", b"\n", b"\r", b"x"]), max_size=6)] * 2
    )
).map(lambda rows: b"".join(b'"%s","%s"\r\n' % (b"".join(a), b"".join(b)) for a, b in rows))


@examples(600)
@given(
    RAW | LONG | QUOTED,
    st.sampled_from([("symbol", "symbol"), ("number", "symbol"), ("symbol",)]),
    st.booleans(),
    st.sampled_from([None, False]),
    st.integers(8, 300),
)
def test_the_fast_reader_agrees_with_the_careful_one_on_any_bytes(content, types, quoting, header, block):
    """Rows, rejects and refusals. This is what found what `_Guarded` guards against."""
    schema = Schema("r", tuple(Column(f"c{i}", type) for i, type in enumerate(types)))
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.csv"
        path.write_bytes(content)
        options = ReadOptions(quoting=quoting, header=header, on_error="quarantine")
        for fast in (True, False):
            symbols = SymbolTable()
            with (
                mock.patch("lftj.io.read_text._read_fast", return_value=None)
                if not fast
                else mock.patch("lftj.io.read_text.BLOCK_BYTES", block)
            ):
                try:
                    loaded = read(path, schema, symbols, options)
                except ValueError as error:
                    outcomes.append(str(error))
                else:
                    outcomes.append(
                        (list(to_rows(schema, loaded.columns, symbols)), [(r.line, r.reason) for r in loaded.rejects])
                    )
    assert outcomes[0] == outcomes[1]
