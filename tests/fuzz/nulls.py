"""Null in a program that has none: columns that admit it, and literals and heads that ask for it.

The columns of base relations admit it here and there, those of heads where rules derive it, and some where they do
not. lftj says which programs are well formed; it refuses null for a column that does not admit it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from lftj.language import ast
from lftj.language.parse import parse
from lftj.language.text import to_text
from tests.fuzz.accepted import accepted
from tests.mixed.programs import Mixed, pick
from tests.plain.syntax import Program

Row = tuple[Any, ...]
# What a rule may ask of a variable.
TESTS = ("is_null", "!is_null", "or_null", "or_null")
# The numbers whose codes are those of null.
CODES = {"number": -(2**63), "unsigned": 2**64 - 1}


def admitting_null(mixed: Mixed, rng: Random) -> Mixed:
    """The program with null, if it can have it."""
    items = parse(mixed.text).items
    for every, asked in ((False, True), (True, True), (True, False)):
        found = [_with_null(item, mixed, rng, every=every) for item in items]
        if asked:
            found = [_asking(item, mixed, rng) if isinstance(item, ast.Rule) else item for item in found]
        text = to_text(ast.Program(tuple(found)))
        if asked:
            text = "".join(f"{line}\n" for line in _testing(text, rng))
        if accepted(text):
            return replace(mixed, lines=text.splitlines())
    return mixed


def with_nulls(program: Program, name: str, rows: list[Row], rng: Random) -> list[Row]:
    """Rows with null in some of the columns that admit it, and without the number that has its code."""

    def cell(value: Any, at: int, kind: str) -> Any:
        if (name, at) not in program.nullable:
            return value
        return None if value == CODES.get(kind) or not pick(rng, range(3)) else value

    kinds = program.kinds[name]
    return [tuple(cell(value, i, kinds[i]) for i, value in enumerate(row)) for row in rows]


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows in an order that null has a place in."""
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def _with_null(item: ast.Item, mixed: Mixed, rng: Random, *, every: bool) -> ast.Item:
    """A declaration with columns that admit null; `every`: all those of heads do."""
    if not isinstance(item, ast.Declaration):
        return item
    admits = [(every and item.name not in mixed.base) or pick(rng, (True, False)) for _ in item.attributes]
    types = [f"{a.type}?" if admit else a.type for a, admit in zip(item.attributes, admits, strict=True)]
    return replace(
        item, attributes=tuple(replace(a, type=type) for a, type in zip(item.attributes, types, strict=True))
    )


def _asking(rule: ast.Rule, mixed: Mixed, rng: Random) -> ast.Rule:
    """A rule with null, or with what stands for it, in its head."""
    (head,) = rule.heads
    if not isinstance(head, ast.Atom) or not head.args or not rule.body or pick(rng, range(4)):
        return rule
    bound = dict(_typed(rule, mixed))
    at = pick(rng, range(len(head.args)))
    arg = head.args[at]
    if not pick(rng, range(4)):
        term: ast.Term = ast.Constant(None, "")
    elif isinstance(arg, ast.Variable) and arg.name in bound:
        others = [name for name, kind in bound.items() if kind == bound[arg.name]]
        term = ast.Functor("coalesce", (arg, ast.Variable(pick(rng, others))))
    else:
        return rule
    return replace(rule, heads=(replace(head, args=(*head.args[:at], term, *head.args[at + 1 :])),))


def _typed(rule: ast.Rule, mixed: Mixed) -> Iterator[tuple[str, str]]:
    """The variables of atoms that hold, with their types."""
    for atom in rule.body:
        if isinstance(atom, ast.Atom):
            for arg, kind in zip(atom.args, mixed.known[atom.name], strict=True):
                if isinstance(arg, ast.Variable):
                    yield arg.name, kind


def _testing(text: str, rng: Random) -> Iterator[str]:
    """The lines of a program, some with a literal more."""
    rules = [item for item in parse(text).items if isinstance(item, ast.Rule)]
    for line in text.splitlines():
        if ":- " in line:
            names = [
                arg.name
                for atom in rules[0].body
                if isinstance(atom, ast.Atom)
                for arg in atom.args
                if isinstance(arg, ast.Variable)
            ]
            if names and not pick(rng, range(3)):
                line = f"{line[:-1]}, {pick(rng, TESTS)}({pick(rng, names)})."
        if not line.startswith("."):
            del rules[:1]
        yield line
