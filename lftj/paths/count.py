"""Counting paths from scratch: sources after their targets, each by its edges.

    T(x, b) = sum over the edges x -> y of  T(y, b), and 1 more if y is b

Nodes are taken in levels: a level is all nodes whose successors are done (Kahn, *Topological sorting of large
networks*, 1962, from the sinks). If none is left to take, what remains holds a cycle. The work is the sum over all
edges (x, y) of the number of nodes that y leads to.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lftj.errors import CountRangeError
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.clause import Clause, owner
from lftj.language.notation import literal_text
from lftj.paths.big_counts import Counts, Ints, between, narrowed, roomy, rows_of
from lftj.paths.cycle import cycle_error
from lftj.program.declare_paths import NUMBERS
from lftj.store.stored import StoredRelation
from scantree.version import Version

# Terms that are summed at a time.
TERMS = 1 << 20


class PathGraph:
    """The edges int64[2, m], distinct and in order, with nodes numbered in the order of their codes."""

    __slots__ = ("degrees", "nodes", "starts", "targets")

    def __init__(self, edges: Ints) -> None:
        self.nodes: Ints = np.unique(edges)
        sources, self.targets = np.searchsorted(self.nodes, edges)
        self.degrees = np.bincount(sources, minlength=len(self.nodes))
        self.starts = np.cumsum(self.degrees) - self.degrees

    def successors(self, some: Ints) -> Ints:
        """The targets of the edges from `some` nodes, node by node."""
        found: Ints = self.targets[_runs(self.starts[some], self.degrees[some])]
        return found

    def levels(self) -> tuple[list[Ints], Ints]:
        """The levels, from the sinks, and how many successors of each node are in none: all 0 if there is no cycle."""
        sources = np.repeat(np.arange(len(self.nodes)), self.degrees)[np.argsort(self.targets, kind="stable")]
        indegrees = np.bincount(self.targets, minlength=len(self.nodes))
        starts = np.cumsum(indegrees) - indegrees
        waiting, found = self.degrees.copy(), []
        level = np.flatnonzero(waiting == 0)
        while len(level):
            found.append(level)
            above, done = np.unique(sources[_runs(starts[level], indegrees[level])], return_counts=True)
            waiting[above] -= done
            level = above[waiting[above] == 0]
        return found, waiting

    def cycle(self, waiting: Ints) -> list[int]:
        """The codes of a cycle among the nodes with a successor that waits, from a node to itself."""
        node = int(np.argmax(waiting > 0))
        place: dict[int, int] = {}
        while node not in place:
            place[node] = len(place)
            after = self.successors(np.array([node]))
            node = int(after[np.argmax(waiting[after] > 0)])
        around = [*list(place)[place[node] :], node]
        return [int(code) for code in self.nodes[around]]


def _runs(starts: Ints, lengths: Ints) -> Ints:
    """The numbers of [start, start + length) for each, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def counted(evaluator: Evaluator, holder: StoredRelation, edge: str, into: str, limits: Limits) -> Version:
    """The counts over the relation `edge` of the evaluator's state, as a version of `holder`; not published.

    Raises `CycleError`, `TimeoutExpired`.
    """
    edges = evaluator.relations[edge].content.columns()
    graph = PathGraph(edges)
    levels, waiting = graph.levels()
    if waiting.any():
        raise cycle_error(evaluator, edge, into, graph.cycle(waiting))
    reached: list[Ints] = [np.empty(0, np.int64)] * len(graph.nodes)
    counts: list[Counts] = [np.empty(0, np.int64)] * len(graph.nodes)
    sizes, rows = np.zeros(len(graph.nodes), np.int64), 0
    for level in levels[1:]:
        for some in _parts(graph, level, sizes):
            limits.look(rows)
            bounds, others, sums = _summed(graph, some, sizes, reached, counts)
            sizes[some] = np.diff(bounds)
            for node, lo, hi in zip(some.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                reached[node], counts[node] = others[lo:hi], narrowed(sums[lo:hi])
            rows += len(others)
    src = np.repeat(graph.nodes, sizes)
    dst = graph.nodes[np.concatenate([np.empty(0, np.int64), *reached])]
    reached.clear()
    return holder.assemble([rows_of(src, dst, np.concatenate([np.empty(0, np.int64), *counts]))], in_order=True)


def _parts(graph: PathGraph, level: Ints, sizes: Ints) -> Iterator[Ints]:
    """The nodes of a level in parts of some TERMS terms each, or one node."""
    if not len(level):
        return
    terms = np.add.reduceat(sizes[graph.successors(level)] + 1, np.cumsum(graph.degrees[level]) - graph.degrees[level])
    cuts = np.flatnonzero(np.diff(np.cumsum(terms) // TERMS)) + 1
    yield from np.split(level, cuts)


def _summed(
    graph: PathGraph, some: Ints, sizes: Ints, reached: list[Ints], counts: list[Counts]
) -> tuple[Ints, Ints, Counts]:
    """What `some` nodes lead to: (where each begins [k + 1], other ends, counts)."""
    targets, n = graph.successors(some), len(graph.nodes)
    whose = np.repeat(np.arange(len(some)), graph.degrees[some])
    ends = np.concatenate([*(reached[y] for y in targets.tolist()), targets])
    terms: Counts = np.concatenate([*(counts[y] for y in targets.tolist()), np.ones(len(targets), np.int64)])
    keys = np.concatenate([np.repeat(whose, sizes[targets]), whose]) * n + ends
    order = np.argsort(keys, kind="stable")
    keys, terms = keys[order], terms[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    # A pair has a term per edge of its source at most, and one for an edge of its own.
    terms = roomy(terms, int(graph.degrees[some].max()) + 1)
    keys = keys[starts]
    return np.searchsorted(keys // n, np.arange(len(some) + 1)), keys % n, np.add.reduceat(terms, starts)


def derive_paths(evaluator: Evaluator, clause: Clause, limits: Limits) -> Version:
    """The content of the head of `clause`, one of the two of path counts, from scratch.

    Raises `CycleError`, or `CountRangeError` if a count is no number.
    """
    below = clause.atoms[0].predicate
    holder = evaluator.relations[clause.head]
    if clause.aggregate is None or clause.aggregate.op != NUMBERS:
        return counted(evaluator, holder, below, owner(clause.head), limits)
    big_counts = evaluator.relations[below].content
    check_range(evaluator, clause.head, big_counts)
    return holder.assemble([np.ascontiguousarray(big_counts.columns()[1:])], in_order=True)


def check_range(evaluator: Evaluator, into: str, big_counts: Version) -> None:
    """Raise `CountRangeError`, which names a pair, if a count is no number."""
    at = big_counts.seek([1])
    if at == big_counts.end():
        return
    _, src, dst, _ = big_counts.row(at)
    count = int(between(big_counts, np.array([src]), np.array([dst]))[0])
    kind = evaluator.relations[into].schema.types[0]
    ends = " to ".join(literal_text(evaluator.decode(code, kind), kind) for code in (src, dst))
    raise CountRangeError(
        f"`{into}` has a count that no number holds: {count} paths from {ends}",
        why="a number has 64 bits; the counts themselves are exact and are kept up to date",
        remedy="read them from what `db.path_counts` returned, where they are integers of any size",
    )
