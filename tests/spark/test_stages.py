"""Programs that take several stages: contents and changes are those of one database after every batch.

Catches: a row that is sent to no partition, to two, or not taken back; a stage that sees half of what another derived;
a batch that counts twice or in part because something died, was refused, or raced between two stages.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, note

import lftj
from lftj.errors import EvaluationError
from spark_bridge import LocalQuery
from spark_bridge.bridge_errors import PlanError
from spark_bridge.driver import Partitioned
from spark_bridge.emit import program_text
from spark_bridge.local import InProcess
from spark_bridge.partition import FAULTS
from spark_bridge.plan import PART, StagedPlan
from spark_bridge.stages import make_stages
from tests.conftest import JIT, ROOT, examples
from tests.engine import programs
from tests.mixed.programs import make_program, make_rows
from tests.spark.test_damage import HOWS, damage
from tests.spark.test_protocol import Watched, all_is_named
from tests.spark.twin import rows_of, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*occurs only once"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
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
TEXTS = [pytest.param(DECLARED + rules, id=name) for name, rules, _ in PROGRAMS]
TWO = DECLARED + PROGRAMS[0][1]
DIVIDING = (
    DECLARED + "n[c] = sum v : { r(_, b, v, _), s(b, c) }. m[] = count : { n(_c, _x) }. q(c, 12 / x) :- n(c, x), m(_)."
)


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


# Answers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("partitions", [2, 5] if JIT else [2])
def test_histories(text: str, partitions: int, tmp_path: Path) -> None:
    both, executor = Both(text, partitions), InProcess()
    query = both.create(tmp_path / "q", executor, partitions)
    both.batches(query, 3)
    both.check(query, since=0)
    executor.worker.forget()
    both.batches(query, 1)
    both.unchanged(query, query.compact())
    both.batches(query, 1)
    both.unchanged(query, query.rescale(partitions % 3 + 1))
    both.batches(query, 1)
    assert not any(part.get("rebuilt") for part in query.metrics()["last"])
    query = Partitioned.open(executor, tmp_path / "q")
    both.batches(query, 1)
    assert query.verify() == {"version": query.version, "damaged": [], "wrong": {}, "ok": True}
    all_is_named(query)


@pytest.mark.parametrize(("text", "stages"), [pytest.param(DECLARED + t, n, id=i) for i, t, n in PROGRAMS])
def test_no_more_stages_than_it_takes(text: str, stages: int) -> None:
    with pytest.raises(PlanError, match="cannot be derived partition by partition"):
        make_stages(text, single=True)
    plan = make_stages(text)
    assert len(plan.stages) == stages
    for stage in plan.stages:
        lftj.Database(program_text(stage))
        assert all(take.stage < plan.stages.index(stage) for take in stage.takes)


@examples(25, 2)
@given(programs.seeds)
def test_random_programs(rng: Random) -> None:
    """Whatever is not recursive takes some stages. A group without a result may be an error in partitions alone."""
    mixed = make_program(rng)
    note(mixed.text)
    plan = make_stages(mixed.text)
    assume(len(plan.stages) > 1)
    facts = {name: set(make_rows(rng, mixed.known[name], 10)) for name in mixed.base}
    for name in mixed.functional & set(mixed.base):
        facts[name] = set({row[:-1]: row for row in facts[name]}.values())
    db = lftj.Database(mixed.text)
    sources = {name: table(plan.schemas[name], sorted(rows)) for name, rows in facts.items()}
    heads, folder = sorted(plan.derived & set(plan.schemas)), Path(tempfile.mkdtemp())
    try:
        try:
            for name, rows in facts.items():
                db.load(name, sorted(rows))
            query = Partitioned.create(
                InProcess(), mixed.text, sources, checkpoint=folder / "q", partitions=rng.choice((2, 3))
            )
        except lftj.Error:
            assume(False)
        for _ in range(3 if JIT else 1):
            before, changes, refused = {name: set(db[name]) for name in heads}, {}, False
            try:
                with db.transaction() as tx:
                    for name in facts:
                        held = sorted(db[name])
                        gone = rng.sample(held, rng.randint(0, min(4, len(held))))
                        come = make_rows(rng, mixed.known[name], 4)
                        if name in mixed.functional:
                            come = list({row[:-1]: row for row in come}.values())
                            gone = sorted({*gone, *(row for row in held if row[:-1] in {r[:-1] for r in come})})
                        tx.erase(name, gone)
                        tx.insert(name, come)
                        ops = [-1] * len(gone) + [1] * len(come)
                        changes[name] = table(plan.schemas[name], [*gone, *come], ops)
            except lftj.Error:
                refused = True
            version = query.version
            try:
                query.apply(changes, batch_id=str(version))
            except lftj.Error:
                assert query.version == version
                if not refused:
                    return
            else:
                assert not refused
                for name in heads:
                    after, change = set(db[name]), query.delta(name, version)
                    assert sorted(rows_of(change.inserted)) == sorted(after - before[name]), name
                    assert sorted(rows_of(change.erased)) == sorted(before[name] - after), name
            for name in heads:
                assert sorted(rows_of(query.table(name))) == sorted(db[name]), name
        assert query.verify()["ok"]
    finally:
        shutil.rmtree(folder)


@pytest.mark.jit_only
def test_in_processes(tmp_path: Path) -> None:
    """A process holds its partition in all stages."""
    both = Both(TWO, 7)
    with LocalQuery.create(TWO, both.inputs(), processes=2, checkpoint=tmp_path / "q") as query:
        seen = {part["process"] for part in query.metrics()["last"]}
        assert (len(seen), len(query.metrics()["last"])) == (2, 6)
        both.batches(query._query, 3)
        assert {part["process"] for part in query.metrics()["last"]} == seen
        assert "sent by stage 2" in str(query.estimate())
        both.unchanged(query._query, query.rescale(3))
        both.batches(query._query, 1)
        assert query.verify()["ok"]


def test_facts_of_heads(tmp_path: Path) -> None:
    """Heads that rules derive may have facts as well: they go to the stage that derives them."""
    text = (
        '.decl e(a:number) t(x + 1) :- e(x). t(7). t(x) :- x = 20. u("no") :- !t(3). u("yes"). w(x, y) :- t(x), u(y).'
    )
    plan, db = make_stages(text), lftj.Database(text)
    query = Partitioned.create(
        InProcess(), text, {"e": table(plan.schemas["e"], [(1,)])}, checkpoint=tmp_path / "q", partitions=3
    )
    db.load("e", [(1,)])
    batches: tuple[dict[str, list[Row]], ...] = (
        {"e": [(2, 1)], "t": [(9, 1), (2, 1)]},
        {"e": [(1, -1)], "u": [("a", 1)]},
    )
    for i, batch in enumerate(batches):
        for name in ("t", "u", "w"):
            assert sorted(rows_of(query.table(name))) == sorted(db[name]), name
        with db.transaction() as tx:
            for name, rows in batch.items():
                tx.erase(name, [row[:-1] for row in rows if row[-1] < 0])
                tx.insert(name, [row[:-1] for row in rows if row[-1] > 0])
        changes = {
            n: table(plan.schemas[n], [r[:-1] for r in rows], [r[-1] for r in rows]) for n, rows in batch.items()
        }
        query.apply(changes, batch_id=str(i))
        if i == 0:
            query.compact()
    for name in ("t", "u", "w"):
        assert sorted(rows_of(query.table(name))) == sorted(db[name]), name
    query.rescale(2)
    assert query.verify()["ok"]
    for name in ("t", "u", "w"):
        assert sorted(rows_of(query.table(name))) == sorted(db[name]), name


# Refusals and deaths between stages ----------------------------------------------------------------------------------


def test_a_batch_that_a_later_stage_refuses_changes_nothing(tmp_path: Path) -> None:
    """The earlier ones have changed their databases: they step back, and nothing is built again."""
    plan, executor = make_stages(DIVIDING), InProcess()
    rows = {"r": [(i, i, 2, 0.5) for i in range(6)], "s": [(i, "xy"[i % 2]) for i in range(6)]}
    inputs = {name: table(plan.schemas[name], found) for name, found in rows.items()}
    query = Partitioned.create(executor, DIVIDING, inputs, checkpoint=tmp_path / "q", partitions=3)
    before = {name: sorted(rows_of(query.table(name))) for name in ("n", "q")}
    assert before["q"] == [("x", 2), ("y", 2)]
    bad = table(plan.schemas["r"], [(9, 0, -6, 0.5)], [1])
    for _ in range(2):
        with pytest.raises(EvaluationError, match="division by zero"):
            query.apply({"r": bad}, batch_id="b")
        assert query.version == 0
        assert {name: sorted(rows_of(query.table(name))) for name in ("n", "q")} == before
    good = table(plan.schemas["r"], [(9, 0, -2, 0.5)], [1])
    done = query.apply({"r": good}, batch_id="b")
    assert (done.version, done.repeated) == (1, False)
    assert not any(part["rebuilt"] for part in query.metrics()["last"])
    assert sorted(rows_of(query.delta("q", 0).signed())) == [("x", 2, -1), ("x", 3, 1)]
    assert query.verify()["ok"]


DRIVER = """
import pickle, sys
from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess, Processes
executor, folder, batch = sys.argv[1:]
text, inputs, changes = pickle.load(open(batch, "rb"))
made = {"here": InProcess, "processes": Processes}[executor]()
if inputs is None:
    query = Partitioned.open(made, folder)
    done = query.apply(changes, batch_id="b")
    sys.exit(10 + done.version)
Partitioned.create(made, text, inputs, checkpoint=folder, partitions=2)
"""


def driver(folder: Path, point: str, both: Both, changes: dict[str, pa.Table] | None, executor: str = "here") -> int:
    """A driver in a process of its own, which creates or applies, and is killed at a point; its exit code."""
    (folder / "batch").write_bytes(pickle.dumps((both.text, both.inputs() if changes is None else None, changes)))
    faults = folder / "faults"
    faults.mkdir()
    (faults / f"{point}-kill").touch()
    environment = {**os.environ, FAULTS: str(faults), "PYTHONPATH": str(ROOT)}
    line: list[Any] = [sys.executable, "-W", "ignore", "-c", DRIVER, executor, folder / "q", folder / "batch"]
    code = subprocess.run(line, env=environment).returncode
    assert not (faults / f"{point}-kill").exists()
    return code


@pytest.mark.parametrize(
    "point", ["stage-1", "stage-2", "before1-1", "output1-0", "state2-1", "worked-0", "committed-0"]
)
def test_a_driver_that_dies_within_a_batch(point: str, tmp_path: Path) -> None:
    """The batch is sent again: it counts once, and nothing is left of the first try."""
    both = Both(TWO, 2)
    query = both.create(tmp_path / "q")
    changes = both.changes()
    assert driver(tmp_path, point, both, changes) == -signal.SIGKILL
    assert query.version == (point == "committed-0")
    again = Partitioned.open(InProcess(), tmp_path / "q")
    done = again.apply(changes, batch_id="b")
    assert (done.version, done.repeated) == (1, point == "committed-0")
    both.check(again)
    both.batches(again, 1)
    both.unchanged(again, again.compact())
    all_is_named(again)
    assert again.verify()["ok"]


@pytest.mark.parametrize("point", ["stage-1", "output2-1", "create-worked-0"])
def test_a_driver_that_dies_while_it_creates(point: str, tmp_path: Path) -> None:
    both = Both(TWO, 3)
    assert driver(tmp_path, point, both, None) == -signal.SIGKILL
    query = both.create(tmp_path / "q", partitions=3)
    all_is_named(query)
    both.batches(query, 1)


@pytest.mark.jit_only
@pytest.mark.parametrize("point", ["before1-1", "output1-0", "state2-1"])
def test_a_process_that_dies_within_a_stage(point: str, tmp_path: Path) -> None:
    """It is replaced, builds its database from files that were committed, and what it is sent comes once."""
    both = Both(TWO, 4)
    query = both.create(tmp_path / "q")
    changes = both.changes()
    assert driver(tmp_path, point, both, changes, "processes") == 11
    both.check(query)
    assert query.apply(changes, batch_id="b").repeated
    assert query.verify()["ok"]


class Staged(Watched):
    """Calls `between` once, when the first stage of a work is done."""

    between: Callable[[], object] | None = None

    def run(self, requests: Any) -> Any:
        if requests[0]["stage"] == 1 and self.between is not None:
            between, self.between = self.between, None
            between()
        return super().run(requests)


def test_a_driver_that_is_overtaken_between_stages(tmp_path: Path) -> None:
    """The other one commits, another batch or the same: the first begins again from there."""
    both, executor = Both(TWO, 5), Staged()
    query = both.create(tmp_path / "q", executor)
    other = Partitioned.open(InProcess(), tmp_path / "q")
    first, second = both.changes(), both.changes()
    executor.between = lambda: other.apply(first, batch_id="first")
    assert query.apply(second, batch_id="second").version == 2
    both.check(query)
    third = both.changes()
    executor.between = lambda: other.apply(third, batch_id="third")
    done = query.apply(third, batch_id="third")
    assert (done.version, done.repeated) == (3, True)
    both.check(query)
    both.check(other)
    both.batches(query, 1)
    assert query.verify()["ok"]


@pytest.mark.parametrize("kind", ["facts", "replica", "output", "journal"])
@pytest.mark.parametrize("version", [0, 2, 3, 4, 5])
def test_damaged_files(kind: str, version: int, tmp_path: Path) -> None:
    """Of all stages at once, at the first base, a batch, a compaction, a batch after it, and another placement."""
    both, how = Both(TWO, version), HOWS[version % len(HOWS)]
    query = both.create(tmp_path / "q")
    both.batches(query, 2)
    both.unchanged(query, query.compact())
    both.batches(query, 1)
    if version == 5:
        both.unchanged(query, query.rescale(3))
    commit = query.checkpoint.commit(version)
    found = commit["journal"] if kind == "journal" else [p[kind] for p in commit["parts"] if p.get(kind)]
    for file in found:
        damage(tmp_path / "q" / file["folder"] / file["name"], how, Random(version))
    again = Partitioned.open(InProcess(), tmp_path / "q")
    told = again.verify()
    assert (len(told["damaged"]), told["wrong"]) == (len(found), {})
    both.batches(again, 1)
    both.unchanged(again, again.compact())
    both.batches(again, 1)
    both.unchanged(again, again.compact())
    assert Partitioned.open(InProcess(), tmp_path / "q").verify()["ok"]


def test_verify_sees_what_was_sent_and_did_not_arrive(tmp_path: Path) -> None:
    both, executor = Both(TWO), InProcess()
    query = both.create(tmp_path / "q", executor)
    (state,) = executor.worker._states.values()
    part = next(part for part in state.checkpoint.commit(0)["parts"] if part["stage"] == 1 and part.get("facts"))
    part["facts"] = None
    told = query.verify()
    assert not told["ok"]
    assert set(told["wrong"]) == {part["partition"]}


# Plans ---------------------------------------------------------------------------------------------------------------


def test_the_text_of_a_plan() -> None:
    text = """
        .decl r(b:number, v:number)
        .decl s(b:number, c:symbol)
        n[c] = sum v : { r(b, v), s(b, c) }.
        m[] = mean v : { n(_c, v) }.
    """
    rows = {"r": 10**6, "s": 10**6}
    assert make_stages(text, rows=rows, partitions=16).explain() == (
        "stage 1\n"
        "@n.1.part(c, sum v) :- r(b, v), s(b, c).  [partitioned by b]\n"
        "    r(b, v): partitioned by b\n"
        "    s(b, c): partitioned by b\n"
        "sent on: @n.1.part(c0, c1), its parts\n"
        "stage 2\n"
        "@n.1(c0, sum c1) :- @n.1.parts(p, c0, c1).  [partitioned by c0]\n"
        "    @n.1.parts(p, c0, c1): sent by stage 1, partitioned by c0\n"
        "n(c, _v1) :- @n.1(c, _v1).  [partitioned by c]\n"
        "    @n.1(c, _v1): partitioned by c\n"
        "sent on: n(c, c1)\n"
        "stage 3\n"
        "@m.1(mean v) :- n(_c, v).  [derived by one partition]\n"
        "    n(_c, v): sent by stage 2, held by one partition\n"
        "m(_v1) :- @m.1(_v1).  [derived by one partition]\n"
        "    @m.1(_v1): held by one partition"
    )


def test_one_stage_where_that_is_as_good() -> None:
    """Parts that nobody reads stay for the reader; parts are sent where they spare many rows."""

    def stages(rules: str, rows: int, partitions: int = 8) -> StagedPlan:
        return make_stages(DECLARED + rules, rows={"r": rows, "s": rows // 10}, partitions=partitions)

    total = "n[c] = sum v : { r(_, b, v, _), s(b, c) }. "
    large = stages(total, 10**6)
    assert (len(large.stages), large.outputs["n"].kind) == (1, PART)
    read = total + "big(c) :- n(c, x), x > 3."
    assert len(stages(read, 1000).stages) == 1
    assert len(stages(read, 10**6).stages) == 2
    assert len(stages(read, 10**6, partitions=2).stages) == 1
    assert len(stages("t(a, b, c) :- r(a, b, _, _), r(b, c, _, _), r(a, c, _, _).", 10**6).stages) == 1


def test_a_plan_does_not_change_when_it_is_made_again(tmp_path: Path) -> None:
    """A checkpoint of one stage, as older ones are, stays one of one stage."""
    both = Both(TWO)
    query = both.create(tmp_path / "q")
    assert query.checkpoint.commit(0)["layout"]["staged"]
    shown = query.state.layout(0).plan.explain()
    line = [sys.executable, "-W", "ignore", "-c", SHOW, str(tmp_path / "q")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    assert subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout == shown
    with pytest.raises(PlanError):
        make_stages(TWO, second=True)


SHOW = """
import sys
from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess
sys.stdout.write(Partitioned.open(InProcess(), sys.argv[1]).state.layout(0).plan.explain())
"""


@pytest.mark.parametrize(
    ("rules", "relation"),
    [
        ("t(a, b) :- r(a, b, _, _). t(a, c) :- t(a, b), t(b, c).", "t"),
        (
            """
            n[b] = count : { r(_, b, _, _) }.
            u(x, y) :- r(x, y, _, _), n(x, _).
            u(x, z) :- v(x, y), r(y, z, _, _).
            v(x, y) :- u(y, x).
            """,
            "u",
        ),
    ],
)
def test_a_recursion_that_changes_its_variable_is_refused_by_name(rules: str, relation: str) -> None:
    with pytest.raises(PlanError) as refused:
        make_stages(DECLARED + rules)
    assert refused.value.relation == relation
    assert f"`{relation}` cannot be derived partition by partition" in refused.value.what
    assert "it is recursive, and partitions send what they derive when a recursion has ended" in refused.value.why
    assert f'replicate=["{relation}"]' in refused.value.remedy
    plan = make_stages(DECLARED + rules + "o(a) :- r(a, _, _, _).", replicate=[relation])
    assert plan.holds(relation)


# Spark ---------------------------------------------------------------------------------------------------------------


def on_spark(spark: Any, both: Both, folder: Path) -> Any:
    from spark_bridge import SparkQuery

    frames = {name: spark.createDataFrame(rows) for name, rows in both.inputs().items()}
    return SparkQuery.create(spark, both.text, frames, checkpoint=folder, partitions=2)


@pytest.mark.spark
@pytest.mark.jit_only
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    """A stage is a job within the same apply; frames are read from the stage that answers."""
    both = Both(TWO, 8)
    query = on_spark(spark, both, tmp_path / "q")
    for i in range(2):
        changes = both.changes()
        frames = {name: spark.createDataFrame(rows) for name, rows in changes.items()} if i else changes
        assert query.apply(frames, batch_id=str(i)).version == i + 1
        assert query.apply(frames, batch_id=str(i)).repeated
        both.check(query._query)
        for name in both.heads:
            assert {tuple(row) for row in query.result(name).collect()} == both.history[-1][name]
    both.unchanged(query._query, query.compact())
    both.unchanged(query._query, query.rescale(3))
    query.apply(both.changes(), batch_id="last")
    both.check(query._query)
    assert query.verify()["ok"]
    query.close()


@pytest.mark.spark
@pytest.mark.jit_only
@pytest.mark.parametrize("point", ["before1", "output1", "state2"])
def test_a_task_that_is_killed_within_a_stage(spark: Any, faults: Path, tmp_path: Path, point: str) -> None:
    """Spark runs it again, and the batch counts once."""
    both = Both(TWO, 9)
    query = on_spark(spark, both, tmp_path / "q")
    for partition in (0, 1):
        wish = faults / f"{point}-{partition}-kill"
        wish.touch()
        changes = both.changes()
        assert query.apply(changes, batch_id=str(partition)).version == partition + 1
        assert not wish.exists()
        assert query.apply(changes, batch_id=str(partition)).repeated
        both.check(query._query)
    assert query.verify()["ok"]
    query.close()
