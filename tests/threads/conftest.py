"""Everything is cut and shared among threads, however small it is."""

from __future__ import annotations

import pytest

from lftj.engine import clausedelta
from lftj.join import ranges
from scantree import parts


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Least sizes that everything has."""
    monkeypatch.setattr(ranges, "LEAST_STEPS", 0.0)
    monkeypatch.setattr(clausedelta, "LEAST_SHARED", 0)
    monkeypatch.setattr(parts, "LEAST", 1)
