"""What translators of queries ask of an expression: its cases, and where it is true, false or unknown."""

from __future__ import annotations

from sqlglot import exp

from lftj.language import ast
from lftj.sql import predicates, scalars
from lftj.sql.cases import Known, Truth, of_few_cases
from lftj.sql.conversions import cast
from lftj.sql.scope import Case, Conjunction, SqlScope


class Expressions:
    """The translator of expressions in one scope.

    Each part is translated once: where a predicate is true, false and unknown is asked of it apart, and of each part of
    it again, which would triple the work at each level of a nest.
    """

    def __init__(self, scope: SqlScope) -> None:
        self.scope = scope
        self._values: dict[exp.Expr, list[Case]] = {}
        self._truths: dict[tuple[exp.Expr, Truth], list[Conjunction]] = {}

    def value(self, node: exp.Expr) -> list[Case]:
        """The cases of an expression; they exclude one another."""
        if node not in self._values:
            self._values[node] = of_few_cases(self, scalars.value(self, node))
        return list(self._values[node])

    def cast(self, value: Known, type: str, node: exp.Expr) -> ast.Term:
        """A value as one of another type; an error if there is no such cast."""
        return cast(value.term, value.type, type, node, self.scope.source)

    def truth(self, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
        """Where a predicate is true, false or (None) unknown; the alternatives exclude one another."""
        if (node, wanted) not in self._truths:
            self._truths[node, wanted] = predicates.truth(self, node, wanted)
        return list(self._truths[node, wanted])


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that `and` joins; those over subqueries last, which are asked for what the others leave."""
    parts = list(node.flatten()) if isinstance(node, exp.And) else [node]
    return sorted(parts, key=lambda part: part.find(exp.Query) is not None)


def value(node: exp.Expr, scope: SqlScope) -> list[Case]:
    """The cases of an expression, of one type; they exclude one another."""
    return Expressions(scope).value(node)


def holds(node: exp.Expr, scope: SqlScope) -> list[Conjunction]:
    """Where a predicate is true, in alternatives that exclude one another."""
    return Expressions(scope).truth(node, True)
