"""Parquet and Arrow IPC files: typed columns in files, read batch by batch, only the picked columns."""

from __future__ import annotations

from lftj.io.files import File
from lftj.io.pick import Columns
from lftj.io.staging import Staging
from lftj.io.typed import read_batches

BATCH_ROWS = 1 << 17
_FILE_MAGIC = b"ARROW1"


def read_parquet(file: File, staging: Staging, columns: Columns | None) -> None:
    """Read one Parquet file."""
    import pyarrow.parquet as parquet

    with file.reading(), file.open() as stream, parquet.ParquetFile(stream, page_checksum_verification=True) as opened:
        schema = opened.schema_arrow
        positions = staging.pick(columns, schema.names, len(schema.names), file.name)
        wanted: list[str] | None = list(dict.fromkeys(schema.names[position] for position in positions))
        if len(set(schema.names)) < len(schema.names) or not wanted:
            wanted = None  # Parquet picks by name: where two columns share one, read all
        batches = opened.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False)
        read_batches(schema, batches, staging, positions, file.name)


def read_arrow(file: File, staging: Staging, columns: Columns | None) -> None:
    """Read one Arrow IPC file, of the file or the stream format."""
    import pyarrow.ipc as ipc

    with file.reading():
        with file.open() as head:
            is_file = head.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        with file.open() as stream, (ipc.open_file if is_file else ipc.open_stream)(stream) as opened:
            positions = staging.pick(columns, opened.schema.names, len(opened.schema.names), file.name)
            batches = (opened.get_batch(i) for i in range(opened.num_record_batches)) if is_file else opened
            read_batches(opened.schema, batches, staging, positions, file.name)
