"""Databases of DuckDB for tests: empty ones, all attached to one, as opening another takes 30 ms."""

from __future__ import annotations

from collections import deque
from functools import cache
from itertools import count
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb")

# So many are kept: no test uses more at a time.
KEPT = 16
_numbers = count()
_attached: deque[str] = deque()


@cache
def _first() -> Any:
    # Tables are tiny, so that threads only cost.
    return duckdb.connect(config={"threads": 1})


def duckdb_database() -> Any:
    """A connection to an empty database in memory."""
    while len(_attached) >= KEPT:
        _first().execute(f"detach {_attached.popleft()}")
    name = f"d{next(_numbers)}"
    connection = _first().cursor()
    # Optimising takes two fifths of the time of such queries.
    connection.execute(f"attach ':memory:' as {name}; use {name}; pragma disable_optimizer")
    _attached.append(name)
    return connection
