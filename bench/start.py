"""What a user waits for before the first answer.

    python -m bench.start

1. `import lftj` in a fresh interpreter: CPU seconds above those of an empty one, and which heavy packages it pulled in.
2. The README's first example in a fresh process: with an empty kernel cache (the first run ever) and with a warm one.
   Then, in the same process, what compiles more: a first and a second transaction, and a recursive rule. CPU and wall
   seconds of each: `first` as users meet it, with another process that compiles in the background, and `alone`, where
   each step compiles what it needs. What the other process takes is measured by itself.
3. `lftj demo` with an empty kernel cache, which is what `make demo` runs once lftj is installed; nothing in the
   background.
4. A TSV file of a million rows loaded to a queryable relation, CPU seconds, kernels compiled before.

Each line also goes to `bench/results/start.jsonl`.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import graphs, results
from bench.graphs import ROOT

START = results.RESULTS / "start.jsonl"
HEAVY = ("numba", "llvmlite", "pyarrow", "pandas", "polars", "lark", "rich", "typer")

LOAD = """
import sys, time, lftj
def loaded(path):
    db = lftj.Database()
    db.rules('.decl e(x:number, y:number)')
    start = time.process_time()
    db.load('e', path)
    return len(db['e']), time.process_time() - start
loaded(sys.argv[1])
sys.stdout.write('%d %f' % loaded(sys.argv[2]))
"""

UPDATES = "import sys; from lftj.cli import main; sys.exit(main(['warmup', '--updates']))"
OVER = """
import time
from lftj.maintain import background
while background.is_busy():
    time.sleep(0.1)
"""
DEMO = "import sys; from lftj.cli import main; sys.exit(main(['demo']))"
# The README's first example (argument 1), then the steps after it that need further kernels.
STEPS = """
import json, sys, time
seen = []
def done(step):
    seen.append((step, time.process_time(), time.perf_counter()))
done('start')
exec(sys.argv[1])
done('example')
for step, row in (('first transaction', (4, 5)), ('second transaction', (3, 5))):
    with db.transaction() as tx:
        tx.insert('edge', [row])
    done(step)
db.rules('reach(x, y) :- edge(x, y).  reach(x, z) :- reach(x, y), edge(y, z).')
len(db['reach'])
done('recursion')
taken = {b[0]: (b[1] - a[1], b[2] - a[2]) for a, b in zip(seen, seen[1:])}
sys.stdout.write('\\n' + json.dumps(taken))
"""


def in_fresh_process(
    code: str, *arguments: str, cache: str | None = None, background: bool = False
) -> tuple[str, float, float]:
    """(stdout, CPU seconds, wall seconds) of `python -c code`.

    `cache` is its kernel cache; `background`: whether another process may compile, which is not counted.
    """
    environment = {**os.environ, **({"LFTJ_CACHE_DIR": cache} if cache else {})}
    environment["LFTJ_BACKGROUND"] = "1" if background else "0"
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        (sys.executable, "-c", code, *arguments), cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def import_cost(repeats: int = 10) -> tuple[float, list[str]]:
    """(CPU seconds of `import lftj`, heavy packages it imported)."""
    empty = min(in_fresh_process("")[1] for _ in range(repeats))
    full = min(in_fresh_process("import lftj")[1] for _ in range(repeats))
    loaded, _, _ = in_fresh_process("import sys, lftj; sys.stdout.write(' '.join(sys.modules))")
    return full - empty, sorted(set(loaded.split()) & set(HEAVY))


def step_costs(cache: str, background: bool = False) -> dict[str, tuple[float, float]]:
    """(CPU seconds, wall seconds) of the README's example, imports included, and of each step after it."""
    out, _, _ = in_fresh_process(STEPS, readme_example(), cache=cache, background=background)
    if background:
        in_fresh_process(OVER, cache=cache, background=True)
    taken: dict[str, tuple[float, float]] = json.loads(out.splitlines()[-1])
    return taken


def readme_example(readme: Path = ROOT / "README.md") -> str:
    """The README's first Python block."""
    block = re.search(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    if block is None:
        raise ValueError(f"{readme} has no Python block")
    return block[1]


def write_tsv(folder: str, name: str, rows: graphs.Rows) -> str:
    """`rows` as a tab-separated file; its path."""
    from pyarrow import csv, table

    path = Path(folder) / name
    options = csv.WriteOptions(include_header=False, delimiter="\t")
    csv.write_csv(table({"u": rows[:, 0], "v": rows[:, 1]}), str(path), options)
    return str(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    with tempfile.TemporaryDirectory(prefix="lftj-start-") as folder:
        cache = str(Path(folder) / "cache")
        import_seconds, heavy = import_cost()
        example = readme_example()
        first_steps = step_costs(cache, background=True)
        steps_alone = step_costs(str(Path(folder) / "alone"))
        _, background_cpu, background_wall = in_fresh_process(UPDATES, cache=str(Path(folder) / "updates"))
        warm_steps = step_costs(cache)
        _, demo_cpu, demo_wall = in_fresh_process(DEMO, cache=str(Path(folder) / "demo"))
        warm = min(in_fresh_process(example, cache=cache)[2] for _ in range(5))
        small = write_tsv(folder, "small.tsv", graphs.load("tiny").rows)
        large = write_tsv(folder, "large.tsv", graphs.load("pl1m").rows)
        rows, load_seconds = in_fresh_process(LOAD, small, large, cache=cache)[0].split()
    figures = {
        "import_cpu_seconds": import_seconds,
        "import_pulls_in": heavy,
        "readme_first_run_seconds": first_steps["example"][1],
        **{f"{step}, first": seconds for step, (seconds, _) in first_steps.items()},
        **{f"{step}, first, wall": seconds for step, (_, seconds) in first_steps.items()},
        **{f"{step}, alone": seconds for step, (seconds, _) in steps_alone.items()},
        **{f"{step}, alone, wall": seconds for step, (_, seconds) in steps_alone.items()},
        "background_cpu_seconds": background_cpu,
        "background_wall_seconds": background_wall,
        **{f"{step}, warm": seconds for step, (seconds, _) in warm_steps.items()},
        "demo_cpu_seconds": demo_cpu,
        "demo_wall_seconds": demo_wall,
        "readme_warm_seconds": warm,
        "tsv_rows": int(rows),
        "tsv_load_cpu_seconds": float(load_seconds),
    }
    for name, value in figures.items():
        sys.stdout.write(f"{name:26} {value}\n")
    results.append(START, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
