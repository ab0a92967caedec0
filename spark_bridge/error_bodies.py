"""Errors of partitions as bodies, and the other way round: what one raises the driver raises, of the same kind."""

from __future__ import annotations

import traceback
from itertools import groupby
from typing import Any

import lftj
from lftj import errors as lftj_errors
from lftj.errors import CycleError
from spark_bridge import bridge_errors
from spark_bridge.bridge_errors import PlanError, WorkError
from spark_bridge.emit import users_text
from spark_bridge.plan import PartitionPlan
from spark_bridge.store import Body

# What a transaction proposes, and what a batch does instead, which erases first.
_UPSERT = ("`tx.upsert` replaces the value that is there", "erase the value that is there in the same batch")


def told(error: lftj.Error, plan: PartitionPlan | None = None) -> Body:
    """An error as a body, in the user's rules and names where `plan` says what a partition made of them.

    A cycle is told by its keys: a partition has heads of its own between them.
    """
    what, more = error.what, dict[str, Any]()
    if isinstance(error, CycleError):
        keys = [key if isinstance(key, int | str) else str(key) for key, _ in groupby(error.cycle)]
        what, more = f"{what.partition(':')[0]}: {' -> '.join(map(str, keys))}", {"cycle": keys}
    texts = [what, error.where, error.why, error.remedy.replace(*_UPSERT), *error.details]
    if plan is not None:
        texts = [users_text(text, plan) for text in texts]
    what, where, why, remedy, *details = texts
    kind = type(error).__name__
    return {**more, "kind": kind, "what": what, "where": where, "why": why, "remedy": remedy, "details": details}


def failed(error: Exception) -> Body:
    """What is no error of lftj's, as a body: a disk that is full, or a mistake in lftj."""
    at = traceback.extract_tb(error.__traceback__)[-1:]
    places = [f"raised at {frame.filename}:{frame.lineno}, in {frame.name}" for frame in at]
    shown = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    made = WorkError(
        f"a partition could not do its work: {shown}",
        why="its process ran into this, which no rule and no row is known to cause; nothing was changed",
        remedy="see to what it names (room on the disk, rights on the checkpoint's folder), then send it again",
    )
    made.details = tuple(places)
    return told(made)


def raised(told: Body, partition: int | None = None) -> lftj.Error:
    """The error that a partition told of."""
    kind: type[lftj.Error] = getattr(bridge_errors, told["kind"], getattr(lftj_errors, told["kind"], lftj.Error))
    where = told["where"] + (f" (partition {partition})" if partition is not None else "")
    if issubclass(kind, (lftj_errors.KeyConflictError, lftj_errors.ProgramError, PlanError)):
        kind = lftj_errors.EvaluationError if kind is lftj_errors.KeyConflictError else lftj.Error
    more = {"cycle": tuple(told["cycle"])} if kind is lftj_errors.CycleError else {}
    made = kind(told["what"], where=where.strip(), why=told["why"], remedy=told["remedy"], **more)
    made.details = tuple(told["details"])
    made.placed(made.where)  # with the details
    return made
