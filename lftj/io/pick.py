"""Picking: which column of the source becomes which column of the relation.

The source has `width` columns and may have names (a header, an Arrow schema); the relation has declared names. Without
`columns=` the widths must agree. Then names decide where the source's names are the declared ones in any order;
position decides where the source has no names or none of them is a declared one (`from, to` for `src, dst`). Names that
agree in part (`dst, weight` for `src, dst`) are refused: neither reading is safe. With `columns=` every declared column
is named once, as a position (counted from 0) or a name of the source.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from lftj.errors import DataError
from lftj.values.codes import Schema
from lftj.values.faults import with_article

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


def pick(schema: Schema, columns: Columns | None, names: Sequence[str] | None, width: int, source: str) -> list[int]:
    """The position in the source of each column of the relation."""
    if columns is not None:
        return [_picked(columns[name], name, names, width, source) for name in schema.names]
    if width != schema.arity:
        raise _wrong_width(schema, names, width, source)
    if names is None or not set(names) & set(schema.names):
        return list(range(width))
    if sorted(names) == sorted(schema.names):
        return [list(names).index(name) for name in schema.names]
    raise ColumnsError(
        f"the columns {_listed(names)} match those of {schema} only in part",
        where=source,
        why="it is not clear whether names or positions count",
        remedy=f"say which is which: {_example(schema, range(width))}",
    )


def _picked(wanted: int | str, name: str, names: Sequence[str] | None, width: int, source: str) -> int:
    if isinstance(wanted, int):
        if 0 <= wanted < width:
            return wanted
        raise ColumnsError(
            f"columns= asks for position {wanted} as `{name}`, but the source has {_count(width)}",
            where=source,
            why="positions count the columns of the source from 0",
            remedy=f"positions count from 0; the last is {width - 1}",
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
            why=f"its columns are {_listed(names)}",
            remedy="give the position (from 0)" if found else _did_you_mean(wanted, names),
        )
    return list(names).index(wanted)


def _wrong_width(schema: Schema, names: Sequence[str] | None, width: int, source: str) -> ColumnsError:
    if width < schema.arity:
        remedy = "supply the missing columns or declare fewer"
    elif names is not None and set(schema.names) <= set(names):
        remedy = f"pick the columns: {_example(schema, schema.names)}"
    else:
        remedy = f"pick the columns: {_example(schema, range(schema.arity))}"
    listed = f" ({_listed(names)})" if names else ""
    return ColumnsError(
        f"the source has {_count(width)}{listed}, {schema} takes {schema.arity}",
        where=source,
        why="columns are matched by position where the names differ, so there must be as many",
        remedy=remedy,
    )


def _example(schema: Schema, picks: Sequence[int | str]) -> str:
    return f"columns={dict(zip(schema.names, picks, strict=True))}"


def _did_you_mean(name: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(name), known, 1)
    return f"did you mean `{near[0]}`?" if near else f"choose from {_listed(known)}"


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(f"`{name}`" for name in names[:NAMES_SHOWN])
    return text if len(names) <= NAMES_SHOWN else f"{text}, ... ({len(names)} in all)"


def _count(width: int) -> str:
    return "1 column" if width == 1 else f"{width} columns"
