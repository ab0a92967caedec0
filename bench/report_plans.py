"""The table about key orders: steps of the chosen ones beside the best found, and as estimated."""

from __future__ import annotations

from collections.abc import Callable

from bench import plans, results
from bench.results import Line
from bench.tables import Table, short

SHOWN = {
    "plain": "chains, stars, trees, cycles over random and path-like graphs",
    "hard": "over skewed, dense or layered graphs; cliques with a tail; random bodies",
}
QUANTILES = ("median", "p90", "p99", "worst")


def groups() -> dict[str, Line]:
    """The last line of every group of bodies."""
    return {line["workload"]: line for line in results.read(plans.PLANS)}


def plans_table() -> str:
    """Ratios of steps, and of estimated to actual ones."""
    table = Table("bodies", "figure", "cases", "median", "90 %", "99 %", "worst", "within 2", left=2)
    for group, line in groups().items():
        within = f"{line['within']:,} of {line['cases']:,}"
        figures = (
            ("steps × the best order's", "ratio", within),
            ("the same, if estimates alone chose", "untried", "–"),
            ("estimate off by a factor", "q_error", "–"),
        )
        for name, key, bound in figures:
            table.add(SHOWN[group], name, f"{line['cases']:,}", *(short(line[key][q]) for q in QUANTILES), bound)
    return str(table)


TABLES: dict[str, Callable[[], str]] = {"plans": plans_table}
