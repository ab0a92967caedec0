"""A source text and its places: offsets to lines and columns, and the cutting of a broken text into clauses.

The parser works with character offsets; `Source` turns a pair of them into a `Span` that carries its line for the
caret. When a text does not parse, `segments` cuts it at the ends of clauses and at the starts of directives, so that
each piece can be tried alone and every syntax error is found at once. The cut is lexical: it knows strings, comments,
braces and numbers, nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from lftj.errors import Span

# Either something in which a dot means nothing, a brace, the start of a directive, or a dot that ends a clause. The dot
# between the names of `component.relation` ends nothing, and neither does the one within a number. A directive has no
# dot at its end: a name at the start of a line follows it.
_CUT = re.compile(
    r"""(?P<skip> //[^\n]* | /\*[\s\S]*?(?:\*/|\Z) | "(?:\\.|[^"\\])*" | [0-9]+\.[0-9]+
                | [A-Za-z_?][A-Za-z0-9_?]*(?:\.[A-Za-z_?][A-Za-z0-9_?]*)+(?=\s*\() )
      | (?P<brace> [{}] )
      | (?P<directive> (?:(?<=\s)|\A)\.[a-z_]+ | \.(?:decl|type|input|output|printsize)(?!\w) )
      | (?P<end> \. )
      | (?P<line> ^(?=[A-Za-z_?]) )""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


class Source:
    """A text, its name, and the offsets of its lines."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of a character offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The character offset of a line and a column, from 1; places beyond a line or the text are its end."""
        if line > len(self._starts):
            return len(self.text)
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return min(self._starts[line - 1] + column - 1, end)

    def bounds(self, span: Span) -> tuple[int, int]:
        """The offsets of a span of this text; of the first line if it has none."""
        if not span.line:
            return 0, self.offset(1, 1 << 30)
        start = self.offset(span.line, span.column)
        return start, max(start, self.offset(span.end_line, span.end_column))

    def line_text(self, line: int) -> str:
        """The text of a line without its end."""
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[self._starts[line - 1] : end].rstrip("\r")

    def span(self, start: int, end: int) -> Span:
        """The span of `text[start:end]`."""
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        return Span(self.name, line, column, end_line, end_column, self.line_text(line))

    def segments(self) -> Iterator[tuple[int, int]]:
        """Offsets `(start, end)` of the pieces: each a clause, or a directive and what follows it to the next cut."""
        start, depth = 0, 0
        directive = False  # whether the piece is a directive so far
        for match in _CUT.finditer(self.text):
            if match["brace"]:
                depth = max(0, depth + (1 if match["brace"] == "{" else -1))
                if depth == 0 and self.text.startswith(".comp", start):
                    yield start, match.end()
                    start = match.end()
            elif match["directive"] and depth == 0:
                if match.start() > start:
                    yield start, match.start()
                    start = match.start()
                directive = True
            elif match["line"] is not None and depth == 0 and directive and self._is_complete(start, match.start()):
                yield start, match.start()
                start, directive = match.start(), False
            elif match["end"] and depth == 0:
                yield start, match.end()
                start, directive = match.end(), False
        if start < len(self.text):
            yield start, len(self.text)

    def _is_complete(self, start: int, end: int) -> bool:
        """Whether a directive may end here: its brackets are closed, and nothing asks for more."""
        text = self.text[start:end]
        closed = all(text.count(opening) <= text.count(closing) for opening, closing in ("()", "[]"))
        return closed and not text.rstrip().endswith((",", ":", "=", "|", "->", "<:"))
