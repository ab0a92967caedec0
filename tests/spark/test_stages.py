"""Programs that take several stages: contents and changes are those of one database after every batch; their plans.

Catches: a row that is sent to no partition, to two, or not taken back; a stage that sees half of what another derived;
stages where one would do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given, note

import lftj
from spark_bridge import LocalQuery
from spark_bridge.bridge_errors import PlanError
from spark_bridge.driver import Partitioned
from spark_bridge.emit import program_text
from spark_bridge.local import InProcess
from spark_bridge.plan import PART, StagedPlan
from spark_bridge.stages import make_stages
from tests.conftest import IN_CI, JIT, ROOT, examples
from tests.engine import programs
from tests.mixed.programs import make_program, make_rows
from tests.spark.staged import DECLARED, PROGRAMS, TOTALS, Both, Row
from tests.spark.test_damage import HOWS, damage
from tests.spark.test_protocol import all_is_named
from tests.spark.twin import rows_of, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*occurs only once"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
TEXTS = [pytest.param(DECLARED + rules, id=name) for name, rules, _ in PROGRAMS]


# Answers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("partitions", [2, 5] if JIT and not IN_CI else [2])
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


BY_KEY = """
    n[c] = sum v : { r(_, b, v, _), s(b, c) }.
    k[a, c] = count : { r(a, b, _, _), s(b, c) }.
    least[c] = min f : { r(_, b, _, f), s(b, c) }.
    first[v] = min c : { r(_, b, v, _), s(b, c) }.
    found(c, x, f) :- n(c, x), least(c, f), !k(3, c, x).
    most[] = max x : { k(_a, _c, x) }.
    texts(v, x) :- first(v, c), n(c, x), most(m), x > m.
"""


@pytest.mark.parametrize("how", HOWS)
def test_parts_by_key(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums, counts and extremes that are sent in parts, as where their relations are large."""
    monkeypatch.setattr("spark_bridge.planner.SPARED", 0.0)
    both, executor = Both(DECLARED + BY_KEY, 6), InProcess()
    query = both.create(tmp_path / "q", executor, 3)
    parts = [take.source for stage in query.state.layout(0).plan.stages for take in stage.takes if take.numbered]
    assert parts == [f"@{name}.1.part" for name in ("n", "k", "least", "first", "most")]
    both.batches(query, 3)
    both.check(query, since=0)
    both.unchanged(query, query.compact())
    both.batches(query, 1)
    for part in query.checkpoint.commit(query.version)["parts"]:
        for kind in ("facts", "output"):
            if part.get(kind):
                damage(tmp_path / "q" / part[kind]["folder"] / part[kind]["name"], how, Random(0))
    query = Partitioned.open(InProcess(), tmp_path / "q")
    both.check(query)
    both.batches(query, 1)
    both.unchanged(query, query.rescale(2))
    both.batches(query, 2)
    assert not query.verify()["wrong"]


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
    mixed = make_program(rng, keyed=False)
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
    both = Both(TOTALS, 7)
    with LocalQuery.create(TOTALS, both.inputs(), processes=2, checkpoint=tmp_path / "q") as query:
        seen = {part["process"] for part in query.metrics()["last"]}
        assert (len(seen), len(query.metrics()["last"])) == (2, 6)
        both.batches(query._query, 3)
        assert {part["process"] for part in query.metrics()["last"]} == seen
        assert "sent by stage 2" in str(query.estimate())
        both.unchanged(query._query, query.rescale(3))
        both.batches(query._query, 1)
        assert query.verify()["ok"]


TYPED = """
.decl r(k:number, g:number?, d:decimal(10,2), t:duration, ts:timestamp, id:uuid, u:unsigned, y:bytes, s:symbol?)
sd[] = sum d : { r(_, _, d, _, _, _, _, _, _) }.        below(k) :- r(k, _, d, _, _, _, _, _, _), sd(x), d < x.
st[g] = sum t : { r(_, g, _, t, _, _, _, _, _) }.       by_t(t, g) :- st(g, t).
mt[s] = min ts : { r(_, _, _, _, ts, _, _, _, s) }.     by_ts(ts, s) :- mt(s, ts).
mid[g] = max id : { r(_, g, _, _, _, id, _, _, _) }.    by_id(id) :- mid(_, id).
su[] = sum u : { r(_, _, _, _, _, _, u, _, _) }.        wu(u) :- su(u).
md[] = mean d : { r(_, _, d, _, _, _, _, _, _) }.
cs[s] = count : { r(_, _, _, _, _, _, _, y, s), r(_, 2, _, _, _, _, _, y, _) }.     by_c(c, s) :- cs(s, c).
yb(y, g) :- r(_, g, _, _, _, _, _, y, _).               yc(y, z) :- yb(y, g), yb(z, g), !yb(z, 1).
"""


def test_values_of_other_types(tmp_path: Path) -> None:
    """Null among them, as a group and as a key by which rows are sent."""
    rng, plan, db = Random(1), make_stages(TYPED), lftj.Database(TYPED)
    assert len(plan.stages) > 1

    def row() -> Row:
        cents, seconds = rng.randrange(-500, 500), rng.randrange(-9, 99)
        first = rng.randrange(5), rng.choice((None, 1, 2, 3)), Decimal(cents) / 100, timedelta(seconds=seconds)
        id, when = UUID(int=rng.randrange(5)), datetime(2020, 1, rng.randrange(1, 28))
        return *first, when, id, rng.choice((1, 2**58)), bytes([rng.randrange(4)]), rng.choice((None, "a", "bé"))

    def shown(rows: Any) -> list[Row]:
        return sorted((tuple(str(v) if isinstance(v, UUID) else v for v in row) for row in rows), key=str)

    rows = {row() for _ in range(14)}
    db.load("r", list(rows))
    sources = {"r": table(plan.schemas["r"], shown(rows))}
    query = Partitioned.create(InProcess(), TYPED, sources, checkpoint=tmp_path / "q", partitions=3)
    for batch in range(4):
        for name in plan.derived & set(plan.schemas):
            assert shown(rows_of(query.table(name))) == shown(db[name]), name
        gone, come = shown(rng.sample(sorted(rows, key=str), 5)), [row() for _ in range(4)]
        rows = {row for row in rows if shown([row])[0] not in gone} | set(come)
        with db.transaction() as tx:
            tx.erase("r", [(*row[:5], UUID(row[5]), *row[6:]) for row in gone])
            tx.insert("r", come)
        changes = table(plan.schemas["r"], [*gone, *shown(come)], [-1] * len(gone) + [1] * len(come))
        query.apply({"r": changes}, batch_id=str(batch))
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


def test_one_stage_in_which_one_partition_derives_a_head(tmp_path: Path) -> None:
    """Its plan was made again as one without stages, which is refused: `create` failed after its plan was accepted."""
    text = ".decl q(a:number, b:number) t(x) :- q(x, _). p() :- q(x, x)."
    assert len(make_stages(text, replicate=["t"]).stages) == 1
    inputs = {"q": [(1, 2), (3, 3)]}
    query = Partitioned.create(InProcess(), text, inputs, checkpoint=tmp_path / "q", partitions=3, replicate=["t"])
    assert rows_of(query.table("p")) == [()]
    query.apply({"q": [(3, 3, -1)]}, batch_id="1")
    assert rows_of(query.table("p")) == []
    assert rows_of(Partitioned.open(InProcess(), tmp_path / "q").table("t")) == [(1,)]
    assert query.verify()["ok"]


CONSTANT_KEYS = """
    .decl e(x:number, y:number, w:number)
    d[x, y] = min w : { e(x, y, w) }.
    d[x, z] = min (d[x, y] + w) : { e(y, z, w) }.
    d[7, y] = min w : { e(_, y, w), w > 3 }.
    d[k, 8] = min w : { e(_, y, w), !e(y, _, _), k = 9 }.
"""


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_best_values_of_constant_keys(partitions: int, tmp_path: Path) -> None:
    """They were refused where the body holds no key, which takes no stage: the partition of the key derives them."""
    rng, db = Random(partitions), lftj.Database(CONSTANT_KEYS)
    held = {(rng.randrange(9), rng.randrange(9), rng.randrange(1, 9)) for _ in range(12)}
    db.load("e", sorted(held))
    schema = make_stages(CONSTANT_KEYS).schemas["e"]
    sources = {"e": table(schema, sorted(held))}
    query = Partitioned.create(InProcess(), CONSTANT_KEYS, sources, checkpoint=tmp_path / "q", partitions=partitions)
    assert len(query.state.layout(0).stages) == 1
    for batch in range(4):
        gone = rng.sample(sorted(db["e"]), 5)
        come = [(rng.randrange(9), rng.randrange(9), rng.randrange(1, 9)) for _ in range(4)]
        with db.transaction() as tx:
            tx.erase("e", gone)
            tx.insert("e", come)
        version = query.version
        changes = table(schema, [*gone, *come], [-1] * len(gone) + [1] * len(come))
        query.apply({"e": changes}, batch_id=str(batch))
        assert sorted(rows_of(query.table("d"))) == sorted(db["d"])
        change = query.delta("d", version)
        assert sorted(rows_of(change.inserted)) == sorted(tx.delta["d"].inserted)
        assert sorted(rows_of(change.erased)) == sorted(tx.delta["d"].erased)
        if batch == 1:
            query.rescale(3)
    assert query.verify()["ok"]


NULLS = """
.decl n(x:number?, s:symbol?)
.decl m(x:number?, s:symbol?)
j(a, b) :- n(x, a), m(x, b), or_null(x).
none(x, a) :- n(x, a), !m(x, _), or_null(x).
c[x] = count : { n(x, a), m(x, b), or_null(x) }.
both(x, a) :- n(x, a), x = y, m(y, a), or_null(x), or_null(a).
"""


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_null_matches_null_where_rules_say_so(partitions: int, tmp_path: Path) -> None:
    """The programs of partitions lost `or_null`, and rows with it."""
    plan, db, rng = make_stages(NULLS), lftj.Database(NULLS), Random(partitions)
    values = [(x, s) for x in (None, 1, 2) for s in (None, "a", "b")]
    held = {name: rng.sample(values, 5) for name in ("n", "m")}
    for name, rows in held.items():
        db.load(name, rows)
    sources = {name: table(plan.schemas[name], rows) for name, rows in held.items()}
    query = Partitioned.create(InProcess(), NULLS, sources, checkpoint=tmp_path / "q", partitions=partitions)
    for batch in range(3):
        for name in ("j", "none", "c", "both"):
            assert sorted(rows_of(query.table(name)), key=str) == sorted(db[name], key=str), (batch, name)
        gone, come = rng.sample(sorted(db["n"], key=str), 2), rng.sample(values, 2)
        with db.transaction() as tx:
            tx.erase("n", gone)
            tx.insert("n", come)
        changes = table(plan.schemas["n"], [*gone, *come], [-1] * len(gone) + [1] * len(come))
        query.apply({"n": changes}, batch_id=str(batch))


def test_what_no_cut_makes_derivable_is_refused() -> None:
    """A rule that was cut was cut again, for ever."""
    text = """
        .decl e(x:number, y:number)
        own[x] = 1 + count : { e(x, y), x < y }.
        tot[x] = m + sum k : { e(x, y), x < y, tot[y] = k } :- own[x] = m.
        tot[x] = 1 :- e(_, x), !own(x, _).
    """
    with pytest.raises(PlanError, match=r"(?s)`tot` cannot be derived.*it is recursive"):
        make_stages(text)


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


def test_memory_counts_all_stages(tmp_path: Path) -> None:
    """What is replicated cannot be shared where there are several."""
    with pytest.raises(PlanError, match=r"(?s)needs more.*sharing is not possible: the program takes several stages"):
        Both(TOTALS).create(tmp_path / "q", partition_memory=500)
    estimate = Both(TOTALS).create(tmp_path / "q", partition_memory=10_000).estimate()
    assert "what is sent on is placed by the hash of its key" in str(estimate)
    assert estimate.bytes["total"] == sum(estimate.bytes[name] for name in ("r", "s"))


def test_a_plan_does_not_change_when_it_is_made_again(tmp_path: Path) -> None:
    """A checkpoint of one stage, as older ones are, stays one of one stage."""
    both = Both(TOTALS)
    query = both.create(tmp_path / "q")
    assert query.checkpoint.commit(0)["layout"]["staged"]
    shown = query.state.layout(0).plan.explain()
    line = [sys.executable, "-W", "ignore", "-c", SHOW, str(tmp_path / "q")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    assert subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout == shown
    with pytest.raises(PlanError):
        make_stages(TOTALS, second=True)


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
