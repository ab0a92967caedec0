"""What is kept of a head that holds more of, or fewer of, the rows that its one rule copies from a relation below."""

from __future__ import annotations

import weakref

from lftj.maintain.step import Step
from lftj.program.strata import Heads
from scantree.version import Version


class KeptOfCopies:
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
