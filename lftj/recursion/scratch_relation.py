"""The relation of changed rows that a join of a component ranges over.

Most joins are over a few rows, and making a relation of them takes longer than joining them: so what was made for one
join is written again for the next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator
from lftj.recursion.variants import CHANGED
from lftj.store.stored import StoredRelation
from lftj.values.codes import Column, Schema

Rows = npt.NDArray[np.int64]


class Slate:
    """What changed rows of `arity` columns are written on; with `rounds`, a value beside each."""

    def __init__(self, evaluator: Evaluator, arity: int, *, rounds: bool) -> None:
        schema = Schema(CHANGED, tuple(Column(f"c{i}", "number") for i in range(arity)))
        sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
        self._blank = StoredRelation(schema, evaluator.arena, **sizes)
        self._store = self._blank.rounds_store() if rounds else self._blank.facts.store
        self._written: StoredRelation | None = None

    def holding(self, rows: Rows) -> StoredRelation:
        """The relation of `rows` int64[columns, n], distinct and in key order: until the next call."""
        if self._written is not None and self._written.overwrite(rows):
            return self._written
        made = self._blank.holding(self._store.assemble([rows]))
        if made.overwrite(rows):
            self._written = made
        return made
