"""Null in a program that has none: columns that admit it, and literals and heads that ask for it.

The columns of base relations admit it here and there, those of heads where rules derive it, and some where they do
not. lftj says which programs are well formed; it refuses null for a column that does not admit it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
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
            found = [_tested(_asking(item, mixed, rng), rng) if isinstance(item, ast.Rule) else item for item in found]
        text = to_text(ast.Program(tuple(found)))
        if accepted(text):
            return replace(mixed, lines=text.splitlines())
    return mixed


def with_nulls(program: Program, name: str, rows: list[Row], rng: Random, *, alternatives: bool = False) -> list[Row]:
    """Rows with null in some of the columns that admit it, and without the number that has its code.

    With `alternatives` no column has it: lftj refuses it where one binds a variable to a column that admits null, and
    another to one that does not (docs/types.md).
    """

    def cell(value: Any, at: int, kind: str) -> Any:
        has_code = value == CODES.get(kind)
        if (name, at) not in program.nullable:
            return 0 if has_code and alternatives else value
        return None if has_code or not pick(rng, range(3)) else value

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


def _tested(node: Any, rng: Random) -> Any:
    """A rule with a literal more here and there: in its body, in braces, in what is negated."""
    if isinstance(node, tuple):
        return tuple(_tested(part, rng) for part in node)
    if not is_dataclass(node) or isinstance(node, ast.Declaration):
        return node
    parts = {f.name: _tested(getattr(node, f.name), rng) for f in fields(node) if f.name not in ("span", "value")}
    node = replace(node, **parts)  # type: ignore[type-var]
    if isinstance(node, ast.Rule | ast.Aggregate):
        return replace(node, body=_one_more(node.body, rng))
    if isinstance(node, ast.Negation) and isinstance(node.literal, ast.Disjunction):
        bodies = tuple(_one_more(body, rng) for body in node.literal.alternatives)
        return replace(node, literal=replace(node.literal, alternatives=bodies))
    return node


def _one_more(body: tuple[ast.Literal, ...], rng: Random) -> tuple[ast.Literal, ...]:
    atoms = [atom for atom in body if isinstance(atom, ast.Atom)]
    names = [arg for atom in atoms for arg in atom.args if isinstance(arg, ast.Variable)]
    if not names or pick(rng, range(3)):
        return body
    variable, test = pick(rng, names), pick(rng, TESTS)
    literal: ast.Literal = ast.Comparison(test.removeprefix("!"), variable, variable)
    return (*body, ast.Negation(literal) if test.startswith("!") else literal)
