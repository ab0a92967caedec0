"""What neither `pickle` nor `copy.deepcopy` takes, and the error that says so.

What users hold of a database reads pages and texts of this process's memory, and waits for its locks. A pickle of it
would be all of the database, or nothing; its rows are what another process can be given. `copy.copy` of what never
changes is that itself.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, SupportsIndex

from lftj.errors import ArgumentError


class NotPickled:
    """It is refused where it would be pickled or copied. `_instead`: what to do, as an error says it."""

    __slots__ = ()

    _instead: ClassVar[str]

    def _described(self) -> str:
        """What the error calls it."""
        return f"a {type(self).__name__}"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """What pickling and copying ask: refused."""
        raise ArgumentError(
            f"{self._described()} can be neither pickled nor copied",
            why="it lies in the memory of this process, in pages and texts that it shares with others",
            remedy=self._instead,
        )


class Unchanging(NotPickled):
    """The same of what never changes: a shallow copy is it itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self
