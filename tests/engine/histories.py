"""A database beside its model: facts as sets, rules as the plain evaluator reads them, contents by it.

`Twin` does everything twice. What a transaction's delta must be follows from the model's contents before and after.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np

import lftj
from lftj.store.order_stores import ScanOrder
from tests.engine import programs
from tests.plain.evaluate import Contents, evaluate, parse, stored
from tests.plain.syntax import Program

Row = tuple[Any, ...]


def check_stored(relation: Any) -> None:
    """The pages of every key order and scan, and that all hold the same rows."""
    content = relation.content.columns()
    relation.facts.check()
    for built in relation.built:
        order = built.order if isinstance(built, ScanOrder) else built
        version = relation.scan_version(*built) if isinstance(built, ScanOrder) else relation.order(order)
        version.check()
        rows = version.columns()
        assert rows.shape == (len(order), content.shape[1])
        assert set(zip(*rows.tolist(), strict=True)) == set(zip(*content[list(order)].tolist(), strict=True))


class Twin:
    """A database and its model."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.db = lftj.Database._sized(**sizes)
        self.program = Program()
        self.facts: dict[str, set[Row]] = {}

    def contents(self) -> Contents:
        return evaluate(self.program, self.facts)

    def schema(self, name: str) -> tuple[str, ...]:
        return self.program.kinds[name]

    def heads(self) -> list[str]:
        return sorted({rule.head.name for rule in self.program.rules})

    def extend(self, text: str) -> None:
        """The model's part of `rules`."""
        added = parse(text)
        kinds = {**self.program.kinds, **added.kinds}
        for rule in added.rules:  # a head without declaration: of what types it is, only the engine says
            name = rule.head.name
            if name not in kinds:
                kinds[name] = self.db._relations[name].schema.types
        self.program = Program(kinds, rules=[*self.program.rules, *added.rules])
        for name, row in added.facts:
            self.put(name, [row])

    def drop(self, head: str) -> None:
        """The model's part of `remove_rules`."""
        self.program = Program(self.program.kinds, rules=[r for r in self.program.rules if r.head.name != head])

    def put(self, name: str, rows: Iterable[Any]) -> None:
        self.facts.setdefault(name, set()).update(stored(self.program, name, row) for row in rows)

    def take(self, name: str, rows: Iterable[Any]) -> None:
        self.facts.setdefault(name, set()).difference_update(stored(self.program, name, row) for row in rows)

    def verify(self) -> None:
        expected = self.contents()
        assert sorted(self.db) == sorted(self.program.kinds)
        for name in self.db:
            relation = self.db[name]
            assert set(relation) == expected[name]
            assert len(relation) == len(expected[name])
            check_stored(self.db._relations[name])


def source(rng: Random, rows: list[Row], schema: tuple[str, ...]) -> Any:
    """The rows in one of the forms that relations are read from."""
    form = rng.choice(("list", "list", "lists", "iterator", "dict", "numpy"))
    if form == "list" or not schema or not rows:
        return rows
    if form == "lists":
        return [list(row) for row in rows]
    if form == "iterator":
        return iter(rows)
    if form == "numpy" and set(schema) == {"number"}:
        return np.array(rows, np.int64)
    return {f"c{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))}


def some_rows(rng: Random, twin: Twin, name: str) -> list[Row]:
    """Rows to insert or erase: known ones and others, with repetitions."""
    rows = programs.make_rows(rng, twin.schema(name), most=4)
    known = sorted(twin.facts.get(name, ()), key=repr)
    if known and rng.random() < 0.6:
        rows += rng.sample(known, min(len(known), rng.choice((1, 2, 5))))
    rng.shuffle(rows)
    return rows


def new_rule(rng: Random, twin: Twin, number: int) -> str:
    """A rule for a new relation, or one more for a head, that reads relations below it."""
    body = programs.make_body(rng, twin.program.kinds, most=2)
    kinds = sorted(set(body.bound.values()))
    schema = tuple(rng.choice(kinds) for _ in range(rng.choice((1, 2)))) if kinds else ()
    name = f"x{number}"
    head = f"{name}({', '.join(programs.operand(rng, body, kind) for kind in schema)})"
    return f"{programs.declaration(name, schema)}\n{head} :- {', '.join(body.literals)}."
