"""Columns that nobody reads: taken out of a circuit before it is made incremental.

From the outputs back, each node is asked which columns of its inputs it needs for the columns that are wanted of it
(`Operator.narrowed`). Where an input has others, a projection takes them out: texts that nobody looks at are not
interned (`columns_read`), and integrals hold and sort fewer columns. Projections are linear, so the values of all
outputs are the same. A strict node, which may be in a cycle, and every operator that says nothing, needs all columns.
"""

from __future__ import annotations

from lftj.streams.graph import Graph, Node
from lftj.streams.operators import Input, Narrowed, Project

WHY = "columns that are read"


def narrowed(graph: Graph) -> Graph:
    """The same circuit, with the columns that are needed."""
    order = graph.order()
    wanted: dict[int, set[int]] = {node.number: set() for node in order}
    for node in graph.outputs.values():
        wanted[node.number].update(range(node.arity))
    for node in order:
        if node.operator.strict:
            for read in node.inputs:
                wanted[read.number].update(range(read.arity))
    found: dict[int, Narrowed] = {}
    for node in reversed(order):
        if not node.operator.strict and not isinstance(node.operator, Input):
            narrow = _narrowed(node, tuple(sorted(wanted[node.number])))
            found[node.number] = narrow
            for read, needs in zip(node.inputs, narrow.reads, strict=True):
                wanted[read.number].update(needs)
    return _Narrowing(graph, order, wanted, found).made


def _narrowed(node: Node, wanted: tuple[int, ...]) -> Narrowed:
    narrow = node.operator.narrowed(wanted, [read.arity for read in node.inputs])
    if narrow is None:
        every = tuple(tuple(range(read.arity)) for read in node.inputs)
        return Narrowed(node.operator, tuple(range(node.arity)), every)
    return narrow


class _Narrowing:
    """Makes the nodes: `of` has, by the number of a node, the new one and which of its columns that has."""

    def __init__(
        self, graph: Graph, order: list[Node], wanted: dict[int, set[int]], found: dict[int, Narrowed]
    ) -> None:
        self.made = Graph()
        self.of: dict[int, tuple[Node, tuple[int, ...]]] = {}
        self._projections: dict[tuple[int, tuple[int, ...]], Node] = {}
        for node in graph.inputs.values():
            self._add(node, [], tuple(range(node.arity)))
        for node in order:
            if node.operator.strict:
                self._add(node, [], tuple(range(node.arity)))
        for node in order:
            if node.number in found:
                operator, kept, reads = found[node.number]
                inputs = [self._with(read, needs) for read, needs in zip(node.inputs, reads, strict=True)]
                made = self.made.add(
                    operator, inputs, tuple(node.columns[i] for i in kept), why=node.why, span=node.span
                )
                made.name = node.name
                self.of[node.number] = made, kept
        for node in order:
            if node.operator.strict:
                whole = [self._with(read, tuple(range(read.arity))) for read in node.inputs]
                self.of[node.number][0].inputs[:] = whole
        for name, node in graph.outputs.items():
            self.made.expose(name, self._with(node, tuple(range(node.arity))))

    def _add(self, node: Node, inputs: list[Node], kept: tuple[int, ...]) -> None:
        made = self.made.add(node.operator, inputs, node.columns, why=node.why, span=node.span)
        made.name = node.name
        self.of[node.number] = made, kept

    def _with(self, node: Node, columns: tuple[int, ...]) -> Node:
        """The new node of a node, with these of its columns; one for all that ask."""
        made, kept = self.of[node.number]
        if kept == columns:
            return made
        found = self._projections.get((node.number, columns))
        if found is None:
            places = tuple(kept.index(column) for column in columns)
            found = self.made.add(Project(places), [made], tuple(node.columns[c] for c in columns), why=WHY)
            self._projections[node.number, columns] = found
        return found


def columns_read(graph: Graph) -> dict[str, frozenset[int]]:
    """By input, the columns that nodes read: all but where only projections read it."""
    read = {name: set[int]() for name in graph.inputs}
    outputs = [node.number for node in graph.outputs.values()]
    for name, node in graph.inputs.items():
        if node.number in outputs:
            read[name].update(range(node.arity))
    for node in graph.order():
        for given in node.inputs:
            if isinstance(given.operator, Input):
                project = isinstance(node.operator, Project)
                read[given.operator.name].update(node.operator.columns if project else range(given.arity))  # type: ignore[attr-defined]
    return {name: frozenset(columns) for name, columns in read.items()}
