"""Streams that must stay empty: a step that gives one a row is refused, with an error that shows the row.

A term or a group without a value that a rule needs, and a key with two values, are such streams (refused.py). Their
operators add nothing to the relation that they are for. They look at the whole stream, not at a tick's part of it: what
is not refused at one tick may be made whole by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lftj.errors import Error, EvaluationError, KeyConflictError
from lftj.evaluate.key_conflicts import shown_row
from lftj.evaluate.undefined_terms import code_of_null
from lftj.language.aggregate_specs import squares
from lftj.language.clause import Apply, Clause
from lftj.language.types import FLOAT, NUMBER, UNSIGNED
from lftj.streams.integral import Integral, Order, ascending
from lftj.streams.operators import PER_KEY, Columns, Operator, Room, Tick, Value, zset_of
from lftj.streams.zsets import ZSet
from lftj.values.schema import Column, Schema

Row = tuple[int | float | str, ...]


@dataclass(frozen=True, eq=False)
class Never(Operator):
    """Nothing, of `arity` columns; an error if its input has a row."""

    symbol: ClassVar[str] = "never"
    law: ClassVar[str] = PER_KEY
    arity: int

    @property
    def columns(self) -> Columns:
        """Those of its input."""
        raise NotImplementedError

    def error(self, row: Row) -> Error:
        """The error for a row."""
        raise NotImplementedError

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Look at the whole value."""
        self.check(zset_of(values[0]).normal(), tick.room)
        return ZSet.zero(self.arity), None

    def check(self, found: ZSet, room: Room) -> None:
        """Raise the error for the least row, if there is one."""
        if len(found):
            raise self.error(
                tuple(
                    room.symbols.value(int(codes[0]), column.type)
                    for codes, column in zip(found.rows, self.columns, strict=True)
                )
            )

    def changes(self) -> tuple[Operator, Order]:
        """The operator that looks at the integral after each change."""
        return NeverAfter(self), ascending(range(len(self.columns)))


@dataclass(frozen=True, eq=False)
class NeverAfter(Operator):
    """`Never` of a stream given by its changes: of these, and of the integrals before and after."""

    symbol: ClassVar[str] = "never"
    of: Never

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Look at the integral after the change."""
        after = values[2]
        assert isinstance(after, Integral)
        if len(after):
            self.of.check(after.zset().normal(), tick.room)
        return ZSet.zero(self.of.arity), None


@dataclass(frozen=True, eq=False)
class WithoutValue(Never):
    """Rows, of the columns `shown`, for which something in a clause has no value."""

    clause: Clause
    shown: Columns

    @property
    def columns(self) -> Columns:
        """Those of its input."""
        return self.shown

    def where(self, names: Iterable[object], row: Row) -> str:
        """The clause, and the values of the row by names, as far as there are names."""
        held = ", ".join(f"{name} = {value!r}" for name, value in zip(names, row, strict=False))
        return f"{self.clause.span}: in `{self.clause.text or self.clause}`" + (f" with {held}" if held else "")


@dataclass(frozen=True, eq=False)
class Undefined(WithoutValue):
    """Rows for which `term` of a clause has no value; `shown`: the columns of its variables."""

    term: Apply

    def error(self, row: Row) -> Error:
        """The rule, the term and the row."""
        where = self.where((column.name for column in self.shown), row)
        if (refused := code_of_null(self.clause, self.term, where, "the step was not made")) is not None:
            return refused
        return EvaluationError(
            f"`{self.term}` has no value",
            where=where,
            why="a division by zero, a result out of range or a text that is no number; the step was not made",
            remedy="exclude such rows in the body",
        )


@dataclass(frozen=True, eq=False)
class UndefinedGroup(WithoutValue):
    """Groups without a value of the aggregate `clause` that a rule asks for; `own`: its `shown` columns are the group.

    Else they are the columns, as far as they are known, of a row that depends on such a group.
    """

    own: bool

    def error(self, row: Row) -> Error:
        """The aggregate, and the group."""
        aggregate, args = self.clause.aggregate, self.clause.head_args
        assert aggregate is not None
        operand, why, remedy = args[aggregate.groups].type, "adds inf and -inf", "exclude such values in the body"
        if squares(aggregate.op):
            operand, why = FLOAT, "one of its values is inf or -inf"
        elif operand in (NUMBER, UNSIGNED):
            remedy = "sum floats (`itof`, `utof`)"
        return EvaluationError(
            f"the {aggregate.op} of a group has no value",
            where=self.where(args if self.own else (), row),
            why=f"it is out of the range of {operand}, or {why}, and a rule asks for it; the step was not made",
            remedy=remedy,
        )


@dataclass(frozen=True, eq=False)
class TwoValues(Never):
    """Rows of a functional predicate, with another value of the same key as a last column."""

    schema: Schema

    @property
    def columns(self) -> Columns:
        """The relation's, and the other value."""
        last = self.schema.columns[-1]
        return (*self.schema.columns, Column("other", last.type))

    def error(self, row: Row) -> Error:
        """Both rows."""
        *key, second, first = row
        rows = (*key, first), (*key, second)
        shown = " and ".join(shown_row(self.schema, one) for one in rows)
        return KeyConflictError(
            f"`{self.schema.name}` has two values under one key: {shown}",
            relation=self.schema.name,
            rows=rows,
            derivations=("", ""),
            why="a functional predicate has one value for each key; the step was not made",
            remedy="take one of the rows away in the same step, or make the predicate a relation",
        )
