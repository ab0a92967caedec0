"""What a one-row commit passes through: files entered, changes of file, and Python calls.

    python -m bench.crossings
    python -m bench.crossings --calls triangle

Counted for seven programs, after four commits, the first of which prepare: a plain table, a triangle, reachability, a
count per group, two aggregates, a sum over a join, and a rule with negation above another. A call of a kernel is one,
too. Counts do not depend on the machine (from Python 3.12 on comprehensions are no calls). With `PYTHONPATH` at another
checkout the same file counts there. Each line goes to `bench/results/crossings.jsonl`. With `--calls` the calls of one
program are printed in order, indented by who calls them, and nothing is kept.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from bench import results

CROSSINGS = results.RESULTS / "crossings.jsonl"
PACKAGES = ("lftj", "scantree", "sensitivity")
EDGE = ".decl e(x:number, y:number)  "
PROGRAMS = {
    "table": EDGE,
    "triangle": EDGE + "tri(x, y, z) :- e(x, y), e(y, z), e(x, z).",
    "reachability": EDGE + "from(1).  from(y) :- from(x), e(x, y).",
    "aggregates": EDGE + "a[x] = count : { e(x, _) }.  b[y] = sum x : { e(x, y) }.",
    "sum of a join": EDGE + "s[x] = sum z : { e(x, y), e(y, z) }.",
    "count": EDGE + "deg(x, n) :- e(x, _), n = count : { e(x, _) }.",
    "negation": EDGE + "two(x, z) :- e(x, y), e(y, z).  open(x, z) :- two(x, z), !e(x, z).",
}


class Crossed(NamedTuple):
    """Distinct `files` of the project, `changes` from one of them to another, and Python `calls` in them.

    `path`: the calls in order, as (how many of the project's are open, file, function).
    """

    files: int
    changes: int
    calls: int
    path: list[tuple[int, str, str]]


class Counter:
    """A profile function that follows which file of the project runs."""

    def __init__(self, root: Path) -> None:
        self.root = f"{root}/"
        self.folders = tuple(f"{root / package}/" for package in PACKAGES)
        self.changes = 0
        self.path: list[tuple[int, str, str]] = []
        self._last, self._open = "", 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count a call or a return."""
        if event not in ("call", "return"):
            return
        own = frame.f_code.co_filename.startswith(self.folders)
        self._open -= own and event == "return"
        here: FrameType | None = frame if event == "call" else frame.f_back
        file = "" if here is None else here.f_code.co_filename
        if not file.startswith(self.folders):
            return
        if event == "call":
            self.path.append((self._open, file.removeprefix(self.root), frame.f_code.co_qualname))
            self._open += 1
        self.changes += bool(self._last) and file != self._last
        self._last = file

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens inside the block, and not what the garbage collector finds meanwhile."""
        gc.collect()
        gc.disable()
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            gc.enable()


def crossed(program: str) -> Crossed:
    """What the fifth commit of one row passes through."""
    import lftj

    db = lftj.Database(program)
    db.load("e", [(i, (i * 7 + k) % 50) for i in range(50) for k in range(1, 4)])
    db.evaluate()
    counter = Counter(Path(lftj.__file__).parent.parent)
    for row in ((100, 1), (101, 2), (103, 4), (104, 5)):
        with db.transaction() as tx:
            tx.insert("e", [row])
    with counter.counting(), db.transaction() as tx:
        tx.insert("e", [(102, 3)])
    return Crossed(len({file for _, file, _ in counter.path}), counter.changes, len(counter.path), counter.path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count all programs, or print the calls of one; 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", choices=PROGRAMS, help="print the calls of this program's commit, in order")
    asked = parser.parse_args(arguments).calls
    if asked is not None:
        for depth, file, function in crossed(PROGRAMS[asked]).path:
            sys.stdout.write(f"{'  ' * depth}{file}: {function}\n")
        return 0
    for name, program in PROGRAMS.items():
        found = crossed(program)
        line = {"workload": "crossings", "graph": name, "mode": "commit", "engine": "lftj", "status": "ok"}
        counts = {"files": found.files, "changes": found.changes, "calls": found.calls}
        results.append(CROSSINGS, {**line, **counts})
        sys.stdout.write(f"{name:14} {found.files:3} files {found.changes:5} changes of file {found.calls:6} calls\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
