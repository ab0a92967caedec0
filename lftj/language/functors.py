"""The functors: one table of every operator and intrinsic a term may apply.

The table drives the checker (types and arity), the builder (`lftj.fn`), the documentation and, later, the evaluators:
an `Apply.op` is always a key of `FUNCTORS`. A parameter type is a base type, `T` (one type for all `T` of the
functor, one of `domain`) or `any` (each argument has whatever type it has; the evaluator tells the cases apart by the
argument's type).

Semantics that the name alone does not settle follow Souffle: `/` and `%` on integers truncate towards zero; integer
arithmetic wraps at 64 bits; shift counts are taken modulo 64; `substr` counts from 0 and yields "" when out of range;
`ord` is the symbol's internal number.
"""

from __future__ import annotations

from dataclasses import dataclass

from lftj.language.types import ANY, FLOAT, INTEGRAL, NUMBER, NUMERIC, SYMBOL, UNSIGNED

SAME = "T"
EACH = "any"


@dataclass(frozen=True, slots=True)
class Signature:
    """Name, parameter types, result type and one line of documentation.

    A variadic functor takes one argument or more, all of its last parameter's type.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    doc: str
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
        Signature("+", same2, SAME, "Sum.", NUMERIC),
        Signature("-", same2, SAME, "Difference.", NUMERIC),
        Signature("*", same2, SAME, "Product.", NUMERIC),
        Signature("/", same2, SAME, "Quotient; on integers truncated towards zero.", NUMERIC),
        Signature("%", same2, SAME, "Remainder of `/`; it has the sign of the dividend.", INTEGRAL),
        Signature("^", same2, SAME, "Power.", NUMERIC),
        Signature("neg", same1, SAME, "Arithmetic negation, written `-x`.", NUMERIC),
        Signature("band", same2, SAME, "Bitwise and.", INTEGRAL),
        Signature("bor", same2, SAME, "Bitwise or.", INTEGRAL),
        Signature("bxor", same2, SAME, "Bitwise exclusive or.", INTEGRAL),
        Signature("bnot", same1, SAME, "Bitwise complement.", INTEGRAL),
        Signature("bshl", same2, SAME, "Shift left.", INTEGRAL),
        Signature("bshr", same2, SAME, "Shift right; arithmetic on number.", INTEGRAL),
        Signature("bshru", same2, SAME, "Shift right, filling with zeros.", INTEGRAL),
        Signature("land", same2, SAME, "1 if both are non-zero, else 0.", INTEGRAL),
        Signature("lor", same2, SAME, "1 if either is non-zero, else 0.", INTEGRAL),
        Signature("lxor", same2, SAME, "1 if exactly one is non-zero, else 0.", INTEGRAL),
        Signature("lnot", same1, SAME, "1 if zero, else 0.", INTEGRAL),
        Signature("min", same1, SAME, "The least argument; symbols compare by text.", variadic=True),
        Signature("max", same1, SAME, "The greatest argument; symbols compare by text.", variadic=True),
        Signature("cat", (SYMBOL,), SYMBOL, "The arguments joined into one text.", variadic=True),
        Signature("strlen", (SYMBOL,), NUMBER, "The length of a text."),
        Signature(
            "substr", (SYMBOL, NUMBER, NUMBER), SYMBOL, "The part of a text from an index (from 0), of a length."
        ),
        Signature("ord", (SYMBOL,), NUMBER, "The internal number of a symbol; equal symbols have equal numbers."),
        Signature(
            "to_number", (EACH,), NUMBER, "To number: a text is parsed, an unsigned reinterpreted, a float truncated."
        ),
        Signature(
            "to_unsigned",
            (EACH,),
            UNSIGNED,
            "To unsigned: a text is parsed, a number reinterpreted, a float truncated.",
        ),
        Signature("to_float", (EACH,), FLOAT, "To float: a text is parsed, an integer converted."),
        Signature("to_string", (EACH,), SYMBOL, "The text of a value."),
        Signature("itof", (NUMBER,), FLOAT, "number to float."),
        Signature("itou", (NUMBER,), UNSIGNED, "number to unsigned, same 64 bits."),
        Signature("utoi", (UNSIGNED,), NUMBER, "unsigned to number, same 64 bits."),
        Signature("utof", (UNSIGNED,), FLOAT, "unsigned to float."),
        Signature("ftoi", (FLOAT,), NUMBER, "float to number, truncated."),
        Signature("ftou", (FLOAT,), UNSIGNED, "float to unsigned, truncated."),
    ]
    return {row.name: row for row in rows}


FUNCTORS = _table()

CONSTRAINTS = {
    "contains": "contains(part, text): the text contains the part.",
    "match": "match(pattern, text): the regular expression matches the whole text.",
}

# What an aggregate says of the distinct bindings of all variables in its braces.
AGGREGATE_DOCS = {
    "count": "How many bindings there are; 0 of none.",
    "sum": "The sum of a numeric term; 0 of nothing.",
    "mean": "The mean of a numeric term, a float; no value of nothing.",
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
