"""Following a clause by its delta: what changed in one atom is joined with the rest of the body, atom by atom.

A derivation goes with a change if it was there before it and one of its rows went; it comes if it is there after it and
one of its rows came (of a negated atom: the other way round). So for every atom whose relation changed there is a plan
that begins with that atom's variables and ranges over its changed rows, over the versions before the change and over
those after it. A derivation with several changed rows is found by the plans of all these atoms, and is that of the
first.

Nothing is recorded: what this keeps is the key orders of the plans, which follow every change of their relations. It is
for rules whose traces would be large, and whose changed rows have few derivations each: semi-naive evaluation (F.
Bancilhon, R. Ramakrishnan, SIGMOD 1986) with the counting of A. Gupta, I. S. Mumick, V. S. Subrahmanian (SIGMOD 1993)
where the head's support counts, each join worst-case optimal (F. McSherry et al., "delta queries").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.join import delta_join, expression_vm, triejoin
from lftj.join import join_state as cells
from lftj.join.run import NO_END, SLICE, Counters, Limits, Overdue
from lftj.language.clause import Clause, Value, Var
from lftj.maintain.moved_bounds import (
    MovedRows,
    MovingAtom,
    OrderRead,
    changed_rows,
    in_pairs,
    moving_atoms,
    place_of,
    relations_of,
)
from lftj.maintain.step import TraceChange
from lftj.maintain.trace_layout import Order
from lftj.plan.body import Atom, Body, body_of
from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import delta_order
from lftj.plan.lowering import Encode, SeekHints, lower
from lftj.plan.statistics import OneRow, Statistics
from lftj.recursion.variants import CHANGED
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from scantree.crew import LOOK, Crew, Shift, apart
from scantree.memory import Arena
from scantree.version import Version

Ints = npt.NDArray[np.int64]
Versions = Mapping[Order, Version]

LEAST_ROWS, MOST_ROWS = 1 << 8, 1 << 14
NOWHERE = (0, 0, 0)
# The one share that is all rows; shares per thread, where several join: who is done early takes another.
ALL, SHARES = (0, 1), 6
# Words of a change from which on its rows are shared among threads: some five hundred rows of two columns, twice.
LEAST_SHARED = 1 << 12


@dataclass(slots=True)
class Followed:
    """What became of a clause: rows int64[head, n] erased and inserted, one per derivation, and counts.

    No records are kept, so none go or come. `saw_undefined`: a term had no value somewhere in the walk.
    """

    erased: list[Ints]
    inserted: list[Ints]
    steps: int
    surgeries: int
    saw_undefined: bool
    removed: int = 0
    added: int = 0


class Variant:
    """The plan of one atom, which is `shown` to people so.

    `order`: in which its changed rows are read, the columns that bind `variables` first · `negated` · `places`: where
    each trie node is read · `number`: the column of output that holds the atom's multiplicity (-1: it has none) ·
    `moved`: what it joins, where that is lone rows or pairs of an atom with bounds that move (moved_bounds.py) ·
    `changed`: the name of the change that it is about.
    """

    def __init__(
        self,
        body: Body,
        atom: Atom,
        relations: Mapping[str, StoredRelation],
        shown: str = "",
        moved: MovedRows | None = None,
    ) -> None:
        self.negated = all(a is not atom for a in body.atoms)
        self.shown = shown or f"{'!' * self.negated}{_shown(body, atom)}"
        bound, stored = tuple(c for c, v in enumerate(atom.columns) if v is not None), relations[atom.predicate]
        order = stored.key_order(bound)
        if len(order) > len(bound) and bound == tuple(range(len(bound))):
            order = tuple(range(stored.arity))  # which is there
        self.order: Order = (atom.predicate, order)
        self.variables = tuple(v for v in atom.columns if v is not None)
        self.moved, self.changed = moved, self.order
        if moved is not None:
            self.order, self.changed = moved.atom.order, moved.name
        others = tuple(a for a in body.atoms if a is not atom)
        blocking = tuple(a for a in body.negated if a is not atom)
        multiplicity = Var(atom.multiplicity, "number")
        self.number = body.head.index(multiplicity) if atom.multiplicity else -1
        head = tuple(Value(1, "number") if term == multiplicity else term for term in body.head)  # each row for itself
        changed = replace(atom, predicate=CHANGED, multiplicity="")
        asked = replace(body, atoms=(changed, *others), negated=blocking, head=head)
        statistics: dict[str, Statistics] = {
            a.predicate: relations[a.predicate].statistics for a in (*others, *blocking)
        }
        statistics[CHANGED] = OneRow(relations[atom.predicate])
        choice = delta_order(asked, statistics, tuple(dict.fromkeys(self.variables)))
        plan = plan_join(replace(asked, atoms=others), choice, relations)
        # Of a change: the key orders are there by then.
        self.steps = choice.cost if moved is None else moved.steps(plan)
        # Every derivation counts, so there is no existential suffix.
        self.plan = replace(plan, until=len(plan.depths))
        self.places = [place_of(node.predicate, node.key_order) for node in plan.nodes]


def variants_of(clause: Clause, relations: Mapping[str, StoredRelation]) -> list[Variant]:
    """The plans of the atoms of `clause`, negated ones behind the others, and behind these the ones with moving bounds.

    What goes and comes with other rows is left to the variants of these.
    """
    moving = moving_atoms(clause, relations)
    while True:
        found = _planned(clause, moving, relations)
        spared = spared_steps(found)
        if all(spared[atom] > 0 for atom in moving):
            return found
        moving = [atom for atom in moving if spared[atom] > 0]


def _planned(clause: Clause, moving: Sequence[MovingAtom], relations: Mapping[str, StoredRelation]) -> list[Variant]:
    body, late = body_of(clause), {atom.place for atom in moving}
    found = [Variant(body, atom, relations) for atom in (*body.atoms, *body.negated) if atom.place not in late]
    relations = relations_of(moving, relations)
    shown = {atom.place: _shown(body, atom) for atom in body.atoms}
    for rows in changed_rows(clause, moving):
        place, body = rows.atom.place, body_of(rows.clause, {rows.atom.place})
        (atom,) = (atom for atom in body.atoms if atom.place == place)
        found.append(Variant(body, atom, relations, shown[place], rows))
    return found


def spared_steps(variants: Sequence[Variant]) -> dict[MovingAtom, float]:
    """Of atoms with moving bounds, the steps that a changed row is expected to take less in a pair than alone."""
    found: dict[MovingAtom, float] = {}
    for variant in variants:
        if variant.moved is not None:
            steps = -variant.steps if variant.moved.failing is not None else variant.steps
            found[variant.moved.atom] = found.get(variant.moved.atom, 0.0) + steps
    return found


def _shown(body: Body, atom: Atom) -> str:
    columns = (body.shown.get(v, v) if v else "_" for v in atom.columns)
    return f"{atom.predicate}({', '.join(columns)})"


class JoinedRows(NamedTuple):
    """Derivations int64[head, n] erased and inserted, the steps that took, and whether a term had no value."""

    erased: list[Ints]
    inserted: list[Ints]
    steps: int
    saw_undefined: bool


class _Arrays:
    """All variants as one walk (join/delta_join.py), made once for many changes."""

    def __init__(self, variants: Sequence[Variant], names: tuple[str, ...], versions: Versions, encode: Encode) -> None:
        walks, self.ranked = [], False
        spans = np.zeros((len(variants) + 1, delta_join.SPAN), np.int64)
        head, places, joined_orders = 0, list[int](), list[OrderRead | None]()
        earlier = sum(variant.moved is None for variant in variants)
        for v, variant in enumerate(variants):
            nodes = zip(variant.plan.nodes, variant.places, strict=True)
            read = {(node.predicate, node.key_order): versions[place.order] for node, place in nodes}
            lowered = lower(variant.plan, read, encode, np.zeros(1, np.int64), SeekHints(jumps=False))
            walk = lowered.walk
            expression_vm.run_code(lowered.prelude, 0, len(lowered.prelude), walk.regs, walk.ranks, walk.cell)
            at = {depth.variable: d for d, depth in enumerate(variant.plan.depths)}
            head = len(walk.head)
            walk = walk._replace(head=np.concatenate([walk.head, np.array([at[n] for n in names], np.int64)]))
            self.ranked |= lowered.ranked
            spans[v, delta_join.BOUND :] = (
                len(variant.variables),
                variant.negated,
                len(places),
                variant.number,
                min(v, earlier),
            )
            spans[v + 1, : delta_join.BOUND] = spans[v, : delta_join.BOUND] + [
                len(part) for part in walk[: delta_join.BOUND]
            ]
            if variant.moved is None:  # of the others nobody looks for changed rows
                places += [head + names.index(variable) for variable in variant.variables]
            # A walk has one frame at least.
            joined_orders += variant.places or [None]
            walks.append(walk)
        joined = (np.concatenate(parts) for parts in zip(*(walk[: delta_join.BOUND] for walk in walks), strict=True))
        self.walk = cells.Walk(*map(apart, (*joined, *walks[0][delta_join.BOUND :])))
        self.frames = (apart(self.walk.frames), self.walk.frames)
        self.orders = [order for order in dict.fromkeys(joined_orders) if order is not None]
        self.roots = np.zeros((delta_join.ORDER + 1, len(joined_orders)), np.int64)
        self.roots[delta_join.ORDER] = [-1 if order is None else self.orders.index(order) for order in joined_orders]
        self.spans, self.variables = spans, np.array(places, np.int64)
        self.deltas = np.zeros((len(variants), 3), np.int64)
        self._places: dict[Order, tuple[int, int, int]] = {}
        self._looked = 0
        self.state = apart(np.zeros(delta_join.STATE, np.int64))
        self.out = np.empty((head + len(names), LEAST_ROWS), np.int64)

    def reset(self, old: Versions, new: Versions) -> None:
        """Forget the last change; look at these versions."""
        roots, versions = self.roots, (old, new)
        for o, (order, before, after) in enumerate(self.orders):
            roots[0, o], roots[1, o] = versions[before][order].root, versions[after][order].root
        self.state[delta_join.BEGUN] = 0

    def join(
        self,
        arena: Arena,
        placed: Ints,
        head: int,
        ranks: Ints | None,
        share: tuple[int, int],
        limits: Limits | Shift,
        most: int = NO_END,
    ) -> JoinedRows:
        """The derivations that go and come with one share of the changes `placed`, since the last reset.

        Raises `Overdue` when it has taken more steps than `most`.
        """
        walk = self.walk if ranks is None else self.walk._replace(ranks=ranks)
        control, state, mem = walk.control, self.state, arena.space.mem
        arrays = (*self.frames, self.roots, self.spans, self.variables, placed, self.deltas)
        erased, inserted = list[Ints](), list[Ints]()
        while True:
            status = delta_join.join_changed(mem, walk, *arrays, self.out, state, *share, min(SLICE, most))
            n = int(control[cells.WRITTEN])
            if n and status in (triejoin.FULL, triejoin.FINISHED):
                before = int(state[delta_join.BEFORE])
                if before:
                    erased.append(self.out[:head, :before].copy())
                if before < n:
                    inserted.append(self.out[:head, before:n].copy())
            steps = int(control[cells.STEPS] + control[cells.LANDED])
            if status == triejoin.FINISHED:
                return JoinedRows(erased, inserted, steps, bool(walk.cell[expression_vm.NO_VALUE]))
            if status == triejoin.FULL:
                control[cells.WRITTEN] = state[delta_join.CHECKED] = state[delta_join.BEFORE] = 0
                if n == self.out.shape[1] < MOST_ROWS:
                    self.out = np.empty((len(self.out), 4 * n), np.int64)
            limits.look(0)
            if steps > most:
                raise Overdue

    def place(self, variants: Sequence[Variant], changes: Mapping[Order, TraceChange]) -> tuple[Ints, int]:
        """(all changes in one array, rows that are looked at); the variants get where theirs are."""
        parts: list[npt.NDArray[Any]] = []
        places: dict[Order, tuple[int, int, int]] = {}
        at = 0
        for order, change in changes.items():
            arity, m = change.rows.shape
            places[order] = (at, m, arity)
            parts += [change.rows.reshape(-1), change.kinds, change.tops]
            at += (arity + 2) * m
        if places != self._places:  # changes of one row are placed in the same way again and again
            found = [places.get(variant.changed, NOWHERE) for variant in variants]
            self.deltas[:] = found
            self._places, self._looked = places, sum(m for _, m, _ in found)
        return np.concatenate(parts, dtype=np.int64), self._looked


class ClauseDelta:
    """A clause that is followed by its delta.

    `watched`: the key orders in which changes are looked at, of `whole` ones all columns · `orders`: those and the ones
    that are joined · `steps`: what a changed row of each relation is estimated to take · `moving`: of atoms with bounds
    that move, how much less it takes in a pair · `variants`: at least one per atom.
    """

    # It has no trace of a join, and what asks for one looks for errors itself.
    parts: tuple[()] = ()
    saw_undefined = False

    def __init__(
        self,
        clause: Clause,
        plan: JoinPlan,
        variants: Sequence[Variant],
        arena: Arena,
        encode: Encode,
        ranks: Callable[[], Ints],
    ) -> None:
        self.arena, self.encode, self.ranks = arena, encode, ranks
        self.plan = replace(plan, until=len(plan.depths))
        body = body_of(clause)
        self.variants = variants
        self._names = tuple(body.variables)
        self._head = len(body.head)
        self.counters = Counters()
        self.most = NO_END
        self.watched: tuple[Order, ...] = tuple(dict.fromkeys(v.order for v in self.variants))
        partial = {v.order for v in self.variants if v.number < 0 and len(v.variables) < len(v.order[1])}
        self.whole = frozenset(self.watched) - partial
        joined = (place.order for v in self.variants for place in v.places)
        self.orders: tuple[Order, ...] = tuple(dict.fromkeys((*partial, *joined)))
        self._plain = frozenset(v.order for v in self.variants if v.moved is None)
        self.steps: dict[str, float] = {}
        for variant in self.variants:
            if variant.moved is None or variant.moved.failing is None:
                name = variant.order[0]
                self.steps[name] = self.steps.get(name, 0.0) + variant.steps
        self.moving = spared_steps(self.variants)
        self._made: list[_Arrays] = []  # one per thread that has worked

    def spared(self, changes: Mapping[str, Change]) -> float:
        """How many of the `steps` that rows of `changes` are expected to take are not taken, as they go in pairs."""
        return sum(
            [
                2 * atom.pairs_in(changes[atom.order[0]]) * steps
                for atom, steps in self.moving.items()
                if atom.order[0] in changes
            ]
        )

    def maintain(self, old: Versions, new: Versions, changes: Mapping[Order, TraceChange], limits: Limits) -> Followed:
        """The derivations that the `changes`, which lead from `old` to `new`, take away and bring."""
        if self.moving:
            changes = in_pairs(self.moving, changes, self._plain)
        crew, made = self.arena.crew, self._made
        self._made = []  # unless it ends well: the arrays are in no known state
        if not made:
            made = [_Arrays(self.variants, self._names, new, self.encode)]
        first = made[0]
        first.reset(old, new)
        placed, looked = first.place(self.variants, changes)
        ranks = self.ranks() if first.ranked else None
        if crew is not None and len(placed) >= LEAST_SHARED:
            made += [_Arrays(self.variants, self._names, new, self.encode) for _ in range(crew.threads - len(made))]
            joined = self._together(crew, made, old, new, placed, ranks, limits)
        else:
            joined = first.join(self.arena, placed, self._head, ranks, ALL, limits, self.most)
        self._made = made
        return Followed(joined.erased, joined.inserted, joined.steps, looked, joined.saw_undefined)

    def _together(
        self,
        crew: Crew,
        made: Sequence[_Arrays],
        old: Versions,
        new: Versions,
        placed: Ints,
        ranks: Ints | None,
        limits: Limits,
    ) -> JoinedRows:
        """The same where shares of the changed rows are joined beside each other."""
        shares = SHARES * crew.threads
        todo = count()
        done: list[JoinedRows | None] = [None] * shares

        def work(i: int, shift: Shift, limits: Limits | None = None) -> None:
            own = made[i]
            own.deltas[:] = made[0].deltas
            while (share := next(todo)) < shares:
                shift.look(0)
                own.reset(old, new)
                most = max(1, self.most - sum(result.steps for result in done if result is not None))
                done[share] = own.join(self.arena, placed, self._head, ranks, (share, shares), limits or shift, most)

        with crew.shift(work, first=1) as shift:
            work(0, shift, limits)
            while not shift.over:
                limits.look(0)
                shift.wait(LOOK)
        results = [result for result in done if result is not None]
        erased = list(chain.from_iterable(result.erased for result in results))
        inserted = list(chain.from_iterable(result.inserted for result in results))
        return JoinedRows(
            erased, inserted, sum(result.steps for result in results), any(r.saw_undefined for r in results)
        )

    def adopt(self, result: Followed) -> None:
        """There is nothing to adopt: no records are kept."""

    def discard(self, result: Followed) -> None:
        """There is nothing to discard."""
