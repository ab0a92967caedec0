"""Streams: what comes and goes event by event in a commit, beside the net changes that all heads follow.

A stream of events on relations without rules goes into a commit (`Database.apply`). Heads that triggers keep add the
stream of their own rows, and so do heads that have the rows of such a head: an alias, and the sum or count of nothing,
which is 0 as long as there is no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lftj.language.clause import INTERNAL, Clause, Term, Value, Var
from lftj.program.aliases import alias_of
from lftj.store.change import ERASED, INSERTED
from lftj.store.stored import StoredRelation
from lftj.triggers.derived_relations import NoEvents
from lftj.triggers.head_rows import RowLog


@dataclass(slots=True)
class Streams:
    """`logs`: the rows that come and go, by relation · `last`: the number of the last event.

    A log that is not asked for yet may be what makes it. `still`: of relations without logs whether no event can have
    changed them, as far as that is known.
    """

    logs: dict[str, RowLog | Callable[[], RowLog]]
    last: int
    still: dict[str, bool] = field(default_factory=dict)

    def of(
        self, name: str, by_head: Mapping[str, Sequence[Clause]], relations: Mapping[str, StoredRelation]
    ) -> RowLog | None:
        """The stream of a relation; None if it is not known event by event.

        Raises `NoEvents` where a group has no result after one of the events.
        """
        if name in self.logs:
            return self._log(name)
        clauses, relation = by_head.get(name, ()), relations[name]
        if clauses and not len(relation.facts):
            if below := alias_of(clauses, relations):
                return self.of(below, by_head, relations)
            if below := _total_or_zero(clauses, relations):
                found = self.of(below, by_head, relations)
                return None if found is None else _with_zero(found)
        return RowLog.none(relation.arity) if self._is_still(name, by_head) else None

    def moved(self, names: Iterable[str]) -> None:
        """These heads have changed: those without a log did so nobody knows when."""
        self.still |= {name: False for name in names if name not in self.logs}

    def unknown(
        self, name: str, by_head: Mapping[str, Sequence[Clause]], relations: Mapping[str, StoredRelation]
    ) -> str:
        """The first relation that the rules of `name` read whose stream is not known; empty if there is none."""
        for read in _reads(name, by_head):
            if self.of(read, by_head, relations) is None:
                return read
        return ""

    def known_below(
        self, name: str, by_head: Mapping[str, Sequence[Clause]], relations: Mapping[str, StoredRelation]
    ) -> list[str]:
        """The heads that follow the events, of those that the rules of `name` read, themselves or by their parts."""
        found, seen, frontier = [], {name}, [name]
        while frontier:
            for read in _reads(frontier.pop(0), by_head):
                if read in seen or not by_head.get(read):
                    continue
                seen.add(read)
                if self.of(read, by_head, relations) is None:
                    frontier += [read] if read.startswith(INTERNAL) else []
                elif not self._is_still(read, by_head):  # whatever it is, one that nothing has changed is known
                    found.append(read)
        return found

    def _is_still(self, name: str, by_head: Mapping[str, Sequence[Clause]]) -> bool:
        """Whether no event has changed what a relation without a log is derived from, be it for a moment."""
        known = self.still.get(name)
        if known is None:
            known, seen, frontier = True, {name}, [name]
            while known and frontier:
                for read in _reads(frontier.pop(), by_head):
                    if read in self.logs:
                        known = known and self._is_empty(read)
                    elif read not in seen:
                        known = known and self.still.get(read, True)
                        seen.add(read)
                        frontier.append(read)
            self.still[name] = known
        return known

    def _is_empty(self, name: str) -> bool:
        """Whether the log of a relation is known, and has no rows."""
        try:
            return not len(self._log(name).kinds)
        except NoEvents:
            return False

    def _log(self, name: str) -> RowLog:
        found = self.logs[name]
        if not isinstance(found, RowLog):
            found = self.logs[name] = found()
        return found


def _reads(name: str, by_head: Mapping[str, Sequence[Clause]]) -> list[str]:
    return list(dict.fromkeys(read for clause in by_head.get(name, ()) for read in clause.reads))


def _total_or_zero(clauses: Sequence[Clause], relations: Mapping[str, StoredRelation]) -> str:
    """The relation of one row at most, and one column, that the head has, or 0 where that has no row; else empty."""
    if len(clauses) != 2:
        return ""
    there, zero = sorted(clauses, key=lambda clause: len(clause.negated))
    if there.negated or there.compares or len(there.atoms) != 1 or zero.atoms or len(zero.negated) != 1:
        return ""
    atom, none = there.atoms[0], zero.negated[0]
    schema = relations[atom.predicate].schema
    if atom.predicate != none.predicate or none.args != (None,) or not (schema.functional and schema.arity == 1):
        return ""
    if len(there.head_args) != 1 or atom.args != there.head_args or not isinstance(atom.args[0], Var):
        return ""
    return atom.predicate if _is_zero(zero) else ""


def _is_zero(clause: Clause) -> bool:
    """Whether all that a clause says beside its atoms is that its head is 0."""
    given: Term = clause.head_args[0]
    if isinstance(given, Var):
        if len(clause.compares) != 1 or (defined := clause.compares[0]).op != "=":
            return False
        sides = (defined.left, defined.right)
        if given not in sides:
            return False
        given = sides[1 - sides.index(given)]
    elif clause.compares:
        return False
    # The code of 0 is 0 but for unsigned numbers, whose sums no stream has.
    return isinstance(given, Value) and given.value == 0 and given.type != "unsigned"


def _with_zero(log: RowLog) -> RowLog:
    """The stream of one row at most, with 0 where there is none."""
    if not len(log.kinds):
        return log
    before = np.flatnonzero(np.diff(log.numbers, prepend=-1))
    rows, kinds, numbers = [], [], []
    for begin, end in zip(before.tolist(), [*before[1:].tolist(), len(log.kinds)], strict=True):
        gone = [
            row for row, kind in zip(log.rows[0, begin:end].tolist(), log.kinds[begin:end], strict=True) if kind < 0
        ]
        come = [
            row for row, kind in zip(log.rows[0, begin:end].tolist(), log.kinds[begin:end], strict=True) if kind > 0
        ]
        gone, come = gone or [0], come or [0]
        if gone != come:
            rows += [*gone, *come]
            kinds += [ERASED, INSERTED]
            numbers += [int(log.numbers[begin])] * 2
    return RowLog(np.array([rows], np.int64).reshape(1, -1), np.array(kinds, np.int8), np.array(numbers, np.int64))
