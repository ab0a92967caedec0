"""Every functor of the language on ordinary and extreme values: in joins, in the step of texts, and as constants.

Expected values of texts are written out or plain Python; those of numbers are the reference's. A functor that the
table names and nothing here calls is caught too.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from lftj.language.clause import Apply, Value
from lftj.language.functors import CONSTRAINTS, FUNCTORS, OF_TYPES, known_as
from lftj.language.notation import literal_text
from tests.conftest import JIT
from tests.join.test_machine import MAX, MIN, TOP, UNARY, VALUES
from tests.plain.arithmetic import Undefined
from tests.plain.checked import value_of

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

UNDEFINED = None
# functor, types of the arguments, type of the result, (arguments, value) pairs
TABLE: list[tuple[str, tuple[str, ...], str, list[tuple[tuple[Any, ...], Any]]]] = [
    ("cat", ("symbol", "symbol"), "symbol", [(("a", "b"), "ab"), (("", ""), ""), (("é", "\n"), "é\n")]),
    (
        "cat",
        ("symbol", "symbol", "symbol"),
        "symbol",
        [(t, "".join(t)) for t in itertools.product(("a", "", "bé"), repeat=3)],
    ),
    ("strlen", ("symbol",), "number", [((t,), len(t)) for t in ("", "a", "Käse", "a\nb", "😀", "x" * 1000)]),
    (
        "substr",
        ("symbol", "number", "number"),
        "symbol",
        [
            (("Hello", 1, 3), "ell"),
            (("Hello", 0, 0), ""),
            (("Hello", 3, 100), "lo"),
            (("Hello", 3, MAX), "lo"),
            (("Hello", 5, 1), ""),
            (("Hello", 6, 1), ""),
            (("Hello", -1, 2), ""),
            (("Hello", MIN, MAX), ""),
            (("Hello", 2, -1), "llo"),
            (("Hello", 2, MIN), "llo"),
            (("Käse😀", 1, 4), "äse😀"),
            (("", 0, 5), ""),
        ],
    ),
    (
        "to_number",
        ("symbol",),
        "number",
        [
            (("0",), 0),
            (("-7",), -7),
            (("007",), 7),
            (("0x1F",), 31),
            (("-0b101",), -5),
            ((str(MAX),), MAX),
            ((str(MIN),), MIN),
            *(((t,), UNDEFINED) for t in ("", " 1", "1 ", "+1", "1.0", "x", "1x", "0x", "0b2", "--1", "1_0", "१")),
            *(((t,), UNDEFINED) for t in (str(MAX + 1), str(MIN - 1), "9" * 5000)),
        ],
    ),
    (
        "to_unsigned",
        ("symbol",),
        "unsigned",
        [(("5",), 5), ((str(TOP),), TOP), (("-0",), 0), (("-1",), UNDEFINED), ((str(TOP + 1),), UNDEFINED)],
    ),
    (
        "to_float",
        ("symbol",),
        "float",
        [
            (("1",), 1.0),
            (("-1.5e-3",), -0.0015),
            ((".5",), 0.5),
            (("2.",), 2.0),
            (("+Infinity",), math.inf),
            (("-inf",), -math.inf),
            (("-0.0",), 0.0),
            *(((t,), UNDEFINED) for t in ("", "nan", "1_0", " 1", "1 ", "0x1p3", "e5", ".", "1e400", "-1e400")),
        ],
    ),
    ("to_string", ("symbol",), "symbol", [(("a b",), "a b")]),
    ("to_string", ("number",), "symbol", [((n,), str(n)) for n in (0, -1, MIN, MAX)]),
    ("to_string", ("unsigned",), "symbol", [((n,), str(n)) for n in (0, 1, TOP)]),
    (
        "to_string",
        ("float",),
        "symbol",
        [((0.5,), "0.5"), ((1.0,), "1.0"), ((1e16,), "1.0e+16"), ((5e-324,), "5.0e-324"), ((-math.inf,), "-inf")],
    ),
    *(
        (
            op,
            (kind, kind, kind),
            kind,
            [(t, {"min": min, "max": max}[op](t)) for t in itertools.product(some, repeat=3)],
        )
        for op in ("min", "max")
        for kind, some in (
            ("number", (MIN, -1, MAX)),
            ("unsigned", (0, 2**63, TOP)),
            ("float", (-math.inf, 0.5, 1e300)),
            ("symbol", ("", "B", "a", "é")),
        )
    ),
]


def checked(op: str, kinds: tuple[str, ...], result: str, cases: list[tuple[tuple[Any, ...], Any]]) -> None:
    """The functor over a relation, in a join and with a text beside it; one by one where it has no value."""
    names = [f"a{i}" for i in range(len(kinds))]
    declared = ", ".join(f"{n}:{k}" for n, k in zip(names, kinds, strict=True))
    term = written(op, names)
    db = lftj.Database(
        f".decl v(i:number, {declared})\n.decl p(i:number, r:{result})\n.decl q(i:number, r:{result}, t:symbol)\n"
        f".decl w(i:number, {declared})\n"
        f'p(i, {term}) :- v(i, {", ".join(names)}).\nq(i, r, cat(to_string(i), "")) :- v(i, {", ".join(names)}), '
        f"r = {term}."
    )
    good = [(i, args, value) for i, (args, value) in enumerate(cases) if value is not UNDEFINED]
    db.load("v", [(i, *args) for i, args, _ in good])
    for name in "pq":
        rows = {row[0]: row[1] for row in db[name]}
        for i, args, value in good:
            if op == "^" and result == "float":
                assert rows[i] == pytest.approx(value, rel=1e-15, abs=0.0), args
            else:
                assert rows[i] == value, args
                assert type(rows[i]) is type(value)
    db.load("w", [(i, *args) for i, (args, value) in enumerate(cases) if value is UNDEFINED])
    for i in [i for i, (_, value) in enumerate(cases) if value is UNDEFINED][:: 1 if JIT else 20]:
        with pytest.raises(EvaluationError, match="a0 = "):
            list(db.query(f"w(i, {', '.join(names)}), r = {term}, i = {i}"))


def written(op: str, arguments: list[str]) -> str:
    if op.isidentifier() and op not in ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"):
        return f"-{arguments[0]}" if op == "neg" else f"{op}({', '.join(arguments)})"
    return f" {op} ".join(arguments)


@pytest.mark.parametrize(("op", "kinds", "result", "cases"), TABLE, ids=lambda x: str(x)[:24])
def test_functors_over_texts(op: str, kinds: tuple[str, ...], result: str, cases: list[Any]) -> None:
    checked(op, kinds, result, cases)


def numeric() -> list[tuple[str, str, str]]:
    found = []
    for op, signature in FUNCTORS.items():
        for kind in () if op in OF_TYPES else ("number", "unsigned", "float"):
            parameter = signature.parameters[0]
            if parameter == "T" and kind in signature.domain and op not in ("min", "max"):
                found.append((op, kind, kind))
            elif parameter == kind or (parameter == "any" and signature.result != "symbol"):
                found.append((op, kind, signature.result))
    return found


@pytest.mark.parametrize(("op", "kind", "result"), numeric())
def test_functors_over_numbers(op: str, kind: str, result: str) -> None:
    some = VALUES[kind] if JIT else VALUES[kind][::4]
    alone = op in UNARY or FUNCTORS[op].parameters != ("T", "T")
    cases = []
    for args in itertools.product(dict.fromkeys(some), repeat=1 if alone else 2):
        try:
            value = value_of(Apply(op, tuple(Value(a, kind) for a in args), result), {})
        except Undefined:
            value = UNDEFINED
        cases.append((args, value))
    checked(op, (kind,) if alone else (kind, kind), result, [c for c in cases if c[1] is not UNDEFINED])
    undefined = [c for c in cases if c[1] is UNDEFINED]
    checked(op, (kind,) if alone else (kind, kind), result, undefined[:3] + undefined[-1:])


def test_every_functor_is_called_here() -> None:
    assert {op for op, *_ in TABLE} | {op for op, *_ in numeric()} | {"ord"} == set(
        FUNCTORS
    ) - OF_TYPES  # see tests/types


def test_ord_tells_symbols_apart() -> None:
    db = lftj.Database('.decl s(t:symbol)\np(t, u) :- s(t), s(u), ord(t) = ord(u).\nq(ord("a")) :- s("a").')
    db.load("s", [("a",), ("b",), ("",)])
    assert list(db["p"]) == [("", ""), ("a", "a"), ("b", "b")]
    ((number,),) = db["q"]
    assert list(db.query(f"s(t), ord(t) = {number}")) == [("a",)]


@pytest.mark.parametrize(
    ("test", "left", "right", "holds"),
    [
        ("contains", "", "", True),
        ("contains", "", "a", True),
        ("contains", "ab", "cabd", True),
        ("contains", "ba", "cabd", False),
        ("contains", ".", "a", False),
        ("match", "a.c", "abc", True),
        ("match", "a.c", "xabc", False),  # all of the text
        ("match", "a|ab", "ab", True),
        ("match", "", "", True),
        ("reads_as", "number", "9223372036854775807", True),
        ("reads_as", "number", "9223372036854775808", False),
        ("reads_as", "number", "-0x1f", True),
        ("reads_as", "number", "1.5", False),
        ("reads_as", "unsigned", "18446744073709551615", True),
        ("reads_as", "unsigned", "-1", False),
        ("reads_as", "float", "1e308", True),
        ("reads_as", "float", "1e309", False),
        ("reads_as", "decimal(4,2)", "99.994", True),
        ("reads_as", "decimal(4,2)", "99.995", False),
        ("reads_as", "date", "2024-02-29", True),
        ("reads_as", "date", "2023-02-29", False),
        ("reads_as", "timestamp", "2024-02-29 10:00:00", True),
        ("reads_as", "bool", "true", True),
        ("reads_as", "uuid", "", False),
        ("reads_as", "symbol", "", True),
        ("reads_as", "day", "1", None),
        ("match", "[[:alpha:]]+[[:digit:]]?", "ab1", True),
        ("match", "[^[:space:]]*", "a b", False),
        ("match", "\\d", "٣", False),  # classes are those of ASCII
        ("match", "(a)\\1", "aa", True),
        ("match", "a{2,3}", "aaaa", False),
        ("match", "(?:ab)*?", "abab", True),
        ("match", "(", "a", None),
        ("match", "[[:nothing:]]", "a", None),
        ("match", "*", "a", None),
    ],
)
def test_tests(test: str, left: str, right: str, holds: bool | None) -> None:
    db = lftj.Database(".decl s(l:symbol, r:symbol)")
    db.load("s", [(left, right)])
    for body in (f"{test}(l, r)", f"{test}({literal_text(left, 'symbol')}, r)"):
        for negation in (False, True):
            query = db.query(f"s(l, r), {'!' * negation}{body}")
            if holds is None:
                with pytest.raises(EvaluationError, match=r"not a regular expression|no type"):
                    list(query)
            else:
                assert bool(list(query)) == (holds != negation)


@pytest.mark.parametrize("name", [*FUNCTORS, *CONSTRAINTS])
def test_examples_hold(name: str) -> None:
    example = known_as(name).example
    assert ("-" if name == "neg" else name) in example
    db = lftj.Database(f".decl p(x:number)\np(1) :- {example}.")
    assert list(db["p"]) == [(1,)]


def test_the_remainder_of_decimals_is_that_of_their_digits() -> None:
    """With the sign of what is divided; of rows that come and go, and an error of those with the divisor 0."""
    db = lftj.Database(".decl t(x:decimal(9,2), y:decimal(9,2))\nr(x, y, z) :- t(x, y), z = x % y.")
    pairs = [("5.50", "2.25"), ("-5.50", "2.25"), ("5.50", "-2.25"), ("-0.01", "9999999.99"), ("7.00", "0.07")]
    rows = [(Decimal(x), Decimal(y)) for x, y in pairs]
    for row in rows:
        with db.transaction() as tx:
            tx.insert("t", [row])
    assert set(db["r"]) == {(x, y, x % y) for x, y in rows}
    with pytest.raises(EvaluationError, match="division by zero"), db.transaction() as tx:
        tx.insert("t", [(Decimal(1), Decimal(0))])
    with db.transaction() as tx:
        tx.erase("t", rows[1:])
    assert list(db["r"]) == [(Decimal("5.50"), Decimal("2.25"), Decimal("1.00"))]
