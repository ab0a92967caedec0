"""What happens in the jobs of `bench.jobs`: their tables at the beginning, and the changes after it.

Data come from the programs in `examples/jobs/`. A change holds what lftj's function of the example is called with,
and, for engines that change tables, the rows that go and those that come.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.graphs import ROOT

#: By table, the columns by name; Arrow tables.
Tables = Mapping[str, pa.Table]


class Change(NamedTuple):
    """One change: `call`, the arguments of the example's function; rows that go, and that come; events in it."""

    call: Any
    gone: Tables
    come: Tables
    rows: int


class Job:
    """A job: the example `name`, its `size`, how many `changes` there are, and a `tiny` size for warming and tests.

    `shown` and `change`: the job and a change in words · `answers`: the names of the heads that are compared.
    """

    def __init__(self, name: str, shown: str, change: str, answers: str, size: int, tiny: int, changes: int) -> None:
        self.name, self.shown, self.change, self.answers = name, shown, change, answers.split()
        self.size, self.tiny, self.changes = size, tiny, changes

    @cached_property
    def example(self) -> dict[str, Any]:
        """What the program defines."""
        return runpy.run_path(str(ROOT / "examples" / "jobs" / f"{self.name}.py"))

    def work(self, size: int, changes: int, seed: int) -> tuple[Tables, list[Change]]:
        """The tables at the beginning, and so many changes."""
        return WORK[self.name](self.example["make"](size, seed), changes, np.random.default_rng(seed + 1000))


def arrow(columns: Any) -> pa.Table:
    """Columns as an Arrow table."""
    return columns if isinstance(columns, pa.Table) else pa.table(dict(columns))


def prices(tables: Any, changes: int, rng: np.random.Generator) -> tuple[Tables, list[Change]]:
    """New own costs of random parts."""
    tables = {name: arrow(columns) for name, columns in tables.items()}
    own, made = tables["own"]["cost"].to_pylist(), []
    for part, cents in zip(rng.integers(0, len(own), changes), rng.integers(1, 5_000, changes), strict=True):
        cost = Decimal(int(cents)) / 100
        gone, come = (
            pa.table({"part": [part], "cost": pa.array([c], tables["own"].schema.field("cost").type)})
            for c in (own[part], cost)
        )
        made.append(Change((int(part), cost), {"own": gone}, {"own": come}, 1))
        own[part] = cost
    return tables, made


def rights(tables: Any, changes: int, rng: np.random.Generator) -> tuple[Tables, list[Change]]:
    """By turns: a user moves, a team becomes part of another, a grant, a denial; all but the first four are undone."""
    tables = {name: arrow(columns) for name, columns in tables.items()}
    held = {name: set(zip(*table.to_pydict().values(), strict=True)) for name, table in tables.items()}
    members = sorted(held["member"])
    teams, folders = 1 + max(team for team, _ in held["part"]), tables["inside"].num_rows
    made: list[Change] = []
    while len(made) < changes:
        at = len(made) % 4 if len(made) < 4 else len(made) // 2 % 4
        who, team = members[rng.integers(len(members))]
        low, high = rng.integers(1, max(teams // 4, 2)), rng.integers(teams // 2, teams)
        rows = (who, high), (high, low), (high, rng.integers(1, folders)), (low, rng.integers(1, folders))
        name, row = ("member", "part", "grant", "deny")[at], tuple(map(int, rows[at]))
        if row in held[name]:
            continue
        come, gone = [(name, row)], [(name, (who, team))] if at == 0 else []
        made.append(_rights(tables, come, gone))
        if len(made) > 4:
            made.append(_rights(tables, gone, come))
        else:
            held[name] = held[name] - {row for _, row in gone} | {row}
            members = sorted(held["member"])
    return tables, made[:changes]


def _rights(tables: Tables, come: list[Any], gone: list[Any]) -> Change:
    come_in, go_out = (
        {name: arrow({c: [v] for c, v in zip(tables[name].column_names, row, strict=True)}) for name, row in rows}
        for rows in (come, gone)
    )
    return Change({"insert": come, "erase": gone}, go_out, come_in, len(come) + len(gone))


def arrivals(name: str, rows: int) -> Callable[[Any, int, np.random.Generator], tuple[Tables, list[Change]]]:
    """Work in which the last rows of a table come in batches of so many."""

    def work(tables: Any, changes: int, rng: np.random.Generator) -> tuple[Tables, list[Change]]:
        tables = tables if name in tables else {name: tables}
        table = arrow(tables[name])
        begin = table.num_rows - changes * rows
        batches = [table.slice(begin + i * rows, rows) for i in range(changes)]
        made = [Change(batch, {}, {name: batch}, rows) for batch in batches]
        return {**{other: arrow(t) for other, t in tables.items()}, name: table.slice(0, begin)}, made

    return work


def feed(tables: Any, changes: int, rng: np.random.Generator) -> tuple[Tables, list[Change]]:
    """The whole feed in so many batches; an order of which the last event is that it goes, goes."""
    events = tables["feed"]
    rows = -(-events.num_rows // changes)
    made = []
    for lo in range(0, events.num_rows, rows):
        batch = events.slice(lo, rows)
        ids, op = batch["id"].to_numpy(), batch["op"].to_numpy(zero_copy_only=False)
        _, last = np.unique(ids[::-1], return_index=True)
        last = np.sort(len(ids) - 1 - last)
        come = batch.take(last[op[last] == "I"]).drop_columns("op")
        made.append(Change(batch, {"orders": arrow({"id": np.unique(ids)})}, {"orders": come}, batch.num_rows))
    return {"category": tables["category"], "orders": events.slice(0, 0).drop_columns("op")}, made


WORK = {
    "fraud_rings": arrivals("payment", 100),
    "bill_of_materials": prices,
    "access_rights": rights,
    "change_feed": feed,
    "time_buckets": arrivals("request", 1_000),
}
JOBS = {
    job.name: job
    for job in (
        Job(
            "fraud_rings",
            "fraud rings: 1M payments with times and decimals",
            "100 payments come",
            "ring suspect moved",
            1_000_000,
            5_000,
            100,
        ),
        Job(
            "bill_of_materials",
            "bill of materials: 100k parts, nine stages",
            "one price",
            "total quote",
            100_000,
            2_000,
            2_000,
        ),
        Job(
            "access_rights",
            "access rights: 100k users, 5k groups in groups",
            "one row: a member, a group in a group, a grant or a denial",
            "may",
            100_000,
            2_000,
            800,
        ),
        Job(
            "change_feed",
            "change feed: 1M events, five views",
            "1,000 events",
            "by_status spent good sold dearest",
            1_000_000,
            20_000,
            1_000,
        ),
        Job(
            "time_buckets",
            "counts by the hour: 10M requests",
            "1,000 requests come",
            "hits failures bad",
            10_000_000,
            30_000,
            100,
        ),
    )
}
