"""The order in which the factors of a product are evaluated.

Nothing is read before its variables have values: comparisons and values come as soon as they can, then maps whose keys
are all bound (one lookup), then maps that share a bound key (a slice), last those that share none (a cross product).
An equality with one side bound gives the other one its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lftj.errors import EvaluationError
from lftj.language.clause import Var, names_of, variables_of
from lftj.triggers.algebra import Cmp, Lift, MapRead, Rel, Val
from lftj.triggers.formulas import arguments, binds
from lftj.triggers.normalise import Atomic

# The entries that a read of a map visits where the given variables are bound, by an estimate.
Visits = Callable[[MapRead, set[str]], float]


def in_order(
    factors: Sequence[Atomic], bound: Iterable[str], wanted: Iterable[str] = (), visits: Visits | None = None
) -> tuple[Atomic, ...]:
    """`factors` in an order in which they can be evaluated where the variables `bound` have values.

    `wanted`: the variables that must have a value afterwards. `visits`: what tells the smaller one of two slices, else
    it is the one with fewer new variables. Raises EvaluationError if some variable gets none.
    """
    todo, known, ordered = list(factors), set(bound), list[Atomic]()
    while todo:
        ranked = [(_rank(factor, known, i, visits), i) for i, factor in enumerate(todo)]
        (rank, *_), best = min(ranked)
        if rank == _STUCK:
            break
        factor = _binding(todo.pop(best), known)
        ordered.append(factor)
        known |= binds(factor)
    lacking = {var.name for factor in todo for var in reads(factor)} | set(wanted)
    lacking -= known
    if todo or lacking:
        raise EvaluationError(
            f"variable `{min(lacking)}` has no value",
            why="it is in no relation of its product, and no equality gives it the value of others",
            remedy="bind it in a relation, or set it equal to what is bound",
        )
    return tuple(ordered)


# The kinds of factors, cheapest first.
_TEST, _VALUE, _LIFT, _LOOKUP, _SLICE, _SCAN, _STUCK = range(7)


def _rank(factor: Atomic, known: set[str], place: int, visits: Visits | None) -> tuple[int, float, int, int]:
    """What comes first: the kind, then the smaller slice, then how many variables are new, then the given order."""
    if isinstance(factor, Rel | MapRead):
        args = arguments(factor)
        new = sum(isinstance(arg, Var) and arg.name not in known for arg in args)
        kind = _LOOKUP if not new else _SLICE if new < len(args) else _SCAN
        size = visits(factor, known) if visits is not None and isinstance(factor, MapRead) else 0.0
        return kind, size, new, place
    lacking = {var.name for var in reads(factor)} - known
    if not lacking:
        return (_TEST if isinstance(factor, Cmp) else _VALUE if isinstance(factor, Val) else _LIFT), 0.0, 0, place
    return (_LIFT if isinstance(_binding(factor, known), Lift) and isinstance(factor, Cmp) else _STUCK), 0.0, 0, place


def reads(factor: Atomic) -> list[Var]:
    """The variables that must have a value before a factor."""
    if isinstance(factor, Cmp):
        return [*variables_of(factor.left), *variables_of(factor.right)]
    return list(variables_of(factor.term)) if isinstance(factor, Lift | Val) else []


def _binding(factor: Atomic, known: set[str]) -> Atomic:
    """An equality whose one side is a variable without a value and whose other side has one binds that variable."""
    if isinstance(factor, Cmp) and factor.op == "=":
        for var, term in ((factor.left, factor.right), (factor.right, factor.left)):
            if isinstance(var, Var) and var.name not in known and names_of(term) <= known:
                return Lift(var, term)
    if isinstance(factor, Lift) and factor.var.name in known:
        return Cmp("=", factor.var, factor.term)
    return factor
