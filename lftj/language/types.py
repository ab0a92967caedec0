"""Type names of the program text: what each stands for, and which types two places may have in common.

The types are those of `lftj/values/type_table.py`. A program may name more: an alias (`.type Node = number`) is another
word for its base, a subtype (`.type Node <: number`) is meant to be told apart from its siblings. Both resolve to types
here, and nothing behind the checker sees another name; two subtypes of one type may therefore be compared, where
Souffle warns or refuses.

While types are inferred, a set of names says what a term may be. The name of a family stands for all its types
(`decimal` for every precision and scale), and null is looked at later (null.py), so that no name ends in `?` there.

A chain of names that never reaches a type (`.type A = B`, `.type B = A`) is a cycle, and no type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lftj.values.decimal_type import DIGITS, Decimals
from lftj.values.time_types import Timestamp
from lftj.values.type_table import FAMILIES, family_of, type_of, without_null

NUMBER, UNSIGNED, FLOAT, SYMBOL = "number", "unsigned", "float", "symbol"
BOOL, DATE, TIMESTAMP, DURATION, DECIMAL = "bool", "date", "timestamp", "duration", "decimal"
BASE_TYPES = tuple(FAMILIES)
ANY = frozenset(BASE_TYPES)
NUMERIC = frozenset({NUMBER, UNSIGNED, FLOAT})
INTEGRAL = frozenset({NUMBER, UNSIGNED})
# What can be added up, and what an integer literal may be.
ADDED = NUMERIC | {DECIMAL, DURATION}
LITERAL = NUMERIC | {DECIMAL}
CALENDAR = frozenset({DATE, TIMESTAMP})
IN_DICTIONARY = frozenset(name for name, kind in FAMILIES.items() if kind.storage == SYMBOL)

# What other languages call types, and the base type in whose place each stands.
FOREIGN = {
    **dict.fromkeys(("int", "integer", "bigint", "smallint", "long", "short", "i32", "i64", "int32", "int64"), NUMBER),
    **dict.fromkeys(("uint", "u32", "u64", "uint32", "uint64", "nat"), UNSIGNED),
    **dict.fromkeys(("double", "real", "f32", "f64", "float32", "float64"), FLOAT),
    **dict.fromkeys(("str", "string", "text", "varchar", "char"), SYMBOL),
    **dict.fromkeys(("numeric", "money"), f"{DECIMAL}({DIGITS},2)"),
    **dict.fromkeys(("boolean",), BOOL),
    **dict.fromkeys(("datetime", "timestamptz", "instant"), TIMESTAMP),
    **dict.fromkeys(("timedelta", "interval", "time"), DURATION),
    **dict.fromkeys(("blob", "binary", "bytea", "varbinary"), "bytes"),
    "guid": "uuid",
}
FOREIGN_NOTES = {
    "time": " for a time of day, as the duration since midnight",
    "timestamptz": ', or `timestamp("Europe/Berlin")` to show it on the clocks of a zone',
}

# The values of a type, inclusive.
RANGES = {NUMBER: (-(2**63), 2**63 - 1), UNSIGNED: (0, 2**64 - 1)}


def chain(name: str, definitions: Mapping[str, str]) -> list[str]:
    """The names from `name` towards its base, each the definition of the one before.

    The last is a base type, a name without definition, or a name that already occurs (a cycle).
    """
    names = [name]
    while names[-1] in definitions and names[-1] not in BASE_TYPES:
        following = definitions[names[-1]]
        names.append(following)
        if following in names[:-1]:
            break
    return names


def base_type(name: str, definitions: Mapping[str, str]) -> str | None:
    """The type that a type name stands for, as it is written in one way; None if there is none."""
    last = chain(name, definitions)[-1]
    try:
        return type_of(last).name
    except ValueError:
        if not last.endswith("?") or last.endswith("??") or last in definitions:
            return None
    base = base_type(last[:-1], definitions)  # `Money?`
    return base and f"{base.removesuffix('?')}?"


@lru_cache(maxsize=4096)
def meet(one: frozenset[str], two: frozenset[str]) -> frozenset[str]:
    """What two terms of one type may be: the types in both sets, where a family has all its types."""
    both = set(one & two)
    for name in one - two:
        for other in two - one:
            if family_of(name) == family_of(other) and (joint := _joint(name, other)):
                both.add(joint)
    # Beside one of its types the name of a family says nothing.
    return frozenset(n for n in both if not (n == DECIMAL and any(o != n and family_of(o) == n for o in both)))


def comparable(one: str, two: str) -> bool:
    """Whether values of two types can be equal, null aside."""
    return bool(meet(frozenset({without_null(one)}), frozenset({without_null(two)})))


def _joint(name: str, other: str) -> str:
    """The type of two of one family; "" if values of the two cannot be compared."""
    if DECIMAL in (name, other):
        return other if name == DECIMAL else name
    one, two = type_of(name), type_of(other)
    if isinstance(one, Decimals) and isinstance(two, Decimals):
        if one.scale != two.scale:
            return ""
        return (one if one.precision >= two.precision else two).name
    if isinstance(one, Timestamp) and isinstance(two, Timestamp):
        return max(name, other) if "" in (one.zone, two.zone) else min(name, other)
    return ""


def widest(name: str) -> str:
    """The type that holds sums of values of a type: a decimal of as many digits as there may be."""
    made = type_of(name)
    return decimal_of(made.scale) if isinstance(made, Decimals) else name


def decimal_of(scale: int) -> str:
    """The widest decimal of a scale."""
    return f"{DECIMAL}({DIGITS},{scale})"


def scale_of(name: str) -> int:
    """The digits behind the point of a decimal type; of any other 0."""
    made = type_of(name)
    return made.scale if isinstance(made, Decimals) else 0


def narrower(name: str, wanted: str) -> bool:
    """Whether `wanted` holds fewer digits than a value of type `name` may have."""
    one, two = type_of(name), type_of(wanted)
    return isinstance(one, Decimals) and isinstance(two, Decimals) and two.precision < one.precision


def of_class(kind: type) -> str:
    """The type of the values of a class of Python; "" if there is none. Decimals have two digits behind the point."""
    known = _classes()
    return next((known[base] for base in kind.__mro__ if base in known), "")


@lru_cache(maxsize=1)
def _classes() -> dict[type, str]:
    import datetime
    import decimal
    import uuid

    return {
        int: NUMBER,
        float: FLOAT,
        str: SYMBOL,
        bool: BOOL,
        datetime.date: DATE,
        datetime.datetime: TIMESTAMP,
        datetime.timedelta: DURATION,
        decimal.Decimal: decimal_of(2),
        uuid.UUID: "uuid",
        bytes: "bytes",
    }
