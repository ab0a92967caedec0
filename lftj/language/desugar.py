"""Desugaring: from rules with aggregates, lookups and negated conjunctions to plain conjunctions.

    p(x, n) :- q(x), n = count : { e(x, y) }, !(f(x, z), g(z)).
      ->   @p.1(x, count) :- e(x, y).  ...                              an aggregate is a relation    aggregates.py
           @p.2(x) :- f(x, z), g(z).                                    so is a negated conjunction   here
           p(x, n) :- q(x), @p.1.with0(x, n), !@p.2(x).

This happens before types are inferred, one alternative of a body at a time, so that groundness, inference and lowering
see atoms and comparisons only. Scopes nest: what stands in braces is a body of its own, whose variables are shared with
the outside by name, and it is desugared by the same steps with its group as its head.

`normal_form.py` distributes, `functional.py` takes out lookups, `internal_relations.py` names the relations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from itertools import count

from lftj.language import ast
from lftj.language.aggregates import AggregateRelations
from lftj.language.diagnostics import Findings
from lftj.language.functional import Lookups
from lftj.language.internal_relations import GROUPS, InternalRelations, InternalRule
from lftj.language.min_max import extreme_of
from lftj.language.normal_form import TOO_MANY, Conjunction, conjunctions
from lftj.language.safety import bound_variables, check_bound
from lftj.language.visitors import Literals, Node, all_names, lets_null_match, open_variables

Supply = Callable[[], ast.Atom]


class Scope:
    """One alternative of a body while it is desugared: what binds its variables, and what does not yet.

    `head`: the terms of its head, which share its variables. `supply` gives an atom that binds the group, for a body in
    braces or under a negation; `keys` are the variables that aggregates may bind, in the head form `deg[x] = ...`.
    `splits`: the body may become two, of which the other is `empty` (see aggregates.py).
    """

    def __init__(
        self,
        head: Sequence[ast.Term],
        body: Conjunction,
        supply: Supply | None,
        keys: frozenset[str] = frozenset(),
        *,
        splits: bool = False,
    ) -> None:
        self.head = tuple(head)
        self.splits = splits
        self.empty: Conjunction | None = None
        self.body = body
        self.supply = supply
        self.keys = keys

    def names(self) -> set[str]:
        """The variables of the scope itself."""
        return {variable.name for variable in open_variables((*self.head, *self.body))}

    def bound(self) -> set[str]:
        """The variables that have their values so far."""
        return bound_variables(self.body)

    def placed(self, variables: Iterable[ast.Variable]) -> tuple[ast.Variable, ...]:
        """The variables at their first places in the body, where they have one."""
        places = {v.name: v for v in reversed(list(open_variables(self.body)))}
        return tuple(places.get(variable.name, variable) for variable in variables)

    def add(self, *atoms: ast.Atom) -> None:
        """Add atoms that hold."""
        self.body = replace(self.body, atoms=(*self.body.atoms, *atoms))

    def call_supply(self) -> None:
        """Add the atom that binds the group, once."""
        if self.supply is not None:
            self.add(self.supply())
            self.supply = None


class Desugaring:
    """One rule while it is desugared, and the clauses made of it so far.

    `unbound`: variables that a finding reports as not bound · `written`: terms by the new variables in their places.
    """

    def __init__(self, rule: ast.Rule, parts: InternalRelations, findings: Findings) -> None:
        self.rule = rule
        self.parts = parts
        self.findings = findings
        self.failed = False
        self.unbound: set[str] = set()
        self.written: dict[str, ast.Term] = {}
        self.made: list[InternalRule] = []
        self._taken = set(all_names((*rule.heads, *rule.body)))
        self._counts = {prefix: count(1) for prefix in "vw"}
        self._wildcards: dict[int, str] = {}
        self._nones: dict[tuple[Literals, tuple[str, ...]], tuple[str, bool]] = {}
        self._aggregates = AggregateRelations(self)

    def clauses(self, *, query: bool = False, best: Container[str] = ()) -> list[InternalRule]:
        """The clauses of the rule, internal ones first; none if it makes no sense, with the findings that say why.

        The head of a query asks for no values. `best`: heads in recursion, whose extremes become rules of
        candidates (min_max.py).
        """
        bodies = self.alternatives(self.rule.body, self.rule.heads)
        if bodies is None:
            return []
        plain: list[InternalRule] = []
        for head in self.rule.heads:
            if head.name in best and (extreme := extreme_of(head, self.rule)) is not None:
                plain += self._candidates(head, extreme)
                continue
            keys = open_variables(head.keys) if isinstance(head, ast.Assignment) else ()
            names = frozenset(variable.name for variable in keys)
            done = [self._scope(head.args, body, keys=names, splits=not query) for body in bodies]
            atoms = [ast.Atom(head.name, scope.head, head.span) for scope in done]
            if not self.failed:
                heads = () if query else atoms
                check_bound(self.rule, heads, [scope.body for scope in done], self.findings, self.unbound)
            for atom, scope in zip(atoms, done, strict=True):
                plain += [InternalRule(self.rule, atom, body) for body in (scope.body, scope.empty) if body is not None]
        return [] if self.failed else [*self.made, *plain]

    def _candidates(self, head: ast.Head, extreme: ast.Aggregate) -> list[InternalRule]:
        """A clause for each alternative in the braces of an extreme: all derive the head, and the best values stand."""
        terms = (*head.args[:-1], *(() if extreme.operand is None else (extreme.operand,)))
        scopes = [self._scope(terms, body) for body in self.alternatives(extreme.body, terms) or ()]
        atoms = [ast.Atom(head.name, scope.head, head.span) for scope in scopes]
        if not self.failed:
            self.unbound |= check_bound(self.rule, atoms, [scope.body for scope in scopes], self.findings)
        return [
            InternalRule(self.rule, atom, scope.body, best=extreme.op)
            for atom, scope in zip(atoms, scopes, strict=True)
        ]

    # What its constructs need

    def alternatives(
        self, body: Literals, outside: Iterable[Node], *, braces: bool = False
    ) -> list[Conjunction] | None:
        """The alternatives of a body; None, and a finding, if there are too many. `braces`: of an aggregate."""
        bodies = conjunctions(body, outside, braces=braces)
        if bodies is None:
            self.findings.error(
                TOO_MANY,
                self.rule.span,
                why="every alternative is evaluated as a rule of its own",
                remedy="give parts of the body their own rules",
                predicate=self.rule.heads[0].name,
            )
            self.failed = True
        return bodies

    def name(self) -> str:
        """The next name of an internal relation."""
        return self.parts.number(self.rule.heads[0].name)

    def fresh(self, prefix: str = "v") -> str:
        """A variable that the rule does not have."""
        name = next(name for i in self._counts[prefix] if (name := f"_{prefix}{i}") not in self._taken)
        self._taken.add(name)
        return name

    def variable(self, term: ast.Term) -> ast.Variable:
        """A new variable in the place of a term."""
        name = self.fresh()
        self.written[name] = term
        return ast.Variable(name, term.span)

    def conjunction(
        self,
        head: Sequence[ast.Term],
        body: Conjunction,
        supply: Supply | None = None,
        *,
        groups: frozenset[str] = frozenset(),
        wildcards: bool = False,
    ) -> tuple[tuple[ast.Term, ...], Conjunction]:
        """The terms of a head and the conjunction below it, both of plain terms; arguments as those of `_scope`."""
        scope = self._scope(head, body, supply, groups=groups, wildcards=wildcards)
        return scope.head, scope.body

    def _scope(
        self,
        head: Sequence[ast.Term],
        body: Conjunction,
        supply: Supply | None = None,
        *,
        keys: frozenset[str] = frozenset(),
        groups: frozenset[str] = frozenset(),
        wildcards: bool = False,
        splits: bool = False,
    ) -> Scope:
        """The scope of a head and a body once it is taken apart: all of plain terms.

        `supply` binds the variables `groups` if the body does not. `wildcards`: those of atoms that hold become
        variables, as braces ask. `keys`, `splits`: see `Scope`.
        """
        lookups = Lookups(self.variable)
        terms = [lookups.term(term) for term in head]
        body = lookups.conjunction(body)
        body = replace(body, atoms=(*body.atoms, *lookups.atoms))
        if wildcards:
            body = replace(body, atoms=tuple(self._without_wildcards(atom) for atom in body.atoms))
        scope = Scope(terms, body, supply, keys, splits=splits)
        shared = scope.names()
        if not groups <= scope.bound():
            scope.call_supply()
        self._aggregates.replace(scope)
        for group in scope.body.none:
            self._none(group, shared, scope)
        scope.body = replace(scope.body, none=())
        return scope

    def _without_wildcards(self, atom: ast.Atom) -> ast.Atom:
        args: list[ast.Term] = []
        for arg in atom.args:
            if isinstance(arg, ast.Wildcard):
                if id(arg) not in self._wildcards:  # one in several alternatives is one variable
                    self._wildcards[id(arg)] = self.fresh("w")
                args.append(ast.Variable(self._wildcards[id(arg)], arg.span))
            else:
                args.append(arg)
        return replace(atom, args=tuple(args))

    # Negated conjunctions

    def _none(self, group: Literals, shared: set[str], scope: Scope) -> None:
        """Negate the atom of a relation that holds the rows for which the conjunction `group` holds."""
        places = {name: place for name, place in all_names(group).items() if name in shared}
        variables = tuple(places.values())
        key = (group, tuple(places))
        if key not in self._nones:
            self._nones[key] = self._make_none(group, variables, scope)
        name, supplied = self._nones[key]
        if supplied:
            self.groups(name, variables, scope)
        atom = ast.Atom(name, variables, group[0].span)
        scope.body = replace(scope.body, negated=(*scope.body.negated, atom))

    def _make_none(self, group: Literals, variables: tuple[ast.Variable, ...], scope: Scope) -> tuple[str, bool]:
        """Derive the rows for which a conjunction holds: the relation, and whether it reads `@..groups`."""
        name, span = self.name(), group[0].span
        words = ["a variable of a negated conjunction"] * len(variables)
        self.parts.relation(name, [v.name for v in variables], words, span)
        supplied: list[bool] = []
        supply = self.supply(name, scope.placed(variables), supplied)
        names = frozenset(v.name for v in variables)
        bodies = self.alternatives(group, variables) or []
        done = [self.conjunction(variables, body, supply, groups=names)[1] for body in bodies]
        if not self.failed:
            self.unbound |= check_bound(self.rule, (), done, self.findings)
        head = ast.Atom(name, variables, span)
        self.made += [InternalRule(self.rule, head, body, joined=names & _matched(body, name)) for body in done]
        return name, bool(supplied)

    # Groups

    def supply(self, name: str, variables: tuple[ast.Variable, ...], called: list[bool]) -> Supply:
        """What makes the atom of `@..groups`; `called` is not empty once it was needed."""

        def atom() -> ast.Atom:
            called.append(True)
            words = ["a variable from outside"] * len(variables)
            groups = self.parts.relation(f"{name}{GROUPS}", [v.name for v in variables], words, ast.NOWHERE)
            return ast.Atom(groups, variables, variables[0].span if variables else ast.NOWHERE)

        return atom

    def groups(self, name: str, variables: tuple[ast.Variable, ...], scope: Scope) -> None:
        """Derive `@..groups` from what binds these variables in a scope."""
        part = InternalRule(self.rule, ast.Atom(f"{name}{GROUPS}", variables), binders(variables, scope.body))
        if part not in self.made:
            self.made.append(part)


def _names(parts: Iterable[Node]) -> set[str]:
    return {variable.name for variable in open_variables(parts)}


def _matched(body: Conjunction, name: str) -> set[str]:
    """The variables in atoms of a negated conjunction: null outside equals nothing in them, unless it says so.

    One that no atom of it has is any value of a row outside, null too: its atom is that of the groups.
    """
    atoms = [atom for atom in body.atoms if atom.name != f"{name}{GROUPS}"]
    found = {arg.name for atom in atoms for arg in atom.args if isinstance(arg, ast.Variable)}
    return found - _names(compare for compare in body.compares if lets_null_match(compare))


def binders(variables: Iterable[ast.Variable], body: Conjunction) -> Conjunction:
    """The part of a conjunction that binds some variables: one atom if it can, else all that is joined with them.

    An answer has every value that the conjunction has, and may have more.
    """
    wanted = {variable.name for variable in variables}
    for atom in body.atoms:
        plain = [arg for arg in atom.args if isinstance(arg, ast.Variable)]
        if wanted <= {arg.name for arg in plain}:
            alone = replace(atom, args=tuple(_kept(arg, wanted, plain) for arg in atom.args))
            return Conjunction((alone,), _marks([alone], body))
    equalities = [compare for compare in body.compares if compare.op == "="]
    joined = _joined(wanted, [*body.atoms, *equalities])
    bound = bound_variables(replace(body, atoms=tuple(a for a in body.atoms if a in joined)))
    atoms = tuple(
        replace(atom, args=tuple(arg if _names((arg,)) <= bound else ast.Wildcard() for arg in atom.args))
        for atom in body.atoms
        if atom in joined
    )
    held = (c for c in equalities if c in joined and _names((c,)) <= bound)
    return Conjunction(atoms, (*held, *_marks(atoms, body)))


def _marks(atoms: Iterable[ast.Atom], body: Conjunction) -> tuple[ast.Comparison, ...]:
    """What says that null matches null in variables which are in several places of these atoms."""
    places = Counter(arg.name for atom in atoms for arg in atom.args if isinstance(arg, ast.Variable))
    marks = (compare for compare in body.compares if lets_null_match(compare))
    return tuple(mark for mark in marks if isinstance(mark.left, ast.Variable) and places[mark.left.name] > 1)


def _kept(arg: ast.Term, wanted: set[str], plain: list[ast.Variable]) -> ast.Term:
    """An argument of an atom that stands alone: a variable that is not wanted and joins nothing is any value."""
    if isinstance(arg, ast.Variable):
        joins = arg.name in wanted or sum(other.name == arg.name for other in plain) > 1
        return arg if joins else ast.Wildcard(arg.span)
    return arg if isinstance(arg, ast.Constant) else ast.Wildcard(arg.span)


def _joined(wanted: set[str], literals: list[ast.Literal]) -> list[ast.Literal]:
    """The literals that share variables, directly or through others, with the wanted ones."""
    reached, joined = set(wanted), list[ast.Literal]()
    for _ in literals:
        new = [x for x in literals if x not in joined and _names((x,)) & reached]
        if not new:
            break
        joined += new
        reached |= {name for literal in new for name in _names((literal,))}
    return joined
