"""What a partition holds at a version, read from files; what cannot be read is made again.

A *change* of relations is a pair of tables for each: rows erased, then rows inserted (a row in both is there
afterwards). A base is the change from nothing, so the facts of a partition at a version are its changes since the base,
base included, one after the other; so are its outputs.

Where a file is damaged its change is made again: that of a batch by routing the journal's, that of a base from the
version before it, that of an output by evaluating.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import lftj
from lftj.values.codes import Schema
from spark_bridge.bridge_errors import StateError
from spark_bridge.emit import copy_names, program_text
from spark_bridge.files import DamagedError
from spark_bridge.keys import OP, UNIT, Keyed, arrow_schema, as_table
from spark_bridge.placement import Placement
from spark_bridge.plan import ALL, Copy, PartitionPlan, make_plan
from spark_bridge.store import Body, Checkpoint


class ChangeTables(NamedTuple):
    """Rows erased, then rows inserted."""

    erased: pa.Table
    inserted: pa.Table

    @property
    def rows(self) -> int:
        """How many rows it speaks of."""
        return int(self.erased.num_rows + self.inserted.num_rows)

    def signed(self) -> pa.Table:
        """All rows, with a column `_op` that says whether they are erased (-1) or inserted (1)."""
        parts = ((-1, self.erased), (1, self.inserted))
        return pa.concat_tables(t.append_column(OP, pa.array(np.full(t.num_rows, op, np.int32))) for op, t in parts)


Changes = dict[str, ChangeTables]


class StateLayout:
    """How a base is partitioned: the plan, the placement, and the program of a partition."""

    def __init__(
        self, plan: PartitionPlan, placement: Placement, maintain: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.plan, self.placement = plan, placement
        self.names: dict[Copy, str] = copy_names(plan.copies)
        self.text = program_text(plan)
        self.schemas = plan.schemas
        self.maintain = {self.names[c]: maintain[c[0]] for c in plan.copies if c[0] in maintain}

    @staticmethod
    def of(query: Body, base: Body) -> StateLayout:
        """The layout that a base commit describes."""
        chosen = base["layout"]
        plan = make_plan(
            query["program"],
            outputs=query["outputs"],
            replicate=query["replicate"],
            second=chosen["second"],
            rows=chosen["rows"],
            partitions=chosen["placement"]["partitions"],
        )
        return StateLayout(plan, Placement.from_json(chosen["placement"]), query["maintain"])

    @cached_property
    def copies(self) -> dict[str, list[Copy]]:
        """The copies of each relation that holds facts."""
        found: dict[str, list[Copy]] = {}
        for copy in self.plan.copies:
            if copy[0] in self.schemas:
                found.setdefault(copy[0], []).append(copy)
        return found

    def replicated(self, name: str) -> bool:
        """Whether every partition holds all of a relation."""
        return (name, ALL) in self.names

    def held(self, partition: int, name: str, table: pa.Table) -> pa.Table:
        """The rows of a relation that a partition holds in any of its copies."""
        if self.replicated(name):
            return table
        rows = Keyed(table, self.schemas[name])
        mask = np.zeros(len(rows), np.bool_)
        for _, pattern in self.copies[name]:
            mask |= self.placement.hits(partition, pattern, rows)
        return table if mask.all() else table.filter(pa.array(mask))

    def routed(self, partition: int, changes: Mapping[str, ChangeTables]) -> Changes:
        """The part of changes that concerns a partition."""
        return {
            name: ChangeTables(self.held(partition, name, change.erased), self.held(partition, name, change.inserted))
            for name, change in changes.items()
        }


def rows_for(table: pa.Table, schema: Schema) -> Any:
    """A table in the form that lftj reads quickest."""
    if not schema.arity:
        return [()] * table.num_rows
    if set(schema.types) == {"number"}:
        return np.stack([column.to_numpy() for column in table.columns], axis=1)
    return table


def table_of(relation: lftj.Relation, schema: Schema) -> pa.Table:
    """The rows of a relation as a table of `schema`."""
    if not schema.arity:
        return pa.table({UNIT: [True] * len(relation)}, arrow_schema(schema))
    return as_table(relation.arrow(), schema)


def empty(schema: Schema) -> pa.Table:
    """No rows."""
    return arrow_schema(schema).empty_table()


def declaration(schema: Schema, name: str) -> str:
    """A relation with the columns of `schema`, as text."""
    return f".decl {name}({', '.join(f'c{i}:{type}' for i, type in enumerate(schema.types))})"


def merged(schema: Schema, changes: Sequence[ChangeTables]) -> pa.Table:
    """What is left of changes, the first from nothing, one after the other."""
    if len(changes) == 1:
        return changes[0].inserted
    with lftj.Database(declaration(schema, "r")) as db:
        with db.transaction() as tx:
            for change in changes:
                for verb, table in ((tx.erase, change.erased), (tx.insert, change.inserted)):
                    if table.num_rows:
                        verb(
                            "r",
                            rows_for(table.rename_columns([f"c{i}" for i in range(schema.arity)]), schema)
                            if schema.arity
                            else [()],
                        )
        return table_of(db["r"], schema)


def net(schema: Schema, changes: Sequence[ChangeTables]) -> ChangeTables:
    """One change for exact ones in a row: a row that came and went again is in neither table."""
    if len(changes) == 1:
        return changes[0]
    ops = {op: pa.concat_tables([c[i] for c in changes]) for i, op in ((0, -1), (1, 1))}
    both = pa.concat_tables(
        [table.append_column("_op", pa.array(np.full(table.num_rows, op, np.int64))) for op, table in ops.items()]
    )
    names = list(arrow_schema(schema).names)
    summed = both.group_by(names).aggregate([("_op", "sum")])
    weights = summed.column("_op_sum").to_numpy()
    rows = summed.select(names)
    return ChangeTables(rows.filter(pa.array(weights < 0)), rows.filter(pa.array(weights > 0)))


def tables_of(changes: Mapping[str, ChangeTables]) -> dict[str, pa.Table]:
    """Changes as the tables of a part file."""
    found = {}
    for name, change in changes.items():
        for sign, table in (("-", change.erased), ("+", change.inserted)):
            if table.num_rows:
                found[name + sign] = table
    return found


def changes_in(tables: Mapping[str, pa.Table], schemas: Mapping[str, Schema]) -> Changes:
    """The changes that `tables_of` wrote."""
    found: Changes = {}
    for key in tables:
        name = key[:-1]
        none = empty(schemas[name])
        found[name] = ChangeTables(tables.get(name + "-", none), tables.get(name + "+", none))
    return found


def together(parts: Iterable[Changes], schemas: Mapping[str, Schema]) -> Changes:
    """Changes of several parts as one."""
    found: dict[str, list[ChangeTables]] = {}
    for part in parts:
        for name, change in part.items():
            found.setdefault(name, []).append(change)
    return {
        name: ChangeTables(
            pa.concat_tables([c.erased for c in changes]), pa.concat_tables([c.inserted for c in changes])
        )
        for name, changes in found.items()
    }


class PartitionState:
    """The contents of a checkpoint. `damaged` collects the files that could not be used."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.damaged: list[str] = []
        self._layouts: dict[str, StateLayout] = {}

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

    # -- facts --------------------------------------------------------------------------------------------------------

    def change(self, partition: int, version: int) -> Changes:
        """The change of a partition's facts that a commit made; of a base, all of them."""
        commit, layout = self.checkpoint.commit(version), self.layout(version)
        found: list[Changes] = []
        source: Changes | None = None
        for part, kind in ((commit["parts"][partition], "facts"), (commit["parts"][0], "replica")):
            try:
                found.append(changes_in(self._read(part.get(kind)), layout.schemas))
            except DamagedError:
                if source is None:
                    source = self._again(version)
                whole = kind == "replica"
                lost = {n: c for n, c in source.items() if n in layout.copies and layout.replicated(n) == whole}
                found.append(layout.routed(partition, lost))
        return together(found, layout.schemas)

    def _again(self, version: int) -> Changes:
        """The change that a commit made, of all partitions together, from what it was made from."""
        commit = self.checkpoint.commit(version)
        if commit["kind"] in ("create", "apply"):
            return self.journal(version)
        if version - 1 not in self.checkpoint.kept():
            raise StateError(
                f"a file of version {version} is damaged, and what it was made from was removed by a later compaction",
                why="without either of them the rows of that version are not known",
                remedy="restore the file from a copy, or ask for a later version",
            )
        return {name: ChangeTables(table.slice(0, 0), table) for name, table in self.everything(version - 1).items()}

    def facts(self, partition: int, version: int) -> dict[str, pa.Table]:
        """The facts of a partition at a version."""
        steps: dict[str, list[ChangeTables]] = {}
        for v in (self.checkpoint.base(version), *self.checkpoint.since_base(version)):
            for name, change in self.change(partition, v).items():
                steps.setdefault(name, []).append(change)
        schemas = self.layout(version).schemas
        return {name: merged(schemas[name], self._from_nothing(changes)) for name, changes in steps.items()}

    @staticmethod
    def _from_nothing(changes: list[ChangeTables]) -> list[ChangeTables]:
        first = changes[0]
        return (
            changes
            if not first.erased.num_rows
            else [ChangeTables(first.erased.slice(0, 0), first.inserted), *changes[1:]]
        )

    def everything(self, version: int) -> dict[str, pa.Table]:
        """The facts of all partitions. A row may come several times."""
        layout, found = self.layout(version), dict[str, list[pa.Table]]()
        for partition in range(layout.placement.partitions):
            for name, table in self.facts(partition, version).items():
                if partition == 0 or not layout.replicated(name):
                    found.setdefault(name, []).append(table)
        return {name: pa.concat_tables(tables) for name, tables in found.items()}

    # -- outputs ------------------------------------------------------------------------------------------------------

    def output_change(self, partition: int, version: int, name: str) -> ChangeTables:
        """The exact change of what a partition answers for a relation; of a base, all of it. `DamagedError`."""
        schema = self.layout(version).schemas[name]
        return self.written_change(self.checkpoint.commit(version)["parts"][partition].get("output"), schema)

    def written_change(self, file: Body | None, schema: Schema) -> ChangeTables:
        """What a file of outputs, of a commit or not yet, says of a relation. `DamagedError`."""
        tables, none = self._read(file), empty(schema)
        return ChangeTables(tables.get(schema.name + "-", none), tables.get(schema.name + "+", none))

    def output(self, partition: int, version: int, name: str) -> pa.Table:
        """What a partition answers for a relation at a version."""
        versions = (self.checkpoint.base(version), *self.checkpoint.since_base(version))
        try:
            steps = [self.output_change(partition, v, name) for v in versions]
        except DamagedError:
            from spark_bridge.partition import answers, database

            layout = self.layout(version)
            with database(layout, partition, self.facts(partition, version)) as db:
                return answers(db, layout, partition, [name])[name]
        schema = self.layout(version).schemas[name]
        return merged(schema, [steps[0], *(step for step in steps[1:] if step.rows)])

    def output_delta(self, partition: int, since: int, until: int, name: str) -> ChangeTables:
        """The exact change of what a partition answers from one version to a later one, under one placement."""
        kept = [v for v in range(since + 1, until + 1) if self.checkpoint.commit(v)["kind"] == "apply"]
        schema = self.layout(until).schemas[name]
        try:
            steps = [self.output_change(partition, v, name) for v in kept]
        except DamagedError:
            before, after = (self.output(partition, v, name) for v in (since, until))
            return net(schema, [ChangeTables(before, before.slice(0, 0)), ChangeTables(after.slice(0, 0), after)])
        steps = [step for step in steps if step.rows]
        return net(schema, steps) if steps else ChangeTables(empty(schema), empty(schema))
