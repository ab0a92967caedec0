"""Lowering what is worked out anew after an event: ends of intervals, then sums over them, then the maps are set.

bounds     VALUE, MULTIPLY, ADD, FLOOR       of maps without keys
ends       FIRST_KEY, GREATEST, LEAST        where a running sum passes a bound; an empty interval jumps to SET
sums       ADD_UP, TIMES, KEEP               one product after the other, each added to a register of its map
SET
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lftj.triggers import event_kernel as k
from lftj.triggers.algebra import Final, KeyEnd, Linear, RunEnd

if TYPE_CHECKING:
    from lftj.triggers.lowered import LoweredProgram


def lower_final(lowered: LoweredProgram, final: Final) -> int:
    """Append the instructions; returns the number of the first."""
    return _FinalLowering(lowered, final).begin


class _FinalLowering:
    """`jumps`: the instructions that go to SET where an interval is empty."""

    def __init__(self, lowered: LoweredProgram, final: Final) -> None:
        self.lowered, self.begin, self.jumps = lowered, lowered.instructions, list[int]()
        self.zero, self.one = lowered.constant(0), lowered.constant(1)
        kept = {name: lowered.new_register() for name, _ in final.targets}
        for register in kept.values():
            lowered.emit(k.MOVE, 0, self.zero, self.zero, register, 0, 0, 0)
        intervals = [self.interval(ends) for ends in final.intervals]
        for name, products in final.targets:
            for coefficient, maps in products:
                for (low, high), summed in zip(intervals, maps, strict=True):
                    self.add_up(summed, low, high)
                if coefficient != 1:
                    lowered.emit(k.TIMES, 0, lowered.constant(coefficient), -1, 0, 0, 0, 1)
                lowered.emit(k.KEEP, 0, 0, 0, kept[name], 0, 0, 1)
        places = {name: lowered.places[name] for name in kept}
        tables = {place.table for place in places.values()}
        assert len(tables) == 1, "maps that are worked out anew are twins: nothing else changes them"
        registers = [kept[name] for name in sorted(kept, key=lambda name: places[name].value)]
        for jump in self.jumps:
            lowered.patch(jump, k.JUMP, lowered.instructions)
        lowered.emit(k.SET, tables.pop(), 0, 0, 0, lowered.listed(registers), 0, 0)

    def add_up(self, name: str, low: int, high: int) -> None:
        """Append: the weight times the sum of a map over an interval, registers of whose ends these are (-1: none)."""
        place = self.lowered.places[name]
        reads = self.lowered.numbers([place.value])
        order = self.lowered.order(place.table, (0,))
        self.lowered.emit(k.ADD_UP, order, low, high, 0, self.lowered.listed([]), reads, 1)

    def computed(self, op: int, a: int, b: int) -> int:
        """A register for the result of an operation on two."""
        made = self.lowered.new_register()
        self.lowered.emit(op, 0, a, b, made, 0, 0, 0)
        return made

    def linear(self, given: Linear) -> int:
        """The register of a linear term."""
        lowered = self.lowered
        total = lowered.constant(given.constant)
        for coefficient, name in given.terms:
            place, value = lowered.places[name], lowered.new_register()
            lowered.emit(k.VALUE, place.table, place.value, 0, value, 0, 0, 0)
            if coefficient != 1:
                value = self.computed(k.MULTIPLY, value, lowered.constant(coefficient))
            total = self.computed(k.ADD, total, value)
        if given.divisor != 1:
            total = self.computed(k.FLOOR, total, lowered.constant(given.divisor))
        return total

    def interval(self, ends: tuple[KeyEnd | RunEnd, ...]) -> tuple[int, int]:
        """The registers of the ends of an interval, -1 where it has none."""
        found = [-1, -1]
        for end in ends:
            if isinstance(end, KeyEnd):
                side, register = (0 if end.is_low else 1), self.linear(end.bound)
            else:
                side, register = self.run_end(end)
            if found[side] >= 0:
                register = self.computed(k.LEAST if side else k.GREATEST, found[side], register)
            found[side] = register
        return found[0], found[1]

    def run_end(self, end: RunEnd) -> tuple[int, int]:
        """(0 for a low end or 1, its register).

        With S the sum of the keys up to one: the sum of the keys above is at most b from the first key on whose S is
        above total - b - 1; that of the keys below is at most b up to the first key whose S is above b.
        """
        lowered, bound = self.lowered, self.linear(end.bound)
        if end.above:
            total = lowered.new_register()
            lowered.emit(k.MOVE, 0, self.zero, self.zero, total, 0, 0, 0)
            self.add_up(end.run, -1, -1)
            lowered.emit(k.KEEP, 0, 0, 0, total, 0, 0, 1)
            bound = self.computed(k.SUBTRACT, self.computed(k.SUBTRACT, total, bound), self.one)
        is_low = end.above == end.at_most
        # The first key itself belongs to the interval, or does not.
        more = {(True, True): 0, (True, False): -1, (False, True): 0, (False, False): 1}[end.above, end.at_most]
        if end.inclusive:
            more += 1 if end.above else -1
        made, place = lowered.new_register(), lowered.places[end.run]
        order = lowered.order(place.table, (0,))
        self.jumps.append(lowered.instructions)
        lowered.emit(k.FIRST_KEY, order, bound, place.value, made, int(is_low), more, 0)
        return (0 if is_low else 1), made
