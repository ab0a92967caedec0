r"""Regular expressions that mean the same in Arrow's syntax, RE2's, as in Python's with ASCII classes.

What is asked is whether a pattern matches all of a text, so that neither groups nor which alternative is tried first
counts. Left to Python: `$` (which a line break may follow), `\B` (which Python finds in no empty text), classes within
classes, options other than `(?s:`, looking around, what repeats without going back, and what RE2 does not have.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lftj.language.text_functors import pattern_of

# Which characters `\s` stands for: in RE2 a vertical tab is none.
_SPACE = "\t-\r "
_ESCAPED = r"\\[ -/:-@\[-^`{-~tnrfvdDwW]"
_TOKEN = re.compile(
    r"(?:"
    rf"{_ESCAPED}|\\[bsS]"  # a character, or any of a class
    r"|[^\0\\.*+?()\[\]{}|^$]|\.|\^"
    r"|\((?:\?s?:)?(?!\?)|\)|\|"
    rf"|\[\^?\]?(?:{_ESCAPED}|\\s|[^\0\\\[\]])*\]"
    r"|(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})\??(?!\+)"
    r")"
)


@lru_cache(maxsize=256)
def in_arrow(pattern: str) -> str:
    """The same pattern for Arrow; empty if it may mean something else there, or nothing in Python."""
    try:
        text = pattern_of(pattern).pattern
    except ValueError:
        return ""
    found, at = list[str](), 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return ""
        found.append(_in_arrow(token[0]))
        at = token.end()
    return "".join(found)


def _in_arrow(token: str) -> str:
    """A character, a class, a bracket or a repetition."""
    if token == r"\s":
        return f"[{_SPACE}]"
    if token == r"\S":
        return f"[^{_SPACE}]"
    return re.sub(r"(\\[^s])|\\s", lambda part: part[1] or _SPACE, token) if token.startswith("[") else token
