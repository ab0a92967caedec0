"""`range(...)` and `generate_series(...)` in `from`: numbers, or times, in equal steps, as facts.

    select d from generate_series(date '2024-01-01', date '2024-01-31', interval 1 day) g(d)

Of dates they are timestamps, as in DuckDB. `range` leaves its end out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from itertools import accumulate, count, islice, repeat
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lftj.language import ast
from lftj.language.functors import FUNCTORS
from lftj.language.types import DATE, NUMBER, TIMESTAMP
from lftj.sql.constants import constant
from lftj.sql.query_scope import Derived, QueryScope
from lftj.sql.sql_expressions import Expressions, value
from lftj.sql.sql_intervals import constant_interval
from lftj.sql.view import OutputColumn, Rows

if TYPE_CHECKING:
    from lftj.sql.queries import Queries

# More values than this are refused: each is a fact of the query.
MOST = 10_000


def series(queries: Queries, node: exp.GenerateSeries) -> Derived:
    """The head with the values of a series of constants."""
    name = "range" if node.args.get("is_end_exclusive") else "generate_series"
    found = list(islice(_values(queries, node), MOST + 1))
    if len(found) > MOST:
        raise queries.text.error(
            f"a series of more than {MOST:,} values",
            node,
            why="each value is a fact of the query",
            remedy="load them into a table, or use `with recursive`",
        )
    type_ = _constant(queries, node.args["start"]).kind
    made = TIMESTAMP if type_ == DATE else type_
    columns = (OutputColumn(name, made, False),)
    if not found:
        return Derived(Rows.of(queries.heads.sure(queries.heads.name("series"), columns), columns, bag=False))
    return Derived(Rows.of(queries.heads.facts("series", [(constant(v, made),) for v in found]), columns, bag=False))


def _values(queries: Queries, node: exp.GenerateSeries) -> Iterator[Any]:
    """The values, however many."""
    start, end = (_constant(queries, node.args[side]) for side in ("start", "end"))
    step, first, last = node.args.get("step"), start.value, end.value
    if start.kind == end.kind == NUMBER:
        by = 1 if step is None else _constant(queries, step).value
        yield from _until(queries, node, (first + at * by for at in count()), by, last)
        return
    interval = None if step is None else constant_interval(Expressions(QueryScope(queries, None)), step)
    if {start.kind, end.kind} - {DATE, TIMESTAMP} or interval is None:
        raise queries.text.unsupported(
            "a series of other values than numbers or times",
            node,
            "write numbers, or two dates or timestamps and an interval, as in `interval 1 day`",
        )
    midnight = dt.time()
    first, last = (v if isinstance(v, dt.datetime) else dt.datetime.combine(v, midnight) for v in (first, last))
    later: Callable[[dt.datetime, int], dt.datetime] = FUNCTORS["add_months"].text  # type: ignore[assignment]
    times = accumulate(repeat(interval, MOST + 1), lambda at, i: later(at, i.months) + i.length, initial=first)
    days = interval.length + dt.timedelta(days=28 * interval.months)
    yield from _until(queries, node, times, days / dt.timedelta(microseconds=1), last)


def _until(queries: Queries, node: exp.GenerateSeries, values: Iterator[Any], by: float, last: Any) -> Iterator[Any]:
    """Those of the values that are not beyond the last."""
    if not by:
        raise queries.text.error(
            "a series whose step is 0", node, why="it would have no end", remedy="write another step"
        )
    exclusive = bool(node.args.get("is_end_exclusive"))
    for one in values:
        if (one > last if by > 0 else one < last) or (exclusive and one == last):
            return
        yield one


def _constant(queries: Queries, node: exp.Expr) -> ast.Constant:
    cases = value(node, QueryScope(queries, None))
    term = cases[0].term if len(cases) == 1 and not cases[0].literals else None
    if not isinstance(term, ast.Constant) or term.value is None:
        raise queries.text.unsupported("what is no constant in a series", node, "write numbers or times")
    return term
