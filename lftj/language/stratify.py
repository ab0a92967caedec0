"""Strata: which predicates depend on which, and the order in which they are evaluated.

A predicate depends on the predicates of its bodies. Predicates that depend on one another form a component;
components are emitted bottom up, each after all it depends on (Tarjan, *Depth-first search and linear graph
algorithms*, 1972, without recursion). The order is deterministic: it follows the first appearance of each predicate
as a head.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping


def components(graph: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """The strongly connected components of `graph` (predicate -> predicates of its bodies), bottom up.

    Names that are not keys of the graph are ignored. O(nodes + edges).
    """
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[tuple[str, ...]] = []
    position = {name: i for i, name in enumerate(graph)}
    for root in graph:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(graph[root]))]
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in graph:
                    continue
                if successor not in number:
                    number[successor] = low[successor] = len(number)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(graph[successor])))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], number[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    members = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        members.append(member)
                        if member == node:
                            break
                    found.append(tuple(sorted(members, key=position.__getitem__)))
    return found


def cycle(component: tuple[str, ...], graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The shortest cycle through the first predicate of a component, from and to it; empty if there is none."""
    start = component[0]
    found = path(start, start, component, graph)
    return found if len(found) > 1 else []


def path(start: str, end: str, members: Collection[str], graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The shortest path from `start` to `end` within `members`, both included; a way round if they are the same.

    `[start]` if they are the same and there is no way round. Breadth first.
    """
    before: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for successor in graph[node]:
            if successor == end:
                steps = [end, node]
                while node != start:
                    node = before[node]
                    steps.append(node)
                return steps[::-1]
            if successor in members and successor not in before:
                before[successor] = node
                queue.append(successor)
    return [start]
