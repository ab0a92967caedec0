"""Base types and named types: what a type name of the program text stands for.

A column holds values of one of four base types. A program may name more: an alias (`.type Node = number`) is another
word for its base, a subtype (`.type Node <: number`) is meant to be told apart from its siblings. Both resolve to a
base type here, and nothing behind the checker sees another name; two subtypes of one base may therefore be compared,
where Souffle warns or refuses.

    number    64-bit signed integer      unsigned   64-bit unsigned integer
    float     64-bit binary float        symbol     text

A chain of names that never reaches a base type (`.type A = B`, `.type B = A`) is a cycle, and no base.
"""

from __future__ import annotations

from collections.abc import Mapping

NUMBER, UNSIGNED, FLOAT, SYMBOL = "number", "unsigned", "float", "symbol"
BASE_TYPES = (NUMBER, UNSIGNED, FLOAT, SYMBOL)
ANY = frozenset(BASE_TYPES)
NUMERIC = frozenset({NUMBER, UNSIGNED, FLOAT})
INTEGRAL = frozenset({NUMBER, UNSIGNED})

# What other languages call types, and the base type in whose place each stands.
FOREIGN = {
    **dict.fromkeys(("int", "integer", "bigint", "smallint", "long", "short", "i32", "i64", "int32", "int64"), NUMBER),
    **dict.fromkeys(("uint", "u32", "u64", "uint32", "uint64", "nat"), UNSIGNED),
    **dict.fromkeys(("double", "real", "decimal", "numeric", "f32", "f64", "float32", "float64"), FLOAT),
    **dict.fromkeys(("str", "string", "text", "varchar", "char", "uuid"), SYMBOL),
    **dict.fromkeys(("bool", "boolean"), NUMBER),
    **dict.fromkeys(("date", "time", "datetime", "timestamp"), SYMBOL),
}
FOREIGN_NOTES = {
    **dict.fromkeys(("bool", "boolean"), ", with 1 for true and 0 for false"),
    **dict.fromkeys(
        ("date", "time", "datetime", "timestamp"),
        ' for texts such as "2024-05-31", which compare as dates do, or `number` for days or seconds',
    ),
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
    """The base type that a type name stands for; None if there is none."""
    last = chain(name, definitions)[-1]
    return last if last in BASE_TYPES else None
