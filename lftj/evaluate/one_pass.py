"""Aggregates over one body, summed in one pass over its columns.

    select region, sum(price), avg(price), count(*) filter (where qty > 9) from sale ... group by region

Each aggregate of a `group by` is a head of its own. Those over one body differ in what they fold, and in conditions on
that: that it is not null, or what a `filter` says. So where several are about to be evaluated, what they read is read
once (by_columns.py), the groups are numbered once, and each sum is added up by these numbers. A sum that several heads
fold, as `sum` and `mean` of one term do, is added up once.

Where a term or a condition of one of them has no value, each is evaluated by itself: that finds out whose error it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.accumulators import Folding, Sums, added_up, folding_of, sums_by_number
from lftj.evaluate.by_columns import likely_reading, pays_to_sort, read_rows, walk_from_now_on
from lftj.evaluate.column_reading import conditions_of, reading_of
from lftj.evaluate.term_columns import TermColumns
from lftj.join.dense_groups import NumberedGroups
from lftj.join.run import Counters, Limits
from lftj.language.aggregate_specs import accumulated
from lftj.language.clause import BodyAtom, Clause, Compare, Plain, Term, Var, replaced, variables_of
from lftj.program.evaluation import Evaluation
from lftj.store.stored import StoredRelation
from scantree.consolidate import runs_of

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator

Ints = npt.NDArray[np.int64]

# Words of rows that wait to be summed, with one for the number of the group.
ROOM = 1 << 22


class FoldedTerm(NamedTuple):
    """What an aggregate adds up: its operand, if it has one, of the bindings that meet all `conditions`.

    `defined`: terms that have to have values in these, though nothing reads them.
    """

    folding: Folding
    operand: Term | None
    conditions: frozenset[Compare]
    defined: frozenset[Term]


class SharedAggregate(NamedTuple):
    """An aggregate in terms that others may share: each variable is named by the place where an atom first holds it.

    `atoms`, `groups`: what those have in common that are summed in one pass.
    """

    clause: Clause
    atoms: tuple[BodyAtom, ...]
    groups: tuple[Term, ...]
    fold: FoldedTerm

    @classmethod
    def of(cls, clause: Clause, relations: Mapping[str, StoredRelation]) -> SharedAggregate:
        """Of a clause that accumulates; what its conditions define is written out."""
        conditions, defined = conditions_of(clause)
        places: dict[str, tuple[int, int]] = {}
        for i, atom in enumerate(clause.atoms):
            for j, arg in enumerate(atom.args):
                if isinstance(arg, Var):
                    places.setdefault(arg.name, (i, j))
        names = {name: f"{i}.{j}" for name, (i, j) in places.items()}
        placed = {var.name: Var(names[var.name], var.type) for var in clause.variables() if var.name in names}

        def plain(arg: Plain | None) -> Plain | None:
            if not isinstance(arg, Var):
                return arg
            i, j = places[arg.name]  # conditions may narrow its type: here it has that of the column
            return Var(names[arg.name], relations[clause.atoms[i].predicate].types[j])

        def written_out(term: Term) -> Term:
            return replaced(replaced(term, defined), placed)

        atoms = tuple(replace(atom, args=tuple(map(plain, atom.args))) for atom in clause.atoms)
        compares = frozenset(replace(c, left=written_out(c.left), right=written_out(c.right)) for c in conditions)
        head = [written_out(term) for term in clause.head_args]
        folding = folding_of(clause)
        groups, operand = tuple(head[: folding.groups]), head[folding.groups] if folding.operand else None
        unread = frozenset(map(written_out, defined.values())) - {*groups, operand}
        folding = folding._replace(op="sum" if folding.operand else "count")  # a mean folds what a sum does
        return cls(clause, atoms, groups, FoldedTerm(folding, operand, compares, unread))


class Found(NamedTuple):
    """The sums of an aggregate, and how they were found."""

    sums: Sums
    evaluation: Evaluation


class OnePass:
    """Aggregates that are about to be evaluated, and the sums that one pass found for others than the one in hand.

    Heads are evaluated bottom up: what the first of those over one body reads does not change before the last.
    """

    def __init__(self, clauses: Iterable[Clause]) -> None:
        accumulate = [c for c in clauses if c.aggregate is not None and accumulated(c.aggregate.op)]
        self._clauses = {clause.head: clause for clause in accumulate if not clause.acyclic}
        # Those that no pass was made for.
        self._waiting: dict[str, list[SharedAggregate]] | None = None
        self._found: dict[str, Found] = {}

    def found(self, clause: Clause) -> Found | None:
        """What a pass for another found for `clause`, too."""
        return self._found.pop(clause.head, None)

    def summed(self, evaluator: Evaluator, clause: Clause, limits: Limits) -> Found | None:
        """What a pass finds for `clause` and for others; None if it is to be evaluated by itself."""
        if len(self._clauses) < 2 or likely_reading(evaluator, clause) is None:
            return None
        if self._waiting is None:
            self._waiting = self._by_body(evaluator)
        alike = self._waiting.get(clause.head, [])
        for one in alike:
            del self._waiting[one.clause.head]
        read = [one for one in alike if one.clause is clause or likely_reading(evaluator, one.clause) is not None]
        if len(read) > 1:
            self._found |= _summed(evaluator, clause, read, limits)
        return self.found(clause)

    def _by_body(self, evaluator: Evaluator) -> dict[str, list[SharedAggregate]]:
        """By each head, the aggregates over its body, itself among them."""
        bodies: dict[tuple[object, ...], list[SharedAggregate]] = {}
        for clause in self._clauses.values():
            one = SharedAggregate.of(clause, evaluator.relations)
            bodies.setdefault((one.atoms, one.groups), []).append(one)
        return {one.clause.head: alike for alike in bodies.values() for one in alike}


def _summed(evaluator: Evaluator, asked: Clause, alike: Sequence[SharedAggregate], limits: Limits) -> dict[str, Found]:
    """What one pass finds, by head, when `asked` is to be evaluated; nothing if they are to be evaluated apart."""
    began, cpu = time.perf_counter(), time.thread_time_ns()
    first = alike[0]
    common = frozenset.intersection(*(one.fold.conditions for one in alike))
    gathering = SumsByFold(evaluator, first.groups, common, dict.fromkeys(one.fold for one in alike))
    head_args = (*first.groups, *gathering.read)
    clause = replace(first.clause, head_args=head_args, atoms=first.atoms, compares=tuple(sorted(common, key=str)))
    reading = reading_of(clause, evaluator.relations)
    if reading is None:
        return {}
    if pays_to_sort(evaluator, clause, reading):
        for one in alike:
            if (own := likely_reading(evaluator, one.clause)) is not None:
                walk_from_now_on(evaluator, one.clause, own)
        return {}
    done = read_rows(evaluator, clause, reading, limits, gathering.add)
    sums = None if done is None else gathering.sums()
    if done is None or sums is None:
        return {}
    seconds, took = time.perf_counter() - began, time.thread_time_ns() - cpu
    found = {}
    for one in alike:
        evaluation = Evaluation(
            one.clause, None, Counters(), instead=f"{done.instead}, once for {len(alike)} aggregates"
        )
        evaluation.elsewhere = took - sum(gathering.cpu[fold] for fold in gathering.cpu if fold != one.fold)
        if one.clause is asked:
            evaluation.counters, evaluation.seconds = done.counters, seconds
            evaluation.elsewhere -= took
        found[one.clause.head] = Found(sums[one.fold], evaluation)
    return found


class SumsByFold:
    """Rows of `groups` and of the variables that are `read`, and what they add up to, fold by fold.

    `cpu`: nanoseconds that each fold took.
    """

    def __init__(
        self, evaluator: Evaluator, groups: Sequence[Term], common: frozenset[Compare], folds: Iterable[FoldedTerm]
    ) -> None:
        self._evaluator, self._groups = evaluator, len(groups)
        self._folds = {fold: sorted(fold.conditions - common, key=str) for fold in folds}
        operands = [term for fold in self._folds for term in (fold.operand, *fold.defined)]
        compared = [side for conditions in self._folds.values() for c in conditions for side in (c.left, c.right)]
        self.read = [*{var.name: var for term in (*operands, *compared) for var in variables_of(term)}.values()]
        self._in_order = any(fold.folding.storage == "float" for fold in self._folds)
        self._waiting: list[Ints] = []
        self._sums: dict[FoldedTerm, Sums] = {}
        self._defined = True
        self.cpu = dict.fromkeys(self._folds, 0)

    def add(self, rows: Ints) -> None:
        """More rows int64[groups + read, n]."""
        self._waiting.append(rows)
        most = max(ROOM, *(found.groups.size for found in self._sums.values()), 0)
        if sum(part.shape[1] for part in self._waiting) * (len(rows) + 1) >= most:
            self._add_up()

    def sums(self) -> dict[FoldedTerm, Sums] | None:
        """The sums of all rows; None if a term or a condition has no value for one."""
        self._add_up()
        return self._sums if self._defined else None

    def _add_up(self) -> None:
        k = self._groups
        rows = np.concatenate([np.empty((k + len(self.read), 0), np.int64), *self._waiting], axis=1)
        self._waiting = []
        if not self._defined:
            return
        if self._in_order and k and (order := runs_of(rows[:k])[1]) is not None:
            rows = rows.take(order, axis=1)  # once for all floats, which are summed group by group
        numbered = NumberedGroups.of(rows[:k])
        named = {var.name: column for var, column in zip(self.read, rows[k:], strict=True)}
        columns = TermColumns(named, rows.shape[1], self._evaluator.symbols, self._evaluator.given)
        for fold, conditions in self._folds.items():
            began = time.thread_time_ns()
            kept, without = columns.met(conditions)
            operand = None if fold.operand is None else columns.codes_where(kept, fold.operand)
            for term in fold.defined:
                columns.codes_where(kept, term)
            if without.any() or not columns.defined.all():
                self._defined = False
                return
            new = sums_by_number(fold.folding, rows[:k], numbered, operand, kept)
            old = self._sums.get(fold)
            self._sums[fold] = new if old is None else added_up(old, new)
            self.cpu[fold] += time.thread_time_ns() - began
