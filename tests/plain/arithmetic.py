"""Values and what is computed of them, written from the definition of the language and not from the engine.

Numbers are integers reduced to 64 bits after every operation, unsigned likewise without sign, floats are IEEE doubles
in which a NaN is no value, and a term without a value raises `Undefined`.
"""

from __future__ import annotations

import math
import re
import struct

from tests.plain.syntax import Scalar


class Undefined(ArithmeticError):
    """A term has no value: a division by zero, a NaN, a conversion out of range, a text that cannot be parsed."""


class Missing(Exception):
    """Null where a value is needed: whatever asks for it does not hold."""


def normal(value: Scalar) -> Scalar:
    """The one form of a value: -0.0 is 0.0."""
    return 0.0 if isinstance(value, float) and value == 0.0 else value


def reduced(value: int, *, signed: bool) -> int:
    """`value` modulo 2^64, in the range of number or unsigned."""
    value %= 2**64
    return value - 2**64 if signed and value >= 2**63 else value


def fitting(value: int) -> int:
    """`value`, which is neither beyond 64 bits nor the least number."""
    if abs(value) >= 2**63:
        raise Undefined("out of range")
    return value


def on_integers(op: str, args: list[int], *, signed: bool) -> int:
    """An operation on numbers or unsigned; `a` and `b` are the operands, `b` unused by unary ones."""
    a, b = args[0], args[-1]
    if op in ("/", "%"):
        if b == 0:
            raise Undefined("division by zero")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return reduced(quotient if op == "/" else a - b * quotient, signed=signed)
    if op == "^":
        if b < 0 and a == 0:
            raise Undefined("division by zero")
        if b < 0:  # truncated towards zero
            return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
        return reduced(pow(a, b, 2**64), signed=signed)
    shift = b % 64
    results = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "checked_add": lambda: fitting(a + b) if b else a,
        "checked_mul": lambda: fitting(a * b),
        "neg": lambda: -a,
        "band": lambda: a & b,
        "bor": lambda: a | b,
        "bxor": lambda: a ^ b,
        "bnot": lambda: -a - 1,
        "bshl": lambda: a * 2**shift,
        "bshr": lambda: a // 2**shift,
        "bshru": lambda: a % 2**64 // 2**shift,
        "land": lambda: int(bool(a) and bool(b)),
        "lor": lambda: int(bool(a) or bool(b)),
        "lxor": lambda: int(bool(a) is not bool(b)),
        "lnot": lambda: int(not a),
    }
    return reduced(results[op](), signed=signed)


def on_floats(op: str, a: float, b: float = 0.0) -> float:
    """An operation on floats; infinities are values, a NaN is not."""
    if op == "/" and b == 0.0:
        raise Undefined("division by zero")
    results = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "neg": lambda: -a,
        "^": lambda: float_power(a, b),
        "sqrt": lambda: math.sqrt(a) if a >= 0 else math.nan,
        "exp": lambda: exponential(a),
        "ln": lambda: math.log(a) if a > 0 else math.nan,
        "log10": lambda: math.log10(a) if a > 0 else math.nan,
    }
    result: float = results[op]()
    if math.isnan(result):
        raise Undefined("not a number")
    return result


def exponential(a: float) -> float:
    """e to a power; Python's raises where the standard has an infinity."""
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def float_power(a: float, b: float) -> float:
    """IEEE 754 pow; Python's raises where the standard has infinities and NaN."""
    odd = math.isfinite(b) and b == int(b) and int(b) % 2 == 1
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        return (math.copysign(math.inf, a) if odd else math.inf) if a == 0.0 else math.nan


TARGETS = {"to_number": "number", "to_unsigned": "unsigned", "to_float": "float", "to_string": "symbol"}
LETTERS = {"i": "number", "u": "unsigned", "f": "float"}


def convert(op: str, args: list[Scalar], source: str) -> Scalar:
    """A text functor, or a conversion from type `source`."""
    if op == "cat":
        return "".join(str(arg) for arg in args)
    if op == "strlen":
        return sum(1 for _ in str(args[0]))
    if op == "substr":
        text, start, length = str(args[0]), int(args[1]), int(args[2])
        end = start + length if length >= 0 else len(text)
        return "".join(c for i, c in enumerate(text) if 0 <= start <= i < end)
    value, target = args[0], TARGETS.get(op) or LETTERS[op[-1]]
    if source == target:
        return value
    if source == "symbol":
        return parsed(str(value), target)
    if target == "symbol":
        return written(value)
    if target == "float":
        return struct.unpack("<d", struct.pack("<d", value))[0]  # type: ignore[no-any-return]
    low, high = (-(2**63), 2**63) if target == "number" else (0, 2**64)
    if source == "float":
        if math.isinf(float(value)) or not low <= math.trunc(float(value)) < high:
            raise Undefined("out of range")
        return math.trunc(float(value))
    return reduced(int(value), signed=target == "number")


def parsed(text: str, target: str) -> Scalar:
    """A text read as a number of type `target`."""
    if target == "float":
        digits = text.lower().lstrip("+-").replace("e+", "e").replace("e-", "e").replace(".", "", 1).replace("e", "", 1)
        spelt = text.lower() in ("inf", "-inf", "+inf", "infinity", "-infinity", "+infinity")
        if not spelt and not (digits.isascii() and digits.isdigit()):
            raise Undefined(text)
        try:
            return float(text)
        except ValueError:
            raise Undefined(text) from None
    found = re.fullmatch(r"(-?)(?:0x([0-9a-fA-F]+)|0b([01]+)|([0-9]+))", text)
    if found is None:
        raise Undefined(text)
    sign, hexadecimal, binary, decimal = found.groups()
    digits, base = next((d, b) for d, b in ((hexadecimal, 16), (binary, 2), (decimal, 10)) if d)
    result_ = int(digits, base) * (-1 if sign else 1)
    low, high = (-(2**63), 2**63) if target == "number" else (0, 2**64)
    if not low <= result_ < high:
        raise Undefined(text)
    return result_


def written(value: Scalar) -> str:
    """A value as the text `to_string` gives."""
    if isinstance(value, int):
        return format(value, "d")
    text = repr(value)
    return text if "." in text or "inf" in text else text.replace("e", ".0e")


def matches(pattern: str, text: str) -> bool:
    """Whether a regular expression matches all of a text."""
    try:
        return re.compile(pattern, re.ASCII).fullmatch(text) is not None
    except re.error:
        raise Undefined(pattern) from None
