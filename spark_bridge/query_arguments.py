"""What calls that make, open or place a query are given, checked before anything begins.

A value of another kind would fail somewhere inside, or worse, be taken: a folder without a name is the present one,
and a text is a sequence of one letter each.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

from lftj import arguments
from spark_bridge.bridge_errors import PlanError

PARTITIONS = "it is how many parts the relations are split into"


def how_many(name: str, value: object, why: str) -> int:
    """A number of partitions or processes; `why` says what it is. `PlanError` for one below 1."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise arguments.refused(name, value, why, f"give a number of 1 or more, as in `{name}=4`")
    if value.__index__() < 1:
        raise PlanError(f"{name}={value}", why=why, remedy="give 1 or more")
    return value.__index__()


def names(name: str, value: object, why: str) -> list[str]:
    """Names of relations; `why` says of which."""
    if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(one, str) for one in value):
        raise arguments.refused(name, value, why, f'give a list of names, as in `{name}=["tri"]`')
    return list(value)


def folder(value: object) -> Path:
    """The folder of a checkpoint."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str) or not os.fspath(value):
        raise arguments.refused(
            "checkpoint",
            value,
            "it is the folder that keeps the query, a str or a Path",
            'give its path, as in `"state/tri"`',
        )
    return Path(os.fspath(value))


def sources(inputs: object) -> Mapping[str, Any]:
    """The rows that a query is made of."""
    what = "it is the rows of relations, by their names"
    return arguments.mapping("inputs", inputs, what, 'give a dict, as in `{"edge": edges}`')


def memory_of(value: object) -> int | None:
    """The bytes that a partition may take; None for any number."""
    return arguments.size(value, "partition_memory")


def planning(
    program: object, partitions: object, outputs: Sequence[str] | None, replicate: Sequence[str]
) -> dict[str, Any]:
    """How a program is to be planned."""
    arguments.text("program", program, "it is the rules as text", 'give a str, as in `"p(x) :- edge(x, _)."`')
    return {
        "outputs": None if outputs is None else names("outputs", outputs, "it is the relations that are asked for"),
        "replicate": names("replicate", replicate, "it is relations that every partition may derive in full"),
        "partitions": how_many("partitions", partitions, PARTITIONS),
    }
