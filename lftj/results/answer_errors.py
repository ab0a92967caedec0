"""Errors of questions and transactions alike: a relation that is not there, and pages that do not fit."""

from __future__ import annotations

from collections.abc import Iterable

from lftj import arguments
from lftj.errors import Error, MemoryLimitError, UnknownRelationError
from lftj.language.clause import INTERNAL
from scantree.memory import ArenaFullError


def out_of_memory(full: ArenaFullError) -> MemoryLimitError:
    """The error that a user sees when the arena is full."""
    return MemoryLimitError(
        f"{full.needed:,} bytes of pages are needed, the limit is {full.limit:,}",
        where=full.where,
        why="the change was not made; the database is as it was before",
        remedy="raise `memory_limit=`, or load less",
    )


def unknown(name: str, known: Iterable[str]) -> Error:
    """The error for a relation that is not there."""
    from lftj.language.diagnostics import did_you_mean

    arguments.text("name", name, "relations are known by their names", "give the name of a relation as a str")
    shown = [other for other in known if not other.startswith(INTERNAL)]
    return UnknownRelationError(
        f"there is no relation `{name}`",
        why="no rule or declaration names it",
        remedy=did_you_mean(name, shown, "declare it with `.decl`, or see `list(db)` for what there is"),
    )
