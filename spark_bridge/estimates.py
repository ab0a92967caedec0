"""What a query would take, before it is made: which placement of keys it gets, bytes per partition, skew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from spark_bridge.bridge_errors import PlanError
from spark_bridge.keys import Keyed
from spark_bridge.placement import Placement, choose_share, held_bytes, key_work, loads, place
from spark_bridge.plan import PartitionPlan, StagedPlan
from spark_bridge.stages import make_stages
from spark_bridge.store import Body

ChosenBy = Callable[[PartitionPlan, PartitionPlan | None, Mapping[str, Keyed]], Placement]


@dataclass(frozen=True)
class Estimate:
    """What a query would take; `str()` shows it. `skew`: the largest estimated work of a partition by the mean."""

    text: str
    bytes: dict[str, int]
    skew: float
    share: int
    split_keys: int
    plan: str

    def __str__(self) -> str:
        return self.text


def plans_of(program: str, options: dict[str, Any], rows: Mapping[str, int]) -> tuple[StagedPlan, PartitionPlan | None]:
    """The plan by single keys, and the one that tells pairs of them apart, if there is one: in a single stage."""
    plan = make_stages(program, rows=rows, **options)
    second = None
    if len(plan.stages) == 1:
        with suppress(PlanError):
            second = make_stages(program, rows=rows, second=True, **options).stages[0]
    return plan, second


def layout_body(
    query: Body,
    options: dict[str, Any],
    rows: Mapping[str, int],
    tables: Mapping[str, Keyed],
    placement: ChosenBy | None,
) -> Body:
    """What a base says of its layout: how to plan the program again, and where the keys of the first stage go."""
    plan, second = plans_of(query["program"], options, rows)
    if placement is not None:
        chosen = placement(plan.stages[0], second, tables)
    else:
        chosen, _, _ = chosen_placement(plan, second, rows, tables, options["partitions"], query["memory"])
    if chosen.split and second is None:
        raise PlanError(
            "keys were to be split, and this program cannot tell second keys apart",
            why="heavy keys are split by the second variable that all atoms of a rule share",
            remedy="place whole keys only, or leave the placement to lftj",
        )
    return {"second": chosen.split, "rows": dict(rows), "placement": chosen.json(), "staged": True}


def chosen_placement(
    plan: StagedPlan,
    second: PartitionPlan | None,
    rows: Mapping[str, int],
    tables: Mapping[str, Keyed],
    partitions: int,
    memory: int | None,
) -> tuple[Placement, Any, Any]:
    """A placement, and the keys and their work that it was chosen by."""
    share = choose_share(plan.stages, second, rows, partitions, memory)
    if second is not None:
        keys, work = key_work(second, tables)
        chosen = place(keys, work, partitions, share=share, split=True)
        if chosen.split:
            return chosen, keys, work
    keys, work = key_work(plan.stages[0], tables)
    return place(keys, work, partitions), keys, work


def estimate_of(
    program: str,
    tables: Mapping[str, Keyed],
    *,
    partitions: int,
    outputs: Sequence[str] | None = None,
    replicate: Sequence[str] = (),
    partition_memory: int | None = None,
) -> Estimate:
    """What a query over these rows would take; `PlanError` for what `create` would refuse."""
    options: dict[str, Any] = {"outputs": outputs, "replicate": replicate, "partitions": partitions}
    rows = {name: len(table) for name, table in tables.items()}
    plan, second = plans_of(program, options, rows)
    placement, keys, work = chosen_placement(plan, second, rows, tables, partitions, partition_memory)
    used = StagedPlan((second,)) if placement.split and second is not None else plan
    load = loads(placement, keys, work)
    skew = float(load.max() / load.mean()) if load.sum() else 1.0
    hashed = loads(Placement(partitions), keys, work)
    size = held_bytes(used.stages, rows, partitions, placement.share)
    split = int((np.diff(placement.starts) > 1).sum())
    lines = [
        used.explain(),
        "",
        f"partitions: {partitions}, in {placement.groups} groups of {placement.share}",
        f"keys placed by the table: {len(placement.heavy):,}, of these split: {split:,}",
        f"expected skew (largest work / mean): {skew:.2f}; by hash alone {hashed.max() / max(hashed.mean(), 1e-9):.2f}",
        "bytes per partition, about: " + ", ".join(f"{name} {n:,}" for name, n in size.items()),
    ]
    if len(used.stages) > 1:
        lines.append("what is sent on is placed by the hash of its key, and its bytes are not known; no key is split")
    elif second is None:
        lines.append("keys cannot be split: a rule's head does not hold two variables of one partitioned atom")
    return Estimate("\n".join(lines), size, skew, placement.share, split, used.explain())
