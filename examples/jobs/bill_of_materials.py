"""A bill of materials: what every part costs with all that goes into it, and what a new price changes.

    python examples/jobs/bill_of_materials.py [number of parts]

Each part has a cost of its own, an exact decimal: the price of a bought part, or the work on an assembly. A part is
used in one to three assemblies of the next stage; the product is the last of nine stages. A commit reports each part
whose cost differs. Prints:

    20,000 parts, 25,147 uses; 19 products
    part 19999 at 99.99: 21 costs differ
    part 10000 at 99.99: 10 costs differ
    part 1 at 99.99: 1 costs differ
"""

import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa

import lftj

RULES = """
    .decl own(part:number) -> cost:decimal(10,2)
    .decl uses(part:number, piece:number, times:number)

    // The own cost, and the costs of all pieces.
    total[p]    = own[p] + sum n * total[s] : { uses(p, s, n) }.

    product(p)  :- own(p, _), !uses(_, p, _).
    quote(p, c) :- product(p), total[p] = c.
"""
STAGES, USED_IN = 9, (0.78, 0.18, 0.04)


def make(parts, seed=1):
    """The tables `own` and `uses` of a bill of so many parts, which are numbered from the products on."""
    rng = np.random.default_rng(seed)
    sizes = 2.2 ** np.arange(STAGES)
    ends = np.maximum(np.cumsum(sizes) / sizes.sum() * parts, np.arange(1, STAGES + 1)).astype(np.int64)
    part, stage = np.arange(parts), np.searchsorted(ends, np.arange(parts), side="right")
    piece = np.repeat(part, np.where(stage == 0, 0, rng.choice([1, 2, 3], parts, p=USED_IN)))
    begin = np.concatenate([[0], ends])[stage[piece] - 1]
    into = begin + (rng.random(len(piece)) * (ends[stage[piece] - 1] - begin)).astype(np.int64)
    cents = rng.integers(1, 5_000, parts).tolist()
    _, first = np.unique(np.stack([into, piece]), axis=1, return_index=True)
    return {
        "own": {"part": part, "cost": pa.array([Decimal(c) / 100 for c in cents], pa.decimal128(10, 2))},
        "uses": {"part": into[first], "piece": piece[first], "times": rng.integers(1, 5, len(first))},
    }


def load(tables):
    """The database."""
    db = lftj.Database(RULES)
    for name, columns in tables.items():
        db.load(name, columns)
    return db


def reprice(db, part, cost):
    """Set the own cost of a part; the parts with another cost in all, as (part, cost)."""
    with db.transaction() as tx:
        tx.upsert("own", [(part, cost)])
    return tx.delta["total"].inserted


def main(parts=20_000):
    """A bill, and a few new prices."""
    tables = make(parts)
    db = load(tables)
    print(f"{parts:,} parts, {len(tables['uses']['part']):,} uses; {len(db['quote'])} products")
    for part in (parts - 1, parts // 2, 1):
        changed = reprice(db, part, Decimal("99.99"))
        print(f"part {part} at 99.99: {len(changed)} costs differ")
    return db


if __name__ == "__main__":
    db = main(*map(int, sys.argv[1:]))
