"""Why a relation cannot be derived partition by partition: reasons by clause, and the error that tells of them."""

from __future__ import annotations

from collections.abc import Sequence

from lftj.language import Clause
from lftj.language.clause import owner
from spark_bridge.bridge_errors import PlanError

ON_ONE_MACHINE = "evaluate it with lftj.Database, on one machine"


def replicating(name: str) -> str:
    """What is proposed for a head that partitions cannot derive."""
    return f'replicate=["{name}"] lets every partition derive all of it, where it and what it reads are small'


class Refusal(Exception):
    """Why a clause cannot be derived by a column. `cause`: why what it reads cannot."""

    def __init__(self, clause: Clause, why: str, remedy: str = "", cause: Refusal | None = None) -> None:
        super().__init__(why)
        self.clause, self.why, self.remedy, self.cause = clause, why, remedy, cause and cause.kept()

    def kept(self) -> Refusal:
        """The same, to be kept: without the frames it went through, which hold the rows of whoever asked for a plan."""
        return self.with_traceback(None)


def plan_error(first: Clause, refusals: Sequence[Refusal], parts: Refusal | None, *, pairs: bool) -> PlanError:
    """The error about the head of `first`: refused by each of its columns, and in parts.

    `pairs`: columns were tried by two.
    """
    if not refusals:
        why = "its head holds no second variable" if pairs and first.head_args else "its head has no variable"
        refusals = [Refusal(first, f"{why} to partition by")]
    deepest = refusals[0]
    reasons = [deepest.why]
    while deepest.cause is not None:
        deepest = deepest.cause
        reasons.append(deepest.why)
    clause, name, remedy = refusals[0].clause, owner(first.head), ""
    if parts is not None:
        reasons.append(f"nor can its parts be kept: {parts.why}")
        remedy = f"{parts.remedy}; or else " if parts.remedy else ""
    return PlanError(
        f"`{name}` cannot be derived partition by partition: {clause.text or clause}",
        span=deepest.clause.span,
        why="; ".join(dict.fromkeys(reasons)),
        remedy=f"{remedy}{replicating(name)}",
        relation=name,
    )
