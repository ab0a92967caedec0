"""Heads that partitions keep in parts: their content, their changes, and whether a sum leaves its type.

    at, change    what is answered, followed at the driver from version to version
    fitting       before a batch is committed: sums that no partition finds too large may be so together

Reading all parts for each batch would cost as much as the groups are many. So each commit has, of every partition and
head, a bound of the magnitude of its parts (`largest`): while the bounds of all partitions together are in the range of
the type, no sum leaves it. Only beyond that the sums are added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.schema import Schema
from spark_bridge.change_tables import ChangeTables, empty
from spark_bridge.files import DamagedError
from spark_bridge.keys import arrow_schema
from spark_bridge.partial import PartExtremes, PartTotals, parts_of
from spark_bridge.partition_state import PartitionState
from spark_bridge.plan import PART, PartitionPlan, StagedPlan
from spark_bridge.store import Body, Checkpoint


class PartsFollowed:
    """The heads of a checkpoint that partitions keep in parts."""

    def __init__(self, checkpoint: Checkpoint, state: PartitionState) -> None:
        self.checkpoint, self.state = checkpoint, state
        self._held: dict[str, PartTotals | PartExtremes] = {}

    def at(self, name: str, schema: Schema, version: int) -> PartTotals | PartExtremes:
        """A head at a version: where it was last read, or from its base on. Whoever changes it takes it (`_taken`)."""
        token, partitions = self.checkpoint.commit(version)["token"], range(self.state.partitions(version))
        held = self._held.get(name)
        if held is None or held.version != token:
            try:
                versions = (self.checkpoint.base(version), *self.checkpoint.since_base(version))
                parts = [self.state.output_change(p, v, name) for v in versions for p in partitions]
            except DamagedError:
                tables = [self.state.output(p, version, name) for p in partitions]
                parts = [ChangeTables(empty(schema), table) for table in tables]
            op = self.state.layout(version).plan.part_op(name)
            held = PartTotals(schema, token) if op == "sum" else PartExtremes(schema, op, token)
            held.add(joined(parts))
            self._held[name] = held
        return held

    def change(self, name: str, schema: Schema, since: int, until: int) -> ChangeTables:
        """The exact change of a head. Where it ends the next one may begin."""
        held = self._taken(name, schema, since)
        parts = [self.state.output_delta(p, since, until, name) for p in range(self.state.partitions(until))]
        change = held.step(joined(parts))
        self.reached({name: held}, self.checkpoint.commit(until)["token"])
        return change

    def _taken(self, name: str, schema: Schema, version: int) -> PartTotals | PartExtremes:
        """A head at a version, which is followed no longer: an error in the middle leaves nothing half done."""
        held = self.at(name, schema, version)
        del self._held[name]
        return held

    def reached(self, heads: Mapping[str, PartTotals | PartExtremes], token: str) -> None:
        """Go on from these heads, which are at the commit with this token."""
        for name, held in heads.items():
            held.version = token
            self._held[name] = held

    def fitting(
        self, version: int | None, results: Sequence[Body], plan: StagedPlan
    ) -> dict[str, PartTotals | PartExtremes]:
        """See that the sums after `version` (None: there is none) and these results of all partitions fit their types.

        Adds the bounds of `version` to those of the results. The heads that had to be added up, as they are then.
        `EvaluationError` if a sum does not fit: the results are not to be committed.
        """
        if version is not None:
            for result, part in zip(results, self.checkpoint.commit(version)["parts"], strict=True):
                for name, bound in part["largest"].items():
                    result["largest"][name] = max(bound, result["largest"].get(name, 0))
        moved: dict[str, PartTotals | PartExtremes] = {}
        for name in sums_in_parts(plan):
            schema = plan.schemas[name]
            if sum(result["largest"].get(name, 0) for result in results) <= most_of(schema):
                continue
            held = PartTotals(schema) if version is None else self._taken(name, schema, version)
            held.add(joined([self.state.written_change(result["output"], schema) for result in results]))
            held.rows()
            moved[name] = held
        return moved


def sums_in_parts(plan: PartitionPlan | StagedPlan) -> list[str]:
    """The outputs whose parts are added up."""
    return [name for name, one in plan.outputs.items() if one.kind == PART and plan.part_op(name) == "sum"]


def largest_part(rows: pa.Table) -> int:
    """The greatest magnitude of the parts, in units of the last digit that their type has; 0 if there are none."""
    found = pc.min_max(parts_of(rows, 1).column("sum"))
    ends = [found[end].as_py() for end in ("min", "max")]
    scale = parts_of(rows, 1).schema.field("sum").type.scale
    return max((abs(int(end.scaleb(scale))) for end in ends if end is not None), default=0)


def most_of(schema: Schema) -> int:
    """The greatest magnitude that the values of a head may have, in the same units."""
    kind = arrow_schema(schema).types[-1]
    return int(10**kind.precision - 1) if pa.types.is_decimal(kind) else (1 << 63) - 1


def joined(changes: Sequence[ChangeTables]) -> ChangeTables:
    """The changes of all partitions as one."""
    return ChangeTables(*(pa.concat_tables(tables) for tables in zip(*changes, strict=True)))
