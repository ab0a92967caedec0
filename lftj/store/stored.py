"""A stored relation: its facts, its content, and its content in every key order that somebody needed.

    facts      rows that were loaded, inserted or written in the program text, in declared column order
    content    facts and derived rows together; the same version as the facts where no rule derives the relation, and
               that of another relation where the rules only copy it (alias.py)
    orders     key order -> the content, sorted by columns in that order: a permutation of all columns; or, where a
               primary key determines rows, those that are read and the key (a narrow key order)
    scans      (key order, monoid, column) -> the same, with folds of the column on every path to a row
    folds      what a scan by a Python function remembers of the pages of a key order (page_folds.py)

A stored relation never gets other rows: a change makes its *successor*, which takes its place in the next state of the
database (state.py), and versions handed out before stay readable. What may be added is a key order or a scan: it is
built the first time a plan (a rule, a user) asks for it and shared by all; a successor has it too where the change is
small, else it is dropped (and built again when asked for).

A key order lags behind the content: most transactions ask for few of those that were ever built, and bringing one up to
date takes as long as a join of a few rows. So it catches up when it is asked for, by all changes at once, or earlier if
there are many. A key order of a recursive relation is kept up to date in every round once a round of the transaction
has asked for it. One that no round asks for catches up by the change of all rounds together, which is smaller: much of
what goes in one round comes back in another.

Remembered folds are never wrong for another version, so a successor shares them, until a large change, or many small
ones that nobody looked at, have left little of them (and they would keep the pages of an old version).

A scan is a copy of the content of its own: what nobody scans pays nothing for scans, neither in space nor in a commit.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from lftj.plan.statistics import Statistics
from lftj.store.change import ERASED, INSERT, Batch, Change, applied, of_bag
from lftj.store.copies import counted
from lftj.store.order_stores import ROUNDS, Built, OrderStores, ScanOrder
from lftj.store.page_folds import PageFolds
from lftj.values.schema import Schema
from scantree.lagging import LaggingVersion
from scantree.memory import Arena, ArenaFullError
from scantree.scan import Monoid
from scantree.sort import permuted
from scantree.unsorted import UnsortedVersion
from scantree.version import Rows, Store, Version

# A batch larger than this part of the relation is cheaper to sort in than to insert.
SMALL_PART = 1 / 8
# A change of so many rows, and of such a part of them, is bulk: what it concerns may be evaluated anew (rounds.py)
# and do without the secondary key orders. They go, and are made again for whoever asks for them.
BULK_ROWS, BULK_PART = 10_000, 1 / 32
# A key order lags behind by at most so many changes, and such a part of the rows.
MOST_BEHIND, BEHIND_PART = 32, 1 / 64


# What remembered folds are kept by: whoever makes them says.
FoldKey = Hashable
# So many of them are kept per relation; the one that was made first goes.
KEPT_FOLDS = 32


class LaggingOrder(NamedTuple):
    """`version`: the key order as it was · `changes` of the content since, in order · `rows`: how many these have."""

    version: Version
    changes: tuple[Change, ...]
    rows: int

    @classmethod
    def of(cls, held: Version | LaggingOrder, change: Change) -> LaggingOrder:
        """A key order, of which `held` is kept, after one more change of the content."""
        if isinstance(held, Version):
            return cls(held, (change,), len(change.kinds))
        return cls(held.version, (*held.changes, change), held.rows + len(change.kinds))

    def catch_up(self, columns: tuple[int, ...]) -> Version:
        """The content in the key order `columns`."""
        changes, order = self.changes, list(columns)
        if not changes:
            return self.version
        if len(order) < len(changes[0].rows):
            changes = tuple(map(_erased_first, changes))
        if len(changes) == 1:
            return self.version.update(changes[0].rows[order], changes[0].kinds)[0]
        # The last word on a row counts.
        rows = np.concatenate([change.rows[order] for change in changes], axis=1)
        return self.version.update(rows, np.concatenate([change.kinds for change in changes]))[0]


def _erased_first(change: Change) -> Change:
    """The rows that go, and then those that come: in a narrow key order a row of both stays."""
    order = np.argsort(change.kinds, kind="stable")
    return Change(change.rows.take(order, axis=1), change.kinds[order])


class Private:
    """Versions that only the work in hand reads, so that it may use them up (`Version.update`)."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: set[Version] = set()

    def __contains__(self, version: Version) -> bool:
        return version in self._held

    def add(self, version: Version) -> None:
        """The work has made this version."""
        self._held.add(version)

    def follow(self, old: Version, new: Version) -> None:
        """The work has made `new` of `old`, which it does not read any more; if nothing changed both are one."""
        if new is not old:
            self._held.discard(old)
            self._held.add(new)


class StoredRelation:
    """One relation of a database at one moment. `page_rows` and `dir_rows` are forced tiny by tests."""

    __slots__ = (
        "__weakref__",
        "_folds",
        "_known",
        "_orders",
        "_scans",
        "_statistics",
        "_stores",
        "arity",
        "content",
        "facts",
        "key",
        "name",
        "schema",
    )

    def __init__(self, schema: Schema, arena: Arena, *, page_rows: int = 256, dir_rows: int = 64) -> None:
        self.schema, self.name, self.arity = schema, schema.name, schema.arity
        self.key = schema.key
        self._stores = OrderStores(arena, schema.arity, page_rows, dir_rows)
        self.facts: Version = self.declared_store().empty()
        self.content: Version = self.facts
        self._orders: dict[tuple[int, ...], Version | LaggingOrder] = {self._stores.declared: self.facts}
        self._scans: dict[ScanOrder, Version] = {}
        self._folds: dict[FoldKey, PageFolds] = {}
        self._statistics: Statistics | None = None
        # Those of a relation that this one was made of, and how many rows have changed since.
        self._known: tuple[Statistics, int] | None = None

    @classmethod
    def over(cls, schema: Schema, content: Version) -> StoredRelation:
        """A relation of its own with the given content: for scans of rows that belong to no database's state."""
        shape = content.store.shape
        empty = cls(schema, content.store.arena, page_rows=1 << shape.page_bits, dir_rows=1 << shape.dir_bits)
        return empty.holding(content)

    def holding(self, content: Version) -> StoredRelation:
        """The same relation with the given content, all of which is facts, and nothing beside it."""
        return self._with(content, content, {self._stores.declared: content}, {}, {})

    def without_key(self) -> StoredRelation:
        """The same rows where two are alike in the primary key, as a transaction may have them before it ends.

        Nothing relies on the key then: `key` is empty, and there are no narrow key orders.
        """
        orders = {order: held for order, held in list(self._orders.items()) if len(order) == self.arity}
        made = self._with(self.content, self.facts, orders, self._scans.copy(), {}, 0)
        made.key = ()
        return made

    def lagging(self) -> list[LaggingVersion]:
        """Which of content and facts may lag."""
        return [version for version in (self.content, self.facts) if isinstance(version, LaggingVersion)]

    def settle(self) -> None:
        """Make the changes that content and facts lag by; if memory is gone by now, whoever reads them is told."""
        for version in self.lagging():
            with suppress(ArenaFullError):
                version.settle()

    def overwrite(self, rows: Rows) -> bool:
        """Let this relation, that only who made it by `holding` knows of, hold `rows` from now on, if it can.

        As `Version.overwrite`.
        """
        if not self.content.overwrite(rows):
            return False
        self._orders, self._statistics, self._known = {self._stores.declared: self.content}, None, None
        return True

    def _with(
        self,
        content: Version,
        facts: Version,
        orders: dict[tuple[int, ...], Version | LaggingOrder],
        scans: dict[ScanOrder, Version],
        folds: dict[FoldKey, PageFolds],
        changed: int | None = None,
    ) -> StoredRelation:
        """The same relation with other rows; with what was known of the columns, if so many rows `changed`."""
        made = StoredRelation.__new__(StoredRelation)
        made.schema, made.name, made.arity, made._stores = self.schema, self.name, self.arity, self._stores
        made.key = self.key
        made.content, made.facts, made._orders, made._scans = content, facts, orders, scans
        made._folds, made._statistics, made._known = folds, None, None
        if changed is not None:
            if self._statistics is not None:
                made._known = self._statistics, changed
            elif self._known is not None:
                made._known = self._known[0], self._known[1] + changed
        return made

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the columns, in order."""
        return self.schema.types

    @property
    def given(self) -> Schema:
        """The rows that users insert and erase."""
        return self.schema.given

    def declared_store(self) -> Store:
        """The store of facts, and of contents without rounds."""
        return self._stores.of(self._stores.declared)

    def order_store(self, columns: tuple[int, ...]) -> Store:
        """The store of the content in a key order."""
        return self._stores.of(columns)

    def rounds_store(self) -> Store:
        """The store of contents whose rows have a round each, which readers do not see (lftj/recursion)."""
        return self._stores.of(ROUNDS)

    def has_rounds_store(self) -> bool:
        """Whether the relation has ever had rounds."""
        return ROUNDS in self._stores

    def adopt_orders(self, orders: Mapping[tuple[int, ...], Version]) -> None:
        """Take versions that hold the content in key orders, from `order_store`, for these: nobody need build them."""
        self._orders.update(orders)

    def __len__(self) -> int:
        return len(self.content)

    @property
    def orders(self) -> Collection[tuple[int, ...]]:
        """The key orders that are built, the declared one first."""
        return self._orders.keys()

    @property
    def built(self) -> set[Built]:
        """The key orders and the scans that are built."""
        return {*self._orders, *self._scans}

    @property
    def statistics(self) -> Statistics:
        """What the planner may know of the present content."""
        if self._statistics is None:
            # A proxy: a cycle would keep the pages of old states until the garbage collector runs.
            own, known = weakref.proxy(self), self._known
            self._statistics = (None if known is None else known[0].after(own, known[1])) or Statistics(own)
        return self._statistics

    def order(self, columns: tuple[int, ...]) -> Version:
        """The content in a key order, built at the first call."""
        held = self._orders.get(columns)
        if isinstance(held, Version):
            return held
        made = held.catch_up(columns) if held is not None else self.order_store(columns).reorder(self.content, columns)
        self._orders[columns] = made
        return made

    def order_after(self, columns: tuple[int, ...], before: StoredRelation, change: Change | None) -> Version:
        """The content in a key order; one that is not built yet is made of that of the relation `before` the change."""
        held = self._orders.get(columns)
        if isinstance(held, Version):
            return held
        if held is None and change is not None and len(change.kinds) < SMALL_PART * len(self.content):
            self._orders[columns] = LaggingOrder.of(before.order(columns), change).catch_up(columns)
        return self.order(columns)

    def key_order(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        """The key order that is built for who reads these columns first, and needs no others.

        Where a primary key determines the facts, and no rule derives others: as many columns as tell rows apart, and a
        relation with wide rows is not stored once more. Else all of them.
        """
        if self.key and self.content is self.facts:
            return (*columns, *(column for column in self.key if column not in columns))
        return (*columns, *(column for column in self._stores.declared if column not in columns))

    def ends(self, column: int) -> tuple[int, int] | None:
        """The least and the greatest value of a column, by a pass over it if no key order begins with it.

        None without rows.
        """
        first = (v for order, v in self._orders.items() if order[0] == column and isinstance(v, Version))
        held = next(first, None)
        return self.content.ends(column) if held is None else held.ends(0)

    def scan_version(self, order: tuple[int, ...], monoid: Monoid, column: int) -> Version:
        """The content in key order `order`, with a scan of column `column` by `monoid`; built at the first call.

        `order` permutes the columns and `column` is one of them, both numbered as declared (COUNT reads no column). The
        scan is one of codes: of symbols MIN and MAX say nothing, of unsigned and float SUM does not (codes.py).
        """
        asked = ScanOrder.of(order, monoid, column)
        if asked not in self._scans:
            # setdefault: another reader may have built it meanwhile; one of the two is carried along.
            made = self._stores.of(asked).reorder(self.content, order)
            return self._scans.setdefault(asked, made)
        return self._scans[asked]

    def page_folds(self, key: FoldKey, make: Callable[[], PageFolds]) -> PageFolds:
        """What is remembered under `key` of the pages of a key order; made at the first call."""
        if key not in self._folds:
            while len(self._folds) >= KEPT_FOLDS:
                self._folds.pop(next(iter(self._folds)), None)
            return self._folds.setdefault(key, make())
        return self._folds[key]

    def defer_orders(self) -> dict[tuple[int, ...], LaggingOrder]:
        """Let every key order lag behind, before the rounds of a transaction, until a round asks for it.

        Returns what `settle_orders` takes: the key orders as they are.
        """
        waiting = {}
        for order, held in list(self._orders.items())[1:]:
            waiting[order] = held if isinstance(held, LaggingOrder) else LaggingOrder(held, (), 0)
        self._orders.update(waiting)
        return waiting

    def settle_orders(self, waiting: Mapping[tuple[int, ...], LaggingOrder], change: Change) -> None:
        """After the rounds, let the key orders of `waiting` that no round asked for lag by the `change` of all rounds.

        A key order that lags too far catches up. If there is no memory for that, it is dropped.
        """
        for order, before in waiting.items():
            held = self._orders.get(order)
            if isinstance(held, LaggingOrder) and held is not before and held.version is before.version:
                self.forget(order)
                with suppress(ArenaFullError):
                    self._orders[order] = self._lagging(order, before, change, len(self.content))

    @staticmethod
    def _lagging(
        order: tuple[int, ...], held: Version | LaggingOrder, change: Change, rows: int
    ) -> Version | LaggingOrder:
        """A key order after one more change, which led to so many rows; it catches up if it lags too far."""
        lagging = LaggingOrder.of(held, change)
        far = len(lagging.changes) > MOST_BEHIND or lagging.rows > BEHIND_PART * rows
        return lagging.catch_up(order) if far else lagging

    def forget(self, built: Built) -> None:
        """Drop a secondary key order or a scan; it is built again if somebody asks for it."""
        if isinstance(built, ScanOrder):
            self._scans.pop(built, None)
        elif built != self._stores.declared:
            self._orders.pop(built, None)

    @property
    def built_so_far(self) -> tuple[int, int]:
        """How many key orders and scans are built; more are added behind these."""
        return len(self._orders), len(self._scans)

    def forget_since(self, built: tuple[int, int]) -> None:
        """Drop what was built since `built_so_far` was asked; it is built again if somebody asks for it."""
        orders, scans = built
        later: list[Built] = [*list(self._orders)[orders:], *list(self._scans)[scans:]]
        for made in later:
            self.forget(made)

    def build(self, rows: Rows, count: int | None = None) -> Version:
        """A version of the relation with the given rows int64[arity, n]; not published."""
        return self._gather([rows], count)

    def as_they_come(self, rows: Rows, *, repeats: bool = False) -> Version:
        """A version of rows int64[arity, n] that is sorted when somebody asks for its order; not published.

        They are distinct; or `repeats`: of a bag, and equal ones, each with its copies, may come several times.
        """
        return UnsortedVersion(self.declared_store(), rows, counted=repeats) if self.arity else self.build(rows)

    @property
    def unsorted(self) -> bool:
        """Whether the rows of the content are as they came, and reading them in order would sort them."""
        return isinstance(self.content, UnsortedVersion) and self.content.waits

    @property
    def repeats(self) -> bool:
        """Whether equal rows of the content may come several times, each with its copies, as they are not sorted."""
        return isinstance(self.content, UnsortedVersion) and self.content.waits and self.content.counted

    def assemble(self, chunks: list[Rows], *, in_order: bool) -> Version:
        """A version of the rows of all chunks int64[arity, n]; not published.

        `in_order`: they are sorted and distinct. The list is emptied if they are not.
        """
        return self.declared_store().assemble(chunks) if in_order else self._gather(chunks)

    def _gather(self, chunks: list[Rows], count: int | None = None) -> Version:
        """A version of rows in any order. `count`: how many there are, where without columns the chunks do not say."""
        store = self.declared_store()
        if self.arity:
            return store.gather(chunks) if chunks else store.empty()
        return store.build([], sum([chunk.shape[1] for chunk in chunks]) if count is None else count)

    def with_facts(self, rows: Rows, count: int) -> Version:
        """The facts and `count` more rows int64[arity, count], in any order; not published.

        Of a bag they may be without the number of copies, of which each is one then.
        """
        if not count:
            return self.facts
        if self.schema.bag:
            batch = of_bag(self.schema, Batch(rows, count, INSERT))
            if count < SMALL_PART * len(self.facts):
                return applied(self.facts, [batch])[0]
            return self.build(counted(np.concatenate([self.facts.columns(), batch.rows], axis=1)))
        if len(self.facts) and count < SMALL_PART * len(self.facts):
            version, _ = self.facts.update(
                rows if self.arity else np.empty((0, count), np.int64), np.ones(count, np.int8)
            )
            return version
        chunks = [self.facts.columns(), rows] if len(self.facts) else [rows]
        return self._gather(chunks, count + len(self.facts))

    def successor(self, content: Version, facts: Version | None = None, change: Change | None = None) -> StoredRelation:
        """The relation after its content has become `content` (and its facts `facts`); this one stays as it is.

        `change` is the difference of the contents, if it is known. Secondary key orders and scans follow, or go.
        """
        facts = self.facts if facts is None else facts
        if content is self.content:
            return self._with(content, facts, self._orders, self._scans, self._folds, 0)
        orders: dict[tuple[int, ...], Version | LaggingOrder] = {self._stores.declared: content}
        if len(self._orders) == 1 and not self._scans and not self._folds:
            return self._with(content, facts, orders, {}, {}, None if change is None else len(change.kinds))
        scans: dict[ScanOrder, Version] = {}
        folds: dict[FoldKey, PageFolds] = {}
        if change is not None or content.store is self.content.store:
            before, rows = len(self.content), len(content)
            if abs(rows - before) < SMALL_PART * before:
                if change is None:
                    delta = self.content.delta(content)
                    change = Change(delta.rows, delta.kinds)
                changed = len(change.kinds)
                if changed < SMALL_PART * rows:
                    folds = self._folds_after(changed, rows) if self._folds else {}
                    bulk = changed >= BULK_ROWS and changed > BULK_PART * rows
                    orders, scans = self._follow(content, change, {} if bulk else self._orders)
        return self._with(content, facts, orders, scans, folds, None if change is None else len(change.kinds))

    def noted_statistics(self, *, counted: bool) -> dict[str, Any] | None:
        """What is known of the columns, as JSON; None if nobody asked. `counted`: of all key orders, looked at now."""
        if self._statistics is None and self._known is None:
            return None
        if counted:
            self.statistics.distinct(frozenset())
        return self.statistics.noted()

    def know_statistics(self, noted: Mapping[str, Any]) -> None:
        """Know of the columns what was noted where the content was the same."""
        self._statistics = Statistics.of_noted(weakref.proxy(self), noted)

    def after_change(self, content: Version, change: Change, part: float, private: Private) -> StoredRelation:
        """The relation after its content became `content` by a `change` that only inserts, or only erases.

        Key orders and scans follow: by batch update, or merged where more than `part` of the rows are new, and those
        that are `private` are used up. They go where a large part of the rows goes.
        """
        n, folds = len(change.kinds), self._folds_after(len(change.kinds), len(content))
        if n and change.kinds[0] == ERASED:
            if n >= SMALL_PART * len(content):
                return self._with(content, self.facts, {self._stores.declared: content}, {}, folds)
            part = math.inf
        orders, scans = self._follow(content, change, self._orders, private, part)
        return self._with(content, self.facts, orders, scans, folds, n)

    def _follow(
        self,
        content: Version,
        change: Change,
        wanted: Mapping[tuple[int, ...], Version | LaggingOrder],
        private: Private | None = None,
        part: float = math.inf,
    ) -> tuple[dict[tuple[int, ...], Version | LaggingOrder], dict[ScanOrder, Version]]:
        """(the key orders that are `wanted` of these, the scans) after a `change` that led to `content`.

        With `private`, a key order that does not lag will be asked for in the next round: it follows at once, and is
        merged where inserts are more than `part` of the rows. One that lags waits for `settle_orders`. If there is no
        memory for one, it and those after it are dropped, as with a large change; asking again raises the error.
        """
        orders: dict[tuple[int, ...], Version | LaggingOrder] = {self._stores.declared: content}
        scans: dict[ScanOrder, Version] = {}
        rows = len(content)
        try:
            for order, held in list(wanted.items()):
                if order == self._stores.declared:
                    continue
                if private is None:
                    orders[order] = self._lagging(order, held, change, rows)
                    continue
                if isinstance(held, LaggingOrder):
                    orders[order] = LaggingOrder.of(held, change)
                    continue
                mine = held in private
                if len(change.kinds) > part * len(held):
                    made, _ = held.merged(permuted(change.rows, order), use_up=mine)
                else:
                    made, _ = held.update(change.rows[list(order)], change.kinds, use_up=mine)
                private.follow(held, made)
                orders[order] = made
            for scan, before in list(self._scans.items()):
                scans[scan], _ = before.update(change.rows[list(scan.order)], change.kinds)
        except ArenaFullError:
            pass
        return orders, scans

    def _folds_after(self, changed: int, rows: int) -> dict[FoldKey, PageFolds]:
        """What is remembered of pages and of use still, after so many changes that led to so many rows."""
        folds: dict[FoldKey, PageFolds] = {}
        if self._folds and changed < SMALL_PART * rows:
            for key, kept in list(self._folds.items()):
                kept.unseen += changed
                if kept.unseen < SMALL_PART * rows:
                    folds[key] = kept
        return folds

    def frozen(self) -> StoredRelation:
        """The same rows for a reader in another thread: key orders and scans that either builds are its own."""
        folds = {key: kept.twin() for key, kept in list(self._folds.items())}
        return self._with(self.content, self.facts, self._orders.copy(), self._scans.copy(), folds, 0)

    def memory(self) -> dict[Built, int]:
        """Bytes of pages per key order and per scan; none for a content that belongs to another relation.

        Of a key order that lags behind those it has.
        """
        found: list[tuple[Built, Version | LaggingOrder]] = [*self._orders.items(), *self._scans.items()]
        versions = {built: held.version if isinstance(held, LaggingOrder) else held for built, held in found}
        own = self._stores.made()
        return {built: version.memory() if version.store in own else 0 for built, version in versions.items()}
