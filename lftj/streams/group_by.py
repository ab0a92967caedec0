"""The rows of a stream by group: `bid.group_by("auction").aggregate(bids=streams.count())`, `.top(3, "-price")`.

What an aggregate is of a group, and which groups have a row, is in group_aggregates.py. Without a group's columns there
is one group, without a row while there is nothing.

Each is a stream of its own made of plainer operators (totals.py, ranking.py, `distinct`), joined by the group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lftj.arguments import refused
from lftj.errors import DataError
from lftj.language.aggregate_specs import AGGREGATES, accumulated, by_counts, squares, word_of
from lftj.language.clause import Compare, Term, Value, Var
from lftj.language.infer import either_of
from lftj.streams.by_key import ByKey
from lftj.streams.clocks import clamped
from lftj.streams.expressions import Map, check_names, checked_value, conditions_of, mapped
from lftj.streams.group_aggregates import GroupAggregate, count
from lftj.streams.integral import ASCENDING, DESCENDING
from lftj.streams.join import Join
from lftj.streams.operators import Columns, Plus, Project
from lftj.streams.ranking import Neighbour, QuantileByKey, Ranking, TopK, from_null
from lftj.streams.totals import Total, Totals
from lftj.values.schema import Column
from lftj.values.type_table import family_of, is_nullable

if TYPE_CHECKING:
    from lftj.streams.stream import Stream

# What the names of columns within an aggregate begin with.
INNER = "·"


class Groups:
    """The rows of a stream by some of its columns, for `aggregate`, `top`, `lag` and the like."""

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self._stream, self._keys = stream, keys
        stream._places(keys)
        check_names(keys, "name each column of the group once")

    # -- aggregates ---------------------------------------------------------------------------------------------------

    def aggregate(self, **aggregates: GroupAggregate) -> Stream:
        """A row (group..., aggregates...) for each group."""
        for name, given in aggregates.items():
            if not isinstance(given, GroupAggregate):
                raise DataError(
                    f"{given!r} is no aggregate",
                    where=f"column `{name}`",
                    why="a column of a group is an aggregate over its rows",
                    remedy='give streams.count(), streams.sum("x"), or another one that `dir(streams)` lists',
                )
        check_names([*self._keys, *aggregates], "give the aggregate another name")
        inner = INNER
        while any(name.startswith(inner) for name in (*self._keys, *aggregates)):
            inner += INNER
        distinct = {name: a for name, a in aggregates.items() if a.op == "count_distinct"}
        linear = {name: a for name, a in aggregates.items() if name not in distinct and accumulated(a.op)}
        ranked = {name: a for name, a in aggregates.items() if name not in distinct and name not in linear}
        made = None
        if linear or distinct or not ranked:
            made = self._totals(linear if linear or distinct else {f"{inner}rows": count()}, distinct, inner)
        for name, aggregate in ranked.items():
            part = self._ranked(name, aggregate)
            made = part if made is None else made._joined(part, list(self._keys), Join)
        assert made is not None
        return made.select(*self._keys, *aggregates)

    def _totals(self, linear: dict[str, GroupAggregate], distinct: dict[str, GroupAggregate], inner: str) -> Stream:
        """Counts, sums, means, variances, and counts of different values, in one table.

        `inner`: what no name of a group or of an aggregate begins with.

        The rows that it adds up are those of the stream and, of each value that is counted as different, one more:

            group..., operands..., marks of counts of different values, a mark per `where`, whether it is of the stream

        The rows that the `where` of a count of different values leaves out are one more row of it, by which a group of
        no value is there. So it has two marks: one of its values and, after those of all counts, one of its rows.
        """
        stream, keys = self._stream, self._keys
        of_stream = bool(linear)
        wanted: dict[str, str | None] = dict.fromkeys(keys)
        places: dict[str, int] = {}
        for name, aggregate in linear.items():
            if aggregate.of is not None:
                places[name] = len(wanted)
                wanted[f"{inner}of {name}"] = aggregate.of
        operator, columns = mapped(stream._node.columns, wanted)
        own = len(columns)
        conditioned = [name for name, aggregate in distinct.items() if aggregate.where is not None]
        rows_of = {name: own + len(distinct) + i for i, name in enumerate(conditioned)}
        after = own + len(distinct) + len(rows_of)
        marks: list[tuple[Compare, ...]] = []
        wheres: dict[str, int] = {}
        for name, aggregate in linear.items():
            if aggregate.where is not None:
                wheres[name] = after + len(marks)
                marks.append(conditions_of(stream._node.columns, aggregate.where))
        there = -1
        if distinct:
            there = after + len(marks) if of_stream else rows_of.get(next(iter(distinct)), own)
            marks += [()] * of_stream
        assert operator.terms is not None
        terms = operator.terms + (Value(0, "number"),) * (after - own)
        marked = (*columns, *(Column(f"{inner}where {i}", "number") for i in range(after - own + len(marks))))
        # What is computed is computed of the rows that count: of the others it need not have a value.
        mark_of = {places[name]: at - len(terms) for name, at in wheres.items() if name in places}
        marked_by = tuple(-1 if isinstance(term, Var) else mark_of.get(i, -1) for i, term in enumerate(terms))
        parts = []
        if of_stream:
            shown = ", ".join(f"{name} = {aggregate}" for name, aggregate in linear.items()) or operator.text
            operands = Map(operator.names, (), terms, shown, tuple(marks), marked_by)
            parts.append(stream._made(operands, marked))
        if distinct:
            parts.append(self._different(distinct, columns, len(marks), marked, inner))
        rows = parts[0] if len(parts) == 1 else parts[0]._made(Plus(), marked, parts[1])
        totals, result = [], [*columns[: len(keys)]]
        for name, aggregate in linear.items():
            type_ = columns[places[name]].type if name in places else ""
            if type_:
                _check_operand(name, aggregate, type_)
            text = f"{name} = {aggregate}"
            totals.append(Total(text, aggregate.op, places.get(name, -1), type_, wheres.get(name, there)))
            result.append(Column(name, AGGREGATES[aggregate.op].result_of(type_)))
        # A mean of rows that meet a condition needs one, and a count of values a row; how many is not given out.
        means = [total for total in totals if total.op == "mean" and total.where != there]
        spread = [total for total in totals if squares(total.op)]
        held = {f"count of {total.text}": total.where for total in (*means, *spread)}
        held |= {f"rows of {name} = {distinct[name]}": mark for name, mark in rows_of.items()}
        for i, (name, aggregate) in enumerate(distinct.items()):
            totals.append(Total(f"{name} = {aggregate}", "count", -1, "", own + i))
            result.append(Column(name, "number"))
        without = [len(linear) + i for i, name in enumerate(distinct) if name not in rows_of]
        needed = (*without, *range(len(totals), len(totals) + len(held)))
        rows_held = {}
        for i, (text, mark) in enumerate(held.items()):
            totals.append(Total(text, "count", -1, "", mark))
            rows_held[text] = Column(f"{inner}rows {i}", "number")
        result += rows_held.values()
        made = rows._made(Totals(self._first(), columns[: len(keys)], tuple(totals), there, needed), tuple(result))
        for total in spread:
            counted, least = rows_held[f"count of {total.text}"], AGGREGATES[total.op].least
            made = made._compared(counted, ">=", Value(least, "number"), f"of {least} rows")
        return made

    def _of(self, name: str, aggregate: GroupAggregate) -> Stream:
        """The rows (group..., value) that count."""
        assert aggregate.of is not None
        stream = self._stream if aggregate.where is None else self._stream.filter(aggregate.where)
        wanted: dict[str, str | None] = {**dict.fromkeys(self._keys), name: aggregate.of}
        operator, columns = mapped(stream._node.columns, wanted)
        return stream._made(operator, columns)

    def _ranked(self, name: str, aggregate: GroupAggregate) -> Stream:
        """A value of each group that is found by the order of all."""
        values, op, k = self._of(name, aggregate), aggregate.op, len(self._keys)
        *group, operand = columns = values._node.columns
        _check_operand(name, aggregate, operand.type)
        ranking = Ranking(self._first(), ((k, op == "max"),), columns)
        if not by_counts(op):
            return values._made(ByKey(TopK(ranking, 1, once=True, symbol=str(aggregate))), columns)
        result = Column(name, AGGREGATES[op].result_of(operand.type))
        return values._made(ByKey(QuantileByKey(ranking, k, op)), (*group, result))

    def _different(
        self, distinct: dict[str, GroupAggregate], columns: Columns, others: int, marked: Columns, inner: str
    ) -> Stream:
        """A row for each different value of each count, as `_totals` adds them up: `others` marks are 0, operands too.

        One set of rows (group..., code of the value, which count, whether its `where` holds) holds them all; the last
        column only if some count has one.
        """
        streams, k = [], len(self._keys)
        value, which, met = f"{inner}value", f"{inner}which", f"{inner}met"
        conditioned = [i for i, aggregate in enumerate(distinct.values()) if aggregate.where is not None]
        for i, (name, aggregate) in enumerate(distinct.items()):
            assert aggregate.of is not None
            operator, own = mapped(
                self._stream._node.columns, {**dict.fromkeys(self._keys), value: aggregate.of, which: str(i)}
            )
            _no_null(name, own[k].type)
            if conditioned:
                where = conditions_of(self._stream._node.columns, aggregate.where or "")
                operator = replace(operator, marks=(where,), marked_by=(*(-1,) * k, 0, -1))
                own = (*own, Column(met, "number"))
            streams.append(self._stream._made(replace(operator, text=f"{name} = {aggregate}"), own))
        first, *more = streams
        # Values of all types are compared as codes, as which alone they are in the set.
        held = (*first._node.columns[:k], Column(value, "number"), *first._node.columns[k + 1 :])
        rows = (first._made(Plus(), held, *more) if more else first).distinct()
        terms: list[Term] = [Var(column.name, column.type) for column in held[:k]]
        # No row of these is one that an operand is for: any code will do for it, of every type.
        terms += [Value(0, "number")] * (len(columns) - k + others)
        of = [(Compare("=", Var(which, "number"), Value(i, "number")),) for i in range(len(distinct))]
        holds = Compare("=", Var(met, "number"), Value(1, "number"))
        counts = ((*of[i], holds) if i in conditioned else of[i] for i in range(len(of)))
        marks = (*counts, *(of[i] for i in conditioned))
        names, text = tuple(column.name for column in held), ", ".join(f"{n} = {a}" for n, a in distinct.items())
        counted = rows._made(Map(names, (), tuple(terms), text, marks), marked)
        at, width = len(columns), len(marked)
        order = (*range(at), *range(at + others, width), *range(at, at + others))
        return counted._made(Project(order), marked)

    def _first(self) -> tuple[int, ...]:
        return tuple(range(len(self._keys)))

    # -- sessions -----------------------------------------------------------------------------------------------------

    def sessions(self, column: str, *, gap: int, start: str = "session_start", end: str = "session_end") -> Stream:
        """Every row with the first and the last time of its session, in which no silence is longer than `gap`."""
        from lftj.streams.timewise import sessions

        return sessions(self._stream, self._keys, column, gap, start, end)

    # -- rankings -----------------------------------------------------------------------------------------------------

    def top(self, k: int, by: str | tuple[str, ...] | list[str], *, number: str | None = None) -> Stream:
        """The first `k` rows of each group, in the order of columns; "-price" is descending.

        Rows equal in them are in the order of the other columns, texts in the order in which they first came in; name
        all columns for another. `number`: a column for the place, from 1.
        """
        if type(k) is not int or k < 1:
            raise DataError(
                f"{k!r} is no number of rows", why="the first k rows are asked for", remedy="give an integer from 1"
            )
        columns = self._stream._node.columns
        top = TopK(self._ranking(by), clamped(k), numbered=number is not None, symbol=f"top {k}")
        return self._stream._made(ByKey(top), columns if number is None else (*columns, Column(number, "number")))

    def first(self, by: str | tuple[str, ...] | list[str]) -> Stream:
        """The first row of each group, once: `distinct on`."""
        top = TopK(self._ranking(by), 1, once=True, symbol="distinct on")
        return self._stream._made(ByKey(top), self._stream._node.columns)

    def lag(
        self,
        column: str,
        by: str | tuple[str, ...] | list[str],
        *,
        fill: object,
        name: str | None = None,
        offset: int = 1,
    ) -> Stream:
        """Every row with `column` of the row `offset` places before it in its group; `fill` where there is none.

        A row of weight n is one place, other than in `top`: its copies have one neighbour, which is another row.
        """
        return self._neighbour("lag", column, by, fill, name or f"lag_{column}", offset, 1)

    def lead(
        self,
        column: str,
        by: str | tuple[str, ...] | list[str],
        *,
        fill: object,
        name: str | None = None,
        offset: int = 1,
    ) -> Stream:
        """Every row with `column` of the row `offset` places after it in its group; `fill` where there is none.

        A row of weight n is one place, as in `lag`.
        """
        return self._neighbour("lead", column, by, fill, name or f"lead_{column}", offset, -1)

    def _neighbour(
        self, symbol: str, column: str, by: object, fill: object, name: str, offset: object, way: int
    ) -> Stream:
        if not isinstance(offset, int) or isinstance(offset, bool):
            raise refused("offset", offset, "it is how many places away the other row is", "give an integer")
        (place,) = self._stream._places([column])
        columns = self._stream._node.columns
        value = checked_value(fill, columns[place])
        function = Neighbour(
            self._ranking(by),
            place,
            clamped(offset * way),
            Value(value, columns[place].type),
            symbol=f"{symbol} {column}",
        )
        return self._stream._made(ByKey(function), (*columns, Column(name, columns[place].type)))

    def _ranking(self, by: object) -> Ranking:
        names = [by] if isinstance(by, str) else by
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
            raise refused("by", by, "it names the columns that order rows", 'give "price", "-price" or ["a", "-b"]')
        places = self._stream._places([name.removeprefix("-") for name in names])
        columns, order = self._stream._node.columns, dict[int, int]()
        for place, name in zip(places, names, strict=True):
            way = DESCENDING if name.startswith("-") else ASCENDING
            order.setdefault(place, from_null(columns[place].type) | way)  # a second time, rows are equal in it
        return Ranking(self._stream._places(self._keys), tuple(order.items()), columns)


def _check_operand(name: str, aggregate: GroupAggregate, type_: str) -> None:
    """Refuse to fold a column that may hold null, or is of a type that the aggregate has no value of."""
    _no_null(name, type_)
    if family_of(type_) not in (operand := AGGREGATES[aggregate.op].operand):
        raise DataError(
            f"`{aggregate.of}` is of type {type_}",
            where=f"column `{name}`",
            why=f"`{word_of(aggregate.op)}` takes {either_of(operand)}",
            remedy="use min, max, quantile_disc or count_distinct, or an expression of such a type",
        )


def _no_null(name: str, type_: str) -> None:
    """Refuse to fold a column that may hold null."""
    if type_ and is_nullable(type_):
        raise DataError(
            "what is folded may be null",
            where=f"column `{name}`",
            why="null is not a value, and would have to be left out of the fold",
            remedy="fold `coalesce(x, 0)`, which gives such rows a value; "
            'with `filter("!is_null(x)")` before it, or `where="!is_null(x)"`, they are left out',
        )
