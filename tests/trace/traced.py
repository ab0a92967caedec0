"""A clause's trace under a stream of changes, and everything it must equal.

`Traced` drives a `ClauseTrace` over stored relations without a database: it makes the next versions, tells the trace
what changed, and adopts what comes out. `verify` compares the derived rows and every record with two evaluations from
scratch: the engine's own recording, and the plain one of tests/trace/reference.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from lftj.join.run import Limits
from lftj.language.checker import check, check_query
from lftj.language.clause import Clause, Schema
from lftj.language.parse import parse
from lftj.maintain.clause_trace import ClauseTrace, Maintained
from lftj.maintain.step import trace_change
from lftj.plan.body import body_of
from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import Choice, OrderSearch
from lftj.plan.traceplan import TracePlan, plan_trace
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from scantree.memory import Arena
from tests.trace.reference import Recording

Row = tuple[int, ...]
Data = dict[str, set[Row]]
ARITY = {"e": 2, "r": 2, "s": 2, "t": 2, "p": 3, "q": 3, "u": 1, "v": 1, "w": 1}
GRANULARITIES = ("node", "interval", "planner", "mixed")


@dataclass(frozen=True)
class Sizes:
    """Rows of pages and directories of relations and indexes, records and rows before buffers are emptied."""

    page_rows: int = 256
    dir_rows: int = 256
    room: int | None = None
    out_rows: int = 256
    buffer_rows: int = 1 << 16

    @classmethod
    def tiny(cls, rng: Random) -> Sizes:
        return cls(rng.choice((2, 4)), 2, rng.choice((4, 4, 16, None)), rng.choice((3, 256)), rng.choice((3, 64)))


@dataclass
class Traced:
    """The query `text` over `data` with its trace.

    `choose` picks one of the planner's key orders, which is `order` alone if that is given; `granularity`: one of
    GRANULARITIES; `rng` decides where it is "mixed".
    """

    text: str
    data: Data
    choose: Callable[[Sequence[Choice]], Choice] = lambda found: found[0]
    granularity: str = "interval"
    sizes: Sizes = Sizes()
    rng: Random = field(default_factory=lambda: Random(0))
    order: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.names = sorted(self.data)
        self.data = {name: set(rows) for name, rows in self.data.items()}
        declared = "".join(
            f".decl {name}({', '.join(f'c{i}:number' for i in range(ARITY[name]))})\n" for name in self.names
        )
        schemas = check(parse(declared)).schemas
        self.arena = Arena()
        self.relations: dict[str, StoredRelation] = {}
        for name in self.names:
            empty = StoredRelation(
                schemas[name], self.arena, page_rows=self.sizes.page_rows, dir_rows=self.sizes.dir_rows
            )
            facts = empty.build(columns_of(self.data[name], ARITY[name]))
            self.relations[name] = empty.successor(facts, facts)
        body = body_of(self.clause(schemas))
        statistics = {name: relation.statistics for name, relation in self.relations.items()}
        search = OrderSearch(body, statistics, False)
        self.choice = self.choose(search.ranked()) if self.order is None else search.forced(self.order)
        self.plan: JoinPlan = plan_join(body, self.choice, self.relations)
        self.trace_plan = self.granulated()
        self.trace = self.new_trace()
        self.versions = self.current()
        self.rows: Counter[Row] = Counter(rows_of(self.record(self.trace)))

    def clause(self, schemas: Mapping[str, Schema]) -> Clause:
        return check_query(self.text, schemas)

    def granulated(self) -> TracePlan:
        """The trace plan at the granularity asked for; mixed: drawn depth by depth."""
        distinct = {
            f: self.relations[node.predicate].statistics.distinct(frozenset(node.key_order[: node.level]))
            if node.level
            else 1.0
            for f, node in enumerate(self.plan.nodes)
        }
        if self.granularity == "planner":
            return plan_trace(self.plan, distinct)
        if self.granularity != "mixed":
            return plan_trace(self.plan, distinct, force=self.granularity)
        node, interval = (plan_trace(self.plan, distinct, force=force) for force in ("node", "interval"))
        taken = [self.rng.choice((node, interval)) for _ in self.plan.depths]
        return replace(node, sites=tuple(taken[site.depth].sites[s] for s, site in enumerate(node.sites)))

    def new_trace(self) -> ClauseTrace:
        return ClauseTrace(
            self.plan,
            self.trace_plan,
            self.arena,
            lambda value, type: int(value),  # type: ignore[call-overload]
            lambda: np.zeros(1, np.int64),
            page_rows=min(2, self.sizes.page_rows) if self.sizes.page_rows < 256 else 256,
            dir_rows=self.sizes.dir_rows,
            room=self.sizes.room,
            out_rows=self.sizes.out_rows,
        )

    def current(self) -> dict[Any, Any]:
        return {order: self.relations[order[0]].order(order[1]) for order in self.trace.orders}

    def record(self, trace: ClauseTrace) -> list[Any]:
        return trace.record(self.versions, Limits(), buffer_rows=self.sizes.buffer_rows)

    # -- changing ------------------------------------------------------------------------------------------------------

    def stage(self, data: Mapping[str, set[Row]]) -> tuple[Maintained, dict[str, StoredRelation]] | None:
        """Maintain the trace for the change to `data`, adopting nothing; None if nothing changes."""
        relations = dict(self.relations)
        changed: dict[str, Change] = {}
        for name in self.names:
            inserted, erased = data[name] - self.data[name], self.data[name] - data[name]
            if not inserted and not erased:
                continue
            batch = np.concatenate([columns_of(part, ARITY[name]) for part in (inserted, erased)], axis=1)
            ops = np.array([1] * len(inserted) + [-1] * len(erased), np.int8)
            facts, done = relations[name].facts.update(batch, ops)
            changed[name] = Change.of_update(done)
            relations[name] = relations[name].successor(facts, facts, changed[name])
        if not changed:
            return None
        new = {order: relations[order[0]].order(order[1]) for order in self.trace.orders}
        changes = {
            order: trace_change(changed[order[0]], self.versions[order], new[order], order[1])
            for order in self.trace.orders
            if order[0] in changed
        }
        self.staged_versions = new
        return self.trace.maintain(self.versions, new, changes, Limits()), relations

    def apply(self, data: Mapping[str, set[Row]]) -> Maintained | None:
        """Change the relations to `data` and maintain the trace; what came of it (None: nothing changed)."""
        staged = self.stage(data)
        if staged is None:
            return None
        result, self.relations = staged
        self.trace.adopt(result)
        self.versions, self.data = self.staged_versions, {name: set(rows) for name, rows in data.items()}
        self.rows.subtract(rows_of(result.erased))
        assert min(self.rows.values(), default=0) >= 0, "a row was erased that was never derived"
        self.rows.update(rows_of(result.inserted))
        self.rows = +self.rows
        return result

    # -- comparing -----------------------------------------------------------------------------------------------------

    def records(self, trace: ClauseTrace | None = None) -> dict[int, list[Row]]:
        """Per site, the records of a trace (this one's by default), in the order of its index."""
        indexes = (trace or self.trace).indexes
        return {s: [tuple(row) for row in indexes.records(s).T.tolist()] for s in sorted(indexes.packings)}

    def recording(self) -> Recording:
        return Recording(self.plan, self.trace_plan, self.data)

    def verify(self) -> Recording:
        """Rows and records equal those of both evaluations from scratch; the plain one."""
        plain = self.recording()
        fresh = self.new_trace()
        assert self.rows == Counter(plain.outputs)
        assert Counter(rows_of(self.record(fresh))) == self.rows
        self.trace.indexes.check()
        fresh.indexes.check()
        assert self.records(fresh) == plain.records
        assert self.records() == plain.records
        return plain


def columns_of(rows: set[Row], arity: int) -> Any:
    """The rows as int64[arity, n], sorted."""
    return np.array(sorted(rows), np.int64).reshape(len(rows), arity).T


def rows_of(chunks: Sequence[Any]) -> list[Row]:
    """The rows of chunks int64[arity, n]."""
    return [tuple(row) for chunk in chunks for row in chunk.T.tolist()]


def relations_in(text: str) -> list[str]:
    """The relations that a query names."""
    return [name for name in ARITY if f"{name}(" in text]
