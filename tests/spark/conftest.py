"""One Spark session for all tests that need one; a reason where there is none."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_bridge.partition import FAULTS
from spark_bridge.preflight import missing, session
from tests.conftest import ROOT

# Of sessions that last for seconds, most of Java's time went into machine code of the second tier, and into threads.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which tests say where processes of the session are to die."""
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="session")
def spark(faults: Path) -> Iterator[Any]:
    """The session: two cores, four tries."""
    if what := missing():
        pytest.skip(f"Spark tests: {what}")
    before = os.environ.copy()
    os.environ |= {FAULTS: str(faults), "PYTHONPATH": str(ROOT), "LFTJ_QUIET": "1"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = session("local[2,4]", spark__driver__memory="768m", spark__sql__shuffle__partitions=2)
        made.sparkContext.setLogLevel("OFF")
        yield made
        made.stop()
    os.environ.clear()
    os.environ |= before
