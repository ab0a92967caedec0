"""Every kernel, used once: what `Database.prepare` compiles, or loads from the cache, so that no later call does.

A database of `PROGRAM` is made to do everything that compiles: joins, traces of either granularity, deltas, rounds,
levels, triggers, aggregates, scans and functional predicates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lftj.evaluate.variances import VARIANCES
from lftj.join import exactsum
from lftj.join.dense_groups import LEAST, NumberedGroups, dense_extremes, dense_words
from lftj.join.frames import (
    best_of_frames,
    distinct_in_frames,
    ends_by_value,
    modes_of_frames,
    ranked_in_frames,
    sums_of_frames,
)
from lftj.join.row_table import RowTable
from lftj.values.arrow_arrays import texts
from lftj.values.text_index import TextIndex
from scantree.sort import sorting

PROGRAM = ".decl e(x:number, y:number)  t(x, y, z) :- e(x, y), e(y, z), e(x, z), x < z + 1."


def use_all(db: Any) -> None:
    """Evaluate, maintain and scan in an empty `Database` of `PROGRAM`."""
    db._evaluator.pilot_from = 0.0  # so that what only expensive joins need is compiled, too
    keys = np.arange(200)
    edges = np.stack([np.concatenate([keys] * 4), np.concatenate([keys + i for i in (1, 2, 3, 4)])], axis=1)
    db.load("e", edges[::-1])
    db.query("e(y, x), e(z, x)").count()
    assert len(db["t"]) == 1190  # with a jump table, which sparser keys do not get
    db.load("e", [(500, 501)])
    assert len(db["t"]) == 1190
    # Traces of either granularity; `p` counts derivations. First they are recorded, then maintained.
    db.rules("n(x, y, z) :- e(x, y), e(y, z), e(x, z).", granularity={"n": "node"}, maintain={"n": "trace"})
    db.rules("p(x, z) :- e(x, y), e(y, z).", granularity={"p": "interval"}, maintain={"p": "trace"})
    # What follows by delta, recursion by rounds, along acyclic data by levels, and sums by triggers.
    db.rules("d(x, z) :- e(x, y), e(y, z), !e(x, z).", maintain={"d": "delta"})
    db.rules("r(x, y) :- e(x, y), x > 190.  r(x, z) :- r(x, y), e(y, z).")
    db.rules("h[x] = 1 + count : { e(x, y), x < y, h[y] < 3 } :- e(x, _).")
    sums = "w[y] = sum x * z : { e(x, y), e(y, z) }.  v[y] = count : { e(_, y) }."
    db.rules(sums, maintain={"w": "triggers", "v": "triggers"})
    for row in (600, 601), (199, 205), (601, 602):
        with db.transaction() as tx:
            tx.insert("e", [row])
            tx.erase("e", [(500, 501), (50, 52)])
    assert tx.stats["heads"]["d"]["strategy"] == "delta"
    assert tx.stats["heads"]["r"]["strategy"] == "rounds"
    assert tx.stats["heads"]["h"]["strategy"] == "levels"
    assert tx.stats["heads"]["n"]["strategy"] == tx.stats["heads"]["p"]["strategy"] == "trace"
    assert list(tx.delta["p"].inserted) == [(600, 602)]
    assert (601, 600 * 602) in db["w"]
    with db.transaction() as tx:
        tx.insert("e", [(601, 603), (602, 603)])  # not one row alone, which is followed in one call
    assert (603, 2) in db["v"]
    assert (1, 2, 3) in db["t"]
    assert next(iter(db["t"])) == (0, 1, 2)
    assert db["e"].scan("sum", lo=(10,), hi=(19,)) == 4 * sum(range(10, 20)) + 100
    # Accumulators, exact sums of floats, the ends of groups and scans of them.
    db.rules(
        ".decl f(x:number, y:number, w:float)  s(x, t) :- e(x, _), t = sum w : { f(x, _, w) }."
        "m(x, t) :- e(x, _), t = max w : { f(x, _, w) }.  l(x, y, t) :- e(x, y), t = max w : { f(x, y, w) }."
    )
    db.load("f", [(1, 2, 0.5)])
    assert (1, 0.5) in db["s"]
    for weight in (1, 2, 0.25), (1, 3, 2.0):
        with db.transaction() as tx:
            tx.insert("f", [weight])
    assert (1, 2.75) in db["s"]
    assert (1, 2.0) in db["m"]
    assert (1, 3, 2.0) in db["l"]
    TextIndex().add(texts([*map(str, range(2_000))]))  # what many texts are looked up in, and how it grows
    ones = np.ones((2, LEAST), np.int64)
    numbered = NumberedGroups.of(ones[:1])
    numbered.sums(ones[0], ones[1], 0, 32)
    numbered.extremes(ones[1], ones[1], last=True)
    exactsum.sums_of_few(ones[1], ones[0], numbered.at, numbered.room)
    assert NumberedGroups.dense(1024 * np.arange(LEAST)[None, :]) is not None  # in steps
    assert NumberedGroups(np.array([1, 0]), 2, None, ones).runs()[1] is not None
    frames = np.zeros(LEAST, np.int64), np.full(LEAST, LEAST)
    assert sums_of_frames(ones[0], ones[0] > 0, *frames, ones[0]) is not None
    best_of_frames(ones[0], ones[0] > 0, *frames, last=True)
    ends_by_value(ones[0], ones[0] > 0, ones[0], *frames, nulls_first=True, beyond=True)
    VARIANCES["var_pop"].of_frames(ones[0], "number", "number", ones[0] > 0, *frames, ones[0])
    ranked_in_frames(ones[0], ones[0] > 0, *frames, ones)
    modes_of_frames(ones[0], ones[0] > 0, *frames)
    distinct_in_frames(ones[0], ones[0] > 0, *frames)
    assert sorting(ones)[1]
    assert dense_words(ones[:1], ones) is not None
    assert dense_extremes(ones, last=True) is not None
    for key in np.arange(3)[None, :], np.arange(0, 3 << 40, 1 << 40)[None, :]:  # that lie close together, and apart
        table = RowTable.of(key)
        assert table is not None
        assert table.rows(key).tolist() == [0, 1, 2]
    content = db._relations["e"].content  # what functional predicates are checked and upserted by
    assert content.some_columns((1,)).shape == (1, len(content))
    assert content.pair(1) is not None
    assert content.pair(2, content.rows_under(np.array([[1]]))) is None
    assert content.pair_nearby(content.columns(), 1, (0,), 9)[0]
    assert db.memory()["total"]["pages"] > 0  # releases what the old versions held
