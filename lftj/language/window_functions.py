"""Window functions: what a head holds beside the rows that its one rule copies, a value of each among its neighbours.

    .decl @v.window2(k:number, d:date, x:number?, n:number, s:number?) ... `window 0 1+l rank,-1,0,p,*,0 sum,2,0,p,*,0`
    @v.window2(k, d, x, 0, null) :- @v.rows1(k, d, x).           ranks in each k by d, and sums of x up to each d

Only SQL declares such heads (`over`). The mark says, in this order: the columns that rows of one *partition* are alike
in, what its rows are ordered by, and the functions, whose values are the last columns. Rows that are alike in what they
are ordered by, *peers*, are in the order of all columns, each ascending with null first, so that values are a matter of
the rows alone. Of a bag each copy is a row.

The clause is marked as a fold, as that of first rows is (first_rows.py); `lftj/evaluate/window_values.py` works it out.
"""

from __future__ import annotations

from typing import NamedTuple

from lftj.language.clause import Clause
from lftj.language.first_rows import OrderedColumn

# The first word of the qualifier, and of the mark.
WINDOW = "window"
# Those that look at single rows, whatever their frame.
RANKINGS = ("row_number", "rank", "dense_rank", "ntile")
NEIGHBOURS = ("lag", "lead")
# Those that look at a place in the frame; all others fold it, as aggregates do whose names they have.
PLACED = ("first", "last", "nth")
# `count(distinct x)`.
DISTINCT = "distinct"


class ByValue(NamedTuple):
    """An end of a frame: the farthest row whose `value` is not beyond what the row itself has in the column `bound`.

    Both are columns of one type, by their positions, and the values are in the order of the rows.
    """

    value: int
    bound: int

    @property
    def text(self) -> str:
        """How the mark says it."""
        return f"{self.value}:{self.bound}"


# Rows, or groups of peers, away from a row; None: the end of its partition.
FrameEnd = int | ByValue | None


class WindowFunction(NamedTuple):
    """A function: of the column at `argument` (-1: of none), with a `number` where it has one, over a frame.

    The frame of a row goes from `low` to `high`, which are so many `rows` away from it, else so many groups of peers,
    of which its own is 0. `skips_nulls`: places are counted among rows that have a value.
    """

    name: str
    argument: int = -1
    number: int = 0
    rows: bool = False
    low: FrameEnd = None
    high: FrameEnd = 0
    skips_nulls: bool = False

    @property
    def whole(self) -> bool:
        """Whether the frame of each row is its partition."""
        return self.low is None and self.high is None

    @property
    def text(self) -> str:
        """How the mark says it."""
        kind = ("r" if self.rows else "p") + "s" * self.skips_nulls
        ends = (end.text if isinstance(end, ByValue) else "*" if end is None else str(end) for end in self[4:6])
        return ",".join([self.name, str(self.argument), str(self.number), kind, *ends])

    @staticmethod
    def of(text: str) -> WindowFunction:
        """What `text` says."""
        name, argument, number, kind, *ends = text.split(",")
        low, high = map(_end_of, ends)
        return WindowFunction(name, int(argument), int(number), kind[0] == "r", low, high, kind[1:] == "s")


def _end_of(text: str) -> FrameEnd:
    value, by_value, bound = text.partition(":")
    if by_value:
        return ByValue(int(value), int(bound))
    return None if text == "*" else int(text)


class WindowFunctions(NamedTuple):
    """Functions over rows of one partitioning in one order; columns by their positions."""

    partition: tuple[int, ...]
    order: tuple[OrderedColumn, ...]
    functions: tuple[WindowFunction, ...]

    @staticmethod
    def of(text: str) -> WindowFunctions:
        """What `text` says."""
        _, partition, order, *functions = text.split(" ")
        columns = [] if order == "-" else order.split(",")
        return WindowFunctions(
            () if partition == "-" else tuple(map(int, partition.split(","))),
            tuple(map(OrderedColumn.of, columns)),
            tuple(map(WindowFunction.of, functions)),
        )

    @property
    def told_apart(self) -> bool:
        """Whether values depend on the order of peers."""
        return any(
            function.name in ("row_number", "ntile", *NEIGHBOURS, *PLACED) or (function.rows and not function.whole)
            for function in self.functions
        )

    @property
    def text(self) -> str:
        """The qualifier that says it."""
        partition = ",".join(map(str, self.partition)) or "-"
        order = ",".join(column.text for column in self.order) or "-"
        return " ".join([WINDOW, partition, order, *(function.text for function in self.functions)])


def has_windows(clause: Clause) -> bool:
    """Whether the head of a clause holds values of window functions."""
    return clause.aggregate is not None and clause.aggregate.op.startswith(f"{WINDOW} ")
