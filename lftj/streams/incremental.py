"""Algorithm 4.8: from a circuit to its incremental version.

The incremental version of Q is D . Q . I: it maps the changes of the inputs to the changes of the outputs (definition
3.1). It is made operator by operator, by the chain rule (proposition 3.2):

    linear                 itself                                        theorem 3.3
    +  z^-1  I  D  loops   themselves                                    proposition 3.2
    a x b                  a x I(b)  +  z^-1(I(a)) x b                   theorem 3.4, two of whose terms are one here
    distinct               H(z^-1(I(d)), d)                              proposition 4.7
    by key                 f after less f before, of keys that change    definition 3.1
    nested                 every operator inside over all clocks         propositions 6.1, 6.2
    clock                  D . itself: it is the same of changes         clocks.py
    window                 inside the integral                           section 7.6.1
    late rows, lookups     D . f . I                                     definition 3.1

Before that, columns that nobody reads go (narrow.py), and a `distinct` whose effect a later one covers goes
(propositions 4.5, 4.6: fewer_distincts.py). Streams of a nested circuit are rewritten between a D where they come in
and an I where they go out, which cancel with the I and D of a fixpoint (inversion, proposition 2.22).
"""

from __future__ import annotations

from collections.abc import Callable

from lftj.streams.clocks import RangeWindow, WindowChange
from lftj.streams.distinct import Distinct, DistinctChange
from lftj.streams.fewer_distincts import consolidated
from lftj.streams.graph import Graph, Node
from lftj.streams.integral import Order, ascending
from lftj.streams.join import LEFT, RIGHT, Join
from lftj.streams.narrow import narrowed
from lftj.streams.nested import Nested
from lftj.streams.operators import (
    BILINEAR,
    CLOCK,
    CONSTANT,
    DEFINITION,
    DISTINCT,
    LINEAR,
    NESTED,
    PER_KEY,
    TIME,
    WINDOW,
    Delay,
    Differentiate,
    Input,
    Integrate,
    Plus,
)
from lftj.streams.timed import TimedChange, TimedJoin

INVERSION = "inversion (2.22)"


def incremental(graph: Graph) -> Graph:
    """The incremental version of a circuit, as a circuit."""
    graph = narrowed(consolidated(graph))
    rewriter = Rewriter(graph, clocks=1)
    rewriter.run()
    for name, node in graph.outputs.items():
        rewriter.made.expose(name, rewriter.of[node.number])
    return rewriter.made


def within(graph: Graph, clocks: int) -> Graph:
    """The same function of streams as a nested circuit, computed by changes: I . (D . Q . I) . D.

    `clocks` 2 or more: and by changes of the circuits around it, too.
    """
    rewriter = Rewriter(graph, clocks=clocks, nested=True)
    rewriter.run()
    for name, node in graph.outputs.items():
        changes = rewriter.of[node.number]
        rewriter.made.expose(name, rewriter.integral(changes, ascending(range(node.arity))))
    return rewriter.made


class Rewriter:
    """Makes the nodes of the incremental version: `of` maps a node's number to the node of its changes."""

    def __init__(self, graph: Graph, *, clocks: int, nested: bool = False) -> None:
        self.graph, self.made, self.clocks, self.nested = graph, Graph(nested=nested), clocks, nested
        self.of: dict[int, Node] = {}
        self._integrals: dict[tuple[int, Order], Node] = {}
        self._delays: dict[int, Node] = {}

    # -- all nodes ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Rewrite all nodes; loops and delays last, since what they read may come after them."""
        self.graph.check_connected()
        order = self.graph.order()
        # In their order, by which a nested circuit is given its values.
        for node in self.graph.inputs.values():
            self.of[node.number] = self._input(node)
        for node in order:
            if node.operator.strict:
                self.of[node.number] = self._node(node, [])
        for node in order:
            if not node.operator.strict and not isinstance(node.operator, Input):
                self.of[node.number] = self._rewritten(node)
        for node in order:
            if node.operator.strict:
                self.of[node.number].inputs[:] = [self.of[read.number] for read in node.inputs]

    def _node(self, node: Node, inputs: list[Node], why: str = "") -> Node:
        made = self.made.add(node.operator, inputs, node.columns, why=why, span=node.span)
        made.name = node.name
        return made

    def _rewritten(self, node: Node) -> Node:
        operator = node.operator
        reads = [self.of[read.number] for read in node.inputs]
        if isinstance(operator, Integrate) and isinstance(reads[0].operator, Differentiate):
            return reads[0].inputs[0]
        if isinstance(operator, Differentiate) and isinstance(reads[0].operator, Integrate):
            return reads[0].inputs[0]
        if operator.law == CONSTANT:
            pulse = operator.changes(self.clocks)  # type: ignore[attr-defined]
            return self.made.add(pulse, [], node.columns, why="constant (3.1)")
        if operator.law in (LINEAR, TIME):
            return self._node(node, reads, "linear (3.3)" if operator.law == LINEAR else "time (3.2)")
        ways: dict[str, Callable[[Node, list[Node]], Node]] = {
            BILINEAR: self._bilinear,
            DISTINCT: self._distinct,
            PER_KEY: self._per_key,
            NESTED: self._nested,
            CLOCK: self._clock,
            WINDOW: self._window,
            DEFINITION: self._definition,
        }
        made = ways[operator.law](node, reads)
        made.name = node.name
        return made

    def _input(self, node: Node) -> Node:
        made = self._node(node, [])
        if not self.nested:
            return made
        return self.made.add(Differentiate(node.arity), [made], node.columns, why="cycle (3.2)")

    def integral(self, node: Node, order: Order, why: str = INVERSION) -> Node:
        """I of a node, in an order; one for all that ask."""
        if isinstance(node.operator, Differentiate):
            return node.inputs[0]
        return self._sought(node, order, why)

    def delayed(self, integral: Node, why: str) -> Node:
        """`z^-1` of an integral; one for all that ask."""
        found = self._delays.get(integral.number)
        if found is None:
            operator = integral.operator
            assert isinstance(operator, Integrate)
            delay = Delay(integral.arity, operator.order)
            found = self._delays[integral.number] = self.made.add(delay, [integral], integral.columns, why=why)
        return found

    def _bilinear(self, node: Node, reads: list[Node]) -> Node:
        join = node.operator
        assert isinstance(join, Join)
        if self.clocks > 1:
            timed, why = TimedJoin(join, self.clocks - 1), f"bilinear (3.4) {self._times('times')} (6.1)"
            return self.made.add(timed, reads, node.columns, why=why, span=node.span)
        why = "bilinear (3.4)"
        left, right = reads
        now = self.made.add(
            join, [left, self._sought(right, join.order(RIGHT), why)], node.columns, why=why, span=node.span
        )
        before = self.delayed(self._sought(left, join.order(LEFT), why), why)
        past = self.made.add(join, [before, right], node.columns, why=why, span=node.span)
        return self.made.add(Plus(), [now, past], node.columns, why=why)

    def _sought(self, node: Node, order: Order, why: str) -> Node:
        """I of a node for whoever seeks in it: never the stream that a D was made of, which is in no order."""
        found = self._integrals.get((node.number, order))
        if found is None:
            found = self._integrals[node.number, order] = self.made.add(Integrate(order), [node], node.columns, why=why)
        return found

    def _distinct(self, node: Node, reads: list[Node]) -> Node:
        operator = node.operator
        assert isinstance(operator, Distinct)
        after = f", {node.why}" if node.why else ""
        if self.clocks > 1:
            change = TimedChange(operator, node.arity, "distinct", self.clocks - 1)
            why = f"distinct (4.7) over {self._times('clocks')} (6.2){after}"
            return self.made.add(change, reads, node.columns, why=why)
        why = f"distinct (4.7){after}"
        orders = [order for (number, order) in self._integrals if number == reads[0].number]
        order = orders[0] if orders else ascending(range(node.arity))
        before = self.delayed(self._sought(reads[0], order, why), why)
        return self.made.add(DistinctChange(), [before, reads[0]], node.columns, why=why, span=node.span)

    def _per_key(self, node: Node, reads: list[Node]) -> Node:
        if self.clocks > 1:
            change = TimedChange(node.operator, reads[0].arity, node.operator.label, self.clocks - 1)  # type: ignore[arg-type]
            return self.made.add(change, reads, node.columns, why=f"by key (3.1) over {self._times('clocks')} (6.2)")
        why = "by key (3.1)"
        made, order = node.operator.changes()  # type: ignore[attr-defined]
        if order is not None:
            after = self._sought(reads[0], order, why)
            reads = [reads[0], self.delayed(after, why), after]
        return self.made.add(made, reads, node.columns, why=why, span=node.span)

    def _nested(self, node: Node, reads: list[Node]) -> Node:
        operator = node.operator
        assert isinstance(operator, Nested)
        clocks = self.clocks + 1
        inner = Nested(within(operator.graph, clocks), operator.name, operator.limit, clocks)
        return self.made.add(inner, reads, node.columns, why="lifted cycle (6.1, 6.2)", span=node.span)

    def _times(self, what: str) -> str:
        """How many clocks, in words."""
        few = {("clocks", 2): "both clocks", ("times", 2): "twice"}
        return few.get((what, self.clocks), f"{self.clocks} {what}")

    def _clock(self, node: Node, reads: list[Node]) -> Node:
        return self._differences(self._node(node, reads, "clock"))

    def _window(self, node: Node, reads: list[Node]) -> Node:
        operator, clock = node.operator, reads[1]
        assert isinstance(operator, RangeWindow)
        bound = self.integral(clock, ascending(range(clock.arity)))
        why = "window inside I (7.6.1)"
        return self.made.add(WindowChange(operator), [reads[0], bound], node.columns, why=why, span=node.span)

    def _definition(self, node: Node, reads: list[Node]) -> Node:
        why = "definition (3.1)"
        orders = getattr(node.operator, "sought", (None,) * len(reads))
        values = [
            self.integral(read, ascending(range(read.arity))) if order is None else self._sought(read, order, why)
            for read, order in zip(reads, orders, strict=True)
        ]
        return self._differences(self._node(node, values, why))

    def _differences(self, node: Node) -> Node:
        """D of a node, which an I cancels."""
        return self.made.add(Differentiate(node.arity), [node], node.columns, why="definition (3.1)")
