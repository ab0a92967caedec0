"""Counts and sums of groups whose bindings are counted, and not enumerated.

    m[b] = count : { e(a, b), e(b, c), e(c, d) }      for each b: the a's, by the c's with their d's
    s[b] = sum x * y : { r(x, b), t(b, y) }           for each b: the sum of x, by that of y

Once the group's variables are bound, what is left falls into blocks whose counts multiply, and with them the sums of
variables whose product is summed (lftj/join/blocks.py). The rows of a group are added up. What leaves 64 bits on the
way, or the range of a decimal, is enumerated: whether that is an error is told there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.accumulators import BITS, COUNTABLE, LOW, Folding, Gathering, Sums, too_many
from lftj.evaluate.overdue import finish
from lftj.evaluate.single_copies import planned
from lftj.join import dense_groups
from lftj.join.run import Counters, Limits, Run, TooManyRows
from lftj.language.aggregate_specs import accumulated, squares
from lftj.language.clause import Apply, Clause, Term, Var, variables_of
from lftj.language.types import DECIMAL, NUMBER, scale_of
from lftj.plan.body import Body, body_of
from lftj.plan.groups_first import groups_first, steps_by_blocks
from lftj.plan.joinplan import Folded, JoinPlan, choice_of, plan_join
from lftj.plan.keyorder import OrderSearch
from lftj.plan.partial_functions import partial_of, partial_terms
from lftj.program.evaluation import Evaluation
from lftj.program.text_split import split_text
from lftj.values.type_table import family_of, type_of
from scantree.consolidate import consolidated

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator

Ints = npt.NDArray[np.int64]

# Rows that are enumerated at most where a count leaves 64 bits: each may stand for many bindings (`multiplied`).
ENUMERATED = 1 << 24


def folded_of(clause: Clause, body: Body) -> Folded | None:
    """What is to be counted of the groups of a clause; None if its bindings have to be enumerated."""
    aggregate = clause.aggregate
    if aggregate is None or not accumulated(aggregate.op) or squares(aggregate.op) or len(body.atoms) < 2:
        return None
    head, operand = clause.head_args[: aggregate.groups], clause.head_args[aggregate.groups :]
    groups = tuple(dict.fromkeys(v.name for term in head for v in variables_of(term)))
    factors = [factor for term in operand for factor in _factors(term)]
    names = [factor.name for factor in factors if isinstance(factor, Var) and _is_plain(factor.type)]
    if len(names) < len(factors) or len({*names, *groups}) < len(names) + len(groups):
        return None
    # Which bindings are met, and so for which of them a term has no value, is not that of the rule.
    if any(any(partial_of(c.compare)) for c in body.conditions) or any(any(partial_terms(term)) for term in head):
        return None
    if len(groups) == len(body.variables) and not any(atom.multiplicity for atom in body.atoms):
        return None
    return Folded(groups, head, frozenset(names))


def _factors(term: Term) -> Iterator[Term]:
    """What is multiplied, if the code of the product is the product of the codes."""
    if isinstance(term, Apply) and term.op in ("*", "checked_mul") and _is_plain(term.type):
        scales = [scale_of(factor.type) for factor in term.args]
        if all(_is_plain(factor.type) for factor in term.args) and sum(scales) == scale_of(term.type):
            for factor in term.args:
                yield from _factors(factor)
            return
    yield term


def _is_plain(type: str) -> bool:
    """Whether a value that is no null has the code of a number, or of that many of its least digits."""
    return family_of(type) in (NUMBER, DECIMAL) and not type.endswith("?")


def _greatest(term: Term) -> int:
    """The greatest magnitude that each product in a term holds."""
    products = (
        [_greatest(factor) for factor in term.args if isinstance(factor, Apply)] if isinstance(term, Apply) else []
    )
    return min([type_of(term.type).high, *products])


@dataclass(frozen=True)
class Counting:
    """How the groups of a clause are counted: by blocks, in the key order that its bindings would be enumerated in.

    That takes no fewer steps; or with the groups first (groups_first.py). `ones`: factors that are left out
    (single_copies.py), and with them `folded` and `body`.
    """

    evaluator: Evaluator
    clause: Clause
    limits: Limits
    folded: Folded
    body: Body
    plan: JoinPlan
    ones: frozenset[str]

    @classmethod
    def of(cls, evaluator: Evaluator, clause: Clause, limits: Limits) -> Counting | None:
        """None where bindings have to be enumerated."""
        folded = None if split_text(clause) is not None else folded_of(clause, body_of(clause))
        if folded is None:
            return None
        body, plan, ones = planned(evaluator, clause, folded, limits)
        made = cls(evaluator, clause, limits, folded._replace(factors=folded.factors - ones), body, plan, ones)

        def best() -> JoinPlan:
            return groups_first(made._search(), plan, folded.groups, evaluator.relations, made.by_blocks)

        return replace(
            made, plan=evaluator.kept((clause, "groups", plan.order, ones), clause, evaluator.relations, best)
        )

    def _search(self) -> OrderSearch:
        read = {atom.predicate for atom in (*self.body.atoms, *self.body.negated)}
        statistics = {name: self.evaluator.relations[name].statistics for name in read}
        return OrderSearch(self.body, statistics, True, given=self.evaluator.given)

    def by_blocks(self, plan: JoinPlan) -> JoinPlan:
        """What counts in the key order of `plan`."""
        relations = self.evaluator.relations

        def made() -> JoinPlan:
            return plan_join(self.body, choice_of(plan), relations, counting=True, folded=self.folded)

        return self.evaluator.kept((self.clause, "folded", plan.order, self.ones), self.clause, relations, made)

    def walk(self, emit: Callable[[Ints], None]) -> Evaluation:
        """Give rows (group..., bindings, sum, magnitude) to `emit`, as int64[k + 3, n]; several of a group may come."""
        start = time.perf_counter()
        evaluator, clause, limits = self.evaluator, self.clause, self.limits

        def begin(plan: JoinPlan) -> Run | None:
            return evaluator._run(clause, self.body, self.by_blocks(plan), limits, {})

        def give(chunk: Ints) -> None:
            if self.ones and not self.folded.factors:  # nothing weighs: the sum and its magnitude are the count
                chunk[-2:] = chunk[-3]
            emit(chunk)

        replan = partial(evaluator.plan, clause, limits=limits, without=self.ones)
        plan, run, _ = finish(replan, self.plan, begin, lambda run: run.give(give))
        walked = replace(self.by_blocks(plan), abandoned=plan.abandoned)
        counters = run.counters if run is not None else Counters()
        return Evaluation(clause, walked, counters, time.perf_counter() - start)

    def steps(self) -> float:
        """How many steps that is estimated to take."""
        return min(self.plan.cost, steps_by_blocks(self.by_blocks(self.plan), self._search().matches))


def sums_by_blocks(
    evaluator: Evaluator, clause: Clause, folding: Folding, limits: Limits
) -> tuple[Sums, Evaluation] | None:
    """The sums of all groups; None where bindings are to be enumerated."""
    counting = Counting.of(evaluator, clause, limits)
    if counting is None:
        return None
    most = _greatest(clause.head_args[-1]) if folding.operand else 0
    gathering = GroupRows(folding, most)
    try:
        evaluation = counting.walk(gathering.add)
    except EvaluationError as error:  # what leaves 64 bits
        return None if folding.operand else _enumerated(evaluator, clause, folding, limits, error)
    sums = gathering.sums()
    return None if sums is None else (sums, evaluation)


def _enumerated(
    evaluator: Evaluator, clause: Clause, folding: Folding, limits: Limits, error: EvaluationError
) -> tuple[Sums, Evaluation]:
    """The sums, or the error that says how many bindings there are; `error` where to enumerate these would not end."""
    gathering = Gathering(folding)
    try:
        evaluation = evaluator.rows(clause, replace(limits, most=ENUMERATED), gathering.add)
    except TooManyRows:
        raise error from None
    return gathering.sums(), evaluation


class GroupRows:
    """Rows of groups that come in chunks, added up as `Gathering` does with bindings; `most`: see `_greatest`."""

    def __init__(self, folding: Folding, most: int) -> None:
        self.folding, self._most, self._fits = folding, most, True
        self._waiting: list[Ints] = []
        self._size = 0
        # The groups, and of the count and the sum of each the high and the low words.
        self._groups = np.empty((folding.groups, 0), np.int64)
        self._words = np.empty((4 if folding.operand else 2, 0), np.int64)

    def add(self, chunk: Ints) -> None:
        """More rows int64[k + 3, n]: the terms of a group, a count, a sum, its magnitude; several may be of a group."""
        self._waiting.append(chunk)
        self._size += chunk.shape[1]
        if self._size >= max(Gathering.ROOM, self._groups.shape[1]):
            self._add_up()

    def _add_up(self) -> None:
        k = self.folding.groups
        rows = np.concatenate([np.empty((k + 3, 0), np.int64), *self._waiting], axis=1)
        self._waiting, self._size = [], 0
        self._fits = self._fits and not (self.folding.operand and (rows[-1] > self._most).any())
        split = rows[k : k + len(self._words) // 2]
        words = np.hstack([self._words, np.concatenate([split >> BITS, split & LOW])])
        groups = np.hstack([self._groups, rows[:k]])
        self._groups, self._words = dense_groups.dense_words(groups, words) or consolidated(groups, words)

    def sums(self) -> Sums | None:
        """The sums of all that came; None if a product may be out of range, so that bindings have to be enumerated."""
        self._add_up()
        if not self._fits:
            return None
        half = len(self._words) // 2
        high, low = self._words[:half], self._words[half:]
        about = high[0] * 2.0**BITS + low[0]
        if (about > COUNTABLE).any():
            raise too_many(float(about.max()))
        counts = (high[0] << BITS) + low[0]
        none = np.empty((self.folding.groups + 1, 0), np.int64)
        return Sums(self._groups, np.stack([counts, *high[1:], *low[1:]]), none, none[0])
