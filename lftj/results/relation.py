"""A relation as the user sees it: an immutable sorted set of rows, in whatever form is asked for.

`db["tri"]` hands out the content of that moment; later loads do not change it. Rows are in the order of their values,
column by column; symbols by their text.

    len(r)  row in r  iter(r)              number of rows, membership, tuples in order
    r[key]  r.get(key, default)            of a functional predicate: the value of a key (a tuple for several columns)
    r.to_arrow()  r.to_csv("r.csv")  ...   every form that lftj/results/tabular.py lists, r.arrow() and r.df() for short

    r.scan("max", lo=(2,), hi=(2,))        the fold of a key interval; see lftj/results/scans.py and
    lftj/results/monoids.py

Costs: len O(1), membership and values of keys O(log n), reading nothing else; the others decode all rows once. A scan
is O(log n) but for the first of its kind.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from lftj import html
from lftj.errors import DataError, MissingKeyError, UnknownColumnError
from lftj.maintain.report import amount
from lftj.results.tabular import Held, Tabular
from lftj.results.text_table import table_lines
from lftj.values import gate
from lftj.values.faults import counted, shown
from lftj.values.interruptible import interruptible
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.results.monoids import UserMonoid
    from lftj.results.transaction_delta import SortedRows
    from lftj.store.stored import StoredRelation

SHOWN_ROWS = 10
_ABSENT = object()


class Columns(dict[str, str]):
    """The types of a relation's columns by name, in order. `UnknownColumnError` for a column that is not there."""

    def __init__(self, schema: Schema) -> None:
        super().__init__((column.name, column.type) for column in schema.columns)
        self._schema = schema

    def __getitem__(self, name: object) -> str:
        """The type of a column."""
        if isinstance(name, str) and name in self:
            return super().__getitem__(name)
        from lftj.language.diagnostics import did_you_mean

        raise UnknownColumnError(
            f"`{self._schema.name}` has no column {name!r}",
            why=f"its columns are {', '.join(self) or 'none'}, and are known by their names",
            remedy=did_you_mean(str(name), self, "give one of these names; `list(r.columns)` numbers them"),
        )


class Relation(Tabular):
    """An immutable sorted set of rows with named, typed columns."""

    def __init__(
        self,
        schema: Schema,
        version: Version | SortedRows,
        symbols: SymbolTable,
        stored: StoredRelation | None = None,
    ) -> None:
        self._schema, self._version, self._symbols = schema, version, symbols
        # Until a scan is asked for: a relation that somebody holds must not keep the key orders of that moment.
        self._home = None if stored is None else weakref.ref(stored)
        self._stored: StoredRelation | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self._schema.name

    def _described(self) -> str:
        return f"the relation `{self.name}`"

    @property
    def columns(self) -> dict[str, str]:
        """Column name -> type, in order: "number", "symbol", "decimal(10,2)", "date?" (docs/types.md)."""
        return Columns(self._schema)

    def __len__(self) -> int:
        return len(self._version)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __contains__(self, row: object) -> bool:
        """Is `row` a row of the relation? Raises `DataError` if it has the wrong number or type of values."""
        codes = gate.lookup_row(row, self._schema, self._symbols)  # type: ignore[arg-type]
        if codes is None:
            return False
        return bool(self._version.contains(np.array([codes], np.int64).T)[0])

    def __getitem__(self, key: object) -> Any:
        """The value that a functional predicate has for `key`: one value, or a tuple for another number of key columns.

        `MissingKeyError` (a `KeyError`) if it has none; `DataError` if the relation is no functional predicate, or the
        key has the wrong number or type of values.
        """
        value = self.get(key, _ABSENT)
        if value is _ABSENT:
            raise MissingKeyError(
                f"`{self.name}` has no value for {shown(key)}",
                why=f"no row of {self._schema} has this key",
                remedy=f"ask with `.get(key, default)`, or iterate over `{self.name}` for the keys it has",
            )
        return value

    def get(self, key: object, default: Any = None) -> Any:
        """The same, with `default` for a key that has no value."""
        schema = self._schema
        if not schema.functional:
            raise DataError(
                f"`{self.name}` has no keys to ask for: it is not a functional predicate",
                why=f"its columns are {schema}",
                remedy="ask `row in`, or iterate over the rows; `db.query` selects some of them",
            )
        keys, given = Schema(schema.name, schema.columns[:-1]), key if isinstance(key, tuple) else (key,)
        if len(given) != keys.arity:
            raise DataError(
                f"the key {shown(key)} has {counted(len(given), 'value')}, {keys} takes {keys.arity}",
                why="a functional predicate has one value for all its keys together",
                remedy="give a tuple, with a value each",
            )
        codes = gate.lookup_row(given, keys, self._symbols)
        if codes is None:
            return default
        found = self._version.rows_under(np.array(codes, np.int64).reshape(len(codes), 1))
        if not found.shape[1]:
            return default
        (value,) = gate.decode_row(found[-1:, 0].tolist(), Schema(schema.name, schema.columns[-1:]), self._symbols)
        return value

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return gate.to_rows(self._schema, self._sorted, self._symbols, rows=len(self))

    def __eq__(self, other: object) -> bool:
        """Equal to a relation, or a set of tuples, with the same rows."""
        if isinstance(other, Relation):
            alike = self._schema.types == other._schema.types and len(self) == len(other)
            return alike and all(
                map(self._same_column, range(self._schema.arity), other._sorted, repeat(other._symbols))
            )
        if isinstance(other, set | frozenset):
            return len(self) == len(other) and set(self) == other
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _same_column(self, place: int, codes: Any, symbols: SymbolTable) -> bool:
        """Whether a column has the values of these codes."""
        # By codes: Python compares times of a zone by what its clocks show, in autumn the same at two instants.
        own, type = self._sorted[place], self._schema.types[place]
        if not in_dictionary(type) or symbols is self._symbols:
            return bool(np.array_equal(own, codes))
        return self._symbols.values(own, type) == symbols.values(codes, type)

    @cached_property
    def _sorted(self) -> list[Any]:
        """Code columns, rows in the order of their values."""
        return interruptible(len(self), self._in_value_order)

    def _in_value_order(self) -> list[Any]:
        rows = self._version.columns()
        if any(map(in_dictionary, self._schema.types)) and rows.shape[1] > 1:
            keys = [self._symbols.order(column, t) for column, t in zip(rows, self._schema.types, strict=True)]
            rows = rows[:, np.lexsort(keys[::-1])]
        return [np.ascontiguousarray(column) for column in rows]

    def _held(self) -> Held:
        return self._schema, self._sorted, self._symbols, len(self)

    def scan(
        self,
        monoid: str | UserMonoid,
        column: str | int | None = None,
        *,
        lo: Sequence[object] | None = None,
        hi: Sequence[object] | None = None,
        order: Sequence[str | int] | None = None,
    ) -> Any:
        """The fold of `column` (name or number; default: the last) over a key interval, by `monoid`.

        `monoid`: "count", "sum", "mean", "min", "max", "cat" (texts in key order), or what `lftj.monoid` registered.
        `lo` and `hi` are the first values of rows, both included: `lo=(2,), hi=(2,)` is every row that begins with 2;
        None is an open end. They are in column order, or in `order`, columns that begin the key order.

        Of no rows: count and sum 0, min, max and mean None, cat "", others their identity. Sums are exact: of integers
        any integer, of floats what `math.fsum` gives. O(log n) and carried along by commits; the first scan of its kind
        builds that, O(n). `DataError` for what cannot be folded, `MemoryLimitError`.
        """
        from lftj.results import scans
        from lftj.store.stored import StoredRelation

        asked = scans.ask(self._schema, self._symbols, monoid, column, lo, hi, order)
        if not isinstance(self._version, Version):
            return scans.scan_rows(asked, self._version.columns())
        if self._stored is None:
            stored = None if self._home is None else self._home()
            self._stored = StoredRelation.over(self._schema, self._version) if stored is None else stored
        return scans.scan_stored(asked, self._stored)

    def _head(self) -> list[tuple[Any, ...]]:
        rows = []
        for row in self:
            rows.append(row)
            if len(rows) == SHOWN_ROWS:
                break
        return rows

    def _title(self) -> str:
        return f"{self._schema}  {amount(len(self), 'row')}"

    def __repr__(self) -> str:
        names = list(self._schema.names)
        cells = [[html.cell(value) for value in row] for row in self._head()]
        if not names:
            return self._title()
        table = table_lines(names, cells, list(map(in_dictionary, self._schema.types)), ruled=False)
        lines = [self._title(), *(f"  {line}".rstrip() for line in table)]
        if len(self) > len(cells):
            lines.append(f"  ... {len(self) - len(cells):,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html.shown(self._html())

    def _html(self) -> str:
        """Its title and first rows."""
        schema, rows = self._schema, self._head()
        table = html.table(schema.names, schema.types, rows) if schema.names else ""
        return html.title(self.name, amount(len(self), "row")) + table + html.more(len(self) - len(rows))
