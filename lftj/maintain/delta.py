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
from lftj.language.options import AUTO
from lftj.maintain.clause_delta import ClauseDelta, variants_of
from lftj.maintain.cost import RebuildCost
from lftj.maintain.derivations import DECLARED, KeptDerivations, derives_once, why_not_followed
from lftj.maintain.prepare import prepared
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason, size
from lftj.maintain.step import Step
from lftj.maintain.strategy import Staged
from lftj.maintain.trace import trace_plan_of
from lftj.plan.body import body_of
from lftj.plan.joinplan import JoinPlan
from lftj.program.evaluation import Evaluation
from lftj.program.state import State
from lftj.program.strata import Heads
from lftj.program.text_split import split_text
from lftj.store.stored import StoredRelation

Rows = npt.NDArray[np.int64]

# Rows of what a head reads, all together, from which on following it without records is considered: below, records are
# few, and traces take no more steps than deltas.
LARGE = 1 << 16
# Steps that a changed row may be estimated to take in joins beyond the contexts it is estimated to meet in a trace,
# where each costs lookups and records. Not fitted: at all that was measured (bench.latency, bench.grouped: up to 180
# estimated steps) deltas did better than traces.
MORE = 500.0


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


class Delta:
    """The strategy that keeps key orders only."""

    name = "delta"

    def _deltas(self, step: Step, heads: Heads) -> tuple[list[ClauseDelta], str]:
        """`deltas_of` over the state before the step, where the rules were there; worked out once in a step."""
        if heads.name not in step.deltas:
            planned = step.evaluator.state if heads.name in step.new_heads else step.before
            step.deltas[heads.name] = deltas_of(step.evaluator, heads.clauses, planned)
        return step.deltas[heads.name]

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits rules that are not recursive, compute no texts, and join a changed row in few steps."""
        if why := why_not_followed(heads):
            return why
        deltas, why = self._deltas(step, heads)
        return "" if deltas else why

    def kept(self, step: Step, heads: Heads) -> KeptDerivations | None:
        """What the head can be followed by from here on, its content being at hand, without evaluating it once more.

        None if derivations have to be counted.
        """
        relation, clause = step.before.relations.get(heads.name), heads.clauses[0]
        done = step.before.evaluations.get(clause)
        if heads.name in step.new_heads or len(heads.clauses) > 1 or relation is None:
            return None
        if done is None or done.counters is None or accumulates(clause) or len(relation.facts):
            return None
        if not derives_once(replace(done.plan, until=len(done.plan.depths))):
            return None
        counters = done.counters
        rebuild = RebuildCost(counters.opens, counters.seeks, counters.rows, len(relation))
        deltas, _ = self._deltas(step, heads)
        return KeptDerivations(heads.clauses, [*deltas], None, {}, rebuild)

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """Derivations were not counted; or why they are not now."""
        return step.bulk(heads, unless=self.name) or "its derivations are not counted yet"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate the head, counting derivations where a row may have several; after a bulk change, without."""
        if step.bulk(heads, unless=self.name):
            return RECOMPUTE.prepare(step, heads, why, limits)
        return prepared(step, heads, "recompute", count_clause, why, limits)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """The joins' plans: those that are kept, or that would be."""
        state = step.evaluator.state
        deltas, why = self._deltas(step, heads)
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
    """The plans of a clause that is followed by delta: one per atom."""
    return [{"changed": v.shown, "key_order": list(v.plan.order), "steps_per_row": v.steps} for v in delta.variants]
