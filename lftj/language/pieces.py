"""The pieces of a program text, its tokens and its comments, in order and with their places; its items.

The tokens are those of the grammar (`grammar.lark`), so that what the language learns to read needs no second
description here; the grammar leaves comments out, and they are found in the gaps between tokens. Every character of a
text is in a piece or is blank.

A component (`.comp ... { ... }`), which the engine does not evaluate, is one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lftj.language.parse import scanned

if TYPE_CHECKING:
    from lark import Token

LINE_COMMENT = "LINE_COMMENT"
BLOCK_COMMENT = "BLOCK_COMMENT"
COMMENTS = (LINE_COMMENT, BLOCK_COMMENT)
_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/")


@dataclass(frozen=True, slots=True)
class Piece:
    """A token or a comment. `kind`: the terminal of the grammar, or one of `COMMENTS`.

    `newlines_before`, `newlines_after`: the line ends between it and its neighbours; 1 at both ends of the text.
    """

    kind: str
    text: str
    start: int
    end: int
    newlines_before: int = 1
    newlines_after: int = 1

    @property
    def is_comment(self) -> bool:
        """Whether it is a comment."""
        return self.kind in COMMENTS


@dataclass(frozen=True, slots=True)
class SourceItem:
    """An item of a program, or a comment between two. `kind`: "rule", "fact", "decl", ...; or one of `COMMENTS`.

    A comment right before the dot of a clause is among its pieces.
    """

    kind: str
    pieces: tuple[Piece, ...]


def source_items(text: str) -> list[SourceItem]:
    """The items and the comments of a text that parses, in order."""
    tokens, tree = scanned(text)
    bounds = [_bounds(child) for child in tree.children]
    whole = {start: (start, end) for kind, start, end in bounds if kind == "component"}
    pieces = _with_newlines(text, list(_pieces(text, _merged(text, tokens, whole))))
    items: list[SourceItem] = []
    at = 0
    for kind, start, end in bounds:
        while pieces[at].start < start:
            items.append(SourceItem(pieces[at].kind, (pieces[at],)))
            at += 1
        first = at
        while at < len(pieces) and pieces[at].start < end:
            at += 1
        items.append(SourceItem(kind, tuple(pieces[first:at])))
    return items + [SourceItem(piece.kind, (piece,)) for piece in pieces[at:]]


def _bounds(child: Any) -> tuple[str, int, int]:
    """The kind of an item of a tree, and its offsets."""
    if hasattr(child, "data"):
        return str(child.data), child.meta.start_pos, child.meta.end_pos
    return str(child.type), child.start_pos, child.end_pos


def _merged(text: str, tokens: Sequence[Token], whole: dict[int, tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """Kind and offsets of the tokens; those of a component are one."""
    covered = 0
    for token in tokens:
        assert token.start_pos is not None
        assert token.end_pos is not None
        if token.start_pos < covered:
            continue
        if token.start_pos in whole:
            start, covered = whole[token.start_pos]
            yield "component", start, covered
        else:
            yield str(token.type), token.start_pos, token.end_pos


def _pieces(text: str, tokens: Iterator[tuple[str, int, int]]) -> Iterator[Piece]:
    last = 0
    for kind, start, end in (*tokens, ("", len(text), len(text))):
        for comment in _COMMENT.finditer(text, last, start):
            line = comment[0].startswith("//")
            shown = comment[0].rstrip() if line else comment[0]
            yield Piece(LINE_COMMENT if line else BLOCK_COMMENT, shown, *comment.span())
        if kind:
            yield Piece(kind, text[start:end], start, end)
        last = end


def _with_newlines(text: str, pieces: list[Piece]) -> list[Piece]:
    ends = [0, *(piece.end for piece in pieces)]
    starts = [*(piece.start for piece in pieces), len(text)]
    between = [text.count("\n", end, start) for end, start in zip(ends, starts, strict=True)]
    between[0] = between[-1] = 1
    return [
        Piece(piece.kind, piece.text, piece.start, piece.end, before, after)
        for piece, before, after in zip(pieces, between[:-1], between[1:], strict=True)
    ]
