"""Parquet and Arrow IPC files: typed columns, read and written batch by batch; only the picked columns are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from lftj.io.content import CHUNK_ROWS, Content
from lftj.io.file import File
from lftj.io.read_options import ReadOptions
from lftj.io.staging import Staging
from lftj.io.typed import read_batches
from lftj.values.gate import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
_FILE_MAGIC = b"ARROW1"


def read_parquet(file: File, staging: Staging, options: ReadOptions) -> None:
    """Read one Parquet file."""
    import pyarrow.parquet as parquet

    with file.reading(), file.open() as stream, parquet.ParquetFile(stream, page_checksum_verification=True) as opened:
        schema = opened.schema_arrow
        positions = staging.pick(options.columns, schema.names, len(schema.names), file.name)
        wanted: list[str] | None = list(dict.fromkeys(schema.names[position] for position in positions))
        if len(set(schema.names)) < len(schema.names) or not wanted:
            wanted = None  # Parquet picks by name: where two columns share one, read all
        batches = opened.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False)
        read_batches(schema, batches, staging, positions, file.name)


def read_arrow(file: File, staging: Staging, options: ReadOptions) -> None:
    """Read one Arrow IPC file, of the file or the stream format."""
    import pyarrow.ipc as ipc

    with file.reading():
        with file.open() as head:
            is_file = head.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        with file.open() as stream, (ipc.open_file if is_file else ipc.open_stream)(stream) as opened:
            positions = staging.pick(options.columns, opened.schema.names, len(opened.schema.names), file.name)
            batches = (opened.get_batch(i) for i in range(opened.num_record_batches)) if is_file else opened
            read_batches(opened.schema, batches, staging, positions, file.name)


def write_parquet(content: Content, sink: IO[bytes]) -> None:
    """Write one Parquet file."""
    import pyarrow.parquet as parquet

    with parquet.ParquetWriter(sink, _table(content, 0, 0).schema, write_page_checksum=True) as writer:
        for table in _batches(content):
            writer.write_table(table)


def write_arrow(content: Content, sink: IO[bytes]) -> None:
    """Write one Arrow IPC file, of the file format."""
    import pyarrow.ipc as ipc

    with ipc.new_file(sink, _table(content, 0, 0).schema) as writer:
        for table in _batches(content):
            writer.write_table(table)


def _batches(content: Content) -> Iterator[pa.Table]:
    step = CHUNK_ROWS * 16
    return (_table(content, lo, lo + step) for lo in range(0, content.rows, step))


def _table(content: Content, lo: int, hi: int) -> pa.Table:
    return to_arrow(content.schema, content.chunk(lo, hi), content.symbols)
