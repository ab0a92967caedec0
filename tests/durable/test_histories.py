"""Random histories of a database in a file: closed, lost and opened again it is what it was; `at` is a replay.

`Histories` are of rules, `SqlHistories` of tables and views of SQL, bags, heads that triggers keep and null.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import lftj
from tests.conftest import examples
from tests.durable.shop import Contents, lose, opened

NODES = st.integers(0, 5)
EDGES = st.lists(st.tuples(NODES, NODES), max_size=4)
NAMES = st.lists(st.tuples(NODES, st.sampled_from(["ann", "bo", "cy", "käse", ""])), max_size=3)
EXTRA = {
    "far": "far(x, z) :- path(x, z), !edge(x, z).",
    "pairs": "pairs[x] = sum y : { edge(x, y), path(y, _) }.",
    "twice": "twice(x) :- degree(x, n), n > 1.",
}


# Tables with and without a primary key (a bag), views, and a sum that triggers keep.
SCHEMA = """
create table item (id int primary key, name text not null, price decimal(10, 2));
create table sale (item int not null, qty int, day date);
create view sold as select item, qty from sale where qty > 0;
create view revenue as select name, sum(qty * price) as total, count(*) as n
    from sale join item on sale.item = item.id group by name;
create view total as select sum(qty) as q from sale;
"""
ITEMS = st.dictionaries(
    st.integers(0, 3), st.tuples(st.sampled_from(["tea", "jam", ""]), st.sampled_from([1, 2.5, None]))
)
SALES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, dt.date(2024, 5, 30)])),
    max_size=3,
)
VIEWS = {
    "cheap": "create view cheap as select name from item where price < 2",
    "pairs": "create view pairs as select s.item, i.name from sale s left join item i on s.item = i.id",
    "sold": "create or replace view sold as select item, qty from sale where qty > 1",
}


def contents(db: Any) -> Contents:
    """All that a database or a snapshot holds; null is less than nothing."""
    return {name: sorted(db[name], key=repr) for name in db}


class FileHistories(RuleBasedStateMachine):
    """What is done to any database in a file. `seen`: what it held after each entry of its log.

    `followed`: a relation that only transactions change.
    """

    followed = ""

    @initialize(sync=st.sampled_from(["full", "normal", "off"]))
    def begin(self, sync: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.sync = Path(self.folder.name) / "shop.lftj", sync
        self.seen: dict[int, Contents] = {}
        self.db = self.open()
        self.reader: lftj.Database | None = None
        self.made()
        self.note()

    def open(self, **options: Any) -> lftj.Database:
        raise NotImplementedError

    def made(self) -> None:
        """What is done to a new database."""

    def note(self) -> None:
        self.seen[self.db.seq] = contents(self.db)

    @rule(traces=st.sampled_from([None, False, True]))
    def checkpoint(self, traces: bool | None) -> None:
        self.db.checkpoint(traces=traces)

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
            self.reader = self.open(read_only=True)
        else:
            before = contents(self.reader)
            columns = {name: self.reader[name].columns for name in before}
            deltas = self.reader.refresh()
            for name in deltas:
                # Of one that was dropped nothing is told, and one of its name may have other columns.
                if name in before and columns[name] == self.reader[name].columns:
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
        rows = set(self.seen[since][self.followed])
        for changed in self.db.changes(self.followed, since=since):
            rows = (rows - set(changed.delta.erased)) | set(changed.delta.inserted)
            assert sorted(rows, key=repr) == self.seen[changed.seq][self.followed]
        assert rows == set(self.db[self.followed])

    def check_branch(self, change: Callable[[lftj.Database], object]) -> None:
        """A branch that is changed differs from the database by what it says, and the database stays as it is."""
        before = contents(self.db)
        branch = self.db.branch()
        change(branch)
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
            with self.open() as again:
                assert contents(again) == before
            self.folder.cleanup()


class Histories(FileHistories):
    """Facts and rules."""

    followed = "edge"

    def open(self, **options: Any) -> lftj.Database:
        return opened(self.path, sync=self.sync, retain=None, **options)

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

    @rule(edges=EDGES)
    def branch(self, edges: list[Any]) -> None:
        def change(branch: lftj.Database) -> None:
            with branch.transaction() as tx:
                tx.insert("edge", edges)

        self.check_branch(change)


class SqlHistories(FileHistories):
    """Tables, bags, views, null, and a head that triggers keep."""

    followed = "sale"

    def open(self, **options: Any) -> lftj.Database:
        return lftj.Database._sized(
            page_rows=4, directory_rows=2, path=self.path, sync=self.sync, retain=None, **options
        )

    def made(self) -> None:
        self.db.sql(SCHEMA, maintain={"revenue": "triggers", "total": "triggers"})
        self.note()

    @rule(items=ITEMS, sales=SALES)
    def commit(self, items: dict[int, Any], sales: list[Any]) -> None:
        with self.db.transaction() as tx:
            tx.upsert(
                "item", [(id, name, None if price is None else Decimal(price)) for id, (name, price) in items.items()]
            )
            tx.insert("sale", sales)
        self.note()

    @rule(
        text=st.sampled_from(
            [
                "delete from sale where qty = 1",
                "update sale set qty = qty + 1 where item = 1",
                "update item set price = price * 2 where name <> 'jam'; delete from item where id = 3",
                "insert into sale select id, 2, null from item",
                "insert or replace into item values (2, 'new', null)",
            ]
        )
    )
    def statements(self, text: str) -> None:
        with contextlib.suppress(lftj.Error):  # a price that is out of range, say: nothing is changed then
            self.db.sql(text)
        self.note()

    @rule(name=st.sampled_from(sorted(VIEWS)))
    def change_views(self, name: str) -> None:
        if name in self.db and name != "sold":
            self.db.sql(f"drop view {name}")
        else:
            self.db.sql(VIEWS[name])
        self.note()

    @rule(with_text=st.booleans())
    def change_tables(self, with_text: bool) -> None:
        if "note" in self.db:
            self.db.sql("drop table note")
        else:
            columns, row = ("a text, b int", "'text', 1") if with_text else ("a int", "7")
            self.db.sql(f"create table note ({columns}); insert into note values ({row}), ({row})")
        self.note()

    @rule(sales=SALES)
    def load(self, sales: list[Any]) -> None:
        self.db.load("sale", sales)
        self.note()

    @rule(sales=SALES)
    def branch(self, sales: list[Any]) -> None:
        def change(branch: lftj.Database) -> None:
            with branch.transaction() as tx:
                tx.insert("sale", sales)
            branch.sql("delete from sale where qty = 2")

        self.check_branch(change)


TestHistories = Histories.TestCase
TestHistories.settings = examples(25, stateful_step_count=15)
TestSqlHistories = SqlHistories.TestCase
TestSqlHistories.settings = examples(25, stateful_step_count=15)
