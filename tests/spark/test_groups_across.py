"""Random group-bys over joins, their groups across partitions: contents and changes are those of one database.

Catches: a binding that two partitions count or none does; a group that stays when its last part went, or one whose sum
is 0 that goes; a change told twice or not at all because several versions, a compaction, another placement, a damaged
file, a refused batch or a killed process came between.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj.errors import EvaluationError
from spark_bridge import LocalQuery
from spark_bridge.change_tables import ChangeTables
from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess
from spark_bridge.plan import PART
from spark_bridge.planner import make_plan
from tests.spark.test_damage import HOWS, damage
from tests.spark.twin import rows_of, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*occurs only once"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
DECLARED = ".decl r(a:number, b:number, v:number) .decl s(b:number, c:symbol, w:number) .decl t(a:number, w:number)"
Row = tuple[Any, ...]
BODIES = (
    "r(a, b, v), s(b, c, w)",
    "r(a, b, v), s(b, c, w), t(a, _)",
    "r(a, b, v), s(b, c, w), !t(a, w)",
    "r(a, b, v), r(b, _, w), s(a, c, _), v != 2",
    "r(a, b, v), t(a, w), s(_, c, w)",
)

THREE = f"""
{DECLARED}
n[c] = sum v * w : {{ {BODIES[0]} }}.
m[] = count : {{ {BODIES[2]} }}.
x[w] = max v : {{ {BODIES[0]} }}.
"""


def program(rng: Random) -> str:
    """Declarations and two to four heads, of a sum, a count or an extreme each, by none to two of the variables."""
    lines = [DECLARED]
    for i in range(rng.randint(2, 4)):
        body = rng.choice(BODIES)
        keys = ", ".join(rng.sample(["c", "w", "v"], rng.randint(0, 2)))
        value = rng.choice(("count", "sum v", "sum v * w", "sum w - 1", "min v", "max v * w"))
        lines.append(f"h{i}[{keys}] = {value} : {{ {body} }}.")
    return "\n".join(lines)


def some_rows(rng: Random, name: str, count: int) -> set[Row]:
    def small() -> int:
        return rng.randrange(-2, 5)

    made = {"r": lambda: (small(), small(), small()), "s": lambda: (small(), rng.choice("xyé"), small())}
    return {made.get(name, lambda: (small(), small()))() for _ in range(count)}


class Both:
    """A partitioned query and a database, which get the same batches."""

    def __init__(self, rng: Random, text: str) -> None:
        self.rng, self.text = rng, text
        self.plan = make_plan(text)
        self.heads = sorted(self.plan.derived & set(self.plan.schemas))
        facts = {name: some_rows(rng, name, 14) for name in ("r", "s", "t")}
        self.facts = {name: table(self.plan.schemas[name], sorted(rows)) for name, rows in facts.items()}
        self.db = lftj.Database(text)
        for name, rows in facts.items():
            self.db.load(name, sorted(rows))
        self.history = [self.contents()]

    def contents(self) -> dict[str, set[Row]]:
        return {name: set(self.db[name]) for name in self.heads}

    def batch(self) -> dict[str, pa.Table]:
        """The next batch, made in the database."""
        found = {}
        with self.db.transaction() as tx:
            for name in self.rng.sample(["r", "s", "t"], self.rng.randint(1, 3)):
                rows = sorted(self.db[name])
                gone = self.rng.sample(rows, self.rng.randint(0, len(rows)))  # now and then every group goes
                come = sorted(some_rows(self.rng, name, self.rng.randint(0, 5)))
                tx.erase(name, gone)
                tx.insert(name, come)
                ops = [-1] * len(gone) + [1] * len(come)
                found[name] = table(self.plan.schemas[name], [*gone, *come], ops)
        self.history.append(self.contents())
        return found

    def check(self, name: str, version: int, content: Any, since: int, change: ChangeTables) -> None:
        """What a query says of a head at a version, and of its change from an earlier one."""
        before, after = self.history[since][name], self.history[version][name]
        assert sorted(rows_of(content)) == sorted(after), (self.text, name)
        assert sorted(rows_of(change.erased)) == sorted(before - after), (self.text, name)
        assert sorted(rows_of(change.inserted)) == sorted(after - before), (self.text, name)

    def check_all(self, query: Partitioned, since: int | None = None) -> None:
        version = len(self.history) - 1
        for name in self.heads:
            first = max(version - 1, 0) if since is None else since
            change = query.delta(name, first, version)
            self.check(name, version, query.table(name), first, change)


@pytest.fixture(autouse=True)
def parts_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are kept wherever they can be, though they spare next to no rows here."""
    monkeypatch.setattr("spark_bridge.planner.SPARED", 0.0)


def crossing(query: Partitioned) -> int:
    """The heads that are kept in parts."""
    return sum(pattern.kind == PART for pattern in query.state.layout(query.version).plan.outputs.values())


def test_random_programs(tmp_path: Path) -> None:
    across = 0
    for seed in range(12):
        rng = Random(seed)
        both, executor = Both(rng, program(rng)), InProcess()
        partitions = rng.choice((2, 3, 5))
        query = Partitioned.create(
            executor, both.text, both.facts, checkpoint=tmp_path / str(seed), partitions=partitions
        )
        across += crossing(query)
        both.check_all(query)
        for _ in range(4):
            done = query.apply(both.batch(), batch_id=str(query.version))
            assert done.version == len(both.history) - 1
            both.check_all(query)
            if rng.random() < 0.3:
                executor.worker.forget()
                query = Partitioned.open(executor, tmp_path / str(seed))  # with no sums at hand
        both.check_all(query, since=1)
        both.check_all(query, since=0)
        assert query.verify()["ok"]
    assert across > 12


def test_compaction_and_another_placement(tmp_path: Path) -> None:
    both = Both(Random(3), f"{DECLARED} n[c] = count : {{ {BODIES[0]} }}. t0[] = sum v * w : {{ {BODIES[1]} }}.")
    query = Partitioned.create(InProcess(), both.text, both.facts, checkpoint=tmp_path / "q", partitions=3)
    assert crossing(query) == 2
    for step in (query.compact, lambda: query.rescale(2), query.compact):
        query.apply(both.batch(), batch_id=str(query.version))
        both.check_all(query)
        step()
        both.history.append(both.history[-1])
        if query.checkpoint.commit(query.version)["kind"] == "compact":  # a change across a rescale is refused
            both.check_all(query)
    query.apply(both.batch(), batch_id=str(query.version))
    both.check_all(query)


@pytest.mark.parametrize("how", HOWS)
def test_damaged_outputs(how: str, tmp_path: Path) -> None:
    """Every output file in turn, of an old version or the last: what they held is evaluated again."""
    both = Both(Random(4), f"{DECLARED} n[c] = sum v : {{ {BODIES[0]} }}.")
    query = Partitioned.create(InProcess(), both.text, both.facts, checkpoint=tmp_path / "q", partitions=2)
    assert crossing(query) == 1
    for _ in range(2):
        query.apply(both.batch(), batch_id=str(query.version))
    for path in sorted((tmp_path / "q" / "output").iterdir()):
        kept = path.read_bytes()
        damage(path, how, Random(len(kept)))
        again = Partitioned.open(InProcess(), tmp_path / "q")
        both.check_all(again, since=0)
        both.check_all(again)
        path.write_bytes(kept)


def test_a_refused_batch_leaves_sums_as_they_were(tmp_path: Path) -> None:
    """One partition divides by zero, the other has changed its part."""
    text = f"{DECLARED} n[c] = sum v / w : {{ r(_, b, v), s(b, c, w) }}."
    facts = {
        "r": table(make_plan(text).schemas["r"], [(i, i, 10) for i in range(8)]),
        "s": table(make_plan(text).schemas["s"], [(i, "xy"[i % 2], 2) for i in range(8)]),
    }
    query = Partitioned.create(InProcess(), text, facts, checkpoint=tmp_path / "q", partitions=2)
    assert crossing(query) == 1
    schema = query.state.layout(0).schemas["s"]
    content = [("x", 20), ("y", 20)]
    assert sorted(rows_of(query.table("n"))) == content
    bad = table(schema, [(i, "x", 0 if i == 3 else 5) for i in range(8)], [1] * 8)
    for _ in range(2):
        with pytest.raises(EvaluationError, match="division by zero"):
            query.apply({"s": bad}, batch_id="b")
        assert query.version == 0
        assert sorted(rows_of(query.table("n"))) == content
    done = query.apply({"s": bad.filter(pa.compute.not_equal(bad["w"], 0))}, batch_id="b")
    assert (done.version, done.repeated) == (1, False)
    assert sorted(rows_of(query.table("n"))) == [("x", 20 + 7 * 2), ("y", 20)]
    assert rows_of(query.delta("n", 0).signed()) == [("x", 20, -1), ("x", 34, 1)]
    assert query.verify()["ok"]


@pytest.mark.jit_only
def test_in_processes() -> None:
    both = Both(
        Random(7),
        THREE,
    )
    with LocalQuery.create(both.text, both.facts, processes=2) as query:
        assert crossing(query._query) == 3
        for _ in range(6):
            query.apply(both.batch(), batch_id=str(query.version))
            both.check_all(query._query)
        assert query.verify()["ok"]


class OnSpark(Both):
    """The same by data frames."""

    def check_frames(self, query: Any) -> None:
        version = query.version
        for name in self.heads:
            signed = query.delta(name, version - 1).toArrow()
            ops = signed.column("_op").to_numpy()
            rows = signed.drop_columns(["_op"])
            change = ChangeTables(rows.filter(pa.array(ops < 0)), rows.filter(pa.array(ops > 0)))
            self.check(name, version, query.result(name).toArrow(), version - 1, change)
            assert sorted(rows_of(query.delta_table(name, version - 1))) == sorted(rows_of(signed))


@pytest.mark.spark
@pytest.mark.parametrize("large", [False, True])
def test_on_spark(spark: Any, tmp_path: Path, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by the driver, and, as if that were too much for it, by jobs."""
    from spark_bridge import SparkQuery

    if large:
        monkeypatch.setattr("spark_bridge.spark.SMALL_BYTES", -1)
    both = OnSpark(Random(8 + large), THREE)
    frames = {name: spark.createDataFrame(rows) for name, rows in both.facts.items()}
    query = SparkQuery.create(spark, THREE, frames, checkpoint=tmp_path / "q", partitions=2)
    assert crossing(query._query) == 3
    for i in range(3):
        changes: Mapping[str, Any] = both.batch()
        if i == 1:
            changes = {name: spark.createDataFrame(rows) for name, rows in changes.items()}
        query.apply(changes, batch_id=str(i))
        both.check_frames(query)
    assert query.verify()["ok"]
    query.close()


@pytest.mark.spark
@pytest.mark.parametrize("point", ["before", "output", "return"])
def test_a_task_that_is_killed_within_a_batch(spark: Any, faults: Path, tmp_path: Path, point: str) -> None:
    """Spark runs it again, and the batch counts once."""
    from spark_bridge import SparkQuery

    both = OnSpark(Random(11), THREE)
    frames = {name: spark.createDataFrame(rows) for name, rows in both.facts.items()}
    query = SparkQuery.create(spark, THREE, frames, checkpoint=tmp_path / "q", partitions=2)
    for partition in (0, 1):
        wish = faults / f"{point}-{partition}-kill"
        wish.touch()
        changes = both.batch()
        assert query.apply(changes, batch_id=str(partition)).version == partition + 1
        assert not wish.exists()
        both.check_frames(query)
        assert query.apply(changes, batch_id=str(partition)).repeated
        both.check_frames(query)
    assert query.verify()["ok"]
    query.close()
