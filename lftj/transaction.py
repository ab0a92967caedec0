"""Transactions: changes that happen together, or not at all.

    with db.transaction() as tx:
        tx.insert("edge", [(2, 4)])
        tx.erase("edge", [(4, 1)])
        tx.upsert("price", [("tea", 3.5)])
    tx.delta["tri"].inserted;  tx.delta["tri"].erased;  tx.stats

A transaction *collects* inserts, erases, upserts and rules while its block runs, in the order of the calls: the last
word per row counts, and the database is as before. At the end of the block it *commits*: the facts, everything derived
from them and the exact difference are computed beside the present state, which is then replaced at once. Whatever is
raised, in the block or in the commit (an error, Ctrl-C, a time-out, the memory limit), *discards* it: the database is
as before.

Inserts and erases concern facts only: a row that rules derive as well stays when its fact is erased. Inserting a row
that is there changes nothing, and so does erasing one that is no fact, unless `missing="error"` asks for an error. Of a
row that only rules derive, the end of the block tells (`DataWarning`, and `tx.stats["derived"]`); what
"there" means is judged at the call, with what the transaction collected before. A call that raises adds none of its
rows; the block may go on. An upsert, of functional predicates only, erases what the facts hold under a key and inserts
its row; two inserts of different values under one key are two rows, which the commit refuses (`KeyConflictError`), as
it does where rules derive them. A rule without a value for what the changes bring (a division by zero, the sum of a
group that no integer column holds) ends the commit too (`EvaluationError`), and so does a row in a relation that must
stay empty (`ConstraintError`).

One transaction at a time: those of other threads wait for the end of the block. What a load reads from, and functions
of circuits, may read the database while it is at work, and not change it. `async with db.transaction() as tx`
waits, and commits, without keeping its event loop from other tasks (`lftj/results/async_block.py`).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lftj import arguments
from lftj.errors import DataError, DataWarning, ForkError, TransactionError
from lftj.evaluate.key_conflicts import derivation, key_holds
from lftj.io.changes import rows_to_erase, rows_to_insert
from lftj.io.read_options import PLAIN, ReadOptions
from lftj.join.run import Limits
from lftj.maintain.commit import Commit
from lftj.maintain.commit_stats import stats_of
from lftj.maintain.erased_in_vain import erased_in_vain, only_derived
from lftj.maintain.journal import INFO, LOG
from lftj.maintain.refused_calls import (
    absent,
    derived,
    ended,
    inside_another,
    inside_call,
    not_begun,
    not_committed,
    replaced,
)
from lftj.maintain.rule_changes import RuleChanges
from lftj.maintain.streams import Streams
from lftj.program.closed_heads import refuse_rows
from lftj.program.state import State
from lftj.results.answer_errors import out_of_memory, unknown
from lftj.results.async_block import AsyncBlock
from lftj.results.not_pickled import NotPickled
from lftj.results.transaction_delta import Deltas
from lftj.store.change import COPIES, ERASE, INSERT, UPSERT, Batch, applied, few_rows, of_bag
from lftj.store.copies import missing as missing_copies
from lftj.store.primary_keys import replacing
from lftj.store.stored import StoredRelation
from lftj.values import gate
from scantree.locks import LostLockError
from scantree.memory import ArenaFullError
from scantree.version import Rows, Version

if TYPE_CHECKING:
    from collections.abc import Generator
    from threading import Event, RLock
    from types import TracebackType

    from lftj.database import Database
    from lftj.io.rejects import Rejects
    from lftj.sql.results import SqlResult

MISSING = ("ignore", "error")
_UNUSED, _OPEN, _COMMITTED, _DISCARDED = "unused", "open", "committed", "discarded"
_NO_HEADS: frozenset[str] = frozenset()


def _held(lock: RLock) -> Generator[None]:
    """It has the lock from the first `next` on, until it is closed: wherever an interrupt comes, it has it or not.

    One that came between `acquire` and a `try` would leave it locked.
    """
    with lock:
        yield


class Transaction(RuleChanges, NotPickled):
    """Changes to a database that happen together. Made by `Database.transaction`; see the module's text."""

    __slots__ = (
        "__weakref__",
        "_apart",
        "_commit",
        "_deltas",
        "_done",
        "_kept",
        "_keys_hold",
        "_missing",
        "_phase",
        "_streams",
        "_timeout",
    )

    _instead = 'give the rows of what it changed, as in `tx.delta["tri"].to_arrow()` after its block'

    def __init__(self, database: Database, missing: str, timeout: float | None) -> None:
        if missing is not MISSING[0]:
            arguments.one_of("missing", missing, MISSING, "it says what to do about rows to erase that are no facts")
        self._database, self._evaluator = database, database._evaluator
        self._missing, self._timeout = missing, None if timeout is None else arguments.seconds(timeout)
        self._batches: dict[str, list[Batch]] = {}
        self._applied: dict[str, tuple[int, Version]] = {}  # by `_collected`: how many batches, and the facts then
        # By `_present`: the facts looked at last, whether their primary key held, and the last ones of which it did.
        self._keys_hold: dict[str, tuple[Version, bool, Version]] = {}
        self._current: dict[str, Version] = {}  # with missing="error": the facts after the calls so far
        self._program: State | None = None
        self._heads = self._dropped = _NO_HEADS
        self._steps: list[dict[str, Any]] = []
        self._commit: Commit | None = None
        self._deltas: Deltas | None = None
        self._done: Commit | None = None
        self._kept: dict[str, int] = {}
        self._streams: Streams | None = None  # of a stream of events
        self._phase = _UNUSED
        self._apart: AsyncBlock | None = None

    # -- the block ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Transaction:
        database = self._database
        holding = _held(database._lock)
        try:
            next(holding)
            while (opened := database._opened) is not None and (other := opened()) is not None:
                passing = other._passing
                if passing is None:
                    del other  # a shown error keeps its frames, and it would keep the transaction open in them
                    raise inside_another() if self._phase is _UNUSED else self._misuse()
                holding.close()
                passing.wait()
                holding = _held(database._lock)
                next(holding)
            if self._phase is not _UNUSED:
                raise self._misuse()
            if database._changing and (inside := database._call_at_work()):
                raise inside_call("a transaction", inside)
            if database._holding is not None:
                database._holding.close()  # an interrupt may have kept its block, of this thread, from its end
            # Weakly: what an interrupt keeps from ending its block is gone with its frame.
            database._opened, database._holding = weakref.ref(self), holding
            self._phase = _OPEN
            return self
        except BaseException:
            if database._holding is holding:
                database._opened = None
            holding.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database = self._database
        # What is found there by the next block was kept from its end by an interrupt.
        holding, database._holding = database._holding, None
        try:
            failures = self._finish(discard=kind is not None)
        finally:
            assert holding is not None, "its block has begun"
            next(holding, None)  # half as long as `close`
        for failure in failures:
            warnings.warn(failure, RuntimeWarning, stacklevel=2)
        for name in self._kept:
            rules = self._evaluator.state.strata.of(name)
            warnings.warn(only_derived(name, rules), DataWarning, stacklevel=2)

    async def __aenter__(self) -> Transaction:
        await AsyncBlock(self, self._database).enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._apart is not None, "its block has begun"
        await self._apart.leave(kind, error, trace)

    def _hold(self) -> None:
        """Have the lock again, which the block gave up while its commit was computed."""
        self._database._holding = holding = _held(self._database._lock)
        next(holding)

    @property
    def _passing(self) -> Event | None:
        """What this thread has to wait for before it can tell whether the transaction is still open."""
        return None if self._apart is None else self._apart.awaited()

    def _finish(self, *, discard: bool) -> list[str]:
        """Commit or discard; returns what went wrong in callbacks."""
        database = self._database
        try:
            try:
                if discard:
                    self._discard()
                else:
                    commit = self._computed()
                    if not commit.state.strata.by_head.keys().isdisjoint(self._batches):
                        self._kept = dict(erased_in_vain(commit, self._batches))
                    if database._file is None:
                        commit.publish()
                    else:
                        database._write_commit(commit, self._steps)
            finally:
                failures = self._close()
        except BaseException:
            self._close()  # if an interrupt came there: what it has left
            raise
        return failures

    def _close(self) -> list[str]:
        """Committed or discarded: the database's state tells which. Of a commit that stands others are told.

        Returns what went wrong in callbacks. To be called again if it was interrupted: it goes on then.
        """
        commit, database = self._commit, self._database
        try:
            if self._phase is _OPEN:
                self._batches, self._applied, self._current, self._program = {}, {}, {}, None
                self._keys_hold = {}
                if commit is not None and self._evaluator.state is commit.state:
                    self._phase, self._done, self._commit = _COMMITTED, commit, None
                    commit.finish()
                    journal = database._journal
                    journal.commits += 1
                    if journal.watched or LOG.isEnabledFor(INFO):
                        journal.committed(commit)
                else:
                    self._discard()
                    self._phase = _DISCARDED
        finally:
            database._opened = None
        if self._phase is _COMMITTED and (database._watchers or database._feeds):
            failures: list[str] = database._deliver(self.delta)
            return failures
        return []

    def _discard(self) -> None:
        """Forget what a preview computed."""
        if self._commit is not None:
            self._commit.discard()
            self._commit = None

    def _check_open(self) -> None:
        if self._phase is not _OPEN:
            raise self._misuse()

    def _misuse(self) -> TransactionError:
        return not_begun() if self._phase is _UNUSED else ended(self._phase)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def insert(
        self,
        name: str,
        source: Any,
        *,
        columns: Any = None,
        delimiter: str | None = None,
        header: bool | None = None,
        quoting: bool | None = None,
        on_error: str = "raise",
        extra: str = "note",
        format: str | None = None,
    ) -> Rejects | None:
        """Insert the rows of `source` into the facts of relation `name`; sources and options as in `Database.load`.

        A bad row raises `DataError` and none of the rows is inserted; with `on_error="quarantine"` the good ones are,
        and the bad ones returned.
        """
        relation = self._relation(name)
        options = ReadOptions(columns, delimiter, header, quoting, on_error, extra, format)
        return self._give(name, relation, INSERT, source, options)

    def erase(
        self,
        name: str,
        source: Any,
        *,
        columns: Any = None,
        delimiter: str | None = None,
        header: bool | None = None,
        quoting: bool | None = None,
        on_error: str = "raise",
        extra: str = "note",
        format: str | None = None,
    ) -> Rejects | None:
        """Erase the rows of `source` from the facts of relation `name`; sources and options as in `Database.load`.

        Rows that are no facts are ignored, or with `missing="error"` raise `DataError`, and none of the rows is erased.
        If only rules derive such a row, it stays, and a `DataWarning` at the end of the block says so.
        """
        relation = self._relation(name)
        options = ReadOptions(columns, delimiter, header, quoting, on_error, extra, format)
        if options in PLAIN:
            rows = few_rows(source, relation.given, self._evaluator.symbols.code)
            if rows is not None:
                self._add(name, relation, Batch(rows, rows.shape[1], ERASE))
                return None
        with self._database._progress.step(f"reading rows for {name}"):
            given = rows_to_erase(source, relation.given, self._evaluator.symbols, options)
        self._check_there(name, relation)
        if given.absent is not None and self._missing == "error":
            raise absent(name, given.absent)
        self._add(name, relation, Batch(given.rows, given.size, ERASE))
        if given.note:
            warnings.warn(given.note, DataWarning, stacklevel=2)
        return given.rejects

    def upsert(
        self,
        name: str,
        source: Any,
        *,
        columns: Any = None,
        delimiter: str | None = None,
        header: bool | None = None,
        quoting: bool | None = None,
        on_error: str = "raise",
        extra: str = "note",
        format: str | None = None,
    ) -> Rejects | None:
        """Give keys of the functional predicate `name` the values in `source`; sources and options as for `insert`.

        What the facts hold under these keys (all columns but the last, or the primary key), with what the transaction
        collected before, is erased; the rows of `source` are inserted, of several with one key the last. Of a bag the
        last value is how often the row is there from now on. Bad rows are treated as by `insert`; keys without a value
        are no error, whatever `missing=` says. Raises `DataError` if `name` has no key.
        """
        relation = self._relation(name)
        if not relation.schema.has_key:
            raise DataError(
                f"`{name}` is not a functional predicate, so none of its columns is a key",
                why=f"it is declared as {relation.schema}",
                remedy="use `tx.erase` and `tx.insert`, or declare it with its value after an arrow, as in "
                "`.decl price(item:symbol) -> cost:float`",
            )
        options = ReadOptions(columns, delimiter, header, quoting, on_error, extra, format)
        return self._give(name, relation, UPSERT, source, options)

    def _give(self, name: str, relation: StoredRelation, op: int, source: Any, options: ReadOptions) -> Rejects | None:
        """Read rows and collect them, to be inserted or upserted (`op`)."""
        schema = relation.schema if op == UPSERT else relation.schema.given
        if options in PLAIN:
            rows = few_rows(source, schema, self._evaluator.symbols.intern_one)
            if rows is not None:
                self._add(name, relation, Batch(rows, rows.shape[1], op))
                return None
        with self._database._progress.step(f"reading rows for {name}"):
            given = rows_to_insert(source, schema, self._evaluator.symbols, options)
        self._check_there(name, relation)
        self._add(name, relation, Batch(given.rows, given.size, op))
        if given.note:
            warnings.warn(given.note, DataWarning, stacklevel=3)
        return given.rejects

    def _relation(self, name: str) -> StoredRelation:
        if self._phase is not _OPEN:
            raise self._misuse()
        relations = (self._program or self._evaluator.state).relations
        try:
            return relations[name]
        except (KeyError, TypeError):  # what cannot be hashed is no name either
            raise unknown(name, relations) from None

    def _check_there(self, name: str, relation: StoredRelation) -> None:
        """Raise if the relation that rows were read for is gone, or another: their source may change the program."""
        if (now := self._relation(name).schema) != relation.schema:
            raise replaced(name, relation.schema, now)

    def _add(self, name: str, relation: StoredRelation, batch: Batch) -> None:
        state = self._program or self._evaluator.state
        if name in state.strata.by_head:
            refuse_rows(state, name)
        if not batch.size:
            return
        if relation.schema.bag:
            batch = of_bag(relation.schema, batch)
        elif relation.schema.key and batch.op == UPSERT:
            for part in self._database._guarded(replacing, self._collected().relations[name], batch):
                self._add(name, relation, part)
            return
        if self._missing == "error":
            self._current[name] = self._checked(name, relation, batch)
        if self._commit is not None:
            self._discard()
        if name in self._batches:
            self._batches[name].append(batch)
        else:
            self._batches[name] = [batch]

    def _checked(self, name: str, relation: StoredRelation, batch: Batch) -> Version:
        """The facts after one more batch; raises if it erases a row that is not there."""
        before = self._current.get(name, relation.facts)
        if batch.op == COPIES:
            lacking = missing_copies(before, batch.rows)
            if lacking is not None:
                raise absent(name, gate.decode_row(lacking.tolist(), relation.given, self._evaluator.symbols))
        elif batch.op == ERASE:
            known = before.contains(batch.rows)
            if not known.all():
                raise self._no_fact(name, batch.rows[:, int(np.argmin(known))])
        try:
            return applied(before, [batch])[0]
        except ArenaFullError as full:
            raise out_of_memory(full) from None

    def _no_fact(self, name: str, codes: Rows) -> DataError:
        """The error for a row, by its codes, that is no fact: rules derive it, or it is not there."""
        evaluator = self._evaluator
        row = gate.decode_row(codes.tolist(), self._relation(name).schema, evaluator.symbols)
        if evaluator.state.strata.of(name) and self._database._current(name).content.contains(codes[:, None])[0]:
            rule, _ = derivation(evaluator, evaluator.state.strata.of(name), row, Limits.within(self._timeout))
            return derived(name, row, rule)
        return absent(name, row)

    def sql(self, text: str, /, **parameters: Any) -> SqlResult | None:
        """Run statements of SQL, as `Database.sql` does, all or none; of a query at the end the answer, as of now."""
        from lftj.sql.running import run_in

        return run_in(self, text, parameters)

    def _present(self) -> State:
        """What is read: `_collected`, where a primary key that does not hold now is not relied on."""
        state = self._collected()
        before = (self._program or self._evaluator.state).relations
        broken = {}
        for name in self._batches:
            relation = state.relations[name]
            if relation.schema.key and name not in state.strata.by_head:
                known, store = self._keys_hold.get(name), relation.declared_store()
                if known is None or known[0] is not relation.facts:
                    # A table that was dropped since may have left some of another one.
                    since = before[name].facts if known is None or known[2].store is not store else known[2]
                    holds = self._database._guarded(key_holds, before[name], relation.facts, since)
                    known = self._keys_hold[name] = relation.facts, holds, relation.facts if holds else since
                if not known[1]:
                    broken[name] = relation.without_key()
        return state._replace(relations=state.relations | broken) if broken else state

    def _collected(self) -> State:
        """The state with the facts and rules that were collected so far; every head that they concern is stale."""
        self._check_open()
        state = self._program or self._evaluator.state
        for name, batches in self._batches.items():
            done, facts = self._applied.get(name, (0, state.relations[name].facts))
            if done < len(batches):
                facts = self._database._guarded(applied, facts, batches[done:])[0]
                self._applied[name] = len(batches), facts
            state = state.with_facts(name, facts)
        return state.made_stale(self._heads)

    # -- what comes of it ---------------------------------------------------------------------------------------------

    def preview(self) -> Deltas:
        """What `delta` would be if the block ended now. Nothing is published; a commit without more changes reuses it.

        Raises what the commit would raise; the block may go on.
        """
        self._check_open()
        return self._deltas_of(self._computed())

    @property
    def delta(self) -> Deltas:
        """Per relation, the rows inserted and erased: exact, net, facts and derived rows alike."""
        if self._deltas is None:
            if self._done is None:
                raise (self._misuse() if self._phase is not _OPEN else not_committed())
            self._deltas = self._deltas_of(self._done)
        return self._deltas

    @property
    def stats(self) -> dict[str, Any]:
        """How the commit went: `heads` (a dict per derived head), `rules` (one per rule of these), `total`, `derived`.

        Per head `strategy`, `why` it was derived so, `steps` of joins and scans (of path counts, pairs that were
        touched; of triggers, instructions), records `removed` and `added`, `seconds`; and, where its rules were taken
        apart, `parts`: the same per part (`@deg.1`), which the head's figures count in. A head of which only parts were
        derived has strategy "none". An output of a circuit with watermarks has `late`: by stream and column, how many
        rows the commit dropped as too late. Per rule its text `rule`, its `head`, the `clause` that was evaluated, the
        same, `surgeries`, the changed branches that were looked at, and, if any, the steps of walks that were
        `abandoned` for a better key order. In total the sums, and the `seconds` of the whole commit. `derived`: per
        relation, how many rows were erased in vain, since they are no facts and rules derive them. Empty if it failed.
        """
        if self._done is None:
            return {}
        return stats_of(self._done, self._kept)

    def _computed(self) -> Commit:
        """The commit of what was collected so far."""
        if self._commit is not None:
            if self._commit.base is self._evaluator.state:
                return self._commit
            self._discard()  # a stale head was evaluated in between
        commit = Commit(
            self._evaluator,
            self._batches,
            self._program,
            self._heads,
            self._limits(),
            self._database._kept,
            self._dropped,
            self._streams,
        )
        try:
            progress = self._database._progress
            if progress.line is None or (self._program is None and not self._evaluator.state.strata.order):
                commit.run()
            else:
                with progress.step("committing"):
                    commit.run()
        except BaseException as error:
            commit.discard()
            if isinstance(error, ArenaFullError):
                raise out_of_memory(error) from None
            if isinstance(error, LostLockError):
                raise ForkError(error.what) from None
            raise
        self._commit = commit
        return commit

    def _limits(self) -> Callable[[str], Limits]:
        """What the derivation of a head is allowed, for whoever is about to derive it; raises when the time is up."""
        progress, strata = self._database._progress, self._evaluator.state.strata
        limited = None if self._apart is None else self._apart.limited  # not `self`: the commit would be a cycle
        if self._timeout is None and progress.line is None and limited is None:
            return lambda _: Limits()
        until = Limits.within(self._timeout)

        def limits(head: str) -> Limits:
            allowed = Limits(until.deadline, until.timeout, progress.rows(lambda: strata.place(head)))
            allowed.look(0)
            return allowed if limited is None else limited(allowed)

        return limits

    def _deltas_of(self, commit: Commit) -> Deltas:
        return Deltas(commit.changes, commit.unknown, self._evaluator, commit.schemas)

    def __repr__(self) -> str:
        return f"lftj.Transaction: {self._phase}"
