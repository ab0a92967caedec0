"""The register machine: every operation of every type against the reference, on ordinary and on extreme values.

Catches: a wrong wrap, truncation towards minus infinity, a sign bit that slips through, a float code that does not
round-trip, a conversion that is undefined behaviour instead of an error.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lftj.join import expression_vm
from lftj.language.clause import Apply, Value
from lftj.language.functors import CHECKED, FUNCTORS
from lftj.plan.lowering import COMPARISONS, CONVERSIONS, FAMILY
from lftj.values.type_table import from_stored as from_code
from lftj.values.type_table import to_stored
from tests.plain.arithmetic import Undefined
from tests.plain.checked import value_of

MIN, MAX, TOP = -(2**63), 2**63 - 1, 2**64 - 1
# The greatest decimal in its units; integers that floats hold, of as many bits as they have; what is next to one.
MOST, FLOATS, OFF = 10**18 - 1, st.integers(2**52, 2**53 - 1), st.integers(-1, 1)
VALUES = {
    "number": [0, 1, -1, 2, -2, 3, 7, 63, 64, 65, -64, 10**9, 3037000500, MIN, MIN + 1, MAX, MAX - 1],
    "unsigned": [0, 1, 2, 3, 7, 63, 64, 65, 2**32, MAX, 2**63, 2**63 + 1, TOP, TOP - 1],
    "float": [
        0.0,
        -0.0,
        0.5,
        1.0,
        -1.0,
        2.0,
        3.0,
        -2.5,
        0.1,
        1e16,
        2.0**63,
        -(2.0**63),
        2.0**64,
        1e308,
        -1e308,
        5e-324,
        -5e-324,
        2.2e-308,
        math.inf,
        -math.inf,
    ],
}
VALUES["float"] += [5e-324, -5e-324, 2.2e-308, math.inf, -math.inf]
ONLY_FLOAT = {"sqrt", "exp", "ln", "log10"}
UNARY = {"neg", "bnot", "lnot", *ONLY_FLOAT}
ONLY_INTEGRAL = {"%", "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lxor", "lnot"}
# `coalesce` is of any type, and tested in tests/types.
OPERATIONS = {
    op: getattr(expression_vm, signature.opcode)
    for op, signature in FUNCTORS.items()
    if signature.opcode and op != "coalesce"
}
CASES = [
    (op, kind)
    for op in OPERATIONS
    for kind in FAMILY
    if op not in (ONLY_INTEGRAL if kind == "float" else ONLY_FLOAT) and (kind == "number" or op not in CHECKED)
]


def run(op: int, *codes: int) -> tuple[int, int]:
    """(status, result code) of one operation; that it may be asked whether it has a value, and tells the same."""
    regs, cell = np.array([*codes, 0], np.int64), np.zeros(expression_vm.CELL)
    code = np.array([[op, len(codes), 0, len(codes) - 1]], np.int64)
    status = expression_vm.run_code(code, 0, 1, regs, np.zeros(1, np.int64), cell)
    trouble = int(cell[expression_vm.NO_VALUE])
    assert (status == expression_vm.FAILS) == (trouble != expression_vm.HOLDS)
    code[0, 1], before, cell[expression_vm.NO_VALUE] = expression_vm.UNDEFINED, regs.copy(), 0
    asked = expression_vm.run_code(code, 0, 1, regs, np.zeros(1, np.int64), cell)
    assert (asked == expression_vm.HOLDS) == (trouble != expression_vm.HOLDS)
    assert not cell[expression_vm.NO_VALUE]
    assert np.array_equal(regs, before)
    return trouble, int(regs[-1])


def expected(term: Apply) -> tuple[int, int]:
    try:
        return expression_vm.HOLDS, to_stored(value_of(term, {}), term.type)
    except Undefined as error:
        return (expression_vm.DIVISION_BY_ZERO if "zero" in str(error) else expression_vm.OUT_OF_RANGE), 0


def check(op: str, kind: str, *values: float) -> None:
    term = Apply(op, tuple(Value(v, kind) for v in values), kind)
    status, result = run(OPERATIONS[op] + FAMILY[kind], *(to_stored(v, kind) for v in values))
    wanted, code = expected(term)
    assert status == wanted, (op, kind, values)
    if status == expression_vm.HOLDS:
        if kind == "float" and op == "^":  # libraries differ in the last bit
            assert from_code(result, kind) == pytest.approx(from_code(code, kind), rel=1e-15, abs=0.0), (op, values)
        else:
            assert result == code, (op, kind, values, from_code(result, kind))


@pytest.mark.parametrize(("op", "kind"), CASES)
def test_operations_on_extreme_values(op: str, kind: str) -> None:
    for values in itertools.product(VALUES[kind], repeat=1 if op in UNARY else 2):
        check(op, kind, *values)


@given(st.sampled_from([c for c in CASES if c[1] != "float"]), st.data())
def test_integer_operations_on_any_values(case: tuple[str, str], data: st.DataObject) -> None:
    op, kind = case
    some = st.integers(MIN, MAX) if kind == "number" else st.integers(0, TOP)
    check(op, kind, *(data.draw(some) for _ in range(1 if op in UNARY else 2)))


@given(
    st.sampled_from(["+", "-", "*", "/", "neg", "min", "max", *sorted(ONLY_FLOAT)]), *[st.floats(allow_nan=False)] * 2
)
def test_float_operations_on_any_values(op: str, a: float, b: float) -> None:
    check(op, "float", *((a,) if op in UNARY else (a, b)))


@pytest.mark.parametrize(("source", "target"), CONVERSIONS)
def test_conversions(source: str, target: str) -> None:
    letters = {"number": "i", "unsigned": "u", "float": "f"}
    op = f"{letters[source]}to{letters[target]}"
    more = [9.2e18, -9.3e18, 1.8e19, 1.9e19, 0.9, -0.9, 2.0**63 - 1024] if source == "float" else []
    for value in [*VALUES[source], *more]:
        status, result = run(CONVERSIONS[source, target], to_stored(value, source))
        wanted, code = expected(Apply(op, (Value(value, source),), target))
        assert (status, result if status == expression_vm.HOLDS else 0) == (wanted, code), (op, value)


# Of them, many are in the middle of two floats, or next to that.
MIDDLES = st.builds(lambda odd, shift, more: ((2 * odd + 1) << shift) + more, FLOATS, st.integers(0, 5), OFF)


@given(st.one_of(st.integers(-MOST, MOST), MIDDLES), st.integers(0, 18))
@example(MOST, 18)
@example(-(2**53) - 1, 0)
def test_the_float_of_a_decimal_is_the_nearest(unscaled: int, scale: int) -> None:
    assume(abs(unscaled) <= MOST)
    status, result = run(expression_vm.DECIMAL_TO_F, unscaled, 10**scale)
    assert status == expression_vm.HOLDS
    assert from_code(result, "float") == float(Fraction(unscaled, 10**scale))


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(op: str, kind: str) -> None:
    """Codes keep the order of values, so one comparison serves all types."""
    holds = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[op]
    for a, b in itertools.product(VALUES[kind], repeat=2):
        regs = np.array([to_stored(a, kind), to_stored(b, kind)], np.int64)
        code = np.array([[COMPARISONS[op], 0, 0, 1]], np.int64)
        status = expression_vm.run_code(code, 0, 1, regs, np.zeros(1, np.int64), np.zeros(expression_vm.CELL))
        assert (status == expression_vm.HOLDS) == getattr(a, holds)(b)
        assert status in (expression_vm.HOLDS, expression_vm.FAILS)


@given(st.floats(allow_nan=False))
def test_float_codes_round_trip(value: float) -> None:
    cell = np.zeros(expression_vm.CELL)
    code = to_stored(value, "float")
    assert expression_vm.float_of(code, cell) == value
    assert expression_vm.code_of(value, cell) == code


def test_symbols_are_compared_by_rank() -> None:
    """`RANK` replaces the code of a symbol by its place in text order."""
    regs, ranks = np.array([2, 0], np.int64), np.array([5, 6, 7], np.int64)
    code = np.array([[expression_vm.RANK, 1, 0, 0]], np.int64)
    assert expression_vm.run_code(code, 0, 1, regs, ranks, np.zeros(expression_vm.CELL)) == expression_vm.HOLDS
    assert regs.tolist() == [2, 7]


def test_a_comparison_that_fails_ends_the_code() -> None:
    regs = np.array([1, 2, 0], np.int64)
    code = np.array([[expression_vm.LT, 0, 1, 0], [expression_vm.ADD, 2, 0, 1]], np.int64)
    assert expression_vm.run_code(code, 0, 2, regs, regs, np.zeros(expression_vm.CELL)) == expression_vm.FAILS
    assert regs.tolist() == [1, 2, 0]


def test_columns_say_which_rows_have_a_value() -> None:
    code = np.array([[expression_vm.DIV, 2, 0, 1]], np.int64)
    columns, regs, out = np.array([[6, 7, 8], [2, 0, 4]]), np.zeros(3, np.int64), np.zeros(3, np.int64)
    defined = np.zeros(3, np.bool_)
    expression_vm.run_columns(code, columns, regs, 2, out, defined, np.zeros(expression_vm.CELL))
    assert out.tolist() == [3, 0, 2]
    assert defined.tolist() == [True, False, True]
