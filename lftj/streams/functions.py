"""Python functions over Arrow columns, as operators: `bid.apply(folders, "url", first=str, second=str)`.

The function gets an Arrow array for each of the columns that it asks for, with a value for each row of a batch, and
gives an array or a list for each new column, in a tuple if there are several. It must be a function of each row alone:
the same row always gives the same values, whatever other rows are in the batch, or the changes that it makes of rows
that go would not cancel those of rows that came. Given that, it is linear (DBSP, section 4.2), and is its own
incremental version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lftj import arguments
from lftj.errors import DataError, EvaluationError
from lftj.io.sources import read
from lftj.streams.operators import Columns, Narrowed, Operator, Tick, Value, zset_of
from lftj.streams.zsets import ZSet
from lftj.values import gate
from lftj.values.schema import Schema


class FunctionError(EvaluationError):
    """A Python function in a circuit raised, or gave something else than columns."""


@dataclass(frozen=True, eq=False)
class ApplyFunction(Operator):
    """Each row with more columns, `made`, that a function computes of the columns `args`. `columns`: of what comes in.

    `flat`: the function says itself of which row each of its rows is, as first thing that it gives: int64[n].
    """

    symbol: ClassVar[str] = "apply"
    function: Callable[..., Any]
    args: tuple[int, ...]
    columns: Columns
    made: Columns
    flat: bool = False

    @property
    def label(self) -> str:
        """The function's name."""
        return f"{'flat ' if self.flat else ''}apply {self._name()}"

    def _name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Call it with the whole batch."""
        # In normal form: of a row that comes and goes in the same value it is not asked.
        zset = zset_of(values[0]).normal()
        if not len(zset):
            return ZSet.zero(len(self.columns) + len(self.made)), None
        symbols, schema = tick.room.symbols, Schema("row", tuple(self.columns[i] for i in self.args))
        given = gate.to_arrow(schema, [zset.rows[i] for i in self.args], symbols, rows=len(zset))
        try:
            found = self.function(*(column.combine_chunks() for column in given.columns))
        except Exception as error:
            raise FunctionError(
                f"the function `{self._name()}` raised {type(error).__name__}: {error}",
                why="it was given a batch of rows in an Arrow array per column; the step was not made",
                remedy="make it give a value for every row, or filter such rows first",
            ) from error
        # A list is the values of one column where one is due.
        several = isinstance(found, tuple) or (isinstance(found, list) and len(self.made) + self.flat > 1)
        columns = list(found) if several else [found]
        rows, weights = zset.rows, zset.weights
        if self.flat:
            of = self._of_rows(columns.pop(0) if columns else None, len(zset))
            rows, weights = np.take(rows, of, axis=1), weights[of]
        if len(columns) != len(self.made):
            raise self._shape(f"gave {len(columns)} columns, not {len(self.made)}")
        for column, array in zip(self.made, columns, strict=True):
            size = len(array) if hasattr(array, "__len__") else -1
            if size != len(weights):
                raise self._shape(f"gave {max(size, 0)} values of `{column.name}` for {len(weights)} rows")
        named = {column.name: array for column, array in zip(self.made, columns, strict=True)}
        loaded = read(named, Schema(self._name(), self.made), symbols, apart=False)
        return ZSet(np.vstack([rows, *loaded.columns]), weights), None

    def _of_rows(self, given: Any, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        of = np.asarray(given)
        if of.ndim != 1 or (len(of) and (of.dtype.kind not in "iu" or of.min() < 0 or of.max() >= count)):
            raise self._shape(f"gave no rows' numbers: the first thing must be int64[n] from 0 to {count - 1}")
        return of.astype(np.int64)

    def _shape(self, what: str) -> FunctionError:
        return FunctionError(
            f"the function `{self._name()}` {what}",
            why="rows take their new columns from what it gives, row by row; the step was not made",
            remedy="give an array for each new column, in a tuple in their order, with a value for each row",
        )

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """It needs its arguments, and keeps what else is wanted; it gives all that it makes."""
        own = len(self.columns)
        reads = tuple(sorted({i for i in wanted if i < own} | set(self.args)))
        operator = ApplyFunction(
            self.function,
            tuple(reads.index(i) for i in self.args),
            tuple(self.columns[i] for i in reads),
            self.made,
            self.flat,
        )
        return Narrowed(operator, (*reads, *range(own, own + len(self.made))), (reads,))


def applied(
    columns: Columns, function: object, names: Sequence[str], made: Mapping[str, object], flat: bool
) -> ApplyFunction:
    """The operator for `Stream.apply`. `DataError` if it makes no sense."""
    from lftj.streams.expressions import unknown_column
    from lftj.streams.graph import named_columns

    known = [column.name for column in columns]
    for name in names:
        if name not in known:
            raise unknown_column(name, columns)
    if not callable(function):
        raise DataError(
            f"{function!r} is no function",
            why="it is called with an Arrow array for each column named, and gives one for each new column",
            remedy="give a function, or use `map` with expressions",
        )
    arguments.function("function", function, "an Arrow array for each column named")
    return ApplyFunction(function, tuple(known.index(name) for name in names), columns, named_columns(made), flat)
