"""A small database in a file for the tests: its program, and what it holds, as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lftj

PROGRAM = """
.decl edge(a:number, b:number)
.decl name(a:number, n:symbol)
.decl price(n:symbol) -> p:float
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
degree[x] = count : { edge(x, _) }.
named(n, d) :- name(x, n), degree(x, d).
lonely(n) :- name(x, n), !edge(x, _).
worth[] = sum p : { price(_, p) }.
longest[x] = max y : { path(x, y) }.
edge(0, 1).
"""
Contents = dict[str, list[tuple[Any, ...]]]


def contents(db: Any) -> Contents:
    """All that a database or a snapshot holds."""
    return {name: sorted(db[name]) for name in db}


def lose(db: lftj.Database) -> None:
    """Let go of the file as a process that dies does: without a checkpoint, and without what waits."""
    assert db._file is not None
    db._file._waiting.clear()
    db._file._closing.set()
    db._file._finalizer()


def opened(path: Path, **options: Any) -> lftj.Database:
    """The database in the file; pages are tiny."""
    return lftj.Database._sized(PROGRAM, page_rows=4, directory_rows=2, path=path, **options)
