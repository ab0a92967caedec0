"""Ranges of a join's first variable: a walk cut into parts that threads walk beside each other.

The plan says where to cut (lftj/plan/cuts.py). Every range has a walk of its own (all that a walk writes is copied),
kept to the range by two bounds more on its first variable, as a comparison of the rule would.

The ranges are in key order, so their rows, range by range, are the rows of the undivided walk in its order. What the
counters say is the same too, as long as one atom takes part at the first depth; with several, the leapfrog joins of the
ranges begin in a state of their own, and take up to a few steps per atom and range more or less.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lftj.join import expression_vm, triejoin
from lftj.join import join_state as cells
from lftj.join.run import NO_END, SLICE, Counters, Overdue, Run
from lftj.join.trie import KEY_MAX, KEY_MIN
from scantree.crew import LOOK, Crew, Shift, apart

Ints = npt.NDArray[np.int64]

# A count beyond which one walk is asked whether it can count as far.
MOST = 9.2e18


def _bounded(walk: cells.Walk) -> cells.Walk:
    """`walk` with two bounds more on its first depth: the last two registers, set to admit every key."""
    depths, registers = walk.depths.copy(), len(walk.regs)
    own = walk.bounds[depths[0, cells.BOUND_LO] : depths[0, cells.BOUND_HI]]
    more = np.array([[cells.FROM_LIMIT, registers], [cells.TO_LIMIT, registers + 1]], np.int64)
    bounds = np.concatenate([walk.bounds, own, more])
    depths[0, cells.BOUND_LO], depths[0, cells.BOUND_HI] = len(walk.bounds), len(bounds)
    regs = np.concatenate([walk.regs, np.array([KEY_MIN, KEY_MAX], np.int64)])
    return walk._replace(depths=depths, bounds=bounds, regs=regs)


def _begin(walk: cells.Walk, pristine: cells.Walk, low: int, high: int) -> None:
    """Put `walk` at the beginning of range [low, high]."""
    for name in ("frames", "depths", "regs", "blocks", "control"):
        np.copyto(getattr(walk, name), getattr(pristine, name))
    walk.regs[-2:] = low, high


class CutRun(Run):
    """A run whose walk is cut into ranges, by a crew. `cut`: make it so, before it begins."""

    def cut(self, crew: Crew, cuts: Ints) -> None:
        """Walk the ranges that begin at the least key and at `cuts` beside each other."""
        self._crew = crew
        lows = [KEY_MIN, *cuts.tolist()]
        self._ranges = list(zip(lows, [*(low - 1 for low in lows[1:]), KEY_MAX], strict=True))
        self._pristine = _bounded(self.walk)
        n = len(self._ranges)
        self._rows, self._overflow = [0] * n, False
        self._done: list[Counters | None] = [None] * n
        self._chunks: list[deque[Ints]] = [deque() for _ in range(n)]
        # Ranges that were stopped within, with their walk, its buffer, and the rows that were taken from there.
        self._paused: dict[int, tuple[cells.Walk, Ints, int]] = {}
        self._steps, self._given = [0] * n, 0

    @property
    def steps(self) -> int:
        """Steps of all ranges so far."""
        return sum(self._steps)

    def _work(self, i: int, shift: Shift, todo: Iterator[int]) -> None:
        """Walk one range after the other, until all of them have taken more steps than `most`."""
        start = self._pristine
        counting = bool(start.control[cells.COUNTING])
        fresh = (start.frames, start.depths, start.regs, start.blocks, start.control)
        frames, depths, regs, blocks, control = (apart(part) for part in fresh)
        own = start._replace(
            frames=frames,
            depths=depths,
            regs=regs,
            blocks=blocks,
            control=control,
            cell=apart(start.cell),
            memo=apart(start.memo),
        )
        shape = (len(own.head), 1 if counting else self._buffer_rows)
        buffer = np.empty(shape, np.int64)
        while not shift.stopped and (r := next(todo, None)) is not None:
            walk, out, done = self._paused.pop(r, (own, buffer, -1))
            if done < 0:
                _begin(walk, start, *self._ranges[r])
                done = 0
            control, status = walk.control, triejoin.PAUSED
            while status != triejoin.FINISHED and not shift.stopped:
                status = triejoin.triejoin(self.mem, walk, out, min(SLICE, self.most))
                n = int(control[cells.WRITTEN])
                if status == triejoin.OVERFLOW:
                    self._overflow = shift.stopped = True
                elif status == triejoin.FULL:
                    self._chunks[r].append(out)
                    out = np.empty(shape, np.int64)
                elif status == triejoin.FINISHED and n:
                    self._chunks[r].append(out[:, :n].copy())
                if status != triejoin.PAUSED:
                    done += n
                    control[cells.WRITTEN] = 0
                self._rows[r], self._steps[r] = done + int(control[cells.WRITTEN]), int(control[cells.STEPS])
                if self.steps > self.most:
                    shift.stopped = True
                if status == triejoin.FULL:
                    shift.tell()
            if walk.cell[expression_vm.NO_VALUE]:
                self.walk.cell[expression_vm.NO_VALUE] = walk.cell[expression_vm.NO_VALUE]
            if status != triejoin.FINISHED:
                self._paused[r] = walk, out, done
                break
            if walk is own:
                buffer = out
            steps = int(control[cells.STEPS])
            self._done[r] = Counters(
                steps,
                steps + int(control[cells.LANDED]),
                int(control[cells.OPENS]),
                int(walk.blocks[0, cells.COUNT]) if counting else done,
                tuple(walk.depths[:, cells.MATCHES].tolist()),
            )
            shift.tell()

    def _shift(self) -> Shift:
        """The ranges that are left, walked from where they are."""
        todo = iter([r for r, counters in enumerate(self._done) if counters is None])
        return self._crew.shift(lambda i, shift: self._work(i, shift, todo))

    def _add_up(self) -> None:
        """The counters of the walk as if it had not been cut: it opens its first node once, and meets its end once."""
        done = [counters for counters in self._done if counters is not None]
        again = max(0, sum(counters.opens > 0 for counters in done) - 1)
        walked = sum(counters.steps > 0 for counters in done)
        landed = int(self.walk.depths[0, cells.PART_HI] - self.walk.depths[0, cells.PART_LO]) * again
        steps = sum(counters.steps for counters in done) - max(0, walked - 1)
        seeks = sum(counters.seeks - counters.steps for counters in done) - landed + steps
        self.counters = Counters(
            steps,
            seeks,
            sum(counters.opens for counters in done) - again,
            sum(counters.rows for counters in done),
            tuple(map(sum, zip(*(counters.matches for counters in done), strict=True))),
            len(done),
        )

    def count(self) -> int:
        """Number of bindings; nothing is written anywhere."""
        with self._shift() as shift:
            while not shift.over:
                self.limits.look(0)
                shift.wait(LOOK)
        if not self._overflow:
            if None in self._done:
                raise Overdue
            self._add_up()
            if self.counters.rows <= MOST:
                return self.counters.rows
        # The error is that of the undivided walk, which says where it happened.
        self.most = NO_END
        return super().count()

    def chunks(self) -> Iterator[Ints]:
        """Rows as arrays int64[columns, n] in the order of the walk, each the caller's to keep."""
        while self._given < len(self._ranges):
            with self._shift() as shift:
                yield from self._walked(shift)
            # Whoever took the rows may have put the end off.
            if self._given < len(self._ranges) and self.steps > self.most:
                raise Overdue
        self._add_up()

    def _walked(self, shift: Shift) -> Iterator[Ints]:
        """The chunks of ranges, each when those before it are done, until all are or the workers stopped."""
        while self._given < len(self._ranges):
            self.limits.look(sum(self._rows))
            stopped, ended = shift.stopped, self._done[self._given] is not None
            while self._chunks[self._given]:
                yield self._chunks[self._given].popleft()
            if ended:
                self._given += 1
            elif stopped:
                shift.wait(0.0)  # raises what a worker raised
                break
            else:
                shift.wait(LOOK)
