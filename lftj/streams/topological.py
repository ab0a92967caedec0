"""A topological order of a circuit's nodes that is kept while nodes begin to read more.

A node that begins to read one before it leaves the order as it is. If it reads one after it, only nodes between the two
are looked at: those that depend on the node, and those that the other depends on. If these meet, it would be a cycle;
else the latter move before the former, onto the places that both have. So a circuit in which few nodes are out of
order costs about as much as its edges, where a search for cycles at each new edge costs their square.

Source: D. Pearce, P. Kelly, A dynamic topological sort algorithm for directed acyclic graphs (JEA 11, 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lftj.streams.graph import Node


class TopologicalOrder:
    """The places of nodes, in which each but strict ones comes after all that it reads."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._places = {node.number: place for place, node in enumerate(nodes)}
        self._reads = {node.number: set[int]() for node in nodes}
        self._readers = {node.number: set[int]() for node in nodes}
        for node in nodes:
            for read in () if node.operator.strict else node.inputs:
                self._connect(node.number, read.number)

    def admit(self, node: Node, reads: Sequence[Node]) -> bool:
        """Let a node that is not strict read others, too. False if one of them depends on it: then nothing changes."""
        added = list({read.number: None for read in reads if read.number not in self._reads[node.number]})
        for i, read in enumerate(added):
            if not self._put_after(node.number, read):
                for earlier in added[:i]:
                    self._reads[node.number].remove(earlier)
                    self._readers[earlier].remove(node.number)
                return False
            self._connect(node.number, read)
        return True

    def _connect(self, node: int, read: int) -> None:
        self._reads[node].add(read)
        self._readers[read].add(node)

    def _put_after(self, node: int, read: int) -> bool:
        """Let a node come after one that it is to read; False if that depends on it."""
        first, last = self._places[node], self._places[read]
        if last < first:
            return True
        above = self._between(node, self._readers, first, last)
        if read in above:
            return False
        below = self._between(read, self._reads, first, last)
        moved = [*sorted(below, key=self._places.__getitem__), *sorted(above, key=self._places.__getitem__)]
        self._places.update(zip(moved, sorted(map(self._places.__getitem__, moved)), strict=True))
        return True

    def _between(self, start: int, following: Mapping[int, set[int]], first: int, last: int) -> set[int]:
        """What is reached from a node over nodes at places from `first` to `last`, and it itself."""
        found, waiting = {start}, [start]
        while waiting:
            for other in following[waiting.pop()]:
                if other not in found and first <= self._places[other] <= last:
                    found.add(other)
                    waiting.append(other)
        return found
