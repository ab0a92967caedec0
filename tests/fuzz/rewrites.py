"""Rewritings of a program that never change an answer (metamorphic testing: queryFuzz).

    permuted      the literals of a body in another order
    redundant     an atom of a body once more
    split         some atoms of a body as a relation of their own
    halved        a rule twice: where a condition holds, and where it does not
    shuffled      the rules in another order

Relations that a rewriting adds have names of their own, `AUX` and a number; nobody compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from lftj.language import ast
from lftj.language.parse import parse
from lftj.language.text import to_text

AUX = "aux_"


def rewritten(text: str, rng: Random) -> tuple[str, list[str]]:
    """(the program after some rewritings, their names)."""
    program, done = parse(text), []
    for _ in range(rng.choice((1, 1, 2, 3))):
        rewrite = rng.choice(OF_NULL if "?" in text else REWRITES)
        items = rewrite(list(program.items), rng)
        if items is not None:
            program = replace(program, items=tuple(items))
            done.append(rewrite.__name__.strip("_"))
    return to_text(program), done


def _rules(items: list[ast.Item]) -> list[int]:
    return [i for i, item in enumerate(items) if isinstance(item, ast.Rule) and item.body]


def _nodes(node: object) -> Iterator[object]:
    """A node and all below it."""
    yield node
    if isinstance(node, tuple):
        for part in node:
            yield from _nodes(part)
    elif hasattr(node, "__dataclass_fields__"):
        for name in node.__dataclass_fields__:
            if name != "span":
                yield from _nodes(getattr(node, name))


def _names(node: object) -> dict[str, None]:
    return {found.name: None for found in _nodes(node) if isinstance(found, ast.Variable)}


def _plain_atoms(rule: ast.Rule) -> list[int]:
    """The positive atoms of a body whose arguments are variables, constants and wildcards."""
    plain = (ast.Variable, ast.Constant, ast.Wildcard)
    return [
        i
        for i, literal in enumerate(rule.body)
        if isinstance(literal, ast.Atom) and all(isinstance(arg, plain) for arg in literal.args)
    ]


def _permuted(items: list[ast.Item], rng: Random) -> list[ast.Item] | None:
    rules = _rules(items)
    if not rules:
        return None
    at = rng.choice(rules)
    rule = items[at]
    assert isinstance(rule, ast.Rule)
    body = list(rule.body)
    rng.shuffle(body)
    items[at] = replace(rule, body=tuple(body))
    return items


def _redundant(items: list[ast.Item], rng: Random) -> list[ast.Item] | None:
    found = [(i, atom) for i in _rules(items) for atom in _plain_atoms(items[i])]  # type: ignore[arg-type]
    if not found:
        return None
    at, atom = rng.choice(found)
    rule = items[at]
    assert isinstance(rule, ast.Rule)
    items[at] = replace(rule, body=(*rule.body, rule.body[atom]))
    return items


def _split(items: list[ast.Item], rng: Random) -> list[ast.Item] | None:
    found = [i for i in _rules(items) if _plain_atoms(items[i])]  # type: ignore[arg-type]
    if not found:
        return None
    at = rng.choice(found)
    rule = items[at]
    assert isinstance(rule, ast.Rule)
    atoms = _plain_atoms(rule)
    chosen = set(rng.sample(atoms, rng.randint(1, len(atoms))))
    moved = tuple(literal for i, literal in enumerate(rule.body) if i in chosen)
    rest = tuple(literal for i, literal in enumerate(rule.body) if i not in chosen)
    shared = [name for name in _names(moved) if name in _names((rule.heads, rest))]
    number = sum(1 for item in items if isinstance(item, ast.Rule))
    head = ast.Atom(f"{AUX}{number}_{rng.randrange(10**6)}", tuple(map(ast.Variable, shared)))
    items[at] = replace(rule, body=(head, *rest))
    return [*items, ast.Rule((head,), moved)]


def _halved(items: list[ast.Item], rng: Random) -> list[ast.Item] | None:
    declared = {item.name: item.attributes for item in items if isinstance(item, ast.Declaration)}
    found = [
        (i, arg, column.type)
        for i in _rules(items)
        for at in _plain_atoms(items[i])  # type: ignore[arg-type]
        for atom in [items[i].body[at]]  # type: ignore[union-attr]
        for arg, column in zip(atom.args, declared.get(atom.name, ()), strict=False)  # none of what `_split` added
        if isinstance(arg, ast.Variable)
    ]
    if not found:
        return None
    at, variable, type = rng.choice(found)
    rule = items[at]
    assert isinstance(rule, ast.Rule)
    ops = rng.choice((("=", "!="), ("<", ">="), (">", "<=")))
    other = rng.choice([arg for i, arg, other in found if (i, other) == (at, type)])
    halves = [replace(rule, body=(*rule.body, ast.Comparison(op, variable, other))) for op in ops]
    return [*items[:at], *halves, *items[at + 1 :]]


def _shuffled(items: list[ast.Item], rng: Random) -> list[ast.Item] | None:
    rules = [item for item in items if isinstance(item, ast.Rule)]
    rng.shuffle(rules)
    return [*(item for item in items if not isinstance(item, ast.Rule)), *rules]


Rewrite = Callable[[list[ast.Item], Random], "list[ast.Item] | None"]
REWRITES: tuple[Rewrite, ...] = (_permuted, _redundant, _split, _halved, _shuffled)
# Where a variable may be null: what is joined or compared is not.
OF_NULL: tuple[Rewrite, ...] = (_permuted, _shuffled)
