"""The canonical leapfrog triejoin in plain Python: rows, and the number of steps it takes to find them.

A relation is a set of tuples, the keys under a prefix a sorted list. The state of a node is (candidate, turn, agree);
see lftj/join/triejoin.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Row = tuple[int, ...]
# relation, the columns by which it is read, variables of the atom in that order
Atom = tuple[str, tuple[int, ...], tuple[str, ...]]


@dataclass
class Leapfrog:
    """One join: `atoms` as they are read, in a key order of the variables."""

    atoms: Sequence[Atom]
    order: Sequence[str]
    relations: Mapping[str, set[Row]]
    steps: int = 0

    def participants(self, variable: str) -> list[Atom]:
        """The atoms' levels that bind `variable`, each once, first keys of a relation last."""
        paths: dict[Atom, None] = {}
        for relation, columns, variables in self.atoms:
            for level in range(len(variables)):
                paths.setdefault((relation, columns, variables[: level + 1]))
        found = [path for path in paths if path[2][-1] == variable]
        return sorted(found, key=lambda path: len(path[2]) == 1)

    def keys(self, participant: Atom, binding: Mapping[str, int]) -> list[int]:
        """The sorted keys a participant offers under the binding."""
        relation, columns, variables = participant
        level = len(variables) - 1
        prefix = tuple(binding[v] for v in variables[:level])
        rows = (tuple(row[c] for c in columns) for row in self.relations[relation])
        return sorted({row[level] for row in rows if row[:level] == prefix})

    def rows(self) -> list[Row]:
        """All bindings in key order; counts the steps."""
        return self.below({})

    def below(self, binding: dict[str, int]) -> list[Row]:
        if len(binding) == len(self.order):
            return [tuple(binding[v] for v in self.order)]
        variable = self.order[len(binding)]
        sets = [self.keys(p, binding) for p in self.participants(variable)]
        if not all(sets):
            return []
        # With several participants the landing of the first one is the node's opening.
        candidate, turn, agree = (sets[0][0], 1, 1) if len(sets) > 1 else (sets[0][0], 0, 0)
        found: list[Row] = []
        while True:
            self.steps += 1
            at = bisect_left(sets[turn], candidate)
            if at == len(sets[turn]):
                return found
            landed = sets[turn][at]
            agree = agree + 1 if landed == candidate else 1
            candidate, turn = landed, (turn + 1) % len(sets)
            if agree == len(sets):
                found += self.below({**binding, variable: landed})
                if landed == 2**63 - 1:  # no key can follow
                    return found
                candidate, agree = landed + 1, 0
