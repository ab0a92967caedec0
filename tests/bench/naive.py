"""A plain evaluator of benchmark patterns: nested loops over Python sets, no indexes, no cleverness."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection

from bench.pattern import Pattern

OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def answers(pattern: Pattern, relations: dict[str, Collection[tuple[int, ...]]]) -> set[tuple[int, ...]]:
    """All bindings of the pattern's variables, in `pattern.variables` order."""
    bindings: list[dict[str, int]] = [{}]
    for atom in pattern.atoms:
        bindings = [
            {**binding, **dict(zip(atom.variables, row, strict=True))}
            for binding in bindings
            for row in relations[atom.relation]
            if all(binding.get(v, key) == key for v, key in zip(atom.variables, row, strict=True))
        ]
    found = set()
    for binding in bindings:
        if all(
            OPERATORS[c.op](binding[c.left], binding[c.right] if c.right in binding else int(c.right))
            for c in pattern.comparisons
        ):
            found.add(tuple(binding[v] for v in pattern.variables))
    return found
