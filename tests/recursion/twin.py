"""A database beside its meaning, as in tests/mixed, and the rounds of its recursive rows looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from lftj.values import gate
from tests.engine.programs import Draw, pick
from tests.mixed import twin
from tests.mixed.programs import Mixed
from tests.plain import syntax
from tests.plain.evaluate import World, derived, in_order, recursive, stored
from tests.recursion.programs import make_rows

Row = tuple[Any, ...]
Call = tuple[str, str, list[Row]]


class Twin(twin.Twin):
    """`strategy`: what is wished for the heads that are not recursive."""

    def __init__(self, mixed: Mixed, strategy: str = "mixed") -> None:
        super().__init__(mixed, strategy)
        for name, row in self.program.facts:  # they may be erased like any other
            self.facts.setdefault(name, set()).add(stored(self.program, name, row))
        self.program.facts = []

    def verify(self) -> None:
        """Contents of all relations, and the support of all rows."""
        super().verify()
        self.check_rounds()

    def rounds(self, name: str) -> dict[Row, int]:
        """The round of every row of a recursive relation."""
        relation = self.db._evaluator.relations[name]
        codes = relation.content.columns()
        rows = gate.to_rows(relation.schema, list(codes), self.db._symbols, rows=codes.shape[1])
        values = relation.content.values_of(np.ascontiguousarray(codes))[0]
        return dict(zip(rows, values.tolist(), strict=True))

    def check_rounds(self) -> None:
        """Every row that is no fact has a derivation from rows of smaller rounds."""
        given = {name: set(rows) for name, rows in self.facts.items()}
        for name, row in self.program.facts:
            given.setdefault(name, set()).add(stored(self.program, name, row))
        for component in in_order(self.program, given):
            if recursive(self.program, component):
                self._check_component(component, given)

    def _check_component(self, component: tuple[str, ...], given: dict[str, set[Row]]) -> None:
        rounds = {name: self.rounds(name) for name in component}
        run = [rule for rule in self.program.rules if rule.head.name in component]
        noted = self.db._evaluator.rounds.of([self.db._evaluator.relations[name].content for name in component])
        if noted is not None and not noted.as_written:
            assert not any(given.get(name) for name in component), "a closure with facts of its own"
            run = right_linear(run)
        waiting = sorted({number for found in rounds.values() for number in found.values()})
        assert all(number >= 0 for number in waiting)
        for number in waiting:
            world = World()
            world.rows = dict(self.contents)
            for name, found in rounds.items():
                world.rows[name] = {row for row, other in found.items() if other < number}
            for name, found in rounds.items():
                rows = {row for row, other in found.items() if other == number} - given.get(name, set())
                rules = [rule for rule in run if rule.head.name == name] if rows else []
                supported = {stored(self.program, name, row) for rule in rules for row in derived(rule, world)}
                assert rows <= supported, f"{name}, round {number}: {rows - supported}"
                assert not rows or number > 0, f"{name}: derived rows of round 0: {rows}"


def right_linear(rules: list[syntax.Rule]) -> list[syntax.Rule]:
    """The rules of a closure as they are run: `t(x, z) :- e(x, y), t(y, z)`."""
    (base,) = (rule for rule in rules if len(rule.body) == 1)
    (step,) = (rule for rule in rules if rule is not base)
    atoms = [atom for literal in (*base.body, *step.body) if isinstance(atom := literal, syntax.Atom)]
    edge, *pair = atoms
    pair.sort(key=lambda atom: atom.args[0] != step.head.args[0])
    names = (edge.name, step.head.name)
    body = tuple(syntax.Atom(name, atom.args) for name, atom in zip(names, pair, strict=True))
    return [base, syntax.Rule(step.head, body)]


def some_calls(draw: Draw, twin: Twin, most: int) -> list[Call]:
    """Calls of one transaction: half of the changed rows are there, in any order and any number of times."""
    calls: list[Call] = []
    wide = pick(draw, (3, 4, 6))
    for _ in range(pick(draw, (1, 1, 2, 3))):
        name = pick(draw, twin.mixed.base)
        rows = make_rows(draw, twin.program.kinds[name], most, wide)
        known = sorted(twin.facts[name], key=repr)
        verbs = ("upsert", "erase") if name in twin.mixed.functional else ("insert", "insert", "erase")
        calls.append((pick(draw, verbs), name, rows))
        if known and pick(draw, (True, True, False)):
            calls.append(("erase", name, [pick(draw, known) for _ in range(pick(draw, (1, 1, 2, most)))]))
    return calls


def full(draw: Draw, twin: Twin, most: int) -> list[Call]:
    """Facts to begin with."""
    wide = pick(draw, (3, 4, 5))
    calls: list[Call] = []
    for name in twin.mixed.base:
        head = any(rule.head.name == name for rule in twin.program.rules)
        many = pick(draw, (0, 0, 2)) if head else pick(draw, (most, most, most // 2))
        rows = [row for _ in range(many) for row in make_rows(draw, twin.program.kinds[name], 1, wide)]
        if rows:
            calls.append(("upsert" if name in twin.mixed.functional else "insert", name, rows))
    return calls


def history(draw: Draw, twin: Twin, count: int, most: int) -> None:
    """A full start, transactions of a few rows and of many, in between everything erased."""
    for at in range(count):
        calls = full(draw, twin, most) if at == 0 else some_calls(draw, twin, pick(draw, (1, 2, most)))
        if at and not pick(draw, range(12)):
            calls = [("erase", name, sorted(rows)) for name, rows in twin.facts.items() if rows]
        twin.transact(calls, [not pick(draw, range(4)) for _ in calls])
