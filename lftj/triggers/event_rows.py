"""Events as users write them, (+1 or -1, relation, row), as the kinds and rows of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from lftj.arguments import refused
from lftj.errors import DataError
from lftj.values.schema import Schema

Ints = npt.NDArray[np.int64]
_FORM = 'write an event as `(+1, "R", (1, 10))`, or with -1 for a row that goes'
_WORDS = range(-(2**63), 2**63)


def event_rows(
    events: Iterable[object], relations: Mapping[str, Schema], kinds: Mapping[tuple[int, str], int], width: int
) -> tuple[Ints, Ints]:
    """(kinds int64[n], rows int64[n, width]) of events on `relations`. Raises DataError at the first that is none."""
    if not isinstance(events, Iterable):
        raise refused("events", events, "events are taken one after the other", "give a list of them")
    numbers, rows = [], []
    for at, event in enumerate(events):
        sign, name, row = _parts(at, event)
        if name not in relations:
            known = ", ".join(f"`{each}`" for each in relations)
            raise _wrong(
                at, f"`{name}` is no relation of the program", f"its relations are {known}", "name one of them"
            )
        if sign not in (1, -1):
            raise _wrong(at, f"{sign!r} is no sign", "a row comes (+1) or goes (-1)", _FORM)
        arity = relations[name].arity
        if len(row) != arity:
            raise _wrong(at, f"`{name}` has {arity} columns, the row {len(row)} values", "each column has one", _FORM)
        for value in row:
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or int(value) not in _WORDS:
                why = "maps are of 64-bit integers; a database makes such codes of texts and other values"
                raise _wrong(at, f"{value!r} is no 64-bit integer", why, "sum it by a rule in a `lftj.Database`")
        numbers.append(kinds[sign, name])
        rows.append((*row, *[0] * (width - arity)))
    return np.array(numbers, np.int64), np.array(rows, np.int64).reshape(len(rows), width)


def _parts(at: int, event: object) -> tuple[int, str, tuple[object, ...]]:
    """Sign, relation and row of an event."""
    match event:
        case (int(sign), str(name), tuple() | list() as row):
            return sign, name, tuple(row)
    raise _wrong(at, f"{event!r} is no event", "an event is a sign, the name of a relation, and a row", _FORM)


def _wrong(at: int, what: str, why: str, remedy: str) -> DataError:
    return DataError(what, where=f"event {at}", why=f"{why}; nothing was changed", remedy=remedy)
