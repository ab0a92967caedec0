"""The benchmark of memory over a day, on few events: its recomputation sees what is wrong, and what it tells is so."""

from __future__ import annotations

import numpy as np
import pytest

from bench import streams_memory as bench
from lftj.streams.zsets import ZSet


def test_a_day_of_few_events() -> None:
    forgets = bench.stepped("hopping hour", 1_500, forget=True)
    keeps = bench.stepped("hopping hour", 1_500, forget=False)
    assert forgets["digests"] == keeps["digests"]
    assert forgets["last_bytes"] * 3 < keeps["last_bytes"]
    assert "first tenth" in bench.note(forgets)


def test_the_recomputation_sees_a_wrong_count() -> None:
    rows = bench.bids(50, seed=1)
    counts = {}
    for auction, _, price, time in rows.T.tolist():
        for j in range(12):
            start = time // (bench.HOUR // 12) * (bench.HOUR // 12) - j * (bench.HOUR // 12)
            n, high = counts.get((auction, start), (0, 0))
            counts[auction, start] = n + 1, max(high, price)
    made = np.array([(*key, *value) for key, value in sorted(counts.items())]).T.copy()
    bench.same(ZSet.of_rows(made).normal(), rows)
    made[2, 7] += 1
    with pytest.raises(AssertionError, match="are not those of all bids"):
        bench.same(ZSet.of_rows(made).normal(), rows)
