"""The rest of a body: a clause without some of its terms, and without what needs them.

    p(x) :- e(x, y), f(x), z = 10 / y, z > 1.

Where `10 / y` has no value its rest is `e(x, y), f(x), y = 0`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from lftj.language.clause import Apply, Clause, Compare, Term, Value, Var, names_of
from lftj.language.functors import TEXT_TESTS
from lftj.plan.partial_functions import UNDEFINED, term_of_test


def rest_of(clause: Clause, without: tuple[Apply, ...]) -> Clause | None:
    """`clause` where the terms `without` have no value, without what needs them; None if they need each other.

    Its head holds the variables that atoms and conditions connect to those of the terms.
    """
    rest = without_terms(clause, without)
    if rest is None:
        return None
    scopes = [names_of(*atom.args) for atom in (*rest.atoms, *rest.negated)]
    scopes += [names_of(c.left, c.right) for c in rest.compares]
    scopes += [names_of(*without)]
    connected, grew = scopes[-1], True
    while grew:
        grown = connected.union(*(s for s in scopes if s & connected))
        grew, connected = grown != connected, grown
    head = tuple(var for name, var in bound_in(rest).items() if name in connected)
    return replace(rest, head_args=head)


def without_terms(clause: Clause, without: tuple[Apply, ...]) -> Clause | None:
    """`clause` where the terms `without` have no value, without what needs them or a variable that nothing binds.

    None if the terms need each other. Its head is left to the caller.
    """
    rest = _leaving_out(clause, without)
    if not names_of(*without) <= bound_in(rest).keys():
        return None
    return replace(rest, compares=(*rest.compares, *map(_no_value, without)))


def relaxed(clause: Clause, without: Collection[Apply], undecided: Collection[Apply]) -> list[Clause]:
    """What holds if the rest holds where `without`, and any others of the terms `undecided`, have no value.

    As clauses without a head, for parts of the body that no equation and no atom connects: were the parts joined, as
    many rows as the product of theirs might have to be tried. Conditions on two parts are left out, too.
    """
    rest = _leaving_out(clause, {*without, *undecided})
    bound = bound_in(rest).keys()
    compares = (*rest.compares, *(_no_value(term) for term in without if names_of(term) <= bound))
    scopes = [names_of(*atom.args) for atom in rest.atoms]
    scopes += [names_of(c.left, c.right) for c in compares if c.op in ("=", UNDEFINED)]
    parts: list[set[str]] = []
    for scope in filter(None, scopes):
        apart = [part for part in parts if part.isdisjoint(scope)]
        parts = [*apart, scope.union(*(part for part in parts if part not in apart))]
    return [
        replace(
            rest,
            head_args=(),
            atoms=tuple(atom for atom in rest.atoms if names_of(*atom.args) <= part),
            negated=tuple(atom for atom in rest.negated if names_of(*atom.args) <= part),
            compares=tuple(c for c in compares if names_of(c.left, c.right) <= part),
        )
        for part in parts or [set()]
    ]


def terms_of(compare: Compare) -> Iterator[Term]:
    """All terms within a comparison."""

    def within(term: Term) -> Iterator[Term]:
        yield term
        if isinstance(term, Apply):
            for arg in term.args:
                yield from within(arg)

    yield from within(compare.left)
    yield from within(compare.right)
    if compare.op in TEXT_TESTS:
        yield term_of_test(compare)


def bound_in(clause: Clause) -> dict[str, Var]:
    """The variables that the atoms and comparisons of a clause bind, in its order."""
    names = {v.name for atom in clause.atoms for v in atom.args if isinstance(v, Var)}
    grew = True
    while grew:
        grew = False
        for c in clause.compares:
            for side, other in ((c.left, c.right), (c.right, c.left)):
                known = c.op == "=" and names >= names_of(other)
                if known and isinstance(side, Var) and side.name not in names:
                    names.add(side.name)
                    grew = True
    return {v.name: v for v in clause.variables() if v.name in names}


def _leaving_out(clause: Clause, terms: Collection[Apply]) -> Clause:
    """`clause` without what needs one of the `terms`, or a variable that nothing binds then."""
    left_out = set(terms)
    compares = [c for c in clause.compares if left_out.isdisjoint(terms_of(c))]
    bound = bound_in(replace(clause, compares=tuple(compares))).keys()
    compares = [c for c in compares if names_of(c.left, c.right) <= bound]
    negated = tuple(atom for atom in clause.negated if names_of(*atom.args) <= bound)
    # Rule 0: what is asked for the rule (key orders) names variables that may be missing here.
    return replace(clause, compares=tuple(compares), negated=negated, aggregate=None, rule=0)


def _no_value(term: Apply) -> Compare:
    """The condition that `term` has no value while its arguments have one."""
    if term.op in ("/", "%") and term.type != "float":
        # As an equation it may bind the divisor, and the rest is found by a lookup.
        return Compare("=", term.args[1], Value(0, term.args[1].type))
    return Compare(UNDEFINED, term, term)
