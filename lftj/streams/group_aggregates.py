"""What is asked of groups: `bid.group_by("auction").aggregate(bids=streams.count(), top=streams.max("price"))`.

    count(where=)                    how often rows are there: the sum of weights
    sum(x)  mean(x)                  of an expression, each row as often as its weight says; sums are exact
    var_pop(x)  var_samp(x)          the variance of an expression, and that of what a sample is taken from; exact, and
    stddev_pop(x)  stddev_samp(x)    rounded once, as the standard deviations, their square roots, are
    min(x)  max(x)                   the least and the greatest value of those with weights of more than zero in all
    quantile_disc(x, 0.95)           which of these values that fraction of them has, or a lesser one, each as often as
    quantile_cont(x, 0.5)            its weight says; and what lies at a fraction of the way from the least to the
                                     greatest: with 0.5 the median
    count_distinct(x)                how many different values have weights of more than zero in all

A group has one row while all its aggregates have a value, which the weights of its rows decide, negative ones too:

    count  sum                       while the weights of all its rows do not add up to zero
    mean                             while, besides, those of the rows that meet `where` do not; it is their sum by
                                     their count
    var_pop  stddev_pop              while, besides, those of the rows that meet `where` add up to at least one
    var_samp  stddev_samp            the same, to at least two; what negative weights take below 0 is 0
    min  max  quantiles              while those of the rows with some value add up to more than zero
    count_distinct                   while those of the rows with some value do, or those of all rows that do not meet
                                     `where`

`where`: only rows that meet a condition. Of none count, sum and count_distinct are 0, and the others have no value.
"""

from __future__ import annotations

from dataclasses import dataclass

from lftj.arguments import text
from lftj.errors import DataError
from lftj.language.aggregate_specs import FRACTION_DIGITS, with_given_fraction, word_of


@dataclass(frozen=True)
class GroupAggregate:
    """One aggregate: its name, the expression that it is of (None: rows), and which rows count (None: all)."""

    op: str
    of: str | None = None
    where: str | None = None

    def __str__(self) -> str:
        return f"{self.op} {self.of or ''}".strip() + (f" where {self.where}" if self.where else "")


def count(*, where: str | None = None) -> GroupAggregate:
    """How often rows are there, by their weights."""
    return _aggregate("count", None, where)


def sum(of: str, *, where: str | None = None) -> GroupAggregate:
    """The exact sum of an expression. Beyond 64 bits (of integers) the step is refused."""
    return _aggregate("sum", of, where)


def mean(of: str, *, where: str | None = None) -> GroupAggregate:
    """The exact mean of an expression, rounded once to a float."""
    return _aggregate("mean", of, where)


def var_pop(of: str, *, where: str | None = None) -> GroupAggregate:
    """The exact variance of an expression, rounded once to a float: the mean of the squared distances from the mean."""
    return _aggregate("var_pop", of, where)


def var_samp(of: str, *, where: str | None = None) -> GroupAggregate:
    """The variance of what a sample of n is taken from, as `var_pop`: the squared distances by n - 1."""
    return _aggregate("var_samp", of, where)


def stddev_pop(of: str, *, where: str | None = None) -> GroupAggregate:
    """The standard deviation of an expression: the square root of the variance, rounded once."""
    return _aggregate("stddev_pop", of, where)


def stddev_samp(of: str, *, where: str | None = None) -> GroupAggregate:
    """The standard deviation of what a sample is taken from: the square root of that variance, rounded once."""
    return _aggregate("stddev_samp", of, where)


def min(of: str, *, where: str | None = None) -> GroupAggregate:
    """The least value of an expression. Texts compare as texts."""
    return _aggregate("min", of, where)


def max(of: str, *, where: str | None = None) -> GroupAggregate:
    """The greatest value of an expression. Texts compare as texts."""
    return _aggregate("max", of, where)


def quantile_disc(of: str, at: float, *, where: str | None = None) -> GroupAggregate:
    """The least value of an expression such that the fraction `at`, from 0 to 1, of the rows have it or a lesser one.

    Texts compare as texts. Of a group that a tick touches all values are read.
    """
    return _quantile("quantile_disc", of, at, where)


def quantile_cont(of: str, at: float, *, where: str | None = None) -> GroupAggregate:
    """What lies at the fraction `at`, from 0 to 1, of the way from the least value to the greatest, one step a row.

    A float, of timestamps and durations one of these, rounded once. It reads as `quantile_disc` does.
    """
    return _quantile("quantile_cont", of, at, where)


def count_distinct(of: str, *, where: str | None = None) -> GroupAggregate:
    """How many different values an expression has."""
    return _aggregate("count_distinct", of, where)


def _aggregate(op: str, of: str | None, where: str | None, *more: str) -> GroupAggregate:
    """The aggregate `op`; `more`: what is given behind the expression, in an example."""
    if op != "count":
        example = ", ".join(['"price"', *more])
        text("of", of, "it is an expression over the columns of the stream", f"give `{word_of(op)}({example})`")
    if where is not None:
        text("where", where, "it is a condition on the rows that count", 'give `where="price > 0"`, or leave it out')
    return GroupAggregate(op, of, where)


def _quantile(word: str, of: str, at: object, where: str | None) -> GroupAggregate:
    op = with_given_fraction(word, at)
    if not op:
        raise DataError(
            f"{at!r} is no fraction from 0 to 1",
            where=f"`{word}`",
            why=f"a quantile is at a fraction of the rows, with {FRACTION_DIGITS} digits at most",
            remedy=f'give it behind the expression, as in `{word}("price", 0.95)`',
        )
    return _aggregate(op, of, where, "0.95")
