"""The types whose values are kept in the dictionary of texts: `symbol`, `uuid` and `bytes`.

Each value is one text there, and the order of the texts is that of the values: the 36 characters of a uuid in lower
case compare as its bytes do, and so do texts of one character (U+0000 to U+00FF) per byte.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from lftj.values import faults
from lftj.values.spelling import symbol_text
from lftj.values.value_type import SYMBOL, Misfit, Read, ValueType

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# What `uuid.UUID` reads beside that, but for what only `int` takes for hexadecimal digits.
_OTHER_UUID = re.compile(r"(urn:uuid:)?\{?([0-9a-fA-F]-?){32}\}?")
_PAIRS = re.compile(r"([0-9a-fA-F]{2})*")
_UUID_BYTES = 16


class Symbols(ValueType):
    """Texts."""

    family, storage = SYMBOL, SYMBOL
    takes = "a symbol is text (str)"
    article, python = "a symbol", "str"

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise Misfit(faults.of_kind(self, value))
        text = str.__str__(value)  # a subclass, as of an enumeration, may show itself as something else
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise Misfit(faults.surrogate()) from None
        return text

    def shown(self, stored: str) -> str:
        return stored

    def parse(self, text: str) -> str:
        return text

    def literal(self, value: Any) -> str:
        return symbol_text(str(value))

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.string()

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_string(given) or kinds.is_large_string(given) or kinds.is_string_view(given))

    def from_arrow(self, array: pa.Array) -> Read:
        import pyarrow as pa

        return Read(array.cast(pa.large_string()))

    def to_arrow(self, stored: Any, mask: NDArray[np.bool_] | None) -> pa.Array:
        return stored

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        return given.kind in "UT"


class Uuid(ValueType):
    """Universally unique identifiers (RFC 9562), given as `uuid.UUID`, 16 bytes or text."""

    family, storage = "uuid", SYMBOL
    takes = "a uuid has 128 bits"
    spelled = "a uuid is written in hexadecimal digits, like 123e4567-e89b-12d3-a456-426614174000"
    article, python = "a uuid", "uuid.UUID"

    def read(self, value: object) -> str:
        if isinstance(value, uuid.UUID):
            return str(value)
        if isinstance(value, str):
            return self.parse(value)
        if isinstance(value, bytes) and len(value) == _UUID_BYTES:
            return str(uuid.UUID(bytes=value))
        raise Misfit(faults.of_kind(self, value))

    def shown(self, stored: str) -> uuid.UUID:
        return uuid.UUID(stored)

    def parse(self, text: str) -> str:
        if _UUID.fullmatch(text):
            return text
        if not _OTHER_UUID.fullmatch(text):
            raise Misfit(faults.not_spelled(self))
        return str(uuid.UUID(text))

    def literal(self, value: Any) -> str:
        return f'@"{value}"'

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.uuid()

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow as pa

        if isinstance(given, pa.BaseExtensionType):
            return bool(given.storage_type == pa.binary(_UUID_BYTES))
        return Symbols().fits_arrow(given) or Bytes().fits_arrow(given)

    def from_arrow(self, array: pa.Array) -> Read:
        import pyarrow as pa

        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        return _texts(self, array.to_pylist())

    def to_arrow(self, stored: Any, mask: NDArray[np.bool_] | None) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        digits = pc.replace_substring(stored, "-", "")
        values = [None if text is None else bytes.fromhex(text) for text in digits.to_pylist()]
        return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(_UUID_BYTES)))


class Bytes(ValueType):
    """Strings of bytes, of any length."""

    family, storage = "bytes", SYMBOL
    takes = "a value of type bytes is a string of bytes"
    spelled = "bytes are written as pairs of hexadecimal digits, like 00ff"
    article, python = "bytes", "bytes"

    def read(self, value: object) -> str:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise Misfit(faults.of_kind(self, value))
        return bytes(value).decode("latin-1")

    def shown(self, stored: str) -> bytes:
        return stored.encode("latin-1")

    def parse(self, text: str) -> str:
        if not _PAIRS.fullmatch(text):
            raise Misfit(faults.not_spelled(self))
        return bytes.fromhex(text).decode("latin-1")

    def text(self, value: bytes) -> str:
        return value.hex()

    def literal(self, value: Any) -> str:
        return f'@x"{value.hex()}"'

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.binary()

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(
            kinds.is_binary(given)
            or kinds.is_large_binary(given)
            or kinds.is_binary_view(given)
            or kinds.is_fixed_size_binary(given)
        )

    def from_arrow(self, array: pa.Array) -> Read:
        return _texts(self, array.to_pylist())

    def to_arrow(self, stored: Any, mask: NDArray[np.bool_] | None) -> pa.Array:
        import pyarrow as pa

        return pa.array([None if text is None else text.encode("latin-1") for text in stored.to_pylist()], pa.binary())

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        return False  # numpy cuts the NULs at the end of its own byte strings


def _texts(type: ValueType, values: list[Any]) -> Read:
    """The texts of values read one by one, as a large_string array; "" for misfits."""
    import numpy as np
    import pyarrow as pa

    texts, misfits = [""] * len(values), np.zeros(len(values), bool)
    for row, value in enumerate(values):
        try:
            texts[row] = str(type.read(value))
        except Misfit:
            misfits[row] = True
    return Read(pa.array(texts, pa.large_string()), misfits)
