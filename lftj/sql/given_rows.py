"""The rows that statements give: constants by the types of their columns, and what queries select."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlglot import exp

from lftj.errors import ProgramError
from lftj.io.fields import text_value
from lftj.language.types import decimal_of
from lftj.program.state import State
from lftj.sql.catalogue import Table
from lftj.sql.constants import constant
from lftj.sql.conversions import alike, cast
from lftj.sql.ddl import most_of, sql_type, type_name
from lftj.sql.parameters import NOTHING, Given, name_of, with_value
from lftj.sql.places import SqlText, in_place_of
from lftj.sql.question import Answer, Codes, Question
from lftj.sql.room import Changing
from lftj.values import gate
from lftj.values.decimal_type import Decimals
from lftj.values.faults import Fault, counted, stands_for_null
from lftj.values.schema import Column
from lftj.values.type_table import family_of, from_stored, in_dictionary, is_nullable, type_of, without_null
from lftj.values.value_type import Misfit

# The codes of a row of which nothing is said; None where a column has no default and admits no null.
Blank = Sequence[int | None]


class ConstantRows:
    """The rows of `values (...), (...)`, for the columns of a table at `places`."""

    __slots__ = ("_computed", "_places", "_rows", "_source", "_table")

    def __init__(self, table: Table, places: Sequence[int], values: exp.Values, source: SqlText) -> None:
        self._table, self._places, self._source = table, places, source
        self._rows: list[list[exp.Expr]] = []
        self._computed: dict[tuple[int, ...], Question] = {}
        for item in values.expressions:
            nodes = item.expressions if isinstance(item, exp.Tuple) else [item.this]
            _check_count(table, places, len(nodes), item, source)
            self._rows.append(nodes)

    def codes(self, room: Changing, blank: Blank, given: Given) -> Codes:
        """The rows int64[columns, n]; `blank`: what the other columns hold."""
        table, source = self._table, self._source
        rows = [[code or 0 for code in blank] for _ in self._rows]
        for number, (row, nodes) in enumerate(zip(rows, self._rows, strict=True)):
            computed: list[tuple[int, exp.Expr]] = []
            for place, node in zip(self._places, nodes, strict=True):
                column = table.columns[place]
                if is_default(node):
                    code = blank[place]
                    if code is None:
                        raise null_error(table, column, node, source)
                else:
                    code = _constant(room, table, column, with_value(node, given, source), source)
                if code is None:
                    computed.append((place, node))
                else:
                    row[place] = code
            if computed:
                question = self._question(number, computed)
                types = [table.columns[place].type for place, _ in computed]
                found = typed_answer(room, question, types, source, given=given)
                for at, (place, node) in enumerate(computed):
                    codes = codes_for(table, place, found.rows[at], found.columns[at], node, source)
                    row[place] = int(codes[0])
        return np.array(rows, np.int64).reshape(len(rows), len(table.columns)).T.copy()

    def _question(self, number: int, computed: Sequence[tuple[int, exp.Expr]]) -> Question:
        """The query of the values of a row that are no constants."""
        key = (number, *(place for place, _ in computed))
        if key not in self._computed:
            parts = [exp.alias_(node.copy(), f"value {place}", quoted=True) for place, node in computed]
            self._computed[key] = Question(exp.Select(expressions=parts), self._source)
        return self._computed[key]


def check_fits(node: exp.Expr, type: str, given: Given, source: SqlText) -> None:
    """An error if a parameter that is left open has a value that no column of a type takes.

    Of one that is written out that is found even if there are no rows.
    """
    kind = node.args["kind"] if isinstance(node, exp.Placeholder) else None
    if kind:
        cast(constant(given[name_of(node)], kind), kind, without_null(type), node, source)


def is_default(node: exp.Expr) -> bool:
    """Whether a value is the word `default`."""
    return isinstance(node, exp.Var) and node.name.upper() == "DEFAULT"


def _check_count(table: Table, places: Sequence[int], given: int, node: exp.Expr, source: SqlText) -> None:
    if given != len(places):
        named = ", ".join(table.columns[place].name for place in places)
        raise source.error(
            f"{counted(given, 'value')} for {counted(len(places), 'column')} of `{table.name}`",
            node,
            why=f"the columns are {named}",
            remedy="give each of them one value, or name those that have one behind the table",
        )


def _constant(room: Changing, table: Table, column: Column, node: exp.Expr, source: SqlText) -> int | None:
    """The code of a constant in a column; None if it has to be computed."""
    inner, negative = (node.this, True) if isinstance(node, exp.Neg) else (node, False)
    family, fault, text = family_of(column.type), None, ""
    if isinstance(inner, exp.Null) and not negative:
        if not is_nullable(column.type):
            raise null_error(table, column, node, source)
        return type_of(column.type).null
    if isinstance(inner, exp.Boolean) and family == "bool":
        return int(bool(inner.this))
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and inner.this.is_string:
        other = type_name(inner.to, source) != without_null(column.type) or most_of(inner.to) is not None
        if other or family in ("bytes", "decimal"):
            return None  # SQL reads other texts as these than files hold
        inner = inner.this
        text = inner.name
    elif isinstance(inner, exp.Literal):
        if family == "bytes" or (not inner.is_string and family not in ("number", "unsigned", "float", "decimal")):
            return None
        text = f"-{inner.name}" if negative else inner.name
    else:
        return None
    if family == "symbol":
        try:
            return gate.encode_value(text, without_null(column.type), room._evaluator.symbols)
        except Misfit as misfit:  # half a surrogate pair
            raise _misfit(table, column, repr(text), misfit.fault, node, source) from None
    found = text_value(text.encode(), without_null(column.type))
    if isinstance(found, Fault):
        fault = found
    elif isinstance(found, str):
        return int(room._evaluator.symbols.intern_one(found))
    elif is_nullable(column.type) and found == type_of(column.type).null:
        fault = stands_for_null(type_of(column.type))
    else:
        return found
    raise _misfit(table, column, text, fault, node, source)


def null_error(table: Table, column: Column, node: exp.Expr, source: SqlText) -> ProgramError:
    """The error about null in a column that does not admit it."""
    return source.error(
        f"column `{column.name}` of `{table.name}` cannot be null",
        node,
        why="it is in the primary key" if column.name in table.key else "it is declared `not null`",
        remedy="give it a value in each row",
    )


def _misfit(table: Table, column: Column, text: str, fault: Fault, node: exp.Expr, source: SqlText) -> ProgramError:
    return source.error(
        f"column `{column.name}` of `{table.name}`: {text} {fault.reason}",
        node,
        why=fault.why,
        remedy=f"write {type_of(column.type).article}, or a text that spells one",
    )


# --- selected rows ----------------------------------------------------------------------------------------------------


def selected_rows(
    room: Changing,
    table: Table,
    places: Sequence[int],
    blank: Blank,
    question: Question,
    source: SqlText,
    given: Given = NOTHING,
) -> tuple[Codes, Codes]:
    """The rows int64[columns, n] that a query gives, and how often each is there; `blank`: of the other columns."""
    types: list[str | None] = [table.columns[place].type for place in places]
    found = typed_answer(room, question, types, source, table=table, given=given)
    rows = np.empty((len(table.columns), found.rows.shape[1]), np.int64)
    rows[:] = np.array([code or 0 for code in blank], np.int64)[:, None]
    for number, place in enumerate(places):
        rows[place] = codes_for(table, place, found.rows[number], found.columns[number], question.query, source)
    return rows, found.copies


def typed_answer(
    room: Changing,
    question: Question,
    types: Sequence[str | None],
    source: SqlText,
    *,
    table: Table | None = None,
    state: State | None = None,
    given: Given = NOTHING,
) -> Answer:
    """The answer of a query whose columns have the given types, by casts where it has others; None: as it is.

    `state`: what it is asked over, if not what the transaction holds.
    """
    state = room._present() if state is None else state
    found = question.answer(room, state, given)
    if table is not None and len(found.columns) != len(types):
        raise source.error(
            f"{counted(len(found.columns), 'column')} for {counted(len(types), 'column')} of `{table.name}`",
            question.query,
            why="a column of the select is put into each of them, in order",
            remedy="select as many columns, or name those that are given behind the table",
        )
    cast = tuple(
        None if type is None or alike(column.type, type) else type
        for column, type in zip(found.columns, types, strict=True)
    )
    if not any(cast):
        return found
    return question.also(cast, lambda: _cast(question.query, cast)).answer(room, state, given)


def _cast(query: exp.Expr, types: Sequence[str | None]) -> exp.Expr:
    """The query with columns of the given types; None: as it is."""
    names = [f"c{number}" for number in range(len(types))]
    inner = exp.TableAlias(this=exp.to_identifier("given"), columns=[exp.to_identifier(name) for name in names])
    columns: list[exp.Expr] = [exp.column(name, "given") for name in names]
    if isinstance(query, exp.Select) and len(query.expressions) == len(columns):  # errors are about what is cast
        columns = [in_place_of(value, column) for value, column in zip(query.expressions, columns, strict=True)]
    parts = [
        column if type is None else exp.alias_(exp.Cast(this=column, to=sql_type(type)), name)
        for name, column, type in zip(names, columns, types, strict=True)
    ]
    given = exp.Subquery(this=query.copy(), alias=inner)
    return exp.Select(expressions=parts, from_=exp.From(this=given))


def codes_for(table: Table, place: int, codes: Codes, column: Column, node: exp.Expr, source: SqlText) -> Codes:
    """Codes of a column of an answer, for a column of a table of the same type."""
    target, made = table.columns[place], type_of(table.columns[place].type)
    if isinstance(made, Decimals):
        wide = (np.abs(codes) > made.high) & ~(is_nullable(column.type) & (codes == made.null))
        if wide.any():
            value = from_stored(int(codes[np.argmax(wide)]), decimal_of(made.scale))
            fault = Fault(f"does not fit into {made.plain}", made.takes, "")
            raise _misfit(table, target, str(value), fault, node, source)
    if is_nullable(target.type) == is_nullable(column.type) or not (codes == made.null).any():
        return codes
    if is_nullable(column.type):
        raise null_error(table, target, node, source)
    if in_dictionary(target.type):
        return codes
    value = from_stored(made.null, without_null(target.type))
    raise _misfit(table, target, str(value), stands_for_null(made), node, source)
