"""What a clause is followed by: its trace (of one join, or of the parts of a clause with texts), or its delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from lftj.engine.clausedelta import ClauseDelta, variants_of
from lftj.engine.evaluate import Evaluation, Evaluator
from lftj.engine.headtrace import derives_once
from lftj.engine.overdue import finish
from lftj.engine.state import State
from lftj.engine.stored import StoredRelation
from lftj.engine.textsteps import split_text, step
from lftj.engine.texttrace import TextTrace, is_map, mapped
from lftj.engine.trace import ClauseTrace
from lftj.engine.undefined import look_for_error
from lftj.join.run import Counters, Limits, Run
from lftj.language.clause import Clause
from lftj.language.options import AUTO
from lftj.plan.body import body_of
from lftj.plan.joinplan import JoinPlan
from lftj.plan.traceplan import TracePlan, plan_trace

Rows = npt.NDArray[np.int64]

# Rows of what a head reads, all together, from which on following it without records is considered: below, records are
# few, and traces take no more steps than deltas.
LARGE = 1 << 16
DECLARED = "its rules are declared so"
# Steps that a changed row may be estimated to take in joins beyond the contexts it is estimated to meet in a trace,
# where each costs lookups and records. Not fitted: at all that was measured (bench.latency, bench.grouped: up to 180
# estimated steps) deltas did better than traces.
MORE = 500.0


def trace_plan_of(plan: JoinPlan, relations: Mapping[str, StoredRelation], wish: str | None) -> TracePlan:
    """How the trace of a clause with this plan is kept; `wish` forces a granularity where there is a choice."""
    distinct = {
        i: relations[n.predicate].statistics.distinct(frozenset(n.key_order[: n.level])) if n.level else 1.0
        for i, n in enumerate(plan.nodes)
    }
    return plan_trace(plan, distinct, force=wish)


def planned_trace(
    evaluator: Evaluator,
    clause: Clause,
    limits: Limits | None = None,
    also: Mapping[str, StoredRelation] | None = None,
) -> tuple[JoinPlan, TracePlan]:
    """The plan of a clause without text terms that is traced, and how its trace is kept."""
    relations = {**evaluator.relations, **(also or {})}
    wish = evaluator.state.granularity.get(clause.rule)

    def made() -> tuple[JoinPlan, TracePlan]:
        _, plan = evaluator.plan(clause, also=also, limits=limits, apart=True)
        return plan, trace_plan_of(plan, relations, wish)

    return evaluator.kept((clause, "trace", wish, evaluator.state.key_orders.get(clause.rule)), clause, relations, made)


def known_by_row(trace: ClauseTrace | TextTrace | ClauseDelta) -> bool:
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


def count_clause(evaluator: Evaluator, clause: Clause, limits: Limits) -> tuple[ClauseDelta, list[Rows], Evaluation]:
    """Evaluate `clause`, every derivation once: (what follows it, rows int64[head, n] with repeats, how it went)."""
    body, plan = evaluator.plan(clause, limits=limits)
    chunks: list[Rows] = []

    def begin(plan: JoinPlan) -> Run | None:
        return evaluator._run(clause, body, replace(plan, until=len(plan.depths)), limits, {})

    plan, run, _ = finish(evaluator, clause, plan, begin, lambda run: run.give(chunks.append), limits)
    counters = Counters() if run is None else run.counters
    if run is not None and run.trouble:
        look_for_error(evaluator, clause, limits)
    made = _delta_of(evaluator, clause, plan, evaluator.relations)
    made.counters = counters
    return made, chunks, Evaluation(clause, plan, counters)


def deltas_of(evaluator: Evaluator, clauses: Sequence[Clause], state: State) -> tuple[list[ClauseDelta], str]:
    """(what follows these clauses of a head without traces, why so).

    None if traces are wished for, or expected to be better. Planned over `state`, in which the clauses may have been
    evaluated.
    """
    asked = {state.maintain.get(c.rule, AUTO) for c in clauses}
    if any(split_text(clause) is not None for clause in clauses):
        return [], "its rules compute texts"
    if not asked <= {AUTO, "delta"}:
        return [], DECLARED
    relations = state.relations
    if "delta" not in asked:
        names = {name for clause in clauses for name in clause.reads}
        counted = any(atom.multiplicity for clause in clauses for atom in body_of(clause).atoms)
        if (rows := sum(len(relations[name]) for name in names)) < LARGE and not counted:
            return [], f"its rules read {rows:,} rows, fewer than {LARGE:,}"
        if any(c.rule in state.granularity for c in clauses):
            return [], "its rules say what records stand for"
    found, most = list[ClauseDelta](), MORE
    for clause in clauses:
        done = state.evaluations.get(clause)
        plan = evaluator.plan(clause)[1] if done is None else done.plan
        found.append(_delta_of(evaluator, clause, plan, relations))
        if "delta" not in asked:
            most += evaluator.kept((clause, "contexts"), clause, relations, partial(_contexts, plan, relations))
    if "delta" in asked:
        return found, DECLARED
    if counted:
        return found, "of columns that nothing names only the rows are counted, which a trace would tell apart"
    joined = sum(sum(delta.steps.values()) for delta in found)
    why = f"about {joined:,.0f} steps join a changed row; a trace is kept from {most:,.0f} on"
    return found if joined <= most else [], why


def _contexts(plan: JoinPlan, relations: Mapping[str, StoredRelation]) -> float:
    """An estimate of the records that a changed row would meet in a trace."""
    return trace_plan_of(plan, relations, None).contexts


def _delta_of(
    evaluator: Evaluator, clause: Clause, plan: JoinPlan, relations: Mapping[str, StoredRelation]
) -> ClauseDelta:
    variants = evaluator.kept((clause, "delta"), clause, relations, partial(variants_of, clause, relations))
    return ClauseDelta(clause, plan, variants, evaluator.arena, evaluator._encode, evaluator.symbols.ranks)


def _record_join(
    evaluator: Evaluator, clause: Clause, limits: Limits, also: Mapping[str, StoredRelation] | None
) -> tuple[ClauseTrace, list[Rows], Evaluation]:
    relations = {**evaluator.relations, **(also or {})}
    planned, trace_plan = planned_trace(evaluator, clause, limits, also)

    def begin(plan: JoinPlan) -> ClauseTrace:
        wish = evaluator.state.granularity.get(clause.rule)
        return ClauseTrace(
            plan,
            trace_plan if plan is planned else trace_plan_of(plan, relations, wish),
            evaluator.arena,
            evaluator._encode,
            evaluator.symbols.ranks,
            page_rows=evaluator.page_rows,
            dir_rows=evaluator.dir_rows,
            room=evaluator.trace_room,
        )

    def record(trace: ClauseTrace) -> list[Rows]:
        versions = {order: relations[order[0]].order(order[1]) for order in trace.orders}
        return trace.record(versions, limits, buffer_rows=evaluator.buffer_rows)

    plan, trace, chunks = finish(evaluator, clause, planned, begin, record, limits, also=also, apart=True)
    assert trace is not None, "there is always a trace to record"
    assert chunks is not None
    return trace, chunks, Evaluation(clause, plan, trace.counters, trace=trace)
