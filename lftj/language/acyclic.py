"""Recursion along acyclic data: functional predicates whose value is computed from those of other keys.

    total[p] = c + sum q * total[s] : { uses(p, s, q) } :- own(p, c).

Each key has one value, computed from the values of the keys that its rows lead to. Where the rows lead to no cycle
that is well defined, whatever computes it: a sum, a mean, a difference, a negation (the program is *modularly
stratified*). What leads from key to key must not depend on the recursion, so each clause of such a component is split
in two, and its *rows* are a relation below:

    @total.2.rows(p, s, q) :- uses(p, s, q).
    @total.1(p, sum q * t) :- @total.2.rows(p, s, q), total(s, t).
    @total.3.rows(p, c)    :- own(p, c).
    total(p, c + n)        :- @total.3.rows(p, c), @total.1(p, n).
    total(p, c + n)        :- @total.3.rows(p, c), !@total.1(p, _), n = 0.

In the second part every atom over the component is looked up by a key that the rows bind, and what is left of the
conditions needs what was looked up. Relations that desugaring made for disjunctions and for groups without a binding
(aggregates.py) become clauses: an aggregate has one for each alternative in its braces. What is negated asks whether a
key has a value, so `!t(y, v)` becomes two clauses, of which one holds at most: `!t(y, _)`, and `t(y, u), u != v`.
Where null or its code (null.py) may be among the arguments there is one more for each, without the atom: null matches
nothing. A negated atom over other relations, with a value that is looked up, is the lack of a count of matching rows:

    p[x] = v :- e(x, y), p(y, v), !s(y, v).      @p.1(x, y, count) :- e(x, y), p(y, v), s(y, v).

Source: K. Ross, *Modular stratification and magic sets for Datalog programs with negation*, JACM 1994.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from lftj.language.aggregate_specs import COUNTED, by_counts, sum_of_nothing
from lftj.language.clause import (
    Aggregate,
    Apply,
    BodyAtom,
    Clause,
    Compare,
    Parameter,
    Term,
    Value,
    Var,
    names_of,
    owner,
    variables_of,
)
from lftj.language.cycles import Dependencies
from lftj.language.diagnostics import Findings
from lftj.language.functors import TEXT_TESTS, known_as
from lftj.language.internal_relations import ALL, GROUPS, ROWS, WITH_ZERO, InternalRelations, is_part
from lftj.language.null import is_code_of_null, is_null, meets_null, not_null
from lftj.language.types import NUMBER
from lftj.values.schema import Column, Schema
from lftj.values.type_table import is_nullable


def along_data(component: Sequence[str], dependencies: Dependencies, functional: Callable[[str], bool]) -> bool:
    """Whether a recursive component can be evaluated key by key, if the data turn out to be acyclic.

    All heads that have a name are functional predicates, and those without one say what aggregates give.
    """
    if not dependencies.broken.isdisjoint(component):
        return False
    return all(
        name.endswith((WITH_ZERO, ALL)) or name in dependencies.folds if is_part(name) else functional(name)
        for name in component
    )


def split(
    clauses: Sequence[Clause],
    found: Iterable[Sequence[str]],
    before: Sequence[Clause],
    parts: InternalRelations,
    findings: Findings,
) -> tuple[list[Clause], dict[str, Schema]]:
    """(`clauses` with those of the components `found` split, the schemas of the relations that hold their rows).

    `before`: the clauses that the database has; of those in these components all must be split.
    """
    schemas: dict[str, Schema] = {}
    for component in found:
        members = set(component)
        if (late := next((c for c in before if c.head in members and not c.acyclic), None)) is not None:
            findings.unsupported(
                f"a rule that makes `{late.head}`, which is there, recursive",
                next((c.span for c in clauses if c.head in members), late.span),
                remedy=f"load the rules of the recursion together: remove those of `{owner(late.head)}`, and add all "
                "of them in one text",
            )
            continue
        component_split = _Component(members, clauses, before, parts, findings)
        clauses = component_split.split()
        schemas |= component_split.schemas
    return _read(clauses, before), schemas


def _read(clauses: Sequence[Clause], before: Sequence[Clause]) -> list[Clause]:
    """`clauses` without those of relations of desugaring that nothing reads any more."""
    while True:
        read = {name for clause in (*clauses, *before) for name in clause.reads}
        kept = [c for c in clauses if not is_part(c.head) or c.head in read]
        if len(kept) == len(clauses):
            return kept
        clauses = kept


# Atoms, the variables that they bind, and the comparisons that need no more.
_Rows = tuple[tuple[BodyAtom, ...], set[str], list[Compare]]


class _Component:
    """One component while its clauses are split. `schemas`: of the relations of rows made so far."""

    def __init__(
        self,
        members: Collection[str],
        clauses: Sequence[Clause],
        before: Sequence[Clause],
        parts: InternalRelations,
        findings: Findings,
    ) -> None:
        self._members, self._clauses, self._parts, self._findings = set(members), clauses, parts, findings
        self.schemas: dict[str, Schema] = {}
        self._heads: dict[str, list[Clause]] = {}
        for clause in clauses:
            self._heads.setdefault(clause.head, []).append(clause)
        # The rows of each aggregate, by which the keys of a head are found that has no others: atoms over them.
        self._keys: dict[str, list[BodyAtom]] = {}
        for clause in before:
            if clause.head in members and clause.aggregate is not None:
                self._note_keys(clause, clause.atoms[0])

    def split(self) -> list[Clause]:
        """All clauses, those of the component split."""
        own = {name: rows for name, rows in self._heads.items() if name in self._members}
        for clause in (c for rows in own.values() for c in rows):
            if clause.aggregate is not None and (by_counts(clause.aggregate.op) or clause.is_counted):
                feature = f"`{clause.aggregate.op}{f' {COUNTED}(v, n)' * clause.is_counted}` in recursion"
                self._findings.unsupported(feature, clause.span, remedy="take it of values outside of the recursion")
                return list(self._clauses)
        aggregates = [self._alternatives(c) for rows in own.values() for c in rows if c.aggregate is not None]
        heads = [c for name, rows in own.items() for c in rows if not is_part(name)]
        made = {id(c): self._in_two(c, self._variants(c)) for alternatives in aggregates for c in alternatives}
        if self._findings.failed:
            return list(self._clauses)
        for clause in heads:
            made[id(clause)] = self._in_two(clause, self._variants(clause))
        placed: list[Clause] = []
        alternatives_of = {alternatives[0].head: alternatives for alternatives in aggregates}
        for clause in self._clauses:
            if clause.head in alternatives_of:
                placed += [part for c in alternatives_of[clause.head] for part in made[id(c)]]
            elif id(clause) in made:
                placed += made[id(clause)]
            else:
                placed.append(clause)
        return placed

    # -- what desugaring made -----------------------------------------------------------------------------------------

    def _alternatives(self, clause: Clause) -> list[Clause]:
        """An aggregate over the bindings `@..all` as clauses over what derives these, and what is counted besides."""
        of_all = [a for a in clause.atoms if a.predicate in self._members and a.predicate.endswith(ALL)]
        if not of_all:
            return [clause]
        (bindings,) = of_all
        counted = tuple(a for a in clause.atoms if a is not bindings)
        names = [arg.name for arg in bindings.args if isinstance(arg, Var)]
        used = {v.name for v in clause.variables()}
        found = []
        for one in self._heads[bindings.predicate]:
            taken = {arg.name: name for arg, name in zip(one.head_args, names, strict=True) if isinstance(arg, Var)}
            others = {v.name for v in one.variables()} - taken.keys()
            taken |= {name: f"{name}·" for name in others if name in used}
            renamed = _renamed(one, taken)
            found.append(
                replace(
                    clause,
                    atoms=(*counted, *renamed.atoms),
                    compares=(*renamed.compares, *clause.compares),
                    negated=renamed.negated,
                    or_null=renamed.or_null | clause.or_null,
                )
            )
        return found

    def _without_zeros(self, clause: Clause) -> list[Clause]:
        """A clause that reads aggregates with their zeros, as clauses that read the aggregates, or the lack of them."""
        zeros = [a for a in clause.atoms if a.predicate in self._members and a.predicate.endswith(WITH_ZERO)]
        others = tuple(a for a in clause.atoms if a not in zeros)
        found = []
        for choice in product((True, False), repeat=len(zeros)):
            atoms, negated, compares = list(others), list(clause.negated), list[Compare]()
            for atom, there in zip(zeros, choice, strict=True):
                name, result = atom.predicate.removesuffix(WITH_ZERO), atom.args[-1]
                # What the clause reads with the zeros keeps null from a group; the aggregate itself does not.
                groups = [arg for arg in atom.args[:-1] if isinstance(arg, Var) and arg.name not in clause.or_null]
                compares += [not_null(arg) for arg in groups if self._may_be_null(arg, others)]
                if there:
                    atoms.append(replace(atom, predicate=name))
                    continue
                negated.append(replace(atom, predicate=name, args=(*atom.args[:-1], None)))
                if result is not None:
                    compares.append(Compare("=", result, Value(sum_of_nothing(result.type), result.type), atom.span))
            found.append(
                replace(clause, atoms=tuple(atoms), negated=tuple(negated), compares=(*compares, *clause.compares))
            )
        return found

    def _may_be_null(self, variable: Var, atoms: Iterable[BodyAtom]) -> bool:
        """Whether all columns in which atoms have a variable admit null."""
        columns = [
            type_ or NUMBER
            for atom in atoms
            for arg, type_ in zip(atom.args, self._parts.names.relations[atom.predicate].types, strict=True)
            if isinstance(arg, Var) and arg.name == variable.name
        ]
        return bool(columns) and all(map(is_nullable, columns))

    # -- a clause -----------------------------------------------------------------------------------------------------

    def _variants(self, clause: Clause) -> list[Clause]:
        """A clause as several over aggregates that are there or not, and keys that have a value or not."""
        return [of_keys for variant in self._without_zeros(clause) for of_keys in self._of_keys(variant)]

    def _of_keys(self, clause: Clause) -> list[Clause]:
        """A clause as several that negate no more than that a key has a value; of these, one holds at most."""
        found = [replace(clause, negated=tuple(a for a in clause.negated if a.predicate not in self._members))]
        for number, atom in enumerate(a for a in clause.negated if a.predicate in self._members):
            met = self._meeting_null(clause, atom)
            if met is None:
                continue
            cases: list[Clause] = []
            for case in found:
                for variable in dict.fromkeys(met):
                    if not_null(variable) in case.compares:
                        continue
                    cases.append(replace(case, compares=(*case.compares, is_null(variable, holds=True))))
                    case = replace(case, compares=(*case.compares, not_null(variable)))
                cases += _without_row(case, atom, Var(f"_u{number}", self._columns(atom)[-1]))
            found = cases
        return found

    def _columns(self, atom: BodyAtom) -> Sequence[str]:
        if (schema := self.schemas.get(atom.predicate)) is not None:
            return schema.types
        return [type_ or NUMBER for type_ in self._parts.names.relations[atom.predicate].types]

    def _meeting_null(self, clause: Clause, atom: BodyAtom) -> list[Var] | None:
        """The variables of a negated atom that may be null or its code; None if one of its constants has that code."""
        types = {v.name: v.type for other in clause.atoms for v in other.args if isinstance(v, Var)}
        given = [(arg, type_) for arg, type_ in zip(atom.args, self._columns(atom), strict=True) if arg is not None]
        if any(isinstance(arg, Value) and is_code_of_null(arg.value, type_) for arg, type_ in given):
            return None
        return [
            replace(arg, type=types.get(arg.name, arg.type))
            for arg, type_ in given
            if isinstance(arg, Var) and arg.name not in clause.or_null and meets_null(arg, types, type_)
        ]

    def _in_two(self, clause: Clause, variants: Sequence[Clause]) -> list[Clause]:
        """The rows of `clause`, and its `variants` over them, which differ in what they look up."""
        if clause.aggregate is not None and clause.aggregate.op == "cat":
            self._findings.unsupported(
                "`cat` in recursion", clause.span, remedy="join the texts outside of the recursion"
            )
            return []
        below = tuple(a for a in clause.atoms if a.predicate not in self._members)
        bodies = [(below, *_bound(below, clause.compares))]
        keys = list(clause.head_args[:-1] if clause.aggregate is None else clause.head_args[: clause.aggregate.groups])
        looked_up = [a for v in variants for a in (*v.atoms, *v.negated) if a.predicate in self._members]
        if (any_key := next((a for a in looked_up if None in a.args[:-1]), None)) is not None:
            self._any_key(clause, any_key)
            return []
        wanted = names_of(*keys)
        wanted |= {arg.name for a in looked_up for arg in a.args[:-1] if isinstance(arg, Var)}
        made: list[Clause] = []
        if not wanted <= bodies[0][1]:
            if clause.aggregate is not None:
                made, more = self._groups(clause)
                bodies = [((*below, *more), *_bound((*below, *more), clause.compares))]
            else:
                bodies = self._of_aggregates(variants, below, wanted)
            if missing := sorted(name for name in wanted if any(name not in bound for _, bound, _ in bodies)):
                self._unbound(clause, missing[0])
                return []
        bound, pushed = bodies[0][1], bodies[0][2]
        outside = [a for a in clause.negated if a.predicate not in self._members]
        none = tuple(a for a in outside if all(names_of(*a.args) <= names for _, names, _ in bodies))
        for atom in (a for a in outside if a not in none):
            counted = self._counted(clause, atom, bodies, none)
            made += counted[0]
            variants = [replace(variant, negated=(*variant.negated, *counted[1])) for variant in variants]
            wanted |= names_of(*(arg for absent in counted[1] for arg in absent.args))
        computed = {term: Var(f"_k{i}", term.type) for i, term in enumerate(keys) if isinstance(term, Apply)}
        every = {v.name: v for v in clause.variables() if v.name in bound}
        if clause.aggregate is None:  # no bindings are counted
            rest = [c for variant in variants for c in variant.compares if c not in pushed]
            needed = wanted | names_of(*clause.head_args)
            needed |= {v.name for c in rest for side in (c.left, c.right) for v in variables_of(side)}
            every = {name: v for name, v in every.items() if name in needed}
        columns = (*every.values(), *computed.values()) or (Value(0, NUMBER),)
        name = f"{self._parts.number(owner(clause.head))}{ROWS}"
        self.schemas[name] = Schema(
            name,
            tuple(Column(c.name if isinstance(c, Var) else "c0", c.type) for c in columns),
            declared=False,
        )
        equal = tuple(Compare("=", variable, term) for term, variable in computed.items())
        made += [
            Clause(
                name,
                columns,
                atoms,
                (*self._without_null(clause, atoms, every.values()), *pushed, *equal),
                clause.span,
                clause.text,
                clause.rule,
                negated=none,
                or_null=clause.or_null,
            )
            for atoms, _, _ in bodies
        ]
        rows = BodyAtom(name, columns, clause.span)
        if clause.aggregate is not None:
            self._note_keys(clause, rows)
        for variant in variants:
            args = tuple(computed.get(term, term) if isinstance(term, Apply) else term for term in variant.head_args)
            made.append(
                replace(
                    variant,
                    head_args=args if variant.aggregate is None else variant.head_args,
                    atoms=(rows, *(a for a in variant.atoms if a.predicate in self._members)),
                    negated=tuple(a for a in variant.negated if a.predicate in self._members),
                    compares=tuple(c for c in variant.compares if c not in pushed),
                    acyclic=True,
                )
            )
        return made

    def _without_null(self, clause: Clause, atoms: Sequence[BodyAtom], bound: Iterable[Var]) -> list[Compare]:
        """That variables are not null which something else of the clause keeps from it than the atoms of its rows."""
        may_be: dict[str, bool] = {}
        for atom in atoms:
            for arg, type_ in zip(atom.args, self._columns(atom), strict=True):
                if isinstance(arg, Var):
                    may_be[arg.name] = may_be.get(arg.name, True) and is_nullable(type_)
        found = [not_null(v) for v in bound if may_be.get(v.name, False) and not is_nullable(v.type)]
        return [condition for condition in found if condition not in clause.compares]

    def _counted(
        self, clause: Clause, atom: BodyAtom, bodies: Sequence[_Rows], none: tuple[BodyAtom, ...]
    ) -> tuple[list[Clause], list[BodyAtom]]:
        """What says that there is no row as of a negated atom with values that are looked up: (clauses, an atom).

        The rows that match are counted, under all that the rows of the clause bind; the atom reads that, to be negated.
        """
        met = self._meeting_null(clause, atom)
        if met is None:
            return [], []
        groups = tuple(v for v in clause.variables() if all(v.name in names for _, names, _ in bodies))
        name = self._parts.number(owner(clause.head))
        columns = (*(Column(v.name, v.type) for v in groups), Column("·n", NUMBER))
        self.schemas[name] = Schema(name, columns, declared=False)
        members = tuple(a for a in clause.atoms if a.predicate in self._members)
        late = tuple(a for a in clause.negated if a.predicate in self._members)
        made = []
        for atoms, _, _ in bodies:
            one = replace(
                clause,
                head=name,
                head_args=groups,
                atoms=(*atoms, atom, *members),
                compares=(*clause.compares, *map(not_null, dict.fromkeys(met))),
                negated=(*none, *late),
                aggregate=Aggregate("count", len(groups), NUMBER),
            )
            made += self._in_two(one, self._variants(one))
        self._members.add(name)
        return made, [BodyAtom(name, (*groups, None), clause.span)]

    def _of_aggregates(self, variants: Sequence[Clause], below: tuple[BodyAtom, ...], wanted: set[str]) -> list[_Rows]:
        """What binds the keys of a head `total[p] = sum ...`: the rows of its aggregates, an alternative for each.

        Of those aggregates that all variants read; one that has a 0 for a key need not have rows for it.
        """
        clause = variants[0]
        read = [a for a in clause.atoms if all(a in variant.atoms for variant in variants)]
        known = [a for a in read if a.predicate in self._keys and wanted & names_of(*a.args[:-1])]
        choices = product(*([_placed(atom, a.args) for atom in self._keys[a.predicate]] for a in known))
        return [((*below, *chosen), *_bound((*below, *chosen), clause.compares)) for chosen in choices]

    def _groups(self, clause: Clause) -> tuple[list[Clause], list[BodyAtom]]:
        """What binds the groups of an aggregate that its braces do not bind: (clauses, if it is new; the atom)."""
        assert clause.aggregate is not None
        name, groups = f"{clause.head}{GROUPS}", clause.head_args[: clause.aggregate.groups]
        args = tuple(term for term in groups if isinstance(term, Var))
        atom = BodyAtom(name, args, clause.span)
        if name in self._heads or name in self.schemas:
            return [], [atom]
        made = []
        for reader in (c for rows in self._heads.values() for c in rows):
            for read in reader.atoms:
                if read.predicate.removesuffix(WITH_ZERO) != clause.head or reader.head.endswith(WITH_ZERO):
                    continue
                below = tuple(a for a in reader.atoms if a.predicate not in self._members)
                bound, pushed = _bound(below, reader.compares)
                if names_of(*read.args[:-1]) <= bound:
                    keys = tuple(arg for arg in read.args[:-1] if arg is not None)
                    made.append(Clause(name, keys, below, tuple(pushed), reader.span, reader.text, reader.rule))
        if not made:
            return [], []
        self.schemas[name] = Schema(name, tuple(Column(v.name, v.type) for v in args), declared=False)
        return made, [atom]

    def _note_keys(self, clause: Clause, rows: BodyAtom) -> None:
        assert clause.aggregate is not None
        groups = clause.head_args[: clause.aggregate.groups]
        self._keys.setdefault(clause.head, []).append(replace(rows, args=(*groups, *rows.args)))  # type: ignore[arg-type]

    def _any_key(self, clause: Clause, atom: BodyAtom) -> None:
        """Report a wildcard where a key is to be looked up."""
        head, read = owner(clause.head), owner(atom.predicate)
        self._findings.error(
            f"a wildcard for a key of `{read}` in its own recursion",
            atom.span if atom.span.line else clause.span,
            why=f"`{head}` is computed key by key, along rows that are known before: every key that a rule looks up "
            "has to come from them",
            remedy="name the key by a variable, and bind it by an atom that is not part of the recursion",
            predicate=head,
        )

    def _unbound(self, clause: Clause, name: str) -> None:
        """Report a variable that names a key, and that only the recursion binds."""
        atom = next(
            (a for a in (*clause.atoms, *clause.negated) if a.predicate in self._members and name in names_of(*a.args)),
            None,
        )
        read = owner(atom.predicate) if atom is not None else owner(clause.head)
        self._findings.error(
            f"variable `{name}` of `{read}[...]` is bound by the recursion only",
            clause.span if atom is None or not atom.span.line else atom.span,
            why=f"`{owner(clause.head)}` is computed key by key, along rows that are known before: every key that a "
            "rule looks up has to come from them",
            remedy=f"bind `{name}` by an atom that is not part of the recursion",
            predicate=owner(clause.head),
        )


def _without_row(clause: Clause, atom: BodyAtom, other: Var) -> Iterator[Clause]:
    """A clause where there is no row as of `atom`: its key has no value, or an `other` one."""
    *keys, value = atom.args
    yield replace(clause, negated=(*clause.negated, replace(atom, args=(*keys, None))))
    if value is not None:
        there, differs = replace(atom, args=(*keys, other)), Compare("!=", other, value, atom.span)
        yield replace(clause, atoms=(*clause.atoms, there), compares=(*clause.compares, differs))


def _placed(keys: BodyAtom, args: Sequence[Var | Value | Parameter | None]) -> BodyAtom:
    """The rows of an aggregate as an atom that binds its groups to `args`; `keys` has the groups, then the columns."""
    groups = len(args) - 1
    place = {arg.name: args[i] for i, arg in enumerate(keys.args[:groups]) if isinstance(arg, Var)}
    columns = (place.get(c.name) if isinstance(c, Var) else c for c in keys.args[groups:])
    return BodyAtom(keys.predicate, tuple(columns), keys.span)


def _bound(atoms: Sequence[BodyAtom], compares: Sequence[Compare]) -> tuple[set[str], list[Compare]]:
    """(the variables that `atoms` bind, with what follows from them; the comparisons that need no more than these).

    A term that may have no value waits: whether that is an error depends on all that the clause asks.
    """
    bound = {arg.name for atom in atoms for arg in atom.args if isinstance(arg, Var)}
    pushed: list[Compare] = []
    grew = True
    while grew:
        grew = False
        for c in compares:
            if c in pushed or _may_fail(c):
                continue
            left, right = (names_of(side) for side in (c.left, c.right))
            if left | right <= bound:
                pushed.append(c)
                grew = True
            elif c.op == "=":
                for side, other in ((c.left, right), (c.right, left)):
                    if isinstance(side, Var) and other <= bound:
                        bound.add(side.name)
                        pushed.append(c)
                        grew = True
                        break
    return bound, [c for c in compares if c in pushed]


def _may_fail(compare: Compare) -> bool:
    """Whether a term of a comparison may have no value."""
    if compare.op in TEXT_TESTS and known_as(compare.op.removeprefix("not_")).partial:
        return True
    waiting: list[Term] = [compare.left, compare.right]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Apply):
            if term.args[0].type in known_as(term.op).partial:
                return True
            waiting += term.args
    return False


def _renamed(clause: Clause, names: Mapping[str, str]) -> Clause:
    """`clause` with its variables called otherwise."""

    def term(one: Term) -> Term:
        if isinstance(one, Var):
            return replace(one, name=names.get(one.name, one.name))
        return replace(one, args=tuple(term(arg) for arg in one.args)) if isinstance(one, Apply) else one

    def atom(one: BodyAtom) -> BodyAtom:
        args = tuple(replace(a, name=names.get(a.name, a.name)) if isinstance(a, Var) else a for a in one.args)
        return replace(one, args=args)

    return replace(
        clause,
        head_args=tuple(term(arg) for arg in clause.head_args),
        atoms=tuple(atom(one) for one in clause.atoms),
        negated=tuple(atom(one) for one in clause.negated),
        compares=tuple(replace(c, left=term(c.left), right=term(c.right)) for c in clause.compares),
        or_null=frozenset(names.get(name, name) for name in clause.or_null),
    )
