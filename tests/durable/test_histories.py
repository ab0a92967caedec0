"""Random histories of a database in a file: closed, lost and opened again it is what it was; `at` is a replay."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import lftj
from tests.durable.shop import Contents, contents, lose, opened

NODES = st.integers(0, 5)
EDGES = st.lists(st.tuples(NODES, NODES), max_size=4)
NAMES = st.lists(st.tuples(NODES, st.sampled_from(["ann", "bo", "cy", "käse", ""])), max_size=3)
EXTRA = {
    "far": "far(x, z) :- path(x, z), !edge(x, z).",
    "pairs": "pairs[x] = sum y : { edge(x, y), path(y, _) }.",
    "twice": "twice(x) :- degree(x, n), n > 1.",
}


class Histories(RuleBasedStateMachine):
    """What users do to a database in a file. `seen`: what it held after each entry of its log."""

    @initialize(sync=st.sampled_from(["full", "normal", "off"]))
    def begin(self, sync: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.sync = Path(self.folder.name) / "shop.lftj", sync
        self.seen: dict[int, Contents] = {}
        self.db = self.open()
        self.reader: lftj.Database | None = None
        self.note()

    def open(self, **options: Any) -> lftj.Database:
        return opened(self.path, sync=self.sync, retain=None, **options)

    def note(self) -> None:
        self.seen[self.db.seq] = contents(self.db)

    @rule(inserted=EDGES, erased=EDGES, names=NAMES)
    def commit(self, inserted: list[Any], erased: list[Any], names: list[Any]) -> None:
        with self.db.transaction() as tx:
            tx.erase("edge", erased)
            tx.insert("edge", inserted)
            tx.insert("name", names)
        self.note()

    @rule(edges=EDGES)
    def load(self, edges: list[Any]) -> None:
        self.db.load("edge", edges)
        self.note()

    @rule(name=st.sampled_from(sorted(EXTRA)), with_rows=EDGES)
    def change_rules(self, name: str, with_rows: list[Any]) -> None:
        there = bool(self.db._state.strata.of(name))
        with self.db.transaction() as tx:
            tx.remove_rules(name) if there else tx.rules(EXTRA[name])
            tx.insert("edge", with_rows)
        self.note()

    @rule()
    def checkpoint(self) -> None:
        self.db.checkpoint()

    @rule()
    def close_and_open(self) -> None:
        before = contents(self.db)
        self.db.close()
        self.db = self.open()
        assert contents(self.db) == before

    @precondition(lambda self: self.sync != "off")
    @rule()
    def die_and_open(self) -> None:
        before, seq = contents(self.db), self.db.seq
        lose(self.db)
        self.db = self.open()
        assert self.db.seq == seq
        assert contents(self.db) == before

    @rule()
    def read(self) -> None:
        assert self.db._file is not None
        self.db._file.flush()
        if self.reader is None:
            self.reader = opened(self.path, read_only=True)
        else:
            before = contents(self.reader)
            deltas = self.reader.refresh()
            for name in deltas:
                if name in before:
                    came, went = set(deltas[name].inserted), set(deltas[name].erased)
                    assert set(self.reader[name]) == (set(before[name]) - went) | came
        assert contents(self.reader) == contents(self.db)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        assert self.db._file is not None
        self.db._file.flush()
        seq = data.draw(st.sampled_from(sorted(self.seen)))
        assert contents(self.db.at(seq)) == self.seen[seq]

    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        assert self.db._file is not None
        self.db._file.flush()
        since = data.draw(st.sampled_from(sorted(self.seen)))
        rows = set(self.seen[since]["edge"])
        for changed in self.db.changes("edge", since=since):
            rows = (rows - set(changed.delta.erased)) | set(changed.delta.inserted)
            assert sorted(rows) == self.seen[changed.seq]["edge"]
        assert rows == set(self.db["edge"])

    @rule(edges=EDGES)
    def branch(self, edges: list[Any]) -> None:
        before = contents(self.db)
        branch = self.db.branch()
        with branch.transaction() as tx:
            tx.insert("edge", edges)
        diff = branch.diff(self.db)
        assert contents(self.db) == before
        for name in before:
            came, went = set(diff[name].inserted), set(diff[name].erased)
            assert set(branch[name]) == (set(before[name]) - went) | came

    def teardown(self) -> None:
        if hasattr(self, "db"):
            if self.reader is not None:
                self.reader.close()
            before = contents(self.db)
            self.db.close()
            with opened(self.path) as again:
                assert contents(again) == before
            self.folder.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
