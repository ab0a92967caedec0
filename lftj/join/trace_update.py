"""Maintaining a trace: from a change to the rows and records that go and come, as one kernel in four stages.

    FIND     what the change concerns: tasks, and states to resume (change_oracle.py)
    REPAIR   the states, in key order; this brings up more tasks (repair.py)
    ERASE    the tasks of the old trace are walked: what leaves (subtree.py)
    INSERT   the tasks of the new trace are walked: what enters

Like the walk it can be stopped and taken up again anywhere: its state is in its arguments. A change of one row goes
through all stages in one call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.join.change_oracle import CURSOR, GONE, N_STATES, N_TASKS, N_UNITS, NEW, OLD, UNIT, concern
from lftj.join.join_state import WRITTEN
from lftj.join.repair import STATE, TASKS, repair, same_row, sort_states
from lftj.join.subtree import redo
from scantree._jit import kernel

Ints = npt.NDArray[np.int64]

# Stages
FIND, REPAIR, ERASE, INSERT, DONE = 0, 1, 2, 3, 4
# Statuses; larger ones are those of the machine plus ERROR. FULL: `tasks`, `states` or `order` is too small, or `out`
# is to be emptied; CROWDED: the records of a side are to be drained.
FINISHED, FULL, PAUSED, CROWDED, ERROR = 0, 1, 2, 4, 16
# Where the parts of `cells` begin: the stage, the side whose rows are in `out`, then the states of the other kernels,
# then scratch: three times the words of a record
STAGE, SIDE, CURSOR_AT, REPAIR_AT, REDO_AT = 0, 1, 8, 8 + CURSOR, 8 + CURSOR + STATE
ROWS_AT = 8 + CURSOR + STATE + 8


class Work(NamedTuple):
    """What a maintenance run works with.

    deltas int64[...]: the changes (concern.concern) · tasks int64[t, n + 2] · states int64[s, n + 4] · order int64[2,
    s]: their order, and scratch · cells int64[ROWS_AT + 3 * w]: where the run is, with room for
    records of w words.
    """

    deltas: Ints
    tasks: Ints
    states: Ints
    order: Ints
    cells: Ints


@kernel
def _drop_repeats(tasks, order, spare, n):
    """Of equal units among the first `n` tasks keep one. `order`, `spare` int64[n]: scratch."""
    sort_states(tasks, order, spare, n)
    for k in range(1, n):
        if tasks[order[k - 1], 0] == UNIT and same_row(tasks, order[k - 1], order[k], 0, tasks.shape[1]):
            tasks[order[k - 1], 0] = GONE


@kernel
def maintain(mem, walk, old, new, old_trace, new_trace, work, out, budget):
    """Go on maintaining; FINISHED when all is done.

    `walk` is over the new versions; `old`, `new`: its frames over the versions before and after. Rows are written to
    `out`: in stage ERASE those that go, in stage INSERT those that come; the caller empties it when told that it is
    FULL. `cells[SIDE]` says whose they are.
    """
    cells, tasks, states = work.cells, work.tasks, work.states
    cursor, state = cells[CURSOR_AT : CURSOR_AT + CURSOR], cells[REPAIR_AT : REPAIR_AT + STATE]
    if cells[STAGE] == FIND:
        most = (len(cells) - ROWS_AT) // 3
        rows = cells[ROWS_AT : ROWS_AT + 2 * most].reshape((2, most))
        words = cells[ROWS_AT + 2 * most :]
        status = concern(mem, walk, old, new, old_trace, work.deltas, tasks, states, cursor, rows, words, budget)
        if status != FINISHED:
            return status
        if cursor[N_STATES] > work.order.shape[1]:
            return FULL
        if cursor[N_UNITS] > 0:
            if cursor[N_TASKS] > work.order.shape[1]:
                return FULL
            _drop_repeats(tasks, work.order[0], work.order[1], cursor[N_TASKS])
            cursor[N_UNITS] = 0
        if cursor[N_STATES] > 0:
            sort_states(states, work.order[0], work.order[1], cursor[N_STATES])
        state[TASKS] = cursor[N_TASKS]
        cells[STAGE] = REPAIR
    if cells[STAGE] == REPAIR:
        status = repair(
            mem, old, new, walk, old_trace, new_trace, states, work.order[0], cursor[N_STATES], tasks, state, budget
        )
        if status != FINISHED:
            return status
        cells[STAGE] = ERASE
    while cells[STAGE] < DONE:
        side = OLD if cells[STAGE] == ERASE else NEW
        under = cells[REDO_AT : REDO_AT + 2]
        cells[SIDE] = side
        status = redo(
            mem,
            walk,
            old if side == OLD else new,
            old_trace if side == OLD else new_trace,
            tasks,
            state[TASKS],
            side,
            out,
            under,
            budget,
        )
        if status != FINISHED:
            return status
        cells[STAGE] += 1
        under[0] = under[1] = 0
        if walk.control[WRITTEN] > 0:
            return FULL
    return FINISHED
