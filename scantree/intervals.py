"""Interval trees: the intervals among many that hold a key.

An `IntervalTree` is a version (version.py) of closed intervals [start, end], rows

    prefix..., start, end, payload... | values...        keys | values

in key order, that is by prefix and within it by start, of a store with a max-scan over `end`. Asked for a prefix and a
key, rows of the prefix with start <= key are one run of the order, found by two seeks; those of the run with end >= key
are the answer. The max-scan says which parts of the run hold any:

    root            scan-tree: to the next directory page whose greatest end reaches the key
    directory page  entry by entry: the row pages whose greatest end reaches it
    row page        row by row

An entry wholly inside the run is descended into only if a row below it matches. An entry at an edge of the run mixes in
rows of other prefixes or of later starts, whose ends may promise too much; positions bound what is read there, so that
the answer is exact and at most four entries (two of the root, two of directory pages) are looked into for nothing.

Cost, with m matches: two seeks, then at most m + 2 row pages and as many directory pages, each read one entry or row
after the other, and at most 3 log2(room of the root) + 2 nodes of the scan-tree before each directory page and at the
end: O(log n + m), where the constant of m is the page size. (Strictly, scattered matches cost m log(n / m) nodes, in
the paper's binary scan-tree as in this one; here these are nodes over directory pages, few beside a page of 256
entries.) Counted in `looked`; tests/storage/test_intervals.py holds it to these bounds.

An interval may be of one key (start = end), or run to the end of the keys (end = KEY_MAX); one with start > end holds
nothing and is never found.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel
from scantree.cursor import pack, seek_lub, seek_past, unpack
from scantree.layout import ROOM, dir_count, dir_of
from scantree.memory import Arena
from scantree.scan import ENTRIES, LOOKED_ROWS, Monoid, Scan, node_address
from scantree.version import Changes, Rows, Store, Version

DONE, FULL = 0, 1

# Cells of a stabbing query's state: whether it has begun, the position it goes on from, the one it ends at.
BEGUN, NEXT, LIMIT = 0, 1, 2


@kernel
def _next_reaching(mem, root, shape, lo, hi, key, looked):
    """The first of directory pages [lo, hi) whose greatest end is >= `key`; `hi` if there is none.

    Climbs the scan-tree while whole subtrees fall short and descends into the first that does not. `looked` as in
    `stab`.
    """
    room = mem[root + ROOM]
    at, node, size = lo, room + lo, 1
    while at < hi:
        looked[ENTRIES] += 1
        if mem[node_address(shape, root, room, 0, node)] >= key:
            if size == 1:
                return at
            node, size = node << 1, size >> 1
        else:
            at, node = at + size, node + 1
            while node & 1 == 0:
                node, size = node >> 1, size << 1
    return hi


@kernel
def stab(mem, root, shape, asked, state, out, looked):
    """Write the rows under a prefix whose interval holds a key, in key order, into `out` int64[cols, n].

    `root`, `shape`: a version of a store made by `interval_store`. `asked` int64[prefix + 1]: the prefix, then the key.
    `state` int64[3]: all zero to begin, kept between calls for one `asked`. `looked` int64[2]: increased by the entries
    (nodes of the scan-tree included) and the rows looked at, those of the two seeks apart.
    Returns (rows written, status): FULL means call again with the same state, DONE that there are no more.
    """
    prefix = shape.column - 1
    if state[BEGUN] == 0:
        state[BEGUN] = 1
        state[NEXT] = seek_lub(mem, root, shape, asked[:prefix])
        state[LIMIT] = seek_past(mem, root, shape, asked)
    key = asked[prefix]
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    n, space = 0, out.shape[1]
    d, s, p = unpack(shape, state[NEXT])
    hd, hs, hp = unpack(shape, state[LIMIT])
    dirs = hd + 1 if hs > 0 or hp > 0 else hd
    while True:
        reaching = _next_reaching(mem, root, shape, d, dirs, key, looked)
        if reaching > d:
            d, s, p = reaching, 0, 0
        if d >= dirs:
            state[NEXT] = state[LIMIT]
            return n, DONE
        directory = dir_of(mem, root, d)
        greatest = directory + (2 + shape.keys) * fan
        entries = dir_count(mem, root, d)
        if d == hd:
            entries = hs + 1
        while s < entries:
            looked[ENTRIES] += 1
            if mem[greatest + s] >= key:
                page = mem[directory + s]
                until = hp if d == hd and s == hs else mem[directory + fan + s]
                while p < until:
                    if mem[page + shape.column * cap + p] >= key:
                        if n == space:
                            state[NEXT] = pack(shape, d, s, p)
                            return n, FULL
                        for c in range(shape.cols):
                            out[c, n] = mem[page + c * cap + p]
                        n += 1
                    looked[LOOKED_ROWS] += 1
                    p += 1
            s, p = s + 1, 0
        d, s = d + 1, 0


def interval_store(
    arena: Arena, prefix: int = 0, payload: int = 0, values: int = 0, *, page_rows: int = 256, dir_rows: int = 64
) -> Store:
    """A store of intervals for `IntervalTree`.

    Rows: `prefix` key columns, start, end, `payload` more key columns, then `values` value columns. Intervals that
    agree in all key columns are one. `page_rows` and `dir_rows` as for `Store`.
    """
    keys = prefix + 2 + payload
    scan = Scan(Monoid.MAX, prefix + 1)
    return Store(arena, keys, values, page_rows=page_rows, dir_rows=dir_rows, scan=scan)


class IntervalTree:
    """An immutable set of intervals: a version of a store made by `interval_store`, and stabbing queries on it.

        store = interval_store(arena, prefix=1, payload=2)
        tree = IntervalTree(store.build(columns))
        tree.stab((7,), 10)                              # rows with prefix 7 and start <= 10 <= end
        after, changes = tree.update(batch, ops)         # `tree` stays as it was

    All else (rows, delta, seeks, scans) is asked of `version`. Threads: as for versions.
    """

    __slots__ = ("version",)

    def __init__(self, version: Version) -> None:
        scan = version.store.scan
        if scan is None or scan.monoid != Monoid.MAX or not 0 < scan.column < version.store.shape.keys:
            raise ValueError("an interval tree needs a version of a store made by interval_store(...)")
        self.version = version

    @property
    def prefix(self) -> int:
        """Number of columns before start and end."""
        return self.version.store.shape.column - 1

    def __len__(self) -> int:
        return len(self.version)

    def stab(self, prefix: Sequence[int], key: int, looked: npt.NDArray[np.int64] | None = None) -> Rows:
        """The rows under `prefix` whose closed interval [start, end] holds `key`, in key order, int64[cols, n].

        `looked` int64[2], if given, is increased by the entries and the rows looked at. Raises `ValueError` for a
        prefix of the wrong length.
        """
        if len(prefix) != self.prefix:
            raise ValueError(f"a prefix of {self.prefix} keys expected, got {len(prefix)}")
        store = self.version.store
        asked, state = np.array([*prefix, key], np.int64), np.zeros(3, np.int64)
        looked = np.zeros(2, np.int64) if looked is None else looked
        found, size, status = [], 64, FULL
        while status == FULL:
            out = np.empty((store.shape.cols, size), np.int64)
            n, status = stab(store.arena.space.mem, self.version.root, store.shape, asked, state, out, looked)
            found.append(out[:, :n])
            size = min(size * 4, 1 << 18)
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)

    def update(self, batch: Rows, ops: npt.NDArray[np.int8]) -> tuple[IntervalTree, Changes]:
        """The tree after a batch of inserts and erases, as `Version.update`: itself if nothing changes."""
        version, changes = self.version.update(batch, ops)
        return (self if version is self.version else IntervalTree(version)), changes

    def memory(self) -> int:
        """Bytes of pages, as `Version.memory`."""
        return self.version.memory()

    def check(self) -> None:
        """Rebuild what is redundant, the scan included, and compare; raises `AssertionError`. For tests only."""
        self.version.check()
