"""Retraction: which rows of a component lose their support when others go.

Rows of some derivation that is no longer there are suspects. They are examined in order of their rounds: a row stays if
it has a derivation from rows of smaller rounds, which by then are settled; else it goes, and the rows of larger rounds
that used it are suspects too. Suspects of one round are checked together: they depend on smaller rounds only.

Design section 7; spec/rounds_model.py.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lftj.rounds.component import Deltas, Work, without
from lftj.rounds.content import rounds_of, shrunk
from lftj.rounds.deltajoin import Relations

Rows = npt.NDArray[np.int64]


@dataclass(slots=True)
class Retraction:
    """Rows under suspicion by head and round, and what came of it: how many were examined, and the rows that went."""

    work: Work
    before: Relations
    examined: int = 0
    removed: dict[str, list[Rows]] = field(default_factory=dict)
    _suspects: dict[tuple[int, str], list[Rows]] = field(default_factory=dict)
    _rounds: list[tuple[int, str]] = field(default_factory=list)

    def suspect(self, head: str, rows: Rows, after: int) -> None:
        """Examine `rows` int64[arity, n] of `head`, those that are there with a round greater than `after`."""
        rows, rounds = rounds_of(self.work.relations[head], rows)
        for round_ in np.unique(rounds[rounds > after]).tolist():
            if (round_, head) not in self._suspects:
                heapq.heappush(self._rounds, (round_, head))
            self._suspects.setdefault((round_, head), []).append(np.compress(rounds == round_, rows, axis=1))

    def consumers(self, name: str, rows: Rows, after: int, *, negated: bool = False) -> None:
        """Suspect what used `rows` of `name` (`negated`: what their absence allowed)."""
        joins = self.work.joins
        for c, i in joins.negative(name) if negated else joins.positive(name):
            join = joins.consumers(c, i)
            heads = self.work.run(join, self.before, rows, None)
            # A key order that was built over the relations as they were before is kept for the next change.
            for predicate, order in join.orders:
                self.work.relations[predicate].order(order)
            if heads.shape[1]:
                self.suspect(joins.clauses[c].head, heads, after)

    def remove(self, head: str, rows: Rows) -> None:
        """Take `rows` of `head` away."""
        self.work.relations[head] = shrunk(self.work.relations[head], rows)
        self.removed.setdefault(head, []).append(rows)

    def rows_removed(self) -> Deltas:
        """The distinct rows that were taken away."""
        relations = self.work.relations
        return {head: self.work.distinct(chunks, relations[head].arity) for head, chunks in self.removed.items()}

    def examine(self) -> None:
        """Examine all suspects, in order of their rounds."""
        work = self.work
        while self._rounds:
            round_ = self._rounds[0][0]
            gone: Deltas = {}
            while self._rounds and self._rounds[0][0] == round_:
                _, head = heapq.heappop(self._rounds)
                rows = work.distinct(self._suspects.pop((round_, head)), work.relations[head].arity)
                self.examined += rows.shape[1]
                kept = work.supported(head, rows, round_)
                lost = without(rows, kept)
                if lost.shape[1]:
                    gone[head] = lost
            for head, rows in gone.items():
                self.remove(head, rows)
            for head, rows in gone.items():
                self.consumers(head, rows, round_)
            work.look(self.examined)
