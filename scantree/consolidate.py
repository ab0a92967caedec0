"""Consolidation: equal rows become one row, with the sum of their weights.

    rows      3 1 3 1 2         ->   1 2 3
    weights   1 1 1 -1 2             0 2 2

The rows of an input may come in any order and any number of times; the result is sorted and distinct. A sum of zero is
kept: the caller decides what it means.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scantree.sort import count_chunks, order_of, sorting

Rows = npt.NDArray[np.int64]


def consolidated(rows: Rows, weights: Rows) -> tuple[Rows, Rows]:
    """(distinct rows in order, the sums of the weights of each); `weights` int64[m] or int64[k, m]."""
    m = rows.shape[1]
    if len(rows) == 0:
        return rows[:, : min(m, 1)], weights.sum(axis=-1, keepdims=True)[..., : min(m, 1)]
    rows, order, starts = runs_of(rows)
    if order is not None:
        weights = np.take(weights, order, axis=-1)
    return rows[:, starts], np.add.reduceat(weights, starts, axis=-1) if m else weights


def counted(chunks: list[Rows]) -> Rows:
    """The distinct rows of all `chunks` int64[k, n] in order, each with how often it is there: int64[k + 1, m].

    The list is emptied.
    """
    found = count_chunks(chunks) if len(chunks[0]) else None
    if found is not None:
        return found
    rows = chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
    chunks.clear()
    distinct, counts = consolidated(rows, np.ones(rows.shape[1], np.int64))
    return np.concatenate([distinct, counts[None, :]])


def runs_of(rows: Rows) -> tuple[Rows, Rows | None, Rows]:
    """(the rows int64[1.., m] in order, what put them so or None if they were, where each run of equal rows begins)."""
    order, state = None, order_of(rows)
    repeats = state == 1
    if state == 0:
        order, repeats = sorting(rows)
        rows = rows.take(order, axis=1)
    first = np.ones(rows.shape[1], np.bool_)
    if repeats:
        first[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return rows, order, np.flatnonzero(first)
