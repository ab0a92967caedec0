"""Triggers: counts, sums and means are kept by maps that say what every changed row does to them (lftj/triggers).

When they are taken, when and of what the maps are made, and what is told of them; how they follow changes says
kept_triggers.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from lftj.join.run import Limits
from lftj.language.clause import Clause, Var
from lftj.language.options import AUTO, TRIGGERS
from lftj.maintain import background
from lftj.maintain.cost import EVENT, EVENT_STEP, JOINED, JOINED_STEP, RebuildCost
from lftj.maintain.delta import Delta
from lftj.maintain.derivations import DECLARED, kept_content
from lftj.maintain.kept_triggers import KeptTriggers, is_threshold
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason, RuleWork, amount, size
from lftj.maintain.step import Step
from lftj.maintain.strategy import Staged
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.triggers.derived_relations import NoEvents
from lftj.triggers.from_clauses import ClauseFormulas, DoesNotFit, formulas_of
from lftj.triggers.head_rows import NoResult
from lftj.triggers.kept_thresholds import ThresholdFormulas
from lftj.triggers.maps import SumOverflow
from lftj.triggers.worth_keeping import EventStatistics

# How many times as long as by deltas a changed row may take by maps: a commit of one row takes half as long by these.
TOO_DEAR = 2.0
# Steps that a changed row has to be expected to take by deltas for a head to be evaluated by its maps: its join is far
# dearer than they are.
FAR_TOO_MANY_BINDINGS = 1_000.0


def is_cyclic(clause: Clause) -> bool:
    """Whether the atoms of a body form a cycle: ears, whose other variables one more atom has, do not use them up."""
    left = [{arg.name for arg in atom.args if isinstance(arg, Var)} for atom in clause.atoms]
    while len(left) > 1:
        for i, names in enumerate(left):
            others = left[:i] + left[i + 1 :]
            shared = {name for name in names if any(name in other for other in others)}
            if any(shared <= other for other in others):
                left = others
                break
        else:
            return True
    return False


class Triggers:
    """The strategy that keeps maps. `delta`: what it is weighed against where nothing is asked for."""

    name = TRIGGERS

    def __init__(self, delta: Delta) -> None:
        self._delta = delta

    def formulas(self, step: Step, heads: Heads) -> ClauseFormulas | ThresholdFormulas | str:
        """What the head's clause says as formulas; or why they do not say it. Worked out once for rules."""
        costs = step.kept.costs_of(heads)
        if costs.formulas is None:
            relations = step.after
            try:
                if heads.recursive or len(heads.clauses) != 1:
                    raise DoesNotFit("is recursive" if heads.recursive else "has no rule, or several")
                clause = heads.clauses[0]
                schemas = {name: relations[name].schema for name in clause.reads}
                if clause.threshold is None:
                    costs.formulas = formulas_of(clause, schemas, step.evaluator.state.strata.by_head)
                else:
                    costs.formulas = ThresholdFormulas(clause, schemas)
            except DoesNotFit as why:
                costs.formulas = f"it {why}"
        return costs.formulas

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits counts, sums and means that formulas say, where it is asked for or worth it; and all thresholds."""
        asked, threshold = step.asked(heads), is_threshold(heads)
        if TRIGGERS not in asked and asked != {AUTO} and not threshold:
            return DECLARED
        formulas = self.formulas(step, heads)
        if isinstance(formulas, str):
            return formulas
        if len(step.after[heads.name].facts):
            return "it has facts of its own"
        return "" if TRIGGERS in asked or threshold else self._why_delta(step, heads)

    def evaluated(self, step: Step, heads: Heads, limits: Limits) -> Staged | None:
        """A head that is evaluated by its maps; None if its join is better enumerated."""
        if is_threshold(heads) or self.fits(step, heads):
            return None
        if TRIGGERS not in step.asked(heads) and self._by_deltas(step, heads) < FAR_TOO_MANY_BINDINGS:
            return None
        return self._filled(step, heads, "", limits)

    def _why_delta(self, step: Step, heads: Heads) -> str:
        """Why a count, sum or mean is rather followed by deltas; empty if not."""
        clause = heads.clauses[0]
        if is_cyclic(clause):
            return "its join is cyclic"
        if clause.rule in step.evaluator.state.granularity:
            return "its rules say what records stand for"
        return ""

    def _by_deltas(self, step: Step, heads: Heads) -> float:
        """The steps that a changed row is expected to take by deltas; 0 if these are not planned."""
        self._delta.planned(step, heads)
        expected, relations = step.kept.costs_of(heads).steps.get("delta", {}), step.after
        rows = sum(len(relations[name]) for name in expected)
        return sum(len(relations[name]) * of_row for name, of_row in expected.items()) / max(1, rows)

    def _dearer(self, step: Step, heads: Heads, kept: KeptTriggers) -> str:
        """Why deltas are better than the maps that were filled: a changed row runs through too many entries of them."""
        by_deltas, by_maps = self._by_deltas(step, heads), kept.steps_per_event
        if not by_deltas or EVENT + EVENT_STEP * by_maps <= TOO_DEAR * (JOINED + JOINED_STEP * by_deltas):
            return ""
        return f"a changed row takes about {by_maps:,.0f} steps by triggers, {by_deltas:,.0f} by deltas"

    def kept(self, step: Step, heads: Heads) -> KeptTriggers | None:
        """Where the step is a stream of events: maps of the content before it, which the events go on from.

        Otherwise nothing is at hand.
        """
        before = step.before
        if step.streams is None or heads.name in step.new_heads or heads.name in before.undefined:
            return None
        return self._made(step, heads, before.relations, before.evaluations.get(heads.clauses[0]), Limits())

    def _made(
        self,
        step: Step,
        heads: Heads,
        relations: Mapping[str, StoredRelation],
        done: Evaluation | None,
        limits: Limits,
    ) -> KeptTriggers | None:
        """Maps over `relations`, the head among them; None if there is something that they cannot hold."""
        formulas = self.formulas(step, heads)
        if isinstance(formulas, str):
            return None
        content = relations[heads.name].content
        rebuild = RebuildCost(stored=len(content))
        if done is not None and done.counters is not None:
            counters = done.counters
            rebuild = RebuildCost(counters.opens, counters.seeks, counters.rows, len(content)).measured(done.cpu)
        symbols = step.evaluator.symbols
        # What there will be after the step counts: a stream that begins with nothing would tell no slices apart.
        rows = {
            made.name: float(max(len(relations[made.predicate]), len(step.after[made.predicate])))
            for made in formulas.relations
        }
        kept = KeptTriggers(heads, formulas, EventStatistics(rows), symbols, rebuild)
        if done is not None:
            read = {(node.predicate, node.key_order) for node in done.plan.nodes}
            beside = [name for name, order in read if order != tuple(range(len(order)))]
            kept.orders = [(name, beside.count(name)) for name in dict.fromkeys(beside)]
        try:
            kept.fill(relations, symbols, limits)
        except (NoEvents, SumOverflow) as refused:
            step.kept.costs_of(heads).formulas = str(refused.args[0])
            return None
        kept.hold_for(relations, content)
        return kept

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """The maps are to be made."""
        return "its maps are not made yet"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Fill the maps, and read the head from them: its join is never enumerated. Thresholds are sorted instead."""
        chosen = step.asked(heads) == {AUTO} and not is_threshold(heads)
        if chosen and heads.name not in step.new_heads:
            if not step.is_evaluated(heads):
                # Maps take longer than evaluating does: they pay where a change follows soon.
                staged = self._delta.prepare(step, heads, why, limits)
                staged.kept = None
                return staged
            if reason := background.COMPILING if background.is_busy() else step.dear(heads):
                return RECOMPUTE.prepare(step, heads, reason, limits)
        if not is_threshold(heads) and (filled := self._filled(step, heads, why, limits)) is not None:
            if chosen and isinstance(filled.kept, KeptTriggers) and (why_not := self._dearer(step, heads, filled.kept)):
                filled.kept, step.kept.costs_of(heads).formulas = None, why_not
            return filled
        staged = RECOMPUTE.prepare(step, heads, why, limits)
        if not staged.undefined and is_threshold(heads):
            relations = {**step.after, **staged.relations}
            kept = self._made(step, heads, relations, staged.evaluations.get(heads.clauses[0]), limits)
            if kept is not None:
                staged.strategy, staged.kept = self.name, kept
        return staged

    def _filled(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged | None:
        """The head by its maps; None if they cannot hold it, or a group has no result."""
        began, began_cpu = time.perf_counter(), time.thread_time_ns()
        done = step.before.evaluations.get(heads.clauses[0])
        kept = self._made(step, heads, step.after, done, limits)
        if kept is None:
            return None
        relation = step.after[heads.name]
        try:
            made = relation.build(kept.head_rows())
        except NoResult:
            return None
        change = Change.between(relation.content, made)
        content = kept_content(relation.content, made, change)
        kept.hold_for(step.after, content)
        read = sum(len(step.after[name]) for name in kept.events.by_predicate)
        if done is None or done.counters is None:
            kept.rebuild = RebuildCost(rows=read, stored=len(content)).measured(time.thread_time_ns() - began_cpu)
        steps = round(kept.steps_per_event * read)
        work = (RuleWork(0, steps, 0, 0, read, time.perf_counter() - began),)
        relations, changes = {heads.name: relation.successor(content, change=change)}, {heads.name: change}
        return Staged(self.name, why, relations, changes, steps=steps, work=work, kept=kept)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """The maps that are kept, or would be."""
        kept = step.kept.heads.get(heads.name)
        held = kept if isinstance(kept, KeptTriggers) and kept.clauses == heads.clauses else None
        found: dict[str, Any] = {
            "why": DECLARED if self.name in step.asked(heads) else "",
            "recorded": held is not None,
            "current": held is not None
            and heads.name not in step.evaluator.state.stale
            and held.holds_for(step, heads),
            "relations": [str(made) for made in self._relations(step, heads)],
        }
        if held is not None:
            found["maps"] = {name: len(held.maps.entries(name)[1]) for name in held.maps.program.maps}
            found["bytes"] = held.maps.memory()
            found["steps_per_event"] = round(held.steps_per_event, 1)
        return found

    def _relations(self, step: Step, heads: Heads) -> Sequence[Any]:
        formulas = self.formulas(step, heads)
        return () if isinstance(formulas, str) else formulas.relations

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """How it follows, and what it keeps."""
        declared = ", as declared" if explained["why"] == DECLARED else ""
        lines = [f"{indent}follows changes by triggers{declared}: what changed is looked up in maps"]
        if "maps" in explained:
            entries = sum(explained["maps"].values())
            named = f"{amount(len(explained['maps']), 'map')}, {entries:,} entries, {size(explained['bytes'])}"
            lines.append(f"{indent}  {named}; about {explained['steps_per_event']:,.0f} steps for a changed row")
        lines += [f"{indent}  {shown}" for shown in explained["relations"]]
        return lines
