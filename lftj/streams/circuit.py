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
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from lftj import arguments
from lftj.arguments import function, instance, mapping, refused, size
from lftj.errors import (
    DataError,
    DataWarning,
    ForkError,
    MemoryLimitError,
    ProgramError,
    TransactionError,
    UnknownInputError,
)
from lftj.language.terms import check_name, here
from lftj.progress import Progress
from lftj.results.not_pickled import NotPickled
from lftj.streams import drawing
from lftj.streams import forget as forgetting
from lftj.streams.batches import ROWS, FromFile, batches, ticks, ticks_async
from lftj.streams.circuit_memory import Memory, memory_of
from lftj.streams.clocks import counters_of_late
from lftj.streams.constant import Constant
from lftj.streams.graph import Graph, Node, named_columns
from lftj.streams.incremental import incremental
from lftj.streams.narrow import columns_read
from lftj.streams.nested import LIMIT, Leave, Nested
from lftj.streams.operators import Input, Loop, Room, Tick, zset_of
from lftj.streams.step_rows import StepRows
from lftj.streams.stream import Stream, stream_of
from lftj.streams.weighted import WeightedRows
from lftj.streams.zsets import ZSet
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from scantree.locks import Lock
from scantree.memory import Arena, ArenaFullError

T = TypeVar("T")


class Made(NamedTuple):
    """A step that is made, and not published: of the values `given`, from the states `before` to those `following`."""

    given: dict[str, ZSet]
    before: dict[int, Any] | None
    following: dict[int, Any]
    outputs: dict[str, WeightedRows]
    touched: int


def by_input(name: str, value: object) -> Mapping[str, Any]:
    """An argument that says something of inputs, by their names."""
    return mapping(name, value, "it is a dict, by the names of inputs", f'give `{name}={{"bid": ...}}`')


def circuit_name(name: object) -> str:
    """The name of a circuit, or of one within."""
    return arguments.text("name", name, "errors and progress call the circuit by it", 'give a text, such as "bids"')


class Loops:
    """What circuits and nested circuits have in common: streams that are made later, and circuits within."""

    _graph: Graph

    def placeholder(self, name: str = "", /, **columns: object) -> Stream:
        """A stream with these columns that `connect` defines later. A cycle through it needs a delay."""
        return Stream(self._graph, self._graph.add(Loop(name), [], named_columns(columns), span=here()))

    def connect(self, placeholder: Stream, stream: Stream) -> None:
        """Let a placeholder be `stream`. `ProgramError` if that closes a cycle without a delay."""
        stream_of(self._graph, placeholder, "a placeholder is a stream that `placeholder` made")
        placeholder._compatible(stream)
        node = placeholder._node
        if not isinstance(node.operator, Loop) or node.inputs:
            raise DataError(
                f"{placeholder!r} is no open placeholder",
                why="a stream is defined once",
                remedy="make one with `circuit.placeholder(...)`, and connect it once",
            )
        looked_at = self._graph.may_close_cycle(node, stream._node)
        self._graph.connect(node, stream._node)
        if looked_at:
            try:
                self._graph.check_cycles(node)
            except ProgramError:
                node.inputs.clear()
                raise

    @contextmanager
    def nested(self, name: str = "nested", *, limit: int = LIMIT) -> Iterator[NestedCircuit]:
        """A circuit within, which runs to its end at each tick: `with c.nested("reach") as inner: ...`.

        `limit`: ticks after which a run that does not come to rest is given up, with an error.
        """
        why, remedy = "it is how often a nested circuit may tick", "give an integer from 1, or leave it out"
        if isinstance(limit, bool) or instance("limit", limit, int, why, remedy) < 1:
            raise refused("limit", limit, why, remedy)
        inner = NestedCircuit(self._graph, circuit_name(name), limit)
        yield inner
        inner._close()


class Circuit(Loops, NotPickled):
    """A circuit and its state. Threads: one steps at a time; what a step gave stays as it is."""

    _instead = "build it where it is to step, by the function that builds it here, and give it the rows"

    def __init__(self, name: str = "circuit", *, memory_limit: int | str | None = None) -> None:
        self.name = circuit_name(name)
        self.rows_touched = 0  # rows that the last step looked up in integrals and tables, found there, or changed
        self._graph = Graph()
        self._room = Room(Arena(size(memory_limit), ForkError), SymbolTable())
        self._changes = False  # whether it is the incremental version of another
        self._states: dict[int, Any] | None = None
        self._readers: dict[str, StepRows] = {}  # of each input; made when it first steps
        self._ticks = 0
        self._whole: list[str] = []
        self._progress = Progress()
        # Reentrant: what a source of a step asks of the circuit comes from the same thread.
        self._lock = Lock(ForkError, "the circuit")
        self._stepping = False

    def _sized(self, page_rows: int, dir_rows: int) -> Circuit:
        """The same circuit, with pages and directories of these sizes: tests force small ones."""
        self._room = self._room._replace(page_rows=page_rows, dir_rows=dir_rows)
        return self

    # -- writing it down ----------------------------------------------------------------------------------------------

    def input(self, name: str, /, **columns: object) -> Stream:
        """A stream that `step` gives values of. Columns: name=int, float, str or the name of a type."""
        check_name(name, "stream", ())
        self._building(f"input `{name}`")
        if name in self._graph.inputs:
            raise DataError(
                f"the circuit has an input `{name}` already", why="inputs have names of their own", remedy="rename one"
            )
        return Stream(self._graph, self._graph.add(Input(name), [], named_columns(columns), span=here()))

    def output(self, name: str, stream: Stream, *, whole: bool = False) -> None:
        """Let `step` give the values of a stream under this name.

        `whole`: the circuit of changes keeps the sum of them, too, for `value` to read.
        """
        check_name(name, "stream", ())
        self._building(f"output `{name}`")
        if name in self._graph.outputs:
            raise DataError(
                f"the circuit has an output `{name}` already",
                why="outputs have names of their own",
                remedy="rename one",
            )
        stream_of(self._graph, stream, "an output is a stream of this circuit")
        kept = arguments.flag("whole", whole)
        self._graph.expose(name, stream._node)
        if kept:
            self._whole.append(name)

    def incremental(self, *, forget: bool = True) -> Circuit:
        """The circuit that computes the changes of the outputs from those of the inputs (algorithm 4.8).

        `forget`: integrals drop what no row at or above the watermarks can ask for; it changes no answer.
        """
        forgets = arguments.flag("forget", forget) is not False
        made = Circuit(self.name)
        made._room = self._room._replace(arena=Arena(self._room.arena.limit, ForkError))
        made._graph, made._changes = self.changes_graph(forget=forgets), True
        for name in self._whole:
            made._graph.keep(name)
        return made

    @property
    def of_changes(self) -> bool:
        """Whether it was made by `incremental`: it takes changes, and gives changes."""
        return self._changes

    def changes_graph(self, *, forget: bool = True) -> Graph:
        """The nodes of the incremental version; its own, if it is one already."""
        if self._changes:
            return self._graph
        graph = incremental(self._graph)
        if forget:
            forgetting.forget(graph)
        return graph

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

        A value is what `Database.load` reads (rows of weight 1, or of that in a column `_weight`), what a step gave, or
        `streams.zset(rows, weights)`. Of other columns that are passed over a `DataWarning` tells once. Raises
        `DataError` for bad rows, `EvaluationError` if an operator has no value; then the circuit is as it was.
        """
        with self._lock:  # notes are of the last step
            made = self._alone(partial(self._made_of, inputs))
            notes = [(reader, reader.note) for reader in self._readers.values() if reader.note]
        for reader, note in notes:
            warnings.warn(note, DataWarning, stacklevel=2)  # which may be an error: then the step is not made
            reader.told.add(note)
        return self._taken(made)

    def _taken(self, made: Made) -> dict[str, WeightedRows]:
        """The values of the outputs at a step, which takes effect; it is made again after one of another thread."""
        while (values := self._published(made)) is None:
            made = self._alone(partial(self._made, made.given))
        return values

    def _alone(self, work: Callable[[], T]) -> T:
        """What `work` gives, while no other step is at work: those of other threads wait, one inside is refused."""
        with self._lock:
            if self._stepping:
                raise TransactionError(
                    "a step inside another",
                    why="a source or a function of the first makes it, and one step changes the circuit at a time",
                    remedy="make it after that one",
                )
            try:
                self._stepping = True
                return work()
            finally:
                self._stepping = False

    def _made_of(self, inputs: Mapping[str, Any] | None) -> Made:
        return self._made(self._given(inputs))

    def _made(self, given: dict[str, ZSet]) -> Made:
        """A step, which changes nothing before it is published."""
        graph, before, ticks = self._graph, self._states, self._ticks
        touched = self._room.arena.touched
        try:
            states = graph.start(self._room) if before is None else before
            with self._progress.step(f"stepping {self.name}"):
                values, following = graph.tick(states, given, Tick((ticks,), self._room))
        except ArenaFullError as full:
            raise MemoryLimitError(
                f"{full.needed:,} bytes of pages are needed, the limit is {full.limit:,}",
                why="the step was not made; the circuit is as it was before",
                remedy="raise `memory_limit=` of the circuit, or give smaller batches",
            ) from None
        outputs = {
            name: WeightedRows(Schema(name, node.columns), zset_of(values[node.number]), self._room.symbols)
            for name, node in graph.outputs.items()
        }
        return Made(given, before, following, outputs, self._room.arena.touched - touched)

    def _published(self, made: Made) -> dict[str, WeightedRows] | None:
        """The values of the outputs at a step, which takes effect; None if another step was made since it was begun.

        Without the lock, as its release is a call: after calls interrupts come, and the values would be lost.
        """
        if self._states is not made.before:
            return None
        self._states, self._ticks, self.rows_touched = made.following, self._ticks + 1, made.touched
        return made.outputs

    def value(self, name: str) -> WeightedRows:
        """All rows of an output now: the sum of its changes so far. Any thread may ask while another steps.

        Of a circuit of changes, for outputs with `whole=True`; `DataError` for others. It stays as it is.
        """
        node = self._graph.kept.get(str(name))
        if node is None:
            raise DataError(
                f"the circuit keeps no output {name!r} whole",
                why=f"it keeps {', '.join(self._graph.kept) or 'none'}; of others each step gives the change only",
                remedy="say so before it is made incremental: `circuit.output(name, stream, whole=True)`",
            )
        states = self._states
        zset = ZSet.zero(node.arity) if states is None else states[node.number].zset()
        return WeightedRows(Schema(name, node.columns), zset, self._room.symbols)

    def run(
        self, sources: Mapping[str, Any], *, rows: int = ROWS, follow: bool = False
    ) -> Iterator[dict[str, WeightedRows]]:
        """Step over batches of sources by input until all end; gives what each step gives.

        A source is a file (.ndjson, .csv, .tsv, .parquet, .arrow), an Arrow stream, a frame, or an iterable of batches.
        A batch is what `step` takes; columns beyond those of the input are passed over without a word.
        `rows`: at most so many of a file or frame at a time. `follow`: wait for what is appended to text files. A step
        that fails raises, and the circuit is as it was before it.
        """
        given, follows = by_input("sources", sources).items(), bool(arguments.flag("follow", follow))
        started = {name: self._batches(name, source, rows, follows) for name, source in given}
        for values in ticks(started):
            yield self._taken(self._alone(partial(self._made_of, values)))

    async def run_async(
        self, sources: Mapping[str, Any], *, rows: int = ROWS
    ) -> AsyncIterator[dict[str, WeightedRows]]:
        """`run`, over sources that may be asynchronous iterators of batches. Steps are computed in a thread.

        A task that is cancelled meanwhile leaves the circuit as it was.
        """
        named = by_input("sources", sources)
        self._check_inputs(named)
        started = {
            name: source if hasattr(source, "__aiter__") else self._batches(name, source, rows, follow=False)
            for name, source in named.items()
        }
        async for given in ticks_async(started):
            yield await self._step_beside(given)

    async def _step_beside(self, inputs: Mapping[str, Any]) -> dict[str, WeightedRows]:
        """A step that is computed in a thread, and published in that of the loop, between two tasks.

        So it takes effect only where what it gives arrives, in a task that was not cancelled.
        """
        made = await asyncio.to_thread(self._alone, partial(self._made_of, inputs))
        while (values := self._published(made)) is None:
            made = await asyncio.to_thread(self._alone, partial(self._made, made.given))
        return values

    def _batches(self, name: str, source: Any, rows: int, follow: bool) -> Iterator[Any]:
        self._check_inputs([name])
        return batches(source, self.inputs[name], name=name, rows=rows, follow=follow, wait=False)

    # -- what it keeps ------------------------------------------------------------------------------------------------

    @property
    def late(self) -> dict[str, int]:
        """How many rows were dropped because they came below a watermark: "bid.date_time" -> rows, by their weights."""
        with self._lock:
            states = self._states
            return {name: 0 if states is None else states[n] for name, n in counters_of_late(self._graph).items()}

    def memory(self) -> Memory:
        """Bytes of what it keeps, by node; see circuit_memory.py."""
        with self._lock:
            return memory_of(self._graph, self._states or {}, self._room.symbols.texts().nbytes)

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

    def _given(self, inputs: Mapping[str, Any] | None) -> dict[str, ZSet]:
        inputs = by_input("inputs", {} if inputs is None else inputs)
        self._check_inputs(inputs)
        if self._states is None:
            read_of = columns_read(self._graph)
            self._readers = {
                name: StepRows(Schema(name, node.columns), self._room.symbols, read_of[name])
                for name, node in self._graph.inputs.items()
            }
        for reader in self._readers.values():
            reader.note = ""
        return {name: self._coded(node, inputs.get(name)) for name, node in self._graph.inputs.items()}

    def _check_inputs(self, names: Iterable[str]) -> None:
        nodes = self._graph.inputs
        for name in names:
            if name not in nodes:
                from lftj.language.diagnostics import did_you_mean

                raise UnknownInputError(
                    f"the circuit has no input {name!r}",
                    why=f"its inputs are {', '.join(nodes) or 'none'}",
                    remedy=did_you_mean(str(name), list(nodes), "give one of these names"),
                )

    def _coded(self, node: Node, rows: Any) -> ZSet:
        assert isinstance(node.operator, Input)
        if rows is None:
            return ZSet.zero(node.arity)
        if isinstance(rows, FromFile):
            with rows.told():
                return self._coded(node, rows.table)
        return self._readers[node.operator.name].coded(rows)


class NestedCircuit(Loops):
    """A circuit within a circuit, while it is written down. `enter` and `leave` carry streams in and out."""

    def __init__(self, outside: Graph, name: str, limit: int) -> None:
        self._outside, self._graph, self._name, self._limit = outside, Graph(nested=True), name, limit
        self._entered: list[Node] = []
        self._left: list[tuple[Node, Node]] = []
        self._node: Node | None = None

    def delta0(self, stream: Stream) -> Stream:
        """The stream whose first value is that of `stream` at the tick outside, and then zero (definition 5.1)."""
        stream_of(self._outside, stream, "what comes in is a stream of the circuit around this one")
        self._entered.append(stream._node)
        made = self._graph.add(Input(f"i{len(self._entered)}"), [], stream._node.columns, span=here())
        return Stream(self._graph, made)

    def enter(self, stream: Stream) -> Stream:
        """The stream that has the value of `stream` at every tick inside: I(delta0(stream))."""
        return self.delta0(stream).integrate()

    def iterate(
        self,
        start: Stream,
        step: Callable[[Stream], Stream],
        *,
        condition: Callable[[Stream], Stream] | None = None,
    ) -> Stream:
        """`x := start; while (condition(x) has rows) x := step(x)`, as a stream inside to `leave` (section 7.7).

        `start` is a stream outside; without a condition the iteration ends when x does not change. A value that comes
        again without staying goes on for ever, up to `limit`. Both functions are of streams inside.
        """
        if getattr(start, "_graph", None) is not self._outside:
            raise DataError(
                "`start` is no stream of the circuit around this one",
                why="the iteration begins with its value at each tick outside",
                remedy="give a stream that was made outside",
            )
        function("step", step, "x")
        if condition is not None:
            function("condition", condition, "x")
        node = start._node
        loop = Stream(self._graph, self._graph.add(Loop("while"), [], node.columns, span=here()))
        before = current = loop.delay()
        # Nothing is computed of the x before the first, nor of one for which the condition does not hold: it stays.
        goes_on = Stream(self._graph, self._graph.add(Constant(((),), ()), [], (), span=here())).delay()
        following = self.delta0(start)
        if condition is not None:
            holds = condition(before)
            before._same_circuit(holds)
            goes_on = goes_on.semijoin(holds, on=[])
            current = before.semijoin(goes_on, on=[])
            following = following + (before - current)
        made = step(current)
        before._compatible(made)
        self.connect(loop, following + made.semijoin(goes_on, on=[]))
        return loop

    def definite_integral(self, stream: Stream) -> Stream:
        """The sum of a stream inside over all ticks, as a stream outside (definition 5.2)."""
        stream_of(self._graph, stream, "what goes out is a stream of this nested circuit")
        name = f"o{len(self._left)}"
        made = self._outside.add(Leave(len(self._left)), [], stream._node.columns, span=here())
        self._graph.expose(name, stream._node)
        self._left.append((stream._node, made))
        return Stream(self._outside, made)

    def leave(self, stream: Stream) -> Stream:
        """What a stream inside settles on, as a stream outside: the definite integral of its differences."""
        stream_of(self._graph, stream, "what goes out is a stream of this nested circuit")
        return self.definite_integral(stream.differentiate())

    def _close(self) -> None:
        self._graph.order()
        nested = Nested(self._graph, self._name, self._limit)
        node = self._outside.add(nested, self._entered, (), span=here())
        for _, leave in self._left:
            self._outside.connect(leave, node)
