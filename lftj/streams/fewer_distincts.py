"""Consolidation of `distinct`: one at the end of a chain of operators does the work of those before it.

    σ(distinct(i))            =  distinct(σ(i))          proposition 4.5: the filter first, so that less is kept
    distinct(Q(distinct(i)))  =  distinct(Q(i))          proposition 4.6, Q of σ, π, map, +, ⋈, ×, and i positive
    distinct(i)               =  i                       i a set: proposition 4.6 with nothing in between

Every `distinct` of an incremental circuit keeps an integral of its input, and every one that goes saves that. What is
positive, and what is a set, is known of operators, not of data: a user may give any weights, so an input is neither.

    positive    no weight is negative, at any tick         of distinct, top, totals; of σ π map + ⋈ z^-1 I over such
    set         every weight is 1                          of distinct, totals; of σ and z^-1 over a set; of ⋈ over two;
                                                           of π of totals that keeps their key
    bounded     no weight is beyond a constant             of a set; of σ, + and ⋈ over such

Proposition 4.6 is used through a join only where i is bounded: a `distinct` over a projection swallows most changes,
and each of them would be joined without it. 4.5 is used for filters only, for the join of two sets may be much larger.

Source: M. Budiu et al., DBSP (VLDB 2023), section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from lftj.plan.partial_functions import partial_of
from lftj.streams.by_key import ByKey
from lftj.streams.constant import Constant
from lftj.streams.distinct import Distinct
from lftj.streams.expressions import Map
from lftj.streams.graph import Graph, Node
from lftj.streams.join import Join
from lftj.streams.nested import Leave, Nested
from lftj.streams.operators import Delay, Differentiate, Input, Integrate, Loop, Plus, Project
from lftj.streams.totals import Totals

FILTER = "consolidation (4.5)"
COVERED = "consolidation (4.6)"

Known = dict[int, bool]


def consolidated(graph: Graph) -> Graph:
    """The same circuit with fewer `distinct`, as a new graph."""
    return _within(graph, (), ())


def _within(graph: Graph, positive: Collection[str], sets: Collection[str]) -> Graph:
    """The same for a nested circuit; `positive`, `sets`: names of inputs that are so."""
    made = _copied(graph)
    facts, read = Facts(made, positive, sets), _readers(made)
    for node in _distincts(made):
        if facts.sets[node.inputs[0].number]:
            _bypass(made, node, read)
    # No filter is passed twice: of two `distinct` with only filters between, the second is gone.
    _sink(made)
    facts, read = Facts(made, positive, sets), _readers(made)
    gone = []
    for node in _distincts(made):
        over = node.inputs[0].number
        if facts.positive[over]:
            covering = _covering(made, node, facts.positive, read, joins=facts.bounded[over])
            if covering:
                gone.append(node)
            for last in covering:
                last.why = COVERED
    # Those that cover one may go, too: what covers them covers it.
    for node in gone:
        _bypass(made, node, read)
    facts = Facts(made, positive, sets)
    for node in made.order():
        nested = node.operator
        if isinstance(nested, Nested):
            outside = list(zip(nested.graph.inputs, (read.number for read in node.inputs), strict=True))
            inner = _within(
                nested.graph,
                [name for name, number in outside if facts.positive[number]],
                [name for name, number in outside if facts.sets[number]],
            )
            node.operator = replace(nested, graph=inner)
    return made


def _distincts(graph: Graph) -> list[Node]:
    return [node for node in graph.order() if isinstance(node.operator, Distinct)]


def _bypass(graph: Graph, node: Node, read: dict[int, list[Node]]) -> None:
    """Let all that read `node` read what it reads."""
    (over,) = node.inputs
    for reader in read[node.number]:
        graph.replace(reader, node, over)
        read[over.number].append(reader)
    for name, output in graph.outputs.items():
        if output is node:
            graph.expose(name, over)
    over.name = over.name or node.name
    read[over.number] = [reader for reader in read[over.number] if reader is not node]


def _is_filter(node: Node) -> bool:
    return isinstance(node.operator, Map) and node.operator.terms is None


def _is_total_filter(node: Node) -> bool:
    """Whether it is a filter whose condition has a value for every row, also for those that `distinct` leaves out."""
    return _is_filter(node) and not any(True for c in node.operator.conditions for _ in partial_of(c))  # type: ignore[attr-defined]


def _copied(graph: Graph) -> Graph:
    """The same circuit with nodes of its own."""
    made, of = Graph(nested=graph.nested), dict[int, Node]()
    for node in graph.nodes:
        of[node.number] = made.add(node.operator, [], node.columns, why=node.why, span=node.span)
        of[node.number].name = node.name
    for node in graph.nodes:
        of[node.number].inputs[:] = [of[read.number] for read in node.inputs]
    for name, node in graph.outputs.items():
        made.expose(name, of[node.number])
    return made


def _sink(graph: Graph) -> None:
    """Let each `distinct` that only a filter reads come after it (proposition 4.5)."""
    read = _readers(graph)
    for node in _distincts(graph):
        while node not in graph.outputs.values() and len(read[node.number]) == 1:
            (reader,) = read[node.number]
            if not _is_total_filter(reader):
                break
            _swap(graph, node, reader, read)


def _swap(graph: Graph, distinct: Node, filtered: Node, read: dict[int, list[Node]]) -> None:
    """The filter reads what `distinct` read, which reads the filter."""
    (over,) = distinct.inputs
    graph.replace(filtered, distinct, over)
    for reader in read[filtered.number]:
        graph.replace(reader, filtered, distinct)
    graph.replace(distinct, over, filtered)
    for name, output in graph.outputs.items():
        if output is filtered:
            graph.expose(name, distinct)
    read[over.number] = [filtered if reader is distinct else reader for reader in read[over.number]]
    read[distinct.number], read[filtered.number] = read[filtered.number], [distinct]
    distinct.name, filtered.name, distinct.why = filtered.name, "", FILTER


def _readers(graph: Graph) -> dict[int, list[Node]]:
    """Per node, the nodes that read it, of those that outputs depend on."""
    read: dict[int, list[Node]] = {node.number: [] for node in graph.nodes}
    for node in graph.order():
        for one in dict.fromkeys(node.inputs):
            read[one.number].append(node)
    return read


class Facts:
    """What is known of the streams of a circuit at every tick, by the number of their node.

    A loop is what it is assumed to be if that follows from the assumption: it passes a strict operator, which starts
    with nothing, so that induction over ticks holds.
    """

    def __init__(self, graph: Graph, positive: Collection[str] = (), sets: Collection[str] = ()) -> None:
        self.graph, self._given_positive, self._given_sets = graph, positive, sets
        inside = {node.number: Facts(node.operator.graph) for node in graph.nodes if isinstance(node.operator, Nested)}
        self._left = {node.number: _settled(node, inside) for node in graph.nodes if isinstance(node.operator, Leave)}
        self.positive = self._largest(self._is_positive)
        self.sets = self._largest(self._is_set)
        self.bounded = self._largest(self._is_bounded)

    def _largest(self, holds: Callable[[Node, Known], bool]) -> Known:
        """What holds of every node that outputs depend on if it may be assumed of all others."""
        order = self.graph.order()
        known: Known = dict.fromkeys((node.number for node in order), True)
        done = False
        while not done:
            done = True
            for node in order:
                if known[node.number] and not holds(node, known):
                    known[node.number] = done = False
        return known

    def _is_positive(self, node: Node, known: Known) -> bool:
        operator = node.operator
        if isinstance(operator, Distinct | ByKey | Totals | Constant):
            return True
        if isinstance(operator, Input):
            return operator.name in self._given_positive
        if isinstance(operator, Leave):
            return self._left[node.number][0]
        passes = isinstance(operator, Plus | Project | Map | Join | Loop | Delay | Integrate)
        return passes and bool(node.inputs) and all(known[read.number] for read in node.inputs)

    def _is_set(self, node: Node, known: Known) -> bool:
        operator = node.operator
        if isinstance(operator, Distinct | Totals):
            return True
        if isinstance(operator, Input):
            return operator.name in self._given_sets
        if isinstance(operator, Leave):
            return self._left[node.number][1]
        if isinstance(operator, Integrate):
            # I(delta0(i)) has the value of i at every tick of a nested circuit.
            return isinstance(node.inputs[0].operator, Input) and known[node.inputs[0].number]
        if _keeps_key(node):
            return True
        keeps = isinstance(operator, Loop | Delay) or _is_filter(node) or _is_permutation(node) or _keeps_pairs(node)
        return keeps and bool(node.inputs) and all(known[read.number] for read in node.inputs)

    def _is_bounded(self, node: Node, known: Known) -> bool:
        if self.sets[node.number]:
            return True
        operator = node.operator
        keeps = isinstance(operator, Plus) or _is_filter(node) or _is_permutation(node) or _keeps_pairs(node)
        return keeps and all(known[read.number] for read in node.inputs)


def _settled(node: Node, inside: Mapping[int, Facts]) -> tuple[bool, bool]:
    """(whether what leaves a nested circuit is positive, whether it is a set), whatever comes in.

    `inside`: what is known within each nested circuit, by the number of its node.
    """
    if not node.inputs or not isinstance(node.inputs[0].operator, Nested):
        return False, False
    assert isinstance(node.operator, Leave)
    facts = inside[node.inputs[0].number]
    left = list(facts.graph.outputs.values())[node.operator.which]
    if not isinstance(left.operator, Differentiate):
        return facts.positive[left.number], False
    # The definite integral of D(s) is what s settles on.
    settles = left.inputs[0].number
    return facts.positive[settles], facts.sets[settles]


def _covering(graph: Graph, node: Node, positive: Known, read: dict[int, list[Node]], *, joins: bool) -> list[Node]:
    """The `distinct` nodes that all that comes of a node passes, after operators of proposition 4.6 only.

    None if something does not.
    """
    outputs = graph.outputs.values()
    open_nodes, seen, found = [node], {node.number}, list[Node]()
    while open_nodes:
        one = open_nodes.pop()
        if one in outputs or not read[one.number]:
            return []
        for reader in read[one.number]:
            if reader.number in seen:
                continue
            seen.add(reader.number)
            if isinstance(reader.operator, Distinct):
                found.append(reader)
                continue
            passes = isinstance(reader.operator, Plus | Project | Map) or (joins and isinstance(reader.operator, Join))
            if not passes or not positive[reader.number]:
                return []
            open_nodes.append(reader)
    return found


def _is_permutation(node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, Project) and len(set(operator.columns)) == node.inputs[0].arity


def _keeps_key(node: Node) -> bool:
    """Whether it is a projection of totals, or of some of them, that has their keys: one row for each."""
    if not isinstance(node.operator, Project):
        return False
    (read,) = node.inputs
    while _is_filter(read):
        (read,) = read.inputs
    return isinstance(read.operator, Totals) and {*range(len(read.operator.key))} <= {*node.operator.columns}


def _keeps_pairs(node: Node) -> bool:
    """Whether a join has a row of its own for each pair: all columns of both sides are there, or in the key."""
    operator = node.operator
    if not isinstance(operator, Join):
        return False
    there = set(operator.out)
    for i, j in zip(*operator.keys, strict=True):
        if (0, i) in there or (1, j) in there:
            there |= {(0, i), (1, j)}
    return all((side, column) in there for side in (0, 1) for column in range(operator.arities[side]))
