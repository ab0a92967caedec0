"""A change: the net difference between two contents of one relation.

    rows     int64[arity, m], distinct, in key order
    kinds    int8[m], INSERTED (1): only the new content has the row; ERASED (-1): only the old one

A change is what a transaction does to a relation, what its rules are maintained by, and what the user sees as a delta.
A row that was erased and inserted again is in no change; the empty change has no rows.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree.probe import NOTHING
from scantree.sort import FEW, in_one, sort_chunks, sorting
from scantree.version import Changes, Version

Rows = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int8]

INSERTED, ERASED = 1, -1
_ONE = {1: np.array([INSERTED], np.int8), 2: np.array([ERASED], np.int8)}


class Change(NamedTuple):
    """`rows` int64[arity, m] in key order, `kinds` int8[m] of INSERTED and ERASED."""

    rows: Rows
    kinds: Kinds

    @classmethod
    @cache
    def none(cls, arity: int) -> Change:
        """The change that is none."""
        return cls(np.empty((arity, 0), np.int64), np.empty(0, np.int8))

    @classmethod
    def of_update(cls, changes: Changes) -> Change:
        """What `Version.update` really did."""
        batch, verdicts = changes
        if len(verdicts) == 1 and verdicts[0] != NOTHING:
            return cls(batch, _ONE[int(verdicts[0])])
        done = verdicts != NOTHING
        if not done.all():
            batch, verdicts = np.compress(done, batch, axis=1), verdicts[done]
        return cls(batch, (3 - 2 * verdicts).astype(np.int8))  # scantree's INSERTED is 1, its ERASED 2

    @classmethod
    def between(cls, old: Version, new: Version) -> Change:
        """The difference of two versions; reads only pages that they do not share, if they are of one store."""
        if old.store is new.store:
            delta = old.delta(new)
            return cls(delta.rows, delta.kinds)
        return cls(*in_one(old.columns(), new.columns()))

    def in_order(self, columns: tuple[int, ...]) -> Change:
        """The same change with its columns permuted, and sorted so."""
        rows = self.rows[list(columns)]
        if len(columns) == 0 or self.rows.shape[1] < 2:
            return Change(rows, self.kinds)
        order, _ = sorting(rows)
        return Change(np.take(rows, order, axis=1), self.kinds[order])

    def of_kind(self, kind: int) -> Rows:
        """The rows of one kind, int64[arity, n] in key order."""
        if len(self.kinds) == 1:
            return self.rows if self.kinds[0] == kind else self.rows[:, :0]
        return np.compress(self.kinds == kind, self.rows, axis=1)


def change_of_rows(arity: int, erased: list[Rows], inserted: list[Rows]) -> Change:
    """The change that takes `erased` rows and brings `inserted` ones, chunks int64[arity, n] in any order.

    A row in both stays. Few rows are sorted once, with those of the other side; of more a row in both is likely, and
    each side is sorted alone.
    """
    if not erased and not inserted:
        return Change.none(arity)
    gone, come = (sum([rows.shape[1] for rows in chunks]) for chunks in (erased, inserted))
    if gone + come < FEW:
        rows = np.concatenate([*erased, *inserted], axis=1)
        order, repeats = sorting(rows)
        if not repeats:
            kinds = np.full(gone + come, INSERTED, np.int8)
            kinds[:gone] = ERASED
            return Change(np.take(rows, order, axis=1), kinds[order])
    return Change(*in_one(_distinct(arity, erased), _distinct(arity, inserted)))


def _distinct(arity: int, chunks: list[Rows]) -> Rows:
    """The distinct rows of chunks int64[arity, n], in order."""
    if arity and chunks:
        return sort_chunks([*chunks])
    return np.empty((arity, min(1, sum([rows.shape[1] for rows in chunks]))), np.int64)
