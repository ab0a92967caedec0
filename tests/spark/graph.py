"""A small graph query that the tests of the protocol share, and what it should say."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import lftj
from spark_bridge.driver import Applied, Executor, Partitioned
from tests.spark.twin import rows_of

PROGRAM = """
.decl edge(a:number, b:number)
.decl name(a:number, n:symbol)
tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).
degree[x] = count : { edge(x, _) }.
named(x, n) :- name(x, n), edge(x, _), !edge(x, x).
"""
OUTPUTS = ("tri", "degree", "named", "edge", "name")


class Graph:
    """A partitioned query and a database that holds everything."""

    def __init__(self, seed: int = 0, nodes: int = 12) -> None:
        self.rng, self.nodes = Random(seed), nodes
        self.db = lftj.Database(PROGRAM)
        self.db.load("edge", [self._edge() for _ in range(40)])
        self.db.load("name", [(i, "abc"[i % 3]) for i in range(nodes)])

    def _edge(self) -> tuple[int, int]:
        return self.rng.randrange(self.nodes), self.rng.randrange(self.nodes)

    def inputs(self) -> dict[str, pa.Table]:
        return {name: self.db[name].arrow() for name in ("edge", "name")}

    def create(self, executor: Executor, folder: Path, partitions: int = 2, **options: Any) -> Partitioned:
        query = Partitioned.create(
            executor, PROGRAM, self.inputs(), checkpoint=folder, partitions=partitions, **options
        )
        self.check(query)
        return query

    def changes(self) -> dict[str, pa.Table]:
        """A batch, made in the database as well."""
        edges = sorted(self.db["edge"])
        erased = self.rng.sample(edges, min(4, len(edges)))
        inserted = [self._edge() for _ in range(5)]
        name = (self.rng.randrange(self.nodes), "éa"[self.rng.randrange(2)])
        with self.db.transaction() as tx:
            tx.erase("edge", erased)
            tx.insert("edge", inserted)
            tx.insert("name", [name])
        self.last = tx.delta
        rows = [(*row, -1) for row in erased] + [(*row, 1) for row in inserted]
        self.rng.shuffle(rows)
        return {
            "edge": pa.table({k: [row[i] for row in rows] for i, k in enumerate(("a", "b", "_op"))}),
            "name": pa.table({"a": [name[0]], "n": [name[1]], "_op": [1]}),
        }

    def check(self, query: Partitioned) -> None:
        """Every relation is what the database says, each row once."""
        for name in OUTPUTS:
            assert sorted(rows_of(query.table(name))) == sorted(self.db[name]), name

    def check_delta(self, query: Partitioned, done: Applied) -> None:
        """The change of the last batch is the database's."""
        for name in OUTPUTS:
            delta = query.delta(name, done.version - 1, done.version)
            assert sorted(rows_of(delta.inserted)) == sorted(self.last[name].inserted), name
            assert sorted(rows_of(delta.erased)) == sorted(self.last[name].erased), name
            assert done.changed.get(name, (0, 0)) == (delta.erased.num_rows, delta.inserted.num_rows), name
        self.check(query)
