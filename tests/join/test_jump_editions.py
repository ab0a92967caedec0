"""A jump table of a version that was amended since is made anew.

Catches: a table that was made before, by which a walk of a later round went to other rows, or never came to an end.
"""

from __future__ import annotations

import numpy as np

from lftj.join.jumps import jump_table
from scantree.memory import Arena
from scantree.version import Store


def test_an_amended_version_has_another_table() -> None:
    arena = Arena(1 << 20)
    rows = np.array([np.repeat(np.arange(0, 200, 2), 6), np.tile(np.arange(6), 100)])
    version = Store(arena, 2).build(list(rows))
    before = jump_table(version)
    assert before is not None
    assert jump_table(version) is before
    fresh = np.array([[0, 60, 140], [-1, -1, -1]])
    amended, _ = version.update(fresh, np.ones(3, np.int8), use_up=True)
    assert amended is version
    table = jump_table(version)
    assert table is not None
    assert table is not before
    mem = arena.space.mem
    first = {key: mem[mem[table.page + 2 * (key - table.low)]] for key in range(table.low, table.high + 1)}
    keys = amended.columns()[0]
    assert first == {key: keys[np.searchsorted(keys, key)] for key in first}
