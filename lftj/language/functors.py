"""The functors: one table of every operator and intrinsic a term may apply, and one of the tests of texts.

The table drives the checker (types and arity), the builder (`lftj.fn`), the documentation (`lftj functors`), the
planner (which terms need texts, which may have no value) and the evaluators: an `Apply.op` is always a key of
`FUNCTORS`. A parameter type is a base type, `T` (one type for all `T` of the functor, one of `domain`) or `any` (each
argument has whatever type it has, of `domain`; the evaluator tells the cases apart by the argument's type). Every
`example` is a comparison that holds.

Semantics that the name alone does not settle follow Souffle: `/` and `%` on integers truncate towards zero; integer
arithmetic wraps at 64 bits, but for `checked_add` and `checked_mul`; shift counts are taken modulo 64; `ord` is the
symbol's internal number. What Souffle leaves undefined, or ends the process for, is an error that names the rule and
the row, if the rest of the body has such a row: a division by zero (of floats too), `0 ^ -1`, a float that is not a
number or has no place in an integer, a text that is no number, a pattern that is none. Where it differs on purpose:

    ^            on integers exact, wrapping; Souffle's goes through floating point
    strlen, substr   count characters; Souffle's count the bytes of UTF-8
    to_number, to_unsigned, to_float   take the whole text; Souffle's skip blanks before a number and what follows it
    to_string    of a float is the shortest text that reads back as it; Souffle's has six digits after the point
    match        is Python's `re` with ASCII classes and the POSIX classes in brackets, in which the ECMAScript patterns
                 that Souffle takes mean the same; a bad pattern is an error, not a warning
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lftj.language import functors_of_types, text_functors
from lftj.language import typed_functors as typed
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.signature import EACH, SAME, Signature
from lftj.language.types import (
    ADDED,
    ANY,
    BOOL,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    IN_DICTIONARY,
    INTEGRAL,
    NUMBER,
    NUMERIC,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
)


def _not_zero(divisor: int) -> bool:
    return divisor != 0


def _not_negative(exponent: int) -> bool:
    return exponent >= 0


_ONE, _TWO = (SAME,), (SAME, SAME)
_FLOATS, _LOGICAL = frozenset({FLOAT}), INTEGRAL | {BOOL}


def _of_two(
    name: str,
    doc: str,
    example: str,
    domain: frozenset[str],
    opcode: str,
    partial: frozenset[str] = frozenset(),
    overloads: tuple[typed.Overload, ...] = (),
    total_with: Callable[[int], bool] | None = None,
) -> Signature:
    """An operator on two values of one type, which its result has, too."""
    return Signature(
        name,
        _TWO,
        SAME,
        doc,
        example,
        domain,
        opcode=opcode,
        partial=partial,
        total_with=total_with,
        overloads=overloads,
    )


def _checked(name: str, doc: str, example: str, opcode: str) -> Signature:
    doc += "; an error where it is beyond 2^63 - 1, on either side of 0, and would wrap."
    return Signature(name, (NUMBER, NUMBER), NUMBER, doc, example, opcode=opcode, partial=frozenset({NUMBER}))


def _extreme(name: str, doc: str, example: str, text: Callable[..., object]) -> Signature:
    opcode, kernel = name.upper(), ANY - IN_DICTIONARY
    return Signature(name, _ONE, SAME, doc, example, variadic=True, opcode=opcode, text=text, kernel=kernel)


_ARITHMETIC = (
    _of_two("+", "Sum.", "2 + 3 = 5", NUMERIC, "ADD", _FLOATS, typed.PLUS),
    _of_two("-", "Difference.", "2 - 3 = -1", NUMERIC, "SUB", _FLOATS, typed.MINUS),
    _of_two("*", "Product.", "0.5 * 3.0 = 1.5", NUMERIC, "MUL", _FLOATS, typed.TIMES),
    _of_two(
        "/",
        "Quotient; on integers truncated towards zero. By 0: an error.",
        "-7 / 2 = -3",
        NUMERIC,
        "DIV",
        NUMERIC,
        typed.OVER,
        _not_zero,
    ),
    _of_two(
        "%",
        "Remainder of `/`: the sign of the dividend. By 0: an error.",
        "-7 % 2 = -1",
        INTEGRAL,
        "MOD",
        INTEGRAL,
        typed.REST,
        total_with=_not_zero,
    ),
    _of_two(
        "^",
        "Power; 0 ^ -1 of numbers is an error, 2 ^ -1 is 0.",
        "2 ^ 10 = 1024",
        NUMERIC,
        "POW",
        frozenset({NUMBER, FLOAT}),
        total_with=_not_negative,
    ),
    Signature("neg", _ONE, SAME, "Arithmetic negation, written `-x`.", "-(2 + 3) = -5", ADDED, opcode="NEG"),
    _checked("checked_add", "Sum, as `+`", "checked_add(2, 3) = 5", "DURATION_ADD"),
    _checked("checked_mul", "Product, as `*`", "checked_mul(2, 3) = 6", "DURATION_MUL"),
)
_BITS_AND_LOGIC = (
    _of_two("band", "Bitwise and.", "6 band 3 = 2", INTEGRAL, "BAND"),
    _of_two("bor", "Bitwise or.", "6 bor 3 = 7", INTEGRAL, "BOR"),
    _of_two("bxor", "Bitwise exclusive or.", "6 bxor 3 = 5", INTEGRAL, "BXOR"),
    Signature("bnot", _ONE, SAME, "Bitwise complement.", "bnot 0 = -1", INTEGRAL, opcode="BNOT"),
    _of_two("bshl", "Shift left, by the count modulo 64.", "1 bshl 4 = 16", INTEGRAL, "SHL"),
    _of_two("bshr", "Shift right; arithmetic on number.", "-16 bshr 2 = -4", INTEGRAL, "SHR"),
    _of_two("bshru", "Shift right, filling with zeros.", "-1 bshru 63 = 1", INTEGRAL, "SHRU"),
    _of_two("land", "1 if both are non-zero, else 0.", "2 land 3 = 1", _LOGICAL, "LAND"),
    _of_two("lor", "1 if either is non-zero, else 0.", "0 lor 3 = 1", _LOGICAL, "LOR"),
    _of_two("lxor", "1 if exactly one is non-zero, else 0.", "2 lxor 3 = 0", _LOGICAL, "LXOR"),
    Signature("lnot", _ONE, SAME, "1 if zero, else 0.", "lnot 2 = 0", _LOGICAL, opcode="LNOT"),
)
_EXTREMES = (
    _extreme("min", "The least argument; symbols compare by text.", "min(3, 1, 2) = 1", text_functors.least),
    _extreme("max", "The greatest argument; symbols compare by text.", 'max("a", "b") = "b"', text_functors.greatest),
)
_TEXTS = (
    Signature(
        "cat",
        (SYMBOL,),
        SYMBOL,
        "The arguments joined into one text.",
        'cat("a", "b", "c") = "abc"',
        variadic=True,
        text=text_functors.joined,
    ),
    Signature("strlen", (SYMBOL,), NUMBER, "The length of a text.", 'strlen("Käse") = 4', text=len),
    Signature(
        "substr",
        (SYMBOL, NUMBER, NUMBER),
        SYMBOL,
        'Characters from an index (from 0), of a length (negative: the rest); "" out of range.',
        'substr("Hello", 1, 3) = "ell"',
        text=text_functors.substr,
    ),
    Signature(
        "ord",
        (SYMBOL,),
        NUMBER,
        "The internal number of a symbol; equal symbols have equal numbers.",
        'ord("a") = ord("a")',
    ),
)
_CONVERSIONS = (
    Signature(
        "to_number",
        (EACH,),
        NUMBER,
        "To number: a text is parsed, an unsigned reinterpreted, a float or decimal truncated, a bool 0 or 1; of "
        "times the microseconds, of a date the days since 1970.",
        'to_number("-0x1f") = -31',
        frozenset({SYMBOL, NUMBER, UNSIGNED, FLOAT, BOOL, DECIMAL, DATE, TIMESTAMP, DURATION}),
        text=text_functors.integer,
        kernel=frozenset({NUMBER, UNSIGNED, FLOAT, BOOL, DATE, TIMESTAMP, DURATION}),
        partial=frozenset({SYMBOL, FLOAT}),
    ),
    Signature(
        "to_unsigned",
        (EACH,),
        UNSIGNED,
        "To unsigned: a text is parsed, a number reinterpreted, a float truncated.",
        'to_unsigned("0b101") = 5u',
        NUMERIC | {SYMBOL},
        text=text_functors.integer,
        kernel=NUMERIC,
        partial=frozenset({SYMBOL, FLOAT}),
    ),
    Signature(
        "to_float",
        (EACH,),
        FLOAT,
        "To float: a text is parsed, an integer or decimal converted; of a duration the seconds.",
        'to_float("1e3") = 1000.0',
        NUMERIC | {SYMBOL, DECIMAL, DURATION},
        text=text_functors.floating,
        kernel=NUMERIC | {DECIMAL},
        partial=frozenset({SYMBOL}),
    ),
    Signature(
        "to_string",
        (EACH,),
        SYMBOL,
        "The shortest text that reads back.",
        'to_string(0.5) = "0.5"',
        text=text_functors.to_text,
    ),
    Signature("itof", (NUMBER,), FLOAT, "number to float, the nearest.", "itof(2) = 2.0"),
    Signature("itou", (NUMBER,), UNSIGNED, "number to unsigned, same 64 bits.", "itou(2) = 2u"),
    Signature("utoi", (UNSIGNED,), NUMBER, "unsigned to number, same 64 bits.", "utoi(2u) = 2"),
    Signature("utof", (UNSIGNED,), FLOAT, "unsigned to float, the nearest.", "utof(2u) = 2.0"),
    Signature(
        "ftoi",
        (FLOAT,),
        NUMBER,
        "float to number, truncated; an error out of range.",
        "ftoi(-2.5) = -2",
        partial=_FLOATS,
    ),
    Signature(
        "ftou",
        (FLOAT,),
        UNSIGNED,
        "float to unsigned, truncated; an error out of range.",
        "ftou(2.5) = 2u",
        partial=_FLOATS,
    ),
)
_OR_ELSE = _of_two("coalesce", "The first, or if that is null the second.", "coalesce(1, 2) = 1", ANY, "COALESCE")

FUNCTORS = {
    row.name: row
    for row in (
        *_ARITHMETIC,
        *_BITS_AND_LOGIC,
        *_EXTREMES,
        *_TEXTS,
        *_CONVERSIONS,
        *functors_of_types.table(),
        _OR_ELSE,
    )
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A test, which stands as a condition. `parameters` are names, `text` gives 1 if it holds for two texts.

    The other fields are those of `Signature`.
    """

    name: str
    parameters: tuple[str, ...]
    doc: str
    example: str
    text: Callable[..., int]
    partial: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters)}): {self.doc[0].lower()}{self.doc[1:]}"


# The names of the tests that may have no value: a pattern may be none, and a type.
MATCH, READS_AS = "match", "reads_as"
_TESTS = (
    Constraint(
        "contains", ("part", "text"), "The text contains the part.", 'contains("ell", "Hello")', text_functors.contains
    ),
    Constraint(
        MATCH,
        ("pattern", "text"),
        "The regular expression matches the whole text.",
        'match("[A-Z][a-z]*", "Hello")',
        text_functors.match,
        partial=frozenset({SYMBOL}),
    ),
    Constraint(
        READS_AS,
        ("type", "text"),
        "The text writes a value of the type; of a decimal it may write more digits behind the point. In place of a "
        "type, a format such as `%d.%m.%Y` asks whether `strptime` reads the text.",
        'reads_as("date", "2024-05-31")',
        text_functors.reads_as,
        partial=frozenset({SYMBOL}),
    ),
    Constraint("is_null", ("x",), "The value is null.", "!is_null(1)", lambda value: int(value is None)),
    Constraint(
        "or_null",
        ("x",),
        "Always: x may be null, and null matches null where x is joined or negated.",
        "or_null(1)",
        lambda value: 1,
    ),
)
# The names of the tests about null, of any type. A comparison by one has its argument on both sides.
IS_NULL, OR_NULL = "is_null", "or_null"
NULL_TESTS = (IS_NULL, OR_NULL)
CONSTRAINTS = {test.name: test for test in _TESTS}
# The operators of conditions on texts.
TEXT_TESTS = frozenset(name for name in CONSTRAINTS if name not in NULL_TESTS) | {
    f"not_{name}" for name in CONSTRAINTS if name not in NULL_TESTS
}


def known_as(op: str) -> Signature | Constraint:
    """What is known of the functor, or of the test, that a term `op(...)` applies."""
    return FUNCTORS[op] if op in FUNCTORS else CONSTRAINTS[op]


# The functors that never wrap, and the operators that give the same where neither does.
CHECKED = {"checked_add": "+", "checked_mul": "*"}

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
# A comparison with its sides exchanged.
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    **{name: f"not_{name}" for name in CONSTRAINTS},
    **{f"not_{name}": name for name in CONSTRAINTS},
}

# Souffle's functors that lftj names and refuses.
UNSUPPORTED_FUNCTORS = {
    "autoinc": "counter `autoinc()`",
    "range": "multi-valued functor `range`",
    "urange": "multi-valued functor `urange`",
    "frange": "multi-valued functor `frange`",
    "as": "type cast `as`",
    "__ITERATION__": "iteration counter `__ITERATION__()`",
}

# Words that cannot name a relation, since the text would read them as something else.
# (An atom and a call in a term stand in different places, so that a relation may have the name of a younger functor, or
# of a younger aggregate, which an operand stands behind.)
OF_TYPES = frozenset(row.name for row in functors_of_types.table()) | {"coalesce", *CHECKED}
_FOLDING = (name for name, spec in AGGREGATES.items() if not spec.takes_counted)
RESERVED = frozenset(name for name in FUNCTORS if name.isidentifier() and name not in ("neg", *OF_TYPES)) | frozenset(
    {*CONSTRAINTS, *UNSUPPORTED_FUNCTORS, *_FOLDING, "nil", "true", "false", "null", "_"}
)
# Words that cannot name a variable.
RESERVED_VARIABLES = frozenset(
    {"band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lxor", "lnot"}
) | {"nil", "true", "false", "null", "_"}
