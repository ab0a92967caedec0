"""What heads are followed by, kept in a checkpoint: no change makes it anew after opening, and answers are the same."""

from __future__ import annotations

import random
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.durable import checking
from lftj.maintain import body_maps, delta, prepare, trace
from lftj.maintain.derivations import KeptDerivations
from lftj.plan import statistics
from tests.conftest import IN_CI, THOROUGH
from tests.durable.shop import lose

# Heads by name, and what keeps them: sums over joins, of decimals, grouped by texts; and by accumulators.
PROGRAM = """
.decl item(id:number) -> name:symbol
.decl price(id:number) -> p:decimal(10, 2)
.decl sale(id:number, day:number, qty:number)
.decl heat(id:number, day:number) -> t:float
sold[n] = sum q : { sale(i, _, q), item(i, n) }.
sales[n] = count : { sale(i, _, _), item(i, n) }.
days[n] = mean d : { sale(i, d, _), item(i, n) }.
revenue[n] = sum (q * p) : { sale(i, _, q), item(i, n), price(i, p) }.
pairs[] = count : { sale(i, d, _), sale(j, d, _), i < j }.
average[i] = mean q : { sale(i, _, q) }.
warm[d] = sum t : { heat(_, d, t) }.
hot[d] = mean t : { heat(i, d, t), sale(i, d, _) }.
spread[n] = stddev_pop q : { sale(i, _, q), item(i, n) }.
often(n) :- sold(n, q), q > 20.
seen(i, n) :- sale(i, d, _), item(i, n), heat(i, d, _).
cold(n) :- item(i, n), !heat(i, _, _).
chain(i, j, k) :- sale(i, d, _), sale(j, d, _), sale(k, d, q), i < j, j <= k, q > 3.
chain(i, i, d) :- heat(i, d, t), t > 1.0, item(i, "tea").
mixed[d] = sum q : { sale(i, d, q), item(i, n), n < "k" }.
"""
BY_TRIGGERS = ("sold", "sales", "days", "revenue", "pairs", "average")
BY_DELTA = ("warm", "hot", "spread")
BY_TRACE = ("seen", "cold", "chain", "mixed")
MAINTAIN = {
    **dict.fromkeys(BY_TRIGGERS, "triggers"),
    **dict.fromkeys(BY_DELTA, "delta"),
    **dict.fromkeys(BY_TRACE, "trace"),
}
# What is kept is that of the rule of an aggregate, which its head is an alias of.
KEPT = {name if name in ("seen", "cold", "chain") else f"@{name}.1": by for name, by in MAINTAIN.items()}
NAMES = ["tea", "jam", "käse", ""]


def opened(path: Path | None) -> lftj.Database:
    """A database with tiny pages; its program is added where it has none."""
    db = lftj.Database._sized(page_rows=4, directory_rows=2, path=path)
    if "sale" not in db:
        db.rules(PROGRAM, maintain=MAINTAIN)
    return db


def contents(db: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(db[name], key=repr) for name in db}


def changed(db: lftj.Database, rng: random.Random, many: int = 3) -> Any:
    """Commit a random change; returns its transaction."""
    with db.transaction() as tx:
        for _ in range(many):
            i, d = rng.randrange(8), rng.randrange(5)
            tx.upsert("item", [(i, rng.choice(NAMES))])
            tx.upsert("price", [(i, Decimal(rng.randrange(1000)) / 100)])
            tx.insert("sale", [(i, d, rng.randrange(9))])
            tx.erase("sale", rng.sample(sorted(db["sale"]), min(1, len(db["sale"]))))
            tx.upsert("heat", [(i, d, rng.choice([0.1, 1e20, -1e20, 2.5]))])
    return tx


@pytest.fixture
def nothing_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made anew while this is in force, by name."""
    made: list[str] = []

    def note(what: str) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            made.append(what)
            return real[what](*args, **kwargs)

        return noted

    real = {"fill": body_maps.BodyMaps.fill, "prepared": prepare.prepared}
    monkeypatch.setattr(body_maps.BodyMaps, "fill", note("fill"))
    monkeypatch.setattr(delta, "prepared", note("prepared"))
    monkeypatch.setattr(trace, "prepared", note("prepared"))
    return made


def test_the_first_change_makes_nothing_anew(tmp_path: Path, nothing_made: list[str]) -> None:
    rng = random.Random(1)
    db = opened(tmp_path / "shop.lftj")
    for _ in range(4):
        changed(db, rng, 5)
    assert set(nothing_made) == {"fill", "prepared"}
    db.checkpoint(traces=True)
    db.close()
    nothing_made.clear()
    with opened(tmp_path / "shop.lftj") as again:
        before = contents(again)
        kept = {head: again._kept.heads[head] for head in KEPT}
        assert {head: one.strategy for head, one in kept.items()} == KEPT
        i, d, _ = before["heat"][0]
        with again.transaction() as tx:
            tx.insert("sale", [(i, d, 99)])
            tx.upsert("heat", [(i, d, 0.5)])
        assert nothing_made == []
        assert {head: again._kept.heads[head] for head in kept} == kept
        assert {*BY_TRIGGERS, *BY_DELTA} <= {name for name in MAINTAIN if name in tx.delta}
        with again.transaction() as tx:
            tx.erase("sale", [(i, d, 99)])
            tx.upsert("heat", [before["heat"][0]])
        assert contents(again) == before


@pytest.mark.parametrize("seed", range(4))
def test_histories_with_and_without_are_equal(tmp_path: Path, seed: int) -> None:
    rngs = [random.Random(seed) for _ in range(3)]
    rng = random.Random(100 + seed)
    paths = [tmp_path / "with.lftj", tmp_path / "without.lftj", None]
    dbs = [opened(path) for path in paths]
    for _ in range(12):
        for db, one in zip(dbs, rngs, strict=True):
            changed(db, one)
        assert contents(dbs[0]) == contents(dbs[1]) == contents(dbs[2])
        if rng.random() < 0.5:
            dbs[0].checkpoint(traces=True)
            dbs[1].checkpoint(traces=False)
        if rng.random() < 0.6:
            for i in (0, 1):
                lose(dbs[i]) if rng.random() < 0.5 else dbs[i].close()
                dbs[i] = opened(paths[i])
    for db in dbs:
        db.close()


def records(db: lftj.Database) -> dict[tuple[str, str, int], list[list[int]]]:
    """The records of every trace, by head, plan and site."""
    found = {}
    for head, kept in db._kept.heads.items():
        if isinstance(kept, KeptDerivations):
            for one in kept.parts:
                for s in one.indexes.packings:
                    found[head, str(one.plan.order), s] = one.indexes.records(s).tolist()
    return found


@pytest.mark.parametrize("seed", range(4))
def test_traces_are_those_of_a_database_that_was_never_closed(tmp_path: Path, seed: int) -> None:
    path, rngs = tmp_path / "shop.lftj", [random.Random(seed) for _ in range(2)]
    dbs = [opened(path), opened(None)]
    for turn in range(8):
        for db, rng in zip(dbs, rngs, strict=True):
            changed(db, rng)
        if turn % 2:
            dbs[0].checkpoint(traces=True)
            dbs[0].close()
            dbs[0] = opened(path)
        if turn:
            found, expected = map(records, dbs)
            assert len(found) > 6
            assert found == expected
    dbs[0].close()


def kept_segments(path: Path) -> list[int]:
    """The segments that only what heads are followed by names."""
    from lftj.durable.checkpoint import SavedCheckpoint
    from lftj.durable.container import Container

    container = Container(path, read_only=True, sync="full", page_rows=None)
    try:
        last = SavedCheckpoint.last(container)
        assert last is not None
        named = set[int]().union(*(listed.segments() for listed in last.lists))
        return sorted(set[int]().union(*(listed.segments() for listed in last.followed_lists)) - named)
    finally:
        container.close()


def after_a_change(before: dict[str, list[tuple[Any, ...]]], seed: int) -> dict[str, list[tuple[Any, ...]]]:
    """What a database in memory holds that had these facts before a random change."""
    memory = opened(None)
    for name in ("item", "price", "sale", "heat"):
        memory.load(name, before[name])
    changed(memory, random.Random(seed))
    return contents(memory)


@pytest.mark.jit_only
@pytest.mark.parametrize(
    "sql",
    ["update segments set body = zeroblob(9) where id = ?", "delete from segments where id = ?"],
    ids=["damaged", "missing"],
)
def test_what_is_damaged_is_made_again(tmp_path: Path, sql: str) -> None:
    """Every segment; in CI every other one is damaged, and those between are missing."""
    path = tmp_path / "shop.lftj"
    db = opened(path)
    for i in range(4):
        changed(db, random.Random(i), 5)
    db.checkpoint(traces=True)
    before = contents(db)
    db.close()
    kept = kept_segments(path)
    assert len(kept) > 8
    whole = path.read_bytes()
    # One of the three changes follows each, and what it leads to is evaluated once.
    expected = [after_a_change(before, seed) for seed in range(3)]
    start = 0 if "update" in sql else 1
    for turn, id in enumerate(kept[start::2] if IN_CI and not THOROUGH else kept):
        path.write_bytes(whole)
        raw = sqlite3.connect(path, isolation_level=None)
        raw.execute(sql, (id,))
        raw.close()
        (damage,) = checking.check(path)
        assert f"segment {id}" in damage.what
        assert not damage.lost
        with opened(path) as again:
            assert contents(again) == before
            changed(again, random.Random(turn % 3))
            assert contents(again) == expected[turn % 3]
            again.checkpoint()
        assert checking.check(path) == []


def test_maps_of_other_rules_are_not_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    for i in range(4):
        changed(db, random.Random(i), 5)
    db.checkpoint(traces=True)
    with db.transaction() as tx:
        tx.remove_rules("sold")
        tx.rules("sold[n] = sum q : { sale(i, _, q), item(i, n), q > 4 }.", maintain={"sold": "triggers"})
    lose(db)
    with opened(path) as again:
        changed(again, random.Random(9))
        expected: dict[str, int] = {}
        names = dict(again["item"])
        for i, _, q in again["sale"]:
            if q > 4 and i in names:
                expected[names[i]] = expected.get(names[i], 0) + q
        assert dict(again["sold"]) == expected


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = lftj.Database(path=path)
    db.rules(
        ".decl r(a:number, b:number) s[a] = sum b : { r(a, b) }. t[b] = count : { r(_, b) }.",
        maintain={"s": "triggers", "t": "delta"},
    )
    db.load("r", [(i, i % 1000) for i in range(20_000)])
    for i in (1, 2):
        with db.transaction() as tx:
            tx.insert("r", [(i, -1)])
    db.checkpoint(traces=True)
    assert db._file is not None
    for _ in range(2):
        before = db._file.segments.next
        with db.transaction() as tx:
            tx.insert("r", [(before, -2)])
        db.checkpoint()
        assert 0 < db._file.segments.next - before <= 8
        db.close()
        db = lftj.Database(path=path)
        assert db._file is not None
    db.close()


def test_the_first_change_counts_no_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lftj.plan.statistics.LARGE", 100)
    path, rules = tmp_path / "shop.lftj", "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z). t(x) :- p(x, y), e(y, x)."
    db = lftj.Database(f".decl e(x:number, y:number) {rules}", path=path)
    db.load("e", [(i, i + 1) for i in range(0, 2000, 2)])
    for i in range(2):
        with db.transaction() as tx:
            tx.insert("e", [(4000, 4001 + i)])
    db.checkpoint(traces=True)
    db.close()
    counted: list[object] = []
    real = statistics.Statistics._profile
    monkeypatch.setattr(statistics.Statistics, "_profile", lambda *args: (counted.append(args), real(*args)))
    with lftj.Database(path=path) as db:
        with db.transaction() as tx:
            tx.insert("e", [(1, 2)])
        assert sorted(tx.delta["p"].inserted) == [(0, 2), (0, 3), (1, 2), (1, 3)]
        # of relations of a few rows only, which are made for the change
        assert all(len(version) < 100 for _, _, version in counted)  # type: ignore[misc]
