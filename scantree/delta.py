"""Delta iteration: what differs between two versions, in key order, at the cost of the pages that differ.

Two cursors walk the old and the new version. Whenever both stand at the start of a directory page (or row page) and it
is the same page, both skip it unseen; otherwise the smaller row is passed and reported. Pages that only were split or
merged are read but report nothing. So the cost is O(pages not shared), not O(n).

Each difference is a row of the new version (inserted, or changed in value) or of the old (erased); a changed row is
reported with its old values too.
"""

from __future__ import annotations

from scantree._jit import kernel
from scantree.layout import DIRS, compare, dir_count, dir_of

ERASED, INSERTED, CHANGED = -1, 1, 0
DONE, FULL = 0, 1


@kernel
def _next_entry(mem, root, state, side):
    """Move a cursor to the start of the next entry."""
    at = 3 * side
    state[at + 1] += 1
    state[at + 2] = 0
    if state[at + 1] >= dir_count(mem, root, state[at]):
        state[at + 1] = 0
        state[at] += 1


@kernel
def difference(mem, old, new, shape, state, rows, before, kinds):
    """Write differences, in key order, into `rows`, `before` and `kinds`.

    `rows` int64[cols, n]: the row of the new version, or the erased row; `before` int64[values, n]: the old values of a
    changed row; `kinds` int8[n]: INSERTED, ERASED or CHANGED.
    `state` int64[6] holds both cursors, (d, s, p) of the old and of the new; all zero to begin, kept between calls.
    Returns (n written, status): FULL means call again with the same state.
    """
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    space, n = rows.shape[1], 0
    old_dirs, new_dirs = mem[old + DIRS], mem[new + DIRS]
    while True:
        more_old, more_new = state[0] < old_dirs, state[3] < new_dirs
        if not more_old and not more_new:
            return n, DONE
        if n == space:
            return n, FULL
        old_page, new_page, old_dir, new_dir = 0, 0, 0, 0
        if more_old:
            old_dir = dir_of(mem, old, state[0])
            old_page = mem[old_dir + state[1]]
        if more_new:
            new_dir = dir_of(mem, new, state[3])
            new_page = mem[new_dir + state[4]]
        if more_old and more_new and state[2] == 0 and state[5] == 0:
            if old_dir == new_dir and state[1] == 0 and state[4] == 0:
                state[0] += 1
                state[3] += 1
                continue
            if old_page == new_page:
                _next_entry(mem, old, state, 0)
                _next_entry(mem, new, state, 1)
                continue
        if not more_new:
            order = -1
        elif not more_old:
            order = 1
        else:
            order = compare(mem, old_page + state[2], cap, mem[new_page + state[5] :], cap, shape.keys)
        if order == 0:
            for c in range(shape.keys, shape.cols):
                if mem[old_page + c * cap + state[2]] != mem[new_page + c * cap + state[5]]:
                    kinds[n] = CHANGED
                    for b in range(shape.cols):
                        rows[b, n] = mem[new_page + b * cap + state[5]]
                        if b >= shape.keys:
                            before[b - shape.keys, n] = mem[old_page + b * cap + state[2]]
                    n += 1
                    break
        elif order < 0:
            kinds[n] = ERASED
            for c in range(shape.cols):
                rows[c, n] = mem[old_page + c * cap + state[2]]
            n += 1
        else:
            kinds[n] = INSERTED
            for c in range(shape.cols):
                rows[c, n] = mem[new_page + c * cap + state[5]]
            n += 1
        if order <= 0:
            state[2] += 1
            if state[2] >= mem[old_dir + fan + state[1]]:
                _next_entry(mem, old, state, 0)
        if order >= 0:
            state[5] += 1
            if state[5] >= mem[new_dir + fan + state[4]]:
                _next_entry(mem, new, state, 1)
