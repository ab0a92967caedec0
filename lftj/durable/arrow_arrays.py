"""Arrow arrays of numbers and of texts, made of their buffers: `pa.array` imports pandas, which takes 0.3 seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def numbers(column: npt.NDArray[Any]) -> pa.Array:
    """An array of integers, none of which is null; it shares the memory of a contiguous column."""
    import pyarrow as pa

    type = pa.int8() if column.dtype == np.int8 else pa.int64()
    return pa.Array.from_buffers(type, len(column), [None, pa.py_buffer(np.ascontiguousarray(column))], null_count=0)


def texts(given: Sequence[str]) -> pa.Array:
    """An array of texts, large_string."""
    import pyarrow as pa

    parts = [text.encode() for text in given]
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(pa.large_string(), len(parts), buffers, null_count=0)
