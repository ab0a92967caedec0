"""Rows of windows over bags, from what is counted below them.

    @v.sum1.1(k, x, sum copies) :- t(k, _, x, copies).       @v.sum1(x, k, c) :- @v.sum1.1(k, x, c).
    @v.window2(x, k, c, 0, window 1 ...) :- @v.sum1(x, k, c).

How often each row is there has to be known where changes are followed, and takes a sort. To a window each copy is a row
of its own: for a question they are read as they come (by_columns.py), and the heads between are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lftj.evaluate.by_columns import asked_reading, read_rows
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.language.window_functions import has_windows
from lftj.program.aliases import permuted_of
from scantree.version import Rows

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator


class CountedRows(NamedTuple):
    """What the rows of a window are counted from: the heads `between`, and the `clause` whose bindings they are.

    The bindings of the clause are rows of the relation that the window reads, with their copies; equal ones may come
    several times.
    """

    between: tuple[str, ...]
    clause: Clause


def counted_below(
    window: Clause, of: Mapping[str, Sequence[Clause]], readers: Mapping[str, Sequence[Clause]], below: Collection[str]
) -> CountedRows | None:
    """Of a clause with window functions over a bag, if nobody reads the heads between it and a count; else None.

    `of`, `readers`: the clauses of each head, and those that read it · `below`: heads that only have the rows that
    their clauses derive, and that go.
    """
    # Of a bag, copies are last in both; elsewhere a sum is a value, and a group is one row whatever it adds up.
    if not has_windows(window) or window.head_args[-1] != window.atoms[0].args[-1]:
        return None
    name, between, places = window.atoms[0].predicate, list[str](), tuple(range(len(window.atoms[0].args)))
    while name in below and len(of[name]) == len(readers[name]) == 1:
        between.append(name)
        (clause,) = of[name]
        if clause.aggregate is not None:
            if clause.aggregate.op != "sum" or clause.acyclic or places[-1] != len(clause.head_args) - 1:
                return None
            head_args = tuple(clause.head_args[place] for place in places)
            return CountedRows(tuple(between), replace(clause, head_args=head_args))
        if (copied := permuted_of(clause)) is None:
            return None
        name, columns = copied
        places = tuple(columns[place] for place in places)
    return None


def counted_rows(evaluator: Evaluator, clause: Clause, limits: Limits) -> Rows | None:
    """The bindings int64[k, n] of a clause that counts; None if it is not read by columns, or a term has no value."""
    reading = asked_reading(evaluator, clause, in_order=False)
    if reading is None:
        return None
    chunks = [np.empty((len(clause.head_args), 0), np.int64)]
    done = read_rows(evaluator, clause, reading, limits, chunks.append)
    return None if done is None else np.concatenate(chunks, axis=1)
