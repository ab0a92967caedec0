r"""Fields: the text of one column of a file, converted to codes.

`text_value` is the rule, for one field; `numeric_codes` does a whole column at once and agrees with it wherever it
gives an answer; `text_part` uses the bulk form and falls back on the rule to find out which fields are bad, and why.

    number      -?[0-9]+ (unsigned: [0-9]+), no '+', spaces or hex; leading zeros are fine; the whole range, exactly
    float       -1.5, 2e-3, .5, 15, inf, -Infinity; correctly rounded; beyond the largest float is refused, as is nan
    symbol      the text exactly: no trimming, no nulls ("NA", "" and "null" are texts); valid UTF-8

pyarrow's own conversions allow more (" 1" and "0x1F" as numbers, 1e999 as inf, nan), so its answers are taken only for
text that cannot mean any of that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.io.staging import ColumnPart, Finding
from lftj.values import faults
from lftj.values.codes import encode_array, to_code
from lftj.values.faults import Fault, shown
from lftj.values.symbols import stage

if TYPE_CHECKING:
    import pyarrow as pa

_LEGAL = {"number": b"0123456789-", "unsigned": b"0123456789", "float": b"0123456789+-.eEiInNfFtTyY"}
_INTEGER = re.compile(rb"-?[0-9]+")
_FLOAT = re.compile(rb"-?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|(?i:inf|infinity))")
_NAN = re.compile(rb"(?i)[-+]?nan")


def text_part(fields: Sequence[bytes], type: str) -> ColumnPart:
    """The codes of the fields of one column: in bulk, or one by one if some field does not convert."""
    import pyarrow as pa

    array = pa.array(fields, pa.binary())
    if type == "symbol":
        try:
            return ColumnPart(stage(array.cast(pa.string())))
        except pa.ArrowInvalid:
            pass
    elif (codes := numeric_codes(array, type)) is not None:
        return ColumnPart(codes)
    filler: int | str = "" if type == "symbol" else 0
    read = [text_value(field, type) for field in fields]
    bad = [row for row, value in enumerate(read) if isinstance(value, Fault)]
    values = [filler if isinstance(value, Fault) else value for value in read]

    def describe(row: int) -> Finding:
        fault = read[row]
        assert isinstance(fault, Fault), "only a bad row is described"
        text = fields[row].decode(errors="backslashreplace")
        return Finding(text, shown(text), fault)

    return ColumnPart(
        stage(values) if type == "symbol" else np.array(values, np.int64), np.array(bad, np.int64), describe
    )


def text_value(field: bytes, type: str) -> int | str | Fault:
    """One field as a code (or, for a symbol, its text), or what is wrong with it."""
    if type == "symbol":
        try:
            return field.decode()
        except UnicodeDecodeError:
            return faults.not_utf8()
    if type == "float":
        if not _FLOAT.fullmatch(field):
            return faults.nan() if _NAN.fullmatch(field) else faults.not_spelled(type)
        value = float(field)
        return faults.float_overflow() if np.isinf(value) and b"i" not in field.lower() else to_code(value, type)
    if not _INTEGER.fullmatch(field):
        return faults.not_spelled(type)
    digits = field.lstrip(b"-").lstrip(b"0") or b"0"
    if len(digits) > 20:  # longer than any int64 or uint64, and int() refuses thousands of digits
        return faults.out_of_range(type)
    integer = -int(digits) if field.startswith(b"-") else int(digits)
    if type == "unsigned" and field.startswith(b"-") and not integer:
        return faults.not_spelled(type)
    low, high = (faults.NUMBER_MIN, faults.NUMBER_MAX) if type == "number" else (0, faults.UNSIGNED_MAX)
    return to_code(integer, type) if low <= integer <= high else faults.out_of_range(type, integer)


def numeric_codes(column: pa.Array, type: str) -> NDArray[np.int64] | None:
    """The codes of a binary column of numeric text; None if some text is misspelled or out of range."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    if not len(column):
        return np.empty(0, np.int64)
    data = column.buffers()[2].to_pybytes()[offsets[0] : offsets[-1]] if offsets[-1] > offsets[0] else b""
    # pyarrow's numbers allow more than ours (hex); one pass over the bytes rules that out before it converts.
    if data.translate(None, _LEGAL[type]):
        return None
    texts = column.cast(pa.string())
    target = {"number": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64()}[type]
    try:
        values: NDArray[Any] = pc.cast(texts, target).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    if type == "float":
        if b"+" in data and pc.any(pc.starts_with(texts, "+")).as_py():
            return None
        if any(b"i" not in texts[int(row)].as_py().lower().encode() for row in np.flatnonzero(np.isinf(values))):
            return None
        return encode_array(values, type)
    return encode_array(values.copy(), type)
