"""Z-sets as users hold them: named, typed columns, values instead of codes.

z = streams.zset([(1, "a"), (2, "b")], [1, -1])     rows and their weights
z + z   -z   z - z   z.distinct()                   the group of Z-sets, and the set of one
z.rows  z.weights                                   all rows in order, and int64 weights beside them
z.inserted  z.erased                                the rows of positive, and of negative weight
z.to_arrow()  z.to_pandas()  ...                    all forms of lftj/results/tabular.py, with a column `_weight`
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj import html
from lftj.errors import DataError
from lftj.results.relation import Relation
from lftj.results.tabular import Held, Tabular, with_number
from lftj.results.transaction_delta import SortedRows
from lftj.streams.zsets import ZSet, are_small
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary, is_nullable, type_of, without_null

WEIGHT = "_weight"
# Rows that a terminal or a notebook shows.
SHOWN_ROWS = 10


class WeightedRows(Tabular):
    """Rows with weights; immutable. What `Circuit.step` gives for each output, and `zset` makes."""

    def __init__(self, schema: Schema, zset: ZSet, symbols: SymbolTable) -> None:
        self._schema, self._given, self._symbols = schema, zset, symbols
        if not are_small(zset.weights):
            zset.normal()  # an error is raised here, and not where somebody looks

    @property
    def _zset(self) -> ZSet:
        """In normal form, which is made when somebody looks."""
        return self._given.normal()

    @property
    def columns(self) -> dict[str, str]:
        """Column name -> type, in order."""
        return {column.name: column.type for column in self._schema.columns}

    def _part(self, keep: npt.NDArray[np.bool_]) -> Relation:
        rows = np.compress(keep, self._zset.rows, axis=1)
        return Relation(self._schema, SortedRows(rows), self._symbols)

    @cached_property
    def inserted(self) -> Relation:
        """The rows of positive weight."""
        return self._part(self._zset.weights > 0)

    @cached_property
    def erased(self) -> Relation:
        """The rows of negative weight."""
        return self._part(self._zset.weights < 0)

    @cached_property
    def rows(self) -> Relation:
        """All rows, in the order of their values."""
        return Relation(self._schema, SortedRows(self._zset.rows), self._symbols)

    @cached_property
    def weights(self) -> npt.NDArray[np.int64]:
        """The weight of each row of `rows`, in the same order."""
        zset = self._zset
        if not any(map(in_dictionary, self._schema.types)) or len(zset) < 2:
            return zset.weights
        keys = [self._symbols.order(c, t) for c, t in zip(zset.rows, self._schema.types, strict=True)]
        weights: npt.NDArray[np.int64] = zset.weights[np.lexsort(keys[::-1])]
        return weights

    def is_set(self) -> bool:
        """Whether every weight is 1."""
        return self._zset.is_set()

    def is_positive(self) -> bool:
        """Whether every weight is positive."""
        return self._zset.is_positive()

    def distinct(self) -> WeightedRows:
        """The set of the rows of positive weight."""
        return WeightedRows(self._schema, self._zset.distinct(), self._symbols)

    def __neg__(self) -> WeightedRows:
        return WeightedRows(self._schema, self._zset.negated(), self._symbols)

    def __add__(self, other: object) -> WeightedRows:
        if not isinstance(other, WeightedRows):
            return NotImplemented
        return WeightedRows(self._schema, self._zset.plus(other.coded(self._schema, self._symbols)), self._symbols)

    def __sub__(self, other: object) -> WeightedRows:
        if not isinstance(other, WeightedRows):
            return NotImplemented
        return self + -other

    def coded(self, schema: Schema, symbols: SymbolTable) -> ZSet:
        """The same rows for a stream with the columns of `schema`, whose texts are in `symbols`.

        `DataError` if the types differ. No rows without columns, as `zset([])` makes, are those of any stream.
        """
        if not self._schema.arity and not len(self):
            return ZSet.zero(schema.arity)
        if not self._fits(schema):
            raise DataError(
                f"rows of {self._schema} cannot be rows of {schema}",
                why="the types of the columns differ, or their number",
                remedy="give rows of the stream's types; `columns=` of `zset` says what the values are",
            )
        for own, column, codes in zip(self._schema.types, schema.columns, self._zset.rows, strict=True):
            if own != column.type and (codes == type_of(column.type).null).any():
                raise DataError(
                    f"column `{column.name}` of {schema} cannot hold {type_of(own).shown(type_of(column.type).null)}",
                    why="null is stored as this number in a column that may hold null",
                    remedy="leave the row out, or declare the column without `?`",
                )
        if symbols is self._symbols or not any(map(in_dictionary, schema.types)):
            return self._zset
        rows = self._zset.rows.copy()
        for i, type_ in enumerate(schema.types):
            if in_dictionary(type_):
                there = rows[i] >= 0  # null is null in every dictionary
                rows[i, there] = symbols.intern(self._symbols.decode(rows[i, there]).to_pylist())
        return ZSet(rows, self._zset.weights)

    def _fits(self, schema: Schema) -> bool:
        """Whether the types of the columns are those of `schema`, or those without null where it admits null."""
        own, wanted = self._schema.types, schema.types
        return len(own) == len(wanted) and all(
            one == two or (is_nullable(two) and one == without_null(two)) for one, two in zip(own, wanted, strict=True)
        )

    def __len__(self) -> int:
        return len(self._zset)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(row, weight), in the order of the rows."""
        return zip(self.rows, self.weights.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        """Equal to rows with the same weights, or to a dict of weights by row."""
        if isinstance(other, WeightedRows):
            return self.rows == other.rows and np.array_equal(self.weights, other.weights)
        return dict(self) == other if isinstance(other, dict) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _held(self) -> Held:
        return with_number(self._schema, WEIGHT), [*self.rows._sorted, self.weights], self._symbols, len(self)

    def _title(self) -> str:
        return f"{self._schema}  {len(self):,} {'row' if len(self) == 1 else 'rows'}"

    def __repr__(self) -> str:
        first = [f"  {weight:+d}  {row}" for row, weight in islice(self, SHOWN_ROWS)]
        more = [f"  ... {len(self) - SHOWN_ROWS:,} more"] if len(self) > SHOWN_ROWS else []
        return "\n".join([self._title(), *first, *more])

    def _repr_html_(self) -> str:
        """The first rows as a table, each with its weight."""
        first = [(*row, weight) for row, weight in islice(self, SHOWN_ROWS)]
        kinds = [html.INSERTED if row[-1] > 0 else html.ERASED for row in first]
        names, types = (*self._schema.names, WEIGHT), (*self._schema.types, "number")
        table = html.table(names, types, first, kinds) if first else ""
        return html.shown(html.title(self._title()), table, html.more(len(self) - SHOWN_ROWS))


def as_weights(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Integers of any type as weights. `DataError` if one is beyond int64."""
    if values.dtype.kind == "u" and len(values) and values.max() >= 1 << 63:
        raise no_weights(f"{values.max()} is too large")
    return values.astype(np.int64)


def no_weights(why: str) -> DataError:
    """The error for what cannot be weights."""
    return DataError(
        "the weights are no 64-bit integers", why=why, remedy="give an integer from -2**63 to 2**63 - 1 for each row"
    )
