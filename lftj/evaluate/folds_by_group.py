"""What several aggregates fold of the same rows, group by group, a part of the rows at a time.

    rows (region, price, qty)    ->    by region: sum price, max price, sum price * qty where qty > 9

Groups are numbered once for all of them, and each is added up by these numbers. What they fold is computed while a
part of the rows is at hand, so that it is still in the cache; only that waits to be added up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.accumulators import Folding, Sums, added_up, sums_by_number
from lftj.evaluate.group_scan import Extreme, folded_rows, ranked, row_fold
from lftj.evaluate.term_columns import TermColumns
from lftj.join import exactsum
from lftj.join.dense_groups import NumberedGroups
from lftj.language.clause import Compare, Term, variables_of
from lftj.values.type_table import in_dictionary

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

# Words that wait to be added up; and rows for each group that is known, so that adding parts up costs little beside it.
ROOM, PER_GROUP = 1 << 22, 16


class FoldedTerm(NamedTuple):
    """What an aggregate folds: its operand, if it has one, of the bindings that meet all `conditions`.

    `defined`: terms that have to have values in these, though nothing reads them.
    """

    folding: Folding
    operand: Term | None
    conditions: frozenset[Compare]
    defined: frozenset[Term]

    @property
    def extreme(self) -> Extreme | None:
        """Which value of a group it keeps; None if it adds all of them up."""
        fold = row_fold(self.folding.op)
        return fold if isinstance(fold, Extreme) else None


# What is folded of all groups: their sums, or of an extreme the rows (group..., value) in order.
Folded = Sums | Ints


class _FoldedPart(NamedTuple):
    """A part of the rows: their groups int64[k, n], and by conditions which of them meet these, and what they fold.

    No marks: all of them do.
    """

    groups: Ints
    chosen: list[tuple[Marks | None, dict[Term, Ints]]]


class FoldsByGroup:
    """Rows of `groups` and of the variables that are `read`, and what they come to, fold by fold.

    `cpu`: nanoseconds that each fold took; those that have conditions in common share what these take.
    """

    def __init__(
        self, evaluator: Evaluator, groups: Sequence[Term], common: frozenset[Compare], folds: Iterable[FoldedTerm]
    ) -> None:
        self._evaluator, self._groups = evaluator, len(groups)
        self._folds = dict[frozenset[Compare], list[FoldedTerm]]()
        for fold in folds:
            self._folds.setdefault(fold.conditions - common, []).append(fold)
        self.cpu = {fold: 0 for own in self._folds.values() for fold in own}
        folded = [term for fold in self.cpu for term in (fold.operand, *fold.defined)]
        compared = [side for conditions in self._folds for c in conditions for side in (c.left, c.right)]
        self.read = [*{var.name: var for term in (*folded, *compared) for var in variables_of(term)}.values()]
        self._waiting: list[_FoldedPart] = []
        self._rows = 0  # that wait
        self._known = 0  # groups
        self._folded: dict[FoldedTerm, Folded] = {}
        self._defined = True

    def add(self, rows: Ints) -> None:
        """More rows int64[groups + read, n]."""
        k = self._groups
        if not self._defined:
            return
        named = {var.name: column for var, column in zip(self.read, rows[k:], strict=True)}
        columns = TermColumns(named, rows.shape[1], self._evaluator.symbols, self._evaluator.given)
        part = _FoldedPart(np.ascontiguousarray(rows[:k]), [])
        for conditions, folds in self._folds.items():
            began = time.thread_time_ns()
            kept, without = columns.met(sorted(conditions, key=str))
            terms = {term for fold in folds for term in (fold.operand, *fold.defined) if term is not None}
            chosen = columns if kept.all() else columns.marked(kept, terms)
            operands = {term: chosen.codes(term) for term in terms}
            if without.any() or not chosen.defined.all():
                self._defined, self._waiting = False, []
                return
            part.chosen.append((None if chosen is columns else kept, operands))
            self._took(folds, began)
        self._waiting.append(part)
        self._rows += rows.shape[1]
        most = max(ROOM // (k + len(self.cpu) + 1), self._known)
        if self._rows >= min(PER_GROUP * self._known, most):
            self._add_up()

    def folded(self) -> dict[FoldedTerm, Folded] | None:
        """What all rows come to; None if a term or a condition has no value for one."""
        if self._defined and (self._waiting or not self._folded):
            self._add_up()
        return self._folded if self._defined else None

    def _add_up(self) -> None:
        parts, self._waiting, self._rows = self._waiting, [], 0
        every = NumberedGroups.of(_joined([part.groups for part in parts], np.empty((self._groups, 0), np.int64)))
        for i, folds in enumerate(self._folds.values()):
            began, numbered, order = time.thread_time_ns(), every, None
            if any(part.chosen[i][0] is not None for part in parts):
                numbered = every._replace(at=every.at[np.concatenate([_marks(part, i) for part in parts])])
            segmented = any(fold.folding.segmented and fold.extreme is None for fold in folds)
            if segmented and not exactsum.are_few(numbered.room, len(numbered.at)):
                _, order, _ = numbered.runs()  # once for all of them, which are summed group by group
                numbered = numbered if order is None else numbered._replace(at=numbered.at[order])
            operands = dict[Term, Ints]()
            for term in {fold.operand for fold in folds if fold.operand is not None}:
                joined = _joined([part.chosen[i][1][term] for part in parts], np.empty(0, np.int64))
                operands[term] = joined if order is None else joined[order]
            for fold in folds:
                operand = None if fold.operand is None else operands[fold.operand]
                self._folded[fold] = self._with(fold, numbered, operand)
            self._took(folds, began)

    def _took(self, folds: Sequence[FoldedTerm], began: int) -> None:
        for fold in folds:
            self.cpu[fold] += (time.thread_time_ns() - began) // len(folds)

    def _with(self, fold: FoldedTerm, numbered: NumberedGroups, operand: Ints | None) -> Folded:
        """What was folded, with more rows."""
        before = self._folded.get(fold)
        if (extreme := fold.extreme) is None:
            sums = sums_by_number(fold.folding, numbered, operand)
            self._known = max(self._known, sums.groups.shape[1])
            return added_up(before, sums) if isinstance(before, Sums) else sums
        assert operand is not None
        assert not isinstance(before, Sums)
        folding, symbols = fold.folding, self._evaluator.symbols
        ranks = ranked(operand, symbols) if in_dictionary(folding.operand) else operand
        rows = numbered.extremes(operand, ranks, last=extreme.last)
        self._known = max(self._known, rows.shape[1])
        if before is None:
            return rows
        both = np.concatenate([before, rows], axis=1)
        return folded_rows(folding.op, both, folding.groups, folding.operand, symbols)


def _marks(part: _FoldedPart, choice: int) -> Marks:
    marks = part.chosen[choice][0]
    return np.ones(part.groups.shape[1], np.bool_) if marks is None else marks


def _joined(parts: list[Ints], none: Ints) -> Ints:
    """Arrays one behind the other."""
    return parts[0] if len(parts) == 1 else np.concatenate([none, *parts], axis=-1)
