"""Converting one column of typed data (Arrow array, numpy array, Python list) into a `ColumnPart`.

Two questions, kept apart. Does the *kind* of the column fit (a float column for `number` does not, whatever its
values)? That is asked once, before any row is read, and refusing it is a `ColumnTypeError`. Does each *value* fit (no
null, no NaN, in range)? That is asked in bulk, and each value that does not is a bad row. What is accepted:

    number, unsigned    integers of every width and sign, in range
    float               floats of every width, integers that a float64 equals
    symbol              text in every layout (string, large_string, string_view, numpy str, dictionaries, categories)
    bool                bool
    date                dates; timestamps without zone or time of day
    timestamp           timestamps of every unit and zone; without a zone, they are read on the column's clocks
    duration            durations of every unit
    decimal             decimals of every width and scale and integers, where exact
    uuid                uuids, 16 bytes, text
    bytes               bytes in every layout

Never converted silently: text to numbers or times, numbers to text, float to integer or decimal.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.errors import DataError
from lftj.io.staging import NO_ROWS, ColumnPart, Finding
from lftj.values import faults
from lftj.values.codes import is_missing
from lftj.values.faults import Fault
from lftj.values.schema import Column
from lftj.values.symbols import StagedTexts, stage
from lftj.values.type_table import to_stored, type_of
from lftj.values.value_type import SYMBOL, Misfit, ValueType

if TYPE_CHECKING:
    import pyarrow as pa


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

    plain = given.value_type if kinds.is_dictionary(given) or kinds.is_run_end_encoded(given) else given
    # Of a column of nulls every row is null and told as such.
    made = type_of(type)
    return None if kinds.is_null(plain) or made.fits_arrow(plain) else faults.wrong_kind(made, str(plain))


def arrow_part(array: pa.Array, type: str, *, read: bool = True) -> ColumnPart:
    """The codes of an Arrow array whose Arrow type fits (`arrow_fault`).

    `read`: whether somebody reads them. Of texts that nobody reads only the nulls are looked for.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    made = type_of(type)
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if (texts := not_unicode(array)) is not None:
        return list_part(texts, type)
    as_it_is = made.family == SYMBOL and pa.types.is_dictionary(array.type) and not array.dictionary.null_count
    if pa.types.is_dictionary(array.type) and not as_it_is:
        array = _decoded(array)
    missing = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else NO_ROWS

    def describe(row: int) -> Finding:
        scalar = array[row]
        try:
            value = scalar.as_py()
        except (OverflowError, ValueError):  # a time that Python has no value for
            value = None
        if scalar.is_valid and is_missing(value):  # or pandas, whose NaT it would be
            text = f"{scalar.value} ({array.type})"
            return Finding(text, text, Fault(f"does not fit into {made.plain}", made.takes, "correct the value"))
        return describe_value(value, type)

    if made.family == SYMBOL and not read:
        return ColumnPart(np.zeros(len(array), np.int64), NO_ROWS if made.nullable else missing, describe)
    if pa.types.is_binary_view(array.type) or pa.types.is_string_view(array.type):
        # Of which Arrow knows few functions.
        array = array.cast(pa.large_binary() if pa.types.is_binary_view(array.type) else pa.large_string())
    if pa.types.is_date64(array.type):
        array = array.cast(pa.timestamp("ms"))  # which may have times of day; Python's dates have none
    if pa.types.is_null(array.type):
        nothing = pa.array([""] * len(array), pa.large_string()) if made.in_dictionary else None
        codes = np.zeros(len(array), np.int64) if nothing is None else stage(nothing)
        return _with_nulls(codes, missing, NO_ROWS, made, describe)
    if as_it_is:
        texts = array
        if len(missing):
            texts = pc.take(array.dictionary.cast(pa.large_string()), array.indices).fill_null("")
        return _with_nulls(stage(texts), missing, NO_ROWS, made, describe)
    found = made.from_arrow(_filled(array, made) if len(missing) else array)
    misfits = NO_ROWS if found.misfits is None else np.flatnonzero(found.misfits)
    if len(missing) and len(misfits):
        misfits = np.setdiff1d(misfits, missing)  # what was filled in need not fit
    stored = stage(found.stored) if made.in_dictionary else found.stored
    return _with_nulls(stored, missing, misfits, made, describe)


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of an array that has them in a dictionary."""
    import pyarrow as pa

    kind = array.type.value_type
    if pa.types.is_binary_view(kind) or pa.types.is_string_view(kind):  # of which Arrow knows few functions
        plain = array.dictionary.cast(pa.large_binary() if pa.types.is_binary_view(kind) else pa.large_string())
        array = pa.DictionaryArray.from_arrays(array.indices, plain)
    return array.dictionary_decode()


def not_unicode(array: pa.Array) -> list[str | None] | None:
    """The values of an array of texts of which some are no UTF-8, which Arrow lets be; these have lone surrogates."""
    import pyarrow as pa
    import pyarrow.types as kinds

    texts = array.dictionary if kinds.is_dictionary(array.type) else array
    if not (kinds.is_string(texts.type) or kinds.is_large_string(texts.type) or kinds.is_string_view(texts.type)):
        return None
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        whole = array.dictionary_decode() if kinds.is_dictionary(array.type) else array
        bodies = whole.cast(pa.large_binary()).to_pylist()
        return [None if body is None else body.decode(errors="surrogateescape") for body in bodies]
    return None


def _filled(array: pa.Array, made: ValueType) -> pa.Array:
    """The array with some value in place of each null: of texts one that is there, so that no other is interned."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_decimal(array.type) and array.type.scale < 0:  # where Arrow asks for more digits than it has
        return pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], offset=array.offset)
    if not made.in_dictionary:
        return array.fill_null(_any_value(array.type))
    there = pc.drop_null(array)
    if not len(there):  # all are null
        return pa.array([None] * len(array), array.type).fill_null(_any_value(array.type))
    return array.fill_null(there[0])


def _any_value(type: pa.DataType) -> pa.Scalar:
    """Some value of an Arrow type: zero, the empty text, the epoch."""
    import pyarrow as pa

    if pa.types.is_fixed_size_binary(type):
        return pa.scalar(bytes(type.byte_width), type)
    if pa.types.is_boolean(type):
        return pa.scalar(False)
    if pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type):
        return pa.scalar(b"", type)
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return pa.scalar("", type)
    if pa.types.is_interval(type):
        return pa.scalar((0, 0, 0), type)
    return pa.scalar(decimal.Decimal(0) if pa.types.is_decimal(type) else 0, type)


def _with_nulls(
    stored: NDArray[np.int64] | StagedTexts,
    missing: NDArray[np.int64],
    misfits: NDArray[np.int64],
    made: ValueType,
    describe: Callable[[int], Finding],
) -> ColumnPart:
    """A column whose rows `missing` are null: bad rows where the type has no null, else rows with its code."""
    if not made.nullable:
        return ColumnPart(stored, _union(missing, misfits), describe)
    if isinstance(stored, StagedTexts):
        return ColumnPart(stored.with_nulls(missing), misfits, describe)
    taken = NO_ROWS  # values whose code is null's
    if made.low <= made.null <= made.high and len(hits := np.flatnonzero(stored == made.null)):
        taken = np.setdiff1d(hits, missing)
    if len(missing):
        stored = stored.copy()
        stored[missing] = made.null
    return ColumnPart(stored, _union(misfits, taken), describe)


# --- numpy ------------------------------------------------------------------------------------------------------------


def numpy_fault(dtype: np.dtype[Any], type: str) -> Fault | None:
    """Why a numpy column of that dtype cannot be read as `type`; None if it can. Objects are looked at one by one."""
    made = type_of(type)
    if dtype.kind == "O" or made.fits_numpy(dtype):
        return None
    kind = {"U": "str", "S": "bytes", "T": "str"}.get(dtype.kind, str(dtype))
    if kind == made.family:  # of one width, without the zeros at the end
        return Fault(f"is numpy's {dtype}, not bytes", made.takes, "convert it first, as in `array.astype(object)`")
    return faults.wrong_kind(made, kind)


def numpy_part(values: NDArray[Any], type: str) -> ColumnPart:
    """The codes of a 1-D numpy array whose dtype fits (`numpy_fault`). NaT is null."""
    made = type_of(type)
    if values.dtype.kind in "OT":
        return list_part(values.tolist(), type)
    if made.in_dictionary:
        try:
            return ColumnPart(stage(values.astype(values.dtype.newbyteorder("="))))
        except Misfit:
            return list_part(values.tolist(), type)
    found = made.from_numpy(values)
    misfits = NO_ROWS if found.misfits is None else np.flatnonzero(found.misfits)
    missing = np.flatnonzero(np.isnat(values)) if made.nullable and values.dtype.kind in "mM" else NO_ROWS
    if len(missing):
        misfits = np.setdiff1d(misfits, missing)
    return _with_nulls(found.stored, missing, misfits, made, lambda row: describe_value(_one(values[row]), type))


def _one(value: Any) -> object:
    """An item of an array as a value of Python, where that has one."""
    if value.dtype.kind not in "mM":
        return value.item()
    return None if np.isnat(value) else value


# --- Python -----------------------------------------------------------------------------------------------------------


def list_part(values: Sequence[object], type: str) -> ColumnPart:
    """The codes of Python values: in bulk where all are exactly int, float or str and fit, else one by one."""
    part = _exact_part(values, type)
    if part is not None:
        return part
    made = type_of(type)
    bad: list[int] = []
    missing: list[int] = []
    filler: int | str = "" if made.in_dictionary else 0
    converted: list[Any] = []
    for row, value in enumerate(values):
        if made.nullable and is_missing(value):
            missing.append(row)
            converted.append(filler)
            continue
        try:
            converted.append(made.read(value))
        except Misfit:
            converted.append(filler)
            bad.append(row)
    stored = stage(converted) if made.in_dictionary else np.array(converted, np.int64)
    describe = lambda row: describe_value(values[row], type)  # noqa: E731
    return _with_nulls(stored, np.array(missing, np.int64), np.array(bad, np.int64), made, describe)


def describe_value(value: object, type: str) -> Finding:
    """What is wrong with a Python value that does not fit its type."""
    text = faults.shown(None if is_missing(value) else value)
    try:
        to_stored(value, type)
    except Misfit as misfit:
        return Finding(text, text, misfit.fault)
    raise AssertionError(f"{text} fits {type}: the bulk and the scalar maps disagree")


# The classes of Python whose values are converted by one call of numpy, where a column holds no others.
_EXACT: dict[str, tuple[type, Any]] = {
    "number": (int, np.int64),
    "unsigned": (int, np.uint64),
    "float": (float, np.float64),
    "bool": (bool, np.bool_),
}


_class_of = attrgetter("__class__")


def _exact_part(values: Sequence[object], type: str) -> ColumnPart | None:
    kinds = set(map(_class_of, values))
    if type == SYMBOL:
        if not kinds <= {str}:
            return None
        try:
            return ColumnPart(stage(values))
        except Misfit:
            return None
    if type not in _EXACT or not kinds <= {_EXACT[type][0]}:
        return None
    try:
        return numpy_part(np.array(values, _EXACT[type][1]), type)
    except OverflowError:
        return None


# --- shared -----------------------------------------------------------------------------------------------------------


def _union(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.union1d(first, second) if len(first) and len(second) else (first if len(first) else second)
