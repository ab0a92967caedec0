"""Files: from what the user names (a path, a glob, a list of either) to files of a known format, as byte streams.

    "edges.csv"  "facts/*.facts"  Path("e.parquet")  ["a.tsv.gz", "parts/*.tsv.zst"]

A name is *found* (it exists, or is a glob that matches something), its format *told* by its extension, and its bytes
*opened*, decompressed on the way. Extensions: .csv (comma) and .tsv .txt .facts (tab) are text, each also with .gz or
.zst behind; .parquet; .arrow .feather .ipc. `delimiter=` makes a text file of any other name. The files of a glob are
read in order of name. Every way to fail here has its own error: missing file, empty glob, folder, unknown extension,
unreadable or corrupt bytes.
"""

from __future__ import annotations

import difflib
import glob
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lftj.errors import DataError
from lftj.values.faults import with_article

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".facts": "\t"}
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
KNOWN = ".csv, .tsv, .txt, .facts (each also .gz or .zst), .parquet, .arrow, .feather or .ipc"
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}


class MissingFileError(DataError, FileNotFoundError):
    """No such file, or a glob that matches none."""

    __str__ = DataError.__str__


class UnreadableFileError(DataError, OSError):
    """A file that exists but cannot be read: no permission, corrupt compression, not the format its name says."""

    __str__ = DataError.__str__


class FormatError(DataError):
    """A file whose format is not known from its name."""


@dataclass(frozen=True, slots=True)
class File:
    """A file to read. `format` is "text", "parquet" or "arrow"; `delimiter` is the one given or that of the extension.

    `content` holds the bytes of what can be read only once, such as a pipe; readers open a file up to three times.
    """

    path: Path
    format: str
    delimiter: str
    compression: str | None
    content: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The file as messages name it: the path as given."""
        return str(self.path)

    def open(self) -> pa.NativeFile:
        """Its bytes, decompressed, from the start."""
        import pyarrow as pa

        raw = pa.OSFile(str(self.path)) if self.content is None else pa.BufferReader(self.content)
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
            raise UnreadableFileError(
                "no permission to read the file",
                where=self.name,
                why="the operating system does not let this user open it",
                remedy="change its permissions",
            ) from error
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            kind = {"gzip": "gzip", "zstd": "Zstandard"}.get(self.compression or "", self.format)
            raise UnreadableFileError(
                f"the file cannot be read as {kind}",
                where=self.name,
                why=_first_line(error),
                remedy="make or fetch the file again",
            ) from error

    def check_not_compressed(self, head: bytes) -> None:
        """Refuse text that begins like a compressed file."""
        for magic, extension in _MAGIC.items():
            if head.startswith(magic):
                raise UnreadableFileError(
                    f"the text begins like a {extension} file",
                    where=self.name,
                    why=f"{self.path.name} tells no compression, so it is read as text",
                    remedy=f"name it {self.path.name}{extension}, or decompress it",
                )


def find(named: Any, delimiter: str | None) -> list[File]:
    """The files that a path, a glob or a list of them names. A `File` that was found before is itself."""
    if isinstance(named, File):
        return [named]
    if isinstance(named, str | os.PathLike):
        return [_with_content(_told(path, delimiter)) for path in _found(os.fspath(named))]
    return [file for one in named for file in find(one, delimiter)]


def is_paths(source: Any) -> bool:
    """Whether a source names files: a path (or a `File`), or a non-empty list or tuple of them."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | os.PathLike | File) for item in source)
    return isinstance(source, str | os.PathLike | File)


def told_format(path: Path) -> tuple[str, str, str | None]:
    """Format, delimiter and compression that a name tells; format "" if it tells none."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    suffix = (Path(path.stem) if compression else path).suffix.lower()
    if suffix in DELIMITERS:
        return "text", DELIMITERS[suffix], compression
    if suffix in PARQUET:
        return "parquet", "", compression
    return ("arrow" if suffix in ARROW else ""), "", compression


def _found(name: str) -> Iterable[Path]:
    path = Path(name).expanduser()
    if path.exists():
        if path.is_dir():
            raise MissingFileError(
                "this is a folder",
                where=name,
                why="rows are read from files, and it is not said which of them",
                remedy=f"name its files: {str(path / '*.csv')!r}, for one",
            )
        return [path]
    if glob.has_magic(name):
        paths = [Path(found) for found in sorted(glob.glob(str(path), recursive=True)) if not os.path.isdir(found)]
        if paths:
            return paths
        raise MissingFileError(
            "no file matches the pattern",
            where=name,
            why="a pattern that matches nothing would load nothing, and look like a success",
            remedy="check the folder and the extension",
        )
    raise MissingFileError(
        "no such file",
        where=name,
        why="a source must be there when it is loaded; nothing was",
        remedy=_nearest(path),
    )


def _nearest(path: Path) -> str:
    if not path.parent.is_dir():
        return f"check the folder: {str(path.parent)!r} does not exist"
    near = difflib.get_close_matches(path.name, sorted(f.name for f in path.parent.iterdir() if not f.is_dir()), 1)
    return (
        f"did you mean {str(path.parent / near[0])!r}?"
        if near
        else "check the name; relative paths start at the working directory"
    )


def _told(path: Path, delimiter: str | None) -> File:
    format, told, compression = told_format(path)
    if format in ("", "text") and delimiter is not None:
        return File(path, "text", delimiter, compression)
    if not format:
        raise FormatError(
            f"the extension {path.suffix!r} tells no format"
            if path.suffix
            else "a name without extension tells no format",
            where=str(path),
            why=f"known are {KNOWN}",
            remedy="rename the file, or give delimiter= to read it as text",
        )
    if format != "text" and compression:
        raise FormatError(
            f"{with_article(format)} file inside {path.suffix} is not read",
            where=str(path),
            why="a compressed file of this format could not be read from its end, where its columns are listed",
            remedy=f"decompress it; {format} compresses its columns itself",
        )
    if format != "text" and delimiter is not None:
        raise FormatError(
            f"delimiter= does not apply to {with_article(format)} file",
            where=str(path),
            why=f"the columns of {with_article(format)} file are not told apart by a character",
            remedy="leave delimiter= out",
        )
    return File(path, format, told, compression)


def _with_content(file: File) -> File:
    if stat.S_ISREG(os.stat(file.path).st_mode):
        return file
    with file.reading():
        return replace(file, content=file.path.read_bytes())


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
