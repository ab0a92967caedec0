"""Questions that histories ask: bodies of literals, some of whose constants are values of parameters.

A question is a text in which the values are marked, as in `e(x, {3}), x < {-1}`: of the plain evaluator it is the body
of a rule with the values in their places, of the database `e(x, $p0), x < $p1`.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable
from random import Random
from typing import Any

from tests.engine import programs
from tests.mixed.programs import Mixed, Scope, lookup_test, negated, pick
from tests.plain.evaluate import Contents, World, derived
from tests.plain.syntax import Rule, parse

Row = tuple[Any, ...]
_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?u?')
_MARKED = re.compile(r'\{("(?:\\.|[^"\\])*"|[^}"]*)\}')


def make_question(rng: Random, mixed: Mixed) -> str:
    """Atoms, and conditions of their variables."""
    body = Scope()
    for _ in range(pick(rng, (1, 1, 2, 2, 3))):
        name = pick(rng, sorted(mixed.known))
        body.literals.append(programs.atom(rng, body, name, mixed.known[name]))
    for _ in range(pick(rng, (0, 0, 1, 2))):
        extra = pick(rng, (negated, negated, lookup_test, None))
        if extra is None or (extra is lookup_test and not body.bound):
            body.literals.append(programs.condition(rng, body))
        else:
            body.literals.append(extra(rng, mixed, body))
    text = ", ".join(body.literals)
    return _LITERAL.sub(lambda found: f"{{{found[0]}}}" if pick(rng, (True, False)) else found[0], text)


def as_written(question: str) -> str:
    """A question with its values in the text."""
    return _MARKED.sub(r"\1", question)


def with_parameters(question: str) -> tuple[str, dict[str, Any]]:
    """A question with parameters, and their values by name."""
    given: dict[str, Any] = {}

    def named(found: re.Match[str]) -> str:
        given[name := f"p{len(given)}"] = literal_eval(found[1].removesuffix("u"))
        return f"${name}"

    return _MARKED.sub(named, question), given


def meaning(lines: list[str], question: str, columns: Iterable[str] = ()) -> Rule:
    """A question as a rule; `lines`: the program's text · `columns`: variables, in the order of the answer's."""
    declared = [line for line in lines if line.startswith(".")]
    (rule,) = parse("\n".join([*declared, f"asked({', '.join(columns)}) :- {as_written(question)}."])).rules
    return rule


def answer(rule: Rule, contents: Contents) -> set[Row]:
    """The rows of a question."""
    world = World()
    for name, rows in contents.items():
        world.put(name, rows)
    return set(derived(rule, world))
