"""The joins of a component: the variants of its clauses, each made when it is first asked for, and run many times.

A round, or a step of maintenance, is many small joins. Planning and lowering one takes longer than running it, so both
are kept as long as the relations are of about the size they were made for (variant_plans.py); a run only puts the roots
of the present versions into the frames. And making a relation takes longer than joining a few rows: what holds those
that changed is written again for every join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from lftj.evaluate.evaluator import Evaluator
from lftj.join import expression_vm, trie
from lftj.join import join_state as cells
from lftj.join.leaf_dedup import StampTable, stamp_table
from lftj.join.run import Limits, Run, walk_once
from lftj.language.clause import Clause
from lftj.plan.join_stats import CANDIDATES, DELTA_RULE, DEPENDENTS, OLDER_DEPENDENTS, REDERIVE, JoinStats, Key
from lftj.plan.joinplan import JoinPlan
from lftj.plan.lowering import Lowered, SeekHints, lower
from lftj.program.strata import Strata
from lftj.program.text_split import split_text
from lftj.recursion import variant_plans, variants
from lftj.recursion.round_column import rounds_of
from lftj.recursion.variant_plans import Order, Relations, VariantPlan, VariantPlans, shown
from lftj.recursion.variants import CHANGED
from lftj.store.stored import StoredRelation
from lftj.values.schema import Column, Schema
from scantree.version import Rows, Version

NO_LIMIT = np.iinfo(np.int64).max
# Rows of output that a run over less than LARGE begins with: over fewer changed rows than FEW, and over more.
FEW, MORE = 1 << 10, 1 << 14
# First keys that are sought per changed row, at least: estimates of what a round finds are often far too low.
SOUGHT = 8.0
# Rows that wait to be made distinct, at most about.
WAITING = 1 << 22


class DeltaJoin:
    """One variant of a clause.

    `tested`: atoms, by number, whose rows must be older than a limit: that of a run, or the one that the row of the
    clause's last atom has as its value; none where the clause computes texts, whose heads are those of any rounds.
    `apart`: that last atom, the head, is only looked up, and not joined, and the heads come with the limits (`rounds`);
    else it is the changed rows, and the limit of one for which a tested row was too young is marked in them
    (`marking`; place.older). `own`: the last negated atom is the head's own, which a run may leave out where it meets
    no head twice.

    Of the last run: `steps` · `saw_undefined`, whether a term had no value · `met`, how many heads it met that are
    there · `marked`, whether a limit was. `key`: which of a component's joins it is.
    """

    key: Key = ("", 0, None)

    def __init__(self, clause: Clause, tested: tuple[int, ...] = (), *, apart: bool = False, own: bool = False) -> None:
        self.clause = clause
        self.texts = split_text(clause) is not None
        self.tested = tested = () if self.texts else tested
        self.rounds = bool(tested) and apart
        self.marking = bool(tested) and not apart
        self._width = len(clause.head_args) + self.rounds
        self.plans = VariantPlans(clause, tested, apart=apart, own=own and not self.texts)
        self._nullary = [clause.atoms[i].predicate for i in tested if not clause.atoms[i].args]
        # With and without a look for heads that are there, by the bits of how many rows there are.
        self._known: dict[tuple[bool, tuple[int, ...]], VariantPlan] = {}
        self._present: VariantPlan | None = None
        self._out: Rows | None = None
        self.steps = self.met = 0
        self.saw_undefined = self.marked = False

    def plan(self, relations: Relations, *, look: bool = True) -> JoinPlan:
        """The plan for relations of about the present sizes. `look`: for heads that are there already."""
        return self._planned(relations, self._counts(relations), look).plan

    def _counts(self, relations: Relations) -> list[int]:
        """How many rows the relations that are read have."""
        return [*map(len, map(relations.__getitem__, self.plans.reads))]

    def _planned(self, relations: Relations, counts: Sequence[int], look: bool) -> VariantPlan:
        """As `plan`, with what is kept of it; `counts`: how many rows the relations that are read have."""
        bits = tuple(map(int.bit_length, counts))
        if (found := self._known.get((look, bits))) is None:
            found = self._known[look, bits] = self.plans.of(relations, bits, look=look)
        self._present = found
        return found

    def _stamps(self, evaluator: Evaluator, plan: JoinPlan, over: Relations, walk: cells.Walk) -> StampTable | None:
        """The table of the last depth's keys, told to the walk; None if it would be too large."""
        node = plan.nodes[plan.depths[-1].participants[0]]
        ends = over[node.predicate].ends(node.key_order[node.level])
        table = None if ends is None else stamp_table(evaluator.arena, *ends)
        if table is not None:
            control, last = walk.control, len(plan.depths) - 1
            control[cells.STAMP], control[cells.EPOCH] = table.page, 1
            control[cells.STAMP_LOW], control[cells.STAMP_HIGH] = table.low, table.high
            places = [d for d, depth in enumerate(plan.depths[:last]) if depth.variable in shown(plan)]
            control[cells.EPOCH_DEPTH] = max(places, default=-1)
        return table

    @property
    def present(self) -> JoinPlan | None:
        """The plan of the last run."""
        return None if self._present is None else self._present.plan

    @property
    def orders(self) -> frozenset[Order]:
        """The key orders of stored relations that the present plan reads."""
        return frozenset() if self._present is None else self._present.orders

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
        if (0 in counts and 0 in counts[: self.plans.positive]) or self._ruled_out(relations):
            return np.empty((width, 0), np.int64)
        # The row of a relation without columns is tested here: it binds nothing in the walk.
        if self._nullary and limit is not None and self.nullary_round(relations) >= limit:
            return np.empty((width, 0), np.int64)
        at = self.plans.changed
        changed = 0 if at is None else counts[at]
        large = at is None or changed >= variant_plans.LARGE
        made = self._planned(relations, counts, look or not large)
        if large or (lowered := _again(made, relations)) is None:
            versions: dict[Order, Version] = {place: relations[place[0]].order(place[1]) for place in made.places}
            hints = SeekHints(large, SOUGHT * changed, fleeting=CHANGED, stamped=made.stamped)
            lowered = lower(made.plan, versions, evaluator._encode, np.zeros(1, np.int64), hints)
            if self.rounds:
                head = np.append(lowered.walk.head, lowered.walk.control[cells.LIMIT_IN])
                lowered.walk = lowered.walk._replace(head=head)
            if not large:
                # The arrays, and none of the versions that they were made for.
                lowered.kept = ()
                made.lowered, made.roots = lowered, lowered.walk.frames[:, trie.ROOT]
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
        guards, voids = self.plans.body.guards, self.plans.body.voids
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


def _again(made: VariantPlan, relations: Relations) -> Lowered | None:
    """The arrays that are kept of a plan, for a run over the relations as they are (`walk_once`)."""
    roots, lowered = made.roots, made.lowered
    if roots is None or lowered is None:
        return None
    for node, (name, columns) in enumerate(made.places):
        roots[node] = relations[name].order(columns).root
    lowered.walk.cell[expression_vm.NO_VALUE] = 0
    return lowered


class ScratchRelation:
    """A relation of `arity` columns that is written again and again; with `rounds`, every row has a round beside it."""

    def __init__(self, evaluator: Evaluator, arity: int, *, rounds: bool) -> None:
        schema = Schema(CHANGED, tuple(Column(f"c{i}", "number") for i in range(arity)))
        sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
        self._blank = StoredRelation(schema, evaluator.arena, **sizes)
        self._store = self._blank.rounds_store() if rounds else self._blank.facts.store
        self._written: StoredRelation | None = None

    def holding(self, rows: Rows) -> StoredRelation:
        """The relation with `rows` int64[columns, n], distinct and in key order; valid until the next call."""
        if self._written is not None and self._written.overwrite(rows):
            return self._written
        made = self._blank.holding(self._store.assemble([rows]))
        if made.overwrite(rows):
            self._written = made
        return made


class Joins:
    """The variants of the clauses of a component, made when they are first asked for.

    `written`: the clauses as they are written; `clauses`: as they are run, each in its place. `as_written`: whether
    they are the same. `strata`: those the clauses were last found in. `below`: the relations of lower strata that they
    read; `keys`: the primary keys of these, which plans rely on. `texts`: the clauses that read members and compute
    texts. `ops`: "min" or "max" of heads of best values.
    `adopted`: the key orders that their plans read. `fresh`: by head, which part of the rows that a large round met was
    not there yet, the last time. `steps`: of all runs; `join_stats`: the same by join, with more.
    """

    def __init__(self, written: tuple[Clause, ...], clauses: tuple[Clause, ...], members: Iterable[str]) -> None:
        self.written, self.clauses, self.members = written, clauses, frozenset(members)
        self.as_written = clauses == written
        self.strata: Strata | None = None
        self.keys: dict[str, tuple[int, ...]] = {}
        self.below = frozenset(name for clause in self.clauses for name in clause.reads) - self.members
        self.texts = frozenset(
            c
            for c, clause in enumerate(self.clauses)
            if self.members & clause.reads.keys() and split_text(clause) is not None
        )
        self.ops = {clause.head: clause.best for clause in self.clauses if clause.best}
        # (clause, atom) of the positive and of the negated atoms over each relation, these numbered behind the others.
        self._positive: dict[str, list[tuple[int, int]]] = {}
        self._negated: dict[str, list[tuple[int, int]]] = {}
        for c, clause in enumerate(self.clauses):
            for i, atom in enumerate(clause.atoms):
                self._positive.setdefault(atom.predicate, []).append((c, i))
            for i, atom in enumerate(clause.negated, len(clause.atoms)):
                self._negated.setdefault(atom.predicate, []).append((c, i))
        self.adopted: set[Order] = set()
        self._made: dict[Key, DeltaJoin] = {}
        self._scratch: dict[tuple[int, bool], ScratchRelation] = {}
        self.fresh: dict[str, float] = {}
        self.steps = 0
        self.join_stats: dict[Key, JoinStats] = {}
        self._saw_undefined: set[DeltaJoin] = set()

    @property
    def negates(self) -> Collection[str]:
        """The relations that clauses negate."""
        return self._negated.keys()

    def _keep(self, key: Key, join: DeltaJoin) -> DeltaJoin:
        join.key, join.plans.adopted, join.plans.members = key, self.adopted, self.members
        self._made[key] = join
        return join

    def delta_rule(self, c: int, i: int | None) -> DeltaJoin:
        """Clause `c`: new heads by atom `i` over changed rows."""
        if (join := self._made.get((DELTA_RULE, c, i))) is None:
            join = self._keep((DELTA_RULE, c, i), DeltaJoin(variants.delta_rule(self.clauses[c], i), own=True))
        return join

    def dependents(self, c: int, i: int, *, older: bool) -> DeltaJoin:
        """Clause `c`: heads of the derivations that atom `i` has with changed rows; `older`: from older rows only."""
        kind = OLDER_DEPENDENTS if older else DEPENDENTS
        if (join := self._made.get((kind, c, i))) is None:
            found = variants.dependents(self.clauses[c], i, self.members if older else ())
            join = self._keep((kind, c, i), DeltaJoin(*found, apart=True))
        return join

    def rederive(self, c: int) -> DeltaJoin:
        """Clause `c`: which of the asked rows it derives."""
        if (join := self._made.get((REDERIVE, c, None))) is None:
            join = self._keep((REDERIVE, c, None), DeltaJoin(*variants.rederive(self.clauses[c], self.members)))
        return join

    def candidates_for_keys(self, c: int) -> DeltaJoin:
        """Clause `c`: all heads under the asked keys."""
        if (join := self._made.get((CANDIDATES, c, None))) is None:
            join = self._keep((CANDIDATES, c, None), DeltaJoin(variants.candidates_for_keys(self.clauses[c])))
        return join

    def any_delta_rule(self, c: int) -> DeltaJoin:
        """Clause `c`: the first of its `delta_rule` joins that was made."""
        made = (join for (kind, k, _), join in self._made.items() if kind == DELTA_RULE and k == c)
        return next(made, None) or self.delta_rule(c, None)

    def scratch(self, evaluator: Evaluator, arity: int, *, rounds: bool) -> ScratchRelation:
        """The scratch relation of `arity` columns, with or without rounds."""
        if (arity, rounds) not in self._scratch:
            self._scratch[arity, rounds] = ScratchRelation(evaluator, arity, rounds=rounds)
        return self._scratch[arity, rounds]

    def delta_rules(self, name: str, *, negated: bool = False) -> list[DeltaJoin]:
        """The joins `delta_rule` of each positive (or negated) atom over `name`."""
        return [self.delta_rule(c, i) for c, i in (self._negated if negated else self._positive).get(name, ())]

    def dependents_of(self, name: str, *, negated: bool = False, older: bool) -> list[DeltaJoin]:
        """The joins `dependents` of each positive (or negated) atom over `name`."""
        atoms = self._negated if negated else self._positive
        return [self.dependents(c, i, older=older) for c, i in atoms.get(name, ())]

    def begin(self) -> None:
        """Count from zero."""
        self.fresh, self.steps, self.join_stats, self._saw_undefined = {}, 0, {}, set()

    def ran(self, join: DeltaJoin, rows: int, seconds: float) -> None:
        """One of them has run, and found so many rows."""
        self.steps += join.steps
        if (stats := self.join_stats.get(join.key)) is None:
            stats = self.join_stats[join.key] = JoinStats(self.written[join.key[1]], self.clauses[join.key[1]])
        stats.plan = join.present
        stats.runs += 1
        stats.rows += rows
        stats.steps += join.steps
        stats.seconds += seconds
        if join.saw_undefined:
            self._saw_undefined.add(join)

    @property
    def saw_undefined(self) -> set[int]:
        """The clauses in which a term had no value, for a head that is asked for."""
        if not self._saw_undefined:
            return set()
        counted = (DELTA_RULE, REDERIVE, CANDIDATES)
        return {c for (kind, c, _), join in self._made.items() if join in self._saw_undefined and kind in counted}
