"""Update streams: batches of erases and inserts that change a relation, and edges in the order of time.

`stream` gives the batches published with a graph (`../shared/data/power_law`), or generates them where there are none:
half erases of present rows, half inserts of random absent ones, 200 batches of 1, 100 of 10, 50 of 100, 20 of 1,000
and 7 of 10,000. A batch never erases and inserts the same row, and every one of its rows changes the relation.

`edges_in_time` gives a temporal graph (`../shared/data/temporal`) as one change per event that changes anything: the
edge that comes, and the edges that leave a window of time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from bench.graphs import SHARED, Rows, distinct

#: (rows of a batch, batches) of the published streams, and beyond them up to half of a million rows.
PUBLISHED = ((1, 200), (10, 100), (100, 50), (1_000, 20), (10_000, 7))
LARGE = ((50_000, 3), (200_000, 3), (500_000, 3))

#: Name, window in seconds. Without the file: a stand-in of the same number of events and nodes.
TEMPORAL = {"CollegeMsg": 30 * 86_400, "soc-bitcoin-otc": 365 * 86_400}
_STAND_IN = {"CollegeMsg": (59_835, 1_899, 193 * 86_400), "soc-bitcoin-otc": (35_592, 5_881, 1_900 * 86_400)}


class Batch(NamedTuple):
    """Rows int64[n, arity] to erase, all present, and to insert, all absent."""

    erase: Rows
    insert: Rows

    @property
    def size(self) -> int:
        """Rows that change."""
        return len(self.erase) + len(self.insert)


def generated(rows: Rows, sizes: Sequence[tuple[int, int]], seed: int) -> Iterator[Batch]:
    """Batches that change `rows` int64[n, arity] one after the other: `sizes` lists (rows of a batch, batches).

    Half of the rows erase present rows, half insert random absent ones over the values present; batches of odd size
    take turns in which half is the larger one. Rows of equal values (loops of a graph) are not inserted.
    """
    rng = np.random.default_rng(seed)
    arity, base = rows.shape[1], int(rows.max()) + 1
    places = base ** np.arange(arity - 1, -1, -1)
    codes = np.sort(rows @ places)
    turn = 0
    for size, count in sizes:
        for _ in range(count):
            gone = (size + turn) // 2 if size % 2 else size // 2
            turn ^= size % 2
            erased = np.sort(rng.choice(len(codes), gone, replace=False))
            inserted = _absent(codes, base, arity, size - gone, rng)
            yield Batch(_decoded(codes[erased], base, arity), _decoded(inserted, base, arity))
            codes = np.delete(codes, erased)
            codes = np.insert(codes, np.searchsorted(codes, inserted), inserted)


def _absent(codes: Rows, base: int, arity: int, wanted: int, rng: np.random.Generator) -> Rows:
    """`wanted` codes of rows that are not in the sorted `codes`, sorted."""
    found = np.empty(0, np.int64)
    while len(found) < wanted:
        drawn = rng.integers(0, base**arity, size=wanted - len(found) + wanted // 8 + 4)
        values = _decoded(drawn, base, arity)
        drawn = drawn[(values != values[:, :1]).any(axis=1)]
        at = np.minimum(np.searchsorted(codes, drawn), len(codes) - 1)
        found = np.unique(np.concatenate([found, drawn[codes[at] != drawn]]))
    return np.sort(rng.permutation(found)[:wanted])


def _decoded(codes: Rows, base: int, arity: int) -> Rows:
    columns = [codes // base ** (arity - 1 - i) % base for i in range(arity)]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def stream(graph: str, rows: Rows) -> Iterator[Batch]:
    """The batches of `graph` in their order: the published ones, or generated ones for its `rows`."""
    path = next(SHARED.glob(f"*/{graph}.updates.tsv.zst"), None)
    if path is None:
        yield from generated(rows, PUBLISHED, seed=20)
        return
    table = read_columns(path, 5)
    begins = np.flatnonzero(np.diff(table[:, 0], prepend=-1))
    for batch in np.split(table, begins[1:]):
        sides = (np.ascontiguousarray(batch[batch[:, 2] == op, 3:]) for op in (-1, 1))
        yield Batch(*sides)


def changed(rows: Rows, batches: Sequence[Batch]) -> Rows:
    """`rows` int64[n, arity] after `batches`."""
    if not batches:
        return rows
    base = max(int(part.max()) for part in (rows, *chain(*batches)) if part.size) + 1
    places = base ** np.arange(rows.shape[1] - 1, -1, -1)
    parts = [part @ places for batch in batches for part in batch]
    ops = [np.full(len(part), op, np.int8) for batch in batches for part, op in zip(batch, (-1, 1), strict=True)]
    touched, last = np.unique(np.concatenate(parts)[::-1], return_index=True)  # the last word per row counts
    come = touched[np.concatenate(ops)[::-1][last] == 1]
    codes = np.sort(np.concatenate([np.setdiff1d(rows @ places, touched, assume_unique=True), come]))
    return _decoded(codes, base, rows.shape[1])


class Events(NamedTuple):
    """Undirected edges (u < v) in time order, int64[n, 2], their times in seconds, and where they are from."""

    edges: Rows
    times: Rows
    source: str


def temporal(name: str) -> Events:
    """The events of temporal graph `name`, as undirected edges; loops are left out."""
    for path in (SHARED / "temporal" / f"{name}.tsv{ending}" for ending in ("", ".zst")):
        if path.exists():
            table, source = read_columns(path, 3), "shared"
            break
    else:
        events, nodes, span = _STAND_IN[name]
        rng = np.random.default_rng(30)
        ends = np.minimum((rng.random((events, 2)) ** 3 * nodes).astype(np.int64), nodes - 1)
        table = np.concatenate([ends, np.sort(rng.integers(0, span, size=(events, 1)), axis=0)], axis=1)
        source = "generated"
    table = table[table[:, 0] != table[:, 1]]
    table = table[np.argsort(table[:, 2], kind="stable")]
    return Events(np.sort(table[:, :2], axis=1), np.ascontiguousarray(table[:, 2]), source)


def edges_in_time(events: Events, window: int | None) -> Iterator[Batch]:
    """One batch per event that changes the graph: its edge comes; edges last seen `window` seconds ago or more go.

    Without a window edges only come.
    """
    alive: dict[tuple[int, int], int] = {}
    seen: deque[tuple[int, tuple[int, int]]] = deque()
    for edge, time in zip(map(tuple, events.edges.tolist()), events.times.tolist(), strict=True):
        gone = []
        if window is not None:
            while seen and seen[0][0] <= time - window:
                since, old = seen.popleft()
                if alive.get(old) == since and old != edge:
                    del alive[old]
                    gone.append(old)
            seen.append((time, edge))
        fresh = [] if edge in alive else [edge]
        alive[edge] = time
        if gone or fresh:
            shape = (-1, 2)
            yield Batch(np.array(gone, np.int64).reshape(shape), distinct(np.array(fresh, np.int64).reshape(shape)))


def read_columns(path: object, columns: int) -> Rows:
    """The first `columns` columns of a tab-separated file of numbers, in the order of its lines."""
    import pyarrow as pa
    from pyarrow import csv

    with pa.input_stream(str(path)) as lines:
        table = csv.read_csv(
            lines,
            read_options=csv.ReadOptions(autogenerate_column_names=True),
            parse_options=csv.ParseOptions(delimiter="\t"),
        )
    return np.stack([np.asarray(table.column(i), dtype=np.int64) for i in range(columns)], axis=1)
