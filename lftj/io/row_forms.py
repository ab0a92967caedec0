"""Rows as Python objects: tuples and lists by position; dicts, dataclasses and named tuples by the names they have.

The first row of a source decides what its rows are:

    tuple, list, other sequences    by position; all of one width
    named tuple                     its fields are the names of a frame (`lftj/io/pick.py`); all of its type
    dataclass, mapping              by name, never by position: every column of the relation has its name among theirs,
                                    or `columns=` says which is which

Mappings may differ in their other keys; one that lacks a key that is picked is a bad row. A chunk of rows is turned
into columns at once and converted in bulk; only a chunk with a row that does not fit is walked row by row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

from lftj.io.convert import list_part
from lftj.io.pick import Columns
from lftj.io.staging import ColumnPart, Finding, Staging
from lftj.values.faults import Fault, counted, shown, with_article
from lftj.values.gate import NamedRow
from lftj.values.schema import Column

Turned = Sequence[Sequence[Any]]


class RowReader:
    """Takes the rows of one source, chunk by chunk.

    `source` names it; `in_text` says that places are lines; `part` makes the codes of the values of a column.
    """

    def __init__(
        self,
        staging: Staging,
        columns: Columns | None,
        source: str,
        *,
        in_text: bool = False,
        part: Callable[[Sequence[object], str], ColumnPart] = list_part,
    ) -> None:
        self._staging, self._columns, self._source, self._in_text = staging, columns, source, in_text
        self._part = part
        self._form: _Form | None = None

    def add(self, places: Sequence[int], chunk: list[Any], misshapen: Iterable[tuple[int, Finding]] = ()) -> None:
        """Take rows, which are at `places`; those that are `misshapen` are in neither."""
        bad = list(misshapen)
        form = self._form
        if form is None and chunk:
            form = self._form = self._formed(chunk[0])
        turned: Turned | None = []
        if form is not None and chunk:
            turned = form.columns(chunk)
            if turned is None:
                fit = []
                for place, row in zip(places, chunk, strict=True):
                    if fault := form.fault(row):
                        bad.append((place, Finding(shown(row), shown(row), fault)))
                    else:
                        fit.append((place, row))
                places = [place for place, _ in fit]
                turned = form.columns([row for _, row in fit])
                assert turned is not None, "rows without a fault fit"
        turned = turned or [()] * self._staging.schema.arity
        parts = [self._staging.part(i, partial(self._of_column, values)) for i, values in enumerate(turned)]
        self._staging.add(self._source, parts, places, in_text=self._in_text, misshapen=bad)

    def _of_column(self, values: Sequence[object], column: Column) -> ColumnPart:
        return self._part(values, column.type)

    def _formed(self, first: Any) -> _Form:
        if isinstance(first, Mapping):
            return _Keyed(self._staging, self._columns, self._source)
        if dataclasses.is_dataclass(first) and not isinstance(first, type):
            names = [field.name for field in dataclasses.fields(first)]
            at = self._staging.pick(self._columns, names, len(names), self._source, by_name=True)
            return _Fielded(type(first), [names[i] for i in at])
        named = isinstance(first, tuple) and hasattr(first, "_fields") and not isinstance(first, NamedRow)
        if named:
            names = list(first._fields)
            return _Positional(
                self._staging.schema.name,
                len(names),
                self._staging.pick(self._columns, names, len(names), self._source),
                type(first),
            )
        relation = self._staging.schema
        if self._columns is None or not _is_row(first):
            return _Positional(relation.name, relation.arity, range(relation.arity))
        at = self._staging.pick(self._columns, None, len(first), self._source)
        return _Positional(relation.name, len(first), at)


class _Form:
    """What the rows of a source are."""

    def columns(self, chunk: list[Any]) -> Turned | None:
        """The picked values of all rows, by column; None if some row does not fit."""
        raise NotImplementedError

    def fault(self, row: Any) -> Fault | None:
        """Why a row does not fit."""
        raise NotImplementedError


class _Positional(_Form):
    """Rows of one width; of one type, if that has names."""

    def __init__(self, relation: str, width: int, positions: Sequence[int], kind: type | None = None) -> None:
        self._relation, self._width, self._positions, self._kind = relation, width, positions, kind

    def columns(self, chunk: list[Any]) -> Turned | None:
        types = set(map(type, chunk))
        kinds = (tuple, list) if self._kind is None else self._kind
        plain = all(issubclass(kind, kinds) for kind in types) and set(map(len, chunk)) <= {self._width}
        if not plain and any(self.fault(row) for row in chunk):
            return None
        # Not by `zip(*chunk)`: it makes an object for each row, and the garbage collector looks at all of them.
        return [[*map(itemgetter(position), chunk)] for position in self._positions]

    def fault(self, row: Any) -> Fault | None:
        if self._kind is not None and not isinstance(row, self._kind):
            return _other_kind(row, self._kind.__name__)
        if not _is_row(row):
            remedy = "give rows as tuples or lists, (1,) for one column"
            return Fault("is not a row", f"it is of type {type(row).__name__}", remedy)
        if len(row) == self._width:
            return None
        return Fault(
            f"has {counted(len(row), 'value')} where {self._width} are due",
            f"`{self._relation}` takes rows of {self._width}",
            "give every row all its values",
        )


class _Fielded(_Form):
    """Instances of one dataclass."""

    def __init__(self, kind: type, names: list[str]) -> None:
        self._kind, self._get = kind, [attrgetter(name) for name in names]

    def columns(self, chunk: list[Any]) -> Turned | None:
        if not all(issubclass(kind, self._kind) for kind in set(map(type, chunk))):
            return None
        return [list(map(get, chunk)) for get in self._get]

    def fault(self, row: Any) -> Fault | None:
        return None if isinstance(row, self._kind) else _other_kind(row, self._kind.__name__)


class _Keyed(_Form):
    """Mappings. Their keys are picked again where a chunk brings new ones, so that these are told or refused."""

    def __init__(self, staging: Staging, columns: Columns | None, source: str) -> None:
        self._relation = staging.schema
        self._names: dict[Any, None] = {}
        self._picked: list[Any] = []
        self._pick: Callable[[list[Any]], list[int]] = lambda names: staging.pick(
            columns, names, len(names), source, by_name=True
        )
        self._looked = False

    def columns(self, chunk: list[Any]) -> Turned | None:
        if not all(issubclass(kind, Mapping) for kind in set(map(type, chunk))):
            if not self._looked:
                self._look([row for row in chunk if isinstance(row, Mapping)])
            return None
        self._look(chunk)
        try:
            return [[row[name] for row in chunk] for name in self._picked]
        except KeyError:
            return None

    def _look(self, chunk: list[Any]) -> None:
        keys = dict.fromkeys(chain.from_iterable(chunk))
        if not self._looked or not keys.keys() <= self._names.keys():
            self._names |= keys
            self._looked = True
            names = list(self._names)
            self._picked = [names[i] for i in self._pick(names)]

    def fault(self, row: Any) -> Fault | None:
        if not isinstance(row, Mapping):
            return _other_kind(row, "mapping")
        missing = next((name for name in self._picked if name not in row), None)
        if missing is None:
            return None
        return Fault(
            f"has no `{missing}`", f"the rows are read by name into {self._relation}", "give every row all its values"
        )


def _other_kind(row: Any, first: str) -> Fault:
    return Fault(
        f"is {with_article(type(row).__name__)}, not {with_article(first)} as the first row is",
        "the first row says how all are read",
        "give rows of one kind",
    )


def _is_row(row: Any) -> bool:
    if isinstance(row, str | bytes | Mapping):
        return False
    return isinstance(row, Sequence) or (hasattr(row, "__len__") and getattr(row, "ndim", 0) == 1)
