r"""`lftj fmt`: a program text in its standard form. Only blanks and line ends change: the tokens and comments stay.

    items         one to a line; facts that share a line go on sharing it; blank lines between items are kept, as one
    a long item   beyond 100 columns a body has one condition to a line, four columns in; so have the arguments of what
                  is still too long, the columns of a declaration, and the conditions in braces
    alternatives  one to a line if each fits in one, else separated by a line `;`
    comments      stay behind what they stand behind, or on lines of their own; one inside of an item opens it up

    tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).  // what fits in a line is in one

The result is a fixed point: formatting it again changes nothing. A comment before a `,` or the final `.` moves behind
it. Line ends are `\n`, or `\r\n` if all were. An empty text stays empty.

    pieces.py       tokens and comments
    entries.py      by brackets and separators
    spacing.py      blanks within a line
    line_breaks.py  the lines of an item
"""

from __future__ import annotations

from collections.abc import Sequence

from lftj.language.diagnostics import too_deep
from lftj.language.entries import behind_and_below, ends_line
from lftj.language.line_breaks import WIDTH, item_lines, width, with_comments
from lftj.language.parse import parse
from lftj.language.pieces import BLOCK_COMMENT, COMMENTS, Piece, SourceItem, source_items


def formatted(text: str, source: str = "<rules>") -> str:
    """`text` in its standard form; `source` is the place that errors give.

    Raises ProgramError if the text does not parse. What is refused for other reasons is formatted all the same.
    """
    from lark import UnexpectedInput

    try:
        items = source_items(text)
        newline = "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"
        result = "".join(f"{line}{newline}" for line in _lines(items))
    except UnexpectedInput:
        parse(text, source)  # says all that is wrong
        raise
    except RecursionError:
        raise too_deep(source) from None
    assert _tokens(source_items(result)) == _tokens(items), f"formatting would change what {source} means"
    return result


def _tokens(items: Sequence[SourceItem]) -> list[tuple[str, str]]:
    """What the parser goes by."""
    return [(piece.kind, piece.text) for item in items for piece in item.pieces if not piece.is_comment]


def _lines(items: Sequence[SourceItem]) -> list[str]:
    """The lines of a program."""
    lines: list[str] = []
    before: SourceItem | None = None
    full = True  # whether the last line ends with a comment that moved there
    for item in items:
        apart = item.pieces[0].newlines_before
        pieces, moved = _without_last_comments(item)
        made = item_lines(pieces, item.kind) if item.kind not in COMMENTS else [pieces[0].text]
        if not full and not apart and item.kind in COMMENTS:
            lines[-1] = with_comments(lines[-1], made)
        elif not full and not apart and _go_together(before, item, [lines[-1], *made]):
            lines[-1] += f" {made[0]}"
        else:
            lines += [""] * (apart > 1 and before is not None) + made
        behind: list[str] = []
        below = behind_and_below(moved, behind)
        lines[-1] = with_comments(lines[-1], behind)
        lines += below
        before, full = item, bool(moved)
    return lines


def _go_together(before: SourceItem | None, item: SourceItem, lines: Sequence[str]) -> bool:
    """Whether an item stays in the line of the one before: a fact behind a fact, anything behind a comment."""
    together = before is not None and (before.kind == BLOCK_COMMENT or before.kind == item.kind == "fact")
    return together and len(lines) == 2 and width(lines[0]) + len(lines[1]) < WIDTH


def _without_last_comments(item: SourceItem) -> tuple[list[Piece], list[Piece]]:
    """The pieces of an item, and the comments that move behind it from before its dot."""
    *pieces, last = item.pieces
    moved: list[Piece] = []
    while last.kind == "_DOT" and ends_line(pieces[-1]):
        moved.insert(0, pieces.pop())
    return [*pieces, last], moved
