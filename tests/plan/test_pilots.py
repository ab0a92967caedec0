"""Pilot runs: what is said of an order by walks that were cut short."""

from __future__ import annotations

import numpy as np
import pytest

import lftj

SHOP = """
.decl orders(id:number, cust:number) primary-key (id)
.decl item(o:number, p:number)
.decl prod(id:number, cat:number) primary-key (id)
"""


@pytest.mark.jit_only
@pytest.mark.parametrize("n", [60_000, 120_000])
def test_a_pilot_that_is_cut_short_says_no_more_than_that(n: int) -> None:
    """Few categories first, and each walks all orders: 38 million steps, which were taken for 2.7 million."""
    rng = np.random.default_rng(1)

    def skewed(size: int, most: int, a: float) -> np.ndarray:
        return np.minimum(rng.zipf(a, size), most) - 1

    customers, products, items = n // 6, n // 60, 3 * n
    by = (skewed(n, customers, 1.1) + rng.integers(0, customers, n) * (rng.random(n) < 0.5)) % customers
    orders = np.stack([np.arange(n), by], 1)
    prod = np.stack([np.arange(products), skewed(products, 40, 1.2)], 1)
    which = (skewed(items, products, 1.15) + rng.integers(0, products, items) * (rng.random(items) < 0.6)) % products
    item = np.unique(np.stack([rng.integers(0, n, items), which.astype(np.int64)], 1), axis=0)

    def steps(**options: object) -> int:
        db = lftj.Database(SHOP)
        db.rules("buys(cu, c) :- orders(o, cu), item(o, p), prod(p, c).", **options)  # type: ignore[arg-type]
        for name, rows in (("orders", orders), ("item", item), ("prod", prod)):
            db.load(name, rows)
        list(db["buys"])
        (done,) = db._state.evaluations.values()
        assert done.counters is not None
        return done.counters.steps

    assert steps() <= 2 * steps(key_orders={"buys": ("o", "cu", "p", "c")})
