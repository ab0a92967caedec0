"""A stored relation: its facts, its content, and its content in every key order that somebody needed.

    facts      rows that were loaded, inserted or written in the program text, in declared column order
    content    facts and derived rows together; the same version as the facts where no rule derives the relation
    orders     key order (permutation of the columns) -> the content, its columns permuted and sorted so

A secondary key order is built the first time a plan asks for it and shared by all rules; after that every change of
the content goes into it too, by batch update where the change is small, else by dropping it (it is rebuilt when next
asked for). Content is replaced only as a whole, by `publish`, when everything it needs has been computed; versions
handed out before stay readable.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from lftj.plan.statistics import Statistics
from lftj.values.codes import Schema
from scantree.memory import Arena, ArenaFullError
from scantree.version import Store, Version

Rows = npt.NDArray[np.int64]

# A batch larger than this part of the relation is cheaper to sort in than to insert.
SMALL_PART = 1 / 8


class StoredRelation:
    """One relation of a database. `page_rows` and `dir_rows` are forced tiny by tests."""

    def __init__(self, schema: Schema, arena: Arena, *, page_rows: int = 256, dir_rows: int = 256) -> None:
        self.schema, self.name, self.arity = schema, schema.name, schema.arity
        self._arena, self._sizes = arena, (page_rows, dir_rows)
        self._declared = tuple(range(self.arity))
        self._stores: dict[tuple[int, ...], Store] = {}
        self.facts = self._store(self._declared).empty()
        self._orders: dict[tuple[int, ...], Version] = {self._declared: self.facts}
        self._statistics: Statistics | None = None

    def _store(self, order: tuple[int, ...]) -> Store:
        if order not in self._stores:
            page_rows, dir_rows = self._sizes
            self._stores[order] = Store(self._arena, self.arity, page_rows=page_rows, dir_rows=dir_rows)
        return self._stores[order]

    def __len__(self) -> int:
        return len(self.content)

    @property
    def content(self) -> Version:
        """All rows, in declared column order."""
        return self._orders[self._declared]

    @property
    def orders(self) -> dict[tuple[int, ...], Version]:
        """The key orders that are built."""
        return self._orders

    @property
    def statistics(self) -> Statistics:
        """What the planner may know of the present content."""
        if self._statistics is None:
            self._statistics = Statistics(self)
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

    def publish(self, content: Version, facts: Version | None = None) -> None:
        """Make `content` (and `facts`) the relation's. Secondary key orders follow, or go."""
        before = self.content
        orders = {self._declared: content}
        others = [order for order in self._orders if order != self._declared]
        if content is before:
            orders = self._orders
        elif others and abs(len(content) - len(before)) < SMALL_PART * len(before):
            delta = before.delta(content)
            if len(delta.kinds) < SMALL_PART * len(content):
                # Without the memory for an order it goes, as with a large change; who asks for it again is told.
                with suppress(ArenaFullError):
                    for order in others:
                        orders[order], _ = self._orders[order].update(delta.rows[list(order)], delta.kinds)
        if facts is not None:
            self.facts = facts
        if content is not before:
            self._orders, self._statistics = orders, None

    def memory(self) -> dict[tuple[int, ...], int]:
        """Bytes of pages per key order."""
        return {order: version.memory() for order, version in self._orders.items()}
