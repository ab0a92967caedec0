"""The daemon that Spark forks its Python workers from, with lftj's kernels at hand: `spark.python.daemon.module`.

Compiling takes some ten seconds, once per node; loading what was compiled takes most of a second, per process. Both are
done here, before the first fork, so that no worker does either, and no two compile the same.
"""

from __future__ import annotations

import gc
import os

# Threads do not survive a fork; a worker takes one core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("LFTJ_QUIET", "1")

if __name__ == "__main__":
    from pyspark.daemon import manager

    import lftj

    lftj.Database().prepare()
    # A worker collects garbage after every task, which with all that numba holds takes it a tenth of a second. What is
    # here before the fork stays for good; frozen it is not looked through, and its pages stay shared.
    gc.collect()
    gc.freeze()
    manager()
