"""What a checkpoint answers: contents and changes of relations, at the versions that are kept."""

from __future__ import annotations

from typing import SupportsIndex

import pyarrow as pa

from lftj import arguments
from lftj.errors import UnknownRelationError
from lftj.values.schema import Schema
from spark_bridge.bridge_errors import BatchError, StateError
from spark_bridge.change_tables import ChangeTables, net
from spark_bridge.keys import arrow_schema
from spark_bridge.partition_state import PartitionState
from spark_bridge.parts_followed import PartsFollowed, joined
from spark_bridge.plan import PART, StagedPlan
from spark_bridge.store import Checkpoint


class Answering:
    """A checkpoint as its readers see it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.state = PartitionState(checkpoint)
        self.parts = PartsFollowed(checkpoint, self.state)

    @property
    def version(self) -> int:
        """The last version."""
        return self.checkpoint.head()

    def answered(self, name: str, version: int | None = None) -> tuple[int, Schema]:
        """The version to be read (default: the last) and the schema of a relation; errors for what is not there."""
        version = self.version if version is None else _number("version", version)
        if version not in self.checkpoint.kept():
            kept = self.checkpoint.kept()
            raise StateError(
                f"there is no version {version} any more" if version < kept.start else f"there is no version {version}",
                why=f"versions {kept.start} to {kept.stop - 1} are kept",
                remedy="ask for one of these",
            )
        plan = self.state.layout(version).plan
        known_relation(plan, name)
        if name not in plan.outputs:
            raise UnknownRelationError(
                f"`{name}` is derived, and not kept",
                why="it is none of the outputs that were asked for",
                remedy=f"create the query with `{name}` among its outputs",
            )
        return version, plan.schemas[name]

    def table(self, name: str, version: int | None = None) -> pa.Table:
        """The content of a relation, read here."""
        version, schema = self.answered(name, version)
        if self.in_parts(name, version):
            return self.parts.at(name, schema, version).rows()
        parts = [self.state.output(p, version, name) for p in range(self.state.partitions(version))]
        return pa.concat_tables(parts) if parts else arrow_schema(schema).empty_table()

    def in_parts(self, name: str, version: int) -> bool:
        """Whether what partitions answer for a relation has to be added up."""
        return self.state.layout(version).plan.outputs[name].kind == PART

    def part_op(self, name: str, version: int) -> str:
        """By what: "sum", "min" or "max"."""
        return self.state.layout(version).plan.part_op(name)

    def span(self, name: str, since: int, until: int | None) -> tuple[int, int, Schema]:
        """What `delta` is to read."""
        since, until = _number("since", since), None if until is None else _number("until", until)
        last, schema = self.answered(name, until)
        self.answered(name, since)
        if since > last:
            raise StateError(
                f"version {since} comes after version {last}",
                why="a delta leads from an earlier version to a later one",
                remedy="give the earlier one first",
            )
        moved = [v for v in range(since + 1, last + 1) if self.checkpoint.commit(v)["kind"] == "rescale"]
        if moved:
            raise StateError(
                f"version {moved[0]} placed keys anew, and the delta from {since} to {last} would reach across it",
                why="placing keys anew begins a new history of each partition",
                remedy=f"ask for the deltas from {since} to {moved[0] - 1} and from {moved[0]} to {last}",
            )
        return since, last, schema

    def delta(self, name: str, since: int, until: int | None = None) -> ChangeTables:
        """The exact change of a relation between two versions, read here."""
        since, last, schema = self.span(name, since, until)
        if self.in_parts(name, last):
            return self.parts.change(name, schema, since, last)
        parts = [self.state.output_delta(p, since, last, name) for p in range(self.state.partitions(last))]
        none = arrow_schema(schema).empty_table()
        return net(
            schema,
            [joined(parts) if parts else ChangeTables(none, none)],
        )


def _number(argument: str, version: object) -> int:
    """The number of a version, which an argument gives."""
    if isinstance(version, bool) or not isinstance(version, SupportsIndex):
        raise arguments.refused(
            argument,
            version,
            "it is the number of a version: creating the query makes version 0, and each batch the next",
            f"give such a number, as in `{argument}=0`; `version` of the query is the last one",
        )
    return version.__index__()


def known_relation(plan: StagedPlan, name: str) -> None:
    """An error for a relation that the program does not name, or that has no effect on any output."""
    if name not in plan.schemas:
        raise UnknownRelationError(
            f"there is no relation `{name}`",
            why="no rule or declaration of the program names it",
            remedy=f"the program has {', '.join(sorted(plan.schemas))}",
        )
    if not plan.holds(name):
        raise UnknownRelationError(
            f"`{name}` has no effect on any output",
            why="it is derived, and nothing that was asked for reads it",
            remedy=f"create the query with `{name}` among its outputs",
        )


def takes_facts(plan: StagedPlan, name: str) -> None:
    """A `BatchError` for a head that partitions keep in parts: a fact is a whole value."""
    if any(pattern.kind == PART for stage in plan.stages for pattern in stage.patterns(name)):
        raise BatchError(
            f"`{name}` is kept in parts, and takes no facts",
            why="each partition has its part of a group's value, and a fact is the whole of it; nothing was changed",
            remedy=f"give the facts to a relation of their own, and derive `{name}` from it by a rule more; or create "
            f"the query with a fact of `{name}`, and its groups are kept whole",
        )
