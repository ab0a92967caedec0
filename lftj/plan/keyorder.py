"""Choosing the key order of a join: which variable is bound at which depth.

A search over orders, depth by depth, keeping the `BEAM` cheapest beginnings (all of them up to four variables). The
cost of binding a variable v behind the variables B counts leapfrog steps:

    nodes(B)            bindings of B for which the depth is entered: the product of the matches of the depths before
                        it; when counting, only of those that v's part of the body is connected to (the others are
                        counted apart and multiplied)
    fan-out of an atom  distinct(B + v) / distinct(B) over the atom's columns: keys it offers under a prefix, on average
    steps               nodes * participants * least fan-out
    matches             the fan-outs multiplied, over the domain of v for each participant but one (independence)

plus `SORT` per row of a key order that would have to be built, `EMIT` per row of output, and `DEDUPE` where the
output needs sorting because the order does not begin with the head. Estimates only choose; they never change an
answer. Ties go to the order of appearance, so plans are deterministic.

In a large round of recursion (`Large`) independence says too little: atoms over relations that were derived from each
other hold the same keys far more often. So for the steps the matches of a depth are taken to lie between independent
and as many as the least fan-out, and runs that are opened are charged. How often the output is met is left to
independence, which says the same for all orders.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lftj.language.clause import Value, Var
from lftj.plan.body import Atom, Body, Condition
from lftj.plan.statistics import Statistics

BEAM = 64
# With more variables not every one is tried at every depth (`OrderSearch.next`).
WIDE = 16
SORT, EMIT, DEDUPE = 6.0, 1.0, 8.0
# In the place of SORT, where a key order is built once for many runs of a plan; and what one costs that each run has to
# build: some microseconds, whatever its rows, as a hundred steps do.
REPEATED, AGAIN = 0.05, 100.0
# In the place of SORT in a large round: per row of a key order that takes memory and is kept up to date from then on,
# and of one of the changed rows, which several joins share.
LASTING, SHARED = 24.0, 3.0
# A look into a row by all its columns: near the last one where these are bound in the order of its key.
NEAR, FAR = 1.0, 4.0
BOUNDS = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
SELECTIVITY = {"!=": 1.0, "<": 0.5, "<=": 0.5, ">": 0.5, ">=": 0.5}


class Large(NamedTuple):
    """What a large round is charged, in steps; chosen by timing the orders of eight of GALEN's joins.

    `stamped`: whether heads that were met before may be passed over (stamps.py) · `own`: whether the last negated atom
    is the head's own · `related`: where matches lie between independent (0) and the least fan-out (1), on a logarithmic
    scale · `opened`: a participant that is opened · `again`: a head that is met, where it is looked up and sorted out,
    whether it was met before or not.
    """

    stamped: bool
    own: bool
    related: float = 0.7
    opened: float = 6.0
    again: float = 9.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A key order and why: `rows[d]` are the estimated bindings of depth d, `cost` the estimated steps of the whole.

    `witnesses`: of an existential suffix, the estimated bindings below one of the head (1 if there is no suffix).
    """

    order: tuple[str, ...]
    rows: tuple[float, ...]
    cost: float
    forced: bool = False
    witnesses: float = 1.0


@dataclass(frozen=True, slots=True)
class _Partial:
    order: tuple[str, ...]
    matches: tuple[float, ...]
    rows: tuple[float, ...]
    cost: float
    witnesses: float = 1.0
    entered: float = 1.0


class OrderSearch:
    """The search for one body. `counting` says that only the number of bindings is asked for."""

    def __init__(
        self,
        body: Body,
        statistics: Mapping[str, Statistics],
        counting: bool,
        sort: float = SORT,
        large: Large | None = None,
        others: Collection[tuple[str, tuple[int, ...]]] = (),
    ) -> None:
        self.body, self.statistics, self.counting = body, statistics, counting
        self.sort, self.large, self.others = sort, large, others
        self.negated = body.negated[:-1] if large is not None and large.own else body.negated
        self.names = tuple(body.variables)
        self.rank = {v: i for i, v in enumerate(self.names)}
        self.holding = {v: [a for a in body.atoms if v in a.columns] for v in self.names}
        self._distinct: dict[tuple[str, frozenset[int]], float] = {}
        self.neighbours = {v: frozenset[str]().union(*(s for s in body.scopes if v in s)) - {v} for v in self.names}

    def distinct(self, predicate: str, columns: frozenset[int]) -> float:
        """Distinct keys of `columns`, asked of the statistics once."""
        at = (predicate, columns)
        if at not in self._distinct:
            self._distinct[at] = self.statistics[predicate].distinct(columns)
        return self._distinct[at]

    def ranked(self) -> list[Choice]:
        """The orders found, cheapest first."""
        beam = [_Partial((), (), (), 0.0)]
        for _ in self.names:
            grown = [p for partial in beam for v in self.next(partial) if (p := self.bind(partial, v))]
            grown.sort(key=lambda p: (p.cost, [self.rank[v] for v in p.order]))
            beam = grown[: max(4, BEAM * WIDE // max(WIDE, len(self.names)))]
        choices = [Choice(p.order, p.rows, p.cost + self._finish(p), witnesses=p.witnesses) for p in beam]
        return sorted(choices, key=lambda c: (c.cost, [self.rank[v] for v in c.order]))

    def next(self, partial: _Partial) -> list[str]:
        """The variables to try behind `partial`.

        Of many only those that it is connected to, if there are any, and of those that one atom alone holds the first.
        """
        left = [v for v in self.names if v not in partial.order]
        if len(self.names) <= WIDE:
            return left
        near = [v for v in left if not self.neighbours[v].isdisjoint(partial.order)] or left
        alone: dict[frozenset[str], str] = {}
        for v in near:
            if len(self.holding[v]) == 1:
                alone.setdefault(self.neighbours[v] | {v}, v)
        found = [v for v in near if alone.get(self.neighbours[v] | {v}, v) == v]
        return found if any(self.bind(partial, v) for v in found) else left

    def forced(self, order: tuple[str, ...]) -> Choice:
        """The given order of named variables; constants and the like go where they are first determined."""
        wanted = list(order)
        partial = _Partial((), (), (), 0.0)
        while len(partial.order) < len(self.names):
            hidden = [v for v in self.names if v not in order and v not in partial.order]
            computed = [v for v in hidden if self.definition(v, frozenset(partial.order)) is not None]
            # A variable that is only computed waits for what it is computed from.
            grown = next(p for v in (*computed, *wanted, *hidden) if (p := self.bind(partial, v)) is not None)
            wanted = [v for v in wanted if v != grown.order[-1]]
            partial = grown
        cost = partial.cost + self._finish(partial)
        return Choice(partial.order, partial.rows, cost, forced=True, witnesses=partial.witnesses)

    def definition(self, v: str, bound: frozenset[str]) -> Condition | None:
        """A condition that computes `v` from variables already bound."""
        for condition in self.body.conditions:
            for name, _, needs in condition.defines:
                if name == v and needs <= bound:
                    return condition
        return None

    def bind(self, partial: _Partial, v: str) -> _Partial | None:
        """`partial` with `v` bound next; None if nothing can bind it yet."""
        bound = frozenset(partial.order)
        definition = self.definition(v, bound)
        atoms = self.holding[v]
        if definition is None and not atoms:
            return None
        fan_outs, domains = [], []
        for atom in atoms:
            own = frozenset(c for c, name in enumerate(atom.columns) if name in bound)
            column = frozenset([atom.columns.index(v)])
            fan_outs.append(max(1e-9, self.distinct(atom.predicate, own | column) / self.distinct(atom.predicate, own)))
            domains.append(self.distinct(atom.predicate, column))
        domain = max([1.0, *domains])
        nodes = 1.0
        for i, u in enumerate(partial.order):
            apart = self.counting and not self._connected(v, u, frozenset(partial.order[:i]))
            # What is counted apart multiplies nothing, but where it comes to zero the parts after it are not looked at.
            nodes *= min(1.0, partial.matches[i]) if apart else partial.matches[i]
        if definition is not None:
            matches = 1.0
            for fan_out in fan_outs:
                matches *= min(1.0, fan_out / domain)
            most, offered = matches, 1.0
        else:
            matches = domain
            for fan_out in fan_outs:
                matches *= min(1.0, fan_out / domain)
            most = offered = min(fan_outs)
        now = bound | {v}
        for condition in self.body.conditions:
            if condition is not definition and v in condition.variables and condition.variables <= now:
                selectivity = self.selectivity(condition, v, domain)
                matches, most = matches * selectivity, most * selectivity
        # How often the depth is entered, and how often it matches then.
        entered, met = nodes, matches
        if self.large is not None:
            entered, met = partial.entered, matches ** (1.0 - self.large.related) * most**self.large.related
        steps = entered * (1.0 + len(atoms) * offered)
        # A look into each negated atom whose last variable this is; what it takes away is not estimated.
        steps += entered * met * sum(v in atom.variables <= now for atom in self.negated)
        for atom in self.body.looked:
            if v in atom.variables <= now:
                near = list(atom.columns) == [u for u in (*partial.order, v) if u in atom.variables]
                steps += entered * met * (NEAR if near else FAR)
                there = self.there(atom)
                matches, met = matches * there, met * there
        witness = self.body.head_variables
        witnesses = partial.witnesses
        every = self.counting or self.body.every
        if not every and witness <= bound and not witness >= frozenset(self.names):
            # An existential suffix: the search below a binding of the head ends at the first witness.
            witnesses *= matches
            steps, matches, met = steps / max(1.0, met), min(1.0, matches), min(1.0, met)
        if self.large is not None:
            steps += entered * self.large.opened * len(atoms)
        return _Partial(
            (*partial.order, v),
            (*partial.matches, matches),
            (*partial.rows, nodes * matches),
            partial.cost + steps,
            witnesses,
            entered * met,
        )

    def there(self, atom: Atom) -> float:
        """The part of the bindings for which a row is there that is looked up: all, if it is the head's own.

        Of that there need be no statistics.
        """
        if atom.variables >= self.body.head_variables or atom.predicate not in self.statistics:
            return 1.0
        apart = math.prod(self.distinct(atom.predicate, frozenset([c])) for c in range(len(atom.columns)))
        return self.distinct(atom.predicate, frozenset(range(len(atom.columns)))) / apart

    def selectivity(self, condition: Condition, v: str, domain: float) -> float:
        """The part of the bindings that a condition lets through."""
        op = condition.compare.op
        if op == "=":
            return 1.0 / domain
        for side, other in (
            (condition.compare.left, condition.compare.right),
            (condition.compare.right, condition.compare.left),
        ):
            if (
                isinstance(side, Var)
                and isinstance(other, Value)
                and side.type == "number"
                and op in BOUNDS
                and self.holding[side.name]
            ):
                atom = self.holding[side.name][0]
                # Rows, not keys, are compared: where small keys are frequent ones, that is what decides how much is
                # left.
                below = self.statistics[atom.predicate].part_below(atom.columns.index(side.name), int(other.value))
                upward = (op if side is condition.compare.left else BOUNDS[op]) in (">", ">=")
                return min(1.0, max(1e-4, 1.0 - below if upward else below))
        return SELECTIVITY.get(op, 0.5)

    def _connected(self, v: str, u: str, removed: frozenset[str]) -> bool:
        """Whether `v` and `u` are in one part of the body once `removed` is bound."""
        reached, frontier = {v}, [v]
        while frontier:
            for w in self.neighbours[frontier.pop()]:
                if w not in removed and w not in reached:
                    reached.add(w)
                    frontier.append(w)
        return u in reached

    def _finish(self, partial: _Partial) -> float:
        """Cost of the key orders that would have to be built, and of the output."""
        place = {v: i for i, v in enumerate(partial.order)}
        needed: dict[tuple[str, tuple[int, ...]], float] = {}
        for atom in (*self.body.atoms, *self.body.negated):
            columns = sorted(
                (c for c, v in enumerate(atom.columns) if v is not None), key=lambda c: place[atom.columns[c] or ""]
            )
            statistics = self.statistics[atom.predicate]
            built = (o for o in statistics.stored.orders if (atom.predicate, o) not in self.others)
            if not any(order[: len(columns)] == tuple(columns) for order in built):
                once, each = (AGAIN, SHARED) if statistics.fleeting else (0.0, self.sort)
                needed[atom.predicate, tuple(columns)] = once + each * statistics.rows
        cost = sum(needed.values())
        if not self.counting and partial.rows:
            head = self.body.head_variables
            prefix = 0
            while prefix < len(partial.order) and frozenset(partial.order[:prefix]) != head:
                prefix += 1
            in_order = frozenset(partial.order[:prefix]) == head or self.body.every
            if self.large is not None and self.large.stamped:
                return cost if self._once(partial.order) else cost + self.large.again * partial.rows[-1]
            cost += (EMIT if in_order else DEDUPE) * partial.rows[-1]
        return cost

    def _once(self, order: tuple[str, ...]) -> bool:
        """Whether heads that were met before are passed over: the variable before the last is not the head's."""
        head = self.body.head_variables
        return len(order) > 1 and order[-1] in head and order[-2] not in head and len(self.holding[order[-1]]) == 1


def rank_orders(
    body: Body,
    statistics: Mapping[str, Statistics],
    *,
    counting: bool = False,
    forced: tuple[str, ...] | None = None,
    sort: float = SORT,
    large: Large | None = None,
    others: Collection[tuple[str, tuple[int, ...]]] = (),
) -> list[Choice]:
    """Key orders for `body`, cheapest first.

    Only the one `forced` says, if it names the variables in the order the user wants. `sort`: what a row of a key order
    costs that would have to be built. `large`: for a large round. `others`: (relation, key order) of those that are
    there for others, and would cost as much as if they had to be built.
    """
    search = OrderSearch(body, statistics, counting, sort, large, others)
    return search.ranked() if forced is None else [search.forced(forced)]
