"""Placement: which partition a pair of keys belongs to.

N partitions are G groups of `share` each. The *first* key chooses the group: most keys by their hash, those with much
work by a table; one with more work than a part of a group is split into pieces, each in a group of its own, among which
the *second* key chooses. Within the group the second key chooses by its hash (`share` > 1 is the HyperCube of Afrati
and Ullman with shares G and `share`: relations read by the second key alone are then held by one partition per group,
not by all).

    partition of (x, y) = group(x, y) * share + class(y)
    group(x, y)  = hash(x) mod G, or the table's, or pieces(x)[hash(y) mod number of pieces]
    class(y)     = hash(y) mod share

A partition is *hit* by a row under a pattern if it may need it: x, some pair with this first key belongs to it; xy,
this pair does; y, some pair with this second key; all, always; one, if
it is the first partition.

Work of a key x: over the rules, sum over the rows (x, y) of a partitioned atom of 1 + min(keys that x has in the other
partitioned atom, rows that y has in the replicated one): what a leapfrog over the two takes at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.language import Var
from spark_bridge.bridge_errors import PlanError
from spark_bridge.keys import Hashes, Keyed, mixed
from spark_bridge.plan import ALL, ONE, PartitionPlan, Pattern, PlanStep

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

TABLE_PART = 1 / 64  # keys with more than this part of a group's mean work are placed by the table
TABLE_KEYS = 10_000  # and at most so many
SPLIT_PART = 1 / 2  # keys with more than this part are split, where second keys can be told apart
BYTES = 20  # of a value in a partition's memory: it stands in two key orders, and the pages are not full


@dataclass(frozen=True)
class Placement:
    """Where keys are placed.

    `heavy`: the hashes of the keys of the table, sorted; the pieces of `heavy[i]` are in the groups
    `pieces[starts[i]:starts[i + 1]]`, one unless it is split.
    """

    partitions: int
    share: int = 1
    heavy: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    starts: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    pieces: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.partitions // self.share

    @property
    def split(self) -> bool:
        """Whether second keys matter."""
        return self.share > 1 or len(self.pieces) > len(self.heavy)

    def json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return {
            "partitions": self.partitions,
            "share": self.share,
            "heavy": [str(h) for h in self.heavy.tolist()],
            "starts": self.starts.tolist(),
            "pieces": self.pieces.tolist(),
        }

    @staticmethod
    def from_json(given: Mapping[str, Any]) -> Placement:
        """The placement that `json` wrote."""
        return Placement(
            given["partitions"],
            given["share"],
            np.array([int(h) for h in given["heavy"]], np.uint64),
            np.array(given["starts"], np.int64),
            np.array(given["pieces"], np.int64),
        )

    # -- where rows go ------------------------------------------------------------------------------------------------

    def _table(self, first: Hashes) -> tuple[Ints, Mask]:
        """The places of keys in the table, and whether they are there."""
        if not len(self.heavy):
            return np.zeros(len(first), np.int64), np.zeros(len(first), np.bool_)
        at = np.minimum(np.searchsorted(self.heavy, first), len(self.heavy) - 1)
        return at, self.heavy[at] == first

    def _group(self, first: Hashes, second: Hashes | None) -> Ints:
        """The group of each pair; without second keys, the first of the groups of each key."""
        group = (first % np.uint64(self.groups)).astype(np.int64)
        at, known = self._table(first)
        if known.any():
            at = at[known]
            piece = self.starts[at]
            if second is not None:
                count = (self.starts[at + 1] - piece).astype(np.uint64)
                piece = piece + (mixed(second[known]) % count).astype(np.int64)
            group[known] = self.pieces[piece]
        return group

    def _class(self, second: Hashes) -> Ints:
        # Not the bits that choose the piece.
        return ((second >> np.uint64(20)) % np.uint64(self.share)).astype(np.int64)

    def hits(self, partition: int, pattern: Pattern, rows: Keyed) -> Mask:
        """Which of the rows the partition may need under `pattern`."""
        group, class_ = divmod(partition, self.share)
        if pattern == ALL:
            return np.ones(len(rows), np.bool_)
        if pattern == ONE:
            return np.full(len(rows), partition == 0)
        if pattern.kind == "y":
            shared: Mask = self._class(rows.hashes(pattern.columns[0])) == class_
            return shared
        first = rows.hashes(pattern.columns[0])
        if pattern.kind == "xy":
            second = rows.hashes(pattern.columns[1])
            exact: Mask = (self._group(first, second) == group) & (self._class(second) == class_)
            return exact
        hit: Mask = self._group(first, None) == group
        at, known = self._table(first)
        if known.any() and len(self.pieces) > len(self.heavy):
            held = np.zeros(len(self.heavy), np.bool_)
            held[np.searchsorted(self.starts, np.flatnonzero(self.pieces == group), "right") - 1] = True
            hit[known] = held[at[known]]
        return hit

    def owners(self, pattern: Pattern, rows: Keyed) -> Ints:
        """For each row one of the partitions that `pattern` gives it to, the same wherever it is asked."""
        if pattern in (ALL, ONE):
            return np.zeros(len(rows), np.int64)
        if pattern.kind == "y":
            return self._class(rows.hashes(pattern.columns[0]))
        first = rows.hashes(pattern.columns[0])
        if pattern.kind == "x":
            return self._group(first, None) * self.share
        second = rows.hashes(pattern.columns[1])
        return self._group(first, second) * self.share + self._class(second)


# Work ---------------------------------------------------------------------------------------------------------------


def _degrees(keys: Hashes, of: Hashes) -> npt.NDArray[np.float64]:
    """How often each of `of` is among `keys`."""
    distinct, counts = np.unique(keys, return_counts=True)
    if not len(distinct):
        return np.zeros(len(of))
    at = np.minimum(np.searchsorted(distinct, of), len(distinct) - 1)
    return np.where(distinct[at] == of, counts[at], 0).astype(np.float64)


def _step_work(step: PlanStep, tables: Mapping[str, Keyed]) -> list[tuple[Hashes, npt.NDArray[np.float64]]]:
    found = []
    atoms = list(zip(step.clause.atoms, step.positive, strict=True))
    own = [(a, p) for a, p in atoms if p.kind in ("x", "xy") and a.predicate in tables]
    other = [(a, p) for a, p in atoms if p.kind in ("y", "all") and a.predicate in tables]
    for atom, pattern in own:
        table = tables[atom.predicate]
        first = table.hashes(pattern.columns[0])
        work = np.ones(len(table))
        for place, arg in enumerate(atom.args):
            if not isinstance(arg, Var) or place == pattern.columns[0]:
                continue
            for partner, _ in other:
                if arg not in partner.args:
                    continue
                keys = tables[partner.predicate].hashes(partner.args.index(arg))
                steps = _degrees(keys, table.hashes(place))
                rest = {v for v in partner.args if isinstance(v, Var)} - {arg}
                for cap, cap_pattern in own:
                    if cap is not atom and rest & set(cap.args):
                        steps = np.minimum(steps, _degrees(tables[cap.predicate].hashes(cap_pattern.columns[0]), first))
                work += steps
        found.append((first, work))
    return found


def key_work(plan: PartitionPlan, tables: Mapping[str, Keyed]) -> tuple[Hashes, npt.NDArray[np.float64]]:
    """The estimated work of every first key: its hash, sorted, and the steps. `tables` holds the given relations."""
    parts = [part for step in plan.steps if step.head != ALL for part in _step_work(step, tables)]
    for name, pattern in plan.copies:
        if name in tables and pattern.kind in ("x", "xy"):
            parts.append((tables[name].hashes(pattern.columns[0]), np.ones(len(tables[name]))))
    if not parts:
        return np.empty(0, np.uint64), np.empty(0)
    keys, at = np.unique(np.concatenate([first for first, _ in parts]), return_inverse=True)
    work = np.bincount(at, np.concatenate([work for _, work in parts]), len(keys)).astype(np.float64)
    return keys.astype(np.uint64), work


# Choosing ------------------------------------------------------------------------------------------------------------


def place(
    keys: Hashes, work: npt.NDArray[np.float64], partitions: int, *, share: int = 1, split: bool = False
) -> Placement:
    """The placement of keys with the given work: the heaviest first, each to the group that has the least.

    `split`: keys may be split. Longest processing time first (Graham, 1969) is within a third of the best.
    """
    groups = partitions // share
    if groups == 1 or not len(keys):
        return Placement(partitions, share)
    mean = work.sum() / groups
    order = np.argsort(work, kind="stable")[::-1][:TABLE_KEYS]
    heavy = order[work[order] > TABLE_PART * mean]
    light = np.ones(len(keys), np.bool_)
    light[heavy] = False
    load = np.bincount((keys[light] % np.uint64(groups)).astype(np.int64), work[light], groups).astype(np.float64)
    placed: dict[int, list[int]] = {}
    for key in heavy.tolist():
        count = 1
        if split and work[key] > SPLIT_PART * mean:
            count = min(groups, int(np.ceil(work[key] / (SPLIT_PART / 2 * mean))))
        chosen = np.argsort(load, kind="stable")[:count]
        load[chosen] += work[key] / count
        placed[key] = chosen.tolist()
    inside = sorted(placed, key=lambda key: int(keys[key]))
    counts = [len(placed[key]) for key in inside]
    return Placement(
        partitions,
        share,
        keys[inside],
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([group for key in inside for group in placed[key]], np.int64),
    )


def loads(placement: Placement, keys: Hashes, work: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The estimated work of each partition, second keys taken to be spread evenly."""
    load = np.zeros(placement.groups)
    at, known = placement._table(keys)
    load += np.bincount((keys[~known] % np.uint64(placement.groups)).astype(np.int64), work[~known], placement.groups)
    for i, w in zip(at[known].tolist(), work[known].tolist(), strict=True):
        pieces = placement.pieces[placement.starts[i] : placement.starts[i + 1]]
        np.add.at(load, pieces, w / len(pieces))
    return np.repeat(load / placement.share, placement.share)


def held_bytes(
    stages: Sequence[PartitionPlan], rows: Mapping[str, int], partitions: int, share: int = 1
) -> dict[str, int]:
    """Estimated bytes in one partition's memory, in all stages: per given relation, and "total"."""
    parts = {"x": share / partitions, "xy": 1 / partitions, "y": 1 / share, "all": 1.0, "one": 1.0}
    found: dict[str, int] = {}
    for plan in stages:
        given = rows.keys() - {take.target for take in plan.takes}
        for name, pattern in plan.copies:
            if name in given:
                size = rows[name] * plan.program.schemas[name].arity * BYTES * parts[pattern.kind]
                found[name] = found.get(name, 0) + round(size)
    return {**found, "total": sum(found.values())}


def choose_share(
    stages: Sequence[PartitionPlan],
    second: PartitionPlan | None,
    rows: Mapping[str, int],
    partitions: int,
    memory: int | None,
) -> int:
    """How many partitions share what would be replicated: 1 (replicate) if a partition's memory has room for it.

    `memory`: bytes per partition, None: any. `second`: the plan that tells pairs apart, None if there is none.
    `PlanError` with the figures if nothing fits.
    """
    needed = held_bytes(stages, rows, partitions)["total"]
    if memory is None or needed <= memory:
        return 1
    tried = [f"replicating takes {needed:,}"]
    for share in range(2, partitions + 1):
        if partitions % share or second is None:
            continue
        needed = held_bytes([second], rows, partitions, share)["total"]
        if needed <= memory:
            return share
        tried.append(f"shares of {partitions // share} x {share} take {needed:,}")
    if len(stages) > 1:
        tried.append("sharing is not possible: the program takes several stages")
    elif second is None:
        tried.append("sharing is not possible: some rule's head does not hold two variables of one partitioned atom")
    raise PlanError(
        f"a partition has {memory:,} bytes of memory, and needs more",
        why="; ".join(tried),
        remedy="more partitions (`partitions=`, of LocalQuery `processes=`), or more memory for each "
        "(`partition_memory=`)",
    )
