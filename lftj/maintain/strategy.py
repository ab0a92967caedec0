"""The seam: a strategy is one way of keeping heads up to date, and the rest of the system knows no other.

    fits       whether it can keep these heads, or why not
    kept       what it has at hand for them, which holds for the state before the commit; None if there is nothing
    prepare    evaluates the heads, and keeps what it needs to follow later changes
    explain    what it says of itself

What is kept of heads (`Kept`) estimates what following a change costs, and follows it:

    estimate   the cost, beside that of evaluating again
    apply      the next contents and how they differ, as `Staged`: adopted with the commit, or discarded with it

`choose.py` holds the list of strategies, in order of preference, and is the one place that chooses. A new strategy is
a file with these two classes and an entry in that list; `explain`, `memory` and `tx.stats` read what it says here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.maintain.report import Reason, RuleWork
from lftj.maintain.step import Step
from lftj.plan.join_stats import JoinStatsByJoin
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.program.undefined import UndefinedRows
from lftj.store.change import Change
from lftj.store.stored import StoredRelation


class Declined(Exception):
    """Following the change turned out to be dearer than evaluating; `args[0]`, a `Reason`, says why."""


class Cost(NamedTuple):
    """What following a change is expected to cost: `why`, and whether it is `worth` it beside evaluating again.

    Where `why` is a comparison, it decides, corrected by what following such changes took before (choose.py).
    """

    why: Reason
    worth: bool = True


@dataclass(slots=True)
class Staged:
    """What a strategy made of heads in one step. Nothing holds before `adopt`; `discard` forgets it.

    `strategy`, `why`, `steps`, `removed`, `added`, `work`, `more`: for the report · `relations`: the heads with their
    next contents · `changes`: how these differ · `evaluations`: of clauses that were evaluated · `undefined`: groups
    of an aggregate without a result · `join_stats`: of a component's joins · `kept`: what follows later changes.
    """

    strategy: str
    why: Reason
    relations: Mapping[str, StoredRelation]
    changes: Mapping[str, Change]
    evaluations: Mapping[Clause, Evaluation] = field(default_factory=dict)
    steps: int = 0
    removed: int = 0
    added: int = 0
    work: Sequence[RuleWork] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    undefined: tuple[UndefinedRows, ...] = ()
    join_stats: JoinStatsByJoin | None = None
    kept: Kept | None = None

    def adopt(self) -> None:
        """What was staged holds from now on."""

    def discard(self) -> None:
        """What was staged is dropped."""


class Kept(Protocol):
    """What a strategy keeps of heads to follow changes by, made for the rules `clauses`.

    It belongs to contents, which it knows by identity.
    """

    @property
    def strategy(self) -> str:
        """The name of the strategy that keeps it."""

    clauses: tuple[Clause, ...]

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether it holds for the state before the step."""

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """What following the changes of the step costs."""

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Follow the changes of the step. Raises `Declined` if that turns out to be too dear."""

    def memory(self) -> dict[str, int]:
        """Bytes that it takes, by what they are for."""


class KeptContents:
    """What is kept of heads where their contents, and what they read, are all that changes are followed from."""

    def memory(self) -> dict[str, int]:
        """Nothing beside the contents."""
        return {}


class Strategy(Protocol):
    """One way of keeping heads up to date. `name`: as `tx.stats`, `explain` and the option `maintain` call it."""

    name: str

    def fits(self, step: Step, heads: Heads) -> str:
        """Why it cannot keep `heads`; empty if it can."""

    def kept(self, step: Step, heads: Heads) -> Kept | None:
        """What is kept of `heads` and holds for the state before the step, made at no cost if it can be."""

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Evaluate `heads` over the state after the step, and keep what later steps need."""

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """Why there is nothing to follow the changes of the step by."""

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """How `head`, one of `heads`, follows changes, as data; `evaluations`: of its clauses. `step` is at rest."""

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """What `explain` found, as text."""
