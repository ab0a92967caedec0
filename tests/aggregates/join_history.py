"""A random history of two relations that are joined: r(g, v, n), with a count from -1 on, and s(g, h)."""

from __future__ import annotations

from random import Random

import lftj

Rows = set[tuple[int, ...]]


def change(db: lftj.Database, rng: Random, r: Rows, s: Rows) -> dict[int, list[tuple[int, int]]]:
    """Commit a random change of both, also in `r` and `s`; the pairs (v, n) of each h afterwards."""
    with db.transaction() as tx:
        for name, facts, width in (("r", r, 3), ("s", s, 2)):
            for _ in range(rng.choice((1, 4, 9))):
                row = (rng.randrange(3), rng.randrange(-3, 4), rng.randrange(-1, 4))[:width]
                (tx.erase if row in facts else tx.insert)(name, [row])
                facts ^= {row}
    joined: dict[int, list[tuple[int, int]]] = {}
    for g, v, n in r:
        for other, h in s:
            if g == other:
                joined.setdefault(h, []).append((v, n))
    return joined
