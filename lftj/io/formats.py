"""The formats of files: one table of their extensions, and of how each is read and written.

    .csv .tsv .txt .facts    text        .json        .ndjson .jsonl        .parquet        .arrow .feather .ipc

Text and JSON may be compressed, with .gz or .zst behind.

Finding, reading, writing, directives and the lists in messages go by this table: a new format is one entry, with a
reader that fills a `Staging` and a writer of a `Content`. A reader runs within `File.reading`, which turns the errors
of a library into an `UnreadableFileError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from lftj.io.binary import read_arrow, read_parquet, write_arrow, write_parquet
from lftj.io.content import Content
from lftj.io.file import COMPRESSIONS, File
from lftj.io.json_text import read_json, read_ndjson, write_json, write_ndjson
from lftj.io.read_options import ReadOptions
from lftj.io.read_text import read_text
from lftj.io.staging import Staging
from lftj.io.write_text import write_text

TEXT = "text"


@dataclass(frozen=True, slots=True)
class Format:
    """Everything that is known of one format.

    `extensions`: each with the delimiter that it tells, empty where the format has none · `unlisted`: extensions that
    are understood, and not listed in messages · `text`: whether rows are lines of fields, so that a delimiter, a header
    and quoting are questions; other formats say themselves what their columns are · `packed`: whether files of it may
    be compressed.
    """

    name: str
    extensions: Mapping[str, str]
    read: Callable[[File, Staging, ReadOptions], None]
    write: Callable[[Content, IO[bytes]], None]
    unlisted: tuple[str, ...] = ()
    text: bool = False
    packed: bool = False


_TABLE = (
    Format(
        TEXT,
        {".csv": ",", ".tsv": "\t", ".txt": "\t", ".facts": "\t"},
        read_text,
        write_text,
        text=True,
        packed=True,
    ),
    Format("json", {".json": ""}, read_json, write_json, packed=True),
    Format("ndjson", {".ndjson": ""}, read_ndjson, write_ndjson, unlisted=(".jsonl",), packed=True),
    Format("parquet", {".parquet": ""}, read_parquet, write_parquet, unlisted=(".pq",)),
    Format("arrow", {".arrow": "", ".feather": "", ".ipc": ""}, read_arrow, write_arrow),
)
FORMATS = {format.name: format for format in _TABLE}


class FileKind(NamedTuple):
    """What the name of a file tells: its format (None: nothing), its delimiter, pyarrow's name of its compression."""

    format: Format | None
    delimiter: str
    compression: str | None


def format_of(path: Path) -> FileKind:
    """What the extensions of a name tell."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    codec = None if compression is None else compression.codec
    suffix = (path if compression is None else Path(path.stem)).suffix.lower()
    for format in FORMATS.values():
        if suffix in format.extensions or suffix in format.unlisted:
            return FileKind(format, format.extensions.get(suffix, ""), codec)
    return FileKind(None, "", codec)


def stated(format: str) -> FileKind:
    """What `format=` tells: the name of a format, or an extension without its dot."""
    kind = format_of(Path(f"x.{format}"))
    return FileKind(FORMATS[format], "\t" if format == TEXT else "", None) if format in FORMATS else kind


def known_extensions() -> str:
    """The extensions in words."""
    packed = [extension for format in FORMATS.values() if format.packed for extension in format.extensions]
    packed[-1] += f" (each also {' or '.join(COMPRESSIONS)})"
    listed = packed + [name for format in FORMATS.values() if not format.packed for name in format.extensions]
    return f"{', '.join(listed[:-1])} or {listed[-1]}"


def known_formats() -> str:
    """The names of the formats in words."""
    *names, last = FORMATS
    return f"{', '.join(names)} and {last}"
