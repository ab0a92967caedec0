"""The errors of partitioned evaluation, members of lftj's one family: what, where, why, what to do."""

from __future__ import annotations

from lftj.errors import DataError, Error, Span


class PlanError(Error, ValueError):
    """A program cannot be evaluated partition by partition, or does not fit. Nothing was started.

    `relation`: the one that cannot be derived so, "" if it is not about one.
    """

    def __init__(self, what: str, *, why: str, remedy: str, span: Span | None = None, relation: str = "") -> None:
        super().__init__(what, where=str(span) if span is not None and span.line else "", why=why, remedy=remedy)
        self.span, self.relation = span, relation


class StateError(Error, RuntimeError):
    """A checkpoint is damaged beyond what can be rebuilt, is not there, or is there already."""


class BatchError(DataError):
    """A batch was refused: its id was used for other content, or a row of it does not fit. Nothing was changed."""


class RaceError(Error, RuntimeError):
    """Another driver committed first, again and again. Nothing of this batch was committed."""


class WorkError(Error, RuntimeError):
    """The process of a partition ran into an error of the machine (a full disk). Nothing was committed."""


class SetupError(Error, RuntimeError):
    """Spark, Java or a setting of the session is missing or unsuitable."""
