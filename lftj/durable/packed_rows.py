"""Rows as bytes: column by column, as narrow as their range allows, then zstd where that pays.

    header     "<HHI": columns, whether zstd follows, rows
    columns    per column "<qBB": the least value, bytes per value (0, 1, 2, 4, 8), whether steps are kept, not values
    values     unsigned integers, counted from the least

A column that never falls (the first one of rows in key order) is kept as the steps from row to row.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

_HEADER, _COLUMN = struct.Struct("<HHI"), struct.Struct("<qBB")
_WIDTHS: tuple[tuple[int, type[np.unsignedinteger]], ...] = ((1, np.uint8), (2, np.uint16), (4, np.uint32))
# Bytes from which compressing is tried, and what part must be saved.
WORTH, PART = 512, 0.9


def packed(rows: Rows) -> bytes:
    """Rows int64[cols, n] as bytes."""
    columns, n = rows.shape
    parts: list[bytes] = []
    for column in rows:
        parts += _column(column)
    body = b"".join(parts)
    zipped = _zstd(body) if len(body) >= WORTH else body
    if len(zipped) < PART * len(body):
        return _HEADER.pack(columns, 1, n) + struct.pack("<I", len(body)) + zipped
    return _HEADER.pack(columns, 0, n) + body


def _column(column: Rows) -> tuple[bytes, bytes]:
    if not len(column):
        return _COLUMN.pack(0, 0, 0), b""
    values, least, steps = column.view(np.uint64), int(column.min()), 0
    if len(column) > 1 and bool((column[1:] >= column[:-1]).all()):
        steps, least = 1, int(column[0])
        counted = np.zeros(len(column), np.uint64)
        np.subtract(values[1:], values[:-1], out=counted[1:])  # modulo 2**64, as adding them up again is
    else:
        counted = values - np.uint64(least & 0xFFFFFFFFFFFFFFFF)
    most = int(counted.max())
    if most == 0:
        return _COLUMN.pack(least, 0, steps), b""
    for width, kind in _WIDTHS:
        if most < 1 << (8 * width):
            return _COLUMN.pack(least, width, steps), counted.astype(kind).tobytes()
    return _COLUMN.pack(least, 8, steps), counted.tobytes()


def unpacked(body: bytes) -> Rows:
    """The rows int64[cols, n] of such bytes."""
    columns, zipped, n = _HEADER.unpack_from(body)
    at = _HEADER.size
    if zipped:
        (size,) = struct.unpack_from("<I", body, at)
        body, at = _unzstd(body[at + 4 :], size), 0
    rows = np.empty((columns, n), np.int64)
    for c in range(columns):
        least, width, steps = _COLUMN.unpack_from(body, at)
        at += _COLUMN.size
        if n == 0:
            continue
        out = rows[c].view(np.uint64)
        if width:
            kind = np.dtype(f"<u{width}")
            out[:] = np.frombuffer(body, kind, n, at)
            at += width * n
        else:
            out[:] = 0
        if steps:
            np.cumsum(out, out=out)
        out += np.uint64(least & 0xFFFFFFFFFFFFFFFF)
    return rows


def _zstd(body: bytes) -> bytes:
    import pyarrow as pa  # here, since opening a small file needs none of it

    zipped: bytes = pa.Codec("zstd", 1).compress(body, asbytes=True)
    return zipped


def _unzstd(body: bytes, size: int) -> bytes:
    import pyarrow as pa

    plain: bytes = pa.Codec("zstd").decompress(body, size, asbytes=True)
    return plain
