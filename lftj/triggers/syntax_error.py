"""Parsing with places: the tree of a text, or an error that says where it stops making sense and what may follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lftj.errors import Diagnostic, ProgramError
from lftj.language.source import Source

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

# How terminals are shown; what is not listed is shown by its pattern if that is a plain string.
_SHOWN = {
    "NAME": "a name",
    "QUOTED": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "_AND": "`and`",
    "_OR": "`or`",
    "TYPE": "a type",
    "CMP": "a comparison",
    "CHANGE": "`+=` or `-=`",
    "$END": "the end of the text",
}
# Of the tokens that may follow, those that are named.
_MOST_NAMED = 6


def parse_tree(parser: Lark, source: Source, form: str, start: str = "start") -> Tree[Token]:
    """The tree of a whole text. `form`: what such a text consists of, the reason in the error."""
    from lark import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    try:
        return parser.parse(source.text, start=start)
    except UnexpectedInput as error:
        at = stop = len(source.text.rstrip())
        expected: set[str] = set()
        if isinstance(error, UnexpectedCharacters):
            position: Any = error.pos_in_stream  # an int here; lark's annotations speak of the base class
            at, stop, expected = position, position + 1, set(error.allowed or ())
        elif isinstance(error, UnexpectedToken):
            expected = set(error.accepts or error.expected)
            token = error.token
            if token.type != "$END" and token.start_pos is not None and token.end_pos is not None:
                at, stop = token.start_pos, token.end_pos
        found = source.text[at:stop]
        following = _named(parser, expected)
        raise ProgramError(
            [
                Diagnostic(
                    f"syntax error: `{found}` cannot stand here" if found else "syntax error: the text ends too early",
                    source.span(at, max(stop, at + 1)),
                    why=form,
                    remedy=f"write {following} here" if following else "correct what stands before it",
                )
            ]
        ) from None


def _named(parser: Lark, expected: set[str]) -> str:
    patterns = {terminal.name: terminal.pattern for terminal in parser.terminals}
    shown = set()
    for name in expected:
        pattern = patterns.get(name)
        if name in _SHOWN:
            shown.add(_SHOWN[name])
        elif pattern is not None and pattern.type == "str":
            shown.add(f"`{pattern.value}`")
    listed = sorted(shown)[:_MOST_NAMED]
    return " or ".join(listed)
