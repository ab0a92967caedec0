"""The relation of changed rows that a join of a component ranges over.

Most joins are over a few rows, and making a relation takes longer than joining them. So one relation is written again
for every join.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator
from lftj.recursion.variants import CHANGED
from lftj.store.stored import StoredRelation
from lftj.values.schema import Column, Schema

Rows = npt.NDArray[np.int64]


class ScratchRelation:
    """A relation of `arity` columns that is written again and again; with `rounds`, every row has a round beside it."""

    def __init__(self, evaluator: Evaluator, arity: int, *, rounds: bool) -> None:
        schema = Schema(CHANGED, tuple(Column(f"c{i}", "number") for i in range(arity)))
        sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
        self._blank = StoredRelation(schema, evaluator.arena, **sizes)
        self._store = self._blank.rounds_store() if rounds else self._blank.facts.store
        self._written: StoredRelation | None = None

    def holding(self, rows: Rows) -> StoredRelation:
        """The relation with `rows` int64[columns, n], distinct and in key order; valid until the next call."""
        if self._written is not None and self._written.overwrite(rows):
            return self._written
        made = self._blank.holding(self._store.assemble([rows]))
        if made.overwrite(rows):
            self._written = made
        return made
