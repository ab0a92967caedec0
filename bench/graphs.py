"""The relations that benchmarks run on: real graphs where they are at hand, generated ones of the same shape where not.

A *dataset* has a name, a loader and known figures. `load("wiki-Vote")` looks for the published file in
`../shared/data`, then for a copy that ships with lftj, and else generates a stand-in of the same shape. The answer
says which it was (`Dataset.source`), and a stand-in goes by another name in results, so figures of two different
graphs never share a row.

All relations are C-contiguous int64 arrays of distinct rows in lexicographic order; the empty relation has shape (0,
arity). Generators take a seed and use nothing but `Generator.random`, whose stream numpy keeps stable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
SHIPPED = ROOT / "lftj" / "demo" / "data"


@dataclass(frozen=True)
class Dataset:
    """One relation: `rows` is int64[n, arity], distinct and sorted; `source` is "shared", "shipped" or "generated"."""

    name: str
    source: str
    rows: Rows


@dataclass(frozen=True)
class Known:
    """Figures that the data README publishes for a graph: rows, and the rows of `e(x,y), e(y,z), e(x,z)` (None.

    Not published).
    """

    rows: int
    triangles: int | None


KNOWN = {
    "ego-Facebook": Known(88_234, 1_612_010),
    "wiki-Vote": Known(103_689, None),
    "email-Enron": Known(183_831, 727_044),
    "pl1m": Known(1_000_000, 52_740),
    "pl1m_skew": Known(1_000_000, 2_144_302),
}


def distinct(rows: Rows) -> Rows:
    """The distinct rows of `rows`, sorted lexicographically, C-contiguous."""
    if len(rows) == 0:
        return np.ascontiguousarray(rows)
    ordered = rows[np.lexsort(rows.T[::-1])]
    keep = np.ones(len(ordered), dtype=bool)
    keep[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.ascontiguousarray(ordered[keep])


def read_rows(path: Path, columns: int) -> Rows:
    """The first `columns` columns of a tab-separated text file of integers (`.zst` or plain)."""
    import pyarrow as pa
    from pyarrow import csv

    with pa.input_stream(str(path)) as stream:  # picks the codec from the extension
        table = csv.read_csv(
            stream,
            read_options=csv.ReadOptions(autogenerate_column_names=True),
            parse_options=csv.ParseOptions(delimiter="\t"),
        )
    return distinct(np.stack([np.asarray(table.column(i), dtype=np.int64) for i in range(columns)], axis=1))


# Generators -------------------------------------------------------------------------------------------------


def power_law(nodes: int, edges: int, out_exponent: float, in_exponent: float, seed: int) -> Rows:
    """A directed graph with power-law degrees: exactly `edges` distinct arcs, no loops.

    The vertex of rank r is drawn as a source with weight r^-out_exponent and as a target with r^-in_exponent. Ranks
    are the same on both sides (hubs in both directions, as in the real thing) and dealt to the vertices at random.
    """
    rng = np.random.default_rng(seed)
    label = np.argsort(rng.random(nodes))
    rank = np.arange(1, nodes + 1, dtype=np.float64)
    out_cdf, in_cdf = np.cumsum(rank**-out_exponent), np.cumsum(rank**-in_exponent)
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < edges:
        draw = edges - len(codes) + edges // 50 + 16
        source = label[np.searchsorted(out_cdf, rng.random(draw) * out_cdf[-1])]
        target = label[np.searchsorted(in_cdf, rng.random(draw) * in_cdf[-1])]
        fresh = (source * nodes + target)[source != target]
        codes = np.unique(np.concatenate([codes, fresh]))
    surplus = len(codes) - edges
    if surplus:
        codes = np.delete(codes, np.argsort(rng.random(len(codes)))[:surplus])
    return np.ascontiguousarray(np.stack([codes // nodes, codes % nodes], axis=1))


def tripartite(part: int) -> Rows:
    """The complete tripartite graph with parts A, B, C of `part` vertices and arcs A->B, B->C, A->C.

    3 part^2 arcs and part^3 triangles: the case where the AGM bound |E|^1.5 is met.
    """
    a, b = (m.ravel() for m in np.meshgrid(np.arange(part), np.arange(part), indexing="ij"))
    ab, bc, ac = ((a + i * part, b + j * part) for i, j in ((0, 1), (1, 2), (0, 2)))
    return distinct(np.concatenate([np.stack(pair, axis=1) for pair in (ab, bc, ac)]).astype(np.int64))


def labelled(graph: Rows, labels: int, seed: int) -> Rows:
    """Triples (u, label, v): the arcs of `graph`, each with one of `labels` labels, label l with weight 1/(l+1)."""
    rng = np.random.default_rng(seed)
    cdf = np.cumsum(1.0 / np.arange(1, labels + 1))
    label = np.searchsorted(cdf, rng.random(len(graph)) * cdf[-1])
    return distinct(np.stack([graph[:, 0], label, graph[:, 1]], axis=1).astype(np.int64))


def ternary(domain: int, rows: int, exponent: float, seed: int) -> Rows:
    """`rows` distinct triples over `domain` values, each column drawn with weight rank^-exponent."""
    rng = np.random.default_rng(seed)
    cdf = np.cumsum(np.arange(1, domain + 1, dtype=np.float64) ** -exponent)
    triples = np.empty((0, 3), dtype=np.int64)
    while len(triples) < rows:
        draw = np.searchsorted(cdf, rng.random((rows - len(triples) + rows // 10 + 8, 3)) * cdf[-1])
        triples = distinct(np.concatenate([triples, draw]))
    keep = np.sort(np.argsort(rng.random(len(triples)))[:rows])
    return np.ascontiguousarray(triples[keep])


# Datasets ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Recipe:
    """Where a dataset comes from.

    A path below `shared/data`, a shipped file, and a generator for when neither is there.
    """

    shared: str | None
    shipped: str | None
    generate: Callable[[], Rows]


# Exponents fitted to the degree sequences of the files; test_graphs.py holds the shapes together.
_RECIPES = {
    "ego-Facebook": _Recipe(None, "ego-Facebook.tsv.zst", lambda: power_law(4_039, 88_234, 0.6, 0.35, 1)),
    "wiki-Vote": _Recipe("graphs/wiki-Vote.tsv", None, lambda: power_law(7_115, 103_689, 0.6, 0.5, 2)),
    "email-Enron": _Recipe("graphs/email-Enron.tsv.zst", None, lambda: power_law(36_692, 183_831, 0.62, 0.5, 3)),
    "pl200k": _Recipe(None, None, lambda: power_law(40_000, 200_000, 0.55, 0.65, 4)),
    "pl1m": _Recipe("power_law/pl1m.tsv.zst", None, lambda: power_law(200_000, 1_000_000, 0.55, 0.65, 5)),
    "pl1m_skew": _Recipe("power_law/pl1m_skew.tsv.zst", None, lambda: power_law(200_000, 1_000_000, 0.8, 0.8, 6)),
    "wiki-labelled": _Recipe(None, None, lambda: labelled(load("wiki-Vote").rows, 8, 7)),
    "pl200k-labelled": _Recipe(None, None, lambda: labelled(load("pl200k").rows, 4, 8)),
    "ternary200k": _Recipe(None, None, lambda: ternary(120, 200_000, 0.6, 9)),
    "tiny": _Recipe(None, None, lambda: power_law(24, 90, 0.4, 0.4, 10)),
    "tiny-labelled": _Recipe(None, None, lambda: labelled(load("tiny").rows, 3, 11)),
    "tiny-ternary": _Recipe(None, None, lambda: ternary(6, 90, 0.3, 12)),
}

#: Generated by design: the generator is their definition, not a stand-in.
_SYNTHETIC = frozenset(name for name, recipe in _RECIPES.items() if recipe.shared is None and recipe.shipped is None)


def names() -> tuple[str, ...]:
    """Every dataset that `load` knows."""
    return tuple(_RECIPES)


def published(name: str) -> tuple[str, Path] | None:
    """Where the file of dataset `name` lies, and whether that is "shared" or "shipped".

    None if it has to be generated.
    """
    recipe = _RECIPES[name]
    for source, folder, path in (("shared", SHARED, recipe.shared), ("shipped", SHIPPED, recipe.shipped)):
        if path and (folder / path).exists():
            return source, folder / path
    return None


def title(name: str) -> str:
    """The name under which results of dataset `name` are filed.

    Its own, or "<name> (stand-in)" where the published file is missing.
    """
    inputs = {"wiki-labelled": "wiki-Vote"}
    stand_in = published(inputs.get(name, name)) is None and name not in _SYNTHETIC - inputs.keys()
    return f"{name} (stand-in)" if stand_in else name


def load(name: str) -> Dataset:
    """The dataset `name`: the published file if it is at hand, else what its generator makes."""
    if found := published(name):
        source, path = found
        return Dataset(name, source, read_rows(path, 2))
    return Dataset(title(name), "generated", _RECIPES[name].generate())
