"""The types `decimal(p, s)`: exact numbers of up to p digits, s of them behind the point, coded as the value * 10**s.

At most 18 digits, which int64 holds. Numbers of one scale have comparable codes whatever their precision, so arithmetic
and comparisons ask for one scale only. Integers and decimals of any precision are read where they fit exactly; floats
never, since 0.1 is none.
"""

from __future__ import annotations

import decimal
import operator
import re
from typing import TYPE_CHECKING, Any

from lftj.values import faults
from lftj.values.codes import is_integer
from lftj.values.value_type import Misfit, Read, ValueType

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

DIGITS = 18
FAMILY = "decimal"
_TEXT = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)")
_EXACT = decimal.Context(prec=100, traps=[decimal.Inexact])


class Decimals(ValueType):
    """`decimal(p, s)`."""

    family, python = FAMILY, "decimal.Decimal"

    def __init__(self, precision: int = DIGITS, scale: int = 0) -> None:
        self.precision, self.scale = precision, scale
        self.high = 10**precision - 1
        self.low = -self.high
        self.article = f"a {self.plain}"
        self.takes = f"{self.plain} holds up to {precision} digits, {scale} of them behind the point"
        self.spelled = f"{self.takes}, written like {self.text(decimal.Decimal(-15).scaleb(-min(scale, 1)))}"

    @classmethod
    def of(cls, parameters: tuple[str, ...]) -> Decimals:
        if not parameters or len(parameters) > 2 or not all(p.isdecimal() for p in parameters):
            raise ValueError("it takes the number of its digits, and how many of them stand behind the point")
        precision, scale = int(parameters[0]), int(parameters[1]) if len(parameters) > 1 else 0
        if not 1 <= precision <= DIGITS:
            raise ValueError(f"it has from 1 to {DIGITS} digits, which 64 bits hold")
        if scale > precision:
            raise ValueError("it cannot have more digits behind the point than it has digits")
        return cls(precision, scale)

    @property
    def plain(self) -> str:
        return f"{FAMILY}({self.precision},{self.scale})"

    def read(self, value: object) -> int:
        if not isinstance(value, decimal.Decimal) and not is_integer(value):
            raise Misfit(faults.of_kind(self, value))
        exact = value if isinstance(value, decimal.Decimal) else decimal.Decimal(operator.index(value))
        if not exact.is_finite():
            raise Misfit(
                faults.nan() if exact.is_nan() else faults.Fault("is infinite", self.takes, "correct the value")
            )
        return self._code(exact)

    def _code(self, exact: decimal.Decimal) -> int:
        if not exact:
            return 0
        if exact.adjusted() > 2 * DIGITS:
            raise Misfit(self._too_large())
        try:
            scaled = exact.scaleb(self.scale, _EXACT)
            code = int(scaled)
        except decimal.Inexact:  # it has more digits than the context keeps
            code = 0
        if not code or code != scaled:  # or it is so small that its multiple is none
            raise Misfit(
                faults.Fault(f"has more than {self.scale} digits behind the point", self.takes, "round it first")
            )
        if not self.low <= code <= self.high:
            raise Misfit(self._too_large())
        return code

    def _too_large(self) -> faults.Fault:
        return faults.Fault(f"does not fit into {self.plain}", self.takes, f"declare more digits, up to {DIGITS}")

    def shown(self, stored: int) -> decimal.Decimal:
        return decimal.Decimal(int(stored)).scaleb(-self.scale, _EXACT)

    def parse(self, text: str) -> int:
        if not _TEXT.fullmatch(text):
            raise Misfit(faults.not_spelled(self))
        return self._code(decimal.Decimal(text))

    def text(self, value: Any) -> str:
        return f"{value:f}"

    def literal(self, value: Any) -> str:
        return f"{value:f}d"

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.decimal128(self.precision, self.scale)

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_decimal(given) or kinds.is_integer(given))

    def from_arrow(self, array: pa.Array) -> Read:
        import numpy as np
        import pyarrow as pa
        import pyarrow.types as kinds

        if kinds.is_decimal128(array.type) and array.type.scale == self.scale:
            halves = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
            codes, upper = halves[::2].copy(), halves[1::2]
            if len(codes) and codes.min() >= 0 and codes.max() <= self.high and not upper.any():
                return Read(codes)  # the way of most columns, with least to look at
            misfits = (upper != codes >> 63) | (codes < self.low) | (codes > self.high)
            return Read(codes, misfits if misfits.any() else None)
        try:  # another width or scale, which Arrow converts if every value stays as it is
            return self.from_arrow(array.cast(pa.decimal128(38, self.scale)))
        except pa.ArrowInvalid:
            return read_each(self, array.to_pylist())

    def to_arrow(self, stored: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        halves = np.empty(2 * len(stored), np.int64)
        halves[::2], halves[1::2] = stored, stored >> 63
        valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
        return pa.Array.from_buffers(self.arrow_type(), len(stored), [valid, pa.py_buffer(halves)])

    def summed(self, total: int) -> decimal.Decimal:
        return self.shown(total)

    def averaged(self, total: int, count: int) -> float:
        mean: float = total / (count * 10**self.scale)
        return mean

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        return given.kind in "iu"

    def from_numpy(self, values: NDArray[Any]) -> Read:
        return read_each(self, values.tolist())


def read_each(type: ValueType, values: list[Any]) -> Read:
    """Values of Python, read one by one."""
    import numpy as np

    codes, misfits = np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    for row, value in enumerate(values):
        try:
            codes[row] = type.read(value)
        except Misfit:
            misfits[row] = True
    return Read(codes, misfits)
