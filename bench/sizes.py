"""What must grow with the rows, the columns or the rules, and no faster: each case at doubled sizes.

    python -m bench.sizes [-c hubs,wide] [--quick]

hubs         a count of documents by readers of one role, n of each: evaluated, and the second commit, which fills maps
pairs        a count over a join with a condition across two atoms, K rows of one key each: evaluated. A part of the
             join without its condition has K^2 rows
derivations  a count over a join of four with K readers each: three commits, the second of which prepares
skewed       a join of orders, items and products in 40 categories: steps of the evaluation, by the key order chosen
wide         `select *` of a table of c columns, the first time
nullable     the third commit below a view of c columns that may be null
sums         the second commit below a view of a sum of c columns `coalesce(.., 0)`
totals       the second commit below a view of c sums and maxima by group, of a table of c columns
views        the next view of SQL where there are k; opening a file with k of them

CPU seconds but for `skewed`, and megabytes at most of the process, of which each measurement has its own. *growth* is
the exponent from one size to the next: 1 is proportional, 2 the square. Copied into another checkout, this file
measures that. Each line goes to `bench/results/sizes.jsonl`; a case that takes longer than `PATIENCE` is told.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lftj
from bench import results

SIZES = results.RESULTS / "sizes.jsonl"
# Seconds of a measurement.
PATIENCE = 120


class Case(NamedTuple):
    """`measured`: the figure of a size · `sizes`, each twice the one before · `unit`: of the figure."""

    measured: Callable[[int], float]
    sizes: tuple[int, ...]
    unit: str = "s"


def taken(work: Callable[[], Any]) -> float:
    """The CPU seconds of something."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def insert(db: lftj.Database, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows in a transaction."""
    with db.transaction() as tx:
        tx.insert(name, rows)


# -- joins -------------------------------------------------------------------------------------------------------------


def hubs(n: int) -> float:
    """Evaluated, and two commits of one row."""
    db = lftj.Database(".decl doc(d:number, r:number)  .decl can(u:number, r:number)")
    db.rules("readers[d] = count : { doc(d, r), can(_, r) }.")

    def work() -> None:
        insert(db, "doc", [(i, 0) for i in range(n)])
        insert(db, "can", [(i, 0) for i in range(n)])
        list(db["readers"])
        for i in range(2):
            insert(db, "doc", [(n + i, 0)])

    return taken(work)


def pairs(k: int) -> float:
    """Evaluated from nothing."""
    db = lftj.Database(".decl a(x:number, y:number)  .decl b(x:number, y:number)  .decl c(x:number, y:number)")
    db.load("a", [(0, i) for i in range(k)])
    db.load("b", [(0, i) for i in range(k)])
    db.load("c", [(i, i % 30) for i in range(k)])
    db.rules("h[g] = count : { a(x, y), b(x, z), y < z, c(y, g) }.")
    return taken(lambda: list(db["h"]))


def derivations(k: int) -> float:
    """Three commits after a load and an evaluation."""
    names = ("a", "b", "c", "d")
    db = lftj.Database("".join(f".decl {name}(x:number, y:number)  " for name in names))
    db.rules("h[g] = count : { a(x, y), b(x, z), c(y, g), c(z, g), d(g, _), y != z }.")
    rng = np.random.default_rng(1)
    for name, rows, left, right in (("a", k, 300, 300), ("b", k, 300, 300), ("c", 3000, 300, 9), ("d", 2000, 9, 3000)):
        pairs = np.stack([rng.integers(0, left, rows), rng.integers(0, right, rows)], 1)
        db.load(name, np.unique(pairs, axis=0))
    list(db["h"])

    def work() -> None:
        for i in range(3):
            insert(db, "ab"[i % 2], [(1000 + i, 7)])

    return taken(work)


def skewed(n: int) -> float:
    """Steps of n orders."""
    rng = np.random.default_rng(1)

    def often(size: int, most: int, a: float) -> Any:
        return np.minimum(rng.zipf(a, size), most) - 1

    customers, products, items = n // 6, n // 60, 3 * n
    by = (often(n, customers, 1.1) + rng.integers(0, customers, n) * (rng.random(n) < 0.5)) % customers
    which = (often(items, products, 1.15) + rng.integers(0, products, items) * (rng.random(items) < 0.6)) % products
    category = often(products, 40, 1.2)
    db = lftj.Database(
        ".decl orders(id:number, cust:number) primary-key (id)  .decl item(o:number, p:number)  "
        ".decl prod(id:number, cat:number) primary-key (id)"
    )
    db.rules("buys(cu, c) :- orders(o, cu), item(o, p), prod(p, c).")
    db.load("orders", np.stack([np.arange(n), by], 1))
    db.load("item", np.unique(np.stack([rng.integers(0, n, items), which.astype(np.int64)], 1), axis=0))
    db.load("prod", np.stack([np.arange(products), category], 1))
    list(db["buys"])
    (done,) = db._state.evaluations.values()
    assert done.counters is not None
    return float(done.counters.steps)


# -- columns -----------------------------------------------------------------------------------------------------------


def table(columns: int, kind: str = "int") -> tuple[lftj.Database, list[str]]:
    """A table with a key and so many columns, and their names."""
    db, names = lftj.Database(), [f"c{i}" for i in range(columns)]
    db.sql(f"create table w (id int primary key, {', '.join(f'{name} {kind}' for name in names)})")
    return db, names


def wide(columns: int) -> float:
    """`select *`, where nothing was planned before."""
    db, _ = table(columns, "int not null")
    insert(db, "w", [(1,) * (columns + 1)])
    return taken(lambda: list(db.sql("select * from w")))


def nullable(columns: int) -> float:
    """The third commit below `select *` with a condition."""
    db, _ = table(columns)
    db.sql("create view v as select * from w where c1 is null")
    return nth(db, columns, 3)


def sums(columns: int) -> float:
    """The second commit below a sum of all columns."""
    db, names = table(columns)
    db.load("w", [(i, *(1,) * columns) for i in range(500)])
    db.sql(f"create view v as select id, {' + '.join(f'coalesce({name}, 0)' for name in names)} as s from w")
    return nth(db, columns, 2)


def totals(columns: int) -> float:
    """The second commit below sums and maxima of all columns."""
    db, names = table(columns)
    db.load("w", [(i, *(i % 7,) * columns) for i in range(500)])
    shown = ", ".join(f"{('sum', 'max')[i % 2]}({name}) as a{i}" for i, name in enumerate(names[1:]))
    db.sql(f"create view v as select c0, {shown} from w group by c0")
    return nth(db, columns, 2)


def nth(db: lftj.Database, columns: int, number: int) -> float:
    """The last of so many commits of twenty rows."""
    spent = 0.0
    for k in range(number):
        rows = [(1000 + 20 * k + i, *(None if (i + c) % 5 == 0 else i for c in range(columns))) for i in range(20)]
        spent = taken(lambda rows=rows: insert(db, "w", rows))  # type: ignore[misc]
    return spent


# -- rules -------------------------------------------------------------------------------------------------------------


def views(count: int, *, opens: bool = False) -> float:
    """The last of so many views; or opening a file with them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "views.lftj"
        db = lftj.Database(path=path, sync="off")
        db.sql("create table t (id bigint primary key, a bigint not null, b bigint)")
        spent = 0.0
        for i in range(count):
            view = f"create view v{i} as select a, count(*) as n, sum(b) as s from t where id > {i} group by a"
            spent = taken(lambda view=view: db.sql(view))  # type: ignore[misc]
        db.close()
        return taken(lambda: lftj.Database(path=path)) if opens else spent


CASES = {
    "hubs": Case(hubs, (2000, 4000, 8000)),
    "pairs": Case(pairs, (1000, 2000, 4000)),
    "derivations": Case(derivations, (15_000, 30_000)),
    "skewed": Case(skewed, (60_000, 120_000), "steps"),
    "wide": Case(wide, (30, 60, 120)),
    "nullable": Case(nullable, (20, 40, 80)),
    "sums": Case(sums, (11, 22)),
    "totals": Case(totals, (37, 74, 148)),
    "views": Case(views, (100, 200, 400)),
    "opening": Case(lambda count: views(count, opens=True), (100, 200, 400)),
}


def measured(name: str, size: int) -> dict[str, Any]:
    """The figure and the megabytes of a size, in a process of its own that has compiled what it needs before."""
    code = f"from bench import sizes; sizes.tell({name!r}, {size})"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"status": "timeout"}
    if done.returncode < 0:  # what the system ends a process by that takes all memory
        return {"status": "killed"}
    if done.returncode:
        return {"status": "error", "error": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"status": "ok", **found}


def tell(name: str, size: int) -> None:
    """Measure a size of a case after the same of the least one, and print it as JSON."""
    warnings.simplefilter("ignore")
    case = CASES[name]
    case.measured(case.sizes[0] // 4)  # what has to be compiled is
    figure = case.measured(size)
    print(json.dumps({"figure": round(figure, 4), "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the cases, print and keep their figures. Exit code 1 if one took too long, or failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.sizes", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-c", "--cases", default=",".join(CASES))
    parser.add_argument("--quick", action="store_true", help="the least two sizes, and nothing is recorded")
    options = parser.parse_args(arguments)
    failed = False
    for name in options.cases.split(","):
        case, before = CASES[name], 0.0
        for size in case.sizes[:2] if options.quick else case.sizes:
            found = measured(name, size)
            failed |= found["status"] != "ok"
            figure = found.get("figure", 0.0)
            if before and figure:
                found["growth"] = round(math.log2(figure / before), 2)
            shown = f"{figure:12,.3f} {case.unit:5} {found['mb']:6} MB" if figure else json.dumps(found)
            print(f"{name:12} {size:8,} {shown}  {found.get('growth', '')}", flush=True)
            if not options.quick:
                results.append(SIZES, {"case": name, "size": size, "unit": case.unit, **found})
            before = figure
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
