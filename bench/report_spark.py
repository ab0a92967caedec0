"""The tables about Spark, of the last lines that the results hold for each graph, and for each size of a batch.

Both sides counted the same rows when they were measured. A batch's time is the median of all of its size but the first,
and is compared with evaluation anew after the last of these, creation with that before: Java was as warm for both.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from bench import results
from bench.tables import Table, short

SPARK = results.RESULTS / "spark.jsonl"
GROUPBY = results.RESULTS / "spark_groupby.jsonl"
ANEW = "Spark SQL, all triangles"


def measured() -> dict[tuple[str, str, int], results.Line]:
    """The last line for everything measured: by graph, what was done, and rows of a batch (0: no batch)."""
    return {(line["graph"], line["what"], line.get("size", 0)): line for line in results.read(SPARK)}


def spark_table() -> str:
    """Creating and changing triangles, beside Spark SQL."""
    table = Table("edges", "what", "lftj, s", "of it joins", "delta joins in SQL, s", "anew in SQL, s", "×", left=2)
    found = measured()
    for graph in ("pl200k", "pl1m"):
        first: list[float] = found[graph, ANEW, 0]["seconds"]
        made = found[graph, "create", 0]
        joins = max(part["evaluate"] for part in made["parts"])
        _row(table, graph, "create", made["seconds"][0], joins, None, first[0])
        for (where, what, size), line in found.items():
            if (where, what) == (graph, "batch"):
                ours, theirs = (median(line[side][1:]) for side in ("seconds", "sql delta"))
                anew = median(line["sql anew"])
                _row(table, graph, f"{size:,} changes", ours, line["spent"]["evaluate"], theirs, anew)
    return str(table)


def _row(table: Table, graph: str, what: str, ours: float, joins: float, delta: Any, anew: float) -> None:
    times = f"{anew / ours:.1f}"
    table.add(graph, what, f"**{short(ours)}**", short(joins), short(delta), short(anew), times)


def local_table() -> str:
    """Creating and changing triangles on one machine, in one database and in processes of their own."""
    table = Table("kept up by", "where", "create, s", "of it joins", "10,000 changes, s", "of it joins", left=2)
    found = {
        (line["maintain"], line.get("processes", 0)): line
        for line in results.read(SPARK)
        if line["what"] == "one database" or (line["what"] == "processes" and "create" in line)
    }
    for (how, count), line in found.items():
        where = "one database" if not count else f"{count} process" + ("es" if count > 1 else "")
        figures = (line[key] for key in ("create", "evaluate", "batch", "batch, evaluate"))
        table.add("choice of lftj" if how == "auto" else how, where, *map(short, figures))
    return str(table)


def groupby_table() -> str:
    """A sum over a join, by groups that cross partitions, created and changed beside Spark SQL."""
    table = Table("what", "lftj, s", "of it joins", "anew in SQL, s", "×", "with the changed rows made, s", "×", left=1)
    for line in {(line["what"], line.get("size", 0)): line for line in results.read(GROUPBY)}.values():
        if line["what"] == "create":
            ours, anew, made = line["seconds"][0], line["sql anew"][0], None
            joins = max(part["evaluate"] for part in line["parts"])
            what = "create"
        else:
            ours, anew, made = (median(line[side][1:]) for side in ("seconds", "sql anew", "sql changes"))
            joins, what = line["spent"]["evaluate"], f"{line['size']:,} changes"
        whole = None if made is None else anew + made
        both = "–" if whole is None else f"{whole / ours:.1f}"
        table.add(what, f"**{short(ours)}**", short(joins), short(anew), f"{anew / ours:.1f}", short(whole), both)
    return str(table)


TABLES: dict[str, Callable[[], str]] = {
    "spark": spark_table,
    "spark_groupby": groupby_table,
    "processes": local_table,
}
