"""Triggers as sets and loops: what formulas mean, and what a program does, without any normal form.

A valuation is a dict from names to values; a relation is a Counter of rows. Slow, and plain to see through.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping

from lftj.language.clause import Apply, Term, Value, Var
from lftj.triggers.algebra import (
    Add,
    AggSum,
    Cmp,
    Formula,
    Lift,
    MapRead,
    Mul,
    Rel,
    TriggerProgram,
    Val,
)

OPERATORS = {
    "+": operator.add,
    "*": operator.mul,
    "-": operator.sub,
    "neg": operator.neg,
    "max": max,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Rows = Mapping[str, Counter]
Valuation = dict[str, object]
Found = tuple[Valuation, int]


def value(term: Term, at: Valuation):
    """The value of a term."""
    if isinstance(term, Var):
        return at[term.name]
    if isinstance(term, Apply):
        return OPERATORS[term.op](*(value(arg, at) for arg in term.args))
    assert isinstance(term, Value)
    return term.value


def certain(formula: Formula) -> set[str]:
    """The variables that a formula binds, whichever part of an Add is taken."""
    match formula:
        case Rel(_, args) | MapRead(_, args):
            return {arg.name for arg in args if isinstance(arg, Var)}
        case Lift(var):
            return {var.name}
        case Mul(parts):
            return set().union(*map(certain, parts))
        case Add((first, *rest)):
            return certain(first).intersection(*map(certain, rest))
        case AggSum(keys):
            return {key.name for key in keys}
    return set()


def valuations(formula: Formula, rows: Rows, maps: Rows, at: Valuation, outside: set[str]) -> Iterator[Found]:
    """The valuations that extend `at`, each with what the formula is there; a product binds from left to right.

    `outside`: the variables that are certainly bound: an AggSum has these in common with what is around it.
    """
    match formula:
        case Rel(name, args) | MapRead(name, args):
            for row, n in list((rows if isinstance(formula, Rel) else maps)[name].items()):
                new = dict(at)
                if all(
                    new.setdefault(arg.name, v) == v if isinstance(arg, Var) else arg.value == v
                    for arg, v in zip(args, row, strict=True)
                ):
                    yield new, n
        case Lift(var, term):
            v = value(term, at)
            if at.get(var.name, v) == v:
                yield {**at, var.name: v}, 1
        case Cmp(op, left, right):
            if OPERATORS[op](value(left, at), value(right, at)):
                yield at, 1
        case Val(term):
            yield at, value(term, at)
        case Add(parts):
            for part in parts:
                yield from valuations(part, rows, maps, at, outside)
        case Mul(()):
            yield at, 1
        case Mul((first, *rest)):
            for new, n in valuations(first, rows, maps, at, outside):
                for newer, m in valuations(Mul(tuple(rest)), rows, maps, new, outside | certain(first)):
                    yield newer, n * m
        case AggSum(keys, body):
            shared = {name: v for name, v in at.items() if name in outside}
            sums: Counter = Counter()
            for new, n in valuations(body, rows, maps, shared, outside):
                sums[tuple(new[key.name] for key in keys)] += n
            for row, n in sums.items():
                new = {key.name: v for key, v in zip(keys, row, strict=True)}
                if all(at.get(name, v) == v for name, v in new.items()):
                    yield {**at, **new}, n


def view(keys, body: Formula, rows: Rows, maps: Rows | None = None, at: Valuation | None = None) -> dict:
    """What a map with this definition holds: the keys whose sum is not 0."""
    sums: Counter = Counter()
    for new, n in valuations(body, rows, maps or {}, at or {}, set(at or {})):
        sums[tuple(value(key, new) for key in keys)] += n
    return {row: n for row, n in sums.items() if n}


class PlainMaps:
    """The maps of a program under a stream of events."""

    def __init__(self, program: TriggerProgram) -> None:
        self.program = program
        self.maps: dict[str, Counter] = {name: Counter() for name in program.maps}

    def event(self, sign: int, relation: str, row: tuple) -> None:
        """One row that comes (1) or goes (-1): everything is read before anything is written."""
        at = {f"@{i}": v for i, v in enumerate(row)}
        found = [
            (statement.target, view(statement.keys, Mul(statement.factors), {}, self.maps, at))
            for statement in self.program.statements.get((sign, relation), ())
        ]
        for target, changes in found:
            for key, n in changes.items():
                self.maps[target][key] += n
                if not self.maps[target][key]:
                    del self.maps[target][key]

    def check(self, rows: Rows) -> None:
        """Every map equals its definition over the rows."""
        for name, definition in self.program.maps.items():
            expected = view(definition.keys, definition.body, rows)
            assert dict(self.maps[name]) == expected, f"{name}: {dict(self.maps[name])} is not {expected}"
