"""Finding files: from what the user names (a path, a glob, a list of either) to files of a known format.

    "edges.csv"  "facts/*.facts"  Path("e.parquet")  ["a.tsv.gz", "parts/*.tsv.zst"]

A name is *found* (it exists, or is a glob that matches something), and its extension tells its format and its
compression (`formats.py`). `delimiter=` makes a text file of any other name. The files of a glob are read in order of
name.
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

from lftj.io.file import File, FormatError, MissingFileError
from lftj.io.formats import TEXT, format_of, known_extensions
from lftj.values.faults import with_article


def find(named: Any, delimiter: str | None) -> list[File]:
    """The files that a path, a glob or a list of them names. A `File` that was found before is itself."""
    if isinstance(named, File):
        return [named]
    if isinstance(named, str | os.PathLike):
        return [_with_content(_of_format(path, delimiter)) for path in _found(os.fspath(named))]
    return [file for one in named for file in find(one, delimiter)]


def is_paths(source: Any) -> bool:
    """Whether a source names files: a path (or a `File`), or a non-empty list or tuple of them."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | os.PathLike | File) for item in source)
    return isinstance(source, str | os.PathLike | File)


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


def _of_format(path: Path, delimiter: str | None) -> File:
    format, own_delimiter, compression = format_of(path)
    if delimiter is not None and (format is None or format.text):
        return File(path, TEXT, delimiter, compression)
    if format is None:
        raise FormatError(
            f"the extension {path.suffix!r} tells no format"
            if path.suffix
            else "a name without extension tells no format",
            where=str(path),
            why=f"known are {known_extensions()}",
            remedy="rename the file, or give delimiter= to read it as text",
        )
    if not format.text and compression:
        raise FormatError(
            f"{with_article(format.name)} file inside {path.suffix} is not read",
            where=str(path),
            why="a compressed file of this format could not be read from its end, where its columns are listed",
            remedy=f"decompress it; {format.name} compresses its columns itself",
        )
    if not format.text and delimiter is not None:
        raise FormatError(
            f"delimiter= does not apply to {with_article(format.name)} file",
            where=str(path),
            why=f"the columns of {with_article(format.name)} file are not told apart by a character",
            remedy="leave delimiter= out",
        )
    return File(path, format.name, own_delimiter, compression)


def _with_content(file: File) -> File:
    if stat.S_ISREG(os.stat(file.path).st_mode):
        return file
    with file.reading():
        return replace(file, content=file.path.read_bytes())
