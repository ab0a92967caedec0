"""What a session needs, before anything runs: Java, an address, retries, warm kernels.

`session()` makes one that has it all; `check()` looks at one made elsewhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

from spark_bridge.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
DAEMON = "spark_bridge.daemon"
_INSTALL = "install Java 17, e.g. `apt-get install openjdk-17-jre-headless`, or set JAVA_HOME"


def java_version() -> int | None:
    """The major version of the Java that Spark would run; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None or not os.path.exists(program):
        return None
    told = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)(?:\.(\d+))?', told)
    if found is None:
        return None
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])


def missing() -> str:
    """What is missing to run Spark, in one line; "" if nothing is."""
    version = java_version()
    if version is None:
        return f"there is no Java: {_INSTALL}"
    if version < JAVA:
        return f"Java {version} is too old for Spark: {_INSTALL}"
    try:
        import pyspark
    except ImportError:
        return "there is no PySpark: pip install 'lftj[spark]'"
    if tuple(map(int, re.findall(r"\d+", pyspark.__version__)[:2])) < (4, 1):
        return f"PySpark {pyspark.__version__} is too old: pip install 'lftj[spark]'"
    return ""


def submitted() -> bool:
    """Whether this process was started by spark-submit."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def session(master: str | None = None, *, name: str = "lftj", **settings: Any) -> SparkSession:
    """A session that partitioned queries run well on. `settings`: of Spark, `__` for a dot in a name.

    `master`: where (default: what spark-submit says, else `local[*,4]`). What `spark-submit --conf` sets stays, unless
    `settings` has it. `SetupError` if something is missing.
    """
    if what := missing():
        what, _, remedy = what.partition(": ")
        raise SetupError(
            what, why=f"sessions are those of PySpark 4.1 or later, on Java {JAVA} or later", remedy=remedy
        )
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if submitted():
        SparkContext._ensure_initialized()  # or the configuration does not have what spark-submit was told
    told = SparkConf()
    if master is None:
        master = told.get("spark.master") or "local[*,4]"
    given = {
        "spark.python.daemon.module": DAEMON,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.limit.initialNumPartitions": "8",  # a small batch is read in one job, not one for its first rows
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        # Workers on this machine are this Python, not whichever `python3` is on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        given |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    given = {key: value for key, value in given.items() if not told.contains(key)}
    given |= {key.replace("__", "."): str(value) for key, value in settings.items()}
    builder = SparkSession.builder.appName(told.get("spark.app.name") or name).master(master)
    for key, value in given.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def check(spark: SparkSession) -> None:
    """Warn of settings under which a lost task fails a batch, or every worker compiles kernels for itself."""
    conf, lines = spark.sparkContext.getConf(), []
    master = str(spark.sparkContext.master)
    if re.fullmatch(r"local(\[[^,\]]+\])?", master):
        lines.append(f"master {master} retries nothing: a lost worker fails the batch; use e.g. local[2,4]")
    elif int(conf.get("spark.task.maxFailures", "4") or 4) < 2:
        lines.append("spark.task.maxFailures is 1: a lost worker fails the batch")
    if conf.get("spark.python.daemon.module", "") != DAEMON:
        lines.append(f"spark.python.daemon.module is not {DAEMON}: every Python worker loads the kernels for itself")
    if lines:
        warnings.warn("; ".join(lines) + " (spark_bridge.session sets all of it)", RuntimeWarning, stacklevel=3)
