"""Path counts in plain Python: dictionaries, loops, integers of any size."""

from __future__ import annotations

from collections.abc import Iterable

Edge = tuple[int, int]
Counts = dict[tuple[int, int], int]


def has_cycle(edges: Iterable[Edge]) -> bool:
    left = set(edges)
    while True:
        targets = {y for _, y in left}
        kept = {(x, y) for x, y in left if x in targets}
        if kept == left:
            return bool(left)
        left = kept


def count(edges: Iterable[Edge]) -> Counts:
    """By a recursion over the successors."""
    successors: dict[int, list[int]] = {}
    for x, y in edges:
        successors.setdefault(x, []).append(y)
    done: dict[int, dict[int, int]] = {}

    def paths(node: int) -> dict[int, int]:
        if node not in done:
            found: dict[int, int] = {}
            for y in successors.get(node, ()):
                for b, n in (*paths(y).items(), (y, 1)):
                    found[b] = found.get(b, 0) + n
            done[node] = found
        return done[node]

    return {(a, b): n for a in successors for b, n in paths(a).items()}


def touched(edges: set[Edge], erased: set[Edge], inserted: set[Edge]) -> int:
    """The pairs that the changes touch one after the other, erases first, each in order."""
    now, pairs = set(edges), 0
    for edge in sorted(erased):
        now.discard(edge)
        pairs += _ends(now, edge)
    for edge in sorted(inserted):
        pairs += _ends(now, edge)
        now.add(edge)
    return pairs


def _ends(edges: set[Edge], edge: Edge) -> int:
    counts = count(edges)
    x, y = edge
    return (1 + sum(b == x for _, b in counts)) * (1 + sum(a == y for a, _ in counts))
