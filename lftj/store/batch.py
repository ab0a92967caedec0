"""Batches: what one call of a transaction does to the facts of a relation, and facts after several of them.

    INSERT    the rows are facts
    ERASE     the rows are no facts
    UPSERT    of a functional predicate: whatever the facts hold under the keys of the rows (all columns but the last)
              goes, and the rows are facts; of several rows with one key the last counts

A batch of changes has a kind per row: INSERT or ERASE; with UPSERT, ERASE takes whatever is under the key.

The last word per row counts, in the order of the batches. Inserts and erases need not look at the facts, so a run of
them is one update; a run of upserts is one update after a lookup of its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.store.change import Change
from scantree.sort import sort_rows
from scantree.version import Changes, Version

Rows = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int8]

INSERT, ERASE, UPSERT = 1, -1, 2
_ONE = {INSERT: np.array([INSERT], np.int8), ERASE: np.array([ERASE], np.int8)}


class Batch(NamedTuple):
    """Rows int64[arity, size] in any order, all to be inserted, erased or upserted (`op`).

    `kinds` int8[size], INSERT or ERASE, tells rows apart; `op` is INSERT then, or UPSERT where their keys count.
    """

    rows: Rows
    size: int
    op: int
    kinds: Kinds | None = None

    def ops(self) -> Kinds:
        """INSERT or ERASE for each row."""
        if self.kinds is not None:
            return self.kinds
        return _ONE[self.op] if self.size == 1 else np.full(self.size, self.op, np.int8)

    def erased(self) -> Rows | None:
        """The rows that are named to be erased; None if there are none."""
        if self.kinds is not None and self.op == INSERT:
            return np.compress(self.kinds == ERASE, self.rows, axis=1)
        return self.rows if self.op == ERASE else None


def applied(facts: Version, batches: Sequence[Batch]) -> tuple[Version, Change]:
    """The facts after all batches (at least one), and how they differ; `facts` themselves if nothing changed."""
    runs = [batches]
    if len(batches) > 1:
        runs = [list(group) for _, group in groupby(batches, lambda batch: batch.op == UPSERT)]
    after = facts
    for run in runs:
        after, done = _after(after, run)
    if len(runs) == 1:
        return after, Change.of_update(done)
    change = Change.between(facts, after)
    return after if len(change.kinds) else facts, change


def _after(facts: Version, run: Sequence[Batch]) -> tuple[Version, Changes]:
    """The facts after batches that are all upserts, or all none, and what that did."""
    first = run[0]
    rows = first.rows if len(run) == 1 else np.concatenate([batch.rows for batch in run], axis=1)
    if first.op == UPSERT:
        kinds = None
        if any(batch.kinds is not None for batch in run):
            kinds = np.concatenate([np.full(b.size, INSERT, np.int8) if b.kinds is None else b.kinds for b in run])
        rows, ops = _upserting(facts, rows, kinds)
    else:
        ops = first.ops() if len(run) == 1 else np.concatenate([batch.ops() for batch in run])
    return facts.update(rows, ops)


def _upserting(facts: Version, rows: Rows, kinds: Kinds | None) -> tuple[Rows, Kinds]:
    """The rows and ops of the update that upserts `rows` int64[arity, n], or with kind ERASE takes their keys' rows."""
    keys = len(rows) - 1
    if kinds is not None:
        rows = np.concatenate([rows, kinds[None].astype(np.int64)])
    if rows.shape[1] > 1:
        rows = sort_rows(list(rows), keys)
    old = facts.rows_under(rows[:keys])
    if kinds is not None:
        rows = np.compress(rows[-1] == INSERT, rows[:-1], axis=1)
    ops = np.full(old.shape[1] + rows.shape[1], INSERT, np.int8)
    ops[: old.shape[1]] = ERASE
    # The erases first: where a row is there already, its last word is to stay.
    return np.concatenate([old, rows], axis=1), ops
