"""The functors: one table of every operator and intrinsic a term may apply.

The table drives the checker (types and arity), the builder (`lftj.fn`), the documentation (`lftj functors`) and the
evaluators: an `Apply.op` is always a key of `FUNCTORS`. A parameter type is a base type, `T` (one type for all `T` of
the functor, one of `domain`) or `any` (each argument has whatever type it has; the evaluator tells the cases apart by
the argument's type). Every `example` is a comparison that holds.

Semantics that the name alone does not settle follow Souffle: `/` and `%` on integers truncate towards zero; integer
arithmetic wraps at 64 bits; shift counts are taken modulo 64; `ord` is the symbol's internal number. What Souffle
leaves undefined, or ends the process for, is an error that names the rule and the row, if the rest of the body has such
a row: a division by zero (of floats too), `0 ^ -1`, a float that is not a number or has no place in an integer, a text
that is no number, a pattern that is none. Where it differs on purpose:

    ^            on integers exact, wrapping; Souffle's goes through floating point
    strlen, substr   count characters; Souffle's count the bytes of UTF-8
    to_number, to_unsigned, to_float   take the whole text; Souffle's skip blanks before a number and what follows it
    to_string    of a float is the shortest text that reads back as it; Souffle's has six digits after the point
    match        is Python's `re` with ASCII classes and the POSIX classes in brackets, in which the ECMAScript patterns
                 that Souffle takes mean the same; a bad pattern is an error, not a warning
"""

from __future__ import annotations

from dataclasses import dataclass

from lftj.language.types import ANY, FLOAT, INTEGRAL, NUMBER, NUMERIC, SYMBOL, UNSIGNED

SAME = "T"
EACH = "any"


@dataclass(frozen=True, slots=True)
class Signature:
    """Name, parameter types, result type, one line of documentation and a comparison that holds.

    A variadic functor takes one argument or more, all of its last parameter's type.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    doc: str
    example: str
    domain: frozenset[str] = ANY
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        """Whether the functor can be applied to `count` arguments."""
        return count >= 1 if self.variadic else count == len(self.parameters)

    def parameter(self, position: int) -> str:
        """The type of the argument at `position` (from 0)."""
        return self.parameters[min(position, len(self.parameters) - 1)]

    def __str__(self) -> str:
        dots = ", ..." if self.variadic else ""
        return f"{self.name}({', '.join(self.parameters)}{dots}):{self.result}"


def _table() -> dict[str, Signature]:
    same1, same2 = (SAME,), (SAME, SAME)
    rows = [
        Signature("+", same2, SAME, "Sum.", "2 + 3 = 5", NUMERIC),
        Signature("-", same2, SAME, "Difference.", "2 - 3 = -1", NUMERIC),
        Signature("*", same2, SAME, "Product.", "0.5 * 3.0 = 1.5", NUMERIC),
        Signature(
            "/", same2, SAME, "Quotient; on integers truncated towards zero. By 0: an error.", "-7 / 2 = -3", NUMERIC
        ),
        Signature(
            "%", same2, SAME, "Remainder of `/`: the sign of the dividend. By 0: an error.", "-7 % 2 = -1", INTEGRAL
        ),
        Signature("^", same2, SAME, "Power; 0 ^ -1 of numbers is an error, 2 ^ -1 is 0.", "2 ^ 10 = 1024", NUMERIC),
        Signature("neg", same1, SAME, "Arithmetic negation, written `-x`.", "-(2 + 3) = -5", NUMERIC),
        Signature("band", same2, SAME, "Bitwise and.", "6 band 3 = 2", INTEGRAL),
        Signature("bor", same2, SAME, "Bitwise or.", "6 bor 3 = 7", INTEGRAL),
        Signature("bxor", same2, SAME, "Bitwise exclusive or.", "6 bxor 3 = 5", INTEGRAL),
        Signature("bnot", same1, SAME, "Bitwise complement.", "bnot 0 = -1", INTEGRAL),
        Signature("bshl", same2, SAME, "Shift left, by the count modulo 64.", "1 bshl 4 = 16", INTEGRAL),
        Signature("bshr", same2, SAME, "Shift right; arithmetic on number.", "-16 bshr 2 = -4", INTEGRAL),
        Signature("bshru", same2, SAME, "Shift right, filling with zeros.", "-1 bshru 63 = 1", INTEGRAL),
        Signature("land", same2, SAME, "1 if both are non-zero, else 0.", "2 land 3 = 1", INTEGRAL),
        Signature("lor", same2, SAME, "1 if either is non-zero, else 0.", "0 lor 3 = 1", INTEGRAL),
        Signature("lxor", same2, SAME, "1 if exactly one is non-zero, else 0.", "2 lxor 3 = 0", INTEGRAL),
        Signature("lnot", same1, SAME, "1 if zero, else 0.", "lnot 2 = 0", INTEGRAL),
        Signature(
            "min", same1, SAME, "The least argument; symbols compare by text.", "min(3, 1, 2) = 1", variadic=True
        ),
        Signature(
            "max", same1, SAME, "The greatest argument; symbols compare by text.", 'max("a", "b") = "b"', variadic=True
        ),
        Signature(
            "cat", (SYMBOL,), SYMBOL, "The arguments joined into one text.", 'cat("a", "b", "c") = "abc"', variadic=True
        ),
        Signature("strlen", (SYMBOL,), NUMBER, "The length of a text.", 'strlen("Käse") = 4'),
        Signature(
            "substr",
            (SYMBOL, NUMBER, NUMBER),
            SYMBOL,
            'Characters from an index (from 0), of a length (negative: the rest); "" out of range.',
            'substr("Hello", 1, 3) = "ell"',
        ),
        Signature(
            "ord",
            (SYMBOL,),
            NUMBER,
            "The internal number of a symbol; equal symbols have equal numbers.",
            'ord("a") = ord("a")',
        ),
        Signature(
            "to_number",
            (EACH,),
            NUMBER,
            "To number: a text is parsed, an unsigned reinterpreted, a float truncated.",
            'to_number("-0x1f") = -31',
        ),
        Signature(
            "to_unsigned",
            (EACH,),
            UNSIGNED,
            "To unsigned: a text is parsed, a number reinterpreted, a float truncated.",
            'to_unsigned("0b101") = 5u',
        ),
        Signature(
            "to_float", (EACH,), FLOAT, "To float: a text is parsed, an integer converted.", 'to_float("1e3") = 1000.0'
        ),
        Signature("to_string", (EACH,), SYMBOL, "The shortest text that reads back.", 'to_string(0.5) = "0.5"'),
        Signature("itof", (NUMBER,), FLOAT, "number to float, the nearest.", "itof(2) = 2.0"),
        Signature("itou", (NUMBER,), UNSIGNED, "number to unsigned, same 64 bits.", "itou(2) = 2u"),
        Signature("utoi", (UNSIGNED,), NUMBER, "unsigned to number, same 64 bits.", "utoi(2u) = 2"),
        Signature("utof", (UNSIGNED,), FLOAT, "unsigned to float, the nearest.", "utof(2u) = 2.0"),
        Signature("ftoi", (FLOAT,), NUMBER, "float to number, truncated; an error out of range.", "ftoi(-2.5) = -2"),
        Signature("ftou", (FLOAT,), UNSIGNED, "float to unsigned, truncated; an error out of range.", "ftou(2.5) = 2u"),
    ]
    return {row.name: row for row in rows}


FUNCTORS = _table()

CONSTRAINTS = {
    "contains": "contains(part, text): the text contains the part.",
    "match": "match(pattern, text): the regular expression matches the whole text.",
}
CONSTRAINT_EXAMPLES = {"contains": 'contains("ell", "Hello")', "match": 'match("[A-Z][a-z]*", "Hello")'}

# What an aggregate says of the distinct bindings of all variables in its braces.
AGGREGATE_DOCS = {
    "count": "How many bindings there are; 0 of none.",
    "sum": "The sum of a numeric term; 0 of nothing.",
    "mean": "The mean of a numeric term, a float: the exact sum by the count, rounded once; no value of nothing.",
    "min": "The least value of a term; no value of nothing. Symbols compare by text.",
    "max": "The greatest value of a term; no value of nothing. Symbols compare by text.",
    "cat": "The values of a symbol joined into one text, in the order of the bindings; no value of nothing.",
}

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
NEGATED = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "contains": "not_contains",
    "match": "not_match",
    "not_contains": "contains",
    "not_match": "match",
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
RESERVED = frozenset(name for name in FUNCTORS if name.isidentifier() and name != "neg") | frozenset(
    {*CONSTRAINTS, *UNSUPPORTED_FUNCTORS, "count", "sum", "mean", "nil", "true", "false", "_"}
)
# Words that cannot name a variable.
RESERVED_VARIABLES = frozenset(
    {"band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lxor", "lnot"}
) | {
    "nil",
    "true",
    "false",
    "_",
}
