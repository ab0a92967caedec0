"""The step of a clause that computes texts: functors over texts, applied column by column.

A clause that no kernel can run is split in two (text_split.py). Between its parts, each distinct combination of
arguments is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.term_columns import NOTHING_GIVEN, TermColumns
from lftj.program.text_split import TextSplit
from lftj.values.symbols import SymbolTable

Rows = npt.NDArray[np.int64]


class Stepped(NamedTuple):
    """What the step of a split makes of rows of its inner part.

    `rows` int64[columns of the intermediate relation, size]; `undefined`: whether a row had a term without a value.
    """

    rows: Rows
    size: int
    undefined: bool


def step(
    split: TextSplit, rows: Rows, count: int, symbols: SymbolTable, given: Mapping[str, int] = NOTHING_GIVEN
) -> Stepped:
    """Map `count` rows int64[inner's columns, count] of the inner part through the definitions and filters.

    A function of each row, which it keeps: distinct rows give distinct rows. `given`: the codes of parameters.
    """
    names = split.schema.names
    columns = TermColumns(dict(zip(names[: len(rows)], rows, strict=True)), count, symbols, given)
    for variable, term in split.definitions:
        columns.columns[variable.name] = columns.codes(term)
        columns.take(np.ones(columns.count, np.bool_))
    for condition in split.filters:
        columns.take(columns.holds(condition))
    stacked = np.stack([columns.columns[n] for n in names]) if names else np.empty((0, columns.count), np.int64)
    return Stepped(stacked, columns.count, columns.undefined)
