"""Compilation: from the definitions of maps to what every event does to them (Cumulus, section 3.5).

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

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, count

from lftj.errors import EvaluationError
from lftj.language.clause import Term, Value, Var
from lftj.triggers.algebra import (
    DELETION,
    INSERTION,
    Add,
    AggSum,
    Factor,
    Formula,
    MapDefinition,
    MapEstimate,
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
from lftj.triggers.extraction import Extracted, extracted
from lftj.triggers.formulas import number, relations_of
from lftj.triggers.m3f import formula_text
from lftj.triggers.normalise import Atomic, Monomial, Unified, polynomial, split_sums, unified
from lftj.triggers.worth_keeping import Cuts, EventStatistics, map_estimate
from lftj.values.codes import NUMBER_MAX, NUMBER_MIN
from lftj.values.schema import Column, Schema

Top = tuple[Sequence[Var], Formula]
# By the keys and the factors of a statement: its coefficient.
_Changes = dict[tuple[tuple[Var | Value, ...], tuple[Factor, ...]], int]
# Letters of a map's name that says all events that lead to it.
_LONGEST_NAME = 32
# Programs that are kept for those who ask for the same.
_KEPT = 32


def compiled(
    tops: Mapping[str, Top],
    relations: Mapping[str, Schema | Sequence[str]],
    *,
    statistics: EventStatistics | None = None,
    naive: bool = False,
) -> TriggerProgram:
    """The program that keeps `tops`, by name (keys, body), and the maps that serve them.

    `relations`: the schema of every relation that a body reads, or the types of its columns. `TriggerProgram.tops` has
    the map of each of `tops` in order: two that are equal up to names have one map, that of the first name.
    `statistics`: what decides which maps are worth keeping (worth_keeping.py). `naive`: every delta of every map is a
    map of its own, as the naive viewlet transform has it: nothing is factorised, shared or left to statements.
    Raises EvaluationError where a variable of a body has no value, and where a part of it reads no relation.
    """
    asked = tuple((name, tuple(keys), body) for name, (keys, body) in tops.items())
    schemas = tuple((name, _schema(name, given)) for name, given in relations.items())
    known = statistics or EventStatistics()
    distinct = tuple((name, tuple(of)) for name, of in known.distinct.items())
    return _compiled(asked, schemas, tuple(known.rows.items()), distinct, tuple(known.events.items()), naive)


@lru_cache(maxsize=_KEPT)
def _compiled(
    tops: tuple[tuple[str, tuple[Var, ...], Formula], ...],
    schemas: tuple[tuple[str, Schema], ...],
    rows: tuple[tuple[str, float], ...],
    distinct: tuple[tuple[str, tuple[float, ...]], ...],
    events: tuple[tuple[str, float], ...],
    naive: bool,
) -> TriggerProgram:
    """The program, which is kept, as nobody changes one.

    Rules that differ in conditions of one atom have the same formulas, and views are often made anew, over relations
    that are empty.
    """
    statistics = EventStatistics(dict(rows), dict(distinct), dict(events))
    found = _Compilation(dict(schemas), {name for name, _, _ in tops}, statistics, naive)
    return found.program({name: (keys, body) for name, keys, body in tops})


def _schema(name: str, given: Schema | Sequence[str]) -> Schema:
    if isinstance(given, Schema):
        return given
    return Schema(name, tuple(Column(f"c{i}", type) for i, type in enumerate(given)))


@dataclass(slots=True)
class _Compilation:
    """What is known so far. `forms`: the map of each canonical form, with its keys in the order of the form."""

    schemas: Mapping[str, Schema]
    taken: set[str]
    statistics: EventStatistics
    naive: bool
    # By map: the relations whose events led to it, which it is named after.
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    maps: dict[str, MapDefinition] = field(default_factory=dict)
    estimates: dict[str, MapEstimate] = field(default_factory=dict)
    forms: dict[str, tuple[str, tuple[Var, ...]]] = field(default_factory=dict)
    sums: dict[tuple[str, ...], str] = field(default_factory=dict)
    cuts: Cuts = field(init=False)
    statements: dict[tuple[int, str], list[Statement]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cuts = Cuts(self.statistics)

    def program(self, tops: Mapping[str, Top]) -> TriggerProgram:
        # All tops first: what one of them needs may be another one.
        names = [self.top(name, tuple(keys), body) for name, (keys, body) in tops.items()]
        done = 0
        while done < len(self.maps):
            self.compile(list(self.maps.values())[done])
            done += 1
        order = [(sign, name) for name in self.schemas for sign in (INSERTION, DELETION)]
        statements = {event: tuple(self.statements[event]) for event in order if self.statements.get(event)}
        return TriggerProgram(self.schemas, self.maps, statements, tuple(names), estimates=self.estimates)

    def top(self, name: str, keys: tuple[Var, ...], body: Formula) -> str:
        """The map of a top: a new one, or one that is equal."""
        monomials = normal(keys, body)
        for monomial in monomials:
            if not relations_of(monomial.formula()):
                raise EvaluationError(
                    f"a part of `{name}` reads no relation: {formula_text(monomial.formula())}",
                    why="a map is empty at first and holds what rows add up to: events would never bring that part",
                    remedy="leave it out, and add it where the result is read",
                )
        forms = [canonical(keys, monomial, ordered=True).text for monomial in monomials]
        same = ("|".join(f"{key.name}:{key.type}" for key in keys) if not forms else "", *sorted(forms))
        if same in self.sums and not self.naive:
            return self.sums[same]
        self.sums[same] = name
        formulas = [monomial.formula() for monomial in monomials]
        self.maps[name] = MapDefinition(name, keys, formulas[0] if len(formulas) == 1 else Add(tuple(formulas)))
        if len(monomials) == 1 and monomials[0].coefficient == 1:
            form = canonical(keys, monomials[0])
            self.forms.setdefault(form.text, (name, form.keys))
            self.estimates[name] = map_estimate(keys, monomials[0].factors, self.statistics)
        return name

    def compile(self, target: MapDefinition) -> None:
        """The statements of a map, for every event that changes it."""
        for relation in relations_of(target.body):
            come = self.changes(target, INSERTION, relation)
            # Where products read it once, a row that goes takes away what one that comes brings.
            once = not self.naive and _most_times(target.body, relation) == 1
            go = {at: -n for at, n in come.items()} if once else self.changes(target, DELETION, relation)
            for sign, found in ((INSERTION, come), (DELETION, go)):
                self.statements.setdefault((sign, relation), []).extend(
                    Statement(target.name, keys, (*_coefficient(n), *factors))
                    for (keys, factors), n in found.items()
                    if n
                )

    def changes(self, target: MapDefinition, sign: int, relation: str) -> _Changes:
        """What an event changes of a map."""
        row = parameters(self.schemas[relation])
        path = (*self.paths.get(target.name, ()), relation)
        found: _Changes = {}
        for monomial in polynomial(delta(target.body, sign, relation, row), row):
            simple = unified(monomial, row, target.keys)
            if simple is not None:
                keys = tuple(_plain(simple.replaced_by.get(key.name, key)) for key in target.keys)
                coefficient, factors = self.extracted(simple, keys, path)
                found[keys, factors] = found.get((keys, factors), 0) + coefficient
        return found

    def extracted(
        self, simple: Unified, wanted: tuple[Var | Value, ...], path: tuple[str, ...]
    ) -> tuple[int, tuple[Factor, ...]]:
        """A statement: its coefficient, and its factors with maps in place of relations.

        `wanted`: the keys of its target. `path`: the relations whose events led here, this one last.
        """
        names = {key.name for key in wanted if isinstance(key, Var)}
        bound = frozenset(var.name for var in parameters(self.schemas[path[-1]]))
        kept, pieces = extracted(
            simple.monomial.factors,
            bound,
            names - bound,
            cut=None if self.naive else partial(self.cut, path[-1]),
            whole=self.naive,
            called={term.name: name for name, term in simple.replaced_by.items() if isinstance(term, Var)},
        )
        coefficient = simple.monomial.coefficient
        # The views of the naive transform are the deltas with their signs.
        inside, coefficient = (coefficient, 1) if self.naive and pieces else (1, coefficient)
        kept += [self.materialised(piece, inside, path) for piece in pieces]
        return coefficient, in_order(kept, bound, names, self.visits)  # type: ignore[return-value]

    def visits(self, read: MapRead, known: set[str]) -> float:
        """The entries that a read visits where variables have values, by estimates."""
        return self.estimates[read.name].visits(read, known)

    def cut(self, relation: str, component: Sequence[Atomic], outside: set[str]) -> list[list[Rel]]:
        """The parts of a component whose maps are worth keeping, for a statement on events of `relation`."""
        return self.cuts.parts(component, outside, relation)

    def materialised(self, piece: Extracted, coefficient: int, path: tuple[str, ...]) -> MapRead:
        """The read of a map: a new one, or one that is equal."""
        body = Monomial(coefficient, piece.factors)
        keys = tuple(key for key, _ in piece.keys)
        form = canonical(keys, body)
        if self.naive or form.text not in self.forms:
            name = self.new_name(path)
            ordered = Monomial(coefficient, in_order(body.factors, ()))
            self.maps[name] = MapDefinition(name, keys, ordered.formula())
            self.estimates[name] = map_estimate(keys, piece.factors, self.statistics)
            self.forms[form.text] = name, form.keys
        name, known_keys = self.forms[form.text]
        # Both forms have their keys in one order; the map has its own.
        given = {key.name: outer for key, outer in piece.keys}
        value = {known.name: given[mine.name] for known, mine in zip(known_keys, form.keys, strict=True)}
        return MapRead(name, tuple(value[key.name] for key in self.maps[name].keys))

    def new_name(self, path: tuple[str, ...]) -> str:
        """A name that no top and no map has, after the events that lead to the map."""
        words = ["m", *(re.sub(r"\W+", "_", relation) for relation in path)]
        base = "_".join(words)
        base = base if len(base) <= _LONGEST_NAME else f"m_{words[-1]}"
        apart = "_" if base[-1].isdigit() else ""
        names = chain((base,), (f"{base}{apart}{i}" for i in count(2)))
        name = next(name for name in names if name not in self.taken and name not in self.maps)
        self.paths[name] = path
        return name


def _most_times(formula: Formula, relation: str) -> int:
    """How often a product of a formula reads a relation at most."""
    match formula:
        case Rel(name):
            return int(name == relation)
        case Mul(parts):
            return sum(_most_times(part, relation) for part in parts)
        case Add(parts):
            return max((_most_times(part, relation) for part in parts), default=0)
        case AggSum(_, body):
            return _most_times(body, relation)
    return 0


def normal(keys: Sequence[Var], body: Formula) -> list[Monomial]:
    """`AggSum(keys, body)` as monomials without redundant variables, each in an order in which it can be evaluated."""
    simple = [unified(monomial, keys) for monomial in polynomial(body, keys)]
    split = [part for one in simple if one is not None for part in split_sums(one.monomial)]
    again = [one.monomial for part in split if (one := unified(part, keys)) is not None]
    names = [key.name for key in keys]
    return [Monomial(monomial.coefficient, in_order(monomial.factors, (), names)) for monomial in combined(again, keys)]


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
