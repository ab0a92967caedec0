"""The trace of one clause: recorded once, then kept equal to what recording it again would give.

    record()    evaluates the clause over the relations as they are, writing its records; builds an index per site
    maintain()  after a change: what the change concerns (lftj.join.concern), repaired (lftj.join.repair) and redone
                (lftj.join.redo), gives the rows that go and come, and the next index of every site

The plan is pinned when the trace is recorded: the records are those of one key order. Nothing is published here: a
`Maintained` holds the new indexes beside the old ones, and `adopt` makes them the trace's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lftj.join import concern, redo, repair, trie, triejoin
from lftj.join import walk as cells
from lftj.join.run import SLICE, Counters, Limits, check_status
from lftj.language.clause import Value, Var
from lftj.plan.joinplan import JoinPlan
from lftj.plan.lowering import Encode, lower
from lftj.plan.traceplan import TracePlan
from scantree.filter import BranchFilter
from scantree.memory import Arena
from scantree.version import Version
from sensitivity import records
from sensitivity.index import SensitivityIndex
from sensitivity.packing import Packing, Range

Ints = npt.NDArray[np.int64]
Order = tuple[str, tuple[int, ...]]
Versions = Mapping[Order, Version]

# Records a site has room for before its buffer is emptied, when a trace is recorded and when it is maintained.
RECORDING_ROOM, LEAST_ROOM = 1 << 16, 1 << 8
LEAST_TASKS = 1 << 8


@dataclass(slots=True)
class Change:
    """What a transaction does to one relation in one key order.

    `rows` int64[arity, m] in key order · `kinds` int8[m]: 1 inserted, -1 erased · `tops` int64[m] (scantree.surgery).
    """

    rows: Ints
    kinds: npt.NDArray[np.int8]
    tops: Ints


@dataclass(slots=True)
class Maintained:
    """What maintaining a trace came to: rows int64[head, n] erased and inserted, the next indexes, and counts.

    `steps`: of leapfrog joins, and keys and records looked at · `removed`, `added`: records.
    """

    erased: list[Ints]
    inserted: list[Ints]
    indexes: dict[int, SensitivityIndex]
    steps: int = 0
    removed: int = 0
    added: int = 0
    surgeries: int = 0
    ranges: dict[int, Range | None] = field(default_factory=dict)


@dataclass(slots=True)
class _Buffers:
    """Room for the records of one side: what is full is moved to `drained`, per site."""

    trace: records.Trace
    drained: list[list[Ints]]

    @classmethod
    def of(cls, sites: Ints, fields: Ints, room: int) -> _Buffers:
        sites = sites.copy()
        at = 0
        for site in sites:
            site[records.AT], site[records.ROOM] = at, room
            at += room * int(site[records.WORDS])
        trace = records.Trace(
            sites,
            fields,
            np.zeros((max(1, len(sites)), records.MAX_WORDS), np.int64),
            np.empty(max(1, at), np.int64),
            np.zeros(max(1, len(sites)), np.int64),
        )
        return cls(trace, [[] for _ in sites])

    def drain(self) -> None:
        """Move the records out of the buffer."""
        for s, n in enumerate(self.trace.fills[: len(self.drained)].tolist()):
            if n:
                at, words = int(self.trace.sites[s, records.AT]), int(self.trace.sites[s, records.WORDS])
                self.drained[s].append(self.trace.buffer[at : at + n * words].copy())
        self.trace.fills[:] = 0

    def take(self, s: int) -> Ints:
        """All records of site `s`, and no longer held here."""
        chunks, self.drained[s] = self.drained[s], []
        return chunks[0] if len(chunks) == 1 else np.concatenate([np.empty(0, np.int64), *chunks])


class ClauseTrace:
    """The recorded trace of a clause under a pinned plan."""

    def __init__(
        self,
        plan: JoinPlan,
        trace_plan: TracePlan,
        arena: Arena,
        encode: Encode,
        ranks: Callable[[], Ints],
        describe: str,
        *,
        page_rows: int = 256,
        dir_rows: int = 256,
        room: int | None = None,
    ) -> None:
        # Every derivation counts: no existential suffix.
        self.plan = replace(plan, until=len(plan.depths))
        self.trace_plan, self.arena = trace_plan, arena
        self._encode, self._ranks, self._describe = encode, ranks, describe
        self._sizes = {"page_rows": page_rows, "dir_rows": dir_rows}
        self._recording_room, self._room = room or RECORDING_ROOM, room or LEAST_ROOM
        self.indexes: dict[int, SensitivityIndex] = {}
        self.ranges: dict[int, Range | None] = {}
        self.counters = Counters()
        self.filters: dict[tuple[str, tuple[int, ...], int], BranchFilter] = {}
        self._covered: dict[tuple[str, tuple[int, ...], int], Version] = {}
        self.orders = tuple(dict.fromkeys((node.predicate, node.key_order) for node in plan.nodes))

    # -- layout -------------------------------------------------------------------------------------------------------

    def _packing(self, s: int, ranges: Mapping[int, Range | None]) -> Packing:
        site = self.trace_plan.sites[s]
        interval = site.granularity == records.INTERVAL
        return Packing.of(
            site.prefix,
            site.context,
            dict(ranges),
            start=False if site.granularity == records.NODE else self._start_range(site.depth, ranges),
            agree=len(self.plan.depths[site.depth].participants) if interval else 0,
        )

    def _start_range(self, d: int, ranges: Mapping[int, Range | None]) -> Range | None:
        """The range of the starts of depth `d` but KEY_MIN, one past the greatest key not counted."""
        depth = self.plan.depths[d]
        own = ranges[d]
        if depth.definition is not None or own is None:
            return None
        low, high = own.low, own.high
        place = {x.variable: i for i, x in enumerate(self.plan.depths)}
        for _, term in depth.bounds:
            if isinstance(term, Var) and ranges[place[term.name]] is not None:
                limit = ranges[place[term.name]]
                assert limit is not None
                low, high = min(low, limit.low - 1), max(high, limit.high + 1)
            elif isinstance(term, Value):
                code = self._encode(term.value, term.type)
                low, high = min(low, code - 1), max(high, code + 1)
            else:
                return None
        return Range(low, high)

    def _key_ranges(self, columns: Callable[[Order, int], tuple[int, int] | None]) -> dict[int, Range | None]:
        """Per depth the keys its participants have; None where its one key is computed.

        `columns`: (least, greatest) key of a column of an order, None if there is no row.
        """
        ranges: dict[int, Range | None] = {}
        for d, depth in enumerate(self.plan.depths):
            if depth.definition is not None:
                ranges[d] = None
                continue
            found = [
                columns((node.predicate, node.key_order), node.level)
                for node in (self.plan.nodes[f] for f in depth.participants)
            ]
            known = [f for f in found if f is not None]
            ranges[d] = Range(min((f[0] for f in known), default=0), max((f[1] for f in known), default=0))
        return ranges

    def _sites(self, packings: Mapping[int, Packing]) -> tuple[Ints, Ints]:
        """The arrays `sites` and `fields` of a recorder."""
        rows = np.zeros((len(self.trace_plan.sites), records.SITE_WIDTH), np.int64)
        fields: list[tuple[int, int, int, int, int]] = []
        for s, site in enumerate(self.trace_plan.sites):
            row = rows[s]
            row[records.GRANULARITY] = site.granularity
            row[records.FRAME], row[records.DEPTH], row[records.TURN] = site.frame, site.depth, site.turn
            row[records.LEVEL] = self.plan.nodes[site.frame].level
            if s not in packings:
                continue
            packing = packings[s]
            row[records.WORDS] = packing.words
            row[records.FIELD_LO], row[records.PREFIX_HI] = len(fields), len(fields) + len(packing.prefix)
            fields.extend((f.source, f.word, f.shift, f.low, f.bits) for f in packing.fields)
            row[records.FIELD_HI] = len(fields)
            if packing.start is not None:
                row[records.START_WORD : records.START_BITS + 1] = (
                    packing.start.word,
                    packing.start.shift,
                    packing.start.low,
                    packing.start.bits,
                )
            if packing.agree is not None:
                row[records.AGREE_WORD : records.AGREE_BITS + 1] = (
                    packing.agree.word,
                    packing.agree.shift,
                    packing.agree.bits,
                )
        return rows, np.array(fields or [(0, 0, 0, 0, 0)], np.int64)

    # -- recording ----------------------------------------------------------------------------------------------------

    def record(self, versions: Versions, limits: Limits, *, buffer_rows: int = 1 << 16) -> list[Ints]:
        """Evaluate the clause over `versions`, keeping its trace; the derived rows, int64[head, n] each."""
        self.ranges = self._key_ranges(lambda order, level: column_range(versions[order], level))
        packings = {s: self._packing(s, self.ranges) for s in self.trace_plan.recorded}
        buffers = _Buffers.of(*self._sites(packings), self._recording_room)
        lowered = lower(self.plan, versions, self._encode, np.zeros(1, np.int64))
        walk = lowered.walk._replace(ranks=self._ranks()) if lowered.ranked else lowered.walk
        self._run_prelude(walk, lowered.prelude)
        chunks: list[Ints] = []
        out = np.empty((len(walk.head), buffer_rows), np.int64)
        mem, control = self.arena.space.mem, walk.control
        done, status = 0, triejoin.PAUSED
        while status != triejoin.FINISHED:
            status = triejoin.tracing_triejoin(mem, walk, buffers.trace, out, SLICE)
            if status >= triejoin.ERROR:
                check_status(status - triejoin.ERROR, self._describe)
            if status in (triejoin.CROWDED, triejoin.FINISHED):
                buffers.drain()
            if status in (triejoin.FULL, triejoin.FINISHED) and (n := int(control[cells.WRITTEN])):
                chunks.append(out[:, :n].copy())
                done += n
                control[cells.WRITTEN] = 0
            limits.look(done)
        steps = int(control[cells.STEPS])
        self.counters = Counters(
            steps,
            steps + int(control[cells.LANDED]),
            int(control[cells.OPENS]),
            done,
            tuple(walk.depths[:, cells.MATCHES].tolist()),
        )
        self.indexes = {}
        for s, packing in packings.items():
            self.indexes[s] = SensitivityIndex.build(self.arena, packing, [buffers.take(s)], **self._sizes)
            limits.look(done)
        return chunks

    def _run_prelude(self, walk: cells.Walk, prelude: Ints) -> None:
        from lftj.join import machine

        if len(prelude):
            check_status(machine.run_code(prelude, 0, len(prelude), walk.regs, walk.ranks, walk.cell), self._describe)

    # -- maintenance --------------------------------------------------------------------------------------------------

    def maintain(
        self,
        old: Versions,
        new: Versions,
        changes: Mapping[Order, Change],
        limits: Limits,
        *,
        buffer_rows: int = 1 << 12,
    ) -> Maintained:
        """What the `changes`, which lead from `old` to `new`, do to the clause. The trace stays as it is."""
        ranges = self._widened(changes)
        result = Maintained([], [], dict(self.indexes), ranges=ranges)
        if ranges is not self.ranges:
            for s, index in self.indexes.items():
                packing = self._packing(s, ranges)
                if packing != index.packing:
                    result.indexes[s] = index.repacked(packing)
        rows, fields = self._sites({s: index.packing for s, index in result.indexes.items()})
        deltas = self._flatten(rows, changes, result)
        for s, index in result.indexes.items():
            shape = index.version.store.shape
            rows[s, records.ROOT : records.DIR_BITS + 1] = (index.version.root, shape.page_bits, shape.dir_bits)
        sides = (_Buffers.of(rows, fields, self._room), _Buffers.of(rows, fields, self._room))

        lowered = lower(self.plan, new, self._encode, np.zeros(1, np.int64), jumps=False)
        walk = lowered.walk._replace(ranks=self._ranks()) if lowered.ranked else lowered.walk
        self._run_prelude(walk, lowered.prelude)
        frames = (walk.frames.copy(), walk.frames)
        for i, node in enumerate(self.plan.nodes):
            frames[0][i, trie.ROOT] = old[node.predicate, node.key_order].root
        for i, held in self._filters(old, new, changes).items():
            frames[0][i, trie.FILTER] = frames[1][i, trie.FILTER] = held.page
            frames[0][i, trie.FILTER_MASK] = frames[1][i, trie.FILTER_MASK] = held.mask
        plain = not len(walk.code) and not len(walk.bounds)
        tasks, n_tasks = self._find(walk, frames, sides, deltas, plain, result, limits)
        self._redo(walk, frames, sides, tasks, n_tasks, result, limits, buffer_rows)
        for s, index in result.indexes.items():
            removed, added = (side.take(s) for side in sides)
            if len(removed) or len(added):
                result.indexes[s], went, came = index.updated(removed, added)
                result.removed += went
                result.added += came
        return result

    def adopt(self, result: Maintained) -> None:
        """Make the outcome of `maintain` the trace."""
        self.indexes, self.ranges = result.indexes, result.ranges

    def _filters(self, old: Versions, new: Versions, changes: Mapping[Order, Change]) -> dict[int, BranchFilter]:
        """Per trie node that is asked whether it holds a changed key of others, its branch filter."""
        found: dict[int, BranchFilter] = {}
        for site in self.trace_plan.sites:
            if site.granularity != records.NODE:
                continue
            node = self.plan.nodes[site.frame]
            at = (node.predicate, node.key_order, node.level)
            order = (node.predicate, node.key_order)
            held = self.filters.get(at)
            if held is None or held.stale:
                held = self.filters[at] = BranchFilter(old[order], node.level + 1)
                self._covered[at] = old[order]
            if order in changes and self._covered[at] is not new[order]:
                change = changes[order]
                held.add(np.ascontiguousarray(change.rows[:, change.kinds > 0]))
                self._covered[at] = new[order]
            found[site.frame] = held
        return found

    def _widened(self, changes: Mapping[Order, Change]) -> dict[int, Range | None]:
        """The ranges of keys, widened where what is inserted lies outside and some index could not hold it."""

        def inserted(order: Order, level: int) -> tuple[int, int] | None:
            change = changes.get(order)
            if change is None:
                return None
            column = change.rows[level, change.kinds > 0]
            return (int(column.min()), int(column.max())) if len(column) else None

        fresh: dict[int, Range] = {}
        for d, depth in enumerate(self.plan.depths):
            for node in (self.plan.nodes[f] for f in depth.participants):
                found = inserted((node.predicate, node.key_order), node.level)
                known = self.ranges[d]
                if found is not None and known is not None:
                    low, high = fresh[d].low if d in fresh else known.low, fresh[d].high if d in fresh else known.high
                    if found[0] < low or found[1] > high:
                        fresh[d] = Range(min(low, found[0]), max(high, found[1]))
        if not fresh:
            return self.ranges
        return {**self.ranges, **fresh}

    def _flatten(self, rows: Ints, changes: Mapping[Order, Change], result: Maintained) -> Ints:
        """All changes in one array (`concern.concern`); the sites are told where theirs is."""
        parts: list[Ints] = []
        places: dict[Order, tuple[int, int, int]] = {}
        at = 0
        for order, change in changes.items():
            arity, m = change.rows.shape
            places[order] = (at, m, arity)
            parts += [change.rows.reshape(-1), change.kinds.astype(np.int64), change.tops]
            at += (arity + 2) * m
            result.surgeries += int((arity - change.tops).sum())
        for s, site in enumerate(self.trace_plan.sites):
            node = self.plan.nodes[site.frame]
            if (node.predicate, node.key_order) in places:
                rows[s, records.DELTA_AT : records.DELTA_WIDTH + 1] = places[node.predicate, node.key_order]
        return np.concatenate(parts)

    def _find(
        self,
        walk: cells.Walk,
        frames: tuple[Ints, Ints],
        sides: tuple[_Buffers, _Buffers],
        deltas: Ints,
        plain: bool,
        result: Maintained,
        limits: Limits,
    ) -> tuple[Ints, int]:
        """The tasks of a change: those it names itself, and those repairing its states brings up."""
        mem, n = self.arena.space.mem, len(self.plan.depths)
        tasks, states = np.empty((LEAST_TASKS, n + 2), np.int64), np.empty((LEAST_TASKS, n + 4), np.int64)
        cursor, state = np.zeros(concern.CURSOR, np.int64), np.zeros(repair.STATE, np.int64)
        cursor[concern.POSITION], cursor[concern.PLAIN] = -1, plain
        scratch = np.zeros((2, records.MAX_WORDS), np.int64)
        words = np.zeros(records.MAX_WORDS, np.int64)
        status = concern.PAUSED
        while status != concern.DONE:
            status = concern.concern(
                mem, walk, frames[0], frames[1], sides[0].trace, deltas, tasks, states, cursor, scratch, words, SLICE
            )
            if status >= concern.ERROR:
                check_status(status - concern.ERROR, self._describe)
            if status == concern.FULL:
                if cursor[concern.N_TASKS] == len(tasks):
                    tasks = grown(tasks)
                if cursor[concern.N_STATES] == len(states):
                    states = grown(states)
            limits.look(0)
        result.steps += int(cursor[concern.LOOKS] + cursor[concern.READS])
        count, state[repair.TASKS] = int(cursor[concern.N_STATES]), cursor[concern.N_TASKS]
        if count:
            order = np.empty(count, np.int64)
            repair.sort_states(states, order, np.empty(count, np.int64), count)
            status = repair.PAUSED
            while status != repair.FINISHED:
                status = repair.repair(
                    mem,
                    frames[0],
                    frames[1],
                    walk,
                    sides[0].trace,
                    sides[1].trace,
                    states,
                    order,
                    count,
                    tasks,
                    state,
                    SLICE,
                )
                if status >= concern.ERROR:
                    check_status(status - concern.ERROR, self._describe)
                if status == repair.FULL:
                    tasks = grown(tasks)
                if status == repair.CROWDED:
                    for side in sides:
                        side.drain()
                limits.look(0)
            result.steps += int(state[repair.STEPS])
        return tasks, int(state[repair.TASKS])

    def _redo(
        self,
        walk: cells.Walk,
        frames: tuple[Ints, Ints],
        sides: tuple[_Buffers, _Buffers],
        tasks: Ints,
        n_tasks: int,
        result: Maintained,
        limits: Limits,
        buffer_rows: int,
    ) -> None:
        """Walk the subtrees of the tasks, old ones then new ones."""
        mem, control = self.arena.space.mem, walk.control
        out = np.empty((len(walk.head), buffer_rows), np.int64)
        for side, rows in ((concern.OLD, result.erased), (concern.NEW, result.inserted)):
            state = np.zeros(2, np.int64)
            own = walk._replace(frames=frames[side])
            control[cells.WRITTEN] = 0
            status = triejoin.PAUSED
            while n_tasks and status != triejoin.FINISHED:
                status = redo.redo(mem, own, sides[side].trace, tasks, n_tasks, side, out, state, SLICE)
                if status >= triejoin.ERROR:
                    check_status(status - triejoin.ERROR, self._describe)
                if status == triejoin.CROWDED:
                    sides[side].drain()
                if status in (triejoin.FULL, triejoin.FINISHED) and (n := int(control[cells.WRITTEN])):
                    rows.append(out[:, :n].copy())
                    control[cells.WRITTEN] = 0
                limits.look(0)
            sides[side].drain()
        result.steps += int(control[cells.STEPS] + control[cells.LANDED])


def grown(rows: Ints) -> Ints:
    """A copy with four times the rows."""
    larger = np.empty((4 * len(rows), rows.shape[1]), np.int64)
    larger[: len(rows)] = rows
    return larger


def column_range(version: Version, column: int) -> tuple[int, int] | None:
    """The least and the greatest key of a column; None if there is no row."""
    if not len(version):
        return None
    least, greatest = None, None
    for chunk in version.chunks():
        low, high = int(chunk[column].min()), int(chunk[column].max())
        least = low if least is None else min(least, low)
        greatest = high if greatest is None else max(greatest, high)
    assert least is not None and greatest is not None
    return least, greatest
