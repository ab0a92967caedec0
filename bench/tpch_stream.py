"""TPC-H's tables as a stream of single rows that come, and later go, in the order of a business that grows.

    stream = Stream(tables)              tables as bench.tpch_data gives them
    stream.batches("inserts", 1_000)     batches of 1,000 events each: [("orders", 1, rows), ("lineitem", 1, rows), ...]
    stream.batches("deletes", 1_000)     after these: orders go with their lines, and as many others come
    stream.of(["orders"])                the events of some tables only
    stream.contents(n)                   the tables after the first n events of both parts

*inserts*: all rows but the last tenth of the orders (`HELD`) with their lines. Rows of a table come in the order of
their keys and all tables side by side, evenly, but what a row refers to comes before it: a customer at the latest with
its first order, a part with its first line. *deletes*: for every order held back, the oldest order that is left goes,
its lines first, and the order held back comes with its lines.

Within a batch, rows of one table are one block (references before what refers to them), so a batch is a list of few
blocks; with batches of one event, every event is a block. All is computed from the tables: the same, the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import copy
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bench.tpch_queries import TABLES

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Part = Literal["inserts", "deletes"]
#: (relation, +1 or -1, Arrow table of whole rows).
Block = tuple[str, int, Any]
HELD = 0.1
RANK = {name: rank for rank, name in enumerate(TABLES)}


class Stream:
    """Events in order: `table` (place in `TABLES`), `sign` and `row` of each; `inserts` of them come first."""

    def __init__(self, tables: dict[str, Any]) -> None:
        # Rows are taken from one chunk a hundred times as fast as from many.
        self.tables = {name: table.combine_chunks() for name, table in tables.items()}
        order_of, held = self._orders()
        first = self._inserts(order_of, held)
        second = self._deletes(order_of, held)
        self.inserts = len(first[0])
        self.table, self.sign, self.row = (np.concatenate(pair) for pair in zip(first, second, strict=True))

    def __len__(self) -> int:
        return len(self.table)

    def of(self, names: Collection[str]) -> Stream:
        """The events of some of the tables only."""
        mine = np.isin(self.table, [RANK[name] for name in names])
        less = copy(self)
        less.tables = {name: table for name, table in self.tables.items() if name in names}
        less.inserts = int(mine[: self.inserts].sum())
        less.table, less.sign, less.row = (events[mine] for events in (self.table, self.sign, self.row))
        return less

    def batches(self, part: Part, size: int, limit: int | None = None) -> Iterator[list[Block]]:
        """The events of a part, cut into batches of `size`; no more than `limit` events."""
        begin, end = (0, self.inserts) if part == "inserts" else (self.inserts, len(self))
        yield from self.after(begin, size, end - begin if limit is None else min(limit, end - begin))

    def after(self, begin: int, size: int, limit: int) -> Iterator[list[Block]]:
        """The `limit` events, or as many as there are, that come after `begin` others, in batches of `size`."""
        end = min(begin + limit, len(self))
        for at in range(begin, end, size):
            yield self._blocks(at, min(at + size, end))

    def contents(self, count: int) -> dict[str, Any]:
        """The tables after the first `count` events."""
        import pyarrow as pa

        held = {}
        for name, table in self.tables.items():
            mine = self.table[:count] == RANK[name]
            there = np.bincount(self.row[:count][mine], self.sign[:count][mine], table.num_rows) > 0
            held[name] = table.take(pa.array(np.nonzero(there)[0]))
        return held

    def _blocks(self, begin: int, end: int) -> list[Block]:
        import pyarrow as pa

        table, sign, row = (events[begin:end] for events in (self.table, self.sign, self.row))
        blocks: list[Block] = []
        for way in (-1, 1):
            for name in list(self.tables)[::way]:
                rows = row[(table == RANK[name]) & (sign == way)]
                if len(rows):
                    blocks.append((name, way, self.tables[name].take(pa.array(rows)).combine_chunks()))
        return blocks

    # -- the order of events -------------------------------------------------------------------------------------------

    def _column(self, name: str) -> Ints:
        table = next(table for table in self.tables.values() if name in table.column_names)
        found: Ints = table[name].to_numpy().astype(np.int64)
        return found

    def _orders(self) -> tuple[Ints, int]:
        """The order, by place in the table, of every line; how many orders are not held back."""
        orders = self._column("o_orderkey")
        assert (np.diff(orders) > 0).all(), "orders do not stand in the order of their keys"
        return np.searchsorted(orders, self._column("l_orderkey")), round(len(orders) * (1 - HELD))

    def _inserts(self, order_of: Ints, held: int) -> tuple[Ints, Ints, Ints]:
        """Table, sign and row of the events of the first part."""
        orders = np.arange(held) + 1.0
        came: dict[str, Floats] = {"orders": orders / held, "lineitem": (orders / held)[order_of[order_of < held]]}
        rows = {"orders": np.arange(held), "lineitem": np.nonzero(order_of < held)[0]}

        def before(table: str, key: Ints, *users: tuple[Ints, Floats]) -> None:
            """Rows of `table` come evenly, but none after one that refers to it: pairs of keys and times of these."""
            at, sort = (np.arange(len(key)) + 1.0) / len(key), np.argsort(key)
            for used, when in users:
                np.minimum.at(at, sort[np.searchsorted(key, used, sorter=sort)], when)
            came[table], rows[table] = at, np.arange(len(key))

        part, supplier = self._column("l_partkey"), self._column("l_suppkey")
        of, by = self._column("ps_partkey"), self._column("ps_suppkey")
        base, lines = max(int(by.max()), int(supplier.max())) + 1, rows["lineitem"]
        before("partsupp", of * base + by, ((part * base + supplier)[lines], came["lineitem"]))
        before("part", self._column("p_partkey"), (of, came["partsupp"]))
        before("supplier", self._column("s_suppkey"), (by, came["partsupp"]))
        before("customer", self._column("c_custkey"), (self._column("o_custkey")[:held], came["orders"]))
        for name in ("region", "nation"):
            rows[name] = np.arange(self.tables[name].num_rows)
            came[name] = np.zeros(len(rows[name]))
        table: Ints = np.concatenate([np.full(len(rows[name]), rank) for name, rank in RANK.items()])
        every: Ints = np.concatenate([rows[name] for name in RANK])
        when: Floats = np.concatenate([came[name] for name in RANK])
        order = np.lexsort((every, table, when))
        return table[order], np.ones(len(table), np.int64), every[order]

    def _deletes(self, order_of: Ints, held: int) -> tuple[Ints, Ints, Ints]:
        """Table, sign and row of the events of the second part."""
        orders = self.tables["orders"].num_rows
        turns = min(orders - held, held)
        parts = []
        # The turn of an order and its place in it: 0 lines that go, 1 the order that goes, 2 that comes, 3 its lines.
        for sign, first, places in ((-1, 0, (1, 0)), (1, held, (2, 3))):
            lines = np.nonzero((order_of >= first) & (order_of < first + turns))[0]
            for name, row, turn, place in (
                ("orders", np.arange(first, first + turns), np.arange(turns), places[0]),
                ("lineitem", lines, order_of[lines] - first, places[1]),
            ):
                n = len(row)
                parts.append((np.full(n, RANK[name]), np.full(n, sign), row, turn, np.full(n, place)))
        table, signs, row, turn, step = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((row, step, turn))
        return table[order], signs[order], row[order]
