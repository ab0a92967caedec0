"""Reading a version: positions, runs of rows, lookups and folds.

A position says where a row lies, and stays good for as long as the version does; runs of rows are [position, position).
Complexity, n rows: seek, lookup and scan O(log n), len O(1), a run its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scantree import between as _between
from scantree import cursor as _cursor
from scantree import prefix as _prefix
from scantree import scan as _scan
from scantree.layout import DIRS, PAGES, ROWS
from scantree.memory import GRAIN
from scantree.scan import Monoid

if TYPE_CHECKING:
    from scantree.version import Store

Rows = npt.NDArray[np.int64]


class Reading:
    """What can be read of the rows of a version: those under `root`, in the shape of `store`."""

    __slots__ = ("root", "store")

    store: Store
    root: int

    @property
    def pages(self) -> int:
        """Number of row pages."""
        return int(self.store.arena.space.mem[self.root + PAGES])

    @property
    def dirs(self) -> int:
        """Number of directory pages."""
        return int(self.store.arena.space.mem[self.root + DIRS])

    @property
    def fill(self) -> float:
        """Rows per row of page space, 0 to 1."""
        return self.count() / max(1, self.pages << self.store.shape.page_bits)

    def memory(self) -> int:
        """Bytes of pages this version refers to, directory and slack included.

        Pages shared with other versions count in each.
        """
        return sum(size.grains for size in self.store._sizes(self.pages, self.dirs, self.dirs)) * GRAIN * 8

    def begin(self) -> int:
        """Position of the first row (or the end)."""
        return 0

    def end(self) -> int:
        """Position after the last row."""
        return int(_cursor.end_pos(self.store.arena.space.mem, self.root, self.store.shape))

    def seek(self, row: Sequence[int], start: int | None = None) -> int:
        """Position of the least row >= `row` (a whole key or a prefix), at or after `start` if given; else `end()`."""
        asked = np.array(row, np.int64)
        mem, shape = self.store.arena.space.mem, self.store.shape
        if len(asked) > shape.keys:
            raise ValueError(f"a row to seek has at most {shape.keys} keys, got {len(asked)}")
        if start is not None:
            return int(_cursor.seek_from(mem, self.root, shape, asked, start))
        return int(_cursor.seek_lub(mem, self.root, shape, asked))

    def seek_past(self, row: Sequence[int]) -> int:
        """Position of the least row > `row` and all rows that begin with it (a whole key or a prefix); else `end()`."""
        shape = self.store.shape
        if len(row) > shape.keys:
            raise ValueError(f"a row to seek has at most {shape.keys} keys, got {len(row)}")
        return int(_cursor.seek_past(self.store.arena.space.mem, self.root, shape, np.array(row, np.int64)))

    def row(self, pos: int) -> tuple[int, ...]:
        """The row at a position before the end: keys, then values."""
        out = self.columns(pos, limit=1)
        if out.shape[1] == 0:
            raise IndexError("the position is at the end")
        return tuple(int(v) for v in out[:, 0])

    def columns(
        self, lo: int | None = None, hi: int | None = None, *, limit: int | None = None, hidden: bool = False
    ) -> Rows:
        """Rows of [lo, hi) as int64[cols, n], at most `limit` of them; `hidden`: with values that are hidden."""
        lo, hi = self.begin() if lo is None else lo, self.end() if hi is None else hi
        mem, shape = self.store.arena.space.mem, self.store.shape
        n = self.count(lo, hi) if limit is None else min(limit, self.count(lo, hi))
        out = np.empty((shape.cols, n), np.int64)
        _cursor.copy_range(mem, self.root, shape, lo, hi, out)
        return out[: shape.keys] if self.store.hidden and not hidden else out

    def some_columns(self, columns: Sequence[int]) -> Rows:
        """Some of the columns of all rows, int64[len(columns), n]."""
        for rows in self.column_chunks(columns, self.count()):
            return rows
        return np.empty((len(columns), 0), np.int64)

    def column_chunks(self, columns: Sequence[int], size: int) -> Iterator[Rows]:
        """Some of the columns of all rows, in arrays int64[len(columns), <= size]; but of a page or more."""
        wanted, shape = np.array(columns, np.int64), self.store.shape
        d, s, left = 0, 0, self.count()
        while left:
            out = np.empty((len(columns), min(left, max(size, 1 << shape.page_bits))), np.int64)
            d, s, n = _cursor.copy_columns(self.store.arena.space.mem, self.root, shape, wanted, d, s, out)
            left -= n
            yield out[:, :n]

    def ends(self, column: int) -> tuple[int, int] | None:
        """The least and the greatest value of a column, by a pass over it if it is not the first; None without rows."""
        if not self.count():
            return None
        mem, shape = self.store.arena.space.mem, self.store.shape
        if column == 0 and shape.keys:
            least, most = _cursor.first_keys(mem, self.root, shape)
            return int(least), int(most)
        low, high = np.array([np.iinfo(np.int64).max]), np.array([np.iinfo(np.int64).min])
        _cursor.column_ranges(mem, self.root, shape, np.array([column]), low, high)
        return int(low[0]), int(high[0])

    def count(self, lo: int | None = None, hi: int | None = None) -> int:
        """Rows of [lo, hi), from the counts of the pages between; O(log n) if the store's scan is a count."""
        if lo is None and hi is None:
            return int(self.store.arena.space.mem[self.root + ROWS])
        if self.store.shape.monoid == Monoid.COUNT:
            return self.scan(lo, hi)
        lo, hi = self.begin() if lo is None else lo, self.end() if hi is None else hi
        return int(_cursor.count_range(self.store.arena.space.mem, self.root, self.store.shape, lo, hi))

    def scan(self, lo: int | None = None, hi: int | None = None, looked: npt.NDArray[np.int64] | None = None) -> int:
        """The fold of [lo, hi) by the store's scan, in O(log n) steps; of no rows, the monoid's identity.

        `looked` int64[2], if given, is increased by the entries and the rows that were folded. Raises `OverflowError`
        if the sum does not fit into 64 bits (whatever the partial sums), `ValueError` if the store has no scan.
        """
        store = self.store
        if store.scan is None:
            raise ValueError("this store keeps no scan; make it with Store(..., scan=Scan(monoid, column))")
        lo, hi = self.begin() if lo is None else lo, self.end() if hi is None else hi
        looked = np.zeros(2, np.int64) if looked is None else looked
        value, status = _scan.fold_range(store.arena.space.mem, self.root, store.shape, lo, hi, looked)
        if status == _scan.OVERFLOW:
            raise OverflowError(f"the sum of column {store.scan.column} over these rows does not fit into 64 bits")
        return int(value)

    def exact_scan(self, lo: int, hi: int) -> int:
        """The fold of [lo, hi) like `scan`, but a sum may be any integer of less than 96 bits."""
        store = self.store
        if store.scan is None:
            raise ValueError("this store keeps no scan; make it with Store(..., scan=Scan(monoid, column))")
        value, low = _scan.fold_run(store.arena.space.mem, self.root, store.shape, lo, hi, np.zeros(2, np.int64))
        return (int(value) << 32) + int(low) if store.scan.monoid == Monoid.SUM else int(value)

    def chunks(self, lo: int | None = None, hi: int | None = None, size: int = 1 << 16) -> Iterator[Rows]:
        """Rows of [lo, hi) in key order, as arrays int64[cols, <= size]."""
        pos, hi = self.begin() if lo is None else lo, self.end() if hi is None else hi
        mem, shape = self.store.arena.space.mem, self.store.shape
        while pos < hi:
            out = np.empty((shape.cols, size), np.int64)
            pos, n = _cursor.copy_range(mem, self.root, shape, pos, hi, out)
            yield out[: shape.keys if self.store.hidden else shape.cols, :n]

    def rows(self, lo: int | None = None, hi: int | None = None) -> Iterator[tuple[int, ...]]:
        """Rows of [lo, hi) in key order, as tuples."""
        for chunk in self.chunks(lo, hi):
            if chunk.shape[0] == 0:
                yield from [()] * chunk.shape[1]
            else:
                yield from zip(*(column.tolist() for column in chunk), strict=True)

    def contains(self, keys: Rows) -> npt.NDArray[np.bool_]:
        """Whether each of the keys, the columns of `keys` int64[keys, m], is present."""
        if keys.ndim != 2 or len(keys) != self.store.shape.keys:
            raise ValueError(f"an array of {self.store.shape.keys} key columns expected, got shape {keys.shape}")
        return self._found(keys, 0)[0]

    def values_of(self, keys: Rows) -> Rows:
        """The values of the rows with the given keys, the columns of `keys` int64[keys, m]: int64[values, m].

        0 where there is no such row.
        """
        return self._found(keys, self.store.shape.cols - self.store.shape.keys)[1]

    def lookup(self, keys: Rows) -> tuple[npt.NDArray[np.bool_], Rows]:
        """(whether each of the keys int64[keys, m] is present, the values int64[values, m] of its row, 0 without)."""
        return self._found(keys, self.store.shape.cols - self.store.shape.keys)

    def _found(self, keys: Rows, values: int) -> tuple[npt.NDArray[np.bool_], Rows]:
        found, held = np.empty(keys.shape[1], np.bool_), np.empty((values, keys.shape[1]), np.int64)
        _cursor.find_rows(self.store.arena.space.mem, self.root, self.store.shape, plain(keys), found, held)
        self.store.arena.touched += keys.shape[1]
        return found, held

    def rows_under(self, prefixes: Rows) -> Rows:
        """The rows that begin with one of the prefixes, the columns of `prefixes` int64[k, m]: int64[cols, n].

        Prefix by prefix, in key order under each; a prefix given twice has its rows twice. O(log n) per prefix.
        """
        shape, mem = self.store.shape, self.store.arena.space.mem
        asked, state = self._prefixes(prefixes), np.array([0, -1], np.int64)
        found, size, status = [], len(asked), _prefix.FULL
        while status == _prefix.FULL:
            out = np.empty((shape.cols, size), np.int64)
            n, status = _prefix.copy_under(mem, self.root, shape, asked, state, out)
            found.append(out[:, :n])
            size = max(size, 256)
        rows = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        return rows[: shape.keys] if self.store.hidden else rows

    def matches(self, prefixes: Rows, *, first: int = 0) -> tuple[Rows, Rows]:
        """(rows int64[cols, n], which prefix each begins with int64[n]), for distinct prefixes int64[k, m] in order.

        `first`: of each prefix only so many, and only rows whose last column, a weight, is positive; 0: all.
        """
        shape, mem = self.store.shape, self.store.arena.space.mem
        asked, state = self._prefixes(prefixes), np.zeros(3, np.int64)
        found, size, status = [], max(64, 2 * len(asked)), _prefix.FULL
        while status == _prefix.FULL:
            out = np.empty((shape.cols + 1, size), np.int64)
            n, status = _prefix.copy_matches(mem, self.root, shape, asked, first, state, out)
            found.append(out[:, :n])
            size = min(4 * size, 1 << 18)
        rows = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        self.store.arena.touched += len(asked) + rows.shape[1]
        return rows[:-1], rows[-1]

    def between(self, lows: Rows, highs: Rows, *, first: int = 0) -> tuple[Rows, Rows]:
        """(rows int64[cols, n], which interval each is in int64[n]), under prefixes and in closed intervals of a key.

        `lows` int64[k + 1, m]: prefixes of k keys, each followed by the least next key, in order; `highs` int64[m]: the
        greatest next key of each. `first`: of each interval only so many rows; 0: all. O(log n) per interval.
        """
        shape, mem = self.store.shape, self.store.arena.space.mem
        asked, most, state = self._prefixes(lows), plain(highs), np.zeros(4, np.int64)
        found, size, status = [], max(64, 2 * len(asked)), _prefix.FULL
        while status == _prefix.FULL:
            out = np.empty((shape.cols + 1, size), np.int64)
            n, status = _between.copy_between(mem, self.root, shape, asked, most, first, state, out)
            found.append(out[:, :n])
            size = min(4 * size, 1 << 18)
        rows = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        return rows[:-1], rows[-1]

    def pair(self, keys: int, prefixes: Rows | None = None) -> Rows | None:
        """Two rows int64[cols, 2] that share their first `keys` keys; None if no two do.

        With `prefixes` int64[keys, m] only rows under these are looked at, in O(m log n), else all in O(n).
        """
        shape, mem = self.store.shape, self.store.arena.space.mem
        if prefixes is None:
            pair = _prefix.first_pair(mem, self.root, shape, keys)
        else:
            pair = _prefix.pair_under(mem, self.root, shape, self._prefixes(prefixes))
        return self._rows_at(pair)

    def pair_nearby(self, rows: Rows, keys: int, key: Sequence[int], most: int) -> tuple[bool, Rows | None]:
        """(whether it is known, two rows int64[cols, 2] with one `key` that begin as one of `rows` does; None if none).

        `rows` int64[>= keys, n] in key order; those that share their first `keys` keys with one of them are compared by
        the columns of `key`, the first `keys` among them. O(log) of all rows for each of these, and a step for each
        pair of rows that begin alike; it is not known where those would be more than `most`.
        """
        shape, mem, prefix = self.store.shape, self.store.arena.space.mem, np.empty(keys, np.int64)
        pair = _prefix.pair_nearby(mem, self.root, shape, plain(rows), prefix, np.array(key, np.int64), most)
        return pair[0] > -2, self._rows_at(pair)

    def _rows_at(self, pair: tuple[int, int]) -> Rows | None:
        """The rows int64[cols, 2] at two addresses; None if they are negative."""
        if pair[0] < 0:
            return None
        shape, mem = self.store.shape, self.store.arena.space.mem
        cols = shape.keys if self.store.hidden else shape.cols
        return np.array([[mem[at + (c << shape.page_bits)] for at in pair] for c in range(cols)], np.int64)

    def _prefixes(self, prefixes: Rows) -> Rows:
        """int64[m, k], as the kernels read prefixes."""
        if prefixes.ndim != 2 or len(prefixes) > self.store.shape.keys:
            raise ValueError(
                f"an array of at most {self.store.shape.keys} key columns expected, got shape {prefixes.shape}"
            )
        return plain(prefixes.T)


def plain(rows: npt.ArrayLike) -> Rows:
    """`rows` as kernels expect them: int64, C-contiguous and writable. For anything else numba would compile anew."""
    plain = np.ascontiguousarray(rows, np.int64)
    return plain if plain.flags.writeable else plain.copy()
