"""What a session needs, before anything runs: Java, an address, retries, workers with lftj, warm kernels.

`session()` makes one that has it all; `check()` looks at one made elsewhere. What Python the workers run only they
know, so the first `check()` of a session asks one of them, by a job of one task.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_bridge.bridge_errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
DAEMON = "spark_bridge.daemon"
_ASKED: set[str] = set()  # the sessions, by the ids of their applications, one of whose workers has what it takes
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
        # Through TCP each task waits 40 ms for a delayed acknowledgement: a job of two took 66 ms, and takes 21 so.
        "spark.python.unix.domain.socket.enabled": "true",
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
    """Refuse workers that cannot run lftj (`SetupError`), warn of settings that make failures likely or tasks slow.

    That is: a lost task fails a batch, or every worker compiles kernels for itself.
    """
    application = str(spark.sparkContext.applicationId)
    if application not in _ASKED:
        if wrong := unsuitable(ask_worker(spark)):
            raise wrong
        _ASKED.add(application)
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


# --- the workers' Python ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Python:
    """The Python of a process: where it is, its version and lftj's; `lacks`: why lftj cannot be imported, "" if it can.

    lftj's version is "" if it is not known.
    """

    place: str
    version: str
    lftj: str
    lacks: str = ""


def here() -> Python:
    """The driver's Python."""
    from lftj import __version__

    return Python(sys.executable, "{}.{}".format(*sys.version_info), __version__)


def ask_worker(spark: SparkSession) -> Python:
    """The Python of a worker, as it says itself, or as Spark says why there is none."""

    # Within this function, so that the function itself travels and not the name of a module that a worker may lack.
    def look(rows: Iterator[int]) -> Iterator[tuple[str, str, str, str]]:
        import platform
        import sys
        from importlib import import_module

        place, version = f"{sys.executable} on {platform.node()}", "{}.{}".format(*sys.version_info)
        try:
            for name in ("lftj", "spark_bridge", "numpy", "numba", "pyarrow"):
                import_module(name)
        except Exception as error:  # of a library that is there and does not load, too
            yield place, version, "", str(error) or type(error).__name__
        else:
            yield place, version, sys.modules["lftj"].__version__, ""

    context: Any = spark.sparkContext
    try:
        with _silent(context):
            return Python(*context.parallelize([0], 1).mapPartitions(look).collect()[0])
    except Exception as error:
        told = str(error)
        # A worker of another version, or a daemon that is not there, fails before it comes to the task.
        other = re.search(r"different version:? \(?(\d+)(?:\.|, )(\d+)", told)
        if other is not None:
            return Python(context.pythonExec, f"{other[1]}.{other[2]}", "")
        absent = re.search(r"No module named '?([\w.]+)", told)
        if absent is None:
            raise
        return Python(context.pythonExec, "", "", f"No module named '{absent[1]}'")


def unsuitable(worker: Python) -> SetupError | None:
    """The error of a worker that cannot run what this driver sends it; None if it can."""
    ours = here()
    if worker.version not in ("", ours.version):
        what = f"the workers run Python {worker.version}, the driver runs Python {ours.version}"
    elif worker.lacks:
        what = f"the workers' Python cannot import lftj: {worker.lacks}"
    elif worker.lftj != ours.lftj:
        what = f"the workers have lftj {worker.lftj}, the driver has lftj {ours.lftj}"
    else:
        return None
    return SetupError(
        what,
        where=worker.place,
        why="every task runs the engine, so it takes what the driver has: "
        f"lftj {ours.lftj} and numba on Python {ours.version}",
        remedy="before the session begins, set PYSPARK_PYTHON (or spark.pyspark.python of spark-submit) to a Python of "
        f"the workers that has them, on this machine {ours.place}; or send one along by spark.archives "
        "(--py-files takes lftj, but not numba)",
    )


@contextmanager
def _silent(context: Any) -> Iterator[None]:
    """Spark logs nothing inside the block: what a lost worker writes is told in a line instead."""
    # Not by `setLogLevel`: that would also end the higher level that Spark keeps for shells, and its logs would begin.
    log4j = context._jvm.org.apache.logging.log4j
    level = log4j.LogManager.getRootLogger().getLevel()
    log4j.core.config.Configurator.setRootLevel(log4j.Level.OFF)
    try:
        yield
    finally:
        log4j.core.config.Configurator.setRootLevel(level)
