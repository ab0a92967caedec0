"""Files elsewhere: URLs such as s3://bucket/edges.parquet, fetched by fsspec where it is installed.

fsspec knows the stores (s3, gs, az, http, ftp, memory, ...), each by a package of its own. A URL may be a pattern, but
not one of http, where `?` begins a query. A file is fetched whole: it is read up to three times.
"""

from __future__ import annotations

import glob
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from lftj.io.file import MissingFileError, UnreadableFileError


def is_url(name: str) -> bool:
    """Whether a name is a URL rather than a path."""
    scheme, mark, _ = name.partition("://")
    return bool(mark) and scheme.replace("+", "").replace("-", "").replace(":", "").isalnum()


def name_in(url: str) -> PurePosixPath:
    """The name of the file in a URL, whose extension tells its format."""
    path = urlsplit(url).path if url.startswith(("http://", "https://")) else url
    return PurePosixPath(path.rpartition("/")[2])


def fetched(url: str) -> list[tuple[str, bytes]]:
    """The files that a URL, or a pattern, names, each with its content."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UnreadableFileError(
            "this is a URL, and fsspec is not installed",
            where=url,
            why="files that are not on this machine are fetched by fsspec",
            remedy="pip install fsspec, and the package of the store (s3fs, gcsfs, adlfs, aiohttp, ...)",
        ) from None
    try:
        store, path = url_to_fs(url)
        paths: list[Any] = [path]
        if glob.has_magic(path) and not url.startswith(("http://", "https://")):
            paths = sorted(found for found in store.glob(path) if not store.isdir(found))
        if not paths:
            raise MissingFileError(
                "no file matches the pattern",
                where=url,
                why="a pattern that matches nothing would load nothing, and look like a success",
                remedy="check the folder and the extension",
            )
        return [(url if found == path else store.unstrip_protocol(found), store.cat_file(found)) for found in paths]
    except MissingFileError:
        raise
    except FileNotFoundError:
        raise MissingFileError(
            "no such file",
            where=url,
            why="a source must be there when it is loaded; nothing was",
            remedy="check the URL",
        ) from None
    except Exception as error:  # each store raises errors of its own
        raise UnreadableFileError(
            "the file cannot be fetched",
            where=url,
            why=str(error).partition("\n")[0] or type(error).__name__,
            remedy="check the URL, the access to it, and that the package of its store is installed",
        ) from error
