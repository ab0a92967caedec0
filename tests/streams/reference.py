"""What circuits mean: Z-sets as dicts, streams as lists, nested streams as lists of lists; loops, and nothing else.

    Z-set     row -> weight, without zeros                  add, negate, distinct, join, by_group ...
    stream    a list of Z-sets, one per tick                delayed, integrated, differentiated
    nested    a list of streams: outer ticks of inner ticks the same functions, element by element

Written from the paper's definitions (DBSP, sections 2 to 6), without looking at what it tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]
Z = dict[Row, int]
Stream = list[Z]


def made(pairs: Iterable[tuple[Row, int]]) -> Z:
    """The Z-set of rows with weights, those of equal rows added."""
    found: Z = {}
    for row, weight in pairs:
        found[row] = found.get(row, 0) + weight
    return {row: weight for row, weight in found.items() if weight}


def add(*several: Z) -> Z:
    return made((row, weight) for one in several for row, weight in one.items())


def negated(one: Z) -> Z:
    return {row: -weight for row, weight in one.items()}


def minus(one: Z, two: Z) -> Z:
    return add(one, negated(two))


def distinct(one: Z) -> Z:
    return {row: 1 for row, weight in one.items() if weight > 0}


def is_set(one: Z) -> bool:
    return set(one.values()) <= {1}


def is_positive(one: Z) -> bool:
    return all(weight > 0 for weight in one.values())


def mapped(one: Z, function: Callable[[Row], Row]) -> Z:
    return made((function(row), weight) for row, weight in one.items())


def kept(one: Z, condition: Callable[[Row], bool]) -> Z:
    return {row: weight for row, weight in one.items() if condition(row)}


def join(one: Z, two: Z, on: Sequence[tuple[int, int]]) -> Z:
    """Pairs that agree in columns: all columns of the left row, then those of the right one that are no key."""
    keys = {j for _, j in on}
    return made(
        ((*left, *(value for j, value in enumerate(right) if j not in keys)), a * b)
        for left, a in one.items()
        for right, b in two.items()
        if all(left[i] == right[j] for i, j in on)
    )


def semijoin(one: Z, two: Z, on: Sequence[tuple[int, int]]) -> Z:
    """The rows that agree with a row of positive weight, when that is projected to the key."""
    keys = distinct(mapped(two, lambda row: tuple(row[j] for _, j in on)))
    return kept(one, lambda row: tuple(row[i] for i, _ in on) in keys)


def antijoin(one: Z, two: Z, on: Sequence[tuple[int, int]]) -> Z:
    return minus(one, semijoin(one, two, on))


def left_join(one: Z, two: Z, on: Sequence[tuple[int, int]], fill: Row) -> Z:
    return add(join(one, two, on), mapped(antijoin(one, two, on), lambda row: (*row, *fill)))


def full_join(one: Z, two: Z, on: Sequence[tuple[int, int]], fill: Row, other: Row) -> Z:
    """`fill` for the columns of the right stream that are no key, `other` for those of the left one."""
    places, keys = dict(on), {j for _, j in on}

    def turned(row: Row) -> Row:
        own = [row[places[i]] if i in places else other[i] for i in range(len(other))]
        return (*own, *(value for j, value in enumerate(row) if j not in keys))

    missing = antijoin(two, one, [(j, i) for i, j in on])
    return add(left_join(one, two, on, fill), mapped(missing, turned))


# Groups ----------------------------------------------------------------------------------------------------------


def groups(one: Z, key: Sequence[int]) -> dict[Row, Z]:
    found: dict[Row, Z] = {}
    for row, weight in one.items():
        found.setdefault(tuple(row[i] for i in key), {})[row] = weight
    return found


def per_group(one: Z, key: Sequence[int], function: Callable[[Z], Iterable[tuple[Row, int]]]) -> Z:
    return made(pair for rows in groups(one, key).values() for pair in function(rows))


def total(op: str, values: Iterable[tuple[Any, int]]) -> Any:
    """`op` of values with weights; exact, of floats rounded once."""
    pairs = list(values)
    if op == "count":
        return sum(weight for _, weight in pairs)
    exact = sum((Fraction(value) * weight for value, weight in pairs), Fraction(0))
    if op == "mean":
        return float(exact / sum(weight for _, weight in pairs))
    return float(exact) if any(isinstance(value, float) for value, _ in pairs) else int(exact)


# Variances: what the squared distances are divided by, less than the number of values; and whether the root is taken.
SPREAD = {"var_pop": (0, False), "var_samp": (1, False), "stddev_pop": (0, True), "stddev_samp": (1, True)}


def spread(op: str, values: Iterable[tuple[Any, int]]) -> float | None:
    """A variance of values with weights or its root, exact and rounded once; None if there is none."""
    pairs, (less, rooted) = list(values), SPREAD[op]
    n = sum(weight for _, weight in pairs)
    if n <= less:
        return None
    mean = sum((Fraction(value) * weight for value, weight in pairs), Fraction(0)) / n
    variance = max(Fraction(0), sum((Fraction(value) - mean) ** 2 * weight for value, weight in pairs) / (n - less))
    return root(variance) if rooted else float(variance)


def root(square: Fraction) -> float:
    """The float nearest to the square root of a fraction."""
    near = math.sqrt(square)
    around = (math.nextafter(near, 0), near, math.nextafter(near, math.inf))
    # Between two floats is a number of one bit more, so that a square is never half way.
    with localcontext() as context:
        context.prec = 60
        exact = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
    return min(around, key=lambda one: abs(Fraction(one) - Fraction(exact)))


def quantile(op: str, at: Any, values: Iterable[tuple[Any, int]]) -> Any:
    """A quantile of values with weights above 0."""
    pairs = sorted(values)
    n = sum(weight for _, weight in pairs)

    def ranked(rank: int) -> Any:
        for value, weight in pairs:
            if rank < weight:
                return value
            rank -= weight

    if op == "quantile_disc":
        return ranked(max(0, math.ceil(n * Fraction(at)) - 1))
    place = (n - 1) * Fraction(at)
    low, high = ranked(math.floor(place)), ranked(math.ceil(place))
    return float(Fraction(low) + (Fraction(high) - Fraction(low)) * (place - math.floor(place)))


def aggregated(one: Z, key: Sequence[int], ops: Sequence[tuple[Any, ...]]) -> Z:
    """A row (key..., results...) per group for which all `ops`, (name, column, fraction...), have a result."""

    def results(rows: Z) -> Iterable[tuple[Row, int]]:
        found: list[Any] = []
        for op, column, *at in ops:
            if op in SPREAD:
                if not sum(rows.values()) or (wide := spread(op, [(r[column], w) for r, w in rows.items()])) is None:
                    return
                found.append(wide)
                continue
            if op in ("count", "sum", "mean"):
                if not sum(rows.values()):
                    return
                found.append(total(op, [(row[column], weight) for row, weight in rows.items()]))
                continue
            columns = mapped(rows, lambda row, column=column: (row[column],))  # type: ignore[misc]
            values = [value for (value,), weight in columns.items() if weight > 0]
            if not values:
                return
            if at:
                weighted = [(value, weight) for (value,), weight in columns.items() if weight > 0]
                found.append(quantile(op, at[0], weighted))
                continue
            found.append(len(values) if op == "count_distinct" else min(values) if op == "min" else max(values))
        first = next(iter(rows))
        yield (*(first[i] for i in key), *found), 1

    return per_group(one, key, results)


def ordered(rows: Iterable[Row], by: Sequence[tuple[int, bool]]) -> list[Row]:
    """Rows in the order of columns (column, descending), then of all columns."""
    found = sorted(rows)
    for column, descending in reversed(by):
        found.sort(key=lambda row: row[column], reverse=descending)
    return found


def top(one: Z, key: Sequence[int], by: Sequence[tuple[int, bool]], count: int, *, numbered: bool = False) -> Z:
    """The first rows of each group; a row of weight w stands for w rows, which share the place of the first."""

    def first(rows: Z) -> Iterable[tuple[Row, int]]:
        left = count
        for row in ordered((row for row, weight in rows.items() if weight > 0), by):
            if left > 0:
                yield ((*row, count - left + 1) if numbered else row), min(left, rows[row])
            left -= rows[row]

    return per_group(one, key, first)


def once(one: Z, key: Sequence[int], by: Sequence[tuple[int, bool]]) -> Z:
    """The first row of each group."""
    return distinct(top(one, key, by, 1))


def neighbour(one: Z, key: Sequence[int], by: Sequence[tuple[int, bool]], column: int, offset: int, fill: Any) -> Z:
    """Every row of positive weight with a column of the row `offset` places before it in its group."""

    def lagged(rows: Z) -> Iterable[tuple[Row, int]]:
        places = ordered((row for row, weight in rows.items() if weight > 0), by)
        for i, row in enumerate(places):
            there = 0 <= i - offset < len(places)
            yield (*row, places[i - offset][column] if there else fill), rows[row]

    return per_group(one, key, lagged)


# Streams ---------------------------------------------------------------------------------------------------------


def zero_of(value: Any) -> Any:
    return [zero_of(x) for x in value] if isinstance(value, list) else {}


def plus(one: Any, two: Any) -> Any:
    """Of Z-sets, streams and nested streams, element by element."""
    return [plus(x, y) for x, y in zip(one, two, strict=True)] if isinstance(one, list) else add(one, two)


def inverse(one: Any) -> Any:
    return [inverse(x) for x in one] if isinstance(one, list) else negated(one)


def delayed(stream: list[Any]) -> list[Any]:
    return [zero_of(stream[0]), *stream[:-1]] if stream else []


def integrated(stream: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in stream:
        found.append(plus(found[-1], value) if found else value)
    return found


def differentiated(stream: list[Any]) -> list[Any]:
    return plus(stream, inverse(delayed(stream)))


def lifted(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda *streams: [function(*values) for values in zip(*streams, strict=True)]


def incremental(function: Callable[..., Any]) -> Callable[..., Any]:
    """Definition 3.1: D . Q . I."""
    return lambda *streams: differentiated(function(*map(integrated, streams)))


def delta0(value: Z, ticks: int) -> Stream:
    return [value, *({} for _ in range(ticks - 1))]


def within_int64(one: Z) -> bool:
    return all(-(2**63) <= weight < 2**63 for weight in one.values())


def is_small(one: Z) -> bool:
    """Whether weights are so small that no operator of a test takes them beyond int64."""
    return all(abs(weight) < 2**20 for weight in one.values()) and not any(
        isinstance(value, float) and not math.isfinite(value) for row in one for value in row
    )
