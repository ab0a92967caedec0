"""The answer of a select: rows in SQL's order, with named and typed columns, in every form that relations leave in.

    r = db.sql("select item, sum(qty) as n from sale group by item order by n desc limit 3")
    list(r)   r.columns   r.arrow()   r.df()   r.pl()

Unlike a relation it may hold a row several times, and its rows are in the order that the statement asks for. It holds
rows of its own and never changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj import html
from lftj.maintain.report import amount
from lftj.results.relation import SHOWN_ROWS, Relation
from lftj.results.tabular import Held, Tabular
from lftj.results.text_table import table_lines
from lftj.values import gate
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary


def rows_of(relation: Relation) -> SqlResult:
    """The rows of a table or a view in the order of their values; of a bag as often as they are there."""
    schema, columns, symbols, rows = relation._held()
    codes = np.stack(columns) if columns else np.empty((0, rows), np.int64)
    if schema.bag:
        codes = np.repeat(codes[:-1], codes[-1], axis=1)
    return SqlResult(schema.given, codes, symbols)


class SqlResult(Tabular):
    """Rows int64[arity, n], by their codes, in an order of their own."""

    __slots__ = ("_codes", "_schema", "_symbols")

    def __init__(self, schema: Schema, codes: npt.NDArray[np.int64], symbols: SymbolTable) -> None:
        self._schema, self._codes, self._symbols = schema, codes, symbols

    @property
    def name(self) -> str:
        """The name of the view whose rows they are; else "select"."""
        return self._schema.name

    @property
    def columns(self) -> dict[str, str]:
        """Column name -> type, in order: "number", "symbol", "decimal(10,2)", "date?" (docs/types.md)."""
        return {column.name: column.type for column in self._schema.columns}

    def __len__(self) -> int:
        return int(self._codes.shape[1])

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return gate.to_rows(self._schema, self._columns(), self._symbols, rows=len(self))

    def _columns(self) -> list[npt.NDArray[np.int64]]:
        return [np.ascontiguousarray(column) for column in self._codes]

    def _held(self) -> Held:
        return self._schema, self._columns(), self._symbols, len(self)

    def _head(self) -> list[tuple[Any, ...]]:
        first = [np.ascontiguousarray(column[:SHOWN_ROWS]) for column in self._codes]
        return list(gate.to_rows(self._schema, first, self._symbols, rows=min(SHOWN_ROWS, len(self))))

    def __repr__(self) -> str:
        names, types = self._schema.names, self._schema.types
        cells = [[html.cell(value) for value in row] for row in self._head()]
        lines = table_lines(names, cells, list(map(in_dictionary, types)), ruled=True)
        if len(self) > len(cells):
            lines.append(f"... {amount(len(self) - len(cells), 'row')} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = self._head()
        table = html.table(self._schema.names, self._schema.types, rows)
        return html.shown(html.title("select", amount(len(self), "row")), table + html.more(len(self) - len(rows)))
