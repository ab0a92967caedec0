"""Streams of events: rows that come and go one after the other, applied in one transaction.

    done = db.apply([("orders", "+1", new), ("orders", -1, filled), ("bids", ops, rows)], watch=["vwap"])
    done.events;  done.seconds;  done.logs["vwap"]

An event is a row of a block: it comes or goes, or where there is a key is the row of its key from now on. Events
have numbers, from 0 on through all blocks. What rules derive is as after a transaction of the last word about each row;
but heads that triggers keep (maintain/kept_triggers.py) go through the events in order, and the *log* of such a head
has its rows that came and went, each with the number of the event: what a transaction for each event would have told.

A row that comes and is there already, or goes and is not there, is no event for what follows. That is worked out for
all events of a relation at once: sorted by row, each finds what the one before it left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from lftj import arguments
from lftj.errors import DataError
from lftj.evaluate.evaluator import Evaluator
from lftj.language.clause import INTERNAL
from lftj.maintain.report import Withheld
from lftj.maintain.streams import Streams
from lftj.results.event_blocks import BLOCK_FORM, BlockReader, BlocksOfRelation
from lftj.results.tabular import with_number
from lftj.results.transaction_delta import Deltas
from lftj.store.change import ERASE, INSERT, Batch
from lftj.store.copies import copies_of, walked
from lftj.store.primary_keys import as_declared, facts_by_key
from lftj.store.stored import StoredRelation
from lftj.triggers.derived_relations import NoEvents
from lftj.triggers.from_clauses import FOLDED
from lftj.triggers.head_rows import RowLog
from lftj.values import gate
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from scantree.consolidate import runs_of
from scantree.version import Rows, Version

if TYPE_CHECKING:
    import pyarrow

    from lftj.maintain.commit import Commit

Kinds = npt.NDArray[np.int8]
Marks = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AppliedEvents:
    """What `Database.apply` did: `events` that were given, those that were `effective`, the `seconds` it took.

    `delta`, `stats`: of the transaction · `logs`: of each watched head an Arrow table with the columns `event` (the
    number of the event, from 0), those of the head, and `change` (-1: the row went, 1: it came), in order.
    """

    events: int
    effective: int
    seconds: float
    delta: Deltas
    stats: Mapping[str, Any]
    logs: Mapping[str, pyarrow.Table]

    def __str__(self) -> str:
        return f"{self.events:,} events, {self.effective:,} of them effective, in {self.seconds:.3f} s"


class Guarding(Protocol):
    """What errors of an action are told by: a `Database`."""

    def _guarded(self, action: Callable[..., Any], *args: Any, **options: Any) -> Any: ...


class TakingEvents(Protocol):
    """What events are applied in: an open `Transaction`."""

    _streams: Streams | None

    @property
    def _evaluator(self) -> Evaluator: ...

    @property
    def _database(self) -> Guarding: ...

    @property
    def delta(self) -> Deltas:
        """What it changed, once it has ended."""

    @property
    def stats(self) -> dict[str, Any]:
        """What it did, once it has ended."""

    def _relation(self, name: str) -> StoredRelation: ...

    def _add(self, name: str, relation: StoredRelation, batch: Batch) -> None: ...

    def _computed(self) -> Commit: ...


class Applying(Protocol):
    """What events are applied to: a `Database`."""

    _evaluator: Evaluator

    @property
    def transaction(self) -> Callable[..., AbstractContextManager[TakingEvents]]:
        """A transaction."""


def apply(db: Applying, events: Iterable[Sequence[Any]], watch: Iterable[str], timeout: float | None) -> AppliedEvents:
    """Apply blocks of events in one transaction (see `Database.apply`)."""
    began = time.perf_counter()
    watched = arguments.names("watch", watch, 'name heads, as in `watch=["vwap"]`') if watch != () else ()
    blocks = arguments.instance("events", events, Iterable, "it is an iterable of blocks of events", BLOCK_FORM)  # type: ignore[type-abstract]
    with db.transaction(timeout=timeout) as tx:
        schemas = {name: tx._relation(name).schema for name in watched}
        count, effective, tx._streams = _taken(tx, blocks)
        commit = tx._computed()
        found = {name: _log_of(tx._streams, commit, name) for name in watched}
    # The state before is gone by now, unless somebody holds it; and a relation, where another thread drops it.
    relations = db._evaluator.state.relations
    for name in {**commit.fact_changes, **commit.changes}.keys() & relations.keys():
        relations[name].settle()
    logs = {name: _table(schemas[name], log, db._evaluator.symbols) for name, log in found.items()}
    return AppliedEvents(count, effective, time.perf_counter() - began, tx.delta, tx.stats, logs)


def _taken(tx: TakingEvents, blocks: Iterable[Any]) -> tuple[int, int, Streams]:
    """Take the events of blocks into a transaction: (how many there are, how many are effective, as streams)."""
    reader = BlockReader(tx._relation, tx._evaluator.symbols)
    reader.read(blocks)
    effective, streams = 0, Streams({}, max(0, reader.count - 1))
    for name, of_relation in reader.given.items():
        log, batch = tx._database._guarded(_effective, of_relation)
        effective += int(np.count_nonzero(np.diff(log.numbers, prepend=-1)))
        tx._add(name, of_relation.relation, batch)
        if not len(log.kinds):
            continue
        if tx._evaluator.state.strata.of(name):
            streams.moved([name])
        else:
            streams.logs[name] = log
    return reader.count, effective, streams


def _log_of(streams: Streams, commit: Commit, name: str) -> RowLog:
    """The rows of `name` that come and go event by event, in a commit."""
    by_head, relations = commit.state.strata.by_head, commit.state.relations
    remedy = f'watch a count, sum or mean that is kept so, by `maintain={{"{name}": "triggers"}}`'
    without = "take out the rows that forbid it; or leave `watch=` out: `delta` has what all events change"
    try:
        log = streams.of(name, by_head, relations)
        why, below = "triggers do not keep it: `db.explain` says how heads follow changes", ""
        if log is None:
            below = streams.unknown(name, by_head, relations)
            parts = [name]
            while below.startswith(INTERNAL):
                parts.append(below)
                below = streams.unknown(below, by_head, relations)
            if withheld := next(filter(None, (_withheld(commit, part) for part in parts)), ""):
                why, below, remedy = withheld, "", without
            elif known := streams.known_below(name, by_head, relations):
                remedy = f"watch {' or '.join(f'`{part}`' for part in known)}, which it is derived from"
            elif not any(c.aggregate and c.aggregate.op in FOLDED for part in parts for c in by_head.get(part, ())):
                remedy = "watch a count, sum or mean; or leave `watch=` out: `delta` has what all events change"
        if below:
            why = f"it reads `{below}`, which triggers do not keep and which changes at no known event"
            remedy = "watch a count, sum or mean over relations without rules, or over heads that triggers keep"
    except NoEvents as refused:
        log, why, remedy = None, str(refused.args[0]), without
    if log is not None:
        return log
    raise DataError(f"`{name}` is not known event by event", why=f"{why}; nothing was done", remedy=remedy)


def _withheld(commit: Commit, head: str) -> str:
    """Why triggers, which keep `head` as a rule, could not in this commit, because of the rows there are."""
    report = commit.reports.get(head)
    if report is None or not isinstance(report.reason, Withheld):
        return ""
    return f"triggers cannot follow it for now: {report.reason.why}"


def _table(schema: Schema, log: RowLog, symbols: SymbolTable) -> pyarrow.Table:
    """The log of a head as a table; underscores keep its own names apart from those of the head."""
    event = with_number(schema, "event").columns[-1]
    shown = Schema(schema.name, (event, *with_number(schema, "change").columns))
    columns = [log.numbers, *log.rows, log.kinds.astype(np.int64)]
    return gate.to_arrow(shown, columns, symbols, rows=len(log.kinds))


# What is effective ----------------------------------------------------------------------------------------------------


def _effective(given: BlocksOfRelation) -> tuple[RowLog, Batch]:
    """The rows that come and go, each with its event: those that change something; and as a batch.

    Takes the pieces: of many events all of them, what they make together, and that in order, are much memory.
    """
    relation = given.relation
    if not given.pieces:
        none = RowLog.none(relation.arity)
        return none, Batch(none.rows, 0, INSERT)
    rows, kinds, keyed, numbers = given.pieces[0]
    if len(given.pieces) > 1:
        rows = np.concatenate([piece[0] for piece in given.pieces], axis=1)
        kinds, keyed, numbers = (np.concatenate([piece[i] for piece in given.pieces]) for i in (1, 2, 3))
    given.pieces.clear()
    if relation.schema.bag:
        return _by_copies(relation.facts, rows, kinds, numbers), Batch(rows, rows.shape[1], INSERT, kinds, later=True)
    if not keyed.any():
        return _by_row(relation.facts, rows, kinds, numbers)
    if not keyed.all():
        raise DataError(
            f"some events of `{relation.schema.name}` are about rows (+1, -1), and others about keys",
            why="in one call a relation with a key follows one of both; nothing was done",
            remedy="give all of them as insert, update and delete, or all as +1 and -1",
        )
    log = _by_key(relation, rows, kinds, numbers)
    return log, Batch(log.rows, len(log.kinds), INSERT, log.kinds)


def _by_row(facts: Version, rows: Rows, kinds: Kinds, numbers: npt.NDArray[np.int64]) -> tuple[RowLog, Batch]:
    """The events after which a row is there and was not, or the other way round.

    The batch has what they add up to, in key order: what is sorted here need not be sorted again.
    """
    ordered, order, starts = _runs(rows)
    comes: Marks = kinds[order] == INSERT
    before: Marks = np.empty(len(comes), np.bool_)
    before[1:] = comes[:-1]
    before[starts] = facts.contains(_chosen(ordered, starts))
    kept = np.sort(order[comes != before])
    ends = np.append(starts, len(comes))[1:] - 1
    moved = ends[comes[ends] != before[starts]]
    net = np.where(comes[moved], INSERT, ERASE).astype(np.int8)
    log = RowLog(_chosen(rows, kept), kinds[kept], numbers[kept])
    return log, Batch(_chosen(ordered, moved), len(net), INSERT, net, later=True)


def _chosen(rows: Rows, places: Ints) -> Rows:
    """The rows at these places, distinct and in order."""
    return rows if len(places) == rows.shape[1] else rows.take(places, axis=1)


def _by_copies(facts: Version, rows: Rows, kinds: Kinds, numbers: npt.NDArray[np.int64]) -> RowLog:
    """The rows of a bag, with their numbers of copies, that go and come as one more copy comes or one goes."""
    ordered, order, starts = _runs(rows)
    before, after = walked(copies_of(facts, ordered.take(starts, axis=1)), kinds[order].astype(np.int64), starts)
    goes, comes = (before > 0) & (after != before), (after > 0) & (after != before)
    gone = np.concatenate([ordered[:, goes], before[None, goes]])
    come = np.concatenate([ordered[:, comes], after[None, comes]])
    return _in_turn(gone, come, order[goes], order[comes], numbers)


def _by_key(relation: StoredRelation, rows: Rows, kinds: Kinds, numbers: npt.NDArray[np.int64]) -> RowLog:
    """The rows that go and come where an event gives its key other values, or none."""
    facts, key_order, keys = facts_by_key(relation)
    rows = rows[list(key_order)]
    ordered, order, starts = _runs(rows[:keys])
    comes: Marks = kinds[order] == INSERT
    values = rows[keys:].take(order, axis=1)
    there, before = np.empty(len(comes), np.bool_), np.empty_like(values)
    there[1:], before[:, 1:] = comes[:-1], values[:, :-1]
    found, which = facts.matches(ordered.take(starts, axis=1))
    there[starts] = False
    there[starts[which]], before[:, starts[which]] = True, found[keys:]
    other = (before != values).any(axis=0)
    goes, new = there & (~comes | other), comes & (~there | other)
    gone = as_declared(np.concatenate([ordered[:, goes], before[:, goes]]), key_order)
    come = as_declared(np.concatenate([ordered[:, new], values[:, new]]), key_order)
    return _in_turn(gone, come, order[goes], order[new], numbers)


def _in_turn(gone: Rows, come: Rows, goes: Ints, comes: Ints, numbers: Ints) -> RowLog:
    """Rows that go and come at these places of the stream, in its order."""
    # Of one event the row that goes is the first.
    places = np.concatenate([2 * goes, 2 * comes + 1])
    by_event = np.argsort(places)
    both = np.concatenate([np.full(gone.shape[1], ERASE, np.int8), np.full(come.shape[1], INSERT, np.int8)])
    return RowLog(
        np.concatenate([gone, come], axis=1).take(by_event, axis=1), both[by_event], numbers[places[by_event] // 2]
    )


def _runs(keys: Rows) -> tuple[Rows, Rows, Rows]:
    """(keys in order, where each stood, where runs of equal ones begin); equal ones stay in their order."""
    if not len(keys):
        return keys, np.arange(keys.shape[1]), np.zeros(min(1, keys.shape[1]), np.int64)
    ordered, order, starts = runs_of(np.ascontiguousarray(keys))
    return ordered, np.arange(keys.shape[1]) if order is None else order, starts
