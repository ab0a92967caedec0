"""Preparing a head: it is evaluated, and what its derivations are followed by is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lftj.evaluate.aggregate import accumulates, recorded
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.undefined_groups import undefined_groups_of
from lftj.evaluate.undefined_terms import look_for_error
from lftj.join.run import Limits, TooManyRows
from lftj.language.clause import Clause
from lftj.language.options import AUTO
from lftj.maintain.clause_delta import ClauseDelta
from lftj.maintain.clause_trace import ClauseTrace
from lftj.maintain.cost import RebuildCost, concerned
from lftj.maintain.derivations import KeptDerivations, StagedDerivations, derives_once, kept_content, support_of
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Staged
from lftj.maintain.text_trace import TextTrace
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.store.change import Change

Rows = npt.NDArray[np.int64]
Followable = ClauseTrace | TextTrace | ClauseDelta
Make = Callable[[Evaluator, Clause, Limits], tuple[Followable, list[Rows], Evaluation]]
# Preparing may go through so many times as many derivations as rows are read and stored, or as it goes through in twice
# the time that evaluating took, each in so many nanoseconds; and so many in any case. An aggregate is evaluated by
# multiplying counts: its derivations may be a thousand times as many.
PATIENT, DERIVATION, IN_ANY_CASE = 10.0, 100.0, 1 << 20


def prepared(step: Step, heads: Heads, make: Make, why: Reason, limits: Limits) -> Staged:
    """Evaluate a head rule by rule. `make` evaluates one: (what follows it, rows with repeats, how it went).

    Where there are far too many derivations for that, it is evaluated only, and never followed by them.
    """
    done = step.before.evaluations.get(heads.clauses[0])
    if step.asked(heads) != {AUTO} or done is None or not done.cpu:
        return _prepared(step, heads, make, why, limits)
    rows = sum(len(step.after[name]) for name in (heads.name, *heads.reads))
    most = max(IN_ANY_CASE, int(PATIENT * rows), int(PATIENT / 5 * done.cpu / DERIVATION))
    try:
        return _prepared(step, heads, make, why, replace(limits, most=most))
    except TooManyRows:
        why_not = f"it has more than {most:,} derivations, many more than it takes to evaluate"
        step.kept.costs_of(heads).why_not = why_not
    return RECOMPUTE.prepare(step, heads, why_not, limits)


def _prepared(step: Step, heads: Heads, make: Make, why: Reason, limits: Limits) -> StagedDerivations:
    evaluator, relations = step.evaluator, step.after
    relation, clauses = relations[heads.name], heads.clauses
    traces: list[Followable] = []
    chunks: list[Rows] = []
    done, work = {}, []
    for i, clause in enumerate(clauses):
        began = time.perf_counter()
        trace, rows, evaluation = make(evaluator, clause, limits)
        chunks += rows
        traces.append(trace)
        evaluation.seconds = time.perf_counter() - began
        done[clause] = evaluation
        kept = sum(part.indexes.count(s) for part in trace.parts for s in part.indexes.packings)
        late = sum(part.counters.abandoned for part in evaluation.parts() if part.counters)
        work.append(RuleWork(i, trace.counters.steps, 0, kept, 0, evaluation.seconds, late))
        if trace.saw_undefined:
            look_for_error(evaluator, clause, limits)
    once = len(traces) == 1 and _known_by_row(traces[0])
    support, accumulators = None, None
    if accumulates(clauses[0]):
        accumulators, chunks = recorded(evaluator, clauses[0], chunks)
    elif not once or len(relation.facts):
        sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
        support = support_of(evaluator.arena, relation.arity, chunks, **sizes)
        chunks = [support.columns()[:-1]]
    in_order = (accumulators is not None or support is not None or evaluation.sorted) and not len(relation.facts)
    if len(relation.facts):
        chunks.append(relation.facts.columns())
    content = relation.assemble(chunks, in_order=in_order)
    change = Change.between(relation.content, content)
    content = kept_content(relation.content, content, change)
    opens, seeks, derived = (sum(getattr(t.counters, what) for t in traces) for what in ("opens", "seeks", "rows"))
    texts = sum(trace.stepped_rows for trace in traces if isinstance(trace, TextTrace))
    # Of an evaluation that kept nothing, if there was one: preparing takes longer.
    before = step.before.evaluations.get(clauses[0])
    done[clauses[0]].cpu = cpu = before.cpu if before is not None else 0.0
    rebuild = RebuildCost(opens, seeks, derived, len(content), texts).measured(cpu)
    steps = [
        trace.steps if isinstance(trace, ClauseDelta) else concerned(trace.counters.steps, set(clause.reads), relations)
        for clause, trace in zip(clauses, traces, strict=True)
    ]
    kept_of_head = KeptDerivations(clauses, traces, steps, support, None, rebuild, accumulators)
    staged = StagedDerivations(
        kept_of_head.strategy,
        why,
        {},
        {},
        done,
        sum(rule.steps for rule in work),
        0,
        sum(rule.added for rule in work),
        work,
        undefined=() if accumulators is None else undefined_groups_of(clauses[0], accumulators.without_result),
        kept=kept_of_head,
        derivations=kept_of_head,
        head=heads.name,
        after=relations,
        support=support,
        accumulators=accumulators,
    )
    staged.hold(content, change)
    return staged


def _known_by_row(trace: Followable) -> bool:
    """Whether a binding of the rule is known by the row it derives."""
    return trace.once if isinstance(trace, TextTrace) else derives_once(trace.plan)
