"""Which maps are worth keeping: one for a whole component of a delta, or smaller ones between which a statement joins.

    triangles: +R(a, b) reads  S(b, c) * T(c, a)    as one map by (b, a): a row of S changes an entry for every row of T
                                                    as slices: S by b, then T by (c, a): only an event of R pays

For every way to cut a component into connected parts the cost of a unit of time is estimated, from counts of rows and
of distinct values:

    events of the statement's relation * bindings that the statement visits
    + for every part, events of each of its relations * entries of the part's map that one event changes

The whole component is taken unless another way costs less than two thirds of it (`_BETTER`): estimates are rough, and a
lookup takes the same time whatever the data.

A join of a dozen relations has thousands of components, of which most are others with other names: variables are
numbered, sets of them and of relations are the bits of integers, and each component is cut once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from operator import or_
from typing import NamedTuple

from lftj.language.clause import Var
from lftj.triggers.algebra import EVENT, MapEstimate, Rel
from lftj.triggers.formulas import variables
from lftj.triggers.normalise import Atomic

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


class _Shape(NamedTuple):
    """All that costs depend on, with variables numbered by their first place and sets of them as bits.

    `atoms`: relations with their arguments, -1 for a constant · `parameters`: those of events · `outside`: what a
    statement on events of `relation` needs · `conditions`: the variables of each.
    """

    atoms: tuple[tuple[str, tuple[int, ...]], ...]
    parameters: int = 0
    outside: int = 0
    conditions: tuple[int, ...] = ()
    relation: str = ""


class Cuts:
    """How components are cut into maps, by the statistics of one program."""

    def __init__(self, statistics: EventStatistics) -> None:
        self.statistics = statistics
        self._known: dict[_Shape, tuple[int, ...]] = {}

    def parts(self, component: Sequence[Atomic], outside: set[str], relation: str) -> list[list[Rel]]:
        """How the relations of a component are cut into maps, for a statement on events of `relation`.

        `outside`: the variables that the statement needs of the component besides the event's parameters.
        """
        atoms = [factor for factor in component if isinstance(factor, Rel)]
        if not 1 < len(atoms) <= _MOST_RELATIONS:
            return [atoms]
        numbers: dict[str, int] = {}
        numbered = _numbered(atoms, numbers)
        # A condition over several parts is tested in the statement, which needs its variables then.
        conditions = [
            sum(1 << numbers.setdefault(name, len(numbers)) for name in variables(factor))
            for factor in component
            if not isinstance(factor, Rel)
        ]
        parameters = sum(1 << number for name, number in numbers.items() if name.startswith(EVENT))
        needed = sum(1 << number for name, number in numbers.items() if name in outside)
        shape = _Shape(numbered, parameters, needed, tuple(conditions), relation)
        best = self._known.get(shape)
        if best is None:
            best = self._known[shape] = _Estimate(self.statistics, shape).best()
        return [[atoms[i] for i in _bits(part)] for part in best]


def map_estimate(keys: Sequence[Var], factors: Sequence[Atomic], statistics: EventStatistics) -> MapEstimate:
    """The estimate of a map of a product. A key that no relation has is computed, and has few values at worst."""
    numbers: dict[str, int] = {}
    shape = _Shape(_numbered([factor for factor in factors if isinstance(factor, Rel)], numbers))
    estimate = _Estimate(statistics, shape)
    distinct = tuple(estimate.distinct[numbers[key.name]] if key.name in numbers else 1.0 for key in keys)
    bindings = estimate.bindings((1 << len(shape.atoms)) - 1, 0)
    return MapEstimate(max(1.0, min(bindings, prod(distinct))), distinct)


def _numbered(atoms: Sequence[Rel], numbers: dict[str, int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Relations with the numbers of their arguments, which are added to `numbers`."""
    return tuple(
        (
            atom.name,
            tuple(numbers.setdefault(arg.name, len(numbers)) if isinstance(arg, Var) else -1 for arg in atom.args),
        )
        for atom in atoms
    )


def _bits(of: int) -> Iterator[int]:
    """The numbers that are in a set."""
    while of:
        yield (of & -of).bit_length() - 1
        of &= of - 1


class _Estimate:
    """Estimates over the relations of one component; a part is the set of the numbers of its relations."""

    def __init__(self, statistics: EventStatistics, shape: _Shape) -> None:
        self.statistics, self.shape = statistics, shape
        self.rows = [statistics.rows_of(relation) for relation, _ in shape.atoms]
        # The variables that each relation has.
        self.binds = [reduce(or_, (1 << arg for arg in args if arg >= 0), 0) for _, args in shape.atoms]
        # By variable: where it stands, and the distinct values there.
        places: dict[int, list[tuple[str, int]]] = {}
        for relation, args in shape.atoms:
            for column, arg in enumerate(args):
                if arg >= 0:
                    places.setdefault(arg, []).append((relation, column))
        # By variable: the distinct values over the join, and in the place that has most.
        self.distinct: dict[int, float] = {}
        self._most: dict[int, float] = {}
        for arg, found in places.items():
            joined = [relation for relation, _ in found]
            values = [statistics.distinct_of(relation, column, joined) for relation, column in found]
            self.distinct[arg], self._most[arg] = min(values), max(values)
        self._products: dict[int, float] = {0: 1.0}
        self._parts: dict[int, tuple[int, float, float]] = {}

    def best(self) -> tuple[int, ...]:
        """The parts to cut the component into."""
        whole = (1 << len(self.shape.atoms)) - 1
        best: tuple[int, ...] = (whole,)
        best_cost = _BETTER * self._cost(best, self._part(whole)[2])
        # Ways to begin, the one to go on with last: the parts, what they cost the events of their relations, and what
        # is left.
        todo: list[tuple[tuple[int, ...], float, int]] = [((), 0.0, whole)]
        while todo:
            cut, upkeep, left = todo.pop()
            if upkeep >= best_cost:
                continue
            if left:
                longer = [
                    ((*cut, part), upkeep + self._part(part)[2], left & ~part)
                    for part in self._connected(left)
                    if part != whole
                ]
                todo += reversed(longer)
            elif (cost := self._cost(cut, upkeep)) < best_cost:
                best, best_cost = cut, cost
        return best

    def _connected(self, left: int) -> Iterator[int]:
        """The parts with the first of these relations that are connected by variables."""
        first = left & -left
        rest = left & ~first
        chosen = 0
        while True:
            if self._is_connected(first | chosen):
                yield first | chosen
            if chosen == rest:
                return
            chosen = (chosen - rest) & rest  # the next set of some of the rest

    def _is_connected(self, part: int) -> bool:
        """Whether all relations of a part are reached from the first by variables that are no parameters."""
        reached, *left = [self.binds[i] & ~self.shape.parameters for i in _bits(part)]
        while left:
            apart = [names for names in left if not names & reached]
            if len(apart) == len(left):
                return False
            reached |= reduce(or_, (names for names in left if names & reached))
            left = apart
        return True

    def bindings(self, part: int, bound: int) -> float:
        """The bindings of a join, for one value of each bound variable."""
        count = 1.0
        for i in _bits(part):
            relation, args = self.shape.atoms[i]
            count *= self.rows[i]
            for column, arg in enumerate(args):
                if arg < 0:
                    count /= self.statistics.distinct_of(relation, column)
                elif bound >> arg & 1:
                    count /= self._most[arg]
            bound |= self.binds[i]
        return count

    def _product(self, names: int) -> float:
        """The values that some variables can have together."""
        found = self._products.get(names)
        if found is None:
            found = self._products[names] = prod(self.distinct[name] for name in _bits(names))
        return found

    def _cost(self, cut: Sequence[int], upkeep: float) -> float:
        """Of a unit of time, for the statement and the maps of its parts, of which the latter are known."""
        visits = self._visits([self._part(part)[:2] for part in cut])
        return self.statistics.events_of(self.shape.relation) * visits + upkeep

    def _part(self, part: int) -> tuple[int, float, float]:
        """(the keys that others see of a part, the size of its map, what its upkeep costs)."""
        found = self._parts.get(part)
        if found is None:
            mine = others = 0
            for i, names in enumerate(self.binds):
                if part >> i & 1:
                    mine |= names
                else:
                    others |= names
            seen = self.shape.outside | self.shape.parameters | others
            for names in self.shape.conditions:
                if names & ~mine:
                    seen |= names
            keys = mine & seen
            size = max(1.0, min(self.bindings(part, 0), self._product(keys)))
            found = self._parts[part] = keys, size, self._upkeep(part, keys)
        return found

    def _visits(self, todo: list[tuple[int, float]]) -> float:
        """The entries that a statement reads of maps (keys, size), smallest slices first."""
        bound = self.shape.parameters
        count, total = 1.0, 0.0
        while todo:
            # The entries of each for one value of each bound variable.
            slices = [(size / self._product(keys & bound), not keys & bound) for keys, size in todo]
            at = slices.index(min(slices))
            found = slices[at][0]
            total += count * max(1.0, found)
            count *= found
            bound |= todo.pop(at)[0]
        return total

    def _upkeep(self, part: int, keys: int) -> float:
        """What the events of its relations cost the map of a part: a read and a write per entry that changes."""
        total = 0.0
        for i in _bits(part):
            others = part & ~(1 << i)
            found = self.bindings(others, self.binds[i]) if others else 0.5
            new = self._product(keys & ~self.binds[i])
            total += self.statistics.events_of(self.shape.atoms[i][0]) * 2 * min(found, new)
        return total
