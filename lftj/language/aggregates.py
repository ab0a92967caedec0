"""Aggregates in rules: each becomes a relation of its own, and an atom of the rule that reads it.

    p(x, n) :- q(x), n = count : { e(x, y), f(y) }.
      ->   @p.1(x, count)    :- e(x, y), f(y).             one row per group that has a binding
           @p.1.groups(x)    :- q(x).
           @p.1.with0(x, n)  :- @p.1(x, n).                count and sum of nothing are 0,
           @p.1.with0(x, 0)  :- @p.1.groups(x), !@p.1(x, _).
           p(x, n)           :- q(x), @p.1.with0(x, n).

Where the rest of the rule is one atom, which binds the group, and conditions, the rule itself becomes two instead: one
for the groups with a binding and one for those without. (With a larger body a join would be done twice.)

    p(x, n) :- q(x), n = count : { e(x, _) }, n < 3.
      ->   p(x, n) :- q(x), @p.1(x, n), n < 3.
           p(x, n) :- q(x), !@p.1(x, _), n = 0, n < 3.

The group is what the braces, with their operand, share with the outside. Its values come from outside: a group variable
that nothing outside binds is an error, as in Souffle, but for the keys of a head `deg[x] = count : { e(x, _) }`, whose
groups are those that have a binding. Every distinct binding of all variables counts once, and each wildcard is a
variable. Of `min`, `max`, `mean` and `cat` an empty group has no row, so their atom is read as it is. A group whose sum
its type does not hold has no row either, and is an error where the rule asks for it
(lftj/evaluate/undefined_groups.py). What is said twice then, as by `e(x, _), n = count : { e(x, _) }`, redundant.py
takes away.

A quantile is one of how many bindings have each value, so that it follows any braces, and a value that comes often is
one row. With `counted(v, n)` for its operand a binding counts n times, or not at all if n is less than 1; so it does
for a variance, which else folds the bindings as a sum does:

    m[k] = quantile_disc(0.5) v : { e(k, v) }.
      ->   @m.1.counts(k, v, count)  :- e(k, v).
           @m.1(k, quantile_disc)    :- @m.1.counts(k, v, n).     v of the rank that is asked for, n counted
    d[k] = stddev_pop counted(v, n) : { e(k, v, n) }.
      ->   @d.1.counts(k, v, sum)    :- e(k, v, n), n > 0.
           @d.1(k, stddev_pop)       :- @d.1.counts(k, v, n).

`min`, `max` and `cat` fold one atom of distinct variables; what else stands in the braces, and a disjunction, becomes a
relation first, `@p.1.all`. The alternatives of a disjunction bind the same variables, so that it is plain what a
binding is; of `min` and `max`, to which repeats do not matter, only the variables that they share are kept, and no
wildcards. Those of `count`, `sum` and `mean`, and what computes texts in their braces, are told in counted_atoms.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, word_of
from lftj.language.counted_atoms import counted_atoms, makes_texts
from lftj.language.functors import OR_NULL
from lftj.language.internal_relations import ALL, COUNTS, GROUPS, MET, WITH_ZERO, Fold, InternalRule, Renaming
from lftj.language.names import has_counts, is_counted
from lftj.language.normal_form import Conjunction
from lftj.language.safety import bound_variables, check_bound
from lftj.language.text_selections import TextSelection, text_selections
from lftj.language.types import NUMBER
from lftj.language.visitors import Node, all_names, lets_null_match, nodes, open_variables
from lftj.values.type_table import is_nullable

if TYPE_CHECKING:
    from lftj.language.desugar import Desugaring, Scope, Supply


@dataclass(frozen=True, slots=True)
class _AggregateRelation:
    """An aggregate taken apart. `supplied`: its body reads `@..groups`."""

    name: str
    supplied: bool


class AggregateRelations:
    """The aggregates of one rule."""

    def __init__(self, whole: Desugaring) -> None:
        self.whole = whole
        self._made: dict[tuple[ast.Aggregate, tuple[str, ...]], _AggregateRelation] = {}

    def replace(self, scope: Scope) -> None:
        """Replace the aggregates of a scope by atoms, those first whose groups the scope binds without the others."""
        names = scope.names()
        waiting = self._results(scope)
        scope.splits &= len(waiting) == 1 and not scope.body.none
        while waiting and not self.whole.failed:
            bound = scope.bound()
            ready = [a for a in waiting if set(_group(a, names)) <= bound]
            if ready:
                aggregate = ready[0]
                self._read(aggregate, waiting.pop(aggregate), names, scope, zero=True)
                continue
            # in the head form, the aggregates bind the keys together
            free = [a for a in waiting if set(_group(a, names)) - bound <= scope.keys]
            if not free and scope.supply is not None:  # `x = count : { e(x, _) }` seemed to bind the group x
                scope.call_supply()
                continue
            for aggregate in sorted(free, key=lambda a: self._relation(a, names, scope).supplied):
                self._read(aggregate, waiting.pop(aggregate), names, scope, zero=False)
            if not free:
                self._unbound(next(iter(waiting)), names, bound)

    def _results(self, scope: Scope) -> dict[ast.Aggregate, list[ast.Term]]:
        """Every aggregate of the scope with the terms that are its result; what stood in its place is a variable."""
        found: dict[ast.Aggregate, list[ast.Term]] = {}

        def term(node: ast.Term) -> ast.Term:
            if isinstance(node, ast.Functor):
                args = tuple(term(arg) for arg in node.args)
                return node if args == node.args else replace(node, args=args)
            if not isinstance(node, ast.Aggregate):
                return node
            results = found.setdefault(node, [])
            if not results:
                results.append(self.whole.variable(node))
            return results[0]

        def atom(node: ast.Atom) -> ast.Atom:
            return replace(node, args=tuple(term(arg) for arg in node.args))

        plain: list[ast.Comparison] = []
        for compare in scope.body.compares:
            for aggregate, other in ((compare.left, compare.right), (compare.right, compare.left)):
                equal = compare.op == "=" and isinstance(other, ast.Variable | ast.Constant)
                if equal and isinstance(aggregate, ast.Aggregate):
                    found.setdefault(aggregate, []).append(other)
                    break
            else:
                plain.append(compare)
        compares = tuple(
            c if not _holds_aggregate(c) else replace(c, left=term(c.left), right=term(c.right)) for c in plain
        )
        scope.head = tuple(term(part) for part in scope.head)
        scope.body = replace(
            scope.body,
            atoms=tuple(atom(part) for part in scope.body.atoms),
            negated=tuple(atom(part) for part in scope.body.negated),
            compares=compares,
        )
        return found

    def _unbound(self, aggregate: ast.Aggregate, names: set[str], bound: set[str]) -> None:
        """Report the group variables that nothing outside of the braces binds."""
        self.whole.failed = True
        head = self.whole.rule.heads[0].name
        for name, place in _group(aggregate, names).items():
            if name not in bound:
                self.whole.unbound.add(name)
                self.whole.findings.error(
                    f"variable `{name}` is bound only inside the braces",
                    place.span,
                    why="it also occurs outside, so it names the group, and the groups come from outside the braces",
                    remedy=f"bind `{name}` by an atom of the body, or write a head `{head}[{name}] = "
                    f"{aggregate.op} ...` to have the groups that there are",
                    predicate=head,
                )

    def _unbound_key(self, aggregate: ast.Aggregate, variable: ast.Variable) -> None:
        """Report a key of a head that the braces, which have to bind it, only test."""
        self.whole.failed = True
        self.whole.unbound.add(variable.name)
        head = self.whole.rule.heads[0].name
        self.whole.findings.error(
            f"key `{variable.name}` of `{head}` is bound by no atom in the braces",
            variable.span,
            why=f"the groups of `{aggregate.op}` are those that have a binding, and what is negated, nested in braces "
            "or only compared gives no values",
            remedy=f"use `{variable.name}` as an argument of an atom in the braces, or bind it in a body after `:-`",
            predicate=head,
        )

    # One aggregate

    def _relation(self, aggregate: ast.Aggregate, names: set[str], scope: Scope) -> _AggregateRelation:
        group = _group(aggregate, names)
        key = (aggregate, tuple(group))
        if key not in self._made:
            self._made[key] = self._make(aggregate, tuple(group.values()), scope)
        return self._made[key]

    def _read(
        self, aggregate: ast.Aggregate, results: list[ast.Term], names: set[str], scope: Scope, *, zero: bool
    ) -> None:
        """Add the atoms that read an aggregate; `zero`: of a group without a binding too, where that is 0."""
        variables = tuple(_group(aggregate, names).values())
        made = self._relation(aggregate, names, scope)
        if made.supplied and (unbound := [v for v in variables if v.name not in scope.bound()]):
            self._unbound_key(aggregate, unbound[0])
            return
        name = made.name
        with0 = zero and AGGREGATES[aggregate.op].empty is not None
        if with0 and scope.splits and _simple(aggregate, variables, scope):
            with0 = False
            scope.empty = self._without(aggregate, name, variables, results, scope)
        if made.supplied or (with0 and variables):
            self.whole.supply(name, variables, [])()
            self.whole.groups(name, variables, scope)
        if with0:
            name = self._with_zero(aggregate, name, variables, scope)
        scope.add(*(ast.Atom(name, (*variables, result), aggregate.span) for result in results))

    def _without(
        self,
        aggregate: ast.Aggregate,
        name: str,
        variables: tuple[ast.Variable, ...],
        results: list[ast.Term],
        scope: Scope,
    ) -> Conjunction:
        """The body of the rule for the groups without a binding."""
        body, span = scope.body, aggregate.span
        none = ast.Atom(name, (*variables, ast.Wildcard(span)), span)
        zeros = (ast.Comparison("=", result, self._empty(aggregate), span) for result in results)
        return replace(body, negated=(*body.negated, none), compares=(*zeros, *body.compares))

    def _empty(self, aggregate: ast.Aggregate) -> ast.Constant:
        """The result of a group without a binding."""
        spec = AGGREGATES[aggregate.op]
        assert spec.empty is not None
        return ast.Constant(spec.empty, spec.result, aggregate.span)

    def _make(self, aggregate: ast.Aggregate, variables: tuple[ast.Variable, ...], scope: Scope) -> _AggregateRelation:
        """Derive the relation of an aggregate over a group."""
        whole, name, supplied = self.whole, self.whole.name(), list[bool]()
        self._enter(name, aggregate, variables, functional=True)
        supply = whole.supply(name, scope.placed(variables), supplied)
        if AGGREGATES[aggregate.op].by_counts or has_counts(aggregate):
            self._of_counts(aggregate, name, variables, scope, supply)
        else:
            self._derive(aggregate, aggregate.op, name, variables, (), scope, supply)
        return _AggregateRelation(name, bool(supplied))

    def _of_counts(
        self, aggregate: ast.Aggregate, name: str, variables: tuple[ast.Variable, ...], scope: Scope, supply: Supply
    ) -> None:
        """Derive how many bindings have each value of a group, and what an aggregate makes of that."""
        whole, span, counts = self.whole, aggregate.span, f"{name}{COUNTS}"
        assert aggregate.operand is not None
        value, number = aggregate.operand, None
        body = list(aggregate.body)
        if is_counted(value):
            value, number = value.args
            body.append(ast.Comparison(">", number, ast.Constant(0, NUMBER, span), span))
        counting = replace(aggregate, operand=number, body=tuple(body))
        op = "count" if number is None else "sum"
        counts = self._derive(counting, op, counts, variables, (value,), scope, supply)
        keys = (*variables, whole.variable(value))
        times = whole.variable(aggregate)
        read = ast.Atom(counts, (*keys, times), span)
        fold = Fold(aggregate.op, len(variables))
        folded = keys if AGGREGATES[aggregate.op].by_rows else (*keys, times)  # accumulators add each as often
        whole.made.append(InternalRule(whole.rule, ast.Atom(name, folded, span), Conjunction((read,)), fold))

    def _derive(
        self,
        aggregate: ast.Aggregate,
        op: str,
        name: str,
        variables: tuple[ast.Variable, ...],
        value: tuple[ast.Term, ...],
        scope: Scope,
        supply: Supply,
    ) -> str:
        """Derive what `op` makes of the bindings of each group; the name of the relation.

        With a `value`, for each of its values in a group: `name`, or an equal relation that is there.
        """
        whole = self.whole
        operand = () if aggregate.operand is None else (aggregate.operand,)
        terms = (*variables, *value, *operand)
        groups = frozenset(v.name for v in variables)
        done = [
            whole.conjunction(terms, body, supply, groups=groups, wildcards=True)
            for body in whole.alternatives(aggregate.body, terms, braces=True) or ()
        ]
        if whole.failed or not self._ground(aggregate, done):
            return name
        keys = variables
        if value:
            (last,) = value
            if not isinstance(last, ast.Variable) or last in variables:
                last = whole.variable(last)
                done = [_with_named(last, len(variables), *one) for one in done]
            keys = (*variables, last)
        head, body = done[0]
        if value:
            renaming = Renaming([key.name for key in keys])
            same = (COUNTS, len(keys), renaming.conjunction(body), *map(renaming.term, operand))
            if len(done) == 1 and (there := whole.parts.shared.setdefault(same, name)) != name:
                return there
            self._enter(name, aggregate, keys, functional=True)
        one_atom = (
            len(done) == 1
            and len(body.atoms) == 1
            and not (body.compares or body.negated)
            and _distinct(body.atoms[0], head)
        )
        if AGGREGATES[op].by_rows:
            folded, counted = one_atom, dict[ast.Atom, ast.Atom]()
        else:
            counted = counted_atoms(done)
            folded = bool(body.atoms) and not (counted and makes_texts((*head, *body)))
            if len(done) == 1 and not folded and (apart := text_selections(head, body, counted, whole.parts.derived)):
                body, folded = self._selected(aggregate, name.removesuffix(COUNTS), *apart), True
        if len(done) > 1 or not folded:
            # A column of two alternatives would admit null for one of them; a group that is asked for is not null, nor
            # is what is folded.
            marked = {v.name for v in open_variables(_marks(scope.body, variables))}
            kept = (*keys[len(variables) :], *operand)
            known = groups - scope.keys - marked | self._nullable(kept, done) if len(done) > 1 else frozenset[str]()
            body, head = self._all(aggregate, name.removesuffix(COUNTS), done, keys, counted, known)
        fold = Fold(op, len(keys))
        whole.made.append(InternalRule(whole.rule, ast.Atom(name, head, aggregate.span), body, fold))
        return name

    def _nullable(
        self, operand: Sequence[ast.Term], done: Sequence[tuple[tuple[ast.Term, ...], Conjunction]]
    ) -> frozenset[str]:
        """The operand, if it is a variable that the columns of an atom may let be null."""
        relations = self.whole.parts.names.relations
        return frozenset(
            arg.name
            for _, body in done
            for atom in body.atoms
            if atom.name in relations
            for arg, type_ in zip(atom.args, relations[atom.name].types, strict=False)
            if isinstance(arg, ast.Variable) and arg in operand and (type_ is None or is_nullable(type_))
        )

    def _enter(
        self, name: str, aggregate: ast.Aggregate, variables: tuple[ast.Variable, ...], *, functional: bool = False
    ) -> None:
        op = aggregate.op
        words = [*[f"a group of `{op}`"] * len(variables), f"the result of `{op}`"]
        columns = [*(v.name for v in variables), word_of(op)]
        if name.endswith(COUNTS):
            words[-2], columns[-1] = f"a value of `{op}`", "count"
        self.whole.parts.relation(name, columns, words, aggregate.span, functional=functional)

    def _with_zero(self, aggregate: ast.Aggregate, name: str, variables: tuple[ast.Variable, ...], scope: Scope) -> str:
        """Derive the relation that has 0 for the groups without a binding.

        A group is not null in it, unless it may be and matches null.
        """
        with0, rule, span = f"{name}{WITH_ZERO}", self.whole.rule, aggregate.span
        if with0 in self.whole.parts.names.relations:
            return with0
        self._enter(with0, aggregate, variables)
        result, zero = self.whole.variable(aggregate), self._empty(aggregate)
        plain = ast.Atom(name, (*variables, result), span)
        none = ast.Atom(name, (*variables, ast.Wildcard(span)), span)
        groups = (ast.Atom(f"{name}{GROUPS}", scope.placed(variables), span),) if variables else ()
        marks = _marks(scope.body, variables)
        there = Conjunction((*groups, plain) if marks else (plain,), marks)
        known = frozenset(v.name for v in variables) - {v.name for v in open_variables(marks)}
        self.whole.made += [
            InternalRule(rule, replace(plain, name=with0), there, joined=known),
            InternalRule(rule, ast.Atom(with0, (*variables, zero), span), Conjunction(groups, marks, (none,))),
        ]
        return with0

    def _ground(self, aggregate: ast.Aggregate, done: Sequence[tuple[tuple[ast.Term, ...], Conjunction]]) -> bool:
        """Whether everything in the braces is bound; findings if not."""
        whole = self.whole
        unbound = check_bound(whole.rule, (), [body for _, body in done], whole.findings)
        for head, body in done:
            bound = bound_variables(body)
            for node in nodes(head):
                if isinstance(node, ast.Wildcard):
                    whole.findings.error(
                        f"a wildcard as the operand of `{aggregate.op}`",
                        node.span,
                        why="`_` has no value to compute with",
                        remedy="use a named variable that an atom in the braces binds",
                    )
                    whole.failed = True
                elif isinstance(node, ast.Variable) and node.name not in bound | unbound:
                    unbound.add(node.name)
                    whole.findings.error(
                        f"variable `{node.name}` is the operand of `{aggregate.op}` and in no atom of its braces",
                        node.span,
                        why="an aggregate ranges over the values that its braces bind",
                        remedy=f"use `{node.name}` as an argument of an atom in the braces",
                    )
        whole.failed |= bool(unbound)
        whole.unbound |= unbound
        return not whole.failed

    # The bindings as a relation

    def _all(
        self,
        aggregate: ast.Aggregate,
        name: str,
        done: Sequence[tuple[tuple[ast.Term, ...], Conjunction]],
        variables: tuple[ast.Variable, ...],
        counted: Mapping[ast.Atom, ast.Atom],
        known: frozenset[str],
    ) -> tuple[Conjunction, tuple[ast.Term, ...]]:
        """Derive the relation of all bindings; the body and the head of the aggregate over it.

        `counted`: atoms that it reads besides, and what is left of them in the relation (counted_atoms.py) · `known`:
        groups that are not null.
        """
        whole = self.whole
        head = done[0][0]
        bodies = [replace(body, atoms=tuple(counted.get(atom, atom) for atom in body.atoms)) for _, body in done]
        if aggregate.operand is not None and any(
            not isinstance(terms[-1], ast.Variable) or terms[-1] != head[-1] for terms, _ in done
        ):
            operand = whole.variable(aggregate.operand)
            bodies = [
                replace(body, compares=(*body.compares, ast.Comparison("=", operand, terms[-1], operand.span)))
                for (terms, _), body in zip(done, bodies, strict=True)
            ]
            head = (*variables, operand)
        columns = self._columns(aggregate, bodies)
        renaming = Renaming(list(columns))
        key = (tuple(name in known for name in columns), *(renaming.conjunction(body) for body in bodies))
        relation = whole.parts.shared.get(key)
        if relation is None:
            relation = whole.parts.shared[key] = f"{name}{ALL}"
            words = [f"a variable in the braces of `{aggregate.op}`"] * len(columns)
            whole.parts.relation(relation, list(columns), words, aggregate.span)
            args = tuple(columns.values())
            head_of_all = ast.Atom(relation, args, aggregate.span)
            whole.made += [InternalRule(whole.rule, head_of_all, body, joined=known) for body in bodies]
        # The second read of an atom is of the rows that were bound, null or not.
        again = {v.name: v for v in open_variables(counted) if v.name in columns}
        compares = tuple(ast.Comparison(OR_NULL, v, v, v.span) for v in again.values())
        return Conjunction((*counted, ast.Atom(relation, tuple(columns.values()), aggregate.span)), compares), head

    def _selected(
        self, aggregate: ast.Aggregate, name: str, body: Conjunction, selections: Sequence[TextSelection]
    ) -> Conjunction:
        """The body with the relations of `selections`, which are derived, in place of conditions on texts."""
        whole, span = self.whole, aggregate.span
        places = Counter(v.name for v in open_variables(body.atoms))
        for number, selection in enumerate(selections):
            columns = selection.columns()
            key = (MET, len(columns), Renaming([v.name for v in columns]).conjunction(selection.body))
            relation = whole.parts.shared.get(key)
            if relation is None:
                relation = whole.parts.shared[key] = f"{name}{MET}{number or ''}"
                words = [f"a variable in the braces of `{aggregate.op}`"] * len(columns)
                whole.parts.relation(relation, [v.name for v in columns], words, span)
                whole.made.append(InternalRule(whole.rule, ast.Atom(relation, columns, span), selection.body))
            # What one atom only has is read once more, null or not.
            compares = tuple(ast.Comparison(OR_NULL, v, v, v.span) for v in columns if places[v.name] == 1)
            body = replace(
                body, atoms=(*body.atoms, ast.Atom(relation, columns, span)), compares=(*body.compares, *compares)
            )
        return body

    def _columns(self, aggregate: ast.Aggregate, bodies: Sequence[Conjunction]) -> dict[str, ast.Variable]:
        """The variables that a binding consists of: all that the braces bind."""
        found = [all_names(body) for body in bodies]
        common = {name: place for name, place in found[0].items() if all(name in other for other in found)}
        written = {name for node in nodes(aggregate.body) if isinstance(node, ast.Variable) for name in (node.name,)}
        if not AGGREGATES[aggregate.op].repeats:
            return {name: place for name, place in common.items() if name in written or not name.startswith("_w")}
        for names in found:
            for name, place in names.items():
                wildcard = name.startswith("_w") and name not in written
                if name in common or not (wildcard or name in written):
                    continue
                self.whole.failed = True
                self.whole.unbound.add(name)
                self.whole.findings.error(
                    "a wildcard in one alternative inside the braces"
                    if wildcard
                    else f"variable `{name}` is not in every alternative inside the braces",
                    place.span,
                    why=f"`{aggregate.op}` ranges over the bindings of all variables, which alternatives must share",
                    remedy="give the disjunction a rule of its own, and aggregate over its head",
                )
        return common


def _group(aggregate: ast.Aggregate, names: set[str]) -> dict[str, ast.Variable]:
    """The variables that an aggregate shares with the names of its scope, each at its first place in the braces."""
    inside: tuple[Node, ...] = aggregate.body if aggregate.operand is None else (*aggregate.body, aggregate.operand)
    return {name: place for name, place in all_names(inside).items() if name in names}


def _simple(aggregate: ast.Aggregate, variables: tuple[ast.Variable, ...], scope: Scope) -> bool:
    """Whether a rule with one aggregate becomes two, rather than reading `@..with0`.

    Only a number, as of a count: the type of a sum's 0 is known by the column of its relation, and nothing else in a
    body without it.
    Without a group the question is whether a whole relation is empty, which is not to be asked about every other row.
    """
    atoms, spec = scope.body.atoms, AGGREGATES[aggregate.op]
    if spec.result != NUMBER or len(atoms) > 1 or bool(atoms) != bool(variables):
        return False
    bound = {arg.name for atom in atoms for arg in atom.args if isinstance(arg, ast.Variable)}
    return {variable.name for variable in variables} <= bound


def _marks(body: Conjunction, variables: Sequence[ast.Variable]) -> tuple[ast.Comparison, ...]:
    """What says of some variables that null matches null."""
    names = {variable.name for variable in variables}
    marks = (compare for compare in body.compares if lets_null_match(compare))
    return tuple(mark for mark in marks if isinstance(mark.left, ast.Variable) and mark.left.name in names)


def _holds_aggregate(node: Node) -> bool:
    return any(isinstance(part, ast.Aggregate) for part in nodes((node,)))


def _with_named(
    variable: ast.Variable, at: int, head: tuple[ast.Term, ...], body: Conjunction
) -> tuple[tuple[ast.Term, ...], Conjunction]:
    """A head and a body with a variable of its own for the term number `at`."""
    named = ast.Comparison("=", variable, head[at], head[at].span)
    return (*head[:at], variable, *head[at + 1 :]), replace(body, compares=(*body.compares, named))


def _distinct(atom: ast.Atom, head: Sequence[ast.Term]) -> bool:
    """Whether an atom has distinct variables for arguments, those of the head among them."""
    names = [arg.name for arg in atom.args if isinstance(arg, ast.Variable)]
    if len(set(names)) < len(atom.args):
        return False
    return all(isinstance(term, ast.Variable) and term.name in names for term in head)
