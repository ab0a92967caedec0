"""Choosing the key order of a join: which variable is bound at which depth.

A search over orders, depth by depth, keeping the `BEAM` cheapest beginnings (all of them up to three variables), and
of what runs once another one over those for which no key order has to be built. The cost of binding a variable behind
bound ones counts leapfrog steps, from the estimates of matches.py:

    entered     how often the depth is entered: the product of the matches of the depths before it; when counting, only
                of those that the variable's part of the body is connected to (the others are counted apart and
                multiplied), and once for each of their bindings that are different
    steps       entered * participants * keys offered

plus `SORT` per row of a key order that would have to be built, `EMIT` per row of output, and `DEDUPE` where the
output needs sorting because the order does not begin with the head. Estimates only choose; they never change an
answer. Ties go to the order of appearance, so plans are deterministic.

Behind the last variable of the head is an existential suffix, whose search ends at the first witness: of the keys a
depth offers only those up to the first that leads to one are looked at, few where most do, all where none does. A
component that is searched while another one waits its turn is searched for all of its witnesses if that one has none:
the walk goes back to the variable before, whatever made it fail. So an order that leaves what it began, or binds what
is connected to nothing, is charged the products that it walks through.

In a large round of recursion (`Large`) independence says too little: atoms over relations that were derived from each
other hold the same keys far more often. So for the steps the matches of a depth are taken to lie between independent
and as many as the least fan-out, and runs that are opened are charged. How often the output is met is left to
independence, which says the same for all orders.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from operator import itemgetter
from typing import NamedTuple

from lftj.plan.body import Atom, Body
from lftj.plan.matches import NOTHING, Matches, Matching, first_hit
from lftj.plan.statistics import Statistics

# Up to so many variables the beam holds all orders.
ALL_ORDERS = 3
BEAM = 16
# Of more variables than `MANY` so many orders of the same ones are kept, and what is connected to nothing that is bound
# waits, unless the head needs it. Of more than `CROWDED` those that one atom alone holds are bound together, where
# nothing else tells them apart (`twins`).
MANY, ALIKE, WIDE, CROWDED = 6, 2, 8, 16
# Bindings of a changed row at a depth, up to which its order is as good as any.
BINDINGS = 2.0
SORT, EMIT, DEDUPE = 6.0, 1.0, 8.0
# In the place of SORT, where a key order is built once for many runs of a plan; and what one costs that each run has to
# build: some microseconds, whatever its rows, as a hundred steps do.
REPEATED, AGAIN = 0.05, 100.0
# In the place of SORT in a large round: per row of a key order that takes memory and is kept up to date from then on,
# and of one of the changed rows, which several joins share.
LASTING, SHARED = 24.0, 3.0
# A look into a row by all its columns: near the last one where these are bound in the order of its key.
NEAR, FAR = 1.0, 4.0


class Large(NamedTuple):
    """What a large round is charged, in steps; chosen by timing the orders of eight of GALEN's joins.

    `stamped`: whether heads that were met before may be passed over (leaf_dedup.py) · `own`: whether the last negated
    atom is the head's own · `related`: where matches lie between independent (0) and the least fan-out (1), on a
    logarithmic scale · `opened`: a participant that is opened · `again`: a head that is met, where it is looked up and
    sorted out, whether it was met before or not.
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


class _Partial(NamedTuple):
    """A beginning of an order.

    `places`: where its variables stand in the order of appearance · `bound`: they as a mask · `rows`, `cost`,
    `witnesses`: as of a `Choice` · `nodes`: bindings, were all participants independent · `entered`: how often the next
    depth is entered · `apart`: when counting, that by component · of an existential suffix, components of which a
    variable has still to be bound: those that are `taken` to have a witness, and how often the next depth is entered
    although one, that is `without_witness`, has none.
    """

    order: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    bound: int = 0
    rows: tuple[float, ...] = ()
    cost: float = 0.0
    witnesses: float = 1.0
    nodes: float = 1.0
    entered: float = 1.0
    apart: tuple[tuple[int, float], ...] = ()
    taken: frozenset[int] = frozenset()
    without_witness: tuple[tuple[int, float], ...] = ()


class OrderSearch:
    """The search for one body. `counting` says that only the number of bindings is asked for.

    `sort`: what a row of a key order costs that would have to be built. `large`: for a large round. `others`:
    (relation, key order) of those that are there for others, and would cost as much as if they had to be built.
    `given`: the codes of parameters.
    """

    def __init__(
        self,
        body: Body,
        statistics: Mapping[str, Statistics],
        counting: bool,
        sort: float = SORT,
        large: Large | None = None,
        others: Collection[tuple[str, tuple[int, ...]]] = (),
        given: Mapping[str, int] = NOTHING,
    ) -> None:
        self.body, self.statistics, self.counting = body, statistics, counting
        self.sort, self.large, self.others = sort, large, others
        own = large is not None and large.own
        # What large rounds are charged was fitted with every atom by itself.
        looked = body.negated[:-1] if own else body.negated
        self.matches = Matches(body, statistics, looked, shared=large is None, given=given)
        # What is read in a key order.
        self.placed = (*body.atoms, *body.negated)
        self.names = self.matches.names
        self.rank = {v: i for i, v in enumerate(self.names)}
        self.head = self.matches.mask(body.head_variables)
        self.twins = self._twins() if len(self.names) > CROWDED else {v: (v,) for v in self.names}
        self.leading = self._leading(0)
        # Whether the search ends at a first witness once the head is bound.
        self.existential = not (counting or body.every)
        whole = self.matches.components(self.matches.all)
        self.start = _Partial(apart=tuple((part, 1.0) for part in whole) if counting else ())

    def _twins(self) -> dict[str, tuple[str, ...]]:
        """By variable, those that are bound with it: of one atom alone, asked for nowhere else, all in the head or not.

        They stand in the order of the columns, for which nothing has to be sorted. What orders of them are there differ
        little, and of 100 columns there are more than can be looked at.
        """
        body, holding = self.body, self.matches.holding
        apart = set(body.shown)
        for scope in (*(c.variables for c in body.conditions), *(a.variables for a in (*body.negated, *body.looked))):
            apart |= scope
        found: dict[tuple[int, bool], list[str]] = {}
        for i, atom in enumerate(body.atoms):
            for v in atom.columns:
                if v is not None and v not in apart and len(holding[v]) == 1 and atom.columns.count(v) == 1:
                    found.setdefault((i, bool(self.matches.bit[v] & self.head)), []).append(v)
        return {v: (v,) for v in self.names} | {v: tuple(twins) for twins in found.values() for v in twins}

    def _leading(self, bound: int) -> int:
        """The first of each class of twins that is not bound: it stands for those that are left."""
        classes = [twins for v, twins in self.twins.items() if v == twins[0]]
        left = (next((v for v in twins if not self.matches.bit[v] & bound), None) for twins in classes)
        return self.matches.mask(frozenset(v for v in left if v is not None))

    def begin(self, variables: Sequence[str]) -> None:
        """Let all orders begin with these variables, which atoms hold, and not with their twins."""
        for v in variables:
            following = self.bind(self.start, v)
            assert following is not None, v
            self.start = following
        self.leading = self._leading(self.start.bound)

    def ranked(self) -> list[Choice]:
        """The orders found, cheapest first."""
        many = len(self.names) > MANY
        found = self._search(many, head_first=False)
        if many and self.existential and self.head.bit_count() > 1:
            # To bind the head first, whether connected or not, looks dear until the first witnesses end the search.
            found += [p for p in self._search(many, head_first=True) if p not in found]
        choices = self._sorted(map(self.choice, found))
        if len(self.names) > ALL_ORDERS and self.large is None and self.sort >= SORT:
            # What has to be built is known of whole orders, when the beam has dropped others that need nothing. A plan
            # that runs again and again builds what it needs: to walk more than that in each run is dear in the end.
            best = next(p for p in found if p.order == choices[0].order)
            if best.cost < choices[0].cost / 2:
                along = self._search(many, head_first=False, built=True)
                choices = self._sorted([*choices, *(self.choice(p) for p in along if p not in found)])
        return choices

    def grown(self, *, head_first: bool = False) -> Choice | None:
        """The order that binds next what is connected and has least matches; None if nothing can be bound some time.

        `head_first`: the head's variables before others, connected or not. What is known of a variable changes only
        where one that it is connected to is bound: of many, no more than these are looked at again.
        """
        matches, partial = self.matches, self.start
        # By (whether it comes late, is not computed, its matches, its number); `latest`: of a variable, by its number.
        waiting: list[tuple[bool, bool, float, int]] = []
        latest: dict[int, tuple[bool, bool, float, int]] = {}

        def look(variables: int, *, anywhere: bool = False) -> None:
            for v in matches.named(variables & self.leading & ~partial.bound):
                bit, number = matches.bit[v], self.rank[v]
                known, late = matches.matching(bit, partial.bound), head_first and not bit & self.head
                near = matches.neighbours[bit] & partial.bound or (head_first and not late)
                if known is not None and (near or known.defined or anywhere):
                    latest[number] = late, not known.defined, known.matches, number
                    heappush(waiting, latest[number])

        look(matches.all)
        while left := self.leading & ~partial.bound:
            while waiting and latest.get(waiting[0][-1]) is not waiting[0]:
                heappop(waiting)
            connected = bool(waiting)
            if not connected:
                look(left, anywhere=True)
            following = self.bind_twins(partial, self.names[waiting[0][-1]]) if waiting else None
            if following is None:
                return None
            new, partial = following.bound & ~partial.bound, following
            around = matches.computed
            for v in matches.named(new):
                latest.pop(self.rank[v], None)
                around |= matches.neighbours[matches.bit[v]]
            if not connected:  # what was not connected still is not
                waiting.clear()
                latest.clear()
            look(around if connected else matches.all)
        return self.choice(partial)

    def _sorted(self, choices: Iterable[Choice]) -> list[Choice]:
        return sorted(choices, key=lambda c: (c.cost, [self.rank[v] for v in c.order]))

    def choice(self, partial: _Partial) -> Choice:
        """The choice of a complete order."""
        return Choice(partial.order, partial.rows, partial.cost + self._finish(partial), witnesses=partial.witnesses)

    def _search(self, many: bool, *, head_first: bool, built: bool = False) -> list[_Partial]:
        """The orders of one beam search; of many variables, at least one that begins with each.

        `built`: only those that read nothing but key orders that are built, if there are any.
        """
        beam = [self.start]
        while beam and self.matches.all & ~beam[0].bound:
            ranked = [
                # Of many variables: whatever is bound is walked on with, a step for each that is left at least.
                (p.cost + self._sure(p) + (self._left(partial) * p.rows[-1] if many else 0.0), p.places, p)
                for partial in beam
                for v in self._next(partial, many, head_first)
                if (not built or self._along_built(partial, v)) and (p := self.bind_twins(partial, v))
            ]
            grown = [p for _, _, p in sorted(ranked, key=itemgetter(0, 1))]
            beam = list(_varied(grown, len(self.names) > CROWDED)) if many else grown[:BEAM]
        return beam

    def _sure(self, partial: _Partial) -> float:
        """What key orders cost at least that would have to be built however `partial` goes on, in a large round.

        One is kept for all later rounds, which outweighs what a beginning is dearer by that needs none.
        """
        if self.large is None:
            return 0.0
        return sum(map(self._building, {name for name, _ in self._unbuilt(partial.order, self.placed)}))

    def _left(self, partial: _Partial) -> int:
        """How many variables are left, twins being one."""
        return (self.leading & ~partial.bound).bit_count()

    def _along_built(self, partial: _Partial, v: str) -> bool:
        """Whether key orders that are built have the columns of each atom in the order of `partial` with `v` next."""
        concerned = [atom for atom in self.placed if v in atom.columns]
        return next(self._unbuilt((*partial.order, v), concerned), None) is None

    def _is_built(self, predicate: str, columns: tuple[int, ...]) -> bool:
        """Whether a key order that begins with these columns is built."""
        orders = self.statistics[predicate].stored.orders
        return any(o[: len(columns)] == columns and (predicate, o) not in self.others for o in orders)

    def _next(self, partial: _Partial, many: bool, head_first: bool) -> list[str]:
        """The variables that may be bound next: of many, what is connected to the bound ones, or the head needs."""
        left = self.leading & ~partial.bound
        if many and partial.bound:
            near = self.matches.frontier(left, partial.bound)
            left = near | (left & self.head) or left
        if head_first:
            left = left & self.head or left
        found = self.matches.named(left)
        if many and not any(self._can_bind(partial, v) for v in found):
            # What the head needs may be computed from variables that neither it nor what is bound leads to.
            found = self.matches.named(self.leading & ~partial.bound)
        return self._first_of_each(partial, found) if len(self.names) > CROWDED else found

    def _first_of_each(self, partial: _Partial, found: list[str]) -> list[str]:
        """`found`, in few groups of which the first stands for all, whatever the order of the others.

        Such are variables that what is bound leaves one key, of which the one that matches least is first, and those
        that one atom alone holds.
        """
        known = {v: self.matches.matching(self.matches.bit[v], partial.bound) for v in found}
        single = [v for v, offer in known.items() if offer is not None and offer.offered <= 1.0 and partial.bound]
        first = min(single, key=lambda v: (known[v].matches, self.rank[v]), default="")  # type: ignore[union-attr]
        return self._first_alone(partial, [v for v in found if v == first or v not in single])

    def _first_alone(self, partial: _Partial, found: list[str]) -> list[str]:
        """`found`, of the variables that one atom alone holds only its first; all of them if none can be bound then."""
        alone: dict[int, str] = {}
        for v in found:
            if len(self.matches.holding[v]) == 1:
                alone.setdefault(self.matches.neighbours[self.matches.bit[v]] | self.matches.bit[v], v)
        first = [
            v for v in found if alone.get(self.matches.neighbours[self.matches.bit[v]] | self.matches.bit[v], v) == v
        ]
        if len(first) == len(found) or any(self._can_bind(partial, v) for v in first):
            return first
        return found

    def forced(self, order: tuple[str, ...]) -> Choice:
        """The given order of named variables; constants and the like go where they are first determined."""
        wanted = list(order)
        partial = self.start
        while len(partial.order) < len(self.names):
            hidden = [v for v in self.names if v not in order and v not in partial.order]
            computed = [v for v in hidden if self.matches.definition(v, partial.bound) is not None]
            # A variable that is only computed waits for what it is computed from.
            grown = next(p for v in (*computed, *wanted, *hidden) if (p := self.bind(partial, v)) is not None)
            wanted = [v for v in wanted if v != grown.order[-1]]
            partial = grown
        return replace(self.choice(partial), forced=True)

    def along(self, order: Sequence[str]) -> Choice | None:
        """The choice of an order of all variables; None if one of them could not be bound where it stands."""
        partial = self.start
        for v in order:
            following = self.bind(partial, v)
            if following is None:
                return None
            partial = following
        return self.choice(partial)

    def _can_bind(self, partial: _Partial, v: str) -> bool:
        """Whether anything can bind `v` next."""
        return self.matches.matching(self.matches.bit[v], partial.bound) is not None

    def bind_twins(self, partial: _Partial, v: str) -> _Partial | None:
        """`partial` with `v` and what is bound with it next; None if nothing can bind it yet."""
        following: _Partial | None = partial
        for twin in self.twins[v]:
            if following is not None and not self.matches.bit[twin] & partial.bound:
                following = self.bind(following, twin)
        return following

    def bind(self, partial: _Partial, v: str) -> _Partial | None:
        """`partial` with `v` bound next; None if nothing can bind it yet."""
        bit = self.matches.bit[v]
        known = self.matches.matching(bit, partial.bound)
        if known is None:
            return None
        matches, met = known.matches, known.matches
        if self.large is not None:
            met = known.matches ** (1.0 - self.large.related) * known.most**self.large.related
        looks = float(known.negated)
        now = partial.bound | bit
        for atom in self.body.looked:
            if v in atom.variables and not self.matches.mask(atom.variables) & ~now:
                near = list(atom.columns) == [u for u in (*partial.order, v) if u in atom.variables]
                there = self.matches.there(atom)
                looks += NEAR if near else FAR
                matches, met = matches * there, met * there
        if self.existential and not self.head & ~partial.bound and self.head != self.matches.all:
            return self._witness(partial, v, known._replace(matches=matches), met, looks)
        nodes, entered, apart = partial.nodes, partial.entered, partial.apart
        if self.counting:
            nodes = entered = next(n for part, n in apart if part & bit)
            # What is counted apart multiplies nothing, but where it comes to zero the parts after it are not looked at.
            apart = tuple(
                (below, min(n * (matches if part & bit else min(1.0, matches)), self.matches.bindings(below, now)))
                for part, n in apart
                for below in self.matches.components(part & ~bit)
            )
        # How often the depth is entered, and how often it matches then.
        steps = self._steps(entered, known.offered, known.participants) + entered * met * looks
        return _Partial(
            (*partial.order, v),
            (*partial.places, self.rank[v]),
            now,
            (*partial.rows, nodes * matches),
            partial.cost + steps,
            1.0,
            nodes * matches,
            entered * met,
            apart,
        )

    def _steps(self, entered: float, offered: float, participants: int) -> float:
        """Steps of a depth that is entered so often and looks at so many keys each time."""
        opened = self.large.opened * participants if self.large is not None else 0.0
        return entered * (1.0 + participants * offered + opened)

    def _witness(self, partial: _Partial, v: str, known: Matching, met: float, looks: float) -> _Partial:
        """`partial` with `v` bound next in an existential suffix: see the module's text."""
        bit = self.matches.bit[v]
        now = partial.bound | bit
        entered, taken, without_witness = partial.entered, partial.taken, partial.without_witness
        own = 0
        for part in self.matches.components(self.matches.all & ~partial.bound):
            if part & bit:
                own = part
            elif part not in taken:
                # It is looked at after this one, which is searched again and again for nothing if it has no witness.
                witness = self.matches.witness(part, partial.bound)
                without_witness = (*without_witness, (part, entered * (1.0 - witness)))
                entered *= witness
                taken |= {part}
        hit = known.doubt * met / known.offered * self.matches.witnesses(own & ~bit, now)
        found = first_hit(known.offered, hit)
        looked = min(known.offered, found / hit) if hit > 0.0 else known.offered
        if own in taken:
            # It is known to have a witness: one of the keys is a hit.
            looked = min(1.0 / hit if hit > 0.0 else math.inf, max(1.0, known.offered))
            taken -= {own}
        vain = sum(n for _, n in without_witness)
        steps = self._steps(entered, looked, known.participants)
        steps += self._steps(vain, known.offered, known.participants)
        after = entered * looked * met / known.offered
        steps += (after + vain * met) * looks
        without_witness = tuple((part, n * met) for part, n in without_witness if part & ~now)
        entries = after + sum(n for _, n in without_witness)
        nodes = partial.nodes * min(1.0, known.matches) if self.large is not None else entries
        return _Partial(
            (*partial.order, v),
            (*partial.places, self.rank[v]),
            now,
            (*partial.rows, nodes),
            partial.cost + steps,
            partial.witnesses * known.matches,
            nodes,
            after,
            (),
            taken,
            without_witness,
        )

    def _finish(self, partial: _Partial) -> float:
        """Cost of the key orders that would have to be built, and of the output."""
        cost = sum([self._building(name) for name, _ in set(self._unbuilt(partial.order, self.placed))])
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

    def _unbuilt(self, order: Sequence[str], atoms: Iterable[Atom]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Of `atoms`, the relation and the columns, as `order` binds them, where no key order begins with these."""
        place = {v: i for i, v in enumerate(order)}
        for atom in atoms:
            bound = (c for c, v in enumerate(atom.columns) if v in place)
            columns = tuple(sorted(bound, key=lambda c: place[atom.columns[c] or ""]))
            if not self._is_built(atom.predicate, columns):
                yield atom.predicate, columns

    def _building(self, predicate: str) -> float:
        """What one more key order of a relation costs."""
        statistics = self.statistics[predicate]
        once, each = (AGAIN, SHARED) if statistics.fleeting else (0.0, self.sort)
        return once + each * statistics.rows

    def _once(self, order: tuple[str, ...]) -> bool:
        """Whether heads that were met before are passed over: the variable before the last is not the head's."""
        head = self.body.head_variables
        return (
            len(order) > 1 and order[-1] in head and order[-2] not in head and len(self.matches.holding[order[-1]]) == 1
        )


def _varied(partials: Sequence[_Partial], crowded: bool) -> Iterator[_Partial]:
    """The first `WIDE` of the partials, few that bind the same variables, and the first that begins with each variable.

    `crowded`: however they begin.
    """
    alike, begun, kept = Counter[int](), set[str](), 0
    wide = WIDE
    for p in partials:
        # What is bound decides what follows: the cheapest orders of it stand for all of them.
        alike[p.bound] += 1
        if alike[p.bound] <= ALIKE and (kept < wide or (p.order[0] not in begun and not crowded)):
            kept += 1
            begun.add(p.order[0])
            yield p


def delta_order(body: Body, statistics: Mapping[str, Statistics], first: Sequence[str]) -> Choice:
    """The key order for a changed row of an atom, whose variables are `first`; its cost, the key orders being there.

    Behind the variables of an atom most is known. What grows from there is taken where a row has so few bindings that
    no order is much better; and of a crowded body, in which each search takes long.
    """
    search = OrderSearch(body, statistics, False, REPEATED)
    whole = search.start
    search.begin(first)
    grown = search.grown() if len(search.names) > MANY else None
    if grown is not None and len(search.names) <= CROWDED and max(grown.rows) > BINDINGS:
        grown = None
    order = (search.ranked()[0] if grown is None else grown).order
    search.sort, search.start = 0.0, whole
    found = search.along(order)
    assert found is not None, order
    return replace(found, forced=True)


def has_witnesses(body: Body, statistics: Mapping[str, Statistics], most: float) -> bool:
    """Whether a head may have as many witnesses as `most`: of many variables, by the order that grows from its head."""
    search = OrderSearch(body, statistics, False)
    if len(search.names) <= MANY:
        return True
    grown = search.grown(head_first=True)
    return grown is None or grown.witnesses >= most
