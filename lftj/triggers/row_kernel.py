"""One row: its events, and what these make of the head's rows, in one call.

A transaction of one row is mostly calls. So where nothing is computed of a row, and the count and the sum of a group
are in one table, a kernel does all from the changed row to the changed rows of the head:

    measure    values that statements compute with are no larger than any before, or UNMEASURED: nothing was done
    events     one for each derived relation of the row's relation; `event_kernel.run_events` runs them
    rows       of what the run logged, by group, the count and the sum before and after: the rows of groups that have
               bindings and changed, in key order; or OTHERWISE: they take more than this

`RowPlan` says what this needs of a head and of one of its relations, and has the arrays that it is done in. What many
rows logged becomes rows of the head in the same way (`net_change`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.store.change import Change
from lftj.triggers.derived_relations import Events, Magnitudes
from lftj.triggers.event_kernel import (
    DONE,
    KEY_MAX,
    KEY_MIN,
    LOGGED,
    OLD,
    EventCode,
    EventWork,
    run_events,
)
from lftj.triggers.order_kernel import Trees
from lftj.triggers.table_kernel import Tables
from scantree._jit import kernel
from scantree.packed import PackedArguments, table_at, words_at
from scantree.sort import sorting

Ints = npt.NDArray[np.int64]

# Lines of the log that are read one by one: groups that a row may change here.
FEW = 24
# What a call says beside the number of rows; a run that stopped is its status, negative.
UNMEASURED, OTHERWISE = -100, -101
# Cells of a plan: which values of the table are the count and the sum (-1: there is none), how many it has; how many
# keys; the bounds of what is counted or summed.
COUNT, TOTAL, VALUES, KEYS, LOW, HIGH = range(6)
# Of each derived relation: the kinds of its events, how many columns it has, and from COLUMNS on which they are.
INSERTION, DELETION, WIDTH, COLUMNS = range(4)


def packed_maps(tables: Tables, code: EventCode, work: EventWork) -> PackedArguments:
    """All that a run of events is about, as `run_packed` takes it."""
    return PackedArguments(*tables[:-1], *tables.trees, *code, *work)


@kernel
def run_packed(packed, kinds, rows, upto, most, logs):
    """`run_events` over what `packed_maps` packed."""
    trees = Trees(words_at(packed, 4), words_at(packed, 5), table_at(packed, 6))
    tables = Tables(words_at(packed, 0), table_at(packed, 1), table_at(packed, 2), words_at(packed, 3), trees)
    code = EventCode(
        table_at(packed, 7),
        words_at(packed, 8),
        words_at(packed, 9),
        words_at(packed, 10),
        table_at(packed, 11),
        words_at(packed, 12),
        words_at(packed, 13),
    )
    work = EventWork(
        words_at(packed, 14),
        words_at(packed, 15),
        words_at(packed, 16),
        words_at(packed, 17),
        table_at(packed, 18),
        words_at(packed, 19),
        table_at(packed, 20),
        table_at(packed, 21),
        words_at(packed, 22),
    )
    return run_events(tables, code, work, kinds, rows, upto, most, logs)


LOG_AT, STATE_AT = 21, 22


@kernel
def _is_measured(most, row):
    """Whether the values of int64[arity, 1] are, in absolute value, at most `most` int64[n, 2]: (column, value)."""
    for i in range(len(most)):
        value = row[most[i, 0], 0]
        if value == KEY_MIN or abs(value) > most[i, 1]:
            return False
    return True


@kernel
def _compare(log, a, b, first, keys):
    """How the group of one line compares with that of another."""
    for j in range(first, first + keys):
        if log[a, j] != log[b, j]:
            return -1 if log[a, j] < log[b, j] else 1
    return 0


@kernel
def net_rows(cells, log, order, n, rows, signs):
    """What `n` lines of a log change about the head: `rows` int64[keys + 1, ...] in key order, with their `signs`.

    `order`: the lines by group, those of a group in order. How many rows, or OTHERWISE.
    """
    keys, first, at, m = cells[KEYS], OLD + 2 * cells[VALUES], 0, 0
    count_at, total_at = OLD + 2 * cells[COUNT], OLD + 2 * cells[TOTAL]
    while at < n:
        begin = order[at]
        end = begin
        at += 1
        while at < n and _compare(log, order[at], begin, first, keys) == 0:
            end = order[at]
            at += 1
        had, has = log[begin, count_at], log[end, count_at + 1]
        was, now = had, has
        if cells[TOTAL] >= 0:
            was, now = log[begin, total_at], log[end, total_at + 1]
        if had > 0 and has > 0 and was == now:
            continue
        for side in range(2):
            # Of one group the lesser row is the first.
            late = side == 1 if was <= now or had <= 0 or has <= 0 else side == 0
            count, result = (has, now) if late else (had, was)
            if count <= 0:
                continue
            if result < cells[LOW] or result > cells[HIGH]:
                return OTHERWISE
            for j in range(keys):
                rows[j, m] = log[begin, first + j]
            rows[keys, m], signs[m] = result, 1 if late else -1
            m += 1
    return m


@kernel
def follow_row(maps, plan, row, sign, begins):
    """Run the events of a row int64[arity, 1], or go on with them, and write what changes about the head.

    `maps`: of `packed_maps` · `plan`: of `RowPlan` · `sign`: 1 or -1. How many rows of the head go and come, or why not
    so: negative, the status of the run, UNMEASURED or OTHERWISE.
    """
    cells, kinds, events, rows, signs, order = (
        words_at(plan, 0),
        words_at(plan, 1),
        table_at(plan, 2),
        table_at(plan, 3),
        words_at(plan, 4),
        words_at(plan, 5),
    )
    if begins:
        words_at(maps, STATE_AT)[:] = 0
        if not _is_measured(table_at(plan, 7), row):
            return UNMEASURED
        relations = table_at(plan, 6)
        for r in range(len(relations)):
            kinds[r] = relations[r, INSERTION if sign > 0 else DELETION]
            for c in range(relations[r, WIDTH]):
                events[r, c] = row[relations[r, COLUMNS + c], 0]
    status = run_packed(maps, kinds, events, len(kinds), KEY_MAX >> 1, True)
    if status != DONE:
        return -status
    log, n = table_at(maps, LOG_AT), words_at(maps, STATE_AT)[LOGGED]
    if n > FEW:
        return OTHERWISE
    first = OLD + 2 * cells[VALUES]
    for line in range(n):
        at = line
        while at > 0 and _compare(log, line, order[at - 1], first, cells[KEYS]) < 0:
            order[at] = order[at - 1]
            at -= 1
        order[at] = line
    return net_rows(cells, log, order, n, rows, signs)


def order_by_group(lines: Ints, values: int, keys: int) -> Ints:
    """The lines of one table, with so many values and keys, by group; those of a group in order."""
    first = OLD + 2 * values
    return sorting(np.ascontiguousarray(lines[:, first : first + keys].T))[0] if keys else np.arange(len(lines))


def net_change(cells: Ints, lines: Ints, order: Ints) -> Change | None:
    """The change of a head by the lines of a log, by group in `order`; None if it takes more than `cells` say."""
    n = len(lines)
    rows, signs = np.empty((int(cells[KEYS]) + 1, 2 * n), np.int64), np.empty(2 * n, np.int8)
    found = int(net_rows(cells, lines, order, n, rows, signs))
    return None if found == OTHERWISE else Change(rows[:, :found].copy(), signs[:found])


class RowRelation(NamedTuple):
    """A derived relation: the kinds of its events, and the `columns` of the relation below that it has."""

    insertion: int
    deletion: int
    columns: Sequence[int]


class RowPlan:
    """What `follow_row` needs for rows of one relation.

    `cells`: of the plan · `relations`: those derived of it, in the order of their events · `width`: of events ·
    `measured`: the columns that statements compute with, each with the variable that it is there · `happened`: the
    events of the last row.
    """

    def __init__(
        self, cells: Ints, relations: Sequence[RowRelation], width: int, measured: Sequence[tuple[int, str]]
    ) -> None:
        self._measured = tuple(measured)
        self._most = np.array([(column, -1) for column, _ in measured], np.int64).reshape(-1, 2)
        self.kinds, self.events = np.zeros(len(relations), np.int64), np.zeros((len(relations), width), np.int64)
        self.rows, self.signs = np.zeros((cells[KEYS] + 1, 2 * FEW), np.int64), np.zeros(2 * FEW, np.int64)
        known = np.zeros((len(relations), COLUMNS + max(len(made.columns) for made in relations)), np.int64)
        for made, line in zip(relations, known, strict=True):
            line[:COLUMNS] = made.insertion, made.deletion, len(made.columns)
            line[COLUMNS : COLUMNS + len(made.columns)] = made.columns
        self.packed = PackedArguments(
            cells, self.kinds, self.events, self.rows, self.signs, np.zeros(FEW, np.int64), known, self._most
        )
        self.happened = Events(self.kinds, self.events, np.zeros(len(relations), np.int64))

    def measure(self, row: Ints, magnitudes: Magnitudes) -> None:
        """Take a row int64[arity, 1] into account. Raises `NoEvents` if a term could leave its type."""
        for i, (column, name) in enumerate(self._measured):
            magnitudes.take(name, abs(int(row[column, 0])))
            self._most[i, 1] = magnitudes.most(name)

    def change(self, found: int) -> Change:
        """The change of the head, after `follow_row` said that so many rows go and come."""
        if not found:
            return Change.none(len(self.rows))
        return Change(self.rows[:, :found].copy(), self.signs[:found].astype(np.int8))
