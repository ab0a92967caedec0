"""What the translators of queries and of expressions tell each other.

An expression of SQL becomes *cases*: alternatives that exclude one another, each with the literals under which it holds
and the term that is the value there. A predicate becomes *conjunctions*: alternatives, each a tuple of literals. Both
stand in the body of a rule whose atoms bind the columns, so that a literal may name any variable of the scope.

    x + 1, x may be null      Case((), x + 1, "number", nullable=True)    a null operand gives null, where the engine
                              computes; else two cases: (!is_null(x),) -> x + 1 and (is_null(x),) -> null
    case when a > 0 then b else 'n' end
                              Case((a > 0,), b) · Case((a <= 0,), "n") · Case((is_null(a),), "n")

A `SqlScope` is what an expression can see: the columns of the query around it and of those around that, and subqueries.
Aggregates are replaced by columns before an expression is translated, so that a scope never sees one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from lftj.language import ast
from lftj.sql.places import SqlText

Conjunction = tuple[ast.Literal, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative of an expression: where `literals` hold, it has the value of `term` (None: null).

    `type`: without `?`; "" of a null whose type nothing tells · `nullable`: whether the value may be null.
    """

    literals: Conjunction
    term: ast.Term | None
    type: str
    nullable: bool

    @property
    def parts(self) -> tuple[ast.Literal | ast.Term, ...]:
        """The literals, and the term if there is one."""
        return self.literals if self.term is None else (*self.literals, self.term)


class SqlScope(Protocol):
    """What an expression can see, and where it is told from."""

    @property
    def source(self) -> SqlText:
        """The text, for errors: `raise scope.source.error(what, node, why=..., remedy=...)`."""

    def cases(self, node: exp.Column) -> list[Case]:
        """The value of a column: a variable, or what a subquery in `from` computes; an error if there is none."""

    def named(self, term: ast.Term) -> ast.Variable:
        """The variable that stands for a term, the same each time; whoever uses it says that they are equal."""

    def constants(self, values: Sequence[ast.Constant], type_: str) -> str:
        """The name of a relation with one column whose rows are these values: for `x in (1, 2, 3)`."""

    def computed_apart(self, values: list[list[Case]]) -> list[list[Case]]:
        """Values of many cases in an expression, each of one that a head has; as they are, where none can have them."""

    def scalar_subquery(self, node: exp.Subquery) -> list[Case]:
        """The value of `(select ...)` as an expression; one case is null, where there is no row."""

    def subquery(self, node: exp.Expr, truth: bool) -> list[Conjunction]:
        """Where a predicate over a subquery is true or, if not `truth`, false (which is not where it is unknown).

        `node` is the whole predicate: exp.Exists, exp.In with a query, or a comparison with exp.Any or exp.All. The
        alternatives exclude one another.
        """

    def by_case(self, node: exp.Expr) -> list[tuple[Conjunction, exp.Expr]]:
        """A predicate over a subquery for each case of the value that it compares, and where that is the value."""
