"""Redoing subtrees: each task of a change is walked once, in the old trace or in the new, recording as it goes.

What is walked over the old versions is what leaves: its rows are erased, its records removed. What is walked over the
new ones enters. The walk is the one evaluation uses, kept to the subtree below the task's binding. A unit is walked on
both sides; where both find a witness, the caller sets the rows off against each other.
"""

from __future__ import annotations

from lftj.join.change_oracle import TASK_HEAD, UNIT
from lftj.join.expression_vm import FAILS
from lftj.join.join_state import DEPTH, ENTER, STAY, WRITTEN, Walk, write_row
from lftj.join.leapfrog import forget
from lftj.join.reposition import admit_above, is_plain, place
from lftj.join.trie import LEVEL, REGISTER, ask_for_key
from lftj.join.triejoin import ERROR, FINISHED, FULL, OPENING, tracing_triejoin
from scantree._jit import kernel

# Cells of `state`: the number of the task, whether it is under way
AT, UNDER_WAY = 0, 1
# Tasks between the one under way and the one whose pages are asked for
AHEAD = 3


@kernel
def _look_ahead(mem, frames, task):
    """Ask for the pages that the relations' first keys in the binding of `task` lie in."""
    for f in range(len(frames)):
        if frames[f, LEVEL] == 0 and frames[f, REGISTER] < task[1]:
            ask_for_key(mem, frames, f, task[TASK_HEAD + frames[f, REGISTER]])


@kernel
def redo(mem, walk, frames, trace, tasks, n_tasks, side, out, state, budget):
    """Walk the subtrees of the `n_tasks` tasks of one `side`, over its `frames`.

    Rows are written to `out`, records to `trace`.

    Stops as `triejoin` does (FINISHED, FULL, PAUSED, CROWDED, ERROR + status) and goes on from where `state` says.
    """
    n, plain = len(walk.depths), is_plain(walk)
    own = Walk(
        frames,
        walk.depths,
        walk.parts,
        walk.moves,
        walk.bounds,
        walk.blocks,
        walk.code,
        walk.regs,
        walk.head,
        walk.ranks,
        walk.control,
        walk.cell,
        walk.memo,
    )
    control = walk.control
    while state[AT] < n_tasks:
        task = tasks[state[AT]]
        if task[0] != side and task[0] != UNIT:
            state[AT] += 1
            continue
        d = task[1]
        if state[AT] + AHEAD < n_tasks:
            _look_ahead(mem, frames, tasks[state[AT] + AHEAD])
        if not state[UNDER_WAY]:
            if d == n and control[WRITTEN] >= out.shape[1]:
                return FULL
            for e in range(d):
                walk.regs[e] = task[TASK_HEAD + e]
            if not plain:
                stopped = admit_above(walk, d)
                if stopped > FAILS:
                    return ERROR + stopped
            if d == n:
                write_row(walk, out)
                state[AT] += 1
                continue
            place(mem, frames, walk, d)
            for e in range(d):
                forget(own, e)
            control[DEPTH], control[ENTER], control[STAY] = d, OPENING, d - 1
            state[UNDER_WAY] = 1
        status = tracing_triejoin(mem, own, trace, out, budget)
        if status != FINISHED:
            return status
        state[UNDER_WAY] = 0
        state[AT] += 1
    return FINISHED
