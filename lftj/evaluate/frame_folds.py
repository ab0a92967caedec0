"""Folds over the frames of window functions: what each row has of the values in its frame.

    rows        4  7  1  3  8  2          in the order of the window
    frames      [low, high) of each row (`lftj/evaluate/window_values.py`)

Counts, and sums and means of integers, are the difference of two running sums; the others take one pass along the
frames (lftj/join/frames.py). Null is in no fold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.accumulators import BITS, LOW, quotients
from lftj.evaluate.first_of_order import comparable
from lftj.evaluate.quantiles import Quantile
from lftj.evaluate.variances import VARIANCES
from lftj.join.frames import (
    best_of_frames,
    distinct_in_frames,
    modes_of_frames,
    ranked_in_frames,
    sums_of_frames,
)
from lftj.language.aggregate_specs import fraction_of, word_of
from lftj.language.types import DECIMAL, FLOAT, scale_of
from lftj.language.window_functions import DISTINCT
from lftj.values.codes import encode_float
from lftj.values.decimal_type import DIGITS
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import family_of, is_nullable, null_rows, storage_of, type_of, without_null
from scantree.version import Rows

Marks = npt.NDArray[np.bool_]


class WindowColumn(NamedTuple):
    """A column of the rows in order: its `codes` int64[n] and its type."""

    codes: Rows
    type: str
    symbols: SymbolTable

    @property
    def present(self) -> Marks:
        """Where it is not null."""
        null = null_rows(self.codes, self.type)
        return np.ones(len(self.codes), np.bool_) if null is None else ~null

    def given_out(self, found: Rows, there: Marks, null: int) -> Rows:
        """Values that were `found`, and null's code where none is `there`; one that has this code is refused."""
        if not is_nullable(self.type) and ((found == null) & there).any():
            raise EvaluationError(
                f"{type_of(self.type).shown(null)} does not fit into a column that admits null",
                why="it is the code of null there, and the value of a window may be null; nothing was changed",
                remedy="exclude such rows",
            )
        return np.where(there, found, null)

    def numbered(self) -> tuple[Rows, Rows]:
        """(the numbers int64[n] of its values in their order, equal ones with equal numbers; the codes of each)."""
        ranks = comparable(self.codes, self.type, self.symbols)
        _, first, numbers = np.unique(ranks, return_index=True, return_inverse=True)
        return numbers, self.codes[first]


class WindowFrames(NamedTuple):
    """The frames [low, high) int64[n] of the rows."""

    low: Rows
    high: Rows

    def sums(self, numbers: Rows) -> Rows:
        """The sum of the numbers in each frame."""
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers)])
        found: Rows = running[self.high] - running[self.low]
        return found


def folded(name: str, value: WindowColumn | None, frames: WindowFrames, null: int) -> Rows:
    """The codes int64[n] of a fold of each frame. `null`: what stands for a value that is not there.

    Raises `EvaluationError` where a sum or a variance has no value, or a value has the code of null.
    """
    if value is None:
        return frames.high - frames.low
    present, least = value.present, 1
    if name == DISTINCT:
        return distinct_in_frames(value.numbered()[0], present, *frames)
    many = frames.sums(present.astype(np.int64))
    match word_of(name):
        case "count":
            return many
        case "sum" | "mean":
            found = (_sums if name == "sum" else _means)(value, present, frames, np.maximum(many, 1))
            if ((found == null) & (many > 0)).any():  # a sum that is the code of null
                raise _beyond()
        case "min" | "max":
            ranks = comparable(value.codes, value.type, value.symbols)
            best = best_of_frames(ranks, present, *frames, last=name == "max")
            return value.given_out(value.codes[best], many > 0, null)
        case "mode":
            numbers, codes = value.numbered()
            return value.given_out(codes[modes_of_frames(numbers, present, *frames)], many > 0, null)
        case "quantile_cont" | "quantile_disc" as word:
            quantile = Quantile(word == "quantile_cont", fraction_of(name))
            lower, upper, rest = quantile.ranks(np.maximum(many, 1))
            numbers, codes = value.numbered()
            lower, upper = codes[ranked_in_frames(numbers, present, *frames, np.stack([lower, upper]))]
            found = quantile.results(lower, upper, rest, without_null(value.type))
            if not quantile.between:
                return value.given_out(found, many > 0, null)
        case _:
            variance, storage = VARIANCES[name], storage_of(value.type)
            found, without = variance.of_frames(value.codes, value.type, storage, present, *frames, many)
            least += variance.sample
            if without.any():
                raise EvaluationError(
                    f"`{name}` over a window has no value",
                    why="a value is infinite, or it is beyond the largest double; nothing was changed",
                    remedy="leave such values out by `filter (where ...)`",
                )
    return np.where(many >= least, found, null)


def _sums(value: WindowColumn, present: Marks, frames: WindowFrames, many: Rows) -> Rows:
    """The codes of the sums of what is `present` in each frame."""
    if family_of(value.type) == FLOAT:
        return _rounded(value, present, frames, np.ones_like(many))
    upper, lower = _halves(np.where(present, value.codes, 0), frames)
    if len(upper) and (upper.min() < -(1 << 31) or upper.max() >= 1 << 31):
        raise _beyond()
    found: Rows = (upper << BITS) | lower
    if family_of(value.type) == DECIMAL and (np.abs(found) >= 10**DIGITS).any():
        raise _beyond()
    return found


def _means(value: WindowColumn, present: Marks, frames: WindowFrames, many: Rows) -> Rows:
    """The codes of the exact means, as floats, of the `many` values (1 of none) that are `present` in each frame."""
    if family_of(value.type) == FLOAT:
        return _rounded(value, present, frames, many)
    upper, lower = _halves(np.where(present, value.codes, 0), frames)
    return encode_float(quotients(upper, lower, many, 10 ** scale_of(value.type)))


def _rounded(value: WindowColumn, present: Marks, frames: WindowFrames, counts: Rows) -> Rows:
    """The exact sums of floats, each divided by a count and rounded once."""
    found = sums_of_frames(value.codes, present, *frames, counts)
    if found is None:
        raise _beyond()
    return found


def _halves(codes: Rows, frames: WindowFrames) -> tuple[Rows, Rows]:
    """Sums of 64-bit numbers as upper * 2^32 + lower, 0 <= lower < 2^32, so that one that leaves 64 bits is seen."""
    lower = frames.sums(codes & LOW)
    return frames.sums(codes >> BITS) + (lower >> BITS), lower & LOW


def _beyond() -> EvaluationError:
    return EvaluationError(
        "a sum over a window has no value",
        why="it leaves the range of its type; nothing was changed",
        remedy="sum smaller values, or doubles instead of whole numbers",
    )
