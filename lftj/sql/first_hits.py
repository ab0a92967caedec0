"""Which of several conditions is the first that holds: of `case`, whose results stand behind it, and of `or`.

    case when a > 0 then 1 when b > 0 then 2 end      (a > 0) -> 1 · (a <= 0, b > 0) -> 2 · (is_null(a), b > 0) -> 2 ...

A condition over what may be null is missed in two ways, so that k of them are reached in 2^k. Where there are many,
heads have for each row which conditions hold (`computed_columns.py`), and k of them are reached in k ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import BOOL
from lftj.sql.cases import FALSE, FEW, TRUE, Translator, joined, products
from lftj.sql.scope import Case, Conjunction


class FirstHits:
    """Conditions in their order; each is hit where it is `wanted`, and missed otherwise."""

    def __init__(self, of: Translator, conditions: Sequence[exp.Expr], wanted: bool) -> None:
        self.of, self.conditions, self.wanted = of, conditions, wanted
        self._hits = [of.truth(condition, wanted) for condition in conditions]
        self._missed: dict[int, list[Conjunction]] = {}
        self._each = self._found(FEW)
        if self._each is None and self._computed_apart():
            self._each = self._found(None)

    def each(self) -> list[list[Conjunction]]:
        """For each condition the conjunctions where it is the first that is hit; all of all exclude one another."""
        if self._each is None:
            self._each = self._found(None)
            assert self._each is not None
        return self._each

    def none(self) -> list[Conjunction]:
        """Where all are missed."""
        return products([self._misses(at) for at in range(len(self.conditions))])

    def _misses(self, at: int) -> list[Conjunction]:
        if at not in self._missed:
            condition = self.conditions[at]
            self._missed[at] = self.of.truth(condition, not self.wanted) + self.of.truth(condition, None)
        return self._missed[at]

    def _found(self, most: int | None) -> list[list[Conjunction]] | None:
        """The result; None if conditions are reached in more than so many ways."""
        found: list[list[Conjunction]] = []
        reached = 0
        for at, alternatives in enumerate(self._hits):
            left = list(alternatives)
            for before in range(at):
                if any(joined(one, two) is not None for one in left for two in self._hits[before]):
                    left = products([left, self._misses(before)])
                    if most is not None and reached + len(left) > most:
                        return None
            found.append(left)
            reached += len(left)
        return found

    def _computed_apart(self) -> bool:
        """Let heads have which conditions hold; whether they can have any."""
        values = [
            [Case(literals, TRUE, BOOL, nullable=False) for literals in hits]
            + [Case(literals, FALSE, BOOL, nullable=False) for literals in self._misses(at)]
            for at, hits in enumerate(self._hits)
        ]
        columns = self.of.scope.computed_apart(values)
        for at, cases in enumerate(columns):
            if len(cases) == 1 and isinstance(cases[0].term, ast.Variable):
                self._hits[at] = [(ast.Comparison("=", cases[0].term, TRUE),)]
                self._missed[at] = [(ast.Comparison("=", cases[0].term, FALSE),)]
        return columns != values
