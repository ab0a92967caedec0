"""First: the first rows of a relation in an order follow its changes by a list of its first rows, and some more.

    kept        the first rows of the relation below, in order, at least as many as offset and limit ask for
    row comes   it is put into the list if it is before the last one there, or if the list has all rows
    row goes    it is taken from the list if it is there
    too few     are left: the list is made anew, from all rows

The list is made with twice the rows that are asked for and `SPARE` more, and cut to that again when it has grown to
double, so that it is made anew once in so many erased rows of it. A change of m rows costs O((k + m) log (k + m)) with
k rows in the list, whatever the size of the relation.
"""

from __future__ import annotations

import time

import numpy as np

from lftj.evaluate.first_of_order import cut, first_of, in_order, leading
from lftj.join.run import Limits
from lftj.language.first_rows import takes_first
from lftj.maintain.copied_rows import KeptOfCopies, below_of, exchanged
from lftj.maintain.recompute import FromContents
from lftj.maintain.report import Reason, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Staged
from lftj.program.strata import Heads
from lftj.store.change import ERASED, INSERTED
from lftj.store.stored import StoredRelation
from lftj.values.schema import Schema
from scantree.consolidate import numbered
from scantree.version import Rows, Version

SPARE = 64
WHY = "a row that comes or goes changes a list of the first ones"


class KeptFirst(KeptOfCopies):
    """`rows` int64[arity, n]: the first ones of `below`, in order; `all`: there are no others."""

    strategy = "first"

    def __init__(self, heads: Heads, below: Version, rows: Rows, *, all_rows: bool) -> None:
        super().__init__(heads, below)
        self.rows, self.all = rows, all_rows

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Worth it unless more rows changed than there are."""
        below = below_of(heads)
        return Cost(WHY, worth=len(step.changes[below].kinds) <= len(step.after[below].content))

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Put rows into the list and take them out, or make it anew."""
        began = time.perf_counter()
        below, change = step.after[below_of(heads)], step.changes[below_of(heads)]
        relation = step.after[heads.name]
        schema = relation.schema
        first, symbols = first_of(heads.clauses[0]), step.evaluator.symbols
        come, gone = change.of_kind(INSERTED), change.of_kind(ERASED)
        kept, bound = _without(self.rows, gone), self.rows[:, -1:]
        rows = np.concatenate([kept, come], axis=1)
        steps = rows.shape[1]
        if not self.all:  # the last row of before, for which there may be others, is the bound
            rows = np.concatenate([rows, bound], axis=1)
        rows = in_order(rows, first, schema, symbols)
        if not self.all:
            same = np.flatnonzero((rows == bound).all(axis=0))
            rows = rows[:, : same[-1] + 1]
            # The bound itself was put there once more, or for the first time.
            rows = np.delete(rows, same[-1], axis=1)
        kept_all = self.all
        limits.look(steps)
        if not kept_all and (not rows.shape[1] or _many(rows, schema) < first.offset + first.limit):
            made = _prepared(heads, below, step)
            rows, kept_all, steps = made.rows, made.all, steps + len(below.content)
        elif rows.shape[1] > 2 * _size(heads):
            rows, kept_all = rows[:, : _size(heads)], False
        after = cut(rows, first, schema)
        held, difference = exchanged(relation, relation.content.columns(), after)
        work = [RuleWork(0, steps, 0, 0, len(change.kinds), time.perf_counter() - began)]
        return Staged(
            self.strategy,
            why,
            {heads.name: held},
            {heads.name: difference},
            steps=steps,
            work=work,
            kept=KeptFirst(heads, below.content, rows, all_rows=kept_all),
        )

    def memory(self) -> dict[str, int]:
        """The list."""
        return {"first rows": self.rows.nbytes}


def _size(heads: Heads) -> int:
    """How many rows the list is made with."""
    first = first_of(heads.clauses[0])
    return 2 * (first.offset + first.limit) + SPARE


def _many(rows: Rows, schema: Schema) -> int:
    """How many rows they are, of a bag with their copies."""
    return int(rows[-1].sum()) if schema.bag else rows.shape[1]


def _without(rows: Rows, gone: Rows) -> Rows:
    """The rows that are not among those that go, both distinct."""
    if not gone.shape[1] or not rows.shape[1]:
        return rows
    distinct, numbers = numbered(np.concatenate([gone, rows], axis=1))
    stays = np.ones(distinct.shape[1], np.bool_)
    stays[numbers[: gone.shape[1]]] = False
    return np.compress(stays[numbers[gone.shape[1] :]], rows, axis=1)


def _prepared(heads: Heads, below: StoredRelation, step: Step) -> KeptFirst:
    """The list, from all rows."""
    schema, rows, size = step.after[heads.name].schema, below.content.columns(), _size(heads)
    found = leading(rows, first_of(heads.clauses[0]), schema, step.evaluator.symbols, size)
    return KeptFirst(heads, below.content, found.copy(), all_rows=rows.shape[1] <= size)


class First(FromContents):
    """The strategy of heads that hold the first rows of another relation."""

    name = "first"
    follows = "by first rows"
    why = WHY

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits the heads of `limit`."""
        return "" if heads.clauses and takes_first(heads.clauses[0]) else "it does not hold the first rows of another"

    def kept(self, step: Step, heads: Heads) -> KeptFirst | None:
        """Nothing, before the list was made."""
        return None

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """The list is made with this change."""
        return "its first rows are not kept yet: the next change is followed"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate, and keep the list."""
        staged = super().prepare(step, heads, why, limits)
        staged.kept = _prepared(heads, step.after[below_of(heads)], step)
        return staged
