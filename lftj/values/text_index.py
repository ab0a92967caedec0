"""The index of a symbol table: bulk look-ups and additions of texts at the cost of the batch, not of the table.

Life: made of all texts of a table when a batch comes that is too large for the table's dict; it then holds the bytes of
all texts itself (scantree/texts.py), and `texts` is a view of them. Arrays that were given out stay as they are: bytes
are only ever written behind their ends, or into new memory.

    add(array)      the numbers of texts, new ones for those that are not known; texts may come several times
    find(array)     the same, `NONE` for those that are not known

Costs: O(bytes of the batch) amortised; 24 bytes a text beside its own before its slots become twice as many, 40 then.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = npt.NDArray[np.int64]

# Texts that are added at a time: room is made for all of them, though few may be new.
CHUNK = 1 << 16
LEAST = 1 << 10
_ENDS = struct.Struct("qq").pack


class TextIndex:
    """All texts of a symbol table, by number. One writer at a time; whoever calls holds the table's lock."""

    def __init__(self) -> None:
        self.count = 0
        self._heap = np.empty(LEAST * 16, np.uint8)
        self._ends = np.zeros(LEAST + 1, np.int64)
        self._slots = np.zeros(2 * LEAST, np.uint64)

    def add(self, array: pa.Array) -> Numbers:
        """The numbers of the texts of a large_string array without nulls; those not known get the next ones."""
        return self._numbers(array, adding=True)

    def find(self, array: pa.Array) -> Numbers:
        """The numbers of the texts of a large_string array without nulls, `NONE` for those that are not known."""
        return self._numbers(array, adding=False)

    def find_one(self, text: str) -> int:
        """The number of one text that UTF-8 can hold, or `NONE`."""
        held = text.encode()
        # Read-only, as what `_buffers` gives.
        data, ends = np.frombuffer(held, np.uint8), np.frombuffer(_ENDS(0, len(held)), np.int64)
        return int(self._found(data, ends, 1, adding=False)[0])

    def texts(self) -> pa.Array:
        """All texts, as a large_string array over the index's own memory. O(1)."""
        import pyarrow as pa

        ends, heap = self._ends[: self.count + 1], self._heap[: self._ends[self.count]]
        return pa.LargeStringArray.from_buffers(self.count, pa.py_buffer(ends), pa.py_buffer(heap))

    def _numbers(self, array: pa.Array, *, adding: bool) -> Numbers:
        data, ends = _buffers(array)
        return self._found(data, ends, len(array), adding=adding)

    def _found(self, data: npt.NDArray[np.uint8], ends: Numbers, count: int, *, adding: bool) -> Numbers:
        """The numbers of `count` texts: bytes `data`, in which they end at `ends`, int64[count + 1]."""
        from scantree import texts

        numbers = np.empty(count, np.int64)
        hashes = np.empty(min(CHUNK, count), np.uint64)
        before = self.count
        try:
            with np.errstate(over="ignore"):
                for first in range(0, count, CHUNK):
                    n = min(CHUNK, count - first)
                    texts.hash_texts(data, ends, first, hashes[:n])
                    if adding:
                        self._make_room(n, int(ends[first + n] - ends[first]))
                    self.count = int(
                        texts.intern_texts(
                            data,
                            ends,
                            first,
                            hashes[:n],
                            self._heap,
                            self._ends,
                            self._slots,
                            self.count,
                            adding,
                            numbers[first : first + n],
                        )
                    )
        except BaseException:
            # Slots may name texts that were never told of: they are filled again without them.
            self.count = before
            self._refill(len(self._slots))
            raise
        return numbers

    def _make_room(self, more: int, size: int) -> None:
        """Room for `more` texts of `size` bytes."""
        count, used = self.count, int(self._ends[self.count])
        if used + size > len(self._heap):
            heap = np.empty(max(2 * len(self._heap), used + size), np.uint8)
            heap[:used] = self._heap[:used]
            self._heap = heap
        if count + more >= len(self._ends):
            ends = np.empty(max(2 * len(self._ends), count + more + 1), np.int64)
            ends[: count + 1] = self._ends[: count + 1]
            self._ends = ends
        if 2 * (count + more) > len(self._slots):
            self._refill(1 << (2 * (count + more) - 1).bit_length())

    def _refill(self, size: int) -> None:
        """Put all texts into `size` slots, at least as many as there are."""
        from scantree import texts

        slots = np.zeros(size, np.uint64)
        with np.errstate(over="ignore"):
            texts.refill_slots(self._slots, self.count, slots)
        self._slots = slots


def _buffers(array: pa.Array) -> tuple[npt.NDArray[np.uint8], Numbers]:
    """(the bytes, int64[n + 1] where each text begins and the last ends) of a large_string array.

    Both are read-only, as most of Arrow's buffers are, and kernels are compiled for those alone.
    """
    _, ends, data = array.buffers()
    given, starts = np.empty(0, np.uint8), np.zeros(1, np.int64)
    if len(array):
        starts = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
        if data is not None and data.size:
            given = np.frombuffer(data, np.uint8)
    given.flags.writeable = starts.flags.writeable = False
    return given, starts
