"""The reference evaluator: what a program means, in sets and loops.

A relation is a set of tuples of Python values (int, float, str). A clause is evaluated by nested loops over its atoms,
in the order written; then equalities bind what the atoms left open; then every comparison is checked and the head is
computed. Programs are evaluated bottom up, stratum by stratum, naively, until nothing is added. No index, no key
order, no code of lftj's engine: only the checked clauses of `lftj.language` are read.

Arithmetic is written from the definition of the language, not from the engine: numbers are integers reduced to 64 bits
after every operation, unsigned likewise without sign, floats are IEEE doubles in which a NaN is no value, and a term
without a value raises `Undefined`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from lftj.language.clause import Apply, BodyAtom, CheckedProgram, Clause, Compare, Term, Value, Var

Scalar = int | float | str
Row = tuple[Scalar, ...]
Relations = dict[str, set[Row]]
Binding = dict[str, Scalar]


class Undefined(ArithmeticError):
    """A term has no value: a division by zero, a NaN, a conversion out of range, a text that cannot be parsed."""


# Programs -----------------------------------------------------------------------------------------------------


def evaluate(program: CheckedProgram, data: Mapping[str, Iterable[Sequence[Scalar]]]) -> Relations:
    """The content of every relation of a program whose relations hold `data` besides the facts of the text."""
    relations: Relations = {name: set() for name in program.schemas}
    for facts in (program.facts, data):
        for name, rows in facts.items():
            relations[name] |= {tuple(normal(value) for value in row) for row in rows}
    for stratum in program.strata:
        clauses = [clause for clause in program.clauses if clause.head in stratum]
        before = -1
        while sum(len(relations[name]) for name in stratum) != before:
            before = sum(len(relations[name]) for name in stratum)
            for clause in clauses:
                relations[clause.head] |= answers(clause, relations)
    return relations


def answers(clause: Clause, relations: Mapping[str, Collection[Row]]) -> set[Row]:
    """The rows that one clause derives."""
    found = set()
    for binding in bindings(clause.atoms, relations):
        bind_equalities(clause.compares, binding)
        if all(holds(compare, binding) for compare in clause.compares):
            found.add(tuple(value_of(term, binding) for term in clause.head_args))
    return found


def bindings(atoms: Sequence[BodyAtom], relations: Mapping[str, Collection[Row]]) -> Iterator[Binding]:
    """Every way to choose a row for each atom so that they agree: nested loops."""
    if not atoms:
        yield {}
        return
    for binding in bindings(atoms[:-1], relations):
        for row in relations[atoms[-1].predicate]:
            extended = match(atoms[-1], row, binding)
            if extended is not None:
                yield extended


def match(atom: BodyAtom, row: Row, binding: Binding) -> Binding | None:
    """`binding` extended so that `atom` is `row`; None if they disagree."""
    extended = dict(binding)
    for arg, value in zip(atom.args, row, strict=True):
        if isinstance(arg, Value):
            if normal(arg.value) != value:
                return None
        elif arg is not None and extended.setdefault(arg.name, value) != value:
            return None
    return extended


def bind_equalities(compares: Sequence[Compare], binding: Binding) -> None:
    """Bind every variable that an equality with bound variables on its other side defines."""
    grew = True
    while grew:
        grew = False
        for compare in compares:
            for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
                if compare.op == "=" and isinstance(side, Var) and side.name not in binding and known(other, binding):
                    binding[side.name] = value_of(other, binding)
                    grew = True


def known(term: Term, binding: Binding) -> bool:
    """Whether all variables of `term` are bound."""
    if isinstance(term, Apply):
        return all(known(arg, binding) for arg in term.args)
    return isinstance(term, Value) or term.name in binding


def holds(compare: Compare, binding: Binding) -> bool:
    """Whether a comparison holds. Python orders texts by code point, as the language does."""
    left, right = value_of(compare.left, binding), value_of(compare.right, binding)
    match compare.op:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right  # type: ignore[operator]
        case "<=":
            return left <= right  # type: ignore[operator]
        case ">":
            return left > right  # type: ignore[operator]
        case ">=":
            return left >= right  # type: ignore[operator]
        case "contains" | "not_contains":
            return (str(right).find(str(left)) >= 0) == (compare.op == "contains")
        case "match" | "not_match":
            return matches(str(left), str(right)) == (compare.op == "match")
    raise AssertionError(f"no such comparison: {compare.op}")


def matches(pattern: str, text: str) -> bool:
    """Whether a regular expression matches all of a text."""
    try:
        return re.compile(pattern, re.ASCII).fullmatch(text) is not None
    except re.error:
        raise Undefined(pattern) from None


# Terms ----------------------------------------------------------------------------------------------------------


def normal(value: Scalar) -> Scalar:
    """The one form of a value: -0.0 is 0.0."""
    return 0.0 if isinstance(value, float) and value == 0.0 else value


def value_of(term: Term, binding: Binding) -> Scalar:
    """The value of a term whose variables are bound."""
    if isinstance(term, Var):
        return binding[term.name]
    if isinstance(term, Value):
        return normal(term.value)
    args = [value_of(arg, binding) for arg in term.args]
    if term.op in ("min", "max"):
        return sorted(args)[0 if term.op == "min" else -1]  # type: ignore[type-var]
    if term.op in TEXTS or term.op.startswith("to_") or term.op in CONVERSIONS:
        return normal(convert(term.op, args, term.args[0].type))
    if term.type == "float":
        return normal(on_floats(term.op, *map(float, args)))
    return on_integers(term.op, [int(arg) for arg in args], signed=term.type == "number")


def reduced(value: int, *, signed: bool) -> int:
    """`value` modulo 2^64, in the range of number or unsigned."""
    value %= 2**64
    return value - 2**64 if signed and value >= 2**63 else value


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
    }
    result: float = results[op]()
    if math.isnan(result):
        raise Undefined("not a number")
    return result


def float_power(a: float, b: float) -> float:
    """IEEE 754 pow; Python's raises where the standard has infinities and NaN."""
    odd = math.isfinite(b) and b == int(b) and int(b) % 2 == 1
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        return (math.copysign(math.inf, a) if odd else math.inf) if a == 0.0 else math.nan


CONVERSIONS = ("itof", "itou", "utoi", "utof", "ftoi", "ftou")
TEXTS = ("cat", "strlen", "substr")
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
