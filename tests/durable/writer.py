"""A process that writes to a database in a file until it is killed: `python -m tests.durable.writer PATH SEED`.

Each commit inserts row (i, i % 7) into `edge`; once it has returned, i is printed. Checkpoints, loads, rules and
compaction come in between.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from tests.durable.shop import opened


def run(path: Path, seed: int) -> None:
    """Write for ever."""
    rng = random.Random(seed)
    db = opened(path, sync=rng.choice(["full", "normal"]), retain=rng.choice([0, 5, None]))
    i = max((a for a, _ in db["edge"]), default=0)
    print("open", flush=True)
    while True:
        i += 1
        what = rng.random()
        if what < 0.8:
            with db.transaction() as tx:
                tx.insert("edge", [(i, i % 7)])
                tx.insert("name", [(i, f"name {i}")])
        elif what < 0.9:
            db.load("edge", [(i, i % 7)])
            db.load("name", [(i, f"name {i}")])
        else:
            with db.transaction() as tx:
                there = bool(db._state.strata.of("far"))
                tx.remove_rules("far") if there else tx.rules("far(x, z) :- path(x, z), !edge(x, z).")
                tx.insert("edge", [(i, i % 7)])
                tx.insert("name", [(i, f"name {i}")])
        print(i, flush=True)
        if rng.random() < 0.2:
            db.checkpoint()
        if rng.random() < 0.05:
            db.close()
            db = opened(path)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
