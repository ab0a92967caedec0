"""The plans of a variant: one for relations of about the present sizes, kept for the next run over such.

Statistics of large relations take longer than most runs, so counts of rows are told apart by their bits only. Where few
rows changed, as in most runs, one plan that begins with these is right for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lftj.language.clause import Clause, Var, names_of
from lftj.plan.body import Body, body_of
from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import LASTING, REPEATED, SORT, Large, OrderSearch
from lftj.plan.lowering import Lowered
from lftj.plan.statistics import Fleeting, OneRow, Statistics
from lftj.recursion.round_column import has_rounds
from lftj.recursion.variants import CHANGED
from lftj.store.stored import StoredRelation

Rows = npt.NDArray[np.int64]
Relations = Mapping[str, StoredRelation]
Order = tuple[str, tuple[int, ...]]

# Rows from which on a run is worth a plan and a lowering of its own, with jump tables. A power of two: what plans are
# kept by is how many bits counts have.
LARGE = 1 << 15
# Only to look the rows of a tested atom up must cost less than this part of joining it: they lie anywhere, while those
# that are joined lie side by side (dag5k, where both are expected to cost the same, ten edges erased: 36 and 31 ms).
LOOKED = 0.5


def shown(plan: JoinPlan) -> set[str]:
    """The variables of a plan's head."""
    return names_of(*plan.head)


def stampable(plan: JoinPlan, looks: int) -> bool:
    """Whether heads that were met before can be told at the last depth (leaf_dedup.py), which looks at `looks` atoms.

    None, or one, the head's own: any other may block a head the first time and not the second.
    """
    if len(plan.depths) < 2 or plan.until < len(plan.depths):
        return False
    last = plan.depths[-1]
    plain = last.definition is None and not (last.bounds or last.filters or last.tested)
    return (
        plain
        and len(last.participants) == 1
        and len(last.negated) == looks
        and all(isinstance(term, Var) for term in plan.head)
        and last.variable in shown(plan)
        and not all(depth.variable in shown(plan) for depth in plan.depths)
    )


def _looking(body: Body, tested: Sequence[int]) -> Iterator[Body]:
    """The body with one of the `tested` atoms only looked up, for every binding of its variables by the others.

    Where most rows are there, and many atoms offer keys, the first or second look finds a derivation, without a key
    order for it: of `t(x, z) :- e(x, y), t(y, z)` a row (x, z) is asked for by the keys y of e(x, y), one by one
    (wiki-Vote, ten edges erased: 56 -> 24 ms).
    """
    for atom in body.atoms:
        others = tuple(other for other in body.atoms if other is not atom)
        if atom.place in tested and atom.variables <= frozenset[str]().union(*(other.variables for other in others)):
            yield replace(body, atoms=others, looked=(atom,))


@dataclass(slots=True)
class VariantPlan:
    """A plan, the relation and key order of each of its nodes, and whether it may have stamps.

    `orders`: those of stored relations · `lowered`, `roots`: its arrays, and the roots in them, if a run keeps them.
    """

    plan: JoinPlan
    places: list[Order]
    stamped: bool
    orders: frozenset[Order] = frozenset()
    lowered: Lowered | None = None
    roots: Rows | None = None

    def __post_init__(self) -> None:
        self.orders = frozenset(at for at in self.places if at[0] != CHANGED)


class VariantPlans:
    """The plans of one variant, as `DeltaJoin` has it: its clause, its `tested` atoms, and what it is run for.

    `body`: what is walked; `open`: that without the head's own negation, if a run may leave it out. `reads`: the
    relations, those of positive atoms first, `positive` of them; `changed`: which of them has the changed rows.
    `adopted`: the key orders that the plans of a component's joins read. `members`: the relations of the component,
    whose primary keys are looked at when all rounds are done.
    """

    def __init__(self, clause: Clause, tested: tuple[int, ...], *, apart: bool, own: bool) -> None:
        self.clause, self.tested = clause, tested
        self.adopted: set[Order] = set()
        self.members: Collection[str] = ()
        # A row is looked up by all its columns.
        body: Body = body_of(clause, whole=tested)
        if tested and apart:
            body = replace(body, atoms=body.atoms[:-1], looked=body.atoms[-1:])
        self.body = body
        self._bodies = [body] if apart or not tested else [body, *_looking(body, tested)]
        self.open: Body | None = None
        if own and body.negated and clause.head_args:
            self.open = replace(body, negated=body.negated[:-1])
        self.reads = tuple(dict.fromkeys(atom.predicate for atom in (*body.atoms, *body.negated)))
        self.positive = len({atom.predicate for atom in body.atoms})
        self.changed = self.reads.index(CHANGED) if CHANGED in self.reads else None
        # With and without a look for heads that are there, by about how many rows there are.
        self._plans: dict[tuple[bool, tuple[int, ...]], VariantPlan] = {}

    def of(self, relations: Relations, bits: Sequence[int], *, look: bool) -> VariantPlan:
        """The plan for relations whose counts of rows have so many `bits`.

        `look`: for heads that are there already; without, if that makes a plan that meets each head once.
        """
        found = self._of(relations, bits, look or self.open is None)
        return found if look or found.stamped else self._of(relations, bits, True)

    def _of(self, relations: Relations, bits: Sequence[int], look: bool) -> VariantPlan:
        few = self.changed is not None and bits[self.changed] < LARGE.bit_length()
        about = [count // (3 if few else 2) for count in bits]
        if self.changed is not None:
            about[self.changed] = not few
        sizes = (look, tuple(about))
        if sizes not in self._plans:
            statistics: dict[str, Statistics] = {name: relations[name].statistics for name in self.reads}
            large = None
            if few:
                # Most runs are over few changed rows: a plan that begins with them is right for all of these.
                statistics[CHANGED] = OneRow(relations[CHANGED])
            elif self.changed is not None:
                statistics[CHANGED] = Fleeting(relations[CHANGED])
                large = Large(stamped=self.open is not None, own=self.open is not None and look)
            sort = REPEATED if few else LASTING if large else SORT
            others = set(self._others(relations))
            bodies = self._bodies if look or self.open is None else [self.open]
            ranked = [(OrderSearch(body, statistics, False, sort, large, others).ranked()[0], body) for body in bodies]
            choice, body = min(ranked, key=lambda found: found[0].cost)
            if choice.cost > LOOKED * ranked[0][0].cost:
                choice, body = ranked[0]
            last = len(self.clause.atoms) - 1 if self.tested else -1
            best = plan_join(body, choice, relations, tested=self.tested, limited_by=last, whole=self.members)
            places = [(node.predicate, node.key_order) for node in best.nodes]
            stamped = self.open is not None and stampable(best, int(look))
            self._plans[sizes] = made = VariantPlan(best, places, stamped)
            self.adopted |= made.orders
        return self._plans[sizes]

    def _others(self, relations: Relations) -> Iterator[Order]:
        """The key orders of members that are there, as for a query, and that no join of the component reads so far.

        One that joins read is kept up from round to round: that is worth it for whom it would be worth to build it.
        """
        for name in self.reads:
            if name != CHANGED and has_rounds(relations[name]):
                _, *secondary = relations[name].orders
                yield from ((name, order) for order in secondary if (name, order) not in self.adopted)
