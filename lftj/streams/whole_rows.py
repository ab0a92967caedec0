"""Whole rows of a text that comes in pieces: lines, but for line breaks in quotes, which are a part of their row.

Every byte is looked at once, however long a row is. What is quoted is what Arrow takes for it: a field that begins with
a quote goes on to the next quote that is not the first of two.
"""

from __future__ import annotations

import re

# Bytes that a row may have: a quote that is not closed takes everything behind it into its field.
MOST = 64 << 20
_REST = re.compile(rb'[^"]*(?:""[^"]*)*')


class WholeRows:
    """Takes pieces and gives rows. `delimiter`: of fields that may be in quotes; None: nothing is."""

    def __init__(self, delimiter: str | None) -> None:
        self._opening = None if delimiter is None else re.compile(b'(?<=[\r\n%s])"' % delimiter.encode())
        self._parts: list[bytes] = []  # of the row that is not whole
        self._size = 0
        self._before = b"\n"  # the byte before the text that comes next
        self._quoted = False  # whether that text begins within quotes
        self._held = b""  # quotes at its beginning: of them each may be the first of two

    @property
    def too_long(self) -> bool:
        """Whether the row that is not whole is longer than a row may be."""
        return self._size > MOST

    def take(self, piece: bytes) -> bytes:
        """The rows that end in a piece, as text."""
        text = self._held + piece
        kept = len(text) if self._opening is None else len(text.rstrip(b'"'))
        text, self._held = text[:kept], text[kept:]
        end = self._end_of_rows(text)
        if not end:
            self._parts.append(text)
            self._size += len(text)
            return b""
        whole = b"".join([*self._parts, text[:end]])
        self._parts, self._size = [text[end:]], len(text) - end
        return whole

    def rest(self) -> bytes:
        """What is left where the text ends: a row without a line break, or nothing."""
        left = b"".join([*self._parts, self._held])
        self._parts, self._size, self._held = [], 0, b""
        return left

    def _end_of_rows(self, text: bytes) -> int:
        """Where the last row ends that does so in the text; 0: none does."""
        before, self._before = self._before, text[-1:] or self._before
        if self._opening is None or (not self._quoted and b'"' not in text):
            return text.rfind(b"\n") + 1
        text = before + text  # what comes before a quote tells whether it opens a field
        end = at = 1
        if self._quoted:
            at = self._after_quotes(text, at)
        while not self._quoted:
            opening = self._opening.search(text, at)
            stop = len(text) if opening is None else opening.start()
            end = max(end, text.rfind(b"\n", at, stop) + 1)
            if opening is None:
                break
            at = self._after_quotes(text, opening.end())
        return end - 1

    def _after_quotes(self, text: bytes, at: int) -> int:
        """Where a quoted field ends that is read from `at` on; it may go on in the next piece."""
        rest = _REST.match(text, at)
        assert rest is not None, "it matches what is empty, too"
        self._quoted = rest.end() == len(text)
        return rest.end() + 1
