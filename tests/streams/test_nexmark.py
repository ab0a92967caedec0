"""Nexmark: every query's circuit against DuckDB over all events so far, after every few batches.

Catches: operators that are wrong together though each is right alone (narrowed columns, shared integrals, texts that a
function makes), on events that come in order and a little out of it.
"""

from __future__ import annotations

import pytest

from bench.nexmark import Events
from bench.nexmark_queries import QUERIES, side_table
from bench.rivals.duckdb_streams import Recompute

pytestmark = pytest.mark.jit_only

BATCHES = (700, 50, 1, 1_249, 2_000)
CHECKED = (0, 2, 4)


@pytest.mark.parametrize("disorder", [0, 4_000])
@pytest.mark.parametrize("name", QUERIES)
def test_the_circuit_says_what_duckdb_says(name, disorder):
    query, events, rival, deltas, first = QUERIES[name], Events(3, rate=100, disorder=disorder), Recompute(), [], 0
    circuit = query.make()
    side = {"side": side_table()} if "side" in query.reads else {}
    for i, count in enumerate(BATCHES):
        batches = events.batch(first, count)
        if name == "q12":
            batches["bid"] = arrived(batches["bid"], i * 7)
        first += count
        given = {stream: batch for stream, batch in batches.items() if stream in query.reads}
        deltas.append(circuit.step({**given, **side})["out"].arrow())
        rival.add({**batches, **side})
        side = {}
        if i in CHECKED:
            assert rival.disagreement(query.sql, deltas) == []
    assert sum(delta.num_rows for delta in deltas) > 0


def arrived(batch, step):
    """Bids with the number of the step at which they come."""
    import pyarrow as pa

    return batch.append_column("arrived", pa.array([step] * batch.num_rows, pa.int64()))
