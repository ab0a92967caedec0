"""What loading columns of every type takes, beside int64 columns: `db.load` of two columns from Arrow.

    python -m bench.typed_loads [-n ROWS] [-r ROUNDS]

Beside each type stands a load of int64 columns that hold the same codes, so that what is sorted, merged and written is
the same (how long sorting takes depends on how far the codes are apart). The two are interleaved; a figure is the
quotient of their CPU times, of which the median and the least over the rounds stand in the line. Of nullable columns a
tenth is null. Each line goes to `bench/results/typed_loads.jsonl`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench import results

LOADS = results.RESULTS / "typed_loads.jsonl"
ROWS, ROUNDS, SEED = 5_000_000, 5, 7
DAYS = 100_000


def columns(rows: int) -> dict[str, tuple[str, pa.Table]]:
    """Type of the two columns and their table, by name."""
    rng = np.random.default_rng(SEED)
    first, second = rng.integers(0, DAYS, rows), rng.integers(0, DAYS, rows)

    def table(make: Any) -> pa.Table:
        return pa.table({"a": make(first), "b": make(second)})

    missing = rng.random(rows) < 0.1

    def to_decimal(values: Any) -> pa.Array:
        halves = np.empty(2 * rows, np.int64)
        halves[::2], halves[1::2] = values, values >> 63
        return pa.Array.from_buffers(pa.decimal128(18, 2), rows, [None, pa.py_buffer(halves)])

    return {
        "unsigned": ("unsigned", table(lambda v: pa.array(v.astype(np.uint64)))),
        "float": ("float", table(lambda v: pa.array(v.astype(np.float64)))),
        "date": ("date", table(lambda v: pa.array(v.astype(np.int32)).view(pa.date32()))),
        "timestamp": ("timestamp", table(lambda v: pa.array(v * 1_000_000).view(pa.timestamp("us")))),
        "timestamp ns": ("timestamp", table(lambda v: pa.array(v * 1_000_000_000).view(pa.timestamp("ns")))),
        "zoned": (
            'timestamp("Europe/Berlin")',
            table(lambda v: pa.array(v * 1_000_000).view(pa.timestamp("us", "UTC"))),
        ),
        "duration": ("duration", table(lambda v: pa.array(v).view(pa.duration("us")))),
        "decimal": ("decimal(18,2)", table(to_decimal)),
        "number?": ("number?", table(lambda v: pa.array(v, mask=missing))),
        "date?": ("date?", table(lambda v: pa.array(v.astype(np.int32), mask=missing).view(pa.date32()))),
    }


def cpu_of(type: str, table: pa.Table) -> float:
    """CPU seconds of one load into an empty database."""
    import lftj

    db = lftj.Database(f".decl t(a:{type}, b:{type})")
    start = time.process_time()
    db.load("t", table)
    return time.process_time() - start


def codes_of(type: str, table: pa.Table) -> pa.Table:
    """The codes of the rows, in their order."""
    from lftj.io.convert import arrow_part

    return pa.table({name: arrow_part(table.column(name).combine_chunks(), type).codes for name in table.column_names})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all types; 0."""
    parser = argparse.ArgumentParser(prog="bench.typed_loads", description=__doc__.partition("\n")[0])
    parser.add_argument("-n", "--rows", type=int, default=ROWS)
    parser.add_argument("-r", "--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args(arguments)
    tables = columns(asked.rows)
    for name, (type, table) in tables.items():
        codes = codes_of(type, table)
        cpu_of(type, table.slice(0, 1000))
        pairs = [(cpu_of("number", codes), cpu_of(type, table)) for _ in range(asked.rounds)]
        quotients = [own / number for number, own in pairs]
        line: results.Line = {
            "workload": "typed loads",
            "graph": name,
            "mode": "load",
            "engine": "lftj",
            "status": "ok",
        }
        line |= {"rows": asked.rows, "cpu": min(own for _, own in pairs), "number_cpu": min(n for n, _ in pairs)}
        line |= {"ratio": statistics.median(quotients), "least_ratio": min(quotients)}
        if asked.rows == ROWS:
            results.append(LOADS, line)
        sys.stdout.write(
            f"{name:14} {line['cpu']:.2f} s, int64 {line['number_cpu']:.2f} s: {line['ratio']:.2f} times as long\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
