"""The maps of a program in memory, and running events over them.

    maps = Maps(program)
    maps.follow([(+1, "O", (1, 2))])  events as users write them (event_rows.py)
    maps.run(kinds, rows)           events in order: `kinds` int64[n] of `maps.kinds`, `rows` int64[n, columns]
    maps.undo(kinds, rows)          the same events taken back, in reverse: that is exact, whatever is too large between
    maps.entries("q")               keys int64[k, n] and values int64[n]
    maps.log()                      what changed in top maps: event, map, old and new value, keys

A run that fails takes back what it did, and raises; maps for which that failed are `lost`. It runs in slices, between
which Ctrl-C is heard.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from lftj.errors import ArgumentError, DataError, EvaluationError
from lftj.triggers import event_kernel as k
from lftj.triggers import order_kernel as o
from lftj.triggers import table_kernel as t
from lftj.triggers.algebra import Statement, TriggerProgram
from lftj.triggers.event_rows import event_rows
from lftj.triggers.lowered import LoweredProgram, TablePlace
from lftj.triggers.row_kernel import RowPlan, follow_row, packed_maps, run_packed
from scantree.memory import give_back, reserved
from scantree.packed import PackedArguments

Ints = npt.NDArray[np.int64]

# Events between two looks at Ctrl-C and limits, and the steps of events that run through many entries: a tenth of a
# second.
AT_A_TIME, MOST_STEPS = 20_000, 500_000
# Tables of so many words lie in reserved memory of so many times as many, where they grow without being moved together:
# half the time of TPC-H's q5 from nothing, whose maps take 0.5 GB in the end, went into moving them. Words left behind
# by tables that grew, from which on they are given back to the system.
RESERVED, AHEAD, LEFT_BEHIND = 1 << 21, 1 << 8, 1 << 20


class SumOverflow(EvaluationError):
    """A sum, or a product in one, is no 64-bit integer: at event number `event`, in `statement`."""

    def __init__(self, event: int, statement: Statement) -> None:
        self.event, self.statement = event, statement
        super().__init__(
            f"a sum kept by triggers leaves the range of 64 bits, in `{statement.target}`",
            why=f"event {event:,} brings a product or a sum that no 64-bit integer holds; nothing was changed",
            remedy='sum smaller numbers, or keep the head by another strategy, as in maintain={"q": "delta"}',
        )


class LogLines(NamedTuple):
    """Changes of one top map in order: `events` int64[n], `keys` int64[k, n], `old` and `new` values int64[n]."""

    events: Ints
    keys: Ints
    old: Ints
    new: Ints


class Maps:
    """The maps of one program. `kinds`: the number of each event, by sign and relation.

    `lost`: events were not taken back to the end, so that the maps hold for no state: make them anew.
    """

    def __init__(self, program: TriggerProgram) -> None:
        self.program, self.lowered = program, LoweredProgram(program)
        self.kinds, self.lost = self.lowered.kinds, False
        # Where tables lie in reserved memory: that; their top when something was last given back, and all that was.
        self._mapping: mmap.mmap | None = None
        self._given = 0, 0
        lowered = self.lowered
        desc, columns = lowered.described()
        heap = np.zeros(o.FREE + lowered.most_values + 1, np.int64)
        heap[o.TOP] = 1  # no node is number 0
        trees = o.Trees(np.zeros(1, np.int64), heap, np.zeros((2, o.LEVELS), np.int64))
        self.tables = t.Tables(np.zeros(0, np.int64), desc, columns, np.zeros(1, np.int64), trees)
        desc[:, t.CAP] = t.LEAST
        self._regions(0)
        keys, values, loops = max(1, lowered.most_keys), lowered.most_values, max(1, lowered.instructions)
        self.work = k.EventWork(
            np.array([*lowered.registers, 0], np.int64),
            np.zeros(keys, np.int64),
            np.zeros(values, np.int64),
            np.zeros(loops, np.int64),
            np.zeros((loops, values), np.int64),
            np.zeros(loops, np.int64),
            np.zeros((64, k.AMOUNTS + values + keys), np.int64),
            np.zeros((64, k.OLD + 2 * values + keys), np.int64),
            np.zeros(k.STATE, np.int64),
        )
        self._packed: PackedArguments | None = None

    # -- events -------------------------------------------------------------------------------------------------------

    def follow(self, events: Iterable[tuple[int, str, Sequence[SupportsIndex]]]) -> None:
        """Follow events in order, each (+1 or -1, relation, row): all of them, or none and an error."""
        self.run(*event_rows(events, self.program.relations, self.kinds, self.lowered.width))

    def run(self, kinds: Ints, rows: Ints, *, fills: bool = False, look: Callable[[int], object] | None = None) -> None:
        """Events in order. `look` is called now and then, and may raise. The maps are as before then, or lost.

        `fills`: no change of top maps is logged, and what was done is not taken back: the maps are lost. Raises
        `SumOverflow` where no int64 holds a sum.
        """
        state, n = self.work.state, len(kinds)
        state[:] = 0
        try:
            while self._slice(kinds, rows, min(n, int(state[k.EVENT]) + AT_A_TIME), logs=not fills) < n:
                if look is not None:
                    look(int(state[k.EVENT]))
            self._give_back()
        except BaseException:
            if fills:
                self.lost = True
            else:
                self._take_back(kinds, rows, int(state[k.EVENT]))
            raise

    def run_row(self, plan: RowPlan, row: Ints, sign: int) -> int:
        """Run the events of a row int64[arity, 1] that comes or goes, as `run`; what `follow_row` says of that."""
        # The kernel begins with all of it 0. An interrupt before that must find no event of the run before.
        self.work.state[k.EVENT] = 0
        try:
            found = follow_row(self.packed.words, plan.packed.words, row, sign, True)
            while -k.GROW_NODES <= found < 0:
                self._go_on(-found)
                found = follow_row(self.packed.words, plan.packed.words, row, sign, False)
        except BaseException:
            self._take_back(plan.kinds, plan.events, int(self.work.state[k.EVENT]))
            raise
        return int(found)

    @property
    def packed(self) -> PackedArguments:
        """Tables, code and work, packed; until room is made."""
        if self._packed is None:
            self._packed = packed_maps(self.tables, self.lowered.code, self.work)
        return self._packed

    def replace_tables(self, tables: t.Tables) -> None:
        """Go on from other tables of the same program."""
        self._mapping = self._packed = None
        self.tables = tables

    def _slice(self, kinds: Ints, rows: Ints, upto: int, *, logs: bool) -> int:
        """Go on towards event `upto`, one at least, making room on the way; the number of the next event."""
        state = self.work.state
        while True:
            status = run_packed(self.packed.words, kinds, rows, upto, MOST_STEPS, logs)
            if status == k.DONE or (status == k.OVERFLOW and state[k.UNDOING] == 1):
                return int(state[k.EVENT])
            self._go_on(status)

    def _go_on(self, status: int) -> None:
        """Make the room for lack of which a run stopped. Raises `SumOverflow` if it stopped for another reason."""
        if status == k.OVERFLOW:
            raise SumOverflow(int(self.work.state[k.EVENT]), self._failing())
        self._make_room(status)

    def _failing(self) -> Statement:
        state = self.work.state
        if state[k.PHASE] == k.EVALUATING:
            return self.lowered.statements[int(state[k.STATEMENT])]
        if state[k.AT] == state[k.ADDITIONS]:
            return Statement(self.program.tops[0], (), ())  # what is worked out anew
        names = self.lowered.twins[int(self.work.additions[state[k.AT], k.TARGET])].names
        return next(statement for statement in self.lowered.statements if statement.target in names)

    def _make_room(self, status: int) -> None:
        work, self._packed = self.work, None
        if status == k.GROW_MEMORY:
            self._regions(int(work.state[k.NEED]))
        elif status == k.GROW_NODES:
            trees = self.tables.trees
            nodes = np.zeros(max(1 << 12, 2 * len(trees.nodes)), np.int64)
            nodes[: len(trees.nodes)] = trees.nodes
            self.tables = self.tables._replace(trees=trees._replace(nodes=nodes))
        elif status == k.GROW_ADDITIONS:
            self.work = work._replace(additions=_doubled(work.additions))
        else:
            self.work = work._replace(log=_doubled(work.log))

    def _take_back(self, kinds: Ints, rows: Ints, done: int) -> None:
        """Take back what a run did: the present event by half, and those before it, the last one first."""
        self.lost = True
        self.work.state[k.UNDOING] = 1  # that of the least number is no number of 64 bits
        while (status := k.take_back(self.tables, self.work)) != k.DONE:
            self._make_room(status)
        self.undo(kinds[:done], rows[:done])

    def undo(self, kinds: Ints, rows: Ints) -> None:
        """Take back events that were run: those of the opposite sign, in reverse.

        The maps are lost where a key or a term that is compared is too large in a statement of the opposite sign and
        was not in those that were run, which read what is there before a row comes.
        """
        self.lost = True
        self.work.state[:] = 0
        self.work.state[k.UNDOING] = 1
        opposite, reverse = np.ascontiguousarray(kinds[::-1] ^ 1), np.ascontiguousarray(rows[::-1])
        done, n = 0, len(kinds)
        while done < n and (upto := self._slice(opposite, reverse, n, logs=False)) > done:
            done = upto
        self.lost = done < n

    @property
    def steps(self) -> int:
        """Instructions that the last run took."""
        return int(self.work.state[k.STEPS])

    # -- what is in them ----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Maps of {', '.join(self.program.tops)}: {len(self):,} entries>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Refused: kernels know where the tables lie, and would not come to an end in those of a copy."""
        raise ArgumentError(
            "a Maps can be neither pickled nor copied",
            why="its tables lie in the memory of this process, where kernels know them",
            remedy="make another of the program, `triggers.Maps(program)`, which follows the same events",
        )

    def __len__(self) -> int:
        """Entries in all tables."""
        return int(self.tables.desc[: len(self.lowered.twins), t.COUNT].sum())

    def entries(self, name: str) -> tuple[Ints, Ints]:
        """(keys int64[k, n], values int64[n]) of a map, in no order."""
        if name not in self.lowered.places:
            raise DataError(
                f"the program has no map {name!r}",
                why=f"its maps are {', '.join(self.lowered.places)}",
                remedy="give one of these names",
            )
        (table, value), desc = self.lowered.places[name], self.tables.desc
        keys = int(desc[table, t.KEYS])
        out = np.empty((keys + int(desc[table, t.VALUES]), int(desc[table, t.COUNT])), np.int64)
        t.read_entries(self.tables.mem, desc, table, out)
        here = out[keys + value] != 0
        return out[:keys, here], out[keys + value, here]

    def values(self, name: str, keys: Ints) -> Ints:
        """The values of keys int64[k, n] in a map, 0 where it has none."""
        out = np.empty(keys.shape[1], np.int64)
        t.read_values(self.tables.mem, self.tables.desc, *self.lowered.places[name], np.ascontiguousarray(keys.T), out)
        return out

    def value(self, place: TablePlace, key: Sequence[int]) -> int:
        """The value of one key in the map at a place, 0 where it has none."""
        out = np.empty(1, np.int64)
        t.read_values(self.tables.mem, self.tables.desc, *place, np.array([key], np.int64).reshape(1, -1), out)
        return int(out[0])

    def lines(self) -> Ints:
        """What the last run logged of all tables of top maps, in order: int64[n, OLD + 2 * values + keys]."""
        return self.work.log[: self.work.state[k.LOGGED]]

    def log(self, name: str, *, together: bool = False) -> LogLines:
        """What the last run changed in a top map, in order; `together`: also where only its twins changed."""
        lines = self.work.log[: self.work.state[k.LOGGED]]
        (table, value), desc = self.lowered.places[name], self.tables.desc
        old, first = k.OLD + 2 * value, k.OLD + 2 * int(desc[table, t.VALUES])
        lines = lines[lines[:, k.LOG_TABLE] == table]
        if not together:
            lines = lines[lines[:, old] != lines[:, old + 1]]
        keys = lines[:, first : first + int(desc[table, t.KEYS])].T
        return LogLines(lines[:, k.WHEN], keys, lines[:, old], lines[:, old + 1])

    def memory(self) -> int:
        """Bytes that the maps take. What was never written of their array is none: the system gives it when it is."""
        words = int(self.tables.top[0]) - (0 if self._mapping is None else self._given[1])
        return 8 * words + self.tables.trees.nodes.nbytes + self.work.additions.nbytes + self.work.log.nbytes

    def reserve(self, rows: int) -> None:
        """Make room in empty tables for the entries that are expected of `rows` rows, so that they need not grow."""
        desc, columns, estimates = self.tables.desc.copy(), self.tables.columns, self.program.estimates
        for twins, made in zip(self.lowered.twins, desc[: len(self.lowered.twins)], strict=True):
            for estimate in (estimates[name] for name in twins.names if name in estimates):
                size = min(estimate.size, rows)
                made[t.CAP] = max(made[t.CAP], _slots(size))
                for index in range(made[t.FIRST], made[t.FIRST] + made[t.SLICES]):
                    named = columns[index, : desc[index, t.KEYS]].tolist()
                    values = math.prod(estimate.distinct[key] for key in named)
                    desc[index, t.CAP] = max(desc[index, t.CAP], _slots(min(size, values)))
        self.tables = self.tables._replace(mem=np.zeros(0, np.int64), desc=desc)
        self._regions(0)
        self._packed = None

    def trim(self) -> None:
        """Give back slots that were expected to be needed, and what tables have left behind as they grew."""
        buffer = np.zeros(max(1, self.lowered.most_keys), np.int64)
        for table in range(len(self.lowered.twins)):
            while missing := t.shrink(self.tables, table, buffer):
                self._regions(int(missing))
        if self._mapping is not None:
            self._give_back()
        elif self.tables.top[0] > self.tables.desc[:, t.CAP] @ self.tables.desc[:, t.WIDTH]:
            self._regions(0)
        self._packed = None

    # -- room ---------------------------------------------------------------------------------------------------------

    def _regions(self, need: int) -> None:
        """Move all tables into a larger array that has room for `need` words more, without what they left behind."""
        # All is new until the last lines: Ctrl-C before them leaves the tables as they are, and among them only nothing
        # more is given back.
        old, desc = self.tables.mem, self.tables.desc.copy()
        sizes = desc[:, t.CAP] * desc[:, t.WIDTH]
        wanted, at = int(sizes.sum()) + need, 0
        mapping = None
        if wanted < RESERVED:
            mem = np.zeros(max(256, wanted + wanted // 2), np.int64)
        else:
            mapping, mem = reserved(max(256, AHEAD * wanted))
            if len(mem) < wanted:
                raise MemoryError(f"{8 * wanted:,} bytes needed for maps, {8 * len(mem):,} granted")
        for number, size in enumerate(sizes.tolist()):
            begin = int(desc[number, t.OFF])
            if len(old):
                mem[at : at + size] = old[begin : begin + size]
            desc[number, t.OFF] = at
            at += size
        tables = self.tables._replace(mem=mem, desc=desc, top=np.array([at], np.int64))
        self._mapping, self._given = None, (at, 0)
        self.tables = tables
        self._mapping = mapping

    def _give_back(self) -> None:
        """Give back to the system what tables have left behind in reserved memory as they grew, if it is much."""
        top, (until, _) = int(self.tables.top[0]), self._given
        if self._mapping is None or top - until < LEFT_BEHIND:
            return
        desc, given, end = self.tables.desc, 0, 0
        ends = desc[:, t.OFF] + desc[:, t.CAP] * desc[:, t.WIDTH]
        for number in np.argsort(desc[:, t.OFF]).tolist():
            given += give_back(self._mapping, end, int(desc[number, t.OFF]))
            end = int(ends[number])
        self._given = top, given


def _slots(entries: float) -> int:
    """Slots of a table that takes so many entries."""
    return max(t.LEAST, 1 << math.ceil(math.log2((entries + 1) * 10 / t.FULL)))


def _doubled(array: Ints) -> Ints:
    """The same rows with as many again."""
    made = np.zeros((2 * len(array), array.shape[1]), np.int64)
    made[: len(array)] = array
    return made
