"""A component while it is evaluated or maintained: the relations as they are so far, and what its joins find in them.

A head that is there already is not proposed: a variant's last atom is the head's own negation, looked at while it walks
(`variants.delta_rule`), except where a round is large and most of what it meets is new: then storing the rows, in
order, finds the others, and of a clause that computes texts. What a round proposes twice is made distinct before it is
stored. Semi-naive evaluation: F. Bancilhon, R. Ramakrishnan, SIGMOD 1986; the delta of nonlinear rules: every atom in
turn ranges over the new rows, the others over all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lftj.errors import TimeoutExpired
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.undefined_terms import look_for_error
from lftj.join.run import Limits
from lftj.language.clause import INTERNAL, Apply, Clause
from lftj.program.text_split import split_text
from lftj.recursion import variants
from lftj.recursion.component_joins import NO_LIMIT, DeltaJoin, Joins
from lftj.recursion.round_column import with_rows
from lftj.recursion.variant_plans import LARGE, Order, Relations
from lftj.store.change import Change, change_of_rows
from lftj.store.stored import Private, StoredRelation
from scantree.memory import ArenaFullError
from scantree.sort import leave_out

Rows = npt.NDArray[np.int64]
Deltas = dict[str, Rows]
Stopped = TimeoutExpired | ArenaFullError | KeyboardInterrupt
STOPS = (TimeoutExpired, ArenaFullError, KeyboardInterrupt)

# From which part of the rows that a round meets being new on, and up to which part of those there are being changed, a
# round leaves it to the storing to find the others.
MOSTLY, ROUND_PART = 1 / 2, 1 / 8
# A key order that no join has read since its relation had this part of the rows is not kept up by an evaluation.
OUTGROWN = 1 / 8


def unbounded(clause: Clause) -> str:
    """What to do about a computation that may have no end."""
    if clause.head.startswith(INTERNAL):
        return "bound the step of the recursive query, as in `where depth < 100`; if there is an end, raise `timeout=`"
    bound = "x < 1000" if split_text(clause) is None else "strlen(x) < 1000"
    return f"bound the values that the rule computes, as in `{bound}`; if there is an end, raise `timeout=`"


def computes(clause: Clause) -> bool:
    """Whether the clause computes values, of which there may be no end."""
    terms = (*clause.head_args, *(term for c in clause.compares if c.op == "=" for term in (c.left, c.right)))
    return any(isinstance(term, Apply) for term in terms)


@dataclass(slots=True)
class Fixpoint:
    """A component while it is evaluated or maintained: its relations so far, and counts of what was done.

    `relations`: those below, and the members, whose content changes here only · `round`: the present one · `rounds`:
    how many there were · `rows`: how many were stored · `examined`: how many rows were examined after the last round ·
    `anew`: whether this is an evaluation from scratch · `met`: by head, how many heads joins of this round met that
    were there already · `stored`: by head, the rows that were stored, unless `anew` · `private`: versions of members
    that no state knows · `texts_seen`, `text_bytes`: how many texts there were in the last round (-1:
    none has begun), and what those take that were computed.
    """

    evaluator: Evaluator
    joins: Joins
    heads: tuple[str, ...]
    relations: dict[str, StoredRelation]
    limits: Limits
    round: int = 0
    rounds: int = 0
    rows: int = 0
    examined: int = 0
    anew: bool = False
    at: Clause | None = None
    met: dict[str, int] = field(default_factory=dict)
    stored: dict[str, list[Rows]] = field(default_factory=dict)
    private: Private = field(default_factory=Private)
    read: dict[Order, int] = field(default_factory=dict)
    texts_seen: int = -1
    text_bytes: int = 0

    def changed(self, rows: Rows, *, limited: bool = False) -> StoredRelation:
        """`rows` int64[arity, n], distinct and in order, as the relation of changed rows; it is there until the next.

        `limited`: the last row holds the limit of each.
        """
        return self.joins.scratch(self.evaluator, len(rows) - limited, rounds=limited).holding(rows)

    def run(
        self,
        join: DeltaJoin,
        over: Relations,
        delta: StoredRelation | None = None,
        limit: int | None = NO_LIMIT,
        *,
        look: bool = True,
    ) -> Rows:
        """The heads that `join` finds over relations `over`, changed rows being those of `delta`.

        `limit`: that of the rounds of tested rows; None: each has that of the clause's last atom. `look`: as there.
        """
        if delta is not None:
            over = {**over, variants.CHANGED: delta}
        self.at = join.clause
        began = time.perf_counter()
        rows = join.rows(self.evaluator, over, self.limits, limit, look=look)
        self.joins.ran(join, rows.shape[1], time.perf_counter() - began)
        if self.anew:
            self.read.update((at, len(over[at[0]])) for at in join.orders)
        return rows

    def ask(self, joins: Sequence[DeltaJoin], over: Relations, rows: Rows, found: dict[str, list[Rows]]) -> None:
        """Add to `found`, by head, what the `joins` find over relations `over`, changed rows being `rows` for all."""
        if not joins or not rows.shape[1]:
            return
        delta = self.changed(rows)
        del rows  # large ones are not to be there twice while they are joined
        for join in joins:
            head = join.clause.head
            heads = self.run(join, over, delta, look=not self._mostly_new(head, len(delta)))
            if heads.shape[1]:
                found.setdefault(head, []).append(heads)
                self.limits.before += heads.shape[1]
            self.met[head] = self.met.get(head, 0) + join.met

    def _mostly_new(self, head: str, changed: int) -> bool:
        """Whether most heads that a join over so many `changed` rows meets are likely to be new.

        Then it takes less to find the others when they are stored, in order, than to look for each (closure of SF: 10 s
        of 51). Not where a round may have many rows beside those that are there: all are in memory until then.
        """
        return self.joins.fresh.get(head, 0.0) > MOSTLY and changed < ROUND_PART * len(self.relations[head])

    def dependents(
        self, name: str, rows: Rows, over: Relations, *, limited: bool = False, negated: bool = False
    ) -> list[tuple[DeltaJoin, Rows]]:
        """(join, the heads it finds) for the heads that `rows` of `name` support (`negated`: whose absence supports).

        A head counts if relations `over` hold it and derive it with such a row from rows of smaller rounds. Heads come
        with their rounds (`DeltaJoin.rounds`), if they have any. `limited`: `rows` are those of a member, and the last
        row of the array holds their rounds; without it all heads that are derived with them count.
        """
        if not rows.shape[1]:
            return []
        joins = self.joins.dependents_of(name, negated=negated, older=limited or name not in self.joins.members)
        if not joins:
            return []
        delta = self.changed(rows, limited=limited)
        found = [(join, self.run(join, over, delta, None if join.tested else NO_LIMIT)) for join in joins]
        # A key order that was built over the relations as they were is kept for the next change.
        for predicate, order in {at for join in joins for at in join.orders}:
            if order not in self.relations[predicate].orders:
                self.relations[predicate].order(order)
        return found

    def located(self, stop: Stopped) -> Stopped:
        """`stop` with the rule and the round in which it happened."""
        if isinstance(stop, TimeoutExpired):
            remedy = stop.remedy if self.at is None or not computes(self.at) else unbounded(self.at)
            return TimeoutExpired(stop.what, where=self.place, why=stop.why, remedy=remedy)
        if isinstance(stop, ArenaFullError):
            stop.where = self.place
        elif self.place:
            stop.add_note(self.place)
        return stop

    @property
    def place(self) -> str:
        """The present rule and round, for messages."""
        return "" if self.at is None else f"{self.at.span}: in `{self.at.text}`, round {self.round}"

    def distinct(self, chunks: list[Rows], arity: int) -> Rows:
        """The distinct rows of chunks, each of them distinct and in order, in order; the list may be emptied."""
        if len(chunks) == 1:
            return chunks[0]
        return self.evaluator.distinct(chunks, arity)[0]

    def grow(self, found: Mapping[str, list[Rows]]) -> Deltas:
        """Store the rows found for each head, in the present round; what is new."""
        new: Deltas = {}
        for head, chunks in found.items():
            relation = self.relations[head]
            rows = self.distinct(chunks, relation.arity)
            if not rows.shape[1]:
                continue
            met = rows.shape[1] + self.met.get(head, 0)
            self.relations[head], rows = with_rows(relation, rows, self.round, self.private)
            if met >= LARGE:
                self.joins.fresh[head] = rows.shape[1] / met
            if rows.shape[1]:
                new[head] = rows
                self.rows += rows.shape[1]
                if not self.anew:
                    self.stored.setdefault(head, []).append(rows)
        self.met = {}
        self.limits.before = self.rows
        self.limits.look(0)
        return new

    def begin_round(self, round_: int) -> None:
        """What is found from here on is of this round."""
        self.round = round_
        if self.anew:
            self._forget_outgrown()
        if self.joins.texts:
            self._look_at_texts()
        self.limits.count("new rows", self.rows, f"round {round_}")

    def _look_at_texts(self) -> None:
        """Stop where the texts that were computed so far, which are in no page, would not fit beside the pages."""
        symbols, arena = self.evaluator.symbols, self.evaluator.arena
        begin, end = self.texts_seen, len(symbols)
        if 0 <= begin < end:
            self.text_bytes += symbols.decode(np.arange(begin, end)).nbytes
        self.texts_seen = end
        if arena.limit is not None and arena.used + self.text_bytes > arena.limit:
            raise ArenaFullError(arena.used + self.text_bytes, arena.limit)

    def _forget_outgrown(self) -> None:
        """Drop the key orders of members that joins have read only while there were few rows.

        While there are few, the planner takes any key order for free; kept, each has all rows stored once more, and
        in every transaction after (a closure with one fact of its own took twice as long).
        """
        for head in self.heads:
            relation = self.relations[head]
            for order in list(relation.orders)[1:]:
                if self.read.get((head, order), 0) < OUTGROWN * len(relation):
                    relation.forget(order)
                    self.joins.adopted.discard((head, order))

    def go_on(self, new: Deltas) -> None:
        """Rounds from the rows that are `new`, until there are none."""
        while new:
            new = self.next_round(new)

    def next_round(self, new: Deltas) -> Deltas:
        """What is new after one more round, by the derivations of the rows that are `new`, which is emptied."""
        self.begin_round(self.round + 1)
        self.rounds += 1
        found: dict[str, list[Rows]] = {}
        for name in list(new):
            self.ask(self.joins.delta_rules(name), self.relations, new.pop(name), found)
        return self.grow(found)

    def unsupported(self, head: str, rows: Rows, *, limited: bool = False) -> Rows:
        """Those of `rows` int64[arity, n] of `head`, in order, that no clause derives.

        `limited`: from rows of smaller rounds than those that the last row of the array holds. Where a clause may
        derive a row from others, its round is marked in what is returned (`unmarked`). Of what a clause computes texts
        from the rounds are not known, so its heads may all be derived from others: all go, and come back.
        """
        delta: StoredRelation | None = None
        for c, clause in enumerate(self.joins.clauses):
            if clause.head != head or not rows.shape[1]:
                continue
            if limited and c in self.joins.texts:
                rows, delta = np.concatenate([rows[:-1], ~unmarked(rows)[-1:]]), None
                continue
            rederive, limit = self.joins.rederive(c), None if limited else NO_LIMIT
            greatest = rederive.nullary_round(self.relations) if limited else -1
            if limited and rederive.marking and (greatest >= 0 or len(rows) == 1):
                # Of rows without columns the walk knows nothing, as a limit or as what it is compared with.
                rows, delta = np.concatenate([rows[:-1], ~unmarked(rows)[-1:]]), None
            if greatest >= 0:
                young = np.compress(~rows[-1] > greatest, rows, axis=1)
                if not young.shape[1]:
                    continue
                asked = self.changed(young, limited=True)
            else:
                asked = delta = self.changed(rows, limited=limited) if delta is None else delta
            if limited and len(rows) == 1:
                limit = int(unmarked(rows)[-1, 0])
            heads = self.run(rederive, self.relations, asked, limit)
            if rederive.marked and asked is delta:
                rows = delta.content.columns(hidden=True)
            if heads.shape[1]:
                rows, delta = not_among(rows, heads), None
        return rows

    def supported(self, head: str, rows: Rows) -> Rows:
        """Those of `rows` int64[arity, n] of `head`, in order, that a clause derives."""
        return not_among(rows, self.unsupported(head, rows))

    def change(self, head: str, before: StoredRelation, removed: list[Rows]) -> Change:
        """How the head's content differs from the one `before`: rows `removed` went, and others were stored."""
        return change_of_rows(before.arity, removed, self.stored.get(head, []))

    # What a component of best values does otherwise (min_max_fixpoint.py).

    def look(self, examined: int) -> None:
        """Go on after so many suspects, or stop."""
        self.limits.count("rows examined", examined)
        self.limits.look(0)

    def may_return(self, removed: Deltas, derivable: Deltas) -> Deltas:
        """The removed rows to try to re-derive."""
        return derivable

    def returning(self, head: str, gone: Rows) -> Rows:
        """The rows of `gone` int64[arity, n] of `head` that still have a derivation."""
        return self.supported(head, gone)

    def uncovered(self, head: str, gone: Rows) -> Rows:
        """Facts of `head` that the rows `gone` stood in for."""
        return gone[:, :0]

    def finish(self) -> None:
        """Do what is left after the last round."""


def unmarked(rows: Rows) -> Rows:
    """`rows` int64[arity + 1, n], the last one holding rounds, without marks: a marked round is inverted (< 0)."""
    return np.concatenate([rows[:-1], np.maximum(rows[-1:], ~rows[-1:])])


def not_among(rows: Rows, others: Rows) -> Rows:
    """Those of `rows` int64[k, n] whose first columns are not in `others` int64[<= k, m]; both distinct, in order."""
    if not others.shape[1]:
        return rows
    left = np.ones(rows.shape[1], np.bool_)
    leave_out(rows, others, left)
    return np.compress(left, rows, axis=1)


def settle(fixpoint: Fixpoint) -> None:
    """Raise `EvaluationError` if a row of a clause is in error over what the component has come to."""
    for c in fixpoint.joins.saw_undefined:
        state = fixpoint.evaluator.state
        staged = fixpoint.evaluator.over(state._replace(relations=fixpoint.relations))
        look_for_error(staged, fixpoint.joins.clauses[c], fixpoint.limits)
