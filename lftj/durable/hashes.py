"""The hashes of rows, which tell whether they are what was written, and the error where they are not."""

from __future__ import annotations

import hashlib

from lftj.errors import DatabaseFileError

# Bytes up to which a body is copied rather than hashed in two steps.
SHORT = 1 << 12
# What remedies for damage begin with, but for that of the check itself.
CHECK = "run `lftj check` on it"


def hash_of(body: bytes, *key: object) -> bytes:
    """The hash of a row: of its body and its key."""
    if type(body) is not bytes:  # a damaged page of SQLite may make any value of it
        return b""
    if len(body) < SHORT:
        return hashlib.blake2b(body + repr(key).encode(), digest_size=16).digest()
    digest = hashlib.blake2b(body, digest_size=16)
    digest.update(repr(key).encode())
    return digest.digest()


def intact(body: bytes, hash: bytes, table: str, *key: object) -> bytes:
    """The body of a row. `DatabaseFileError` that names it if it is damaged."""
    if hash_of(body, *key) != hash:
        raise damaged(f"{table} {', '.join(map(str, key))}")
    return body


def damaged(what: str) -> DatabaseFileError:
    """The error for a part of a file that is not what was written."""
    return DatabaseFileError(
        f"the file is damaged: {what}",
        why="it is not what was written, and nothing is answered from it",
        remedy=f"{CHECK}, which says what can be rebuilt; or go back to a backup",
    )
