"""Tree surgery: what a change of rows does to the trie of a relation.

Row r appears or disappears; so do those branches of the trie that no other row holds. Branch (r[0] ... r[l]) at level l
is inserted if its prefix exists in the new version and not in the old, erased if it is the other way round (arXiv
1303.5313, section 4.2.1). Levels above the first such one are left alone, all below it change with it, so the whole
story of a row is one number: its *top*, the first level at which it brings or takes a branch that no row before it in
the change has told of already. A row of the change stands for the surgeries at levels top .. last.

    version 1     version 2      change             top   surgeries
    (3, 40, 90)                  ERASE  3, 40, 90   1     3-40, 3-40-90
    (3, 50, 92)   (3, 50, 91)    ERASE  3, 50, 92   2     3-50-92
                  (4, 60, 71)    INSERT 4, 60, 71   0     4, 4-60, 4-60-71

Cost: one seek per row of the change.
"""

from __future__ import annotations

from scantree._jit import kernel
from scantree.layout import DIRS, HEADER, ROOM, dir_count, dir_of, first_at_least, last_at_most


@kernel
def _common(mem, at, stride, row, row_stride, keys):
    """How many leading keys the row stored at `mem[at]` shares with `row`."""
    for c in range(keys):
        if mem[at + c * stride] != row[c * row_stride]:
            return c
    return keys


@kernel
def _branch_depth(mem, root, shape, row, m):
    """How many leading keys of `row` (keys `m` apart) some row of the version shares."""
    if mem[root + DIRS] == 0:
        return 0
    room, fan, cap = mem[root + ROOM], 1 << shape.dir_bits, 1 << shape.page_bits
    d = last_at_most(mem, root + HEADER + 2 * room, room, 0, mem[root + DIRS], row, m, shape.keys)
    directory, count = dir_of(mem, root, d), dir_count(mem, root, d)
    s = last_at_most(mem, directory + 2 * fan, fan, 0, count, row, m, shape.keys)
    page, rows = mem[directory + s], mem[directory + fan + s]
    p = first_at_least(mem, page, cap, 0, rows, row, m, shape.keys)
    best = 0
    if p < rows:
        best = _common(mem, page + p, cap, row, m, shape.keys)
    elif s + 1 < count:
        best = _common(mem, directory + 2 * fan + s + 1, fan, row, m, shape.keys)
    elif d + 1 < mem[root + DIRS]:
        best = _common(mem, root + HEADER + 2 * room + d + 1, room, row, m, shape.keys)
    if p > 0:
        best = max(best, _common(mem, page + p - 1, cap, row, m, shape.keys))
    return best


@kernel
def surgeries(mem, old, new, shape, rows, kinds, tops, low, high):
    """Write the top of each row of a change to `tops` int64[m].

    `rows` int64[keys, m]: what was inserted (`kinds` 1) or erased (-1) between the versions `old` and `new`, in key
    order. No row is in both versions or in neither, and
    there is one. `low`, `high` int64[keys] receive the range of each column.
    """
    m = rows.shape[1]
    flat = rows.reshape(-1)
    for c in range(shape.keys):
        low[c] = high[c] = rows[c, 0]
        for j in range(1, m):
            low[c], high[c] = min(low[c], rows[c, j]), max(high[c], rows[c, j])
    for j in range(m):
        top = _branch_depth(mem, old if kinds[j] > 0 else new, shape, flat[j:], m)
        if j > 0:
            # A branch that is new belongs to inserted rows only, an old one to erased rows only.
            common = 0
            while common < shape.keys and rows[common, j] == rows[common, j - 1]:
                common += 1
            top = max(top, common)
        tops[j] = min(top, shape.keys - 1)
