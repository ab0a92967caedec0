"""What following a change takes, and evaluating anew: estimated from counts, and corrected by what it took before.

The factors are nanoseconds, fitted to the cells of `bench.pairs`. They hold within a factor of two for evaluations and
of three for changes that are followed: whether a step finds its page in a cache is not counted. So what evaluating a
head took is measured, and what following it took, by the number of changed rows (`HeadCosts`), wherever that is long
enough to be measured.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field
from typing import NamedTuple

from lftj.maintain.report import CostComparison
from lftj.program.strata import Heads, Strata
from lftj.store.change import Change
from lftj.triggers.from_clauses import ClauseFormulas
from lftj.triggers.kept_thresholds import ThresholdFormulas
from lftj.triggers.one_body import Form
from scantree.version import Version

# Evaluating: a node opened, a seek, a row derived, stored or compared, a text computed; planning and the like.
OPEN, SEEK, ROW, TEXT, ANEW = 60.0, 11.0, 42.0, 300.0, 130_000.0
# Following, whatever changes.
FOLLOWED = 70_000.0
# Following by a trace: a changed row with all its lookups and index pages, and a step with the records it goes with.
CHANGE, MAINTENANCE_STEP = 1_000.0, 130.0
# Following by deltas: the same where changed rows are joined with the rest.
JOINED, JOINED_STEP = 600.0, 45.0
# Steps of an evaluation, spread over the rows of a relation, beside the steps that a changed row of it concerns in a
# trace: old ones go, new ones come, and they are looked for (measured: 1.5 to 5).
CONCERNED = 3.0
# Following by triggers: whatever changes; a changed row, and an instruction of the statements that it runs.
FOLLOWED_BY_TRIGGERS, EVENT, EVENT_STEP = 20_000.0, 300.0, 40.0
# Maps are not given up for evaluating, whatever that takes, unless following takes this part of filling them: the next
# change of few rows has them filled again. TPC-H's q2, whose conditions leave few rows to evaluate, did so in every
# other batch of 1,000 rows: 430 ms, for 20.
GIVEN_UP = 1 / 32
# A changed row in a key order that only evaluating needs.
ORDERED = 500.0
# Following by scans: a changed row.
SCANNED = 4_000.0
# Planning how changed rows of an atom are joined, and making the arrays for it.
PLANNED = 150_000.0
# Changed rows that are many beside those that are read share the pages they are joined in: from this part on, twice as
# many take so many times as long (from 10,000 rows to 50,000, 200,000 and 500,000: 3.5, 11 and 25 on pl1m).
SHARING, DOUBLED = 1 / 100, 1.75
# Changed rows from which on what they took says something about the next.
MANY = 16
# Estimates that nothing was measured for err to the high side, and only what is tried is ever measured.
UNTRIED = 0.5
# What took longer than the other of deltas and traces is expected to, times this, is regretted: while the other is not
# tried, and once it was; and how many evaluations have to be regretted before it is turned to.
DOUBTED, KNOWN, PREPARING = 1.5, 1.1, 2.0
OTHER = {"delta": "trace", "trace": "delta"}
# How many times as long as evaluating following may take before a head gives up what it keeps; and evaluating as
# following, before that is prepared anew: where both take as long, a head stays at what it does.
LOATH, WORTHWHILE = 1.1, 1.3
# How far a measurement may be from the estimate (the first one may compile kernels), and what is left of its excess
# each time that it keeps a head from being followed: a change that went badly once is tried again.
FARTHEST, FORGOTTEN = 8.0, 0.97


class RebuildCost(NamedTuple):
    """What deriving a head did when it was last evaluated, or recorded.

    `rows` that were derived, and `stored`: those of the content then. `scale`: how many times as long evaluating took
    as is estimated, beside `ANEW`: so the choice for a head of a few rows does not depend on how fast the machine is.
    """

    opens: int = 0
    seeks: int = 0
    rows: int = 0
    stored: int = 0
    texts: int = 0
    scale: float = 1.0

    def measured(self, cpu: float) -> RebuildCost:
        """The same after evaluating took so many nanoseconds (0: it was not measured)."""
        estimated = self.nanoseconds(self.stored, 1.0) - ANEW
        return self._replace(scale=within((cpu - ANEW) / max(1.0, estimated))) if cpu else self

    def nanoseconds(self, stored: int, thinned: float) -> float:
        """What it is estimated to take now that so many rows are `stored`.

        `thinned`: of the rows that a changed row is joined with, which part is left. What was followed for long may
        have become another relation; but changed rows may be no sample of all, so that nothing thins out by more than
        the content, and that there is more to do is only believed of what was evaluated.
        """
        kept = min(1.0, stored / max(1, self.stored))
        walk = OPEN * self.opens + SEEK * self.seeks * min(1.0, max(kept, thinned))
        return ANEW + self.scale * (walk + ROW * kept * (self.rows + self.stored) + TEXT * self.texts)


def within(ratio: float) -> float:
    """`ratio`, of a measurement to an estimate, as far as it is believed."""
    return min(FARTHEST, max(1 / FARTHEST, ratio))


def following(changed: int, steps: float, read: int, *, by_delta: bool) -> float:
    """Nanoseconds for so many changed rows, and the steps expected of them, where rules `read` so many rows.

    0 of these: it is not known how many.
    """
    of_row, of_step = (JOINED, JOINED_STEP) if by_delta else (CHANGE, MAINTENANCE_STEP)
    nanoseconds = changed * of_row + steps * of_step
    many = max(MANY, SHARING * read)
    if read and changed > many:
        nanoseconds *= (DOUBLED / 2) ** math.log2(changed / many)
    return FOLLOWED + nanoseconds


class Pace:
    """What changes of about so many rows took beside the estimate: the lesser of the last two ratios.

    The first time much is made that later ones find, so that alone it does not say that the estimate is too low.
    """

    __slots__ = ("last", "ratio")

    def __init__(self, first: float) -> None:
        self.ratio, self.last = min(first, 1.0), first

    def learn(self, ratio: float) -> None:
        """One more change: what disturbs a measurement makes it longer."""
        self.ratio, self.last = min(ratio, self.last), ratio


@dataclass(slots=True)
class HeadCosts:
    """What is known of the costs of maintaining `heads` beside estimates; it outlives what is kept of them.

    `paces`: by strategy and by the size of the change · `evaluated`: the content that a commit made by evaluating
    and keeping nothing · `anew`: nanoseconds that the last two such took (0: there was none), of which one may have
    compiled kernels · `dear`: nanoseconds for a changed row when following was last not worth it · `steps`: what a
    changed row of each relation is expected to take by deltas and by traces, where both were planned · `why_not`: why
    derivations cannot be followed (None: not looked at) · `favoured`: the one of them that was turned to ("": none
    yet) · `regret`: nanoseconds that the one in use took beyond what the other was expected to take; `turns`: how often
    that was too much · `formulas`: what triggers keep, or why they cannot (None: not looked at) · `withheld`: why they
    cannot for now, because of the rows there are ("": they can) · `body`: under which rules the heads whose maps are
    one with theirs (maintain/triggers.py) · `form`: that of their first clause (triggers/one_body.py; None: not worked
    out).
    """

    heads: Heads
    paces: dict[str, dict[int, Pace]] = field(default_factory=dict)
    evaluated: weakref.ref[Version] | None = None
    anew: tuple[float, float] = (0.0, 0.0)
    dear: float = 0.0
    steps: dict[str, Mapping[str, float]] = field(default_factory=dict)
    why_not: str | None = None
    favoured: str = ""
    regret: float = 0.0
    turns: int = 0
    formulas: ClauseFormulas | ThresholdFormulas | str | None = None
    withheld: str = ""
    body: tuple[Strata, tuple[Heads, ...]] | None = None
    form: Form | None = None

    def pace(self, strategy: str, rows: int) -> float:
        """What to multiply the estimate for so many changed rows by."""
        known, size = self.paces.get(strategy, {}), size_of(rows)
        if size in known:
            return known[size].ratio
        return min([UNTRIED, *(pace.ratio for pace in known.values())])

    def corrected(self, strategy: str, compared: CostComparison) -> CostComparison:
        """The comparison with what following took before; and evaluating, which may be in another order than recorded.

        What evaluating took is forgotten a little each time.
        """
        pace, self.anew = self.pace(strategy, compared.rows), (self.anew[0] * FORGOTTEN, self.anew[1] * FORGOTTEN)
        measured = min(*self.anew, FARTHEST * compared.anew)
        return CostComparison(compared.rows, compared.following * pace, max(compared.anew, measured), compared.lost)

    def learn(self, strategy: str, compared: CostComparison, took: float) -> None:
        """Following a change took so many nanoseconds; `compared`: as it was estimated, uncorrected."""
        # Too long is believed however long, the second time: a trace took 8 s where 0.02 were expected, for ever.
        ratio, size = max(1 / FARTHEST, took / compared.following), size_of(compared.rows)
        known = self.paces.setdefault(strategy, {})
        if size in known:
            known[size].learn(ratio)
        else:
            known[size] = Pace(ratio)

    def regrets(self, strategy: str, changes: Mapping[str, Change], compared: CostComparison, priced: float) -> bool:
        """Whether the other of deltas and traces is turned to, now that `changes` were followed.

        `priced`: what the steps that they took are priced at. What is beyond that is the upkeep of key orders, or a
        slow machine, and is expected of the other, too, as long as it was not tried. Each time it takes twice as much
        regret, so that a head does not turn to and fro.
        """
        other = OTHER[strategy]
        steps = self.steps.get(other)
        if steps is None:
            return False
        expected = sum([len(change.kinds) * steps.get(name, 0.0) for name, change in changes.items()])
        instead = following(compared.rows, expected, 0, by_delta=other == "delta")
        took = compared.following * self.pace(strategy, compared.rows)  # not of this one change, which may be the first
        if other in self.paces:
            instead *= KNOWN * self.pace(other, compared.rows)
        else:
            instead, took = DOUBTED * instead, min(took, priced)
        self.regret = max(0.0, self.regret + took - instead)
        if self.regret < PREPARING * compared.anew * 2.0**self.turns:
            return False
        self.favoured, self.regret, self.turns = other, 0.0, self.turns + 1
        return True

    def still_dear(self, rows: int, anew: float) -> bool:
        """Whether following so many changed rows is not worth preparing, where evaluating took `anew` nanoseconds."""
        if not self.dear or WORTHWHILE * self.dear * rows < anew:
            return False
        self.dear *= FORGOTTEN
        return True

    def abandon(self, strategy: str) -> None:
        """Following was given up in its midst: if it was turned to, the other of deltas and traces was better."""
        if self.favoured == strategy:
            self.favoured, self.regret, self.turns, self.dear = OTHER[strategy], 0.0, self.turns + 1, 0.0

    def refuse(self, strategy: str, compared: CostComparison) -> None:
        """Following was not worth it, by the corrected comparison."""
        self.dear = compared.following / max(1, compared.rows)
        pace = self.paces.get(strategy, {}).get(size_of(compared.rows))
        if pace is not None:
            pace.ratio *= FORGOTTEN
            pace.last *= FORGOTTEN


def concerned(steps: int, names: Iterable[str], rows: Mapping[str, Sized]) -> dict[str, float]:
    """Steps that a changed row of each relation is expected to concern in the trace of a walk of so many `steps`."""
    return {name: CONCERNED * steps / max(1, len(rows[name])) for name in names}


def size_of(rows: int) -> int:
    """The size of a change: 0 for up to 3 rows, and one more for eight times as many."""
    return rows.bit_length() // 3
