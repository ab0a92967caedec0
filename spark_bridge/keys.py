"""Tables in their one form, and the hash of a key by which it is placed.

Between machines rows travel as values, never as codes: every partition's database numbers its texts itself. A table of
a relation has one column per column of its schema: number int64, unsigned uint64, float double (no NaN, 0.0 for -0.0),
symbol string; other types as `type_table.py` gives them out, but for uuids, which are texts. Null stands only where a
column's type admits it. Of arity 0 it has one column, `_unit`, which says nothing.

The hash of a key is 64 bits of its value and nothing else (splitmix64 of the bits of a number; BLAKE2 of the UTF-8 of a
text), so that equal keys of any relation, batch and machine meet in one partition. Two keys with one hash are placed
together, which costs balance and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lftj.io.convert import arrow_fault, arrow_part
from lftj.values.schema import Schema
from lftj.values.symbols import StagedTexts, SymbolTable
from lftj.values.type_table import family_of, in_dictionary, null_rows, type_of
from spark_bridge.bridge_errors import BatchError

Hashes = npt.NDArray[np.uint64]
PLAIN = ("number", "unsigned", "float", "symbol")
OP, UNIT = "_op", "_unit"
KEPT_SCHEMAS = 1024  # so many are kept: what reads files asks for the same ones all the time


@lru_cache(KEPT_SCHEMAS)
def arrow_schema(schema: Schema) -> pa.Schema:
    """The columns of a table of a relation."""
    if not schema.arity:
        return pa.schema([(UNIT, pa.bool_())])
    return pa.schema([(column.name, table_type(column.type)) for column in schema.columns])


def table_type(type: str) -> pa.DataType:
    """The Arrow type of a column in a table."""
    return pa.string() if family_of(type) == "uuid" else type_of(type).arrow_type()


def table_from_values(schema: Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The table of rows that a program states, of the values of its constants."""
    typed = arrow_schema(schema)
    if not schema.arity:
        return pa.table({typed.names[0]: [True] * len(rows)}, typed)
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, type) for column, type in zip(columns, typed.types, strict=True)], schema=typed
    )


def mixed(values: Hashes) -> Hashes:
    """splitmix64 of each value (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hash_column(column: pa.ChunkedArray | pa.Array, type: str) -> Hashes:
    """The hash of each key of a column in its canonical type."""
    if type not in PLAIN:
        return _hash_typed(column, type)
    if type == "symbol":
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        coded = array.dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        distinct = np.array(
            [
                int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
                for text in coded.dictionary.to_pylist()
            ],
            np.uint64,
        )
        found: Hashes = distinct[coded.indices.to_numpy(zero_copy_only=False)]
        return found
    values = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    if type == "float":
        values = values + 0.0
    return mixed(np.ascontiguousarray(values).view(np.uint64))


def _hash_typed(column: pa.ChunkedArray | pa.Array, type: str) -> Hashes:
    """The same for other types and null: of codes, or of what a value of the dictionary is stored as.

    Numbers that may be null are joined with those that may not, so both are hashed as values.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not in_dictionary(type):
        codes = arrow_part(array, type).codes
        assert not isinstance(codes, StagedTexts), "only texts are staged, and they are in the dictionary"
        values = type_of(type).to_numpy(codes) if family_of(type) in PLAIN else codes
        return mixed(np.ascontiguousarray(values).view(np.uint64))
    values = array.to_pylist()
    known = {value: _hash_value(value) for value in set(values)}
    return np.array([known[value] for value in values], np.uint64)


def _hash_value(value: str | bytes | None) -> int:
    if value is None:
        return 0
    held = value.encode() if isinstance(value, str) else value
    return int.from_bytes(hashlib.blake2b(held, digest_size=8).digest(), "little")


class Keyed:
    """A table and the hashes of its columns, each computed once."""

    def __init__(self, table: pa.Table, schema: Schema) -> None:
        self.table, self.schema = table, schema
        self._hashes: dict[int, Hashes] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def hashes(self, column: int) -> Hashes:
        """The hashes of one column."""
        if column not in self._hashes:
            self._hashes[column] = hash_column(self.table.column(column), self.schema.types[column])
        return self._hashes[column]

    @cached_property
    def rows(self) -> Hashes:
        """A hash of each whole row."""
        found = np.full(len(self), 0x1F0E, np.uint64)
        for column in range(self.schema.arity):
            found = mixed(found ^ self.hashes(column))
        return found


def canonical(table: pa.Table, schema: Schema, *, changes: bool) -> tuple[pa.Table, npt.NDArray[np.int8]]:
    """The rows of a source in the form above, and the op of each: 1 insert, -1 erase.

    Columns are matched by name where all names are there, else by position. `BatchError` says which column does not
    fit. Without `changes` every row is an insert.
    """
    names = list(table.column_names)
    given = [name for name in names if name != UNIT and not (changes and name == OP)]
    if len(given) != schema.arity:
        raise BatchError(
            f"`{schema.name}` takes {schema.arity} columns, the rows have {len(given)}: {', '.join(given) or 'none'}",
            why="columns are matched by position where the names differ, so there must be as many",
            remedy=f"select the columns of {schema}" + (f", and `{OP}`" if changes else ""),
        )
    by_name = set(given) == set(schema.names)
    columns = []
    for i, column in enumerate(schema.columns):
        columns.append(_cast(table.column(column.name if by_name else given[i]), column.type, column.name, schema))
    if changes:
        if OP not in names:
            raise BatchError(
                f"the changes of `{schema.name}` have no column `{OP}`",
                why="it says of every row whether it is inserted (1) or erased (-1)",
                remedy="add it, a column of integers; for inserts alone all of them are 1",
            )
        ops = _ops(table.column(OP), schema)
    else:
        ops = np.ones(table.num_rows, np.int8)
    if not schema.arity:
        return pa.table({UNIT: [True] * len(ops)}, arrow_schema(schema)), ops
    return pa.Table.from_arrays(columns, schema=arrow_schema(schema)), ops


def _ops(column: pa.ChunkedArray, schema: Schema) -> npt.NDArray[np.int8]:
    values = column.to_numpy()
    wrong = ~np.isin(values, (1, -1)) if values.dtype.kind in "iuf" else np.ones(len(values), bool)
    if wrong.any() or column.null_count:
        raise wrong_op(schema, repr(column[int(np.argmax(wrong))].as_py() if wrong.any() else None))
    ops: npt.NDArray[np.int8] = values.astype(np.int8)
    return ops


def wrong_op(schema: Schema, shown: str, where: str = "") -> BatchError:
    """The error for what stands in `_op` and says nothing."""
    return BatchError(
        f"the changes of `{schema.name}` have {OP} = {shown}",
        where=where,
        why=f"`{OP}` says whether a row is inserted (1) or erased (-1)",
        remedy="give 1 or -1",
    )


def _cast(column: pa.ChunkedArray, type: str, name: str, schema: Schema) -> pa.ChunkedArray:
    def refused(why: str, remedy: str) -> BatchError:
        return BatchError(
            f"column `{name}` of `{schema.name}` does not take these rows", why=f"it is a {type}: {why}", remedy=remedy
        )

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if type not in PLAIN:
        return _typed(column, type, refused)
    if column.null_count:
        raise refused(f"row {int(np.argmax(pc.is_null(column).to_numpy()))} has none", "filter the rows that have null")
    kinds: dict[str, Any] = {
        "number": pa.types.is_integer(column.type),
        "unsigned": pa.types.is_integer(column.type) or pa.types.is_decimal(column.type),
        "float": pa.types.is_floating(column.type) or pa.types.is_integer(column.type),
        "symbol": pa.types.is_string(column.type) or pa.types.is_large_string(column.type),
    }
    if len(column) and not kinds[type]:
        raise refused(f"the rows have {column.type}", "cast the column")
    try:
        cast = column.cast(table_type(type)) if kinds[type] else pa.chunked_array([[]], table_type(type))
    except pa.ArrowInvalid as error:
        raise refused(str(error), "give values in its range") from None
    if type == "float":
        values = cast.to_numpy()
        if np.isnan(values).any():
            raise refused("NaN is no key", "filter the rows that have NaN")
        cast = pa.chunked_array([pa.array(values + 0.0)])
    return cast


def _typed(column: pa.ChunkedArray, type: str, refused: Callable[[str, str], BatchError]) -> pa.ChunkedArray:
    """A column of another type, or with null, in its canonical form."""
    made, array = type_of(type), column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no rows, in some versions of Arrow
        array = pa.array([], column.type)
    if len(array) and (fault := arrow_fault(array.type, type)):
        raise refused(f"the rows have {column.type}", fault.remedy)
    if not len(array):
        return pa.chunked_array([pa.array([], table_type(type))])
    part = arrow_part(array, type)
    if len(part.bad):
        assert part.describe is not None, "a part with bad rows says what is wrong with them"
        found = part.describe(int(part.bad[0]))
        raise refused(f"row {int(part.bad[0])}: {found.shown} {found.fault.reason}", found.fault.remedy)
    if isinstance(part.codes, StagedTexts):
        texts = SymbolTable()
        codes = part.codes.of_rows(texts.intern_array(part.codes.texts))
        shown = pa.array(
            [None if v is None else (v if isinstance(v, bytes | str) else str(v)) for v in texts.values(codes, type)],
            table_type(type),
        )
        return pa.chunked_array([shown])
    return pa.chunked_array([made.to_arrow(part.codes, null_rows(part.codes, type))])


def as_table(relation: pa.Table, schema: Schema) -> pa.Table:
    """What a relation gives out in the form of a table."""
    columns = []
    for column, of in zip(relation.columns, schema.columns, strict=True):
        if family_of(of.type) == "uuid":
            texts = [None if value is None else str(value) for value in column.to_pylist()]
            column = pa.chunked_array([pa.array(texts, pa.string())])
        columns.append(column.cast(table_type(of.type)))
    return pa.Table.from_arrays(columns, schema=arrow_schema(schema))
