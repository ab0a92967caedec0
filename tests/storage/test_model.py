"""A random life of a store against a model of it: `sortedcontainers.SortedDict` from keys to values.

Versions are built, updated (from any version that is still kept, so histories branch), compared, read back long after
and dropped, on pages of 2 to 8 rows, so that pages and directory pages split and merge all the time. Catches: lost,
doubled and misplaced rows at page boundaries; wrong seeks; deltas that see too little or too much; pages freed while
a version needs them or kept when none does; updates that take more memory than they asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sortedcontainers import SortedDict

from scantree.check import check_arena
from scantree.layout import HEADER, ROOM
from scantree.memory import EASY, Arena, Size
from scantree.probe import CHANGED, ERASED, INSERTED, NOTHING
from scantree.scan import Scan
from scantree.version import Delta, Store, Version
from tests.storage.pages import pages_of

MIN, MAX = -(2**63), 2**63 - 1
DOMAINS = {
    "two": [0, 1],
    "few": list(range(8)),
    "many": list(range(400)),
    "extreme": [MIN, MIN + 1, -1, 0, 1, MAX - 1, MAX],
    "all": None,
}
KEPT = 6
Key = tuple[int, ...]


class MeteredArena(Arena):
    """An arena that remembers what it was asked for, to hold the storage to it. `easy`: kernels need not ask."""

    asked: tuple[Size | int, ...] = ()

    def __init__(self, easy: bool) -> None:
        super().__init__()
        self.easy = easy
        if not easy:
            self.space.heap[EASY] = 0

    def room(self, *wanted: Size | int) -> None:
        super().room(*wanted)
        self.asked = wanted

    def check_asked(self, made: Version, of: Version | None = None) -> None:
        """No more new pages of any size than were asked for. (The arena near its end counts on each.)"""
        if of is not None and self.easy:
            return  # tests/storage/test_memory.py compares what the kernel asks for with what is asked for here
        before = pages_of(of) if of else ({}, {})
        (new_dirs, new_pages), (old_dirs, old_pages) = pages_of(made), before
        pages, dirs, root = (size if isinstance(size, Size) else Size(0, 0) for size in self.asked)
        assert len(new_pages.keys() - old_pages.keys()) <= pages.pages
        assert len(new_dirs.keys() - old_dirs.keys()) <= dirs.pages
        shape = made.store.shape
        assert (pages.words, dirs.words) == (
            shape.cols << shape.page_bits,
            (2 + shape.keys + shape.folds) << shape.dir_bits,
        )
        assert HEADER + (2 + shape.keys + 2 * shape.folds) * int(self.space.mem[made.root + ROOM]) <= root.words


def as_rows(rows: Iterable[Sequence[int]], cols: int) -> npt.NDArray[np.int64]:
    """Rows as int64[cols, n]."""
    listed = list(rows)
    return np.array(listed, np.int64).reshape(len(listed), cols).T


def expected_delta(old: SortedDict, new: SortedDict) -> list[tuple[int, Key, Key]]:
    """(kind, row, old values if changed) in key order."""
    found: list[tuple[int, Key, Key]] = []
    for key in sorted({*old, *new}):
        if key not in new:
            found.append((-1, key + old[key], ()))
        elif key not in old:
            found.append((1, key + new[key], ()))
        elif old[key] != new[key]:
            found.append((0, key + new[key], old[key]))
    return found


def listed(delta: Delta) -> list[tuple[int, Key, Key]]:
    """A delta in the form of `expected_delta`."""
    return [
        (int(kind), tuple(delta.rows[:, i].tolist()), tuple(delta.before[:, i].tolist()) if kind == 0 else ())
        for i, kind in enumerate(delta.kinds)
    ]


class StoreMachine(RuleBasedStateMachine):
    """Kept versions, each beside its model."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[Version, SortedDict]] = []

    @initialize(
        keys=st.integers(0, 4),
        values=st.integers(0, 2),
        page_rows=st.sampled_from([2, 4, 8]),
        dir_rows=st.sampled_from([2, 4, 8]),
        domain=st.sampled_from(sorted(DOMAINS)),
        choice=st.integers(0, 23),
    )
    def found(self, keys: int, values: int, page_rows: int, dir_rows: int, domain: str, choice: int) -> None:
        self.keys, self.values = keys, values
        choices = DOMAINS[domain]
        self.choices = choices
        self.key = st.sampled_from(choices) if choices else st.integers(MIN, MAX)
        self.arena = MeteredArena(easy=choice % 2 == 0)
        scan = self.some_scan(choice)
        self.store = Store(self.arena, keys, values, page_rows=page_rows, dir_rows=dir_rows, scan=scan)
        self.keep(self.store.empty(), SortedDict())

    def some_scan(self, choice: int) -> Scan | None:
        """What the store keeps folded: nothing. A machine of stores with scans chooses one by `choice`."""
        return None

    # -- means -------------------------------------------------------------------------------------------------------

    def keep(self, version: Version, model: SortedDict) -> None:
        version.check()
        assert len(version) == len(model)
        self.kept.append((version, model))
        if len(self.kept) > KEPT:
            self.kept.pop(0)

    def pick(self, which: int) -> tuple[Version, SortedDict]:
        return self.kept[which % len(self.kept)]

    def some_rows(self, data: st.DataObject, most: int) -> list[Key]:
        row = st.tuples(*[self.key] * self.keys, *[st.integers(-1, 1)] * self.values)
        return data.draw(st.lists(row, max_size=most))

    def many_rows(self, seed: int, n: int) -> list[Key]:
        rng = np.random.default_rng(seed)
        if self.choices:
            keys = np.array(self.choices, np.int64)[rng.integers(0, len(self.choices), size=(n, self.keys))]
        else:
            keys = rng.integers(MIN, MAX, size=(n, self.keys), endpoint=True)
        return [tuple(row) for row in np.hstack([keys, rng.integers(-1, 2, size=(n, self.values))]).tolist()]

    def change(self, which: int, rows: list[Key], ops: list[int]) -> None:
        version, model = self.pick(which)
        after: SortedDict = model.copy()
        last = {row[: self.keys]: (op, row[self.keys :]) for row, op in zip(rows, ops, strict=True)}
        verdicts = []
        for key, (op, values) in sorted(last.items()):
            if op < 0:
                verdicts.append(NOTHING if after.pop(key, None) is None else ERASED)
            else:
                present = after.get(key)
                verdicts.append(INSERTED if present is None else NOTHING if present == values else CHANGED)
                after[key] = values
        batch = as_rows(rows, self.keys + self.values)
        new, changes = version.update(batch, np.array(ops, np.int8))
        assert changes.verdicts.tolist() == verdicts
        assert [tuple(key) for key in changes.batch[: self.keys].T.tolist()] == sorted(last)
        if set(verdicts) <= {NOTHING}:
            assert new is version
        else:
            self.arena.check_asked(new, version)
            self.keep(new, after)

    # -- new versions ------------------------------------------------------------------------------------------------

    @rule(data=st.data(), which=st.integers(0, KEPT))
    def change_some(self, data: st.DataObject, which: int) -> None:
        rows = self.some_rows(data, 12)
        self.change(which, rows, data.draw(st.lists(st.sampled_from([1, -1]), min_size=len(rows), max_size=len(rows))))

    @rule(which=st.integers(0, KEPT), seed=st.integers(0, 2**32), n=st.integers(1, 150), erased=st.floats(0, 1))
    def change_many(self, which: int, seed: int, n: int, erased: float) -> None:
        ops = np.where(np.random.default_rng(seed).random(n) < erased, -1, 1)
        self.change(which, self.many_rows(seed, n), ops.tolist())

    @rule(which=st.integers(0, KEPT), seed=st.integers(0, 2**32), share=st.floats(0, 1))
    def erase_present(self, which: int, seed: int, share: float) -> None:
        """Random erases seldom meet a row of a large domain; these do, in runs that empty whole pages."""
        _, model = self.pick(which)
        rows = [key + values for key, values in model.items()]
        start = int(np.random.default_rng(seed).integers(0, len(rows) + 1))
        gone = rows[start : start + int(share * len(rows)) + 1]
        self.change(which, gone, [-1] * len(gone))

    @rule(seed=st.integers(0, 2**32), n=st.integers(0, 150))
    def build(self, seed: int, n: int) -> None:
        rows = self.many_rows(seed, n)
        version = self.store.build(list(as_rows(rows, self.keys + self.values)), n)
        self.arena.check_asked(version)
        self.keep(version, SortedDict({row[: self.keys]: row[self.keys :] for row in rows}))

    @precondition(lambda self: len(self.kept) > 1)
    @rule(which=st.integers(0, KEPT))
    def drop(self, which: int) -> None:
        self.kept.pop(which % len(self.kept))

    @rule()
    def drop_all(self) -> None:
        """Nothing is left in the arena then."""
        self.kept.clear()
        check_arena(self.arena, [])
        assert self.arena.used == 0
        self.keep(self.store.empty(), SortedDict())

    # -- reading -----------------------------------------------------------------------------------------------------

    @rule(which=st.integers(0, KEPT), size=st.integers(1, 5))
    def read_all(self, which: int, size: int) -> None:
        version, model = self.pick(which)
        rows = [key + values for key, values in model.items()]
        assert list(version.rows()) == rows
        assert np.array_equal(version.columns(), as_rows(rows, self.keys + self.values))
        some = list(range(self.keys + self.values))[::-2]
        assert np.array_equal(version.some_columns(some), version.columns()[some])
        chunks = list(version.chunks(size=size))
        assert all(chunk.shape[1] == size for chunk in chunks[:-1])
        assert np.array_equal(np.concatenate([*chunks, version.columns(limit=0)], axis=1), version.columns())

    @rule(data=st.data(), which=st.integers(0, KEPT))
    def seek(self, data: st.DataObject, which: int) -> None:
        """Whole keys and prefixes, from the front and from positions on the way, and the ranges between them."""
        version, model = self.pick(which)
        rows = [key + values for key, values in model.items()]
        width = data.draw(st.integers(0, self.keys))
        asked = sorted(row[:width] for row in [*self.some_rows(data, 6), *data.draw(st.permutations(rows[:40]))[:3]])
        previous, passed = version.begin(), 0
        for row in asked:
            rank = model.bisect_left(row)
            pos = version.seek(row)
            assert version.count(None, pos) == rank
            assert (pos == version.end()) == (rank == len(model))
            if rank < len(model):
                assert version.row(pos) == rows[rank]
            assert version.seek(row, version.begin()) == pos
            assert version.seek(row, previous) == pos
            assert version.seek(row, pos) == pos
            assert version.count(previous, pos) == rank - passed
            assert list(version.rows(previous, pos)) == rows[passed:rank]
            limit = data.draw(st.integers(0, 5))
            assert version.columns(previous, pos, limit=limit).T.tolist() == [
                list(r) for r in rows[passed:rank][:limit]
            ]
            previous, passed = pos, rank
        if asked:
            # From behind the row that is sought: the position itself.
            assert version.seek(asked[0], previous) == previous

    @rule(data=st.data(), which=st.integers(0, KEPT))
    def contains(self, data: st.DataObject, which: int) -> None:
        version, model = self.pick(which)
        keys = [row[: self.keys] for row in self.some_rows(data, 8)] + list(model)[:: max(1, len(model) // 5)]
        assert version.contains(as_rows(keys, self.keys)).tolist() == [key in model for key in keys]

    @rule(which=st.integers(0, KEPT), other=st.integers(0, KEPT))
    def compare(self, which: int, other: int) -> None:
        (old, old_model), (new, new_model) = self.pick(which), self.pick(other)
        delta = old.delta(new)
        expected = expected_delta(old_model, new_model)
        assert listed(delta) == expected
        for kind, part in ((1, delta.inserted), (-1, delta.erased), (0, delta.changed)):
            assert [tuple(row) for row in part.T.tolist()] == [row for k, row, _ in expected if k == kind]

    # -- always ------------------------------------------------------------------------------------------------------

    @invariant()
    def holds(self) -> None:
        if self.kept:
            for version, _ in self.kept:
                version.check()
            check_arena(self.arena, [version for version, _ in self.kept])


TestStore: Any = StoreMachine.TestCase
# Pages of a few rows need few rows: more examples than the tiny profile has are still done in seconds without the JIT.
_profile = settings.get_current_profile_name()
TestStore.settings = settings(
    settings.get_profile(_profile),
    max_examples=max(50, settings.get_profile(_profile).max_examples),
    stateful_step_count=max(30, settings.get_profile(_profile).stateful_step_count),
)
