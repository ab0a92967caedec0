"""Workers that cannot run lftj are refused before any work, in words that name the setting."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_bridge import preflight
from spark_bridge.preflight import Python, here, missing, unsuitable
from tests.conftest import JIT, ROOT

needs_spark = pytest.mark.skipif(bool(missing()) or not JIT, reason=f"Spark tests: {missing() or 'compiled only'}")
OURS = here()
WHY = (
    f"every task runs the engine, so it takes what the driver has: lftj {OURS.lftj} and numba on Python {OURS.version}"
)
DO = (
    "before the session begins, set PYSPARK_PYTHON (or spark.pyspark.python of spark-submit) to a Python of the "
    f"workers that has them, on this machine {sys.executable}; or send one along by spark.archives (--py-files takes "
    "lftj, but not numba)"
)
THEIRS = replace(OURS, place="/usr/bin/python3 on node7")


def told(worker: Python) -> str:
    error = unsuitable(worker)
    assert error is not None
    return str(error)


def test_a_worker_like_the_driver_will_do() -> None:
    assert unsuitable(THEIRS) is None


@pytest.mark.parametrize(
    ("worker", "what"),
    [
        (
            replace(THEIRS, lftj="", lacks="No module named 'lftj'"),
            "the workers' Python cannot import lftj: No module named 'lftj'",
        ),
        (replace(THEIRS, lftj="0.0.1"), f"the workers have lftj 0.0.1, the driver has lftj {OURS.lftj}"),
        (replace(THEIRS, version="3.8"), f"the workers run Python 3.8, the driver runs Python {OURS.version}"),
    ],
)
def test_others_are_refused_with_the_setting(worker: Python, what: str) -> None:
    assert told(worker) == f"/usr/bin/python3 on node7: {what}\n  why: {WHY}\n  do: {DO}"


PLAIN = """
import os, sys
del os.environ["PYTHONPATH"]  # of the workers
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for setting in sys.argv[1:]:
    builder = builder.config(*setting.split("=", 1))
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
from spark_bridge import SetupError, SparkQuery
edges = spark.createDataFrame([(1, 2), (2, 3)], "a bigint, b bigint")
try:
    SparkQuery.create(spark, ".decl e(a:number, b:number)  p(x, z) :- e(x, y), e(y, z).", {"e": edges}, checkpoint="q")
except SetupError as error:
    sys.stdout.write(str(error))
level = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
sys.stdout.write(f"\\n{level}")
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")  # of pandas, py4j and sockets that pyspark leaves open
@needs_spark
@pytest.mark.parametrize("settings", [(), ("spark.python.daemon.module=spark_bridge.daemon",)], ids=["plain", "daemon"])
def test_workers_whose_python_has_no_lftj_are_refused_in_three_lines(tmp_path: Path, settings: tuple[str, ...]) -> None:
    """It was a Java trace of sixty lines that ended in `No module named 'lftj'`."""
    venv.create(tmp_path / "bare", symlinks=True, with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(bare)}
    line = [sys.executable, "-W", "ignore", "-c", PLAIN, *settings]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    *message, level = done.stdout.splitlines()
    assert message[0].startswith(str(bare))
    assert "the workers' Python cannot import lftj: No module named '" in message[0]  # lftj's, or that of the daemon
    assert message[1:] == [f"  why: {WHY}", f"  do: {DO}"]
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    assert (level, " INFO " in done.stderr) == ("INFO", False)  # Spark's own level, and that of its shells
    assert not (tmp_path / "q").exists()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")  # of pandas, py4j and sockets that pyspark leaves open
@needs_spark
def test_a_session_is_asked_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(spark: Any) -> Python:
        asked.append(preflight_ask(spark))
        return asked[-1]

    preflight_ask = preflight.ask_worker
    monkeypatch.setattr(preflight, "ask_worker", ask)
    monkeypatch.setattr(preflight, "_ASKED", set())
    preflight.check(spark)
    preflight.check(spark)
    assert len(asked) == 1
    assert asked[0].place.startswith(sys.executable)
    assert (asked[0].version, asked[0].lftj, asked[0].lacks) == (OURS.version, OURS.lftj, "")
