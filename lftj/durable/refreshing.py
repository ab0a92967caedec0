"""A reader in another process: it goes on to what the writer of the file has committed since.

A reader may have texts of its own: constants of its queries, what its evaluations computed, those of its branches.
They have the codes that the writer gives to its next texts. So before it takes these up, its own are numbered again,
behind them: another table of symbols takes the place of its own, and heads that hold such texts are evaluated again.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lftj.durable import ends
from lftj.durable.checkpoint import SavedCheckpoint
from lftj.durable.database_file import DatabaseFile
from lftj.durable.opening import go_on, load_symbols, restore
from lftj.errors import CountRangeError, DatabaseFileError, EvaluationError
from lftj.evaluate.evaluator import Evaluator
from lftj.language.clause import INTERNAL
from lftj.maintain.step import KeptHeads
from lftj.program.state import State
from lftj.results.transaction_delta import Deltas
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile


class Before(NamedTuple):
    """A reader as it is before it goes on; `symbols_written`: how many texts of its table are those of the file."""

    state: State
    evaluator: Evaluator
    kept: KeptHeads
    known: dict[Any, Any]
    symbols: SymbolTable
    symbols_written: int
    seq: int
    steps: list[dict[str, Any]]
    saved: dict[str, Any]

    @classmethod
    def of(cls, database: InFile, file: DatabaseFile) -> Before:
        """A reader as it is."""
        held = (database._state, database._evaluator, database._kept, database._known)
        texts = (database._symbols, file.symbols_written)
        return cls(*held, *texts, file.seq, list(file.steps), dict(file.segments.saved))

    def again(self, database: InFile, file: DatabaseFile) -> None:
        """Make the reader what it was."""
        if database._symbols is not self.symbols:
            database._symbols = file.symbols = self.symbols
            file.symbols_written = self.symbols_written
        database._evaluator, database._kept, database._known = self.evaluator, self.kept, self.known
        database._evaluator.state = self.state
        file.seq, file.steps, file.segments.saved = self.seq, self.steps, self.saved


def refreshed(database: InFile, file: DatabaseFile) -> Deltas:
    """Take up the entries that are new in the file, and deliver what they changed."""
    if not file.read_only:
        raise DatabaseFileError(
            "`refresh` of a database that writes to its file",
            why="it is the one writer, so nobody else can have changed the file",
            remedy="call it where the file was opened with read_only=True",
        )
    taken: list[Deltas] = []
    with database._lock:
        try:
            try:
                with file.container.failing("read"):
                    file.container.at_one_moment(lambda: _take_up(database, file, taken))
            finally:
                failures = _told(database, taken)
        except BaseException:
            _told(database, taken)  # if an interrupt came there: what it has left
            raise
    for failure in failures:
        warnings.warn(failure, RuntimeWarning, stacklevel=3)
    return taken[0]


def _told(database: InFile, taken: list[Deltas]) -> list[str]:
    """Tell of what was taken up, with the file left to others: callbacks may wait for them."""
    return [failure for deltas in taken for failure in database._deliver(deltas)]


def _take_up(database: InFile, file: DatabaseFile, taken: list[Deltas]) -> None:
    """Go on to the last entry, and add what that changed to `taken`; or the reader is as it was."""
    failed: dict[str, EvaluationError] = {}
    database._refresh(tuple(database._state.relations), None, failed)
    before = Before.of(database, file)
    contents = {name: relation.content for name, relation in before.state.relations.items()}
    try:
        if len(before.symbols) > before.symbols_written < ends.last_of(file.container, ends.SYMBOLS):
            contents |= _number_texts_again(database, file)
        last = SavedCheckpoint.last(file.container)
        if last is not None and last.seq > file.seq and not _kept_by_row(file, last.seq):
            _again(database, file, last)
        else:
            go_on(database, file)
        database._refresh_all(None)
        after = database._state.relations
        changes = _changes(before.state.relations, contents, after)
        # As after a commit: what had no value when the reader was opened must not keep it from going on. Path counts
        # that no number holds are as they last were (`_refresh_all`).
        unknown = {name: error for name, error in failed.items() if not isinstance(error, CountRangeError)}
        changes = {name: change for name, change in changes.items() if name not in unknown}
        schemas = {name: after[name].schema for name in changes}
        taken.append(Deltas(changes, unknown, database._evaluator, schemas))
    except BaseException:
        if not taken:
            before.again(database, file)
        raise


def _kept_by_row(file: DatabaseFile, upto: int) -> bool:
    """Whether the log has all entries after the reader's as far as `upto`, and no pages, which may not be there now."""
    sql = "select count(*), total(instr(entry, cast('\"pages\"' as blob)) > 0) from log where seq > ? and seq <= ?"
    count, in_bulk = file.container.connection.execute(sql, (file.seq, upto)).fetchone()
    return bool(count == upto - file.seq and not in_bulk)


def _again(database: InFile, file: DatabaseFile, checkpoint: SavedCheckpoint) -> None:
    """The entries since are gone: the checkpoint takes the place of what is there."""
    load_symbols(file)
    database._evaluator.state, file.steps, file.segments.saved = State(), [], {}
    restore(database, file, checkpoint)
    go_on(database, file)


def _number_texts_again(database: InFile, file: DatabaseFile) -> dict[str, Version]:
    """Take up the file's texts, and number the reader's own behind them.

    Returns the contents of heads that hold such texts, with their new codes; the heads are stale.
    """
    own, first, state = database._symbols, file.symbols_written, database._state
    symbols = SymbolTable()
    symbols.intern_array(own.texts()[:first])
    database._symbols = file.symbols = symbols
    load_symbols(file)
    codes = np.concatenate([np.arange(first), symbols.intern_array(own.texts()[first:])])
    contents = {
        name: relation.build(_with_codes(relation, codes))
        for name, relation in state.relations.items()
        if name in state.strata.by_head and _has_codes_from(relation, first)
    }
    evaluator = database._evaluator
    # Plans and traces have codes of constants.
    database._evaluator = Evaluator(
        evaluator.arena,
        symbols,
        state.made_stale(contents),
        evaluator.page_rows,
        evaluator.dir_rows,
        evaluator.buffer_rows,
        evaluator.pilot_from,
        evaluator.columns_from,
        evaluator.trace_room,
        evaluator.rounds,
    )
    database._kept, database._known = KeptHeads(), {}
    return contents


def _texts_of(relation: StoredRelation) -> list[int]:
    """The columns of a relation that hold texts."""
    return [i for i, type in enumerate(relation.schema.types) if in_dictionary(type)]


def _has_codes_from(relation: StoredRelation, first: int) -> bool:
    """Whether a relation holds a text with code `first` or a later one."""
    columns = _texts_of(relation)
    return bool(columns and len(relation) and (relation.content.columns()[columns] >= first).any())


def _with_codes(relation: StoredRelation, codes: Any) -> Any:
    """The rows of a relation, int64[arity, n], with other codes for its texts."""
    rows = relation.content.columns().copy()
    for column in _texts_of(relation):
        there = rows[column] >= 0  # else it is null
        rows[column, there] = codes[rows[column, there]]
    return rows


def _changes(
    before: Mapping[str, StoredRelation], contents: Mapping[str, Version], after: Mapping[str, StoredRelation]
) -> dict[str, Change]:
    """How relations differ; pages that they share are not looked at.

    One that was not there, or had other columns, has all its rows as inserted, as the writer's `tx.delta` has them.
    """
    changes = {}
    for name, relation in after.items():
        if name in before and before[name].schema.columns == relation.schema.columns:
            was = contents[name]
        elif name.startswith(INTERNAL):
            continue
        else:
            was = relation.content.store.empty()
        change = Change.between(was, relation.content)
        if len(change.kinds):
            changes[name] = change
    return changes
