"""Functors over texts on whole columns: the same values as the Python functions give, for every text and argument.

Catches: bytes counted for characters, starts and lengths at and beyond the ends, empty texts and parts, patterns in
what is no pattern.
"""

from __future__ import annotations

import numpy as np
import pytest

from lftj.evaluate import text_arrays
from lftj.language.clause import Value, Var
from lftj.language.functors import known_as
from lftj.values.symbols import SymbolTable

TEXTS = ["", "a", "ab", "abc", "Käse", "日本語", "é", "e\u0301", "a.b", "%_", "\0x", "x" * 40, "👩‍🚀!", "\ud7ff"]
TEXT = Var("t", "symbol")
NUMBERS = [-2, -1, 0, 1, 2, 3, 4, 39, 40, 41, 2**31, 2**62]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(text_arrays, "LEAST", 1)


def check(op, args, rows):
    """Rows of Python values, once by columns and once one by one."""
    symbols = SymbolTable()
    columns = list(zip(*rows, strict=True))
    codes = [
        symbols.intern(list(column)) if isinstance(column[0], str) else np.array(column, np.int64) for column in columns
    ]
    found = text_arrays.applied(op, args, codes, symbols)
    if found is None:
        return False
    expected = [known_as(op).text(*row) for row in rows]
    values = symbols.decode(found).to_pylist() if isinstance(expected[0], str) else found.tolist()
    assert values == expected
    return True


def test_lengths():
    assert check("strlen", [TEXT], [(text,) for text in TEXTS])


def test_joined_texts():
    pairs = [(one, two) for one in TEXTS for two in TEXTS]
    assert check("cat", [TEXT, TEXT], pairs)
    assert check("cat", [TEXT, TEXT, TEXT], [(one, two, one) for one, two in pairs])


@pytest.mark.parametrize("part", ["", "a", ".", "%", "ä", "\u0301", "\0", "本"])
def test_parts(part):
    assert check("contains", [Value(part, "symbol"), TEXT], [(part, text) for text in TEXTS])


@pytest.mark.parametrize("start", NUMBERS)
@pytest.mark.parametrize("length", NUMBERS)
def test_pieces(start, length):
    args = [TEXT, Value(start, "number"), Value(length, "number")]
    done = check("substr", args, [(text, start, length) for text in TEXTS])
    assert done == (0 <= start <= text_arrays.LONGEST and length <= text_arrays.LONGEST)


def test_what_differs_from_row_to_row_is_for_the_functions():
    number = Var("n", "number")
    assert not check("substr", [TEXT, number, number], [("abc", 1, 1)])
    assert not check("contains", [TEXT, TEXT], [("a", "abc")])
    assert not check("match", [Value("a+", "symbol"), TEXT], [("a+", "aa")])
