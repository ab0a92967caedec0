"""What a database keeps of its recursive components besides their contents: bounds of their rounds, and their joins."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from scantree.version import Version


class Noted(NamedTuple):
    """What is known of rounds: none is greater than `top`; they are well-founded by the clauses of this form.

    `as_written`: by the clauses as they are written, not by those of a closure's one form (closure.py).
    """

    top: int
    as_written: bool


class ComponentRounds:
    """What a database keeps of its recursive components besides their contents.

    `joins`: the variants of their clauses, planned, by their heads and form (component_joins.py) · `key_rules`: the
    clauses of those that are evaluated key by key, taken apart, by their first head (key_rules.py).
    """

    def __init__(self) -> None:
        self._noted: weakref.WeakKeyDictionary[Version, Noted] = weakref.WeakKeyDictionary()
        self.joins: dict[tuple[tuple[str, ...], bool], Any] = {}
        self.key_rules: dict[str, Any] = {}

    def note(self, content: Version, top: int, *, as_written: bool) -> None:
        """What is known of the rounds in `content`."""
        self._noted[content] = Noted(top, as_written)

    def of(self, contents: Sequence[Version]) -> Noted | None:
        """What is known of the rounds of all `contents`, those of one component; None if one's are not known."""
        noted = [self._noted.get(content) for content in contents]
        return None if None in noted else max(found for found in noted if found is not None)

    def apart(self) -> ComponentRounds:
        """The same notes, with plans of their own: for another database over the same contents."""
        made = ComponentRounds()
        made._noted.update(self._noted)
        return made
