"""Twins: maps that every event changes under the same keys, so that they can share a table and its lookups.

    on +O(@0, @1):  total[] += m1[@0] * @1      count[] += m2[@0]
    on +L(@0, @1):  m1[@0] += @1                m2[@0] += 1          total and count are twins, and so are m1 and m2

Two maps are twins if for each event their statements are, in some order, equal but for the values that they multiply
by, names of variables, and that where one reads a map the other reads a twin of it. As with minimal automata, all maps
of as many keys begin as one class, and classes are split until all statements agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lftj.language.clause import Apply, Term, Value, Var
from lftj.triggers.algebra import EVENT, Cmp, Lift, MapRead, Statement, TriggerProgram, Val

Event = tuple[int, str]
Skeleton = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Twins:
    """Maps of one table: their `names`, and for each event rows of `statements` that are alike, one of every map."""

    names: tuple[str, ...]
    statements: Mapping[Event, Sequence[tuple[Statement, ...]]]


def twins_of(program: TriggerProgram) -> list[Twins]:
    """The maps of a program as classes of twins, in the order of their first maps."""
    classes = {name: (len(made.keys), 0) for name, made in program.maps.items()}
    own: dict[str, dict[Event, list[Statement]]] = {name: {} for name in program.maps}
    for event, statements in program.statements.items():
        for statement in statements:
            own[statement.target].setdefault(event, []).append(statement)
    while True:
        signatures = {name: (classes[name], _signature(own[name], classes)) for name in program.maps}
        numbers: dict[object, int] = {}
        new = {
            name: (len(program.maps[name].keys), numbers.setdefault(found, len(numbers)))
            for name, found in signatures.items()
        }
        if len(set(new.values())) == len(set(classes.values())):
            break
        classes = new
    members: dict[tuple[int, int], list[str]] = {}
    for name in program.maps:
        members.setdefault(classes[name], []).append(name)
    return [_matched(names, own, classes) for names in members.values()]


def _signature(own: Mapping[Event, Sequence[Statement]], classes: Mapping[str, object]) -> tuple[object, ...]:
    """What a map's statements are, up to what twins may differ in."""
    found = [(event, tuple(sorted(repr(skeleton(s, classes)[0]) for s in made))) for event, made in own.items()]
    return tuple(sorted(found))


def _matched(
    names: Sequence[str], own: Mapping[str, Mapping[Event, Sequence[Statement]]], classes: Mapping[str, object]
) -> Twins:
    """The statements of twins, matched."""
    rows: dict[Event, list[tuple[Statement, ...]]] = {}
    for event in own[names[0]]:
        sorted_ones = [sorted(own[name][event], key=lambda s: repr(skeleton(s, classes)[0])) for name in names]
        rows[event] = list(zip(*sorted_ones, strict=True))
    return Twins(tuple(names), rows)


def skeleton(statement: Statement, classes: Mapping[str, object]) -> tuple[Skeleton, dict[str, str]]:
    """(a statement without the values that it multiplies by, in standard names; the standard name of each variable)."""
    names: dict[str, str] = {}

    def term(given: Term) -> object:
        if isinstance(given, Var):
            if given.name.startswith(EVENT):
                return given.name
            return names.setdefault(given.name, f"v{len(names)}")
        if isinstance(given, Value):
            return (given.value, given.type)
        assert isinstance(given, Apply)
        return (given.op, *(term(arg) for arg in given.args))

    parts: list[object] = []
    for factor in statement.factors:
        if isinstance(factor, MapRead):
            parts.append(("read", classes[factor.name], *map(term, factor.keys)))
        elif isinstance(factor, Cmp):
            parts.append((factor.op, term(factor.left), term(factor.right)))
        elif isinstance(factor, Lift):
            parts.append(("lift", term(factor.var), term(factor.term)))
        else:
            assert isinstance(factor, Val)
    return (tuple(parts), tuple(term(key) for key in statement.keys)), names
