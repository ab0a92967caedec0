"""Packing: records in words and back, whatever the ranges, in the order of their fields.

Catches: a shift that loses bits, an order of words that is not the order of records, a range at the ends of int64 that
wraps, `holds` saying yes to what does not fit.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sensitivity import records
from sensitivity.packing import EDGE, WORD_BITS, Packing, Range

KEY_MIN, KEY_MAX = -(2**63), 2**63 - 1
ENDS = (KEY_MIN, KEY_MIN + 1, EDGE - 1, EDGE, EDGE + 1, -1, 0, 1, -EDGE - 1, -EDGE, -EDGE + 1, KEY_MAX - 1, KEY_MAX)


def some_range(rng: Random) -> Range | None:
    """Any range: of a few keys or most of them, anywhere."""
    if rng.random() < 0.1:
        return None
    low = rng.choice((rng.choice(ENDS), rng.randint(-20, 20), rng.randint(KEY_MIN, KEY_MAX)))
    span = rng.choice((0, 1, rng.randrange(100), rng.randrange(1 << rng.randrange(1, 64)), KEY_MAX - low))
    return Range(low, min(KEY_MAX, low + span))


def within(rng: Random, found: Range | None) -> int:
    low, high = (KEY_MIN, KEY_MAX) if found is None else (found.low, found.high)
    return rng.choice((low, high, rng.randint(low, high)))


class Layout:
    """A packing of a random record, and values that it has to take."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        count = rng.randint(1, 5)
        split = rng.randint(0, count)
        self.prefix, self.context = tuple(range(split)), tuple(range(split, count))
        self.ranges: dict[int, Range | None] = {register: some_range(rng) for register in range(count)}
        self.start: Any = rng.choice((False, None, some_range(rng), some_range(rng)))
        self.agree = rng.choice((0, 1, 2, 3, 8, 9)) if self.start is not False else 0
        self.packing = Packing.of(self.prefix, self.context, self.ranges, start=self.start, agree=self.agree)

    def row(self) -> tuple[int, ...]:
        row = [within(self.rng, self.ranges[register]) for register in self.prefix]
        if self.start is not False:
            low, high = (KEY_MIN, KEY_MAX) if self.start is None else (self.start.low, self.start.high)
            past = min(KEY_MAX, high + 1)
            row.append(self.rng.choice((KEY_MIN, low, past, self.rng.randint(low, past))))
        row += [within(self.rng, self.ranges[register]) for register in self.context]
        if self.agree:
            row.append(self.rng.randrange(self.agree))
        return tuple(row)


@given(st.integers(0, 2**48))
@example(0)
def test_round_trip_and_order(seed: int) -> None:
    layout = Layout(Random(seed))
    packing = layout.packing
    rows = sorted({layout.row() for _ in range(30)})
    columns = np.array(rows, np.int64).T
    words = packing.pack(columns)
    assert words.shape == (packing.words, len(rows))
    assert packing.unpack(words).tolist() == columns.tolist()
    packed = [tuple(row) for row in words.T.tolist()]
    assert packed == sorted(packed)
    assert len(set(packed)) == len(rows)


@given(st.integers(0, 2**48))
def test_fields_lie_side_by_side(seed: int) -> None:
    """No two fields share a bit, none reaches the sign or crosses words, and the first one of a word is the highest."""
    packing = Layout(Random(seed)).packing
    fields = (
        *packing.prefix,
        *((packing.start,) if packing.start else ()),
        *packing.context,
        *((packing.agree,) if packing.agree else ()),
    )
    assert [field.word for field in fields] == sorted(field.word for field in fields)
    assert {field.word for field in fields} == set(range(packing.words))
    for word in range(packing.words):
        own = [field for field in fields if field.word == word]
        if own[0].bits == records.RAW:
            assert len(own) == 1
            continue
        above = WORD_BITS
        for field in own:
            assert field.shift + field.bits <= above
            above = field.shift
        assert above >= 0


@given(st.integers(0, 2**48))
def test_what_it_holds_it_can_take(seed: int) -> None:
    """Wider ranges that `holds` admits are packed without loss; those it was made for are among them."""
    rng = Random(seed)
    layout = Layout(rng)
    packing = layout.packing
    known = {register: found for register, found in layout.ranges.items() if found is not None}
    assert packing.holds(known)
    wider = {
        r: Range(f.low, min(KEY_MAX, f.high + rng.choice((0, 1, 1 << rng.randrange(63))))) for r, f in known.items()
    }
    below = {r: Range(max(KEY_MIN, f.low - rng.choice((0, 1))), f.high) for r, f in known.items()}
    for ranges in (wider, below):
        if packing.holds(ranges):
            grown = Layout.__new__(Layout)
            grown.__dict__.update(layout.__dict__)
            grown.ranges = {**layout.ranges, **ranges}
            rows = sorted({grown.row() for _ in range(20)})
            columns = np.array(rows, np.int64).T
            words = packing.pack(columns)
            assert packing.unpack(words).tolist() == columns.tolist()
            packed = [tuple(row) for row in words.T.tolist()]
            assert packed == sorted(packed)
        else:
            assert any(ranges[f.source] != known[f.source] for f in packing.fields if f.source in known)


def test_a_small_record_takes_one_word() -> None:
    """Three keys of 15 bits and one for the participants leave 17 for the start, of which two codes are taken."""
    ranges: dict[int, Range | None] = dict.fromkeys(range(3), Range(0, (1 << 15) - 1))
    assert Packing.of((0,), (1, 2), ranges, start=Range(0, (1 << 17) - 3), agree=2).words == 1
    assert Packing.of((0,), (1, 2), ranges, start=Range(0, (1 << 17) - 2), agree=2).words == 2
    assert Packing.of((0,), (1, 2), ranges, start=Range(0, (1 << 17) - 3), agree=3).words == 2


@pytest.mark.parametrize(("low", "high"), [(KEY_MIN, KEY_MAX), (0, KEY_MAX), (KEY_MIN, -1), (EDGE, 0), (0, -EDGE)])
def test_starts_at_the_ends_take_a_word(low: int, high: int) -> None:
    """One past the greatest key has no code there, and KEY_MIN is a start of its own."""
    packing = Packing.of((), (0,), {0: Range(0, 1)}, start=Range(low, high), agree=3)
    assert packing.start is not None
    assert packing.start.bits == records.RAW
    assert packing.words == 2


def test_spare_bits_let_keys_grow() -> None:
    ranges = {0: Range(0, 9), 1: Range(0, 9)}
    packing = Packing.of((0,), (1,), dict(ranges))
    assert packing.holds(ranges)
    assert packing.holds({0: Range(0, 1 << 29), 1: Range(0, 1 << 29)})
    assert not packing.holds({0: Range(0, 1 << 40), 1: Range(0, 9)})
    assert not packing.holds({0: Range(-1, 9), 1: Range(0, 9)})
    assert not packing.holds({-1: Range(0, 9), 0: Range(0, 1 << 62)})
