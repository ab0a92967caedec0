"""The error that names a cycle: which nodes it goes through, as the user wrote them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.errors import CycleError
from lftj.evaluate.evaluator import Evaluator
from lftj.language.notation import literal_text
from lftj.recursion.key_graph import shortened
from scantree.version import Version


def way(edges: Version, start: int, goal: int) -> list[int]:
    """A shortest path along `edges` from `start` to `goal`, both included; there is one. Breadth first."""
    before: dict[int, int] = {}
    frontier = [start]
    while frontier and goal != start and goal not in before:
        found = edges.rows_under(np.array([sorted(frontier)], np.int64))
        frontier = []
        for node, successor in found.T.tolist():
            if successor != start and successor not in before:
                before[successor] = node
                frontier.append(successor)
    path = [goal]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]


def cycle_error(evaluator: Evaluator, edge: str, into: str, cycle: Sequence[int]) -> CycleError:
    """The error for a cycle of `edge`, from a node to itself."""
    kind = evaluator.relations[edge].schema.types[0]
    nodes = tuple(evaluator.decode(code, kind) for code in cycle)
    return CycleError(
        f"`{edge}` has a cycle: {shortened([literal_text(node, kind) for node in nodes])}",
        cycle=nodes,
        why=f"the paths that `{into}` counts would have no end along it",
        remedy=f"leave out one of these edges, or end the counting with `tx.remove_rules({into!r})`",
    )
