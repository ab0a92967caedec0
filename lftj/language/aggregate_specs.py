"""The aggregates: one table of what is known of each.

    n = count : { e(x, _) }      s = sum v : { sale(x, v) }      m = max v : { sale(x, v) }

The table drives the grammar, the printer, the checker (types, braces, recursion), the builder (`lftj.agg`), the
documentation and the choice between the two ways of evaluation. A new aggregate is an entry here and its kernel:

    from accumulators    `RESULTS` of `lftj/evaluate/accumulators.py`: the result of a group, from the number of its
                         bindings and, where there is an operand, their exact sum
    by rows              `ROW_FOLDS` of `lftj/evaluate/group_scan.py`: the result of a group, from its rows

An aggregate folds the distinct bindings of all variables in its braces, wildcards included.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lftj.language.types import ADDED, ANY, DURATION, FLOAT, NUMBER, SYMBOL, widest
from lftj.values.type_table import family_of


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """Everything that is known of one aggregate.

    `doc`: one line, which also says what becomes of a group without a binding · `operand`: the types it folds; empty:
    it takes no operand · `result`: the type of its result; empty: the operand's, as it also is of those that it `keeps`
    · `empty`: the value of a group without a binding; None: such a group has no row · `by_rows`: it reads the rows of a
    touched group, in one atom of distinct variables; else accumulators follow the bindings that come and go, of any
    conjunction · `repeats`: whether it matters how often a value comes · `extreme`: the word for what it keeps under a
    key in recursion; empty: it is refused there.

    A result is exact, or its group has none: an integer sum that its type does not hold, a float sum of inf and -inf
    (`lftj/evaluate/undefined_groups.py` says when that is an error).
    """

    name: str
    doc: str
    operand: frozenset[str] = ANY
    result: str = ""
    empty: int | None = None
    by_rows: bool = False
    repeats: bool = True
    extreme: str = ""
    keeps: frozenset[str] = frozenset()

    def result_of(self, operand: str) -> str:
        """The type of the result of folding values of type `operand`."""
        if self.result and family_of(operand) not in self.keeps:
            return self.result
        plain = operand.removesuffix("?")
        return plain if self.by_rows else widest(plain)


_TABLE = (
    AggregateSpec("count", "How many bindings there are; 0 of none.", frozenset(), NUMBER, empty=0),
    AggregateSpec("sum", "The sum of a numeric term; 0 of nothing.", ADDED, empty=0),
    AggregateSpec(
        "mean",
        "The mean of a numeric term, a float (of durations a duration): the exact sum by the count, rounded once; no "
        "value of nothing.",
        ADDED,
        FLOAT,
        keeps=frozenset({DURATION}),
    ),
    AggregateSpec(
        "min",
        "The least value of a term; no value of nothing. Symbols compare by text.",
        by_rows=True,
        repeats=False,
        extreme="minimum",
    ),
    AggregateSpec(
        "max",
        "The greatest value of a term; no value of nothing. Symbols compare by text.",
        by_rows=True,
        repeats=False,
        extreme="maximum",
    ),
    AggregateSpec(
        "cat",
        "The values of a symbol joined into one text, in the order of the bindings; no value of nothing.",
        frozenset({SYMBOL}),
        SYMBOL,
        by_rows=True,
    ),
)

AGGREGATES = {spec.name: spec for spec in _TABLE}


def sum_of_nothing(type_: str) -> int | timedelta:
    """The value of a sum of no values of a type."""
    return timedelta(0) if type_ == DURATION else 0


def by_rows(op: str) -> bool:
    """Whether the aggregate `op` reads the rows of one atom; also of ops that no rule can write (path counts)."""
    return op in AGGREGATES and AGGREGATES[op].by_rows


def accumulated(op: str) -> bool:
    """Whether accumulators follow the aggregate `op`."""
    return op in AGGREGATES and not AGGREGATES[op].by_rows
