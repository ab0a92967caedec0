"""What a process does to a database in a file until it is killed.

Each commit inserts row (i, i % 7) into `edge`; once it has returned, i is said. Checkpoints, loads, rules, compaction
and closing come in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from lftj.durable import care
from tests.durable.shop import opened


def write(path: Path, seed: int, say: Callable[[int], object]) -> None:
    """Write for ever."""
    rng = random.Random(seed)
    while True:
        db = opened(path, sync=rng.choice(["full", "normal"]), retain=rng.choice([0, 5, None]))
        i = max(a for a, _ in db["edge"])
        say(i)
        for _ in range(rng.randrange(2, 12)):
            i += 1
            what = rng.random()
            if what < 0.7:
                with db.transaction() as tx:
                    tx.insert("edge", [(i, i % 7)])
                    tx.insert("name", [(i, f"name {i}")])
            elif what < 0.85:
                db.load("edge", [(i, i % 7)])
                db.load("name", [(i, f"name {i}")])
            else:
                with db.transaction() as tx:
                    there = bool(db._state.strata.of("far"))
                    tx.remove_rules("far") if there else tx.rules("far(x, z) :- path(x, z), !edge(x, z).")
                    tx.insert("edge", [(i, i % 7)])
                    tx.insert("name", [(i, f"name {i}")])
            say(i)
            if rng.random() < 0.15:
                db.checkpoint(traces=rng.choice([None, True, False]))
            elif rng.random() < 0.1:
                care.compact(db)
        db.close()
