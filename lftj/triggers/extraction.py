"""Extraction of aggregates: what a product sums over relations becomes maps (Cumulus, section 3.3).

    bound x, y:  x * {x < y} * 5 * y * R(v, w) * R(w, z) * w * {z = y} * R(u, x) * u
    remains      x * {x < y} * 5 * y * m1[y] * m2[x]
    maps         m1[z] = R(v, w) * R(w, z) * w        m2[x] = R(u, x) * u

A map is a connected component of the factors, or a part of one. Its keys are the bound variables in it and those that
the rest needs. What reads bound variables and no relation, such as a comparison, stays where it is: a map by all its
values would have an entry for every value that could be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

from lftj.language.clause import Value, Var
from lftj.triggers.algebra import Lift, Rel
from lftj.triggers.formulas import binds, is_parameter, renamed, variables, variables_of_all
from lftj.triggers.normalise import Atomic, components

# Cuts a component, of which the given variables are needed outside, into the relations of each map.
Cut = Callable[[Sequence[Atomic], set[str]], list[list[Rel]]]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A map to be: its keys, each with what the product has for it, and its factors in variables of its own."""

    keys: tuple[tuple[Var, Var], ...]
    factors: tuple[Atomic, ...]


def extracted(
    factors: Sequence[Atomic],
    bound: frozenset[str],
    wanted: Iterable[str],
    *,
    cut: Cut | None = None,
    whole: bool = False,
    called: Mapping[str, str] | None = None,
) -> tuple[list[Atomic], list[Extracted]]:
    """What remains of a product, and the maps to read in place of the rest.

    `bound`: the variables that have a value outside · `wanted`: those of which the values are needed · `cut`: how
    components are cut, by default not at all · `whole`: all relations go into one map (the naive transform) ·
    `called`: after which variable the key for a bound one is named.
    """
    free = [factor for factor in factors if isinstance(factor, Rel) or not set(variables(factor)) & bound]
    kept: list[Atomic] = [factor for factor in factors if factor not in free]
    groups = components(free, bound)
    kept += [factor for group in groups if not _reads_relation(group) for factor in group]
    groups = [group for group in groups if _reads_relation(group)]
    if whole and groups:
        groups = [list(chain.from_iterable(groups))]
    outside = set(wanted) | set(variables_of_all(kept))
    pieces: list[list[Atomic]] = []
    for group in groups:
        parts, conditions = ([group], []) if cut is None else _shared_out(group, cut(group, outside))
        pieces += parts
        kept += conditions
    seen = outside | set(variables_of_all(kept))
    made = []
    for piece in pieces:
        others = {name for other in pieces if other is not piece for name in variables_of_all(other)}
        made.append(_definition(piece, bound, seen | others, called or {}))
    return kept, made


def _reads_relation(group: Sequence[Atomic]) -> bool:
    return any(isinstance(factor, Rel) for factor in group)


def _shared_out(group: Sequence[Atomic], cut: Sequence[Sequence[Rel]]) -> tuple[list[list[Atomic]], list[Atomic]]:
    """The parts of a component with the conditions that each can test alone, and the other conditions."""
    parts: list[list[Atomic]] = [[*part] for part in cut]
    todo: list[Atomic] = [factor for factor in group if not isinstance(factor, Rel)]
    # Lifts first: they bind what other conditions read.
    for factor in sorted(todo, key=lambda factor: not isinstance(factor, Lift)):
        reads = set(variables(factor)) - (binds(factor) if isinstance(factor, Lift) else frozenset())
        home = next((part for part in parts if reads <= set(variables_of_all(part))), None)
        if home is not None:
            home.append(factor)
            todo.remove(factor)
    return parts, todo


def _definition(group: Sequence[Atomic], bound: frozenset[str], seen: set[str], called: Mapping[str, str]) -> Extracted:
    """A group as a map: bound variables, and those `seen` outside, are its keys.

    A bound variable that occurs twice in one relation becomes two keys.
    """
    named: dict[str, Var] = {}
    keys: list[tuple[Var, Var]] = []
    used: set[str] = set()

    def fresh(outer: Var) -> Var:
        base = called.get(outer.name, "k" if is_parameter(outer) else outer.name).split("'")[0]
        names = chain((base,), (f"{base}{i}" for i in count(2)))
        new = Var(next(name for name in names if name not in used), outer.type)
        used.add(new.name)
        named.setdefault(outer.name, new)
        if outer.name in seen or outer.name in bound:
            keys.append((new, outer))
        return new

    factors: list[Atomic] = []
    for factor in group:
        if isinstance(factor, Rel):
            args: list[Var | Value] = []
            for arg in factor.args:
                if isinstance(arg, Var):
                    inner = named.get(arg.name)
                    args.append(fresh(arg) if inner is None or inner in args else inner)
                else:
                    args.append(arg)
            factors.append(Rel(factor.name, tuple(args)))
    for factor in group:
        if not isinstance(factor, Rel):
            for var in variables(factor).values():
                if var.name not in named:
                    fresh(var)
            factors.append(renamed(factor, named))  # type: ignore[arg-type]
    return Extracted(tuple(keys), tuple(factors))
