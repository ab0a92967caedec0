"""The pieces of an item by brackets and separators, each comment with what it belongs to.

    p(x, y) :- q(x),  // first         _Bracketed "(", [x | y], ")";  then the body: [q(x) behind: // first | r(y)]
        r(y).

A comment behind the last token of a line stays behind that entry, whatever separator stands between; one on a line of
its own stands above the entry that follows, or closes the listing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lftj.language.pieces import LINE_COMMENT, Piece

CLOSING = {"_LPAR": "_RPAR", "_LSQB": "_RSQB", "_LBRACE": "_RBRACE"}


@dataclass(slots=True)
class ListEntry:
    """A condition or an argument. `above`: comments on lines of their own; `behind`: those at the end of its line."""

    above: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Listing:
    """Alternatives of entries: a body, or what brackets enclose.

    Comments at its ends: `opening` ones stand behind what opens it, `closing` ones in lines of their own after it.
    """

    alternatives: list[list[ListEntry]] = field(default_factory=lambda: [[ListEntry()]])
    opening: list[str] = field(default_factory=list)
    closing: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Bracketed:
    """An opening bracket, what it encloses, and the closing one."""

    open: Piece
    inside: Listing
    close: Piece


Node = Piece | Bracketed


def nested(pieces: Sequence[Piece]) -> list[Node]:
    """The pieces, with brackets and what they enclose as one node each."""
    nodes: list[Node] = []
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        if piece.kind in CLOSING:
            end = _close(pieces, at)
            nodes.append(Bracketed(piece, listing(pieces[at + 1 : end]), pieces[end]))
            at = end
        else:
            nodes.append(piece)
        at += 1
    return nodes


def nesting(piece: Piece) -> int:
    """1 for an opening bracket, -1 for a closing one, else 0."""
    return (piece.kind in CLOSING) - (piece.kind in CLOSING.values())


def _close(pieces: Sequence[Piece], at: int) -> int:
    """Where the bracket at `at` is closed."""
    depth = 0
    for end in range(at, len(pieces)):
        depth += nesting(pieces[end])
        if not depth:
            return end
    raise AssertionError("the brackets of a text that parses are closed")


def listing(pieces: Sequence[Piece]) -> Listing:
    """What brackets enclose, or a body: entries apart at commas, alternatives at semicolons."""
    made = Listing()
    entry = made.alternatives[0][0]
    own: list[Piece] = []  # of the entry at hand
    first = True
    depth = at = 0
    while at < len(pieces):
        piece = pieces[at]
        depth += nesting(piece)
        if piece.kind in ("_COMMA", "_SEMI") and not depth:
            closed, entry = entry, ListEntry()
            entry.above += _finish(closed, own)
            own = []
            if piece.kind == "_COMMA":
                made.alternatives[-1].append(entry)
            else:
                made.alternatives.append([entry])
            if piece.kind == "_COMMA" or not piece.newlines_before:  # a `;` on a line of its own opens what follows
                at = _take_behind(closed, entry, pieces, at)
        elif not own and ends_line(piece):
            opens = first and not entry.above and not piece.newlines_before
            (made.opening if opens else entry.above).append(piece.text)
        else:
            own.append(piece)
        first = first and not own and entry is made.alternatives[0][0]
        at += 1
    made.closing += _finish(entry, own)
    return made


def ends_line(piece: Piece) -> bool:
    """Whether it is a comment behind which a line ends."""
    return piece.is_comment and (piece.kind == LINE_COMMENT or piece.newlines_after > 0)


def _take_behind(closed: ListEntry, entry: ListEntry, pieces: Sequence[Piece], at: int) -> int:
    """Give a closed entry the comments that end the line of the separator at `at`; returns where the last one is."""
    end = at
    while end + 1 < len(pieces) and pieces[end + 1].is_comment and not pieces[end + 1].newlines_before:
        end += 1
    if end == at or not ends_line(pieces[end]):
        return at
    for piece in pieces[at + 1 : end + 1]:
        full = closed.behind and closed.behind[-1].startswith("//")
        (entry.above if full or entry.above else closed.behind).append(piece.text)
    return end


def _finish(entry: ListEntry, own: list[Piece]) -> list[str]:
    """Give an entry its pieces, and the comments at the end of its line; returns those in lines of their own below."""
    end = len(own)
    while end and ends_line(own[end - 1]):
        end -= 1
    entry.nodes = nested(own[:end])
    return behind_and_below(own[end:], entry.behind)


def behind_and_below(comments: Sequence[Piece], behind: list[str]) -> list[str]:
    """Add to `behind` the comments that share a line with what is before them; returns the others."""
    below: list[str] = []
    for piece in comments:
        (below if below or piece.newlines_before else behind).append(piece.text)
    return below
