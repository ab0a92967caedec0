"""What is kept of a head that triggers follow: its part of the maps of its body, and how they become its rows.

The changed rows of what the head reads become events, which are run over the maps (body_maps.py); the entries of the
count and of the sum that changed are rows that go and come. Where a commit is a stream of events (`Database.apply`),
the rows of the head go and come event by event, and are the events of heads above.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from lftj.join.run import Limits
from lftj.language.clause import Value
from lftj.language.options import TRIGGERS
from lftj.language.thresholds import THRESHOLDS
from lftj.maintain.body_maps import BodyMaps, EventRun, in_words
from lftj.maintain.cost import ANEW, EVENT, EVENT_STEP, FOLLOWED_BY_TRIGGERS, GIVEN_UP, ORDERED, RebuildCost
from lftj.maintain.derivations import DECLARED
from lftj.maintain.report import CostComparison, Reason, RowCount, RuleWork, Withheld
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, Staged
from lftj.program.strata import Heads
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.triggers.derived_relations import NoEvents
from lftj.triggers.head_rows import GroupStates, HeadRows, Logged, NoResult, RowLog
from lftj.triggers.maps import SumOverflow
from lftj.triggers.row_kernel import FEW, OTHERWISE, RowPlan, RowRelation, net_change
from lftj.values.symbols import SymbolTable
from scantree.lagging import update_later
from scantree.version import Version

Ints = npt.NDArray[np.int64]
_DECLARED = Cost(DECLARED)


class KeptTriggers:
    """What is kept of one head: `body`, the maps that it reads, and `content`, its own that they are the entries of.

    `count`, `total`: its maps (None: it is a count) · `orders`: how many key orders beside the declared one evaluating
    reads each relation in.
    """

    strategy = TRIGGERS
    __slots__ = (
        "__weakref__",
        "body",
        "cells",
        "clauses",
        "content",
        "count",
        "head",
        "maps",
        "orders",
        "rebuild",
        "row_plans",
        "rows",
        "total",
    )

    def __init__(self, heads: Heads, body: BodyMaps, symbols: SymbolTable) -> None:
        self.clauses, self.head, self.body, self.maps = heads.clauses, heads.name, body, body.maps
        clause, formulas = heads.clauses[0], body.formulas
        aggregate = clause.aggregate
        assert aggregate is not None
        total = body.members[clause]
        self.count, self.total = body.count, None if total is None else body.totals[total]
        shown, constants = [], list[int]()
        for place in formulas.shown:
            if isinstance(place, Value):
                constants.append(symbols.intern_value(place.value, place.type))
            shown.append(-len(constants) if isinstance(place, Value) else place)
        operand = clause.head_args[aggregate.groups].type if self.total is not None else ""
        self.rows = HeadRows(aggregate.op.removeprefix(f"{THRESHOLDS} "), operand, len(formulas.keys), shown, constants)
        self.cells = self._cells()
        plans = {name: self._row_plan(name) for name in body.events.by_predicate}
        self.row_plans = {name: plan for name, plan in plans.items() if plan is not None}
        self.orders: list[tuple[str, int]] = []
        self.rebuild = RebuildCost()
        self.content: weakref.ref[Version] | None = None

    def _cells(self) -> Ints | None:
        """What turns a log into rows of the head, as `net_rows` takes it; None if it takes more."""
        places, bounds = self.maps.lowered.places, self.rows.plain_bounds()
        if bounds is None or self.maps.program.final is not None or not self.body.one_table:
            return None
        count, summed = places[self.count], -1 if self.total is None else places[self.total].value
        return np.array([count.value, summed, self.body.values[count.table], self.rows.keys, *bounds], np.int64)

    def _row_plan(self, name: str) -> RowPlan | None:
        """How one row of a relation is followed in one call; None if it takes more (row_kernel.py)."""
        if self.cells is None:
            return None
        relations, measured = [], []
        for relation, insertion, deletion in self.body.events.by_predicate[name]:
            if relation.plain is None:
                return None
            relations.append(RowRelation(insertion, deletion, relation.plain))
            measured += [(relation.plain[column], variable) for column, variable in relation.measured]
        return RowPlan(self.cells, relations, self.maps.lowered.width, measured)

    # -- what it holds for --------------------------------------------------------------------------------------------

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether the maps, and the content of the head, are those before the step; or those of another head's run."""
        if heads.name in step.new_heads or self.clauses != heads.clauses:
            return False
        relations, body = step.before.relations, self.body
        if self.content is None or heads.name not in relations or self.content() is not relations[heads.name].content:
            return False
        if not body.are_of(relations) and body.run_of(step) is None:
            return False
        return not (body.has_slices and body.outgrown(step.after))

    def is_of(self, relations: Mapping[str, StoredRelation]) -> bool:
        """Whether the maps, and the content of the head, are those of `relations`."""
        relation = relations.get(self.head)
        mine = self.content is not None and relation is not None and self.content() is relation.content
        return mine and self.body.are_of(relations)

    def hold_for(self, content: Version) -> None:
        """The maps are what `content` of the head was made of."""
        self.content = weakref.ref(content)

    # -- what it costs ------------------------------------------------------------------------------------------------

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Running the events beside evaluating again; worth it where declared."""
        if TRIGGERS in step.asked(heads):
            return _DECLARED
        if is_threshold(heads):
            return Cost("its running sums are found by descents")
        if step.streams is not None:
            return Cost("events are followed one by one")
        rows = step.changed(heads)
        following = FOLLOWED_BY_TRIGGERS + rows * (EVENT + EVENT_STEP * self.steps_per_event())
        if following <= ANEW:  # no evaluation takes less
            return Cost(RowCount(rows, ""))
        if not all(len(step.after[atom.predicate]) for atom in self.clauses[0].atoms):
            return Cost(CostComparison(rows, following, ANEW))  # nothing is left to join
        anew = self.rebuild.nanoseconds(len(step.after[self.head].content), 1.0)
        for name, many in self.orders:
            anew += ORDERED * many * len(step.changes[name].kinds) if name in step.changes else 0.0
        filled_in = self.body.filled_in
        return Cost(CostComparison(rows, following, anew, filled_in if GIVEN_UP * filled_in > anew else 0.0))

    def steps_per_event(self) -> float:
        """Instructions that a changed row is expected to take: of all heads of the body, this one's part."""
        return self.body.steps_per_event / len(self.body.members)

    def memory(self) -> dict[str, int]:
        """The bytes of the maps; of those that heads share one of these tells."""
        return {"triggers: maps": self.maps.memory()} if self.body.is_told_by(self) else {}

    # -- events -------------------------------------------------------------------------------------------------------

    def head_rows(self) -> Ints:
        """All rows int64[arity, n] of the head, in no order. Raises `NoResult`."""
        keys, counts = self.maps.entries(self.count)
        totals = counts if self.total is None else self.maps.values(self.total, keys)
        return self.rows.rows(keys, counts, totals)

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> StagedTriggers:
        """Run the changed rows as events, or find that another head of the body has."""
        began = time.perf_counter()
        relation, steps, events = step.after[self.head], 0, 0
        staged = StagedTriggers(self.strategy, why, {}, {}, kept=self, triggers=self)
        try:
            run = staged.run = self.body.run_of(step)
            change = self._follow_row(step, staged) if run is None else self._change(run)
            if change is None:
                change = self._follow_events(step, staged, limits)
            if run is None and staged.run is not None:
                steps, events = self.maps.steps, len(staged.run.events.kinds)
            streams = step.streams
            # What is known of a relation below by its net change only happens after the last event: right in the end.
            known = streams is not None and not streams.unknown(self.head, step.state.strata.by_head, step.after)
            if streams is not None and known and staged.run is not None:
                streams.logs[self.head] = partial(self._stream, staged.run.events.numbers)
            content = relation.content
            if len(change.kinds):
                update = Version.update if streams is None else update_later
                content, _ = update(content, change.rows, change.kinds, in_order=True)
        except (NoEvents, SumOverflow, NoResult) as refused:
            # Where the head has no result, the maps are right: other heads go on from them.
            raise Declined(Withheld(in_words(refused), made=True)) from None
        except BaseException:
            staged.discard()
            raise
        staged.content = content
        staged.relations = {self.head: relation.successor(content, change=change)}
        staged.changes = {self.head: change}
        staged.steps = steps
        staged.work = (RuleWork(0, steps, 0, 0, events, time.perf_counter() - began),)
        return staged

    def _follow_row(self, step: Step, staged: StagedTriggers) -> Change | None:
        """The change of the head if all that changed is one row, of which nothing is computed; else None.

        Raises `NoEvents`, `SumOverflow`, `NoResult`.
        """
        changed = [name for name in self.body.events.by_predicate if name in step.changes]
        if step.streams is not None or len(changed) != 1:
            return None
        (row, kinds), plan = step.changes[changed[0]], self.row_plans.get(changed[0])
        if plan is None or len(kinds) != 1 or not row.flags.carray:
            return None
        done = self.body.run_row(step, plan, row, int(kinds[0]))
        if done is None:
            return None
        found, staged.run = done
        return self._change(staged.run) if found == OTHERWISE else plan.change(found)

    def _follow_events(self, step: Step, staged: StagedTriggers, limits: Limits) -> Change:
        """The change of the head after all events of the step. Raises `NoEvents`, `SumOverflow`, `NoResult`."""
        run = staged.run = self.body.run(step, self.body.events_of(step), limits)
        return self._change(run)

    def _change(self, run: EventRun) -> Change:
        """The net change of the head by what a run logged. Raises `NoResult`."""
        lines, places = run.lines, self.maps.lowered.places
        if self.cells is not None and (change := net_change(self.cells, lines, run.order)) is not None:
            return change
        count, total = places[self.count], None if self.total is None else places[self.total]
        if len(lines) <= FEW:
            return self.rows.change(Logged(lines, count, total, self.body.values, self.maps.value))
        if self.body.one_table:
            return self.rows.net(lines, run.order, count, total, self.body.values[count.table])
        return self._log(np.zeros_like(run.events.numbers)).net()

    def _stream(self, numbers: Ints) -> RowLog:
        """The rows of the head that go and come event by event, until the maps run again. Raises `NoEvents`."""
        try:
            return self._log(numbers)
        except NoResult as refused:
            raise NoEvents(refused.args[0]) from None

    def _log(self, numbers: Ints) -> RowLog:
        """The rows of the head that go and come, by what the last run logged. Raises `NoResult`.

        `numbers`: of the events of that run.
        """
        maps = self.maps
        places = maps.lowered.places
        if self.total is None or places[self.count].table == places[self.total].table:
            counted = maps.log(self.count, together=True)
            summed = None if self.total is None else maps.log(self.total, together=True)
            return self.rows.log(GroupStates.of_one(counted, summed), numbers)
        counted, summed = maps.log(self.count), maps.log(self.total)
        keys = np.concatenate([counted.keys, summed.keys], axis=1)
        final = maps.values(self.count, keys), maps.values(self.total, keys)
        return self.rows.log(GroupStates.of_two(counted, summed, final), numbers)


@dataclass(slots=True, kw_only=True)
class StagedTriggers(Staged):
    """A head as it is to be after a commit. `run`: what took the maps there; `content`: the head's next."""

    triggers: KeptTriggers
    run: EventRun | None = None
    content: Version | None = None

    def adopt(self) -> None:
        """The maps hold for the content after the step."""
        assert self.content is not None
        self.triggers.hold_for(self.content)

    def discard(self) -> None:
        """Take the events back."""
        if self.run is not None:
            self.triggers.body.take_back(self.run)


def is_threshold(heads: Heads) -> bool:
    """Whether the head is a sum over intervals that running sums decide: nothing else follows it."""
    return bool(heads.clauses) and heads.clauses[0].threshold is not None
