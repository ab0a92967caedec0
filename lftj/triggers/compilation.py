"""Compilation: from the definitions of maps to what every event does to them (cumulus.txt, section 3.5).

For each map and each event the delta of its definition is normalised. In each of its monomials the connected
components that read relations become maps of their own: a statement then reads these maps instead of relations. The
new maps are compiled in the same way, until no definition reads a relation after its delta.

    q[] = AggSum([], O(k, r) * L(k, p) * p * r)
    on +O(@0, @1):  the delta AggSum([], L(@0, p) * p) * @1  reads a component of L: m1[k] = AggSum([k], L(k, p) * p)
                    so  q[] += m1[@0] * @1

A parameter of the event within a component is a key of its map, which so serves all values of the parameter. Maps whose
definitions are equal up to names are one map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

from lftj.errors import EvaluationError
from lftj.language.clause import Term, Value, Var
from lftj.triggers.algebra import (
    DELETION,
    EVENT,
    INSERTION,
    Add,
    Factor,
    Formula,
    MapDefinition,
    MapRead,
    Mul,
    Rel,
    Statement,
    TriggerProgram,
    Val,
)
from lftj.triggers.canonical import canonical, combined
from lftj.triggers.evaluation_order import in_order
from lftj.triggers.event_delta import delta, parameters
from lftj.triggers.formulas import is_parameter, number, relations_of, renamed, variables, variables_of_all
from lftj.triggers.normalise import Atomic, Monomial, Unified, components, polynomial, split_sums, unified
from lftj.values.codes import Column, Schema
from lftj.values.faults import NUMBER_MAX, NUMBER_MIN

Top = tuple[Sequence[Var], Formula]


def compiled(tops: Mapping[str, Top], relations: Mapping[str, Schema | Sequence[str]]) -> TriggerProgram:
    """The program that keeps `tops`, by name (keys, body), and the maps that serve them.

    `relations`: the schema of every relation that a body reads, or the types of its columns. `TriggerProgram.tops` has
    the map of each of `tops` in order: two that are equal up to names have one map, that of the first name.
    Raises EvaluationError where a variable of a body has no value.
    """
    schemas = {name: _schema(name, given) for name, given in relations.items()}
    return _Compilation(schemas, set(tops)).program(tops)


def _schema(name: str, given: Schema | Sequence[str]) -> Schema:
    if isinstance(given, Schema):
        return given
    return Schema(name, tuple(Column(f"c{i}", type) for i, type in enumerate(given)))


@dataclass(slots=True)
class _Compilation:
    """What is known so far. `forms`: the map of each canonical form, with its keys in the order of the form."""

    schemas: Mapping[str, Schema]
    taken: set[str]
    maps: dict[str, MapDefinition] = field(default_factory=dict)
    forms: dict[str, tuple[str, tuple[Var, ...]]] = field(default_factory=dict)
    sums: dict[tuple[str, ...], str] = field(default_factory=dict)
    statements: dict[tuple[int, str], list[Statement]] = field(default_factory=dict)

    def program(self, tops: Mapping[str, Top]) -> TriggerProgram:
        # All tops first: what one of them needs may be another one.
        names = [self.top(name, tuple(keys), body) for name, (keys, body) in tops.items()]
        done = 0
        while done < len(self.maps):
            self.compile(list(self.maps.values())[done])
            done += 1
        order = [(sign, name) for name in self.schemas for sign in (INSERTION, DELETION)]
        statements = {event: tuple(self.statements[event]) for event in order if event in self.statements}
        return TriggerProgram(self.schemas, self.maps, statements, tuple(names))

    def top(self, name: str, keys: tuple[Var, ...], body: Formula) -> str:
        """The map of a top: a new one, or one that is equal."""
        monomials = normal(keys, body)
        forms = [canonical(keys, monomial, ordered=True).text for monomial in monomials]
        same = ("|".join(f"{key.name}:{key.type}" for key in keys) if not forms else "", *sorted(forms))
        if same in self.sums:
            return self.sums[same]
        self.sums[same] = name
        formulas = [monomial.formula() for monomial in monomials]
        self.maps[name] = MapDefinition(name, keys, formulas[0] if len(formulas) == 1 else Add(tuple(formulas)))
        if len(monomials) == 1 and monomials[0].coefficient == 1:
            form = canonical(keys, monomials[0])
            self.forms.setdefault(form.text, (name, form.keys))
        return name

    def compile(self, target: MapDefinition) -> None:
        """The statements of a map, for every event that changes it."""
        for relation in relations_of(target.body):
            row = parameters(self.schemas[relation])
            for sign in (INSERTION, DELETION):
                change = delta(target.body, sign, relation, row)
                found: dict[tuple[tuple[Var | Value, ...], tuple[Factor, ...]], int] = {}
                for monomial in polynomial(change, row):
                    simple = unified(monomial, row, target.keys)
                    if simple is not None:
                        keys = tuple(_plain(simple.replaced_by.get(key.name, key)) for key in target.keys)
                        factors = self.extracted(simple, keys)
                        found[keys, factors] = found.get((keys, factors), 0) + simple.monomial.coefficient
                self.statements.setdefault((sign, relation), []).extend(
                    Statement(target.name, keys, (*_coefficient(n), *factors))
                    for (keys, factors), n in found.items()
                    if n
                )

    def extracted(self, simple: Unified, wanted: tuple[Var | Value, ...]) -> tuple[Factor, ...]:
        """The factors of a statement: its components over relations replaced by maps (ExtractAggregates).

        What reads a parameter and no relation stays, and so do the variables that it shares with a component: they
        become keys of the component's map.
        """
        free = [
            f
            for f in simple.monomial.factors
            if isinstance(f, Rel) or not any(map(is_parameter, variables(f).values()))
        ]
        groups = components(free, frozenset(name for name in variables_of_all(free) if name.startswith(EVENT)))
        kept: list[Atomic] = [factor for factor in simple.monomial.factors if factor not in free]
        kept += [factor for group in groups if not _reads_relation(group) for factor in group]
        outside = {key.name for key in wanted if isinstance(key, Var)} | set(variables_of_all(kept))
        came_from = {term.name: name for name, term in simple.replaced_by.items() if isinstance(term, Var)}
        reads = [self.materialised(group, outside, came_from) for group in groups if _reads_relation(group)]
        bound = {name for name in variables_of_all((*kept, *reads)) if name.startswith(EVENT)}
        bound |= {key.name for key in wanted if is_parameter(key)}
        names = [key.name for key in wanted if isinstance(key, Var)]
        return in_order([*kept, *reads], bound, names)  # type: ignore[return-value]

    def materialised(self, group: Sequence[Atomic], outside: set[str], came_from: Mapping[str, str]) -> MapRead:
        """The read of a component's map. Its keys are what the statement sees of it: parameters and `outside`.

        `came_from`: the variable that a parameter stands for, after which the map's key is named.
        """
        keys, factors = _definition(group, outside, came_from)
        form = canonical([key for key, _ in keys], Monomial(1, factors))
        if form.text not in self.forms:
            name = self.new_name()
            order = tuple(key for key, _ in keys)
            self.maps[name] = MapDefinition(name, order, Mul(in_order(factors, ())))
            self.forms[form.text] = name, form.keys
        name, known_keys = self.forms[form.text]
        # Both forms have their keys in one order; the map has its own.
        given = {key.name: outer for key, outer in keys}
        value = {known.name: given[mine.name] for known, mine in zip(known_keys, form.keys, strict=True)}
        return MapRead(name, tuple(value[key.name] for key in self.maps[name].keys))

    def new_name(self) -> str:
        """A name that no top and no map has."""
        names = (f"m{i}" for i in count(1))
        return next(name for name in names if name not in self.taken and name not in self.maps)


def normal(keys: Sequence[Var], body: Formula) -> list[Monomial]:
    """`AggSum(keys, body)` as monomials without redundant variables, each in an order in which it can be evaluated."""
    simple = [unified(monomial, keys) for monomial in polynomial(body, keys)]
    split = [part for one in simple if one is not None for part in split_sums(one.monomial)]
    again = [one.monomial for part in split if (one := unified(part, keys)) is not None]
    names = [key.name for key in keys]
    return [Monomial(monomial.coefficient, in_order(monomial.factors, (), names)) for monomial in combined(again, keys)]


def _definition(
    group: Sequence[Atomic], outside: set[str], came_from: Mapping[str, str]
) -> tuple[list[tuple[Var, Var]], tuple[Atomic, ...]]:
    """The keys of a component's map, each with what the statement has for it, and its factors in variables of its own.

    A parameter that occurs twice in one relation becomes two keys.
    """
    named: dict[str, Var] = {}
    keys: list[tuple[Var, Var]] = []
    used: set[str] = set()

    def fresh(outer: Var) -> Var:
        base = came_from.get(outer.name, "k") if is_parameter(outer) else outer.name
        base = base.split("'")[0]
        new = next(name for name in chain((base,), (f"{base}{i}" for i in count(2))) if name not in used)
        used.add(new)
        return Var(new, outer.type)

    factors: list[Atomic] = []
    for factor in group:
        if isinstance(factor, Rel):
            args: list[Var | Value] = []
            for arg in factor.args:
                if isinstance(arg, Var):
                    inner = named.get(arg.name)
                    if inner is None or inner in args:
                        inner = fresh(arg)
                        named.setdefault(arg.name, inner)
                        if is_parameter(arg) or arg.name in outside:
                            keys.append((inner, arg))
                    args.append(inner)
                else:
                    args.append(arg)
            factors.append(Rel(factor.name, tuple(args)))
    for factor in group:
        if not isinstance(factor, Rel):
            for name, var in variables(factor).items():
                if name not in named:
                    named[name] = fresh(var)
                    if name in outside:
                        keys.append((named[name], var))
            factors.append(renamed(factor, named))  # type: ignore[arg-type]
    return keys, tuple(factors)


def _reads_relation(group: Sequence[Atomic]) -> bool:
    return any(isinstance(factor, Rel) for factor in group)


def _plain(term: Term) -> Var | Value:
    assert isinstance(term, Var | Value), "a key is no computed term"
    return term


def _coefficient(n: int) -> tuple[Val, ...]:
    """The factor for a coefficient, none for 1."""
    if not NUMBER_MIN <= n <= NUMBER_MAX:
        raise EvaluationError(
            f"the constant factor {n} of a sum is no 64-bit integer",
            why="the product of the constants of a rule is computed once, when it is compiled",
            remedy="use smaller constants",
        )
    return () if n == 1 else (number(n),)
