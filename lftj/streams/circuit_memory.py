"""What a circuit keeps: bytes of pages of its integrals, node by node, and of the texts of its symbols.

    str(circuit.memory())       one line for each node that keeps something, and the sum
    circuit.memory().integrals  bytes by node, "s12 I bid (auction, date_time)" say

A node's bytes are those of the pages that its versions refer to, and of the Z-sets that it remembers; pages that an
integral shares with the delay of it are counted once. Integrals hold what somebody may still ask for: below a
watermark they forget (forget.py), and memory is bounded by the windows. Texts are never forgotten: the dictionary of
symbols grows with every text that is new, so streams with ever new texts (urls, say) grow by those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.evaluate.accumulators import Accumulators
from lftj.streams.integral import Integral
from lftj.streams.zsets import ZSet
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.streams.graph import Graph, Node


class Memory(NamedTuple):
    """Bytes: of `integrals` by node, of `texts`, and `total`, their sum."""

    integrals: Mapping[str, int]
    texts: int
    total: int

    def __str__(self) -> str:
        shown = {**self.integrals, "texts": self.texts, "total": self.total}
        width = max(map(len, shown))
        return "\n".join(f"{name:<{width}}  {size:>15,} bytes" for name, size in shown.items())


def memory_of(graph: Graph, states: Mapping[int, Any], texts: int) -> Memory:
    """What the nodes of a circuit keep."""
    seen: set[int] = set()
    sizes: dict[str, int] = {}
    # Delays last: what they share with the integral that they delay is the integral's.
    for number, node in sorted(enumerate(graph.order()), key=lambda numbered: numbered[1].operator.strict):
        size = bytes_of(states.get(node.number), seen)
        if size:
            sizes[_name(number, node)] = size
    return Memory(sizes, texts, sum(sizes.values()) + texts)


def _name(number: int, node: Node) -> str:
    """As the circuit prints it, and the columns that it reads."""
    read = node.inputs[0] if node.inputs else node
    name = node.name or read.name
    shown = f"s{number} {node.operator.label}" + (f" {name}" if name else "")
    return f"{shown} ({', '.join(column.name for column in read.columns)})"


def bytes_of(state: Any, seen: set[int]) -> int:
    """Bytes of all that a state refers to and that is not in `seen` (the roots of versions), to which it is added."""
    if isinstance(state, Version):
        if state.root in seen or not len(state):
            return 0
        seen.add(state.root)
        return state.memory()
    if isinstance(state, Integral):
        return bytes_of(state.version, seen)
    if isinstance(state, Accumulators):
        return bytes_of(state.table, seen) + bytes_of(state.segments, seen)
    if isinstance(state, ZSet):
        return state.rows.nbytes + state.weights.nbytes
    if isinstance(state, Mapping):
        return sum(bytes_of(part, seen) for part in state.values())
    if isinstance(state, tuple):
        return sum(bytes_of(part, seen) for part in state)
    return 0
