"""The maps of all heads of one body, and running the events of a step over them: once, for whichever head comes first.

The maps are one state, which is changed in place, and `holding` says of which contents they are. A run takes them from
the contents before a step to those after it; the other heads of the body find it done, and read what it logged. If the
step is not adopted, it is taken back. Whatever disturbs that leaves maps that hold for nothing, and are made anew.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.maintain.cost import RebuildCost
from lftj.maintain.step import Step
from lftj.store.stored import StoredRelation
from lftj.triggers.derived_relations import ChangedRows, EventMaker, Events, NoEvents, in_one
from lftj.triggers.fill_order import fill_order
from lftj.triggers.from_clauses import ClauseFormulas
from lftj.triggers.kept_thresholds import ThresholdFormulas
from lftj.triggers.maps import Maps, SumOverflow
from lftj.triggers.row_kernel import UNMEASURED, RowPlan, order_by_group
from lftj.triggers.worth_keeping import EventStatistics
from lftj.values.symbols import SymbolTable
from scantree.version import Version

Ints = npt.NDArray[np.int64]
Contents = Mapping[str, "weakref.ref[Version]"]
# Maps of joins are made anew when relations have grown so much since they were chosen. TPC-H's q5 from nothing: with
# the order of slices that empty relations suggest, 600 events a second; so 115,000.
OUTGROWN, MANY_ROWS = 16, 4096
# Joins of so many relations have one order.
FEW_RELATIONS = 2
# Rows by which it is measured what a changed row takes: so many that the few which take most are among them.
SAMPLE = 1024


# Maps that nobody asks for have at most so many entries for each row that is read, and so many in any case: that of a
# part of a join without the condition that limits it may have one for each pair of rows.
ENTRIES_PER_ROW, ENTRIES = 4, 1 << 18
# They are filled in at most so many steps a row, or in such a part of what deltas are expected to take, and in so many
# in any case. A row takes as many as it comes as when it changes: TPC-H's queries take up to 4; 8 and 9, whose joins
# have six relations, 14 to 26: 7 s and 0.7 GB for 780,000 rows, which deltas follow as fast.
STEPS_PER_ROW, OF_DELTAS, STEPS = 8.0, 1 / 10, 1 << 21
# Such a part of the events tells what all of them take.
TELLING = 1 / 16


class TooDear(Exception):
    """Maps were not filled to the end: they are too large, or take too long; `args[0]` says so."""


def in_words(refused: Exception) -> str:
    """Why maps do not hold rows: an error tells more than that, of what its user may do."""
    return refused.what if isinstance(refused, SumOverflow) else str(refused.args[0])


class Patience(NamedTuple):
    """How far maps are filled that nobody asked for: `entries` at most, of so many `rows`.

    `by_deltas`: how many steps a changed row takes without them.
    """

    entries: float
    rows: int
    by_deltas: Callable[[], float]

    def look(self, entries: int, steps: float) -> None:
        """Raise `TooDear` if there are so many entries, or so many steps are expected to be taken in the end."""
        if entries > self.entries:
            raise TooDear(f"its maps have more than {self.entries:,.0f} entries")
        if steps > max(STEPS, STEPS_PER_ROW * self.rows) and steps > OF_DELTAS * self.by_deltas() * self.rows:
            raise TooDear(f"its maps take more than {steps / self.rows:,.0f} steps for a row")


class EventRun:
    """Events that took maps from the contents `before` to those `after`, which both have a reference to.

    What they logged and took is known until others run.
    """

    def __init__(self, before: Contents, after: Contents, events: Events, body: BodyMaps) -> None:
        self.before, self.after, self.events, self._body = before, after, events, body

    @cached_property
    def lines(self) -> Ints:
        """What they logged."""
        return self._body.maps.lines()

    @cached_property
    def order(self) -> Ints:
        """The lines by group, those of a group in order, where all are of one table."""
        body = self._body
        return order_by_group(self.lines, body.values[body.table], len(body.formulas.keys))


class BodyMaps:
    """The maps of heads whose rules have one body. `members`: of each the number of the operand it sums; None: none.

    `count`: the map of the count of bindings · `totals`: those of the sums of operands · `table`: that of the count;
    `one_table`: the sums are values of it, too · `sizes`: the rows of derived relations that the maps were chosen for ·
    `has_slices`: of so many that their order counts · `holding`: the contents of relations that the maps are of (None:
    of none) · `filling`: the steps that filling them took, and `filled_in` its nanoseconds · `rebuild`: what evaluating
    a head so takes.
    """

    def __init__(
        self,
        members: Mapping[Clause, int | None],
        formulas: ClauseFormulas | ThresholdFormulas,
        statistics: EventStatistics,
    ) -> None:
        self.members, self.formulas, self.sizes = dict(members), formulas, dict(statistics.rows)
        program, self.count, self.totals = formulas.program(statistics)
        self.maps = Maps(program)
        lowered = self.maps.lowered
        self.values = [len(twins.names) for twins in lowered.twins]
        self.table = lowered.places[self.count].table
        self.one_table = all(lowered.places[total].table == self.table for total in self.totals)
        self.events = EventMaker(formulas.relations, self.maps.kinds, lowered.width, formulas.checked)
        self.has_slices = len(self.sizes) > FEW_RELATIONS
        self.holding: Contents | None = None
        self.steps_per_event = 0.0
        self.filling, self.filled_in = 0, 0.0
        self.rebuild: RebuildCost | None = None
        self._run: weakref.ref[EventRun] | None = None
        self._teller: weakref.ref[object] | None = None

    # -- what they hold for -------------------------------------------------------------------------------------------

    def are_of(self, relations: Mapping[str, StoredRelation]) -> bool:
        """Whether the maps are those of the contents of `relations`."""
        return _alike(self.holding, relations)

    def run_of(self, step: Step) -> EventRun | None:
        """The run that took the maps over this step; None if there was none."""
        run = None if self._run is None else self._run()
        if run is None or run.after is not self.holding:
            return None
        return run if _alike(run.before, step.before.relations) and _alike(run.after, step.after) else None

    def outgrown(self, relations: Mapping[str, StoredRelation]) -> bool:
        """Whether the maps were chosen, and their slices put in order, for relations that were far smaller."""
        rows = sum(len(relations[name]) for name in self.events.by_predicate)
        return rows > MANY_ROWS and rows > OUTGROWN * sum(self.sizes.values())

    def hold(self, relations: Mapping[str, StoredRelation]) -> None:
        """The maps are those of the contents in `relations`."""
        self.holding = {name: weakref.ref(relations[name].content) for name in self.events.by_predicate}

    def is_told_by(self, kept: object) -> bool:
        """Whether what is kept of a head says how much memory the maps take: one at a time does, while it is there."""
        if self._teller is None or self._teller() is None:
            self._teller = weakref.ref(kept)
        return self._teller() is kept

    # -- events -------------------------------------------------------------------------------------------------------

    def fill(
        self,
        relations: Mapping[str, StoredRelation],
        symbols: SymbolTable,
        limits: Limits,
        by_deltas: Callable[[], float] | None = None,
    ) -> None:
        """Run all rows of what the heads read as insertions. Raises `NoEvents`, `SumOverflow`.

        Some are left to the end, when all others are there: what they take is what a changed row does. Raises `TooDear`
        where nobody asked for the maps, and `by_deltas` tells how many steps a changed row takes without them.
        """
        began = time.thread_time_ns()
        sizes = {name: len(relations[name]) for name in self.events.by_predicate}
        rows = sum(sizes.values())
        patience = None if by_deltas is None else Patience(max(ENTRIES, ENTRIES_PER_ROW * rows), rows, by_deltas)
        self.maps.reserve(rows)
        chosen = np.random.default_rng(0)  # the same ones every time
        last = {name: _some(size, rows, chosen) for name, size in sizes.items()}
        made = {each[0].name: each for several in self.events.by_predicate.values() for each in several}
        self.filling, ends = 0, []
        for name in fill_order(self.maps.program, {name: sizes[each[0].predicate] for name, each in made.items()}):
            below = made[name][0].predicate
            first, end = self.events.of_all(made[name], relations[below].content, last[below], symbols)
            self._insert(first, limits, patience)
            ends.append(end)
        steps = self.filling
        self._insert(in_one(ends), limits, patience)
        self.maps.trim()
        self.steps_per_event = (self.filling - steps) / max(1, sum(int(marked.sum()) for marked in last.values()))
        self.filled_in = float(time.thread_time_ns() - began)
        self.hold(relations)

    def _insert(self, events: Events, limits: Limits, patience: Patience | None) -> None:
        n = len(events.kinds)

        def look(done: int) -> None:
            if patience is not None:
                # What a part of the events takes is expected of the others; one alone may be far from what they take.
                times = n / done if done >= TELLING * n else 1.0
                patience.look(len(self.maps), self.filling + times * self.maps.steps)
            limits.look(done)

        self.maps.run(events.kinds, events.rows, fills=True, look=look)
        self.filling += self.maps.steps

    def run_row(self, step: Step, plan: RowPlan, row: Ints, sign: int) -> tuple[int, EventRun] | None:
        """Run the events of a changed row int64[arity, 1] by a plan; (what `follow_row` says, the run).

        None if what statements compute with cannot be measured. Raises `NoEvents`, `SumOverflow`.
        """
        before, self.holding = self.holding, None
        try:
            found = self.maps.run_row(plan, row, sign)
            if found == UNMEASURED:
                plan.measure(row, self.events.magnitudes)
                found = self.maps.run_row(plan, row, sign)
        except (NoEvents, SumOverflow):
            self._is_again(before)
            raise
        if found == UNMEASURED:
            self.holding = before
            return None
        return found, self._done(before, step, plan.happened)

    def run(self, step: Step, events: Events, limits: Limits) -> EventRun:
        """Run the events of a step. Raises `SumOverflow`."""
        before, self.holding = self.holding, None
        try:
            self.maps.run(events.kinds, events.rows, look=limits.look)
        except SumOverflow:
            self._is_again(before)
            raise
        return self._done(before, step, events)

    def events_of(self, step: Step) -> Events:
        """The events of the step, numbered as those of its stream; all 0 where it is none. Raises `NoEvents`."""
        blocks, streams = list[ChangedRows](), step.streams
        for name in self.events.by_predicate:
            log = None if streams is None else streams.of(name, step.state.strata.by_head, step.after)
            if log is not None:
                blocks.append(ChangedRows(name, log.rows, log.kinds, log.numbers))
            elif (change := step.changes.get(name)) is not None:
                # What follows the net change does so after the last event.
                n, last = len(change.kinds), 0 if streams is None else streams.last
                blocks.append(ChangedRows(name, change.rows, change.kinds, np.full(n, last, np.int64)))
        return self.events.of(blocks, step.evaluator.symbols)

    def _done(self, before: Contents | None, step: Step, events: Events) -> EventRun:
        after, relations = {}, step.after
        for name in self.events.by_predicate:
            after[name] = weakref.ref(relations[name].content)
        run = EventRun(before or {}, after, events, self)
        self._run, self.holding = weakref.ref(run), after
        return run

    def _is_again(self, before: Contents | None) -> None:
        """What a run did was taken back. After an interruption nobody knows: it may have come after the run."""
        self.holding = None if self.maps.lost else before

    def take_back(self, run: EventRun) -> None:
        """Take a run back, if it is the last one and was not taken back yet."""
        if self.holding is run.after:
            self.holding = None
            self.maps.undo(run.events.kinds, run.events.rows)
            self._is_again(run.before)


def _some(size: int, rows: int, chosen: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which of the rows of one relation stand for changed ones, of so many in all relations."""
    marked = np.zeros(size, np.bool_)
    if size:
        marked[chosen.choice(size, math.ceil(size * min(1 / 8, SAMPLE / rows)), replace=False)] = True
    return marked


def _alike(contents: Contents | None, relations: Mapping[str, StoredRelation]) -> bool:
    if contents is None:
        return False
    for name, content in contents.items():
        if name not in relations or content() is not relations[name].content:
            return False
    return True
