"""Path counts against counting in plain Python: random streams, large counts, cycles, failures, what rules see."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import CountRangeError, CycleError, MemoryLimitError, TimeoutExpired, UnknownRelationError
from lftj.paths import big_counts
from lftj.paths import count as counting
from lftj.paths import products as following
from lftj.program.declare_paths import big_counts_of
from tests.conftest import JIT
from tests.paths import reference

NODES = 7
EDGE = ".decl edge(src:number, dst:number)"
LAYERS = 100

edges = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1))
forward = edges.map(lambda e: (min(e), max(e) + (e[0] == e[1])))
# Mostly edges that close no cycle, else hardly a stream would go on.
some = st.lists(st.one_of(forward, forward, forward, edges), max_size=4)
streams = st.lists(st.tuples(some, some), max_size=6)


def database(program: str = EDGE, **options: Any) -> lftj.Database:
    return lftj.Database._sized(program, page_rows=2, directory_rows=2, **options)


def check(db: lftj.Database, counts: Any, expected: reference.Counts, most: int = 2**63 - 1) -> None:
    assert list(counts) == [(a, b, n) for (a, b), n in sorted(expected.items())]
    assert len(counts) == len(expected)
    stored = db._relations[big_counts_of("paths")]
    for version in map(stored.order, [*stored.orders]):
        version.check()
    if all(n <= most for n in expected.values()):
        assert set(db["paths"]) == {(a, b, n) for (a, b), n in expected.items()}
    else:
        with pytest.raises(CountRangeError):
            db["paths"]


def check_cycle(cycle: tuple[object, ...], graph: set[reference.Edge]) -> None:
    around = list(itertools.pairwise(cycle))
    assert cycle[0] == cycle[-1]
    assert around
    assert set(around) <= graph


@pytest.mark.parametrize("bits", [63, 2])
@given(start=st.lists(forward, max_size=12), stream=streams)
def test_streams(bits: int, start: list[reference.Edge], stream: list[tuple[Any, Any]]) -> None:
    """With limbs of two bits small counts take several, and `paths` is at times out of range."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(big_counts, "BITS", bits)
        patch.setattr(big_counts, "MOST", (1 << bits) - 1)
        db, now = database(), set(start)
        db.load("edge", start)
        counts = db.path_counts("edge", into="paths")
        before = reference.count(now)
        check(db, counts, before, big_counts.MOST)
        for erased, inserted in stream:
            gone, come = (set(erased) - set(inserted)) & now, set(inserted) - now
            after = (now - gone) | come
            cyclic = reference.has_cycle(after)
            fits = all(n <= big_counts.MOST for n in before.values())
            tx = db.transaction()
            try:
                with tx:
                    tx.erase("edge", erased)
                    tx.insert("edge", inserted)
            except CycleError as error:
                assert cyclic
                check_cycle(error.cycle, after)
                check(db, counts, before, big_counts.MOST)
                continue
            assert not cyclic
            expected = reference.count(after)
            if gone or come:
                told = tx.stats["heads"]["paths"]["parts"]["@paths.big_counts"]
                assert told["strategy"] == "paths"
                assert told["steps"] == reference.touched(now, gone, come)
            if fits and all(n <= big_counts.MOST for n in expected.values()):
                delta = tx.delta["paths"]
                assert set(delta.inserted) == {(*p, n) for p, n in expected.items() if before.get(p) != n}
                assert set(delta.erased) == {(*p, n) for p, n in before.items() if expected.get(p) != n}
            check(db, counts, expected, big_counts.MOST)
            now, before = after, expected


@given(graph=st.lists(st.one_of(forward, edges), max_size=14))
def test_counting_from_scratch(graph: list[reference.Edge]) -> None:
    db = database()
    counts = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "TERMS", 3)
        db.load("edge", graph)
        try:
            counts = db.path_counts("edge", into="paths")
        except CycleError as error:
            assert reference.has_cycle(graph)
            check_cycle(error.cycle, set(graph))
            assert list(db) == ["edge"]
    if counts is not None:
        check(db, counts, reference.count(set(graph)))


def layered(layers: int) -> list[reference.Edge]:
    """Layers of two nodes, each with edges to both of the next: 2 ** (n - 1) paths over n layers to a node."""
    return [(2 * i + a, 2 * i + 2 + b) for i in range(layers) for a in (0, 1) for b in (0, 1)]


@pytest.mark.jit_only
def test_large_counts() -> None:
    db = database()
    counts = db.path_counts("edge", into="paths")
    db.rules("many(x, y) :- paths(x, y, n), n > 1000.")
    graph = set(layered(LAYERS))
    with db.transaction() as tx:
        tx.insert("edge", [*graph, (2 * LAYERS, 999)])
        tx.insert("edge", [(2 * LAYERS + 1, 999)])
    graph |= {(2 * LAYERS, 999), (2 * LAYERS + 1, 999)}
    assert counts[0, 999] == 2**LAYERS
    expected = reference.count(graph)
    check(db, counts, expected)
    with pytest.raises(CountRangeError, match="`paths` has a count that no number holds: 9223372036854775808 paths"):
        db["many"]
    with pytest.raises(CountRangeError, match="the change of `paths` cannot be told in numbers"):
        tx.delta["paths"]
    table = counts.arrow()
    assert table.schema.field("count").type == pa.decimal128(38, 0)
    assert [int(n) for n in table["count"].to_pylist()] == [n for _, n in sorted(expected.items())]
    old = counts.at(db.snapshot())
    db.evaluate()  # what no number holds is left out
    with db.transaction() as tx:  # one edge of many, then a whole layer
        tx.erase("edge", [(100, 102)])
    assert counts[0, 999] == 3 * 2 ** (LAYERS - 2)
    check(db, counts, reference.count(graph - {(100, 102)}))
    cut = {(100 + a, 102 + b) for a in (0, 1) for b in (0, 1)}
    with db.transaction() as tx:
        tx.erase("edge", cut)
    check(db, counts, reference.count(graph - cut))
    assert counts[0, 999] == 0
    assert (0, 100) in db["many"]
    with db.transaction() as tx:
        tx.insert("edge", [(100, 102)])
    assert counts[0, 999] == 2 ** (LAYERS - 2)
    assert old[0, 999] == 2**LAYERS


@pytest.mark.jit_only
def test_more_than_two_limbs() -> None:
    """A complete graph of 140 nodes has 2 ** 138 paths from end to end."""
    n, random = 140, Random(6)
    graph = {(i, j) for j in range(n) for i in range(j)}
    db = lftj.Database(EDGE)
    db.load("edge", list(graph))
    counts = db.path_counts("edge", into="paths")
    assert counts[0, n - 1] == 2 ** (n - 2)
    for _ in range(3):
        erased = set(random.sample(sorted(graph), 3))
        with db.transaction() as tx:
            tx.erase("edge", erased)
            tx.insert("edge", [(n, n + 1), (0, n)])
        graph = (graph - erased) | {(n, n + 1), (0, n)}
        assert {(a, b): k for a, b, k in counts} == reference.count(graph)
    with db.transaction() as tx:
        tx.insert("edge", [(1000 + i, 1001 + j) for j in range(270) for i in range(j + 1)])
    assert tx.stats["heads"]["paths"]["parts"]["@paths.big_counts"]["strategy"] == "recompute"
    assert counts[1000, 1270] == 2**269
    assert counts.arrow().schema.field("count").type == pa.string()


def test_symbols_and_a_derived_relation() -> None:
    db = database(".decl part(whole:symbol, piece:symbol, n:number) uses(x, y) :- part(x, y, n), n > 0.")
    db.load("part", [("car", "wheel", 4), ("car", "frame", 1), ("wheel", "bolt", 5), ("frame", "bolt", 9)])
    counts = db.path_counts("uses", into="ways")
    db.rules("joint(x, y) :- ways(x, y, n), n > 1.")
    assert db["ways"].columns == {"x": "symbol", "y": "symbol", "count": "number"}
    assert next(iter(counts)) == ("car", "bolt", 2)
    assert counts["car", "nothing"] == counts["bolt", "car"] == 0
    assert ("car", "bolt") in counts
    assert list(db["joint"]) == [("car", "bolt")]
    before = counts.at(db.snapshot())
    with db.transaction() as tx:
        tx.erase("part", [("frame", "bolt", 9)])
        tx.insert("part", [("frame", "bolt", 0)])
        assert list(tx.preview()["ways"].inserted) == [("car", "bolt", 1)]
        assert counts["car", "bolt"] == 2
    assert list(tx.delta["joint"].erased) == [("car", "bolt")]
    assert set(tx.delta["ways"].erased) == {("car", "bolt", 2), ("frame", "bolt", 1)}
    assert set(db["ways"]) == set(counts)
    assert counts.arrow().to_pylist()[0] == {"x": "car", "y": "bolt", "count": 1}
    assert before["car", "bolt"] == 2
    assert "follows changes by products" in db.explain("ways")
    assert any("@ways.big_counts" in what for what in db.memory()["ways"])


def test_an_edge_erased_and_its_reverse_inserted() -> None:
    db = database()
    db.load("edge", [(1, 2), (2, 3)])
    counts = db.path_counts("edge", into="paths")
    with db.transaction() as tx:
        tx.insert("edge", [(2, 1)])
        tx.erase("edge", [(1, 2)])
    assert list(counts) == [(2, 1, 1), (2, 3, 1)]


def test_the_message_of_a_cycle() -> None:
    db = database(".decl edge(src:symbol, dst:symbol)")
    counts = db.path_counts("edge", into="paths")
    with db.transaction() as tx:
        tx.insert("edge", [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    with pytest.raises(CycleError) as refused, db.transaction() as tx:
        tx.insert("edge", [("x", "y"), ("d", "a")])
    assert str(refused.value) == (
        '`edge` has a cycle: "d" -> "a" -> "c" -> "d"\n'
        "  why: the paths that `paths` counts would have no end along it\n"
        "  do: leave out one of these edges, or end the counting with `tx.remove_rules('paths')`"
    )
    assert refused.value.cycle == ("d", "a", "c", "d")
    assert len(db["edge"]) == 4
    assert counts["a", "d"] == 2
    assert ("x", "y") not in counts
    with pytest.raises(CycleError, match='"a" -> "a"'), db.transaction() as tx:
        tx.insert("edge", [("a", "a")])


def test_a_loaded_cycle_can_be_repaired() -> None:
    db = database()
    counts = db.path_counts("edge", into="paths")
    db.load("edge", [(1, 2), (2, 3), (3, 1), (3, 4)])
    for _ in range(2):
        with pytest.raises(CycleError, match="1 -> 2 -> 3 -> 1"):
            len(counts)
    with db.transaction() as tx:
        tx.erase("edge", [(3, 1)])
    assert list(counts) == [(1, 2, 1), (1, 3, 1), (1, 4, 1), (2, 3, 1), (2, 4, 1), (3, 4, 1)]
    db.load("edge", [(1, 4)])
    assert counts[1, 4] == db["paths"][1, 4] == 2
    long = [(i, i + 1) for i in range(10, 60)]
    with pytest.raises(CycleError) as refused, db.transaction() as tx:
        tx.insert("edge", [*long, (60, 10)])
    assert "... (28 more)" in str(refused.value)
    assert len(refused.value.cycle) == 52


def test_what_cannot_be_declared() -> None:
    db = database(EDGE + " .decl of(a:number, b:symbol) .decl t(a:number, b:number, c:number)")
    with pytest.raises(lftj.DataError, match="does not lead from nodes to nodes"):
        db.path_counts("of", into="paths")
    with pytest.raises(lftj.DataError, match="does not lead from nodes to nodes"):
        db.path_counts("t", into="paths")
    with pytest.raises(lftj.DataError, match="there is a relation `of` already"):
        db.path_counts("edge", into="of")
    with pytest.raises(lftj.DataError, match="is no name of a relation"):
        db.path_counts("edge", into="1 2")
    with pytest.raises(UnknownRelationError):
        db.path_counts("edges", into="paths")
    with db.transaction(), pytest.raises(lftj.Error, match="inside a transaction"):
        db.path_counts("edge", into="paths")
    assert list(db) == ["edge", "of", "t"]


def test_what_cannot_be_put_into_it() -> None:
    db = database()
    counts = db.path_counts("edge", into="paths")
    row = [(1, 2, 1)]
    with pytest.raises(lftj.ProgramError, match=r"`paths` -> `edge`, through `path_counts\(edge, into=paths\)`"):
        db.rules("edge(x, y) :- paths(x, y, _).")
    for program in "paths(1, 2, 3).", "paths(x, y, 1) :- edge(x, y).":
        with pytest.raises(lftj.DataError, match="nothing else can be put there"):
            db.rules(program)
    with pytest.raises(lftj.DataError, match="nothing else can be put there"):
        db.load("paths", row)
    with db.transaction() as tx:
        for change in tx.insert, tx.erase, tx.upsert:
            with pytest.raises(lftj.DataError, match="nothing else can be put there"):
                change("paths", row)
        tx.insert("edge", [(1, 2)])
    assert list(counts) == row
    with pytest.raises(lftj.DataError, match="is no pair of nodes"):
        counts[1]
    with pytest.raises(lftj.DataError):
        counts["a", 1]


def test_the_counting_can_be_ended_and_begun_again() -> None:
    db = database()
    db.load("edge", [(1, 2), (2, 3)])
    counts = db.path_counts("edge", into="paths")
    twice = db.path_counts("edge", into="others")
    assert list(counts) == list(twice)
    with db.transaction() as tx:
        tx.remove_rules("paths")
        tx.insert("edge", [(3, 4)])
    assert len(tx.delta["paths"].erased) == 3
    assert list(db["paths"]) == []
    assert twice[1, 4] == 1
    with pytest.raises(UnknownRelationError, match="holds no path counts"):
        len(counts)
    with pytest.raises(UnknownRelationError, match="holds no path counts"):
        counts.at(db.snapshot())


def test_failures_leave_everything_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()
    counts = db.path_counts("edge", into="paths")
    with db.transaction() as tx:
        tx.insert("edge", layered(4))
    before, used = list(counts), db.memory()["total"]["pages"]
    real = following.products

    def stop(*args: Any) -> Any:
        if calls.pop():
            raise KeyboardInterrupt
        return real(*args)

    calls = [True, False]
    monkeypatch.setattr(following, "products", stop)
    with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
        tx.insert("edge", [(0, 50), (50, 51), (51, 1)])
    monkeypatch.undo()
    assert list(counts) == before
    assert db.memory()["total"]["pages"] == used
    with pytest.raises(TimeoutExpired), db.transaction(timeout=1e-9) as tx:
        tx.insert("edge", [(0, 50)])
    assert list(counts) == before
    with db.transaction() as tx:
        tx.insert("edge", [(0, 50)])
    assert counts[0, 50] == 1


@pytest.mark.skipif(not JIT, reason="fills many pages")
def test_memory_limit() -> None:
    db = lftj.Database(EDGE, memory_limit=3_000_000)
    db.load("edge", [(i, i + 1) for i in range(100)])
    counts = db.path_counts("edge", into="paths")
    with pytest.raises(MemoryLimitError), db.transaction() as tx:
        tx.insert("edge", [(i, i + 1) for i in range(100, 900)])
    assert len(counts) == 5050
    assert len(db["edge"]) == 100


def test_callbacks_hear_of_counts() -> None:
    db, heard = database(), []
    db.path_counts("edge", into="paths")
    db.on_commit("paths", lambda delta: heard.append((list(delta.inserted), list(delta.erased))))
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2)])
    with db.transaction() as tx:
        tx.insert("edge", [(1, 3), (3, 2)])
    with db.transaction() as tx:
        tx.insert("edge", [(1, 3)])
    assert heard == [([(1, 2, 1)], []), ([(1, 2, 2), (1, 3, 1), (3, 2, 1)], [(1, 2, 1)])]


def test_too_many_pairs_are_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BULK_PAIRS", 3)
    db = database()
    db.load("edge", [(1, 2), (3, 4)])
    counts = db.path_counts("edge", into="paths")
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
    told = tx.stats["heads"]["paths"]["parts"]["@paths.big_counts"]
    assert (told["strategy"], told["why"]) == ("recompute", "`edge` changed; many pairs changed")
    assert set(tx.delta["paths"].inserted) == {(1, 3, 1), (1, 4, 1), (2, 3, 1), (2, 4, 1)}
    with pytest.raises(CycleError, match="4 -> 1 -> 2 -> 3 -> 4"), db.transaction() as tx:
        tx.insert("edge", [(4, 1)])
    assert len(counts) == 6


def test_the_name_can_be_used_again(tmp_path: Path) -> None:
    db = lftj.Database(".decl e(a:number, b:number)  .decl f(a:number, b:number)", path=tmp_path / "paths.lftj")
    db.load("e", [(1, 2), (2, 3)])
    db.load("f", [(7, 8)])
    db.path_counts("e", into="of")
    db.rules("long(x, y) :- of(x, y, _), !e(x, y).  from(x) :- of(x, _, _).")
    assert (list(db["long"]), list(db["from"])) == ([(1, 3)], [(1,), (2,)])
    with db.transaction() as tx:
        tx.remove_rules("of")
    db.path_counts("f", into="of")
    for _ in range(2):
        assert (list(db["of"]), list(db["from"])) == ([(7, 8, 1)], [(7,)])
        db.close()
        db = lftj.Database(path=tmp_path / "paths.lftj")
    with db.transaction() as tx:
        tx.insert("f", [(8, 9)])
    assert list(tx.delta["from"].inserted) == [(8,)]
    db.close()
