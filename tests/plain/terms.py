"""The values of terms whose variables are bound. Types are those of the Python values: see `syntax.Unsigned`.

A literal such as `2` takes the type of what it meets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.plain import arithmetic
from tests.plain.syntax import Agg, Apply, Const, Scalar, Term, Unsigned, Var

Binding = Mapping[str, Scalar]
Fold = Callable[[Agg, Binding], Scalar]


def kind_of(value: Scalar) -> str:
    """The type of a value."""
    if isinstance(value, str):
        return "symbol"
    return "float" if isinstance(value, float) else "unsigned" if isinstance(value, Unsigned) else "number"


def typed(value: Scalar, kind: str) -> Scalar:
    """A value as one of type `kind`, which it is but for literals and for what Python gives."""
    if kind == "symbol":
        assert isinstance(value, str)
        return value
    assert value is not None
    if kind == "float":
        return arithmetic.normal(float(value))
    whole = arithmetic.reduced(int(value), signed=kind == "number")
    return whole if kind == "number" else Unsigned(whole)


def of_one_type(values: list[Scalar]) -> list[Scalar]:
    """Literals among the values take the type of the others."""
    kinds = {kind_of(value) for value in values} - {"number"}
    return [typed(value, kind) for value in values for kind in kinds] if len(kinds) == 1 else values


_TARGETS = {**arithmetic.TARGETS, "strlen": "number", "itof": "float", "utof": "float", "itou": "unsigned"}
_TARGETS |= {"ftou": "unsigned", "utoi": "number", "ftoi": "number", "cat": "symbol", "substr": "symbol"}


def value_of(term: Term, binding: Binding, fold: Fold) -> Scalar:
    """The value of a term; `fold` evaluates its aggregates.

    Raises `Undefined` if it has none, `Missing` if it is computed of null.
    """
    if isinstance(term, Var):
        return binding[term.name]
    if isinstance(term, Const):
        return arithmetic.normal(term.value)
    if isinstance(term, Agg):
        return fold(term, binding)
    assert isinstance(term, Apply)
    args = [value_of(arg, binding, fold) for arg in term.args]
    if term.op == "coalesce":
        args = [arg for arg in args if arg is not None]
        return of_one_type(args)[0] if args else None
    if None in args:
        raise arithmetic.Missing
    if term.op in _TARGETS:
        source = kind_of(args[0])
        return typed(arithmetic.convert(term.op, args, source), _TARGETS[term.op])
    args = of_one_type(args)
    if term.op in ("min", "max"):
        return sorted(args)[0 if term.op == "min" else -1]  # type: ignore[type-var]
    kind = kind_of(args[0])
    if kind == "float":
        return arithmetic.normal(arithmetic.on_floats(term.op, *map(float, args)))
    return typed(arithmetic.on_integers(term.op, [int(arg) for arg in args], signed=kind == "number"), kind)
