"""The parser's tables, kept between processes: lark takes longer to make them than to parse a program with them.

    <cache>/grammar-<hash of the grammar, lark's version and Python's>       a digest, and what `Lark.save` wrote

Another grammar has another name, so that no table outlives its grammar. A file is written beside its place and moved
there, and read only if its digest is right. A folder that cannot be written or read costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from scantree._cache import cache_root

if TYPE_CHECKING:
    from lark import Lark

_DIGEST = hashlib.sha256().digest_size


def lalr(grammar: str, start: list[str]) -> Lark:
    """The parser of a grammar in lark's notation, with a contextual lexer and positions in its trees."""
    import lark

    versions = (lark.__version__, sys.implementation.cache_tag, start)
    name = hashlib.sha256(f"{versions}\n{grammar}".encode()).hexdigest()[:16]
    path: Path | None = None
    with suppress(OSError):
        path = cache_root() / f"grammar-{name}"
        content = path.read_bytes()
        if content[:_DIGEST] == hashlib.sha256(content[_DIGEST:]).digest():
            return lark.Lark.load(BytesIO(content[_DIGEST:]))
    made = lark.Lark(grammar, parser="lalr", lexer="contextual", start=start, propagate_positions=True)
    if path is not None:
        with suppress(OSError):
            _keep(made, path)
    return made


def _keep(made: Lark, path: Path) -> None:
    import tempfile

    tables = BytesIO()
    made.save(tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    number, beside = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(hashlib.sha256(tables.getvalue()).digest() + tables.getvalue())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
