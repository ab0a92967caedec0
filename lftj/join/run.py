"""Running a walk: in slices, so that Ctrl-C, time-outs, limits and progress are looked at ten times a second or more.

The kernel holds no lock and cannot be interrupted; it gives back control after `SLICE` steps or when the output
buffer is full, with all its state in the walk. Between two slices Python runs signal handlers (a KeyboardInterrupt
leaves the database as it was: nothing is published before the end), compares the clock with the deadline and the rows
with the limit, and lets the progress line move.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError, TimeoutExpired
from lftj.join import expression_vm, triejoin
from lftj.join import join_state as cells

SLICE = 1 << 20
BUFFER_ROWS = 1 << 16
# Rows that are held back at most from who takes them, while a walk may still be abandoned.
HELD_ROWS = 1 << 20
NO_END = np.iinfo(np.int64).max


# Of a progress line: what is told (how many, of what, in which stage).
Told = Callable[[int, str, str], None]


@dataclass(slots=True)
class Limits:
    """What a caller allows.

    `deadline` on `time.monotonic`'s clock, and a function told between slices: how many, of what, and in which stage.
    What is counted are `unit`, of which there were so many `before` the walk that looks. `most`: from how many on the
    walk is given up.
    """

    deadline: float | None = None
    timeout: float | None = None
    progress: Told | None = None
    unit: str = "rows"
    stage: str = ""
    before: int = 0
    most: float = math.inf

    @classmethod
    def within(cls, timeout: float | None, progress: Told | None = None) -> Limits:
        """Limits that expire `timeout` seconds from now (None: never)."""
        return cls(None if timeout is None else time.monotonic() + timeout, timeout, progress)

    def count(self, unit: str, before: int, stage: str = "") -> None:
        """From here on `unit` are counted."""
        self.unit, self.before, self.stage = unit, before, stage

    def look(self, rows: int) -> None:
        """Raise `TimeoutExpired` if the time is up; tell the progress line."""
        rows += self.before
        if rows > self.most:
            raise TooManyRows
        if self.deadline is not None and time.monotonic() > self.deadline:
            unit = self.unit.replace("rows", "row") if rows == 1 else self.unit
            raise TimeoutExpired(
                f"the time limit of {self.timeout:g} s ran out after {rows:,} {unit}",
                why="evaluation was stopped; the database is as it was before",
                remedy="raise `timeout=`, or look at `explain()` for a cheaper key order",
            )
        if self.progress is not None:
            self.progress(rows, self.unit, self.stage)


@dataclass(slots=True)
class Counters:
    """What a walk did.

    `steps` of leapfrog joins, `seeks` (steps and the landings of opened nodes), `opens` (nodes), `rows` out, `matches`
    per depth. `ranges` of the first variable that were walked beside each other (1: it was one walk). `abandoned`:
    steps of walks that were abandoned before this one (lftj/evaluate/overdue.py).
    """

    steps: int = 0
    seeks: int = 0
    opens: int = 0
    rows: int = 0
    matches: tuple[int, ...] = ()
    ranges: int = 1
    abandoned: int = 0


class TooManyRows(Exception):
    """A walk has found more rows than its limits allow: it is given up."""


class Overdue(Exception):
    """A walk has taken more steps than it was given; it may go on."""


class Run:
    """One execution of a walk. Iterate `chunks()` for rows, or call `count()`; `counters` are complete afterwards.

    A walk that takes more steps than `most` raises `Overdue`. With a larger `most` the same call goes on where it was.
    """

    def __init__(
        self,
        mem: npt.NDArray[np.int64],
        walk: cells.Walk,
        prelude: npt.NDArray[np.int64],
        limits: Limits,
        describe: Callable[[npt.NDArray[np.int64]], str],
        *,
        buffer_rows: int = BUFFER_ROWS,
    ) -> None:
        self.mem, self.walk, self.limits, self.describe = mem, walk, limits, describe
        self.counters = Counters()
        self._buffer_rows = buffer_rows
        self.keeps: tuple[object, ...] = ()  # versions and tables the walk reads
        self.most = NO_END
        self._rows_done, self._out = 0, np.empty((len(walk.head), 0), np.int64)
        self._held: list[npt.NDArray[np.int64]] = []
        expression_vm.run_code(prelude, 0, len(prelude), walk.regs, walk.ranks, walk.cell)

    @property
    def saw_undefined(self) -> bool:
        """Whether a term had no value so far."""
        return bool(self.walk.cell[expression_vm.NO_VALUE])

    @property
    def steps(self) -> int:
        """Steps walked so far."""
        return int(self.walk.control[cells.STEPS])

    def _slices(self, rows: int) -> Iterator[int]:
        """The status after each slice that filled the buffer, of so many `rows`, or finished.

        `_out` is the buffer that is written to; whoever takes it away puts a new one there.
        """
        control = self.walk.control
        if not self._out.shape[1]:
            self._out = np.empty((len(self.walk.head), rows), np.int64)
        # Short slices first: small answers come at once, and a long one is noticed early.
        budget = SLICE >> 4
        while True:
            if (left := self.most - self.steps) <= 0:
                raise Overdue
            status = triejoin.triejoin(self.mem, self.walk, self._out, min(budget, left))
            if status == triejoin.OVERFLOW:
                raise EvaluationError(
                    "the count exceeds the int64 range",
                    where=self.describe(self.walk.regs),
                    why="counts are multiplied, not enumerated, and can be larger than any answer that could be listed",
                    remedy="count parts of the body separately",
                )
            if status != triejoin.PAUSED:
                self._rows_done += int(control[cells.WRITTEN])
                yield status
                control[cells.WRITTEN] = 0
            if status == triejoin.FINISHED:
                break
            self.limits.look(self._rows_done + int(control[cells.WRITTEN]))
            budget = SLICE
        steps = int(control[cells.STEPS])
        self.counters = Counters(
            steps,
            steps + int(control[cells.LANDED]),
            int(control[cells.OPENS]),
            self._rows_done,
            tuple(self.walk.depths[:, cells.MATCHES].tolist()),
        )

    def count(self) -> int:
        """Number of bindings; nothing is written anywhere."""
        for _ in self._slices(1):
            pass
        self.counters.rows = int(self.walk.blocks[0, cells.COUNT])
        return self.counters.rows

    def chunks(self) -> Iterator[npt.NDArray[np.int64]]:
        """Rows as arrays int64[columns, n] in the order of the walk, each the caller's to keep."""
        for status in self._slices(self._buffer_rows):
            if status == triejoin.FULL:
                full, self._out = self._out, np.empty_like(self._out)
                yield full
            elif n := int(self.walk.control[cells.WRITTEN]):
                yield self._out[:, :n].copy()

    def give(self, emit: Callable[[npt.NDArray[np.int64]], None]) -> None:
        """Give the rows to `emit`, none before it is certain that the walk is not abandoned: it finds many, or ends."""
        for chunk in self.chunks():
            self._held.append(chunk)
            if self.most == NO_END or sum(held.shape[1] for held in self._held) > HELD_ROWS:
                self.most = NO_END
                self._release(emit)
        self._release(emit)

    def _release(self, emit: Callable[[npt.NDArray[np.int64]], None]) -> None:
        for chunk in self._held:
            emit(chunk)
        self._held.clear()


def walk_once(
    mem: npt.NDArray[np.int64], walk: cells.Walk, prelude: npt.NDArray[np.int64], out: npt.NDArray[np.int64]
) -> bool:
    """The first slice of a walk, its rows in `out[:, : control[WRITTEN]]`; whether it is done.

    For walks that are short as a rule, of which a `Run` would take longer to set up. If it is not done a `Run` goes on
    once the rows are taken out of `out` and WRITTEN is 0.
    """
    if len(prelude):
        expression_vm.run_code(prelude, 0, len(prelude), walk.regs, walk.ranks, walk.cell)
    status: int = triejoin.triejoin_anew(mem, walk, out, SLICE >> 4)
    return status == triejoin.FINISHED
