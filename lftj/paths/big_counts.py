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
    if counts.dtype == np.int64 or (counts.size and max(int(counts.max()), -int(counts.min())) > MOST):
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


def sum_of(counts: Counts, more: Counts) -> Counts:
    """The sums of two arrays of one shape; `more` may be negative."""
    if counts.dtype == more.dtype == np.int64 and (not counts.size or int(counts.max()) + int(more.max()) <= MOST):
        return counts + more
    return widened(counts) + widened(more)


def summed(parts: list[tuple[Ints, Counts]]) -> tuple[Ints, Counts]:
    """Signed counts by key, summed: keys in order, those whose sum is 0 left out."""
    keys = np.concatenate([key for key, _ in parts])
    counts = np.concatenate([count for _, count in parts])
    if counts.dtype == np.int64 and sum(int(np.abs(count).max()) for _, count in parts if count.size) > MOST:
        counts = widened(counts)
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else order
    sums = narrowed(np.add.reduceat(counts, starts)) if len(keys) else counts
    kept = (sums != 0).astype(bool)
    return keys[starts][kept], sums[kept]


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
    """The counts of pairs (src, dst), in order and without repeats; 0 for no path."""
    counts: Counts = np.zeros(len(src), np.int64)
    pairs = np.stack([counts, src, dst])
    sources, targets = np.unique(src), np.unique(dst)
    keys = np.searchsorted(sources, src) * len(targets) + np.searchsorted(targets, dst)
    for place in range(places(version)):
        pairs[0] = place
        found = version.rows_under(pairs)
        there = np.searchsorted(sources, found[1]) * len(targets) + np.searchsorted(targets, found[2])
        at = np.searchsorted(keys, there)
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
