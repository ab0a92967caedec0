"""Circuits: streams, operators over them, and a clock.

    c = streams.Circuit("bids")
    bid = c.input("bid", auction=int, price=int)
    c.output("dear", bid.filter("price > 100").distinct())
    changes = c.incremental()
    changes.step({"bid": [(1, 120), (2, 50)]})["dear"].inserted

`step` is one tick: it takes the values of the inputs at this tick and gives those of the outputs. A circuit says what
it computes of whole values; `incremental()` makes of it one that takes and gives changes, at a cost that follows the
changes (algorithm 4.8). A step that fails or is interrupted leaves the circuit as it was.

Source: M. Budiu et al., DBSP (VLDB 2023), sections 2 to 6.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from lftj.errors import DataError, ProgramError
from lftj.io.sources import read
from lftj.language.terms import check_name, here
from lftj.streams import drawing, sources
from lftj.streams.graph import Graph, Node, named_columns
from lftj.streams.incremental import incremental
from lftj.streams.narrow import columns_read
from lftj.streams.nested import LIMIT, Leave, Nested
from lftj.streams.operators import Input, Loop, Room, Tick, zset_of
from lftj.streams.sources import batches, ticks, ticks_async
from lftj.streams.stream import Stream
from lftj.streams.weighted import WeightedRows, weights_of
from lftj.streams.zsets import ZSet
from lftj.values.codes import Schema
from lftj.values.symbols import SymbolTable
from scantree.memory import Arena


class Loops:
    """What circuits and nested circuits have in common: placeholders for streams that are made later."""

    _graph: Graph

    def placeholder(self, name: str = "", /, **columns: object) -> Stream:
        """A stream with these columns that `connect` defines later. A cycle through it needs a delay."""
        return Stream(self._graph, self._graph.add(Loop(name), [], named_columns(columns), span=here()))

    def connect(self, placeholder: Stream, stream: Stream) -> None:
        """Let a placeholder be `stream`. `ProgramError` if that closes a cycle without a delay."""
        placeholder._compatible(stream)
        node = placeholder._node
        if not isinstance(node.operator, Loop) or node.inputs:
            raise DataError(
                f"{placeholder!r} is no open placeholder",
                why="a stream is defined once",
                remedy="make one with `circuit.placeholder(...)`, and connect it once",
            )
        self._graph.connect(node, stream._node)
        try:
            self._graph.check_cycles(node)
        except ProgramError:
            node.inputs.clear()
            raise


class Circuit(Loops):
    """A circuit and its state. Threads: one steps at a time; what a step gave stays as it is."""

    def __init__(self, name: str = "circuit", *, memory_limit: int | None = None) -> None:
        self.name = name
        self.rows_touched = 0  # rows that the last step looked up in integrals and tables, found there, or changed
        self._graph = Graph()
        self._room = Room(Arena(memory_limit), SymbolTable())
        self._changes = False  # whether it is the incremental version of another
        self._states: dict[int, Any] | None = None
        self._read: dict[str, frozenset[int]] = {}  # of each input, the columns that are read; known when it steps
        self._ticks = 0
        self._lock = threading.Lock()

    # -- writing it down ----------------------------------------------------------------------------------------------

    def input(self, name: str, /, **columns: object) -> Stream:
        """A stream that `step` gives values of. Columns: name=int, float, str or the name of a type."""
        check_name(name, "input", ())
        self._building(f"input `{name}`")
        if name in self._graph.inputs:
            raise DataError(
                f"the circuit has an input `{name}` already", why="inputs have names of their own", remedy="rename one"
            )
        return Stream(self._graph, self._graph.add(Input(name), [], named_columns(columns), span=here()))

    def output(self, name: str, stream: Stream) -> None:
        """Let `step` give the values of a stream under this name."""
        check_name(name, "output", ())
        self._building(f"output `{name}`")
        if stream._graph is not self._graph:
            stream._same_circuit(Stream(self._graph, stream._node))
        self._graph.expose(name, stream._node)

    @contextmanager
    def nested(self, name: str = "nested", *, limit: int = LIMIT) -> Iterator[NestedCircuit]:
        """A circuit within, which runs to its end at each tick: `with c.nested("reach") as inner: ...`.

        `limit`: ticks after which a run that does not come to rest is given up, with an error.
        """
        inner = NestedCircuit(self._graph, name, limit)
        yield inner
        inner._close()

    def incremental(self) -> Circuit:
        """The circuit that computes the changes of the outputs from those of the inputs (algorithm 4.8)."""
        made = Circuit(self.name, memory_limit=None)
        made._room = Room(Arena(), self._room.symbols, self._room.page_rows, self._room.dir_rows)
        made._graph, made._changes = self.changes_graph(), True
        return made

    @property
    def of_changes(self) -> bool:
        """Whether it was made by `incremental`: it takes changes, and gives changes."""
        return self._changes

    def changes_graph(self) -> Graph:
        """The nodes of the incremental version; its own, if it is one already."""
        return self._graph if self._changes else incremental(self._graph)

    def _building(self, what: str) -> None:
        if self._states is not None:
            raise DataError(
                f"{what} comes too late: the circuit has stepped",
                why="what it remembers belongs to the operators it had",
                remedy="add inputs and outputs before the first step",
            )

    # -- stepping -----------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> dict[str, dict[str, str]]:
        """The columns of each input, by name."""
        return {name: {c.name: c.type for c in node.columns} for name, node in self._graph.inputs.items()}

    @property
    def outputs(self) -> dict[str, dict[str, str]]:
        """The columns of each output, by name."""
        return {name: {c.name: c.type for c in node.columns} for name, node in self._graph.outputs.items()}

    def step(self, inputs: Mapping[str, Any] | None = None) -> dict[str, WeightedRows]:
        """One tick: the values of inputs by name (those not named are zero) to the values of all outputs.

        A value is what `Database.load` reads (rows of weight 1) or `streams.zset(rows, weights)`. Raises `DataError`
        for bad rows, `EvaluationError` if an operator has no value; then the circuit is as it was.
        """
        with self._lock:
            graph = self._graph
            states = graph.start(self._room) if self._states is None else self._states
            given = self._given(inputs or {})
            touched = self._room.arena.touched
            values, following = graph.tick(states, given, Tick(self._ticks, self._room))
            made = {
                name: WeightedRows(Schema(name, node.columns), zset_of(values[node.number]), self._room.symbols)
                for name, node in graph.outputs.items()
            }
            self._states, self._ticks = following, self._ticks + 1
            self.rows_touched = self._room.arena.touched - touched
            return made

    def run(
        self, sources: Mapping[str, Any], *, rows: int = sources.ROWS, follow: bool = False
    ) -> Iterator[dict[str, WeightedRows]]:
        """Step over batches of sources by input until all end; gives what each step gives.

        A source is a file (.ndjson, .csv, .tsv, .parquet, .arrow), an Arrow stream, a frame, or an iterable of batches.
        `rows`: at most so many of a file or frame at a time. `follow`: wait for what is appended to text files. A step
        that fails raises, and the circuit is as it was before it.
        """
        started = {name: self._batches(name, source, rows, follow) for name, source in sources.items()}
        for given in ticks(started):
            yield self.step(given)

    async def run_async(
        self, sources: Mapping[str, Any], *, rows: int = sources.ROWS
    ) -> AsyncIterator[dict[str, WeightedRows]]:
        """`run`, over sources that may be asynchronous iterators of batches. Steps run in a thread."""
        started = {
            name: source if hasattr(source, "__aiter__") else self._batches(name, source, rows, follow=False)
            for name, source in sources.items()
        }
        async for given in ticks_async(started):
            yield await asyncio.to_thread(self.step, given)

    def _batches(self, name: str, source: Any, rows: int, follow: bool) -> Iterator[Any]:
        self._check_inputs([name])
        return batches(source, self.inputs[name], rows=rows, follow=follow)

    # -- looking at it ------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return drawing.text(self._graph, self._title())

    def __repr__(self) -> str:
        return self._title()

    def _title(self) -> str:
        kind = "of changes" if self._changes else "of whole values"
        return f"circuit {self.name}, {kind}, after {self._ticks:,} ticks"

    def svg(self) -> str:
        """The circuit as a drawing: one SVG element. Streams show the rows of the last step, boxes its milliseconds."""
        return drawing.svg(self._graph, self._title())

    def _repr_svg_(self) -> str:
        return self.svg()

    def explain(self) -> str:
        """The circuit as text, one operator a line: what put it there, and the rows and milliseconds of the last step.

        The proposition of the paper by which `incremental` put it there is at the end of its line.
        """
        return str(self)

    def _given(self, inputs: Mapping[str, Any]) -> dict[str, ZSet]:
        self._check_inputs(inputs)
        if self._states is None:
            self._read = columns_read(self._graph)
        return {name: self._coded(node, inputs.get(name)) for name, node in self._graph.inputs.items()}

    def _check_inputs(self, names: Iterable[str]) -> None:
        nodes = self._graph.inputs
        for name in names:
            if name not in nodes:
                from lftj.language.diagnostics import did_you_mean

                raise DataError(
                    f"the circuit has no input {name!r}",
                    why=f"its inputs are {', '.join(nodes) or 'none'}",
                    remedy=did_you_mean(str(name), list(nodes), "give one of these names"),
                )

    def _coded(self, node: Node, rows: Any) -> ZSet:
        assert isinstance(node.operator, Input)
        schema = Schema(node.operator.name, node.columns)
        if rows is None:
            return ZSet.zero(node.arity)
        if isinstance(rows, WeightedRows):
            return rows.coded(schema, self._room.symbols)
        rows, weights = weights_of(rows)
        loaded = read(rows, schema, self._room.symbols, only=self._read[node.operator.name])
        codes = np.stack(loaded.columns) if loaded.columns else np.empty((0, loaded.rows), np.int64)
        return ZSet.of_rows(codes) if weights is None else ZSet(codes, weights)


class NestedCircuit(Loops):
    """A circuit within a circuit, while it is written down. `enter` and `leave` carry streams in and out."""

    def __init__(self, outside: Graph, name: str, limit: int) -> None:
        self._outside, self._graph, self._name, self._limit = outside, Graph(), name, limit
        self._entered: list[Node] = []
        self._left: list[tuple[Node, Node]] = []
        self._node: Node | None = None

    def delta0(self, stream: Stream) -> Stream:
        """The stream whose first value is that of `stream` at the tick outside, and then zero (definition 5.1)."""
        self._entered.append(stream._node)
        made = self._graph.add(Input(f"i{len(self._entered)}"), [], stream._node.columns, span=here())
        return Stream(self._graph, made)

    def enter(self, stream: Stream) -> Stream:
        """The stream that has the value of `stream` at every tick inside: I(delta0(stream))."""
        return self.delta0(stream).integrate()

    def definite_integral(self, stream: Stream) -> Stream:
        """The sum of a stream inside over all ticks, as a stream outside (definition 5.2)."""
        name = f"o{len(self._left)}"
        made = self._outside.add(Leave(len(self._left)), [], stream._node.columns, span=here())
        self._graph.expose(name, stream._node)
        self._left.append((stream._node, made))
        return Stream(self._outside, made)

    def leave(self, stream: Stream) -> Stream:
        """What a stream inside settles on, as a stream outside: the definite integral of its differences."""
        return self.definite_integral(stream.differentiate())

    def _close(self) -> None:
        self._graph.order()
        nested = Nested(self._graph, self._name, self._limit)
        node = self._outside.add(nested, self._entered, (), span=here())
        for _, leave in self._left:
            self._outside.connect(leave, node)
