"""lftj over the partitions of a Spark cluster.

The first variable of a rule's key order is partitioned over executors: atoms that hold it are partitioned by it, the
others are replicated. Every partition runs the engine of `lftj` on its share, keeps its own state, and turns a batch
of changes into an exact output delta. What lives here is partitioning, partition state and the Spark job; no join code.

Imports point one way: this package uses `lftj` and the packages below it, and nothing uses this one. Install with
`pip install 'lftj[spark]'`.
"""
