"""The types of numbers: `number` (int64), `unsigned` (uint64) and `float` (float64)."""

from __future__ import annotations

import math
import numbers
import operator
import re
from typing import TYPE_CHECKING, Any

from lftj.values import codes as maps
from lftj.values import faults
from lftj.values.codes import NUMBER_MAX, NUMBER_MIN, UNSIGNED_MAX
from lftj.values.spelling import float_text
from lftj.values.value_type import FLOAT, NUMBER, UNSIGNED, Misfit, Read, ValueType

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_INTEGER = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|(?i:inf|infinity))")
_NAN = re.compile(r"(?i)[-+]?nan")
_EXACT_IN_FLOAT = 1 << 53


class _Numeric(ValueType):
    """What the three have in common: bulk maps over arrays of one dtype."""

    def wrong(self, value: object) -> Misfit:
        """The misfit of a value of another kind."""
        return Misfit(faults.of_kind(self, value))

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_integer(given))

    def from_arrow(self, array: pa.Array) -> Read:
        return self.from_numpy(array.to_numpy(zero_copy_only=False))

    def to_arrow(self, stored: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> pa.Array:
        from lftj.values.arrow_arrays import numbers

        return numbers(self.to_numpy(stored), mask)

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        return given.kind in "iu"


class Number(_Numeric):
    """Integers of 64 bits; a number is its own code."""

    family, storage, dtype = NUMBER, NUMBER, "int64"
    takes = f"a number is an integer from {NUMBER_MIN} to {NUMBER_MAX}"
    spelled = f"{takes}: digits, an optional '-', nothing else"
    article, python = "a number", "int"

    def read(self, value: object) -> int:
        if not maps.is_integer(value):
            raise self.wrong(value)
        integer = operator.index(value)
        if not NUMBER_MIN <= integer <= NUMBER_MAX:
            raise Misfit(faults.out_of_range(self, integer))
        return integer

    def shown(self, stored: int) -> int:
        return int(stored)

    def parse(self, text: str) -> int:
        integer = _integer(text, self)
        if not NUMBER_MIN <= integer <= NUMBER_MAX:
            raise Misfit(faults.out_of_range(self, integer))
        return integer

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.int64()

    def from_numpy(self, values: NDArray[Any]) -> Read:
        import numpy as np

        wide = values.dtype.kind == "u" and values.dtype.itemsize == 8
        return Read(values.astype(np.int64), values > np.uint64(NUMBER_MAX) if wide else None)

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return codes


class Unsigned(_Numeric):
    """Integers from 0 of 64 bits; 0 has the least code, so null has the greatest."""

    family, storage, dtype = UNSIGNED, UNSIGNED, "uint64"
    takes = f"an unsigned is an integer from 0 to {UNSIGNED_MAX}"
    spelled = f"{takes}: digits, nothing else"
    article, python = "an unsigned", "int"
    null = NUMBER_MAX

    def read(self, value: object) -> int:
        if not maps.is_integer(value):
            raise self.wrong(value)
        integer = operator.index(value)
        if not 0 <= integer <= UNSIGNED_MAX:
            raise Misfit(faults.out_of_range(self, integer))
        return integer + NUMBER_MIN

    def shown(self, stored: int) -> int:
        return int(stored) - NUMBER_MIN

    def parse(self, text: str) -> int:
        integer = _integer(text, self)
        if text.startswith("-") and not integer:
            raise Misfit(faults.not_spelled(self))
        if not 0 <= integer <= UNSIGNED_MAX:
            raise Misfit(faults.out_of_range(self, integer))
        return integer + NUMBER_MIN

    def literal(self, value: Any) -> str:
        return f"{value}u"

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.uint64()

    def from_numpy(self, values: NDArray[Any]) -> Read:
        import numpy as np

        return Read(maps.encode_unsigned(values.astype(np.uint64)), values < 0 if values.dtype.kind == "i" else None)

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return maps.decode_unsigned(codes)


class Float(_Numeric):
    """Floats of 64 bits without NaN."""

    family, storage, dtype = FLOAT, FLOAT, "float64"
    takes = "a float is a 64-bit floating-point number; NaN is not a key"
    spelled = "a float is written like 15, -1.5, 2e-3 or inf, without spaces or a leading '+'"
    article, python = "a float", "float"

    def read(self, value: object) -> int:
        return maps.float_code(self._checked(value))

    def shown(self, stored: int) -> float:
        return maps.float_of(int(stored))

    def parse(self, text: str) -> int:
        if not _FLOAT.fullmatch(text):
            raise Misfit(faults.nan() if _NAN.fullmatch(text) else faults.not_spelled(self))
        value = float(text)
        if math.isinf(value) and "i" not in text.lower():
            raise Misfit(faults.float_overflow())
        return maps.float_code(value)

    def text(self, value: float) -> str:
        return float_text(value)

    def literal(self, value: Any) -> str:
        return float_text(float(value))

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.float64()

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_integer(given) or kinds.is_floating(given))

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        return given.kind in "iu" or (given.kind == "f" and given.itemsize <= 8)

    def from_numpy(self, values: NDArray[Any]) -> Read:
        import numpy as np

        misfits: NDArray[np.bool_] | None = None
        if values.dtype.kind == "f":
            misfits = np.isnan(values)
        elif values.dtype.itemsize == 8:
            misfits = _inexact(values)
        with np.errstate(over="ignore", invalid="ignore"):
            return Read(maps.encode_float(values.astype(np.float64)), misfits)

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return maps.decode_float(codes)

    def _checked(self, value: object) -> float:
        if maps.is_integer(value):
            integer = operator.index(value)
            try:
                result = float(integer)
            except OverflowError:
                raise Misfit(faults.inexact()) from None
            if int(result) != integer:
                raise Misfit(faults.inexact())
            return result
        # numpy's float16 and float32 are no float to Python but Real by name; Fraction is Real too, Decimal not even
        # that.
        if not isinstance(value, float) and not (
            isinstance(value, numbers.Real) and faults.kind_of(value) in ("float16", "float32")
        ):
            raise self.wrong(value)
        result = float(value)
        if math.isnan(result):
            raise Misfit(faults.nan())
        return result


def _integer(text: str, type: ValueType) -> int:
    """The integer that a text writes in decimal digits."""
    if not _INTEGER.fullmatch(text):
        raise Misfit(faults.not_spelled(type))
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > 20:  # longer than any int64 or uint64, and int() refuses thousands of digits
        raise Misfit(faults.out_of_range(type))
    return -int(digits) if text.startswith("-") else int(digits)


def _inexact(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Integers that no float64 equals. Those beyond 2**53 are looked at one by one: near 2**64 numpy wraps."""
    import numpy as np

    inexact = (values > _EXACT_IN_FLOAT) | (values < -_EXACT_IN_FLOAT if values.dtype.kind == "i" else False)
    for row in np.flatnonzero(inexact):
        integer = int(values[row])
        inexact[row] = int(float(integer)) != integer
    return inexact
