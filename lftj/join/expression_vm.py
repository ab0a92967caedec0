"""Arithmetic and comparisons inside a join: a register machine over codes.

The registers are one int64 array: the variables of the rule in key order, then constants, then intermediate results.
A step of a code is a row of `code : int64[n, 4]`, (operation, target register, left register, right register).
Comparisons have no target: a comparison that does not hold ends the code. Codes run where the planner put them, at
the earliest depth that binds what they read.

All values are codes (design.md section 3). Codes of `number`, `unsigned` and `float` keep the order of the values, so
one comparison serves all three; symbols are compared by rank (`RANK`). Integer arithmetic wraps at 64 bits, as
Souffle's does; division and remainder truncate towards zero.

A term without a value (a division by zero, a NaN) ends the code as a comparison that does not hold would, and says so
in `cell[TROUBLE]`: whether it is an error depends on conditions that are looked at elsewhere in the walk, and the
caller finds that out when there was trouble (lftj/evaluate/undefined_terms.py). An operation whose target is
`UNDEFINED` is a comparison itself, which holds where the operation has no value.
"""

from __future__ import annotations

import numpy as np

from scantree._jit import kernel

# fmt: off
EQ, NE, LT, LE, GT, GE = 0, 1, 2, 3, 4, 5
MOVE, RANK = 8, 9
# number (int64)
ADD, SUB, MUL, DIV, MOD, POW, NEG, MIN, MAX = 16, 17, 18, 19, 20, 21, 22, 23, 24
BAND, BOR, BXOR, BNOT, SHL, SHR, SHRU, LAND, LOR, LNOT, LXOR = 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35
# the same for unsigned and float: the operation's number plus these
UNSIGNED, FLOAT = 32, 64
# conversions
I_TO_F, I_TO_U, U_TO_I, U_TO_F, F_TO_I, F_TO_U = 128, 129, 130, 131, 132, 133
# fmt: on

HOLDS, FAILS, DIVISION_BY_ZERO, OUT_OF_RANGE = 0, 1, 2, 3
# The target of an operation that must have no value.
UNDEFINED = -1
# The scratch of a code, `cell` float64[CELL]: bits on their way, and the last status that was not a value (0: none).
BITS, TROUBLE, CELL = 0, 1, 2

SIGN = np.int64(np.iinfo(np.int64).min)
LOW = np.int64(np.iinfo(np.int64).max)


@kernel
def float_of(code, cell):
    """The float64 of an order-preserving code. `cell` float64[CELL] is scratch: bits pass through memory."""
    cell.view(np.int64)[0] = code if code >= 0 else code ^ LOW
    return cell[0]


@kernel
def code_of(value, cell):
    """The order-preserving code of a float64.

    The bits of a positive number, the complemented magnitude of a negative one; -0.0 is 0.0.
    """
    cell[0] = value + 0.0
    bits = cell.view(np.int64)[0]
    return bits if bits >= 0 else bits ^ LOW


@kernel
def _power(base, exponent):
    """Integer power by squaring, wrapping.

    0 for negative exponents of anything but 1 and -1 (truncation towards zero), of 0 too: that has no value, which the
    caller knows.
    """
    if exponent < 0:
        if base == 1:
            return base
        if base == -1:
            return base if exponent & 1 else -base
        return base * 0
    result = base * 0 + 1
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@kernel
def _integer(op, a, b):
    """(result, status) of an operation on int64."""
    if op == ADD:
        return a + b, HOLDS
    if op == SUB:
        return a - b, HOLDS
    if op == MUL:
        return a * b, HOLDS
    if op == DIV or op == MOD:
        if b == 0:
            return a, DIVISION_BY_ZERO
        if b == -1:
            return (-a if op == DIV else a * 0), HOLDS
        q = a // b
        if q < 0 and q * b != a:
            q += 1
        return (q if op == DIV else a - q * b), HOLDS
    if op == POW:
        return _power(a, b), DIVISION_BY_ZERO if a == 0 and b < 0 else HOLDS
    if op == NEG:
        return -a, HOLDS
    if op == MIN:
        return min(a, b), HOLDS
    if op == MAX:
        return max(a, b), HOLDS
    if op == BAND:
        return a & b, HOLDS
    if op == BOR:
        return a | b, HOLDS
    if op == BXOR:
        return a ^ b, HOLDS
    if op == BNOT:
        return ~a, HOLDS
    if op == SHL:
        return a << (b & 63), HOLDS
    if op == SHR:
        return a >> (b & 63), HOLDS
    if op == SHRU:
        return np.int64(np.uint64(a) >> np.uint64(b & 63)), HOLDS
    if op == LAND:
        return np.int64(a != 0 and b != 0), HOLDS
    if op == LOR:
        return np.int64(a != 0 or b != 0), HOLDS
    if op == LXOR:
        return np.int64((a != 0) != (b != 0)), HOLDS
    return np.int64(a == 0), HOLDS


@kernel
def _unsigned(op, a, b):
    """(result code, status) of DIV, MOD, POW, MIN, MAX or SHR on uint64 codes.

    The other operations agree with int64 on the raw bits.
    """
    x, y = np.uint64(a ^ SIGN), np.uint64(b ^ SIGN)
    if op == DIV or op == MOD:
        if y == np.uint64(0):
            return a, DIVISION_BY_ZERO
        return np.int64(x // y if op == DIV else x % y) ^ SIGN, HOLDS
    if op == MIN:
        return min(a, b), HOLDS
    if op == MAX:
        return max(a, b), HOLDS
    if op == SHR:
        return np.int64(x >> (y & np.uint64(63))) ^ SIGN, HOLDS
    if op == POW:
        result, n = np.uint64(1), y
        while n > np.uint64(0):
            if n & np.uint64(1):
                result = result * x
            x = x * x
            n = n >> np.uint64(1)
        return np.int64(result) ^ SIGN, HOLDS
    value, status = _integer(op, a ^ SIGN, b ^ SIGN)
    return value ^ SIGN, status


@kernel
def _floating(op, a, b, cell):
    """(result code, status) of an operation on float64 codes. A NaN is OUT_OF_RANGE: it could not be a key."""
    x, y = float_of(a, cell), float_of(b, cell)
    if op == ADD:
        z = x + y
    elif op == SUB:
        z = x - y
    elif op == MUL:
        z = x * y
    elif op == DIV:
        if y == 0.0:
            return a, DIVISION_BY_ZERO
        z = x / y
    elif op == POW:
        z = x**y
    elif op == NEG:
        z = -x
    elif op == MIN:
        z = min(x, y)
    else:
        z = max(x, y)
    if z != z:
        return a, OUT_OF_RANGE
    return code_of(z, cell), HOLDS


@kernel
def _convert(op, a, cell):
    """(result code, status) of a conversion; a value that the target type cannot hold is OUT_OF_RANGE."""
    if op == I_TO_F:
        return code_of(np.float64(a), cell), HOLDS
    if op == I_TO_U or op == U_TO_I:
        return a ^ SIGN, HOLDS
    if op == U_TO_F:
        return code_of(np.float64(np.uint64(a ^ SIGN)), cell), HOLDS
    x = float_of(a, cell)
    if op == F_TO_I:
        if not (-9223372036854775808.0 <= x < 9223372036854775808.0):
            return a, OUT_OF_RANGE
        return np.int64(x), HOLDS
    if not (-1.0 < x < 18446744073709551616.0):
        return a, OUT_OF_RANGE
    return np.int64(np.uint64(max(x, 0.0))) ^ SIGN, HOLDS


@kernel
def run_code(code, lo, hi, regs, ranks, cell):
    """Run rows [lo, hi) of `code` int64[n, 4] over `regs` int64 (written).

    `ranks` int64[symbols]: text order of each symbol code.

    `cell` float64[CELL]: see above. Returns HOLDS, or FAILS: a comparison did not hold, or a term has no value.
    """
    for i in range(lo, hi):
        op, a = code[i, 0], regs[code[i, 2]]
        if op <= GE:
            b = regs[code[i, 3]]
            if op == EQ:
                holds = a == b
            elif op == NE:
                holds = a != b
            elif op == LT:
                holds = a < b
            elif op == LE:
                holds = a <= b
            elif op == GT:
                holds = a > b
            else:
                holds = a >= b
            if not holds:
                return FAILS
            continue
        value, status = a, HOLDS
        if op == RANK:
            value = ranks[a]
        elif op >= I_TO_F:
            value, status = _convert(op, a, cell)
        elif op >= FLOAT + ADD:
            value, status = _floating(op - FLOAT, a, regs[code[i, 3]], cell)
        elif op >= UNSIGNED + ADD:
            value, status = _unsigned(op - UNSIGNED, a, regs[code[i, 3]])
        elif op >= ADD:
            value, status = _integer(op, a, regs[code[i, 3]])
        target = code[i, 1]
        if status != HOLDS:
            if target != UNDEFINED:
                cell[TROUBLE] = status
                return FAILS
        elif target == UNDEFINED:
            return FAILS
        else:
            regs[target] = value
    return HOLDS


@kernel
def run_columns(code, columns, regs, result, out, defined, cell):
    """Run all of `code` once per row of `columns` int64[a, n], which become the first registers.

    Register `result` goes to `out` int64[n]; `defined` bool[n] says which rows have a value, the others get 0.
    """
    first = np.int64(0)  # a literal would compile `run_code` once more
    for i in range(columns.shape[1]):
        for a in range(columns.shape[0]):
            regs[a] = columns[a, i]
        defined[i] = run_code(code, first, code.shape[0], regs, regs, cell) == HOLDS
        out[i] = regs[result] if defined[i] else 0
