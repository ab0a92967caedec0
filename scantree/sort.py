"""Sorting rows: columns in any order become distinct rows in key order.

All key columns of a row are packed into one uint64 wherever their ranges allow, and that array is sorted by its digits
(radix_sort.py), which takes a tenth of `numpy.lexsort`; of wider rows the first bits are, as many as fit, and the
rows that those leave alike are sorted by the others (60,000 rows of 16 columns: 0.8 ms, by lexsort 70; a million of a
group and a float: an eighth of lexsort's time, `make bench-micro`). Columns already in order (files often are) are
recognised in one pass and not sorted. Packing and unpacking are one pass each: done column by column in numpy they take
many times as long as the sort between them.

Every thread keeps the words it packs into, up to `KEPT`, for its next sort: memory that went back to the system is
cleared when it comes again, and a virtual machine may have to get it from its host anew.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel, move
from scantree.radix_sort import sort_words

Column = npt.NDArray[np.int64]
Packed = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]

# Up to so many rows each is put in its place among those before it: packing takes longer than it saves.
FEW = 256
# Words that a thread keeps at most: 8 MB. More of them are in the way where memory is short, and save no time (closure
# of wiki-Vote: 40.2 bytes a row at the peak with 32 MB, 37.6 with these).
KEPT = 1 << 20
# Bits for each of the places of rows: of twice as many mostly no two rows are alike.
ENOUGH = 2
_kept = threading.local()


@kernel
def order_of(columns):
    """2 if the rows of `columns` int64[k, n] are strictly ascending, 1 if ascending with repeats, 0 otherwise."""
    k, n = columns.shape
    verdict = 2
    for i in range(1, n):
        relation = 0
        for c in range(k):
            if columns[c, i] != columns[c, i - 1]:
                relation = 1 if columns[c, i] > columns[c, i - 1] else -1
                break
        if relation < 0:
            return 0
        if relation == 0:
            verdict = 1
    return verdict


@kernel
def order_few(columns, order):
    """Write to `order` int64[n] what sorts the rows of `columns` int64[k, n], equal ones as given; whether some are."""
    k, n = columns.shape
    repeats = False
    for i in range(n):
        low, high = 0, i
        while low < high:
            middle, relation = (low + high) >> 1, 0
            for c in range(k):
                if columns[c, i] != columns[c, order[middle]]:
                    relation = 1 if columns[c, i] > columns[c, order[middle]] else -1
                    break
            repeats |= relation == 0
            if relation < 0:
                high = middle
            else:
                low = middle + 1
        move(order, low + 1, low, i - low)
        order[low] = i
    return repeats


@kernel
def last_of_equal(columns, keep):
    """`keep` bool[n]: whether row i is the last of its run of equal keys; `columns` int64[k, n] in key order."""
    k, n = columns.shape
    for i in range(n):
        keep[i] = True
        if i + 1 < n:
            equal = True
            for c in range(k):
                if columns[c, i] != columns[c, i + 1]:
                    equal = False
                    break
            keep[i] = not equal


@kernel
def leave_out(rows, others, left):
    """Set `left` bool[n] to False for those of `rows` int64[k, n] whose first columns are in `others` int64[<= k, m].

    Both are distinct and in the same order.
    """
    j = 0
    for i in range(rows.shape[1]):
        relation = -1
        while relation < 0 and j < others.shape[1]:
            relation = 0
            for c in range(len(others)):
                if others[c, j] != rows[c, i]:
                    relation = -1 if others[c, j] < rows[c, i] else 1
                    break
            j += relation < 0
        if relation == 0:
            left[i] = False
            j += 1


@kernel
def _in_one(gone, come, rows, kinds):
    """Write the rows that are in only one of `gone` int64[k, a] and `come` int64[k, b]; how many.

    Both are distinct and in order; so are `rows` int64[k, a + b] as far as they are written. `kinds` int8[a + b] is -1
    of those that are `gone`, 1 of those that `come`.
    """
    i, j, n = 0, 0, 0
    while i < gone.shape[1] or j < come.shape[1]:
        relation = -1 if j == come.shape[1] else int(i == gone.shape[1])
        for c in range(len(rows)):
            if relation != 0:
                break
            if gone[c, i] != come[c, j]:
                relation = -1 if gone[c, i] < come[c, j] else 1
        if relation < 0:
            for c in range(len(rows)):
                rows[c, n] = gone[c, i]
            kinds[n] = -1
        elif relation > 0:
            for c in range(len(rows)):
                rows[c, n] = come[c, j]
            kinds[n] = 1
        n += relation != 0
        i += relation <= 0
        j += relation >= 0
    return n


@kernel
def _ranges(columns, low, high):
    """The least and the greatest value of each of `columns` int64[k, n], n > 0, to `low` and `high` int64[k]."""
    for c in range(len(columns)):
        least, most = columns[c, 0], columns[c, 0]
        for i in range(columns.shape[1]):
            least, most = min(least, columns[c, i]), max(most, columns[c, i])
        low[c], high[c] = least, most


def ranges(columns: Rows) -> tuple[Column, Column]:
    """The least and the greatest value of each of `columns` int64[k, n], n > 0: int64[k] each."""
    low, high = np.empty(len(columns), np.int64), np.empty(len(columns), np.int64)
    _ranges(columns, low, high)
    return low, high


@kernel
def pack_column(column, at, low, shift, packed):
    """Add the values of `column[at:]`, counted from `low`, to `packed` uint64[n] above `shift`."""
    start = np.uint64(at)
    for i in range(np.uint64(len(packed))):
        packed[i] |= np.uint64(column[start + i] - low) << np.uint64(shift)


@kernel
def _pack_slice(column, low, skipped, bits, shift, packed):
    """Add some `bits` of the values of `column` int64[n], counted from `low`, to `packed` uint64[n] above `shift`.

    They are those above the lowest `skipped` bits.
    """
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
    for i in range(np.uint64(len(packed))):
        packed[i] |= ((np.uint64(column[i] - low) >> np.uint64(skipped)) & mask) << np.uint64(shift)


@kernel
def _pack(columns, order, low, bits, packed):
    """Rows of `columns` int64[k, n] as `packed` uint64[n]: each value takes `bits` of its column, counted from `low`.

    `order` int64[k] numbers the columns from the highest down, as `low` and `bits` are given. Columns without bits are
    left out: shifting by all 64 is undefined.
    """
    for i in range(len(packed)):
        packed[i] = 0
    shift = 0
    for c in range(len(order) - 1, -1, -1):
        if bits[c] > 0:
            pack_column(columns[order[c]], 0, low[c], shift, packed)
            shift += bits[c]


@kernel
def _without_repeats(packed):
    """Move the different values of the sorted `packed` uint64[n], n > 0, to its front; how many there are."""
    n = 1
    for i in range(1, len(packed)):
        if packed[i] != packed[i - 1]:
            packed[n] = packed[i]
            n += 1
    return n


@kernel
def _run_lengths(packed, lengths):
    """As `_without_repeats`; and how often each value was there to `lengths` int64[>= how many there are]."""
    n, since = 1, 0
    for i in range(1, len(packed)):
        if packed[i] != packed[i - 1]:
            lengths[n - 1] = i - since
            packed[n] = packed[i]
            n, since = n + 1, i
    lengths[n - 1] = len(packed) - since
    return n


@kernel
def _alike(packed, place, alike):
    """Set `alike` bool[n] where a value of the sorted `packed` uint64[n] is as the one before it above bit `place`."""
    for i in range(1, len(packed)):
        alike[i] = packed[i] >> np.uint64(place) == packed[i - 1] >> np.uint64(place)


@kernel
def unpack_column(packed, low, bits, shift, column, at):
    """Write a column of `packed` uint64[n], of `bits` above `shift` and counted from `low`, to `column[at:]`."""
    to = np.uint64(at)
    if bits == 0:
        for i in range(np.uint64(len(packed))):
            column[to + i] = low
    else:
        mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
        for i in range(np.uint64(len(packed))):
            column[to + i] = np.int64((packed[i] >> np.uint64(shift)) & mask) + low


@kernel
def _unpack(packed, low, bits, columns):
    """The rows of `packed` uint64[n], as `_pack` packs them, to `columns` int64[k, n]."""
    shift = 0
    for c in range(len(columns) - 1, -1, -1):
        unpack_column(packed, low[c], bits[c], shift, columns[c], 0)
        shift += bits[c]


def widths_of(low: Column, high: Column) -> Column | None:
    """The bits of each column with values from `low` to `high`, if a whole row fits into 64 bits, else None."""
    bits = [(most - least).bit_length() for least, most in zip(low.tolist(), high.tolist(), strict=True)]
    return np.array(bits, np.int64) if sum(bits) <= 64 else None


def _bit_widths(*keys: Rows) -> tuple[Column, Column] | None:
    """(least values, bits) per column if a whole key fits into 64 bits, else None; `keys`: int64[k, n] each, n > 0."""
    low, high = np.empty(len(keys[0]), np.int64), np.empty(len(keys[0]), np.int64)
    _ranges(keys[0], low, high)
    for more in keys[1:]:
        least, most = np.empty_like(low), np.empty_like(high)
        _ranges(more, least, most)
        low, high = np.minimum(low, least), np.maximum(high, most)
    bits = widths_of(low, high)
    return None if bits is None else (low, bits)


def words_for(n: int) -> Packed:
    """Memory for `n` packed rows, uint64[n], of this thread until its next call."""
    if n > KEPT:
        return np.empty(n, np.uint64)
    held: Packed | None = getattr(_kept, "words", None)
    if held is None or len(held) < n:
        _kept.words = held = None  # not both at once
        _kept.words = held = np.empty(min(KEPT, n + n // 4), np.uint64)
    return held[:n]


def _distinct_words(packed: Packed, bits: Column) -> Packed:
    """The different ones of `packed` uint64[n], n > 0, in order."""
    sort_words(packed, int(bits.sum()))
    return packed[: int(_without_repeats(packed))]


def _unpacked(packed: Packed, low: Column, bits: Column) -> Rows:
    """The rows int64[k, n] of `packed` uint64[n]."""
    rows = np.empty((len(bits), len(packed)), np.int64)
    with np.errstate(over="ignore"):
        _unpack(packed, low, bits, rows)
    return rows


class _Slice(NamedTuple):
    """Some bits of the values of a column, counted from `low`: `bits` of them above the lowest `skipped`."""

    column: int
    low: int
    skipped: int
    bits: int


def _packed_order(columns: Rows, slices: Sequence[_Slice]) -> tuple[Column, npt.NDArray[np.bool_]]:
    """(the order int64[n] of rows `columns` int64[k, n], n > 0, by `slices`, whether each is like the one before).

    The latter bool[n + 1]. All bits of the slices and the place of a row fit into 64 bits together. Equal ones keep the
    order they are given in.
    """
    n = columns.shape[1]
    # Each has its place in the lowest bits: sorting them is several times faster than an argsort.
    place = shift = (n - 1).bit_length()
    packed = words_for(n)
    packed[:] = np.arange(n, dtype=np.uint64)
    with np.errstate(over="ignore"):  # where no kernels are compiled: differences wrap around
        for one in reversed(slices):
            if one.bits:
                _pack_slice(columns[one.column], *one[1:], shift, packed)
                shift += one.bits
    sort_words(packed, shift, rising=place)
    alike = np.zeros(n + 1, np.bool_)
    _alike(packed, place, alike)
    packed &= np.uint64((1 << place) - 1)
    return packed.astype(np.int64), alike  # the words are the next call's


def sorting(keys: Rows, by: Sequence[int] = ()) -> tuple[Column, bool]:
    """(the order int64[n] that sorts rows by `keys` int64[k, n], whether some are equal), n > 0.

    Equal ones keep the order they are given in. `by`: all columns, in the order in which they count; as they are
    without. As many of their bits as fit into a word are sorted by at a time, and only rows that are alike so far are
    by the next ones: of wide rows these are mostly few, and the last columns of others are never looked at.
    """
    n, columns = keys.shape[1], list(by or range(len(keys)))
    if n < FEW:
        order = np.empty(n, np.int64)
        return order, bool(order_few(np.ascontiguousarray(keys[columns]) if by else keys, order))
    low, high = [ends.tolist() for ends in ranges(keys)]
    left = [_Slice(c, low[c], 0, (high[c] - low[c]).bit_length()) for c in columns]
    place = (n - 1).bit_length()
    first, left = _that_fit(left, 64 - place, ENOUGH * place)
    order, alike = _packed_order(keys, first)
    tied = np.flatnonzero(alike[:-1] | alike[1:])
    same = alike[:-1][tied]  # whether each is like the one before it, as far as was sorted by
    while left and len(tied):
        rows, runs = order[tied], np.cumsum(~same)
        number, place = int(runs[-1]).bit_length(), (len(tied) - 1).bit_length()
        some, left = _that_fit(left, 64 - number - place, ENOUGH * place - number)
        part = np.empty((1 + len(some), len(tied)), np.int64)
        part[0] = runs
        for c, one in enumerate(some, 1):
            keys[one.column].take(rows, out=part[c], mode="clip")
        within, alike = _packed_order(
            part, [_Slice(0, 0, 0, number), *(one._replace(column=c) for c, one in enumerate(some, 1))]
        )
        same = alike[:-1]
        order[tied] = rows[within]
        again = same.copy()
        again[:-1] |= same[1:]
        tied, same = tied[again], same[again]
    return order, bool(len(tied))


def ordering(keys: Rows) -> Column | None:
    """What sorts rows by `keys` int64[k, n], equal ones as they are given, int64[n]; None if they are in order."""
    return None if keys.shape[1] < 2 or order_of(keys) else sorting(keys)[0]


def _that_fit(slices: Sequence[_Slice], room: int, enough: int) -> tuple[list[_Slice], list[_Slice]]:
    """(the first of the bits of `slices` that fit into `room` of them together, the others).

    A column that does not fit is parted, if what fits before it has less than `enough` bits.
    """
    fit, left = list[_Slice](), room
    for i, one in enumerate(slices):
        if one.bits > left:
            first = min(left, enough - (room - left))
            if first <= 0:
                return fit, [*slices[i:]]
            rest = one.bits - first
            return [*fit, one._replace(skipped=rest, bits=first)], [one._replace(bits=rest), *slices[i + 1 :]]
        fit.append(one)
        left -= one.bits
    return fit, []


def sort_rows(columns: Sequence[Column] | Rows, keys: int) -> Rows:
    """Rows in key order, one per key (the last given wins), as int64[cols, n].

    `columns`: equally long int64 columns, the first `keys` of them keys. An array int64[cols, n] is returned itself if
    it is in order.
    """
    rows = np.ascontiguousarray(columns, np.int64) if len(columns) else np.empty((0, 0), np.int64)
    n = rows.shape[1]
    if n < 2 or keys == 0:
        return rows if keys else np.ascontiguousarray(rows[:, max(0, n - 1) :])
    state = order_of(rows[:keys])
    if state == 2:
        return rows
    if state == 0:
        packing = _bit_widths(rows) if keys == len(rows) and n >= FEW else None
        if packing is not None:
            packed = words_for(n)
            with np.errstate(over="ignore"):  # where no kernels are compiled: differences wrap around
                _pack(rows, np.arange(keys), *packing, packed)
            return _unpacked(_distinct_words(packed, packing[1]), *packing)
        order, repeats = sorting(rows[:keys])
        rows = np.take(rows, order, axis=1)  # `rows[:, order]` would lay the columns out across
        if not repeats:
            return rows
    keep = np.empty(n, np.bool_)
    last_of_equal(rows[:keys], keep)
    return rows if keep.all() else np.compress(keep, rows, axis=1)


def permuted(rows: Rows, order: tuple[int, ...]) -> Rows:
    """The distinct `rows` int64[k, n] with their columns permuted by `order`, in that key order."""
    packing = _bit_widths(rows) if rows.shape[1] >= FEW else None
    if packing is None:
        return sort_rows([rows[c] for c in order], len(order))
    low, bits = packing
    columns, packed = np.array(order), words_for(rows.shape[1])
    with np.errstate(over="ignore"):  # where no kernels are compiled: differences wrap around
        _pack(rows, columns, low[columns], bits[columns], packed)
    return _unpacked(_distinct_words(packed, bits), low[columns], bits[columns])


def _sorted_words(chunks: list[Rows]) -> tuple[Packed, Column, Column] | None:
    """(all rows of `chunks` int64[k, n] as sorted words, with repeats, the least value and the bits of each column).

    The words are this thread's until it sorts again. None where rows are few, in order, or do not fit into words: the
    list has only chunks with rows then (or one), as kernels take them. Else it is emptied on the way, so that chunks
    and words are not there in full at once.
    """
    given = [chunk for chunk in chunks if chunk.shape[1]] or chunks[:1]
    for c, chunk in enumerate(given):
        if not (chunk.flags.c_contiguous and chunk.flags.writeable):  # kernels would be compiled anew
            given[c] = chunk.copy()
    chunks[:] = given
    n = sum([chunk.shape[1] for chunk in given])
    packing = None if n < max(1, FEW) or _in_order(given) else _bit_widths(*given)
    if packing is None:
        return None
    chunks.clear()
    packed, at = words_for(n), 0
    with np.errstate(over="ignore"):  # where no kernels are compiled: differences wrap around
        while given:
            chunk = given.pop(0)
            _pack(chunk, np.arange(len(chunk)), *packing, packed[at : at + chunk.shape[1]])
            at += chunk.shape[1]
    sort_words(packed, int(packing[1].sum()))
    return packed, *packing


def packed_chunks(chunks: list[Rows]) -> tuple[Packed, Column, Column] | None:
    """(the distinct rows of all `chunks` int64[k, n] as sorted words, the least value and the bits of each column).

    As `_sorted_words`, and None where that is.
    """
    found = _sorted_words(chunks)
    if found is None:
        return None
    packed, low, bits = found
    return packed[: int(_without_repeats(packed))], low, bits


def count_chunks(chunks: list[Rows]) -> Rows | None:
    """The distinct rows of all `chunks` int64[k, n] in order, each with how often it is there: int64[k + 1, m].

    None where `packed_chunks` is.
    """
    found = _sorted_words(chunks)
    if found is None:
        return None
    packed, low, bits = found
    lengths = np.empty(len(packed), np.int64)
    n = int(_run_lengths(packed, lengths))
    rows = np.empty((len(bits) + 1, n), np.int64)
    with np.errstate(over="ignore"):
        _unpack(packed[:n], low, bits, rows[:-1])
    rows[-1] = lengths[:n]
    return rows


def sort_chunks(chunks: list[Rows]) -> Rows:
    """The distinct rows of all `chunks` int64[k, n], k > 0, in order. The list is emptied.

    One chunk that is in order is returned itself.
    """
    found = packed_chunks(chunks)
    return sort_unpacked(chunks) if found is None else _unpacked(*found)


def sort_unpacked(chunks: list[Rows]) -> Rows:
    """The distinct rows of `chunks` that `packed_chunks` did not pack, in order. The list is emptied."""
    rows = chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
    chunks.clear()
    return sort_rows(rows, len(rows))


def _in_order(chunks: Sequence[Rows]) -> bool:
    """Whether the rows of all chunks, one behind the other, are in order."""
    ends = [(chunk[:, 0].tolist(), chunk[:, -1].tolist()) for chunk in chunks]
    apart = all(before[1] <= after[0] for before, after in pairwise(ends))
    return apart and all(order_of(chunk) != 0 for chunk in chunks)


def in_one(gone: Rows, come: Rows) -> tuple[Rows, npt.NDArray[np.int8]]:
    """The rows that are in only one of `gone` int64[k, a] and `come` int64[k, b], and of which: int8[n], -1 or 1.

    All are distinct and in order; those that are given are contiguous, as the functions above make them.
    """
    total = gone.shape[1] + come.shape[1]
    rows, kinds = np.empty((len(gone), total), np.int64), np.empty(total, np.int8)
    n = int(_in_one(gone, come, rows, kinds))
    return np.ascontiguousarray(rows[:, :n]), kinds[:n]
