"""Keys: the key order of a relation that begins with its key, and upserts by a primary one.

An upsert of rows of a relation with a primary key becomes, at the call, an erase of the rows under their keys and an
insert. The key may stand anywhere among the columns: rows under it are looked for in the key order that begins with it.
"""

from __future__ import annotations

import numpy as np

from lftj.store.change import ERASE, INSERT, Batch
from lftj.store.stored import StoredRelation
from lftj.values.schema import Schema
from scantree.sort import sort_rows
from scantree.version import Rows, Version


def key_first(schema: Schema) -> tuple[int, ...]:
    """The key order that begins with the primary key; the declared one if that does."""
    if sorted(schema.key) == list(range(len(schema.key))):
        return tuple(range(schema.arity))
    return (*schema.key, *(column for column in range(schema.arity) if column not in schema.key))


def facts_by_key(present: StoredRelation) -> tuple[Version, tuple[int, ...], int]:
    """(the facts in the key order that begins with the key, that order, how many columns the key has).

    The key is the primary one, or that of a functional predicate: all columns but the last.
    """
    schema = present.schema
    if not schema.key:
        return present.facts, tuple(range(schema.arity)), schema.arity - 1
    if present.content is not present.facts:  # rules derive others
        present = StoredRelation.over(schema, present.facts)
    order = key_first(schema)
    # Its own: another thread may read what is published.
    return present.frozen().order(order), order, len(schema.key)


def as_declared(rows: Rows, order: tuple[int, ...]) -> Rows:
    """Rows int64[arity, n] in a key order, with their columns as declared."""
    return rows[[order.index(column) for column in range(len(order))]]


def replacing(present: StoredRelation, batch: Batch) -> list[Batch]:
    """The erase and the insert that an upsert is, over the `present` facts of a relation.

    Of several rows with one key the last counts. With a kind ERASE a row takes whatever is under its key.
    """
    facts, order, keys = facts_by_key(present)
    kinds = np.ones(batch.size, np.int8) if batch.kinds is None else batch.kinds
    rows = sort_rows([*batch.rows[list(order)], kinds.astype(np.int64)], keys)
    old = as_declared(facts.rows_under(rows[:keys]), order)
    new = as_declared(np.compress(rows[-1] == INSERT, rows[:-1], axis=1), order)
    return [Batch(old, old.shape[1], ERASE), Batch(new, new.shape[1], INSERT)]
