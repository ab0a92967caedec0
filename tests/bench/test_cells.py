"""The cells of `bench.pairs`: enough of them, and every strategy of one gets the same transactions."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from bench import cells
from bench.cells import CHOICE, FORCED, GROUNDS, LOADED, SHAPES, Ground, Stream


def test_there_are_enough_cells_of_every_kind() -> None:
    found = {(ground.shape, ground.size, ground.hubs, size) for ground in GROUNDS for size in ground.changes}
    assert len(found) >= 60
    for at, values in ((0, set(SHAPES)), (1, {10**3, 10**4, 10**5, 10**6}), (2, {False, True})):
        assert {cell[at] for cell in found} == values
    assert {LOADED, 1, 100, 10_000} == {cell[3] for cell in found}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_erases_what_is_there_and_inserts_what_is_not(shape: str) -> None:
    ground = Ground(shape, 200, True, ())
    relations = cells.relations_of(ground)
    rows = set(map(tuple, relations[SHAPES[shape].changed].tolist()))
    stream: Stream = cells.stream_of(ground, relations)
    for size in (1, 1, 2, 1):
        batch = stream.batch(size)
        if batch is None:
            assert len(rows) < 200
            break
        gone, come = (set(map(tuple, part.tolist())) for part in batch)
        assert gone <= rows
        assert rows.isdisjoint(come)
        assert len(gone) + len(come) == size
        rows = (rows - gone) | come
    assert stream.batch(10_000) is None


@pytest.mark.jit_only
@pytest.mark.parametrize(("worst", "times"), [(1e9, 1), (0.0, 3)])
def test_all_strategies_of_a_cell_get_every_transaction(
    monkeypatch: pytest.MonkeyPatch, worst: float, times: int
) -> None:
    """Where the choice seems too dear, more of them."""
    monkeypatch.setattr(cells, "SMALL", {LOADED: 2, 1: 3, 4: 2})
    monkeypatch.setattr(cells, "WORST_RATIO", worst)
    monkeypatch.setattr(cells, "LONGER", 3)
    found: Any = cells.measured(Ground("texts made", 200, False, (LOADED, 1, 4)))
    assert found["status"] == "ok"
    assert [(cell["changes"], {how: len(ms) for how, ms in cell["ms"].items()}) for cell in found["cells"]] == [
        (size, dict.fromkeys((CHOICE, "trace", "recompute"), times * count))
        for size, count in ((LOADED, 2), (1, 3), (4, 2))
    ]
    for cell in found["cells"]:
        medians = {how: statistics.median(ms) for how, ms in cell["ms"].items()}
        assert cells.ratio(cell) == medians[CHOICE] / min(medians["trace"], medians["recompute"])


def test_every_strategy_that_is_measured_can_be_asked_for() -> None:
    assert all(set(shape.forced) <= set(FORCED) for shape in SHAPES.values())
