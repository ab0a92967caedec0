"""Arithmetic and comparisons inside a join: a register machine over codes.

The registers are one int64 array: the variables of the rule in key order, then constants, then intermediate results.
A step of a code is a row of `code : int64[n, 4]`, (operation, target register, left register, right register).
Comparisons have no target: a comparison that does not hold ends the code. Codes run where the planner put them, at
the earliest depth that binds what they read.

All values are codes (lftj/values/gate.py). Codes of `number`, `unsigned` and `float` keep the order of the values, so
one comparison serves all three; symbols are compared by rank (`RANK`). Integer arithmetic wraps at 64 bits, as
Souffle's does; division and remainder truncate towards zero.

A term without a value (a division by zero, a NaN) ends the code as a comparison that does not hold would, and says so
in `cell[NO_VALUE]`: whether it is an error depends on conditions that are looked at elsewhere in the walk, and the
caller finds that out when it is not 0 (lftj/evaluate/undefined_terms.py). An operation whose target is
`UNDEFINED` is a comparison itself, which holds where the operation has no value.
"""

from __future__ import annotations

import math

import numpy as np

from scantree._jit import kernel

# fmt: off
EQ, NE, LT, LE, GT, GE = 0, 1, 2, 3, 4, 5
MOVE, RANK = 8, 9
# number (int64)
ADD, SUB, MUL, DIV, MOD, POW, NEG, MIN, MAX = 16, 17, 18, 19, 20, 21, 22, 23, 24
BAND, BOR, BXOR, BNOT, SHL, SHR, SHRU, LAND, LOR, LNOT, LXOR = 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35
# float only
SQRT, EXP, LN, LOG10 = 36, 37, 38, 39
# the same for unsigned and float: the operation's number plus these
UNSIGNED, FLOAT = 32, 64
# conversions
I_TO_F, I_TO_U, U_TO_I, U_TO_F, F_TO_I, F_TO_U = 128, 129, 130, 131, 132, 133
# a decimal, whose one in its units is on the right
DECIMAL_TO_F = 134
# null: the second if the first is null (the greatest code, of unsigned)
COALESCE, U_COALESCE = 144, 145
# decimals and durations, in range or without a value
DECIMAL_ADD, DECIMAL_SUB, DECIMAL_MUL, DURATION_ADD, DURATION_SUB, DURATION_MUL, DURATION_DIV = range(150, 157)
# days and microseconds since 1970
DATE_ADD, DATE_SUB, DATE_DIFF, TIME_ADD, TIME_SUB, DATE_OF, TIME_OF, DATE_BUCKET, TIME_BUCKET = range(160, 169)
MIDNIGHT, HOUR, MINUTE, SECONDS = range(169, 173)
# of days
YEAR, MONTH, DAY_OF_MONTH, WEEKDAY, YEAR_START, MONTH_START = range(176, 182)
# the same of microseconds: the operation's number plus this
OF_TIME = 8
# fmt: on

HOLDS, FAILS, DIVISION_BY_ZERO, OUT_OF_RANGE = 0, 1, 2, 3
# The target of an operation that must have no value.
UNDEFINED = -1
# The scratch of a code, `cell` float64[CELL]: bits on their way, and the last status that was not a value (0: none).
BITS, NO_VALUE, CELL = 0, 1, 2

SIGN = np.int64(np.iinfo(np.int64).min)
LOW = np.int64(np.iinfo(np.int64).max)
# The last integer up to which all are floats.
WHOLE = np.int64(1 << 53)
# The first integer of more than 18 digits; a second and a day in microseconds; the days 0001-01-01 and 9999-12-31.
DECIMALS = np.int64(10**18)
SECOND, DAY = np.int64(1_000_000), np.int64(86_400_000_000)
FIRST_DAY, LAST_DAY = np.int64(-719162), np.int64(2932896)
# Monday, 2000-01-03: buckets begin there, so that those of weeks are weeks.
BUCKETS_FROM = np.int64(10959)
# The greatest float whose exponential is one.
LAST_EXPONENT = 709.782712893384


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
    elif op == MAX:
        z = max(x, y)
    elif op == EXP:
        z = math.exp(x) if x <= LAST_EXPONENT else math.inf
    elif x < 0.0 or (x == 0.0 and op != SQRT):  # as interpreted they raise there
        return a, OUT_OF_RANGE
    elif op == SQRT:
        z = math.sqrt(x)
    else:
        z = math.log(x) if op == LN else math.log10(x)
    if z != z:
        return a, OUT_OF_RANGE
    return code_of(z, cell), HOLDS


@kernel
def quotient(a, unit):
    """The float64 nearest to a / unit, of at most 10^18 each; half to even."""
    if -WHOLE <= a <= WHOLE or a == SIGN:  # both are floats themselves; null is anything
        return np.float64(a) / np.float64(unit)
    left = abs(a)
    whole, rest, scale = left // unit, left % unit, 1.0
    while whole < 2 * WHOLE:  # two bits more than a float has
        rest *= 2
        bit = rest >= unit
        whole = 2 * whole + bit
        rest -= unit * bit
        scale *= 0.5
    # What is behind them only tells on which side of the middle it is.
    value = np.float64(whole | np.int64(rest != 0)) * scale
    return value if a > 0 else -value


@kernel
def _convert(op, a, b, cell):
    """(result code, status) of a conversion; a value that the target type cannot hold is OUT_OF_RANGE."""
    if op == I_TO_F:
        return code_of(np.float64(a), cell), HOLDS
    if op == I_TO_U or op == U_TO_I:
        return a ^ SIGN, HOLDS
    if op == U_TO_F:
        return code_of(np.float64(np.uint64(a ^ SIGN)), cell), HOLDS
    if op == DECIMAL_TO_F:
        return code_of(quotient(a, b), cell), HOLDS
    x = float_of(a, cell)
    if op == F_TO_I:
        if not (-9223372036854775808.0 <= x < 9223372036854775808.0):
            return a, OUT_OF_RANGE
        return np.int64(x), HOLDS
    if not (-1.0 < x < 18446744073709551616.0):
        return a, OUT_OF_RANGE
    return np.int64(np.uint64(max(x, 0.0))) ^ SIGN, HOLDS


@kernel
def _product(a, b, limit):
    """(a * b, status): OUT_OF_RANGE where the product is not within -limit..limit."""
    if a != 0 and b != 0 and (a == SIGN or b == SIGN or abs(b) > limit // abs(a)):
        return a, OUT_OF_RANGE
    return a * b, HOLDS


@kernel
def _exact(op, a, b):
    """(result, status) of an operation on unscaled decimals or durations, and of null."""
    if op == COALESCE:
        return (b if a == SIGN else a), HOLDS
    if op == U_COALESCE:
        return (b if a == LOW else a), HOLDS
    if op == DECIMAL_ADD or op == DECIMAL_SUB:
        total = a + b if op == DECIMAL_ADD else a - b
        return total, HOLDS if -DECIMALS < total < DECIMALS else OUT_OF_RANGE
    if op == DECIMAL_MUL:
        return _product(a, b, DECIMALS - 1)
    if op == DURATION_MUL:
        return _product(a, b, LOW)
    if op == DURATION_DIV:
        return _integer(DIV, a, b)
    c = b if op == DURATION_ADD else -b
    if (c > 0 and a > LOW - c) or (c < 0 and a < -LOW - c):
        return a, OUT_OF_RANGE
    return a + c, HOLDS


@kernel
def _civil(days):
    """(year, month, day) of days since 1970-01-01, of the years 1 to 9999.

    Source: H. Hinnant, chrono-compatible low-level date algorithms, civil_from_days.
    """
    z = days + 719468
    era = z // 146097
    of_era = z - era * 146097
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400
    return (year + 1 if month <= 2 else year), month, day, of_year


@kernel
def _calendar(op, days):
    """The result of an operation on days."""
    if op == WEEKDAY:
        return (days + 3) % 7 + 1
    year, month, day, of_year = _civil(days)
    if op == YEAR:
        return year
    if op == MONTH:
        return month
    if op == DAY_OF_MONTH:
        return day
    if op == MONTH_START:
        return days - day + 1
    # Years of the algorithm begin in March: the first of January is 306 days into one, or 60 (59) before its end.
    if month > 2:
        leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
        return days - of_year - 59 - (1 if leap else 0)
    return days - of_year + 306


@kernel
def _time(op, a, b):
    """(result, status) of an operation on days or microseconds since 1970."""
    if op >= YEAR + OF_TIME:
        return _calendar(op - OF_TIME, a // DAY), HOLDS
    if op >= YEAR:
        return _calendar(op, a), HOLDS
    if op == HOUR:
        return a // (3600 * SECOND) % 24, HOLDS
    if op == MINUTE:
        return a // (60 * SECOND) % 60, HOLDS
    if op == SECONDS:
        return a // SECOND % 60, HOLDS
    if op == DATE_OF:
        return a // DAY, HOLDS
    if op == TIME_OF:
        return a % DAY, HOLDS
    if op == MIDNIGHT:
        return a * DAY, HOLDS
    if op == DATE_DIFF:
        return (a - b) * DAY, HOLDS
    if op == DATE_ADD or op == DATE_SUB:
        days = a + b // DAY if op == DATE_ADD else a - b // DAY
        return days, HOLDS if FIRST_DAY <= days <= LAST_DAY else OUT_OF_RANGE
    first, last = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1
    if op == TIME_ADD or op == TIME_SUB:
        # No instant is further from any other than this, and the sum cannot leave int64.
        if not first - last <= b <= last - first:
            return a, OUT_OF_RANGE
        instant = a + b if op == TIME_ADD else a - b
        return instant, HOLDS if first <= instant <= last else OUT_OF_RANGE
    if b <= 0:
        return a, OUT_OF_RANGE
    if op == DATE_BUCKET:
        if b % DAY != 0:
            return a, OUT_OF_RANGE
        start = a - (a - BUCKETS_FROM) % (b // DAY)
        return start, HOLDS if start >= FIRST_DAY else OUT_OF_RANGE
    start = a - (a - BUCKETS_FROM * DAY) % b
    return start, HOLDS if start >= first else OUT_OF_RANGE


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
            value = ranks[a] if a >= 0 else a  # null has no text
        elif op >= I_TO_F:
            if op >= DATE_ADD:
                value, status = _time(op, a, regs[code[i, 3]])
            elif op >= COALESCE:
                value, status = _exact(op, a, regs[code[i, 3]])
            else:
                value, status = _convert(op, a, regs[code[i, 3]], cell)
        elif op >= FLOAT + ADD:
            value, status = _floating(op - FLOAT, a, regs[code[i, 3]], cell)
        elif op >= UNSIGNED + ADD:
            value, status = _unsigned(op - UNSIGNED, a, regs[code[i, 3]])
        elif op >= ADD:
            value, status = _integer(op, a, regs[code[i, 3]])
        target = code[i, 1]
        if status != HOLDS:
            if target != UNDEFINED:
                cell[NO_VALUE] = status
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
