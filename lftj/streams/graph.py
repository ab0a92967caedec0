"""Graphs of operators, and how they run: the part of a circuit that has no names for users.

A node is an operator with the nodes whose values it reads. Nodes run in an order in which each comes after what it
reads; a strict node is read before it is written: its value at a tick is known before anything else, and what comes in
is for the next tick. A cycle without a strict node has no such order, and is refused with the cycle named
(DBSP, section 2.2).

A tick maps the states of all nodes to the next ones. Nothing is changed in place: whoever runs the tick keeps the old
states until all of it succeeded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lftj.errors import Diagnostic, EvaluationError, ProgramError, Span
from lftj.language.types import of_class
from lftj.streams.circuit_memory import bytes_of
from lftj.streams.integral import ascending
from lftj.streams.operators import Columns, Input, Integrate, Loop, Operator, Room, Tick, Value
from lftj.values.schema import Column
from lftj.values.type_table import FAMILIES, is_type, type_of


class Node:
    """An operator in a circuit: `inputs` are the nodes it reads, `columns` those of its stream.

    `why`: the proposition by which a rewriting put it here, "" of what the user wrote. `span`: the user's Python line.
    `name`: what the user calls its stream.
    """

    __slots__ = ("columns", "inputs", "name", "number", "operator", "span", "why")

    def __init__(
        self, operator: Operator, inputs: Sequence[Node], columns: Columns, number: int, *, why: str, span: Span
    ) -> None:
        self.operator, self.inputs, self.columns = operator, list(inputs), columns
        self.number, self.why, self.span, self.name = number, why, span, ""

    @property
    def arity(self) -> int:
        """The number of columns of its stream."""
        return len(self.columns)

    def __repr__(self) -> str:
        read = ", ".join(f"s{node.number}" for node in self.inputs)
        return f"s{self.number} = {self.operator.label}({read})"


class Graph:
    """Nodes in the order in which they were made, and the streams that are read from outside, by name.

    `nested`: it runs within a tick of another one.
    """

    def __init__(self, *, nested: bool = False) -> None:
        self.nested = nested
        self.nodes: list[Node] = []
        self.inputs: dict[str, Node] = {}
        self.outputs: dict[str, Node] = {}
        # Integrals of outputs that somebody wants to read whole.
        self.kept: dict[str, Node] = {}
        self._order: list[Node] | None = None
        # By number, the nodes that were made to read a node; one may read another since.
        self._readers: dict[int, list[Node]] = {}
        # (rows of its value, seconds) of each node at the last tick, or of a nested circuit's all ticks of a run.
        self.seen: dict[int, tuple[int, float]] = {}

    def add(
        self, operator: Operator, inputs: Sequence[Node], columns: Columns, *, why: str = "", span: Span | None = None
    ) -> Node:
        """A new node."""
        node = Node(operator, inputs, columns, len(self.nodes), why=why, span=span or Span())
        self.nodes.append(node)
        for read in inputs:
            self._readers.setdefault(read.number, []).append(node)
        if isinstance(operator, Input):
            self.inputs[operator.name] = node
        self._order = None
        return node

    def connect(self, loop: Node, node: Node) -> None:
        """Let a loop read a node."""
        loop.inputs[:] = [node]
        self._readers.setdefault(node.number, []).append(loop)
        self._order = None

    def may_close_cycle(self, loop: Node, node: Node) -> bool:
        """Whether a cycle without a strict node may come of it where a loop reads a node: if not, there is none.

        It is sought from both ends by turns, until one has no more nodes: each looks at many only where both have many.
        """
        below = _reached(node, lambda one: () if one.operator.strict else one.inputs)
        above = _reached(loop, lambda one: [r for r in self._readers.get(one.number, ()) if not r.operator.strict])
        return any(one is loop or other is node for one, other in zip(below, above, strict=False))

    def copy(self) -> Graph:
        """The same nodes, to which others may be added."""
        made = Graph()
        made.nodes, made.inputs, made.outputs = [*self.nodes], dict(self.inputs), dict(self.outputs)
        made.kept = dict(self.kept)
        return made

    def replace(self, reader: Node, old: Node, new: Node) -> None:
        """Let a node read another node in the place of one."""
        reader.inputs[:] = [new if node is old else node for node in reader.inputs]
        self._order = None

    def expose(self, name: str, node: Node) -> None:
        """Let an output be the stream of a node."""
        self.outputs[name] = node
        self._order = None

    def keep(self, name: str) -> None:
        """Keep the integral of an output."""
        node = self.outputs[name]
        order = ascending(range(node.arity))
        self.kept[name] = self.add(Integrate(order), [node], node.columns, why="kept whole")

    def order(self) -> list[Node]:
        """The nodes that outputs depend on, each after what it reads but for strict ones.

        `ProgramError` with the cycle if there is one without a strict node.
        """
        if self._order is None:
            self._order = list(ordered([*self.outputs.values(), *self.kept.values()]))
        return self._order

    def check_cycles(self, node: Node) -> None:
        """`ProgramError` if a cycle without a strict node can be reached from a node."""
        for _ in ordered([node]):
            pass

    def check_connected(self) -> None:
        """`ProgramError` if an output depends on a placeholder that is nothing yet."""
        for node in self.order():
            if node.inputs or not isinstance(node.operator, Loop):
                continue
            raise ProgramError(
                [
                    Diagnostic(
                        f"the placeholder `{node.operator.name or 'loop'}` is not connected",
                        node.span,
                        why="an output depends on it, and it has no values",
                        remedy="say what it is: `circuit.connect(placeholder, stream)`",
                    )
                ]
            )

    def start(self, room: Room) -> dict[int, Any]:
        """The states of all nodes before the first tick."""
        self.check_connected()
        return {node.number: node.operator.start(room) for node in self.order()}

    def same(self, states: Mapping[int, Any], following: Mapping[int, Any]) -> bool:
        """Whether a tick left all states as they were."""
        for node in self.order():
            before, after = states[node.number], following[node.number]
            if before is not after and before != after:
                return False
        return True

    def memory(self, states: Mapping[int, Any]) -> int:
        """Bytes of the pages of all integrals, each once."""
        return bytes_of(states, set())

    def tick(
        self, states: Mapping[int, Any], given: Mapping[str, Value], tick: Tick
    ) -> tuple[dict[int, Value], dict[int, Any]]:
        """(the value of every node at a tick, the next states); `given`: the values of inputs, by name."""
        values: dict[int, Value] = {}
        following: dict[int, Any] = {}
        seen: dict[int, tuple[int, float]] = {}
        order = self.order()
        for node in order:
            if node.operator.strict:
                values[node.number] = node.operator.emit(states[node.number])  # type: ignore[attr-defined]
        for node in order:
            operator, number = node.operator, node.number
            if isinstance(operator, Input):
                values[number], following[number] = given[operator.name], None
            elif not operator.strict:
                began = time.perf_counter()
                values[number], following[number] = self._step(node, states[number], values, tick)
                seen[number] = len(values[number]), time.perf_counter() - began
            if operator.strict or isinstance(operator, Input):
                seen[number] = len(values[number]), 0.0
        for node in order:
            if node.operator.strict:
                _, following[node.number] = self._step(node, states[node.number], values, tick)
        self.seen = seen
        return values, following

    def _step(self, node: Node, state: Any, values: Mapping[int, Value], tick: Tick) -> tuple[Value, Any]:
        """The step of a node; an error that has no place names the outputs that the node is for."""
        try:
            return node.operator.step(state, [values[read.number] for read in node.inputs], tick)
        except EvaluationError as error:
            if not self.nested and not error.where:
                outputs = {**self.outputs, **self.kept}
                names = [f"`{name}`" for name, output in outputs.items() if node in ordered([output])]
                error.placed(f"output{'s' if len(names) > 1 else ''} {' and '.join(names)}")
            raise


def _reached(start: Node, following: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """The nodes that are reached from one, and it itself, each once."""
    seen, waiting = {start.number}, [start]
    while waiting:
        node = waiting.pop()
        yield node
        for other in following(node):
            if other.number not in seen:
                seen.add(other.number)
                waiting.append(other)


def ordered(outputs: Sequence[Node]) -> Iterator[Node]:
    """Nodes depth first, without recursion in Python: circuits of rules are deep."""
    done: set[int] = set()
    for output in outputs:
        # (node, which of its inputs is next); the nodes on the way are the path that a cycle shows on.
        path: list[tuple[Node, int]] = [(output, 0)] if output.number not in done else []
        open_nodes = {output.number}
        later: list[Node] = []
        while path or later:
            if not path:
                node = later.pop()
                if node.number in done:
                    continue
                path, open_nodes = [(node, 0)], {node.number}
            node, at = path[-1]
            if node.operator.strict and at == 0:
                # It is read before it is written: what it reads comes in its own time.
                path.pop()
                open_nodes.discard(node.number)
                if node.number not in done:
                    done.add(node.number)
                    later += node.inputs
                    yield node
                continue
            if at < len(node.inputs):
                path[-1] = (node, at + 1)
                read = node.inputs[at]
                if read.number in open_nodes:
                    raise _cycle([step for step, _ in path], read)
                if read.number not in done:
                    path.append((read, 0))
                    open_nodes.add(read.number)
                continue
            path.pop()
            open_nodes.discard(node.number)
            done.add(node.number)
            yield node


def _cycle(path: list[Node], again: Node) -> ProgramError:
    """The error of a cycle that no strict operator is in."""
    cycle = path[[node.number for node in path].index(again.number) :]
    shown = " <- ".join(node.name or node.operator.label for node in (*cycle, again))
    span = next((node.span for node in cycle if node.span.line), Span("<circuit>"))
    return ProgramError(
        [
            Diagnostic(
                f"a cycle without a delay: {shown}",
                span,
                why="a stream would depend on its own value at the same tick, which has no meaning",
                remedy="put `.delay()` on the stream that comes back, or use `circuit.nested()` for a fixpoint",
            )
        ]
    )


def named_columns(columns: Mapping[str, object]) -> Columns:
    """Columns from names and types, each the name of a type or the class of its values (`int`, `datetime.date`)."""
    from lftj.errors import DataError

    made = []
    for name, kind in columns.items():
        type_ = of_class(kind) if isinstance(kind, type) else kind
        if not isinstance(type_, str) or not is_type(type_):
            raise DataError(
                f"{kind!r} is no type of a column",
                where=f"column `{name}`",
                why=f"the types are {', '.join(FAMILIES)}",
                remedy='give int, float, str or another class of values, or a name such as "decimal(10,2)"',
            )
        made.append(Column(name, type_of(type_).name))
    return tuple(made)
