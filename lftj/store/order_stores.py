"""The stores of one relation: of its rows as declared, in other key orders, with scans, and with rounds.

All moments of a relation share them, so that versions of one key order can be compared page by page.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from scantree.memory import Arena
from scantree.scan import Monoid, Scan
from scantree.version import Store


class ScanOrder(NamedTuple):
    """What a scan folds: the column numbered `column`, by `monoid`, with the rows in key order `order`.

    `order` permutes the columns, all of them numbered as declared. Of COUNT, which reads none, `column` is 0.
    """

    order: tuple[int, ...]
    monoid: Monoid
    column: int

    @classmethod
    def of(cls, order: tuple[int, ...], monoid: Monoid, column: int) -> ScanOrder:
        """The one form of what is asked for."""
        return cls(order, monoid, 0 if monoid == Monoid.COUNT else column)


# What a relation may build beside its content, and forget: a key order or a scan.
Built = tuple[int, ...] | ScanOrder
# Of contents whose rows have a round each, which readers do not see (lftj/recursion).
ROUNDS: Literal["rounds"] = "rounds"


class OrderStores:
    """Stores of `arity` columns, made when they are first asked for. `declared`: the key order of the rows as given."""

    __slots__ = ("_arena", "_arity", "_made", "_sizes", "declared")

    def __init__(self, arena: Arena, arity: int, page_rows: int, dir_rows: int) -> None:
        self._arena, self._arity, self._sizes = arena, arity, (page_rows, dir_rows)
        self.declared = tuple(range(arity))
        self._made: dict[Built | str, Store] = {}

    def __contains__(self, built: Built | str) -> bool:
        return built in self._made

    def made(self) -> Collection[Store]:
        """Those that were asked for so far."""
        return self._made.values()

    def of(self, built: Built | Literal["rounds"]) -> Store:
        """The store of a key order, of a scan, or of rounds."""
        found = self._made.get(built)
        if found is None:
            # setdefault: a snapshot in another thread may make the same one, and both must go on with it.
            found = self._made.setdefault(built, self._make(built))
        return found

    def _make(self, built: Built | Literal["rounds"]) -> Store:
        page_rows, dir_rows = self._sizes
        if built == ROUNDS:
            return Store(self._arena, self._arity, 1, page_rows=page_rows, dir_rows=dir_rows, hidden=True)
        scan = None
        if isinstance(built, ScanOrder):
            scan = Scan(built.monoid, built.order.index(built.column) if built.order else 0)
        columns = built.order if isinstance(built, ScanOrder) else built
        return Store(self._arena, len(columns), page_rows=page_rows, dir_rows=dir_rows, scan=scan)
