"""What a one-row commit passes through: files entered, changes of file, and Python calls.

    python -m bench.crossings

Counted for five programs, after four commits, the first of which prepare: a triangle, reachability, a count per group,
a rule with negation above another, and a plain table. Counts do not depend on the machine. With `PYTHONPATH` at another
checkout the same file counts there. Each line goes to `bench/results/crossings.jsonl`.
"""

from __future__ import annotations

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
    "count": EDGE + "deg(x, n) :- e(x, _), n = count : { e(x, _) }.",
    "negation": EDGE + "two(x, z) :- e(x, y), e(y, z).  open(x, z) :- two(x, z), !e(x, z).",
}


class Crossed(NamedTuple):
    """Distinct `files` of the project, `changes` from one of them to another, and Python `calls` in them."""

    files: int
    changes: int
    calls: int


class Counter:
    """A profile function that follows which file of the project runs."""

    def __init__(self, root: Path) -> None:
        self.folders = tuple(f"{root / package}/" for package in PACKAGES)
        self.files: set[str] = set()
        self.changes = self.calls = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count a call or a return."""
        if event not in ("call", "return"):
            return
        here: FrameType | None = frame if event == "call" else frame.f_back
        file = "" if here is None else here.f_code.co_filename
        if not file.startswith(self.folders):
            return
        self.calls += event == "call"
        self.files.add(file)
        self.changes += bool(self._last) and file != self._last
        self._last = file

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens inside the block."""
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


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
    return Crossed(len(counter.files), counter.changes, counter.calls)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count all programs; 0."""
    for name, program in PROGRAMS.items():
        found = crossed(program)
        line = {"workload": "crossings", "graph": name, "mode": "commit", "engine": "lftj", "status": "ok"}
        results.append(CROSSINGS, {**line, **found._asdict()})
        sys.stdout.write(f"{name:14} {found.files:3} files {found.changes:5} changes of file {found.calls:6} calls\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
