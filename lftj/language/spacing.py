"""Where a blank stands between the tokens of one line, in the standard form of a program.

Tokens that are not named here are words and literals, which keep apart or together as they stand: a literal that the
grammar learns needs no entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lftj.language.pieces import Piece

_NONE_BEFORE = frozenset({"_COMMA", "_SEMI", "_DOT", "_RPAR", "_RSQB", "ANGLES"})
_NONE_AFTER = frozenset({"_LPAR", "_LSQB", "_NOT"})
_AROUND = frozenset({"OPERATOR", "MINUS", "CMP", "_IF", "_ARROW", "_LBRACE", "_RBRACE"})
_AFTER = frozenset({"_COMMA", "_SEMI", "_COLON", "_EQUALS", "AGGREGATE"})
_BRACKETS = frozenset({"_LPAR", "_LSQB"})
# What makes a bracket behind it one of arguments, keys, columns or options.
_CALLED = frozenset({"NAME", "PATH", "DOTTED_CALL", "BRANCH_CALL", "USER_FUNCTOR"})
# A minus behind one of these is a sign.
_BEFORE_OPERAND = frozenset(
    {
        *("OPERATOR", "MINUS", "WORD_OPERATOR", "PREFIX_WORD", "CMP", "_EQUALS", "_COLON", "_COMMA", "_SEMI", "_NOT"),
        *("_LPAR", "_LSQB", "_LBRACE", "_IF", "AGG", "AGGREGATE"),
    }
)


def blanks(pieces: Sequence[Piece], kind: str) -> frozenset[int]:
    """The offsets of the pieces of an item of `kind` that have a blank before them, if they share a line."""
    found: set[int] = set()
    depth = 0
    sign = False  # whether the last token is a minus that is a sign
    token: Piece | None = None
    for left, right in pairwise(pieces):
        if not left.is_comment:
            sign = left.kind == "MINUS" and (token is None or token.kind in _BEFORE_OPERAND)
            token = left
            depth += (left.kind == "_LPAR") - (left.kind == "_RPAR")
        if _blank(left, right, sign, option=depth > 0, column=kind == "decl"):
            found.add(right.start)
    return frozenset(found)


def _blank(left: Piece, right: Piece, sign: bool, *, option: bool, column: bool) -> bool:
    """Whether there is a blank between two neighbours. `option`, `column`: where `=`, or `:`, stands without."""
    if right.kind in _NONE_BEFORE or left.kind in _NONE_AFTER:
        return False
    if left.is_comment or right.is_comment:
        return True
    if sign or (right.kind in _BRACKETS and left.kind in _CALLED):
        return False
    if "_COLON" in (left.kind, right.kind):
        return not column
    if "_EQUALS" in (left.kind, right.kind):
        return not option
    if left.kind in _AROUND or right.kind in _AROUND or left.kind in _AFTER:
        return True
    return left.end < right.start or right.kind in _BRACKETS
