"""Arrays in the file: what is no pages, chunk by chunk, each a segment.

    tables of maps      a chunk is so many slots
    sorted records      a chunk ends where a record says so (`ends_by_value`): what is put in or taken out moves the
                        records behind it, and yet only the chunks that it is in are others

A chunk is known by its hash, so one that was there before, wherever in the array, is not written again: the cost of
writing follows what changed, and that of looking for it the bytes of the array.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lftj.durable.container import Container
from lftj.durable.segments import PageList, Segments, read_segment
from scantree.version import Rows

Ints = npt.NDArray[np.int64]

# Words of a chunk: of some ten kilobytes once it is packed.
CHUNK = 1 << 15


def ends_by_number(rows: Rows) -> Ints:
    """Where chunks of rows int64[width, n] end, each of as many as the others: int64[chunks]."""
    width, n = rows.shape
    each = max(1, CHUNK // max(1, width))
    return np.append(np.arange(each, n, each, dtype=np.int64), n) if n else np.empty(0, np.int64)


def ends_by_value(rows: Rows) -> Ints:
    """Where chunks of different rows int64[width, n] end: after a row whose hash has so many zeros."""
    width, n = rows.shape
    if not n:
        return np.empty(0, np.int64)
    bits = max(1, CHUNK // max(1, width)).bit_length() - 1
    hashes = np.zeros(n, np.uint64)
    for column in rows:
        hashes = (hashes ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    found = np.flatnonzero((hashes * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(64 - bits) == 0) + 1
    return found if len(found) and found[-1] == n else np.append(found, n)


class Chunks:
    """The chunks that are in the file, by whose they are and by their hashes: the number of the segment of each."""

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        self.known: dict[str, dict[bytes, int]] = {}

    def save(self, whose: str, rows: Rows, ends: Ints) -> PageList:
        """The list of the chunks of rows int64[width, n], which end at `ends`, once all are in the file."""
        parts = [slice(lo, hi) for lo, hi in pairwise([0, *ends.tolist()])]
        hashes = [_hash_of(rows[:, part]) for part in parts]
        known = self.known.get(whose, {})
        new = {hash: part for hash, part in zip(hashes, parts, strict=True) if hash not in known}
        ids = self.segments.write([np.ascontiguousarray(rows[:, part]) for part in new.values()])
        there = known | dict(zip(new, ids, strict=True))
        self.known[whose] = {hash: there[hash] for hash in hashes}
        counts = np.diff(ends, prepend=0)
        numbers = np.array([there[hash] for hash in hashes], np.int64)
        return PageList(len(rows), 0, numbers, np.zeros(len(numbers), np.int64), counts)

    @staticmethod
    def read(container: Container, listed: PageList) -> tuple[Rows, dict[bytes, int]]:
        """(the array of a list, int64[width, n]; its chunks by their hashes). Raises `DatabaseFileError`."""
        parts = [read_segment(container, id) for id in listed.segment.tolist()]
        known = dict(zip(map(_hash_of, parts), listed.segment.tolist(), strict=True))
        return np.concatenate([np.empty((listed.columns, 0), np.int64), *parts], axis=1), known

    def adopt(self, whose: str, known: dict[bytes, int]) -> None:
        """An array was read: its chunks are known from now on."""
        self.known[whose] = known

    def forget(self, whose: set[str]) -> None:
        """Keep what is known of these only."""
        self.known = {name: known for name, known in self.known.items() if name in whose}

    def named(self) -> set[int]:
        """The segments of all chunks that are known."""
        return {id for known in self.known.values() for id in known.values()}


def _hash_of(rows: Rows) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(rows).data, digest_size=16).digest()
