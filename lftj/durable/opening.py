"""A database from its file: the last checkpoint at memory speed, then the entries after it as one net change.

A reader in another process goes on the same way: what was committed since is a few entries more.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from lftj import arguments
from lftj.durable import ends, meta
from lftj.durable.checkpoint import SavedCheckpoint
from lftj.durable.container import SYNC, Container
from lftj.durable.database_file import STEP, DatabaseFile
from lftj.durable.entry import LogEntry, netted
from lftj.durable.followed import follow_again, follow_further
from lftj.durable.hashes import damaged, hash_of, intact
from lftj.durable.log_writing import texts_of
from lftj.durable.program_log import after
from lftj.durable.segments import PageList
from lftj.errors import DatabaseFileError, EvaluationError
from lftj.join.run import Limits
from lftj.maintain.commit import Commit
from lftj.program.state import State
from lftj.program.strata import Heads
from lftj.store.change import ERASE, ERASED, INSERT, INSERTED, Batch, Change, applied

if TYPE_CHECKING:
    import os

    from lftj.durable.in_file import InFile
    from scantree.version import Version

# Entries that are read from the log together: nobody is kept waiting, and no statement stays open.
AT_A_TIME = 256
_NO_HEADS: frozenset[str] = frozenset()


class Row(NamedTuple):
    """An entry as it is in the log, with its bytes."""

    seq: int
    time: float
    entry: LogEntry
    size: int


def opened(
    database: InFile, path: str | os.PathLike[str], *, read_only: bool, sync: str, retain: int | Literal["kept"] | None
) -> DatabaseFile:
    """The file at `path`, which is made if it is not there; `database`, which is empty, gets what is in it.

    `retain`: as `DatabaseFile` takes it, or "kept": as the file has it.
    """
    arguments.one_of("sync", sync, tuple(SYNC), "it says what a commit that returned survives")
    container = Container(path, read_only=read_only, sync=sync, page_rows=database._evaluator.page_rows)
    try:  # interrupted before this, the container is gone, and its lock with it
        with container.failing("read"):
            kept = meta.retained(container.connection) if retain == "kept" else retain
            file = DatabaseFile(container, database._symbols, kept)
    except BaseException:
        container.close()
        raise

    def read() -> None:
        load_symbols(file)
        try:
            last = SavedCheckpoint.last(container)
            if last is not None:
                restore(database, file, last)
        except DatabaseFileError as error:
            _from_log(database, file, error)
        go_on(database, file)

    try:
        with database._progress.step(f"opening {container.path.name}"), container.failing("read"):
            if read_only:
                container.at_one_moment(read)  # its writer may drop what is to be read
            else:
                read()
    except BaseException:
        file._finalizer()
        raise
    return file


def entries_kept(container: Container) -> int | None:
    """How many entries the log has, if it has all from the first one on, intact, and none of them names pages."""
    first, last, count = container.connection.execute("select min(seq), max(seq), count(*) from log").fetchone()
    if first != 1 or last != count or last < ends.last_of(container, ends.LOG):
        return None
    for seq, time, body, hash in container.connection.execute("select seq, time, entry, hash from log"):
        if hash_of(body, seq, time) != hash or LogEntry.decoded(body).pages:
            return None
    return int(count)


def _from_log(database: InFile, file: DatabaseFile, error: DatabaseFileError) -> None:
    """A damaged checkpoint is no loss where the log goes back to the beginning: all is made from that."""
    if not entries_kept(file.container):
        raise error
    warnings.warn(f"{error.what}; everything is read from the log", RuntimeWarning, stacklevel=5)
    database._evaluator.state, file.steps, file.seq, file.segments.saved = State(), [], 0, {}


def load_symbols(file: DatabaseFile) -> None:
    """Read the texts that are in the file and not in memory."""
    sql = "select first, count, texts, hash from symbols where first >= ? order by first"
    for first, count, texts, hash in file.container.connection.execute(sql, (file.symbols_written,)):
        if first != len(file.symbols):
            raise damaged(f"symbols from {len(file.symbols)} on are missing")
        file.symbols.intern_array(texts_of(intact(texts, hash, "symbols", first, count)))
        if len(file.symbols) != first + count:
            raise damaged(f"symbols {first}: a text is there twice")
        file.symbols_written = first + count


def restore(database: InFile, file: DatabaseFile, checkpoint: SavedCheckpoint) -> None:
    """Give an empty database what a checkpoint holds."""
    if len(file.symbols) < checkpoint.header["symbols"]:
        raise damaged(f"symbols from {len(file.symbols)} on are missing")
    state = database._state
    for step in checkpoint.header["steps"]:
        state = after(state, step, database._new, database._symbols)
    state, supports = checkpoint.read(file.container, file.segments, state, database._evaluator.rounds)
    database._evaluator.state = state
    for heads in state.strata.together:
        _note_evaluated(database, heads)
    file.steps = list(checkpoint.header["steps"])
    file.seq = file.checkpoint_seq = checkpoint.seq
    file.traces = checkpoint.header["traces"]
    follow_again(database, supports, checkpoint.header["supports"])
    follow_further(database, checkpoint.followed(file.container), file.segments, file.chunks)


def _note_evaluated(database: InFile, heads: Heads) -> None:
    """A head that came back evaluated is as one that was just evaluated: its next change prepares."""
    if not heads.recursive and heads.name not in database._state.stale:
        content = database._state.relations[heads.name].content
        database._kept.costs_of(heads).evaluated = weakref.ref(content)


def rows_after(container: Container, seq: int, upto: int | None = None) -> Iterator[Row]:
    """The entries after number `seq`, as far as `upto`, in order. `DatabaseFileError` if one is missing or damaged."""
    sql = "select seq, time, entry, hash from log where seq > ? order by seq limit ?"
    while upto is None or seq < upto:
        with container.lock, container.failing("read"):
            rows = container.connection.execute(sql, (seq, AT_A_TIME)).fetchall()
        if not rows and upto is None:
            return
        for number, time, body, hash in rows or [(None, 0.0, b"", b"")]:
            if number != seq + 1:
                oldest = container.connection.execute("select min(seq) from log").fetchone()[0]
                if oldest is not None and oldest <= seq:
                    raise damaged(f"entry {seq + 1} of the log is missing")
                raise DatabaseFileError(
                    f"entry {seq + 1} of the log is not there any more",
                    why="entries are dropped by a checkpoint, but for those that `retain=` asks to keep",
                    remedy="open the database with a larger `retain=`, or retain=None to keep all, from now on",
                )
            seq = number
            yield Row(number, time, LogEntry.decoded(intact(body, hash, "log", number, time)), len(body))
            if seq == upto:
                return


def go_on(database: InFile, file: DatabaseFile) -> None:
    """Take up the entries after `file.seq`. Runs of changes are one net change."""
    pending: dict[str, list[Change]] = {}
    load_symbols(file)  # also without an entry: a checkpoint writes what queries and evaluations brought
    for row in rows_after(file.container, file.seq):
        entry = row.entry
        if entry.steps or entry.pages:
            _apply(database, pending)
            pending = {}
            for step in entry.steps:
                database._evaluator.state = after(database._state, step, database._new, database._symbols)
                file.steps.append(step)
            for name, listed in entry.pages.items():
                pages = PageList.decoded(listed)
                relation = database._state.relations[name]
                version = pages.read(file.container, relation.declared_store())
                file.segments.adopt(f"facts {name}", version, pages)
                database._evaluator.state = database._state.with_facts(name, version)
            if entry.changes:
                load(database, entry.changes)
        else:
            for name, change in entry.changes.items():
                pending.setdefault(name, []).append(change)
        file.seq = row.seq
        file.tail += row.size + STEP * len(entry.steps)
    ends.check(file.container, ends.LOG, file.seq)
    ends.check(file.container, ends.SYMBOLS, file.symbols_written)
    _apply(database, pending)


def _apply(database: InFile, pending: Mapping[str, list[Change]]) -> None:
    """Change facts. What is derived from them follows where it is up to date; else it is evaluated when it is read."""
    net = {name: change for name, changes in pending.items() if len((change := netted(changes)).kinds)}
    state = database._state
    if state.stale.isdisjoint(state.strata.above(net)):
        try:
            committed(database, net)
            return
        except EvaluationError:
            pass  # a load brought what a rule has no value for: whoever reads that is told, and nobody else
    load(database, net)


def load(database: InFile, changes: Mapping[str, Change]) -> None:
    """Change facts as a load does: what is derived from them is stale."""
    state = database._state
    for name, change in changes.items():
        state = state.with_facts(name, changed_facts(state.relations[name].facts, change))
    database._evaluator.state = state


def changed_facts(facts: Version, change: Change) -> Version:
    """Facts after a change of them."""
    return applied(facts, batches_of(change))[0]


def batches_of(change: Change) -> list[Batch]:
    """A change as a transaction gives it to a relation."""
    parts = [(change.of_kind(ERASED), ERASE), (change.of_kind(INSERTED), INSERT)]
    if not len(change.rows):  # a relation without columns has one row or none
        return [Batch(change.rows, len(change.kinds), INSERT if change.kinds[0] == INSERTED else ERASE)]
    return [Batch(rows, rows.shape[1], op) for rows, op in parts if rows.shape[1]]


def committed(database: InFile, changes: Mapping[str, Change]) -> Commit:
    """Commit changes of facts that are in the file already."""
    batches = {name: batches_of(change) for name, change in changes.items()}
    commit = Commit(database._evaluator, batches, None, _NO_HEADS, lambda _: Limits(), database._kept)
    try:
        commit.run()
    except BaseException:
        commit.discard()
        raise
    commit.publish()
    return commit
