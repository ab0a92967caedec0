"""Functors over texts on whole columns: the same values as the Python functions give, for every text and argument.

Catches: bytes counted for characters, starts and lengths at and beyond the ends, empty texts and parts, patterns in
what is no pattern.
"""

from __future__ import annotations

import re
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.evaluate import text_arrays
from lftj.evaluate.arrow_patterns import in_arrow
from lftj.language.clause import Value, Var
from lftj.language.functors import known_as
from lftj.values.symbols import SymbolTable
from tests.conftest import examples

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


PARTS = [
    "",
    "a",
    "b",
    ".",
    "\\",
    "a.b",
    "%_",
    "(",
    "]",
    "^$",
    "\n",
    "-",
    " ",
    "/",
    "ä",
    "e\u0301",
    "\u2028",
    "😀",
    "#&~",
]


@examples(300, 20)
@given(st.lists(st.sampled_from([*PARTS, "%", "_", "%%"]), max_size=5), st.data())
def test_patterns_of_like(parts, data):
    """As `lftj.sql` writes them: escaped parts with any characters between."""
    pattern = "".join({"%": ".*", "%%": ".*", "_": "."}.get(part, re.escape(part)) for part in parts)
    pattern = f"(?s:{pattern})"
    free, pieces = ("%", "_", "%%"), []
    for _ in range(6):
        drawn = [data.draw(st.sampled_from(PARTS if part in free else [part, part, ""])) for part in parts]
        pieces.append("".join(drawn))
    done = check("match", [Value(pattern, "symbol"), TEXT], [(pattern, text) for text in [*TEXTS, *pieces]])
    assert done == ("\n" not in parts)


PLAIN = "a b - é 😀 . ^ | ( (?: (?s: ) ) [ [^ ] {2} {0,2} {,2} {1,} * + ? *? +? ?? *+ $ a-b [a-c] [^a] []a] && _ 1 }"
ESCAPED = r"[\s-] [\w.] [\]^] [a\-c] \d \D \w \W \s \S \b \B \. \\ \- \n \t \v \a \1 \A \Z (?i: (?= (?> [[:alpha:]]"
PIECES = [*PLAIN.split(), *ESCAPED.split(), " ", "\n", "\0"]
CHARACTERS = [*"abcA-.^]1_ \t\n\v\x1f\x85é٣😀\\"]
COMMON = r"a*b (?s:.*)b (a|b)* [a-c]+ [[:alpha:]] \w+\s\w* a{2,3}? \bab ^a \S [^\sb] \."
OTHER = r"a$ \B (?i)a (?i:a) a*+ a?+ (?=a) (?!a) (a)\1 a\Z [[]a] (?P<x>a) (?>a) a{,2}"


@examples(3_000, 100)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6),
    st.lists(st.lists(st.sampled_from(CHARACTERS), max_size=4)),
)
def test_patterns_mean_the_same(pieces, letters):
    """Those that Arrow is given; of what RE2 and `re` take for different things nothing."""
    pattern, texts = "".join(pieces), ["", *map("".join, letters)]
    with warnings.catch_warnings(action="ignore"):
        if in_arrow(pattern):
            check("match", [Value(pattern, "symbol"), TEXT], [(pattern, text) for text in texts])


@pytest.mark.parametrize("pattern", COMMON.split())
def test_common_patterns_are_for_arrow(pattern):
    texts = ["".join(each) for n in range(4) for each in product("ab. \v", repeat=n)]
    assert check("match", [Value(pattern, "symbol"), TEXT], [(pattern, text) for text in texts])


@pytest.mark.parametrize("pattern", ["", *OTHER.split()])
def test_other_patterns_are_for_the_functions(pattern):
    with warnings.catch_warnings(action="ignore"):
        assert not check("match", [Value(pattern, "symbol"), TEXT], [(pattern, text) for text in TEXTS])


def test_a_pattern_that_is_too_large_for_arrow():
    pattern = "((a{999}){999}){999}"
    assert in_arrow(pattern)
    assert not check("match", [Value(pattern, "symbol"), TEXT], [(pattern, "a")])


@pytest.mark.parametrize("op", ["lower", "upper"])
def test_letters(op):
    plain = ["", "aB", "Z~@[`{", "\0X", "x" * 40]
    assert check(op, [TEXT], [(text,) for text in plain])
    assert not check(op, [TEXT], [(text,) for text in [*plain, "ΟΔΟΣ", "İ", "ß"]])


@pytest.mark.parametrize("op", ["trim", "reverse"])
def test_whole_texts(op):
    texts = [*TEXTS, " a ", "  ", "\ta\u00a0", " \n a"]
    assert check(op, [TEXT], [(text,) for text in texts])


@pytest.mark.parametrize("op", ["ltrim", "rtrim"])
@pytest.mark.parametrize("characters", [" ", "a", "ba", "ä本", "\u0301", ".%", "x\0"])
def test_ends(op, characters):
    texts = [*TEXTS, "aab", "baab ab", "  a ", "本日本"]
    assert check(op, [TEXT, Value(characters, "symbol")], [(text, characters) for text in texts])


@pytest.mark.parametrize("old", ["a", "aa", "x", ".", "é", "本", "\0"])
@pytest.mark.parametrize("new", ["", "a", "aaa", r"\1", "é$"])
def test_replaced_texts(old, new):
    texts = [*TEXTS, "aaaa", "aaa.aa", "\0\0"]
    args = [TEXT, Value(old, "symbol"), Value(new, "symbol")]
    assert check("replace", args, [(text, old, new) for text in texts])


@pytest.mark.parametrize("op", ["left", "right"])
@pytest.mark.parametrize("count", NUMBERS)
def test_first_and_last_characters(op, count):
    done = check(op, [TEXT, Value(count, "number")], [(text, count) for text in TEXTS])
    assert done == (0 < count <= text_arrays.LONGEST)


def test_what_differs_from_row_to_row_is_for_the_functions():
    number = Var("n", "number")
    assert not check("substr", [TEXT, number, number], [("abc", 1, 1)])
    assert not check("contains", [TEXT, TEXT], [("a", "abc")])
    assert not check("match", [TEXT, TEXT], [("(?s:a)", "aa")])
    assert not check("replace", [TEXT, Value("a", "symbol"), TEXT], [("a", "a", "b")])
    assert not check("ltrim", [TEXT, TEXT], [("abc", "a")])
    assert not check("left", [TEXT, number], [("abc", 1)])
