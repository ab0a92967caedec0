"""The code of a value: order, the whole range, what is refused. The scalar and the bulk map hold each other."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.values import faults
from lftj.values.codes import KEY_MAX, KEY_MIN, as_codes
from lftj.values.schema import Column, Schema
from lftj.values.type_table import from_stored as from_code
from lftj.values.type_table import to_stored, type_of
from lftj.values.value_type import Misfit


def encode_array(values, type):
    return type_of(type).from_numpy(values).stored


def decode_array(codes, type):
    return type_of(type).to_numpy(codes)


INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = {
    "number": INT64 | st.sampled_from([-(2**63), 2**63 - 1]),
    "unsigned": st.integers(0, 2**64 - 1) | st.sampled_from([2**63 - 1, 2**63, 2**64 - 1]),
    "float": st.floats(allow_nan=False),
}
DTYPE = {"number": np.int64, "unsigned": np.uint64, "float": np.float64}
TYPED = st.sampled_from(sorted(VALUES)).flatmap(
    lambda type: st.tuples(st.just(type), st.lists(VALUES[type], max_size=30))
)


@given(TYPED)
def test_scalar_and_bulk_maps_agree_and_invert(typed):
    type, values = typed
    codes = encode_array(np.array(values, DTYPE[type]), type)
    assert codes.dtype == np.int64
    assert codes.tolist() == [to_stored(value, type) for value in values]
    assert decode_array(codes, type).tolist() == values == [from_code(code, type) for code in codes]
    assert decode_array(codes, type).dtype == DTYPE[type]


@given(TYPED)
def test_codes_keep_the_order_and_the_equality_of_values(typed):
    type, values = typed
    codes = [to_stored(value, type) for value in values]
    for value, code in zip(values, codes, strict=True):
        for other, other_code in zip(values, codes, strict=True):
            assert (value < other) == (code < other_code)
            assert (value == other) == (code == other_code)


@pytest.mark.parametrize(
    ("type", "value", "code"),
    [
        ("number", -(2**63), KEY_MIN),
        ("number", 2**63 - 1, KEY_MAX),
        ("unsigned", 0, KEY_MIN),
        ("unsigned", 2**63, 0),
        ("unsigned", 2**64 - 1, KEY_MAX),
        ("float", -math.inf, -0x7FF0000000000001),
        ("float", -1.5, -0x3FF8000000000001),
        ("float", -5e-324, -2),
        ("float", 0.0, 0),
        ("float", -0.0, 0),
        ("float", 1.5, 0x3FF8000000000000),
        ("float", math.inf, 0x7FF0000000000000),
    ],
)
def test_the_codes_of_the_module_docstring(type, value, code):
    assert to_stored(value, type) == code
    assert encode_array(np.array([value], DTYPE[type]), type).tolist() == [code]


def test_negative_zero_comes_back_as_zero():
    assert math.copysign(1, from_code(to_stored(-0.0, "float"), "float")) == 1
    assert math.copysign(1, decode_array(encode_array(np.array([-0.0]), "float"), "float")[0]) == 1


@pytest.mark.parametrize("value", [np.int8(-3), np.uint16(7), np.int64(2**62), 5])
def test_every_integer_but_bool_is_a_number(value):
    assert to_stored(value, "number") == int(value)
    assert type(to_stored(value, "number")) is int


@pytest.mark.parametrize(
    "value", [1.5, 3, np.float32(0.5), np.float16(0.25), np.float64(2.0), np.int64(2**53), -(2**70)]
)
def test_floats_and_exact_integers_are_floats(value):
    assert from_code(to_stored(value, "float"), "float") == value


MISFITS = [
    (True, "number", faults.wrong_kind(type_of("number"), "bool")),
    (np.bool_(False), "unsigned", faults.wrong_kind(type_of("unsigned"), "bool")),
    (True, "float", faults.wrong_kind(type_of("float"), "bool")),
    (1.0, "number", faults.wrong_kind(type_of("number"), "float")),
    ("1", "number", faults.wrong_kind(type_of("number"), "str")),
    (b"1", "unsigned", faults.wrong_kind(type_of("unsigned"), "bytes")),
    (Decimal(1), "number", faults.wrong_kind(type_of("number"), "Decimal")),
    (Decimal(1), "float", faults.wrong_kind(type_of("float"), "Decimal")),
    (Fraction(1, 2), "float", faults.wrong_kind(type_of("float"), "Fraction")),
    (np.longdouble(1), "float", faults.wrong_kind(type_of("float"), "longdouble")),
    (1j, "float", faults.wrong_kind(type_of("float"), "complex")),
    (datetime.date(2020, 1, 1), "number", faults.wrong_kind(type_of("number"), "date")),
    (None, "number", faults.null("number")),
    (pd.NA, "float", faults.null("float")),
    (pd.NaT, "number", faults.null("number")),
    (math.nan, "float", faults.nan()),
    (math.nan, "number", faults.wrong_kind(type_of("number"), "float")),
    (2**63, "number", faults.out_of_range(type_of("number"), 2**63)),
    (-(2**63) - 1, "number", faults.out_of_range(type_of("number"), -(2**63) - 1)),
    (-1, "unsigned", faults.out_of_range(type_of("unsigned"), -1)),
    (2**64, "unsigned", faults.out_of_range(type_of("unsigned"), 2**64)),
    (2**53 + 1, "float", faults.inexact()),
    (10**400, "float", faults.inexact()),
]


@pytest.mark.parametrize(("value", "type", "fault"), MISFITS)
def test_a_value_that_does_not_fit_says_why(value, type, fault):
    with pytest.raises(Misfit) as caught:
        to_stored(value, type)
    assert caught.value.fault == fault


def test_texts_are_str_that_utf8_can_hold():
    assert to_stored("", "symbol") == ""
    assert to_stored("naïve 😀\x00", "symbol") == "naïve 😀\x00"
    assert type(to_stored(np.str_("a"), "symbol")) is str
    for value, fault in [
        (b"a", faults.wrong_kind(type_of("symbol"), "bytes")),
        (1, faults.wrong_kind(type_of("symbol"), "int")),
        (None, faults.null("symbol")),
        ("\ud800", faults.surrogate()),
    ]:
        with pytest.raises(Misfit) as caught:
            to_stored(value, "symbol")
        assert caught.value.fault == fault


def test_fault_texts():
    """The words of every fault, once; messages elsewhere are made of them."""
    low, high, top = -(2**63), 2**63 - 1, 2**64 - 1
    assert low == -9223372036854775808
    number = f"a number is an integer from {low} to {high}"
    unsigned = f"an unsigned is an integer from 0 to {top}"
    real = "a float is a 64-bit floating-point number; NaN is not a key"
    text = "a symbol is text (str)"
    assert faults.null("number") == (
        "is not a value",
        "a column of type number holds no nulls",
        "declare the column `number?`, drop the rows without a value or fill them in",
    )
    assert faults.nan() == (
        "is not a key",
        "NaN differs from itself, so no row could be found by it",
        "drop or replace the NaN values",
    )
    spelled = "correct the value or declare the column `symbol`"
    assert faults.not_spelled(type_of("number")) == (
        "is not a number",
        f"{number}: digits, an optional '-', nothing else",
        spelled,
    )
    assert faults.not_spelled(type_of("unsigned")) == (
        "is not an unsigned",
        f"{unsigned}: digits, nothing else",
        spelled,
    )
    assert faults.not_spelled(type_of("float")) == (
        "is not a float",
        "a float is written like 15, -1.5, 2e-3 or inf, without spaces or a leading '+'",
        spelled,
    )
    assert faults.out_of_range(type_of("number"), 2**63) == (
        "does not fit into number",
        number,
        "declare the column `unsigned`",
    )
    other = "declare the column `symbol` or `float`"
    assert faults.out_of_range(type_of("number"), 2**64) == ("does not fit into number", number, other)
    assert faults.out_of_range(type_of("number")) == ("does not fit into number", number, other)
    assert faults.out_of_range(type_of("unsigned"), -1) == (
        "does not fit into unsigned",
        unsigned,
        "declare the column `number`",
    )
    assert faults.out_of_range(type_of("unsigned"), 2**64) == ("does not fit into unsigned", unsigned, other)
    assert faults.inexact() == (
        "is not exact as a float",
        "a float holds integers exactly up to 2**53",
        "declare the column `number` or round the value",
    )
    assert faults.float_overflow() == (
        "does not fit into float",
        "the largest float is 1.7976931348623157e+308",
        "correct the value or write inf",
    )
    assert faults.not_utf8() == ("is not UTF-8 text", "text files are read as UTF-8", "convert the file to UTF-8")
    assert faults.surrogate() == (
        "is not valid unicode",
        "a symbol holds no lone surrogates",
        "encode the text again, with errors='replace'",
    )
    assert faults.wrong_kind(type_of("number"), "bool") == (
        "is a bool, not a number",
        number,
        "convert it to int first or declare the column `bool`",
    )
    assert faults.wrong_kind(type_of("unsigned"), "float") == (
        "is a float, not an unsigned",
        unsigned,
        "convert it to int first or declare the column `float`",
    )
    assert faults.wrong_kind(type_of("float"), "string") == (
        "is a string, not a float",
        real,
        "convert it to float first or declare the column `symbol`",
    )
    assert faults.wrong_kind(type_of("symbol"), "int64") == (
        "is an int64, not a symbol",
        text,
        "convert it to str first or declare the column `number`",
    )
    assert faults.wrong_kind(type_of("symbol"), "bytes") == (
        "is bytes, not a symbol",
        text,
        "decode it to str first, or declare the column `bytes`",
    )
    assert faults.wrong_kind(type_of("number"), "date32[day]") == (
        "is a date32[day], not a number",
        number,
        "convert it to int first or declare the column `date`",
    )


def test_shown_cuts_long_values():
    assert faults.shown(None) == "null"
    assert faults.shown("a" * 200) == "'" + "a" * 79 + "..."


def test_as_codes_copies_only_what_kernels_do_not_take():
    codes = np.arange(6)
    assert as_codes(codes) is codes
    read_only = codes.copy()
    read_only.flags.writeable = False
    for array in (read_only, codes[::2], codes.astype(np.int32)):
        result = as_codes(array)
        assert result.flags.c_contiguous
        assert result.flags.writeable
        assert result.dtype == np.int64
        assert result.tolist() == array.tolist()


def test_schema():
    schema = Schema("edge", (Column("src", "number"), Column("label", "symbol")))
    assert (schema.arity, schema.names, schema.types) == (2, ("src", "label"), ("number", "symbol"))
    assert str(schema) == "edge(src:number, label:symbol)"
    assert str(Schema("flag", ())) == "flag()"
    with pytest.raises(AssertionError):
        Column("x", "Person")
