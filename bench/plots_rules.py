"""A picture of whole rules: the steps that the next extreme takes, and those of a complement, by size."""

from __future__ import annotations

from pathlib import Path

from bench.plots_upkeep import finished, plots
from bench.report_rules import complement_rows, extreme_rows


def draw(folder: Path) -> list[Path]:
    """`rules.svg` in `folder`, if there are results; the files written."""
    path = folder / "rules.svg"
    return [path] if folds(path) else []


def folds(path: Path) -> bool:
    """Milliseconds of the next extreme beside the heap, and steps of a complement; False if there are no results."""
    following = [row for row in extreme_rows() if row[0] == "max"]
    missing = [(line["missing"], line["steps"], line["lookups"]) for line, *_ in complement_rows()]
    if not following or not missing:
        return False
    pyplot = plots()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    sizes = [ours["size"] for _, ours, _, _ in following]
    left.plot(sizes, [ours["median_ms"] for _, ours, _, _ in following], color="#D55E00", marker=".", label="lftj")
    heaps = [(ours["size"], heap["median_ms"]) for _, ours, heap, _ in following if heap]
    if heaps:
        left.plot(*zip(*heaps, strict=True), color="#0072B2", marker=".", label="heap of the survivors")
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlabel("values per group")
    left.set_ylabel("CPU milliseconds")
    left.set_title("the greatest value is erased", loc="left")
    counts, steps, lookups = zip(*missing, strict=True)
    right.plot(counts, steps, color="#D55E00", marker=".", label="steps")
    right.plot(counts, lookups, "--", color="#999999", label="lookups of all pairs")
    right.set_xscale("symlog")
    right.set_yscale("log")
    right.set_xlabel("pairs missing")
    right.set_title("missing pairs are found", loc="left")
    for axes, place in ((left, "upper left"), (right, "center left")):
        axes.legend(loc=place, frameon=False, fontsize="small")
    return finished(pyplot, figure, (left, right), path)
