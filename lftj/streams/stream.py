"""Streams, as a circuit is written down: `bid.filter("price > 100").join(auction, on={"auction": "id"})`.

A stream has a Z-set per tick of its circuit's clock. Every method adds one operator, or a few, to the circuit and gives
the stream of its values; nothing is computed before the circuit steps. Columns are named and typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lftj import arguments
from lftj.arguments import mapping, refused
from lftj.errors import DataError
from lftj.language.clause import Compare, Term, Value, Var
from lftj.language.null import FULL, admitted, is_null
from lftj.language.terms import here
from lftj.language.types import comparable, narrower
from lftj.streams.distinct import Distinct
from lftj.streams.expressions import Map, check_names, checked_value, filtered, mapped, unknown_column
from lftj.streams.functions import applied
from lftj.streams.integral import ascending
from lftj.streams.join import LEFT, RIGHT, Join
from lftj.streams.operators import Columns, Delay, Differentiate, Integrate, Negate, Operator, Plus, Project
from lftj.values.schema import Column
from lftj.values.type_table import is_nullable, with_null

if TYPE_CHECKING:
    from lftj.streams.graph import Graph, Node
    from lftj.streams.group_by import Groups

On = str | Sequence[str] | Mapping[str, str]


class Stream:
    """A stream of a circuit. Made by `Circuit.input` and by the methods of other streams."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph, self._node = graph, node

    @property
    def columns(self) -> dict[str, str]:
        """Column name -> type, in order."""
        return {column.name: column.type for column in self._node.columns}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}:{type_}" for name, type_ in self.columns.items())
        return f"Stream({shown}) of {self._node.operator.label}"

    def named(self, name: str) -> Stream:
        """The same stream, which prints and errors call `name`."""
        why, remedy = "prints and errors call the stream by it", 'give a text, such as "bids"'
        self._node.name = arguments.text("name", name, why, remedy)
        return self

    def _made(self, operator: Operator, columns: Columns, *others: Stream) -> Stream:
        """The stream of an operator over this one and others. `DataError` if two columns would have one name."""
        for other in others:
            self._same_circuit(other)
        check_names([column.name for column in columns])
        nodes = [self._node, *(other._node for other in others)]
        return Stream(self._graph, self._graph.add(operator, nodes, columns, span=here()))

    def _same_circuit(self, other: object) -> None:
        stream_of(self._graph, other, "operators take streams of the same circuit")

    def _places(self, names: Sequence[object]) -> tuple[int, ...]:
        known = list(self.columns)
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise unknown_column(name, self._node.columns)
        return tuple(known.index(str(name)) for name in names)

    # -- linear -------------------------------------------------------------------------------------------------------

    def filter(self, condition: str) -> Stream:
        """The rows that meet a condition, or several with commas between, as a rule's body writes them."""
        arguments.text(
            "condition", condition, "it is a condition on the columns of a row", 'give `filter("price > 100")`'
        )
        return self._made(filtered(self._node.columns, condition), self._node.columns)

    def map(self, *kept: str, **computed: str) -> Stream:
        """Rows of the columns `kept`, then of those that are `computed` by expressions over this stream's columns."""
        self._places(kept)
        check_names([*kept, *computed])
        made: dict[str, str | None] = dict.fromkeys(kept)
        for name, text in computed.items():
            made[name] = text
        operator, columns = mapped(self._node.columns, made)
        return self._made(operator, columns)

    def apply(self, function: Callable[..., Any], *names: str, flat: bool = False, **made: object) -> Stream:
        """Every row with more columns `made` (name=int, float, str), computed of columns `names` by a Python function.

        It is called with an Arrow array per name, and gives an array or a list per new column (one alone, or a tuple of
        them). It must be a function of each row alone. `flat`: a row may give any number of rows; the function then
        gives first, as int64[n], the place of the row that each of its rows comes from.
        """
        operator = applied(self._node.columns, function, names, made, bool(arguments.flag("flat", flat)))
        return self._made(operator, (*self._node.columns, *operator.made))

    def select(self, *names: str) -> Stream:
        """The projection to columns, in this order. Weights of rows that become equal add up."""
        places = self._places(names)
        return self._made(Project(places), tuple(self._node.columns[place] for place in places))

    def rename(self, **names: str) -> Stream:
        """The same rows, with other names for columns: `old="new"`."""
        self._places(list(names))
        columns = tuple(Column(names.get(column.name, column.name), column.type) for column in self._node.columns)
        return self._made(Project(tuple(range(len(columns)))), columns)

    def __neg__(self) -> Stream:
        return self._made(Negate(), self._node.columns)

    def __add__(self, other: object) -> Stream:
        """The sum: of bags, the union that keeps multiplicities."""
        self._compatible(other)
        return self._made(Plus(), self._node.columns, other)  # type: ignore[arg-type]

    def __sub__(self, other: object) -> Stream:
        """The difference of weights."""
        self._compatible(other)
        assert isinstance(other, Stream)
        return self + -other

    def _compatible(self, other: object) -> None:
        self._same_circuit(other)
        assert isinstance(other, Stream)
        if list(self.columns.values()) != list(other.columns.values()):
            raise DataError(
                "the two streams have columns of different types",
                why=f"they are {', '.join(self.columns.values())} and {', '.join(other.columns.values())}, and rows of "
                "both become rows of one stream",
                remedy="bring both to the same columns with `select` or `map`",
            )

    # -- sets ---------------------------------------------------------------------------------------------------------

    def distinct(self) -> Stream:
        """The set of the rows of positive weight."""
        return self._made(Distinct(self._node.arity), self._node.columns)

    def union(self, other: Stream) -> Stream:
        """The rows of either, as a set."""
        return (self + other).distinct()

    def difference(self, other: Stream) -> Stream:
        """The rows of this one that the other does not have, both taken as sets."""
        self._compatible(other)
        return (self.distinct() - other.distinct()).distinct()

    def intersect(self, other: Stream) -> Stream:
        """The rows that both have, both taken as sets."""
        self._compatible(other)
        names = list(self.columns)
        return self.distinct()._joined(other.distinct(), dict(zip(names, other.columns, strict=True)), Join)

    # -- joins --------------------------------------------------------------------------------------------------------

    def join(self, other: Stream, on: On) -> Stream:
        """Pairs of rows that agree in columns: `on="id"`, `on=["a", "b"]`, or `on={"auction": "id"}` (left: right).

        The columns of this stream, then those of the other that are no key. Weights multiply. Null agrees with nothing,
        in the other joins too.
        """
        left, right = self._without_null_keys(other, *self._keys(other, on))
        return left._joined(right, on, Join)

    def _without_null_keys(self, other: Stream, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[Stream, Stream]:
        """The two streams, one of them without the rows whose keys hold null, so that these match nothing."""
        theirs = [i for i in right if is_nullable(other._node.columns[i].type)]
        mine = [
            i for i, j in zip(left, right, strict=True) if is_nullable(self._node.columns[i].type) and j not in theirs
        ]
        return self._without_null(mine), other._without_null(theirs)

    def _without_null(self, places: Sequence[int]) -> Stream:
        """The rows without null in some columns, which may hold it."""
        if not places:
            return self
        columns = self._node.columns
        conditions = tuple(is_null(Var(columns[i].name, columns[i].type), holds=False) for i in places)
        text = ", ".join(f"!is_null({columns[i].name})" for i in places)
        return self._made(Map(tuple(column.name for column in columns), conditions, None, text), columns)

    def _compared(self, column: Column, op: str, value: Value, text: str) -> Stream:
        """The rows whose `column` compares so with a value; `text` says which these are."""
        columns = self._node.columns
        condition = Compare(op, Var(column.name, column.type), value)
        return self._made(Map(tuple(c.name for c in columns), (condition,), None, text), columns)

    def _joined(self, other: Stream, on: On, kind: Callable[..., Join]) -> Stream:
        """A join of some kind, made of its keys, columns and arities. Null agrees with null in it, as in a group."""
        left, right = self._keys(other, on)
        kept = [i for i in range(other._node.arity) if i not in right]
        columns = (*self._node.columns, *(other._node.columns[i] for i in kept))
        names = [column.name for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise DataError(
                    f"both streams have a column `{name}` that is no key",
                    why="columns of a joined row are known by their names",
                    remedy=f'rename one before the join: `.rename({name}="...")`, or select without it',
                )
        out = (*((LEFT, i) for i in range(self._node.arity)), *((RIGHT, i) for i in kept))
        return self._made(kind((left, right), out, (self._node.arity, other._node.arity)), columns, other)

    def _keys(self, other: Stream, on: On) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The places of the columns that rows agree in: of this stream, and of the other."""
        self._same_circuit(other)
        if not isinstance(on, str | Mapping | Sequence):
            raise refused("on", on, "it names the columns that rows agree in", 'give "id", ["a", "b"] or {"a": "id"}')
        mine = [on] if isinstance(on, str) else list(on)
        self._places(mine)  # before they are keys, which not all objects can be
        pairs = dict(on) if isinstance(on, Mapping) else dict(zip(mine, mine, strict=True))
        left, right = self._places(list(pairs)), other._places(list(pairs.values()))
        for i, j in zip(left, right, strict=True):
            one, two = self._node.columns[i], other._node.columns[j]
            if not comparable(one.type, two.type):
                raise DataError(
                    f"`{one.name}` is of type {one.type}, `{two.name}` of type {two.type}",
                    why="rows are joined where these columns are equal",
                    remedy="bring both to one type with `map`",
                )
        return left, right

    def semijoin(self, other: Stream, on: On) -> Stream:
        """The rows that agree with some row of the other in columns; weights stay."""
        return self._semijoined(other, *self._keys(other, on))

    def _semijoined(
        self, other: Stream, left: tuple[int, ...], right: tuple[int, ...], *, nulls: bool = False
    ) -> Stream:
        """The rows that agree with some row of the other in columns by their places; `nulls`: null agrees with null."""
        mine, theirs = (self, other) if nulls else self._without_null_keys(other, left, right)
        # One column may be several keys, so that names of columns do not do.
        columns = tuple(Column(f"·{i}", other._node.columns[place].type) for i, place in enumerate(right))
        keys = theirs._made(Project(right), columns).distinct()
        out = tuple((LEFT, i) for i in range(self._node.arity))
        join = Join((left, tuple(range(len(right)))), out, (self._node.arity, len(right)))
        return mine._made(join, self._node.columns, keys)

    def antijoin(self, other: Stream, on: On) -> Stream:
        """The rows that agree with no row of the other in columns; weights stay."""
        return self - self.semijoin(other, on)

    def left_join(self, other: Stream, on: On, *, fill: Mapping[str, object] | None = None) -> Stream:
        """The join, and the rows of this stream without a match, with `fill` for the other's columns by name.

        Columns that `fill` does not name are null, if they admit it.
        """
        joined, filling = self.join(other, on), _filling(fill)
        keys, _ = self._keys(other, on)
        for place, name in enumerate(self.columns):
            if name in filling and place not in keys:
                raise DataError(
                    f"`fill` names `{name}`, which no row lacks",
                    why="it is a column of the left stream, and a left join has the rows of that with their own values",
                    remedy=f"name columns of the other stream; `map` with `coalesce({name}, ...)` gives null a value",
                )
        return joined + self._filled(self.antijoin(other, on), joined, self._own_names(), filling)

    def _own_names(self) -> dict[str, str]:
        return {name: name for name in self.columns}

    def full_join(self, other: Stream, on: On, *, fill: Mapping[str, object] | None = None) -> Stream:
        """The join, and the rows of either stream without a match, with `fill` as in `left_join`.

        Keys of both go to one column, which has room for the decimals of both and admits null where one does. The value
        whose code is null there is an error.
        """
        joined = self.join(other, on)
        left, right = self._keys(other, on)
        # A row of the other stream has its keys in columns of this one, which then admit what those do.
        columns = list(joined._node.columns)
        for i, j in zip(left, right, strict=True):
            columns[i] = Column(columns[i].name, type_of_either(columns[i].type, other._node.columns[j].type))
        if tuple(columns) != tuple(joined._node.columns):
            joined = joined._made(Project(tuple(range(len(columns)))), tuple(columns))
        names = {name: name for place, name in enumerate(other.columns) if place not in right}
        names |= {self._node.columns[i].name: other._node.columns[j].name for i, j in zip(left, right, strict=True)}
        mine, alone = self.antijoin(other, on), other - other._semijoined(self, right, left)
        filling = _filling(fill)
        filled = self._filled(mine, joined, self._own_names(), filling)
        return joined + filled + self._filled(alone, joined, names, filling)

    def _filled(self, rows: Stream, like: Stream, names: Mapping[str, str], fill: Mapping[str, object]) -> Stream:
        """Rows with the columns of `like`: those of their own that `names` says by name, or what `fill` says."""
        like._places(list(fill))
        # Those of columns that no row lacks are not used, and looked at all the same.
        values = {c.name: checked_value(fill[c.name], c) for c in like._node.columns if c.name in fill}
        known = rows.columns
        terms: list[Term] = []
        conditions: list[Compare] = []
        for column in like._node.columns:
            own = names.get(column.name)
            if own is not None:
                terms.append(Var(own, column.type))
                if is_nullable(column.type) and known[own] in FULL:
                    conditions.append(admitted(Var(own, known[own])))
                continue
            if column.name not in values and not is_nullable(column.type):
                raise DataError(
                    f"a row without a match has no value for `{column.name}`",
                    why=f"null is none of the values of {column.type}",
                    remedy=f'say what stands for it: `fill={{"{column.name}": ...}}`',
                )
            terms.append(Value(values.get(column.name), column.type))
        text = ", ".join(f"{c.name} = {t}" for c, t in zip(like._node.columns, terms, strict=True))
        return rows._made(Map(tuple(known), tuple(conditions), tuple(terms), text), like._node.columns)

    def interval_join(self, other: Stream, on: On, *, time: tuple[str, str], within: tuple[int, int]) -> Stream:
        """Of the pairs of `join` those near in time: `within[0] <= other's time - this one's <= within[1]`.

        `time`: the column of this stream and that of the other. State is bounded if both streams have a watermark.
        """
        from lftj.streams.timewise import interval_join

        return interval_join(self, other, on, time, within)

    def lookup(self, other: Stream, on: On) -> Stream:
        """Each change of this stream, joined with what the other holds at that tick, as in `join`.

        What the other does later is not seen, and nothing of this stream is kept (DBSP, section 7.6).
        """
        from lftj.streams.timewise import lookup

        return lookup(self, other, on)

    # -- groups -------------------------------------------------------------------------------------------------------

    def group_by(self, *names: str) -> Groups:
        """The rows by the values of columns, for `aggregate`, `top`, `first`, `lag` and `lead`; see group_by.py."""
        from lftj.streams.group_by import Groups

        return Groups(self, names)

    # -- the time that rows carry -------------------------------------------------------------------------------------

    def watermark(self, column: str, lateness: int = 0) -> Stream:
        """The rows that come in time: not below the greatest time of `column` up to the last tick, less `lateness`.

        Rows that come (or go) later are dropped and counted in `Circuit.late`; what is there stays. What is computed
        from the stream may then forget: see `Circuit.incremental`. Times are integers.
        """
        from lftj.streams.timewise import watermark

        return watermark(self, column, lateness)

    def tumbling(
        self, column: str, size: int, *, offset: int = 0, start: str = "window_start", end: str = "window_end"
    ) -> Stream:
        """Each row with the start and end of its window: [offset + i * size, offset + (i + 1) * size)."""
        return self.hopping(column, size, size, offset=offset, start=start, end=end)

    def hopping(
        self,
        column: str,
        size: int,
        every: int,
        *,
        offset: int = 0,
        start: str = "window_start",
        end: str = "window_end",
    ) -> Stream:
        """Each row once for each window of length `size` that its time is in; windows begin `every` apart."""
        from lftj.streams.timewise import hopping

        return hopping(self, column, size, every, offset, start, end)

    def range_window(self, column: str, size: int, *, now: Stream | None = None) -> Stream:
        """The rows at most `size` older than the greatest time so far: of this stream, or of the one column of `now`.

        Rows leave when time moves on. A row that comes when it is too old never enters.
        """
        from lftj.streams.timewise import range_window

        return range_window(self, column, size, now)

    # -- time ---------------------------------------------------------------------------------------------------------

    def delay(self) -> Stream:
        """`z^-1`: at each tick the value of the tick before."""
        return self._made(Delay(self._node.arity), self._node.columns)

    def integrate(self) -> Stream:
        """`I`: the sum of all values so far."""
        return self._made(Integrate(ascending(range(self._node.arity))), self._node.columns)

    def differentiate(self) -> Stream:
        """`D`: what the value has more than that of the tick before."""
        return self._made(Differentiate(self._node.arity), self._node.columns)


def _filling(fill: Mapping[str, object] | None) -> Mapping[str, object]:
    """What stands for the values that rows without a match lack, by column."""
    return mapping(
        "fill",
        {} if fill is None else fill,
        "it says what stands for missing values, by column",
        'give `fill={"price": 0}`',
    )


def type_of_either(left: str, right: str) -> str:
    """The type of a column that holds what a column of type `left` does, and what one of type `right` does."""
    wider = right if narrower(right, left) else left
    return with_null(wider) if is_nullable(left) or is_nullable(right) else wider


def stream_of(graph: Graph, stream: object, why: str) -> Stream:
    """A stream of a circuit. `DataError` if it is none, or one of another circuit."""
    if not isinstance(stream, Stream):
        raise DataError(f"{stream!r} is no stream", why=why, remedy="make one with `circuit.input(...)`")
    if stream._graph is not graph:
        raise DataError(
            "the two streams are of different circuits",
            why="they have clocks of their own, and a value of one has no tick in the other",
            remedy="take both from one circuit; `nested.enter(stream)` brings a stream into a nested one",
        )
    return stream
