"""`lftj bench`: hand over to the benchmark of the checkout that this lftj runs from.

For somebody who tries a command it must not change files that are tracked: it records nothing without `--record`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lftj.cli.outcome import UsageError

ROOT = Path(__file__).resolve().parent.parent.parent


def run_bench(arguments: Sequence[str]) -> int:
    """Run `python -m bench.run --no-record` with `arguments`, in the current folder; its exit code is ours."""
    if not (ROOT / "bench" / "run.py").is_file():
        raise UsageError(
            "the benchmark is not part of the installed package",
            why="it needs the data sets and the rivals that only a checkout has",
            remedy="run `lftj bench` or `make bench` in a checkout of the project",
        )
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "bench.run", "--no-record", *arguments]
    child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the terminal interrupts the child as well, and it has measurements to keep
            continue
