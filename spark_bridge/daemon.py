"""The daemon that Spark forks its Python workers from, with lftj's kernels at hand: `spark.python.daemon.module`.

Compiling takes a minute or two, once per node; loading what was compiled takes most of a second, per process. Both are
done here, before the first fork, so that no worker does either, and no two compile the same. The nursery is forked here
as well: the holders of partitions come from it (`holder.py`).
"""

from __future__ import annotations

import os

# Threads do not survive a fork; a worker takes one core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("LFTJ_QUIET", "1")
os.environ.setdefault("LFTJ_BACKGROUND", "0")

if __name__ == "__main__":
    from pyspark.daemon import manager

    from spark_bridge import nursery

    nursery.warm(everything=True)
    nursery.fork_here()
    manager()
