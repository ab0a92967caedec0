"""The TextMate grammar of the VS Code extension, run by a small tokenizer over the programs of the project.

Its patterns are in the subset of Oniguruma that Python's `re` shares. The measure is the parser's: what it reads as a
comment, a string or a number is coloured as one, and nothing else is.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.functors import CONSTRAINTS, FUNCTORS
from lftj.language.pieces import Piece, source_items
from tests.language.test_formatting import written

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "syntaxes" / "lftj.tmLanguage.json").read_text(encoding="utf-8"))

Rule = dict[str, Any]


def rules(patterns: list[Rule]) -> list[Rule]:
    """The patterns with includes put in their place."""
    flat: list[Rule] = []
    for rule in patterns:
        if "include" in rule:
            flat += rules([GRAMMAR["repository"][rule["include"][1:]]])
        elif "match" in rule or "begin" in rule:
            flat.append(rule)
        else:
            flat += rules(rule["patterns"])
    return flat


TOP = rules(GRAMMAR["patterns"])


def scopes(text: str) -> list[str]:
    """The innermost scope of each character, as an editor gives it line by line; "" if it has none."""
    found: list[str] = []
    open_rule: Rule | None = None
    for line in text.splitlines(keepends=True):
        colours = [""] * len(line)
        at = 0
        while at < len(line):
            if open_rule is None:
                matches = [
                    (match.start(), number) for number, rule in enumerate(TOP) if (match := first(rule, line, at))
                ]
                if not matches:
                    break
                rule = TOP[min(matches)[1]]
                match = first(rule, line, at)
                assert match is not None
                paint(colours, rule, match)
                open_rule = rule if "begin" in rule else None
            else:
                inner = [m for rule in rules(open_rule.get("patterns", [])) if (m := first(rule, line, at))]
                end = re.compile(open_rule["end"]).search(line, at)
                match = min([*inner, *([end] if end else [])], key=lambda one: one.start(), default=None)
                stop = match.end() if match else len(line)
                colours[at:stop] = [open_rule["name"]] * (stop - at)
                open_rule = None if match is end and end is not None else open_rule
                if match is None:
                    break
            at = max(match.end(), at + (match.end() == match.start()))
        found += colours
    return found


def first(rule: Rule, line: str, at: int) -> re.Match[str] | None:
    return re.compile(rule.get("match") or rule["begin"]).search(line, at)


def paint(colours: list[str], rule: Rule, match: re.Match[str]) -> None:
    for number, name in [
        (0, rule.get("name", "")),
        *((int(n), c["name"]) for n, c in rule.get("captures", {}).items()),
    ]:
        start, end = match.span(number)
        colours[start:end] = [name] * (end - start)


def scope(text: str, part: str) -> str:
    """The one scope of a part that stands once in a text, without `.lftj`."""
    assert text.count(part) == 1
    start = text.index(part)
    (name,) = set(scopes(text)[start : start + len(part)])
    return name.removesuffix(".lftj")


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        (".decl edge(a:number)", ".decl", "keyword.other.directive"),
        (".decl edge(a:number)", "edge", "entity.name.function.relation"),
        (".decl edge(a:number)", "number", "storage.type"),
        (".decl cost(a:number?) -> v : Price", "Price", "storage.type"),
        (".type Node <: number", "Node", "entity.name.type"),
        (".output tri", ".output", "keyword.other.directive"),
        ("tri(x) :- edge(x, _).", ":-", "keyword.operator.rule"),
        ("tri(x) :- edge(x, _).", "tri", "entity.name.function.relation"),
        ("tri(x) :- edge(x, _).", "_", "variable.language.wildcard"),
        ("tri(x) :- edge(x, y).", "y", "variable.other"),
        ("f[x] = n :- n = count : { e(x) }.", "count", "keyword.operator.aggregate"),
        ("f[x] = n :- n = max (y + 1) : { e(y) }.", "max", "keyword.operator.aggregate"),
        ("f[x] = quantile_disc(0.5) y : { e(x, y) }.", "quantile_disc(0.5)", "keyword.operator.aggregate"),
        ("p(z) :- q(x, y), z = max(x, y).", "max", "support.function"),
        ("p(count) :- q(count2).", "count2", "variable.other"),
        ("p(to_number(x)) :- q(x).", "to_number", "support.function"),
        ("p(x band 3) :- q(x).", "band", "keyword.operator.word"),
        ("p(x) :- !q(x).", "!", "keyword.operator.negation"),
        ("p(x) :- x != 1.", "!=", "keyword.operator.comparison"),
        ('p("a\\"b").', '\\"', "string.quoted.double"),
        ("p(@2024-05-01, 1).", "@2024-05-01", "constant.numeric.date"),
        ("p(@2024-05-01T12:30:00.5+02:00).", "@2024-05-01T12:30:00.5+02:00", "constant.numeric.date"),
        ("p(@1h30m, @-2d).", "@1h30m", "constant.numeric.duration"),
        ('p(@"6fa459ea-ee8a-3ca4-894e-db77e160355e").', "6fa459ea", "constant.other"),
        ('p(@x"00ff").', "00ff", "constant.other"),
        (".decl p(x:decimal(10, 2)?)", "decimal", "storage.type"),
        ("may($who, a).", "$who", "variable.parameter"),
        ("p(1.50d).", "1.50d", "constant.numeric"),
        ("p(0x1fu, 2).", "0x1fu", "constant.numeric"),
        ("p(1) :- q(1.0e-9).", "1.0e-9", "constant.numeric"),
        ("p(1). // p(2)", "// p(2)", "comment.line.double-slash"),
    ],
)
def test_scopes(text: str, part: str, expected: str) -> None:
    assert scope(text, part) == expected


# Tokens and how their scopes begin. No other token has such a scope.
EXPECTED = {
    "LINE_COMMENT": "comment.line",
    "BLOCK_COMMENT": "comment.block",
    "STRING": "string.quoted",
    **dict.fromkeys(("NUMBER", "UNSIGNED", "FLOAT", "DECIMAL", "DATE", "TIMESTAMP", "DURATION"), "constant.numeric"),
    **dict.fromkeys(("UUID", "BYTES"), "constant.other"),
    **dict.fromkeys(("_DECL", "TYPE", "DIRECTIVE"), "keyword.other.directive"),
}
# Tokens that hold several things, of which the parser says no more.
APART = (
    *("component", "PREPROCESSOR", "PRAGMA", "INCLUDE", "AGG", "PLAN", "ADDRESS", "USER_AGGREGATE", "LATTICE"),
    *("TYPE_ARGS", "BRANCH", "BRANCH_CALL", "INIT", "OVERRIDE", "FUNCTOR", "ONCE"),
)


def wrong(piece: Piece, colours: list[str]) -> bool:
    found = set(colours[piece.start : piece.start + len(piece.text)])
    if piece.kind in EXPECTED:
        return not all(name.startswith(EXPECTED[piece.kind]) for name in found)
    return any(name.startswith(tuple(EXPECTED.values())) for name in found)


def test_the_programs_of_the_project_are_coloured_as_they_are_read() -> None:
    bad = []
    for text in written():
        if "\r" in text:
            continue
        colours = scopes(text)
        pieces = (piece for item in source_items(text) for piece in item.pieces)
        bad += [(text, piece) for piece in pieces if piece.kind not in APART and wrong(piece, colours)]
    assert bad == []


def test_the_words_of_the_grammar_are_those_of_the_language() -> None:
    (counted, _, functors, _) = GRAMMAR["repository"]["words"]["patterns"]
    assert set(re.findall(r"[a-z_]+", re.search(r"\(\?:([a-z_|]+)\)", counted["match"])[1])) == set(AGGREGATES)  # type: ignore[index]
    named = re.search(r"\(\?:([a-z_|]+)\|to_\[a-z\]\+\)", functors["match"])[1].split("|")  # type: ignore[index]
    assert set(named) <= {*FUNCTORS, *CONSTRAINTS}
