"""Sums of rows whose weights are large, by Python's integers: exact, whatever the weights.

What accumulators.py adds up in int64 is exact for weights that sum up to less than 2**31. Beyond `WIDE`, the sums of a
change are made here, in the same words:

    integers   total = over * 2**94 + high * 2**32 + low, -2**61 <= high < 2**61; `over` is kept apart, unless 0
    floats     total * 2**1074 = sum of piece * 2**(32 * segment)       each piece below 2**32 in magnitude

Pieces grow with every change, so that those of a group are made small again when they could leave int64 next.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lftj.evaluate.accumulators import BITS, HIGH, LOW, LOWER, SIGN, Accumulators, Folding, Sums
from lftj.join.exactsum import DIGITS
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.types import scale_of
from lftj.streams.zsets import WeightOverflowError, Weights
from lftj.values.codes import decode_float, encode_float
from lftj.values.type_table import family_of, type_of
from scantree.consolidate import runs_of
from scantree.version import Rows, Version

# Weights of a change whose magnitudes sum up to less are summed in int64, where pieces then stay below LARGE.
WIDE = float(1 << 30)
LARGE = np.int64(1 << 62)
# Of the high word of an integer total.
OVER = 62
# A float is an integer times 2**-POINT.
POINT, MANTISSA = 1074, 53


def magnitude(weights: Weights) -> float:
    """The sum of the magnitudes of weights, about."""
    return float(np.abs(weights.astype(np.float64)).sum())


def without_over(high: Rows) -> tuple[Rows, Rows]:
    """(over, high) of high words int64[n]."""
    over = (high + (1 << (OVER - 1))) >> OVER
    return over, high - (over << OVER)


def wide_sums(folding: Folding, rows: Rows, weights: Weights) -> tuple[Sums, Rows]:
    """(`accumulators.sums_of` for sums and means of rows int64[groups + 1, m] with any weights, `over` of each)."""
    k = folding.groups
    groups, order, starts = runs_of(np.ascontiguousarray(rows[:k])) if k else (rows[:0], None, np.zeros(1, np.int64))
    operand = rows[k] if order is None else rows[k][order]
    weights = weights if order is None else weights[order]
    counts = np.add.reduceat(weights, starts)
    ends = np.append(starts[1:], len(weights))
    parts = [(operand[lo:hi], weights[lo:hi]) for lo, hi in zip(starts.tolist(), ends.tolist(), strict=True)]
    distinct, none = groups[:, starts], np.empty((k + 1, 0), np.int64)
    if folding.storage != "float":
        totals = [_integer_total(folding, *part) for part in parts]
        over = [((total >> BITS) + (1 << (OVER - 1))) >> OVER for total in totals]
        high = [(total >> BITS) - (most << OVER) for total, most in zip(totals, over, strict=True)]
        values = np.array([counts.tolist(), high, [total & LOW for total in totals]], np.int64)
        return Sums(distinct, values, none, none[0]), np.array(over, np.int64)
    infinities = [[int(w[of == sign].sum()) for sign in (np.inf, -np.inf)] for of, w in _decoded(parts)]
    pieces = [(i, *piece) for i, (of, w) in enumerate(_decoded(parts)) for piece in _pieces(_float_total(of, w))]
    at, segments, sums = np.array(pieces, np.int64).reshape(-1, 3).T.copy()
    values = np.vstack([counts, np.array(infinities, np.int64).T])
    return Sums(distinct, values, np.vstack([distinct[:, at], segments]), sums), np.zeros(len(parts), np.int64)


def small_pieces(before: Accumulators, sums: Sums) -> Sums:
    """What adds as much to float accumulators as `sums`, and leaves no piece that the next change could take too far.

    Pieces that are there, and those of `sums`, are below `LARGE`.
    """
    version = before.segments
    assert version is not None
    after = version.values_of(sums.segments)[0] + sums.pieces
    large = np.abs(after) >= LARGE
    if not large.any():
        return sums
    k = before.folding.groups
    wanted, _, starts = (
        runs_of(np.ascontiguousarray(sums.segments[:k, large])) if k else (sums.segments[:0, :1], None, [0])
    )
    segments, pieces = [], []
    there = np.zeros(sums.segments.shape[1], np.bool_)
    for group in wanted[:, starts].T:
        own = (sums.segments[:k] == group[:, None]).all(axis=0)
        there |= own
        kept = _segments_under(version, group)
        total = _integer_of(kept[k], kept[k + 1]) + _integer_of(sums.segments[k, own], sums.pieces[own])
        made = dict(_pieces(total))
        for segment, piece in zip(kept[k].tolist(), kept[k + 1].tolist(), strict=True):
            made[segment] = made.get(segment, 0) - piece
        for segment in sorted(made):
            segments.append([*group.tolist(), segment])
            pieces.append(made[segment])
    rows = np.hstack([np.compress(~there, sums.segments, axis=1), np.array(segments, np.int64).T])
    order = np.lexsort(rows[::-1])
    return sums._replace(
        segments=np.ascontiguousarray(rows[:, order]),
        pieces=np.concatenate([sums.pieces[~there], np.array(pieces, np.int64)])[order],
    )


def wide_mean(accumulators: Accumulators, key: Rows, count: int, values: Rows, over: int) -> int | None:
    """The code of the mean of a key int64[k] of any `count`, with its values int64[3] in the table; None without one.

    Of floats, the values say how often inf and -inf are there, neither below zero.
    """
    folding = accumulators.folding
    if folding.storage != "float":
        total = (((over << OVER) + int(values[HIGH])) << BITS) + int(values[LOWER])
        if family_of(folding.operand) in AGGREGATES["mean"].keeps:
            nearest, made = round(Fraction(total, count)), type_of(folding.operand)
            return nearest if made.low <= nearest <= made.high else None
        mean = total / (count * 10 ** scale_of(folding.operand))
    elif values[HIGH] and values[LOWER]:
        return None
    elif values[HIGH] or values[LOWER]:
        mean = math.copysign(math.inf, count if values[HIGH] else -count)
    else:
        assert accumulators.segments is not None
        kept, k = _segments_under(accumulators.segments, key), len(key)
        try:
            mean = _integer_of(kept[k], kept[k + 1]) / (count << POINT)
        except OverflowError:
            return None
    # A mean may round to zero, which has no sign.
    return int(encode_float(np.array([mean + 0.0]))[0])


def _segments_under(version: Version, group: Rows) -> Rows:
    """The rows (group..., segment, piece) of a group."""
    if len(group):
        return version.matches(np.ascontiguousarray(group[:, None]))[0]
    return version.columns()


def _integer_total(folding: Folding, codes: Rows, weights: Weights) -> int:
    if folding.storage == "unsigned":
        codes = codes ^ SIGN
        return sum(w * (v & ((1 << 64) - 1)) for v, w in zip(codes.tolist(), weights.tolist(), strict=True))
    return sum(w * v for v, w in zip(codes.tolist(), weights.tolist(), strict=True))


def _decoded(parts: list[tuple[Rows, Weights]]) -> list[tuple[npt.NDArray[np.float64], Weights]]:
    return [(decode_float(codes), weights) for codes, weights in parts]


def _float_total(values: npt.NDArray[np.float64], weights: Weights) -> int:
    """The sum of finite values, as a multiple of 2**-POINT."""
    total = 0
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        if math.isfinite(value):
            fraction, exponent = math.frexp(value)
            shift = exponent - MANTISSA + POINT
            scaled = int(math.ldexp(fraction, MANTISSA))
            total += weight * (scaled << shift if shift >= 0 else scaled >> -shift)
    return total


def _integer_of(segments: Rows, pieces: Rows) -> int:
    """The integer that pieces of segments stand for."""
    return sum(piece << (BITS * segment) for segment, piece in zip(segments.tolist(), pieces.tolist(), strict=True))


def _pieces(total: int) -> list[tuple[int, int]]:
    """The segments of an integer that are not zero, with their pieces."""
    sign, rest, found, segment = (-1 if total < 0 else 1), abs(total), [], 0
    while rest:
        if segment == DIGITS:
            raise WeightOverflowError
        if rest & LOW:
            found.append((segment, sign * (rest & LOW)))
        rest, segment = rest >> BITS, segment + 1
    return found
