"""Radix sort of words: the packed rows of `sort.py`, put in order digit by digit.

Words are spread by their lowest digit, then by the next, and so on: a pass keeps the order of words whose digits are
equal, so that the last one leaves all in order (LSD radix sort; Knuth, TAOCP 5.2.5). Passes are as many as the bits
need. More words than a thread keeps room for (`ROOM`, which fits into a core's own cache) are first parted in place by
their highest digit (American flag sort; McIlroy, Bostic and McIlroy 1993) until the parts fit.

Beside `numpy.sort`, which compares: 60,000 words of 44 bits 0.5 ms for 2.1, a million 17 ms for 51 (`make
bench-micro`). Up to a thousand it takes less, as its vectors hold them.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

# Words of which a thread keeps room for the passes: 1 MB.
ROOM = 1 << 17
# Bits of a digit: of many words, and of few, where counting so many digits would take longer than a pass more. Words
# that are parted take the latter, as so many places to write to are in the cache at once.
WIDE, NARROW, MANY = 11, 8, 4_096
# So few words are put in their places one by one where they were parted; so few of all are numpy's, which takes less.
FEW, SMALL = 48, 1_000


class _Room(NamedTuple):
    """What a thread sorts with: `words` to pass to, `counts` of digits, `parts` to be sorted (from, to, bits)."""

    words: Words
    counts: Ints
    parts: Ints


_kept = threading.local()


@kernel
def _insert_each(words):
    """Sort few `words` uint64[n] in place, equal ones as they are given."""
    for i in range(1, len(words)):
        word, at = words[i], i
        while at > 0 and words[at - 1] > word:
            words[at] = words[at - 1]
            at -= 1
        words[at] = word


@kernel
def _pass_by_pass(words, low, high, width, spare, counts):
    """Sort `words` uint64[n], n > 0, in place by their bits from `low` to `high`, one at least; all above are equal.

    Words that are alike there keep their order. Digits have at most `width` bits; `spare` uint64[>= n] and `counts`
    int64[>= digits << width] are written.
    """
    n, bits = len(words), high - low
    passes = (bits + width - 1) // width
    width = (bits + passes - 1) // passes
    size = 1 << width
    mask, step = np.uint64(size - 1), np.uint64(width)
    counts[: passes * size] = 0
    for i in range(n):
        left = words[i] >> np.uint64(low)
        for p in range(passes):
            counts[p * size + np.int64(left & mask)] += 1
            left >>= step
    source, target = words, spare
    moved = False
    for p in range(passes):
        places, shift = counts[p * size : (p + 1) * size], np.uint64(low + p * width)
        if places[np.int64((source[0] >> shift) & mask)] == n:
            continue  # all have one digit
        begin = np.int64(0)
        for digit in range(size):
            count = places[digit]
            places[digit] = begin
            begin += count
        for i in range(n):
            word = source[i]
            its = np.int64((word >> shift) & mask)
            target[places[its]] = word
            places[its] += 1
        source, target = target, source
        moved = not moved
    if moved:
        for i in range(n):
            words[i] = spare[i]


@kernel
def _part(words, shift, width, counts):
    """Move `words` uint64[n] so that those of a digit, `width` bits above `shift`, stand together, in its order.

    `counts` int64[>= 2 << width] is written: where the words of each digit begin (then end), and where they end.
    """
    size = 1 << width
    mask, above = np.uint64(size - 1), np.uint64(shift)
    places, ends = counts[:size], counts[size : 2 * size]
    ends[:] = 0
    for i in range(len(words)):
        ends[np.int64((words[i] >> above) & mask)] += 1
    places[0] = 0
    for digit in range(1, size):
        places[digit] = ends[digit - 1]
        ends[digit] += ends[digit - 1]
    for digit in range(size):
        while places[digit] < ends[digit]:
            # Each word goes to its place, and the one that stood there next, until one comes that belongs here.
            word = words[places[digit]]
            its = np.int64((word >> above) & mask)
            while its != digit:
                place = places[its]
                places[its] = place + 1
                words[place], word = word, words[place]
                its = np.int64((word >> above) & mask)
            words[places[digit]] = word
            places[digit] += 1


@kernel
def _sort(words, low, high, wide, narrow, many, few, spare, counts, parts):
    """Sort `words` uint64[n] by their bits below `high`; those below `low` ascend already where the others are alike.

    The other numbers are the module's, the arrays those of `_Room`, which are written.
    """
    parts[0, 0], parts[0, 1], parts[0, 2] = 0, len(words), high
    left = 1
    while left > 0:
        left -= 1
        begin, end, bits = parts[left, 0], parts[left, 1], parts[left, 2]
        part = words[begin:end]
        if len(part) <= few:
            _insert_each(part)
        elif len(part) <= len(spare):
            # Parted words do not stand as they were given.
            _pass_by_pass(part, low if bits == high else 0, bits, wide if len(part) > many else narrow, spare, counts)
        else:
            width = min(narrow, bits)
            _part(part, bits - width, width, counts)
            for digit in range(1 << width):
                stop = begin + counts[(1 << width) + digit]
                start = begin if digit == 0 else begin + counts[(1 << width) + digit - 1]
                if stop - start > 1 and bits > width:  # else its words are alike
                    parts[left, 0], parts[left, 1], parts[left, 2] = start, stop, bits - width
                    left += 1


def _room(size: int) -> _Room:
    held: _Room | None = getattr(_kept, "room", None)
    if held is None or len(held.words) < size:
        digits = max(-(-64 // width) << width for width in (WIDE, NARROW))
        # Of every level of parting at most all digits wait.
        parts = np.empty(((-(-64 // NARROW)) << NARROW, 3), np.int64)
        _kept.room = held = _Room(np.empty(size, np.uint64), np.empty(digits, np.int64), parts)
    return held


def sort_words(words: Words, bits: int, rising: int = 0) -> None:
    """Sort `words` uint64[n], all below `1 << bits`, in place; O(n * bits).

    `rising`: so many of the lowest bits ascend already among words that are alike above them.
    """
    if len(words) < SMALL:
        words.sort()
    elif bits > rising:
        spare, counts, parts = _room(min(ROOM, 1 << (len(words) - 1).bit_length()))
        _sort(words, rising, bits, WIDE, NARROW, MANY, FEW, spare[:ROOM], counts, parts)
