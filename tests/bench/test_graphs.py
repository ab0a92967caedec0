"""The data: published counts recounted from the files, generators deterministic and of the shape they stand in for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import graphs
from bench.rivals.csr import compressed, count_by_intersection, count_by_marking


def shape(rows: graphs.Rows) -> dict[str, int]:
    vertices = int(rows.max()) + 1
    out, into = (np.bincount(rows[:, i], minlength=vertices) for i in (0, 1))
    return {"rows": len(rows), "out": int(out.max()), "in": int(into.max()), "wedges": int((out * into).sum())}


def assert_a_relation(rows: graphs.Rows) -> None:
    assert rows.dtype == np.int64
    assert rows.flags.c_contiguous
    assert np.array_equal(np.unique(rows, axis=0), rows)


def undirected(arcs: graphs.Rows) -> graphs.Rows:
    """One row u < v per pair of joined vertices."""
    return graphs.distinct(np.sort(arcs[arcs[:, 0] != arcs[:, 1]], axis=1))


def triangles(rows: graphs.Rows) -> int:
    arrays = compressed(rows)
    count = int(count_by_intersection(*arrays))
    assert count == int(count_by_marking(*arrays))
    return count


@pytest.mark.jit_only
def test_shipped_data_has_the_figures_of_its_sources_page(shipped_data: Path) -> None:
    facebook = graphs.load("ego-Facebook")
    assert facebook.source == "shipped"
    assert (len(facebook.rows), len(np.unique(facebook.rows))) == (88_234, 4_039)
    assert (facebook.rows[:, 0] < facebook.rows[:, 1]).all()
    assert triangles(facebook.rows) == 1_612_010

    messages = graphs.read_rows(shipped_data / "CollegeMsg.tsv.zst", 3)
    arcs = graphs.distinct(messages[:, :2])
    assert (len(messages), len(arcs), len(np.unique(arcs))) == (59_798, 20_296, 1_899)
    assert triangles(undirected(arcs)) == 14_319


def test_shipped_data_is_small_and_has_its_sources_page(shipped_data: Path) -> None:
    page = (shipped_data / "SOURCES.md").read_text(encoding="utf-8")
    names = [path.name for path in shipped_data.iterdir() if path.suffix == ".zst"]
    assert all(f"`{name}`" in page for name in names)
    assert sum((shipped_data / name).stat().st_size for name in names) < 1_500_000


@pytest.mark.jit_only
@pytest.mark.parametrize("name", sorted(graphs.KNOWN))
def test_published_graphs_have_their_published_counts(name: str, shared_data: Path) -> None:
    data, known = graphs.load(name), graphs.KNOWN[name]
    assert_a_relation(data.rows)
    assert len(data.rows) == known.rows
    assert known.triangles in (None, triangles(data.rows))


@pytest.mark.jit_only
@pytest.mark.usefixtures("shared_data")
def test_wiki_vote_has_its_published_undirected_triangles() -> None:
    assert triangles(undirected(graphs.load("wiki-Vote").rows)) == 608_389


def test_a_missing_file_is_replaced_under_another_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(graphs, "SHARED", tmp_path)
    data = graphs.load("wiki-Vote")
    assert (data.name, data.source, len(data.rows)) == ("wiki-Vote (stand-in)", "generated", 103_689)
    assert graphs.load("wiki-labelled").name == "wiki-labelled (stand-in)"
    assert graphs.load("tiny").name == "tiny"
    assert graphs.load("ego-Facebook").source == "shipped"


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("wiki-Vote", {"rows": 103_689, "out": 893, "in": 457, "wedges": 4_542_805}),
        ("pl1m", {"rows": 1_000_000, "out": 1_758, "in": 4_754, "wedges": 45_772_074}),
        ("pl1m_skew", {"rows": 1_000_000, "out": 12_971, "in": 13_083, "wedges": 481_332_737}),
    ],
)
def test_stand_ins_have_the_shape_of_the_published_graph(
    name: str, published: dict[str, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Degrees of the largest hubs and the number of wedges within 30 %: what decides how dear a join is."""
    monkeypatch.setattr(graphs, "SHARED", tmp_path)
    made = shape(graphs.load(name).rows)
    assert made["rows"] == published["rows"]
    for figure in ("out", "in", "wedges"):
        assert made[figure] == pytest.approx(published[figure], rel=0.3), figure


def test_generators_repeat_themselves() -> None:
    first, second = (graphs.power_law(500, 3_000, 0.5, 0.6, seed) for seed in (1, 1))
    assert_a_relation(first)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, graphs.power_law(500, 3_000, 0.5, 0.6, 2))
    assert (first[:, 0] != first[:, 1]).all()
    assert len(first) == 3_000


@pytest.mark.parametrize("name", ["tiny", "tiny-labelled", "tiny-ternary", "ternary200k"])
def test_generated_relations_are_relations(name: str) -> None:
    data = graphs.load(name)
    assert_a_relation(data.rows)
    assert data.source == "generated"


@pytest.mark.parametrize("part", [1, 2, 5])
def test_complete_tripartite_graph(part: int) -> None:
    rows = graphs.tripartite(part)
    assert_a_relation(rows)
    assert len(rows) == 3 * part**2
    assert triangles(rows) == part**3


def test_labels_keep_the_arcs() -> None:
    graph = graphs.load("tiny").rows
    triples = graphs.labelled(graph, 3, 1)
    assert np.array_equal(graphs.distinct(triples[:, (0, 2)]), graph)
    assert set(triples[:, 1].tolist()) == {0, 1, 2}


def test_distinct_of_nothing() -> None:
    empty = np.empty((0, 2), dtype=np.int64)
    assert graphs.distinct(empty).shape == (0, 2)
