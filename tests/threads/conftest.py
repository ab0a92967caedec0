"""Everything is cut and shared among threads, however small it is."""

from __future__ import annotations

import pytest

from lftj.maintain import clause_delta
from lftj.plan import cuts
from scantree import parts


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Least sizes that everything has."""
    monkeypatch.setattr(cuts, "LEAST_STEPS", 0.0)
    monkeypatch.setattr(clause_delta, "LEAST_SHARED", 0)
    monkeypatch.setattr(parts, "LEAST", 1)
