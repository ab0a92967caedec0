"""Which columns of the streams of an incremental circuit are bounded below, and by what.

A watermark bounds its column: no row below it comes any more. Most operators pass that on, column by column:

    filter, projection, negation     as it was
    sum                              the lesser of both; none where one has none
    windows                          also of start and end
    join of a change with a past     the columns of the change; key columns (and times) of the past, which equal them
    distinct, by key, totals         key columns: of rows that change, the key is one of the change
    sessions                         key columns, and the end of a session that changes
    range window                     its column, by the clock of the tick before

What reads integrals whole, delays, and nested circuits have no bounds. A stream without a bound costs memory, not
correctness.
"""

from __future__ import annotations

from lftj.language.clause import Var
from lftj.streams.bounds import Bound, Grid
from lftj.streams.by_key import ByKeyChange
from lftj.streams.clocks import Clock, OnTime, WindowChange
from lftj.streams.distinct import DistinctChange
from lftj.streams.expressions import Map
from lftj.streams.graph import Graph, Node
from lftj.streams.interval_join import IntervalJoin
from lftj.streams.join import RIGHT, Join
from lftj.streams.operators import Delay, Integrate, Negate, Plus, Project
from lftj.streams.ranking import Joined
from lftj.streams.sessions import SessionsChange
from lftj.streams.totals import TotalsChange
from lftj.streams.windows import Windows

Bounds = dict[int, Bound]


def bounds_of(graph: Graph) -> dict[int, Bounds]:
    """By number of a node the bounds of its columns. May add clocks to the graph."""
    found: dict[int, Bounds] = {}
    for node in graph.order():
        # Strict nodes come in any order, and have none.
        found[node.number] = _of(graph, node, [found.get(read.number, {}) for read in node.inputs])
    return found


def _of(graph: Graph, node: Node, reads: list[Bounds]) -> Bounds:
    operator = node.operator
    if isinstance(operator, Negate):
        return reads[0]
    if isinstance(operator, Project):
        return {i: reads[0][column] for i, column in enumerate(operator.columns) if column in reads[0]}
    if isinstance(operator, Map):
        return _map(operator, reads[0])
    if isinstance(operator, Plus):
        least = dict(reads[0])
        for other in reads[1:]:
            least = {column: bound.or_less(other[column]) for column, bound in least.items() if column in other}
        return least
    if isinstance(operator, OnTime):
        return {**reads[0], operator.column: Bound([(node.inputs[1], (-operator.lateness,))])}
    if isinstance(operator, Windows):
        return _windows(operator, reads[0], node.inputs[0].arity)
    if isinstance(operator, Join):
        return _join(operator, reads)
    if isinstance(operator, DistinctChange):
        return reads[1]
    if isinstance(operator, ByKeyChange):
        function = operator.function
        places = range(len(function.key)) if isinstance(function, Joined) else function.key
        return {i: reads[0][column] for i, column in zip(places, function.key, strict=True) if column in reads[0]}
    if isinstance(operator, TotalsChange):
        return {i: reads[0][column] for i, column in enumerate(operator.of.key) if column in reads[0]}
    if isinstance(operator, SessionsChange):
        of = operator.of
        bounds = {column: reads[0][column] for column in of.key if column in reads[0]}
        if of.time in reads[0]:
            bounds[of.arity + 1] = reads[0][of.time].moved(-of.gap)
        return bounds
    if isinstance(operator, WindowChange):
        return _range_window(graph, node, operator, reads[0])
    return {}


def _map(operator: Map, read: Bounds) -> Bounds:
    if operator.terms is None:
        return read
    bounds = {}
    for i, term in enumerate(operator.terms):
        if operator.marked_by and operator.marked_by[i] >= 0:
            continue  # it is 0 of rows that it is not for
        if isinstance(term, Var) and (column := operator.names.index(term.name)) in read:
            bounds[i] = read[column]
    return bounds


def _windows(operator: Windows, read: Bounds, arity: int) -> Bounds:
    if operator.column not in read:
        return read
    start = read[operator.column].windows(Grid(operator.size, operator.every, operator.offset))
    return {**read, arity: start, arity + 1: start.moved(operator.size)}


def _join(join: Join, reads: list[Bounds]) -> Bounds:
    bounds = {}
    for i, (side, column) in enumerate(join.out):
        bound = reads[side].get(column) or asked(join, side, reads[1 - side]).get(column)
        if bound is not None:
            bounds[i] = bound
    return bounds


def asked(join: Join, side: int, other: Bounds) -> Bounds:
    """The bounds of the columns by which the rows of a side are asked for, if the other side has such bounds."""
    found = {
        mine: other[theirs]
        for mine, theirs in zip(join.keys[side], join.keys[1 - side], strict=True)
        if theirs in other
    }
    if isinstance(join, IntervalJoin) and join.times[1 - side] in other:
        low, high = join.within
        time = other[join.times[1 - side]].moved(low if side == RIGHT else -high)
        found.setdefault(join.times[side], time)
    return found


def _range_window(graph: Graph, node: Node, operator: WindowChange, read: Bounds) -> Bounds:
    """What leaves at a tick was at or above the bound of the tick before; what comes is, too."""
    clock = node.inputs[1]
    assert isinstance(clock.operator, Clock)
    before = graph.add(Clock(clock.operator.column, before=True), clock.inputs, clock.columns, why="bound")
    return {operator.of.column: Bound([(before, (-operator.of.size,))])}


def is_past(node: Node) -> bool:
    """Whether a node's value is an integral up to this tick, or the last one."""
    operator = node.operator
    return isinstance(operator, Integrate) or (isinstance(operator, Delay) and operator.order is not None)
