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
group that no integer column holds) ends the commit too (`EvaluationError`).

One transaction at a time: those of other threads wait for the end of the block. `async with db.transaction() as tx`
waits, and commits, without keeping its event loop from other tasks (`lftj/results/async_block.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lftj import arguments
from lftj.errors import DataError, DataWarning, TransactionError, UnknownRelationError
from lftj.evaluate.key_conflicts import derivation
from lftj.io.changes import few_rows, rows_to_erase, rows_to_insert
from lftj.io.read_options import PLAIN, ReadOptions
from lftj.join.run import Limits
from lftj.language.clause import INTERNAL, owner
from lftj.maintain.commit import Commit
from lftj.maintain.journal import INFO, LOG
from lftj.maintain.streams import Streams
from lftj.plan.join_stats import total
from lftj.program.closed_heads import refuse_rows
from lftj.program.extend import extended
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.results.answers import out_of_memory, unknown
from lftj.results.async_block import AsyncBlock
from lftj.results.transaction_delta import Deltas
from lftj.store.change import ERASE, INSERT, UPSERT, Batch, Rows, applied
from lftj.store.stored import StoredRelation
from lftj.values import gate
from scantree.memory import ArenaFullError
from scantree.version import Version

if TYPE_CHECKING:
    from threading import Event
    from types import TracebackType

    from lftj.database import Database
    from lftj.io.rejects import Rejects
    from lftj.language import ast
    from lftj.language.builder import Program

MISSING = ("ignore", "error")
_UNUSED, _OPEN, _COMMITTED, _DISCARDED = "unused", "open", "committed", "discarded"
_NO_HEADS: frozenset[str] = frozenset()
# What the figures of rules, parts and heads add up to, besides seconds.
SUMMED = ("steps", "removed", "added")
# Of a head that was not derived, while parts of its rules were.
_IDLE = {"strategy": "none", "why": "what its parts hold did not change", **dict.fromkeys(SUMMED, 0), "seconds": 0.0}


class Transaction:
    """Changes to a database that happen together. Made by `Database.transaction`; see the module's text."""

    __slots__ = (
        "_apart",
        "_batches",
        "_commit",
        "_current",
        "_database",
        "_deltas",
        "_done",
        "_evaluator",
        "_heads",
        "_kept",
        "_missing",
        "_phase",
        "_program",
        "_streams",
        "_timeout",
    )

    def __init__(self, database: Database, missing: str, timeout: float | None) -> None:
        if missing is not MISSING[0]:
            arguments.one_of("missing", missing, MISSING, "it says what to do about rows to erase that are no facts")
        self._database, self._evaluator = database, database._evaluator
        self._missing, self._timeout = missing, None if timeout is None else arguments.seconds(timeout)
        self._batches: dict[str, list[Batch]] = {}
        self._current: dict[str, Version] = {}  # with missing="error": the facts after the calls so far
        self._program: State | None = None
        self._heads = _NO_HEADS
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
        database._lock.acquire()
        while database._open is not None and (passing := database._open._passing) is not None:
            database._lock.release()
            passing.wait()
            database._lock.acquire()
        try:
            if self._phase is not _UNUSED:
                raise self._misuse()
            if database._open is not None:
                raise TransactionError(
                    "a transaction inside another",
                    why="the block of the first has not ended, and one changes the database at a time",
                    remedy="use the transaction that is open, or begin this one after its block",
                )
            self._phase = _OPEN
        except BaseException:
            database._lock.release()
            raise
        database._open = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database = self._database
        database._open = None
        try:
            failures = self._finish(discard=kind is not None)
        finally:
            database._lock.release()
        for failure in failures:
            warnings.warn(failure, RuntimeWarning, stacklevel=2)
        for name in self._kept:
            warnings.warn(self._derived_only(name), DataWarning, stacklevel=2)

    async def __aenter__(self) -> Transaction:
        await AsyncBlock(self, self._database).enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._apart is not None, "its block has begun"
        await self._apart.leave(kind, error, trace)

    @property
    def _passing(self) -> Event | None:
        """What this thread has to wait for before it can tell whether the transaction is still open."""
        return None if self._apart is None else self._apart.awaited()

    def _finish(self, *, discard: bool) -> list[str]:
        """Commit or discard; returns what went wrong in callbacks."""
        try:
            if discard:
                self._discard()
            else:
                commit = self._computed()
                if not commit.state.strata.by_head.keys().isdisjoint(self._batches):
                    self._kept = dict(self._erased_in_vain(commit))
                commit.publish()
        finally:
            self._close()
        database = self._database
        if self._phase is _COMMITTED and (database._watchers or database._feeds):
            return database._deliver(self.delta)
        return []

    def _erased_in_vain(self, commit: Commit) -> Iterator[tuple[str, int]]:
        """Per relation that rules derive, how many erased rows are no facts, and were none.

        Heads that are not up to date are not evaluated for it.
        """
        strata, before, after = commit.state.strata, commit.base.relations, commit.state.relations
        for name, batches in self._batches.items():
            if name not in strata.by_head or name in commit.state.stale:
                continue
            erased = [rows for batch in batches if (rows := batch.erased()) is not None]
            if not erased:
                continue
            rows = erased[0] if len(erased) == 1 else np.concatenate(erased, axis=1)
            rows = np.compress(after[name].content.contains(rows), rows, axis=1)
            for facts in (before[name].facts if name in before else None, after[name].facts):
                if facts is not None and rows.shape[1]:
                    rows = np.compress(~facts.contains(rows), rows, axis=1)
            if rows.shape[1]:
                yield name, len(set(map(tuple, rows.T.tolist())))

    def _derived_only(self, name: str) -> str:
        """What to say of erased rows of `name` that only rules derive; the same each time, so that it is said once."""
        rules = {clause.text or str(clause): clause.span for clause in self._evaluator.state.strata.of(name)}
        text, span = next(iter(rules.items()), ("a rule", ""))
        return (
            f"of `{name}`, rows were erased that only rules derive, so they are still there\n"
            f"  why: only facts can be erased, and `{name}` is derived by {span}: `{text}`"
            + (f" and {len(rules) - 1} more" if len(rules) > 1 else "")
            + '\n  do: erase the facts that the rule reads, or change the rule; missing="error" refuses such rows'
        )

    def _close(self) -> None:
        """Committed or discarded: which of the two, the database's state tells."""
        commit = self._commit
        self._batches, self._current, self._program = {}, {}, None
        if commit is not None and self._evaluator.state is commit.state:
            self._phase = _COMMITTED
            commit.finish()
            self._done, self._commit = commit, None
            journal = self._database._journal
            journal.commits += 1
            if journal.watched or LOG.isEnabledFor(INFO):
                journal.committed(commit)
        else:
            self._phase = _DISCARDED
            self._discard()

    def _discard(self) -> None:
        """Forget what a preview computed."""
        if self._commit is not None:
            self._commit.discard()
            self._commit = None

    def _misuse(self) -> TransactionError:
        if self._phase is _UNUSED:
            return TransactionError(
                "the transaction has not begun",
                why="changes are collected inside its block",
                remedy="write `with db.transaction() as tx:` and use `tx` inside",
            )
        return TransactionError(
            f"the transaction has ended: it was {self._phase}",
            why="a transaction is its block, and no more can be added to it",
            remedy="begin another one with `with db.transaction() as tx:`",
        )

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
            rows = few_rows(source, relation.types, relation.numbers, self._evaluator.symbols.code)
            if rows is not None:
                self._add(name, relation, Batch(rows, rows.shape[1], ERASE))
                return None
        with self._database._progress.step(f"reading rows for {name}"):
            given = rows_to_erase(source, relation.schema, self._evaluator.symbols, options)
        if given.absent is not None and self._missing == "error":
            raise self._absent(name, given.absent)
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

        What the facts hold under these keys (all columns but the last), with what the transaction collected before, is
        erased; the rows of `source` are inserted, of several with one key the last. Bad rows are treated as by
        `insert`; keys without a value are no error, whatever `missing=` says. Raises `DataError` if `name` is no
        functional predicate.
        """
        relation = self._relation(name)
        if not relation.schema.functional:
            raise DataError(
                f"`{name}` is not a functional predicate, so none of its columns is a key",
                why=f"it is declared as {relation.schema}",
                remedy="use `tx.erase` and `tx.insert`, or declare it with its value after an arrow, as in "
                "`.decl price(item:symbol) -> cost:float`",
            )
        options = ReadOptions(columns, delimiter, header, quoting, on_error, extra, format)
        return self._give(name, relation, UPSERT, source, options)

    def _give(
        self,
        name: str,
        relation: StoredRelation,
        op: int,
        source: Any,
        options: ReadOptions,
    ) -> Rejects | None:
        """Read rows and collect them, to be inserted or upserted (`op`)."""
        if options in PLAIN:
            symbols = self._evaluator.symbols
            rows = few_rows(source, relation.types, relation.numbers, symbols.intern_one)
            if rows is not None:
                self._add(name, relation, Batch(rows, rows.shape[1], op))
                return None
        with self._database._progress.step(f"reading rows for {name}"):
            given = rows_to_insert(source, relation.schema, self._evaluator.symbols, options)
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

    def _add(self, name: str, relation: StoredRelation, batch: Batch) -> None:
        state = self._program or self._evaluator.state
        if name in state.strata.by_head:
            refuse_rows(state, name)
        if not batch.size:
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
        if batch.op == ERASE:
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
            return DataError(
                f"`{name}` has no fact {row!r} to erase, though it has the row",
                why=f"only facts can be erased, and this row is derived by {rule}",
                remedy='erase the facts that the rule reads, change the rule, or use missing="ignore"',
            )
        return self._absent(name, row)

    def _absent(self, name: str, row: tuple[object, ...]) -> DataError:
        return DataError(
            f"`{name}` has no row {row!r} to erase",
            why='missing="error" asks for this',
            remedy='erase rows that were inserted, or use missing="ignore"',
        )

    # -- rules --------------------------------------------------------------------------------------------------------

    def rules(
        self,
        program: str | Program | ast.Program,
        *,
        key_orders: Mapping[str, tuple[str, ...] | list[str]] | None = None,
        maintain: Mapping[str, str] | None = None,
        granularity: Mapping[str, str] | None = None,
    ) -> None:
        """Add declarations, facts and rules, as `Database.rules` does; the facts are inserts of this transaction.

        Options as there.

        `ProgramError` holds every finding and nothing is added.
        """
        if self._phase is not _OPEN:
            raise self._misuse()
        state = self._program or self._evaluator.state
        options = RuleOptions.of(key_orders, maintain, granularity)
        # The commit compares relations by name: what the state before calls `@p.1` is nothing else after it.
        taken, symbols = self._evaluator.state.relations, self._evaluator.symbols
        added = extended(state, program, options, self._database._new, symbols, taken=taken)
        before = self._batches, self._current
        self._batches = {name: list(batches) for name, batches in self._batches.items()}
        self._current = dict(self._current)
        try:
            for name, (rows, count) in added.facts.items():
                self._add(name, added.state.relations[name], Batch(rows, count, INSERT))
        except BaseException:
            self._batches, self._current = before
            raise
        self._discard()
        self._program, self._heads = added.state, self._heads | added.heads
        for warning in added.warnings:
            warnings.warn(warning.render(), stacklevel=2)

    def remove_rules(self, head: str) -> None:
        """Remove all rules that derive `head`; its facts stay, and rules that read it."""
        self._relation(head)
        state = self._program or self._evaluator.state
        if not state.strata.of(head):
            from lftj.language.diagnostics import did_you_mean

            raise UnknownRelationError(
                f"no rule derives `{head}`",
                why="it has no rules that could be removed",
                remedy=did_you_mean(head, state.strata.order, "erase its facts, if these are meant"),
            )
        self._discard()
        self._program = state.without_rules(head)
        # Internal heads that this transaction has added may be gone again.
        self._heads = (self._heads | {head}).intersection(self._program.relations)

    # -- what comes of it ---------------------------------------------------------------------------------------------

    def preview(self) -> Deltas:
        """What `delta` would be if the block ended now. Nothing is published; a commit without more changes reuses it.

        Raises what the commit would raise; the block may go on.
        """
        if self._phase is not _OPEN:
            raise self._misuse()
        return self._deltas_of(self._computed())

    @property
    def delta(self) -> Deltas:
        """Per relation, the rows inserted and erased: exact, net, facts and derived rows alike."""
        if self._deltas is None:
            if self._done is None:
                raise (
                    self._misuse()
                    if self._phase is not _OPEN
                    else TransactionError(
                        "the transaction has not been committed yet",
                        why="it commits at the end of its block",
                        remedy="read `tx.delta` after the block, or call `tx.preview()`",
                    )
                )
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
        derived = {head: report.stats() for head, report in self._done.reports.items()}
        total: dict[str, Any] = {key: sum(h[key] for h in derived.values()) for key in SUMMED}
        heads: dict[str, dict[str, Any]] = {}
        for name, report in derived.items():
            if name.startswith(INTERNAL):
                head = heads.setdefault(owner(name), {**_IDLE, "parts": {}})
                head.setdefault("parts", {})[name] = dict(report)
            else:
                heads[name] = report | {key: parts for key, parts in heads.get(name, {}).items() if key == "parts"}
        for head in heads.values():
            for key in (*SUMMED, "seconds"):
                head[key] += sum(part[key] for part in head.get("parts", {}).values())
        return {
            "heads": heads,
            "rules": list(self._rules_of(self._done)),
            "total": {**total, "seconds": self._done.seconds},
            "derived": dict(self._kept),
        }

    @staticmethod
    def _rules_of(commit: Commit) -> Iterator[dict[str, Any]]:
        """What each rule of a derived head took."""
        for head, (clauses, work) in commit.work.items():
            known = {rule.clause: rule._asdict() for rule in work}
            report = commit.reports[head]
            idle = dict.fromkeys(("steps", "removed", "added", "surgeries"), 0) | {"seconds": 0.0}
            for i, clause in enumerate(clauses):
                figures = known.get(i, idle)
                if head in commit.join_stats:
                    done = total(commit.join_stats[head], clause)
                    figures = idle | {"steps": done.steps, "seconds": done.seconds}
                yield {
                    "rule": clause.text or str(clause),
                    "head": owner(head),
                    "clause": str(clause),
                    "strategy": report.strategy,
                    "why": report.why,
                    **{name: figures[name] for name in idle},
                    **({"abandoned": late} if (late := figures.get("abandoned", 0)) else {}),
                }

    def _computed(self) -> Commit:
        """The commit of what was collected so far."""
        if self._commit is not None:
            if self._commit.base is self._evaluator.state:
                return self._commit
            self._discard()  # a stale head was evaluated in between
        kept, streams = self._database._kept, self._streams
        commit = Commit(self._evaluator, self._batches, self._program, self._heads, self._limits(), kept, streams)
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
        return Deltas(commit.changes, commit.unknown, self._evaluator, commit.fresh())

    def __repr__(self) -> str:
        return f"lftj.Transaction: {self._phase}"
