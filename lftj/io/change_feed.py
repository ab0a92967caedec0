"""Change feeds: rows of one relation with a column that says what happened to each, applied in whole commits.

    src  dst  op  tx                    db.load_changes("edge", source, op="op", tx="tx")
      1    2  c    7   ---+ a commit
      2    3  c    7   ---+             a source is whatever `load` takes; `op` and `tx` are columns of it
      1    2  d    8   ---- another

What `op` may say (in any case), and of which rows:

    +1 1 +    -1 -               this row comes, this row goes: what deltas and Z-sets say
    insert i  create c  read r   the row comes; where there is a key it is the row of its key from now on
    update u  upsert =           it is the row of its key from now on; where there is a key only
    delete d  erase              the row goes; where there is a key whatever that has

Of a bag each row is one copy, or as many as the feed says in a column of the name of the bag's last one, as the bag's
differences do (named_columns.py).

A feed is *read* into codes, *cut* into commits, and each commit is a transaction of its own, in the order of the feed.
With `tx=` a commit is a run of rows with one value in that column, else `batch_rows` rows. What is at hand as a whole
(a file, a frame, a list) is read and checked before the first commit. Of an iterator, which may never end, `batch_rows`
rows are read at a time; what was committed before a bad row stands. In no case is a commit made in part: whatever is
raised (`report` of it says how far the feed came), an offset of whole commits is left, and `start=` goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lftj import arguments
from lftj.errors import DataError
from lftj.io.convert import ColumnTypeError
from lftj.io.feed_staging import FeedStaging
from lftj.io.find_files import is_paths
from lftj.io.named_columns import names_copies, readable_again, without_bag
from lftj.io.pick import ColumnsError
from lftj.io.read_options import ReadOptions
from lftj.io.rejects import BadRowsError, Rejects
from lftj.io.sources import fill
from lftj.maintain.refused_calls import replaced
from lftj.maintain.report import amount
from lftj.progress import Progress
from lftj.store.change import COPIES, ERASE, INSERT, UPSERT, Batch
from lftj.store.copies import with_copies
from lftj.values.faults import shown
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary

BATCH_ROWS = 10_000
_EXACT = {"+": INSERT, "+1": INSERT, "1": INSERT, "-": ERASE, "-1": ERASE}
_COMES = ("insert", "i", "create", "c", "read", "r")
_REPLACES = ("update", "u", "upsert", "=")
_GOES = ("delete", "d", "erase")
# What the columns beside those of the relation may be: any text, any integer; what tells transactions apart, any time.
_OP_KINDS = ("symbol", "number", "unsigned")
_TX_KINDS = (*_OP_KINDS, "timestamp", "date", "uuid", "bytes")
_NAMED = ("op= names the column that says what happened to each row", "tx= that which tells commits apart")


class FeedError(DataError):
    """A row of a change feed says something that cannot be done. `row` is its number, from 0."""

    def __init__(self, what: str, *, row: int, where: str, why: str, remedy: str) -> None:
        self.row = row
        super().__init__(what, where=where, why=why, remedy=remedy)


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """How far a feed came: `rows` that were committed, in `commits`; `offset` is the first row that was not."""

    rows: int
    commits: int
    offset: int

    def __str__(self) -> str:
        return f"{amount(self.rows, 'row')} in {amount(self.commits, 'commit')}; go on with start={self.offset}"


class FeedRows(NamedTuple):
    """Rows int64[arity, n] of a feed: `kinds`, whether they come or go; `keyed`, whether keys count; `tx`, of which.

    `tx`: numbers of the commits that the rows belong to, where a column tells them apart.

    `counted`: the last row holds how many copies come or go, of a bag; else of a bag it is one of each.
    """

    rows: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8]
    keyed: npt.NDArray[np.bool_]
    tx: npt.NDArray[np.int64] | None
    counted: bool = False

    def __len__(self) -> int:
        return len(self.kinds)

    def part(self, lo: int, hi: int) -> FeedRows:
        """The rows in [lo, hi)."""
        tx = None if self.tx is None else self.tx[lo:hi]
        return FeedRows(self.rows[:, lo:hi], self.kinds[lo:hi], self.keyed[lo:hi], tx, self.counted)

    @staticmethod
    def joined(parts: Sequence[FeedRows]) -> FeedRows:
        """Rows of one feed that follow each other, at least one part of them."""
        if len(parts) == 1:
            return parts[0]
        tx = [part.tx for part in parts if part.tx is not None]
        return FeedRows(
            np.concatenate([part.rows for part in parts], axis=1),
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.keyed for part in parts]),
            np.concatenate(tx) if tx else None,
            parts[0].counted,
        )

    def batches(self) -> Iterator[Batch]:
        """The same as batches of a transaction: runs of rows that are named, and of rows whose keys are."""
        if self.counted:
            yield Batch(with_copies(self.rows[:-1], len(self), self.rows[-1] * self.kinds), len(self), COPIES)
            return
        edges = np.flatnonzero(np.diff(self.keyed)) + 1
        for lo, hi in zip([0, *edges.tolist()], [*edges.tolist(), len(self)], strict=True):
            rows = np.ascontiguousarray(self.rows[:, lo:hi])
            yield Batch(rows, hi - lo, UPSERT if self.keyed[lo] else INSERT, self.kinds[lo:hi])


class Committing(Protocol):
    """What changes are applied to: a `Database`."""

    _progress: Progress

    @property
    def transaction(self) -> Callable[[], AbstractContextManager[Any]]:
        """A transaction."""


class FeedReader:
    """Reads a feed of one `relation`, in one piece or several. `notes`: what was passed over, in words.

    A feed of a bag may name its last column too, as the bag's differences do: then it says of each row how many copies
    come or go. Whether it does is known of the first piece.
    """

    def __init__(self, schema: Schema, symbols: SymbolTable, op: str, tx: str | None, options: ReadOptions) -> None:
        self.relation, self._given, self._symbols, self.options = schema, schema.given, symbols, options
        self._schema = schema  # of what is read, once `_counted` is known
        self._counted: bool | None = None if schema.bag else False
        self._beside = [op] if tx is None else [op, tx]
        for name, column in zip(("op", "tx"), self._beside, strict=False):
            arguments.text(
                name, column, "it is the name of a column of the source", f'give a name such as `{name}="op"`'
            )
            if column in self._given.names or column == tx == op:
                raise arguments.refused(
                    name,
                    column,
                    f"{self._given} has a column of that name" if column in self._given.names else "op is that one",
                    "rename the column of the source, and name that",
                )
        if options.columns is not None and isinstance(options.columns, dict):
            self.options = options._replace(columns={**{name: name for name in self._beside}, **options.columns})
        # Texts of a piece, by other codes than the database's: what is in `op` and `tx` is in no relation. A feed may
        # never end, so those of the pieces before are not kept.
        self._texts = SymbolTable()
        self._kinds: tuple[str, ...] | None = None
        self._tx: tuple[int, object] = (0, None)  # the commit that the last row belonged to: its number and its value
        self.notes: list[str] = []

    def read(self, source: Any, first: int) -> FeedRows:
        """The changes of a piece of the feed whose first row has the number `first`."""
        if self._counted is None:
            self._counted = names_copies(source, self._schema, self.options, self._beside)
            self._schema = without_bag(self._schema) if self._counted else self._given
        self._texts = SymbolTable()
        staging = self._staged(source)
        loaded = staging.finish(self._texts)
        if loaded.note:
            self.notes.append(loaded.note)
        n = self._schema.arity
        assert self._kinds is not None, "how it is read is known once it was"

        def where(row: int) -> str:
            return staging.where(row) if is_paths(source) else f"row {first + row} of the feed (from 0)"

        kinds, keyed = self._ops(loaded.columns[n], self._kinds[0], first, where)
        if self._counted:
            self._check_copies(loaded.columns[n - 1], first, where)
        columns = [
            self._interned(codes) if in_dictionary(type) else codes
            for codes, type in zip(loaded.columns, self._schema.types, strict=False)
        ]
        rows = np.stack(columns) if columns else np.empty((0, loaded.rows), np.int64)
        tx = self._numbered(loaded.columns[n + 1], self._kinds[1]) if len(self._beside) > 1 else None
        return FeedRows(rows, kinds, keyed, tx, bool(self._counted))

    def _check_copies(self, copies: npt.NDArray[np.int64], first: int, where: Callable[[int], str]) -> None:
        """Refuse numbers of copies of which none come or go: `op` says which of the two it is."""
        if len(copies) and copies.min() < 1:
            row = int(np.argmax(copies < 1))
            raise FeedError(
                f"`{self._schema.names[-1]}` is {copies[row]}",
                row=first + row,
                where=where(row),
                why=f"it says how many copies of the row come or go, and `{self._beside[0]}` which of the two",
                remedy="give 1 or more, or leave the column out: each row is one copy then",
            )

    def _staged(self, source: Any) -> FeedStaging:
        """The source, with `op` and `tx` read as what they are: the first kinds of columns that fit.

        It is read once, unless rows that come later are of another kind than those that come first.
        """
        n = self._schema.arity
        kinds: list[tuple[str, ...]] = [(kind,) for kind in self._kinds or ()]
        kinds = kinds or [_OP_KINDS, _TX_KINDS][: len(self._beside)]
        refused: BadRowsError | ColumnTypeError | None = None
        while True:
            beside = (Column(name, first) for name, (first, *_) in zip(self._beside, kinds, strict=True))
            schema = replace(self._schema, columns=(*self._schema.columns, *beside), functional=False)
            staging = FeedStaging(schema, dict(enumerate(kinds, n)), extra=self.options.extra)
            try:
                fill(staging, source, self.options)
            except ColumnsError as error:
                remedy = "; ".join([error.remedy, *_NAMED[: len(self._beside)]])
                raise ColumnsError(error.what, where=error.where, why=error.why, remedy=remedy) from None
            except (ColumnTypeError, BadRowsError) as error:
                if _column_of(error) not in self._beside:
                    raise
                refused = error if refused is None or self._reach(error) > self._reach(refused) else refused
                at = self._beside.index(_column_of(error))
                kinds[at] = kinds[at][kinds[at].index(staging.schema.types[n + at]) + 1 :]
                if not kinds[at]:
                    raise self._beside_refused(refused) from None
            else:
                self._kinds = staging.schema.types[n:]
                return staging

    def _reach(self, error: BadRowsError | ColumnTypeError) -> tuple[int, int]:
        """How far the reader came: the row, and which of the columns."""
        row = error.rejects[0].line if isinstance(error, BadRowsError) else -1
        return row, self._beside.index(_column_of(error))

    def _beside_refused(self, error: BadRowsError | ColumnTypeError) -> DataError:
        """What is wrong with the column of `op=` or `tx=`, which is none of the relation's."""
        name = _column_of(error)
        option = "op" if name == self._beside[0] else "tx"
        remedy = (
            "give each row +1 or -1, insert or delete, or of a functional predicate update; texts or integers"
            if option == "op"
            else f"give each row a text, an integer or a time in it, all of one kind, or leave {option}= out"
        )
        why = f"{option}={name!r} says {'what happened to each row' if option == 'op' else 'which rows are one commit'}"
        if isinstance(error, ColumnTypeError):
            given = error.what.partition("the source's column ")[2].partition(", not ")[0]
            return DataError(f"the feed's column {given}", where=error.where, why=why, remedy=remedy)
        reject, rejects = error.rejects[0], Rejects()
        reason = f"the feed's column `{name}` holds {reject.text}"
        rejects.append(replace(reject, reason=reason, why=why, remedy=remedy))
        return BadRowsError(rejects, 1, apart=False)

    def _numbered(self, codes: npt.NDArray[np.int64], kind: str) -> npt.NDArray[np.int64]:
        """Numbers of the commits of rows: another one where the value is another, and from piece to piece."""
        if not len(codes):
            return codes
        number, before = self._tx
        first, last = (self._texts.value(code, kind) for code in codes[[0, -1]].tolist())
        numbers: npt.NDArray[np.int64] = number + int(first != before) + np.r_[0, np.cumsum(codes[1:] != codes[:-1])]
        self._tx = int(numbers[-1]), last
        return numbers

    def _interned(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The database's codes of texts."""
        if (codes < 0).any():  # null, which is null in every dictionary
            known = codes.copy()
            known[codes >= 0] = self._interned(codes[codes >= 0])
            return known
        used = np.zeros(len(self._texts), np.bool_)
        used[codes] = True
        table = np.zeros(len(used), np.int64)
        here = np.flatnonzero(used)
        table[here] = self._symbols.intern_array(self._texts.decode(here))
        return table[codes]

    def _ops(
        self, codes: npt.NDArray[np.int64], kind: str, first: int, where: Callable[[int], str]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
        """Whether each row comes or goes, and whether its key counts."""
        distinct, at = np.unique(codes, return_inverse=True)
        meant = []
        for number, code in enumerate(distinct.tolist()):
            value = self._texts.value(code, kind)
            found = meaning(str(value), self._given)
            if isinstance(found, str):
                row = int(np.argmax(at == number))
                raise FeedError(
                    f"`{self._beside[0]}` is {shown(value)}, which {found}",
                    row=first + row,
                    where=where(row),
                    why="a feed says of each row what happened to it, and nothing of this one was done",
                    remedy="give +1 or -1, insert or delete (c, r, i or d), or of a functional predicate update (u)",
                )
            meant.append(found)
        kinds = np.array([comes for comes, _ in meant], np.int8)
        keyed = np.array([by_key for _, by_key in meant], np.bool_)
        return kinds[at], keyed[at]


def meaning(word: str, schema: Schema) -> tuple[int, bool] | str:
    """INSERT or ERASE, and whether the key counts; or why it is neither."""
    word = word.strip().lower()
    if word in _EXACT:
        return _EXACT[word], False
    if word in _COMES:
        return INSERT, schema.has_key
    if word in _GOES:
        return ERASE, schema.has_key
    if word not in _REPLACES:
        return "is no operation"
    return (INSERT, True) if schema.has_key else f"replaces the row of a key, and {schema} has no keys"


def _column_of(error: BadRowsError | ColumnTypeError) -> str:
    return error.rejects[0].column if isinstance(error, BadRowsError) else error.column


def follow(
    db: Committing,
    name: str,
    reader: FeedReader,
    source: Any,
    *,
    batch_rows: int | None,
    start: Any,
    on_commit: Callable[[ChangeReport], object] | None,
) -> ChangeReport:
    """Apply a feed from row `start` on, in whole commits. Whatever is raised has a `report` of those that were made."""
    size = arguments.count("batch_rows", batch_rows, "rows of a commit, where no column says what belongs together")
    if type(start) is not int or start < 0:
        raise arguments.refused("start", start, "it is the first row to apply, from 0", "give the `offset` of a report")
    if on_commit is not None:
        arguments.function("on_commit", on_commit, "on_commit(report)")
    report = ChangeReport(0, 0, start)
    with db._progress.step(f"loading changes of {name}"):
        show_rows = db._progress.rows(lambda: "")
        try:
            for changes in _commits(_read(reader, source, size or BATCH_ROWS, start), size or BATCH_ROWS):
                with db.transaction() as tx:
                    relation = tx._relation(name)
                    if relation.schema != reader.relation:
                        raise replaced(name, reader.relation, relation.schema)
                    for batch in changes.batches():
                        tx._add(name, relation, batch)
                rows = report.rows + len(changes)
                report = ChangeReport(rows, report.commits + 1, start + rows)
                if show_rows is not None:
                    show_rows(rows, "rows", f"{report.commits:,} commits")
                if on_commit is not None:
                    on_commit(report)
        except BaseException as error:
            error.report = report  # type: ignore[attr-defined]
            error.add_note(f"of the changes of `{name}` were committed: {report}")
            raise
    return report


def _commits(pieces: Iterable[FeedRows], batch_rows: int) -> Iterator[FeedRows]:
    """The rows of each commit. One that may go on in the next piece waits for it."""
    left: list[FeedRows] = []  # joined once, however many pieces a commit has
    waiting = 0
    for piece in filter(len, pieces):
        if piece.tx is None:
            left.append(piece)
            waiting += len(piece)
            if waiting >= batch_rows:
                changes = FeedRows.joined(left)
                whole = waiting - waiting % batch_rows
                for lo in range(0, whole, batch_rows):
                    yield changes.part(lo, lo + batch_rows)
                left, waiting = [part for part in (changes.part(whole, waiting),) if len(part)], waiting % batch_rows
            continue
        if left and left[-1].tx is not None and left[-1].tx[-1] != piece.tx[0]:
            yield FeedRows.joined(left)
            left = []
        edges = [0, *(np.flatnonzero(np.diff(piece.tx)) + 1).tolist()]
        for lo, hi in pairwise(edges):
            yield FeedRows.joined([*left, piece.part(lo, hi)])
            left = []
        left.append(piece.part(edges[-1], len(piece)))
    if left:
        yield FeedRows.joined(left)


def _read(reader: FeedReader, source: Any, piece_rows: int, start: int) -> Iterator[FeedRows]:
    """The feed from row `start` on, in one piece, or of an iterator in several."""
    if not is_paths(source) and hasattr(source, "read_next_batch"):
        pieces: Iterator[Any] = iter(source)
    elif not is_paths(source) and hasattr(source, "__next__"):
        pieces = iter(lambda: list(islice(source, piece_rows)), [])
    else:
        changes = reader.read(readable_again(source, reader.options), 0)
        if start > len(changes):
            raise arguments.refused(
                "start", start, f"the feed has {len(changes):,} rows", "give an offset of this feed"
            )
        yield changes.part(start, len(changes))
        return
    row = 0
    for piece in pieces:
        rows = piece.num_rows if hasattr(piece, "num_rows") else len(piece)
        skipped = min(rows, max(0, start - row))
        row += rows
        if skipped == rows:
            continue
        rest = piece.slice(skipped) if hasattr(piece, "num_rows") else piece[skipped:]
        try:
            yield reader.read(rest, row - rows + skipped)
        except BadRowsError as error:
            raise _moved(error, row - rows + skipped) from None


def _moved(error: BadRowsError, by: int) -> BadRowsError:
    """The same error with the numbers that rows have in the whole feed."""
    moved = Rejects()
    for reject in error.rejects:
        moved.append(replace(reject, line=reject.line + by))
    return BadRowsError(moved, error.count, apart=False)
