"""Which maps are worth keeping: one for a whole component of a delta, or smaller ones between which a statement joins.

    triangles: +R(a, b) reads  S(b, c) * T(c, a)    as one map by (b, a): a row of S changes an entry for every row of T
                                                    as slices: S by b, then T by (c, a): only an event of R pays

For every way to cut a component into connected parts the cost of a unit of time is estimated, from counts of rows and
of distinct values:

    events of the statement's relation * bindings that the statement visits
    + for every part, events of each of its relations * entries of the part's map that one event changes

The whole component is taken unless another way costs less than two thirds of it (`_BETTER`): estimates are rough, and a
lookup takes the same time whatever the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from lftj.language.clause import Var
from lftj.triggers.algebra import EVENT, MapEstimate, Rel
from lftj.triggers.formulas import binds, variables, variables_of_all
from lftj.triggers.normalise import Atomic, components

# How much less than the whole component's map another way must cost.
_BETTER = 2 / 3
# How many times as large a relation must be as another one that is taken for one of keys.
_ANOTHER_SIZE = 2
# Components of more relations are kept whole: the ways to cut one of 6 relations are 203 at most.
_MOST_RELATIONS = 6


@dataclass(frozen=True, slots=True)
class EventStatistics:
    """What is known of relations, for estimates.

    `rows`: of each relation (1,000 if unknown) · `distinct`: of each of its columns · `events`: how many of each come
    in a unit of time (as many as there are rows if unknown)

    Where distinct values are unknown, a column that joins relations of different sizes is taken for a key of the
    smallest one, as of customers whose orders are joined; any other one has a tenth of its relation's rows.
    """

    rows: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[str, Sequence[float]] = field(default_factory=dict)
    events: Mapping[str, float] = field(default_factory=dict)

    def rows_of(self, relation: str) -> float:
        """The rows of a relation, 1 at least."""
        return max(1.0, self.rows.get(relation, 1000.0))

    def distinct_of(self, relation: str, column: int, joined: Sequence[str] = ()) -> float:
        """The distinct values of a column that joins it with the relations `joined`, between 1 and the rows."""
        rows = self.rows_of(relation)
        known = self.distinct.get(relation)
        if known is not None:
            return min(rows, max(1.0, known[column]))
        sizes = [rows, *map(self.rows_of, joined)]
        return min(sizes) if min(sizes) * _ANOTHER_SIZE <= max(sizes) else max(1.0, rows / 10)

    def events_of(self, relation: str) -> float:
        """How often a row of a relation comes or goes, compared with the others."""
        return self.events.get(relation, self.rows_of(relation))


@dataclass(frozen=True, slots=True)
class _MapPart:
    """A part of a component: a map with `keys`, of `size` entries."""

    atoms: tuple[Rel, ...]
    keys: frozenset[str]
    size: float


def parts_worth_keeping(
    component: Sequence[Atomic], outside: set[str], relation: str, statistics: EventStatistics
) -> list[list[Rel]]:
    """How the relations of a component are cut into maps, for a statement on events of `relation`.

    `outside`: the variables that the statement needs of the component besides the event's parameters.
    """
    atoms = [factor for factor in component if isinstance(factor, Rel)]
    if not 1 < len(atoms) <= _MOST_RELATIONS:
        return [atoms]
    estimate = _Estimate(statistics, atoms)
    # A condition over several parts is tested in the statement, which needs its variables then.
    conditions = [set(variables(factor)) for factor in component if not isinstance(factor, Rel)]
    best, best_cost = [atoms], _BETTER * estimate.cost([atoms], outside, conditions, relation)
    for cut in _cuts(atoms):
        if len(cut) > 1 and (cost := estimate.cost(cut, outside, conditions, relation)) < best_cost:
            best, best_cost = cut, cost
    return best


def map_estimate(keys: Sequence[Var], factors: Sequence[Atomic], statistics: EventStatistics) -> MapEstimate:
    """The estimate of a map of a product. A key that no relation has is computed, and has few values at worst."""
    atoms = [factor for factor in factors if isinstance(factor, Rel)]
    estimate = _Estimate(statistics, atoms)
    distinct = tuple(estimate.distinct(key.name) if key.name in estimate.values else 1.0 for key in keys)
    return MapEstimate(max(1.0, min(estimate.bindings(atoms, frozenset()), prod(distinct))), distinct)


def _cuts(atoms: Sequence[Rel]) -> Iterator[list[list[Rel]]]:
    """All ways to cut relations into parts that are connected by variables."""
    if not atoms:
        yield []
        return
    first, *rest = atoms
    for chosen in range(1 << len(rest)):
        part = [first, *(atom for i, atom in enumerate(rest) if chosen >> i & 1)]
        if len(components(part, _parameters(part))) == 1:
            for others in _cuts([atom for i, atom in enumerate(rest) if not chosen >> i & 1]):
                yield [part, *others]


def _parameters(atoms: Sequence[Atomic]) -> frozenset[str]:
    return frozenset(name for name in variables_of_all(atoms) if name.startswith(EVENT))


class _Estimate:
    """Estimates over the relations of one component."""

    def __init__(self, statistics: EventStatistics, atoms: Sequence[Rel]) -> None:
        self.statistics = statistics
        # By variable: where it stands, and the distinct values there.
        places: dict[str, list[tuple[str, int]]] = {}
        for atom in atoms:
            for column, arg in enumerate(atom.args):
                if isinstance(arg, Var):
                    places.setdefault(arg.name, []).append((atom.name, column))
        self.values: dict[str, list[float]] = {}
        for name, found in places.items():
            joined = [relation for relation, _ in found]
            self.values[name] = [statistics.distinct_of(relation, column, joined) for relation, column in found]

    def distinct(self, name: str) -> float:
        """Of a variable, over the join."""
        return min(self.values[name])

    def bindings(self, atoms: Sequence[Rel], bound: frozenset[str]) -> float:
        """The bindings of a join, for one value of each bound variable."""
        count, seen = 1.0, set(bound)
        for atom in atoms:
            count *= self.statistics.rows_of(atom.name)
            for column, arg in enumerate(atom.args):
                if not isinstance(arg, Var):
                    count /= self.statistics.distinct_of(atom.name, column)
                elif arg.name in seen:
                    count /= max(self.values[arg.name])
            seen |= binds(atom)
        return count

    def cost(
        self,
        cut: Sequence[Sequence[Rel]],
        outside: set[str],
        conditions: Sequence[set[str]],
        relation: str,
    ) -> float:
        """Of a unit of time, for the statement and the maps of its parts."""
        parts = [self.part(atoms, cut, outside, conditions) for atoms in cut]
        return self.statistics.events_of(relation) * self.visits(parts) + sum(map(self.upkeep, parts))

    def part(
        self, atoms: Sequence[Rel], cut: Sequence[Sequence[Rel]], outside: set[str], conditions: Sequence[set[str]]
    ) -> _MapPart:
        """A part with the keys that others see of it."""
        mine = set(variables_of_all(atoms))
        seen = set(outside)
        for other in cut:
            if other is not atoms:
                seen |= set(variables_of_all(other))
        for names in conditions:
            if not names <= mine:
                seen |= names
        keys = frozenset(name for name in mine if name in seen or name.startswith(EVENT))
        size = min(self.bindings(atoms, frozenset()), prod(self.distinct(name) for name in keys))
        return _MapPart(tuple(atoms), keys, max(1.0, size))

    def visits(self, parts: Sequence[_MapPart]) -> float:
        """The entries that a statement reads, smallest slices first."""
        todo, bound = list(parts), {name for part in parts for name in _parameters(part.atoms)}
        count, total = 1.0, 0.0
        while todo:
            best = min(todo, key=lambda part: (self.slice(part, bound), not part.keys & bound))
            todo.remove(best)
            found = self.slice(best, bound)
            total += count * max(1.0, found)
            count *= found
            bound |= best.keys
        return total

    def slice(self, part: _MapPart, bound: set[str]) -> float:
        """The entries of a part's map for one value of each bound variable."""
        return part.size / prod(self.distinct(name) for name in part.keys & bound)

    def upkeep(self, part: _MapPart) -> float:
        """What the events of its relations cost the map of a part: a read and a write per entry that changes."""
        total = 0.0
        for i, atom in enumerate(part.atoms):
            others = [other for j, other in enumerate(part.atoms) if j != i]
            found = self.bindings(others, binds(atom)) if others else 0.5
            new = prod(self.distinct(name) for name in part.keys - binds(atom))
            total += self.statistics.events_of(atom.name) * 2 * min(found, new)
        return total
