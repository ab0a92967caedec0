"""The rows of groups: which run of a version they are, its ends, and its fold.

A version whose key order begins with the columns of a group holds each group's rows as one run. Where the next column
is what is folded, the run's ends are the least and the greatest value; else a scan (scantree.scan) folds the run.
Either takes O(log n) steps, whatever the run's length.

*Steps* are the halvings of the bisections that seek a run, and the entries and rows that are folded.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
sections 2.3.3 and 3.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel
from scantree.cursor import copy_range, count_range, seek_lub, seek_past, unpack
from scantree.layout import DIRS, dir_count, dir_of
from scantree.scan import LOW, SUM, combine, fold_range, fold_run, seek_sum
from scantree.version import Version

Ints = npt.NDArray[np.int64]


@kernel
def seek_groups(mem, root, shape, groups, lo, hi):
    """`lo`, `hi` int64[m]: the runs of the rows that begin with `groups` int64[m, k], k of 0 to all keys.

    Returns the steps.
    """
    halvings, dirs = shape.dir_bits + shape.page_bits + 1, mem[root + DIRS]
    while dirs > 0:
        halvings, dirs = halvings + 1, dirs >> 1
    for j in range(len(groups)):
        lo[j] = seek_lub(mem, root, shape, groups[j])
        hi[j] = seek_past(mem, root, shape, groups[j])
    return 2 * halvings * len(groups)


@kernel
def read_ends(mem, root, shape, lo, hi, column, last, values):
    """`values` int64[m]: what `column` holds in the first row of each run, or with `last` in the last one.

    `lo`, `hi` int64[m]: the runs; nothing is written for an empty one.
    """
    fan = 1 << shape.dir_bits
    for j in range(len(lo)):
        if lo[j] >= hi[j]:
            continue
        d, s, p = unpack(shape, hi[j] if last else lo[j])
        if last:
            if p == 0 and s == 0:
                d -= 1
                s = dir_count(mem, root, d)
            if p == 0:
                s -= 1
                p = mem[dir_of(mem, root, d) + fan + s]
            p -= 1
        values[j] = mem[mem[dir_of(mem, root, d) + s] + (column << shape.page_bits) + p]


@kernel
def fold_runs(mem, root, shape, lo, hi, looked, values):
    """`values` int64[m]: the folds of the runs from `lo` to `hi` int64[m], by the version's scan; 0 of a sum too large.

    `looked` int64[2]: as in `fold_range`.
    """
    for j in range(len(lo)):
        values[j], _ = fold_range(mem, root, shape, lo[j], hi[j], looked)


@kernel
def read_ranked(mem, root, shape, lo, hi, ranks, column, looked, values):
    """`values` int64[m]: what `column` holds in the row of each run that has the rank `ranks` int64[m] there.

    Ranks begin at 0, and a row has as many of them as it adds to the version's scan, a SUM. `lo`, `hi` int64[m]: the
    runs; nothing is written for an empty one. `looked` as for `fold_run`.
    """
    for j in range(len(lo)):
        if lo[j] >= hi[j]:
            continue
        high, low = fold_run(mem, root, shape, np.int64(0), lo[j], looked)
        high, low = combine(SUM, high, low, ranks[j] >> 32, ranks[j] & LOW)
        d, s, p = unpack(shape, seek_sum(mem, root, shape, high, low, looked))
        values[j] = mem[mem[dir_of(mem, root, d) + s] + (column << shape.page_bits) + p]


@kernel
def add_up_counts(starts, counts, numbers):
    """`numbers` int64[m]: the sums of `counts` int64[n], at least 1 each, by group; 0 of one beyond 64 bits."""
    # Groups begin at `starts` int64[m], one behind the other.
    for j in range(len(starts)):
        end, total = starts[j + 1] if j + 1 < len(starts) else len(counts), np.int64(0)
        for i in range(starts[j], end):
            total += counts[i]
            if total < 0:
                total = np.int64(0)
                break
        numbers[j] = total


@kernel
def rows_of_ranks(starts, counts, ranks, at):
    """`at` int64[m]: which rows have `ranks` int64[m] in the groups that begin at `starts` int64[m].

    `counts` int64[n]: how many ranks each row has, at least one; each group has a row of its rank.
    """
    for j in range(len(starts)):
        i = starts[j]
        left = ranks[j] - counts[i]
        while left >= 0:
            i += 1
            left -= counts[i]
        at[j] = i


@kernel
def count_runs(mem, root, shape, lo, hi, ends):
    """The number of rows in all runs from `lo` to `hi` int64[m]; `ends` int64[m]: in each run and those before."""
    count = np.int64(0)
    for j in range(len(lo)):
        count += count_range(mem, root, shape, lo[j], hi[j])
        ends[j] = count
    return count


@kernel
def copy_runs(mem, root, shape, lo, hi, ends, out):
    """The rows of the runs into `out` int64[cols, n], each up to where `ends` says."""
    begin = np.int64(0)
    for j in range(len(lo)):
        copy_range(mem, root, shape, lo[j], hi[j], out[:, begin : ends[j]])
        begin = ends[j]


def counts_by_group(starts: Ints, counts: Ints) -> Ints:
    """The sums of the counts of each group: as for `add_up_counts`, int64[m]."""
    numbers = np.empty(len(starts), np.int64)
    add_up_counts(starts, counts, numbers)
    return numbers


def places_of_ranks(starts: Ints, counts: Ints, ranks: Ints) -> Ints:
    """Where the rows of `ranks` are: as for `rows_of_ranks`, int64[m]."""
    at = np.empty(len(starts), np.int64)
    rows_of_ranks(starts, counts, ranks, at)
    return at


class Runs(NamedTuple):
    """The runs of some groups in a version: positions `lo`, `hi` int64[m], and the `steps` they took."""

    version: Version
    lo: Ints
    hi: Ints
    steps: int

    @classmethod
    def of(cls, version: Version, groups: Ints) -> Runs:
        """The runs of `groups` int64[k, m], the first k columns of the version's key order."""
        lo, hi = np.empty(groups.shape[1], np.int64), np.empty(groups.shape[1], np.int64)
        space, shape = version.store.arena.space, version.store.shape
        steps = seek_groups(space.mem, version.root, shape, np.ascontiguousarray(groups.T), lo, hi)
        return cls(version, lo, hi, int(steps))

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        """Which of the groups have rows."""
        return self.lo < self.hi

    def ends(self, column: int, *, last: bool) -> Ints:
        """What a column of the version holds in the first row of each run, or in the last; 0 for an empty run."""
        values = np.zeros(len(self.lo), np.int64)
        space, shape = self.version.store.arena.space, self.version.store.shape
        read_ends(space.mem, self.version.root, shape, self.lo, self.hi, column, last, values)
        return values

    def folds(self) -> tuple[Ints, int]:
        """(the fold of each run by the version's scan, the steps that took)."""
        values, looked = np.empty(len(self.lo), np.int64), np.zeros(2, np.int64)
        space, shape = self.version.store.arena.space, self.version.store.shape
        fold_runs(space.mem, self.version.root, shape, self.lo, self.hi, looked, values)
        return values, int(looked.sum())

    def ranked(self, column: int, ranks: Ints) -> tuple[Ints, int]:
        """(what a column holds in the row of each run with rank `ranks` int64[m], as for `read_ranked`; the steps)."""
        values, looked = np.zeros(len(self.lo), np.int64), np.zeros(2, np.int64)
        space, shape = self.version.store.arena.space, self.version.store.shape
        read_ranked(space.mem, self.version.root, shape, self.lo, self.hi, ranks, column, looked, values)
        return values, int(looked.sum())

    def rows(self) -> Ints:
        """The rows of all runs, int64[cols, n], one run after the other."""
        mem, shape = self.version.store.arena.space.mem, self.version.store.shape
        ends = np.empty(len(self.lo), np.int64)
        out = np.empty((shape.cols, count_runs(mem, self.version.root, shape, self.lo, self.hi, ends)), np.int64)
        copy_runs(mem, self.version.root, shape, self.lo, self.hi, ends, out)
        return out[: shape.keys] if self.version.store.hidden else out
