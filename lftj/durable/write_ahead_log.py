"""SQLite's write-ahead log after a crash: whether what was committed is all there.

SQLite reads it as far as its checksums hold, and takes what follows for a transaction that was being written when the
power went. That is right as a rule, and silent where a bit of the disk has flipped: commits that had returned are gone.
So whoever finds such a log, and no writer at work, looks at what follows.

    header    32 bytes: magic, version, bytes of a page, number, two salts, two checksums
    frame     24 bytes: page, pages of the file if it ends a transaction (else 0), the salts, two checksums; the page

Source: "The WAL-Mode File Format", sqlite.org/walformat.html. The checksum goes through pairs of 32-bit words, s1 +=
x1 + s2, s2 += x2 + s1: it is linear, so a frame's part of it is a product with powers of [[1, 1], [1, 2]].
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

HEADER, FRAME = 32, 24
# The magic numbers where words of checksums are little-endian and big-endian.
LITTLE, BIG = 0x377F0682, 0x377F0683
# Bytes of a page where a damaged header does not tell: SQLite's own.
PAGE = 4096
# Frames whose checksums are computed together.
AT_A_TIME = 512
# Bytes that are read at first to find one transaction.
FIRST = 1 << 18


def log_path(path: Path) -> Path:
    """The write-ahead log of a database file, which a link may lead to."""
    return Path(f"{os.path.realpath(path)}-wal")


def is_there(path: Path) -> bool:
    """Whether the file at `path` has a write-ahead log with anything in it."""
    try:
        return log_path(path).stat().st_size > 0
    except FileNotFoundError:
        return False


class Frames(NamedTuple):
    """What a log holds: uint8[n, bytes of a frame], and what is in their heads. `sums`: the checksum before the first.

    `words`: in which order the bytes of words of checksums are. `intact`: whether the header is.
    """

    frames: npt.NDArray[np.uint8]
    heads: Words
    salts: list[int]
    words: str
    sums: tuple[int, int]
    intact: bool

    @classmethod
    def of(cls, path: Path, upto: int = -1) -> Frames | None:
        """Those in the first `upto` bytes of the log of the file at `path`; None if there is none, or nothing in it."""
        try:
            raw = np.fromfile(log_path(path), np.uint8, upto)
        except FileNotFoundError:
            return None
        if len(raw) <= HEADER or not raw[:HEADER].any():
            return None
        magic, _, page, _, *rest = raw[:HEADER].view(">u4").tolist()
        salts, sums = rest[:2], rest[2:]
        page = page if magic in (LITTLE, BIG) and 512 <= page <= 65536 and not page & (page - 1) else PAGE
        count = (len(raw) - HEADER) // (FRAME + page)
        frames = raw[HEADER : HEADER + count * (FRAME + page)].reshape(count, FRAME + page)
        heads = np.ascontiguousarray(frames[:, :FRAME]).view(">u4").astype(np.uint32)
        words = "<u4" if magic == LITTLE else ">u4"
        there = _continued(raw[: HEADER - 8].view(words).astype(np.uint32), (0, 0))
        return cls(frames, heads, salts, words, there, magic in (LITTLE, BIG) and there == tuple(sums))

    def read(self, upto: int) -> int:
        """How many of the first `upto` frames are as they were written, up to the first that is not."""
        return _intact(self.frames[:upto], self.heads, self.salts, self.words, self.sums)


def salt_of(path: Path) -> int | None:
    """The first salt of the log of the file at `path`; None if SQLite reads no transaction in it."""
    size = FIRST
    while (log := Frames.of(path, size)) is not None and log.intact:
        ends = np.flatnonzero(log.heads[:, 1])
        if len(ends):
            return log.salts[0] if log.read(int(ends[0]) + 1) > ends[0] else None
        if log_path(path).stat().st_size <= size:
            return None
        size *= 2
    return None


def unread(path: Path) -> int:
    """How many transactions end in what SQLite will not read of the log of the file at `path`, which nobody writes to.

    One may have been in the making when the power went; more than one is damage, if every commit waited for the disk.
    """
    log = Frames.of(path)
    if log is None:
        return 0
    ends = log.heads[:, 1] != 0
    if not log.intact:
        return int(ends.sum())  # its header is damaged: SQLite reads none of it
    # One of both is enough: two logs of a file never share one, but for a flip.
    ours = (log.heads[:, 2] == log.salts[0]) | (log.heads[:, 3] == log.salts[1])
    read = log.read(len(log.frames))
    return int(ends[read:][ours[read:]].sum())


def _intact(frames: npt.NDArray[np.uint8], heads: Words, salts: list[int], words: str, sums: tuple[int, int]) -> int:
    """How many frames from the first one on are as they were written."""
    step = _powers((frames.shape[1] - FRAME + 8) // 2 // 4)[1]
    for lo in range(0, len(frames), AT_A_TIME):
        part = frames[lo : lo + AT_A_TIME]
        body = np.ascontiguousarray(np.concatenate([part[:, :8], part[:, FRAME:]], axis=1)).view(words)
        added = _added(body.astype(np.uint32))
        for i, (first, second) in enumerate(added.tolist(), lo):
            sums = _sum(step, sums, (first, second))
            if heads[i, 2:].tolist() != [*salts, *sums]:
                return i
    return len(frames)


def _continued(words: Words, sums: tuple[int, int]) -> tuple[int, int]:
    """The checksum of words uint32[n] that follow what has the checksum `sums`."""
    ((first, second),) = _added(words[None]).tolist()
    return _sum(_powers(len(words) // 2)[1], sums, (first, second))


def _added(words: Words) -> Words:
    """What rows of words uint32[rows, n] add to a checksum: uint32[rows, 2]."""
    weights = _powers(words.shape[1] // 2)[0]
    firsts, both = words[:, ::2], words[:, ::2] + words[:, 1::2]
    return firsts @ weights[:, :, 0] + both @ weights[:, :, 1]


def _sum(step: tuple[tuple[int, int], ...], sums: tuple[int, int], added: tuple[int, int]) -> tuple[int, int]:
    (a, b), (c, d) = step
    s, t = sums
    return (a * s + b * t + added[0]) & 0xFFFFFFFF, (c * s + d * t + added[1]) & 0xFFFFFFFF


@cache
def _powers(pairs: int) -> tuple[Words, tuple[tuple[int, int], ...]]:
    """(the matrices that so many pairs are multiplied by, uint32[pairs, 2, 2]; the one that what is before is)."""
    weights = np.empty((pairs, 2, 2), np.uint32)
    power = ((1, 0), (0, 1))
    for i in reversed(range(pairs)):
        weights[i] = power
        (a, b), (c, d) = power
        power = ((a + b) & 0xFFFFFFFF, (a + 2 * b) & 0xFFFFFFFF), ((c + d) & 0xFFFFFFFF, (c + 2 * d) & 0xFFFFFFFF)
    return weights, power
