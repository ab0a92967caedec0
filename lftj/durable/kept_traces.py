"""The traces of a head, in a checkpoint: the packed records of every site, sorted, and the plan that they are of.

A record means something under one plan only, so its key order is planned again, and the traces are taken up if that
gives the very plan that they were recorded under, estimates aside. Chunks end where records say so: records that come
and go leave those of other chunks where they are in the file.

Traces of rules that compute texts are not kept: what is between their parts is a relation of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lftj.durable.chunks import ends_by_value
from lftj.durable.followed_lists import KeptParts, SavedParts
from lftj.durable.kept_sums import accumulators_again, versions_of
from lftj.evaluate.accumulators import folding_of
from lftj.evaluate.evaluator import Evaluator
from lftj.language.clause import Clause
from lftj.maintain.clause_trace import ClauseTrace
from lftj.maintain.cost import RebuildCost
from lftj.maintain.derivations import KeptDerivations, support_store
from lftj.maintain.step import Step
from lftj.maintain.trace import without_records
from lftj.maintain.trace_layout import Ranges
from lftj.plan.joinplan import ROOT_VARIABLE, JoinPlan
from lftj.plan.traceplan import Site, TracePlan
from lftj.program.strata import Heads
from scantree.version import Version
from sensitivity.index import SensitivityIndexes
from sensitivity.packing import Packed, Packing, Range

TRACES = "traces"
_SUPPORT = "support of traces"
# How records are laid out in words, beyond what a packing says.
LAYOUT = 1


def traces_of(kept: KeptDerivations) -> KeptParts | None:
    """The traces of a head, copied; None if they are not kept in files."""
    traces = [trace for trace in kept.traces if isinstance(trace, ClauseTrace)]
    if len(traces) < len(kept.traces) or (kept.accumulators is not None and kept.accumulators.without_result):
        return None
    versions: dict[str, Version] = {} if kept.support is None else {_SUPPORT: kept.support}
    if kept.accumulators is not None:
        versions |= versions_of(kept.accumulators)
    noted = {
        "layout": LAYOUT,
        "steps": [dict(steps) for steps in kept.steps],
        "rebuild": list(kept.rebuild),
        "supported": kept.support is not None,
        "summed": kept.accumulators is not None,
        "traces": [_noted(trace) for trace in traces],
    }
    arrays = {
        _records(i, s): (trace.indexes.words(s), ends_by_value)
        for i, trace in enumerate(traces)
        for s in trace.indexes.packings
    }
    return KeptParts(TRACES, noted, versions, arrays)


def traces_again(step: Step, heads: Heads, saved: SavedParts) -> KeptDerivations | None:
    """Traces as they were saved; None if their rules are planned otherwise. Raises `DatabaseFileError`."""
    noted, evaluator = saved.noted, step.evaluator
    if noted["layout"] != LAYOUT or len(noted["traces"]) != len(heads.clauses):
        return None
    made = []
    for i, (clause, one) in enumerate(zip(heads.clauses, noted["traces"], strict=True)):
        trace = _empty(evaluator, clause, one)
        if trace is None:
            return None
        packings = {s: _packing_of(packing) for s, packing in one["packings"]}
        indexes = SensitivityIndexes(
            evaluator.arena, len(trace.trace_plan.sites), page_rows=evaluator.page_rows, dir_rows=evaluator.dir_rows
        )
        for s, packing in packings.items():
            indexes.put(s, packing, saved.array(_records(i, s)))
        trace.go_on_from(indexes, _ranges_of(one["ranges"]), saw_undefined=one["saw_undefined"])
        made.append(trace)
    support = saved.version(_SUPPORT, support_store(step.after[heads.name])) if noted["supported"] else None
    accumulators = None
    if noted["summed"]:
        accumulators = accumulators_again(evaluator, folding_of(heads.clauses[0]), saved)
    rebuild = RebuildCost(*noted["rebuild"])
    return KeptDerivations(heads.clauses, [*made], noted["steps"], support, None, rebuild, accumulators)


def _records(number: int, site: int) -> str:
    return f"records {number} {site}"


def _empty(evaluator: Evaluator, clause: Clause, noted: Mapping[str, Any]) -> ClauseTrace | None:
    """A trace without records under the plan that was noted; None if the clause has another one."""
    _, plan = evaluator.plan(clause, order=tuple(noted["order"]), apart=True)
    trace_plan = TracePlan(
        tuple(Site(f, d, turn, kind, tuple(pre), tuple(con)) for f, d, turn, kind, pre, con in noted["sites"]),
        tuple(noted["reasons"]),
        noted["contexts"],
        noted["until"],
    )
    if _plan_text(replace(plan, until=trace_plan.until)) != noted["plan"]:
        return None
    return without_records(evaluator, plan, trace_plan)


def _noted(trace: ClauseTrace) -> dict[str, Any]:
    """What a trace is, beside its records."""
    plan, chosen = trace.plan, trace.trace_plan
    return {
        "order": [d.variable for d in plan.depths if d.variable != ROOT_VARIABLE and not d.counts],
        "plan": _plan_text(plan),
        "sites": [[s.frame, s.depth, s.turn, s.granularity, s.prefix, s.context] for s in chosen.sites],
        "reasons": chosen.reasons,
        "contexts": chosen.contexts,
        "until": chosen.until,
        "packings": [[s, _noted_packing(packing)] for s, packing in trace.indexes.packings.items()],
        "ranges": [[d, None if known is None else [known.low, known.high]] for d, known in trace.ranges.items()],
        "saw_undefined": trace.saw_undefined,
    }


def _plan_text(plan: JoinPlan) -> str:
    """All that a plan says but estimates, and how it was come to."""
    depths = tuple(replace(depth, rows=0.0) for depth in plan.depths)
    return repr(replace(plan, depths=depths, cost=0.0, forced=True, witnesses=1.0, abandoned=()))


def _noted_packing(packing: Packing) -> list[Any]:
    single = [None if f is None else _noted_field(f) for f in (packing.start, packing.agree)]
    return [packing.words, [*map(_noted_field, packing.prefix)], [*map(_noted_field, packing.context)], *single]


def _noted_field(field: Packed) -> list[int]:
    return [field.source, field.word, field.shift, int(field.low), field.bits]


def _packing_of(noted: list[Any]) -> Packing:
    words, prefix, context, *single = noted
    start, agree = (None if field is None else Packed(*field) for field in single)
    return Packing(words, tuple(Packed(*f) for f in prefix), start, tuple(Packed(*f) for f in context), agree)


def _ranges_of(noted: list[Any]) -> Ranges:
    return {d: None if known is None else Range(*known) for d, known in noted}
