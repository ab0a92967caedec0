"""Files of a checkpoint: written once, synced, never changed, each with a hash of everything in it.

A *part file* holds named tables, so that reading is mapping memory:

    "LFTJPART" | Arrow IPC stream of each table, 64-byte aligned | index: JSON | its length | SHA-256 of all before

A *JSON file* is {"sha256": hash of the body's canonical text, "body": ...}. Who refers to a part file has its hash as
well, so a file that is whole but another one is found out, too. A file that is missing, cut short or changed in any bit
is `DamagedError`; nothing of it is used.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

MAGIC = b"LFTJPART"
_ALIGN = 64


class DamagedError(Exception):
    """A file is not what was written. Users see what was done about it, not this."""

    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}")


class _Hashed:
    """A file that is written and hashed at once."""

    def __init__(self, file: Any) -> None:
        self.file, self.hash, self.position = file, hashlib.sha256(), 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.file.write(view)
        self.hash.update(view)
        self.position += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        self.file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    def align(self) -> None:
        """Fill up to the next boundary."""
        self.write(b"\0" * (-self.position % _ALIGN))


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_part(path: Path, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Write tables to a new file; what a commit says of it: name, bytes, hash, rows per table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    index = {}
    with path.open("xb") as raw:
        file = _Hashed(raw)
        file.write(MAGIC)
        for name, table in tables.items():
            file.align()
            index[name] = file.position
            with pa.ipc.new_stream(pa.PythonFile(file, "w"), table.schema) as stream:
                stream.write_table(table)
        text = json.dumps(index).encode()
        file.write(text + struct.pack("<Q", len(text)))
        digest = file.hash.digest()
        raw.write(digest)
        raw.flush()
        os.fsync(raw.fileno())
    sync_folder(path.parent)
    return {
        "name": path.name,
        "bytes": file.position + len(digest),
        "hash": digest.hex(),
        "rows": {name: table.num_rows for name, table in tables.items()},
    }


def read_part(path: Path, digest: str) -> dict[str, pa.Table]:
    """The tables of a part file whose hash is `digest`, mapped; `DamagedError`."""
    try:
        with path.open("rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise DamagedError(path, f"it cannot be read: {error}") from None
    if len(view) < 48 or bytes(view[:8]) != MAGIC:
        raise DamagedError(path, "it is no part file, or was cut short")
    body, end = view[:-32], bytes(view[-32:])
    if end.hex() != digest or hashlib.sha256(body).digest() != end:
        raise DamagedError(path, "its hash is not that of what was written")
    (length,) = struct.unpack("<Q", body[-8:])
    index = json.loads(bytes(body[-8 - length : -8]))
    tables = {}
    for name, at in index.items():
        with pa.ipc.open_stream(pa.BufferReader(pa.py_buffer(body[at:]))) as stream:
            tables[name] = stream.read_all()
    return tables


def _canonical(body: Any) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def write_json(path: Path, body: Any) -> None:
    """Write a new JSON file; `FileExistsError` if there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"sha256": hashlib.sha256(_canonical(body)).hexdigest(), "body": body}, sort_keys=True)
    with path.open("xb") as file:
        file.write(text.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def read_json(path: Path) -> Any:
    """The body of a JSON file; `DamagedError`."""
    try:
        given = json.loads(path.read_bytes())
        body = given["body"]
        if hashlib.sha256(_canonical(body)).hexdigest() != given["sha256"]:
            raise DamagedError(path, "its hash is not that of what was written")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(path, f"it cannot be read: {error!r}") from None
    return body


def publish(draft: Path, path: Path) -> bool:
    """Give a file its name unless something has that name; whether it got it. One step: there is never half a file."""
    try:
        os.link(draft, path)
    except (FileExistsError, FileNotFoundError):  # whoever got the name may have cleared the draft away
        return False
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    sync_folder(path.parent)
    return True
