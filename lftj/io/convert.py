"""Converting one column of typed data (Arrow array, numpy array, Python list) into a `ColumnPart`.

Two questions, kept apart. Does the *kind* of the column fit (a float column for `number` does not, whatever its
values)? That is asked once, before any row is read, and refusing it is a `ColumnTypeError`. Does each *value* fit (no
null, no NaN, in range)? That is asked in bulk, and each value that does not is a bad row. What is accepted:

    number, unsigned    integers of every width and sign, in range
    float               floats of every width, integers that a float64 equals
    symbol              text in every layout (string, large_string, string_view, numpy str, dictionaries, categories)

Never converted silently: bool, text to numbers, numbers to text, float to integer, decimal, dates and times, bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.errors import DataError
from lftj.io.staging import NO_ROWS, ColumnPart, Finding
from lftj.values import faults
from lftj.values.codes import Column, Misfit, encode_array, is_missing, to_code, to_text
from lftj.values.faults import NUMBER_MAX, Fault
from lftj.values.symbols import stage

if TYPE_CHECKING:
    import pyarrow as pa

_DTYPE: dict[str, type[np.generic]] = {"number": np.int64, "unsigned": np.uint64, "float": np.float64}
_EXACT_IN_FLOAT = 1 << 53


class ColumnTypeError(DataError, TypeError):
    """A whole column of a source is of a kind that its relation's column does not take. Field: `column`, its name."""

    __str__ = DataError.__str__

    def __init__(self, column: Column, relation: str, given: str, fault: Fault, source: str) -> None:
        self.column = column.name
        what = f"column `{column.name}` of `{relation}`: the source's column {given} {fault.reason}"
        super().__init__(what, where=source, why=fault.why, remedy=fault.remedy)


# --- Arrow ------------------------------------------------------------------------------------------------------------


def arrow_fault(given: pa.DataType, type: str) -> Fault | None:
    """Why a column of Arrow type `given` cannot be read as `type`; None if it can."""
    import pyarrow.types as kinds

    plain = given.value_type if kinds.is_dictionary(given) else given
    if kinds.is_null(plain):  # every row is null and told as such
        return None
    if type == "symbol":
        fits = kinds.is_string(plain) or kinds.is_large_string(plain) or kinds.is_string_view(plain)
    else:
        fits = kinds.is_integer(plain) or (type == "float" and kinds.is_floating(plain))
    return None if fits else faults.wrong_kind(type, str(plain))


def arrow_part(array: pa.Array, type: str, *, read: bool = True) -> ColumnPart:
    """The codes of an Arrow array whose Arrow type fits (`arrow_fault`).

    `read`: whether somebody reads them. Of texts that nobody reads only the nulls are looked for.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type) and (type != "symbol" or array.dictionary.null_count):
        array = array.dictionary_decode()
    missing = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else NO_ROWS

    def describe(row: int) -> Finding:
        return describe_value(array[row].as_py(), type)

    if type == "symbol":
        if not read:
            return ColumnPart(np.zeros(len(array), np.int64), missing, describe)
        texts = array
        if pa.types.is_null(array.type):
            texts = pa.array([""] * len(array), pa.large_string())
        elif pa.types.is_dictionary(array.type):
            if len(missing):
                texts = pc.take(array.dictionary.cast(pa.large_string()), array.indices).fill_null("")
        elif len(missing):
            texts = array.cast(pa.large_string()).fill_null("")
        return ColumnPart(stage(texts), missing, describe)
    if pa.types.is_null(array.type):
        return ColumnPart(np.zeros(len(array), np.int64), missing, describe)
    values = (array.fill_null(0) if len(missing) else array).to_numpy(zero_copy_only=False)
    codes, misfits = _numeric_codes(values, type)
    return ColumnPart(codes, _union(missing, misfits), describe)


# --- numpy ------------------------------------------------------------------------------------------------------------


def numpy_fault(dtype: np.dtype[Any], type: str) -> Fault | None:
    """Why a numpy column of that dtype cannot be read as `type`; None if it can. Objects are looked at one by one."""
    if dtype.kind == "O":
        return None
    if type == "symbol":
        fits = dtype.kind in "UT"
    else:
        fits = dtype.kind in "iu" or (type == "float" and dtype.kind == "f" and dtype.itemsize <= 8)
    if fits:
        return None
    return faults.wrong_kind(type, {"U": "str", "S": "bytes", "T": "str"}.get(dtype.kind, str(dtype)))


def numpy_part(values: NDArray[Any], type: str) -> ColumnPart:
    """The codes of a 1-D numpy array whose dtype fits (`numpy_fault`)."""
    if values.dtype.kind in "OT":
        return list_part(values.tolist(), type)
    if type == "symbol":
        try:
            return ColumnPart(stage(values.astype(values.dtype.newbyteorder("="))))
        except Misfit:
            return list_part(values.tolist(), type)
    codes, bad = _numeric_codes(values, type)
    return ColumnPart(codes, bad, lambda row: describe_value(values[row].item(), type))


# --- Python -----------------------------------------------------------------------------------------------------------


def list_part(values: Sequence[object], type: str) -> ColumnPart:
    """The codes of Python values: in bulk where all are exactly int, float or str and fit, else one by one."""
    part = _exact_part(values, type)
    if part is not None:
        return part
    bad: list[int] = []
    convert: Callable[[object], int | str] = to_text if type == "symbol" else lambda value: to_code(value, type)
    filler: int | str = "" if type == "symbol" else 0
    converted = []
    for row, value in enumerate(values):
        try:
            converted.append(convert(value))
        except Misfit:
            converted.append(filler)
            bad.append(row)
    codes = stage(converted) if type == "symbol" else np.array(converted, np.int64)
    return ColumnPart(codes, np.array(bad, np.int64), lambda row: describe_value(values[row], type))


def describe_value(value: object, type: str) -> Finding:
    """What is wrong with a Python value that does not fit its type."""
    text = faults.shown(None if is_missing(value) else value)
    try:
        if type == "symbol":
            to_text(value)
        else:
            to_code(value, type)
    except Misfit as misfit:
        return Finding(text, text, misfit.fault)
    raise AssertionError(f"{text} fits {type}: the bulk and the scalar maps disagree")


def _exact_part(values: Sequence[object], type: str) -> ColumnPart | None:
    kinds = set(map(_class_of, values))
    if type == "symbol":
        if not kinds <= {str}:
            return None
        try:
            return ColumnPart(stage(values))
        except Misfit:
            return None
    if not kinds <= ({float} if type == "float" else {int}):
        return None
    try:
        array = np.array(values, _DTYPE[type])
    except OverflowError:
        return None
    codes, bad = _numeric_codes(array, type)
    return ColumnPart(codes, bad, lambda row: describe_value(values[row], type))


def _class_of(value: object) -> type[object]:
    return value.__class__


# --- shared -----------------------------------------------------------------------------------------------------------


def _numeric_codes(values: NDArray[Any], type: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes of an integer or float array, and the rows whose value does not fit."""
    if type == "number" and values.dtype == np.int64:  # the codes are these
        return np.array(values), NO_ROWS
    kind = values.dtype.kind
    misfit: NDArray[np.bool_] | None = None
    if type == "number" and kind == "u" and values.dtype.itemsize == 8:
        misfit = values > np.uint64(NUMBER_MAX)
    elif type == "unsigned" and kind == "i":
        misfit = values < 0
    elif type == "float" and kind == "f":
        misfit = np.isnan(values)
    elif type == "float" and values.dtype.itemsize == 8:
        misfit = _inexact(values)
    with np.errstate(over="ignore", invalid="ignore"):
        codes = encode_array(values.astype(_DTYPE[type]), type)
    return codes, NO_ROWS if misfit is None else np.flatnonzero(misfit)


def _inexact(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Integers that no float64 equals. Those beyond 2**53 are looked at one by one: near 2**64 numpy wraps."""
    inexact = (values > _EXACT_IN_FLOAT) | (values < -_EXACT_IN_FLOAT if values.dtype.kind == "i" else False)
    for row in np.flatnonzero(inexact):
        integer = int(values[row])
        inexact[row] = int(float(integer)) != integer
    return inexact


def _union(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.union1d(first, second) if len(first) and len(second) else (first if len(first) else second)
