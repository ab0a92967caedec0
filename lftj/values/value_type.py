"""A value type: everything that the tree asks of one type of columns; `type_table.py` has the table of all.

A value is *read* (checked, and turned into what is stored: a code, or for types of the dictionary a text), and what is
stored is *shown* as a value again. The rest asks here for words of messages, for the text of fields and literals, and
for the Arrow and numpy forms of whole columns; nothing else tells types apart by their names.

numpy and pyarrow are imported by the maps of columns only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from lftj.values.codes import NUMBER_MAX, NUMBER_MIN
from lftj.values.faults import Fault

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

NUMBER, UNSIGNED, FLOAT, SYMBOL = "number", "unsigned", "float", "symbol"


class Misfit(Exception):
    """A value that its type does not hold; `fault` says why. Who knows the place turns it into an error."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.reason)


class Read(NamedTuple):
    """A column that was read: `stored` int64[n] codes or an Arrow array of texts, `misfits` bool[n] or None if none."""

    stored: Any
    misfits: NDArray[np.bool_] | None = None


class ValueType:
    """One type. A subclass says how its values are read and shown; an instance is one type with its parameters.

    `storage`: how codes are compared and added, "number", "unsigned", "float" or, in the dictionary, "symbol" ·
    `family`: the name without parameters · `low`, `high`: the codes of its least and greatest value · `dtype`: of the
    numpy arrays it is given out in · `takes`, `spelled`, `article`, `python`: words of messages.
    """

    family: str
    storage: ClassVar[str] = NUMBER
    dtype: str = "object"
    takes: str = ""
    spelled: str = ""
    article: str = ""
    python: str = ""
    low: int = NUMBER_MIN
    high: int = NUMBER_MAX
    null: int = NUMBER_MIN
    nullable: bool = False

    @classmethod
    def of(cls, parameters: tuple[str, ...]) -> ValueType:
        """The type with these parameters, as the name has them; `ValueError` says why there is none."""
        if parameters:
            raise ValueError("it takes no parameters")
        return cls()

    @property
    def plain(self) -> str:
        """The name without `?`."""
        return self.family

    @property
    def name(self) -> str:
        """The name as a declaration writes it."""
        return f"{self.plain}?" if self.nullable else self.plain

    @property
    def in_dictionary(self) -> bool:
        """Whether its codes are numbers of texts, which keep no order."""
        return self.storage == SYMBOL

    # One value

    def read(self, value: object) -> int | str:
        """The code of a value, or its text in the dictionary; `Misfit` if the type does not hold it."""
        raise NotImplementedError

    def shown(self, stored: Any) -> Any:
        """The Python value of a code, or of a text of the dictionary."""
        raise NotImplementedError

    # Text

    def parse(self, text: str) -> int | str:
        """What is stored for the text of a field; `Misfit` if it is none of the type."""
        raise NotImplementedError

    def text(self, value: Any) -> str:
        """The shortest text of a value that `parse` reads back."""
        return str(value)

    def literal(self, value: Any) -> str:
        """A value as a constant of rule text."""
        return str(value)

    def constant(self, value: object) -> Any:
        """A value of Python as a constant of a rule; `Misfit` if it is none of the type."""
        return self.shown(self.read(value))

    def constant_of(self, text: str) -> Any:
        """The constant that a text writes."""
        return self.shown(self.parse(text))

    def known(self, stored: Any) -> Any:
        """The value of a constant whose type is known, which equals no other one's."""
        return self.shown(stored)

    # Columns

    def arrow_type(self) -> pa.DataType:
        """The Arrow type in which columns are given out."""
        raise NotImplementedError

    def fits_arrow(self, given: pa.DataType) -> bool:
        """Whether a column of that Arrow type may be read as this one."""
        raise NotImplementedError

    def from_arrow(self, array: pa.Array) -> Read:
        """A column of an Arrow type that fits, without nulls."""
        raise NotImplementedError

    def to_arrow(self, stored: Any, mask: NDArray[np.bool_] | None) -> pa.Array:
        """The Arrow column of codes int64[n], or of texts; null where `mask` says so."""
        raise NotImplementedError

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        """Whether an array of that dtype may be read as this type; of objects each is looked at."""
        return False

    def from_numpy(self, values: NDArray[Any]) -> Read:
        """An array of a dtype that fits."""
        raise NotImplementedError

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """The array, of `dtype`, of codes of values (none of which is null)."""
        import numpy as np

        out = np.empty(len(codes), object)
        out[:] = [self.shown(code) for code in codes.tolist()]
        return out

    def values(self, codes: NDArray[np.int64]) -> list[Any]:
        """The Python values of codes, none of which is null; of types that are not in the dictionary."""
        if self.dtype == "object":
            return [self.shown(code) for code in codes.tolist()]
        values: list[Any] = self.to_numpy(codes).tolist()
        return values

    # Folds

    def summed(self, total: int) -> Any:
        """The sum of values whose codes have the sum `total`, whether the type holds it or not."""
        return total

    def averaged(self, total: int, count: int) -> Any:
        """The mean of `count` values whose codes have the sum `total`."""
        return total / count

    def __str__(self) -> str:
        return self.name
