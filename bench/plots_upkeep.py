"""Pictures of maintenance: time by size of the transaction, steps by distance, time over a long run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import endurance, promise, report_upkeep
from bench.report_upkeep import TARGETS, lines, points_of, streams

# Colours that stay apart in grey and for the colour-blind (Okabe and Ito).
WAYS = {
    "lftj": ("lftj", "#D55E00", "-"),
    "lftj-node": ("lftj, NODE", "#E69F00", ":"),
    "lftj-interval": ("lftj, INTERVAL", "#CC79A7", ":"),
    "lftj-recompute": ("lftj, recompute", "#999999", "--"),
    "duckdb": ("DuckDB, delta queries", "#0072B2", "-"),
}
SHAPES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def draw(folder: Path) -> list[Path]:
    """`latency.svg`, `promise.svg` and `endurance.svg` in `folder`, as far as there are results; the files written."""
    drawings = ((latencies, "latency"), (promises, "promise"), (tenths, "endurance"))
    return [path for make, name in drawings if make(path := folder / f"{name}.svg")]


def plots() -> Any:
    """pyplot, set up so that the same results draw the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "lftj"
    from matplotlib import pyplot

    return pyplot


def finished(pyplot: Any, figure: Any, axes: Any, path: Path) -> bool:
    """Write the figure to `path`; True."""
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True


def latencies(path: Path) -> bool:
    """Median milliseconds by rows of a transaction, one panel per graph; False if there are no results."""
    found = streams()
    if not found:
        return False
    pyplot = plots()
    figure, panels = pyplot.subplots(
        1, len(found), figsize=(4.4 * len(found), 3.4), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, (graph, by_engine) in zip(panels[0], found.items(), strict=True):
        for engine, (label, colour, style) in WAYS.items():
            if engine in by_engine:
                sizes = by_engine[engine]["sizes"]
                x, y = [m["size"] for m in sizes], [m["median_ms"] for m in sizes]
                axes.plot(x, y, style, color=colour, label=label, marker=".")
        if graph in TARGETS:
            axes.plot(*zip(*TARGETS[graph].items(), strict=True), "_", color="#000000", markersize=12, label="target")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(graph, loc="left")
        axes.set_xlabel("rows per transaction")
    panels[0][0].set_ylabel("CPU milliseconds")
    panels[0][0].legend(loc="lower right", frameon=False, fontsize="small")
    return finished(pyplot, figure, panels[0], path)


def promises(path: Path) -> bool:
    """Steps of maintenance by distance, a point per transaction."""
    found = lines(promise.PROMISE)
    if not found:
        return False
    pyplot = plots()
    figure, axes = pyplot.subplots(figsize=(5.6, 4.2), layout="constrained")
    everything = []
    for shape, colour in zip(promise.SHAPES, SHAPES, strict=True):
        points = [p for key, line in found.items() if key[0] == shape for p in points_of(line)]
        everything += points
        x, y = [promise.distance(p) for p in points], [p["steps"] for p in points]
        axes.plot(x, y, ".", color=colour, label=shape, markersize=4)
    ends = [max(1, min(map(promise.distance, everything))), max(map(promise.distance, everything))]
    axes.plot(ends, ends, color="#999999", linewidth=1, label="steps = distance")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("records removed + records added + tree surgeries")
    axes.set_ylabel("steps of maintenance")
    axes.legend(loc="upper left", frameon=False, fontsize="small")
    return finished(pyplot, figure, [axes], path)


def tenths(path: Path) -> bool:
    """Milliseconds and pages in use over the tenths of a long run."""
    line = report_upkeep.only(endurance.ENDURANCE)
    if line is None:
        return False
    pyplot = plots()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(7.6, 2.8), layout="constrained")
    deciles = line["deciles"]
    x = [line["transactions"] * (i + 1) / len(deciles) / 1000 for i in range(len(deciles))]
    left.plot(x, [d["median_ms"] for d in deciles], color="#D55E00", marker=".", label="median")
    left.plot(x, [d["p99_ms"] for d in deciles], color="#999999", marker=".", label="p99")
    right.plot(x, [d["pages_bytes"] / 2**20 for d in deciles], color="#D55E00", marker=".", label="pages")
    right.plot(x, [d["resident_mb"] for d in deciles], color="#999999", marker=".", label="resident")
    for axes, name, place in ((left, "CPU milliseconds", "upper right"), (right, "MB", "lower left")):
        axes.set_ylim(bottom=0)
        axes.set_xlabel("transactions, thousands")
        axes.set_ylabel(name)
        axes.legend(loc=place, frameon=False, fontsize="small")
    return finished(pyplot, figure, (left, right), path)
