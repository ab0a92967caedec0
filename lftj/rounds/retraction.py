"""Retraction: which rows of a component lose their support when others go.

Rows of some derivation that is no longer there are suspects. A suspect stays if it has a derivation from rows of
smaller rounds; else it goes, and the rows of larger rounds that used it are suspects, again perhaps. So at every moment
each row that is no suspect has a derivation from rows that are there, of smaller rounds, and at the end all have.

Any order would do. Those of the smallest rounds come first, for what they depend on is settled then; but many rounds
at once, since after many changes each round has few rows: a row that is examined too early is examined twice.

Design section 7; spec/rounds_model.py, which examines round by round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lftj.rounds.component import Deltas, Work, not_among
from lftj.rounds.content import rounds_of, shrunk
from lftj.rounds.deltajoin import Relations
from scantree.sort import sort_rows

Rows = npt.NDArray[np.int64]

# Suspects are examined so many at a time, or this part of all.
AT_ONCE, PART = 1 << 12, 1 / 2


@dataclass(slots=True)
class Retraction:
    """Rows under suspicion, with their rounds, and what came of it: how many were examined, and the rows that went.

    `before`: the relations before the change.
    """

    work: Work
    before: Relations
    examined: int = 0
    removed: dict[str, list[Rows]] = field(default_factory=dict)
    _suspects: dict[str, list[Rows]] = field(default_factory=dict)

    def suspect(self, head: str, rows: Rows, after: int) -> None:
        """Examine `rows` int64[arity, n] of `head`, those that are there with a round greater than `after`."""
        rows, rounds = rounds_of(self.work.relations[head], rows)
        suspects = np.compress(rounds > after, np.concatenate([rows, rounds[None, :]]), axis=1)
        if suspects.shape[1]:
            self._suspects.setdefault(head, []).append(suspects)

    def consumers(self, name: str, rows: Rows, after: int, over: Relations, *, negated: bool = False) -> None:
        """Suspect what used `rows` of `name` (`negated`: what their absence allowed) in derivations from `over`."""
        joins, found = self.work.joins.consumers_of(name, negated=negated), dict[str, list[Rows]]()
        self.work.ask(joins, over, rows, found)
        # A key order that was built over the relations as they were is kept for the next change.
        for predicate, order in {at for join in joins for at in join.orders}:
            self.work.relations[predicate].order(order)
        for head, chunks in found.items():
            for heads in chunks:
                self.suspect(head, heads, after)

    def remove(self, gone: Deltas, after: int) -> None:
        """Take rows away, of rounds from `after` on, and suspect what used them in a derivation until now."""
        over = dict(self.work.relations)
        for head, rows in gone.items():
            self.work.relations[head] = shrunk(over[head], rows)
            self.removed.setdefault(head, []).append(rows)
        for head, rows in gone.items():
            self.consumers(head, rows, after, over)

    def rows_removed(self) -> Deltas:
        """The distinct rows that were taken away."""
        relations = self.work.relations
        return {head: self.work.distinct([*chunks], relations[head].arity) for head, chunks in self.removed.items()}

    def examine(self) -> None:
        """Examine all suspects."""
        work = self.work
        while self._suspects:
            gone, firsts = Deltas(), list[int]()
            for head, suspects in self._next().items():
                rows, rounds = suspects[:-1], suspects[-1]
                self.examined += rows.shape[1]
                lost = not_among(rows, work.supported(head, rows, rounds))
                if lost.any():
                    gone[head] = np.compress(lost, rows, axis=1)
                    firsts.append(int(rounds[lost].min()))
            if gone:
                self.remove(gone, min(firsts))
            work.look(self.examined)

    def _next(self) -> Deltas:
        """The suspects to examine next, with their rounds as the last row, by head; they are none from here on."""
        waiting = {head: np.concatenate(chunks, axis=1) for head, chunks in self._suspects.items()}
        self._suspects = {}
        rounds = np.concatenate([suspects[-1] for suspects in waiting.values()])
        at_once = max(AT_ONCE, int(PART * len(rounds)))
        last = np.partition(rounds, at_once)[at_once] if at_once < len(rounds) else rounds.max()
        found = Deltas()
        for head, suspects in waiting.items():
            now = suspects[-1] <= last
            if now.any():
                found[head] = sort_rows(np.compress(now, suspects, axis=1), len(suspects) - 1)
            if not now.all():
                self._suspects[head] = [np.compress(~now, suspects, axis=1)]
        return found
