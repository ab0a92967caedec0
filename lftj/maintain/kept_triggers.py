"""What is kept of a head that triggers follow: its maps, and the program that keeps them.

The changed rows of what the head reads become events, the kernel runs these in order, and the entries that changed of
the count and of the sum are rows that go and come. Where a commit is a stream of events (`Database.apply`), the rows of
the head go and come event by event, and are the events of heads above.

The maps are one state, which is changed in place: what a step did to them is taken back if it is not adopted. Whatever
disturbs that leaves them `unsettled`; then they hold for no state, and are made anew.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from lftj.join.run import Limits
from lftj.language.clause import Value
from lftj.language.options import TRIGGERS
from lftj.language.thresholds import THRESHOLDS
from lftj.maintain.cost import ANEW, EVENT, EVENT_STEP, FOLLOWED_BY_TRIGGERS, ORDERED, RebuildCost
from lftj.maintain.derivations import DECLARED
from lftj.maintain.report import CostComparison, Reason, RowCount, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, Staged
from lftj.program.strata import Heads
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.triggers.derived_relations import ChangedRows, EventMaker, Events, NoEvents
from lftj.triggers.from_clauses import ClauseFormulas
from lftj.triggers.head_rows import GroupStates, HeadRows, Logged, NoResult, RowLog
from lftj.triggers.kept_thresholds import ThresholdFormulas
from lftj.triggers.maps import Maps, SumOverflow
from lftj.triggers.row_kernel import FEW, OTHERWISE, UNMEASURED, RowPlan, RowRelation, net_change
from lftj.triggers.worth_keeping import EventStatistics
from lftj.values.symbols import SymbolTable
from scantree.version import Version

Ints = npt.NDArray[np.int64]
_DECLARED = Cost(DECLARED)
# Maps of joins are made anew when relations have grown so much since they were chosen. TPC-H's q5 from nothing: with
# the order of slices that empty relations suggest, 600 events a second; so 115,000.
OUTGROWN, MANY_ROWS = 16, 4096
# Joins of so many relations have one order.
FEW_RELATIONS = 2


class KeptTriggers:
    """The maps of one head, and the program that keeps them.

    `orders`: how many key orders beside the declared one evaluating reads each relation in · `seen`: the contents that
    they hold for (None: for none) · `unsettled`: whether they are being changed.
    """

    strategy = TRIGGERS
    __slots__ = (
        "cells",
        "clauses",
        "count",
        "events",
        "formulas",
        "head",
        "maps",
        "orders",
        "rebuild",
        "row_plans",
        "rows",
        "seen",
        "sizes",
        "steps_per_event",
        "total",
        "unsettled",
        "values",
    )

    def __init__(
        self,
        heads: Heads,
        formulas: ClauseFormulas | ThresholdFormulas,
        statistics: EventStatistics,
        symbols: SymbolTable,
        rebuild: RebuildCost,
    ) -> None:
        self.clauses, self.head, self.formulas, self.rebuild = heads.clauses, heads.name, formulas, rebuild
        clause = heads.clauses[0]
        aggregate = clause.aggregate
        assert aggregate is not None
        self.sizes = dict(statistics.rows)
        program, self.count, self.total = formulas.program(statistics)
        self.maps = Maps(program)
        self.values = [len(twins.names) for twins in self.maps.lowered.twins]
        self.events = EventMaker(formulas.relations, self.maps.kinds, self.maps.lowered.width, formulas.checked)
        shown, constants = [], list[int]()
        for place in formulas.shown:
            if isinstance(place, Value):
                constants.append(symbols.intern_value(place.value, place.type))
            shown.append(-len(constants) if isinstance(place, Value) else place)
        operand = clause.head_args[aggregate.groups].type if self.total is not None else ""
        self.rows = HeadRows(aggregate.op.removeprefix(f"{THRESHOLDS} "), operand, len(formulas.keys), shown, constants)
        self.cells = self._cells()
        self.row_plans = {name: plan for name in self.events.by_predicate if (plan := self._row_plan(name)) is not None}
        self.orders: list[tuple[str, int]] = []
        self.seen: dict[str, weakref.ref[Version]] | None = None
        self.unsettled = False
        self.steps_per_event = 0.0

    def _cells(self) -> Ints | None:
        """What turns a log into rows of the head, as `net_rows` takes it; None if it takes more."""
        places, bounds = self.maps.lowered.places, self.rows.plain_bounds()
        count, total = places[self.count], None if self.total is None else places[self.total]
        if bounds is None or self.maps.program.final is not None or (total is not None and total.table != count.table):
            return None
        summed = -1 if total is None else total.value
        return np.array([count.value, summed, self.values[count.table], self.rows.keys, *bounds], np.int64)

    def _row_plan(self, name: str) -> RowPlan | None:
        """How one row of a relation is followed in one call; None if it takes more (row_kernel.py)."""
        if self.cells is None:
            return None
        relations, measured = [], []
        for relation, insertion, deletion in self.events.by_predicate[name]:
            if relation.plain is None:
                return None
            relations.append(RowRelation(insertion, deletion, relation.plain))
            measured += [(relation.plain[column], variable) for column, variable in relation.measured]
        return RowPlan(self.cells, relations, self.maps.lowered.width, measured)

    # -- what it holds for --------------------------------------------------------------------------------------------

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether the maps are those of the contents before the step."""
        if self.seen is None or self.unsettled or heads.name in step.new_heads or self.clauses != heads.clauses:
            return False
        relations = step.before.relations
        for name, content in self.seen.items():
            if name not in relations or content() is not relations[name].content:
                return False
        return len(self.sizes) <= FEW_RELATIONS or not self._outgrown(step.after)

    def _outgrown(self, relations: Mapping[str, StoredRelation]) -> bool:
        """Whether the maps were chosen, and their slices put in order, for relations that were far smaller."""
        rows = sum(len(relations[name]) for name in self.events.by_predicate)
        return rows > MANY_ROWS and rows > OUTGROWN * sum(self.sizes.values())

    def hold_for(self, relations: Mapping[str, StoredRelation], content: Version) -> None:
        """They hold for the contents in `relations`, and `content` of the head, from now on."""
        seen = {name: weakref.ref(relations[name].content) for name in self.events.by_predicate}
        seen[self.head] = weakref.ref(content)
        self.seen, self.unsettled = seen, False

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
        following = FOLLOWED_BY_TRIGGERS + rows * (EVENT + EVENT_STEP * self.steps_per_event)
        if following <= ANEW:  # no evaluation takes less
            return Cost(RowCount(rows, ""))
        anew = self.rebuild.nanoseconds(len(step.after[self.head].content), 1.0)
        for name, many in self.orders:
            anew += ORDERED * many * len(step.changes[name].kinds) if name in step.changes else 0.0
        return Cost(CostComparison(rows, following, anew))

    def memory(self) -> dict[str, int]:
        """The bytes of the maps."""
        return {"triggers: maps": self.maps.memory()}

    # -- events -------------------------------------------------------------------------------------------------------

    def fill(self, relations: Mapping[str, StoredRelation], symbols: SymbolTable, limits: Limits) -> None:
        """Run all rows of what the head reads as insertions. Raises `NoEvents`, `SumOverflow`."""
        done = steps = 0
        for name in self.events.by_predicate:
            rows = relations[name].content.columns()
            n = rows.shape[1]
            zeros = np.zeros(n, np.int64)
            made = self.events.of([ChangedRows(name, rows, np.ones(n, np.int8), zeros)], symbols)
            self.maps.run(made.kinds, made.rows, logs=False, look=limits.look)
            done, steps = done + n, steps + self.maps.steps
        self.steps_per_event = steps / max(1, done)

    def head_rows(self) -> Ints:
        """All rows int64[arity, n] of the head, in no order. Raises `NoResult`."""
        keys, counts = self.maps.entries(self.count)
        totals = counts if self.total is None else self.maps.values(self.total, keys)
        return self.rows.rows(keys, counts, totals)

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> StagedTriggers:
        """Run the changed rows as events."""
        began = time.perf_counter()
        relation = step.after[self.head]
        staged = StagedTriggers(self.strategy, why, {}, {}, kept=self, triggers=self, after=step.after)
        try:
            change = self._follow_row(step, staged)
            if change is None:
                change = self._follow_events(step, staged, limits)
            content = relation.content
            if len(change.kinds):
                content, _ = content.update(change.rows, change.kinds, in_order=True)
        except (NoEvents, SumOverflow, NoResult) as refused:
            self.unsettled = self.maps.lost  # else they are as before, or as before what is taken back now
            staged.discard()
            raise Declined(str(refused.args[0])) from None
        except BaseException:
            staged.discard()
            raise
        staged.content = content
        staged.relations = {self.head: relation.successor(content, change=change)}
        staged.changes = {self.head: change}
        staged.steps = steps = self.maps.steps
        events = 0 if staged.events is None else len(staged.events.kinds)
        staged.work = (RuleWork(0, steps, 0, 0, events, time.perf_counter() - began),)
        return staged

    def _follow_row(self, step: Step, staged: StagedTriggers) -> Change | None:
        """The change of the head if all that changed is one row, of which nothing is computed; else None.

        Raises `NoEvents`, `SumOverflow`, `NoResult`.
        """
        changed = [name for name in self.events.by_predicate if name in step.changes]
        if step.streams is not None or len(changed) != 1:
            return None
        (row, kinds), plan = step.changes[changed[0]], self.row_plans.get(changed[0])
        if plan is None or len(kinds) != 1 or not row.flags.carray:
            return None
        sign, self.unsettled = int(kinds[0]), True
        found = self.maps.run_row(plan, row, sign)
        if found == UNMEASURED:
            plan.measure(row, self.events.magnitudes)
            found = self.maps.run_row(plan, row, sign)
        if found == UNMEASURED:
            return None
        staged.events = plan.happened
        return self._change(plan.happened) if found == OTHERWISE else plan.change(found)

    def _follow_events(self, step: Step, staged: StagedTriggers, limits: Limits) -> Change:
        """The change of the head after all events of the step. Raises `NoEvents`, `SumOverflow`, `NoResult`."""
        events = self._events(step)
        self.unsettled = True
        self.maps.run(events.kinds, events.rows, look=limits.look)
        staged.events = events
        if step.streams is not None:
            step.streams.logs[self.head] = partial(self._stream, events.numbers)
        return self._change(events)

    def _events(self, step: Step) -> Events:
        """The events of the step, numbered as those of its stream; all 0 where it is none."""
        blocks, streams = list[ChangedRows](), step.streams
        for name in self.events.by_predicate:
            log = None if streams is None else streams.of(name, step.evaluator.state.strata.by_head, step.after)
            if log is not None:
                blocks.append(ChangedRows(name, log.rows, log.kinds, log.numbers))
            elif (change := step.changes.get(name)) is not None:
                # What follows the net change does so after the last event.
                n, last = len(change.kinds), 0 if streams is None else streams.last
                blocks.append(ChangedRows(name, change.rows, change.kinds, np.full(n, last, np.int64)))
        return self.events.of(blocks, step.evaluator.symbols)

    def _change(self, events: Events) -> Change:
        """The net change of the head by what the last run logged. Raises `NoResult`."""
        maps = self.maps
        lines = maps.lines()
        if self.cells is not None and (change := net_change(self.cells, lines)) is not None:
            return change
        if len(lines) > FEW:
            return self._log(np.zeros_like(events.numbers)).net()
        places = maps.lowered.places
        total = None if self.total is None else places[self.total]
        return self.rows.change(Logged(lines, places[self.count], total, self.values, maps.value))

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
    """Maps as they are to be after a commit. `events`: those that were run; `content`: the head's next."""

    triggers: KeptTriggers
    events: Events | None = None
    after: Mapping[str, StoredRelation] = field(default_factory=dict)
    content: Version | None = None

    def adopt(self) -> None:
        """The maps hold for the contents after the step."""
        assert self.content is not None
        self.triggers.hold_for(self.after, self.content)

    def discard(self) -> None:
        """Take the events back."""
        if self.events is not None:
            maps = self.triggers.maps
            maps.undo(self.events.kinds, self.events.rows)
            self.triggers.unsettled = maps.lost


def is_threshold(heads: Heads) -> bool:
    """Whether the head is a sum over intervals that running sums decide: nothing else follows it."""
    return bool(heads.clauses) and heads.clauses[0].threshold is not None
