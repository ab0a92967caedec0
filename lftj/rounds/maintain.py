"""The next content of a component after a change of what it reads, and of its facts.

    suspects   rows of some derivation that is no longer there. They are examined in order of their rounds: a row stays
               if it has a derivation from rows of smaller rounds, which by then are settled; else it goes, and the rows
               of larger rounds that used it are suspects too.
    returning  rows that went and have a derivation still: they come back, in a new round
    new        rows that the inserted rows, and those that returned, derive: semi-naive rounds from there

New rounds begin past the greatest so far, so that every row stays younger than some derivation of it. Rounds need not
be the least possible. Suspects of one round are checked together: they depend on smaller rounds only.

Design section 7; spec/rounds_model.py.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lftj.engine.change import ERASED, INSERTED, Change
from lftj.engine.headtrace import summed
from lftj.engine.stored import StoredRelation
from lftj.rounds.component import Deltas, Work, settle
from lftj.rounds.content import as_facts, rounds_of, shrunk
from lftj.rounds.deltajoin import NO_LIMIT, Relations

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
                kept = supported(work, head, rows, round_)
                lost = without(rows, kept)
                if lost.shape[1]:
                    gone[head] = lost
            for head, rows in gone.items():
                self.remove(head, rows)
            for head, rows in gone.items():
                self.consumers(head, rows, round_)
            work.limits.look(self.examined)


def supported(work: Work, head: str, rows: Rows, limit: int) -> Rows:
    """Those of `rows` int64[arity, n] of `head` that a clause derives from rows of rounds less than `limit`."""
    arity = len(rows)
    found = [np.empty((arity, 0), np.int64)]
    left = rows
    for c, clause in enumerate(work.joins.clauses):
        if clause.head != head or not left.shape[1]:
            continue
        heads = work.run(work.joins.check(c), work.relations, left, limit)[:arity]
        if heads.shape[1]:
            found.append(work.evaluator.distinct([heads], arity)[0])
            left = without(left, found[-1])
    return work.distinct(found, arity) if len(found) > 1 else found[0]


def without(rows: Rows, others: Rows) -> Rows:
    """`rows` int64[arity, n] that are not in `others`, which are some of them; both distinct."""
    if not others.shape[1]:
        return rows
    both, times = summed(np.concatenate([rows, others], axis=1), np.ones(rows.shape[1] + others.shape[1], np.int64))
    return np.compress(times == 1, both, axis=1)


def maintain(
    work: Work,
    before: Relations,
    changes: Mapping[str, Change],
    facts: Mapping[str, Change],
    top: int,
) -> Retraction:
    """Bring the members in `work.relations` to what they are after a change.

    `work.relations`: those below as they are after it, the members as before it · `before`: all as before it ·
    `changes` of those below · `facts`: changes of the members' facts · `top`: no round is greater.
    """
    retraction = Retraction(work, before)
    work.round = top
    for name, change in changes.items():
        _each(retraction, name, change.of_kind(ERASED), negated=False)
        _each(retraction, name, change.of_kind(INSERTED), negated=True)
    for head, change in facts.items():
        erased = change.of_kind(ERASED)
        if erased.shape[1]:
            retraction.remove(head, erased)
            retraction.consumers(head, erased, 0)
    retraction.examine()
    new = _inserted_facts(work, facts)
    work.round += 1
    found: dict[str, list[Rows]] = {}
    for head, chunks in retraction.removed.items():
        gone = without_present(work.relations[head], work.distinct(chunks, work.relations[head].arity))
        back = supported(work, head, gone, NO_LIMIT)
        if back.shape[1]:
            found.setdefault(head, []).append(back)
    for name, change in changes.items():
        for kind, places in ((INSERTED, work.joins.positive), (ERASED, work.joins.negative)):
            rows = change.of_kind(kind)
            for c, i in places(name) if rows.shape[1] else ():
                heads = work.run(work.joins.forward(c, i), work.relations, rows, None)
                if heads.shape[1]:
                    found.setdefault(work.joins.clauses[c].head, []).append(heads)
    for head, rows in work.grow(found).items():
        new[head] = rows if head not in new else work.distinct([new[head], rows], len(rows))
    work.go_on(new)
    settle(work)
    for head in work.heads:
        work.evaluator.rounds.note(work.relations[head].content, work.round)
    return retraction


def _each(retraction: Retraction, name: str, rows: Rows, *, negated: bool) -> None:
    if rows.shape[1]:
        retraction.consumers(name, rows, 0, negated=negated)


def _inserted_facts(work: Work, facts: Mapping[str, Change]) -> Deltas:
    """Store the members' new facts; those that were not there."""
    new: Deltas = {}
    for head, change in facts.items():
        rows = change.of_kind(INSERTED)
        if not rows.shape[1]:
            continue
        relation = work.relations[head]
        there = relation.content.contains(rows)
        work.relations[head] = as_facts(relation, np.compress(there, rows, axis=1))
        fresh = np.compress(~there, rows, axis=1)
        if fresh.shape[1]:
            held, work.round = work.round, 0
            new |= work.grow({head: [fresh]})
            work.round = held
    return new


def without_present(relation: StoredRelation, rows: Rows) -> Rows:
    """`rows` int64[arity, n] that the relation does not hold."""
    return np.compress(~relation.content.contains(rows), rows, axis=1)
