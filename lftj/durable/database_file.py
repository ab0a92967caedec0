"""The file of a database: what is written when.

    a transaction       its net changes of facts, and new texts, before it is published
    a load              the rows that are new; many rows into an empty relation as pages, which they stay
    rules               the step of the program, and the facts in it
    a checkpoint        when the log has grown, beside the work of others; at the end; and when somebody asks

Each is one transaction of SQLite, and it has returned before anybody sees the change: a write that fails leaves the
database as it was. With sync="off" entries wait in memory until a thread writes them, some times a second.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.durable import ends, meta
from lftj.durable.checkpoint import Taken, write
from lftj.durable.chunks import Chunks
from lftj.durable.container import Container
from lftj.durable.entry import LogEntry, Step
from lftj.durable.followed import followed_of, supports_of, with_orders
from lftj.durable.gone_steps import gives, steps_after, without_gone
from lftj.durable.log_writing import Deltas, Waiting, symbols_there, write_entries, write_entry, write_with_symbols
from lftj.durable.segments import PageList, Saved, Segments
from lftj.errors import DatabaseFileError, ForkError
from lftj.store.change import Change
from lftj.values.symbols import SymbolTable
from scantree.locks import Lock

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile
    from scantree.version import Version

# Rows of a load into an empty relation from which they are written as pages.
BULK = 50_000
# Bytes of the log after which a checkpoint is made, and what part of the pages in the file they must be: rows from
# everywhere change nearly all pages, which a checkpoint then writes again.
TAIL, TAIL_PART = 16 << 20, 1 / 8
# Bytes of the log that a step of the program counts for: opening a file goes through 2,000 of them in a second.
STEP = 1 << 13
# So many steps of a program more than twice those of the last look, and a checkpoint looks for some to leave out.
FEW_STEPS = 64
# Seconds after which a checkpoint that failed is tried again.
RETRY = 60
# Seconds between two looks of a checkpoint that waits for the database at whether that is being closed.
PATIENCE = 0.05
# Seconds that entries may wait with sync="off", and how many.
WAIT, WAITING = 0.2, 50_000


class Shortened(NamedTuple):
    """What checkpoint `seq` has in the place of the first steps, `replaced` of them."""

    seq: int
    replaced: int
    steps: list[Step]


class DatabaseFile:
    """What a database writes to its file. `seq`: the number of the last entry; `steps`: those of the program.

    `retain`: entries before the last checkpoint that are kept, with the changes of derived relations; None: all.
    `tail`: the bytes of the log after the last checkpoint, and what steps count for.
    """

    def __init__(self, container: Container, symbols: SymbolTable, retain: int | None) -> None:
        self.container, self.symbols, self.retain = container, symbols, retain
        self.segments = Segments(container)
        self.chunks = Chunks(self.segments)
        self.seq = 0
        self.steps: list[Step] = []
        self.symbols_written = 0
        self.checkpoint_seq = 0
        self.traces = False  # whether checkpoints have what heads are followed by
        self._shortened: Shortened | None = None
        self._looked_at = 0  # how many steps there were when it was last looked for some to leave out
        self.tail = 0
        self._page_bytes: int | None = None  # of the pages in the file, once somebody has asked
        self._retry = 0.0
        self._untaken: tuple[int, int] | None = None
        self._size = 0
        # Appended to by who commits, shortened by who has the container's lock: each in one step, so without a lock.
        self._waiting: list[Waiting] = []
        # One checkpoint, or load in bulk, at a time writes segments.
        self._checkpoints = Lock(ForkError, "the file of the database")
        self._failed = False  # whether what waits could not be written when that was last tried
        self._closing = threading.Event()
        self._writer: threading.Thread | None = None
        self._checkpointing: threading.Thread | None = None
        self._finalizer = weakref.finalize(self, _end_of_nobodys, container, symbols, self._waiting)

    @property
    def read_only(self) -> bool:
        """Whether nothing may be written."""
        return self.container.read_only

    @property
    def keeps_history(self) -> bool:
        """Whether the changes of derived relations are written."""
        return self.retain != 0

    def begin_history(self, seq: int) -> None:
        """Note how much of the log is kept, and that changes of derived relations are written from entry `seq` on.

        Once it is certain that the database is opened: whoever is refused changes nothing.
        """
        if self.read_only:
            return
        noted: dict[str, int | None] = {}
        with self.container.failing("write to"):
            if self.keeps_history != (self.container.meta("history") is not None):
                noted["history"] = seq if self.keeps_history else None
            if meta.retained(self.container.connection) != self.retain:
                noted["retain"] = self.retain

            def write(_: sqlite3.Connection) -> None:
                for key, value in noted.items():
                    self.container.set_meta(key, value)

            if noted:
                self.container.transact(write)

    # -- entries ------------------------------------------------------------------------------------------------------

    def append(self, entry: LogEntry, deltas: Deltas | None = None) -> int:
        """Write an entry; it holds once this returns. Returns its number."""
        if self.read_only:
            raise DatabaseFileError(
                f"{self.container.path} was opened read-only",
                why="a change must be written before it holds",
                remedy="open it without read_only=True; or change a copy in memory, `db.branch()`",
            )
        if self._untaken is not None:
            self._settle()
        if self._failed:
            self.flush()
        seq, now, symbols = self.seq + 1, time.time(), len(self.symbols)
        if self.container.sync == "off":
            self.container.connection  # noqa: B018  (what waits is written by nobody once the file is closed)
            self._wait(Waiting(seq, now, entry, deltas or {}, symbols))
        elif not deltas and symbols == self.symbols_written:
            self.tail += write_entry(self.container, seq, now, entry)
        else:
            with self.container.failing("write to"):
                self._write([Waiting(seq, now, entry, deltas or {}, symbols)])
        self.seq = seq
        if entry.steps:
            self.steps += entry.steps
            self.tail += STEP * len(entry.steps)
        return seq

    def append_commit(
        self, changes: Mapping[str, Change], steps: Iterable[Step], dropped: Mapping[str, Change], deltas: Deltas
    ) -> None:
        """Write the entry of a transaction, as `append`. Whoever commits need not import what an entry is for that."""
        self.append(LogEntry(changes, {}, tuple(steps), dropped), deltas)

    def _write(self, entries: Sequence[Waiting]) -> None:
        with self.container.lock:  # of those who write, nobody sees another number of texts than the file has
            self.tail += write_entries(self.container, self.symbols, entries, self.symbols_written)
            self.symbols_written = max(self.symbols_written, entries[-1].symbols)

    def take_back(self, seq: int, steps: int) -> None:
        """What was written after entry `seq`, and was not published, never was: it failed or was interrupted.

        `steps`: how many there were then.
        """
        if self.read_only or not self._finalizer.alive:
            return
        with self.container.lock:
            self._untaken = seq, steps  # until it has been done, nothing else is written
            while self._waiting and self._waiting[-1].seq > seq:
                self._waiting.pop()

            def delete(connection: sqlite3.Connection) -> None:
                connection.execute("delete from log where seq > ?", (seq,))
                connection.execute("delete from deltas where seq > ?", (seq,))
                ends.taken_back(self.container, seq)
                self.symbols_written = symbols_there(self.container)

            with self.container.failing("write to"):
                self.container.transact(delete)
            self.seq = seq
            del self.steps[steps:]
            self._untaken = None

    def _settle(self) -> None:
        """Take back what could not be taken back when it failed."""
        if self._untaken is None:
            return
        with self.container.lock:
            if self._untaken is not None:  # another thread may have
                self.take_back(*self._untaken)

    # -- later --------------------------------------------------------------------------------------------------------

    def _wait(self, made: Waiting) -> None:
        """Let an entry wait for the thread that writes."""
        self._waiting.append(made)
        if self._writer is None:
            writer = threading.Thread(target=_write_later, args=(weakref.ref(self), self._closing), daemon=True)
            writer.start()
            self._writer = writer
        if len(self._waiting) >= WAITING:
            self.flush()

    def flush(self, *, closing: bool = False) -> None:
        """Write what waits; it waits until it is written. Whoever commits, makes a checkpoint or closes tries again.

        `closing`: nobody tries again.
        """
        self._settle()
        with self.container.lock:
            waiting = list(self._waiting)
            if not waiting:
                return
            try:
                with self.container.failing("write to"):
                    self._write(waiting)
                del self._waiting[: len(waiting)]
            except BaseException as error:  # interrupted, they may be written: the file tells
                with self.container.failing("read"):
                    last = self.container.connection.execute("select max(seq) from log").fetchone()[0] or 0
                    del self._waiting[: sum(made.seq <= last for made in list(self._waiting))]
                    self.symbols_written = symbols_there(self.container)
                self._failed = bool(self._waiting)
                if isinstance(error, DatabaseFileError) and self._waiting:
                    raise self._still_waiting(error, closing=closing) from None
                raise
            self._failed = False

    def _still_waiting(self, error: DatabaseFileError, *, closing: bool) -> DatabaseFileError:
        """The error where entries that were committed could not be written."""
        first, last = self._waiting[0].seq, self._waiting[-1].seq
        entries = f"entry {first} is" if first == last else f"entries {first} to {last} are"
        return DatabaseFileError(
            f"{error.what}: {entries} in memory only",
            why=f"{error.why}; with sync='off' a commit returns before it is written",
            remedy="the file is closed without them, and this database can still be read: load what it holds into"
            " another one, or write it with `to_parquet`"
            if closing
            else "remove the cause: the next commit, `checkpoint` and `close` try again, and `close` is the last to",
        )

    # -- what is written of loads and rules ---------------------------------------------------------------------------

    def loaded(self, name: str, before: Version, facts: Version, unknown: Deltas) -> None:
        """Write a load: `facts` are to take the place of `before`; `unknown`: what is derived from them."""
        if not len(before) and len(facts) >= BULK and self.container.sync != "off":

            def write(_: sqlite3.Connection) -> None:
                listed = self.segments.save(f"facts {name}", facts)
                self.append(LogEntry(pages={name: listed.encoded()}), unknown)

            self._together(write)
            return
        change = Change.between(before, facts)
        if len(change.kinds):
            self.append(LogEntry(changes={name: change}), unknown)

    def _together(self, write: Callable[[sqlite3.Connection], None]) -> None:
        """Write what holds together, or not at all."""
        with self._checkpoints, self.container.lock:
            before = self._noted()
            try:
                with self.container.failing("write to"):
                    self.container.transact(write)
            except BaseException:
                self._note(*before)
                raise

    @contextmanager
    def group(self) -> Iterator[None]:
        """All that is written in the block of somebody else's holds together, or none of it; as `_together`."""
        with self._checkpoints, self.container.lock:
            self.flush()
            before = self._noted()
            try:
                with self.container.failing("write to"), self.container.transaction():
                    yield
                    self.flush()
            except BaseException:
                self._note(*before)
                self._waiting.clear()
                raise

    def _noted(self) -> tuple[int, list[Step], int, dict[str, Saved]]:
        """What is known of the file."""
        return self.seq, list(self.steps), self.symbols_written, dict(self.segments.saved)

    def _note(self, seq: int, steps: list[Step], symbols: int, saved: dict[str, Saved]) -> None:
        self.seq, self.steps, self.symbols_written, self.segments.saved = seq, steps, symbols, saved

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def checkpoint(self, database: InFile, traces: bool | None = None) -> None:
        """Write a checkpoint of the database as it is; `traces`: with what heads are followed by (None: as before)."""
        with database._lock:
            moment, tail = self._take(database, traces)
        self._save(database, moment, tail)

    def _take(self, database: InFile, traces: bool | None) -> tuple[Taken, int]:
        """What a checkpoint is to hold, for who has the database's lock, and the bytes of the log that it replaces."""
        self.flush()
        self.traces = self.traces if traces is None else traces
        dropped = 0 if self.retain is None else max(0, self.seq - self.retain)
        moment = Taken(self.seq, database._state, self._shorter(database, dropped), len(self.symbols), dropped)
        if self.traces:
            supports, followed = supports_of(database), followed_of(database)
            moment = moment._replace(state=with_orders(moment.state), supports=supports, followed=followed)
        return moment, self.tail

    def _shorter(self, database: InFile, dropped: int) -> tuple[Step, ...]:
        """The steps of the program for a checkpoint with which entries as far as `dropped` go.

        If at least half of them made only what is gone, these are left out. `steps` keeps them until the checkpoint is
        written, since the log has their entries till then.
        """
        if self._shortened is not None and self._shortened.seq <= self.checkpoint_seq:
            self.steps[: self._shortened.replaced] = self._shortened.steps
            self._looked_at = len(self.steps)
        self._shortened = None
        if not dropped or len(self.steps) <= 2 * self._looked_at + FEW_STEPS:
            return tuple(self.steps)
        self._looked_at = len(self.steps)
        old = len(self.steps) - steps_after(self.container, dropped)
        made = without_gone(self.steps[:old])
        steps = (*made, *self.steps[old:])
        if 2 * len(steps) > len(self.steps) or not gives(steps, database._state, type(database)()):
            return tuple(self.steps)
        self._shortened = Shortened(self.seq, old, made)
        return steps

    def _save(self, database: InFile, moment: Taken, tail: int) -> None:
        """Write a checkpoint. It never waits for the database's lock, whose holder may wait for it."""
        with self._checkpoints:
            if moment.seq < self.checkpoint_seq:
                return  # another thread has made a later one meanwhile
            with self.container.failing("write to"), self.container.lock:
                # Those that heads computed when they were evaluated: no entry brought them.
                known, upto = self.symbols_written, moment.symbols
                write_with_symbols(self.container, self.symbols, upto, known, lambda _: None)
                self.symbols_written = max(known, upto)
            named = write(self.container, self.segments, self.chunks, moment, database._evaluator.rounds)
            self.checkpoint_seq = moment.seq
            self.tail -= tail
            self._drop_segments(named)
            self._page_bytes = None

    def _drop_segments(self, named: set[int]) -> None:
        """Drop the segments that nothing names. `named`: those that the last checkpoint names."""

        def drop(connection: sqlite3.Connection) -> None:
            kept = named | self._named(connection)
            there = [id for (id,) in connection.execute("select id from segments")]
            connection.executemany("delete from segments where id = ?", [(id,) for id in there if id not in kept])

        with self.container.failing("write to"):
            self.container.transact(drop)

    def _named(self, connection: Any) -> set[int]:
        """The segments that versions name, or entries after the last checkpoint."""
        named = self.chunks.named()
        for saved in self.segments.saved.values():
            named |= saved.list.segments()
        # Before the last checkpoint nobody reads them any more: a reader who is behind takes that.
        sql = "select entry from log where seq > ? and instr(entry, cast('\"pages\"' as blob)) > 0"
        for (entry,) in connection.execute(sql, (self.checkpoint_seq,)):
            for listed in LogEntry.decoded(entry).pages.values():
                named |= PageList.decoded(listed).segments()
        return named

    def due(self) -> bool:
        """Whether the log has grown so that a checkpoint is worth its while."""
        running = self._checkpointing
        if self.tail <= TAIL or (running is not None and running.is_alive()):
            return False
        return time.monotonic() >= self._retry and self.tail > TAIL_PART * self._pages()

    def _pages(self) -> int:
        """The bytes of the pages in the file, as of the last checkpoint."""
        if self._page_bytes is None:
            with self.container.failing("read"), self.container.lock:
                sql = "select coalesce(sum(length(body)), 0) from segments"
                self._page_bytes = int(self.container.connection.execute(sql).fetchone()[0])
        return self._page_bytes

    def checkpoint_beside(self, database: InFile) -> None:
        """Begin a checkpoint in a thread of its own."""
        known = weakref.ref(database)

        def run() -> None:
            alive = known()
            if alive is not None:
                try:
                    while not alive._lock.acquire(timeout=PATIENCE):
                        if self._closing.is_set():  # who closes has the lock, and waits for this thread
                            return
                    try:
                        taken = self._take(alive, None)
                    finally:
                        alive._lock.release()
                    self._save(alive, *taken)
                except Exception as error:
                    if self._closing.is_set():  # closing makes its own
                        return
                    self._retry = time.monotonic() + RETRY
                    text = f"no checkpoint was made, which is tried again in {RETRY} s; nothing is lost: {error}"
                    warnings.warn(text, RuntimeWarning, stacklevel=2)

        thread = threading.Thread(target=run, name="lftj checkpoint", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads; the commit stands
            self._retry = time.monotonic() + RETRY
            warnings.warn(f"no checkpoint was begun, which is tried again in {RETRY} s: {error}", RuntimeWarning, 2)
            return
        self._checkpointing = thread

    def close(self, database: InFile) -> None:
        """Write what waits and a last checkpoint, and let go of the file. Interrupted, it makes no checkpoint.

        Other threads neither commit nor close meanwhile.
        """
        with database._lock:
            if not self._finalizer.alive:
                self.container.close()  # what an interrupt kept from its end
                return
            try:
                self._closing.set()
                if not self.read_only:
                    if self._checkpointing is not None:
                        self._checkpointing.join()
                    self.flush(closing=True)
                    if self.seq > self.checkpoint_seq:
                        self.checkpoint(database)
            except Exception:
                self._waiting.clear()  # it could not be written, which was said
                raise
            except BaseException:  # interrupted: what waits is written all the same, and there is no other chance
                if not self.read_only:
                    self.flush()
                raise
            finally:
                try:
                    self._finalizer.detach()
                    _end(self.container, self.symbols, self._waiting)
                finally:
                    self.container.close()  # if that was interrupted, the rest


def _write_later(file: weakref.ref[DatabaseFile], closing: threading.Event) -> None:
    """Write what waits, some times a second, for as long as the file is open."""
    while not closing.wait(WAIT):
        alive = file()
        if alive is None:
            return
        with suppress(BaseException):  # whoever writes next tries again, and is told
            alive.flush()
        del alive


def _end(container: Container, symbols: SymbolTable, waiting: list[Waiting]) -> None:
    """Let go of a file that was closed, or that nobody has any more; of that, write first what waits."""
    try:
        if waiting and container.is_open:
            write_entries(container, symbols, waiting, 0)
            waiting.clear()
    except (DatabaseFileError, sqlite3.Error) as error:
        warnings.warn(f"{len(waiting)} commits of {container.path} are lost: {error}", RuntimeWarning, stacklevel=2)
    finally:
        container.close()


def _end_of_nobodys(container: Container, symbols: SymbolTable, waiting: list[Waiting]) -> None:
    """Let go of a file that nobody has any more, who could be told of an error."""
    try:
        _end(container, symbols, waiting)
    except DatabaseFileError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)
