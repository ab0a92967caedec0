"""Tables: the forms in which rows leave lftj. Relations, answers of queries and deltas all have them.

    t.to_arrow()    t.arrow()     pyarrow.Table, with the names and types of the columns
    t.to_pandas()   t.df()        pandas.DataFrame
    t.to_polars()   t.pl()        polars.DataFrame
    t.to_numpy()    t.numpy()     (n, k) where all columns share a type, else a structured array
    t.to_duckdb(connection, "t")  a table of that connection
    t.to_csv("t.csv")   t.to_parquet("t.parquet")
    pa.table(t)   pl.DataFrame(t)   pl.from_arrow(t)   duckdb.sql("select * from t")     by the Arrow C stream

The short names of the second column are other names of the same. Rows are in the order of their values. Deltas have one
more column, `_op`: 1 of a row that was inserted, -1 of one that was erased; of deltas of streams it is `_weight`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np

from lftj import arguments
from lftj.errors import DataError, MissingPackageError
from lftj.results.not_pickled import Unchanging
from lftj.values import gate
from lftj.values.interruptible import interruptible
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

T = TypeVar("T")
Held = tuple[Schema, Sequence[gate.Codes], SymbolTable, int]


class Tabular(Unchanging):
    """What has rows with named, typed columns. `_held` gives the schema, the columns as codes, symbols and rows."""

    __slots__ = ()

    _instead = "give its rows instead, by `to_arrow()` or `list(...)`"

    def _held(self) -> Held:
        raise NotImplementedError

    def _in_form(self, form: Callable[..., T]) -> T:
        """All rows in a form that the gate makes by one call into a library."""
        schema, columns, symbols, rows = self._held()
        return interruptible(rows, form, schema, columns, symbols, rows=rows)

    def to_arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table, with the types of docs/types.md."""
        return self._in_form(gate.to_arrow)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame with the default index."""
        _check_installed("pandas")
        return self._in_form(gate.to_pandas)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars DataFrame."""
        _check_installed("polars")
        return self._in_form(gate.to_polars)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """All rows: an (n, k) array where all columns share a type, else a structured array.

        Symbols are str objects.
        """
        schema, columns, symbols, rows = self._held()
        return gate.to_numpy(schema, columns, symbols, rows=rows)

    def arrow(self) -> pyarrow.Table:
        """Short for `to_arrow`."""
        return self.to_arrow()

    def df(self) -> pandas.DataFrame:
        """Short for `to_pandas`."""
        return self.to_pandas()

    def pl(self) -> polars.DataFrame:
        """Short for `to_polars`."""
        return self.to_polars()

    def numpy(self) -> np.ndarray[Any, Any]:
        """Short for `to_numpy`."""
        return self.to_numpy()

    def to_duckdb(self, connection: Any, name: str, *, replace: bool = False) -> None:
        """Make a table `name` of all rows in a DuckDB connection (`duckdb` itself is its default one).

        If there is a table of that name, DuckDB raises an error, unless `replace=True`.
        """
        arguments.text("name", name, "it is the name of the table to be", 'give a name such as `name="tri"`')
        if not callable(getattr(connection, "register", None)):
            raise arguments.refused(
                "connection", connection, "the table is made in a DuckDB connection", "give `duckdb.connect()`"
            )
        if not self._held()[0].arity:
            raise DataError(
                "a table of DuckDB holds no rows without columns",
                why="its rows are the values of its columns",
                remedy="ask here whether there is a row, as `len` does",
            )
        view = f"lftj rows {id(self)}"
        connection.register(view, self.to_arrow())
        try:
            quoted = name.replace('"', '""')
            made = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
            connection.execute(f'{made} "{quoted}" AS SELECT * FROM "{view}"')
        finally:
            connection.unregister(view)

    def to_csv(
        self,
        target: str | os.PathLike[str] | IO[bytes],
        *,
        delimiter: str | None = None,
        header: bool = True,
        quoting: bool | None = None,
    ) -> None:
        """Write all rows as text, to a path (whole or not at all) or a binary stream (which stays open).

        `delimiter`: by default that of the extension, a tab for .tsv, else a comma; a name that ends in .gz or .zst is
        compressed. `quoting` (RFC 4180): by default where the delimiter is a comma. `db.load` reads it back.
        """
        from lftj.io.write import write_csv

        schema, columns, symbols, rows = self._held()
        header_, quoting_ = bool(arguments.flag("header", header)), arguments.flag("quoting", quoting)
        write_csv(schema, columns, symbols, target, delimiter=delimiter, header=header_, quoting=quoting_, rows=rows)

    def to_parquet(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write all rows as Parquet, to a path (whole or not at all) or a binary stream (which stays open)."""
        from lftj.io.write import write

        schema, columns, symbols, rows = self._held()
        write(schema, columns, symbols, target, format="parquet", rows=rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow C stream protocol: polars, DuckDB, pyarrow and others read rows as they are, with their names."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def with_number(schema: Schema, name: str) -> Schema:
    """The columns of `schema` and one more, a number; underscores keep its name apart from theirs."""
    return Schema(schema.name, (*schema.columns, Column(apart(name, schema.names), "number")))


def apart(name: str, others: Collection[str]) -> str:
    """A name that is none of the others, by underscores before it."""
    while name in others:
        name = f"_{name}"
    return name


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise MissingPackageError(
            f"a frame of {package} needs the package {package}, which is not installed",
            why=f"lftj makes and reads such frames, and is installed without {package}",
            remedy=f"pip install {package}; or give an Arrow table or an array, by `to_arrow()` or `to_numpy()`",
        )
