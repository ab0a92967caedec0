"""Rows of internal relations that have no value, as the state holds them; undefined_groups.py finds them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.language.clause import Clause

Rows = npt.NDArray[np.int64]


class UndefinedRows(NamedTuple):
    """Rows of an internal relation without a value: `rows` int64[len(columns), n], distinct and in order.

    `columns`: those that are known; every value of the others is undefined. `clause`: the aggregate whose groups they
    are, and for each whether it holds inf and -inf, `undefined` bool[n]; else `error`: the least error below.
    """

    columns: tuple[int, ...]
    rows: Rows
    clause: Clause | None
    undefined: npt.NDArray[np.bool_]
    error: tuple[str, str, str, str] = ("", "", "", "")

    def equals(self, other: UndefinedRows) -> bool:
        """Whether the same rows are undefined for the same reasons."""
        return (self.columns, self.clause, self.error) == (other.columns, other.clause, other.error) and (
            np.array_equal(self.rows, other.rows) and np.array_equal(self.undefined, other.undefined)
        )


def groups_of(undefined: tuple[UndefinedRows, ...]) -> tuple[UndefinedRows, ...]:
    """The undefined rows of a head that are groups of its own aggregate."""
    return tuple(one for one in undefined if one.clause is not None)


def alike(these: tuple[UndefinedRows, ...], others: tuple[UndefinedRows, ...]) -> bool:
    """Whether the same rows are undefined."""
    return len(these) == len(others) and all(a.equals(b) for a, b in zip(these, others, strict=True))
