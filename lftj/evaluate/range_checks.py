"""Sums that tell whether a number is in a range: outside of it they leave 64 bits (lftj/sql/whole_numbers.py).

    from 0 on      x - GREATEST + GREATEST
    0 to most      x - GREATEST + GREATEST + (GREATEST - most) - (GREATEST - most)

Told as sums they would name numbers that nobody has written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lftj.language.clause import Apply, Term, Value
from lftj.language.types import NUMBER

GREATEST = 2**63 - 1
_OF_UNSIGNED = "utoi"
_NEGATIVE = "is less than 0"


class RangeCheck(NamedTuple):
    """What is asked for: the term whose value is to be in the range, and what is wrong with one that is not."""

    term: Term
    fault: str

    @property
    def why(self) -> str:
        """Why that is wrong."""
        also = ", and `<<` numbers from 0 on" if self.fault == _NEGATIVE else ""
        return f"a cast takes what its type holds{also}; nothing was changed"


def range_check(term: Apply, terms: Iterable[Apply]) -> RangeCheck | None:
    """What a sum is there for, among the `terms` of a clause; None if it is a sum like any other."""
    inner, constant = _sum_of(term)
    if inner is None:
        return None
    if constant == -GREATEST and (whole := _with(terms, term, GREATEST)) is not None:
        most = next((most for t in terms if (most := _most(t, whole)) is not None), None)
        within = f"is not from 0 to {most}"
        if isinstance(inner, Apply) and inner.op == _OF_UNSIGNED:
            return RangeCheck(inner.args[0], f"is greater than {GREATEST}" if most is None else within)
        return RangeCheck(inner, _NEGATIVE if most is None else within)
    if isinstance(inner, Apply) and (most := _most(term, inner)) is not None:
        less, sign = _sum_of(inner)
        if sign == GREATEST and isinstance(less, Apply) and (given := _sum_of(less))[1] == -GREATEST:
            assert given[0] is not None
            return RangeCheck(given[0], f"is not from 0 to {most}")
    return None


def _sum_of(term: Apply) -> tuple[Term | None, int]:
    """The term to which a number is added, and that number; no term if it is another functor."""
    if term.op == "checked_add" and isinstance(term.args[1], Value):
        return term.args[0], int(term.args[1].value)
    return None, 0


def _with(terms: Iterable[Apply], term: Apply, number: int) -> Apply | None:
    """The sum of `term` and `number`, if it is there."""
    whole = Apply(term.op, (term, Value(number, NUMBER)), term.type)
    return whole if whole in terms else None


def _most(term: Apply, whole: Apply) -> int | None:
    """The largest number that `term`, over a check that `whole` is from 0 on, lets through."""
    inner, constant = _sum_of(term)
    return GREATEST - constant if inner == whole and 0 < constant < GREATEST else None
