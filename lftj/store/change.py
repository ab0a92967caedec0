"""What a transaction asks of a relation, in batches, and what it really did, as a change.

A batch is one call: its rows are all to be

    INSERT    the rows are facts
    ERASE     the rows are no facts
    UPSERT    of a functional predicate: whatever the facts hold under the keys of the rows (all columns but the last)
              goes, and the rows are facts; of several rows with one key the last counts
    COPIES    of a bag: as many copies of the rows come, or go, as their last column says (copies.py)

A batch of changes has a kind per row: INSERT or ERASE; with UPSERT, ERASE takes whatever is under the key.

The last word per row counts, in the order of the batches. Inserts and erases need not look at the facts, so a run of
them is one update; a run of upserts, or of copies, is one update after a lookup of its keys.

A change is the net difference between two contents of one relation:

    rows     int64[arity, m], distinct, in key order
    kinds    int8[m], INSERTED (1): only the new content has the row; ERASED (-1): only the old one

It is what rules are maintained by, and what the user sees as a delta. A row that was erased and inserted again is in no
change; the empty change has no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import DataError
from lftj.store.copies import recount, with_copies
from lftj.values.schema import Schema
from lftj.values.symbols import UNKNOWN
from lftj.values.type_table import in_dictionary, to_stored
from lftj.values.value_type import Misfit
from scantree.consolidate import net_few
from scantree.lagging import update_later
from scantree.probe import NOTHING
from scantree.sort import FEW, in_one, sort_chunks, sort_rows, sorting
from scantree.version import Changes, Rows, Version

Kinds = npt.NDArray[np.int8]

INSERT, ERASE, UPSERT, COPIES = 1, -1, 2, 3
INSERTED, ERASED = 1, -1
_ONE = {1: np.array([1], np.int8), -1: np.array([-1], np.int8)}


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
        if len(verdicts) == 1 and (verdict := verdicts.item()) != NOTHING:
            return cls(batch, _ONE[3 - 2 * verdict])
        if NOTHING in verdicts:
            done = verdicts != NOTHING
            batch, verdicts = batch.compress(done, axis=1), verdicts[done]
        return cls(batch, (3 - 2 * verdicts).astype(np.int8))  # scantree's INSERTED is 1, its ERASED 2

    @classmethod
    def between(cls, old: Version, new: Version) -> Change:
        """The difference of two versions; reads only pages that they do not share, if they are of one store."""
        if old.store is new.store:
            delta = old.delta(new)
            return cls(delta.rows, delta.kinds)
        return cls(*in_one(old.columns(), new.columns()))

    def in_order(self, columns: tuple[int, ...]) -> Change:
        """The same change in a key order: its columns permuted, and sorted so.

        In a narrow one (`StoredRelation.key_order`) a row that differs in other columns alone is in no change.
        """
        rows = self.rows[list(columns)]
        if len(columns) == 0 or self.rows.shape[1] < 2:
            return Change(rows, self.kinds)
        order, alike = sorting(rows)
        rows, kinds = rows.take(order, axis=1), self.kinds[order]
        if not alike:
            return Change(rows, kinds)
        # What determines a row is in the key order: two that are alike are one before the change and one after it.
        same = (rows[:, 1:] == rows[:, :-1]).all(axis=0)
        differs = ~(np.append(same, False) | np.append(False, same))
        return Change(rows.compress(differs, axis=1), kinds[differs])

    def of_kind(self, kind: int) -> Rows:
        """The rows of one kind, int64[arity, n] in key order; not to be written to, as they may be all of them."""
        if len(self.kinds) == 1:
            return self.rows if self.kinds[0] == kind else self.rows[:, :0]
        of_it = self.kinds == kind
        # All of one kind, as what only loads are: a copy of many rows would be the largest part of a call's memory.
        return self.rows if of_it.all() else self.rows.compress(of_it, axis=1)


def change_of_rows(arity: int, erased: list[Rows], inserted: list[Rows]) -> Change:
    """The change that takes `erased` rows and brings `inserted` ones, chunks int64[arity, n] in any order.

    A row in both stays. Few rows are sorted once, with those of the other side; of more a row in both is likely, and
    each side is sorted alone.
    """
    if not erased and not inserted:
        return Change.none(arity)
    if len(erased) + len(inserted) == 1 and (rows := (erased or inserted)[0]).shape[1] == 1:
        return Change(rows, _ONE[ERASED if erased else INSERTED])
    gone = sum([rows.shape[1] for rows in erased])
    if gone + sum([rows.shape[1] for rows in inserted]) < FEW:
        few = net_few(np.ascontiguousarray(np.concatenate([*erased, *inserted], axis=1)), gone)
        if few is not None:
            return Change(*few)
    return Change(*in_one(_distinct(arity, erased), _distinct(arity, inserted)))


def _distinct(arity: int, chunks: list[Rows]) -> Rows:
    """The distinct rows of chunks int64[arity, n], in order."""
    if arity and chunks:
        return sort_chunks([*chunks])
    return np.empty((arity, min(1, sum([rows.shape[1] for rows in chunks]))), np.int64)


# Batches --------------------------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Rows int64[arity, size] in any order, all to be inserted, erased or upserted (`op`); of a bag in that of COPIES.

    `kinds` int8[size], INSERT or ERASE, tells rows apart; `op` is INSERT then, or UPSERT where their keys count.
    `later`: the facts may lag (scantree/lagging.py), as the rows are distinct, those that go are there, and none that
    comes is. Of a bag that need not be so: copies are counted first.
    """

    rows: Rows
    size: int
    op: int
    kinds: Kinds | None = None
    later: bool = False

    def erased(self) -> Rows | None:
        """The rows that are named to be erased; None if there are none."""
        if self.kinds is not None and self.op == INSERT:
            return np.compress(self.kinds == ERASE, self.rows, axis=1)
        return self.rows if self.op == ERASE else None


def few_rows(source: Any, schema: Schema, code: Callable[[str], int]) -> Rows | None:
    """The codes int64[arity, n] of a small or plain source; None if the readers of `lftj.io` have to look at it.

    A transaction often is one row, and setting up a reader takes longer than everything else it needs. So a few tuples
    of values of exactly the column's types, and arrays of int64 for relations of numbers, are turned into codes here;
    anything else, and anything that is wrong, goes to the readers, whose messages say what it is.

    `code` gives the code of a text, once all rows are known to be good; `UNKNOWN` sends the source to the readers, too.
    """
    arity, numbers = schema.arity, schema.numbers
    kind = type(source)
    if kind is np.ndarray:
        plain = numbers and arity and source.ndim == 2 and source.shape[1] == arity and source.dtype == np.int64
        return source.T.copy() if plain else None
    if (kind is not list and kind is not tuple) or not 0 < len(source) <= FEW or not arity:
        return None
    for row in source:
        if (type(row) is not tuple and type(row) is not list) or len(row) != arity:
            return None
    if numbers:
        for row in source:
            for value in row:
                if type(value) is not int:
                    return None
        try:
            if len(source) == 1:
                return np.array(source[0], np.int64).reshape(arity, 1)
            return np.array(source, np.int64).T.copy()
        except OverflowError:
            return None
    types = schema.types
    try:
        checked = [[to_stored(v, t) for v, t in zip(r, types, strict=True)] for r in source]
    except Misfit:
        return None
    codes = [[code(v) if isinstance(v, str) else v for v in row] for row in checked]
    columns = list(zip(*codes, strict=True))
    if any(in_dictionary(t) and UNKNOWN in column for t, column in zip(types, columns, strict=True)):
        return None
    return np.array(columns, np.int64)


def of_bag(schema: Schema, batch: Batch) -> Batch:
    """A batch for a bag: of copies, one each where it says nothing of them, or of upserts that say how many."""
    rows, size, op, kinds, later = batch
    if op == COPIES:
        return batch
    if len(rows) < schema.arity:
        return Batch(with_copies(rows, size, op if kinds is None else kinds), size, COPIES, later=later)
    if size and int(rows[-1].min()) < (op != UPSERT):
        raise DataError(
            f"`{schema.name}` was to have a row {int(rows[-1].min())} times",
            why=f"it is a bag, and its last column `{schema.names[-1]}` is how often a row is there",
            remedy="insert a row once or more often; an upsert with 0 takes all of its copies",
        )
    if op != UPSERT:
        return Batch(rows, size, COPIES)
    return Batch(rows, size, UPSERT, np.where(rows[-1] > 0, INSERT, ERASE).astype(np.int8))


def applied(facts: Version, batches: Sequence[Batch]) -> tuple[Version, Change]:
    """The facts after all batches (at least one), and how they differ; `facts` themselves if nothing changed."""
    if len(batches) == 1:
        after, done = _after(facts, batches)
        return after, Change.of_update(done)
    runs = [[batches[0]]]
    for batch in batches[1:]:
        if _may_be_one(batch.op) == _may_be_one(runs[-1][0].op):
            runs[-1].append(batch)
        else:
            runs.append([batch])
    after = facts
    for run in runs:
        after, done = _after(after, run)
    if len(runs) == 1:
        return after, Change.of_update(done)
    change = Change.between(facts, after)
    return after if len(change.kinds) else facts, change


def _may_be_one(op: int) -> int:
    """Batches of which this is equal may be one update."""
    return INSERT if op == ERASE else op


def _after(facts: Version, run: Sequence[Batch]) -> tuple[Version, Changes]:
    """The facts after batches that are all upserts, all copies, or all neither, and what that did."""
    first = run[0]
    rows = first.rows if len(run) == 1 else np.concatenate([batch.rows for batch in run], axis=1)
    if first.op == UPSERT:
        kinds = None if all(batch.kinds is None for batch in run) else _kinds_of(run, rows.shape[1], INSERT)
        rows, ops = _upserting(facts, rows, kinds)
    elif first.op == COPIES:
        gone, come = recount(facts, rows)
        rows, ops = np.concatenate([gone, come], axis=1), np.full(gone.shape[1] + come.shape[1], INSERT, np.int8)
        ops[: gone.shape[1]] = ERASE
    elif len(run) == 1 and first.size == 1 and first.kinds is None:
        ops = _ONE[first.op]
    else:
        ops = _kinds_of(run, rows.shape[1])
    return update_later(facts, rows, ops) if first.later and len(run) == 1 else facts.update(rows, ops)


def _kinds_of(run: Sequence[Batch], rows: int, op: int = 0) -> Kinds:
    """INSERT or ERASE for each of the `rows` of all batches; `op`: where they do not say (0: that of the batch)."""
    kinds, at = np.empty(rows, np.int8), 0
    for batch in run:
        kinds[at : at + batch.size] = (op or batch.op) if batch.kinds is None else batch.kinds
        at += batch.size
    return kinds


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
