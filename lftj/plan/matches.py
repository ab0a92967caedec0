"""Estimates of one body: how many keys a variable offers behind bound ones, how many match, whether a witness follows.

Sets of variables are bit masks over the order of appearance, since a search over key orders asks for thousands of
them. What is asked of a variable depends on the bound variables that it shares an atom or a condition with, and is
computed once for these.

    fan-out of an atom  distinct(B + v) / distinct(B) over the atom's columns: keys it offers under a prefix, on average
    offered             the least fan-out
    matches             the fan-outs multiplied, over the domain of v for each participant but one (independence)

**Witnesses.** Once the head is bound, each part of the body that nothing connects to another one, a *component*, has a
witness or has none, whatever the others do. Of the keys that v offers each leads to a witness with the same
probability: it has to match, and every component that is left below it needs a witness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from lftj.language.clause import Compare, Parameter, Value, Var
from lftj.language.functors import FLIPPED
from lftj.plan.body import Atom, Body, Condition
from lftj.plan.statistics import Statistics

# Of columns with as many keys no estimate says that they are the same; so of two searches the shorter one goes first.
SURE = 0.95
SELECTIVITY = {"!=": 1.0, "<": 0.5, "<=": 0.5, ">": 0.5, ">=": 0.5}
# The least part of the rows that a bound is expected to let through.
LEAST_PART = 1e-4
NOTHING: Mapping[str, int] = MappingProxyType({})


class Matching(NamedTuple):
    """A variable behind bound ones.

    `participants`: atoms that hold it, but for those that offer the same keys (joinplan.py shares their trie node) ·
    `offered`: keys that its node offers · `matches`: those that all agree on, were they independent · `most`: the same,
    if they agree as far as they can · `negated`: atoms that are looked at for each · `defined`: it is computed.
    """

    participants: int
    offered: float
    matches: float
    most: float
    negated: int
    defined: bool

    @property
    def doubt(self) -> float:
        """The probability that the key of a participant is in the others, if averages say that all keys are."""
        return SURE ** (self.participants - 1)


def first_hit(offered: float, hit: float) -> float:
    """The probability that one of so many keys is a hit, if each is one with probability `hit`."""
    hit = min(1.0, hit)  # estimates that meet in it may say more
    if offered <= 1.0:
        return offered * hit
    return 1.0 if hit == 1.0 else -math.expm1(offered * math.log1p(-hit))


class _Offer(NamedTuple):
    """What an atom offers of a variable behind bound ones.

    `node`: what has the keys, which is one for atoms that are alike in it · `fan_out`: keys on average · `domain`: keys
    in the whole column.
    """

    node: tuple[object, ...]
    fan_out: float
    domain: float


class _Held:
    """A variable in an atom, and what it offers behind those that are bound, which are a mask."""

    def __init__(self, matches: Matches, atom: Atom, v: str) -> None:
        self.predicate, self.column = atom.predicate, atom.columns.index(v)
        # Of each column that holds a variable: its place, the variable's bit, and its name.
        self._places = [(c, matches.bit[name], name) for c, name in enumerate(atom.columns) if name is not None]
        self._mask = matches.mask(atom.variables)
        self._offers: dict[int, _Offer] = {}

    def offer(self, bound: int, distinct: Callable[[str, frozenset[int]], float]) -> _Offer:
        """What it offers; computed once for the bound variables that the atom holds.

        `distinct`: of `Matches`, which are not to be held here: pages would wait for the collector.
        """
        bound &= self._mask
        found = self._offers.get(bound)
        if found is None:
            own = [(c, name) for c, bit, name in self._places if bit & bound]
            before, column = frozenset(c for c, _ in own), frozenset([self.column])
            keys = distinct(self.predicate, before | column) / distinct(self.predicate, before)
            domain = distinct(self.predicate, column)
            found = _Offer((self.predicate, self.column, *own), max(1e-9, keys), domain)
            self._offers[bound] = found
        return found


class NumberBound(NamedTuple):
    """That `variable` compares by `op` with the number `key`."""

    variable: str
    op: str
    key: int

    @classmethod
    def of(cls, compare: Compare, given: Mapping[str, int]) -> NumberBound | None:
        """What a comparison says; None if it is no such bound. `given`: the codes of parameters."""
        for side, op, other in (
            (compare.left, compare.op, compare.right),
            (compare.right, FLIPPED.get(compare.op, ""), compare.left),
        ):
            if isinstance(side, Var) and side.type == "number" and op in FLIPPED:
                if isinstance(other, Value) and isinstance(other.value, int):
                    return cls(side.name, op, int(other.value))
                if isinstance(other, Parameter) and other.name in given:
                    return cls(side.name, op, given[other.name])
        return None

    def part(self, atom: Atom, statistics: Mapping[str, Statistics]) -> float:
        """The part of the rows of an atom that meet it."""
        # Rows, not keys, are compared: where small keys are frequent ones, that is what decides how much is left.
        below = statistics[atom.predicate].part_below(atom.columns.index(self.variable), self.key)
        return min(1.0, max(LEAST_PART, 1.0 - below if self.op in (">", ">=") else below))


class Matches:
    """The estimates of `body` from `statistics`; `negated` are the negated atoms that are looked at.

    `shared`: atoms that offer the same keys are one participant. `given`: the codes of parameters.
    """

    def __init__(
        self,
        body: Body,
        statistics: Mapping[str, Statistics],
        negated: tuple[Atom, ...],
        *,
        shared: bool = True,
        given: Mapping[str, int] = NOTHING,
    ) -> None:
        self.body, self.statistics, self.negated, self.shared, self.given = body, statistics, negated, shared, given
        self.names = tuple(body.variables)
        self.bit = {v: 1 << i for i, v in enumerate(self.names)}
        self.all = (1 << len(self.names)) - 1
        self.holding = {v: [a for a in body.atoms if v in a.columns] for v in self.names}
        self.neighbours = dict.fromkeys(self.bit.values(), 0)
        for scope in body.scopes:
            mask = self.mask(scope)
            for v in scope:
                self.neighbours[self.bit[v]] |= mask & ~self.bit[v]
        self.computed = self.mask(frozenset(name for c in body.conditions for name, _, _ in c.defines))
        # Of each variable: atoms that hold it, conditions that name it, what these compute it from, negated atoms.
        self._held = {v: [_Held(self, atom, v) for atom in self.holding[v]] for v in self.names}
        self._named = {
            v: [(c, self.mask(c.variables)) for c in body.conditions if v in c.variables] for v in self.names
        }
        self._defined = {
            v: [(c, self.mask(needs)) for c in body.conditions for name, _, needs in c.defines if name == v]
            for v in self.names
        }
        self._looked = {v: [self.mask(a.variables) for a in negated if v in a.variables] for v in self.names}
        self._distinct: dict[tuple[str, frozenset[int]], float] = {}
        self._matching: dict[tuple[int, int], Matching | None] = {}
        self._components: dict[int, tuple[int, ...]] = {}
        self._witness: dict[tuple[int, int], float] = {}

    def mask(self, variables: frozenset[str]) -> int:
        """The mask of a set of variables."""
        return sum(self.bit[v] for v in variables)

    def named(self, mask: int) -> list[str]:
        """The variables of a mask, in order of appearance."""
        found = []
        while mask:
            bit = mask & -mask
            mask ^= bit
            found.append(self.names[bit.bit_length() - 1])
        return found

    def distinct(self, predicate: str, columns: frozenset[int]) -> float:
        """Distinct keys of `columns`, asked of the statistics once."""
        at = (predicate, columns)
        if at not in self._distinct:
            self._distinct[at] = self.statistics[predicate].distinct(columns)
        return self._distinct[at]

    def definition(self, v: str, bound: int) -> Condition | None:
        """A condition that computes `v` from variables already bound."""
        return next((condition for condition, needs in self._defined[v] if not needs & ~bound), None)

    def matching(self, bit: int, bound: int) -> Matching | None:
        """The variable `bit` behind those that are `bound`; None if nothing can bind it yet."""
        at = (bit, bound & self.neighbours[bit])
        if at not in self._matching:
            self._matching[at] = self._estimate(*at)
        return self._matching[at]

    def _estimate(self, bit: int, mask: int) -> Matching | None:
        v = self.names[bit.bit_length() - 1]
        definition, atoms = self.definition(v, mask), self._held[v]
        if definition is None and not atoms:
            return None
        offers = [atom.offer(mask, self.distinct) for atom in atoms]
        if self.shared and len(offers) > 1:
            offers = list({offer.node: offer for offer in reversed(offers)}.values())[::-1]
        domain = max([1.0, *(offer.domain for offer in offers)])
        fan_outs = [offer.fan_out for offer in offers]
        matches = math.prod([min(1.0, fan_out / domain) for fan_out in fan_outs])
        if definition is not None:
            most, offered = matches, 1.0
        else:
            matches *= domain
            most = offered = min(fan_outs)
        free = ~(mask | bit)
        for condition, needs in self._named[v]:
            if condition is not definition and not needs & free:
                selectivity = self.selectivity(condition, v, domain)
                matches, most = matches * selectivity, most * selectivity
        # What a negated atom takes away is not estimated.
        looks = sum(1 for needs in self._looked[v] if not needs & free)
        return Matching(len(fan_outs), offered, matches, most, looks, definition is not None)

    def selectivity(self, condition: Condition, v: str, domain: float) -> float:
        """The part of the bindings that a condition lets through."""
        op = condition.compare.op
        if op == "=":
            return 1.0 / domain
        bound = NumberBound.of(condition.compare, self.given)
        if bound is not None and self.holding[bound.variable]:
            return bound.part(self.holding[bound.variable][0], self.statistics)
        return SELECTIVITY.get(op, 0.5)

    def there(self, atom: Atom) -> float:
        """The part of the bindings for which a row is there that is looked up: all, if it is the head's own.

        Of that there need be no statistics.
        """
        if atom.variables >= self.body.head_variables or atom.predicate not in self.statistics:
            return 1.0
        apart = math.prod(self.distinct(atom.predicate, frozenset([c])) for c in range(len(atom.columns)))
        return self.distinct(atom.predicate, frozenset(range(len(atom.columns)))) / apart

    def components(self, variables: int) -> tuple[int, ...]:
        """`variables` in parts that nothing connects, all others being bound; in order of appearance."""
        if variables not in self._components:
            found = []
            left = variables
            while left:
                reached = frontier = left & -left
                while frontier:
                    bit = frontier & -frontier
                    new = self.neighbours[bit] & left & ~reached
                    reached |= new
                    frontier = (frontier ^ bit) | new
                found.append(reached)
                left &= ~reached
            self._components[variables] = tuple(found)
        return self._components[variables]

    def frontier(self, variables: int, bound: int) -> int:
        """Those of `variables` that a bound one is connected to, or that are computed from bound ones."""
        found, left = 0, variables
        while left:
            bit = left & -left
            left ^= bit
            near = self.neighbours[bit] & bound
            if near or bit & self.computed:
                known = self.matching(bit, bound)
                if known is not None and (near or known.defined):
                    found |= bit
        return found

    def witness(self, component: int, bound: int) -> float:
        """The probability that a component has a witness, `bound` being bound.

        By some order of its variables, least fan-out first: it is a property of the data, not of the order. That of a
        component needs those of the parts that are left behind its first variable, which are found before it: by a list
        of what waits, as a chain may be longer than calls can be deep.
        """
        known, asked = self._witness, self._seen_by(component, bound)
        waiting = [] if asked in known else [asked]
        first: dict[tuple[int, int], tuple[Matching | None, list[tuple[int, int]]]] = {}
        while waiting:
            at = waiting[-1]
            if at not in first:
                first[at] = self._first_of(*at)
            match, parts = first[at]
            unknown = [part for part in parts if part not in known]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            rest = math.prod(known[part] for part in parts)
            known[at] = (
                1.0 if match is None else first_hit(match.offered, match.doubt * match.matches / match.offered * rest)
            )
        return known[asked]

    def _seen_by(self, component: int, bound: int) -> tuple[int, int]:
        """A component, and those of `bound` that it is connected to."""
        around, left = 0, component
        while left:
            bit = left & -left
            left ^= bit
            around |= self.neighbours[bit]
        return component, bound & around

    def bindings(self, component: int, bound: int) -> float:
        """How many bindings there are, at most, of those `bound` variables that a component is connected to."""
        found, left = 1.0, self._seen_by(component, bound)[1]
        while left:
            bit = left & -left
            left ^= bit
            known = self.matching(bit, 0)
            found *= math.inf if known is None else known.matches
        return found

    def _first_of(self, component: int, bound: int) -> tuple[Matching | None, list[tuple[int, int]]]:
        """(how the first variable of a component is matched, the parts that are left behind it)."""
        left = self.frontier(component, bound) or component
        best, chosen = None, 0
        while left:
            bit = left & -left
            left ^= bit
            known = self.matching(bit, bound)
            if known is not None and (best is None or known.offered < best.offered):
                best, chosen = known, bit
        if best is None:
            return None, []
        return best, [self._seen_by(part, bound | chosen) for part in self.components(component & ~chosen)]

    def witnesses(self, variables: int, bound: int) -> float:
        """The probability that every component of `variables` has a witness."""
        return math.prod(self.witness(part, bound) for part in self.components(variables))
