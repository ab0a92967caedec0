"""Retraction: which rows of a component lose their support when others go.

Rows that some derivation supported which is no longer there are suspects; one from rows that are not all of smaller
rounds than theirs was no support. A suspect stays if it has a derivation from rows of smaller rounds; else it goes, and
those it supported are suspects, again perhaps. So at every moment each row that is no suspect has a derivation from
rows that are there, of smaller rounds, and at the end all have.

Of the rows that went, those may come back at once that had a derivation when they were examined, from rows that were
too young. The others had none, and there are only fewer rows since: they are not looked at again.

Any order would do. Those of the smallest rounds come first, for what they depend on is settled then; but many rounds
at once, since after many changes each round has few rows: a row that is examined too early is examined twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lftj.recursion.component_joins import DeltaJoin
from lftj.recursion.fixpoint import Deltas, Fixpoint, not_among, unmarked
from lftj.recursion.round_column import rounds_of, without_rows
from scantree.sort import sort_rows

Rows = npt.NDArray[np.int64]

# Suspects are examined so many at a time, or this part of all.
AT_ONCE, PART = 1 << 14, 1 / 2


@dataclass(slots=True)
class Retraction:
    """Suspects, rows that may have lost their support, with their rounds, and what was found about them.

    `examined`: how many were · `removed`: the rows that went · `derivable`: those of them that a clause may derive.
    """

    fixpoint: Fixpoint
    examined: int = 0
    removed: dict[str, list[Rows]] = field(default_factory=dict)
    derivable: dict[str, list[Rows]] = field(default_factory=dict)
    _suspects: dict[str, list[Rows]] = field(default_factory=dict)

    def suspect(self, found: Iterable[tuple[DeltaJoin, Rows]]) -> None:
        """Examine the heads that each join found, those that are there and derived (facts need no support)."""
        for join, heads in found:
            if not heads.shape[1]:
                continue
            if join.rounds:  # all are there and derived, and come with their rounds
                self._suspects.setdefault(join.clause.head, []).append(heads)
            else:
                self.add(join.clause.head, heads)

    def add(self, head: str, rows: Rows) -> None:
        """Examine rows of `head`, those that are there and derived."""
        suspects = rounds_of(self.fixpoint.relations[head], rows)
        if not (derived := suspects[-1] > 0).all():
            suspects = np.compress(derived, suspects, axis=1)
        if suspects.shape[1]:
            self._suspects.setdefault(head, []).append(suspects)

    def remove(self, gone: Deltas, derivable: Deltas) -> None:
        """Take rows away, and suspect what they supported until now.

        `gone` holds their rounds as the last row. `derivable`: those of them that a clause may derive, without.
        """
        relations = self.fixpoint.relations
        for head, rows in derivable.items():
            self.derivable.setdefault(head, []).append(rows)
        used = [found for head in gone for found in self.fixpoint.dependents(head, gone[head], relations, limited=True)]
        for head, rows in gone.items():
            relations[head] = without_rows(relations[head], rows[:-1], self.fixpoint.private)
            self.removed.setdefault(head, []).append(rows[:-1])
        for join, heads in used:
            head = join.clause.head
            if join.rounds and head in gone:
                heads = not_among(heads, gone[head][:-1])
            self.suspect([(join, heads)])

    def rows_removed(self) -> Deltas:
        """The distinct rows that were taken away, in order."""
        return self._distinct(self.removed)

    def rows_derivable(self) -> Deltas:
        """Those of them that a clause may derive, in order."""
        return self._distinct(self.derivable)

    def _distinct(self, found: dict[str, list[Rows]]) -> Deltas:
        for head, chunks in found.items():
            if len(chunks) > 1:
                found[head] = [self.fixpoint.distinct([*chunks], self.fixpoint.relations[head].arity)]
        return {head: chunks[0] for head, chunks in found.items()}

    def examine(self) -> None:
        """Examine all suspects."""
        fixpoint = self.fixpoint
        while self._suspects:
            gone: Deltas = {}
            derivable: Deltas = {}
            for head, suspects in self._next().items():
                self.examined += suspects.shape[1]
                lost = fixpoint.unsupported(head, suspects, limited=True)
                if lost.shape[1]:
                    gone[head] = unmarked(lost)
                    if (marked := lost[-1] < 0).any():
                        derivable[head] = np.compress(marked, lost[:-1], axis=1)
            self.remove(gone, derivable)
            fixpoint.look(self.examined)

    def _next(self) -> Deltas:
        """The suspects to examine next, with their rounds as the last row, by head; they are none from here on."""
        waiting = {
            head: chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
            for head, chunks in self._suspects.items()
        }
        self._suspects = {}
        if sum([suspects.shape[1] for suspects in waiting.values()]) <= AT_ONCE:
            return {head: sort_rows(suspects, len(suspects) - 1) for head, suspects in waiting.items()}
        rounds = np.concatenate([suspects[-1] for suspects in waiting.values()])
        at_once = max(AT_ONCE, int(PART * len(rounds)))
        last = np.partition(rounds, at_once)[at_once] if at_once < len(rounds) else rounds.max()
        found: Deltas = {}
        for head, suspects in waiting.items():
            now = suspects[-1] <= last
            if now.any():
                found[head] = sort_rows(np.compress(now, suspects, axis=1), len(suspects) - 1)
            if not now.all():
                self._suspects[head] = [np.compress(~now, suspects, axis=1)]
        return found
