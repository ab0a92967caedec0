"""The joins of a component: the variants of its clauses, each made when it is first asked for and kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lftj.evaluate.evaluator import Evaluator
from lftj.language.clause import Clause
from lftj.plan.join_stats import CANDIDATES, DELTA_RULE, DEPENDENTS, OLDER_DEPENDENTS, REDERIVE, JoinStats, Key
from lftj.program.strata import Strata
from lftj.program.text_split import split_text
from lftj.recursion import variants
from lftj.recursion.component_join import DeltaJoin, Order
from lftj.recursion.scratch_relation import ScratchRelation


class Joins:
    """The variants of the clauses of a component, made when they are first asked for.

    `written`: the clauses as they are written; `clauses`: as they are run, each in its place. `as_written`: whether
    they are the same. `strata`: those the clauses were last found in. `below`: the relations of lower strata that they
    read. `texts`: the clauses that read members and compute texts. `ops`: "min" or "max" of heads of best values.
    `adopted`: the key orders that their plans read. `fresh`: by head, which part of the rows that a large round met was
    not there yet, the last time. `steps`: of all runs; `join_stats`: the same by join, with more.
    """

    def __init__(self, written: tuple[Clause, ...], clauses: tuple[Clause, ...], members: Iterable[str]) -> None:
        self.written, self.clauses, self.members = written, clauses, frozenset(members)
        self.as_written = clauses == written
        self.strata: Strata | None = None
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
        join.key, join.adopted = key, self.adopted
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
