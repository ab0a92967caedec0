"""A clause planned once and run many times, over relations that change between the runs.

A round, or a step of maintenance, is many small joins. Planning and lowering one takes longer than running it, so both
are kept as long as the relations are of about the size they were made for; a run only puts the roots of the present
versions into the frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator
from lftj.join import expression_vm, trie
from lftj.join import join_state as cells
from lftj.join.leaf_dedup import StampTable, stamp_table
from lftj.join.run import Limits, Run, walk_once
from lftj.language.clause import Clause, Var, variables_of
from lftj.plan.body import Body, body_of
from lftj.plan.join_stats import Key
from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import LASTING, REPEATED, SORT, Large, rank_orders
from lftj.plan.lowering import Lowered, SeekHints, lower
from lftj.plan.statistics import Fleeting, OneRow, Statistics
from lftj.program.text_split import split_text
from lftj.recursion.round_column import has_rounds, rounds_of
from lftj.recursion.variants import CHANGED
from lftj.store.stored import StoredRelation
from scantree.version import Version

Rows = npt.NDArray[np.int64]
Relations = Mapping[str, StoredRelation]
Order = tuple[str, tuple[int, ...]]

NO_LIMIT = np.iinfo(np.int64).max
# Rows from which on a run is worth a plan and a lowering of its own, with jump tables. A power of two: what plans are
# kept by is how many bits counts have.
LARGE = 1 << 15
# Rows of output that a run over less than LARGE begins with: over fewer changed rows than FEW, and over more.
FEW, MORE = 1 << 10, 1 << 14
# First keys that are sought per changed row, at least: estimates of what a round finds are often far too low.
SOUGHT = 8.0
# Only to look the rows of a tested atom up must cost less than this part of joining it: they lie anywhere, while those
# that are joined lie side by side (dag5k, where both are expected to cost the same, ten edges erased: 36 and 31 ms).
LOOKED = 0.5
# Rows that wait to be made distinct, at most about.
WAITING = 1 << 22


def _shown(plan: JoinPlan) -> set[str]:
    return {v.name for term in plan.head for v in variables_of(term)}


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
        and last.variable in _shown(plan)
        and not all(depth.variable in _shown(plan) for depth in plan.depths)
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
class _Made:
    """A plan, the relation and key order of each of its nodes, whether it may have stamps, its arrays if kept."""

    plan: JoinPlan
    places: list[Order]
    stamped: bool
    lowered: Lowered | None = None
    orders: frozenset[Order] = frozenset()
    _roots: Rows | None = None

    def __post_init__(self) -> None:
        self.orders = frozenset(at for at in self.places if at[0] != CHANGED)

    def keep(self, lowered: Lowered) -> None:
        """Keep the arrays, and none of the versions that they were made for."""
        lowered.kept = ()
        self.lowered, self._roots = lowered, lowered.walk.frames[:, trie.ROOT]

    def again(self, relations: Relations) -> Lowered | None:
        """The arrays that are kept, for a run over the relations as they are (`walk_once`)."""
        roots = self._roots
        if roots is None or self.lowered is None:
            return None
        for node, (name, columns) in enumerate(self.places):
            roots[node] = relations[name].order(columns).root
        self.lowered.walk.cell[expression_vm.NO_VALUE] = 0
        return self.lowered


class DeltaJoin:
    """One variant of a clause.

    `tested`: atoms, by number, whose rows must be older than a limit: that of a run, or the one that the row of the
    clause's last atom has as its value; none where the clause computes texts, whose heads are those of any rounds.
    `apart`: that last atom, the head, is only looked up, and not joined, and the heads come with the limits (`rounds`);
    else it is the changed rows, and the limit of one for which a tested row was too young is marked in them
    (`marking`; place.older). `own`: the last negated atom is the head's own, which a run may leave out where it meets
    no head twice.

    Of the last run: `steps` · `saw_undefined`, whether a term had no value · `met`, how many heads it met that are
    there · `marked`, whether a limit was. `key`: which of a component's joins it is. `adopted`: the key orders that
    plans of these joins read.
    """

    key: Key = ("", 0, None)

    def __init__(self, clause: Clause, tested: tuple[int, ...] = (), *, apart: bool = False, own: bool = False) -> None:
        self.clause = clause
        self.adopted: set[Order] = set()
        self.texts = split_text(clause) is not None
        self.tested = tested = () if self.texts else tested
        # A row is looked up by all its columns.
        self.body: Body = body_of(clause, whole=tested)
        self.rounds = bool(tested) and apart
        self.marking = bool(tested) and not apart
        self._width = len(clause.head_args) + self.rounds
        if self.rounds:
            atoms = self.body.atoms
            self.body = replace(self.body, atoms=atoms[:-1], looked=atoms[-1:])
        self._bodies = [self.body, *_looking(self.body, tested)] if self.marking else [self.body]
        self._open: Body | None = None
        if own and not self.texts and self.body.negated and clause.head_args:
            self._open = replace(self.body, negated=self.body.negated[:-1])
        self.reads = tuple(dict.fromkeys(atom.predicate for atom in (*self.body.atoms, *self.body.negated)))
        self._positive = len({atom.predicate for atom in self.body.atoms})  # the first of those read
        self._nullary = [clause.atoms[i].predicate for i in tested if not clause.atoms[i].args]
        self._changed = self.reads.index(CHANGED) if CHANGED in self.reads else None
        # With and without a look for heads that are there: by about how many rows there are, and by their bits.
        self._plans: dict[tuple[bool, tuple[int, ...]], _Made] = {}
        self._known: dict[tuple[bool, tuple[int, ...]], _Made] = {}
        self._made: _Made | None = None
        self._out: Rows | None = None
        self.steps = self.met = 0
        self.saw_undefined = self.marked = False

    def plan(self, relations: Relations, *, look: bool = True) -> JoinPlan:
        """The plan for relations of about the present sizes: statistics of large ones take longer than most runs.

        `look`: for heads that are there already; without, if that makes a plan that meets each head once.
        """
        return self._planned(relations, self._counts(relations), look).plan

    def _counts(self, relations: Relations) -> list[int]:
        """How many rows the relations that are read have."""
        return [*map(len, map(relations.__getitem__, self.reads))]

    def _planned(self, relations: Relations, counts: Sequence[int], look: bool) -> _Made:
        """As `plan`, with what is kept of it; `counts`: how many rows the relations that are read have."""
        bits = tuple(map(int.bit_length, counts))
        if (made := self._known.get((look, bits))) is None:
            made = self._plan_for(relations, bits, look or self._open is None)
            if not (look or made.stamped):
                made = self._planned(relations, counts, True)
            self._known[look, bits] = made
        self._made = made
        return made

    def _plan_for(self, relations: Relations, bits: Sequence[int], look: bool) -> _Made:
        """The plan for relations whose counts of rows have so many `bits`."""
        few = self._changed is not None and bits[self._changed] < LARGE.bit_length()
        about = [count // (3 if few else 2) for count in bits]
        if self._changed is not None:
            about[self._changed] = not few
        sizes = (look, tuple(about))
        if sizes not in self._plans:
            statistics: dict[str, Statistics] = {name: relations[name].statistics for name in self.reads}
            large = None
            if few:
                # Most runs are over few changed rows: a plan that begins with them is right for all of these.
                statistics[CHANGED] = OneRow(relations[CHANGED])
            elif self._changed is not None:
                statistics[CHANGED] = Fleeting(relations[CHANGED])
                large = Large(stamped=self._open is not None, own=self._open is not None and look)
            sort = REPEATED if few else LASTING if large else SORT
            others = set(self._others(relations))
            bodies = self._bodies if look or self._open is None else [self._open]
            ranked = [
                (rank_orders(body, statistics, sort=sort, large=large, others=others)[0], body) for body in bodies
            ]
            choice, body = min(ranked, key=lambda found: found[0].cost)
            if choice.cost > LOOKED * ranked[0][0].cost:
                choice, body = ranked[0]
            last = len(self.clause.atoms) - 1 if self.tested else -1
            best = plan_join(body, choice, relations, tested=self.tested, limited_by=last)
            places = [(node.predicate, node.key_order) for node in best.nodes]
            stamped = self._open is not None and stampable(best, int(look))
            self._plans[sizes] = made = _Made(best, places, stamped)
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

    def _stamps(self, evaluator: Evaluator, plan: JoinPlan, over: Relations, walk: cells.Walk) -> StampTable | None:
        """The table of the last depth's keys, told to the walk; None if it would be too large."""
        node = plan.nodes[plan.depths[-1].participants[0]]
        ends = over[node.predicate].ends(node.key_order[node.level])
        table = None if ends is None else stamp_table(evaluator.arena, *ends)
        if table is not None:
            control, last = walk.control, len(plan.depths) - 1
            control[cells.STAMP], control[cells.EPOCH] = table.page, 1
            control[cells.STAMP_LOW], control[cells.STAMP_HIGH] = table.low, table.high
            places = [d for d, depth in enumerate(plan.depths[:last]) if depth.variable in _shown(plan)]
            control[cells.EPOCH_DEPTH] = max(places, default=-1)
        return table

    @property
    def present(self) -> JoinPlan | None:
        """The plan of the last run."""
        return None if self._made is None else self._made.plan

    @property
    def orders(self) -> frozenset[Order]:
        """The key orders of stored relations that the present plan reads."""
        return frozenset() if self._made is None else self._made.orders

    def nullary_round(self, relations: Relations) -> int:
        """The greatest round of the tested atoms without columns; -1 without any, `NO_LIMIT` if one has no row."""
        greatest = -1
        for name in self._nullary:
            rounds = rounds_of(relations[name], np.empty((0, 1), np.int64))[-1]
            greatest = max(greatest, int(rounds[0]) if len(rounds) else NO_LIMIT)
        return greatest

    def _with_texts(self, evaluator: Evaluator, relations: Relations, limits: Limits) -> Rows:
        """The distinct heads of a clause that computes texts, in the steps that takes; rounds are not looked at."""
        chunks: list[Rows] = []
        evaluation, saw_undefined = evaluator.walk(self.clause, limits, chunks.append, also=relations)
        self.steps += sum(part.counters.steps for part in evaluation.parts() if part.counters is not None)
        self.saw_undefined |= saw_undefined
        return evaluator.distinct(chunks, len(self.clause.head_args))[0]

    def rows(
        self,
        evaluator: Evaluator,
        relations: Relations,
        limits: Limits,
        limit: int | None = NO_LIMIT,
        *,
        look: bool = True,
    ) -> Rows:
        """The distinct heads int64[head, n] over `relations`, with `rounds` a row more for those.

        `limit`: of the rounds of tested rows, None if every changed row has its own. `look=False`: heads that are there
        already may be among them.
        """
        width, self.met, self.steps, self.saw_undefined, self.marked = self._width, 0, 0, False, False
        if self.texts:
            return self._with_texts(evaluator, relations, limits)
        counts = self._counts(relations)
        if (0 in counts and 0 in counts[: self._positive]) or self._ruled_out(relations):
            return np.empty((width, 0), np.int64)
        # The row of a relation without columns is tested here: it binds nothing in the walk.
        if self._nullary and limit is not None and self.nullary_round(relations) >= limit:
            return np.empty((width, 0), np.int64)
        changed = 0 if self._changed is None else counts[self._changed]
        large = self._changed is None or changed >= LARGE
        made = self._planned(relations, counts, look or not large)
        if large or (lowered := made.again(relations)) is None:
            versions: dict[Order, Version] = {at: relations[at[0]].order(at[1]) for at in made.places}
            hints = SeekHints(large, SOUGHT * changed, fleeting=CHANGED, stamped=made.stamped)
            lowered = lower(made.plan, versions, evaluator._encode, np.zeros(1, np.int64), hints)
            if self.rounds:
                head = np.append(lowered.walk.head, lowered.walk.control[cells.LIMIT_IN])
                lowered.walk = lowered.walk._replace(head=head)
            if not large:
                made.keep(lowered)
        walk = lowered.walk._replace(ranks=evaluator.symbols.ranks()) if lowered.ranked else lowered.walk
        control = walk.control
        control[cells.LIMIT], control[cells.LIMIT_AT] = (NO_LIMIT, made.plan.limiting) if limit is None else (limit, -1)
        control[cells.MARKING] = self.marking and limit is None
        if large:
            stamps = self._stamps(evaluator, made.plan, relations, walk) if made.stamped else None
            found = self._heads(evaluator, walk, lowered.prelude, limits, evaluator.buffer_rows, [])
            # Only stamped runs count them; others say that it may have been as many as they found.
            self.met = int(control[cells.MET]) if made.stamped else found.shape[1]
            del stamps
        else:
            buffer = min(evaluator.buffer_rows, FEW if changed < FEW else MORE)
            found = self._few(evaluator, walk, lowered.prelude, limits, buffer)
        self.marked = self.marking and bool(control[cells.MARKING] > 1)
        return found

    def _ruled_out(self, relations: Relations) -> bool:
        """Whether a relation that must have rows has none, or one that must have none has."""
        guards, voids = self.body.guards, self.body.voids
        without_result = bool(guards) and not all(len(relations[name]) for name in guards)
        return without_result or (bool(voids) and any(len(relations[name]) for name in voids))

    def _few(self, evaluator: Evaluator, walk: cells.Walk, prelude: Rows, limits: Limits, buffer: int) -> Rows:
        """The distinct heads of a walk over few changed rows: as a rule one call of the kernel, and few heads.

        `buffer`: rows of output to begin with.
        """
        if self._out is None or self._out.shape[1] < buffer:
            self._out = np.empty((len(walk.head), buffer), np.int64)
        done = walk_once(evaluator.arena.space.mem, walk, prelude, self._out)
        heads = self._out[:, : walk.control[cells.WRITTEN]].copy()
        if not done:
            walk.control[cells.WRITTEN] = 0
            return self._heads(evaluator, walk, prelude, limits, buffer, [heads])
        self.steps += int(walk.control[cells.STEPS])
        self.saw_undefined |= bool(walk.cell[expression_vm.NO_VALUE])
        return heads if heads.shape[1] < 2 else evaluator.distinct([heads], len(heads))[0]

    def _heads(
        self, evaluator: Evaluator, walk: cells.Walk, prelude: Rows, limits: Limits, buffer: int, chunks: list[Rows]
    ) -> Rows:
        """The distinct heads of `chunks`, and of a walk from the state it is in."""
        run = Run(evaluator.arena.space.mem, walk, prelude, limits, lambda regs: "", buffer_rows=buffer)
        waiting = 0
        for chunk in run.chunks():
            chunks.append(chunk)
            waiting += chunk.shape[1]
            if waiting > WAITING:
                chunks = [evaluator.distinct(chunks, self._width)[0]]
                waiting = 0
        self.steps += run.counters.steps
        self.saw_undefined |= run.saw_undefined
        return evaluator.distinct(chunks, self._width)[0]
