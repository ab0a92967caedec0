"""Folds in the order of texts, over rows that lie in the order of codes.

Symbols are kept by code, and codes follow no order of the texts. Let the first `width` columns of a key order hold
numbers (or one text for all rows), and let column `width` hold symbols. Rows that differ in the first columns lie as
they should; those that agree in them, a *run*, lie next to each other but in any order. A fold that is to be in the
order of the texts keeps the runs at its two ends open, since the rows in front of it and behind it may belong to them:

    first run | fold of what lies between | last run          all of one key: the first run alone

Two such folds are combined by joining the run that meets in the middle, and a run is sorted when it is closed. That is
associative, so that it may be folded by pages like any other (page_folds.py). Costs: a step per row of a run at each
level of the tree; with few rows per key that is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.store.page_folds import NOTHING, PageFolds

if TYPE_CHECKING:
    from lftj.results.monoids import UserMonoid

Rows = npt.NDArray[np.int64]
Decode = Callable[[Rows], list[Any]]


class TextRun(NamedTuple):
    """Rows that agree in the first columns, `key`: (sort keys of the others, value to fold), in any order."""

    key: tuple[int, ...]
    rows: list[tuple[tuple[Any, ...], Any]]


class TextRuns(NamedTuple):
    """The fold of rows of one key (`last` is None) or more; `middle` is NOTHING if there are at most two keys."""

    first: TextRun
    middle: Any
    last: TextRun | None


def folds(monoid: UserMonoid, values: Decode, at: int, rest: Sequence[Decode]) -> PageFolds:
    """Folds of column `at` in the order of values; `values` decodes it.

    `rest`: what gives the sort keys of the columns from `width` to the last. Elements are `TextRuns`; see `closed`.
    """
    width = -len(rest)

    def run(rows: Rows, lo: int, hi: int, found: list[Any]) -> list[tuple[tuple[Any, ...], Any]]:
        others = zip(*(decode(column[lo:hi]) for decode, column in zip(rest, rows[width:], strict=True)), strict=True)
        return list(zip(others, found[lo:hi], strict=True))

    def leaf(rows: Rows) -> TextRuns:
        keys, found, n = rows[:width], values(rows[at]), rows.shape[1]
        starts = [0, *(np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1).tolist(), n]
        first = TextRun(tuple(keys[:, 0].tolist()), run(rows, 0, starts[1], found))
        if len(starts) == 2:
            return TextRuns(first, NOTHING, None)
        last = TextRun(tuple(keys[:, -1].tolist()), run(rows, starts[-2], n, found))
        for lo, hi in pairwise(starts[1:-1]):
            if hi - lo > 1:
                found[lo:hi] = _sorted(run(rows, lo, hi, found))
        between = found[starts[1] : starts[-2]]
        return TextRuns(first, monoid.fold(between) if between else NOTHING, last)

    def combine(a: TextRuns, b: TextRuns) -> TextRuns:
        tail = a.first if a.last is None else a.last
        if tail.key == b.first.key:
            met = TextRun(tail.key, tail.rows + b.first.rows)
            if a.last is None:
                return TextRuns(met, b.middle, b.last)
            if b.last is None:
                return TextRuns(a.first, a.middle, met)
            return TextRuns(a.first, _joined(monoid, a.middle, _fold(monoid, met), b.middle), b.last)
        front = a.middle if a.last is None else _joined(monoid, a.middle, _fold(monoid, a.last))
        if b.last is None:
            return TextRuns(a.first, front, b.first)
        return TextRuns(a.first, _joined(monoid, front, _fold(monoid, b.first), b.middle), b.last)

    return PageFolds(leaf, combine)


def closed(monoid: UserMonoid, runs: TextRuns) -> Any:
    """The element that a fold of all rows amounts to."""
    last = NOTHING if runs.last is None else _fold(monoid, runs.last)
    return _joined(monoid, _fold(monoid, runs.first), runs.middle, last)


def _sorted(rows: list[tuple[tuple[Any, ...], Any]]) -> list[Any]:
    return [value for _, value in sorted(rows, key=itemgetter(0))]


def _fold(monoid: UserMonoid, run: TextRun) -> Any:
    return monoid.fold(_sorted(run.rows))


def _joined(monoid: UserMonoid, *elements: Any) -> Any:
    folded: Any = NOTHING
    for element in elements:
        if element is not NOTHING:
            folded = element if folded is NOTHING else monoid.combine(folded, element)
    return folded
