"""Packing: how the fields of a site's records are laid out in words.

A field is a register (a bound key), the start or the agree count. Its range is known when the trace is recorded, from
the keys its variable can take; the fields of one record then usually fit into one word: four of 18 bits on a graph of
200,000 nodes. They are laid side by side, the first one highest, never across two words, so that the order of the
words is the order of the fields. What is left of a word's 63 bits is shared out, so that keys may grow a while before
the index has to be packed anew (`Packing.holds`). A field whose range is unknown or too wide takes a whole word, as it
is (RAW).

Start: 0 stands for KEY_MIN, the start of a node's first step; the others follow from 1 on, up to one past the greatest
key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sensitivity import records

Ints = npt.NDArray[np.int64]

WORD_BITS = 63
START, AGREE = -1, -2
# Starts beyond it in size are not packed: the step after a match, and limits given by rules, lie next to keys.
EDGE = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value a field may take; None: unknown, it takes a whole word."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Packed:
    """One field: its source (a register, START or AGREE), its place, and what it can hold."""

    source: int
    word: int
    shift: int
    low: int
    bits: int

    def holds(self, low: int, high: int) -> bool:
        """Whether all of [low, high] can be packed."""
        spare = 1 if self.source == START else 0
        return self.bits == records.RAW or (low >= self.low and high - self.low + 2 * spare < 1 << self.bits)


@dataclass(frozen=True, slots=True)
class Packing:
    """The layout of a site's records: `words` per record; fields in order: prefix, start, context, agree."""

    words: int
    prefix: tuple[Packed, ...]
    start: Packed | None
    context: tuple[Packed, ...]
    agree: Packed | None

    @property
    def fields(self) -> tuple[Packed, ...]:
        """The fields that are registers, the prefix first."""
        return self.prefix + self.context

    @classmethod
    def of(
        cls,
        prefix: Sequence[int],
        context: Sequence[int],
        ranges: dict[int, Range | None],
        *,
        start: Range | bool | None = False,
        agree: int = 0,
    ) -> Packing:
        """Lay out the registers `prefix` and `context` with these `ranges`.

        `start`: the range of starts but KEY_MIN (None: unknown; False: the records have none). `agree`: the number of
        participants of the depth (0: the records do not count).
        """
        wanted: list[tuple[int, int, int]] = []
        for source in (*prefix, *([] if start is False else [START]), *context, *([AGREE] if agree else [])):
            if source == AGREE:
                wanted.append((source, 0, max(1, (agree - 1).bit_length())))
                continue
            known = ranges[source] if source != START else start
            assert not isinstance(known, bool)
            if known is None or (source == START and not EDGE < known.low <= known.high < -EDGE):
                wanted.append((source, int(records.KEY_MIN), records.RAW))
                continue
            bits = (known.high - known.low + (2 if source == START else 0)).bit_length()
            wanted.append((source, known.low, max(1, bits)) if bits < WORD_BITS else (source, records.KEY_MIN, 64))
        groups: list[list[tuple[int, int, int]]] = []
        for field in wanted:
            whole = field[2] == records.RAW
            room = WORD_BITS - sum(f[2] for f in groups[-1]) if groups else -1
            if whole or room < field[2] or groups[-1][0][2] == records.RAW:
                groups.append([])
            groups[-1].append(field)
        placed: dict[int, Packed] = {}
        for word, group in enumerate(groups):
            if group[0][2] == records.RAW:
                placed[group[0][0]] = Packed(group[0][0], word, 0, int(records.KEY_MIN), records.RAW)
                continue
            growing = [f for f in group if f[0] != AGREE]
            spare = (WORD_BITS - sum(f[2] for f in group)) // max(1, len(growing))
            shift = 0
            for source, low, bits in reversed(group):
                bits += spare if source != AGREE else 0
                placed[source] = Packed(source, word, shift, int(low), bits)
                shift += bits
        return cls(
            len(groups),
            tuple(placed[r] for r in prefix),
            placed.get(START),
            tuple(placed[r] for r in context),
            placed.get(AGREE),
        )

    def holds(self, ranges: dict[int, Range]) -> bool:
        """Whether registers within `ranges` (and starts, under START) can be packed."""
        packed = (*self.fields, *((self.start,) if self.start else ()))
        return all(f.holds(ranges[f.source].low, ranges[f.source].high) for f in packed if f.source in ranges)

    def unpack(self, words: Ints) -> Ints:
        """Records int64[words, n] as columns int64[fields, n]: prefix, start, context, agree."""
        columns = []
        for field in (
            *self.prefix,
            *([self.start] if self.start else ()),
            *self.context,
            *([self.agree] if self.agree else ()),
        ):
            column = words[field.word]
            if field.bits != records.RAW:
                column = (column >> field.shift) & np.int64((1 << field.bits) - 1)
                if field.source == START:
                    column = np.where(column == 0, records.KEY_MIN, column + np.int64(field.low - 1))
                elif field.source != AGREE:
                    column = column + np.int64(field.low)
            columns.append(column)
        return np.stack(columns) if columns else np.empty((0, words.shape[1]), np.int64)

    def pack(self, columns: Ints) -> Ints:
        """The inverse of `unpack`."""
        words = np.zeros((self.words, columns.shape[1]), np.int64)
        fields = (
            *self.prefix,
            *([self.start] if self.start else ()),
            *self.context,
            *([self.agree] if self.agree else ()),
        )
        for field, column in zip(fields, columns, strict=True):
            code = column
            if field.bits == records.RAW:
                words[field.word] = code
                continue
            if field.source == START:
                code = np.where(column == records.KEY_MIN, 0, column - np.int64(field.low - 1))
            elif field.source != AGREE:
                code = column - np.int64(field.low)
            words[field.word] |= code << np.int64(field.shift)
        return words
