"""The rivals, one file each, behind `bench.measure.Engine`: DuckDB, Kuzu, and triangle kernels written by hand.

Each runs on one thread, on data it has loaded into its own native form, with the statement its users would write. Not
here: Souffle, datafrog and Differential Dataflow (no Python package; figures measured apart are in the design notes),
Polars (no cyclic join that stays in memory on these graphs).
"""

#: What a rival may use (DuckDB's memory limit, Kuzu's buffer pool): a third of the machine the figures are taken on.
MEMORY_BYTES = 8 << 30
