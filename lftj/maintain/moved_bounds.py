"""Bounds that move: atoms some of whose variables are only compared, so that old and new rows are joined as pairs.

    above(i, p) :- item(i, g, p), mean(g, t), p > t.

When one item of a group changes, so does its mean: a row of `mean` goes and one comes, and each of them is joined with
all items above it. But `t` is only compared, and most of what goes with the one row comes back with the other. As a
*pair* they tell what does not: what meets the conditions with one value and fails them with the *other*, t'.

    above(i, p) :- Δ(g, t, t'), item(i, g, p), p > t, p <= t'.

That is a range of `item` by (g, p), of the rows between both means: erased where t' is after the change, inserted where
it is before. Of several conditions on t each that may be the first to fail is a clause of its own, as the second of
these for `p > t, p < 2 * t`:

    ..., p > t, p < 2 * t, p <= t'.             ..., p > t, p < 2 * t, p > t', p >= 2 * t'.

Rows go in pairs if they agree in all other columns. Which is with which does not matter, since heads do not tell; so
the least goes with the least. *Lone* rows, which are left, are joined with everything.

**Exactness.** A pair stands for both of its rows only if it is joined with the same rows before the change and after
it. So these atoms come last: derivations with other changed rows are left to the variants of those (clause_delta.py).
Where several atoms of a clause are of this kind, their changes are made one after the other: on both sides those before
the atom in hand are read as they are after the change, and those behind it as they were before. So if there are several
of them, none has a condition that may have no value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Value, Var, names_of, replaced
from lftj.language.functors import COMPARISONS, NEGATED
from lftj.language.types import FLOAT
from lftj.maintain.step import TraceChange
from lftj.maintain.trace_layout import Order
from lftj.maintain.whole_bounds import whole_bound
from lftj.plan.body import body_of
from lftj.plan.joinplan import JoinPlan
from lftj.plan.partial_functions import partial_of
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from scantree.sort import sorting

Ints = npt.NDArray[np.int64]

# The part of what a bound lets through that is expected to lie between where it was and where it is.
PASSED = 1 / 1024
# How the names of changes begin that are of lone rows, and of pairs; and those of relations that are read as they were
# before the change, or as they are after it, on both sides.
LONE, PAIRED, BEFORE, AFTER = "@lone ", "@paired ", "@before ", "@after "
# The other value of a variable has its name and this.
OTHER = "'"


class MovingAtom(NamedTuple):
    """Atom number `place` of a clause.

    `order`: its columns, so many `still` ones first, then the `moving` ones, then what tells rows apart besides ·
    `conditions`: those that moving variables are in, those that always have a value first.
    """

    place: int
    order: Order
    still: int
    moving: tuple[Var, ...]
    conditions: tuple[Compare, ...]

    @property
    def bound(self) -> int:
        """How many columns are no wildcards."""
        return self.still + len(self.moving)

    def name(self, kind: str) -> Order:
        """What the changes of its lone rows, or of its pairs, are called."""
        return f"{kind}{self.place}", self.order[1]

    def split(self, change: TraceChange) -> tuple[Ints, Ints, Ints, Ints]:
        """(rows that go without a partner, that come so, rows that go, those that come in their places)."""
        kinds = change.kinds
        gone, come = (self._prefixes(change.rows, (kinds == kind) & (change.tops < self.bound)) for kind in (-1, 1))
        one, other = partners(gone[: self.still], come[: self.still])
        return np.delete(gone, one, axis=1), np.delete(come, other, axis=1), gone[:, one], come[:, other]

    def _prefixes(self, rows: Ints, chosen: npt.NDArray[np.bool_]) -> Ints:
        """What chosen rows hold in columns that are no wildcards, each once."""
        found = rows[: self.bound, chosen]
        if self.bound < len(rows) and found.shape[1]:
            found = found[:, np.concatenate([[True], (found[:, 1:] != found[:, :-1]).any(axis=0)])]
        return found

    def pairs_in(self, change: Change) -> int:
        """About how many pairs there are in a change: exactly as many if there are no wildcards."""
        rows, kinds = change.in_order(self.order[1])
        _, _, gone, _ = self.split(TraceChange(rows, kinds, np.zeros(len(kinds), np.int64), rows, rows))
        return int(gone.shape[1])


def partners(gone: Ints, come: Ints) -> tuple[Ints, Ints]:
    """Where equal columns of `gone` int64[k, m] and `come` int64[k, n], both sorted, are; each once, in order."""
    m = gone.shape[1]
    if not m or not come.shape[1]:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    both = np.ascontiguousarray(np.concatenate([gone, come], axis=1))
    group = np.zeros(both.shape[1], np.int64)
    if len(both):
        order, _ = sorting(both)
        in_order = both[:, order]
        group[order[1:]] = np.cumsum((in_order[:, 1:] != in_order[:, :-1]).any(axis=0))
    # The number of the group, and that within it.
    one, other = (own * len(group) + np.arange(len(own)) - np.searchsorted(own, own) for own in (group[:m], group[m:]))
    _, one, other = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return one, other


def moving_atoms(clause: Clause, relations: Mapping[str, StoredRelation]) -> list[MovingAtom]:
    """The atoms of a clause over `relations` whose changed rows are joined as pairs."""
    body = body_of(clause)
    compared = [c for c in clause.compares if c.op in COMPARISONS and c.op != "="]
    shown = names_of(*clause.head_args)
    shown |= {name for c in body.conditions if c.compare not in compared for name in c.variables}
    found = []
    for atom in body.atoms:
        needed = shown.union(*(a.variables for a in (*body.atoms, *body.negated) if a is not atom))
        moves = [v is not None and v not in needed for v in atom.columns]
        names = {v for v, moving in zip(atom.columns, moves, strict=True) if v and moving}
        conditions = [c for c in compared if names & names_of(c.left, c.right)]
        # Without a condition that connects it to others there is no bound; and to know which of two terms without a
        # value fails first, all others would have to be looked at (undefined_terms.py).
        connected = any(names_of(c.left, c.right) - atom.variables for c in conditions)
        # A term of null has no value either, though it is no error: which is null is asked before there are terms.
        conditions.sort(key=lambda c: (_may_fail(c), isinstance(c.left, Apply) or isinstance(c.right, Apply)))
        if atom.multiplicity or not connected or sum(map(_may_fail, conditions)) > 1:
            continue
        held = sorted((c for c, v in enumerate(atom.columns) if v is not None), key=moves.__getitem__)
        order = atom.predicate, relations[atom.predicate].key_order(tuple(held))
        args = clause.atoms[atom.place].args
        moving = tuple(v for v, moving in zip(args, moves, strict=True) if moving and isinstance(v, Var))
        found.append(MovingAtom(atom.place, order, len(held) - len(moving), moving, tuple(conditions)))
    # Rows of several are joined that were never there at once, where a term may have no value though that is no error:
    # then a pair does not tell whether the condition holds or fails.
    certain = [atom for atom in found if not any(map(_may_fail, atom.conditions))]
    return found if len(found) < 2 else certain or found[:1]


def _may_fail(condition: Compare) -> bool:
    return not all(map(_has_value, partial_of(condition)))


def _has_value(term: Apply) -> bool:
    """Whether a term of floats has a value, as one of the two is a constant: `inf - inf` and `0 * inf` have none."""
    constants = [arg.value for arg in term.args if isinstance(arg, Value) and arg.type == FLOAT]
    if term.op == "/" and not isinstance(term.args[1], Value):
        return False
    return term.op in ("+", "-", "*", "/") and any(value and isfinite(value) for value in constants)


class MovedRows(NamedTuple):
    """What a variant joins: `clause`, in which the atom of changed rows has columns of its own, all of them variables.

    `atom`: which one it is · `failing`: the condition that is the first to fail with the other values (None: the rows
    are lone).
    """

    clause: Clause
    atom: MovingAtom
    failing: Compare | None

    @property
    def name(self) -> Order:
        """What the changed rows are called."""
        return self.atom.name(LONE if self.failing is None else PAIRED)

    def steps(self, plan: JoinPlan) -> float:
        """Steps that a changed row is expected to take: of pairs few behind the variable that their values limit."""
        others, before = {v.name + OTHER for v in self.atom.moving}, 0.0
        for d, depth in enumerate(plan.depths if self.failing is not None else ()):
            decided = d < self.atom.bound + len(others) and self.failing in depth.filters
            terms = [depth.definition, *(term for _, term in depth.bounds)]
            if decided or others & names_of(*terms):
                return min(plan.cost, before + PASSED * plan.cost)
            before += depth.rows
        return plan.cost


def changed_rows(clause: Clause, moving: Sequence[MovingAtom]) -> Iterator[MovedRows]:
    """What is joined of the changes of all `moving` atoms of a clause."""
    for n, atom in enumerate(moving):
        atoms = list(clause.atoms)
        for sides, others in ((AFTER, moving[:n]), (BEFORE, moving[n + 1 :])):
            for other in others:
                atoms[other.place] = replace(atoms[other.place], predicate=sides + other.order[0])
        changed = atoms[atom.place]
        columns = tuple(changed.args[c] for c in atom.order[1][: atom.bound])
        lone = replace(changed, args=columns)
        yield MovedRows(_with(clause, atoms, atom, lone), atom, None)
        by = {v.name: Var(v.name + OTHER, v.type) for v in atom.moving}
        pair = replace(changed, args=(*columns, *by.values()))
        holding: list[Compare] = []
        for condition in atom.conditions:
            of_other = replace(condition, left=replaced(condition.left, by), right=replaced(condition.right, by))
            failing = replace(of_other, op=NEGATED[condition.op])
            bounds = filter(None, map(whole_bound, (*atom.conditions, failing)))
            yield MovedRows(_with(clause, atoms, atom, pair, *holding, failing, *bounds), atom, failing)
            holding.append(of_other)


def _with(clause: Clause, atoms: Sequence[BodyAtom], atom: MovingAtom, changed: BodyAtom, *more: Compare) -> Clause:
    all_atoms = (*atoms[: atom.place], changed, *atoms[atom.place + 1 :])
    return replace(clause, atoms=all_atoms, compares=(*clause.compares, *more))


def relations_of(moving: Sequence[MovingAtom], relations: Mapping[str, StoredRelation]) -> dict[str, StoredRelation]:
    """`relations` by all the names that the clauses of `changed_rows` have for them."""
    names = {atom.order[0] for atom in moving}
    return {**relations, **{sides + name: relations[name] for name in names for sides in (BEFORE, AFTER)}}


class OrderRead(NamedTuple):
    """A key order, and of which version it is read on the side before the change and on that after it (0, 1)."""

    order: Order
    before: int = 0
    after: int = 1


def place_of(predicate: str, columns: tuple[int, ...]) -> OrderRead:
    """Where a clause reads a relation that it calls `predicate`."""
    if predicate.startswith(BEFORE):
        return OrderRead((predicate.removeprefix(BEFORE), columns), 0, 0)
    if predicate.startswith(AFTER):
        return OrderRead((predicate.removeprefix(AFTER), columns), 1, 1)
    return OrderRead((predicate, columns))


def in_pairs(
    moving: Iterable[MovingAtom], changes: Mapping[Order, TraceChange], others: Collection[Order]
) -> dict[Order, TraceChange]:
    """Those of `changes` that are in the orders of `others`, and the lone rows and pairs in those of moving atoms."""
    found = {order: change for order, change in changes.items() if order in others}
    for atom in moving:
        if atom.order in changes:
            gone, come, old, new = atom.split(changes[atom.order])
            found[atom.name(LONE)] = _change(gone, come)
            pairs = (np.concatenate([old, new[atom.still :]]), np.concatenate([new, old[atom.still :]]))
            found[atom.name(PAIRED)] = _change(*pairs)
    return found


def _change(gone: Ints, come: Ints) -> TraceChange:
    rows = np.ascontiguousarray(np.concatenate([gone, come], axis=1))
    kinds = np.repeat(np.array([-1, 1], np.int8), [gone.shape[1], come.shape[1]])
    return TraceChange(rows, kinds, np.zeros(len(kinds), np.int64), rows, rows)
