"""What a file is, by its first bytes: for commands that must not load anything heavy to know."""

from __future__ import annotations

import os

MAGIC = b"SQLite format 3\0"


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as SQLite files do."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
