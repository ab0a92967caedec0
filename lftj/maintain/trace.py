"""Trace: a change concerns some steps of a rule's join, which are looked up in the records of its trace and redone.

Good where derivations are many and results few, and where an existential suffix lets a search stop at its first
witness. The first commit that concerns a head evaluates it and records its traces; the next ones maintain them.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.overdue import finish
from lftj.evaluate.text_steps import step as text_step
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.maintain.clause_trace import ClauseTrace
from lftj.maintain.derivations import DECLARED, KeptDerivations, why_not_followed
from lftj.maintain.prepare import prepared
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason, amount, size
from lftj.maintain.step import Step
from lftj.maintain.strategy import Staged
from lftj.maintain.text_trace import TextTrace, is_map, mapped
from lftj.plan.joinplan import ROOT_VARIABLE, JoinPlan
from lftj.plan.traceplan import TracePlan, plan_trace
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.program.text_split import split_text
from lftj.store.stored import StoredRelation
from sensitivity.records import NAMES, NONE

Rows = npt.NDArray[np.int64]


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
        return text, [made], Evaluation(clause, inner.plan, text.counters, split=split)
    stepped = text_step(split, rows, count, symbols)
    sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
    between = StoredRelation(split.schema, evaluator.arena, **sizes)
    between = between.successor(between.build(stepped.rows, stepped.size))
    outer, chunks, last = record_clause(evaluator, split.outer, limits, {**(also or {}), split.schema.name: between})
    text = TextTrace(clause, split, inner, symbols, outer, between, stepped.undefined)
    return text, chunks, Evaluation(clause, last.plan, last.counters, inner=first, split=split)


def without_records(evaluator: Evaluator, plan: JoinPlan, trace_plan: TracePlan) -> ClauseTrace:
    """A trace under a plan, before anything is recorded."""
    return ClauseTrace(
        plan,
        trace_plan,
        evaluator.arena,
        evaluator._encode,
        evaluator.symbols.ranks,
        page_rows=evaluator.page_rows,
        dir_rows=evaluator.dir_rows,
        room=evaluator.trace_room,
    )


def _record_join(
    evaluator: Evaluator, clause: Clause, limits: Limits, also: Mapping[str, StoredRelation] | None
) -> tuple[ClauseTrace, list[Rows], Evaluation]:
    relations = {**evaluator.relations, **(also or {})}
    planned, trace_plan = planned_trace(evaluator, clause, limits, also)

    def begin(plan: JoinPlan) -> ClauseTrace:
        wish = evaluator.state.granularity.get(clause.rule)
        return without_records(evaluator, plan, trace_plan if plan is planned else trace_plan_of(plan, relations, wish))

    def record(trace: ClauseTrace) -> list[Rows]:
        versions = {order: relations[order[0]].order(order[1]) for order in trace.orders}
        return trace.record(versions, limits, buffer_rows=evaluator.buffer_rows)

    replan = partial(evaluator.plan, clause, also=also, limits=limits, apart=True)
    plan, trace, chunks = finish(replan, planned, begin, record)
    assert trace is not None, "there is always a trace to record"
    assert chunks is not None
    return trace, chunks, Evaluation(clause, plan, trace.counters)


class Trace:
    """The strategy that keeps traces."""

    name = "trace"

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits rules that are not recursive and ask for more than whether a relation is empty."""
        return step.kept.costs_of(heads).why_not or why_not_followed(heads)

    def kept(self, step: Step, heads: Heads) -> KeptDerivations | None:
        """The head's traces are what is kept of it, or there is nothing at hand."""
        return None

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """Whether there is no trace, or an outdated one; or why none is recorded now."""
        held = "its trace is outdated" if heads.name in step.kept.heads else "there is no trace of it yet"
        if unkept := step.unkept(heads, unless=self.name):
            return f"{held}: {unkept}"
        return f"{held}: recorded"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate the head and record its traces; where that does not pay yet, without recording."""
        if step.unkept(heads, unless=self.name):
            return RECOMPUTE.prepare(step, heads, why, limits)
        return prepared(step, heads, record_clause, why, limits)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """Granularities and indexes: those of the traces there are, or of those that would be recorded."""
        state = step.state
        kept = step.kept.heads.get(heads.name)
        held = kept if isinstance(kept, KeptDerivations) and kept.clauses == heads.clauses else None
        found: dict[str, Any] = {
            "why": DECLARED if self.name in step.asked(heads) else "",
            "recorded": held is not None,
            "current": held is not None and heads.name not in state.stale and held.holds_for(step, heads),
            "support_bytes": 0 if held is None else held.support_bytes(),
        }
        if held is not None:
            return found | {"rules": [_parts(trace.parts) for trace in held.traces]}
        rules = []
        for evaluation in evaluations:
            # Of a clause that computes texts, the first part: what the others will read is not there yet.
            *_, first = evaluation.parts()
            split = split_text(first.clause)  # an evaluation that read columns has none
            traced = first.clause if split is None else split.inner
            rules.append(_rule(*planned_trace(step.evaluator, traced), None))
        return found | {"rules": rules}

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """Whether the traces are recorded, and what supports rows with several derivations."""
        why = ", as declared" if explained["why"] == DECLARED else ""
        held = "not recorded yet"
        if explained["recorded"]:
            held = "recorded" if explained["current"] else "outdated: the next commit records it again"
        lines = [f"{indent}follows changes by its trace{why} ({held})"]
        if explained["why"] not in ("", DECLARED):
            lines.append(f"{indent}  {explained['why']}")
        if explained["support_bytes"]:
            lines.append(f"{indent}  support and filters: {size(explained['support_bytes'])}")
        return lines


def _parts(parts: Sequence[ClauseTrace]) -> dict[str, Any]:
    """What the trace of a clause keeps: of its first part, and under "then" of those after it, where it has more."""
    first, *others = [_rule(part.plan, part.trace_plan, part) for part in parts]
    return first | ({"then": others} if others else {})


def _rule(plan: JoinPlan, chosen: TracePlan, trace: ClauseTrace | None) -> dict[str, Any]:
    """What the trace of a clause keeps: the granularity of each depth with its reason, and the indexes."""
    depths = []
    for d, depth in enumerate(plan.depths):
        if depth.variable == ROOT_VARIABLE:
            continue
        kinds = [site.granularity for site in chosen.sites if site.depth == d]
        depths.append(
            {
                "variable": plan.shown.get(depth.variable, depth.variable),
                "granularity": NAMES[kinds[0]] if kinds else NAMES[NONE],
                "why": chosen.reasons[d],
            }
        )
    indexes = []
    for s in chosen.recorded:
        depth = plan.depths[chosen.sites[s].depth]
        indexes.append(
            {
                "participant": plan.node_text(chosen.sites[s].frame),
                "variable": plan.shown.get(depth.variable, depth.variable),
                "records": None if trace is None else trace.indexes.count(s),
                "bytes": None if trace is None else trace.indexes.memory(s),
            }
        )
    return {"key_order": list(plan.order), "depths": depths, "indexes": indexes}


def trace_lines(rule: Mapping[str, Any], indent: str) -> list[str]:
    """The lines about the trace of one clause."""
    wide = max((len(d["variable"]) for d in rule["depths"]), default=0)
    lines = [f"{indent}trace (key order {', '.join(rule['key_order'])})"]
    for d in rule["depths"]:
        lines.append(f"{indent}  {d['variable']:{wide}}  {d['granularity']:8}  {d['why']}")
        for index in rule["indexes"]:
            if index["variable"] == d["variable"] and index["records"] is not None:
                records = f"{amount(index['records'], 'record')}, {size(index['bytes'])}"
                lines.append(f"{indent}  {'':{wide}}  {'':8}  {index['participant']}: {records}")
    for part in rule.get("then", ()):
        lines += trace_lines(part, indent)
    return lines
