"""What is known of one functor: its types, its documentation, and how it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lftj.language.typed_functors import Overload, ResultOf
from lftj.language.types import ANY, NUMERIC, SYMBOL
from lftj.values.type_table import family_of

SAME = "T"
EACH = "any"


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that is known of one functor; a functor over texts needs no other entry.

    `doc` is one line, `example` a comparison that holds. A `variadic` functor takes one argument or more, all of its
    last parameter's type.

    How it is evaluated: `text`, a function of Python values, where an argument or the result is a symbol; it raises
    `ValueError`, which says why, where it has no value. Else `opcode`, the name of its operation in
    `lftj/join/expression_vm.py`; a functor with neither converts between two types, which tell the operation.

    `kernel`: the types of the first argument for which it is a conversion or an operation, though it has a `text`.
    `overloads`: what it means for other types than those of `domain`. `result_of`: the type of its result, where
    that depends on the arguments. `on_clocks`: it reads the clocks of a timestamp's zone.

    `partial`: the types of the first argument for which it may have no value. If `total_with` is given and the types
    are integers, it has one with every second argument for which that holds.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    doc: str
    example: str
    domain: frozenset[str] = ANY
    variadic: bool = False
    opcode: str = ""
    text: Callable[..., object] | None = None
    partial: frozenset[str] = frozenset()
    total_with: Callable[[int], bool] | None = None
    overloads: tuple[Overload, ...] = ()
    kernel: frozenset[str] = frozenset()
    result_of: ResultOf | None = None
    on_clocks: bool = False

    def accepts(self, count: int) -> bool:
        """Whether the functor can be applied to `count` arguments."""
        return count >= 1 if self.variadic else count == len(self.parameters)

    def parameter(self, position: int) -> str:
        """The type of the argument at `position` (from 0)."""
        return self.parameters[min(position, len(self.parameters) - 1)]

    def computes_text(self, first: str) -> bool:
        """Whether it needs or makes texts, which kernels do not see, when its first argument has type `first`."""
        return self.text is not None and family_of(first) not in self.kernel

    def overload(self, types: Sequence[str]) -> Overload | None:
        """The overload for arguments of these types, if there is one."""
        families = tuple(map(family_of, types))
        return next((found for found in self.overloads if found.parameters == families), None)

    def may_fail(self, types: Sequence[str]) -> bool:
        """Whether it may have no value for arguments of these types."""
        found = self.overload(types)
        return found.partial if found is not None else family_of(types[0]) in self.partial

    def shapes(self) -> list[str]:
        """The types of its arguments and its result: of `domain` first, then what else it means."""
        first = f"{', '.join(self.parameters)}{', ...' if self.variadic else ''} -> {self.result}"
        plain = [] if self.on_clocks or (self.overloads and not self.domain & NUMERIC and not self.text) else [first]
        return [*plain, *map(str, self.overloads if self.text is None else ())]

    @property
    def depends_on_types(self) -> bool:
        """Whether what it gives depends on the types of its arguments, beyond that it is of the same type."""
        return bool(self.overloads) or self.result == EACH

    @property
    def mostly_texts(self) -> bool:
        """Whether it computes with texts, or converts to another type, which mostly is from one."""
        return self.text is not None and not {SYMBOL, EACH}.isdisjoint((self.result, *self.parameters))

    def __str__(self) -> str:
        dots = ", ..." if self.variadic else ""
        return f"{self.name}({', '.join(self.parameters)}{dots}):{self.result}"
