"""Recording the trace of a clause, of one join or of the parts of a clause that computes texts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lftj.engine.evaluate import Evaluation, Evaluator
from lftj.engine.headtrace import derives_once
from lftj.engine.stored import StoredRelation
from lftj.engine.textsteps import split_text, step
from lftj.engine.texttrace import TextTrace, is_map, mapped
from lftj.engine.trace import ClauseTrace
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.plan.joinplan import JoinPlan
from lftj.plan.traceplan import TracePlan, plan_trace

Rows = npt.NDArray[np.int64]


def trace_plan_of(plan: JoinPlan, relations: Mapping[str, StoredRelation], wish: str | None) -> TracePlan:
    """How the trace of a clause with this plan is kept; `wish` forces a granularity where there is a choice."""
    distinct = {
        i: relations[n.predicate].statistics.distinct(frozenset(n.key_order[: n.level])) if n.level else 1.0
        for i, n in enumerate(plan.nodes)
    }
    return plan_trace(plan, distinct, force=wish)


def known_by_row(trace: ClauseTrace | TextTrace) -> bool:
    """Whether a binding of the traced rule is known by the row it derives."""
    return trace.once if isinstance(trace, TextTrace) else derives_once(trace.plan)


def record_clause(
    evaluator: Evaluator, clause: Clause, limits: Limits, also: Mapping[str, StoredRelation] | None = None
) -> tuple[ClauseTrace | TextTrace, list[Rows], Evaluation]:
    """Evaluate `clause` keeping its trace: (the trace, rows int64[head, n] with repeats, how it went).

    `also`: relations besides the evaluator's.
    """
    split = split_text(clause)
    if split is None:
        return _record_join(evaluator, clause, limits, also)
    inner, chunks, first = _record_join(evaluator, split.inner, limits, also)
    rows = np.concatenate([np.empty((len(split.inner.head_args), 0), np.int64), *chunks], axis=1)
    count = sum(chunk.shape[1] for chunk in chunks)
    symbols = evaluator.symbols
    if is_map(split):
        made, undefined = mapped(split, rows, count, symbols)
        text = TextTrace(clause, split, inner, symbols, stepped=undefined)
        return text, [made], Evaluation(clause, inner.plan, text.counters, split=split, trace=text)
    stepped = step(split, rows, count, symbols)
    sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
    between = StoredRelation(split.schema, evaluator.arena, **sizes)
    between = between.successor(between.build(stepped.rows, stepped.size))
    outer, chunks, last = record_clause(evaluator, split.outer, limits, {**(also or {}), split.schema.name: between})
    text = TextTrace(clause, split, inner, symbols, outer, between, stepped.undefined)
    return text, chunks, Evaluation(clause, last.plan, last.counters, inner=first, split=split, trace=text)


def _record_join(
    evaluator: Evaluator, clause: Clause, limits: Limits, also: Mapping[str, StoredRelation] | None
) -> tuple[ClauseTrace, list[Rows], Evaluation]:
    relations = {**evaluator.relations, **(also or {})}
    _, plan = evaluator.plan(clause, also=also, limits=limits)
    trace = ClauseTrace(
        plan,
        trace_plan_of(plan, relations, evaluator.state.granularity.get(clause.rule)),
        evaluator.arena,
        evaluator._encode,
        evaluator.symbols.ranks,
        page_rows=evaluator.page_rows,
        dir_rows=evaluator.dir_rows,
        room=evaluator.trace_room,
    )
    versions = {order: relations[order[0]].order(order[1]) for order in trace.orders}
    chunks = trace.record(versions, limits, buffer_rows=evaluator.buffer_rows)
    return trace, chunks, Evaluation(clause, plan, trace.counters, trace=trace)
