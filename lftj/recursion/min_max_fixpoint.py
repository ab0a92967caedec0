"""Components of best values: each key of a functional predicate holds the least, or greatest, value derived for it.

    dist(y, min d) :- source(y), d = 0.
    dist(y, min d) :- dist(x, c), edge(x, y, w), d = c + w.

What the rules and facts of a key propose are *candidates*; in each round the best new one takes the place of the value
that is there, if it is better. The result is the least solution of the rules: values only get better from round to
round, and the last round finds no better candidate. That is sound for rules that are *monotone*, which find nothing
worse if what they read gets better. Rows of good values have their turn before others, as long as no value is better
than what it is derived from (Dijkstra's order, by the bundle): most of the others are replaced before their turn.

A row that is replaced may have supported others: of equal value by either (a label, `d = max(c, w)`), which stand, and
are now older than what supports them; or not at all, where a rule is not monotone. So rows whose derivations used
replaced rows are doubtful, and when the rounds have ended they are examined as suspects are: those without support of
smaller rounds go, and come back, just they, in new rounds from what stands. If one does not come back, nothing
that stands derives it, or only from itself: `UnsettledError`. So what is published is always

    supported   every row that is no fact has a derivation from rows that stand, of smaller rounds
    best        no derivation from rows that stand gives a key a better value

and for monotone rules there is only one such content: by induction on rounds nothing in it is better than the least
solution, and no solution is worse than that. Neither needs values to get worse along a derivation: longest paths in a
graph without cycles, or negative weights without negative cycles, are maintained by the same steps, and a cycle of
equal values does not keep itself.

Maintenance is that of other recursive rows (lftj/maintain/rounds.py): what loses its support goes, all candidates are
asked for the keys that went (`variants.candidates_for_keys`), and with what is new improvement goes on from there.

Source of the least solution: K. Ross, Y. Sagiv, Monotonic Aggregation in Deductive Databases (PODS 1992).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lftj.errors import EvaluationError
from lftj.evaluate.group_scan import ranked
from lftj.evaluate.key_conflicts import shown_row
from lftj.join.groups import Runs
from lftj.recursion.fixpoint import Deltas, Fixpoint
from lftj.recursion.retraction import Retraction
from lftj.recursion.round_column import exchanged, with_rounds, with_rows
from lftj.recursion.variant_plans import Relations
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.values import gate
from lftj.values.type_table import in_dictionary
from scantree.version import Rows, Version

# Doubtful rows that wait to be made distinct, at most about.
WAITING = 1 << 16
# So many suspects, if they are such a part of all rows, are too many: chains of them are examined row by row.
BULK_ROWS, BULK_PART = 1_000, 1 / 4
# Rows of which a round takes all; of more it takes this part, the best ones.
MANY, PART = 1 << 10, 16


class UnsettledError(EvaluationError):
    """A value that was derived in some round is derived from nothing that stands. Nothing was changed."""


class TooManyError(Exception):
    """So many rows may have lost their support that an evaluation from scratch is likely to take less."""


@dataclass(slots=True)
class MinMaxFixpoint(Fixpoint):
    """A component of best values while it is evaluated or maintained.

    `ops`: "min" or "max" of each head. `only`: the rows that may come back, while that is all that is done.
    """

    ops: dict[str, str] = field(default_factory=dict)
    only: dict[str, Version] | None = None
    _ordered: bool = True
    _replaced: bool = False
    _doubtful: dict[str, list[Rows]] = field(default_factory=dict)
    _waiting: int = 0

    def grow(self, found: Mapping[str, list[Rows]]) -> Deltas:
        """Store the best of the candidates found for each head, where they are better; what is new."""
        if self.only is not None:
            return self._come_back(found, self.only)
        before, new, replaced = dict(self.relations), Deltas(), Deltas()
        for head, chunks in found.items():
            relation = self.relations[head]
            old, rows = self._better(head, self.distinct(chunks, relation.arity))
            if rows.shape[1]:
                self.relations[head] = exchanged(relation, old, rows, self.round)
                new[head] = rows
                self.rows += rows.shape[1]
            if old.shape[1]:
                replaced[head] = old
        self.limits.before = self.rows
        self.limits.look(0)
        self._doubt(replaced, before)
        return new

    def go_on(self, new: Deltas) -> None:
        """Rounds from those of the rows `new` that stand, until nothing gets better.

        Of many rows the best go first: a row that is replaced before its turn has none.
        """
        waiting = self._standing(new)
        while waiting:
            first, waiting = self._first(waiting)
            fresh = self.next_round({**first})
            if not waiting:
                waiting = fresh
                continue
            self._ordered = self._ordered and self._worse(first, fresh)
            for name, rows in fresh.items():
                waiting[name] = self.distinct([waiting[name], rows], len(rows)) if name in waiting else rows
            waiting = self._standing(waiting)

    def _standing(self, rows: Deltas) -> Deltas:
        """Those of the rows that are there."""
        found = Deltas()
        for name, some in rows.items():
            found[name] = np.compress(self.relations[name].content.contains(some), some, axis=1)
        return _rows_of(found)

    def _first(self, rows: Deltas) -> tuple[Deltas, Deltas]:
        """(the rows that go first, those that wait); nothing waits where there are few, or order is of no use."""
        count = sum(some.shape[1] for some in rows.values())
        types = {self.relations[head].types[-1] for head in self.heads}
        if count <= MANY or not self._ordered or self.only is not None or len(types) > 1:
            return rows, {}
        order = self._orders([rows])
        bound = np.partition(order, count // PART)[count // PART]
        first, wait, at = Deltas(), Deltas(), 0
        for name, some in rows.items():
            early = order[at : at + some.shape[1]] <= bound
            at += some.shape[1]
            first[name], wait[name] = np.compress(early, some, axis=1), np.compress(~early, some, axis=1)
        return _rows_of(first), _rows_of(wait)

    def _worse(self, first: Deltas, fresh: Deltas) -> bool:
        """Whether the rows `fresh` are no better than the best of those they were derived from."""
        if not fresh:
            return True
        order, n = self._orders([first, fresh]), sum(rows.shape[1] for rows in first.values())
        return bool(order[:n].min() <= order[n:].min())

    def _orders(self, parts: list[Deltas]) -> Rows:
        """The order of the values of all rows, one part after the other."""
        values = [rows[-1] for part in parts for rows in part.values()]
        return self._order(self.heads[0], np.concatenate(values))

    def look(self, examined: int) -> None:
        """Go on after so many suspects, or stop."""
        Fixpoint.look(self, examined)  # slots make another class of this one, which `super()` does not know
        rows = sum(len(self.relations[head]) for head in self.heads)
        if examined >= BULK_ROWS and examined > BULK_PART * rows:
            raise TooManyError(f"{examined:,} rows were to be examined, of {rows:,}")

    def may_return(self, removed: Deltas, derivable: Deltas) -> Deltas:
        """All rows that were removed: their keys may have other values."""
        return removed

    def returning(self, head: str, gone: Rows) -> Rows:
        """All candidates for the keys of the rows `gone` int64[arity, n] of `head`."""
        keys = self.changed(self._keys(gone))
        found = [gone[:, :0]]
        for c, clause in enumerate(self.joins.clauses):
            if clause.head == head and gone.shape[1]:
                found.append(self.run(self.joins.candidates_for_keys(c), self.relations, keys))
        return self.distinct(found, len(gone))

    def uncovered(self, head: str, gone: Rows) -> Rows:
        """The facts under the keys of the rows `gone` of `head`."""
        return self.relations[head].facts.rows_under(self._keys(gone))

    def change(self, head: str, before: StoredRelation, removed: list[Rows]) -> Change:
        """How the head's content differs from the one `before`: rows come and go more than once."""
        return Change.between(before.content, self.relations[head].content)

    def finish(self) -> None:
        """Make sure that every row has support of smaller rounds. Raises `UnsettledError`."""
        if self.anew:
            if self._replaced:
                self._begin_again()
            return
        retraction = Retraction(self)
        for head, chunks in self._doubtful.items():
            retraction.add(head, self.distinct(chunks, self.relations[head].arity))
        self._doubtful = {}
        retraction.examine()
        self.examined = retraction.examined
        missing, derivable = retraction.rows_removed(), retraction.rows_derivable()
        self.begin_round(self.round + 1)
        self._restore(missing, {head: [self.supported(head, rows)] for head, rows in derivable.items()})

    def _keys(self, rows: Rows) -> Rows:
        """The distinct keys of rows that are in order."""
        keys = np.ascontiguousarray(rows[:-1])
        return keys if len(keys) else keys[:, : min(1, keys.shape[1])]

    def _order(self, head: str, values: Rows) -> Rows:
        """Numbers of which the smaller one is that of the better value."""
        if in_dictionary(self.relations[head].types[-1]):
            values = ranked(values, self.evaluator.symbols)
        return values if self.ops[head] == "min" else ~values

    def _better(self, head: str, rows: Rows) -> tuple[Rows, Rows]:
        """(rows that are there, what takes their place or is new) of candidates int64[arity, n], in order."""
        keys = len(rows) - 1
        if not rows.shape[1]:
            return rows, rows
        runs = Runs.of(self.relations[head].content, np.ascontiguousarray(rows[:keys]))
        present = np.where(runs.there, runs.ends(keys, last=False), rows[keys])
        order = self._order(head, np.concatenate([rows[keys], present]))
        mine, other = order[: rows.shape[1]], order[rows.shape[1] :]
        better = ~runs.there | (mine < other)
        if not better.any():
            return rows[:, :0], rows[:, :0]
        rows, mine, there = np.compress(better, rows, axis=1), mine[better], runs.there[better]
        present = present[better]
        starts = np.ones(rows.shape[1], np.bool_)
        starts[1:] = (rows[:keys, 1:] != rows[:keys, :-1]).any(axis=0)
        places = np.flatnonzero(starts)
        # The candidates of one key are neighbours, and differ in their values.
        least = np.repeat(np.minimum.reduceat(mine, places), np.diff([*places.tolist(), len(mine)]))
        best = np.flatnonzero(mine == least)
        there = there[best]
        new = np.ascontiguousarray(rows[:, best])
        old = np.vstack([new[:keys], present[best]])
        return np.ascontiguousarray(np.compress(there, old, axis=1)), new

    def _doubt(self, replaced: Deltas, before: Relations) -> None:
        """Note the heads of the derivations over `before` that used `replaced` rows: of rows that are new, too."""
        self._replaced |= bool(replaced)
        if self.anew:
            return
        for name, rows in replaced.items():
            for join, heads in self.dependents(name, rows, before):
                self._doubtful.setdefault(join.clause.head, []).append(heads)
                self._waiting += heads.shape[1]
        if self._waiting > WAITING:
            for head, chunks in self._doubtful.items():
                rows = self.distinct(chunks, self.relations[head].arity)
                # Those that were replaced themselves have no support to lose.
                self._doubtful[head] = [np.compress(self.relations[head].content.contains(rows), rows, axis=1)]
            self._waiting = sum(chunks[0].shape[1] for chunks in self._doubtful.values()) // 2

    def _begin_again(self) -> None:
        """Number all rows anew: their rounds are those of a semi-naive evaluation of nothing but what stands."""
        missing, new = Deltas(), Deltas()
        for head in self.heads:
            relation = self.relations[head]
            rows, facts = relation.content.columns(), relation.facts.columns()
            new[head] = np.compress(relation.content.contains(facts), facts, axis=1)
            missing[head] = np.compress(~relation.facts.contains(rows), rows, axis=1)
            self.relations[head] = with_rounds(relation, new[head], 0)
        self.begin_round(1)
        found: dict[str, list[Rows]] = {}
        for c, clause in enumerate(self.joins.clauses):
            if not self.joins.members & clause.reads.keys():
                heads = self.run(self.joins.delta_rule(c, None), self.relations)
                found.setdefault(clause.head, []).append(heads)
        for name, rows in new.items():
            self.ask(self.joins.delta_rules(name), self.relations, rows, found)
        self._restore(missing, found)

    def _restore(self, missing: Deltas, found: dict[str, list[Rows]]) -> None:
        """Bring the rows `missing` back in rounds, the first of which has `found` some. Raises `UnsettledError`."""
        self.only = {head: self.relations[head].assemble([rows], in_order=True) for head, rows in missing.items()}
        self.go_on(self.grow(found))
        self.only = None
        for head, rows in missing.items():
            lost = np.compress(~self.relations[head].content.contains(rows), rows, axis=1)
            if lost.shape[1]:
                raise self._unsettled(head, lost[:, 0].tolist())

    def _come_back(self, found: Mapping[str, list[Rows]], only: dict[str, Version]) -> Deltas:
        """Store those of the rows found for each head that are in `only` and not there."""
        new = Deltas()
        for head, chunks in found.items():
            relation = self.relations[head]
            rows = self.distinct(chunks, relation.arity)
            if head in only:
                rows = np.compress(only[head].contains(rows) & ~relation.content.contains(rows), rows, axis=1)
                if rows.shape[1]:
                    self.relations[head], new[head] = with_rows(relation, rows, self.round, self.private)
        self.limits.look(0)
        return new

    def _unsettled(self, head: str, codes: list[int]) -> UnsettledError:
        relation, op = self.relations[head], self.ops[head]
        shown = shown_row(relation.schema, gate.decode_row(codes, relation.schema, self.evaluator.symbols))
        rule = next(clause for clause in self.joins.clauses if clause.best and clause.head == head)
        return UnsettledError(
            f"a recursive `{op}` does not settle: {shown} was derived, and nothing that stands derives it",
            where=f"{rule.span}: in `{rule.text}`",
            why="what it came from was replaced by a better value, which gives a worse one (a rule of a recursive "
            f"`{op}` must find nothing worse when what it reads gets better), or comes from it; nothing was changed",
            remedy="let values grow with those they are computed from, as in `d = c + w`, bound them so that a better "
            f"one passes too, as in `c {'<' if op == 'min' else '>'} 9`, and let none improve itself round a cycle",
        )


def _rows_of(found: Deltas) -> Deltas:
    """`found` without the heads of which there are no rows."""
    return {name: rows for name, rows in found.items() if rows.shape[1]}
