"""Delta: what changed in each atom is joined with the other atoms, in a key order that begins there.

Nothing is kept but key orders. Good wherever a changed row takes part in few derivations. The estimate of
steps per changed row comes from the plans of these joins (clause_delta.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.evaluate.aggregate import accumulates
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.overdue import finish
from lftj.evaluate.undefined_terms import look_for_error
from lftj.join.run import Counters, Limits, Run
from lftj.language.clause import Clause
from lftj.language.options import AUTO, TRIGGERS
from lftj.maintain import background
from lftj.maintain.clause_delta import ClauseDelta, variants_of
from lftj.maintain.cost import (
    CHANGE,
    JOINED,
    JOINED_STEP,
    MAINTENANCE_STEP,
    OTHER,
    PLANNED,
    HeadCosts,
    RebuildCost,
    concerned,
)
from lftj.maintain.derivations import DECLARED, KeptDerivations, derives_once, why_not_followed
from lftj.maintain.prepare import prepared
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason, size
from lftj.maintain.step import Step
from lftj.maintain.strategy import Staged
from lftj.maintain.trace import planned_trace
from lftj.plan.body import body_of
from lftj.plan.joinplan import JoinPlan
from lftj.plan.keyorder import has_witnesses
from lftj.program.evaluation import Evaluation
from lftj.program.state import State
from lftj.program.strata import Heads
from lftj.program.text_split import split_text
from lftj.store.stored import StoredRelation

Rows = npt.NDArray[np.int64]

# Witnesses that a head's search is expected to stop at the first of, from which on a trace is kept: most changes do not
# concern the one that was found, and deltas count them all. Following it takes no longer for fewer, but preparing does.
WITNESSES = 4.0
# How many times as long a changed row has to be expected to take by deltas as in a trace for a trace to be kept, before
# anything was measured: estimates are right within a factor of two or three, and a trace takes longer to prepare.
DEARER = 4.0
# Accumulators are prepared at once where evaluating takes so many times as long as planning: else that is too much.
AT_ONCE = 5.0


def count_clause(evaluator: Evaluator, clause: Clause, limits: Limits) -> tuple[ClauseDelta, list[Rows], Evaluation]:
    """Evaluate `clause`, every derivation once: (what follows it, rows int64[head, n] with repeats, how it went)."""
    body, plan = evaluator.plan(clause, limits=limits)
    chunks: list[Rows] = []

    def begin(plan: JoinPlan) -> Run | None:
        return evaluator._run(clause, body, replace(plan, until=len(plan.depths)), limits, {})

    replan = partial(evaluator.plan, clause, limits=limits)
    plan, run, _ = finish(replan, plan, begin, lambda run: run.give(chunks.append))
    counters = Counters() if run is None else run.counters
    if run is not None and run.saw_undefined:
        look_for_error(evaluator, clause, limits)
    made = _delta_of(evaluator, clause, plan, evaluator.relations)
    made.counters = counters
    return made, chunks, Evaluation(clause, plan, counters)


def deltas_of(
    evaluator: Evaluator, clauses: Sequence[Clause], state: State, costs: HeadCosts | None = None
) -> tuple[list[ClauseDelta], str]:
    """(what follows these clauses of a head without traces, why so).

    None if traces are wished for, or expected to be better. Planned over `state`, in which the clauses may have been
    evaluated. `costs`: what is known of the head's; it is told what both are expected to take.
    """
    asked = {AUTO if (wish := state.maintain.get(c.rule, AUTO)) == TRIGGERS else wish for c in clauses}
    if any(split_text(clause) is not None for clause in clauses):
        return [], "its rules compute texts"
    if not asked <= {AUTO, "delta"}:
        return [], DECLARED
    relations = state.relations
    if "delta" not in asked and any(c.rule in state.granularity for c in clauses):
        return [], "its rules say what records stand for"
    found = list[ClauseDelta]()
    evaluated = 0
    for clause in clauses:
        done = state.evaluations.get(clause)
        plan = None if done is None else done.plan
        if plan is None or plan.folded is not None:
            plan, done = evaluator.plan(clause)[1], None  # what there was did not take the steps of enumerating
        found.append(_delta_of(evaluator, clause, plan, relations))
        evaluated += int(plan.cost) if done is None or done.counters is None else done.counters.steps
    if "delta" in asked:
        return found, DECLARED
    by_delta, by_trace = _steps(found), concerned(evaluated, {name for c in clauses for name in c.reads}, relations)
    if costs is not None:
        costs.steps = {"delta": by_delta, "trace": by_trace}
        if costs.favoured:
            why = f"what is kept by {OTHER[costs.favoured]} took longer than by {costs.favoured} is expected to"
            return found if costs.favoured == "delta" else [], why
    if any(_stops_early(evaluator, clause) for clause in clauses):
        return [], f"its search stops at the first of {WITNESSES:,.0f} witnesses or more"
    joined, recorded = (
        sum(len(relations[name]) * (of_row + of_step * steps[name]) for name in steps)
        for of_row, of_step, steps in ((JOINED, JOINED_STEP, by_delta), (CHANGE, MAINTENANCE_STEP, by_trace))
    )
    rows = max(1, sum(len(relations[name]) for name in by_delta))
    why = f"about {joined / rows / 1e3:,.1f} µs for a changed row, {recorded / rows / 1e3:,.1f} µs by a trace"
    return found if joined <= DEARER * recorded else [], why


def _steps(deltas: Sequence[ClauseDelta]) -> dict[str, float]:
    """What a changed row of each relation is expected to take in all `deltas`, in steps."""
    found: dict[str, float] = {}
    for delta in deltas:
        for name, steps in delta.steps.items():
            found[name] = found.get(name, 0.0) + steps
    return found


def _stops_early(evaluator: Evaluator, clause: Clause) -> bool:
    """Whether a trace of the clause would hold searches for a witness, of which there are many.

    Never that of an aggregate, which needs all bindings. To plan it would sort what it counts by all columns.
    """
    if accumulates(clause):
        return False
    relations = evaluator.relations

    def made() -> bool:
        body = body_of(clause, apart=True)
        statistics = {atom.predicate: relations[atom.predicate].statistics for atom in (*body.atoms, *body.negated)}
        if not has_witnesses(body, statistics, WITNESSES / 2):
            return False
        plan, trace_plan = planned_trace(evaluator, clause)
        return trace_plan.until < len(plan.depths) and plan.witnesses >= WITNESSES

    return evaluator.kept((clause, "stops early", evaluator.state.key_orders.get(clause.rule)), clause, relations, made)


def _delta_of(
    evaluator: Evaluator, clause: Clause, plan: JoinPlan, relations: Mapping[str, StoredRelation]
) -> ClauseDelta:
    variants = evaluator.kept((clause, "delta"), clause, relations, partial(variants_of, clause, relations))
    return ClauseDelta(clause, plan, variants, evaluator.arena, evaluator._encode, evaluator.symbols.ranks)


class Delta:
    """The strategy that keeps key orders only."""

    name = "delta"

    def planned(self, step: Step, heads: Heads) -> tuple[list[ClauseDelta], str]:
        """`deltas_of` over the state before the step, where the rules were there; worked out once in a step."""
        if heads.name not in step.deltas:
            planned = step.state if heads.name in step.new_heads else step.before
            costs = step.kept.costs_of(heads)
            step.deltas[heads.name] = deltas_of(step.evaluator, heads.clauses, planned, costs)
        return step.deltas[heads.name]

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits rules that are not recursive, compute no texts, and join a changed row in few steps."""
        costs = step.kept.costs_of(heads)
        if costs.why_not is None:
            costs.why_not = why_not_followed(heads)
        if costs.why_not:
            return costs.why_not
        if step.changes and step.asked(heads) == {AUTO} and self.unkept(step, heads) and not self._at_hand(step, heads):
            return ""  # the head is evaluated, and how it will be followed need not be planned yet
        deltas, why = self.planned(step, heads)
        return "" if deltas else why

    def kept(self, step: Step, heads: Heads) -> KeptDerivations | None:
        """What the head can be followed by from here on, its content being at hand, without evaluating it once more.

        None if derivations have to be counted.
        """
        done = self._at_hand(step, heads)
        if done is None or done.counters is None:
            return None
        counters, rows = done.counters, len(step.before.relations[heads.name])
        rebuild = RebuildCost(counters.opens, counters.seeks, counters.rows, rows).measured(done.cpu)
        deltas, _ = self.planned(step, heads)
        return KeptDerivations(heads.clauses, [*deltas], [delta.steps for delta in deltas], None, {}, rebuild)

    def _at_hand(self, step: Step, heads: Heads) -> Evaluation | None:
        """The evaluation that gave the head's content, if its rows tell their derivations and it can be gone on from.

        What takes less than planning how to go on is evaluated once more.
        """
        relation, clause = step.before.relations.get(heads.name), heads.clauses[0]
        done = step.before.evaluations.get(clause)
        if heads.name in step.new_heads or len(heads.clauses) > 1 or relation is None:
            return None
        if done is None or done.counters is None or accumulates(clause) or len(relation.facts):
            return None
        unkept = step.unkept(heads, unless=self.name)
        if unkept == background.COMPILING or (unkept and self._takes_less(step, heads, 1.0)):
            return None
        plan = done.plan or step.evaluator.plan(clause)[1]
        return done if derives_once(replace(plan, until=len(plan.depths))) else None

    def _takes_less(self, step: Step, heads: Heads, times: float) -> bool:
        """Whether evaluating the head is expected to take less than planning how it is followed, so many times."""
        done = step.before.evaluations.get(heads.clauses[0])
        if done is None or done.counters is None:
            return False
        counters, atoms = done.counters, sum([len(clause.atoms) + len(clause.negated) for clause in heads.clauses])
        cost = RebuildCost(counters.opens, counters.seeks, counters.rows, 1).nanoseconds(1, 1.0)
        return cost < times * PLANNED * atoms

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """Derivations were not counted; or why they are not now."""
        unkept = self.unkept(step, heads)
        return f"its derivations are not counted yet{unkept and ': '}{unkept}"

    def unkept(self, step: Step, heads: Heads) -> str:
        """Why nothing is kept; accumulators of many rows take no longer than evaluating."""
        unkept = step.unkept(heads, unless=self.name)
        at_once = unkept != background.COMPILING and accumulates(heads.clauses[0])
        if at_once and not self._takes_less(step, heads, AT_ONCE):
            return step.bulk(heads, unless=self.name)
        return unkept

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate the head, counting derivations where a row may have several, unless that does not pay yet."""
        if self.unkept(step, heads):
            return RECOMPUTE.prepare(step, heads, why, limits)
        return prepared(step, heads, count_clause, why, limits)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """The joins' plans: those that are kept, or that would be."""
        state = step.state
        deltas, why = self.planned(step, heads)
        kept = step.kept.heads.get(heads.name)
        held = kept if isinstance(kept, KeptDerivations) and kept.clauses == heads.clauses else None
        if held is not None:
            # The reason for what was chosen when relations had other sizes is not known any more.
            why = why if deltas else ""
            deltas = [trace for trace in held.traces if isinstance(trace, ClauseDelta)]
        return {
            "why": DECLARED if self.name in step.asked(heads) else why,
            "recorded": held is not None,
            "current": held is not None and heads.name not in state.stale and held.holds_for(step, heads),
            "support_bytes": 0 if held is None else held.support_bytes(),
            "joins": [{"plans": _plans(delta)} for delta in deltas],
        }

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """How it follows, and what supports rows with several derivations."""
        why = ", as declared" if explained["why"] == DECLARED else ""
        lines = [f"{indent}follows changes by delta{why}: what changed in an atom is joined with the others"]
        if explained["why"] not in ("", DECLARED):
            lines.append(f"{indent}  {explained['why']}")
        if explained["support_bytes"]:
            lines.append(f"{indent}  support: {size(explained['support_bytes'])}")
        return lines


def _plans(delta: ClauseDelta) -> list[dict[str, Any]]:
    """The plans of a clause that is followed by delta: one per atom, and those of pairs of old and new rows."""
    plans = []
    for variant in delta.variants:
        order, moved = list(variant.plan.order), variant.moved
        plans.append({"changed": variant.shown, "key_order": order, "steps_per_row": variant.steps})
        if moved is not None and moved.failing is not None:
            plans[-1]["moves"] = [v.name for v in moved.atom.moving]
    return plans
