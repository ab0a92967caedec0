"""Arrow arrays made of their buffers, and read so.

`pa.array`, `to_numpy` and, before pyarrow 26, `to_pandas_dtype` import pandas where it is installed, which takes 0.3
seconds of a process that has no use for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Mask = npt.NDArray[np.bool_]


def numbers(column: npt.NDArray[Any], mask: Mask | None = None) -> pa.Array:
    """An array of a column [n] of integers or floats, null where `mask` [n] is true; it shares contiguous memory."""
    import pyarrow as pa

    type = pa.from_numpy_dtype(column.dtype)
    return pa.Array.from_buffers(type, len(column), [_valid(mask), pa.py_buffer(np.ascontiguousarray(column))])


def flags(column: Mask, mask: Mask | None = None) -> pa.Array:
    """An array of bool, of a column [n], null where `mask` [n] is true."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(column), [_valid(mask), _bits(column)])


def texts(given: Sequence[str]) -> pa.Array:
    """An array of large_string; UnicodeError if a text has no UTF-8."""
    import pyarrow as pa

    together = "".join(given)
    data = together.encode()
    lengths = map(len, given) if len(data) == len(together) else (len(text.encode()) for text in given)
    ends = np.zeros(len(given) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(given)), out=ends[1:])
    return pa.Array.from_buffers(pa.large_string(), len(given), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def values_of(array: pa.Array) -> npt.NDArray[Any]:
    """The integers or floats [n] of an array in which nothing is null, read-only: they share its memory."""
    import pyarrow as pa

    type = array.type
    kind = "f" if pa.types.is_floating(type) else "i" if pa.types.is_signed_integer(type) else "u"
    dtype = np.dtype(f"{kind}{type.bit_width // 8}")
    if not len(array):  # of which there may be no buffer
        return np.empty(0, dtype)
    values = np.frombuffer(array.buffers()[1], dtype)
    return values[array.offset : array.offset + len(array)]


def _valid(mask: Mask | None) -> pa.Buffer | None:
    return None if mask is None else _bits(~mask)


def _bits(column: Mask) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(column, bitorder="little"))


def joins_wrongly(type: pa.DataType) -> bool:
    """Whether Arrow gives other values where it joins chunks of this type: of half floats, each with its dictionary."""
    import pyarrow.types as kinds

    return bool(kinds.is_dictionary(type) and kinds.is_float16(type.value_type))
