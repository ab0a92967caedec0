r"""Fields: the text of one column of a file, converted to codes.

`text_value` is the rule, for one field; `bulk_part` does a whole column at once and agrees with it wherever it
gives an answer; `text_part` uses the bulk form and falls back on the rule to find out which fields are bad, and why.

    number      -?[0-9]+ (unsigned: [0-9]+), no '+', spaces or hex; leading zeros are fine; the whole range, exactly
    float       -1.5, 2e-3, .5, 15, inf, -Infinity; correctly rounded; beyond the largest float is refused, as is nan
    symbol      the text exactly: no trimming ("NA" and "null" are texts); valid UTF-8
    others      as their `ValueType.parse` says

An empty field of a column with null is null, of texts too.

pyarrow's own conversions allow more (" 1" and "0x1F" as numbers, 1e999 as inf, nan), so its answers are taken only for
text that cannot mean any of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from lftj.io.staging import NO_ROWS, ColumnPart, Finding
from lftj.values import arrow_arrays, faults
from lftj.values.faults import Fault, shown
from lftj.values.symbols import StagedTexts, stage
from lftj.values.type_table import type_of
from lftj.values.value_type import SYMBOL, Misfit

if TYPE_CHECKING:
    import pyarrow as pa

# The characters of what pyarrow converts as this page says; a field of any other is looked at by itself.
_LEGAL = {"number": b"0123456789-", "unsigned": b"0123456789", "float": b"0123456789+-.eEiInNfFtTyY"}


def text_part(fields: Sequence[bytes], type: str) -> ColumnPart:
    """The codes of the fields of one column: in bulk, or one by one if some field does not convert."""
    import pyarrow as pa

    if (part := bulk_part(pa.array(fields, pa.binary()), type)) is not None:
        return part
    made = type_of(type)
    filler: int | str = "" if made.in_dictionary else 0
    read = [text_value(field, type) for field in fields]
    bad = [row for row, value in enumerate(read) if isinstance(value, Fault)]
    values: list[Any] = [filler if isinstance(value, Fault) else value for value in read]

    def describe(row: int) -> Finding:
        fault = read[row]
        assert isinstance(fault, Fault), "only a bad row is described"
        text = fields[row].decode(errors="backslashreplace")
        return Finding(text, shown(text), fault)

    if not made.in_dictionary:
        return ColumnPart(np.array(values, np.int64), np.array(bad, np.int64), describe)
    missing = [row for row, value in enumerate(values) if value == made.null]
    staged = stage(["" if value == made.null else value for value in values]).with_nulls(np.array(missing, np.int64))
    return ColumnPart(staged, np.array(bad, np.int64), describe)


def text_value(field: bytes, type: str) -> int | str | Fault:
    """One field as a code (or, of a type in the dictionary, its text), or what is wrong with it."""
    made = type_of(type)
    if made.nullable and not field:
        return made.null
    try:
        stored = made.parse(field.decode())
    except UnicodeDecodeError:
        return faults.not_utf8() if made.family == SYMBOL else faults.not_spelled(made)
    except Misfit as misfit:
        return misfit.fault
    return faults.stands_for_null(made) if made.nullable and stored == made.null else stored


def bulk_part(column: pa.Array, type: str) -> ColumnPart | None:
    """A binary column of fields; None if some field does not read as the type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    made = type_of(type)
    missing = NO_ROWS
    if made.nullable:
        missing = np.flatnonzero(pc.equal(pc.binary_length(column), 0).to_numpy(zero_copy_only=False))
    if made.family == SYMBOL:
        try:
            return ColumnPart(stage(column.cast(pa.string())).with_nulls(missing))
        except pa.ArrowInvalid:
            return None
    if made.family in _LEGAL:
        if len(missing):
            column = pc.if_else(pc.equal(pc.binary_length(column), 0), pa.scalar(b"0"), column)
        codes = numeric_codes(column, made.family)
    else:
        return _distinct_part(column, type)
    if codes is None or (made.nullable and (codes == made.null).any()):
        return None
    if len(missing):
        codes[missing] = made.null
    return ColumnPart(codes)


def _distinct_part(column: pa.Array, type: str) -> ColumnPart | None:
    """A column whose distinct fields are read one by one."""
    encoded = column.dictionary_encode()
    read = [text_value(field, type) for field in encoded.dictionary.to_pylist()]
    if any(isinstance(value, Fault) for value in read):
        return None
    places = arrow_arrays.values_of(encoded.indices).astype(np.int64)
    made = type_of(type)
    if not made.in_dictionary:
        return ColumnPart(np.array(read, np.int64)[places])
    texts = arrow_arrays.texts(["" if value == made.null else str(value) for value in read])
    missing = (
        np.flatnonzero(np.array([value == made.null for value in read], bool)[places]) if made.nullable else NO_ROWS
    )
    return ColumnPart(_merged(places, texts).with_nulls(missing))


def _merged(places: NDArray[np.int64], texts: pa.Array) -> StagedTexts:
    """Staged texts of which several may be equal: a uuid is written in more than one way."""
    distinct = texts.dictionary_encode()
    return StagedTexts(arrow_arrays.values_of(distinct.indices).astype(np.int64)[places], distinct.dictionary)


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
        values = arrow_arrays.values_of(pc.cast(texts, target))
    except pa.ArrowInvalid:
        return None
    if type == "float":
        if b"+" in data and pc.any(pc.starts_with(texts, "+")).as_py():
            return None
        if any(b"i" not in texts[int(row)].as_py().lower().encode() for row in np.flatnonzero(np.isinf(values))):
            return None
    return cast(NDArray[np.int64], type_of(type).from_numpy(values).stored)
