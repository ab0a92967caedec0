"""A file: bytes on a disk or from a pipe, of a known format, decompressed on the way.

Every way to fail here has its own error: missing file, empty glob, folder, unknown extension, unreadable or corrupt
bytes. `find_files.py` makes files of what the user names, `formats.py` reads and writes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lftj.errors import DataError
from lftj.io.lines import HEAD_BYTES, is_utf16
from lftj.values.faults import not_utf8

if TYPE_CHECKING:
    import pyarrow as pa


class Compression(NamedTuple):
    """A way to compress text: its extension, pyarrow's name for it, its word in messages, a file's first bytes."""

    extension: str
    codec: str
    word: str
    magic: bytes


_COMPRESSIONS = (
    Compression(".gz", "gzip", "gzip", b"\x1f\x8b"),
    Compression(".zst", "zstd", "Zstandard", b"\x28\xb5\x2f\xfd"),
)
COMPRESSIONS = {compression.extension: compression for compression in _COMPRESSIONS}


class MissingFileError(DataError, FileNotFoundError):
    """No such file, or a glob that matches none."""

    __str__ = DataError.__str__


class UnreadableFileError(DataError, OSError):
    """A file that exists but cannot be read: no permission, corrupt compression, not the format its name says."""

    __str__ = DataError.__str__


def without_permission(name: str) -> UnreadableFileError:
    """The error for a file that this user may not read, or whose folder may not be passed through."""
    return UnreadableFileError(
        "no permission to read the file",
        where=name,
        why="the operating system does not let this user open it",
        remedy="change its permissions, or those of its folder",
    )


class FormatError(DataError):
    """A file whose format is not known from its name."""


@dataclass(frozen=True, slots=True)
class File:
    """A file to read. `format` is a key of `FORMATS`; `delimiter` is the one given or that of the extension.

    `compression`: pyarrow's name of it · `content`: the bytes of what can be read only once, such as a pipe; readers
    open a file up to four times · `given`: what messages call it, where that is not its path · `lines_before`: how
    many lines come before the content, where that is a piece of a text.
    """

    path: Path
    format: str
    delimiter: str
    compression: str | None
    content: bytes | None = field(default=None, repr=False)
    given: str = ""
    lines_before: int = 0

    @property
    def name(self) -> str:
        """The file as messages name it: the path as given."""
        return self.given or str(self.path)

    def open(self) -> pa.NativeFile:
        """Its bytes, decompressed, from the start."""
        import pyarrow as pa

        # Of a text Arrow takes the UTF-8, which a name that is none has not.
        raw = pa.OSFile(os.fsencode(self.path)) if self.content is None else pa.BufferReader(self.content)
        return pa.CompressedInputStream(raw, self.compression) if self.compression else raw

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn the errors of the operating system and of pyarrow into `UnreadableFileError`."""
        import pyarrow as pa

        try:
            yield
        except DataError:
            raise
        except PermissionError as error:
            raise without_permission(self.name) from error
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            kind = next((c.word for c in _COMPRESSIONS if c.codec == self.compression), self.format)
            raise UnreadableFileError(
                f"the file cannot be read as {kind}",
                where=self.name,
                why=_first_line(error),
                remedy="make or fetch the file again",
            ) from error

    def check_text(self, head: bytes) -> None:
        """Refuse text that begins like a compressed file, or like UTF-16."""
        for extension, compression in COMPRESSIONS.items():
            if head.startswith(compression.magic):
                raise UnreadableFileError(
                    f"the text begins like a {extension} file",
                    where=self.name,
                    why=f"{self.path.name} tells no compression, so it is read as text",
                    remedy=f"name it {self.path.name}{extension}, or decompress it",
                )
        if is_utf16(head[:HEAD_BYTES]):
            fault = not_utf8()
            raise UnreadableFileError("the file is UTF-16 text", where=self.name, why=fault.why, remedy=fault.remedy)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
