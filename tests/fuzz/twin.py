"""A database of a program, rewritten or as it is, beside what the program means, through whatever users do with one.

A step of a history is a tuple of calls (verb, relation, rows). Those of `OUTSIDE` are made first, on the database
itself; the others are one transaction.

    insert erase upsert     rows of a transaction
    remove_rules rules      the rules of a head go; all that were in the program's text come back, with those of heads
                            that are least or greatest values in one recursion with it: lftj takes these together only
    preview                 what the transaction would change
    raise                   an exception leaves the block: nothing has changed
    load                    rows, all at once, without a transaction
    add_rules               as `rules`, without a transaction
    snapshot                it is read at the end of the history; so is the state of now in a file
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lftj
from tests.fuzz.duckdb_oracle import DuckDB
from tests.fuzz.nulls import sorted_rows
from tests.fuzz.retype import Retyping
from tests.fuzz.rewrites import AUX
from tests.fuzz.sql_terms import Untranslated
from tests.mixed.programs import Mixed
from tests.mixed.twin import Twin
from tests.plain.evaluate import Contents, in_order, parse

Row = tuple[Any, ...]
Call = tuple[str, str, list[Row]]
OUTSIDE = ("load", "add_rules", "snapshot")


class Disagreement(AssertionError):
    """DuckDB has another answer."""


class Stop(Exception):
    """A user's exception within a transaction."""


def rules_of(text: str, head: str) -> str:
    """The lines of a program that derive a head."""
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith((f"{head}(", f"{head}[")))


class FuzzTwin(Twin):
    """`other`: the program as the database gets it · `maintain`: of its heads · `path`: of its file, if it has one.

    `retyping`: the texts of `mixed` are of another type in the database.
    `untranslated`: why DuckDB was not compared with; empty if it was.
    """

    def __init__(
        self, mixed: Mixed, other: str, maintain: dict[str, str], path: Path | None, retyping: Retyping | None = None
    ) -> None:
        self.other, self.maintain, self.path = other, maintain, path
        self.retyping = retyping or Retyping("symbol")
        self.added: set[str] = set()
        self.removed: frozenset[str] = frozenset()
        self.held: list[tuple[lftj.Snapshot, Contents]] = []
        self.past: dict[int, Contents] = {}
        self.untranslated = ""
        self.whole = parse(mixed.text)
        super().__init__(replace(mixed, sizes=dict(mixed.sizes)))

    def begin(self) -> None:
        """Set up the database."""
        sizes = {} if self.path is not None else self.mixed.sizes
        self.db = lftj.Database._sized(**sizes, **({} if self.path is None else {"path": self.path, "retain": 1000}))
        self.db.rules(self.other, maintain=self.maintain, granularity=self.mixed.granularity)
        self.added = {name for name in self.db if name.startswith(AUX)}

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self, calls: Sequence[Call]) -> None:
        """Some calls on the database, and a transaction of the others."""
        for verb, name, rows in calls:
            if verb == "snapshot":
                self.held.append((self.db.snapshot(), self.contents))
                if self.path is not None:
                    self.past[self.db.seq] = self.contents
            elif verb == "load":
                self._load(name, rows)
            elif verb == "add_rules" and name in self.removed:
                self._add_rules(name)
        inside = [call for call in calls if call[0] not in OUTSIDE]
        if inside:
            self.transact(inside, [False] * len(inside))

    def transact(self, calls: list[Call], previews: list[bool]) -> None:
        """One transaction with everything compared, which an exception of the user may end."""
        facts, removed, committed = copy.deepcopy(self.facts), self.removed, self.committed
        try:
            super().transact(calls, previews)
        except Stop:
            self.facts = facts
        if self.committed == committed:
            self._without(removed)
            self.verify()

    def call(self, tx: Any, verb: str, name: str, rows: list[Row]) -> None:
        """A call of the transaction, and what it means for facts and rules. One that has no object is left out."""
        if verb == "raise":
            raise Stop
        if verb == "preview":
            self.preview(tx)
        elif verb == "remove_rules":
            if name not in self.removed and rules_of(self.other, name):
                tx.remove_rules(name)
                self._without(self.removed | {name})
        elif verb == "rules":
            if name in self.removed:
                tx.rules(self._text(heads := self._with(name)), **self._options(heads))
                self._without(self.removed - heads)
        else:
            super().call(tx, verb, name, rows)

    def _load(self, name: str, rows: list[Row]) -> None:
        before = self.facts[name]
        self.facts[name] = before | set(rows)
        after = self.expected()
        if after is None:  # what is derived would fail whenever it is read
            self.facts[name] = before
            return
        self.db.load(name, self.given(name, rows))
        self.contents = after

    def _add_rules(self, head: str) -> None:
        removed, heads = self.removed, self._with(head)
        self._without(removed - heads)
        after = self.expected()
        if after is None:
            self._without(removed)
            return
        self.db.rules(self._text(heads), **self._options(heads))
        self.contents = after

    def _with(self, head: str) -> frozenset[str]:
        """A removed head, and those that come back with it."""
        around = next(found for found in in_order(self.whole, {}) if head in found)
        return self.removed & set(around) if head in self.whole.functional else frozenset([head])

    def _text(self, heads: Iterable[str]) -> str:
        return "".join(rules_of(self.other, head) for head in sorted(heads))

    def _options(self, heads: Iterable[str]) -> dict[str, dict[str, str]]:
        given = {"maintain": self.maintain, "granularity": self.mixed.granularity}
        return {option: {head: values[head] for head in heads if head in values} for option, values in given.items()}

    def _without(self, removed: frozenset[str]) -> None:
        """The rules of these heads are not in the program."""
        if removed == self.removed:
            return
        self.removed, gone = removed, "".join(rules_of(self.mixed.text, head) for head in removed).splitlines()
        self.program = parse("\n".join(line for line in self.mixed.lines if line not in gone))

    def given(self, name: str, rows: list[Row]) -> list[Row]:
        """Rows as the database gets them."""
        return self.retyping.values(self.program.kinds[name], rows)

    def taken(self, name: str, rows: Iterable[Row]) -> list[Row]:
        """Rows of the database as the oracles have them."""
        return self.retyping.texts(self.program.kinds[name], rows)

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def again(self) -> None:
        """Close the file and open it."""
        if self.path is not None:
            self.close()
            self.db = lftj.Database._sized(path=self.path, retain=1000)

    def close(self) -> None:
        """Snapshots, and the states of the past in the file, are as they were; the file is closed."""
        past = [(self.db.at(seq), contents) for seq, contents in self.past.items()]
        for snapshot, contents in (*self.held, *past):
            for name, rows in contents.items():
                assert set(self.taken(name, snapshot[name])) == rows, f"{name} of a snapshot"
        self.held = []
        if self.path is not None:
            self.db.close()

    def verify(self) -> None:
        """Contents of all relations."""
        for name, expected in self.contents.items():
            rows = self.taken(name, self.db[name])
            # Where null stands depends on the type.
            assert (sorted_rows(rows) if self.program.nullable else rows) == sorted_rows(expected), name

    def differs(self, deltas: Any, after: Contents) -> None:
        """What is wrong with the deltas of a change to `after`."""
        before = self.contents
        assert set(deltas) - self.added == {name for name in after if after[name] != before[name]}
        for name in after:
            assert set(self.taken(name, deltas[name].inserted)) == after[name] - before[name], name
            assert set(self.taken(name, deltas[name].erased)) == before[name] - after[name], name

    def ask_duckdb(self) -> None:
        """The database holds what DuckDB makes of the facts."""
        try:
            expected = DuckDB(self.program).evaluate(self.facts)
        except Untranslated as error:
            self.untranslated = str(error)
            return
        for name, rows in expected.items():
            found = set(self.taken(name, self.db[name]))
            if found != rows:
                raise Disagreement(f"{name}: DuckDB alone has {rows - found}, lftj alone {found - rows}")
