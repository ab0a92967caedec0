"""Rows of internal relations that have no value, as the state holds them; undefined_groups.py finds them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.language.clause import Clause

Rows = npt.NDArray[np.int64]


class Refused(NamedTuple):
    """Rows of an internal relation without a value: `rows` int64[len(columns), n], distinct and in order.

    `columns`: those that are known; whatever the others hold is refused. `clause`: the aggregate whose groups they are,
    and for each whether it holds inf and -inf, `undefined` bool[n]; else `told`: the least error below.
    """

    columns: tuple[int, ...]
    rows: Rows
    clause: Clause | None
    undefined: npt.NDArray[np.bool_]
    told: tuple[str, str, str, str] = ("", "", "", "")

    def equals(self, other: Refused) -> bool:
        """Whether the same rows are refused for the same reasons."""
        return (self.columns, self.clause, self.told) == (other.columns, other.clause, other.told) and (
            np.array_equal(self.rows, other.rows) and np.array_equal(self.undefined, other.undefined)
        )


def groups_of(refused: tuple[Refused, ...]) -> tuple[Refused, ...]:
    """Those of a head's refused rows that are groups of its own aggregate."""
    return tuple(one for one in refused if one.clause is not None)


def alike(these: tuple[Refused, ...], others: tuple[Refused, ...]) -> bool:
    """Whether the same is refused."""
    return len(these) == len(others) and all(a.equals(b) for a, b in zip(these, others, strict=True))
