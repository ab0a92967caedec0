"""Redundant atoms and rules: what the groups of an aggregate say already.

    deg(x, n) :- e(x, _), n = count : { e(x, _) }.
      ->   deg(x, n) :- e(x, _), @deg.1(x, n).                 aggregates.py; every group has a row of e,
           deg(x, n) :- e(x, _), !@deg.1(x, _), n = 0.         and every row of e is in a group
      ->   deg(x, n) :- @deg.1(x, n).

A body is contained in another if the other can be mapped to it, atom by atom (containment of conjunctive queries;
Chandra and Merlin, STOC 1977). So a rule for the groups without a binding goes where its body contains, in this sense,
what the braces ask for, and an atom goes that the braces ask for in the same words, if the rule needs nothing else of
it. What only such rules read (`@p.1.groups`, `@p.1.with0`) goes with them.

Groups that may be null are left as they are: null in braces matches nothing outside of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lftj.language.clause import INTERNAL, BodyAtom, Clause, Plain, Term, Var, names_of
from lftj.language.internal_relations import GROUPS, WITH_ZERO
from lftj.values.schema import Schema
from lftj.values.type_table import is_nullable

Bindings = Mapping[str, Plain | None]


def without_redundant(clauses: Sequence[Clause], schemas: Mapping[str, Schema]) -> list[Clause]:
    """The clauses of checked rules without those that derive nothing, and without atoms that change nothing."""
    braces = {c.head: c for c in clauses if _says_its_groups(c, schemas)}
    if not braces:
        return list(clauses)
    asked = {c.head: c for c in clauses if c.head.endswith(GROUPS)}
    several = Counter(c.head for c in clauses)
    groups = {name: clause for name, clause in asked.items() if several[name] == 1}
    kept = [clause for clause in clauses if not _derives_nothing(clause, braces, groups)]
    kept = _without_zeros(kept)
    return [_without_atoms(clause, braces, schemas) for clause in kept]


def _says_its_groups(clause: Clause, schemas: Mapping[str, Schema]) -> bool:
    """Whether a clause is an aggregate in braces, whose groups are different variables that are not null."""
    if clause.aggregate is None or not clause.head.startswith(INTERNAL) or clause.acyclic or clause.or_null:
        return False
    groups = clause.head_args[: clause.aggregate.groups]
    types = schemas[clause.head].types
    names = {term.name for term in groups if isinstance(term, Var)}
    return len(names) == len(groups) and not any(map(is_nullable, types))


# -- rules for groups without a binding -------------------------------------------------------------------------------


def _derives_nothing(clause: Clause, braces: Mapping[str, Clause], groups: Mapping[str, Clause]) -> bool:
    """Whether a clause asks for groups without a binding, and its body has one for each."""
    if clause.or_null:
        return False
    for absent in clause.negated:
        inner = braces.get(absent.predicate)
        if inner is None or inner.compares or inner.negated:
            continue
        given = dict(zip(_names(inner), absent.args, strict=False))
        atoms = [atom for read in clause.atoms for atom in _written_out(read, groups)]
        if any(True for _ in _mappings(inner.atoms, atoms, given)):
            return True
    return False


def _names(inner: Clause) -> list[str]:
    """The names of the variables that are the groups."""
    assert inner.aggregate is not None
    return [term.name for term in inner.head_args[: inner.aggregate.groups] if isinstance(term, Var)]


def _written_out(atom: BodyAtom, groups: Mapping[str, Clause]) -> Sequence[BodyAtom]:
    """The atoms that an atom over the groups asked for stands for; their other variables are wildcards."""
    clause = groups.get(atom.predicate)
    if clause is None:
        return (atom,)
    given = {arg.name: term for arg, term in zip(clause.head_args, atom.args, strict=True) if isinstance(arg, Var)}
    found = []
    for read in clause.atoms:
        args = tuple(given.get(arg.name) if isinstance(arg, Var) else arg for arg in read.args)
        found.append(replace(read, args=args))
    return found


def _mappings(inner: Sequence[BodyAtom], outer: Sequence[BodyAtom], given: Bindings) -> Iterator[Bindings]:
    """The ways to map each atom of `inner` to one of `outer`, by what its variables stand for; `given`: those known."""
    if not inner:
        yield given
        return
    first, *rest = inner
    for atom in outer:
        if atom.predicate == first.predicate and (found := _matched(first.args, atom.args, given)) is not None:
            yield from _mappings(rest, outer, found)


def _matched(pattern: Sequence[Plain | None], args: Sequence[Plain | None], given: Bindings) -> Bindings | None:
    """What the variables of a pattern stand for where it becomes `args`; None if it does not."""
    found = dict(given)
    for one, other in zip(pattern, args, strict=True):
        if one is None:
            continue
        if isinstance(one, Var):
            # A wildcard stands for some value, and no other wildcard for the same.
            if one.name not in found:
                found[one.name] = other
            elif other is None or found[one.name] != other:
                return None
        elif one != other:
            return None
    return found


def _without_zeros(clauses: Sequence[Clause]) -> list[Clause]:
    """The clauses, each reading an aggregate itself where the relation with its zeros has none; what nobody reads goes.

    `clauses` are all that read internal relations of theirs.
    """
    several = Counter(clause.head for clause in clauses)
    same = {c.head: c.atoms[0].predicate for c in clauses if c.head.endswith(WITH_ZERO) and several[c.head] == 1}
    read = [_renamed(clause, same) for clause in clauses if clause.head not in same]
    needed = {name for clause in read for name in clause.reads}
    return [clause for clause in read if not clause.head.endswith(GROUPS) or clause.head in needed]


def _renamed(clause: Clause, names: Mapping[str, str]) -> Clause:
    if names.keys().isdisjoint(clause.reads):
        return clause
    atoms = tuple(replace(atom, predicate=names.get(atom.predicate, atom.predicate)) for atom in clause.atoms)
    negated = tuple(replace(atom, predicate=names.get(atom.predicate, atom.predicate)) for atom in clause.negated)
    return replace(clause, atoms=atoms, negated=negated)


# -- atoms that hold for every group ----------------------------------------------------------------------------------


def _without_atoms(clause: Clause, braces: Mapping[str, Clause], schemas: Mapping[str, Schema]) -> Clause:
    """The clause without atoms that hold for every group of an aggregate that it reads."""
    if clause.aggregate is not None or clause.best or clause.acyclic or clause.or_null or schemas[clause.head].bag:
        return clause
    reads = [(read, braces[read.predicate]) for read in clause.atoms if read.predicate in braces]
    kept = tuple(
        atom
        for atom in clause.atoms
        if not any(atom is not read and _holds_for_groups(clause, atom, read, inner) for read, inner in reads)
    )
    return replace(clause, atoms=kept) if len(kept) < len(clause.atoms) else clause


def _holds_for_groups(clause: Clause, atom: BodyAtom, read: BodyAtom, inner: Clause) -> bool:
    """Whether an atom of a clause is one of the braces of an aggregate that the clause reads."""
    outside = dict(zip(_names(inner), read.args, strict=False))
    used = _used(clause, atom)
    own = {arg.name: arg for arg in atom.args if isinstance(arg, Var) and arg.name in used}
    for other in inner.atoms:
        if other.predicate != atom.predicate:
            continue
        there = tuple(
            outside[arg.name] if isinstance(arg, Var) and arg.name in outside else _apart(arg) for arg in other.args
        )
        if _matched(atom.args, there, own) is not None:
            return True
    return False


def _used(clause: Clause, atom: BodyAtom) -> set[str]:
    """The variables that a clause has elsewhere than in an atom."""
    terms: list[Term | None] = [*clause.head_args]
    terms += [arg for other in (*clause.atoms, *clause.negated) if other is not atom for arg in other.args]
    terms += [term for compare in clause.compares for term in (compare.left, compare.right)]
    return names_of(*terms)


def _apart(arg: Plain | None) -> Plain | None:
    """A variable of the braces under a name that no rule has."""
    return replace(arg, name=f"{INTERNAL}{arg.name}") if isinstance(arg, Var) else arg
