"""Errors of partitions as bodies, and the other way round: what one raises the driver raises, of the same kind."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import lftj
from lftj import errors as lftj_errors
from lftj.errors import CycleError
from spark_bridge import bridge_errors
from spark_bridge.bridge_errors import PlanError
from spark_bridge.store import Body


def told(error: lftj.Error) -> Body:
    """An error as a body. A cycle is told by its keys: a partition has heads of its own between them."""
    what, more = error.what, dict[str, Any]()
    if isinstance(error, CycleError):
        keys = [key if isinstance(key, int | str) else str(key) for key, _ in groupby(error.cycle)]
        what, more = f"{what.partition(':')[0]}: {' -> '.join(map(str, keys))}", {"cycle": keys}
    return {
        **more,
        "kind": type(error).__name__,
        "what": what,
        "where": error.where,
        "why": error.why,
        "remedy": error.remedy,
        "details": list(error.details),
    }


def raised(told: Body, partition: int | None = None) -> lftj.Error:
    """The error that a partition told of."""
    kind: type[lftj.Error] = getattr(bridge_errors, told["kind"], getattr(lftj_errors, told["kind"], lftj.Error))
    where = told["where"] + (f" (partition {partition})" if partition is not None else "")
    if issubclass(kind, (lftj_errors.KeyConflictError, lftj_errors.ProgramError, PlanError)):
        kind = lftj_errors.EvaluationError if kind is lftj_errors.KeyConflictError else lftj.Error
    more = {"cycle": tuple(told["cycle"])} if kind is lftj_errors.CycleError else {}
    made = kind(told["what"], where=where.strip(), why=told["why"], remedy=told["remedy"], **more)
    made.details = tuple(told["details"])
    return made
