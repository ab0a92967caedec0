"""A stored relation: its facts, its content, and its content in every key order that somebody needed.

    facts      rows that were loaded, inserted or written in the program text, in declared column order
    content    facts and derived rows together; the same version as the facts where no rule derives the relation
    orders     key order (permutation of the columns) -> the content, its columns permuted and sorted so

A stored relation never gets other rows: a change makes its *successor*, which takes its place in the next state of the
database (state.py), and versions handed out before stay readable. What may be added is a key order: it is built the
first time a plan asks for it and shared by all rules; a successor has it too, by batch update where the change is
small, else it is dropped (and built again when next asked for).
"""

from __future__ import annotations

import weakref
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from lftj.engine.change import Change
from lftj.plan.statistics import Statistics
from lftj.values.codes import Schema
from scantree.memory import Arena, ArenaFullError
from scantree.version import Store, Version

Rows = npt.NDArray[np.int64]

# A batch larger than this part of the relation is cheaper to sort in than to insert.
SMALL_PART = 1 / 8


class StoredRelation:
    """One relation of a database at one moment. `page_rows` and `dir_rows` are forced tiny by tests."""

    __slots__ = (
        "__weakref__",
        "_arena",
        "_declared",
        "_orders",
        "_sizes",
        "_statistics",
        "_stores",
        "arity",
        "content",
        "facts",
        "name",
        "numbers",
        "schema",
        "types",
    )

    def __init__(self, schema: Schema, arena: Arena, *, page_rows: int = 256, dir_rows: int = 64) -> None:
        self.schema, self.name, self.arity = schema, schema.name, schema.arity
        self.types = schema.types
        self.numbers = set(self.types) == {"number"}
        self._arena, self._sizes = arena, (page_rows, dir_rows)
        self._declared = tuple(range(self.arity))
        self._stores: dict[tuple[int, ...], Store] = {}
        self.facts: Version = self._store(self._declared).empty()
        self.content: Version = self.facts
        self._orders: dict[tuple[int, ...], Version] = {self._declared: self.facts}
        self._statistics: Statistics | None = None

    def _with(self, facts: Version, orders: dict[tuple[int, ...], Version]) -> StoredRelation:
        made = StoredRelation.__new__(StoredRelation)
        made.schema, made.name, made.arity = self.schema, self.name, self.arity
        made.types, made.numbers = self.types, self.numbers
        made._arena, made._sizes, made._declared, made._stores = self._arena, self._sizes, self._declared, self._stores
        made.facts, made._orders, made.content = facts, orders, orders[self._declared]
        made._statistics = None
        return made

    def _store(self, order: tuple[int, ...]) -> Store:
        if order not in self._stores:
            page_rows, dir_rows = self._sizes
            # setdefault: a snapshot in another thread may make the same one, and both must go on with it.
            made = Store(self._arena, self.arity, page_rows=page_rows, dir_rows=dir_rows)
            return self._stores.setdefault(order, made)
        return self._stores[order]

    def __len__(self) -> int:
        return len(self.content)

    @property
    def orders(self) -> dict[tuple[int, ...], Version]:
        """The key orders that are built."""
        return self._orders

    @property
    def statistics(self) -> Statistics:
        """What the planner may know of the present content."""
        if self._statistics is None:
            # A proxy: a cycle would keep the pages of old states until the garbage collector runs.
            self._statistics = Statistics(weakref.proxy(self))
        return self._statistics

    def order(self, columns: tuple[int, ...]) -> Version:
        """The content in a key order, built at the first call."""
        if columns not in self._orders:
            rows = self.content.columns()
            self._orders[columns] = self._store(columns).build([rows[c] for c in columns], count=rows.shape[1])
        return self._orders[columns]

    def forget(self, columns: tuple[int, ...]) -> None:
        """Drop a secondary key order; it is built again if somebody asks for it."""
        if columns != self._declared:
            self._orders.pop(columns, None)

    def build(self, rows: Rows, count: int | None = None) -> Version:
        """A version of the relation with the given rows int64[arity, n]; not published."""
        return self._store(self._declared).build(list(rows), count=rows.shape[1] if count is None else count)

    def assemble(self, chunks: list[Rows], *, in_order: bool) -> Version:
        """A version of the rows of all chunks int64[arity, n]; not published.

        `in_order`: they are sorted and distinct.
        """
        if in_order:
            return self._store(self._declared).assemble(chunks)
        rows = np.concatenate(chunks, axis=1) if chunks else np.empty((self.arity, 0), np.int64)
        chunks.clear()
        return self.build(rows)

    def with_facts(self, rows: Rows, count: int) -> Version:
        """The facts and `count` more rows int64[arity, count], in any order; not published."""
        if len(self.facts) and count < SMALL_PART * len(self.facts):
            version, _ = self.facts.update(
                rows if self.arity else np.empty((0, count), np.int64), np.ones(count, np.int8)
            )
            return version
        if len(self.facts):
            rows = np.concatenate([self.facts.columns(), rows], axis=1)
            count = rows.shape[1] if self.arity else count + len(self.facts)
        return self.build(rows, count)

    def successor(self, content: Version, facts: Version | None = None, change: Change | None = None) -> StoredRelation:
        """The relation after its content has become `content` (and its facts `facts`); this one stays as it is.

        `change` is the difference of the contents, if it is known. Secondary key orders follow, or go.
        """
        facts = self.facts if facts is None else facts
        if content is self.content:
            return self._with(facts, self._orders)
        orders = {self._declared: content}
        if len(self._orders) > 1 and abs(len(content) - len(self)) < SMALL_PART * len(self):
            if change is None:
                delta = self.content.delta(content)
                change = Change(delta.rows, delta.kinds)
            if len(change.kinds) < SMALL_PART * len(content):
                # Without the memory for an order it goes, as with a large change; who asks for it again is told.
                with suppress(ArenaFullError):
                    for order, before in list(self._orders.items()):
                        if order != self._declared:
                            orders[order], _ = before.update(change.rows[list(order)], change.kinds)
        return self._with(facts, orders)

    def frozen(self) -> StoredRelation:
        """The same rows for a reader in another thread: key orders that either builds are its own."""
        return self._with(self.facts, self._orders.copy())

    def memory(self) -> dict[tuple[int, ...], int]:
        """Bytes of pages per key order."""
        return {order: version.memory() for order, version in list(self._orders.items())}
