"""The first rows of a relation in an order: what a head holds of the rows that its one rule copies.

    .decl @v.first1(a:number, b:symbol) ... `first 10 0 1-l 0+f`       10 rows after the first 0, by b descending with
    @v.first1(a, b) :- @v.rows2(a, b).                                 null last, then a ascending with null first

Only SQL declares such heads (`order by ... limit`). Rows that are alike in what they are ordered by are in the order of
all columns, each ascending with null first, so that which rows are the first ones is a matter of the rows alone. Of a
bag each copy is a row.

The clause is marked as a fold (`Aggregate.op`), as those of path counts and circuits are: what it says is worked out by
`lftj/evaluate/first_of_order.py`, and a rule that reads it cannot be among those that it is derived from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from lftj.errors import DataError
from lftj.language.clause import Aggregate, Clause, Var
from lftj.values.schema import Schema

# The first word of the qualifier, and of the mark.
FIRST = "first"


class OrderedColumn(NamedTuple):
    """One column to order by, by its position."""

    column: int
    descending: bool
    nulls_first: bool

    @staticmethod
    def of(text: str) -> OrderedColumn:
        """What `text` says."""
        return OrderedColumn(int(text[:-2]), text[-2] == "-", text[-1] == "f")

    @property
    def text(self) -> str:
        """How a mark says it."""
        return f"{self.column}{'-' if self.descending else '+'}{'f' if self.nulls_first else 'l'}"


class FirstRows(NamedTuple):
    """So many rows, `limit`, after the first `offset` ones in an order."""

    limit: int
    offset: int
    order: tuple[OrderedColumn, ...]

    @staticmethod
    @lru_cache(256)  # each commit asks about the heads that it follows
    def of(text: str) -> FirstRows:
        """What `text` says."""
        _, limit, offset, *order = text.split(" ")
        return FirstRows(int(limit), int(offset), tuple(map(OrderedColumn.of, order)))

    @property
    def text(self) -> str:
        """The qualifier that says it."""
        return " ".join([FIRST, str(self.limit), str(self.offset), *(column.text for column in self.order)])


def takes_first(clause: Clause) -> bool:
    """Whether the head of a clause holds the first rows only."""
    return clause.aggregate is not None and clause.aggregate.op.startswith(f"{FIRST} ")


def marked(clauses: Sequence[Clause], schemas: Mapping[str, Schema]) -> tuple[Clause, ...]:
    """The clauses; those of heads that hold first rows, or values of windows, are marked with what these are."""
    return tuple(_marked(clause, schemas[clause.head].mark) for clause in clauses)


def _marked(clause: Clause, mark: str) -> Clause:
    if not mark:
        return clause
    (atom,) = clause.atoms
    copied = tuple(arg for arg in clause.head_args if isinstance(arg, Var))
    assert atom.args == copied, "it copies rows"
    return replace(clause, aggregate=Aggregate(mark, len(clause.head_args), "number"))


def check_order(recursive: Mapping[str, Sequence[str]], clauses: Sequence[Clause]) -> None:
    """Raise `DataError` if first rows, or values of windows, are derived from themselves; `clauses`: of these."""
    for clause in clauses:
        if clause.head in recursive:
            raise DataError(
                f"`{clause.head}` would be derived from itself",
                where=str(clause.span),
                why="which rows come first, and what is around each, is known when all of them are there",
                remedy="leave `limit` and `over` out of what reads itself, and put them into what reads that",
            )
