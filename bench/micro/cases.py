"""The steps that `bench.micro` measures: one registry, `CASES`, of what is set up once and then done again and again.

Every step leaves things as they were, or takes the next turn of two (rows come, rows go), so that any number of rounds
measures the same. Sizes are small: one run of all of them is to take about a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import lftj
from lftj.values.codes import encode_float
from scantree.memory import Arena
from scantree.radix_sort import sort_words
from scantree.sort import sorting
from scantree.version import Store, Version

Rows = npt.NDArray[np.int64]
Action = Callable[[], object]
NODES, EDGES, LARGE = 5_000, 30_000, 200_000
SINGLE, HUNDRED, WORD_BITS = 1, 100, 44

EDGE = ".decl e(x:number, y:number)"
TRIANGLE = f"{EDGE} h(x, y, z) :- e(x, y), e(y, z), e(x, z)."
REACH = f"{EDGE} .decl start(x:number) start(0). h(x) :- start(x). h(y) :- h(x), e(x, y)."


class Case(NamedTuple):
    """A step: `group` and `name`, and what sets it up and returns it."""

    group: str
    name: str
    make: Callable[[], Action]


class Kept(NamedTuple):
    """A head that is kept by a strategy: `program`, its option `maintain` ("" for none), and the strategy chosen."""

    program: str
    maintain: str
    head: str
    strategy: str


KEPT = {
    "delta": Kept(TRIANGLE, "delta", "h", "delta"),
    "trace": Kept(TRIANGLE, "trace", "h", "trace"),
    "recompute": Kept(TRIANGLE, "recompute", "h", "recompute"),
    "scan": Kept(f"{EDGE} h[x] = max y : {{ e(x, y) }}.", "", "@h.1", "scan"),
    "alias": Kept(f"{EDGE} h(x, y) :- e(x, y).", "", "h", "alias"),
    "rounds": Kept(REACH, "delta", "h", "rounds"),
    "path counts": Kept(EDGE, "", "ways", "paths"),
    "first": Kept(EDGE, "", "@h.first2", "first"),
}


@cache
def pairs(count: int, keys: int, seed: int = 1) -> Rows:
    """Distinct random rows int64[count, 2] of keys below `keys`, in random order."""
    found = np.random.default_rng(seed).choice(keys * keys, count, replace=False)
    return np.stack([found // keys, found % keys], axis=1).astype(np.int64)


def acyclic(layers: int = 40, width: int = 20) -> Rows:
    """Edges int64[n, 2] from every layer of nodes to the next, two of each node."""
    nodes = np.arange((layers - 1) * width)
    layer, at = nodes // width, nodes % width
    return np.concatenate(
        [np.stack([nodes, (layer + 1) * width + (at * 7 + step) % width], axis=1) for step in (0, 3)]
    ).astype(np.int64)


def database(kept: Kept) -> tuple[lftj.Database, Rows]:
    """(a database with the program over its edges, evaluated; the edges)."""
    db = lftj.Database()
    db.rules(kept.program, maintain={"h": kept.maintain} if kept.maintain else None)
    edges = pairs(EDGES, NODES)
    if kept is KEPT["path counts"]:
        db.path_counts("e", into="ways")
        edges = acyclic()
    if kept is KEPT["first"]:
        db.sql("create view h as select x, y from e order by y desc limit 10")
    db.load("e", edges)
    db.evaluate()
    return db, edges


def commit(how: str, size: int) -> Action:
    """A transaction with `size` rows, which it erases and inserts by turns; it is followed as `how` says."""
    kept = KEPT[how]
    db, edges = database(kept)
    rows = edges[np.random.default_rng(2).permutation(len(edges))[:size]]

    def changes() -> Iterator[Any]:
        for erase in cycle((True, False)):
            with db.transaction() as tx:
                (tx.erase if erase else tx.insert)("e", rows)
            yield tx

    turns = changes()
    for _ in range(4):  # the first ones prepare what the strategy keeps
        tx = next(turns)
    heads = tx.stats["heads"]
    reports = heads | {part: report for head in heads.values() for part, report in head.get("parts", {}).items()}
    chosen = reports[kept.head]["strategy"]
    if chosen != kept.strategy:
        raise AssertionError(f"{kept.head} follows by {chosen} where {kept.strategy} was to be measured")
    return partial(next, turns)


def stored(count: int = LARGE) -> Version:
    """A version of random pairs."""
    return Store(Arena(), 2).build(list(pairs(count, LARGE).T))


def build() -> Action:
    """Pairs in random order become a version."""
    store, columns = Store(Arena(), 2), [np.ascontiguousarray(column) for column in pairs(LARGE, LARGE).T]
    return lambda: store.build(columns)


def update(size: int) -> Action:
    """A batch of new pairs is put in."""
    version, ops = stored(), np.ones(size, np.int8)
    batch = np.ascontiguousarray(pairs(size, LARGE, seed=3).T)
    return lambda: version.update(batch, ops)


def merge() -> Action:
    """A large batch of pairs in order is merged with a version in one pass."""
    version, rows = stored(), pairs(LARGE // 4, LARGE, seed=3)
    batch = np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])].T)
    return lambda: version.merged(batch)


def seek_far() -> Action:
    """The keys of a small relation are sought in a large one, by a join."""
    db = lftj.Database(f"{EDGE} .decl f(x:number, y:number)")
    db.load("e", pairs(LARGE, LARGE))
    db.load("f", pairs(LARGE // 100, LARGE, seed=4))
    query = db.query("e(x, y), f(x, z)")
    return query.count


def seek_near() -> Action:
    """Two relations of a size are intersected: most seeks move by a few keys."""
    db = lftj.Database(f"{EDGE} .decl f(x:number, y:number)")
    db.load("e", pairs(EDGES * 2, NODES))
    db.load("f", pairs(EDGES * 2, NODES, seed=4))
    query = db.query("e(x, y), f(x, y)")
    return query.count


def contains() -> Action:
    """Ten thousand rows are looked up in a version, in one call."""
    version = stored()
    rows = np.ascontiguousarray(pairs(LARGE, LARGE)[:10_000].T)
    return lambda: version.contains(rows)


def _points() -> lftj.Database:
    db = lftj.Database(".decl e(x:number, y:number) .decl v(x:number) -> y:number")
    db.load("e", pairs(LARGE, NODES))
    db.load("v", np.stack([np.arange(LARGE), np.arange(LARGE)], axis=1))
    return db


def member() -> Action:
    """Whether a row is in a relation."""
    relation = _points()["e"]
    row = tuple(pairs(LARGE, NODES)[0].tolist())
    return lambda: row in relation


def value() -> Action:
    """The value of a key of a functional predicate."""
    relation = _points()["v"]
    return lambda: relation[LARGE // 2]


def query() -> Action:
    """A query by a constant, its rows read."""
    db = _points()
    return lambda: list(db.query("e(17, y)"))


def prepared() -> Action:
    """A prepared query by a parameter; its rows are not decoded."""
    ask = _points().prepare_query("e($x, y)")
    return lambda: ask(x=17)


def scan() -> Action:
    """The sum of a column over a key interval."""
    relation = _points()["v"]
    return lambda: relation.scan("sum", "y", lo=(100,), hi=(LARGE // 2,))


def words(n: int, sort: Callable[[npt.NDArray[np.uint64]], None]) -> Action:
    """`n` words of 44 bits sorted; copying them is in it."""
    given = np.random.default_rng(4).integers(0, 1 << WORD_BITS, n, np.uint64)
    return lambda: sort(given.copy())


def wide(n: int, sort: Callable[[npt.NDArray[np.int64]], object]) -> Action:
    """What sorts `n` rows of a group and a float, which do not fit into a word with the place of a row."""
    rng = np.random.default_rng(4)
    given = np.stack([rng.integers(0, 100_000, n), encode_float(rng.integers(100, 100_000, n) / 100)])
    return lambda: sort(given)


CASES = [
    *(
        Case(f"commit of {size}", f"{how}, {size} rows", partial(commit, how, size))
        for how in KEPT
        for size in (SINGLE, HUNDRED)
    ),
    Case("seek", "a small relation in a large one", seek_far),
    Case("seek", "two of a size", seek_near),
    Case("seek", "10,000 rows looked up", contains),
    *(
        Case("sort", f"{n:,} words{by}", partial(words, n, sort))
        for n in (60_000, 1_000_000)
        for by, sort in (("", partial(sort_words, bits=WORD_BITS)), (" by numpy", np.ndarray.sort))
    ),
    *(
        Case("sort", f"1,000,000 groups and floats{by}", partial(wide, 1_000_000, sort))
        for by, sort in (("", sorting), (" by numpy", lambda rows: np.lexsort(rows[::-1])))
    ),
    Case("build", "200,000 pairs", build),
    Case("merge", "1 row", partial(update, SINGLE)),
    Case("merge", "100 rows", partial(update, HUNDRED)),
    Case("merge", "10,000 rows", partial(update, 10_000)),
    Case("merge", "50,000 rows in one pass", merge),
    Case("point query", "a row", member),
    Case("point query", "a value", value),
    Case("point query", "a query", query),
    Case("point query", "a prepared query", prepared),
    Case("point query", "a scan", scan),
]
