"""Pictures of the results: one group of bars per graph, one bar per engine, time on a log axis."""

from __future__ import annotations

from pathlib import Path

from bench.report import Results, graphs_of, seconds

# Colours that stay apart in grey and for the colour-blind (Okabe and Ito).
ENGINES = {
    "csr": ("CSR kernel", "#999999"),
    "lftj": ("lftj", "#D55E00"),
    "duckdb": ("DuckDB", "#0072B2"),
    "kuzu": ("Kuzu", "#009E73"),
}


def draw(latest: Results, folder: Path) -> list[Path]:
    """`triangle.svg` and `materialise.svg` in `folder`; returns the files written."""
    shown = (("count", "triangle", "Counting triangles"), ("materialise", "materialise", "Storing all triangles"))
    return [bars(latest, mode, title, folder / f"{name}.svg") for mode, name, title in shown]


def bars(latest: Results, mode: str, title: str, path: Path) -> Path:
    """One grouped bar chart of the triangle workload; an engine that timed out or was not measured has no bar."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "lftj"  # the same results draw the same bytes
    from matplotlib import pyplot

    graphs = graphs_of(latest, "triangle", mode)
    engines = [e for e in ENGINES if any(("triangle", g, mode, e) in latest for g in graphs)]
    figure, axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
    width = 0.8 / max(1, len(engines))
    for i, engine in enumerate(engines):
        label, colour = ENGINES[engine]
        heights = [seconds(latest.get(("triangle", g, mode, engine))) for g in graphs]
        finite = [(x, h * 1000) for x, h in enumerate(heights) if h is not None and h != float("inf")]
        places = [x + (i - (len(engines) - 1) / 2) * width for x, _ in finite]
        axes.bar(places, [h for _, h in finite], width * 0.92, label=label, color=colour)
    axes.set_yscale("log")
    axes.set_xticks(range(len(graphs)), graphs)
    axes.set_ylabel("CPU milliseconds")
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    if engines:
        axes.legend(loc="upper left", ncols=len(engines), frameon=False, fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
