"""Syntax errors in words: from the token a parser stumbled over and the ones it could have used to one `Diagnostic`.

The sentence says what was expected where the parser stood ("expected `.` or `:-` after the head"), not the list of
all terminals. Habits from other languages (`==`, `<-`, `not`, `&&`) get the lftj spelling as the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from lftj.errors import Diagnostic
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.diagnostics import did_you_mean
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
    "PATH": "a name",
    "KEY": "an option name",
    "STRING": "a string",
    "NUMBER": "a number",
    "CMP": "a comparison",
    "$END": "the end of the text",
}
_SHOWN_ORDER = list(_SHOWN.values())

# Each directive with the form in which it is written.
_DIRECTIVES = {
    "decl": ".decl name(column:type, ...)`, or with keys and a value `.decl name(key:type, ...) -> value:type",
    "type": ".type Name = base",
    "input": ".input name(option=value, ...)",
    "output": ".output name(option=value, ...)",
    "printsize": ".printsize name",
    "limitsize": ".limitsize name(n=rows)",
    "comp": ".comp Name { ... }",
    "init": ".init name = Component",
    "override": ".override name",
    "functor": ".functor name(type, ...):type",
    "pragma": '.pragma "name" "value"',
    "plan": ".plan 0:(1,2)",
    "include": '.include "file"',
    "once": ".once",
    "lattice": ".lattice Name<> { ... }",
    "number_type": ".number_type Name",
    "symbol_type": ".symbol_type Name",
}
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_QUALIFIERS = (
    *("brie", "btree", "inline", "no_inline", "magic", "no_magic", "input", "output", "printsize"),
    *("bag", "primary-key (...)", "view", "empty"),
)

_EVERY_CLAUSE = "every fact and every rule ends with a dot"
_ARROW = "no arrow of a rule"
_HEAD_AND_BODY = "a rule is written `head :- body.`"
# Habits of other languages: what the text looks like around the stumble -> why it is none of lftj's, the remedy.
_HABITS = (
    (re.compile(r"=="), "`=` compares: nothing is assigned in a rule", "equality is written `=`"),
    (re.compile(r"=<"), "the order of the two signs is that of Prolog", "at most is written `<=`"),
    (re.compile(r"<-|->|:=|=>|: -|\bif\b|\bwhere\b"), "`:-` stands between a head and its body", _HEAD_AND_BODY),
    (re.compile(r"&&|∧"), "a body is a list of conditions", "conditions are joined by `,`"),
    (re.compile(r"\|\||∨"), "a body is a list of conditions", "alternatives are separated by `;`"),
    (re.compile(r"<>|/=|≠|\\=|\\=="), "lftj takes the spelling of C and Souffle", "inequality is written `!=`"),
    (re.compile(r"\bnot\b|\\\+|~|¬"), "`!` stands before what is not to hold", "negation is written `!atom`"),
    (re.compile(r"\band\b"), "a body is a list of conditions", "conditions are joined by `,`"),
    (re.compile(r"\bor\b"), "a body is a list of conditions", "alternatives are separated by `;`"),
    (re.compile(r"\bis\b"), "arithmetic needs no word of its own", "a value is given by an equality: `z = x + 1`"),
    (re.compile(r"\bin\b"), "there are no lists of values", "write alternatives: `(x = 1 ; x = 2)`"),
    (
        re.compile(r"'"),
        "symbols are texts in double quotes, and what has no quotes is a variable",
        'a string is written with double quotes: "text"',
    ),
)
# The same of a whole line: what it looks like from its start.
_DATALOG = "a program consists of declarations, facts and rules: a head, `:-`, and conditions on relations"
_LINES = (
    (
        re.compile(r"\s*(?:select|with|from)\b(?!\s*\()", re.IGNORECASE),
        "this is SQL",
        _DATALOG,
        'give it to `db.sql`, or write `answer(x) :- edge(x, y), y > 1.` and read db["answer"]',
    ),
    (
        re.compile(r"\s*(?:create|drop|alter)\s+(?:table|view)\b", re.IGNORECASE),
        "this is SQL",
        _DATALOG,
        "give it to `db.sql`, or declare a relation: `.decl edge(src:number, dst:number)`; a view is a rule",
    ),
    (
        re.compile(r"\s*(?:insert\s+into|delete\s+from|update)\b", re.IGNORECASE),
        "this is SQL",
        _DATALOG,
        "give it to `db.sql`, or write a fact, `edge(1, 2).`, or change the rows by `db.load` or in a transaction",
    ),
    (re.compile(r"\s*(?:%|--)"), "this is no comment", "`%` and `-` are operators", "comments begin with `//`"),
    (
        re.compile(r"\s*decl\b"),
        "this is no declaration",
        "the words of declarations and directives begin with a dot",
        "it is written `.decl name(column:type, ...)`",
    ),
    (
        re.compile(r"\s*\?-|[^:]*\)\s*\?\s*\.?\s*$"),
        "this is a query, and a program holds none",
        "a program says what is derived; questions are asked of a database that has it",
        'ask `db.query("tri(1, y, z)")`',
    ),
    (
        re.compile(r"\s*[\w?]+\s*\([^()]*\)\s*(?:<-|:=|=>|->|<=|<--)"),
        _ARROW,
        "`:-` stands between a head and its body",
        _HEAD_AND_BODY,
    ),
)


def syntax_error(source: Source, start: int, end: int, expected: Collection[str], begin: int) -> Diagnostic:
    """The diagnostic for a stumble over `text[start:end]` (empty at the end) in a clause that starts at `begin`."""
    text = source.text
    last = begin + len(text[begin:start].rstrip())  # of what was read, whose line may be the strange one
    special = _broken_token(source, start, begin) or foreign(source, start) or foreign(source, max(begin, last - 1))
    special = special or _directive(source, start, begin)
    if special is not None:
        return special
    if start == end and (following := re.compile(r"\s*(\S{1,30})").match(text, end)):
        start, end = following.span(1)  # the piece ends here, the text goes on
    found = text[start:end]
    if found and found in ")]}" and "_DOT" in expected:
        what = f"syntax error: `{found}` closes nothing"
        return Diagnostic(
            what,
            source.span(start, end),
            why="no bracket of its kind is open here",
            remedy="drop it, or open the bracket it closes",
        )
    before = text[begin:start]
    what = f"syntax error: expected {_expectation(expected, before)}"
    what += f", found `{_short(found)}`" if found else ", found the end of the text"
    why, remedy = "", _form(text, begin, start) or _aggregate(text, begin, start)
    around = text[max(begin, start - 1) : start] + text[start : start + 2]
    line_start = text.rfind("\n", 0, start) + 1
    previous_word = re.search(r"[A-Za-z_]+\s*$", text[max(begin, line_start) : start])
    for pattern, reason, advice in _HABITS:
        if not remedy and (
            pattern.search(around)
            or (previous_word and pattern.fullmatch(previous_word[0].strip()))
            or pattern.fullmatch(found)
        ):
            why, remedy = reason, advice
            break
    else:
        stripped = before.rstrip()
        if (
            not remedy
            and "_DOT" in expected
            and "$END" not in expected
            and "\n" in before[len(stripped) :]
            and stripped
        ):
            line, _ = source.position(begin + len(stripped) - 1)
            why, remedy = _EVERY_CLAUSE, f"if the clause ends on line {line}, end it with `.`"
        elif not remedy and not found and "_DOT" in expected:
            why, remedy = _EVERY_CLAUSE, "end the clause with `.`"
    if not remedy:
        token = re.split(" after | at | or the end of the query", _expectation(expected, before))[0]
        remedy = f"write {token} here, or correct what stands before it"
    why = why or _why(before, found, expected)
    return Diagnostic(what=what, span=source.span(start, max(end, start + 1)), why=why, remedy=remedy)


def _why(before: str, found: str, expected: Collection[str]) -> str:
    """Why a clause of which `before` was read may not go on with `found`, or end ("")."""
    read = re.search(r"\S(?:.*\S)?\s*\Z", before)
    if read is None and "TYPE" not in expected:
        return "a query is conditions, such as `edge(x, y), x < y`"
    if read is None:
        return "a program is facts `p(1, 2).`, rules `head :- body.` and directives such as `.decl`"
    shown = read[0].strip()
    shown = f"`{shown if len(shown) <= 30 else f'...{shown[-30:]}'}`"
    return f"{shown} cannot go on with it" if found else f"{shown} is not complete"


def foreign(source: Source, start: int) -> Diagnostic | None:
    """What is said of the line at `start` if it is written in another language; None if it does not look so."""
    text = source.text
    line = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    for pattern, what, why, remedy in _LINES:
        if (match := pattern.match(text, line, len(text) if end < 0 else end)) is not None:
            at = line + len(match[0]) - len(match[0].lstrip())
            if what == _ARROW:
                arrow = re.findall(r"[<:=>-]+$", match[0])[0]
                at, what = match.end() - len(arrow), f"`{arrow}` is {what}"
            return Diagnostic(f"syntax error: {what}", source.span(at, match.end()), why=why, remedy=remedy)
    return None


def _form(text: str, begin: int, start: int) -> str:
    """The form of the directive in whose line the stumble is; empty if it is in none."""
    word = re.compile(r"\.([A-Za-z_]+)").match(text, begin)
    if word is None or word[1] not in _DIRECTIVES or "\n" in text[begin:start]:
        return ""
    if word[1] == "decl" and "->" in text[begin:start] and text.startswith(",", start):
        return "one value stands after the arrow; what else there is are keys, before it"
    return f"it is written `{_DIRECTIVES[word[1]]}`"


# What other languages call an aggregate.
_OTHER_WORDS = {"median": "quantile_cont(0.5)", "stddev": "stddev_samp", "variance": "var_samp"}


def _aggregate(text: str, begin: int, start: int) -> str:
    """How an aggregate is written, if the stumble is between a word and its braces."""
    if re.compile(r".*\bagg\s*<?", re.DOTALL).fullmatch(text, begin, start) and text.startswith("<", start):
        others = ", ".join(
            f"`{op}`" for op, spec in AGGREGATES.items() if op not in ("count", "sum") and not spec.by_counts
        )
        return f"it is written `agg<<n = count()>>`, or `agg<<s = sum(x)>>`; there are also {others}"
    for found in re.compile(r"([A-Za-z_]\w*)\b(?:\([\d.\s]*\))?([^:{}.,=<>\n]*):\s*\{").finditer(text, begin):
        if found.start() <= start <= found.end():
            word, operand = found[1], found[2].strip()
            if word in AGGREGATES and operand and not AGGREGATES[word].operand:
                return f"`{word}` takes no operand: it is written `n = {word} : {{ ... }}`"
            if word in AGGREGATES and not operand:
                part = "(0.5)" if AGGREGATES[word].by_counts else ""
                return f"`{word}` takes an operand: it is written `n = {word}{part} x : {{ ... }}`"
            if word in _OTHER_WORDS:
                return f"it is written `{_OTHER_WORDS[word]} x : {{ ... }}`"
            return did_you_mean(word, AGGREGATES, f"the aggregates are {', '.join(f'`{op}`' for op in AGGREGATES)}")
    return ""


def _directive(source: Source, start: int, begin: int) -> Diagnostic | None:
    """What is wrong with a clause that starts with a dotted word, where the grammar alone cannot say it well."""
    text = source.text
    word = re.compile(r"\.([A-Za-z_]+)").match(text, begin)
    if word is None:
        return None
    span = source.span(*word.span())
    if word[1] not in _DIRECTIVES:
        otherwise = f"the directives are {', '.join(f'`.{name}`' for name in list(_DIRECTIVES)[:5])}"
        return Diagnostic(
            f"unknown directive `{word[0]}`",
            span,
            why="a word behind a dot at the start of a clause is a directive",
            remedy=did_you_mean(word[0], [f".{name}" for name in _DIRECTIVES], otherwise),
        )
    if start == begin:  # the construct is one token, and was not recognised as such
        return Diagnostic(
            f"syntax error in `{word[0]}`",
            span,
            why="what follows the word is not what it takes",
            remedy=f"it is written `{_DIRECTIVES[word[1]]}`",
        )
    qualifier = re.compile(r"\.decl[^()]*\([^()]*\)(?:[ \t]+[\w-]+)*?[ \t]+([A-Za-z_-]+)\s*").fullmatch(
        text, begin, start
    )
    if qualifier and qualifier[1] not in _QUALIFIERS:
        remedy = did_you_mean(qualifier[1], _QUALIFIERS, f"the qualifiers are {', '.join(_QUALIFIERS)}")
        return Diagnostic(
            f"unknown qualifier `{qualifier[1]}`",
            source.span(*qualifier.span(1)),
            why=f"what stands behind the columns of a `.decl` is one of {', '.join(_QUALIFIERS)}",
            remedy=remedy,
        )
    return None


def _broken_token(source: Source, start: int, begin: int) -> Diagnostic | None:
    """A string or comment that is never closed, which would otherwise be reported as a mystery further on."""
    text = source.text
    if text.startswith('"', start) and not _STRING.match(text, start):
        return Diagnostic(
            "syntax error: this string is never closed",
            source.span(start, start + 1),
            why="all that follows would belong to it",
            remedy='close it with `"`',
        )
    for at in (start, start - 1):
        if at >= begin and text.startswith("/*", at):
            return Diagnostic(
                "syntax error: this comment is never closed",
                source.span(at, at + 2),
                why="all that follows would belong to it",
                remedy="close it with `*/`",
            )
    for match in _STRING.finditer(text, begin, start):
        if "\n" in match[0]:
            at = match.start()
            return Diagnostic(
                "syntax error: this string runs over the end of its line",
                source.span(at, at + 1),
                why="a string stands in one line",
                remedy='close it with `"`, and write a line break inside a string as `\\n`',
            )
    return None


def _expectation(expected: Collection[str], before: str) -> str:
    """The expected tokens in words, with where they are expected."""
    names = set(expected)
    if "$END" in names and "DIRECTIVE" not in names:  # only a query may end after a condition
        return "`,` or the end of the query"
    if "TYPE" in names:
        return "a declaration, a directive, a rule or a fact"
    if {"_DOT", "_IF"} <= names and ":-" not in before:
        return "`.` or `:-` after the head"
    if "_DOT" in names and ("_SEMI" in names or "_IF" in names):
        return "`,`, `;` or `.` after a condition of the body"
    if "_DOT" in names:
        return "`.` at the end of the clause"
    if "FLOAT" in names and "_RPAR" in names:
        return "a term or `)`"
    if "FLOAT" in names:
        return "a condition" if "_NOT" in names and not before.rstrip().endswith("(") else "a term"
    if "_RPAR" in names and "OPERATOR" in names:
        return "`,` or `)` after a term" if "_COMMA" in names else "`)`"
    shown = sorted({_SHOWN[name] for name in names if name in _SHOWN}, key=_SHOWN_ORDER.index)
    if not shown:
        return "something else here"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _short(text: str) -> str:
    """A token as it is quoted in a message: its first line, at most 30 characters."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= 30 else f"{line[:27]}..."
