"""Aggregate heads: from the bindings of the body to one row per group.

A clause with `aggregate` is the only one of its head, and derives (group..., result) for every group with a binding.
Its evaluation enumerates every binding of all variables (`Body.every`), as rows (group..., operand). Two kinds:

    count, sum, mean   fold the bindings into accumulators, which its trace keeps up (accumulators.py)
    min, max, cat      read the rows of the one relation below, whatever changed there (extremes.py)

Source: incremental-leapfrog-triejoin.txt, section 2.3.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.engine.accumulators import Accumulators, Folding, Gathering, Refuse, weighted
from lftj.engine.change import Change
from lftj.engine.extremes import Reading, folded, reading_of
from lftj.engine.headtrace import change_of_rows
from lftj.errors import EvaluationError
from lftj.join.run import Counters, Limits
from lftj.language.clause import Clause
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.engine.evaluate import Evaluation, Evaluator

Ints = npt.NDArray[np.int64]

ACCUMULATED = ("count", "sum", "mean")


def reading(evaluator: Evaluator, clause: Clause) -> Reading | None:
    """How a clause that is followed by scans is; None for any other clause."""
    if clause.aggregate is None or clause.aggregate.op in ACCUMULATED:
        return None
    state = evaluator.state
    return reading_of(clause, state.relations[clause.atoms[0].predicate], state.strata.clauses)


def accumulates(clause: Clause) -> bool:
    """Whether accumulators fold what the clause binds."""
    return clause.aggregate is not None and clause.aggregate.op in ACCUMULATED


def folding_of(clause: Clause) -> Folding:
    """What a clause that accumulates folds."""
    aggregate = clause.aggregate
    assert aggregate is not None
    operand = "" if aggregate.op == "count" else clause.head_args[aggregate.groups].type
    return Folding(aggregate.op, aggregate.groups, operand)


def refusal(evaluator: Evaluator, clause: Clause) -> Refuse:
    """What makes the error for a group of `clause` without a result."""
    aggregate = clause.aggregate
    assert aggregate is not None

    def refuse(group: list[int], undefined: bool) -> EvaluationError:
        terms = clause.head_args[: aggregate.groups]
        bound = [f"{t} = {evaluator.decode(c, t.type)!r}" for t, c in zip(terms, group, strict=True)]
        operand = clause.head_args[-1].type
        where = f"{clause.span}: in `{clause.text or clause}`" + (f" with {', '.join(bound)}" if bound else "")
        if undefined:
            return EvaluationError(
                f"the {aggregate.op} of inf and -inf has no value",
                where=where,
                why="both are among the values of this group; nothing was changed",
                remedy="exclude one of them in the body",
            )
        return EvaluationError(
            f"the sum of a group is out of the range of {operand}",
            where=where,
            why="it could not be stored as a value; nothing was changed",
            remedy="sum floats (`itof`, `utof`)" if operand in ("number", "unsigned") else "scale the values down",
        )

    return refuse


def recorded(evaluator: Evaluator, clause: Clause, chunks: list[Ints]) -> tuple[Accumulators, list[Ints]]:
    """(accumulators, rows of the head in order) of all bindings of `clause`, in `chunks` int64[width, n]."""
    gathering = Gathering(folding_of(clause))
    chunks.reverse()
    while chunks:
        gathering.add(chunks.pop())
    held = _held(evaluator, gathering)
    return held, [held.all_rows(refusal(evaluator, clause))]


def followed(
    evaluator: Evaluator, clause: Clause, before: Accumulators, erased: list[Ints], inserted: list[Ints]
) -> tuple[Accumulators, Change]:
    """(the next accumulators, the change of the head) when bindings int64[width, n] of `clause` go and come."""
    sums = weighted(before.folding, erased, inserted)
    after, refuse = before.updated(sums), refusal(evaluator, clause)
    arity = before.folding.groups + 1
    return after, change_of_rows(arity, [before.rows(sums.groups, refuse)], [after.rows(sums.groups, refuse)])


def _held(evaluator: Evaluator, gathering: Gathering) -> Accumulators:
    sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
    return Accumulators.of(evaluator.arena, gathering.folding, gathering.sums(), **sizes)


def aggregated(evaluator: Evaluator, clause: Clause, limits: Limits) -> tuple[Version, Evaluation]:
    """The content of the head of an aggregate clause, evaluated."""
    found = reading(evaluator, clause)
    return _accumulated(evaluator, clause, limits) if found is None else _read(evaluator, clause, found, limits)


def _read(evaluator: Evaluator, clause: Clause, found: Reading, limits: Limits) -> tuple[Version, Evaluation]:
    from lftj.engine.evaluate import Evaluation

    start = time.perf_counter()
    _, plan = evaluator.plan(clause, limits=limits)
    relation = evaluator.relations[found.relation]
    rows = folded(found, relation, relation.content.columns(), evaluator.symbols)
    limits.look(rows.shape[1])
    counters = Counters(steps=len(relation), rows=rows.shape[1])
    content = evaluator.relations[clause.head].assemble([rows], in_order=True)
    return content, Evaluation(clause, plan, counters, time.perf_counter() - start)


def _accumulated(evaluator: Evaluator, clause: Clause, limits: Limits) -> tuple[Version, Evaluation]:
    gathering = Gathering(folding_of(clause))
    evaluation = evaluator.rows(clause, limits, gathering.add)
    rows = _held(evaluator, gathering).all_rows(refusal(evaluator, clause))
    return evaluator.relations[clause.head].assemble([rows], in_order=True), evaluation
