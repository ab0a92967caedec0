"""M3F of what is worked out anew after an event: intervals of keys, and maps that add up others over them.

    interval low (2 * total + 3 * m + 5) / 4, run above including volume: <= (1 * total + 0) / 4
    final vwap: 100 * pv + -1 * v

An interval has the ends that stand behind it: `low` and `high` bounds that belong to it, or the keys for which the sum
of a map over the keys `above` (or `below`) them, `including` their own or not, is `<=` (or `>`) a bound. A bound is the
floor of a sum of maps without keys divided by a number. A final map adds up products, each of a coefficient and a map
for every interval, in the order of their lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lftj.triggers.algebra import Final, KeyEnd, Linear, RunEnd

# How a name is written, and how one is read from a tree.
Spelled = Callable[[str], str]
Read = Callable[[Any], str]


def final_lines(final: Final, spelled: Spelled) -> list[str]:
    """The lines of a program's final part."""
    lines = [f"interval {', '.join(_end(end, spelled) for end in ends)}".rstrip() for ends in final.intervals]
    for target, products in final.targets:
        shown = (" * ".join([str(coefficient), *map(spelled, maps)]) for coefficient, maps in products)
        lines.append(f"final {spelled(target)}: {' + '.join(shown) or 'none'}")
    return lines


def _end(end: KeyEnd | RunEnd, spelled: Spelled) -> str:
    if isinstance(end, KeyEnd):
        return f"{'low' if end.is_low else 'high'} {_linear(end.bound, spelled)}"
    side, including = "above" if end.above else "below", " including" if end.inclusive else ""
    op = "<=" if end.at_most else ">"
    return f"run {side}{including} {spelled(end.run)}: {op} {_linear(end.bound, spelled)}"


def _linear(bound: Linear, spelled: Spelled) -> str:
    terms = [f"{coefficient} * {spelled(name)}" for coefficient, name in bound.terms]
    return f"({' + '.join([*terms, str(bound.constant)])}) / {bound.divisor}"


def final_of(intervals: Sequence[Any], targets: Sequence[Any], read: Read) -> Final | None:
    """The final part that the trees of its lines write; None if there are none."""
    if not intervals and not targets:
        return None
    made = tuple(tuple(_end_of(end, read) for end in tree.children if end is not None) for tree in intervals)
    return Final(made, tuple(_target_of(tree, read) for tree in targets))


def _end_of(tree: Any, read: Read) -> KeyEnd | RunEnd:
    if tree.data == "key_end":
        side, bound = tree.children
        return KeyEnd(side == "low", _linear_of(bound, read))
    side, including, run, op, bound = tree.children
    return RunEnd(read(run), side == "above", including is not None, op == "<=", _linear_of(bound, read))


def _linear_of(tree: Any, read: Read) -> Linear:
    *terms, constant, divisor = tree.children
    pairs = tuple((int(term.children[0]), read(term.children[1])) for term in terms)
    return Linear(pairs, int(constant), int(divisor))


def _target_of(tree: Any, read: Read) -> tuple[str, tuple[tuple[int, tuple[str, ...]], ...]]:
    target, *products = tree.children
    found = tuple((int(p.children[0]), tuple(map(read, p.children[1:]))) for p in products if p is not None)
    return read(target), found
