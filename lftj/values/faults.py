"""A fault is the reason why a value cannot stand in a column: what is wrong with it, what the column takes, what to do.

A fault is born where a value is looked at (a cell of a text file, an item of a tuple, a slot of an Arrow array),
without a place. Whoever knows the place makes it an error (`misfit`) or a quarantined row (`lftj.io.rejects`). The
texts live here, so that a null is refused in the same words whether it came from Parquet, pandas or a tuple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lftj.errors import DataError
from lftj.values.codes import NUMBER_MIN, UNSIGNED_MAX, is_missing

if TYPE_CHECKING:
    from lftj.values.value_type import ValueType

SHOWN_LENGTH = 80


class Fault(NamedTuple):
    """`reason` follows the value ("is not a number"); `why` says what the column takes; `remedy` is an imperative."""

    reason: str
    why: str
    remedy: str


class ValueMisfitError(DataError, TypeError):
    """A Python value does not fit the column it was given for. Fields: `value`, `column`, `relation`."""

    __str__ = DataError.__str__

    def __init__(self, value: object, fault: Fault, *, column: str, relation: str, where: str = "") -> None:
        self.value, self.column, self.relation = value, column, relation
        place = f"column `{column}` of `{relation}`" if relation else f"column `{column}`"
        super().__init__(f"{place}: {shown(value)} {fault.reason}", where=where, why=fault.why, remedy=fault.remedy)


def shown(value: object) -> str:
    """A value as a message shows it: its repr, cut where it is longer than a line; null for None.

    What has no repr, as times of numpy that are too far for any, is shown by its type.
    """
    if value is None:
        return "null"
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]}..."


def null(type: str) -> Fault:
    """A missing value: None, an Arrow null, pandas' NA."""
    return Fault(
        "is not a value",
        f"a column of type {type} holds no nulls",
        f"declare the column `{type}?`, drop the rows without a value or fill them in",
    )


def stands_for_null(type: ValueType) -> Fault:
    """The value whose code is null's, in a column with nulls."""
    return Fault(
        f"does not fit into {type.name}", "its code is null's there", f"declare the column `{type.plain}`, or `symbol?`"
    )


def nan() -> Fault:
    """A float that is not a number."""
    return Fault(
        "is not a key", "NaN differs from itself, so no row could be found by it", "drop or replace the NaN values"
    )


def not_spelled(type: ValueType) -> Fault:
    """Text of a file that does not read as the type."""
    return Fault(f"is not {type.article}", type.spelled, "correct the value or declare the column `symbol`")


def out_of_range(type: ValueType, value: int | None = None) -> Fault:
    """An integer (or the text of one) that its type cannot hold."""
    if type.family == "number" and value is not None and 0 <= value <= UNSIGNED_MAX:
        remedy = "declare the column `unsigned`"
    elif type.family == "unsigned" and value is not None and NUMBER_MIN <= value < 0:
        remedy = "declare the column `number`"
    else:
        remedy = "declare the column `symbol` or `float`"
    return Fault(f"does not fit into {type.family}", type.takes, remedy)


def inexact() -> Fault:
    """An integer given for a float column that no float64 equals."""
    return Fault(
        "is not exact as a float",
        "a float holds integers exactly up to 2**53",
        "declare the column `number` or round the value",
    )


def float_overflow() -> Fault:
    """Text of a number beyond the largest float64."""
    return Fault(
        "does not fit into float", "the largest float is 1.7976931348623157e+308", "correct the value or write inf"
    )


def not_utf8() -> Fault:
    """Bytes of a text file that are no UTF-8."""
    return Fault("is not UTF-8 text", "text files are read as UTF-8", "convert the file to UTF-8")


def surrogate() -> Fault:
    """A str that no UTF-8 text equals."""
    return Fault(
        "is not valid unicode", "a symbol holds no lone surrogates", "encode the text again, with errors='replace'"
    )


# The types in which values of a kind are held, by how the kind's name begins, in Python, Arrow or numpy.
_HELD = (
    (("bool",), "bool"),
    (("datetime", "timestamp"), "timestamp"),
    (("date",), "date"),
    (("timedelta", "duration"), "duration"),
    (("decimal",), "decimal(18, 2)"),
    (("uuid",), "uuid"),
    (("bytes", "bytearray", "binary", "large_binary", "fixed_size_binary"), "bytes"),
    (("float", "double", "half"), "float"),
    (("str", "large_str", "string"), "symbol"),
    (("int", "uint"), "number"),
)


def wrong_kind(type: ValueType, kind: str) -> Fault:
    """A value (or a whole column) of another kind: `kind` is its Python type or Arrow type as the user knows it."""
    word = kind.lower()
    held = next((name for begins, name in _HELD if word.startswith(begins)), "")
    remedy = f"convert it to {type.python} first"
    if held.startswith("decimal"):  # what DuckDB's sum() gives, for one
        cast = {"float": "float64 (DOUBLE)", "symbol": "text"}.get(type.family, "int64 (BIGINT)")
        remedy = f"cast it to {cast} first or declare the column `{held}`"
    elif word == "bytes" and type.family == "symbol":
        remedy = "decode it to str first, or declare the column `bytes`"
    elif word == "double" and type.family in ("number", "unsigned"):  # which integers with gaps are in pandas
        remedy += ' (`.astype("Int64")` of pandas keeps missing ones) or declare the column `float`'
    elif held and held != type.family:
        remedy += f" or declare the column `{held}`"
    return Fault(f"is {with_article(kind)}, not {type.article}", type.takes, remedy)


def of_kind(type: ValueType, value: object) -> Fault:
    """A Python value that a type does not hold: no value at all, or one of another kind."""
    return null(type.plain) if is_missing(value) else wrong_kind(type, kind_of(value))


def kind_of(value: object) -> str:
    """The name of the class of a value, as Python and numpy have it."""
    return type(value).__name__.removesuffix("_")


def with_article(word: str) -> str:
    """The name of a kind with its article: an int, a float; bytes."""
    if word.endswith("s"):
        return word
    return f"an {word}" if word[:1].lower() in "aeio" else f"a {word}"


def counted(number: int, noun: str) -> str:
    """`1 column`, `2 columns`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
