"""Triggers: counts, sums and means are kept by maps that say what every changed row does to them (lftj/triggers).

When they are taken, when and of what the maps are made, and what is told of them; how they follow changes says
kept_triggers.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from lftj.errors import EvaluationError
from lftj.evaluate.by_columns import is_read_by_columns
from lftj.evaluate.factorised import Counting
from lftj.join.run import Limits
from lftj.language.clause import Clause, Var, names_of, owner
from lftj.language.options import AUTO, TRIGGERS
from lftj.maintain import background
from lftj.maintain.body_maps import BodyMaps, TooDear, in_words
from lftj.maintain.cost import EVENT, EVENT_STEP, JOINED, JOINED_STEP, RebuildCost
from lftj.maintain.delta import Delta
from lftj.maintain.derivations import DECLARED, kept_content
from lftj.maintain.kept_triggers import KeptTriggers, is_threshold
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason, RuleWork, Withheld, amount, size
from lftj.maintain.step import Step
from lftj.maintain.strategy import Staged
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.program.text_split import split_text
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.triggers.derived_relations import Magnitudes, NoEvents
from lftj.triggers.from_clauses import ClauseFormulas, DoesNotFit, formulas_of
from lftj.triggers.head_rows import NoResult
from lftj.triggers.kept_thresholds import ThresholdFormulas
from lftj.triggers.maps import SumOverflow
from lftj.triggers.one_body import Form, form_of, operand_in
from lftj.triggers.worth_keeping import EventStatistics

# How many times as long as by deltas a changed row may take by maps: a commit of one row takes half as long by these.
TOO_DEAR = 2.0
# Steps that a changed row has to be expected to take by deltas for a head to be evaluated by its maps: its join is far
# dearer than they are.
FAR_TOO_MANY_BINDINGS = 1_000.0
# Times as many steps as evaluating takes, for an atom, that joining all of its rows one by one takes at most, about.
AS_MANY = 4.0
# Key orders of one relation that would have to be sorted for heads to be evaluated by their maps: sorting one takes as
# long as filling the maps of all of them does.
SORTED = 2


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
                    costs.formulas = formulas_of(clause, schemas, step.state.strata.by_head)
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
        if not threshold and (withheld := step.kept.costs_of(heads).withheld) and not self._row_goes(step, heads):
            return withheld
        return "" if TRIGGERS in asked or threshold else self._why_delta(step, heads)

    def comes_back(self, step: Step, heads: Heads) -> bool:
        """Whether a row goes that kept a head which is to be kept by maps from that."""
        return TRIGGERS in step.asked(heads) and self._row_goes(step, heads)

    def _row_goes(self, step: Step, heads: Heads) -> bool:
        """Whether one of the rows that go could not become an event."""
        formulas = step.kept.costs_of(heads).formulas
        if not isinstance(formulas, ClauseFormulas):
            return False
        magnitudes, symbols = Magnitudes(formulas.checked), step.evaluator.symbols
        for made in formulas.relations:
            change = step.changes.get(made.predicate)
            if change is None or not (change.kinds < 0).any():
                continue
            try:
                magnitudes.measure(made, made.of(np.compress(change.kinds < 0, change.rows, axis=1), symbols)[0])
            except NoEvents:
                return True
        return False

    def evaluated(self, step: Step, heads: Heads, limits: Limits) -> Staged | None:
        """A head that is evaluated by its maps; None if its join is better enumerated."""
        if is_threshold(heads) or self.fits(step, heads):
            return None
        wanted = TRIGGERS in step.asked(heads) or self.at_hand(step, heads, step.after) is not None
        if wanted or self._in_one_pass(step, heads) or self._is_far_dearer(step, heads, limits):
            return self._filled(step, heads, "", limits)
        return None

    def _in_one_pass(self, step: Step, heads: Heads) -> bool:
        """Whether maps over one relation are filled sooner than it is sorted in all orders that evaluating reads."""
        clause = heads.clauses[0]
        if step.kept.passing or len(heads.reads) > 1 or len(clause.atoms) > 1 or background.is_busy():
            return False  # what was sorted is there for the next who asks
        orders = step.after[clause.atoms[0].predicate].orders
        read = {_named_columns(member.clauses[0]) for member in self.members(step, heads)}
        return sum(not any(named == {*order[: len(named)]} for order in orders) for named in read) >= SORTED

    def _is_far_dearer(self, step: Step, heads: Heads, limits: Limits) -> bool:
        """Whether evaluating the join is expected to take far more steps than filling maps does.

        Joining all rows of all atoms, one by one, takes some times as many steps as evaluating does. So where that
        takes few, how rows are joined need not be planned, which would take longer than evaluating small relations.
        """
        clause, relations = heads.clauses[0], step.after
        if split_text(clause) is not None or len(clause.atoms) == 1 or is_read_by_columns(step.evaluator, clause):
            return False
        many = FAR_TOO_MANY_BINDINGS * sum(len(relations[name]) for name in heads.reads)
        counting = Counting.of(step.evaluator, clause, limits)
        dear = many / (AS_MANY * len(clause.atoms))
        plan = step.evaluator.plan(clause, limits=limits)[1] if counting is None else counting.plan
        # By blocks it takes fewer steps than enumerating, which are known already.
        if plan.cost < dear or (counting is not None and counting.steps() < dear):
            return False
        return self._by_deltas(step, heads) >= FAR_TOO_MANY_BINDINGS

    def _why_delta(self, step: Step, heads: Heads) -> str:
        """Why a count, sum or mean is rather followed by deltas; empty if not."""
        clause = heads.clauses[0]
        if is_cyclic(clause):
            return "its join is cyclic"
        if clause.rule in step.state.granularity:
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
        by_maps = kept.steps_per_event()
        if EVENT + EVENT_STEP * by_maps <= TOO_DEAR * JOINED:
            return ""  # however few steps deltas take
        by_deltas = self._by_deltas(step, heads)
        if not by_deltas or EVENT + EVENT_STEP * by_maps <= TOO_DEAR * (JOINED + JOINED_STEP * by_deltas):
            return ""
        return f"a changed row takes about {by_maps:,.0f} steps by triggers, {by_deltas:,.0f} by deltas"

    def kept(self, step: Step, heads: Heads) -> KeptTriggers | None:
        """Maps of the content before the step that another head of the body has; and if it is a stream, in any case.

        Of a stream, the events go on from maps of the content before it.
        """
        before = step.before
        if heads.name in step.new_heads or heads.name in before.undefined or heads.name not in before.relations:
            return None
        done = before.evaluations.get(heads.clauses[0])
        body = self.at_hand(step, heads, before.relations)
        if body is None and step.streams is not None:
            body = self._made(step, heads, before.relations, Limits())
        if body is None:
            return None
        return self._kept(step, heads, body, before.relations, done)

    def members(self, step: Step, heads: Heads) -> tuple[Heads, ...]:
        """The heads whose rules have one body with that of `heads`, and that are to be kept by its maps."""
        costs, strata = step.kept.costs_of(heads), step.state.strata
        if costs.body is not None and costs.body[0] is strata:
            return costs.body[1]
        members: tuple[Heads, ...] = (heads,)
        if not is_threshold(heads):
            form, asked = _form(step, heads), step.asked(heads)
            members = tuple(
                other
                for other in strata.together
                if other.name == heads.name
                or (
                    len(other.clauses) == 1
                    and other.clauses[0].aggregate is not None
                    and not is_threshold(other)
                    and other.reads == heads.reads
                    and step.asked(other) == asked
                    and _form(step, other) == form
                    and not self.fits(step, other)
                )
            )
        costs.body = strata, members
        return members

    def at_hand(self, step: Step, heads: Heads, relations: Mapping[str, StoredRelation]) -> BodyMaps | None:
        """Maps of the body that a head has, of the contents of `relations`, or that another head took over the step."""
        bodies = step.kept.bodies
        if not bodies:
            return None
        body = bodies.get(tuple(member.clauses[0] for member in self.members(step, heads)))
        if body is None or not (body.are_of(relations) or (relations is not step.after and body.run_of(step))):
            return None
        return None if body.has_slices and body.outgrown(step.after) else body

    def _made(
        self, step: Step, heads: Heads, relations: Mapping[str, StoredRelation], limits: Limits
    ) -> BodyMaps | None:
        """Maps over `relations`; None if there is something that they cannot hold."""
        if isinstance(self.formulas(step, heads), str):
            return None
        costs, why, passing = step.kept.costs_of(heads), "", False
        # Together with the heads of the same body; if one of these cannot be kept so, alone.
        for members in dict.fromkeys((self.members(step, heads), (heads,))):
            try:
                body = self.body(step, members, relations)
                wanted = TRIGGERS in step.asked(heads) or is_threshold(heads)
                by_deltas = None if wanted else partial(self._by_deltas, step, heads)
                body.fill(relations, step.evaluator.symbols, limits, by_deltas)
            except TooDear as refused:
                for member in members:  # most of what they take is that of their join
                    step.kept.costs_of(member).formulas = str(refused.args[0])
                return None
            except (DoesNotFit, NoEvents, SumOverflow) as refused:
                why, costs.body = in_words(refused), (step.state.strata, (heads,))
                passing = isinstance(refused, NoEvents)
                continue
            step.kept.bodies[tuple(body.members)], costs.withheld = body, ""
            return body
        if passing:  # a row that is no event may go again
            costs.withheld = why
        else:
            costs.formulas = why
        return None

    def body(
        self,
        step: Step,
        members: Sequence[Heads],
        relations: Mapping[str, StoredRelation],
        sizes: Mapping[str, float] | None = None,
    ) -> BodyMaps:
        """Maps for heads of one body, empty. Raises `DoesNotFit`.

        They are chosen for derived relations of so many rows, `sizes`, or for those of `relations` and after the step.
        """
        first = members[0].clauses[0]
        formulas = self.formulas(step, members[0])
        if isinstance(formulas, str):
            raise DoesNotFit(formulas)
        if isinstance(formulas, ThresholdFormulas):
            totals = {first: 0 if formulas.has_total else None}
        else:
            operands = {member.clauses[0]: operand_in(first, member.clauses[0]) for member in members}
            distinct = list(dict.fromkeys(operand for operand in operands.values() if operand is not None))
            totals = {clause: None if term is None else distinct.index(term) for clause, term in operands.items()}
            if len(members) > 1:
                schemas = {name: step.after[name].schema for name in first.reads}
                formulas = formulas_of(first, schemas, step.state.strata.by_head, distinct)
        if sizes is None:
            # What there will be after the step counts: a stream that begins with nothing would tell no slices apart.
            sizes = {
                made.name: float(max(len(relations[made.predicate]), len(step.after[made.predicate])))
                for made in formulas.relations
            }
        try:
            return BodyMaps(totals, formulas, EventStatistics(sizes))
        except EvaluationError as refused:  # its constants multiply to none of 64 bits, or do where a row goes
            raise DoesNotFit(refused.what) from None

    def _kept(
        self,
        step: Step,
        heads: Heads,
        body: BodyMaps,
        relations: Mapping[str, StoredRelation],
        done: Evaluation | None,
    ) -> KeptTriggers:
        """What is kept of a head over maps that there are, `relations` having its content. `done`: its evaluation."""
        kept, content = KeptTriggers(heads, body, step.evaluator.symbols), relations[heads.name].content
        kept.rebuild = body.rebuild or RebuildCost(stored=len(content))
        if done is not None:
            if done.counters is not None:
                counters = done.counters
                kept.rebuild = RebuildCost(counters.opens, counters.seeks, counters.rows, len(content))
                kept.rebuild = kept.rebuild.measured(done.cpu)
            read = {(node.predicate, node.key_order) for node in done.plan.nodes} if done.plan is not None else set()
            beside = [name for name, order in read if order != tuple(range(len(order)))]
            kept.orders = [(name, beside.count(name)) for name in dict.fromkeys(beside)]
        kept.hold_for(content)
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
                return RECOMPUTE.prepare(step, heads, why, limits)
            if reason := background.COMPILING if background.is_busy() else step.dear(heads):
                return RECOMPUTE.prepare(step, heads, reason, limits)
        if not is_threshold(heads) and (filled := self._filled(step, heads, why, limits)) is not None:
            if chosen and isinstance(filled.kept, KeptTriggers) and (why_not := self._dearer(step, heads, filled.kept)):
                filled.kept, step.kept.costs_of(heads).formulas = None, why_not
            return filled
        staged = RECOMPUTE.prepare(step, heads, why, limits)
        if not staged.undefined and is_threshold(heads):
            relations = {**step.after, **staged.relations}
            body = self._made(step, heads, relations, limits)
            if body is None:
                costs = step.kept.costs_of(heads)
                staged.why = Withheld(costs.withheld or str(costs.formulas))
            else:
                done = staged.evaluations.get(heads.clauses[0])
                staged.strategy, staged.kept = self.name, self._kept(step, heads, body, relations, done)
        return staged

    def _filled(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged | None:
        """The head by its maps; None if they cannot hold it, or a group has no result."""
        began, began_cpu = time.perf_counter(), time.thread_time_ns()
        found = self.at_hand(step, heads, step.after)
        body = self._made(step, heads, step.after, limits) if found is None else found
        if body is None:
            return None
        done = step.before.evaluations.get(heads.clauses[0])
        relation, kept = step.after[heads.name], self._kept(step, heads, body, step.after, done)
        try:
            made = relation.build(kept.head_rows())
        except NoResult:
            return None
        change = Change.between(relation.content, made)
        content = kept_content(relation.content, made, change)
        kept.hold_for(content)
        read = 0 if found is not None else sum(len(step.after[name]) for name in body.events.by_predicate)
        if found is None and (done is None or done.counters is None):
            evaluating = RebuildCost(rows=read, stored=len(content)).measured(time.thread_time_ns() - began_cpu)
            body.rebuild = kept.rebuild = evaluating
        steps = 0 if found is not None else body.filling
        work = (RuleWork(0, steps, 0, 0, read, time.perf_counter() - began),)
        relations, changes = {heads.name: relation.successor(content, change=change)}, {heads.name: change}
        if done is not None:
            _forget_orders(step, done)
        return Staged(self.name, why, relations, changes, steps=steps, work=work, kept=kept)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """The maps that are kept, or would be."""
        kept = step.kept.heads.get(heads.name)
        held = kept if isinstance(kept, KeptTriggers) and kept.clauses == heads.clauses else None
        found: dict[str, Any] = {
            "why": DECLARED if self.name in step.asked(heads) else "",
            "recorded": held is not None,
            "current": held is not None and heads.name not in step.state.stale and held.holds_for(step, heads),
            "relations": [str(made) for made in self._relations(step, heads)],
        }
        if held is not None:
            found["maps"] = {name: len(held.maps.entries(name)[1]) for name in held.maps.program.maps}
            found["bytes"] = held.maps.memory()
            found["relations"] = [str(made) for made in held.body.formulas.relations]
            found["with"] = [owner(clause.head) for clause in held.body.members if clause != held.clauses[0]]
            found["steps_per_event"] = round(held.body.steps_per_event, 1)
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
        if explained.get("with"):
            others = ", ".join(f"`{head}`" for head in dict.fromkeys(explained["with"]))
            lines.append(f"{indent}  shared with {others}, which read the same")
        lines += [f"{indent}  {shown}" for shown in explained["relations"]]
        return lines


def _named_columns(clause: Clause) -> frozenset[int]:
    """The columns of a clause's one atom that it names elsewhere: the key order that it is evaluated in begins so."""
    terms = [*clause.head_args, *(side for compare in clause.compares for side in (compare.left, compare.right))]
    named = names_of(*terms)
    args = clause.atoms[0].args
    return frozenset([i for i, arg in enumerate(args) if not isinstance(arg, Var) or arg.name in named])


def _form(step: Step, heads: Heads) -> Form:
    """What is equal of heads of one body; worked out once for rules."""
    costs = step.kept.costs_of(heads)
    if costs.form is None:
        costs.form = form_of(heads.clauses[0])
    return costs.form


def _forget_orders(step: Step, evaluation: Evaluation) -> None:
    """Drop the key orders that a head was evaluated in: it is read from maps now. Who else needs one builds it again.

    Each is a copy of its relation, and following changes in it is most of what a commit would still pay for it.
    """
    for part in evaluation.parts():
        for _, predicate, order in () if part.plan is None else part.plan.uses:
            if (relation := step.after.get(predicate)) is not None:
                relation.forget(order)
