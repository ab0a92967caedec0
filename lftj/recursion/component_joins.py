"""The joins of a component: the variants of its clauses, each made when it is first asked for and kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lftj.evaluate.evaluator import Evaluator
from lftj.language.clause import Clause
from lftj.plan.join_stats import CHECK, CONSUMERS, FORWARD, OLDER, UNDER, JoinStats, Key
from lftj.program.strata import Strata
from lftj.recursion import variants
from lftj.recursion.component_join import DeltaJoin, Order
from lftj.recursion.scratch_relation import Slate


class Joins:
    """The variants of the clauses of a component, made when they are first asked for.

    `written`: the clauses as they are written; `clauses`: as they are run, each in its place. `as_written`: whether
    they are the same. `strata`: those the clauses were last found in. `below`: the relations of lower strata that they
    read. `ops`: "min" or "max" of heads of best values. `adopted`: the key orders that their plans read. `fresh`: by
    head, which part of the rows that a large round met was not there yet, the last time. `steps`: of all runs;
    `join_stats`: the same by join, with more.
    """

    def __init__(self, written: tuple[Clause, ...], clauses: tuple[Clause, ...], members: Iterable[str]) -> None:
        self.written, self.clauses, self.members = written, clauses, frozenset(members)
        self.as_written = clauses == written
        self.strata: Strata | None = None
        self.below = frozenset(name for clause in self.clauses for name in clause.reads) - self.members
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
        self._slates: dict[tuple[int, bool], Slate] = {}
        self.fresh: dict[str, float] = {}
        self.steps = 0
        self.join_stats: dict[Key, JoinStats] = {}
        self._troubled: set[DeltaJoin] = set()

    @property
    def negates(self) -> Collection[str]:
        """The relations that clauses negate."""
        return self._negated.keys()

    def _keep(self, key: Key, join: DeltaJoin) -> DeltaJoin:
        join.key, join.adopted = key, self.adopted
        self._made[key] = join
        return join

    def forward(self, c: int, i: int | None) -> DeltaJoin:
        """Clause `c`: new heads by atom `i` over changed rows."""
        if (join := self._made.get((FORWARD, c, i))) is None:
            join = self._keep((FORWARD, c, i), DeltaJoin(variants.forward(self.clauses[c], i), own=True))
        return join

    def consumers(self, c: int, i: int, *, older: bool) -> DeltaJoin:
        """Clause `c`: heads of the derivations that atom `i` has with changed rows; `older`: from older rows only."""
        kind = OLDER if older else CONSUMERS
        if (join := self._made.get((kind, c, i))) is None:
            found = variants.consumers(self.clauses[c], i, self.members if older else ())
            join = self._keep((kind, c, i), DeltaJoin(*found, apart=True))
        return join

    def check(self, c: int) -> DeltaJoin:
        """Clause `c`: which of the asked rows it derives."""
        if (join := self._made.get((CHECK, c, None))) is None:
            join = self._keep((CHECK, c, None), DeltaJoin(*variants.check(self.clauses[c], self.members)))
        return join

    def under(self, c: int) -> DeltaJoin:
        """Clause `c`: all heads under the asked keys."""
        if (join := self._made.get((UNDER, c, None))) is None:
            join = self._keep((UNDER, c, None), DeltaJoin(variants.under(self.clauses[c])))
        return join

    def any_forward(self, c: int) -> DeltaJoin:
        """Clause `c`: the first of its `forward` joins that was made."""
        made = (join for (kind, k, _), join in self._made.items() if kind == FORWARD and k == c)
        return next(made, None) or self.forward(c, None)

    def slate(self, evaluator: Evaluator, arity: int, *, rounds: bool) -> Slate:
        """What changed rows of `arity` columns, or those and a round, are written on."""
        if (arity, rounds) not in self._slates:
            self._slates[arity, rounds] = Slate(evaluator, arity, rounds=rounds)
        return self._slates[arity, rounds]

    def forward_from(self, name: str, *, negated: bool = False) -> list[DeltaJoin]:
        """New heads by each positive (or negated) atom over `name`, over changed rows."""
        return [self.forward(c, i) for c, i in (self._negated if negated else self._positive).get(name, ())]

    def consumers_of(self, name: str, *, negated: bool = False, older: bool) -> list[DeltaJoin]:
        """Heads that each positive (or negated) atom over `name` has a part in with changed rows, as `consumers`."""
        atoms = self._negated if negated else self._positive
        return [self.consumers(c, i, older=older) for c, i in atoms.get(name, ())]

    def begin(self) -> None:
        """Count from zero."""
        self.fresh, self.steps, self.join_stats, self._troubled = {}, 0, {}, set()

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
        if join.trouble:
            self._troubled.add(join)

    @property
    def trouble(self) -> set[int]:
        """The clauses in which a term had no value, for a head that is asked for."""
        if not self._troubled:
            return set()
        made = self._made.items()
        return {c for (kind, c, _), join in made if join in self._troubled and kind not in (CONSUMERS, OLDER)}
