"""The trace of one clause: recorded once, then kept equal to what recording it again would give.

    record()    evaluates the clause over the relations as they are, writing its records; builds an index per site
    maintain()  after a change: the rows that go and come, and the next index of every site, staged
    adopt()     makes what is staged the trace's; discard() drops it

The plan is pinned when the trace is recorded: the records are those of one key order. Arrays that maintenance works
with are kept from one change to the next, for small changes are frequent.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.join import change_oracle, expression_vm, repair, trace_update, trie, triejoin
from lftj.join import join_state as cells
from lftj.join.run import NO_END, SLICE, Counters, Limits, Overdue
from lftj.maintain.step import TraceChange
from lftj.maintain.trace_layout import Order, Ranges, TraceLayout, widened
from lftj.plan.joinplan import JoinPlan
from lftj.plan.lowering import Encode, SeekHints, lower
from lftj.plan.traceplan import TracePlan
from scantree.filter import BranchFilter
from scantree.memory import Arena
from scantree.version import Version
from sensitivity import records
from sensitivity.index import SensitivityIndexes, Staged

Ints = npt.NDArray[np.int64]
Versions = Mapping[Order, Version]

# Records a site has room for before its buffer is emptied, when a trace is recorded and when it is maintained.
RECORDING_ROOM, LEAST_ROOM, MOST_ROOM = 1 << 16, 1 << 8, 1 << 14
LEAST_TASKS, LEAST_ROWS = 1 << 8, 1 << 8


@dataclass(slots=True)
class Maintained:
    """What maintaining a trace came to: rows int64[head, n] erased and inserted, the staged indexes, and counts.

    `steps`: of leapfrog joins, and keys and records looked at · `removed`, `added`: records · `indexes`: others than
    the trace's, where records had to be packed anew · `saw_undefined`: of the trace after it.
    """

    erased: list[Ints]
    inserted: list[Ints]
    staged: Staged
    indexes: SensitivityIndexes
    ranges: Ranges
    steps: int
    surgeries: int
    saw_undefined: bool

    @property
    def removed(self) -> int:
        """Records that went."""
        return self.staged.removed

    @property
    def added(self) -> int:
        """Records that came."""
        return self.staged.added


def most_words(sites: Ints) -> int:
    """Words of the widest record, at least one."""
    return max(1, int(sites[:, records.WORDS].max(initial=0)))


class _Side:
    """Room for the records of one side; what is full is moved to `drained`, per site."""

    def __init__(self, sites: Ints, fields: Ints, room: int) -> None:
        self.drained: list[list[Ints]] = [[] for _ in sites]
        self.room = 0
        self.trace = records.Trace(
            sites.copy(),
            fields,
            np.zeros((max(1, len(sites)), most_words(sites)), np.int64),
            np.empty(0, np.int64),
            np.zeros(max(1, len(sites)), np.int64),
        )
        self.give(room)

    def give(self, room: int) -> None:
        """Make room for `room` records per site; there are none in the buffer."""
        sites, self.room = self.trace.sites, room
        at = 0
        for site in sites:
            site[records.AT], site[records.ROOM] = at, room
            at += room * int(site[records.WORDS])
        self.trace = self.trace._replace(buffer=np.empty(max(1, at), np.int64))

    def drain(self) -> None:
        """Move the records out of the buffer."""
        for s, n in enumerate(self.trace.fills[: len(self.drained)].tolist()):
            if n:
                at, words = int(self.trace.sites[s, records.AT]), int(self.trace.sites[s, records.WORDS])
                self.drained[s].append(self.trace.buffer[at : at + n * words].copy())
        self.trace.fills[:] = 0


class _Upkeep:
    """The arrays maintenance works with, for one packing of the indexes."""

    def __init__(self, trace: ClauseTrace, versions: Versions, indexes: SensitivityIndexes) -> None:
        plan = trace.plan
        self.packings = indexes.packings
        lowered = lower(plan, versions, trace.encode, np.zeros(1, np.int64), SeekHints(jumps=False))
        self.walk, self.ranked = lowered.walk, lowered.ranked
        trace.run_prelude(self.walk, lowered.prelude)
        self.frames = (self.walk.frames.copy(), self.walk.frames)
        rows, fields = trace.layout.sites(indexes.packings)
        self.sides = (_Side(rows, fields, trace.room), _Side(rows, fields, trace.room))
        n = len(plan.depths)
        self.n = n
        self.tasks, self.states = np.empty((LEAST_TASKS, n + 2), np.int64), np.empty((LEAST_TASKS, n + 4), np.int64)
        self.order = np.empty((2, LEAST_TASKS), np.int64)
        self.cells = np.zeros(trace_update.ROWS_AT + 3 * most_words(rows), np.int64)
        self.out = np.empty((len(self.walk.head), trace.out_rows), np.int64)
        # The key order of each frame, and per key order its sites.
        self.places = places = [(node.predicate, node.key_order) for node in plan.nodes]
        self.sites_of = {
            o: np.array([s for s, x in enumerate(trace.trace_plan.sites) if places[x.frame] == o], np.int64)
            for o in trace.orders
        }

    def reset(self, old: Versions, new: Versions, roots: SensitivityIndexes) -> None:
        """Forget the last change; look at these versions."""
        for frames, versions in zip(self.frames, (old, new), strict=True):
            frames[:, trie.ROOT] = [versions[order].root for order in self.places]
            frames[:, trie.OPENED] = 0
        control = self.walk.control
        control[cells.STEPS] = control[cells.LANDED] = control[cells.WRITTEN] = 0
        self.cells[: trace_update.ROWS_AT] = 0
        self.cells[trace_update.CURSOR_AT + change_oracle.POSITION] = -1
        for side in self.sides:
            side.trace.fills[:] = 0
            roots.write_roots(side.trace.sites)
            for drained in side.drained:
                drained.clear()

    def tell(self, changes: Mapping[Order, TraceChange]) -> Ints:
        """All changes in one array (`concern.concern`); the sites are told where theirs is."""
        parts: list[npt.NDArray[Any]] = []
        sites = self.sides[0].trace.sites
        sites[:, records.DELTA_N] = 0
        at = 0
        for order, change in changes.items():
            arity, m = change.rows.shape
            sites[self.sites_of[order], records.DELTA_AT : records.DELTA_WIDTH + 1] = (at, m, arity)
            parts += [change.rows.reshape(-1), change.kinds, change.tops]
            at += (arity + 2) * m
        return np.concatenate(parts, dtype=np.int64)

    def steps(self) -> int:
        """What the change took so far."""
        at, control = trace_update.CURSOR_AT, self.walk.control
        looked = self.cells[at + change_oracle.LOOKS] + self.cells[at + change_oracle.READS]
        repaired = self.cells[trace_update.REPAIR_AT + repair.STEPS]
        return int(looked + repaired + control[cells.STEPS] + control[cells.LANDED])

    def grow(self) -> None:
        """Make room where there is none."""
        cursor = self.cells[trace_update.CURSOR_AT :]
        if max(int(cursor[change_oracle.N_TASKS]), int(self.cells[trace_update.REPAIR_AT + repair.TASKS])) + 4 > len(
            self.tasks
        ):
            self.tasks = grown(self.tasks)
        if int(cursor[change_oracle.N_STATES]) == len(self.states):
            self.states = grown(self.states)
        if int(cursor[change_oracle.N_STATES]) > self.order.shape[1]:
            self.order = np.empty((2, len(self.states)), np.int64)
        if int(cursor[change_oracle.N_UNITS]) and int(cursor[change_oracle.N_TASKS]) > self.order.shape[1]:
            self.order = np.empty((2, max(len(self.states), len(self.tasks))), np.int64)


class Trace:
    """What the traces of all kinds of clauses are: maintained by the surgeries in every key order that they read."""

    __slots__ = ()
    orders: tuple[Order, ...]

    @property
    def whole(self) -> frozenset[Order]:
        """The key orders of which only whole rows are looked at."""
        return frozenset()

    @property
    def watched(self) -> tuple[Order, ...]:
        """The key orders in which changes are looked at."""
        return self.orders


class ClauseTrace(Trace):
    """The recorded trace of a clause under a pinned plan.

    `saw_undefined`: a term has no value somewhere in the walk, which then needs a look (undefined_terms.py) after every
    change. `room` and `out_rows` are forced tiny by tests.
    """

    def __init__(
        self,
        plan: JoinPlan,
        trace_plan: TracePlan,
        arena: Arena,
        encode: Encode,
        ranks: Callable[[], Ints],
        *,
        page_rows: int = 256,
        dir_rows: int = 64,
        room: int | None = None,
        out_rows: int = LEAST_ROWS,
    ) -> None:
        self.plan = replace(plan, until=trace_plan.until)
        self.trace_plan, self.arena, self.encode = trace_plan, arena, encode
        self.layout = TraceLayout(self.plan, trace_plan, encode)
        self._places = self.layout.places()
        self.room, self.out_rows = room or LEAST_ROOM, out_rows
        self._ranks, self.saw_undefined = ranks, False
        self._sizes = {"page_rows": page_rows, "dir_rows": dir_rows}
        self._recording_room = room or RECORDING_ROOM
        self.most = self.patience = NO_END  # steps of recording, and of following a change
        self.ranges: Ranges = {}
        self.counters = Counters()
        self.orders = tuple(dict.fromkeys((node.predicate, node.key_order) for node in plan.nodes))
        self.indexes = SensitivityIndexes(arena, len(trace_plan.sites), **self._sizes)
        self.filters: dict[tuple[Order, int], BranchFilter] = {}
        # What each filter covers, by identity: a version that a failed commit made must not outlive it here.
        self._covered: dict[tuple[Order, int], weakref.ref[Version]] = {}
        self._upkeep: _Upkeep | None = None
        self._filtered = [
            (site.frame, ((node.predicate, node.key_order), node.level))
            for site in trace_plan.sites
            for node in (plan.nodes[site.frame],)
            if site.granularity == records.NODE and site.turn < len(plan.depths[site.depth].participants)
        ]

    @property
    def parts(self) -> tuple[ClauseTrace, ...]:
        """The traces of joins that it consists of: itself."""
        return (self,)

    def run_prelude(self, walk: cells.Walk, prelude: Ints) -> None:
        """Compute what holds no variable."""
        expression_vm.run_code(prelude, 0, len(prelude), walk.regs, walk.ranks, walk.cell)

    # -- recording ----------------------------------------------------------------------------------------------------

    def record(self, versions: Versions, limits: Limits, *, buffer_rows: int = 1 << 16) -> list[Ints]:
        """Evaluate the clause over `versions`, keeping its trace; the derived rows, int64[head, n] each.

        Raises `Overdue`, and keeps nothing, when it has taken more steps than `most`.
        """
        ranges = self.layout.key_ranges(lambda order, level: versions[order].ends(level))
        packings = {s: self.layout.packing(s, ranges) for s in self.trace_plan.recorded}
        side = _Side(*self.layout.sites(packings), self._recording_room)
        lowered = lower(self.plan, versions, self.encode, np.zeros(1, np.int64))
        walk = lowered.walk._replace(ranks=self._ranks()) if lowered.ranked else lowered.walk
        self.run_prelude(walk, lowered.prelude)
        chunks: list[Ints] = []
        out = np.empty((len(walk.head), buffer_rows), np.int64)
        mem, control = self.arena.space.mem, walk.control
        done, status = 0, triejoin.PAUSED
        while status != triejoin.FINISHED:
            status = triejoin.tracing_triejoin(mem, walk, side.trace, out, SLICE)
            if status in (triejoin.CROWDED, triejoin.FINISHED):
                side.drain()
            if status in (triejoin.FULL, triejoin.FINISHED) and (n := int(control[cells.WRITTEN])):
                chunks.append(out[:, :n].copy())
                done += n
                control[cells.WRITTEN] = 0
            limits.look(done)
            if status != triejoin.FINISHED and control[cells.STEPS] > self.most:
                raise Overdue
        self.saw_undefined = bool(walk.cell[expression_vm.NO_VALUE])
        steps = int(control[cells.STEPS])
        indexes = SensitivityIndexes(self.arena, len(self.trace_plan.sites), **self._sizes)
        for s, packing in packings.items():
            indexes.build(s, packing, np.concatenate([np.empty(0, np.int64), *side.drained[s]]))
            side.drained[s].clear()
            limits.look(done)
        self.indexes, self.ranges, self._upkeep = indexes, ranges, None
        self.counters = Counters(
            steps,
            steps + int(control[cells.LANDED]),
            int(control[cells.OPENS]),
            done,
            tuple(walk.depths[:, cells.MATCHES].tolist()),
        )
        return chunks

    def go_on_from(self, indexes: SensitivityIndexes, ranges: Ranges, *, saw_undefined: bool) -> None:
        """Take records of a trace under the same plan for its own."""
        self.indexes, self.ranges, self.saw_undefined, self._upkeep = indexes, ranges, saw_undefined, None

    # -- maintenance --------------------------------------------------------------------------------------------------

    def maintain(
        self, old: Versions, new: Versions, changes: Mapping[Order, TraceChange], limits: Limits
    ) -> Maintained:
        """What the `changes`, which lead from `old` to `new`, do to the clause. The trace stays as it is.

        Raises `Overdue` when that has taken more steps than `patience`.
        """
        keys = [
            (d, change.low.item(level), change.high.item(level))
            for order, change in changes.items()
            for level, d in self._places.get(order, ())
        ]
        ranges = widened(self.ranges, keys)
        indexes = self.indexes
        if ranges is not self.ranges:
            packings = {
                s: packing if self._holds(s, ranges) else self.layout.packing(s, ranges)
                for s, packing in indexes.packings.items()
            }
            if packings != indexes.packings:
                indexes = indexes.repacked(packings)
        # By packings, not by whether they are new: an earlier change that failed may have needed others.
        if self._upkeep is None or self._upkeep.packings is not indexes.packings:
            self._upkeep = _Upkeep(self, new, indexes)
        upkeep = self._upkeep
        upkeep.reset(old, new, indexes)
        deltas = upkeep.tell(changes)
        for frame, held in self._filters(old, new, changes):
            for frames in upkeep.frames:
                frames[frame, trie.FILTER], frames[frame, trie.FILTER_MASK] = held.page, held.mask
        try:
            erased, inserted = self._run(upkeep, deltas, limits)
            sides = upkeep.sides
            staged = indexes.stage(sides[0].trace, sides[1].trace, (sides[0].drained, sides[1].drained))
        except BaseException:
            self._upkeep = None
            raise
        surgeries = int(upkeep.cells[trace_update.CURSOR_AT + change_oracle.SURGERIES])
        saw_undefined = self.saw_undefined or bool(upkeep.walk.cell[expression_vm.NO_VALUE])
        return Maintained(erased, inserted, staged, indexes, ranges, upkeep.steps(), surgeries, saw_undefined)

    def _holds(self, s: int, ranges: Ranges) -> bool:
        known = {d: r for d, r in ranges.items() if r is not None}
        packing = self.indexes.packings[s]
        if packing.start is not None and packing.start.bits != records.RAW:
            start = self.layout.start_range(self.trace_plan.sites[s].depth, ranges)
            if start is None:
                return False
            known[packing.start.source] = start
        return packing.holds(known)

    def _run(self, upkeep: _Upkeep, deltas: Ints, limits: Limits) -> tuple[list[Ints], list[Ints]]:
        """Run the kernel until it is done; (rows that go, rows that come)."""
        walk = upkeep.walk._replace(ranks=self._ranks()) if upkeep.ranked else upkeep.walk
        mem, control = self.arena.space.mem, walk.control
        rows: tuple[list[Ints], list[Ints]] = ([], [])
        sides = upkeep.sides
        walk.cell[expression_vm.NO_VALUE] = 0.0
        while True:
            work = trace_update.Work(deltas, upkeep.tasks, upkeep.states, upkeep.order, upkeep.cells)
            status = trace_update.maintain(
                mem, walk, *upkeep.frames, sides[0].trace, sides[1].trace, work, upkeep.out, SLICE
            )
            if n := int(control[cells.WRITTEN]) if status in (trace_update.FULL, trace_update.FINISHED) else 0:
                rows[upkeep.cells[trace_update.SIDE]].append(upkeep.out[:, :n].copy())
                control[cells.WRITTEN] = 0
                if n == upkeep.out.shape[1] < 1 << 14 and self.out_rows == LEAST_ROWS:
                    upkeep.out = np.empty((len(upkeep.out), 4 * n), np.int64)
            if status == trace_update.FINISHED:
                return rows
            if status == trace_update.FULL:
                upkeep.grow()
            if status == trace_update.CROWDED:
                for side in sides:
                    side.drain()
                    if side.room < MOST_ROOM and self.room == LEAST_ROOM:
                        side.give(4 * side.room)
            limits.look(0)
            if upkeep.steps() > self.patience:
                raise Overdue

    def site_name(self, s: int) -> str:
        """The site as `explain` and `memory` name it: relation, key order, variable."""
        node = self.plan.nodes[self.trace_plan.sites[s].frame]
        depth = self.plan.depths[self.trace_plan.sites[s].depth]
        columns = ",".join(str(c) for c in node.key_order)
        return f"{node.predicate}[{columns}] at {self.plan.shown.get(depth.variable, depth.variable)}"

    def adopt(self, result: Maintained) -> None:
        """Make the outcome of `maintain` the trace."""
        result.indexes.adopt(result.staged)
        self.indexes, self.ranges, self.saw_undefined = result.indexes, result.ranges, result.saw_undefined

    def discard(self, result: Maintained) -> None:
        """`result` is not to be adopted; what it staged goes with it."""
        if result.indexes is not self.indexes:
            self._upkeep = None

    def _filters(
        self, old: Versions, new: Versions, changes: Mapping[Order, TraceChange]
    ) -> list[tuple[int, BranchFilter]]:
        """(trie node, its branch filter) for those that are asked whether they hold a key that changed for others."""
        found: list[tuple[int, BranchFilter]] = []
        for frame, at in self._filtered:
            order, level = at
            held = self.filters.get(at)
            if held is None or held.stale:
                held = self.filters[at] = BranchFilter(old[order], level + 1)
                self._covered[at] = weakref.ref(old[order])
            if order in changes and self._covered[at]() is not new[order]:
                held.add(changes[order].rows)
                self._covered[at] = weakref.ref(new[order])
            found.append((frame, held))
        return found


def grown(rows: Ints) -> Ints:
    """A copy with four times the rows."""
    larger = np.empty((4 * len(rows), rows.shape[1]), np.int64)
    larger[: len(rows)] = rows
    return larger
