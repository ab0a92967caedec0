"""The rows of a recursive predicate with their rounds: one version, the round being a value that readers do not see.

Facts have round 0, derived rows the number of the round they came in, which is larger than those of all rows of some
derivation. A round is an int64 beside the row: 8 bytes, and no history.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.store.change import ERASED, INSERTED, Change
from lftj.store.stored import Private, StoredRelation
from scantree.probe import ADD
from scantree.probe import INSERTED as ADDED

Rows = npt.NDArray[np.int64]

# A batch larger than this part of the rows is merged with them: changing pages in place takes some forty times as much
# per row that comes as merging takes per row that is there (closure of SF: 0.28 us and 7 ns).
LARGE_PART = 1 / 40


def has_rounds(relation: StoredRelation) -> bool:
    """Whether the content of the relation knows rounds."""
    return relation.content.store.hidden


def with_rounds(relation: StoredRelation, rows: Rows, round_: int) -> StoredRelation:
    """The relation with `rows` int64[arity, n] as its content, distinct and in order, all of one round."""
    store = relation.rounds_store()
    if relation.arity:
        rounds = np.full((1, rows.shape[1]), round_, np.int64)
        return relation.successor(store.assemble([np.concatenate([rows, rounds])]))
    return relation.successor(store.assemble([np.full((1, min(1, rows.shape[1])), round_, np.int64)]))


def with_rows(relation: StoredRelation, rows: Rows, round_: int, private: Private) -> tuple[StoredRelation, Rows]:
    """(the relation with more rows int64[arity, n] of one round, those of them that it did not have).

    They come distinct and in order; rows that are there keep their round. What is `private` of the relation as it was
    is used up.
    """
    n = rows.shape[1]
    if not n:
        return relation, rows
    content = relation.content
    if relation.arity and n > LARGE_PART * len(content):
        following, new = content.merged(rows, (round_,), use_up=content in private)
    else:
        batch = np.concatenate([rows, np.full((1, n), round_, np.int64)])
        following, done = content.update(batch, np.full(n, ADD, np.int8), use_up=content in private)
        new = done.verdicts == ADDED
    private.follow(content, following)
    if not new.all():
        rows = np.compress(new, rows, axis=1)
    if not rows.shape[1] and following is content:
        return relation, rows
    return relation.after_change(following, Change(rows, np.ones(rows.shape[1], np.int8)), LARGE_PART, private), rows


def without_rows(relation: StoredRelation, rows: Rows, private: Private) -> StoredRelation:
    """The relation without `rows` int64[arity, n], which are there. What is `private` of it is used up."""
    n = rows.shape[1]
    if not n:
        return relation
    content, kinds = relation.content, np.full(n, ERASED, np.int8)
    batch = np.concatenate([rows, np.zeros((1, n), np.int64)])
    following, _ = content.update(batch, kinds, use_up=content in private)
    private.follow(content, following)
    return relation.after_change(following, Change(rows, kinds), LARGE_PART, private)


def exchanged(relation: StoredRelation, old: Rows, new: Rows, round_: int) -> StoredRelation:
    """The relation without rows `old`, which are there, and with rows `new` of one round, which are not.

    Both int64[arity, n], distinct and in order.
    """
    if not old.shape[1]:
        return with_rows(relation, new, round_, Private())[0]
    gone, come = old.shape[1], new.shape[1]
    rounds = np.repeat(np.array([0, round_]), [gone, come])
    kinds = np.repeat(np.array([ERASED, INSERTED], np.int8), [gone, come])
    following, done = relation.content.update(np.vstack([np.concatenate([old, new], axis=1), rounds]), kinds)
    change = Change.of_update(done)
    return relation.successor(following, change=Change(change.rows[: relation.arity], change.kinds))


def as_facts(relation: StoredRelation, rows: Rows) -> StoredRelation:
    """The relation whose `rows` int64[arity, n], which are there, have become facts."""
    n = rows.shape[1]
    if not n:
        return relation
    batch = np.concatenate([rows, np.zeros((1, n), np.int64)])
    following, _ = relation.content.update(batch, np.ones(n, np.int8))
    return relation.successor(following, change=Change(rows[:, :0], np.empty(0, np.int8)))


def rounds_of(relation: StoredRelation, rows: Rows) -> Rows:
    """Those of `rows` int64[arity, n] that are there, with their rounds as the last row."""
    there, rounds = relation.content.lookup(rows)
    found = np.concatenate([rows, rounds])
    return found if there.all() else np.compress(there, found, axis=1)
