"""Counts of any size as rows of int64: one row per pair and *limb*, 63 bits of the count.

    (place, src, dst, part)     count(src, dst) = sum over places of part * 2**(63 * place),  0 <= part < 2**63

A pair has rows at place 0 up to the place of its last limb that is not zero, so a count that an int64 holds is the one
row at place 0, and whether there is a larger one is whether anything is at place 1. The place comes first: what lies at
place 0 is all pairs, in order, with their counts if all of them fit. Key order REVERSE finds what leads to a node.

In arrays, counts are int64 where all of them fit and Python integers (dtype object) else; nothing here ever wraps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scantree.version import Version

Ints = npt.NDArray[np.int64]
# int64[n], or object[n] of Python integers.
Counts = npt.NDArray[Any]

BITS = 63
MOST = (1 << BITS) - 1
# The key order (place, dst, src, part).
REVERSE = (0, 2, 1, 3)


def narrowed(counts: Counts) -> Counts:
    """The same counts, as int64 if all of them fit."""
    if counts.dtype == np.int64 or (counts.size and int(counts.max()) > MOST):
        return counts
    return counts.astype(np.int64)


def widened(counts: Counts) -> Counts:
    """The same counts as Python integers."""
    return counts.astype(object)


def roomy(counts: Counts, terms: int) -> Counts:
    """The same counts, not empty, as Python integers if the sum of so many of them may not be an int64."""
    return widened(counts) if counts.dtype == np.int64 and int(counts.max()) * terms > MOST else counts


def products(column: Counts, row: Counts) -> Counts:
    """Every count of `column` [m] times every one of `row` [n], neither empty: [m, n]."""
    if column.dtype == row.dtype == np.int64 and int(column.max()) * int(row.max()) <= MOST:
        return np.multiply.outer(column, row)
    return np.multiply.outer(widened(column), widened(row))


def total(counts: Counts, more: Counts) -> Counts:
    """The sums of two arrays of one shape, neither empty."""
    if counts.dtype == more.dtype == np.int64 and int(counts.max()) + int(more.max()) <= MOST:
        return counts + more
    return widened(counts) + widened(more)


def rows_of(src: Ints, dst: Ints, counts: Counts) -> Ints:
    """The rows int64[4, n] of pairs with their positive counts; in key order if the pairs are."""
    place, chunks = 0, []
    while True:
        parts = counts if counts.dtype == np.int64 else (counts & MOST).astype(np.int64)
        chunks.append(np.stack([np.full(len(src), place, np.int64), src, dst, parts]))
        if counts.dtype == np.int64:
            break
        counts = counts >> BITS
        more = (counts > 0).astype(bool)
        if not more.any():
            break
        src, dst, counts, place = src[more], dst[more], counts[more], place + 1
    return np.concatenate(chunks, axis=1)


def places(version: Version) -> int:
    """How many places are in use, in either key order; 0 if there is no path."""
    found, end = 0, version.end()
    while version.seek([found]) < end:
        found += 1
    return found


def under(version: Version, node: int) -> tuple[Ints, Counts]:
    """The other ends of the paths at `node`, in order, and their counts.

    `version` in declared order has the paths from `node`, in order REVERSE those to it.
    """
    found = version.rows_under(np.array([[0], [node]]))
    others, counts = found[2], found[3]
    for place in range(1, places(version)):
        found = version.rows_under(np.array([[place], [node]]))
        if found.shape[1]:
            counts = widened(counts)
            counts[np.searchsorted(others, found[2])] += widened(found[3]) << BITS * place
    return others, counts


def between(version: Version, src: Ints, dst: Ints) -> Counts:
    """The count of every pair of `src` [m] and `dst` [n], both in order and without repeats: [m * n], 0 for no path."""
    counts: Counts = np.zeros(len(src) * len(dst), np.int64)
    pairs = np.stack([np.zeros_like(counts), np.repeat(src, len(dst)), np.tile(dst, len(src))])
    for place in range(places(version)):
        pairs[0] = place
        found = version.rows_under(pairs)
        at = np.searchsorted(src, found[1]) * len(dst) + np.searchsorted(dst, found[2])
        if place == 0:
            counts[at] = found[3]
        elif len(at):
            counts = widened(counts)
            counts[at] += widened(found[3]) << BITS * place
    return counts


def everything(version: Version) -> tuple[Ints, Ints, Counts]:
    """All pairs in order, and their counts: src, dst, counts."""
    end = version.seek([1])
    found = version.columns(version.begin(), end)
    src, dst, counts = found[1], found[2], found[3]
    rest = version.columns(end, version.end())
    if rest.shape[1]:
        counts = widened(counts)
        where = {pair: i for i, pair in enumerate(zip(src.tolist(), dst.tolist(), strict=True))}
        for place, a, b, part in rest.T.tolist():
            counts[where[a, b]] += part << BITS * place
    return src, dst, counts
