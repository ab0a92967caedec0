"""What tests of recursion share."""

from __future__ import annotations

import pytest

from lftj.recursion import closure


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closures are run as they are written: the test is of the joins that left-linear and nonlinear rules have."""
    monkeypatch.setattr(closure, "right_linear", lambda clauses: None)
