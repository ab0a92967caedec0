"""Reading the head of a subquery: where it has a row for the values of the query around, and where it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from lftj.language import ast
from lftj.sql.cases import joined
from lftj.sql.computed_columns import column_of
from lftj.sql.heads import or_null
from lftj.sql.query_scope import Derived, QueryParameter, QueryScope
from lftj.sql.scope import Case, Conjunction


def positive(scope: QueryScope, derived: Derived, given: Sequence[ast.Term]) -> list[Conjunction]:
    """Where the head has a row with the values `given`, which may be variables that it binds."""
    return [(*literals, ast.Atom(derived.rows.name, (*args, *given))) for literals, args in _read(scope, derived)]


def negative(scope: QueryScope, derived: Derived, given: Sequence[ast.Term] | None = None) -> list[Conjunction]:
    """Where the head has no row with the values `given`, or no row at all."""
    rest = [ast.Wildcard()] * len(derived.columns) if given is None else given
    found = []
    for literals, args in _read(scope, derived):
        atom = ast.Atom(derived.rows.name, (*args, *rest, *([ast.Wildcard()] if derived.rows.bag else [])))
        found.append((*literals, ast.Negation(atom)))
    return found


def _cases_of(scope: QueryScope, parameter: QueryParameter) -> list[Case]:
    """What a parameter is outside. Where that is null in some cases, a head has it: no literal has null for a term."""
    cases = list(parameter.outside)
    if all(case.term is not None for case in cases):
        return cases
    key = f"computed {parameter.variable.name}"
    if key not in scope.subqueries:
        scope.subqueries[key] = column_of(scope, cases)
    found: list[Case] = scope.subqueries[key]
    return found


def _read(scope: QueryScope, derived: Derived) -> Iterator[tuple[Conjunction, list[ast.Term]]]:
    """Each way to give the parameters of a head their values, with the literals that bind them."""
    for chosen in product(*(_cases_of(scope, parameter) for parameter in derived.parameters)):
        literals = joined(*(case.literals for case in chosen))
        if literals is None:
            continue
        args: list[ast.Term] = []
        for case, parameter in zip(chosen, derived.parameters, strict=True):
            if case.term is None:
                # Null that is computed: a variable that is null. Only a head over a domain has it.
                raise scope.source.unsupported(
                    f"a subquery over the computed column `{parameter.variable.name}`, which may be null",
                    parameter.node,
                    "leave null out in the subquery of `from` that has it, or compute it in this subquery",
                )
            args.append(case.term)
        yield (*literals, *or_null(scope.heads, args)), args
