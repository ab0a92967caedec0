"""Heads that hold some of the rows that their one rule copies, or more beside them: what is kept, how they change."""

from __future__ import annotations

import weakref

import numpy as np
import numpy.typing as npt

from lftj.maintain.step import Step
from lftj.maintain.strategy import KeptContents
from lftj.program.strata import Heads
from lftj.store.change import Change, change_of_rows
from lftj.store.stored import StoredRelation
from scantree.version import Version


class KeptOfCopies(KeptContents):
    """It is of the rows of `below`."""

    def __init__(self, heads: Heads, below: Version) -> None:
        self.clauses = heads.clauses
        self._below = weakref.ref(below)

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether it is of the rows before the step."""
        below = below_of(heads)
        return (
            self.clauses == heads.clauses
            and heads.name not in step.new_heads
            and below in step.before.relations
            and step.before.relations[below].content is self._below()
            and below in step.changes
        )


def below_of(heads: Heads) -> str:
    """The relation whose rows the one rule of a head copies."""
    return heads.clauses[0].atoms[0].predicate


def exchanged(
    relation: StoredRelation, before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]
) -> tuple[StoredRelation, Change]:
    """(the relation with rows int64[arity, n] `after` in the place of those `before`, the change)."""
    change, content = change_of_rows(relation.arity, [before], [after]), relation.content
    if len(change.kinds):
        content, _ = content.update(change.rows, change.kinds)
    return relation.successor(content, change=change), change
