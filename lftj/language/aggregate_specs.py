"""The aggregates: one table of what is known of each.

    n = count : { e(x, _) }      s = sum v : { sale(x, v) }      m = max v : { sale(x, v) }

The table drives the grammar, the printer, the checker (types, braces, recursion), the builder (`lftj.agg`), the
documentation and the choice between the two ways of evaluation. A new aggregate is an entry here and its kernel:

    from accumulators    `RESULTS` of `lftj/evaluate/accumulators.py`: the result of a group, from the number of its
                         bindings and, where there is an operand, their exact sum
    by rows              `ROW_FOLDS` of `lftj/evaluate/group_scan.py`: the result of a group, from its rows

An aggregate folds the distinct bindings of all variables in its braces, wildcards included. A quantile has a parameter,
which is part of its name wherever one is meant: `quantile_disc(0.95)`.
"""

from __future__ import annotations

import numbers
import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from lftj.language.types import ADDED, ANY, DURATION, FLOAT, LITERAL, NUMBER, SYMBOL, TIMESTAMP, widest
from lftj.values.type_table import family_of


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """Everything that is known of one aggregate.

    `doc`: one line, which also says what becomes of a group without a binding · `operand`: the types it folds; empty:
    it takes no operand · `result`: the type of its result; empty: the operand's, as it also is of those that it `keeps`
    · `empty`: the value of a group without a binding; None: such a group has no row · `least`: how many bindings a
    group with a row has at least · `by_rows`: it reads the rows of a touched group, in one atom of distinct variables;
    else accumulators follow the bindings that come and go, of any conjunction · `by_counts`: it has a parameter, and
    those rows are values, each with the number of the bindings that have it · `squares`: accumulators hold the sum of
    the squares, too · `repeats`: whether it matters how often a value comes · `extreme`: the word for what it keeps
    under a key in recursion; empty: it is refused there.

    A result is exact, or its group has none: an integer sum that its type does not hold, a float sum of inf and -inf
    (`lftj/evaluate/undefined_groups.py` says when that is an error).
    """

    name: str
    doc: str
    operand: frozenset[str] = ANY
    result: str = ""
    empty: int | None = None
    least: int = 1
    by_rows: bool = False
    by_counts: bool = False
    squares: bool = False
    repeats: bool = True
    extreme: str = ""
    keeps: frozenset[str] = frozenset()

    @property
    def takes_counted(self) -> bool:
        """Whether a binding may count several times: `counted(v, n)` for the operand."""
        return self.by_counts or self.squares

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
    AggregateSpec(
        "var_pop",
        "The variance of a numeric term, a float: the mean of the squared distances from the mean, exactly, rounded "
        "once; no value of nothing.",
        LITERAL,
        FLOAT,
        squares=True,
    ),
    AggregateSpec(
        "var_samp",
        "The variance of what a sample of n is taken from: the sum of the squared distances from the mean by n - 1, as "
        "`var_pop`; no value of fewer than two bindings.",
        LITERAL,
        FLOAT,
        least=2,
        squares=True,
    ),
    AggregateSpec(
        "stddev_pop",
        "The standard deviation of a numeric term, a float: the square root of the variance, rounded once; no value of "
        "nothing.",
        LITERAL,
        FLOAT,
        squares=True,
    ),
    AggregateSpec(
        "stddev_samp",
        "The standard deviation of what a sample is taken from: the square root of that variance, rounded once; no "
        "value of fewer than two bindings.",
        LITERAL,
        FLOAT,
        least=2,
        squares=True,
    ),
    AggregateSpec(
        "quantile_disc",
        "The least value such that the fraction p of the bindings, from 0 to 1, have it or a lesser one; no value of "
        "nothing. Symbols compare by text.",
        by_rows=True,
        by_counts=True,
    ),
    AggregateSpec(
        "quantile_cont",
        "What lies at p, from 0 to 1, on the way from the least value to the greatest, one step a binding, as a float "
        "(of timestamps and durations one of these), rounded once; no value of nothing. With 0.5 it is the median.",
        ADDED | {TIMESTAMP},
        FLOAT,
        by_rows=True,
        by_counts=True,
        keeps=frozenset({DURATION, TIMESTAMP}),
    ),
)

# `quantile_disc(0.5) counted(v, n)`, `var_pop counted(v, n)`: the binding counts n times.
COUNTED = "counted"
# Digits of a fraction, so that it is one of integers whose products with others as small fit into 64 bits.
FRACTION_DIGITS = 9
_FRACTION = re.compile(rf"(?:0|1|0?\.\d{{1,{FRACTION_DIGITS}}}|1\.0{{1,{FRACTION_DIGITS}}})")


class _AggregateTable(dict[str, AggregateSpec]):
    """Specs by name, with or without a parameter."""

    def __missing__(self, op: str) -> AggregateSpec:
        word = word_of(op)
        if word == op:
            raise KeyError(op)
        return self[word]

    def __contains__(self, op: object) -> bool:
        return isinstance(op, str) and super().__contains__(word_of(op))


def word_of(op: str) -> str:
    """The name of an aggregate without its parameter."""
    return op.partition("(")[0]


def with_fraction(word: str, fraction: str) -> str:
    """The aggregate `word` at a fraction, written in one way; "" if it is none from 0 to 1, or has too many digits."""
    return f"{word}({Decimal(fraction).normalize():f})" if _FRACTION.fullmatch(fraction) else ""


def with_given_fraction(word: str, given: object) -> str:
    """`with_fraction` of a number of Python, such as 0.5 or Fraction(1, 2); "" of anything else."""
    if isinstance(given, bool):
        return ""
    if isinstance(given, numbers.Rational):
        return with_fraction(word, f"{Decimal(int(given.numerator)) / Decimal(int(given.denominator)):f}")
    return with_fraction(word, f"{Decimal(str(given)):f}") if isinstance(given, numbers.Real | Decimal) else ""


def fraction_of(op: str) -> Fraction:
    """The parameter of a quantile."""
    return Fraction(op.partition("(")[2].removesuffix(")"))


AGGREGATES = _AggregateTable((spec.name, spec) for spec in _TABLE)


def sum_of_nothing(type_: str) -> int | timedelta:
    """The value of a sum of no values of a type."""
    return timedelta(0) if type_ == DURATION else 0


def by_rows(op: str) -> bool:
    """Whether the aggregate `op` reads the rows of one atom; also of ops that no rule can write (path counts)."""
    return op in AGGREGATES and AGGREGATES[op].by_rows


def by_counts(op: str) -> bool:
    """Whether the aggregate `op` reads values with the numbers of their bindings."""
    return op in AGGREGATES and AGGREGATES[op].by_counts


def squares(op: str) -> bool:
    """Whether the aggregate `op` is a variance or a standard deviation."""
    return op in AGGREGATES and AGGREGATES[op].squares


def accumulated(op: str) -> bool:
    """Whether accumulators follow the aggregate `op`."""
    return op in AGGREGATES and not AGGREGATES[op].by_rows
