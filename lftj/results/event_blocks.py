"""Reading blocks of events: (relation, op, rows), any number of them, of any size.

Blocks with one op each wait for others of their relation and form, and are read with these: to set up a reader takes
longer than to read a row. Where all are lists of rows, which block goes where is found for all of them at once, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, compress, islice
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj import arguments
from lftj.errors import DataError
from lftj.io.change_feed import meaning
from lftj.io.changes import rows_to_insert
from lftj.io.read_options import DEFAULTS
from lftj.store.change import few_rows
from lftj.store.stored import StoredRelation
from lftj.values.arrow_arrays import joins_wrongly
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from scantree.version import Rows

Kinds = npt.NDArray[np.int8]
Marks = npt.NDArray[np.bool_]
# Rows that wait to be read together, at most; above it, texts that come again cost more than the parts do.
AT_ONCE = 1 << 16
# Blocks that are looked at together, at most: they may be large.
BLOCKS = 1 << 10
# The form of lists of rows by position.
ROWS = "rows"
BLOCK_FORM = 'give (relation, op, rows), as in `[("edge", "+1", [(1, 2)]), ("edge", -1, [(2, 3)])]`'
_FIRST, _SECOND = itemgetter(0), itemgetter(1)


@dataclass(slots=True)
class BlocksOfRelation:
    """The events of one relation, in pieces: rows, what becomes of each and whether keys count, and their numbers.

    Blocks with one op each wait to be read together: `waiting`, all of one `form`, `size` rows in all; with `meant` of
    each, and the number of its first event.
    """

    relation: StoredRelation
    symbols: SymbolTable
    pieces: list[tuple[Rows, Kinds, Marks, Rows]] = field(default_factory=list)
    waiting: list[Any] = field(default_factory=list)
    meant: list[tuple[int, bool]] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    form: Any = None
    size: int = 0

    def wait(self, sources: Sequence[Any], form: Any, meant: Sequence[tuple[int, bool]], firsts: Sequence[int]) -> None:
        """Keep the rows of blocks with one op each."""
        if self.waiting and form != self.form:
            self.flush()
        self.form = form
        self.waiting += sources
        self.meant += meant
        self.firsts += firsts
        self.size += sum(map(len, sources))
        if self.size > AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Read the rows that wait."""
        if not self.waiting:
            return
        blocks = len(self.waiting)
        sizes = np.fromiter(map(len, self.waiting), np.int64, blocks)
        kinds = np.repeat(np.fromiter(map(_FIRST, self.meant), np.int8, blocks), sizes)
        keyed = np.repeat(np.fromiter(map(_SECOND, self.meant), np.bool_, blocks), sizes)
        # Of the first row of each block its number, less how many rows stand before it.
        shifts = np.array(self.firsts) - (np.cumsum(sizes) - sizes)
        numbers = np.arange(len(kinds)) + np.repeat(shifts, sizes)
        self.pieces.append((self._read(), kinds, keyed, numbers))
        self.waiting, self.meant, self.firsts, self.size = [], [], [], 0

    def _read(self) -> Rows:
        """The codes of the rows that wait, read together; an error says where its row stands in its own block."""
        if len(self.waiting) == 1:
            return _rows(self.relation, self.waiting[0], self.symbols)
        try:
            return _rows(self.relation, _joined(self.waiting), self.symbols)
        except DataError:
            for source in self.waiting:
                _rows(self.relation, source, self.symbols)
            raise


class BlockReader:
    """Reads blocks of events. `relation` gives one by its name. `given`: by relation · `count`: how many events."""

    def __init__(self, relation: Callable[[str], StoredRelation], symbols: SymbolTable) -> None:
        self._relation, self._symbols = relation, symbols
        self._meanings: dict[tuple[str, str | int], tuple[int, bool]] = {}
        self.given: dict[str, BlocksOfRelation] = {}
        self.count = 0

    def read(self, events: Iterable[Sequence[Any]]) -> None:
        """Read all blocks."""
        waiting = iter(events)
        while blocks := list(islice(waiting, BLOCKS)):
            if not self._together(blocks):
                for block in blocks:
                    self._block(block)
        for here in self.given.values():
            here.flush()

    def _together(self, blocks: list[Any]) -> bool:
        """Read blocks that all are lists of rows with one op, if they are: of one row, a block is mostly overhead."""
        if not ({*map(type, blocks)} <= {tuple, list} and {*map(len, blocks)} == {3}):
            return False
        names, ops, sources = zip(*blocks, strict=True)
        plain = {*map(type, names)} == {str} and {*map(type, ops)} <= {str, int}
        if not (plain and {*map(type, sources)} <= {tuple, list} and all(sources)):
            return False
        if not {*map(type, map(_FIRST, sources))} <= {tuple, list}:
            return False
        pairs = list(zip(names, ops, strict=True))
        for name, op in dict.fromkeys(pairs):
            self._meaning(name, op)
        meant = list(map(self._meanings.__getitem__, pairs))
        firsts = list(accumulate(map(len, sources), initial=self.count))
        for name in dict.fromkeys(names):
            mine = list(map(name.__eq__, names))
            picked, kinds, begins = (list(compress(each, mine)) for each in (sources, meant, firsts))
            self.given[name].wait(picked, ROWS, kinds, begins)
        self.count = firsts[-1]
        return True

    def _block(self, block: Any) -> None:
        """Read one block, or have it wait."""
        if not isinstance(block, tuple | list) or len(block) != 3:
            raise arguments.refused("events", block, "it is an iterable of blocks of events", BLOCK_FORM)
        name, op, source = block
        if not isinstance(name, str):
            raise arguments.refused("events", block, "a block begins with the name of a relation", BLOCK_FORM)
        here = self._of(name)
        if isinstance(op, str | int) and (form := _form(source)) is not None:
            here.wait([source], form, [self._meaning(name, op)], [self.count])
            self.count += len(source)
            return
        here.flush()
        rows = _rows(here.relation, source, self._symbols)
        size = rows.shape[1]
        numbers = np.arange(self.count, self.count + size)
        here.pieces.append((rows, *_ops(op, here.relation.given, size), numbers))
        self.count += size

    def _of(self, name: str) -> BlocksOfRelation:
        if name not in self.given:
            self.given[name] = BlocksOfRelation(self._relation(name), self._symbols)
        return self.given[name]

    def _meaning(self, name: str, op: str | int) -> tuple[int, bool]:
        """(what becomes of rows, whether their keys count)."""
        meant = self._meanings.get((name, op))
        if meant is None:
            meant = self._meanings[name, op] = _meant(op, self._of(name).relation.given)
        return meant


def _form(source: Any) -> Any:
    """What is equal of blocks that can be read together; None of one that is read alone.

    The first row of a list decides how all are read: by position, or by names. A list may name files, too.
    """
    if type(source) is list or type(source) is tuple:
        kind = type(source[0]) if source else None
        if kind is tuple or kind is list:
            return ROWS
        return tuple(source[0]) if kind is dict else kind if kind is int or kind is float else None
    arrow = sys.modules.get("pyarrow")  # which a program that gives tables has imported
    if arrow is not None and isinstance(source, arrow.Table | arrow.RecordBatch) and source.num_columns > 0:
        return source.schema
    return None


def _joined(sources: Sequence[Any]) -> Any:
    """The rows of blocks that are alike, as one source."""
    if isinstance(sources[0], list | tuple):
        return list(chain.from_iterable(sources))
    import pyarrow as pa

    tables = [pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source for source in sources]
    joined = pa.concat_tables(tables)
    if any(map(joins_wrongly, joined.schema.types)):
        return joined
    try:
        # One chunk: a part of a column costs as much as a thousand rows of it.
        return joined.combine_chunks()
    except pa.ArrowInvalid:  # dictionaries, of which all together have more values than their indices number
        return joined


def _rows(relation: StoredRelation, source: Any, symbols: SymbolTable) -> Rows:
    """The codes of rows, by the readers that loads use."""
    rows = few_rows(source, relation.given, symbols.intern_one)
    return rows_to_insert(source, relation.given, symbols, DEFAULTS, apart=False).rows if rows is None else rows


def _ops(op: Any, schema: Schema, size: int) -> tuple[Kinds, Marks]:
    """(whether each row comes or goes, whether its key counts). `op`: of the block, or one for each row."""
    if isinstance(op, str | int | np.integer):
        kind, by_key = _meant(op, schema)
        return np.full(size, kind, np.int8), np.full(size, by_key)
    each = np.asarray(op)
    if each.shape != (size,):
        rows = f"{size:,} row{'' if size == 1 else 's'}"
        raise arguments.refused("op", op, f"the block has {rows}", "give one op, or one for each row")
    if each.dtype.kind == "O":
        each = np.array([*map(str, each.tolist())])
    words, at = np.unique(each, return_inverse=True)
    meant = [_meant(word, schema) for word in words.tolist()]
    kinds = np.array([kind for kind, _ in meant], np.int8)
    keyed = np.array([by_key for _, by_key in meant], np.bool_)
    return kinds[at], keyed[at]


def _meant(op: Any, schema: Schema) -> tuple[int, bool]:
    found = meaning(str(op), schema)
    if isinstance(found, str):
        raise DataError(
            f"op {op!r} of `{schema.name}` {found}",
            why="an event says of its row what happened to it; nothing was done",
            remedy="give +1 or -1, insert or delete, or of a relation with a key update",
        )
    return found
