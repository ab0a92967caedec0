"""Reordering: the rows of a version, their columns permuted, become a fresh version.

A secondary key order of many rows is mostly copying. So whole rows go into one word each where their ranges allow
(sort.py), from the pages that hold them, and from the sorted words into the new pages: no array of columns is made on
the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scantree._jit import kernel
from scantree.cursor import column_ranges
from scantree.layout import DIRS, dir_count, dir_of
from scantree.memory import Words
from scantree.radix_sort import sort_words
from scantree.sort import FEW, pack_column, widths_of, words_for

if TYPE_CHECKING:
    from scantree.version import Version


@kernel
def _pack(mem, root, shape, order, low, bits, packed):
    """The rows of a version as `packed` uint64[n], the columns `order` from the highest bits down."""
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    done = 0
    for d in range(mem[root + DIRS]):
        directory = dir_of(mem, root, d)
        for s in range(dir_count(mem, root, d)):
            page, part = mem[directory + s], packed[done : done + mem[directory + fan + s]]
            for i in range(len(part)):
                part[i] = 0
            shift = 0
            for c in range(len(order) - 1, -1, -1):
                if bits[c] > 0:
                    pack_column(mem, page + order[c] * cap, low[c], shift, part)
                    shift += bits[c]
            done += len(part)


def packed_in_order(version: Version, columns: tuple[int, ...]) -> tuple[np.ndarray, Words, Words] | None:
    """(the rows of `version` as sorted words uint64[n], the least values and the bits of `columns`, in their order).

    `columns` permutes the key columns. The words are this thread's until it sorts again. None if the rows are few, or
    do not fit into words.
    """
    # The root first: equal rows of an unsorted version become one when it is sorted.
    root, n, keys = version.root, len(version), len(columns)
    if n < FEW or not keys:
        return None
    space, shape = version.store.arena.space, version.store.shape
    order = np.array(columns, np.int64)
    low, high = np.full(keys, np.iinfo(np.int64).max), np.full(keys, np.iinfo(np.int64).min)
    column_ranges(space.mem, root, shape, order, low, high)
    bits = widths_of(low, high)
    if bits is None:
        return None
    packed = words_for(n)
    with np.errstate(over="ignore"):  # where no kernels are compiled: differences wrap around
        _pack(space.mem, root, shape, order, low, bits, packed)
    sort_words(packed, int(bits.sum()))
    return packed, low, bits
