"""A database beside its meaning: the program's text, its facts as sets, and the plain reference for the rest."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import lftj
from tests.mixed.programs import Draw, Mixed, make_rows, pick
from tests.plain.aggregates import Overflow
from tests.plain.evaluate import Broken, Contents, KeyConflict, Undefined, evaluate, parse
from tests.plain.syntax import key_columns

Row = tuple[Any, ...]
FAILURES = (Overflow, KeyConflict, Broken, Undefined)


class Refusal(Exception):
    """A transaction went wrong where it must not, or went through where it must fail."""


class Twin:
    """`strategy`: what is wished for every head ("mixed": what the program says)."""

    def __init__(self, mixed: Mixed, strategy: str = "mixed") -> None:
        self.mixed, self.program = mixed, parse(mixed.text)
        self.facts: dict[str, set[Row]] = {name: set() for name in mixed.base}
        self.strategy = strategy
        self.begin()
        self.contents = evaluate(self.program, self.facts)
        self.failed = self.committed = 0
        self.verify()

    def begin(self) -> None:
        """Set up the database."""
        mixed, strategy = self.mixed, self.strategy
        self.db = lftj.Database._sized(**mixed.sizes)
        maintain = mixed.maintain if strategy == "mixed" else dict.fromkeys(mixed.maintain, strategy)
        self.db.rules(mixed.text, maintain=maintain, granularity=mixed.granularity)

    def verify(self) -> None:
        """Contents of all relations, in order and of the right types; no other relation shows."""
        assert sorted(self.db) == sorted(self.contents)
        for name, expected in self.contents.items():
            rows = list(self.db[name])
            assert rows == sorted(expected), name
            assert [[type(v) for v in row] for row in rows] == [
                [{"float": float, "symbol": str}.get(k, int) for k in self.program.kinds[name]] for _ in rows
            ], name
            assert len(self.db[name]) == len(expected)

    def differs(self, deltas: Any, after: Contents) -> None:
        """What is wrong with the deltas of a change to `after`."""
        before = self.contents
        assert set(deltas) == {name for name in after if after[name] != before[name]}
        for name in after:
            assert set(deltas[name].inserted) == after[name] - before[name], name
            assert set(deltas[name].erased) == before[name] - after[name], name

    def expected(self) -> Contents | None:
        """The contents that the facts lead to; None if they must not be."""
        try:
            return evaluate(self.program, self.facts)
        except FAILURES:
            return None

    def call(self, tx: Any, verb: str, name: str, rows: list[Row]) -> None:
        """A call of the transaction, and what it means for the facts."""
        getattr(tx, verb)(name, self.given(name, rows))
        key = key_columns(self.program, name) or ()
        for row in rows:
            if verb == "upsert":
                self.facts[name] = {old for old in self.facts[name] if any(old[c] != row[c] for c in key)}
            (self.facts[name].discard if verb == "erase" else self.facts[name].add)(row)

    def given(self, name: str, rows: list[Row]) -> list[Row]:
        """Rows as the database gets them."""
        return rows

    def preview(self, tx: Any) -> None:
        expected = self.expected()
        if expected is None:
            with pytest.raises(lftj.Error):
                tx.preview()
        else:
            self.differs(tx.preview(), expected)

    def transact(self, calls: list[tuple[str, str, list[Row]]], previews: list[bool]) -> None:
        """One transaction with everything compared."""
        facts, expected = copy.deepcopy(self.facts), None
        try:
            with self.db.transaction() as tx:
                for (verb, name, rows), look in zip(calls, previews, strict=True):
                    self.call(tx, verb, name, rows)
                    if look:
                        self.preview(tx)
                expected = self.expected()
        except lftj.Error as error:
            if expected is not None:
                raise Refusal(f"must go through: {error}") from error
            self.facts, self.failed = facts, self.failed + 1
            self.verify()
            return
        if expected is None:
            raise Refusal("must fail")
        self.differs(tx.delta, expected)
        self.contents, self.committed = expected, self.committed + 1
        self.verify()


def some_calls(draw: Draw, twin: Twin, most: int) -> list[tuple[str, str, list[Row]]]:
    """Calls of one transaction: rows that are there and others, erased and inserted again, in any order."""
    calls = []
    for _ in range(pick(draw, (1, 1, 2, 3))):
        name = pick(draw, twin.mixed.base)
        rows = make_rows(draw, twin.program.kinds[name], most)
        known = sorted(twin.facts[name], key=repr)
        rows += [pick(draw, known) for _ in range(pick(draw, (0, 1, 1, 3)))] if known else []
        verbs = ("insert", "erase", "insert")
        if name in twin.mixed.functional:
            verbs = ("upsert", "upsert", "erase")
        elif name in twin.program.primary:
            verbs = ("upsert", "insert", "erase")
        calls.append((pick(draw, verbs), name, rows))
        if not pick(draw, range(5)):
            calls.append((pick(draw, ("insert", "erase")), name, rows[:1]))
    return calls


def history(draw: Draw, twin: Twin, rounds: int, most: int) -> None:
    """Transactions of a few rows and of many, in between everything erased."""
    for _ in range(rounds):
        calls = some_calls(draw, twin, pick(draw, (2, 4, most)))
        if not pick(draw, range(12)):
            calls = [("erase", name, sorted(rows)) for name, rows in twin.facts.items() if rows]
        twin.transact(calls, [not pick(draw, range(4)) for _ in calls])
