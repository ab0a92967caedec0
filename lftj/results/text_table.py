"""A table of text, as relations, answers of SQL and the command line print one: its columns stand in line.

What is measured are the cells of a terminal that a text takes, not its characters: two for a Chinese, Japanese or
Korean character and for most emoji, none for an accent that combines with the letter before it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from lftj.html import printable

# Categories of characters that take no cell: accents and signs around the one before; joiners and marks of direction.
_UNSEEN = ("Mn", "Me", "Cf")


def width(text: str) -> int:
    """The cells of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.category(character) in _UNSEEN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def table_lines(
    header: Sequence[str], rows: Sequence[Sequence[str]], to_left: Sequence[bool], *, ruled: bool
) -> list[str]:
    """The lines: the header, a rule if `ruled`, the rows. `to_left`: columns of texts; numbers stand to the right.

    What does not print is spelled: a row is a line, and no text tells a terminal what to do.
    """
    header, *rows = ([printable(text) for text in row] for row in (header, *rows))
    widths = [max(map(width, column)) for column in zip(header, *rows, strict=True)]
    rules = [["-" * cells for cells in widths]] if ruled else []
    return [_line(row, widths, to_left) for row in (header, *rules, *rows)]


def _line(row: Sequence[str], widths: Sequence[int], to_left: Sequence[bool]) -> str:
    cells = []
    for text, wide, left in zip(row, widths, to_left, strict=True):
        blanks = " " * (wide - width(text))
        cells.append(text + blanks if left else blanks + text)
    return "  ".join(cells).rstrip()
