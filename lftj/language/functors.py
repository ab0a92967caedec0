"""The functors: one table of every operator and intrinsic a term may apply, and one of the tests of texts.

The table drives the checker (types and arity), the builder (`lftj.fn`), the documentation (`lftj functors`), the
planner (which terms need texts, which may have no value) and the evaluators: an `Apply.op` is always a key of
`FUNCTORS`. A parameter type is a base type, `T` (one type for all `T` of the functor, one of `domain`) or `any` (each
argument has whatever type it has, of `domain`; the evaluator tells the cases apart by the argument's type). Every
`example` is a comparison that holds.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lftj.language import text_functors
from lftj.language import typed_functors as typed
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.typed_functors import Overload, ResultOf
from lftj.language.types import (
    ADDED,
    ANY,
    BOOL,
    CALENDAR,
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
from lftj.values.type_table import family_of

SAME = "T"
EACH = "any"


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that is known of one functor; a functor over texts needs no other entry.

    `doc` is one line, `example` a comparison that holds. A `variadic` functor takes one argument or more, all of its
    last parameter's type.

    How it is evaluated: `text`, a function of Python values, where an argument or the result is a symbol; it raises
    `ValueError`, which says why, where it has no value. Else `opcode`, the name of its operation in
    `lftj/join/expression_vm.py`; a functor with neither converts between two types, which tell the operation.

    `kernel`: the types of the first argument for which it is a conversion or an operation, though it has a `text`.
    `overloads`: what it means for other types than those of `domain`. `result_of`: the type of its result, where
    that depends on the arguments. `on_clocks`: it reads the clocks of a timestamp's zone.

    `partial`: the types of the first argument for which it may have no value. If `total_with` is given and the types
    are integers, it has one with every second argument for which that holds.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    doc: str
    example: str
    domain: frozenset[str] = ANY
    variadic: bool = False
    opcode: str = ""
    text: Callable[..., object] | None = None
    partial: frozenset[str] = frozenset()
    total_with: Callable[[int], bool] | None = None
    overloads: tuple[Overload, ...] = ()
    kernel: frozenset[str] = frozenset()
    result_of: ResultOf | None = None
    on_clocks: bool = False

    def accepts(self, count: int) -> bool:
        """Whether the functor can be applied to `count` arguments."""
        return count >= 1 if self.variadic else count == len(self.parameters)

    def parameter(self, position: int) -> str:
        """The type of the argument at `position` (from 0)."""
        return self.parameters[min(position, len(self.parameters) - 1)]

    def computes_text(self, first: str) -> bool:
        """Whether it needs or makes texts, which kernels do not see, when its first argument has type `first`."""
        return self.text is not None and family_of(first) not in self.kernel

    def overload(self, types: Sequence[str]) -> Overload | None:
        """The overload for arguments of these types, if there is one."""
        families = tuple(map(family_of, types))
        return next((found for found in self.overloads if found.parameters == families), None)

    def may_fail(self, types: Sequence[str]) -> bool:
        """Whether it may have no value for arguments of these types."""
        found = self.overload(types)
        return found.partial if found is not None else family_of(types[0]) in self.partial

    def shapes(self) -> list[str]:
        """The types of its arguments and its result: of `domain` first, then what else it means."""
        first = f"{', '.join(self.parameters)}{', ...' if self.variadic else ''} -> {self.result}"
        plain = [] if self.on_clocks or (self.overloads and not self.domain & NUMERIC and not self.text) else [first]
        return [*plain, *map(str, self.overloads if self.text is None else ())]

    @property
    def mostly_texts(self) -> bool:
        """Whether it computes with texts, or converts to another type, which mostly is from one."""
        return self.text is not None and not {SYMBOL, EACH}.isdisjoint((self.result, *self.parameters))

    def __str__(self) -> str:
        dots = ", ..." if self.variadic else ""
        return f"{self.name}({', '.join(self.parameters)}{dots}):{self.result}"


def _not_zero(divisor: int) -> bool:
    return divisor != 0


def _not_negative(exponent: int) -> bool:
    return exponent >= 0


def _table() -> dict[str, Signature]:
    same1, same2 = (SAME,), (SAME, SAME)
    of_float, of_symbol = frozenset({FLOAT}), frozenset({SYMBOL})
    rows = [
        Signature("+", same2, SAME, "Sum.", "2 + 3 = 5", NUMERIC, opcode="ADD", partial=of_float, overloads=typed.PLUS),
        Signature(
            "-",
            same2,
            SAME,
            "Difference.",
            "2 - 3 = -1",
            NUMERIC,
            opcode="SUB",
            partial=of_float,
            overloads=typed.MINUS,
        ),
        Signature(
            "*",
            same2,
            SAME,
            "Product.",
            "0.5 * 3.0 = 1.5",
            NUMERIC,
            opcode="MUL",
            partial=of_float,
            overloads=typed.TIMES,
        ),
        Signature(
            "/",
            same2,
            SAME,
            "Quotient; on integers truncated towards zero. By 0: an error.",
            "-7 / 2 = -3",
            NUMERIC,
            opcode="DIV",
            partial=NUMERIC,
            overloads=typed.OVER,
            total_with=_not_zero,
        ),
        Signature(
            "%",
            same2,
            SAME,
            "Remainder of `/`: the sign of the dividend. By 0: an error.",
            "-7 % 2 = -1",
            INTEGRAL,
            opcode="MOD",
            partial=INTEGRAL,
            total_with=_not_zero,
        ),
        Signature(
            "^",
            same2,
            SAME,
            "Power; 0 ^ -1 of numbers is an error, 2 ^ -1 is 0.",
            "2 ^ 10 = 1024",
            NUMERIC,
            opcode="POW",
            partial=frozenset({NUMBER, FLOAT}),
            total_with=_not_negative,
        ),
        Signature("neg", same1, SAME, "Arithmetic negation, written `-x`.", "-(2 + 3) = -5", ADDED, opcode="NEG"),
        Signature("band", same2, SAME, "Bitwise and.", "6 band 3 = 2", INTEGRAL, opcode="BAND"),
        Signature("bor", same2, SAME, "Bitwise or.", "6 bor 3 = 7", INTEGRAL, opcode="BOR"),
        Signature("bxor", same2, SAME, "Bitwise exclusive or.", "6 bxor 3 = 5", INTEGRAL, opcode="BXOR"),
        Signature("bnot", same1, SAME, "Bitwise complement.", "bnot 0 = -1", INTEGRAL, opcode="BNOT"),
        Signature("bshl", same2, SAME, "Shift left, by the count modulo 64.", "1 bshl 4 = 16", INTEGRAL, opcode="SHL"),
        Signature("bshr", same2, SAME, "Shift right; arithmetic on number.", "-16 bshr 2 = -4", INTEGRAL, opcode="SHR"),
        Signature("bshru", same2, SAME, "Shift right, filling with zeros.", "-1 bshru 63 = 1", INTEGRAL, opcode="SHRU"),
        Signature(
            "land", same2, SAME, "1 if both are non-zero, else 0.", "2 land 3 = 1", INTEGRAL | {BOOL}, opcode="LAND"
        ),
        Signature(
            "lor", same2, SAME, "1 if either is non-zero, else 0.", "0 lor 3 = 1", INTEGRAL | {BOOL}, opcode="LOR"
        ),
        Signature(
            "lxor",
            same2,
            SAME,
            "1 if exactly one is non-zero, else 0.",
            "2 lxor 3 = 0",
            INTEGRAL | {BOOL},
            opcode="LXOR",
        ),
        Signature("lnot", same1, SAME, "1 if zero, else 0.", "lnot 2 = 0", INTEGRAL | {BOOL}, opcode="LNOT"),
        Signature(
            "min",
            same1,
            SAME,
            "The least argument; symbols compare by text.",
            "min(3, 1, 2) = 1",
            variadic=True,
            opcode="MIN",
            text=text_functors.least,
            kernel=ANY - IN_DICTIONARY,
        ),
        Signature(
            "max",
            same1,
            SAME,
            "The greatest argument; symbols compare by text.",
            'max("a", "b") = "b"',
            variadic=True,
            opcode="MAX",
            text=text_functors.greatest,
            kernel=ANY - IN_DICTIONARY,
        ),
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
            kernel=NUMERIC,
            partial=of_symbol,
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
            partial=of_float,
        ),
        Signature(
            "ftou",
            (FLOAT,),
            UNSIGNED,
            "float to unsigned, truncated; an error out of range.",
            "ftou(2.5) = 2u",
            partial=of_float,
        ),
        *_of_time(),
        *_to_types(),
        Signature(
            "coalesce",
            same2,
            SAME,
            "The first, or if that is null the second.",
            "coalesce(1, 2) = 1",
            opcode="COALESCE",
        ),
    ]
    return {row.name: row for row in rows}


def _of_time() -> list[Signature]:
    """What is read of dates and timestamps. Their domain is in the overloads."""

    def part(
        name: str, doc: str, example: str, operation: str, result: str = NUMBER, *, dates: bool = True
    ) -> Signature:
        of_time = f"{operation}_OF_TIME" if dates else operation
        overloads = (
            *((Overload((DATE,), result, operation),) if dates else ()),
            Overload((TIMESTAMP,), result, of_time),
        )
        domain = CALENDAR if dates else frozenset({TIMESTAMP})
        return Signature(name, (SAME,), result, doc, example, domain, overloads=overloads, on_clocks=True)

    return [
        part("year", "The year.", "year(@2024-05-31) = 2024", "YEAR"),
        part("month", "The month, 1 to 12.", "month(@2024-05-31) = 5", "MONTH"),
        part("day", "The day of the month, 1 to 31.", "day(@2024-05-31) = 31", "DAY_OF_MONTH"),
        part("weekday", "The day of the week: Monday is 1, Sunday 7.", "weekday(@2024-05-31) = 5", "WEEKDAY"),
        part("hour", "The hour, 0 to 23.", "hour(@2024-05-31T12:30:00) = 12", "HOUR", dates=False),
        part("minute", "The minute, 0 to 59.", "minute(@2024-05-31T12:30:00) = 30", "MINUTE", dates=False),
        part("second", "The whole second, 0 to 59.", "second(@2024-05-31T12:30:01.5) = 1", "SECONDS", dates=False),
        part(
            "date_of",
            "The day of a timestamp.",
            "date_of(@2024-05-31T12:30:00) = @2024-05-31",
            "DATE_OF",
            DATE,
            dates=False,
        ),
        part(
            "time_of",
            "The time of the day, as the duration since midnight.",
            "time_of(@2024-05-31T12:30:00) = @12h30m",
            "TIME_OF",
            DURATION,
            dates=False,
        ),
        part(
            "month_start", "The first day of the month.", "month_start(@2024-05-31) = @2024-05-01", "MONTH_START", DATE
        ),
        part("year_start", "The first day of the year.", "year_start(@2024-05-31) = @2024-01-01", "YEAR_START", DATE),
        Signature(
            "bucket",
            (SAME, DURATION),
            SAME,
            "The begin of the interval of this length that a time is in, counted from Monday, 2000-01-03, in UTC.",
            'bucket(@2024-05-31T12:34:00, "15m") = @2024-05-31T12:30:00',
            CALENDAR,
            overloads=(
                Overload((DATE, DURATION), SAME, "DATE_BUCKET", partial=True),
                Overload((TIMESTAMP, DURATION), SAME, "TIME_BUCKET", partial=True),
            ),
        ),
        Signature(
            "local",
            (TIMESTAMP,),
            TIMESTAMP,
            "What the clocks of the zone of a timestamp show, as a timestamp without a zone.",
            'local(in_zone(@2024-05-31T12:00:00, "Asia/Tokyo")) = @2024-05-31T21:00:00',
            text=text_functors.local,
        ),
        Signature(
            "in_zone",
            (TIMESTAMP, SYMBOL),
            TIMESTAMP,
            "The same instant, shown on the clocks of a zone.",
            'in_zone(@2024-05-31T12:00:00, "Asia/Tokyo") = @2024-05-31T12:00:00Z',
            result_of=typed.zone,
        ),
    ]


def _to_types() -> list[Signature]:
    """Conversions to types that are not numbers."""
    of_symbol = frozenset({SYMBOL})
    return [
        Signature(
            "to_date",
            (SYMBOL,),
            DATE,
            "The date that a text writes.",
            'to_date("2024-05-31") = @2024-05-31',
            text=text_functors.parser(DATE),
            partial=of_symbol,
        ),
        Signature(
            "to_timestamp",
            (EACH,),
            TIMESTAMP,
            "The timestamp that a text writes; of a date its midnight in UTC.",
            'to_timestamp("2024-05-31T12:00:00Z") = @2024-05-31T12:00:00',
            frozenset({SYMBOL, DATE}),
            text=text_functors.parser(TIMESTAMP),
            partial=of_symbol,
            kernel=frozenset({DATE}),
            overloads=(Overload((DATE,), TIMESTAMP, "MIDNIGHT"),),
        ),
        Signature(
            "to_duration",
            (SYMBOL,),
            DURATION,
            "The duration that a text writes.",
            'to_duration("PT90M") = @1h30m',
            text=text_functors.parser(DURATION),
            partial=of_symbol,
        ),
        Signature(
            "to_decimal",
            (EACH, NUMBER),
            DECIMAL,
            "A decimal of so many digits behind the point, rounded half to even: of a text, number, float or decimal.",
            'to_decimal("2.345", 2) = 2.34d',
            NUMERIC | {SYMBOL, DECIMAL},
            text=text_functors.to_decimal,
            partial=NUMERIC | {SYMBOL, DECIMAL},
            result_of=typed.scaled,
        ),
        Signature(
            "to_bool",
            (SYMBOL,),
            BOOL,
            "The bool that a text writes: true, false, 1 or 0.",
            'to_bool("true") = true',
            text=text_functors.parser(BOOL),
            partial=of_symbol,
        ),
        Signature(
            "to_uuid",
            (SYMBOL,),
            "uuid",
            "The uuid that a text writes.",
            'to_uuid("123E4567-E89B-12D3-A456-426614174000") = @"123e4567-e89b-12d3-a456-426614174000"',
            text=text_functors.parser("uuid"),
            partial=of_symbol,
        ),
        Signature(
            "to_bytes",
            (SYMBOL,),
            "bytes",
            "The bytes that a text writes as pairs of hexadecimal digits.",
            'to_bytes("00ff") = @x"00ff"',
            text=text_functors.parser("bytes"),
            partial=of_symbol,
        ),
    ]


FUNCTORS = _table()


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


# The name of the test that may have no value: a pattern may be none.
MATCH = "match"
_TESTS = (
    Constraint(
        "contains",
        ("part", "text"),
        "The text contains the part.",
        'contains("ell", "Hello")',
        text_functors.contains,
    ),
    Constraint(
        MATCH,
        ("pattern", "text"),
        "The regular expression matches the whole text.",
        'match("[A-Z][a-z]*", "Hello")',
        text_functors.match,
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


COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
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
# (An atom and a call in a term stand in different places, so that a relation may have the name of a younger functor.)
OF_TYPES = frozenset(row.name for row in (*_of_time(), *_to_types())) | {"coalesce"}
RESERVED = frozenset(name for name in FUNCTORS if name.isidentifier() and name not in ("neg", *OF_TYPES)) | frozenset(
    {*CONSTRAINTS, *UNSUPPORTED_FUNCTORS, *AGGREGATES, "nil", "true", "false", "null", "_"}
)
# Words that cannot name a variable.
RESERVED_VARIABLES = frozenset(
    {"band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lxor", "lnot"}
) | {
    "nil",
    "true",
    "false",
    "null",
    "_",
}
