"""Finding files: from what the user names (a path, a glob, a list of either) to files of a known format.

    "edges.csv"  "facts/*.facts"  Path("e.parquet")  ["a.tsv.gz", "parts/*.tsv.zst"]  "s3://bucket/e.ndjson"
    open("edges.csv")  sys.stdin.buffer with format="csv"

A name is *found* (it exists, is a glob that matches something, or a URL), and its extension tells its format and its
compression (`formats.py`), unless `format=` says it. `delimiter=` makes a text file of any other name. The files of a
glob are read in order of name. An open file is read from where it stands, to its end, and stays open; its name tells
its format, or its first bytes do, or `format=`.
"""

from __future__ import annotations

import difflib
import glob
import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lftj.arguments import file_name, utf8
from lftj.io.file import (
    COMPRESSIONS,
    File,
    FormatError,
    MissingFileError,
    UnreadableFileError,
    without_permission,
)
from lftj.io.formats import TEXT, format_of, known_extensions, stated
from lftj.io.remote import fetched, is_url, name_in
from lftj.values.faults import with_article


def find(named: Any, delimiter: str | None, format: str | None = None) -> list[File]:
    """The files that a path, a URL, a glob, an open file or a list of them names. A `File` is itself."""
    if isinstance(named, File):
        return [named]
    if isinstance(named, str | os.PathLike):
        name = os.fspath(named)
        if is_url(name):
            return [
                replace(_of_format(Path(name_in(url)), delimiter, format, url), content=content)
                for url, content in fetched(name)
            ]
        return [_with_content(_of_format(path, delimiter, format)) for path in _found(name)]
    if is_open_file(named):
        return [_read(named, delimiter, format)]
    return [file for one in named for file in find(one, delimiter, format)]


def is_open_file(source: Any) -> bool:
    """Whether a source is a file that is open: anything with the methods `read` and `readable`."""
    return callable(getattr(source, "read", None)) and callable(getattr(source, "readable", None))


def _read(source: Any, delimiter: str | None, format: str | None) -> File:
    """An open file as a `File` with its content."""
    named = getattr(source, "name", None)
    name = named if isinstance(named, str) else type(source).__name__
    try:
        content = source.read()
        content = content.encode() if isinstance(content, str) else bytes(content)
    except (OSError, ValueError) as error:  # ValueError: it is closed, or its text has another encoding, or none
        raise UnreadableFileError(
            "the open file cannot be read",
            where=name,
            why=str(error),
            remedy='open it with mode "rb", or name its path',
        ) from error
    if format is None and delimiter is None and format_of(Path(name)).format is None:
        format = next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), None)
        if format is None:
            raise FormatError(
                "nothing tells the format of the open file",
                where=name,
                why="it has no name with a known extension",
                remedy='give format="csv", or another: ' + ", ".join(_STATED),
            )
    # What was opened may be decompressed already: `format=` says all of what is read.
    path = Path(name if format is None else type(source).__name__)
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression is not None and not content.startswith(compression.magic):  # as of `gzip.open`
        path = path.with_suffix("")
    return replace(_of_format(path, delimiter, format, name), content=content)


_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_STATED = ("tsv", "json", "ndjson", "parquet", "arrow")


def is_paths(source: Any) -> bool:
    """Whether a source is files: a path, a URL, an open file (or a `File`), or a non-empty list or tuple of them."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | os.PathLike | File) or is_open_file(item) for item in source)
    return isinstance(source, str | os.PathLike | File) or is_open_file(source)


def _found(name: str) -> Iterable[Path]:
    path = Path(os.path.expanduser(file_name(name)))  # unlike pathlib, leaves ~x where x is no user
    if _is_there(path, name):
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


def _is_there(path: Path, name: str) -> bool:
    """Whether there is a file or folder of a name; one of a folder that this user may not look into is refused."""
    try:
        return path.exists()
    except PermissionError as error:
        raise without_permission(name) from error
    except OSError:  # longer than names of files are
        return False


def _nearest(path: Path) -> str:
    if not os.path.isdir(path.parent):
        return f"check the folder: {str(path.parent)!r} does not exist"
    try:
        there = sorted(found.name for found in path.parent.iterdir() if not found.is_dir())
    except OSError:  # a folder that may be passed through, and not listed
        there = []
    near = difflib.get_close_matches(path.name, there, 1)
    if near:
        return f"did you mean {utf8(str(path.parent / near[0]))!r}?"
    value = "" if path.suffix else f"; if it is a value, give rows as tuples: [({path.name!r},)]"
    return f"check the name; relative paths start at the working directory{value}"


def _of_format(path: Path, delimiter: str | None, said: str | None = None, given: str = "") -> File:
    format, own_delimiter, compression = format_of(path)
    if said is not None:
        format, own_delimiter, inside = stated(said)
        compression = inside or compression
        if format is None:
            raise FormatError(
                f"format={said!r} is unknown",
                where=given or str(path),
                why=f"known are {known_extensions()}",
                remedy="give one of these, without its dot, or leave format= out where the name tells it",
            )
    if delimiter is not None and (format is None or format.text):
        return File(path, TEXT, delimiter, compression, given=given)
    if format is None:
        raise FormatError(
            f"the extension {path.suffix!r} tells no format"
            if path.suffix
            else "a name without extension tells no format",
            where=given or str(path),
            why=f"known are {known_extensions()}",
            remedy="rename the file, give format=, or delimiter= to read it as text",
        )
    if not format.packed and compression:
        raise FormatError(
            f"{with_article(format.name)} file inside {path.suffix} is not read",
            where=given or str(path),
            why="a compressed file of this format could not be read from its end, where its columns are listed",
            remedy=f"decompress it; {format.name} compresses its columns itself",
        )
    if not format.text and delimiter is not None:
        raise FormatError(
            f"delimiter= does not apply to {with_article(format.name)} file",
            where=given or str(path),
            why=f"the columns of {with_article(format.name)} file are not told apart by a character",
            remedy="leave delimiter= out",
        )
    return File(path, format.name, own_delimiter, compression, given=given)


def _with_content(file: File) -> File:
    if stat.S_ISREG(os.stat(file.path).st_mode):
        return file
    with file.reading():
        return replace(file, content=file.path.read_bytes())
