"""Codes: the int64 that stands for a value in every page, key order and kernel.

A value is first *written* by a user (int, float, str), then *encoded* here, once, on its way in; kernels compare codes
only; on its way out a code is *decoded*. The maps keep the order of the values, so a scan over codes is a scan over
values:

    type       value             code                                             order
    number     int64             itself                                           of the integers
    unsigned   uint64            u XOR 2**63, read as int64                       of the integers
    float      float64           its bits; of a negative one all but the sign     of the floats, -inf first, inf last
                                 inverted; -0.0 is 0.0; NaN refused
    symbol     str               the number a `SymbolTable` gave to the text      none: equality only

    float      -inf                   -1.5                   -5e-324   0.0   1.5                   inf
    code       -0x7ff0000000000001    -0x3ff8000000000001    -2        0     0x3ff8000000000000    0x7ff0000000000000

Every int64 is the code of a number, and of an unsigned: no code is reserved. Not every int64 is the code of a float
(NaNs) or symbol. Bulk maps take and give numpy arrays and do no work per value in Python; the scalar maps are for
single rows and check types exactly: an int is any integer but bool; a float column takes an int that a float64 equals.

numpy is imported by the bulk maps only: a schema is all that `lftj check` needs.
"""

from __future__ import annotations

import numbers
import struct
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeGuard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NUMBER_MIN, NUMBER_MAX = -(1 << 63), (1 << 63) - 1
UNSIGNED_MAX = (1 << 64) - 1
KEY_MIN, KEY_MAX = NUMBER_MIN, NUMBER_MAX
_SIGN = 1 << 63
_LOW_63 = NUMBER_MAX


def is_missing(value: object) -> bool:
    """Whether a Python object spells null: None, pandas' NA, a NaT. NaN does not; it is refused as a float."""
    kind = type(value).__name__
    # numpy's NaT is a value of its types of time, and differs from itself.
    return value is None or kind in ("NAType", "NaTType") or (kind in ("datetime64", "timedelta64") and value != value)


def is_integer(value: object) -> TypeGuard[SupportsIndex]:
    """Whether a Python object is an integer: no bool, and no timedelta64, which numpy takes for one."""
    if type(value) is int:  # nearly always; asking an abstract class takes ten times as long
        return True
    integral = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return integral and type(value).__name__ != "timedelta64"


# --- one float --------------------------------------------------------------------------------------------------------


def float_code(value: float) -> int:
    """The code of a float that is no NaN."""
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ _LOW_63


def float_of(code: int) -> float:
    """The float of a code."""
    value: float = struct.unpack("<d", struct.pack("<q", code if code >= 0 else code ^ _LOW_63))[0]
    return value


# --- whole columns ----------------------------------------------------------------------------------------------------


def encode_unsigned(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Codes of uint64 values; a fresh array."""
    import numpy as np

    codes: NDArray[np.int64] = (values ^ np.uint64(_SIGN)).view(np.int64)
    return codes


def encode_float(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Codes of float64 values without NaN (the caller has looked); a fresh array."""
    import numpy as np

    return _flipped((values + 0.0).view(np.int64))  # + 0.0 turns -0.0 into 0.0 and copies


def decode_unsigned(codes: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Values of unsigned codes; a fresh array."""
    import numpy as np

    return codes.view(np.uint64) ^ np.uint64(_SIGN)


def decode_float(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values of float codes; a fresh array."""
    import numpy as np

    return _flipped(codes).view(np.float64)


def _flipped(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """`bits` with all but the sign of negative ones turned over; a fresh array.

    By masks: where signs are mixed, `numpy.where` takes forty times as long.
    """
    import numpy as np

    mask = bits >> 63
    mask &= np.int64(_LOW_63)
    mask ^= bits
    return mask


def as_codes(values: NDArray[Any]) -> NDArray[np.int64]:
    """`values` as a C-contiguous, writable int64 array, the one form kernels take; copied only if it is not one.

    numba compiles a second version of a kernel for a read-only or strided array, and pyarrow's arrays are read-only.
    """
    import numpy as np

    return np.require(values, dtype=np.int64, requirements=["C", "W"])
