"""Forgetting: integrals drop the rows that nobody can ask for any more.

An integral is asked for rows by their key: by the other side of a join, or by the rows of a change themselves. Where a
column of what asks is bounded below (bounded.py), rows of the integral below the bound are never looked at again. They
go, and nothing is said about it, since no answer changes:

    I' = W(I, bound), computed inside the integral as windows are (DBSP, section 7.6.1)

An integral that several operators read forgets what none of them asks for; one that is an output, or is read whole,
forgets nothing. The rows to drop are found by a seek: where the column is part of all keys that ask, it is put first
in the order (which key columns come first is nobody's concern); else the integral keeps its rows by that column, too.
Totals and sessions forget keys in the same way. Nested circuits keep their past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from lftj.evaluate.accumulators import Accumulators
from lftj.streams.bounded import Bounds, asked, bounds_of, is_past
from lftj.streams.bounds import Floor
from lftj.streams.by_key import ByKeyChange
from lftj.streams.distinct import DistinctChange
from lftj.streams.graph import Graph, Node, ordered
from lftj.streams.integral import ASCENDING, Integral, Order, below, key_first
from lftj.streams.interval_join import led_by
from lftj.streams.join import Join
from lftj.streams.operators import TIME, Delay, Integrate, Operator, Project, Room, Tick, Value, zset_of
from lftj.streams.sessions import SessionsChange
from lftj.streams.topological import TopologicalOrder
from lftj.streams.totals import TotalsChange, TotalsState
from lftj.values.codes import KEY_MIN


class ForgetfulState(NamedTuple):
    """The integral, the same rows by the bounded column if that is not first in its order, and the bound."""

    rows: Integral
    by_time: Integral | None
    bound: int


@dataclass(frozen=True)
class ForgetfulIntegrate(Operator):
    """I of a stream, without the rows whose `column` is below a floor. Reads the stream, then clocks."""

    symbol: ClassVar[str] = "I"
    law: ClassVar[str] = TIME
    order: Order
    column: int
    floor: Floor

    @property
    def label(self) -> str:
        """That it forgets."""
        return "I forgetting"

    def start(self, room: Room) -> ForgetfulState:
        """Nothing."""
        leads = self.order[0] == (self.column, ASCENDING)
        by_time = None if leads else room.integral(key_first((self.column,), len(self.order)))
        return ForgetfulState(room.integral(self.order), by_time, KEY_MIN)

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Drop what is below the floor, add what is not."""
        rows, by_time, bound = state
        floor, changes = self.floor.of(values[1:]), zset_of(values[0]).normal()
        if floor != bound:
            if by_time is None:
                _, rows = rows.split(floor)
            else:
                gone, by_time = by_time.split(floor)
                rows = rows.plus(gone.negated())
        elif not len(changes):
            return rows, state
        changes = changes.kept(changes.rows[self.column] >= floor)
        rows = rows.plus(changes)
        return rows, ForgetfulState(rows, None if by_time is None else by_time.plus(changes), floor)


@dataclass(frozen=True)
class ForgetfulTotals(Operator):
    """Totals without the keys whose first column is below a floor. Reads the stream, then clocks."""

    symbol: ClassVar[str] = "totalsΔ"
    of: TotalsChange
    floor: Floor

    @property
    def label(self) -> str:
        """That it forgets."""
        return f"{self.of.label} forgetting"

    def start(self, room: Room) -> tuple[TotalsState, int]:
        """Nothing."""
        return self.of.start(room), KEY_MIN

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Drop keys below the floor, then add the change."""
        totals, bound = state
        floor = self.floor.of(values[1:])
        if floor != bound:
            totals = totals._replace(
                weights=_above(totals.weights, floor),
                totals=tuple(_above(total, floor) for total in totals.totals),
                over=None if totals.over is None else totals.over.split(floor)[1],
            )
        value, totals = self.of.step(totals, values[:1], tick)
        return value, (totals, floor)


def _above(accumulators: Accumulators, floor: int) -> Accumulators:
    """The accumulators of the groups whose first column is not below a floor."""
    gone, table = below(accumulators.table, floor)
    if not gone.shape[1]:
        return accumulators
    segments = accumulators.segments
    return Accumulators(accumulators.folding, table, None if segments is None else below(segments, floor)[1])


def forget(graph: Graph) -> None:
    """Let the integrals of an incremental circuit forget what they can. It must not have stepped."""
    bounds = bounds_of(graph)
    order, outputs = graph.order(), {node.number for node in graph.outputs.values()}
    readers: dict[int, list[Node]] = {}
    for node in order:
        for read in node.inputs:
            readers.setdefault(read.number, []).append(node)
    places = TopologicalOrder(_clocks_first(graph, bounds))
    for node in order:
        if isinstance(node.operator, Integrate):
            _integral(graph, node, _askers(node, readers, outputs), bounds, places)
        elif isinstance(node.operator, TotalsChange):
            _totals(graph, node, bounds.get(node.inputs[0].number, {}), places)
        elif isinstance(node.operator, SessionsChange):
            bound = bounds.get(node.inputs[0].number, {}).get(node.operator.of.time)
            if bound is not None:
                floor, clocks = bound.floor()
                if places.admit(node, clocks):
                    _let(graph, node, replace(node.operator, floor=floor), [*node.inputs, *clocks])


def _clocks_first(graph: Graph, bounds: Mapping[int, Bounds]) -> list[Node]:
    """All nodes in an order, with the clocks of bounds as early as may be: what forgets reads them."""
    clocks = [clock for of in bounds.values() for bound in of.values() for clock, _ in bound.ways]
    return list(ordered([*dict.fromkeys(clocks), *graph.outputs.values()]))


def _askers(node: Node, readers: Mapping[int, list[Node]], outputs: set[int]) -> list[tuple[Node, Node]] | None:
    """(who reads an integral or its delay, which of them it reads); None if it is an output."""
    if node.number in outputs:
        return None
    found: list[tuple[Node, Node]] = []
    for reader in readers.get(node.number, []):
        if isinstance(reader.operator, Delay) and is_past(reader):
            if reader.number in outputs:
                return None
            found += [(asker, reader) for asker in readers.get(reader.number, [])]
        else:
            found.append((reader, node))
    return found


def _asked_by(asker: Node, read: Node, bounds: Mapping[int, Bounds]) -> Bounds:
    """The bounds of the rows of an integral that an operator asks for, by column."""
    operator = asker.operator
    if isinstance(operator, Join):
        sides = [side for side, node in enumerate(asker.inputs) if node is read]
        if len(sides) == 1:
            return asked(operator, sides[0], bounds.get(asker.inputs[1 - sides[0]].number, {}))
    if isinstance(operator, DistinctChange) and asker.inputs[1] is not read:
        return bounds.get(asker.inputs[1].number, {})
    if isinstance(operator, ByKeyChange) and asker.inputs[0] is not read:
        own = bounds.get(asker.inputs[0].number, {})
        return {column: own[column] for column in operator.function.key if column in own}
    return {}


def _integral(
    graph: Graph,
    node: Node,
    askers: list[tuple[Node, Node]] | None,
    bounds: Mapping[int, Bounds],
    places: TopologicalOrder,
) -> None:
    """Let an integral forget by a column that all who ask have a bound of."""
    if not askers:
        return
    common: Bounds | None = None
    for asker, read in askers:
        found = _asked_by(asker, read, bounds)
        if common is None:
            common = found
        else:
            common = {column: bound.or_less(found[column]) for column, bound in common.items() if column in found}
    assert common is not None
    operator = node.operator
    assert isinstance(operator, Integrate)
    # A column that leads or can be made to costs least.
    order = operator.order
    ranks = {column: (order[0] != (column, ASCENDING), not _can_lead(askers, column), column) for column in common}
    if not ranks:
        return
    column = min(ranks, key=ranks.__getitem__)
    elsewhere, stays, _ = ranks[column]
    moves = elsewhere and not stays
    if moves:
        order = ((column, ASCENDING), *(part for part in order if part[0] != column))
    floor, clocks = common[column].floor()
    if not places.admit(node, clocks):
        return
    _let(graph, node, ForgetfulIntegrate(order, column, floor), [*node.inputs, *clocks])
    if moves:
        _put_first(askers, column, order)


def _can_lead(askers: list[tuple[Node, Node]], column: int) -> bool:
    """Whether a column is in the key of all who ask, so that it may come first in it."""
    for asker, read in askers:
        operator = asker.operator
        if isinstance(operator, Join) and column not in operator.keys[asker.inputs.index(read)]:
            return False
        if isinstance(operator, ByKeyChange) and column not in operator.function.key:
            return False
    return True


def _put_first(askers: list[tuple[Node, Node]], column: int, order: Order) -> None:
    """Let all who ask do so by a key that begins with a column."""
    for asker, read in askers:
        operator = asker.operator
        if isinstance(operator, Join):
            asker.operator = led_by(operator, asker.inputs.index(read), column)
        elif isinstance(operator, ByKeyChange):
            key = operator.sought or operator.function.key
            asker.operator = replace(operator, sought=(column, *(c for c in key if c != column)))
        if isinstance(read.operator, Delay):
            read.operator = replace(read.operator, order=order)


def _totals(graph: Graph, node: Node, bounds: Bounds, places: TopologicalOrder) -> None:
    """Let totals forget by a column of their key, which comes first."""
    change = node.operator
    assert isinstance(change, TotalsChange)
    at = next((i for i, column in enumerate(change.of.key) if column in bounds), None)
    if at is None:
        return
    bound, key, group = bounds[change.of.key[at]], change.of.key, change.of.group
    floor, clocks = bound.floor()
    if not places.admit(node, clocks):
        return
    first = (at, *range(at), *range(at + 1, len(key)))
    of = replace(change.of, key=tuple(key[i] for i in first), group=tuple(group[i] for i in first))
    forgetful, reads = ForgetfulTotals(TotalsChange(of), floor), [*node.inputs, *clocks]
    if at == 0:
        _let(graph, node, forgetful, reads)
        return
    back = (*range(1, at + 1), 0, *range(at + 1, node.arity))
    columns = [node.columns[0]] * node.arity
    for i, place in enumerate(back):
        columns[place] = node.columns[i]
    made = graph.add(forgetful, reads, tuple(columns), why=node.why, span=node.span)
    _let(graph, node, Project(back), [made])


def _let(graph: Graph, node: Node, operator: Operator, reads: list[Node]) -> None:
    """Replace what a node does, and what it reads."""
    node.operator = operator
    graph.connect(node, reads[0])
    node.inputs[:] = reads
