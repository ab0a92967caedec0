"""Segments: which pages of which versions are in the file, and writing those that are not.

A *segment* is a row of the file: the rows of up to `TOGETHER` pages. A *page list* says of what pages a version
consists, in key order: for each the segment it is in, where its rows begin there, and how many they are. Pages do not
change, so the next list of a relation names the same segments for the pages that it shares with the last one, and only
others are written. The cost of a checkpoint follows what changed, page by page.

While a list is in force the version it was made of is held: its pages keep their offsets, by which they are known.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.durable.container import Container
from lftj.durable.hashes import damaged, hash_of, intact
from lftj.durable.packed_rows import packed, unpacked
from scantree.saving import pages_of, restored, rows_of
from scantree.version import Rows, Store, Version

if TYPE_CHECKING:
    from sqlite3 import Connection

Ints = npt.NDArray[np.int64]

# Pages in a segment, and segments that are written in one transaction: commits wait for no more than these.
TOGETHER, AT_A_TIME = 64, 8
# Threads that pack, and unpack, beside each other.
THREADS = 2
# Segments are numbered from 1 on: no file has more.
MOST = 1 << 48
_HEAD = struct.Struct("<HH")


class PageList(NamedTuple):
    """The pages of a version in key order: `segment`, `start` of its rows there, and its `rows`; int64[pages] each.

    `columns`, the last `values` of which are no keys.
    """

    columns: int
    values: int
    segment: Ints
    start: Ints
    rows: Ints

    def encoded(self) -> bytes:
        """The list as bytes."""
        return _HEAD.pack(self.columns, self.values) + packed(np.stack([self.segment, self.start, self.rows]))

    @classmethod
    def decoded(cls, body: bytes) -> PageList:
        """The list that such bytes are."""
        columns, values = _HEAD.unpack_from(body)
        segment, start, rows = unpacked(body[_HEAD.size :])
        return cls(columns, values, segment, start, rows)

    def segments(self) -> set[int]:
        """The segments that it names."""
        return set(np.unique(self.segment).tolist())

    def read(self, container: Container, store: Store) -> Version:
        """The version of these pages. `DatabaseFileError` if one of them is damaged."""
        return restored(store, self.rows, self._chunks(container))

    def _chunks(self, container: Container) -> Iterator[tuple[Rows, Ints]]:
        """Runs of pages that lie one after the other in one segment: their rows, and how many each has."""
        n = len(self.segment)
        if not n:
            return
        breaks = (self.segment[1:] != self.segment[:-1]) | (self.start[1:] != self.start[:-1] + self.rows[:-1])
        firsts = [0, *(np.flatnonzero(breaks) + 1).tolist(), n]
        uses = dict(
            zip(*(part.tolist() for part in np.unique(self.segment[firsts[:-1]], return_counts=True)), strict=True)
        )
        held: dict[int, Rows] = {}
        for lo, hi in pairwise(firsts):
            id, at = int(self.segment[lo]), int(self.start[lo])
            if id not in held:
                held[id] = read_segment(container, id)
            counts = self.rows[lo:hi]
            yield np.ascontiguousarray(held[id][:, at : at + int(counts.sum())]), counts
            uses[id] -= 1
            if not uses[id]:
                del held[id]


def read_segment(container: Container, id: int) -> Rows:
    """The rows of a segment, int64[cols, n]."""
    with container.lock:
        found = container.connection.execute("select body, hash from segments where id = ?", (id,)).fetchone()
    if found is None:
        raise damaged(f"segments {id} is missing")
    return unpacked(intact(found[0], found[1], "segments", id))


class Saved(NamedTuple):
    """A version that is in the file: its list, and its pages' offsets in order with where each is in the list."""

    version: Version
    list: PageList
    offsets: Ints
    places: Ints

    @classmethod
    def of(cls, version: Version, list: PageList) -> Saved:
        """A version and its list."""
        offsets, _ = pages_of(version)
        places = np.argsort(offsets)
        return cls(version, list, offsets[places], places)


class Segments:
    """The versions that are in the file, by whose they are, and the number of the next segment."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.saved: dict[str, Saved] = {}
        last = container.connection.execute("select max(id) from segments").fetchone()[0] or 0
        if last > MOST:
            raise damaged(f"segments {last}")
        self.next = 1 + last

    def save(self, whose: str, version: Version) -> PageList:
        """The list of the pages of a version, once all of them are in the file."""
        last = self.saved.get(whose)
        if last is not None and last.version is version:
            return last.list
        shape = version.store.shape
        offsets, counts = pages_of(version)
        segment, start = np.empty(len(offsets), np.int64), np.empty(len(offsets), np.int64)
        known = np.zeros(len(offsets), np.bool_)
        if last is not None and len(last.offsets) and last.version.store is version.store:
            at = np.minimum(np.searchsorted(last.offsets, offsets), len(last.offsets) - 1)
            known = last.offsets[at] == offsets
            places = last.places[at[known]]
            segment[known], start[known] = last.list.segment[places], last.list.start[places]
        self._write(version, offsets, counts, np.flatnonzero(~known), segment, start)
        made = PageList(shape.cols, shape.cols - shape.keys, segment, start, counts)
        self.saved[whose] = Saved.of(version, made)
        return made

    def _write(self, version: Version, offsets: Ints, counts: Ints, new: Ints, segment: Ints, start: Ints) -> None:
        """Write the pages numbered `new`, and note where they are."""
        parts = [new[lo : lo + TOGETHER] for lo in range(0, len(new), TOGETHER)]
        ids = self.write([partial(rows_of, version, offsets[pages], counts[pages]) for pages in parts])
        for id, pages in zip(ids, parts, strict=True):
            segment[pages] = id
            start[pages] = np.cumsum(counts[pages]) - counts[pages]

    def write(self, parts: Sequence[Rows | Callable[[], Rows]]) -> range:
        """Write rows int64[cols, n], or what makes them, each part as a segment; the numbers of these.

        Packing takes longest, and does not hold the GIL.
        """

        def packed_of(id: int, part: Rows | Callable[[], Rows]) -> tuple[int, int, bytes, bytes]:
            rows = part() if callable(part) else part
            body = packed(rows)
            return id, rows.shape[1], body, hash_of(body, id)

        ids = range(self.next, self.next + len(parts))
        self.next += len(parts)
        with ThreadPoolExecutor(THREADS) as pool:
            made = map(packed_of, ids, parts) if len(parts) < AT_A_TIME else pool.map(packed_of, ids, parts)
            for _ in range(0, len(parts), AT_A_TIME):
                bodies = list(islice(made, AT_A_TIME))
                with self.container.failing("write to"):
                    self.container.transact(partial(_insert, bodies=bodies))
        return ids

    def adopt(self, whose: str, version: Version, list: PageList) -> None:
        """A version was made of a list: its pages are known from now on."""
        self.saved[whose] = Saved.of(version, list)

    def forget(self, whose: set[str]) -> None:
        """Keep what is known of these only."""
        self.saved = {name: saved for name, saved in self.saved.items() if name in whose}


def _insert(connection: Connection, bodies: Sequence[tuple[int, int, bytes, bytes]]) -> None:
    connection.executemany("insert into segments values (?, ?, ?, ?)", bodies)
