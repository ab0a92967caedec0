"""Places in the text of a statement, and the refusals that name them.

sqlglot keeps the place of identifiers, literals and functions (`node.meta`: offsets `start` and `end`, both inclusive).
The place of any other node is that of the first and the last of the nodes below it that have one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from lftj.errors import Diagnostic, ProgramError, Span

Node = TypeVar("Node", bound=exp.Expr)
_MEANT = "meant"
_UNSUPPORTED = "not supported yet: "


def as_duckdb(node: exp.Expr) -> str:
    """An expression as DuckDB writes it, for messages: what stands for another expression is that one there.

    Of what DuckDB cannot write nothing is logged, as sqlglot would.
    """

    def meant(part: exp.Expr) -> exp.Expr:
        return exp.Var(this=part.meta[_MEANT]()) if _MEANT in part.meta else part

    return node.transform(meant).sql("duckdb", unsupported_level=ErrorLevel.IGNORE)


def standing_for(other: exp.Expr, node: Node) -> Node:
    """A node that is made, at the place of the expression that it stands for, which messages name instead."""
    node.meta[_MEANT] = lambda: as_duckdb(other)  # few are shown; and a copy of the node has the same function
    return in_place_of(other, node)


def nowhere(node: Node) -> Node:
    """A node that was parsed from another text than the statement's, whose places it must not have."""
    for part in node.walk():
        part.meta.clear()
    return node


def in_place_of(other: exp.Expr, node: Node) -> Node:
    """A node that is made, at the place of another."""
    found = [part.meta for part in other.walk() if "start" in part.meta]
    if found:
        node.meta.update({"start": min(m["start"] for m in found), "end": max(m["end"] for m in found)})
    return node


@dataclass(frozen=True, slots=True)
class SqlText:
    """The text of a statement, or of several, and what it is called in messages."""

    text: str
    name: str = "<sql>"

    def span(self, node: exp.Expr | None) -> Span:
        """The place of a node, or of what is around it if no part of it has one; without lines if nothing has."""
        found = [] if node is None else [part.meta for part in node.walk() if "start" in part.meta]
        if not found:
            return Span(self.name) if node is None else self.span(node.parent)
        start = min(meta["start"] for meta in found)
        end = max(meta["end"] for meta in found) + 1
        line, column = self._position(start)
        end_line, end_column = self._position(end)
        lines = self.text.split("\n")
        return Span(self.name, line, column, end_line, end_column, lines[line - 1] if line <= len(lines) else "")

    def _position(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset, both from 1."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - before.rfind("\n")

    def word(self, node: exp.Expr) -> str:
        """The word, in small letters, that a function or a statement begins with; the parser's where it has none."""
        found = re.compile(r"\w+").match(self.text, node.meta["start"]) if "start" in node.meta else None
        return found[0].lower() if found else node.key

    def call(self, node: exp.Expr) -> str:
        """A function with its arguments as DuckDB writes it, but for the word that it begins with in the text."""
        shown = as_duckdb(node).lower()
        return re.sub(r"^\w+", self.word(node), shown, count=1) if "start" in node.meta else shown

    def error(self, what: str, node: exp.Expr | None, *, why: str, remedy: str) -> ProgramError:
        """The error to raise about a node."""
        found = Diagnostic(what, self.span(node), why=why, remedy=remedy)
        error = ProgramError([found])
        error.what, error.where, error.why, error.remedy = what, str(found.span), why, remedy
        return error

    def unsupported(
        self, feature: str, node: exp.Expr | None, remedy: str = "rewrite the statement without it"
    ) -> ProgramError:
        """The error to raise about a construct that is recognised and not evaluated."""
        why = "lftj recognises this construct and cannot evaluate it yet"
        return self.error(f"{_UNSUPPORTED}{feature}", node, why=why, remedy=remedy)


def is_unsupported(error: ProgramError) -> bool:
    """Whether an error is about a construct that is recognised and not evaluated, and about no mistake."""
    return error.what.startswith(_UNSUPPORTED)
