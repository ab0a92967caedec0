"""The layout of a base: its plan, where keys are placed in each stage, and the programs of the partitions.

Keys of the first stage are placed by the work that the given relations say they have; those of later ones, of which
nothing is known, by their hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from lftj.values.schema import Schema
from spark_bridge.change_tables import Changes, ChangeTables
from spark_bridge.emit import copy_names, program_text
from spark_bridge.keys import Keyed
from spark_bridge.placement import Placement
from spark_bridge.plan import ALL, Copy, PartitionPlan, StagedPlan
from spark_bridge.stages import make_stages
from spark_bridge.store import Body

# So many are kept: making one plans a program, and partitions, versions and drivers of a process ask for the same.
KEPT_LAYOUTS = 16


class StageLayout:
    """How a stage is partitioned: the plan, the placement, and the program of a partition."""

    def __init__(
        self,
        plan: PartitionPlan,
        placement: Placement,
        maintain: Mapping[str, str] = MappingProxyType({}),
        number: int = 0,
    ) -> None:
        self.plan, self.placement, self.number = plan, placement, number
        self.names: dict[Copy, str] = copy_names(plan.copies)
        self.text = program_text(plan)
        self.schemas = plan.schemas
        self.sent = {take.target for take in plan.takes}
        derived = {step.clause.head for step in plan.steps}
        self.maintain = {self.names[c]: maintain[c[0]] for c in plan.copies if c[0] in maintain and c[0] in derived}

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

    def given(self, changes: Mapping[str, ChangeTables]) -> Changes:
        """Those of changes from outside that the stage holds relations of: what it is sent comes from elsewhere."""
        return {name: change for name, change in changes.items() if name in self.copies and name not in self.sent}

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


class StateLayout:
    """The layouts of all stages."""

    def __init__(self, plan: StagedPlan, placement: Placement, maintain: Mapping[str, str]) -> None:
        self.plan, self.placement, self.schemas = plan, placement, plan.schemas
        places = (placement, *(Placement(placement.partitions) for _ in plan.stages[1:]))
        self.stages = tuple(
            StageLayout(stage, place, maintain, number)
            for number, (stage, place) in enumerate(zip(plan.stages, places, strict=True))
        )

    @staticmethod
    def of(query: Body, base: Body) -> StateLayout:
        """The layout that a base commit describes."""
        named = {name: query[name] for name in ("program", "outputs", "replicate", "maintain")}
        return _layout(json.dumps([named, base["layout"]]))

    def stage_of(self, name: str) -> StageLayout:
        """The layout of the stage that answers for a relation, or sends it on."""
        return self.stages[self.plan.stage_of(name)]

    def schema(self, name: str) -> Schema:
        """The schema of a relation that can be asked for, or is sent on."""
        return self.stage_of(name).schemas[name]


@lru_cache(KEPT_LAYOUTS)
def _layout(described: str) -> StateLayout:
    """The layout of the part of a query, and of a base, that it follows from."""
    query, chosen = json.loads(described)
    plan = make_stages(
        query["program"],
        outputs=query["outputs"],
        replicate=query["replicate"],
        second=chosen["second"],
        rows=chosen["rows"],
        partitions=chosen["placement"]["partitions"],
        single=not chosen.get("staged"),
    )
    return StateLayout(plan, Placement.from_json(chosen["placement"]), query["maintain"])
