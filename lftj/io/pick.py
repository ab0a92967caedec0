"""Picking: which column of the source becomes which column of the relation.

The source has `width` columns and may have names (a header, an Arrow schema); the relation has declared names. Without
`columns=` names decide where the declared ones are among the source's, in any order; other columns are passed over,
unless `extra="error"` refuses them. Else the widths must agree, and position decides, where the source has no names or
none of them is a declared one (`from, to` for `src, dst`). Names that agree in part (`dst, weight` for `src, dst`) are
refused: neither reading is safe. With `columns=` every declared column is named once, as a position (counted from 0) or
a name of the source.

A relation without declaration has its columns' names from the variables of a rule, which may be renamed without a
thought for data. So position decides; the same names in another order are refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from lftj.errors import DataError
from lftj.values.faults import counted, with_article
from lftj.values.schema import Schema

Columns = Mapping[str, int | str]
NAMES_SHOWN = 12


class ColumnsError(DataError, LookupError):
    """The columns of a source cannot be matched with those of the relation."""

    __str__ = DataError.__str__


def check_columns(schema: Schema, columns: Columns | None) -> None:
    """Refuse a `columns=` that does not name every column of the relation once; needs no source."""
    if columns is None:
        return
    if not isinstance(columns, Mapping):
        raise ColumnsError(
            f"columns= is {with_article(type(columns).__name__)}, not a dict",
            why="it says for every column of the relation which one of the source it is",
            remedy=f"write {_example(schema, range(schema.arity))}",
        )
    for name, pick in columns.items():
        if name not in schema.names:
            raise ColumnsError(
                f"columns= names `{name}`, which is no column of {schema}",
                why="it says for every column of the relation which one of the source it is",
                remedy=_did_you_mean(name, schema.names),
            )
        if isinstance(pick, bool) or not isinstance(pick, int | str):
            raise ColumnsError(
                f"columns= gives {pick!r} for `{name}`",
                why="a column of the source is known by its position or by its name",
                remedy="give a position (an int, from 0) or a column name (a str)",
            )
    for name in schema.names:
        if name not in columns:
            raise ColumnsError(
                f"columns= says nothing about `{name}` of {schema}",
                why="it replaces all matching by name and position",
                remedy=f"add `{name}` to columns=",
            )


def pick(
    schema: Schema,
    columns: Columns | None,
    names: Sequence[str] | None,
    width: int,
    source: str,
    *,
    extra: str = "note",
) -> list[int]:
    """The position in the source of each column of the relation. `extra`: "note" passes over others."""
    if columns is not None:
        return [_picked(columns[name], name, names, width, source) for name in schema.names]
    if width != schema.arity and (extra == "error" or not named(schema, names)):
        raise _wrong_width(schema, names, width, source)
    if not schema.declared:
        if names is not None and list(names) != list(schema.names) and sorted(names) == sorted(schema.names):
            raise ColumnsError(
                f"the columns {listed(names)} are those of {schema} in another order",
                where=source,
                why=f"`{schema.name}` is not declared: its columns have the names of a rule's variables",
                remedy=f"declare it, or say which is which: {_example(schema, schema.names)}",
            )
        return list(range(width))
    if names is None or not set(names) & set(schema.names):
        return list(range(width))
    if named(schema, names):
        return [list(names).index(name) for name in schema.names]
    raise ColumnsError(
        f"the columns {listed(names)} match those of {schema} only in part",
        where=source,
        why="it is not clear whether names or positions count",
        remedy=f"say which is which: {_example(schema, range(width))}",
    )


def check_named(schema: Schema, columns: Columns | None, names: Sequence[str], source: str) -> None:
    """Refuse rows without an order of columns, unless each column of the relation is among their `names`."""
    if columns is not None:
        return
    spare = (name for name in names if name not in schema.names)
    picks = [name if name in names else next(spare, None) for name in schema.names]
    example = _example(schema, [pick or name for pick, name in zip(picks, schema.names, strict=True)])
    if not schema.declared:
        raise ColumnsError(
            f"the rows have names ({listed(names)}), and `{schema.name}` is not declared",
            where=source,
            why="its columns have the names of a rule's variables, by which no data is matched",
            remedy=f"declare it, or say which is which: {example}",
        )
    if missing := [name for name in schema.names if name not in names]:
        raise ColumnsError(
            f"the rows have no {listed(missing)}" + (f", but {listed(names)}" if names else ""),
            where=source,
            why=f"rows with names are matched by them with the columns of {schema}",
            remedy="give each row a value by each of these names"
            if None in picks
            else f"say which is which: {example}",
        )


def named(schema: Schema, names: Sequence[str] | None) -> bool:
    """Whether each declared name, and there is one, is once among the names of a source."""
    return (
        schema.declared
        and names is not None
        and bool(schema.names)
        and all(list(names).count(name) == 1 for name in schema.names)
    )


def _picked(wanted: int | str, name: str, names: Sequence[str] | None, width: int, source: str) -> int:
    if isinstance(wanted, int):
        if 0 <= wanted < width:
            return wanted
        raise ColumnsError(
            f"columns= asks for position {wanted} as `{name}`, but the source has {counted(width, 'column')}",
            where=source,
            why="positions count the columns of the source from 0",
            remedy=f"give a position from 0 to {width - 1}",
        )
    if names is None:
        raise ColumnsError(
            f"columns= asks for `{wanted}` as `{name}`, but the source has no column names",
            where=source,
            why="nothing in it says how its columns are called",
            remedy="give positions (from 0)",
        )
    if (found := list(names).count(wanted)) != 1:
        raise ColumnsError(
            f"columns= asks for `{wanted}` as `{name}`, but the source has "
            + ("no such column" if not found else f"{found} columns of that name"),
            where=source,
            why=f"its columns are {listed(names)}",
            remedy="give the position (from 0)" if found else _did_you_mean(wanted, names),
        )
    return list(names).index(wanted)


def _wrong_width(schema: Schema, names: Sequence[str] | None, width: int, source: str) -> ColumnsError:
    if width < schema.arity:
        remedy = "supply the missing columns or declare fewer"
    elif names is not None and all(list(names).count(name) == 1 for name in schema.names):
        remedy = f"pick the columns: {_example(schema, schema.names)}"
    else:
        remedy = f"pick the columns: {_example(schema, range(schema.arity))}"
    shown = f" ({listed(names)})" if names else ""
    why = "columns are matched by position where the names differ, so there must be as many"
    if named(schema, names):
        why = 'all columns of the relation are there by name, and extra="error" refuses others'
    return ColumnsError(
        f"the source has {counted(width, 'column')}{shown}, {schema} takes {schema.arity}",
        where=source,
        why=why,
        remedy=remedy,
    )


def _example(schema: Schema, picks: Sequence[int | str]) -> str:
    return f"columns={dict(zip(schema.names, picks, strict=True))}"


def _did_you_mean(name: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(name), known, 1)
    return f"did you mean `{near[0]}`?" if near else f"choose from {listed(known)}"


def listed(names: Sequence[str]) -> str:
    """The first of some names, each in backquotes."""
    text = ", ".join(f"`{name}`" for name in names[:NAMES_SHOWN])
    return text if len(names) <= NAMES_SHOWN else f"{text}, ... ({len(names)} in all)"
