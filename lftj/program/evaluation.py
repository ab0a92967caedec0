"""An evaluation: how a clause was evaluated, or would be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lftj.join.run import Counters
from lftj.language.clause import Clause
from lftj.plan.join_stats import JoinStats, Key
from lftj.plan.joinplan import JoinPlan
from lftj.program.text_split import TextSplit


@dataclass(slots=True)
class Evaluation:
    """How a clause was (or, with `counters` None, would be) evaluated.

    `plan`: None if no walk was made, but what `instead` says · `inner` is the first part of a clause that computes
    texts. `ran`: the joins of a clause of a recursive component, what they did; they count no seeks. `cpu`: nanoseconds
    of CPU that evaluating and storing the head took, at its first clause (0: not measured), by itself · `elsewhere`:
    those of them that the evaluation of another head took, which summed both; less than 0 where it summed others here.
    """

    clause: Clause
    plan: JoinPlan | None
    counters: Counters | None = None
    seconds: float = 0.0
    inner: Evaluation | None = None
    split: TextSplit | None = None
    ran: tuple[tuple[Key, JoinStats], ...] = ()
    cpu: float = 0.0
    elsewhere: float = 0.0
    instead: str = ""

    @property
    def sorted(self) -> bool:
        """Whether its rows come in order and without repeats."""
        return self.plan is not None and self.plan.in_order and self.split is None

    def parts(self) -> Iterator[Evaluation]:
        """The evaluation and its first parts."""
        part: Evaluation | None = self
        while part is not None:
            yield part
            part = part.inner
