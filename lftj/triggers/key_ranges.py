"""Sums over a range of keys: which reads of a statement need no loop, since they add up an interval of one key.

    q[] += m[b, p] * (p < @2 - 10)        of m under b, the sum of all entries with p below @2 - 10

A map is read so if one of its keys is not known yet and occurs nowhere but in comparisons, at most one from below and
one from above, that are linear in it and whose other side is known: these are solved for the key. The sum is then two
walks down an order of the map (order_kernel.py), however many entries the interval has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lftj.language.clause import Apply, Term, Var, names_of, variables_of
from lftj.language.functors import FLIPPED
from lftj.triggers.algebra import Cmp, Factor, Lift, MapRead, Statement, Val

# Bits of `KeyInterval.open`.
OPEN_BELOW, OPEN_ABOVE = 1, 2


class KeyInterval(NamedTuple):
    """The interval of key number `key` that a read adds up, between terms; None: it has no end there.

    `open`: OPEN_BELOW and OPEN_ABOVE where the end does not belong to it · `tests`: the comparisons that it stands for,
    by their numbers among the factors.
    """

    key: int
    low: Term | None
    high: Term | None
    open: int
    tests: frozenset[int]


def interval_of(
    members: Sequence[Statement], kept: Sequence[Sequence[Factor]], at: int, is_known: Callable[[Var], bool]
) -> KeyInterval | None:
    """The interval that the read number `at` of a statement of twins adds up; None if it has to be looped over.

    `kept`: the factors of each but values · `is_known`: whether a variable of the first has a value before the read.
    """
    first = kept[0][at]
    assert isinstance(first, MapRead)
    unknown = [i for i, key in enumerate(first.keys) if isinstance(key, Var) and not is_known(key)]
    if len(unknown) != 1:
        return None
    (number,) = unknown
    for member, factors in zip(members, kept, strict=True):
        read = factors[at]
        assert isinstance(read, MapRead)
        if _is_used(member, read, number):
            return None
    key = first.keys[number]
    assert isinstance(key, Var)
    ends: dict[str, tuple[Term, bool]] = {}
    tests = set()
    for i, factor in enumerate(kept[0]):
        if not isinstance(factor, Cmp) or key.name not in names_of(factor.left, factor.right):
            continue
        solved = _solved(factor, key)
        if solved is None:
            return None
        op, bound = solved
        side = "high" if op in ("<", "<=") else "low"
        if side in ends or not all(map(is_known, variables_of(bound))):
            return None
        ends[side] = bound, op in ("<", ">")
        tests.add(i)
    low, high = ends.get("low"), ends.get("high")
    if not tests:
        return None
    is_open = OPEN_BELOW * (low is not None and low[1]) + OPEN_ABOVE * (high is not None and high[1])
    return KeyInterval(number, low and low[0], high and high[0], is_open, frozenset(tests))


def _is_used(statement: Statement, read: MapRead, number: int) -> bool:
    """Whether a key of a read is used by more than comparisons."""
    key = read.keys[number]
    assert isinstance(key, Var)

    def uses(factor: Factor) -> bool:
        if isinstance(factor, MapRead):
            places = [i for i, other in enumerate(factor.keys) if isinstance(other, Var) and other.name == key.name]
            return places != ([number] if factor is read else [])
        if isinstance(factor, Lift):
            return key.name in (*names_of(factor.term), factor.var.name)
        return isinstance(factor, Val) and key.name in names_of(factor.term)

    return any(map(uses, statement.factors)) or any(isinstance(k, Var) and k.name == key.name for k in statement.keys)


def _solved(compare: Cmp, key: Var) -> tuple[str, Term] | None:
    """The comparison as `key op term`; None if it cannot be solved for the key."""
    if compare.op not in FLIPPED:
        return None
    in_left, in_right = key.name in names_of(compare.left), key.name in names_of(compare.right)
    if in_left and in_right:
        return None
    if in_left:
        return _moved(compare.left, compare.op, compare.right, key)
    return _moved(compare.right, FLIPPED[compare.op], compare.left, key)


def _moved(term: Term, op: str, other: Term, key: Var) -> tuple[str, Term] | None:
    """`term op other` solved for the key, which `term` has."""
    if isinstance(term, Var):
        return op, other
    assert isinstance(term, Apply)
    holds = [key.name in names_of(arg) for arg in term.args]
    if term.op == "neg":
        return _moved(term.args[0], FLIPPED[op], Apply("neg", (other,), term.type), key)
    if term.op not in ("+", "-") or sum(holds) != 1:
        return None
    a, b = term.args
    if term.op == "+":
        mine, rest = (a, b) if holds[0] else (b, a)
        return _moved(mine, op, Apply("-", (other, rest), term.type), key)
    if holds[0]:
        return _moved(a, op, Apply("+", (other, b), term.type), key)
    return _moved(b, FLIPPED[op], Apply("-", (a, other), term.type), key)
