"""TPC-H's tables at a scale, as Arrow tables: those of the specification's generator, which duckdb 0.9.2 carries.

    tables(0.01)      {"region": Arrow table, ..., "lineitem": Arrow table}
    python -m bench.tpch_data 0.01 0.1

Newer DuckDBs fetch that generator from the network, so it runs in a virtual environment of its own (`pip install
duckdb==0.9.2`, once), which writes Parquet files; they are kept under `~/.cache/lftj-bench/` and read from then on.
Where no such environment can be had, `bench.tpch_made` generates tables of the same form. `source` says which it was:
results tell, since figures of different data are not compared.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.tpch_made import made
from bench.tpch_queries import TABLES

CACHE = Path.home() / ".cache" / "lftj-bench"
DUCKDB = "0.9.2"
#: Written to a directory that gets its name when all is there, so that an interrupted run leaves nothing half made.
_GENERATE = """
import duckdb, os, sys
scale, directory = float(sys.argv[1]), sys.argv[2]
os.makedirs(directory + ".new", exist_ok=True)
connection = duckdb.connect()
connection.execute("LOAD tpch")
connection.execute(f"CALL dbgen(sf={scale})")
for name in sys.argv[3:]:
    connection.execute(f"COPY {name} TO '{directory}.new/{name}.parquet' (FORMAT PARQUET, COMPRESSION ZSTD)")
os.rename(directory + ".new", directory)
"""


class Unavailable(Exception):
    """The specification's generator cannot be had here; `args[0]` says why."""


def tables(scale: float) -> dict[str, Any]:
    """All eight tables at a scale: read, or generated and kept."""
    import pyarrow.parquet as pq

    where = CACHE / f"tpch-{scale:g}"
    if not where.exists():
        try:
            _generate(scale, where)
        except Unavailable as why:
            sys.stderr.write(f"no generator of the specification ({why}): tables are those of bench.tpch_made\n")
            return made(scale)
    return {name: pq.read_table(where / f"{name}.parquet") for name in TABLES}


def source(scale: float) -> str:
    """Whose tables `tables(scale)` has given: "dbgen" or "made"."""
    return "dbgen" if (CACHE / f"tpch-{scale:g}").exists() else "made"


def _generate(scale: float, where: Path) -> None:
    """Have duckdb 0.9.2 write the tables; raises `Unavailable`."""
    where.parent.mkdir(parents=True, exist_ok=True)
    home = CACHE / f"duckdb-{DUCKDB}"
    python = home / "bin" / "python"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(home))
    if subprocess.run((str(python), "-c", "import duckdb"), capture_output=True, check=False).returncode:
        _run(str(python), "-m", "pip", "install", "--quiet", f"duckdb=={DUCKDB}")
    _run(str(python), "-c", _GENERATE, str(scale), str(where), *TABLES)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(str(error)) from error
    if done.returncode:
        raise Unavailable((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])


def main() -> int:
    """Tell the rows of every table at the scales that are named."""
    for scale in map(float, sys.argv[1:] or ("0.01", "0.1")):
        held = tables(scale)
        sys.stdout.write(f"scale {scale:g}, {source(scale)}: ")
        sys.stdout.write(", ".join(f"{name} {table.num_rows:,}" for name, table in held.items()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
