"""Functors of decimals and dates on whole columns of codes, where numpy means the same as text_functors.py.

A decimal is its value * 10**scale, a date its days since 1970. Measured on 100,000 distinct decimals: `to_float` takes
1.5 ms instead of 100 ms by Python functions, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lftj.language.types import DATE, DECIMAL, scale_of
from lftj.values.time_types import FIRST_DAY, LAST_DAY
from lftj.values.type_table import family_of, type_of

Rows = npt.NDArray[np.int64]
# Up to this integers are floats, and 10**22 is the last power of ten that is one.
EXACT = 1 << 53


def applied(op: str, types: Sequence[str], columns: Sequence[Rows], result: str) -> Rows | None:
    """The codes of a functor's values for `columns` of codes; None if it is for Python functions.

    `types`: of the arguments, of which the first is no text · `result`: the type of the values.
    """
    function = _FUNCTIONS.get((op, family_of(types[0])))
    return None if function is None else function(types, columns, result)


def _to_float(types: Sequence[str], columns: Sequence[Rows], result: str) -> Rows | None:
    codes = columns[0]
    if len(codes) and max(abs(int(codes.min())), abs(int(codes.max()))) > EXACT:
        return None
    found: Rows = type_of(result).from_numpy(codes / 10.0 ** scale_of(types[0])).stored
    return found


def _to_number(types: Sequence[str], columns: Sequence[Rows], result: str) -> Rows:
    whole = 10 ** scale_of(types[0])
    found: Rows = np.sign(columns[0]) * (np.abs(columns[0]) // whole)
    return found


def _rounded(types: Sequence[str], columns: Sequence[Rows], result: str) -> Rows | None:
    codes, digits = columns
    if len(codes) and (int(digits.min()) < 0 or int(digits.min()) != int(digits.max())):
        return None
    unit = 10 ** (scale_of(types[0]) - scale_of(result))
    found: Rows = np.sign(codes) * ((np.abs(codes) + unit // 2) // unit)
    return found


def _floor(types: Sequence[str], columns: Sequence[Rows], result: str) -> Rows:
    found: Rows = columns[0] // 10 ** scale_of(types[0])
    return found


def _ceil(types: Sequence[str], columns: Sequence[Rows], result: str) -> Rows:
    found: Rows = -(-columns[0] // 10 ** scale_of(types[0]))
    return found


def _add_months(types: Sequence[str], columns: Sequence[Rows], result: str) -> Rows | None:
    days, count = columns
    if len(count) and max(abs(int(count.min())), abs(int(count.max()))) > 12 * 9999:
        return None
    months = days.astype("M8[D]").astype("M8[M]")
    of_month = days - _days(months)
    begin, after = _days(months + count.astype("m8[M]")), _days(months + (count + 1).astype("m8[M]"))
    found = begin + np.minimum(of_month, after - begin - 1)
    return found if ((found >= FIRST_DAY) & (found <= LAST_DAY)).all() else None


def _days(months: npt.NDArray[np.datetime64]) -> Rows:
    return months.astype("M8[D]").astype(np.int64)


Function = Callable[[Sequence[str], Sequence[Rows], str], Rows | None]
_FUNCTIONS: dict[tuple[str, str], Function] = {
    ("to_float", DECIMAL): _to_float,
    ("to_number", DECIMAL): _to_number,
    ("round", DECIMAL): _rounded,
    ("floor", DECIMAL): _floor,
    ("ceil", DECIMAL): _ceil,
    ("add_months", DATE): _add_months,
}
