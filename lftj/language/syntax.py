"""Syntax errors in words: from the token a parser stumbled over and the ones it could have used to one `Diagnostic`.

The sentence says what was expected where the parser stood ("expected `.` or `:-` after the head"), not the list of
all terminals. Habits from other languages (`==`, `<-`, `not`, `&&`) get the lftj spelling as the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from lftj.errors import Diagnostic
from lftj.language.source import Source

_SHOWN = {
    "_DOT": "`.`",
    "_IF": "`:-`",
    "_COMMA": "`,`",
    "_SEMI": "`;`",
    "_LPAR": "`(`",
    "_RPAR": "`)`",
    "_LSQB": "`[`",
    "_RSQB": "`]`",
    "_LBRACE": "`{`",
    "_RBRACE": "`}`",
    "_EQUALS": "`=`",
    "_COLON": "`:`",
    "NAME": "a name",
    "DOTTED": "a name",
    "KEY": "an option name",
    "STRING": "a string",
    "NUMBER": "a number",
    "CMP": "a comparison",
    "$END": "the end of the text",
}
_SHOWN_ORDER = list(_SHOWN.values())

_DIRECTIVES = tuple(
    word
    for line in (
        "decl type input output printsize limitsize comp init override functor pragma plan",
        "include once lattice number_type symbol_type",
    )
    for word in line.split()
)

# Habits of other languages: what the text looks like around the stumble -> the remedy.
_HABITS = (
    (re.compile(r"=="), "equality is written `=`"),
    (re.compile(r"<-|<--|:=|=>"), "a rule is written `head :- body.`"),
    (re.compile(r"&&|∧"), "conditions are joined by `,`"),
    (re.compile(r"\|\||∨"), "alternatives are separated by `;`"),
    (re.compile(r"<>|/=|≠"), "inequality is written `!=`"),
    (re.compile(r"\bnot\b"), "negation is written `!atom`"),
    (re.compile(r"\band\b"), "conditions are joined by `,`"),
    (re.compile(r"\bor\b"), "alternatives are separated by `;`"),
    (re.compile(r"'[^'\n]*'"), 'a string is written with double quotes: "text"'),
)


def syntax_error(source: Source, start: int, end: int, expected: Collection[str], begin: int) -> Diagnostic:
    """The diagnostic for a stumble over `text[start:end]` (empty at the end) in a clause that starts at `begin`."""
    text = source.text
    special = _broken_token(source, start, begin) or _unknown_directive(source, begin)
    if special is not None:
        return special
    found = text[start:end]
    before = text[begin:start]
    what = f"syntax error: expected {_expectation(expected, before)}"
    what += f", found `{_short(found)}`" if found else ", found the end of the text"
    remedy = ""
    around = text[max(begin, start - 1) : start] + text[start : start + 2]
    line_start = text.rfind("\n", 0, start) + 1
    previous_word = re.search(r"[A-Za-z_]+\s*$", text[max(begin, line_start) : start])
    for pattern, advice in _HABITS:
        if (
            pattern.search(around)
            or (previous_word and pattern.fullmatch(previous_word[0].strip()))
            or pattern.fullmatch(found)
        ):
            remedy = advice
            break
    else:
        stripped = before.rstrip()
        if "_DOT" in expected and "\n" in before[len(stripped) :] and stripped:
            line, _ = source.position(begin + len(stripped) - 1)
            remedy = f"if the clause ends on line {line}, end it with `.`"
    return Diagnostic(what=what, span=source.span(start, max(end, start + 1)), remedy=remedy)


def _unknown_directive(source: Source, begin: int) -> Diagnostic | None:
    """A clause that starts with a dotted word that nobody knows."""
    word = re.match(r"\.([A-Za-z_]+)", source.text[begin : begin + 80])
    if word is None or word[1] in _DIRECTIVES:
        return None
    near = get_close_matches(word[1], _DIRECTIVES, 1)
    remedy = (
        f"did you mean `.{near[0]}`?" if near else f"the directives are {', '.join(f'`.{d}`' for d in _DIRECTIVES[:5])}"
    )
    return Diagnostic(f"unknown directive `{word[0]}`", source.span(begin, begin + len(word[0])), remedy=remedy)


def _broken_token(source: Source, start: int, begin: int) -> Diagnostic | None:
    """A string or comment that is never closed, which would otherwise be reported as a mystery further on."""
    text = source.text
    if text.startswith('"', start):
        return Diagnostic(
            "syntax error: this string is never closed", source.span(start, start + 1), remedy='close it with `"`'
        )
    for at in (start, start - 1):
        if at >= begin and text.startswith("/*", at):
            return Diagnostic(
                "syntax error: this comment is never closed", source.span(at, at + 2), remedy="close it with `*/`"
            )
    for match in re.finditer(r'"(?:\\.|[^"\\])*"', text[begin:start], re.DOTALL):
        if "\n" in match[0]:
            at = begin + match.start()
            return Diagnostic(
                "syntax error: this string runs over the end of its line",
                source.span(at, at + 1),
                remedy='close it with `"`, and write a line break inside a string as `\\n`',
            )
    return None


def _expectation(expected: Collection[str], before: str) -> str:
    """The expected tokens in words, with where they are expected."""
    names = set(expected)
    if {"$END", "_COMMA"} <= names:
        return "`,` or the end of the query"
    if {"_DOT", "_IF"} <= names:
        return "`.` or `:-` after the head"
    if "_DOT" in names and "_SEMI" in names:
        return "`,`, `;` or `.` after a condition of the body"
    if "_DOT" in names:
        return "`.` at the end of the clause"
    if "STRING" in names and "NAME" in names and "_RPAR" in names:
        return "a term or `)`"
    if "STRING" in names and "NAME" in names:
        return "a condition" if "_NOT" in names and not before.rstrip().endswith("(") else "a term"
    if "_RPAR" in names and "OPERATOR" in names:
        return "`,` or `)` after a term" if "_COMMA" in names else "`)`"
    if "CMP" in names and "OPERATOR" in names:
        return "a comparison such as `=` or `<` after a term"
    if "TYPE" in names and "NAME" in names:
        return "a declaration, a directive, a rule or a fact"
    shown = sorted({_SHOWN[name] for name in names if name in _SHOWN}, key=_SHOWN_ORDER.index)
    if not shown:
        return "something else here"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _short(text: str) -> str:
    """A token as it is quoted in a message: its first line, at most 30 characters."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= 30 else f"{line[:27]}..."
