"""All rules of a database, evaluated bottom up and on demand.

Each derived relation is *fresh* (its content is what its rules derive from the present contents below it) or *stale*.
A load makes everything above the loaded relation stale; asking for a relation evaluates the stale ones below it, in
the order of the strata, and then itself. A relation is published when all of its clauses are evaluated, so a stop in
between (Ctrl-C, time-out, an error in a rule) leaves every published content as it was, and the rest stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from lftj.engine.evaluate import Evaluation, Evaluator
from lftj.join.run import Limits
from lftj.language.clause import Clause

Rows = npt.NDArray[np.int64]


class Strata:
    """The clauses of a database in evaluation order, which heads are stale, and how each clause was last evaluated."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.clauses: tuple[Clause, ...] = ()
        self.order: tuple[str, ...] = ()
        self.stale: set[str] = set()
        self.evaluations: dict[Clause, Evaluation] = {}

    def extend(self, clauses: Iterable[Clause], order: Iterable[str]) -> None:
        """Add clauses; `order` lists all heads, bottom up."""
        added = tuple(clauses)
        self.clauses += added
        self.order = tuple(order)
        for clause in added:
            self.stale.add(clause.head)
            self.touch(clause.head)

    def of(self, name: str) -> list[Clause]:
        """The clauses that derive `name`."""
        return [clause for clause in self.clauses if clause.head == name]

    def below(self, name: str) -> set[str]:
        """`name` and all relations it is derived from."""
        found, frontier = {name}, [name]
        while frontier:
            for clause in self.of(frontier.pop()):
                for atom in clause.atoms:
                    if atom.predicate not in found:
                        found.add(atom.predicate)
                        frontier.append(atom.predicate)
        return found

    def touch(self, name: str) -> None:
        """The content of `name` changed, or will.

        What is derived from it is stale, and so is `name` itself if rules derive it.
        """
        if self.of(name):
            self.stale.add(name)
        for head in self.order:
            if head not in self.stale and any(
                a.predicate in self.stale or a.predicate == name for c in self.of(head) for a in c.atoms
            ):
                self.stale.add(head)

    def refresh(self, names: Iterable[str], limits: Callable[[str], Limits]) -> None:
        """Bring `names` up to date; `limits` is asked once per evaluated relation."""
        needed = {n for name in names for n in self.below(name)} & self.stale
        for head in self.order:
            if head in needed:
                self._evaluate(head, limits(head))
                self.stale.discard(head)

    def _evaluate(self, head: str, limits: Limits) -> None:
        relation = self.evaluator.relations[head]
        clauses = self.of(head)
        chunks: list[Rows] = []
        done: dict[Clause, Evaluation] = {}
        for clause in clauses:
            done[clause] = self.evaluator.rows(clause, limits, chunks.append)
        alone = len(clauses) == 1 and len(relation.facts) == 0
        in_order = alone and done[clauses[0]].plan.in_order
        if len(relation.facts):
            chunks.append(relation.facts.columns())
        relation.publish(relation.assemble(chunks, in_order=in_order))
        self.evaluations.update(done)
