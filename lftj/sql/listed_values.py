"""Equalities of one value with several constants, as a list: one condition instead of an alternative for each.

    a = 1 or b = 2 or a = 3 or a in (4, 5)      a in (1, 3, 4, 5) or b = 2
    a <> 1 and a <> 3                           a not in (1, 3)

Constants of a list are whole numbers, texts, or casts of these to one type, so that each is compared as by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from sqlglot import exp

from lftj.sql.cases import plain

PLAIN = 2  # up to so many equalities stay what they are: rules whose constants a plan knows


class _Compared(NamedTuple):
    """A value, the constants that it equals or differs from, and the kind of these."""

    value: exp.Expr
    constants: Sequence[exp.Expr]
    kind: Hashable


def operands_of(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """What a chain of `and`, or of `or`, joins, parentheses within it left out; the node itself, if it is none."""
    node = plain(node)
    if not isinstance(node, kind):
        return [node]
    return [part for operand in node.flatten() for part in operands_of(operand, kind)]


def gathered(node: exp.Expr) -> list[exp.Expr]:
    """The operands of an `or` or `and`, with one list in the place of the equalities that it stands for."""
    negated = isinstance(node, exp.And)
    operands = [(part, _compared(part, negated)) for part in operands_of(node, type(node))]
    lists: dict[Hashable, list[exp.Expr]] = {}
    for _, compared in operands:
        if compared is not None:
            lists.setdefault((compared.value, compared.kind), []).extend(compared.constants)
    found: list[exp.Expr] = []
    for part, compared in operands:
        listed = [] if compared is None else lists[compared.value, compared.kind]
        if compared is None or 0 < len(listed) <= PLAIN:
            found.append(part)
        elif listed:
            made: exp.Expr = exp.In(this=compared.value.copy(), expressions=[constant.copy() for constant in listed])
            found.append(exp.Not(this=made) if negated else made)
            listed.clear()  # it stands where the first of them did
    return found


def _compared(node: exp.Expr, negated: bool) -> _Compared | None:
    """What a predicate compares; None if it is no equality with constants or, if `negated`, the contrary."""
    if isinstance(node, exp.NEQ if negated else exp.EQ):
        left, right = plain(node.this), plain(node.expression)
        value, constants = (left, [right]) if _kind(right) is not None else (right, [left])
    else:
        inner = (plain(node.this) if isinstance(node, exp.Not) else None) if negated else node
        if not isinstance(inner, exp.In) or not inner.expressions:
            return None
        value, constants = plain(inner.this), [plain(constant) for constant in inner.expressions]
    kinds = set(map(_kind, constants))
    if len(kinds) > 1 or kinds == {None} or _kind(value) is not None or value.find(exp.Query) is not None:
        return None
    return _Compared(value, constants, kinds.pop())


def _kind(node: exp.Expr) -> Hashable:
    """The kind of a constant; None of all else."""
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "whole number" if node.name.isdecimal() else None
    if isinstance(node, exp.Neg):
        inner = plain(node.this)
        return "whole number" if isinstance(inner, exp.Literal) and _kind(inner) == "whole number" else None
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and isinstance(node.this, exp.Literal):
        return ("cast", node.args["to"])
    return None
