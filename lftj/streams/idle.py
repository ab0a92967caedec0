"""Circuits of changes that do nothing at a tick at which nothing changes.

Each stream is one of these at such a tick, after any tick before it:

    zero    no change                            inputs; what linear operators make of zeros; a zero joined with a past
    past    what it was at the tick before       integrals, their delays, clocks
    other   anything                             delays of changes, differences of a past that is delayed

A circuit of whose streams none is other, and whose outputs are zero, only passes changes on: such a tick may be left
out. Most circuits do; those with a delay of the user's, or an integral that goes out as it is, do not.
"""

from __future__ import annotations

from lftj.streams.clocks import Clock
from lftj.streams.constant import Pulse
from lftj.streams.distinct import DistinctChange
from lftj.streams.forget import ForgetfulIntegrate
from lftj.streams.graph import Graph, Node
from lftj.streams.join import Join
from lftj.streams.operators import Delay, Differentiate, Input, Integrate, Loop, Plus

ZERO, PAST, OTHER = "zero", "past", "other"


def passes_on(graph: Graph) -> bool:
    """Whether a circuit of changes does nothing at a tick, but for the first, at which no input has a row."""
    # Assumed of all, until something else follows: what comes back in a loop is made later.
    kinds: dict[int, str] = dict.fromkeys((node.number for node in graph.order()), ZERO)
    done = False
    while not done:
        done = True
        for node in graph.order():
            found, known = _kind(node, [kinds[read.number] for read in node.inputs]), kinds[node.number]
            if found != known and known != OTHER:
                kinds[node.number] = found if known == ZERO else OTHER
                done = False
    return OTHER not in kinds.values() and all(kinds[node.number] == ZERO for node in graph.outputs.values())


def _kind(node: Node, reads: list[str]) -> str:
    """What the stream of a node is, by those that it reads."""
    operator = node.operator
    if isinstance(operator, Input | Pulse):
        return ZERO
    if OTHER in reads:
        return OTHER
    if isinstance(operator, Integrate | ForgetfulIntegrate | Clock):
        return PAST if reads[0] == ZERO else OTHER
    if isinstance(operator, Delay | Differentiate):
        # Of changes, they give something of the tick before at the next; of a past too, unless it is that of this tick.
        past = PAST if isinstance(operator, Delay) else ZERO
        return past if _is_of_now(node.inputs[0]) else OTHER
    if isinstance(operator, Loop):
        return reads[0]
    if isinstance(operator, Join):
        return ZERO if ZERO in reads else OTHER
    if isinstance(operator, Plus):
        return ZERO if set(reads) == {ZERO} else OTHER
    # All others look at changes, beside pasts: nothing comes of none.
    return ZERO if reads[isinstance(operator, DistinctChange)] == ZERO else OTHER


def _is_of_now(node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, Integrate | ForgetfulIntegrate) or (isinstance(operator, Clock) and not operator.before)
