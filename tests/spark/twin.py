"""A partitioned query beside its meaning: facts as sets, contents by the plain reference evaluator.

What a rule is taken apart into is a relation of its own in a partition: a group without a result is an error there also
where no rule asks for it. So the program that a partition runs is evaluated as well, for its errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import lftj
from lftj.language.clause import INTERNAL
from lftj.values.schema import Schema
from spark_bridge.bridge_errors import PlanError
from spark_bridge.driver import Executor, Partitioned
from spark_bridge.emit import copy_names, program_text
from spark_bridge.keys import OP, UNIT, Keyed, arrow_schema
from spark_bridge.placement import Placement, key_work, place
from spark_bridge.plan import PartitionPlan
from spark_bridge.planner import make_plan
from tests.mixed.programs import Mixed, make_rows, pick
from tests.plain.aggregates import Overflow
from tests.plain.evaluate import Contents, KeyConflict, Undefined, evaluate, parse

Row = tuple[Any, ...]
FAILURES = (Overflow, KeyConflict, Undefined)
PLACEMENTS = ("hash", "table", "split", "share")


def table(schema: Schema, rows: list[Row], ops: list[int] | None = None) -> pa.Table:
    """Rows as a source, changes with their ops."""
    typed = arrow_schema(schema)
    columns = [[row[i] for row in rows] for i in range(schema.arity)] if schema.arity else [[True] * len(rows)]
    found = pa.Table.from_arrays([pa.array(c, t) for c, t in zip(columns, typed.types, strict=True)], schema=typed)
    return found if ops is None else found.append_column(OP, pa.array(ops, pa.int64()))


def rows_of(found: pa.Table) -> list[Row]:
    """The rows of a table."""
    if found.column_names == [UNIT]:
        return [()] * found.num_rows
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def placed(kind: str, partitions: int, rng: Random) -> Any:
    """A placement of the kind asked for, exaggerated: tiny data has no heavy keys."""

    def choose(plan: PartitionPlan, second: PartitionPlan | None, tables: Mapping[str, Keyed]) -> Placement:
        if kind == "hash" or (second is None and kind != "table"):
            return Placement(partitions)
        keys, work = key_work(second if second is not None and kind != "table" else plan, tables)
        if kind == "share":
            shares = [s for s in range(2, partitions + 1) if partitions % s == 0]
            return Placement(partitions, rng.choice(shares)) if shares else Placement(partitions)
        if kind == "table":
            return place(keys, work * np.array([rng.choice((1.0, 50.0)) for _ in keys]), partitions)
        heavy = np.sort(np.array([int(k) for k in keys if rng.random() < 0.7], np.uint64))
        pieces = [rng.sample(range(partitions), rng.randint(1, partitions)) for _ in heavy]
        starts = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
        return Placement(partitions, 1, heavy, starts, np.array([g for p in pieces for g in p], np.int64))

    return choose


def partitionable(text: str, rng: Random) -> list[str] | None:
    """The heads that have to be replicated for the program to be partitioned; None if nothing is left then."""
    replicate: list[str] = []
    while True:
        try:
            make_plan(text, replicate=replicate)
        except PlanError as refusal:
            if not refusal.relation:
                return None
            replicate.append(refusal.relation)
        else:
            return replicate


class Twin:
    """Everything is done twice, and compared."""

    def __init__(
        self, mixed: Mixed, facts: dict[str, set[Row]], executor: Executor, folder: Path, rng: Random, **options: Any
    ) -> None:
        self.mixed, self.program, self.rng = mixed, parse(mixed.text), rng
        self.facts = {name: set(facts.get(name, ())) for name in mixed.base}
        plan = make_plan(mixed.text, replicate=options.get("replicate", ()))
        taken_apart = any(name.startswith(INTERNAL) for name, _ in plan.copies)
        self.partition = parse(program_text(plan)) if taken_apart else None
        self.copies = {name: relation for (relation, _), name in copy_names(plan.copies).items()}
        self.contents = self.evaluated(self.facts)
        self.schemas = plan.schemas
        self.query = Partitioned.create(
            executor,
            mixed.text,
            {name: table(self.schemas[name], sorted(rows) * 2) for name, rows in self.facts.items()},
            checkpoint=folder,
            **options,
        )
        self.refused = self.batches = 0
        self.verify()

    def evaluated(self, facts: dict[str, set[Row]]) -> Contents:
        """The contents over these facts; raises what the query is to refuse."""
        if self.partition is not None:
            evaluate(self.partition, {name: facts.get(relation, set()) for name, relation in self.copies.items()})
        return evaluate(self.program, facts)

    def verify(self) -> None:
        """The content of every relation, each row answered for once."""
        for name, expected in self.contents.items():
            assert sorted(rows_of(self.query.table(name))) == sorted(expected), name

    def apply(self, changes: dict[str, tuple[list[Row], list[Row]]]) -> None:
        """A batch of (erased, inserted) rows per relation."""
        after = {name: set(rows) for name, rows in self.facts.items()}
        for name, (erased, inserted) in changes.items():
            after[name] = (after[name] - set(erased)) | set(inserted)
        sources = {}
        for name, (erased, inserted) in changes.items():
            rows = [(row, -1) for row in erased] + [(row, 1) for row in inserted]
            self.rng.shuffle(rows)
            sources[name] = table(self.schemas[name], [r for r, _ in rows], [op for _, op in rows])
        version, batch_id = self.query.version, f"b{self.batches}"
        self.batches += 1
        try:
            expected = self.evaluated(after)
        except FAILURES:
            try:
                self.query.apply(sources, batch_id=batch_id)
            except lftj.Error:
                assert self.query.version == version
                self.refused += 1
                self.verify()
                return
            raise AssertionError("must be refused") from None
        applied = self.query.apply(sources, batch_id=batch_id)
        assert (applied.version, applied.repeated) == (version + 1, False)
        self.facts = after
        self.differs(expected, version)
        assert {n: c for n, c in applied.changed.items() if n in expected} == {
            name: (len(self.contents[name] - rows), len(rows - self.contents[name]))
            for name, rows in expected.items()
            if rows != self.contents[name] and not self.query.in_parts(name, version)
        }
        self.contents = expected
        self.verify()

    def differs(self, after: Contents, since: int) -> None:
        for name, rows in after.items():
            delta = self.query.delta(name, since)
            assert sorted(rows_of(delta.inserted)) == sorted(rows - self.contents[name]), name
            assert sorted(rows_of(delta.erased)) == sorted(self.contents[name] - rows), name


def some_changes(rng: Random, twin: Twin, most: int) -> dict[str, tuple[list[Row], list[Row]]]:
    """A batch: rows that are there and others, duplicates, a row erased and inserted, nothing at all."""
    changes = {}
    for name in rng.sample(twin.mixed.base, rng.randint(0 if not rng.randrange(8) else 1, len(twin.mixed.base))):
        kinds = twin.program.kinds[name]
        known = sorted(twin.facts[name])
        inserted = make_rows(rng, kinds, most) if rng.random() < 0.8 else []
        erased = [pick(rng, known) for _ in range(rng.choice((0, 1, 2, most)))] if known else []
        if rng.random() < 0.3:
            erased += make_rows(rng, kinds, 2)  # mostly absent
        if rng.random() < 0.3 and inserted:
            erased += inserted[:1]
        if rng.random() < 0.3 and known:
            inserted += known[:2]
        if name in twin.mixed.functional and rng.random() < 0.8:  # otherwise most batches are refused
            keys = {row[:-1]: row for row in inserted}
            inserted = list(keys.values())
            erased += [row for row in known if row[:-1] in keys]
        changes[name] = (erased, inserted)
    return changes
