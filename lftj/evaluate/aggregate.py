"""Aggregate heads: from the bindings of the body to one row per group.

A clause with `aggregate` is the only one of its head, and derives (group..., result) for every group with a binding.
Its evaluation enumerates every binding of all variables (`Body.every`), as rows (group..., operand), counts them
(factorised.py), or computes with columns (by_columns.py). There are two kinds (`AggregateSpec.by_rows`):

    count, sum, mean, var_pop, ..  fold the bindings into accumulators, which its trace keeps up (accumulators.py)
    min, max, cat, ..              read the rows of the one relation below, whatever changed there (group_scan.py)

A group may have no result (a sum out of the range of its type). Then it has no row; undefined_groups.py says when that
is an error.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
section 2.3.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.evaluate.accumulators import (
    Accumulators,
    Folding,
    Gathering,
    GroupsWithoutResult,
    Sums,
    carried,
    folding_of,
    none_without_result,
)
from lftj.evaluate.by_columns import rows_by_columns
from lftj.evaluate.factorised import sums_by_blocks
from lftj.evaluate.folds_by_group import Folded
from lftj.evaluate.group_scan import GroupScan, folded_content, folded_rows, group_scan_of
from lftj.join.run import Counters, Limits
from lftj.language.aggregate_specs import accumulated, by_rows
from lftj.language.clause import Clause
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator
    from lftj.program.evaluation import Evaluation

Ints = npt.NDArray[np.int64]


def scan_of(evaluator: Evaluator, clause: Clause) -> GroupScan | None:
    """The group scan that maintains a clause; None for a clause that is no aggregate by rows."""
    if clause.aggregate is None or not by_rows(clause.aggregate.op):
        return None
    state = evaluator.state
    return group_scan_of(clause, state.relations[clause.atoms[0].predicate], state.strata.clauses)


def accumulates(clause: Clause) -> bool:
    """Whether accumulators fold what the clause binds."""
    return clause.aggregate is not None and accumulated(clause.aggregate.op)


def recorded(evaluator: Evaluator, clause: Clause, chunks: list[Ints]) -> tuple[Accumulators, list[Ints]]:
    """(accumulators, rows of the head in order) of all bindings of `clause`, in `chunks` int64[width, n]."""
    gathering = Gathering(folding_of(clause))
    chunks.reverse()
    while chunks:
        gathering.add(chunks.pop())
    held = _held(evaluator, gathering.folding, gathering.sums())
    rows, held.without_result = held.all_rows()
    return held, [rows]


def _held(evaluator: Evaluator, folding: Folding, sums: Sums) -> Accumulators:
    sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
    return Accumulators.of(evaluator.arena, folding, sums, **sizes)


def folded_bindings(evaluator: Evaluator, clause: Clause, rows: Ints) -> tuple[Ints, GroupsWithoutResult]:
    """(the rows of the head in order, the groups without a result) of bindings int64[width, n] of `clause`."""
    aggregate = clause.aggregate
    assert aggregate is not None
    k = aggregate.groups
    if by_rows(aggregate.op):
        return folded_rows(aggregate.op, rows, k, clause.head_args[k].type, evaluator.symbols), none_without_result(k)
    gathering = Gathering(folding_of(clause))
    gathering.add(rows)
    return _held(evaluator, gathering.folding, gathering.sums()).all_rows()


def aggregated(evaluator: Evaluator, clause: Clause, limits: Limits) -> tuple[Version, Evaluation, GroupsWithoutResult]:
    """The content of the head of an aggregate clause, evaluated, and the groups without a result."""
    if (one_pass := evaluator.one_pass) is not None:
        shared = one_pass.folded(evaluator, clause, limits)
        if shared is not None:
            return _content(evaluator, clause, shared.folded, shared.evaluation)
    found = scan_of(evaluator, clause)
    if found is not None:
        return *_read(evaluator, clause, found, limits), none_without_result(len(clause.head_args) - 1)
    folding = folding_of(clause)
    gathering = Gathering(folding)
    evaluation = rows_by_columns(evaluator, clause, limits, gathering.add)
    if evaluation is not None:
        return _content(evaluator, clause, gathering.sums(), evaluation)
    if (summed := sums_by_blocks(evaluator, clause, folding, limits)) is not None:
        return _content(evaluator, clause, *summed)
    gathering = Gathering(folding)
    evaluation = evaluator.rows(clause, limits, gathering.add)
    return _content(evaluator, clause, gathering.sums(), evaluation)


def _content(
    evaluator: Evaluator, clause: Clause, folded: Folded, evaluation: Evaluation
) -> tuple[Version, Evaluation, GroupsWithoutResult]:
    """The content of the head of what was folded."""
    folding = folding_of(clause)
    if not isinstance(folded, Sums):
        rows, without_result = folded, none_without_result(folding.groups)
    elif folding.segmented:
        rows, without_result = _held(evaluator, folding, folded).all_rows()
    else:  # of what is not kept no table is made
        none = Accumulators.none(evaluator.arena, folding, page_rows=evaluator.page_rows, dir_rows=evaluator.dir_rows)
        rows, without_result = none.rows(folded.groups, carried(folding, folded.values))
    return evaluator.relations[clause.head].assemble([rows], in_order=True), evaluation, without_result


def _read(evaluator: Evaluator, clause: Clause, found: GroupScan, limits: Limits) -> tuple[Version, Evaluation]:
    from lftj.program.evaluation import Evaluation

    start = time.perf_counter()
    relation = evaluator.relations[found.relation]
    rows = folded_content(found, relation, evaluator.symbols)
    limits.look(rows.shape[1])
    counters = Counters(steps=len(relation), rows=rows.shape[1])
    content = evaluator.relations[clause.head].assemble([rows], in_order=True)
    instead = f"the rows of `{found.relation}` are read in order"
    return content, Evaluation(clause, None, counters, time.perf_counter() - start, instead=instead)
