"""What a partition holds at a version, read from files; what cannot be read is made again.

A base is the change from nothing, so the facts of a partition at a version are its changes since the base, base
included, one after the other; so are its outputs. The facts of a later stage are what earlier ones sent it, too: the
outputs of all their partitions.

Where a file is damaged its change is made again: that of a batch by routing the journal's and what was sent, that of a
base from the version before it, that of an output by evaluating.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.values.schema import Schema
from spark_bridge.bridge_errors import StateError
from spark_bridge.change_tables import Changes, ChangeTables, changes_in, empty, merged, net, together
from spark_bridge.files import DamagedError
from spark_bridge.keys import arrow_schema
from spark_bridge.partition_database import answers, database
from spark_bridge.plan import Exchange
from spark_bridge.state_layout import StageLayout, StateLayout
from spark_bridge.store import Body, Checkpoint

EVALUATED = 64  # so many outputs at most, of a partition each, are kept that were evaluated again


class PartitionState:
    """The contents of a checkpoint. `damaged` collects the files that could not be used."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.damaged: list[str] = []
        self._layouts: dict[str, StateLayout] = {}
        self._outputs: dict[tuple[str, int, int], dict[str, pa.Table]] = {}

    def layout(self, version: int) -> StateLayout:
        """The layout of the base of a version."""
        base = self.checkpoint.commit(self.checkpoint.base(version))
        if base["token"] not in self._layouts:
            self._layouts[base["token"]] = StateLayout.of(self.checkpoint.query, base)
        return self._layouts[base["token"]]

    def partitions(self, version: int) -> int:
        """The number of partitions at a version."""
        return self.layout(version).placement.partitions

    def _read(self, file: Body | None) -> dict[str, pa.Table]:
        if file is None:
            return {}
        try:
            return self.checkpoint.read(file)
        except DamagedError as damage:
            told = f"{file['folder']}/{file['name']}"
            if told not in self.damaged:
                self.damaged.append(told)
            raise damage

    def read_segments(self, segments: Iterable[Body], schemas: Mapping[str, Schema]) -> Changes:
        """The changes in files of the journal; `StateError` if one is damaged."""
        try:
            return together((changes_in(self._read(segment), schemas) for segment in segments), schemas)
        except DamagedError as damage:
            raise StateError(
                f"{damage.path} is damaged, and was needed to make another file again",
                why=damage.why,
                remedy="restore one of the two files from a copy, or create the query again from its sources",
            ) from None

    def journal(self, version: int) -> Changes:
        """The changes that a version was sent."""
        return self.read_segments(self.checkpoint.commit(version)["journal"], self.layout(version).schemas)

    def part(self, version: int, stage: int, partition: int) -> Body:
        """What a commit says of a partition in a stage."""
        found: Body = self.checkpoint.commit(version)["parts"][stage * self.partitions(version) + partition]
        return found

    # -- facts --------------------------------------------------------------------------------------------------------

    def change(self, stage: int, partition: int, version: int) -> Changes:
        """The change of a partition's facts that a commit made; of a base, all of them."""
        layout = self.layout(version).stages[stage]
        found: list[Changes] = []
        source: Changes | None = None
        for part, kind in ((partition, "facts"), (0, "replica")):
            try:
                found.append(changes_in(self._read(self.part(version, stage, part).get(kind)), layout.schemas))
            except DamagedError:
                if source is None:
                    source = self._again(version, layout)
                whole = kind == "replica"
                lost = {n: c for n, c in source.items() if layout.replicated(n) == whole}
                found.append(layout.routed(partition, lost))
        return together(found, layout.schemas)

    def _again(self, version: int, layout: StageLayout) -> Changes:
        """The change of a stage's facts that a commit made, of all partitions together, from what it was made from."""
        sent = {take.target: self.sent(version, take) for take in layout.plan.takes}
        return layout.given(self._changed(version)) | sent

    def _changed(self, version: int) -> Changes:
        """What came from outside with a version; of a base, everything that ever did."""
        commit = self.checkpoint.commit(version)
        if commit["kind"] in ("create", "apply"):
            return self.journal(version)
        if version - 1 not in self.checkpoint.kept():
            raise StateError(
                f"a file of version {version} is damaged, and what it was made from was removed by a later compaction",
                why="without either of them the rows of that version are not known",
                remedy="restore the file from a copy, or ask for a later version",
            )
        return {name: ChangeTables.of(table) for name, table in self.everything(version - 1).items()}

    def facts(
        self, stage: int, partition: int, version: int, names: Collection[str] | None = None
    ) -> dict[str, pa.Table]:
        """The facts of a partition at a version, of these relations or all."""
        steps: dict[str, list[ChangeTables]] = {}
        for v in (self.checkpoint.base(version), *self.checkpoint.since_base(version)):
            for name, change in self.change(stage, partition, v).items():
                if names is None or name in names:
                    steps.setdefault(name, []).append(change)
        schemas = self.layout(version).stages[stage].schemas
        return {name: merged(schemas[name], changes) for name, changes in steps.items()}

    def everything(self, version: int, names: Collection[str] | None = None) -> dict[str, pa.Table]:
        """The facts of all partitions that came from outside, of these relations or all. A row may be there twice."""
        layout, found = self.layout(version), dict[str, list[pa.Table]]()
        for stage in layout.stages:
            new = {name for name in stage.copies if name not in stage.sent and name not in found}
            if names is not None:
                new &= {*names}
            for partition in range(layout.placement.partitions if new else 0):
                if partition == 1:
                    new = {name for name in new if not stage.replicated(name)}
                for name, table in self.facts(stage.number, partition, version, new).items():
                    found.setdefault(name, []).append(table)
        return {name: pa.concat_tables(tables) for name, tables in found.items()}

    # -- what is sent -------------------------------------------------------------------------------------------------

    def sent(self, version: int, take: Exchange) -> ChangeTables:
        """What a commit changed in a relation that a stage is sent; of a base, all of it."""
        steps = [self._step(p, version, take.source) for p in range(self.partitions(version))]
        stage = next(stage for stage in self.layout(version).stages if take in stage.plan.takes)
        return received(take, steps, stage.schemas[take.target])

    def _step(self, partition: int, version: int, name: str) -> ChangeTables:
        if self.checkpoint.base(version) == version:
            return ChangeTables.of(self.output(partition, version, name))
        return self.output_delta(partition, version - 1, version, name)

    def arriving(self, layout: StateLayout, stage: int, files: Sequence[Body | None]) -> Changes:
        """What a stage is sent, from the output files that the partitions of all stages before it have just written."""
        partitions = layout.placement.partitions
        found: Changes = {}
        for take in layout.stages[stage].plan.takes:
            schema = layout.schema(take.source)
            written = files[take.stage * partitions : (take.stage + 1) * partitions]
            try:
                steps = [self.written_change(file, schema) for file in written]
            except DamagedError as damage:
                raise StateError(
                    f"{damage.path} was damaged as soon as it was written",
                    why=damage.why,
                    remedy="send the batch again; if it is refused again, look after the disk",
                ) from None
            found[take.target] = received(take, steps, layout.stages[stage].schemas[take.target])
        return found

    # -- outputs ------------------------------------------------------------------------------------------------------

    def output_change(self, partition: int, version: int, name: str) -> ChangeTables:
        """The exact change of what a partition answers for a relation; of a base, all of it. `DamagedError`."""
        layout = self.layout(version)
        file = self.part(version, layout.plan.stage_of(name), partition).get("output")
        return self.written_change(file, layout.schema(name))

    def written_change(self, file: Body | None, schema: Schema) -> ChangeTables:
        """What a file of outputs, of a commit or not yet, says of a relation. `DamagedError`."""
        return _change_in(self._read(file), schema)

    def output(self, partition: int, version: int, name: str) -> pa.Table:
        """What a partition answers for a relation at a version."""
        return self.outputs(partition, version, self.layout(version).stage_of(name), (name,))[name]

    def outputs(
        self, partition: int, version: int, layout: StageLayout, names: Iterable[str] | None = None
    ) -> dict[str, pa.Table]:
        """What a partition answers in a stage at a version, for these relations or all. Each file is read once."""
        names = layout.plan.outputs if names is None else names
        versions = (self.checkpoint.base(version), *self.checkpoint.since_base(version))
        try:
            files = [self._read(self.part(v, layout.number, partition).get("output")) for v in versions]
        except DamagedError:
            evaluated = self._evaluated(partition, version, layout)
            return {name: evaluated[name] for name in names}
        schemas = layout.schemas
        return {name: merged(schemas[name], [_change_in(file, schemas[name]) for file in files]) for name in names}

    def _evaluated(self, partition: int, version: int, layout: StageLayout) -> dict[str, pa.Table]:
        """What a partition of a stage answers, evaluated again: once for all that ask, as later stages do it often."""
        key = (str(self.checkpoint.commit(version)["token"]), layout.number, partition)
        if key not in self._outputs:
            with database(layout, partition, self.facts(layout.number, partition, version)) as db:
                found = answers(db, layout, partition)
            if len(self._outputs) >= EVALUATED:
                self._outputs.clear()
            self._outputs[key] = found
        return self._outputs[key]

    def output_delta(self, partition: int, since: int, until: int, name: str) -> ChangeTables:
        """The exact change of what a partition answers from one version to a later one, under one placement."""
        kept = [v for v in range(since + 1, until + 1) if self.checkpoint.commit(v)["kind"] == "apply"]
        schema = self.layout(until).schema(name)
        try:
            steps = [self.output_change(partition, v, name) for v in kept]
        except DamagedError:
            before, after = (self.output(partition, v, name) for v in (since, until))
            return net(schema, [ChangeTables(before, before.slice(0, 0)), ChangeTables.of(after)])
        steps = [step for step in steps if step.rows]
        return net(schema, steps) if steps else ChangeTables(empty(schema), empty(schema))


def _change_in(tables: Mapping[str, pa.Table], schema: Schema) -> ChangeTables:
    """What the tables of a file of outputs say of a relation."""
    none = empty(schema)
    return ChangeTables(tables.get(schema.name + "-", none), tables.get(schema.name + "+", none))


def received(take: Exchange, steps: Sequence[ChangeTables], schema: Schema) -> ChangeTables:
    """What all partitions of a stage wrote of a relation, as another one holds it."""
    if not take.numbered:
        return ChangeTables(*(pa.concat_tables(tables) for tables in zip(*steps, strict=True)))
    typed = arrow_schema(schema)

    def numbered(partition: int, table: pa.Table) -> pa.Table:
        number = pa.array(np.full(len(table), partition, np.int64))
        return pa.Table.from_arrays([number, *table.columns], schema=typed)

    return ChangeTables(
        *(
            pa.concat_tables([numbered(partition, table) for partition, table in enumerate(tables)])
            for tables in zip(*steps, strict=True)
        )
    )
