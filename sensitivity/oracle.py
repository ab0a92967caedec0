"""The change oracle's lookups: the records that one changed branch concerns, as a walk over a range of an index.

An index is a sorted set of packed records (`sensitivity.records`) in scantree's pages. All records a branch concerns
are one range: those under its prefix (NODE), with its key as start (POINT), or with a start behind the key before it
(INTERVAL; see records.py for why that is the stabbing query). So a lookup costs O(log n + matches), and it can be left
and taken up again at any record: nothing is expanded into a table.
"""

from __future__ import annotations

from scantree._jit import inlined, kernel
from scantree.cursor import end_pos, normal, seek_lub, unpack
from scantree.layout import Shape, dir_of
from sensitivity.records import DIR_BITS, PAGE_BITS, ROOT, WORDS


@inlined
def shape_of(site):
    """The shape of a site's index."""
    return Shape(site[WORDS], site[WORDS], site[PAGE_BITS], site[DIR_BITS])


@kernel
def first_record(mem, site, rows):
    """The position of the first record of `site` that is >= `rows[0]`."""
    return seek_lub(mem, site[ROOT], shape_of(site), rows[0, : site[WORDS]])


@kernel
def record_at(mem, site, pos, rows, words):
    """Copy the record at `pos` into `words`, and say what position follows it; -1 if it is beyond `rows[1]`."""
    root, shape = site[ROOT], shape_of(site)
    if pos >= end_pos(mem, root, shape):
        return -1
    d, s, p = unpack(shape, pos)
    at = mem[dir_of(mem, root, d) + s] + p
    for w in range(shape.keys):
        words[w] = mem[at + (w << shape.page_bits)]
    for w in range(shape.keys):
        if words[w] != rows[1, w]:
            if words[w] > rows[1, w]:
                return -1
            break
    return normal(mem, root, shape, d, s, p + 1)
