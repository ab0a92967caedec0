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
    more                    lines of a program, in place of a relation: rules of a new head, or one more of another
    bad                     rows that are refused, since the last is too long: none of them counts
    reopen                  the file is closed and opened; "traces" are in it, or the writer was "lost" before
    snapshot                it is read at the end of the history; so is the state of now in a file
    ask                     a question, in place of a relation, which is asked again after each step, and of snapshots
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lftj
from tests.durable.shop import lose
from tests.fuzz.duckdb_oracle import DuckDB
from tests.fuzz.nulls import sorted_rows
from tests.fuzz.questions import answer, meaning, with_parameters
from tests.fuzz.retype import Retyping
from tests.fuzz.rewrites import AUX
from tests.fuzz.sql_terms import Untranslated
from tests.mixed.programs import Mixed
from tests.mixed.twin import Twin
from tests.plain.evaluate import Contents, in_order, parse, reads

Row = tuple[Any, ...]
Call = tuple[str, str, list[Row]]
OUTSIDE = ("load", "add_rules", "snapshot", "ask", "reopen")


class Disagreement(AssertionError):
    """DuckDB has another answer."""


class Stop(Exception):
    """A user's exception within a transaction."""


def rules_of(text: str, head: str) -> str:
    """The lines of a program that derive a head."""
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith((f"{head}(", f"{head}[")))


def too_long(rows: list[Row]) -> list[Row]:
    """Rows of which the last has a value too many."""
    return [*rows[:-1], (*rows[-1], 0)]


def _differences(before: Contents, after: Contents) -> dict[str, tuple[set[Row], set[Row]]]:
    """What came and what went, by relation."""
    found = {name: (rows - before.get(name, set()), before.get(name, set()) - rows) for name, rows in after.items()}
    return {name: rows for name, rows in found.items() if any(rows)}


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
        self.asked: dict[str, Any] = {}  # prepared queries by question
        self.untranslated = ""
        self.reader: lftj.Database | None = None  # of the file
        self.seen: Contents = {}  # by it
        self.whole = parse(mixed.text)
        super().__init__(replace(mixed, sizes=dict(mixed.sizes)))

    def begin(self) -> None:
        """Set up the database."""
        sizes = {} if self.path is not None else self.mixed.sizes
        self.db = lftj.Database._sized(**sizes, **({} if self.path is None else {"path": self.path, "retain": 1000}))
        self.db.rules(self.other, maintain=self.maintain, granularity=self.mixed.granularity)
        self.added = {name for name in self.db if name.startswith(AUX)}
        self.feed = self.db.changes()

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
            elif verb == "reopen":
                self.again(name)
            elif verb == "ask":
                self.asked[name] = self._prepared(self.db, name)
                self._ask(self.db, name, self.contents)
        inside = [call for call in calls if call[0] not in OUTSIDE]
        if inside:
            self.transact(inside, [False] * len(inside))
        for question in self.asked:
            self._ask(self.db, question, self.contents)
        self.read_along()

    def transact(self, calls: list[Call], previews: list[bool]) -> None:
        """One transaction with everything compared, which an exception of the user may end."""
        facts, committed = copy.deepcopy(self.facts), self.committed
        program, before = (self.mixed, self.other, self.whole, self.removed), self.contents
        try:
            super().transact(calls, previews)
        except Stop:
            self.facts = facts
        if self.committed == committed:
            self.mixed, self.other, self.whole, self.removed = program
            self._reparse()
            self.verify()
        heard = [self.changed(deltas) for deltas in self.feed.waiting()]
        told = _differences(before, self.contents)
        assert heard == ([told] if told else []), "the feed of commits"

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
        elif verb == "more":
            if not any(rules_of(name, head) for head in self.removed):
                tx.rules(self.retyping.program(name))
                self._with_more(name)
        elif verb == "bad":
            with pytest.raises(lftj.DataError):
                tx.insert(name, too_long(self.given(name, rows)))
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
        if removed != self.removed:
            self.removed = removed
            self._reparse()

    def _reparse(self) -> None:
        gone = "".join(rules_of(self.mixed.text, head) for head in self.removed).splitlines()
        self.program = parse("\n".join(line for line in self.mixed.lines if line not in gone))

    def _with_more(self, text: str) -> None:
        """These lines are in the program, too."""
        self.mixed = replace(self.mixed, lines=[*self.mixed.lines, *text.splitlines()])
        self.other = f"{self.other}\n{self.retyping.program(text)}"
        self.whole = parse(self.mixed.text)
        self.mixed.known = dict(self.whole.kinds)
        self._reparse()

    # -- questions -----------------------------------------------------------------------------------------------------

    def is_taken(self, question: str) -> bool:
        """Whether the database takes a question: the place of a parameter may say nothing of its type, or have none."""
        try:
            self._query(self.db, question)
        except (lftj.ProgramError, lftj.DataError):
            return False
        return True

    def _query(self, source: lftj.Database | lftj.Snapshot, question: str) -> lftj.Query:
        text, given = with_parameters(question)
        return source.query(self.retyping.program(text), **self._values(given))

    def _values(self, given: dict[str, Any]) -> dict[str, Any]:
        return {name: self.retyping.value(value) for name, value in given.items()}

    def _prepared(self, source: lftj.Database | lftj.Snapshot, question: str) -> Any:
        return source.prepare_query(self.retyping.program(with_parameters(question)[0]))

    def _ask(self, source: lftj.Database | lftj.Snapshot, question: str, contents: Contents) -> None:
        """A question has the same answer however it is asked: `contents` are those of `source`."""
        prepared = self.asked[question] if source is self.db else self._prepared(source, question)
        kinds = tuple(self.retyping.kind(kind) for kind in prepared.columns.values())
        expected = answer(meaning(self.mixed.lines, question, prepared.columns), contents)
        query = self._query(source, question)
        assert query.count() == len(expected), question
        for found in (query, prepared(**self._values(with_parameters(question)[1]))):
            assert sorted_rows(self.retyping.texts(kinds, found)) == sorted_rows(expected), question

    def given(self, name: str, rows: list[Row]) -> list[Row]:
        """Rows as the database gets them."""
        return self.retyping.values(self.program.kinds[name], rows)

    def taken(self, name: str, rows: Iterable[Row]) -> list[Row]:
        """Rows of the database as the oracles have them."""
        return self.retyping.texts(self.program.kinds[name], rows)

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def again(self, how: str = "") -> None:
        """Close the file and open it."""
        if self.path is None:
            return
        if how == "lost":
            lose(self.db)
            self.held = []
        else:
            if how == "traces":
                self.db.checkpoint(traces=True)
            self.close()
        self.db = lftj.Database._sized(path=self.path, retain=1000)
        self.asked = {question: self._prepared(self.db, question) for question in self.asked}
        self.feed = self.db.changes()

    def read_along(self) -> None:
        """A reader of the file takes up what has been committed."""
        if self.path is None:
            return
        if self.reader is None:
            self.reader = lftj.Database._sized(path=self.path, read_only=True)
        else:
            found = self.changed(self.reader.refresh())
            assert found == _differences(self.seen, self.contents), "what a reader is told"
        for name, rows in self.contents.items():
            assert set(self.taken(name, self.reader[name])) == rows, f"{name} of a reader"
        self.seen = self.contents

    def changed(self, deltas: Any) -> dict[str, tuple[set[Row], set[Row]]]:
        """What came and what went, by relation."""
        return {
            name: (set(self.taken(name, deltas[name].inserted)), set(self.taken(name, deltas[name].erased)))
            for name in set(deltas) - self.added
        }

    def close(self) -> None:
        """Snapshots, and the states of the past in the file, are as they were; the file is closed."""
        past = [(self.db.at(seq), contents) for seq, contents in self.past.items()]
        for snapshot, contents in (*self.held, *past):
            for name, rows in contents.items():
                assert set(self.taken(name, snapshot[name])) == rows, f"{name} of a snapshot"
            for question in self.asked:
                if reads(meaning(self.mixed.lines, question)) <= contents.keys():
                    self._ask(snapshot, question, contents)
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
        assert self.changed(deltas) == _differences(self.contents, after)
        for name in after:
            assert name in deltas or not (len(deltas[name].inserted) or len(deltas[name].erased)), name

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
