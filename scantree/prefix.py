"""Rows by the first keys they begin with: all that are under given prefixes, and two that share one.

A relation whose last key is determined by the others (a function) holds at most one row per prefix of all keys but the
last. In key order rows of one prefix are neighbours, so a whole version is looked through once, page by page, and under
one prefix the first two rows tell. The prefix without keys is that of all rows.
"""

from __future__ import annotations

from scantree._jit import kernel
from scantree.cursor import end_pos, normal, seek_from, seek_lub, unpack
from scantree.layout import DIRS, compare, dir_count, dir_of

DONE, FULL = 0, 1


@kernel
def address_at(mem, root, shape, pos):
    """Address of the first column of the row at position `pos`, which is before the end."""
    d, s, p = unpack(shape, pos)
    return mem[dir_of(mem, root, d) + s] + p


@kernel
def following(mem, root, shape, pos):
    """The position after `pos`, which is before the end."""
    d, s, p = unpack(shape, pos)
    return normal(mem, root, shape, d, s, p + 1)


@kernel
def copy_under(mem, root, shape, prefixes, state, out):
    """Copy the rows under the prefixes `prefixes` int64[m, k], prefix by prefix, into `out` int64[cols, n].

    `state` int64[2]: the prefix to go on with, and the position (-1: to be sought); [0, -1] to begin, kept between
    calls. Returns (rows copied, status): FULL means call again with the same state.
    """
    cap = 1 << shape.page_bits
    m, k = prefixes.shape
    end, done = end_pos(mem, root, shape), 0
    while state[0] < m:
        prefix = prefixes[state[0]]
        pos = state[1] if state[1] >= 0 else seek_lub(mem, root, shape, prefix)
        while pos < end:
            at = address_at(mem, root, shape, pos)
            if compare(mem, at, cap, prefix, 1, k) != 0:
                break
            if done == out.shape[1]:
                state[1] = pos
                return done, FULL
            for c in range(shape.cols):
                out[c, done] = mem[at + c * cap]
            done += 1
            pos = following(mem, root, shape, pos)
        state[0] += 1
        state[1] = -1
    return done, DONE


@kernel
def first_pair(mem, root, shape, k):
    """Addresses of the first two neighbours whose first `k` keys are equal; (-1, -1) if there are none."""
    cap, fan = 1 << shape.page_bits, 1 << shape.dir_bits
    last = -1
    for d in range(mem[root + DIRS]):
        directory = dir_of(mem, root, d)
        for s in range(dir_count(mem, root, d)):
            page = mem[directory + s]
            for p in range(mem[directory + fan + s]):
                if last >= 0 and compare(mem, page + p, cap, mem[last:], cap, k) == 0:
                    return last, page + p
                last = page + p
    return -1, -1


@kernel
def pair_under(mem, root, shape, prefixes):
    """Addresses of two rows under the first of `prefixes` int64[m, k] that has two; (-1, -1) if none has."""
    cap = 1 << shape.page_bits
    m, k = prefixes.shape
    end = end_pos(mem, root, shape)
    for j in range(m):
        prefix = prefixes[j]
        pos = seek_lub(mem, root, shape, prefix)
        if pos >= end:
            continue
        second = following(mem, root, shape, pos)
        if second >= end:
            continue
        at = address_at(mem, root, shape, second)
        if compare(mem, at, cap, prefix, 1, k) == 0:  # then the first is under it, too
            return address_at(mem, root, shape, pos), at
    return -1, -1


@kernel
def pair_nearby(mem, root, shape, rows, prefix, key, most):
    """Addresses of two rows with one `key` that begin with the first k keys of one of `rows` int64[keys, n].

    `key` int64[...]: columns, those k among them. (-1, -1) if there are none; (-2, -2) if that takes more than `most`
    steps. Neighbours in `rows` that begin with the same are looked at once. `prefix` int64[k] is scratch.
    """
    cap, k = 1 << shape.page_bits, len(prefix)
    end, steps = end_pos(mem, root, shape), 0
    for i in range(rows.shape[1]):
        same = i > 0
        for c in range(k):
            same = same and rows[c, i] == rows[c, i - 1]
        if same:
            continue
        for c in range(k):
            prefix[c] = rows[c, i]
        first = seek_lub(mem, root, shape, prefix)
        pos = first
        while pos < end:
            at = address_at(mem, root, shape, pos)
            if compare(mem, at, cap, prefix, 1, k) != 0:
                break
            before = first
            while before < pos:
                steps += 1
                if steps > most:
                    return -2, -2
                other, c = address_at(mem, root, shape, before), 0
                while c < len(key) and mem[at + key[c] * cap] == mem[other + key[c] * cap]:
                    c += 1
                if c == len(key):
                    return other, at
                before = following(mem, root, shape, before)
            steps += 1
            pos = following(mem, root, shape, pos)
    return -1, -1


@kernel
def copy_matches(mem, root, shape, prefixes, first, state, out):
    """Copy the rows under the prefixes `prefixes` int64[m, k], which are in order, each with the number of its prefix.

    `out` int64[cols + 1, n] takes them, the number last. `first` > 0: of each prefix only so many, and only rows whose
    last column, a weight, is positive. `state` int64[3]: the prefix to go on with, the position (from 1; 0: to be
    sought), and how many rows of it are copied; zeros to begin, kept between calls. Returns (rows copied, status): FULL
    means call again with the same state.
    """
    cap = 1 << shape.page_bits
    m, k = prefixes.shape
    end, done, near = end_pos(mem, root, shape), 0, state[1] - 1
    while state[0] < m:
        j = state[0]
        if state[1] > 0:
            pos = state[1] - 1
        elif near >= 0 and near < end:
            pos = seek_from(mem, root, shape, prefixes[j], near)
        else:
            pos = seek_lub(mem, root, shape, prefixes[j]) if near < end else end
        copied = state[2]
        while pos < end and (first == 0 or copied < first):
            at = address_at(mem, root, shape, pos)
            if compare(mem, at, cap, prefixes[j], 1, k) != 0:
                break
            if first == 0 or mem[at + (shape.cols - 1) * cap] > 0:
                if done == out.shape[1]:
                    state[1], state[2] = pos + 1, copied
                    return done, FULL
                for c in range(shape.cols):
                    out[c, done] = mem[at + c * cap]
                out[shape.cols, done] = j
                done += 1
                copied += 1
            pos = following(mem, root, shape, pos)
        near = pos
        state[0] += 1
        state[1] = 0
        state[2] = 0
    return done, DONE
