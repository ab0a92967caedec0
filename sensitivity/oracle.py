"""The change oracle's lookups: the records that one changed branch concerns, as a walk over a range of an index.

An index is a sorted set of packed records (`sensitivity.records`) in scantree's pages. All records a branch concerns
are one range: those under its prefix (NODE), with its key as start (POINT), or with a start behind the key before it
(INTERVAL; see records.py for why that is the stabbing query). So a lookup costs O(log n + matches), and it can be left
and taken up again at any record: nothing is expanded into a table.
"""

from __future__ import annotations

from scantree._jit import inlined, kernel, prefetch
from scantree.cursor import end_pos, normal, seek_lub, unpack
from scantree.layout import DIRS, HEADER, ROOM, Shape, dir_count, dir_of, last_at_most
from sensitivity.records import DIR_BITS, PAGE_BITS, ROOT, WORDS

LINE = 8  # words of a cache line


@inlined
def index_shape(words, page_bits, dir_bits):
    """The shape of an index whose records have `words` words."""
    # No literal: it would be a type of its own, and scantree's kernels would be compiled once more for it.
    none = words - words
    return Shape(words, words, page_bits, dir_bits, none, none, none)


@inlined
def shape_of(site):
    """The shape of a site's index."""
    return index_shape(site[WORDS], site[PAGE_BITS], site[DIR_BITS])


@kernel
def first_record(mem, site, rows):
    """The position of the first record of `site` that is >= `rows[0]`."""
    return seek_lub(mem, site[ROOT], shape_of(site), rows[0, : site[WORDS]])


@kernel
def ask_for_record(mem, site, rows):
    """Ask for the page where `first_record` would look."""
    root, shape = site[ROOT], shape_of(site)
    dirs, room, fan, k = mem[root + DIRS], mem[root + ROOM], 1 << shape.dir_bits, shape.keys
    if dirs == 0:
        return
    d = last_at_most(mem, root + HEADER + 2 * room, room, 0, dirs, rows[0], 1, k)
    directory = dir_of(mem, root, d)
    s = last_at_most(mem, directory + 2 * fan, fan, 0, dir_count(mem, root, d), rows[0], 1, k)
    page = mem[directory + s]
    for at in range(page, page + (1 << shape.page_bits), LINE):
        prefetch(mem, at)


@kernel
def window(mem, site, pos):
    """(address of the record at `pos`, records from there to the end of its page); (0, 0) at the end of the index."""
    root, shape = site[ROOT], shape_of(site)
    if pos >= end_pos(mem, root, shape):
        return 0, 0
    d, s, p = unpack(shape, pos)
    directory = dir_of(mem, root, d)
    return mem[directory + s] + p, mem[directory + (1 << shape.dir_bits) + s] - p


@kernel
def next_window(mem, site, pos, n):
    """The position `n` records, all of one page, after `pos`."""
    root, shape = site[ROOT], shape_of(site)
    d, s, p = unpack(shape, pos)
    return normal(mem, root, shape, d, s, p + n)


@inlined
def read_words(mem, site, at, rows, words):
    """Copy the words of the record at address `at`; False if it is beyond `rows[1]`."""
    within = True
    undecided = True
    for w in range(site[WORDS]):
        word = mem[at + (w << site[PAGE_BITS])]
        words[w] = word
        if undecided and word != rows[1, w]:
            undecided = False
            within = word < rows[1, w]
    return within
