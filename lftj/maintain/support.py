"""Support: how many derivations each row of a head has.

A row of a head stands as long as some rule derives it or a fact says so. Support is a version of rows int64[arity] with
one value, the number of bindings of all rules that derive the row. Maintenance adds and takes away; a row is in the
head if its support is positive or it is a fact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from scantree.consolidate import consolidated
from scantree.memory import Arena
from scantree.version import Store, Version

Rows = npt.NDArray[np.int64]


def support_of(arena: Arena, arity: int, chunks: list[Rows], *, page_rows: int, dir_rows: int) -> Version:
    """The support of derived rows, given with all repeats in `chunks` int64[arity, n]."""
    rows = np.concatenate([np.empty((arity, 0), np.int64), *chunks], axis=1)
    distinct, counts = consolidated(rows, np.ones(rows.shape[1], np.int64))
    store = Store(arena, arity, 1, page_rows=page_rows, dir_rows=dir_rows)
    return store.assemble([np.concatenate([distinct, counts[None, :]])])


def supported_change(
    support: Version, old: StoredRelation, facts: Version, fact_change: Change, erased: list[Rows], inserted: list[Rows]
) -> tuple[Version, Change]:
    """(the next support, the change of the head's content) when derivations go and come and facts change.

    `old`: the head before; `facts`: its facts after.
    """
    rows = np.concatenate([*erased, *inserted, fact_change.rows], axis=1)
    weights = np.zeros(rows.shape[1], np.int64)
    gone, come = (sum(part.shape[1] for part in parts) for parts in (erased, inserted))
    weights[:gone], weights[gone : gone + come] = -1, 1
    rows, weights = consolidated(rows, weights)
    before = support.values_of(rows)[0]
    after = before + weights
    assert not len(after) or int(after.min()) >= 0, "a derivation went that was never counted"
    moved = weights != 0
    batch = np.concatenate([rows, after[None, :]])[:, moved]
    following, _ = support.update(batch, np.where(after[moved] > 0, 1, -1).astype(np.int8))
    was, now = before > 0, after > 0
    if len(old.facts):
        was |= old.facts.contains(rows)
    if len(facts):
        now |= facts.contains(rows)
    flips = was != now
    return following, Change(np.compress(flips, rows, axis=1), np.where(now[flips], 1, -1).astype(np.int8))
