"""Single rows in tables of SQL: keys, constraints and first rows, beside SQLite. CPU time of each, wherever it goes.

    python -m bench.statements [-n rows] [--quick]

Each case is a table in memory, filled with rows, and statements of one row, each a transaction: of lftj by `db.sql`,
one text with parameters, texts with the values written out, and a text of a new shape each time, and where that says
the same by `db.transaction()`; of SQLite by `execute`, with the index that the case wants. Where a view of the first
rows is kept, SQLite is asked for them after each statement, as lftj knows their change then. The engines take their
turns in batches; figures are medians over these. What the tables hold in the end is compared. Each line goes to
`bench/results/statements.jsonl`. Exit code 1 if engines disagree.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import lftj
from bench import results
from bench.tables import Table

STATEMENTS = results.RESULTS / "statements.jsonl"
BATCH, BATCHES = 20, 31
ITEMS = 1000
PLAIN = (
    "create table sale (id integer primary key, item integer not null, qty integer not null, price integer not null)"
)
CHECKED = """create table sale (id integer primary key, item integer not null references item (id),
    qty integer not null check (qty > 0), price integer not null unique)"""
FIRST = "select id, price from sale order by price desc, id limit 10"
INSERT = "insert into sale values ($id, $item, $qty, $price)"


class Case(NamedTuple):
    """A table, and statements about the rows numbered from `first` (times how many there are) on.

    `call`: the same statement as a method of a transaction, "" if there is none · `asked`: what SQLite is asked for
    after each statement.
    """

    name: str
    table: str
    statement: str
    call: str = ""
    first: float = 1.0
    asked: str = ""


CASES = (
    Case("insert", PLAIN, INSERT, "insert"),
    Case("insert, with `check`, `unique` and a foreign key", CHECKED, INSERT, "insert"),
    Case(
        "insert, or on conflict update",
        PLAIN,
        f"{INSERT} on conflict (id) do update set qty = sale.qty + excluded.qty",
        first=0.999,
    ),
    Case("select by key", PLAIN, "select * from sale where id = $id", first=0.5),
    Case("update by key", PLAIN, "update sale set qty = qty + 1 where id = $id", first=0.5),
    Case("delete by key", PLAIN, "delete from sale where id = $id", "erase", first=0.5),
    Case("insert below a view of the first 10", PLAIN, INSERT, "insert", asked=FIRST),
    Case("delete below a view of the first 10", PLAIN, "delete from sale where id = $id", "erase", 0.5, FIRST),
)


def row(i: int, n: int) -> tuple[int, int, int, int]:
    """The row numbered i of a table of n rows; no two have one price."""
    return i, i % ITEMS, i % 7 + 1, i * 7919 % (100 * n + 7)


def engines(case: Case, n: int) -> tuple[dict[str, Callable[[int], Any]], Callable[[], dict[str, list[Any]]]]:
    """(what carries out the statement about row number i, by engine; what the tables hold)."""
    rows = [row(i, n) for i in range(n)]
    items = [(i,) for i in range(ITEMS)]
    lite = sqlite3.connect(":memory:", isolation_level=None)
    made = {name: lftj.Database() for name in ("lftj, SQL", "lftj, written out", "lftj, new text")}
    if case.call:
        made["lftj"] = lftj.Database()
    for db in made.values():
        db.sql(f"create table item (id integer primary key); {case.table};")
        if case.asked:
            db.sql(f"create view leading as {case.asked}")
        db.load("item", items)
        db.load("sale", rows)
    lite.execute("create table item (id integer primary key)")
    lite.execute(case.table)
    lite.execute("pragma foreign_keys = on")
    if case.asked:
        lite.execute("create index by_price on sale (price desc, id)")
    lite.execute("begin")
    lite.executemany("insert into item values (?)", items)
    lite.executemany("insert into sale values (?, ?, ?, ?)", rows)
    lite.execute("commit")
    named = [name for name in ("id", "item", "qty", "price") if f"${name}" in case.statement]

    def given(i: int) -> dict[str, Any]:
        values = dict(zip(("id", "item", "qty", "price"), row(i, n), strict=True))
        return {name: values[name] for name in named}

    def written_out(i: int) -> str:
        text = case.statement
        for name, value in given(i).items():
            text = text.replace(f"${name}", str(value))
        return text

    def by_lite(i: int) -> None:
        lite.execute(case.statement, given(i)).fetchall()
        if case.asked:
            lite.execute(case.asked).fetchall()

    def by_call(i: int) -> None:
        with made["lftj"].transaction() as tx:
            getattr(tx, case.call)("sale", [row(i, n)])

    found: dict[str, Callable[[int], Any]] = {
        "sqlite": by_lite,
        "lftj, SQL": lambda i: made["lftj, SQL"].sql(case.statement, **given(i)),
        "lftj, written out": lambda i: made["lftj, written out"].sql(written_out(i)),
        "lftj, new text": lambda i: made["lftj, new text"].sql(f"{case.statement} -- {i}", **given(i)),
    }
    if case.call:
        found["lftj"] = by_call

    def held() -> dict[str, list[Any]]:
        contents = {"sqlite": sorted(lite.execute("select * from sale").fetchall())}
        contents |= {name: sorted(db["sale"]) for name, db in made.items()}
        if case.asked:
            for name, db in made.items():
                contents[name] += sorted(db["leading"])
            contents["sqlite"] += sorted(lite.execute(case.asked).fetchall())
        return contents

    return found, held


def measured(case: Case, n: int, batches: int) -> dict[str, Any]:
    """The medians over batches, in microseconds a statement; raises if the engines come to different tables."""
    carry_out, held = engines(case, n)
    took: dict[str, list[float]] = {name: [] for name in carry_out}
    number = int(case.first * n)
    for name in carry_out:  # what is compiled, built or kept by the first statements
        for i in range(number, number + 3):
            carry_out[name](i)
    number += 3
    for _ in range(batches):
        for name, statement in carry_out.items():
            begun = time.process_time()
            for i in range(number, number + BATCH):
                statement(i)
            took[name].append((time.process_time() - begun) / BATCH * 1e6)
        number += BATCH
    contents = held()
    assert all(content == contents["sqlite"] for content in contents.values()), case.name
    return {
        "case": case.name,
        "rows": n,
        "micros": {name: statistics.median(times) for name, times in took.items()},
    }


def table() -> str:
    """What was measured last of each case."""
    last = {line["case"]: line for line in results.read(STATEMENTS)}
    shown = Table(
        "statement of one row",
        "lftj by `transaction()`, µs",
        "by `db.sql` with parameters, µs",
        "with values written out, µs",
        "of a new shape, µs",
        "SQLite, µs",
    )
    for name, line in last.items():
        micros = line["micros"]
        call = f"**{micros['lftj']:.0f}**" if "lftj" in micros else "–"
        by_sql = [f"{micros[f'lftj, {how}']:,.0f}" for how in ("SQL", "written out", "new text")]
        shown.add(name, call, *by_sql, f"{micros['sqlite']:.1f}")
    return str(shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and record; 1 if engines disagree."""
    parser = argparse.ArgumentParser(prog="bench.statements")
    parser.add_argument("-n", type=int, default=200_000)
    parser.add_argument("--quick", action="store_true", help="few rows and batches; nothing is recorded")
    given = parser.parse_args(arguments)
    for case in CASES:
        try:
            line = measured(case, 2_000 if given.quick else given.n, 2 if given.quick else BATCHES)
        except AssertionError as error:
            sys.stderr.write(f"engines disagree: {error}\n")
            return 1
        shown = ", ".join(f"{name} {micros:.1f}" for name, micros in line["micros"].items())
        sys.stdout.write(f"{case.name}: {shown} µs\n")
        if not given.quick:
            results.append(STATEMENTS, line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
