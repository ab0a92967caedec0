"""A relation's change in one key order, with the trie branches that it inserts and erases (tree surgery).

Source: incremental-leapfrog-triejoin.txt, section 4.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lftj.store.change import Change
from scantree.surgery import surgeries
from scantree.version import Version

Ints = npt.NDArray[np.int64]

_NO_KEYS = np.empty(0, np.int64)


@dataclass(slots=True)
class TraceChange:
    """What a commit does to one relation in one key order.

    `rows` int64[arity, m] in key order · `kinds` int8[m]: 1 inserted, -1 erased · `tops` int64[m]: the first level at
    which each row is a surgery (scantree.surgery) · `low`, `high` int64[arity]: the range of each column.
    """

    rows: Ints
    kinds: npt.NDArray[np.int8]
    tops: Ints
    low: Ints
    high: Ints


def whole_change(change: Change, columns: tuple[int, ...]) -> TraceChange:
    """A change of whole rows, every one of which counts, in the key order `columns`."""
    if columns != tuple(range(len(columns))):
        change = change.in_order(columns)
    return TraceChange(change.rows, change.kinds, np.zeros(len(change.kinds), np.int64), _NO_KEYS, _NO_KEYS)


def trace_change(change: Change, old: Version, new: Version, columns: tuple[int, ...]) -> TraceChange:
    """A change of a relation in the key order `columns`, with its tree surgeries; `old`, `new`: in that order."""
    if columns != tuple(range(len(columns))):
        change = change.in_order(columns)
    rows, kinds = np.ascontiguousarray(change.rows), change.kinds
    arity, m = rows.shape
    tops, low, high = np.empty(m, np.int64), np.empty(arity, np.int64), np.empty(arity, np.int64)
    surgeries(new.store.arena.space.mem, old.root, new.root, new.store.shape, rows, kinds, tops, low, high)
    return TraceChange(rows, kinds, tops, low, high)
