"""The type `bool`: false and true, coded 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lftj.values import faults
from lftj.values.value_type import Misfit, Read, ValueType

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_WORDS = {"true": 1, "false": 0, "1": 1, "0": 0}


class Bool(ValueType):
    """Truth values."""

    family, dtype = "bool", "bool"
    takes = "a bool is true or false"
    spelled = "a bool is written true or false (or 1 or 0)"
    article, python = "a bool", "bool"
    low, high = 0, 1

    def read(self, value: object) -> int:
        if not isinstance(value, bool) and faults.kind_of(value) != "bool":
            raise Misfit(faults.of_kind(self, value))
        return int(bool(value))

    def shown(self, stored: int) -> bool:
        return bool(stored)

    def parse(self, text: str) -> int:
        if (found := _WORDS.get(text.lower())) is None:
            raise Misfit(faults.not_spelled(self))
        return found

    def text(self, value: Any) -> str:
        return "true" if value else "false"

    def literal(self, value: Any) -> str:
        return self.text(value)

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.bool_()

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_boolean(given))

    def from_arrow(self, array: pa.Array) -> Read:
        import numpy as np

        return Read(array.to_numpy(zero_copy_only=False).astype(np.int64))

    def to_arrow(self, stored: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> pa.Array:
        from lftj.values.arrow_arrays import flags

        return flags(stored != 0, mask)

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        return given.kind == "b"

    def from_numpy(self, values: NDArray[Any]) -> Read:
        import numpy as np

        return Read(values.astype(np.int64))

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        found: NDArray[Any] = codes != 0
        return found
