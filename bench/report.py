"""The tables of the README and of docs/, and the plots, written from the committed results. None is typed by hand.

    python -m bench.report            rewrite the pages between their markers, and the plots
    python -m bench.report --check    exit 1 if a page differs from what the results say
    python -m bench.report --print    the tables on stdout

A table stands between `<!-- bench:NAME -->` and `<!-- /bench -->`; NAME is one of `TABLES`. Every row measured is
shown. Where lftj loses to a rival the row says so, with the sentence from `WHY`; a losing row without one fails the
tests. Times are the smallest CPU seconds of the repeats, in milliseconds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import (
    quantiles,
    report_files,
    report_jobs,
    report_plans,
    report_recursion,
    report_replay,
    report_rules,
    report_spark,
    report_streams,
    report_summary,
    report_threads,
    report_triggers,
    report_upkeep,
    results,
    statements,
    views,
    windows,
)
from bench.graphs import ROOT
from bench.results import Line
from bench.tables import Table
from bench.workloads import LEFT_OUT, WORKLOADS

#: The pages with tables: docs/performance.md has them all, the README a few.
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "performance.md")
#: Where the plots are: below docs/, so that its site and its pages in a checkout show them by one link.
PLOTS = ROOT / "docs" / "plots"
RIVALS = {"duckdb": "DuckDB", "kuzu": "Kuzu"}

#: Why lftj loses, by (workload, graph, mode) with "*" for any.
WHY: dict[tuple[str, str, str], str] = {
    ("bowtie", "*", "*"): "the second triangle is searched anew for each first one; DuckDB joins those it found once",
    ("4-cycle", "*", "materialise"): "the fastest key order does not begin as the head does, so all rows are sorted",
    ("4-cycle", "*", "count"): "pairs of paths are intersected one by one; DuckDB hashes all paths once",
    ("filtered path", "*", "count"): "each vertex in the middle is sought; DuckDB hashes the filtered tables",
    ("filtered path", "*", "materialise"): "acyclic: a hash join does the least work there is; its rows stay unsorted",
}

Results = dict[tuple[str, str, str, str], Line]


def milliseconds(line: Line | None) -> str:
    """The cell for a measurement: its time, "> limit", "out of memory", "failed", or a dash if it was not measured."""
    if line is None:
        return "–"
    if line["status"] == "timeout":
        return f"> {line['limit'] * 1000:,.0f}"
    if line["status"] != "ok":
        return "out of memory" if line["status"] == "memory" else "failed"
    ms = line["min"] * 1000
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}"


def seconds(line: Line | None) -> float | None:
    """The time to compare by: infinity if it ran out of time or memory, None if there is nothing to compare."""
    if line is None or line["status"] == "error":
        return None
    return float(line["min"]) if line["status"] == "ok" else float("inf")


def why(workload: str, graph: str, mode: str) -> str:
    """The sentence about a lost row; empty if nobody wrote one."""
    for key in ((workload, graph, mode), (workload, "*", mode), (workload, graph, "*"), (workload, "*", "*")):
        if key in WHY:
            return WHY[key]
    return ""


def lost_to(latest: Results, workload: str, graph: str, mode: str) -> list[str]:
    """The rivals (names as shown) that were faster than lftj on this row."""
    ours = seconds(latest.get((workload, graph, mode, "lftj")))
    if ours is None:
        return []
    theirs = {shown: seconds(latest.get((workload, graph, mode, name))) for name, shown in RIVALS.items()}
    return [shown for shown, time in theirs.items() if time is not None and time < ours]


def remark(latest: Results, workload: str, graph: str, mode: str) -> str:
    """The last cell of a row: empty, or whom lftj lost to and why."""
    lost = lost_to(latest, workload, graph, mode)
    return f"loses to {' and '.join(lost)}: {why(workload, graph, mode)}" if lost else ""


def graphs_of(latest: Results, workload: str, mode: str) -> list[str]:
    """The graphs measured for a workload, in the registry's order, stand-ins last."""
    measured = {key[1] for key in latest if key[0] == workload and key[2] == mode}
    order = [case.graph for w in WORKLOADS if w.name == workload for case in w.cases]
    return [g for g in order if g in measured] + sorted(measured - set(order))


def answer_rows(latest: Results, workload: str, graph: str, mode: str) -> str:
    """Size of the answer, which all engines agree on."""
    counts = {line["count"] for key, line in latest.items() if key[:3] == (workload, graph, mode) and "count" in line}
    return " / ".join(f"{count:,}" for count in sorted(counts)) or "–"


def triangle_table(latest: Results) -> str:
    """Triangles counted: lftj beside the hand-written kernels and the databases."""
    table = Table(
        "graph",
        "triangles",
        "CSR kernel",
        "lftj",
        "× CSR",
        "DuckDB",
        "Kuzu",
        "CSR with marks",
        "lftj index",
        "lftj peak MB",
        "remark",
    )
    for graph in graphs_of(latest, "triangle", "count"):
        line = {
            name: latest.get(("triangle", graph, "count", name))
            for name in ("csr", "csr-mark", "lftj", "duckdb", "kuzu")
        }
        ours, kernel = seconds(line["lftj"]), seconds(line["csr"])
        lftj = line["lftj"] if ours is not None else None
        table.add(
            graph,
            answer_rows(latest, "triangle", graph, "count"),
            milliseconds(line["csr"]),
            f"**{milliseconds(line['lftj'])}**",
            f"{ours / kernel:.2f}" if ours and kernel else "–",
            milliseconds(line["duckdb"]),
            milliseconds(line["kuzu"]),
            milliseconds(line["csr-mark"]),
            f"{lftj['index_seconds'] * 1000:.0f}" if lftj and "index_seconds" in lftj else "–",
            f"{lftj['peak_mb']:.0f}" if lftj and "peak_mb" in lftj else "–",
            remark(latest, "triangle", graph, "count"),
        )
    return str(table)


def materialise_table(latest: Results) -> str:
    """All rows stored: lftj's rule beside DuckDB's `CREATE TABLE AS`."""
    table = Table("pattern", "graph", "rows", "lftj", "DuckDB", "remark", left=2)
    for workload in WORKLOADS:
        for graph in graphs_of(latest, workload.name, "materialise"):
            this = (workload.name, graph, "materialise")
            table.add(
                workload.name,
                graph,
                answer_rows(latest, *this),
                f"**{milliseconds(latest.get((*this, 'lftj')))}**",
                milliseconds(latest.get((*this, "duckdb"))),
                remark(latest, *this),
            )
    return str(table)


def patterns_table(latest: Results) -> str:
    """The other patterns, counted."""
    table = Table("pattern", "graph", "rows", "lftj", "DuckDB", "Kuzu", "remark", left=2)
    for workload in WORKLOADS:
        if workload.name == "triangle":
            continue
        for graph in graphs_of(latest, workload.name, "count"):
            this = (workload.name, graph, "count")
            table.add(
                f"{workload.name}" + ("" if workload.cyclic else " (acyclic)"),
                graph,
                answer_rows(latest, *this),
                f"**{milliseconds(latest.get((*this, 'lftj')))}**",
                milliseconds(latest.get((*this, "duckdb"))),
                milliseconds(latest.get((*this, "kuzu"))),
                remark(latest, *this),
            )
    notes = [f"- {workload} on {graph} is left out: {reason}." for (workload, graph), reason in LEFT_OUT.items()]
    queries = [f"- {w.name}: `{w.text}`" for w in WORKLOADS]
    return "\n".join([str(table), "", *queries, *notes])


def footing(latest: Results) -> str:
    """Which figures of the tables of triangles and of transactions may be compared, and which not."""
    apart, at_the_end = [], []
    machines: dict[str, set[str]] = {"alone": set(), "after": set()}
    for graph, by_engine in report_upkeep.streams().items():
        alone, ours = latest.get(("triangle", graph, "count", "csr")), by_engine.get("lftj")
        if alone is None or ours is None or "kernel_ms" not in ours:
            continue
        apart.append(f"{milliseconds(alone)} ms on {graph}")
        at_the_end.append(f"{ours['kernel_ms']:,.0f} ms")
        machines["alone"].add(alone["machine"]["cpu"])
        machines["after"].add(ours["machine"]["cpu"])
    kernel = ""
    if apart:
        alone_on, after_on = (" and ".join(sorted(found)) for found in machines.values())
        kernel = (
            "Compare figures within one table only. The CSR kernel has another time in each: it takes "
            f"{' and '.join(apart)} where engines were compared at counting ({alone_on}), and "
            f"{' and '.join(at_the_end)} where transactions were measured ({after_on}), timed at the end of their "
            "process to say how fast that machine was. "
        )
    return f"{kernel}{report_upkeep.dataflow_note()}"


def machine_note(latest: Results) -> str:
    """One paragraph: on what, when, at which commit."""
    line = max(latest.values(), key=lambda each: each["run"]["date"])
    machine, run = line["machine"], line["run"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    ours = [each for each in latest.values() if each["engine"] == "lftj" and each["status"] == "ok"]
    compiles = ""
    if ours:
        cold = max(each.get("cold_compile_seconds", 0.0) for each in ours)
        warm = sorted(each["compile_seconds"] for each in ours)[len(ours) // 2]
        compiles = (
            f" lftj's kernels were compiled before, once ({cold:.1f} s for the query that needs most), or read from "
            f"the cache ({warm:.1f} s); neither is in the tables."
        )
    return (
        f"CPU milliseconds, one thread, best of the repeats. {machine['cpu']}, {machine['cores']} cores, "
        f"Python {machine['python']}, {versions}; commit {run['commit']}, {run['date'][:10]}.{compiles}"
    )


def _last(path: Path) -> dict[str, float]:
    """The newest line of a file of figures; empty if there is none."""
    figures: dict[str, float] = {}
    for line in results.read(path):
        figures = line
    return figures


def storage_table(latest: Results) -> str:
    """What `bench.storage` and `bench.start` measured last, beside what they must keep."""
    stored, start = _last(results.RESULTS / "storage.jsonl"), _last(results.RESULTS / "start.jsonl")
    table = Table("figure", "measured", "bound")
    if stored:
        build, lexsort = stored["build_seconds"] * 1000, stored["lexsort_seconds"] * 1000
        table.add("bulk build, 1M rows of 2 columns", f"{build:.0f} ms", f"1.5 × lexsort ({lexsort:.0f} ms)")
        table.add("one-row insert into 1M rows, kernel", f"{stored['insert_us_median']:.1f} µs", "20 µs")
        table.add("the same from Python", f"{stored['insert_us_python']:.0f} µs", "–")
        table.add("bytes per row and key order, loaded", f"{stored['bytes_per_row_built']:.1f}", "24")
        table.add("the same after 1M random one-row changes", f"{stored['bytes_per_row_churned']:.1f}", "24")
    if start:
        table.add("1M-row TSV to a queryable relation, CPU", f"{start['tsv_load_cpu_seconds']:.2f} s", "2 s")
        table.add("`import lftj`, CPU", f"{start['import_cpu_seconds']:.3f} s", "0.15 s")
        table.add(
            "the README's first example, fresh process, kernels cached", f"{start['readme_warm_seconds']:.2f} s", "2 s"
        )
        table.add("the same, first run ever", f"{start['readme_first_run_seconds']:.1f} s", "25 s")
        bounds = {"example": "8 s", "first transaction": "4 s", "second transaction": "4 s", "recursion": "4 s"}
        for step, bound in bounds.items():
            if f"{step}, first" in start:
                first, warm = start[f"{step}, first"], start[f"{step}, warm"]
                table.add(f"{step}: kernels compiled, then from the cache, CPU", f"{first:.1f} s, {warm:.2f} s", bound)
                if f"{step}, alone" in start:
                    table.add("the same, nothing compiled in the background", f"{start[f'{step}, alone']:.1f} s", "–")
        if "background_cpu_seconds" in start:
            table.add(
                "what is compiled in the background meanwhile, CPU", f"{start['background_cpu_seconds']:.1f} s", "–"
            )
        if "demo_cpu_seconds" in start:
            table.add("`make demo`, first run ever, CPU", f"{start['demo_cpu_seconds']:.1f} s", "30 s")
    return str(table)


def points_table() -> str:
    """What `bench.points` measured last of each question."""
    last = {line["question"]: line for line in results.read(results.RESULTS / "points.jsonl")}
    table = Table("question", "rows", "lftj, µs", "decoded, µs", "SQLite, µs", "DuckDB, µs", "bound")
    for line in last.values():
        lftj, decoded, lite, duck = (line["micros"][name] for name in ("lftj", "lftj, decoded", "sqlite", "duckdb"))
        question = f"{line['question']}: `{line['query']}`"
        figures = (f"**{lftj:.1f}**", f"{decoded:.1f}", f"{lite:.1f}", f"{duck:,.0f}")
        table.add(question, f"{line['answers']:.1f}", *figures, "20 µs")
    return str(table)


def _without(make: Callable[[], str]) -> Callable[[Results], str]:
    """A table that is made of other results."""
    return lambda _: make()


TABLES: dict[str, Callable[[Results], str]] = {
    "summary": report_summary.summary_table,
    "triangle": triangle_table,
    "footing": footing,
    "materialise": materialise_table,
    "patterns": patterns_table,
    "machine": machine_note,
    "storage": storage_table,
    "points": _without(points_table),
    "statements": _without(statements.table),
    "views": _without(views.table),
    "quantiles": _without(quantiles.table),
    "windows": _without(windows.table),
    **{
        name: _without(make)
        for part in (
            report_upkeep,
            report_rules,
            report_replay,
            report_recursion,
            report_jobs,
            report_spark,
            report_streams,
            report_summary,
            report_threads,
            report_triggers,
            report_files,
            report_plans,
        )
        for name, make in part.TABLES.items()
    },
}

_BLOCK = re.compile(r"(<!-- bench:(?P<name>[\w-]+) -->\n).*?(<!-- /bench -->)", re.DOTALL)


def filled(text: str, latest: Results) -> str:
    """`text` with every marked block replaced by its table; an unknown name raises KeyError."""
    return _BLOCK.sub(lambda m: f"{m[1]}{TABLES[m['name']](latest)}\n{m[3]}", text)


def unexplained(latest: Results) -> list[tuple[str, str, str]]:
    """Rows that lftj loses without a sentence in `WHY`."""
    rows = {key[:3] for key in latest}
    return sorted(row for row in rows if lost_to(latest, *row) and not why(*row))


def main(arguments: Sequence[str] | None = None, pages: Sequence[Path] = PAGES) -> int:
    """Write, check or print the tables."""
    arguments = sys.argv[1:] if arguments is None else arguments
    latest = results.latest(results.read(results.JOINS))
    if not latest:
        sys.stderr.write(f"no results in {results.JOINS}; run python -m bench.run first\n")
        return 1
    if "--print" in arguments:
        sys.stdout.write("\n\n".join(f"## {name}\n\n{table(latest)}" for name, table in TABLES.items()) + "\n")
        return 0
    before = {page: page.read_text(encoding="utf-8") for page in pages}
    after = {page: filled(text, latest) for page, text in before.items()}
    if "--check" in arguments:
        for page in pages:
            if before[page] != after[page]:
                sys.stderr.write(f"{page.name} differs from bench/results; run python -m bench.report\n")
        return int(before != after)
    for page, text in after.items():
        page.write_text(text, encoding="utf-8")
    from bench import plots, plots_rules, plots_upkeep

    PLOTS.mkdir(exist_ok=True)
    plots.draw(latest, PLOTS)
    plots_upkeep.draw(PLOTS)
    plots_rules.draw(PLOTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
