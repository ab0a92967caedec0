"""Packed arguments: a kernel reads and writes the arrays that were packed, whatever their element and shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scantree._jit import kernel
from scantree.packed import PackedArguments, counts_at, table_at, words_at


@kernel
def _turned(packed: Any, out: Any) -> None:
    """Sums of a line, a table's rows weighed by counts; what is read last is written to."""
    line, table, counts = words_at(packed, 0), table_at(packed, 1), counts_at(packed, 2)
    out[0], out[1], out[2] = len(line), table.shape[0], table.shape[1]
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            out[3] += table[i, j] * counts[i] * line[j]
    for i in range(len(counts)):
        counts[i] += 1


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (4, 1)])
def test_a_kernel_finds_what_was_packed(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    line, table = rng.integers(0, 99, shape[1]), rng.integers(0, 99, shape)
    counts = rng.integers(0, 99, shape[0]).astype(np.int32)
    packed, out, before = PackedArguments(line, table, counts), np.zeros(4, np.int64), counts.copy()
    _turned(packed.words, out)
    assert out.tolist() == [shape[1], *shape, int((table * before[:, None] * line).sum())]
    assert counts.tolist() == (before + 1).tolist()


def test_what_is_packed_stays_alive_with_it() -> None:
    packed = PackedArguments(np.arange(1 << 16), np.ones((1, 1), np.int64), np.ones(1, np.int32))
    noise = [np.full(1 << 16, -1) for _ in range(8)]
    out = np.zeros(4, np.int64)
    _turned(packed.words, out)
    assert out[0] == 1 << 16
    assert len(noise) == 8


def test_what_has_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="number 1 is not"):
        PackedArguments(np.arange(4), np.arange(8)[::2])
