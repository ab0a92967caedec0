"""A program over texts as one over another type: its texts replaced by values of the type that are in the same order.

It has the same answer, with texts replaced. Programs qualify that only join, compare, negate, group and fold texts,
and compute nothing of them; so the oracles stay with texts and know nothing of the type.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable
from typing import Any

from lftj.values.type_table import type_of
from tests.engine import programs
from tests.mixed import asked
from tests.recursion import programs as recursive_programs
from tests.types.cases import CASES

Row = tuple[Any, ...]
TEXTS = sorted({*programs.DATA["symbol"], *asked.KEYS, *recursive_programs.POOLS["symbol"]})
OTHERS = sorted(set(CASES) - {"symbol", "number", "unsigned", "float", "bool"})
_COMPUTED = re.compile(r"\b(cat |(cat|substr|to_string|strlen|contains|match)\()")
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"')


def qualifies(text: str) -> bool:
    """Whether a program has texts, and computes nothing of them."""
    return ":symbol" in text and not computes(text)


def computes(text: str) -> bool:
    """Whether something is computed of texts."""
    return bool(_COMPUTED.search(text))


class Retyping:
    """Between texts and the values of `type` that stand for them; none for "symbol" itself."""

    def __init__(self, type: str) -> None:
        self.type = type
        self._values: dict[Any, Any] = {text: CASES[type].of(n) for n, text in enumerate(TEXTS)} | {None: None}
        self._texts = {value: text for text, value in self._values.items()}

    def program(self, text: str) -> str:
        """A program over the type."""
        if self.type == "symbol":
            return text
        literal = type_of(self.type).literal
        changed = _TEXT.sub(lambda found: literal(self._values[literal_eval(found[0])]), text)
        return changed.replace(":symbol", f":{self.type}")

    def value(self, value: Any) -> Any:
        """A value of the type for a text; any other value as it is."""
        return self._values[value] if isinstance(value, str) and self.type != "symbol" else value

    def kind(self, type: str) -> str:
        """The type, in the program over texts, of a column of the database."""
        return "symbol" if type.removesuffix("?") == self.type else type

    def values(self, kinds: tuple[str, ...], rows: Iterable[Row]) -> list[Row]:
        """Rows with values of the type for texts; `kinds`: the types of the columns."""
        return self._mapped(self._values, kinds, rows)

    def texts(self, kinds: tuple[str, ...], rows: Iterable[Row]) -> list[Row]:
        """The rows that `values` makes these of."""
        return self._mapped(self._texts, kinds, rows)

    def _mapped(self, values: dict[Any, Any], kinds: tuple[str, ...], rows: Iterable[Row]) -> list[Row]:
        if self.type == "symbol":
            return list(rows)
        return [tuple(values[v] if kind == "symbol" else v for v, kind in zip(row, kinds, strict=True)) for row in rows]
