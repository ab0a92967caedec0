"""What a recursive component may hold: joins, filters, arithmetic; negation and aggregates over what lies below.

Refused by name, since they are not evaluated yet: a functional predicate that is derived from itself (each of its keys
would have to keep one value through the rounds) without a minimum or maximum that says which value stands (min_max.py)
or whose keys come from rows outside (acyclic.py), and texts computed in a clause of best values that reads its own
component. A component in which no rule says what type a column has derives nothing at all; that is a mistake.

Runs after the types are inferred: `to_number` computes with a text or does not, by the type of its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lftj.errors import Span
from lftj.language import ast
from lftj.language.clause import INTERNAL, Apply, Clause, Term, Var, names_of
from lftj.language.cycles import shown
from lftj.language.diagnostics import Findings
from lftj.language.functors import FUNCTORS, TEXT_TESTS
from lftj.language.infer import TypedClause
from lftj.language.names import Names
from lftj.language.stratify import cycle
from lftj.language.visitors import subterms


def refuse_functional(
    recursive: Iterable[tuple[str, ...]],
    reads: Mapping[str, Iterable[str]],
    functional: Callable[[str], bool],
    places: Mapping[str, Span],
    findings: Findings,
) -> None:
    """Report the functional predicates that are derived from themselves. `places`: a head of each."""
    for component in recursive:
        for name in component:
            if functional(name) and not name.startswith(INTERNAL):
                around = cycle((name, *(member for member in component if member != name)), reads)
                findings.unsupported(
                    f"functional predicate `{name}` in recursion ({shown(around)})",
                    places[name],
                    remedy="derive a relation, and the functional predicate from it, or say which value stands: "
                    f"`{name}[...] = min ... : {{ ... }}`",
                )


def refuse_texts(
    recursive: Iterable[tuple[str, ...]], typed: Sequence[TypedClause], before: Sequence[Clause], findings: Findings
) -> None:
    """Report the texts that are computed in clauses of best values, new or in the database, that read their component.

    Clauses that start a recursion may compute them.
    """
    best = {clause.head for clause in before if clause.best} | {clause.head.name for clause in typed if clause.best}
    member = {name: component for component in recursive if not best.isdisjoint(component) for name in component}
    for clause in typed:
        component = member.get(clause.head.name, ())
        if any(atom.name in component for atom in clause.body.atoms):
            for what, span in _texts(clause):
                _refuse(what, span, clause.rule.heads[0].name, findings)
    for known in before:
        component = member.get(known.head, ())
        if any(atom.predicate in component for atom in known.atoms):
            for what in _known_texts(known):
                _refuse(what, known.span, known.head, findings)


def warn_of_products(recursive: Iterable[tuple[str, ...]], clauses: Sequence[Clause], findings: Findings) -> None:
    """Warn where a recursive relation holds a product of values, but not what tells two ways to it apart.

    A relation is a set: two ways with the same product are one row, and a sum over them is too small.
    """
    member = {name: component for component in recursive for name in component}
    for clause in clauses:
        component = member.get(clause.head, ())
        own = [atom for atom in clause.atoms if atom.predicate in component]
        others = [atom for atom in clause.atoms if atom.predicate not in component]
        if clause.best or clause.head.startswith(INTERNAL) or not own or not others:
            continue
        ways = names_of(*(arg for atom in own for arg in atom.args))
        ways &= names_of(*(arg for atom in others for arg in atom.args))
        defined = {c.left.name: c.right for c in clause.compares if c.op == "=" and isinstance(c.left, Var)}
        terms = [defined.get(term.name, term) if isinstance(term, Var) else term for term in clause.head_args]
        products = [term for term in terms if isinstance(term, Apply) and term.op == "*" and len(names_of(term)) > 1]
        dropped = sorted(ways - names_of(*clause.head_args))
        if products and dropped:
            findings.warning(
                f"`{clause.head}` holds the product `{products[0]}`, and not `{dropped[0]}`, by which its ways differ",
                clause.span,
                why="a relation is a set: two ways with the same product are one row, and a sum over them is too small",
                remedy=f"keep `{dropped[0]}` as a column, or sum the products key by key: "
                f"`{clause.head}[...] = sum ... : {{ ... }}`",
                predicate=clause.head,
            )


def refuse_untyped(recursive: Iterable[tuple[str, ...]], names: Names, findings: Findings) -> None:
    """Report columns that have no type after inference. Of what is derived from nothing but itself, none has."""
    for component in recursive:
        for name in component:
            relation = names.relations.get(name)
            if relation is None or relation.origin != "derived" or None not in relation.types:
                continue
            findings.error(
                f"the type of column {relation.types.index(None) + 1} of `{name}` is not known",
                relation.span,
                why="every rule takes its values from the recursion itself, so no row can be derived",
                remedy=f"declare `{name}`, or add a rule that starts the recursion",
                predicate=name,
            )
            break


def _refuse(what: str, span: Span, head: str, findings: Findings) -> None:
    findings.unsupported(
        f"`{what}`, a text computed in a recursion of least or greatest values",
        span,
        remedy=f"compute it outside: in a relation below the recursion that `{head}` reads, or above it",
    )


def _texts(clause: TypedClause) -> Iterator[tuple[str, Span]]:
    """What computes with texts in a clause, and where."""
    terms: list[ast.Term] = [
        arg for atom in (clause.head, *clause.body.atoms, *clause.body.negated) for arg in atom.args
    ]
    for compare in clause.body.compares:
        if compare.op in TEXT_TESTS:
            yield compare.op.removeprefix("not_"), compare.span
        terms += [compare.left, compare.right]
    for term in terms:
        for part in subterms(term):
            if not isinstance(part, ast.Functor) or part.name not in FUNCTORS or not part.args:
                continue
            if FUNCTORS[part.name].computes_text(clause.type_of(part.args[0])):
                yield part.name, part.span


def _known_texts(clause: Clause) -> Iterator[str]:
    """What computes with texts in a clause of the database; its atoms hold no expressions."""
    yield from (c.op.removeprefix("not_") for c in clause.compares if c.op in TEXT_TESTS)
    waiting: list[Term] = [*clause.head_args, *(term for c in clause.compares for term in (c.left, c.right))]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Apply):
            if FUNCTORS[term.op].computes_text(term.args[0].type):
                yield term.op
            waiting += term.args
