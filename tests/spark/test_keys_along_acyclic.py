"""Recursion along acyclic data in partitions: spread by what all keys of a sum share, in full where it is asked for,
else refused by name. A change that closes a cycle changes nothing.

Catches: keys of one recursion in different partitions, a partition that goes on where another has found a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj.errors import CycleError
from spark_bridge.bridge_errors import PlanError
from spark_bridge.driver import Partitioned
from spark_bridge.keys import OP
from spark_bridge.local import InProcess
from spark_bridge.local_query import LocalQuery
from tests.spark.twin import rows_of

PATHS = """
    .decl edge(x:number, y:number)
    reach(x, b) :- edge(x, b).
    reach(x, b) :- edge(x, y), reach(y, b).
    ways[x, b] = d + sum c : { edge(x, y), ways[y, b] = c } :- reach(x, b), d = count : { edge(x, b) }.
"""
BILL = """
    .decl own(p:number) -> cost:number
    .decl uses(p:number, s:number, q:number)
    .decl order(who:number, p:number)
    total[p] = own[p] + sum q * total[s] : { uses(p, s, q) }.
    owes[w]  = sum c : { order(w, p), total[p] = c }.
"""
Tables = Mapping[str, set[tuple[int, ...]]]


def table(names: str, come: Any, gone: Any = None) -> pa.Table:
    """Rows as a source, or as changes."""
    rows = [*come, *(gone or ())]
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(names)}
    return pa.table(columns if gone is None else columns | {OP: [1] * len(come) + [-1] * len(gone)})


def same(query: LocalQuery, db: lftj.Database, names: tuple[str, ...]) -> None:
    for name in names:
        assert sorted(rows_of(query.result(name))) == sorted(db[name]), name


@pytest.mark.jit_only
def test_paths_are_counted_in_partitions() -> None:
    rng, db = Random(1), lftj.Database(PATHS)
    edges = {(x, y) for x in range(9) for y in range(x + 1, 9) if rng.random() < 0.4}
    db.load("edge", sorted(edges))
    with LocalQuery.create(PATHS, {"edge": table("xy", edges)}, processes=2) as query:
        same(query, db, ("ways", "reach"))
        for step in range(4):
            pairs = {(x, y) for x in range(9) for y in range(x + 1, 9)}
            gone, come = set(rng.sample(sorted(edges), 2)), set(rng.sample(sorted(pairs - edges), 2))
            edges = edges - gone | come
            with db.transaction() as tx:
                tx.erase("edge", sorted(gone))
                tx.insert("edge", sorted(come))
            query.apply({"edge": table("xy", come, gone)}, batch_id=str(step))
            same(query, db, ("ways", "reach"))
        x, y = min(edges)
        version = query.version
        with pytest.raises(CycleError) as refused:
            query.apply({"edge": table("xy", {(y, x)}, set())}, batch_id="cycle")
        assert query.version == version
        assert refused.value.cycle[0] == refused.value.cycle[-1]
        same(query, db, ("ways", "reach", "edge"))


@pytest.mark.jit_only
def test_a_bill_is_held_in_full_where_it_is_asked_for() -> None:
    db = lftj.Database(BILL)
    own = {(p, p * 10) for p in range(1, 7)}
    uses = {(1, 2, 2), (1, 3, 1), (2, 4, 3), (3, 4, 1), (4, 5, 2)}
    orders = {(w, w % 6 + 1) for w in range(20)}
    inputs = {"own": table("pc", own), "uses": table("psq", uses), "order": table("wp", orders)}
    inputs["own"] = inputs["own"].rename_columns(["p", "cost"])
    inputs["order"] = inputs["order"].rename_columns(["who", "p"])
    for name, rows in (("own", own), ("uses", uses), ("order", orders)):
        db.load(name, sorted(rows))
    with LocalQuery.create(BILL, inputs, processes=2, replicate=["total"]) as query:
        same(query, db, ("total", "owes"))
        change = table("pc", {(5, 51)}, {(5, 50)}).rename_columns(["p", "cost", OP])
        with db.transaction() as tx:
            tx.upsert("own", [(5, 51)])
        query.apply({"own": change}, batch_id="price")
        same(query, db, ("total", "owes"))
        with pytest.raises(CycleError) as refused:
            query.apply({"uses": table("psq", {(5, 1, 1)}, set())}, batch_id="cycle")
        around = refused.value.cycle
        assert (around[0], len(around)) == (around[-1], 5)
        assert {1, 4, 5} <= set(around) <= {1, 2, 3, 4, 5}
        assert f"the value of a key is computed from itself: {' -> '.join(map(str, around))}" in str(refused.value)
        same(query, db, ("total", "owes", "uses"))


def test_what_cannot_be_partitioned_is_refused_by_name() -> None:
    inputs = {"own": table("pc", {(1, 1)}), "uses": table("psq", {(1, 2, 1)}), "order": table("wp", {(1, 1)})}
    with pytest.raises(PlanError) as refused:
        LocalQuery.create(BILL, inputs, processes=2)
    assert "`total` cannot be derived partition by partition" in refused.value.what
    assert 'replicate=["total"]' in refused.value.remedy


# With what comes first each: 1 at the ends of the rows.
FOLDS = (
    "t[x] = sum v : { e(x, y), t[y] = v ; w(x, y), t[y] = v }.",
    "t[x] = n :- n = count : { e(x, y), t[y] = _v ; w(x, y), t[y] = _v }, e(x, _).",
    "t[x] = 1 + max v : { e(x, y), t[y] = v }.",
    "t[x] = v * 2 + 1 :- v = min u : { e(x, y), t[y] = u ; w(x, y), t[y] = u }.",
    "t[x] = sum v : { e(x, y), t[y] = v, w(x, z), !t(z, 2) }.",
    "t[x] = n + 1 :- e(x, _), n = count : { w(x, y), !t(y, 1) }.",
    "t[x] = 1 + max v : { e(x, y), t[y] = v, !w(y, v) }.",
)


@pytest.mark.parametrize("rule", FOLDS)
@pytest.mark.filterwarnings("ignore:.*occurs only once")
def test_alternatives_extremes_and_negation_give_what_they_give_in_one_database(tmp_path: Path, rule: str) -> None:
    """Alternatives in braces were aggregates of their own, so equal sums counted once; the others were refused."""
    text = f"""
        .decl e(x:number, y:number)
        .decl w(x:number, y:number)
        .decl asked(x:number)
        .decl t(x:number) -> v:number
        t[x] = 1 :- asked(x), !e(x, _), !w(x, _).
        {rule}
        found(x, v) :- asked(x), t(x, v).
    """
    rng, db = Random(2), lftj.Database(text)

    def rows() -> set[tuple[int, int]]:
        return {(x, y) for x in range(6) for y in range(x) if rng.random() < 0.3}

    facts = {"e": rows(), "w": rows()}
    inputs: dict[str, Any] = {name: sorted(found) for name, found in facts.items()} | {
        "asked": [(x,) for x in range(6)]
    }
    for name, found in inputs.items():
        db.load(name, found)
    query = Partitioned.create(
        InProcess(), text, inputs, checkpoint=tmp_path / "q", partitions=2, replicate=["t"], outputs=["t", "found"]
    )
    for step in range(6):
        for name in ("t", "found"):
            assert sorted(rows_of(query.table(name))) == sorted(db[name]), name
        changes = {name: (found, rows()) for name, found in facts.items()}
        with db.transaction() as tx:
            for name, (gone, come) in changes.items():
                tx.erase(name, sorted(gone))
                tx.insert(name, sorted(come))
        batch = {n: [*((*r, -1) for r in gone), *((*r, 1) for r in come)] for n, (gone, come) in changes.items()}
        query.apply(batch, batch_id=str(step))
        facts = {name: come for name, (_, come) in changes.items()}
    assert query.verify()["ok"]
