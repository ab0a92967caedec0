"""Deltas: what one row that comes or goes changes about a formula.

    d(a + b) = da + db        d(a * b) = da * b + a * db + da * db        d AggSum(keys, a) = AggSum(keys, da)
    d R(x, ..) = +-1 * (x = @0) * ..        of every other atomic formula 0

The formula is read over the state before the event, for insertions and for deletions alike: with all three terms of the
product the rules are exact for both (Cumulus, section 3.4, its proof).
"""

from __future__ import annotations

from collections.abc import Sequence

from lftj.language.clause import Var
from lftj.triggers.algebra import EVENT, Add, AggSum, Cmp, Formula, Lift, Mul, Rel
from lftj.triggers.formulas import number, relations_of
from lftj.values.schema import Schema


def parameters(schema: Schema) -> tuple[Var, ...]:
    """The variables that stand for the row of an event: `@0`, `@1`, ..., of the types of the columns."""
    return tuple(Var(f"{EVENT}{i}", type) for i, type in enumerate(schema.types))


def delta(formula: Formula, sign: int, relation: str, row: Sequence[Var]) -> Formula:
    """The change of `formula` when `row` comes to `relation` (sign INSERTION) or goes (DELETION).

    `row`: the event's parameters, bound outside. Products keep their order: what is read is bound before it. What an
    `AggSum` sums over must have names of its own, as in a polynomial: the alternatives of an Add that bind a variable
    are not those of its delta.
    """
    if relation not in relations_of(formula):
        return Add()
    match formula:
        case Rel(_, args):
            pairs = zip(args, row, strict=True)
            return Mul((number(sign), *(Lift(x, p) if isinstance(x, Var) else Cmp("=", p, x) for x, p in pairs)))
        case Add(parts):
            return Add(tuple(delta(part, sign, relation, row) for part in parts))
        case AggSum(keys, body):
            return AggSum(keys, delta(body, sign, relation, row))
        case Mul((first,)):
            return delta(first, sign, relation, row)
        case Mul((first, *others)):
            rest = Mul(tuple(others))
            of_first, of_rest = delta(first, sign, relation, row), delta(rest, sign, relation, row)
            terms = []
            if of_first != Add():
                terms.append(Mul((of_first, rest)))
            if of_rest != Add():
                terms.append(Mul((first, of_rest)))
            if len(terms) == 2:
                terms.append(Mul((of_first, of_rest)))
            return Add(tuple(terms))
    raise AssertionError(f"{formula} reads no relation")
