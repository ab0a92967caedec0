"""Which of several conditions is the first that holds: of `case`, whose results stand behind it, and of `or`.

    case when a > 0 then 1 when b > 0 then 2 end      (a > 0) -> 1 · (a <= 0, b > 0) -> 2 · (is_null(a), b > 0) -> 2 ...

A condition over what may be null is missed in two ways, so that k of them are reached in 2^k. Where there are many,
conditions are taken together as long as they have few ways, and a head has for each row the number of the first of them
that holds, or -1 (`computed_columns.py`):

    case when a = 0 then 'x' ... when a = 9 then 'y' when b = 0 then 'z' ... end
                                            (n = 0) -> 'x' ... (n = 9) -> 'y' · (n = -1, m = 10) -> 'z' ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import NUMBER
from lftj.sql.cases import FEW, LIMIT, Translator, joined, products
from lftj.sql.scope import Case, Conjunction
from lftj.sql.whole_numbers import number


@dataclass(slots=True)
class _Together:
    """Conditions that follow one another: where each is the first of them that is hit, where any is, and none."""

    each: list[list[Conjunction]]
    none: list[Conjunction]
    any: list[Conjunction]

    @staticmethod
    def of(each: list[list[Conjunction]], none: list[Conjunction]) -> _Together:
        """Conditions of which any is hit where one is the first."""
        return _Together(each, none, [literals for ways in each for literals in ways])

    @property
    def ways(self) -> int:
        """How many alternatives there are."""
        return len(self.any) + len(self.none)


class FirstHits:
    """Conditions in their order; each is hit where it is `wanted`, and missed otherwise."""

    def __init__(self, of: Translator, conditions: Sequence[exp.Expr], wanted: bool) -> None:
        self.of, self.conditions, self.wanted = of, conditions, wanted
        self._hits = [of.truth(condition, wanted) for condition in conditions]
        self._missed: dict[int, list[Conjunction]] = {}

    def each(self) -> tuple[list[list[Conjunction]], list[Conjunction]]:
        """For each condition where it is the first that is hit, and where all are missed; all exclude one another."""
        found = self._found(FEW)
        none = None if found is None else self._none(2 * FEW)
        if found is None or none is None:
            parts = self._numbered()
            if parts is not None:
                return _one_after_the_other(parts)
            found, none = self._found(None), self._none(None)
        assert found is not None
        assert none is not None
        return found, none

    def any(self) -> list[Conjunction]:
        """Where some condition is hit, in alternatives that exclude one another: one for each, if the hits do so."""
        found = self._found(max(FEW, min(LIMIT, sum(map(len, self._hits)))))
        if found is None:
            parts = self._numbered()
            if parts is not None:
                return _any(parts)
            found = self._found(None)
        assert found is not None
        return [literals for ways in found for literals in ways]

    def _misses(self, at: int) -> list[Conjunction]:
        if at not in self._missed:
            condition = self.conditions[at]
            self._missed[at] = self.of.truth(condition, not self.wanted) + self.of.truth(condition, None)
        return self._missed[at]

    def _first(self, at: int, start: int, most: int | None) -> list[Conjunction]:
        """Where a condition is the first that is hit of those from `start`; more than `most` ways, if they are more."""
        left = list(self._hits[at])
        for before in range(start, at):
            if most is not None and len(left) > most:
                break
            if any(joined(one, two) is not None for one in left for two in self._hits[before]):
                left = products([left, self._misses(before)])
        return left

    def _found(self, most: int | None) -> list[list[Conjunction]] | None:
        """Where each is the first; None if they are reached in more than so many ways."""
        found: list[list[Conjunction]] = []
        reached = 0
        for at in range(len(self._hits)):
            found.append(self._first(at, 0, most))
            reached += len(found[-1])
            if most is not None and reached > most:
                return None
        return found

    def _none(self, most: int | None) -> list[Conjunction] | None:
        """Where all are missed; None if that is in more than so many ways."""
        found: list[Conjunction] = [()]
        for at in range(len(self._hits)):
            found = products([found, self._misses(at)])
            if most is not None and len(found) > most:
                return None
        return found

    def _numbered(self) -> list[_Together] | None:
        """The conditions in parts, of which heads have the number of the first hit; None if no head can have any.

        A head can have only what always has a value: of a part that has not, each condition is tried by itself.
        """
        found: list[_Together] = []
        made = False
        for start, part, in_head in self._apart(self._together()):
            alone = range(start, start + len(part.each))
            tried = [(start, part, in_head)] if in_head else self._apart((at, self._alone(at)) for at in alone)
            found += [one for _, one, _ in tried]
            made = made or any(one_in_head for _, _, one_in_head in tried)
        return found if made else None

    def _alone(self, at: int) -> _Together:
        return _Together.of([list(self._hits[at])], self._misses(at))

    def _together(self) -> list[tuple[int, _Together]]:
        """The conditions in parts of few ways, each with the number of its first one."""
        parts: list[tuple[int, _Together]] = []
        for at in range(len(self._hits)):
            if parts:
                start, before = parts[-1]
                longer = _Together.of(
                    [*before.each, self._first(at, start, FEW)], products([before.none, self._misses(at)])
                )
                if longer.ways <= FEW:
                    parts[-1] = start, longer
                    continue
            parts.append((at, self._alone(at)))
        return parts

    def _apart(self, parts: Iterable[tuple[int, _Together]]) -> list[tuple[int, _Together, bool]]:
        """The parts, each by the number of the first hit where a head has it; whether one has."""
        given = list(parts)
        found = []
        for (start, part), cases in zip(given, self._computed_apart(given), strict=True):
            term = cases[0].term if len(cases) == 1 else None
            in_head = isinstance(term, ast.Variable)
            if isinstance(term, ast.Variable):
                numbers = range(start, start + len(part.each))
                part = _Together([[_is("=", term, n)] for n in numbers], [_is("=", term, -1)], [_is("!=", term, -1)])
            found.append((start, part, in_head))
        return found

    def _computed_apart(self, parts: Sequence[tuple[int, _Together]]) -> list[list[Case]]:
        """The number of the first hit of each part, or -1: in one case where a head has it."""
        return self.of.scope.computed_apart(
            [
                [
                    *(_case(literals, at) for at, ways in enumerate(part.each, start) for literals in ways),
                    *(_case(literals, -1) for literals in part.none),
                ]
                for start, part in parts
            ]
        )


def _case(literals: Conjunction, n: int) -> Case:
    return Case(literals, number(n), NUMBER, nullable=False)


def _is(op: str, term: ast.Variable, n: int) -> Conjunction:
    return (ast.Comparison(op, term, number(n)),)


def _one_after_the_other(parts: Sequence[_Together]) -> tuple[list[list[Conjunction]], list[Conjunction]]:
    """For each condition of all parts where it is the first that is hit, and where all are missed."""
    each: list[list[Conjunction]] = []
    before: list[Conjunction] = [()]
    for part in parts:
        each += [products([before, ways]) for ways in part.each]
        before = products([before, part.none])
    return each, before


def _any(parts: Sequence[_Together]) -> list[Conjunction]:
    """Where some condition of the parts is hit."""
    found: list[Conjunction] = []
    before: list[Conjunction] = [()]
    for part in parts:
        found += products([before, part.any])
        before = products([before, part.none])
    return found
