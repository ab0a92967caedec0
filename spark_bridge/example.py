"""A stream that keeps triangles up to date: `python -m spark_bridge.example`.

Private messages of a student network (CollegeMsg, shipped with lftj) arrive as Parquet files in a folder, one per
stretch of time; each file also takes back the contacts of the stretch three before it. Structured Streaming applies
them as they come, and the exact change of the triangles is printed after each.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from spark_bridge.preflight import session
from spark_bridge.spark_query import SparkQuery

PROGRAM = """
.decl contact(a:number, b:number)
triangle(x, y, z) :- contact(x, y), contact(y, z), contact(x, z).
partners[x] = count : { contact(x, _) }.
"""
DATA = Path(__file__).resolve().parent.parent / "lftj" / "demo" / "data" / "CollegeMsg.tsv.zst"
STRETCH, KEPT = 10_000, 3


def stretches() -> list[np.ndarray]:
    """The contacts u < v of each stretch of messages: int64[n, 2], each once."""
    options = pyarrow.csv.ParseOptions(delimiter="\t")
    names = pyarrow.csv.ReadOptions(column_names=["u", "v", "t"])
    with pa.input_stream(str(DATA), compression="zstd") as file:
        table = pyarrow.csv.read_csv(file, names, options)
    pairs = np.sort(np.stack([table["u"].to_numpy(), table["v"].to_numpy()], axis=1), axis=1)
    return [np.unique(pairs[lo : lo + STRETCH], axis=0) for lo in range(0, len(pairs), STRETCH)]


def changes(past: list[np.ndarray], now: np.ndarray) -> pa.Table:
    """The contacts of a stretch, and those that only the one which leaves had. `past`: those before, oldest first."""
    gone = np.empty((0, 2), np.int64)
    if len(past) >= KEPT:
        rest = {tuple(row) for part in [*past[-KEPT + 1 :], now] for row in part.tolist()}
        gone = np.array([row for row in past[-KEPT].tolist() if tuple(row) not in rest], np.int64).reshape(-1, 2)
    rows = np.concatenate([gone, now])
    ops = np.repeat(np.array([-1, 1], np.int32), [len(gone), len(now)])
    return pa.table({"a": rows[:, 0], "b": rows[:, 1], "_op": ops})


def main() -> None:
    """Run it."""
    folder = Path(tempfile.mkdtemp(prefix="lftj-spark-"))
    arriving = folder / "arriving"
    arriving.mkdir()
    spark = session("local[2,4]", spark__driver__memory="1g")
    spark.sparkContext.setLogLevel("ERROR")
    parts = stretches()
    first = spark.createDataFrame(changes([], parts[0]).select(["a", "b"]))
    with SparkQuery.create(spark, PROGRAM, {"contact": first}, checkpoint=folder / "query", partitions=2) as query:
        sys.stdout.write(f"at first: {query.result('triangle').count()} triangles\n")
        source = spark.readStream.schema("a bigint, b bigint, _op int").parquet(str(arriving))
        stream = (
            source.writeStream.foreachBatch(query.foreach_batch("contact"))
            .option("checkpointLocation", str(folder / "stream"))
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        for i in range(1, len(parts)):
            before = query.version
            draft = folder / "next.parquet"
            pyarrow.parquet.write_table(changes(parts[:i], parts[i]), draft)
            draft.rename(arriving / f"{i:03}.parquet")
            stream.processAllAvailable()
            by_op = {
                row["_op"]: row["count"] for row in query.delta("triangle", before).groupBy("_op").count().collect()
            }
            line = (
                f"file {i}: +{by_op.get(1, 0)} -{by_op.get(-1, 0)} triangles, {query.result('triangle').count()} now\n"
            )
            sys.stdout.write(line)
            sys.stdout.flush()
        stream.stop()
    spark.stop()


if __name__ == "__main__":
    main()
