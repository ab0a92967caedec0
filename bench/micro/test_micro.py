"""Measures every case of the registry: `make bench-micro` saves the figures and compares them with the last ones.

CPU time of the process. A change of the house shows its price here in a minute; what is published has runners of its
own (`bench.run` and the others).
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.micro.cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=[f"{case.group}: {case.name}" for case in CASES])
def test_micro(case: Case, benchmark: Any) -> None:
    """Time one case."""
    benchmark.group = case.group
    step = case.make()
    step()
    benchmark(step)
