"""Programs that take several stages, and a query in stages beside the database that it is to equal."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import lftj
from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess
from spark_bridge.stages import make_stages
from tests.spark.twin import rows_of, table

Row = tuple[Any, ...]
DECLARED = ".decl r(a:number, b:number, v:number, f:float) .decl s(b:number, c:symbol)\n"

# (name, rules, stages): what one partitioning refuses.
PROGRAMS = (
    (
        "aggregates of aggregates",
        """
        n[c] = sum v : { r(_, b, v, _), s(b, c) }.
        top[] = max x : { n(_c, x) }.
        mean_of[] = mean x : { n(_c, x) }.
        above(c) :- n(c, x), mean_of(m), to_float(x) > m.
        """,
        3,
    ),
    (
        "a rule over a crossing count",
        "n[] = count : { r(_, b, _, _), s(b, _) }. few(a) :- r(a, _, _, _), n(x), x < 20.",
        3,
    ),
    ("float sums and means", "m[] = mean f : { r(_, b, _, f), s(b, _) }. t[] = sum f : { r(_, _, _, f) }.", 2),
    ("extremes of texts", "least[] = min c : { r(_, b, _, _), s(b, c) }. is(b) :- s(b, c), least(c).", 3),
    (
        "two heads by different variables",
        "j(a, b) :- r(a, b, _, _), s(b, _). k(b, a) :- r(a, b, _, _), !s(b, _). t(a, d) :- j(a, b), k(d, a), j(d, b).",
        2,
    ),
    (
        "recursion over what is sent",
        """
        e(a, b) :- r(a, b, v, _), v > 0.
        d[b] = count : { r(_, b, _, _) }.
        q(a, b) :- e(a, b), d(a, x), d(b, y), x >= y.
        p(x, y) :- q(x, y).
        p(x, z) :- p(x, y), q(y, z).
        """,
        3,
    ),
    (
        "negation of what is sent",
        "j(a, c) :- r(a, b, _, _), s(b, c). t(c, d) :- s(_, c), j(_, d), !j(3, c), c != d.",
        2,
    ),
    ("heads that are computed", "t(x + 1) :- r(x, _, _, _). t(y) :- s(y, _). w(c) :- t(x), s(x, c).", 3),
    (
        "heads without variables",
        't() :- r(_, 2, _, _). u("no") :- !t(). u("yes") :- t(), r(1, 1, _, _). n() :- !u("no").',
        5,
    ),
    ("one row, or none", "m[] = max v : { r(_, b, v, _), s(b, _) }. w(a) :- r(a, _, v, _), m(v). z() :- !w(2).", 4),
    ("recursion from a computed row", "p(x + 1, y) :- r(x, y, _, _). p(x, z) :- p(x, y), r(y, z, _, _).", 2),
)
TOTALS = DECLARED + PROGRAMS[0][1]


class Both:
    """A query in stages and a database, which get the same batches."""

    def __init__(self, text: str, seed: int = 0, rows: int = 14) -> None:
        self.text, self.rng = text, Random(seed)
        self.plan = make_stages(text)
        self.db = lftj.Database(text)
        for name in ("r", "s"):
            self.db.load(name, sorted(self.rows(name, rows)))
        self.heads = sorted(self.plan.derived & set(self.plan.schemas))
        self.history = [self.contents()]

    def rows(self, name: str, count: int) -> set[Row]:
        """Rows of small values, and floats that are sums of powers of two or not."""
        small, rng = lambda: self.rng.randrange(6), self.rng
        if name == "s":
            return {(small(), rng.choice("xyé")) for _ in range(count)}
        return {(small(), small(), rng.randrange(-2, 6), rng.choice((0.1, 0.25, -1e9, 3.5))) for _ in range(count)}

    def contents(self) -> dict[str, set[Row]]:
        return {name: set(self.db[name]) for name in self.heads}

    def inputs(self) -> dict[str, pa.Table]:
        return {name: table(self.plan.schemas[name], sorted(self.db[name])) for name in ("r", "s")}

    def create(self, folder: Path, executor: Any = None, partitions: int = 2, **options: Any) -> Partitioned:
        executor = executor or InProcess()
        query = Partitioned.create(
            executor, self.text, self.inputs(), checkpoint=folder, partitions=partitions, **options
        )
        assert len(query.state.layout(0).stages) > 1
        self.check(query)
        return query

    def changes(self) -> dict[str, pa.Table]:
        """The next batch, made in the database as well."""
        found = {}
        with self.db.transaction() as tx:
            for name in self.rng.sample(("r", "s"), self.rng.randint(1, 2)):
                held = sorted(self.db[name])
                gone = self.rng.sample(held, self.rng.randint(0, min(6, len(held))))
                come = sorted(self.rows(name, self.rng.randint(0, 6)))
                tx.erase(name, gone)
                tx.insert(name, come)
                found[name] = table(self.plan.schemas[name], [*gone, *come], [-1] * len(gone) + [1] * len(come))
        self.history.append(self.contents())
        return found

    def check(self, query: Any, since: int | None = None) -> None:
        """Contents, and the changes since a version (default: the last but one)."""
        last = len(self.history) - 1
        assert query.version == last
        for name in self.heads:
            after = self.history[last][name]
            assert sorted(rows_of(query.table(name))) == sorted(after), (self.text, name)
            if last:
                first = last - 1 if since is None else since
                before, change = self.history[first][name], query.delta(name, first)
                assert sorted(rows_of(change.erased)) == sorted(before - after), (self.text, name)
                assert sorted(rows_of(change.inserted)) == sorted(after - before), (self.text, name)

    def unchanged(self, query: Partitioned, version: int) -> None:
        """A version with the same content was made."""
        assert version == len(self.history)
        self.history.append(self.history[-1])
        if query.checkpoint.commit(version)["kind"] == "compact":  # a change across a rescale is refused
            self.check(query)

    def batches(self, query: Partitioned, count: int) -> None:
        for _ in range(count):
            done = query.apply(self.changes(), batch_id=str(query.version))
            self.check(query)
            before, after = self.history[-2:]
            assert {name: moved for name, moved in done.changed.items() if name in self.heads} == {
                name: (len(before[name] - after[name]), len(after[name] - before[name]))
                for name in self.heads
                if before[name] != after[name] and not query.in_parts(name, query.version)
            }


class Replayed(Both):
    """A twin again, from where it was when the next batches were written down with what they lead to."""

    def __init__(self, both: Both, coming: list[tuple[dict[str, pa.Table], dict[str, set[Row]]]]) -> None:
        self.__dict__ |= both.__dict__
        self.history, self.coming = list(both.history), iter(coming)

    def changes(self) -> dict[str, pa.Table]:
        found, contents = next(self.coming)
        self.history.append(contents)
        return found
