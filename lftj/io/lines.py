r"""Records of a text file, one at a time, with the line each starts on: the careful reader.

It is the reference for what a text file says. `read_text.py` reads with pyarrow where both say the same and comes back
here for everything else. The grammar works on bytes, so a field that no column needs may hold anything:

    file    = [BOM] record*                         a line ends in \n, \r\n or \r, the last one perhaps in nothing
    record  = field (delimiter field)*              so a blank line is one empty field
    field   = '"' (any | '""')* '"' plain | plain   quoting off: a field is any bytes but the delimiter and line ends

With quoting on (RFC 4180) quotes count only at the start of a field; what follows the closing quote belongs to the
field; line ends inside quotes are data. A quoted field that is never closed ends the file; its record has no fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 12  # of a file, by which its encoding is told
BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_QUOTE = b'"'


class Record(NamedTuple):
    """One record: the line it starts on (from 1), its text, its fields (None if a quote is never closed)."""

    line: int
    text: bytes
    fields: list[bytes] | None


def is_utf16(head: bytes) -> bool:
    """Whether a text that begins so is UTF-16: by its mark, or where characters are of two bytes.

    Without a mark it is valid UTF-8 with zeros, which may be data: so most line ends are to have a zero beside them, on
    one side, or all characters, of which there are two or more.
    """
    if head.startswith(_UTF16):
        return True
    whole = len(head) in (4, 6) or len(head) >= 8
    for high, low in ((head[::2], head[1::2]), (head[1::2], head[::2])):
        if whole and not any(high) and all(low):
            return True
        ends = sum(above == 0 and below == 10 for above, below in zip(high, low, strict=False))
        if ends > 1 and 2 * ends > head.count(b"\n"):
            return True
    return False


def lines(stream: pa.NativeFile) -> Iterator[bytes]:
    """The lines of a stream, each with its line end."""
    held: list[bytes] = []  # the line that the blocks so far end in, in parts: joined once, however long it is
    first = True
    while block := stream.read(BLOCK_BYTES):
        if first:
            while len(block) < len(BOM) and (more := stream.read(BLOCK_BYTES)):
                block += more
            block = block.removeprefix(BOM)
            first = False
        if held and held[-1].endswith(b"\r"):  # which may yet turn out to be \r\n
            held.append(block[:1] if block.startswith(b"\n") else b"")
            block = block[len(held[-1]) :]
            yield b"".join(held)
            held = []
        pieces = block.splitlines(keepends=True)
        last = pieces.pop() if pieces and not pieces[-1].endswith(b"\n") else b""
        if pieces:
            yield b"".join([*held, pieces[0]])
            yield from pieces[1:]
            held = []
        if last:
            held.append(last)
    if held:
        yield b"".join(held)


def records(stream: pa.NativeFile, delimiter: bytes, quoting: bool) -> Iterator[Record]:
    """The records of a stream."""
    source = enumerate(lines(stream), 1)
    for number, line in source:
        text = _without_end(line)
        if not quoting or _QUOTE not in line:
            yield Record(number, text, text.split(delimiter))
        else:
            yield _quoted(number, line, source, delimiter)


def _quoted(number: int, line: bytes, source: Iterator[tuple[int, bytes]], delimiter: bytes) -> Record:
    """The record that starts with `line`; takes further lines from `source` while a quote is open."""
    fields: list[bytes] = []
    whole = [line]
    at = 0
    while True:
        field = b""
        if line.startswith(_QUOTE, at):
            pieces: list[bytes] = []
            at += 1
            while True:
                close = line.find(_QUOTE, at)
                if close < 0:  # the field goes on in the next line
                    pieces.append(line[at:])
                    _, line = next(source, (0, b""))
                    if not line:
                        return Record(number, _without_end(b"".join(whole)), None)
                    whole.append(line)
                    at = 0
                elif line.startswith(_QUOTE, close + 1):
                    pieces.append(line[at : close + 1])
                    at = close + 2
                else:
                    pieces.append(line[at:close])
                    at = close + 1
                    break
            field = b"".join(pieces)
        stop = line.find(delimiter, at)
        if stop < 0:
            fields.append(field + _without_end(line[at:]))
            return Record(number, _without_end(b"".join(whole)), fields)
        fields.append(field + line[at:stop])
        at = stop + len(delimiter)


def _without_end(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith((b"\n", b"\r")) else line
