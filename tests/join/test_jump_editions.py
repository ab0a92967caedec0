"""A jump table of a version that was amended since is made anew, and one of sparse keys where they are sought often.

Catches: a table that was made before, by which a walk of a later round went to other rows, or never came to an end; a
table that takes more memory than its relation and all that is sought in it.
"""

from __future__ import annotations

import numpy as np
import pytest

from lftj.join import first_key_index
from lftj.join.first_key_index import jump_table
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


def test_sparse_keys_have_a_table_where_they_are_sought_often(monkeypatch: pytest.MonkeyPatch) -> None:
    store, n = Store(Arena(8 << 20), 2), 100
    sparse = store.build([np.arange(n) * 10, np.arange(n)])
    assert jump_table(sparse) is None
    assert jump_table(sparse, 1_000) is None  # it takes 2,000 words
    table = jump_table(sparse, 2_000)
    assert table is not None
    assert jump_table(sparse) is table
    sparser = store.build([np.arange(n) * 100, np.arange(n)])
    assert jump_table(sparser, 1e9) is None
    monkeypatch.setattr(first_key_index, "MOST", 1_000)
    assert jump_table(store.build([np.arange(n) * 10, np.arange(n)]), 1e9) is None
