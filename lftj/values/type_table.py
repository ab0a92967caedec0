"""The table of types: what a column may hold, found by its name.

    type                    stored as                                         order
    number unsigned float   the codes of codes.py                             of the values
    bool                    0, 1                                              false, true
    date                    days since 1970-01-01                             of time
    timestamp               microseconds since 1970-01-01T00:00Z              of time
    duration                microseconds                                      of length
    decimal(p,s)            the value times 10**s                             of the values
    symbol                  its text, in the dictionary                       of the texts
    uuid                    its 36 characters, in the dictionary              of its bytes
    bytes                   a character per byte, in the dictionary           of the bytes

A name that ends in `?` is the same type with *null*. Null has the code `ValueType.null`, KEY_MIN but for `unsigned`,
where that is 0; the value of that code, if there is one (-2**63 of a number), is refused in such a column.

A family is one class, entered in `FAMILIES`; its instances are the types with their parameters. Names are written in
one way, `decimal(10,2)`, without spaces (`canonical`).
"""

from __future__ import annotations

import copy
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lftj.values import faults
from lftj.values.bool_type import Bool
from lftj.values.codes import is_missing
from lftj.values.decimal_type import Decimals
from lftj.values.dictionary_types import Bytes, Symbols, Uuid
from lftj.values.plain_types import Float, Number, Unsigned
from lftj.values.time_types import Date, Duration, Timestamp
from lftj.values.value_type import Misfit, ValueType

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

FAMILIES: dict[str, type[ValueType]] = {
    kind.family: kind
    for kind in (Number, Unsigned, Float, Symbols, Bool, Date, Timestamp, Duration, Decimals, Uuid, Bytes)
}
_NAME = re.compile(r"\s*(?P<family>\w+)\s*(\((?P<parameters>[^()]*)\))?\s*(?P<null>\??)\s*")


@lru_cache(maxsize=1024)
def type_of(name: str) -> ValueType:
    """The type of a name; `ValueError` says why there is none."""
    found = _NAME.fullmatch(name)
    if found is None or found["family"] not in FAMILIES:
        raise ValueError(f"there is no type {name!r}")
    given = found["parameters"]
    parameters = () if given is None else tuple(part.strip() for part in given.split(","))
    made = FAMILIES[found["family"]].of(parameters)
    if found["null"]:
        made = copy.copy(made)
        made.nullable = True
    return made


def is_type(name: str) -> bool:
    """Whether there is a type of that name."""
    try:
        type_of(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def family_of(name: str) -> str:
    """The name of a type without parameters and `?`; of a family itself, too."""
    return name.partition("(")[0].removesuffix("?")


@lru_cache(maxsize=1024)
def in_dictionary(name: str) -> bool:
    """Whether the values of a type are texts of the dictionary, whose codes keep no order."""
    return FAMILIES[family_of(name)].storage == "symbol"


@lru_cache(maxsize=1024)
def storage_of(name: str) -> str:
    """How codes of a type are compared and added: as those of "number", "unsigned", "float" or "symbol"."""
    return FAMILIES[family_of(name)].storage


@lru_cache(maxsize=1024)
def is_nullable(name: str) -> bool:
    """Whether null may stand in a column of the type."""
    return name.endswith("?")


def without_null(name: str) -> str:
    """The same type without null."""
    return name.removesuffix("?")


def with_null(name: str) -> str:
    """The same type with null."""
    return name if name.endswith("?") else f"{name}?"


# --- one value --------------------------------------------------------------------------------------------------------


def to_stored(value: object, type: str) -> int | str:
    """The code of a value, or its text in the dictionary; `Misfit` if it is of another kind or out of range."""
    made = type_of(type)
    if not made.nullable:
        return made.read(value)
    if is_missing(value):
        return made.null
    stored = made.read(value)
    if stored == made.null:
        raise Misfit(faults.stands_for_null(made))
    return stored


def from_stored(stored: int | str, type: str) -> Any:
    """The Python value of what is stored: None for null."""
    made = type_of(type)
    return None if made.nullable and stored == made.null else made.shown(stored)


# --- whole columns ----------------------------------------------------------------------------------------------------


def null_rows(codes: NDArray[np.int64], type: str) -> NDArray[np.bool_] | None:
    """Which codes are null; None if none is."""
    made = type_of(type)
    if not made.nullable:
        return None
    mask: NDArray[np.bool_] = codes == made.null
    return mask if mask.any() else None


# --- types of given data ----------------------------------------------------------------------------------------------


def of_arrow(given: pa.DataType) -> str:
    """The type in which a column of an Arrow type is held; "" if there is none."""
    import pyarrow.types as kinds

    plain = given.value_type if kinds.is_dictionary(given) else given
    if kinds.is_decimal(plain):
        name = f"decimal({plain.precision},{plain.scale})"
        return name if is_type(name) else ""
    if kinds.is_timestamp(plain) and plain.tz is not None:
        return f'timestamp("{plain.tz}")'
    if kinds.is_uint64(plain):
        return "unsigned"
    order = ("number", "float", "symbol", "bool", "date", "timestamp", "duration", "bytes", "uuid")
    dates = ("timestamp",) if kinds.is_timestamp(plain) else ()
    return next((name for name in (*dates, *order) if type_of(name).fits_arrow(plain)), "")
