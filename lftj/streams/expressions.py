"""Maps and filters by expressions, as rules write them: `"price * 2"`, `"price > 100, channel != other"`.

An expression is checked as the body of a query over one atom, the row: names and types are those of the stream's
columns. It is evaluated column by column by the register machine that joins use, texts once per distinct value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import ClassVar

import numpy as np

from lftj.errors import DataError, Diagnostic, Error, EvaluationError, ProgramError, Span
from lftj.evaluate.term_columns import TermColumns
from lftj.language.checker import check_query
from lftj.language.clause import Clause, Compare, Term, Var, names_of, replaced, variables_of
from lftj.language.clause import Value as Constant
from lftj.language.functors import RESERVED, RESERVED_VARIABLES
from lftj.language.null import not_admitted
from lftj.language.parse import parse_query
from lftj.language.terms import has_form_of_name
from lftj.streams.operators import Columns, Narrowed, Room, TickByTick
from lftj.streams.zsets import ZSet
from lftj.values.schema import Column, Schema
from lftj.values.type_table import from_stored, to_stored
from lftj.values.value_type import Misfit

# What the names of the row and of results in the query begin with, unless a column or an expression has a name like it.
ROW = "row"
RESULT = "result_of_"
# The place of mistakes.
WRITTEN = "<expression>"
_UNBOUND = re.compile(r"variable `(.+)` is not bound by any atom")
_UNKNOWN = re.compile(r"unknown relation `(.+)`")


@dataclass(frozen=True, eq=False)
class Map(TickByTick):
    """A row for each row that meets `conditions`: `terms` over its columns, whose names are `names`.

    Without `terms` the row itself. `marks`: a column each at the end, 1 for rows that meet some conditions and 0 for
    others. `marked_by`: of each term the mark of the rows that it is for, -1: of all rows; it is 0 for others; (): all
    terms are for all rows. A row is in error if a term for it has no value and no condition excludes it; `lenient`: it
    is left out.
    """

    symbol: ClassVar[str] = "map"
    names: tuple[str, ...]
    conditions: tuple[Compare, ...]
    terms: tuple[Term, ...] | None
    text: str
    marks: tuple[tuple[Compare, ...], ...] = ()
    marked_by: tuple[int, ...] = ()
    lenient: bool = False

    @property
    def label(self) -> str:
        """What it computes."""
        return f"{'σ' if self.terms is None else 'map'} {self.text}"

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """What is wanted, and what conditions look at. All that is computed stays: it may have no value, an error."""
        named = {
            v.name for c in (*self.conditions, *chain(*self.marks)) for t in (c.left, c.right) for v in variables_of(t)
        }
        if self.terms is None:
            reads = tuple(i for i, name in enumerate(self.names) if i in wanted or name in named)
            kept, terms, marked_by = reads, None, self.marked_by
        else:
            width = len(self.terms)
            kept = tuple(i for i in range(width) if i in wanted or not isinstance(self.terms[i], Var | Constant))
            terms = tuple(self.terms[i] for i in kept)
            marked_by = tuple(self.marked_by[i] for i in kept) if self.marked_by else ()
            named |= names_of(*terms)
            kept = (*kept, *range(width, width + len(self.marks)))
            reads = tuple(i for i, name in enumerate(self.names) if name in named)
        names = tuple(self.names[i] for i in reads)
        return Narrowed(replace(self, names=names, terms=terms, marked_by=marked_by), kept, (reads,))

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value for a Z-set."""
        width = len(zset.rows) if self.terms is None else len(self.terms) + len(self.marks)
        if not len(zset):
            return ZSet.zero(width)
        named = dict(zip(self.names, zset.rows, strict=True))
        columns = TermColumns(named, len(zset), room.symbols)
        kept, wrong = columns.met(self.conditions)
        undefined = bool(wrong.any())
        columns.take(kept)
        weights = zset.weights[kept]
        if self.terms is None:
            rows = np.array([columns.columns[name] for name in self.names]).reshape(width, columns.count)
            made = ZSet(rows, weights, normal=zset.is_normal)
        else:
            defined, marks = np.ones(columns.count, np.bool_), []
            for conditions in self.marks:
                met, wrong = columns.met(conditions)
                marks.append(met)
                defined &= ~wrong
            found = [
                columns.codes(term) if at < 0 else columns.codes_where(marks[at], term)
                for at, term in zip(self.marked_by or (-1,) * len(self.terms), self.terms, strict=True)
            ]
            found += [met.astype(np.int64) for met in marks]
            defined &= columns.defined
            undefined = undefined or not bool(defined.all())
            rows = np.array(found, np.int64).reshape(width, columns.count)
            made = ZSet(rows, weights).kept(defined)
        if not undefined or self.lenient:
            return made
        if not zset.is_normal:
            # A row that comes and goes in the same value is not there, and need not have one.
            return self.of(zset.normal(), room)
        raise self._undefined()

    def _undefined(self) -> EvaluationError:
        """The error for a row that has no value."""
        for value in map(not_admitted, self.conditions):
            if value is not None:
                return EvaluationError(
                    f"`{self.text}` brings {value} to a column that admits null",
                    why="it is the code of null there; the step was not made",
                    remedy="filter such rows first, or keep null away from the column",
                )
        return EvaluationError(
            f"`{self.text}` has no value for some row",
            why="a division by zero, a result out of range or a text that is no number; the step was not made",
            remedy="filter such rows first",
        )


def filtered(columns: Columns, text: str) -> Map:
    """The filter by a condition, or several with commas between. `ProgramError` if it makes no sense."""
    clause, names = _checked(columns, text)
    return Map(names, _over_columns(clause.compares, names), None, text)


def conditions_of(columns: Columns, text: str) -> tuple[Compare, ...]:
    """The conditions that `text` writes. `ProgramError` if they make no sense."""
    clause, names = _checked(columns, text)
    return _over_columns(clause.compares, names)


def _over_columns(conditions: tuple[Compare, ...], names: Collection[str]) -> tuple[Compare, ...]:
    """Conditions on columns alone: a variable that an equation gives a value, as in `z = v + 1`, becomes that term.

    The equation becomes `v + 1 = v + 1`, so that a row for which the term has no value is still in error.
    """
    while found := next(filter(None, (definition(condition, names) for condition in conditions)), None):
        variable, term = found
        by = {variable.name: term}
        conditions = tuple(Compare(c.op, replaced(c.left, by), replaced(c.right, by), c.span) for c in conditions)
    return conditions


def definition(compare: Compare, bound: Collection[str]) -> tuple[Var, Term] | None:
    """(the variable that an equation gives a value, the term) where `bound` variables have one; None otherwise."""
    if compare.op != "=":
        return None
    for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
        if isinstance(side, Var) and side.name not in bound and all(v.name in bound for v in variables_of(other)):
            return side, other
    return None


def mapped(columns: Columns, made: Mapping[str, str | None]) -> tuple[Map, Columns]:
    """(the map to columns by name, each by an expression, or None for the column of that name; its columns)."""
    by_name = {column.name: column for column in columns}
    # A column by its name is that column, with its null; what is computed needs values.
    plain = {name: str(text).strip() if text is not None else name for name, text in made.items()}
    taken = " ".join((*by_name, *plain.values()))
    result = next(result for n in count() if (result := RESULT + "_" * n) not in taken)
    computed = {name: f"{result}{i}_" for i, name in enumerate(made) if plain[name] not in by_name}
    types: dict[str, Term] = {}
    for name in made:
        if made[name] is None and name not in by_name:
            raise unknown_column(name, columns)
    if computed:
        text = ", ".join(f"{result} = {made[name]}" for name, result in computed.items())
        results = {result: name for name, result in computed.items()}
        try:
            clause, names = _checked(columns, text, results)
        except Error as error:
            raise _with_own_names(columns, {name: made[name] for name in computed}) or error from None
        shown = ", ".join(f"{name} = {made[name]}" for name in computed)
        _check_no_null(clause, shown)
        if len(clause.compares) > len(computed):
            raise DataError(
                f"`{shown}` holds a condition",
                why="a column is computed by one expression",
                remedy="give one for each column, and conditions to `filter`",
            )
        for compare in clause.compares:
            if isinstance(compare.left, Var) and compare.left.name in results and compare.op == "=":
                types[results[compare.left.name]] = compare.right
    else:
        _, names = _checked(columns, "")
    terms = tuple(types[name] if name in computed else Var(plain[name], by_name[plain[name]].type) for name in made)
    shown = ", ".join(name if text is None else f"{name} = {text}" for name, text in made.items())
    return Map(names, (), terms, shown), tuple(Column(name, term.type) for name, term in zip(made, terms, strict=True))


def _check_no_null(clause: Clause, text: str) -> None:
    """Refuse to compute with a column that may hold null."""
    for compare in clause.compares:
        if isinstance(compare.right, Constant) and compare.right.value is None and compare.op != "=":
            raise DataError(
                f"`{compare.left}` may be null",
                where=f"`{text}`",
                why="what is computed with null has no value",
                remedy=f"compute with `coalesce({compare.left}, ...)`, which gives such rows a value; "
                f'with `filter("!is_null({compare.left})")` before it they are left out',
            )


def _checked(columns: Columns, text: str, results: Collection[str] = ()) -> tuple[Clause, tuple[str, ...]]:
    """(the clause of a query over the row and `text`, the names of the row's columns).

    `results`: the variables that `text` gives values to.
    """
    names = tuple(column.name for column in columns)
    # Of many columns an expression names few, and all of the row are parsed and checked. A column whose name is none of
    # a variable is there, and cannot be named.
    named = [column for column in columns if column.name in text and _can_be_named(column.name)]
    relation = next(name for n in count() if (name := ROW + "_" * n) not in text)
    row = f"{relation}({', '.join(column.name for column in named)})"
    try:
        clause = check_query(f"{row}, {text}" if text else row, {relation: Schema(relation, tuple(named))})
        if len(clause.atoms) + len(clause.negated) > 1:
            raise _no_atoms(text)
        return clause, names
    except ProgramError as error:
        findings = error.diagnostics
    if any(_UNKNOWN.match(finding.what) for finding in findings):
        raise _no_atoms(text)
    # There are no atoms that could bind it: it is the name of a column that is not there. A result that is computed of
    # it is not bound either.
    for finding in findings:
        unbound = _UNBOUND.match(finding.what)
        if unbound is not None and unbound[1] not in results:
            raise unknown_column(unbound[1], columns)
    parse_query(text, WRITTEN)  # what is no query by itself is told as it was written
    raise ProgramError([_in_text(finding, len(row) + 2) for finding in findings])


def _no_atoms(text: str) -> DataError:
    """The error for an atom beside that of the row."""
    return DataError(
        f"`{text}` holds an atom of a relation",
        why="a row is looked at by itself, and there are no relations in a circuit",
        remedy="compare columns; rows that meet others are those of `semijoin` and `antijoin`",
    )


def _can_be_named(column: str) -> bool:
    """Whether expressions can name a column: whether its name is one of a variable."""
    return has_form_of_name(column) and column not in (*RESERVED, *RESERVED_VARIABLES)


def _with_own_names(columns: Columns, made: Mapping[str, str | None]) -> Error | None:
    """What is wrong with expressions, told with the names that the user gave their columns, where these can be."""
    for name, text in made.items():
        try:
            if _can_be_named(name):
                _checked(columns, f"{name} = {text}", (name,))
        except Error as error:
            return error
    return None


def _in_text(finding: Diagnostic, before: int) -> Diagnostic:
    """A finding about a query of the row, `before` characters, and a text: with its places in the text."""

    def moved(span: Span) -> Span:
        if span.line > 1:
            return replace(span, source=WRITTEN)
        if span.column <= before:
            return Span("the stream")
        last = span.end_column - before if span.end_line == 1 else span.end_column
        line = span.line_text[before:]
        return replace(span, source=WRITTEN, column=span.column - before, end_column=last, line_text=line)

    related = tuple((word, moved(span)) for word, span in finding.related)
    return replace(finding, span=moved(finding.span), related=related)


def checked_value(value: object, column: Column) -> int | float | str:
    """A Python value for a column. `DataError` if it is of another type."""
    try:
        known: int | float | str = from_stored(to_stored(value, column.type), column.type)
        return known
    except Misfit as misfit:
        raise DataError(
            f"{value!r} cannot stand in column `{column.name}`",
            why=f"it {misfit.fault.reason}",
            remedy=f"give a value of type {column.type}",
        ) from None


def check_names(names: Sequence[object], remedy: str = "give one of them another name, or leave one out") -> None:
    """`DataError` unless every column of a stream has a name of its own."""
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"{name!r} cannot name a column", why="its name is a text", remedy='give a name, such as "price"'
            )
        if names.count(name) > 1:
            raise DataError(
                f"the stream would have two columns `{name}`", why="columns are known by their names", remedy=remedy
            )


def unknown_column(name: object, columns: Columns) -> DataError:
    """The error for a column that a stream does not have."""
    from lftj.language.diagnostics import did_you_mean

    names = [column.name for column in columns]
    if isinstance(name, list | tuple):
        return DataError(
            f"{name!r} is no name of a column",
            why=f"columns are named one by one, and those of the stream are {', '.join(names) or 'none'}",
            remedy=f"give {', '.join(map(repr, name)) or 'a name'}, without brackets around",
        )
    if name in names:
        return DataError(
            f"no expression can name the column {name!r}",
            why="the word has a meaning of its own in rules",
            remedy=f'rename the column before: `.rename({name}="other")`',
        )
    return DataError(
        f"the stream has no column {name!r}",
        why=f"its columns are {', '.join(names) or 'none'}",
        remedy=did_you_mean(str(name), names, "give one of these names"),
    )
