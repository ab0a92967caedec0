"""Aggregates over one relation by its columns: what a walk gives, over all types, in parts of few rows.

Catches: a row that counted although a condition has no value for it, wildcards that were taken for one row, parts that
were folded twice when a later one has to be walked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import by_columns, column_functions, term_columns
from lftj.evaluate.term_columns import TermColumns
from lftj.join import dense_groups
from lftj.language import text_functors
from lftj.language.clause import Apply, Var
from lftj.language.functors import CHECKED
from lftj.language.types import scale_of
from lftj.plan.lowering import apply_columns
from lftj.values.codes import encode_float, float_of
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import type_of
from tests.conftest import examples
from tests.engine.programs import seeds

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

DECLARED = """
.decl t(a:number, b:number?, c:float, d:symbol, e:date?, f:decimal(6,2), g:unsigned)
"""
VALUES: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, -3, 7, 2**62, -(2**63)),
    "number?": (0, 2, None),
    "float": (0.0, 1.5, -2.25, float("inf"), 1e300),
    "symbol": ("", "x", "xy", "ß"),
    "date?": (None, date(2024, 2, 29), date(1970, 1, 1)),
    "decimal(6,2)": (Decimal(0), Decimal("12.34"), Decimal("-9999.99")),
    "unsigned": (0, 5, 2**63, 2**64 - 1),
}
# A part of the rows is a page at least.
PAGES = {"page_rows": 2, "directory_rows": 2}
COLUMNS = dict(zip("abcdefg", VALUES, strict=True))
OPERANDS = ("a", "b", "c", "f", "g", "a * 2", "a / (a - 1)", "a * a", "f + 1.5d", "strlen(d)", "c / 3.0")
CONDITIONS = (
    *("a > 0", "b != 1", "c < 2.0", 'd >= "x"', 'd != "xy"', 'e > date("2000-01-01")', "f <= 0.0d", "g > 5u"),
    *("!is_null(b)", "is_null(e)", "a / b > 0", "a < b", "a % 3 = 1", 'contains("x", d)', "a = 7"),
)
# Of a group, or of what is compared; some have no value, or may be null.
DEFINED = (
    *("k = a % 3", "a / (a - 1) = k", "k = strlen(d)", "k = b", "k = d", "k = year(e)", "k = g", "k = c"),
    *("m = a % 4, k = m + 1", "k = m * 2, m = a % 4", "k = a % 3, k = a % 2", "k = a % 3, k > 0"),
)


def rule(rng: Random, at: int) -> str:
    op = rng.choice(["count", "sum", "mean"])
    operand = "" if op == "count" else f" {rng.choice(OPERANDS)}"
    conditions = rng.sample(CONDITIONS, rng.choice([0, 1, 1, 2]))
    groups = rng.sample("abdefg", rng.choice([0, 1, 1, 2]))
    if rng.random() < 0.4:
        conditions.append(rng.choice(DEFINED))
        groups += ["k"] if rng.random() < 0.8 else []
    read = {name for text in (operand, *conditions, *groups) for name in re.findall(r"\b[a-g]\b", text)}
    named = ", ".join(c if c in read else "_" for c in COLUMNS)
    braces = ", ".join([f"t({named})", *conditions])
    if groups:
        return f"h{at}[{', '.join(groups)}] = {op}{operand} : {{ {braces} }}."
    return f"h{at}(n) :- n = {op}{operand} : {{ {braces} }}."


def answers(db: lftj.Database, heads: list[str]) -> Iterator[object]:
    for head in heads:
        try:
            yield sorted(map(repr, db[head]))
        except lftj.Error as error:
            yield type(error), error.what


def accepted(rng: Random, declared: str, rule: Callable[[Random, int], str]) -> list[tuple[str, str]]:
    """(the head of each, itself) of random rules whose types go together."""
    rules = []
    for at in range(4):
        made = rule(rng, at)
        try:
            lftj.Database(declared + made)
        except lftj.ProgramError:
            continue
        rules.append((f"h{at}", made))
    return rules


@given(rng=seeds)
@examples(200, 15)
def test_what_a_walk_gives(rng: Random) -> None:
    rules = accepted(rng, DECLARED, rule)
    few = rng.choice([2, 3, 9])  # values of a column; if they lie close together, terms are computed once for each
    rows = [tuple(rng.choice(values[:few]) for values in VALUES.values()) for _ in range(rng.choice([0, 3, 12, 40]))]
    found = []
    for least, part in ((0, rng.choice([1, 3, 100])), (1 << 60, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(by_columns, "PART", part)
            patch.setattr(dense_groups, "LEAST", rng.choice([1, 256]))
            patch.setattr(term_columns, "REPEATED", rng.choice([2, 4]))
            db = lftj.Database._sized(DECLARED + "\n".join(made for _, made in rules), columns_from=least, **PAGES)
            db.load("t", rows)
            found.append(list(answers(db, [head for head, _ in rules])))
    assert found[0] == found[1], rules


def test_no_key_order_is_left_behind() -> None:
    """Each aggregate of a `group by` had a copy of the relation in an order of its own."""
    db = lftj.Database._sized(".decl t(k:number, a:number, b:number, c:number)", columns_from=0)
    db.rules("s[c] = sum a : { t(_, a, _, c) }. m[c] = mean b : { t(_, _, b, c) }. n[a] = count : { t(_, a, _, _) }.")
    rows = [(i, i % 3, i % 5, i % 2) for i in range(100)]
    db.load("t", rows)
    assert dict(db["s"]) == {c: sum(row[1] for row in rows if row[3] == c) for c in (0, 1)}
    assert dict(db["n"]) == {0: 34, 1: 33, 2: 33}
    assert dict(db["m"]) == {0: 2.0, 1: 2.0}
    assert list(db._state.relations["t"].orders) == [(0, 1, 2, 3)]


def test_what_is_asked_again_and_again_is_sorted() -> None:
    """If that leads to few of the rows. What reads all of them is not sorted for."""
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table t (k int primary key, a int not null, b int not null)")
    db.load("t", [(i, i % 1000, i % 7) for i in range(4000)])
    few, every = "select sum(b) as s from t where a = 5", "select b, sum(a) as s from t group by b order by b"
    expected = [[(sum(i % 7 for i in range(5, 4000, 1000)),)], list(db.sql(every))]
    orders = []
    for _ in range(by_columns.OFTEN + 1):
        assert [list(db.sql(few)), list(db.sql(every))] == expected
        orders.append(len(db._state.relations["t"].orders))
    assert orders[: by_columns.OFTEN - 2] == [1] * (by_columns.OFTEN - 2)
    assert orders[-1] == 2


def test_a_definition_that_nothing_reads_has_to_have_a_value() -> None:
    db = lftj.Database._sized(
        ".decl t(a:number, g:number)  h[g] = count : { t(a, g), k = 6 / a, g > 0 }.", columns_from=0
    )
    db.load("t", [(0, 0), (1, 1), (2, 1)])
    assert list(db["h"]) == [(1, 2)]  # the row without a value is in no group
    db.load("t", [(0, 2)])
    with pytest.raises(EvaluationError, match="division by zero"):
        list(db["h"])


NUMERIC = ("number", "decimal(4,2)", "decimal(18,2)", "decimal(18,0)", "decimal(18,4)", "number?")


@given(rng=seeds)
@examples(300, 30)
def test_columns_are_computed_as_single_rows_are(rng: Random) -> None:
    """A sum of whole columns leaves its type where that of a row does."""
    op, types = rng.choice(["+", "-", "*", "checked_add", "checked_mul"]), [rng.choice(NUMERIC) for _ in range(2)]
    kept = [type_of(type) for type in types]
    low, high = rng.choice([(-4, 4), (-(10**9), 10**9), (2**62, 2**63 - 1), (-(2**63) + 1, -(2**62))])
    ends = [(max(t.low + 1, min(low, t.high)), max(t.low + 1, min(high, t.high))) for t in kept]
    columns = [np.array([rng.randint(*end) for _ in range(5)]) for end in ends]
    scale = (sum if "*" in op or "mul" in op else max)(map(scale_of, types))
    plain = [type for type in NUMERIC if "?" not in type]
    result = rng.choice([type for type in plain if scale_of(type) == scale] or plain)
    found = column_functions.applied(op, types, columns, result)
    scales = [scale_of(type) for type in (*types, result)]
    if found is None or "number?" in types:
        assert found is None
        return
    assert sum(scales[:2]) == scales[2] if op.endswith(("*", "mul")) else len({*scales}) == 1
    act = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[CHECKED.get(op, op)]
    expected = [act(one, other) for one, other in zip(*(column.tolist() for column in columns), strict=True)]
    assert found.tolist() == expected
    assert all(abs(value) <= type_of(result).high for value in expected)


INSTANT = (-62_135_596_800_000_000, 253_402_300_799_999_999)
# (a functor, the types of its arguments, the type of its values)
OF_MACHINE = [
    *((op, ("float", "float"), "float") for op in "+-*/"),
    *((op, ("number", "number"), "number") for op in "/%"),
    ("itof", ("number",), "float"),
    *((op, ("timestamp",), "number") for op in ("hour", "minute", "second")),
    *((op, ("timestamp",), "date" if op.endswith("_start") else "number") for op in sorted(column_functions.OF_DAYS)),
    ("date_of", ("timestamp",), "date"),
    ("time_of", ("timestamp",), "duration"),
    ("midnight", ("date",), "timestamp"),
]
FLOATS = [0.0, -1.5, 2.25, 1e308, -1e308, 5e-324, float("inf"), float("-inf")]


def codes_of(rng: Random, type: str, n: int) -> npt.NDArray[np.int64]:
    few, low, high = rng.random() < 0.5, *{"timestamp": INSTANT, "date": (-719_162, 2_932_896)}.get(type, (-9, 9))
    if type == "float":
        chosen = rng.sample(FLOATS, 3) if few else FLOATS
        return encode_float(np.array([rng.choice(chosen) if rng.random() < 0.3 else rng.gauss(0, 9) for _ in range(n)]))
    if type == "number" and rng.random() < 0.3:
        low, high = rng.choice([(1, 9), (7, 7), (-(2**63), 2**63 - 1), (1, 2**63 - 1)])
    at = rng.randint(low, high)
    return np.array([rng.randint(low, high) if not few else min(at + rng.randint(0, 3), high) for _ in range(n)])


@pytest.mark.parametrize(("op", "types", "result"), OF_MACHINE, ids=[f"{op} {types[0]}" for op, types, _ in OF_MACHINE])
@given(rng=seeds)
@examples(120, 10)
def test_columns_are_what_the_machine_of_joins_gives(rng: Random, op: str, types: tuple[str, ...], result: str) -> None:
    columns = [codes_of(rng, type, rng.choice([1, 3, 400])) for type in types]
    columns = [column[: min(map(len, columns))] for column in columns]
    n = len(columns[0])
    names = [f"x{i}" for i in range(len(types))]
    term = Apply(op, tuple(map(Var, names, types)), result)
    expected, defined = apply_columns(term, columns)
    whole = column_functions.applied(op, types, columns, result)
    if whole is not None:
        assert defined.all()
        assert whole.tolist() == expected.tolist()
    terms = TermColumns(dict(zip(names, columns, strict=True)), n, SymbolTable())
    found = terms.codes(term)
    assert terms.defined.tolist() == defined.tolist()
    assert found[defined].tolist() == expected[defined].tolist()


@pytest.mark.parametrize("digits", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("op", ["to_decimal", "round", "floor", "ceil"])
@given(rng=seeds)
@examples(120, 10)
def test_floats_are_rounded_as_each_by_itself(rng: Random, op: str, digits: int) -> None:
    """Middles between two neighbours, what is next to them, and what has too many digits to tell in floats."""

    def drawn() -> float:
        value = rng.choice([rng.randint(-99, 99) / 2, rng.randint(-(10**6), 10**6) / 2000, rng.gauss(0, 1)])
        value *= rng.choice([1, 1, 1, 1e-9, 2.0**-30])
        return math.nextafter(value, rng.choice([value, math.inf, -math.inf]))

    values = [drawn() for _ in range(9)] + rng.choice([[], [], [rng.choice([1e17, 1e300, math.inf, 2.0**52 - 0.5])]])
    codes, result = encode_float(np.array(values)), f"decimal(18,{digits})" if op == "to_decimal" else "float"
    each = {"to_decimal": text_functors.to_decimal, "round": text_functors.rounded}
    columns = [codes] if op not in each else [codes, np.full(len(codes), digits)]
    found = column_functions.applied(op, ["float", "number"][: len(columns)], columns, result)
    if found is None:
        assert max(map(abs, values)) * 10**digits > 1e14
        return
    for value, code in zip(values, found.tolist(), strict=True):
        if op == "to_decimal":
            assert code == int(text_functors.to_decimal(value, digits).scaleb(digits)), value
        elif op == "round":
            assert float_of(code) == text_functors.rounded(value, digits), value
        else:
            assert float_of(code) == {"floor": text_functors.floor, "ceil": text_functors.ceil}[op](value), value


# Products with 10 or 100 that are rounded to the very middle of two whole numbers, of which the even one is the nearest
# or is not: what is lacking decides.
MIDDLES = [sign * value for value in (0.05, 0.15, 0.35, 0.45, 0.55, 0.65, 0.85, 0.95, 1.35, 1.45) for sign in (1, -1)]


@pytest.mark.parametrize("digits", [1, 2])
def test_a_product_that_is_rounded_to_a_middle(digits: int) -> None:
    values = [value / 10 ** (digits - 1) for value in MIDDLES]
    columns = [encode_float(np.array(values)), np.full(len(values), digits)]
    exact = column_functions.applied("to_decimal", ["float", "number"], columns, f"decimal(18,{digits})")
    assert exact is not None
    assert exact.tolist() == [int(text_functors.to_decimal(value, digits).scaleb(digits)) for value in values]
    shown = column_functions.applied("round", ["float", "number"], columns, "float")
    assert shown is not None
    assert [float_of(code) for code in shown.tolist()] == [text_functors.rounded(value, digits) for value in values]


def test_floats_and_times_are_computed_by_whole_columns() -> None:
    """Each went through the machine of joins by itself, which takes ten times as long."""
    for op, types, result in OF_MACHINE:
        if op not in column_functions.OF_DAYS:
            columns = [np.full(9, 1 << 60) if type == "float" else np.full(9, 5) for type in types]
            assert column_functions.applied(op, types, columns, result) is not None, op
