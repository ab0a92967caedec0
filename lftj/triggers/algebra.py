"""The algebra of triggers (AGCA), and what compilation makes of it: maps, statements, a program.

A formula maps valuations of its variables to integers; a relation is a multiset:

    Rel(R, args)       how often the row is there            Lift(x, t)     1 where x = t; binds x if it is free
    Cmp(op, s, t)      1 where the comparison holds, or 0    Val(t)         the value of the term t
    Mul(parts)         the product; of none 1                Add(parts)     the sum; of none 0
    AggSum(keys, f)    the sum over all variables of f but `keys`
    MapRead(m, keys)   the entry of the map m; 0 where it has none

Terms are those of clauses (`Var`, `Value`, `Apply`), all of them over codes. The parameters of an event are variables
whose names begin with `@`: `@0` is the first column of the row that comes or goes.

A `TriggerProgram` says what every event does to every map. On an event, the right sides of all its statements are
evaluated over the maps as they are before it, then all is added (the viewlet transform; Cumulus, section 3.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lftj.language.clause import Term, Value, Var
from lftj.values.schema import Schema

# What the names of an event's parameters begin with.
EVENT = "@"
INSERTION, DELETION = 1, -1


@dataclass(frozen=True, slots=True)
class Rel:
    """How often a row is in a relation. Arguments are distinct variables, or constants."""

    name: str
    args: tuple[Var | Value, ...]


@dataclass(frozen=True, slots=True)
class Lift:
    """1 where `var` has the value of `term`, which it gets if it has none."""

    var: Var
    term: Term


@dataclass(frozen=True, slots=True)
class Cmp:
    """1 where a comparison holds, else 0. `op` is one of = != < <= > >=."""

    op: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Val:
    """The value of a term."""

    term: Term


@dataclass(frozen=True, slots=True)
class Mul:
    """A product, bound from left to right; of no parts 1."""

    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Add:
    """A sum; of no parts 0."""

    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class AggSum:
    """The sum of `body` over all its variables but `keys` and those that are bound outside."""

    keys: tuple[Var, ...]
    body: Formula


@dataclass(frozen=True, slots=True)
class MapRead:
    """The entry of a map, 0 if there is none. In a product, keys that are not bound yet range over the entries."""

    name: str
    keys: tuple[Var | Value, ...]


Formula = Rel | Lift | Cmp | Val | Mul | Add | AggSum | MapRead
Factor = MapRead | Lift | Cmp | Val


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """A map from `keys` to the sum of `body` over its other variables: `name[keys] = AggSum(keys, body)`."""

    name: str
    keys: tuple[Var, ...]
    body: Formula


@dataclass(frozen=True, slots=True)
class Statement:
    """`target[keys] += factors`: for every valuation of the factors, their product is added under the keys.

    `factors` stand in the order in which they are evaluated: what a term or a comparison reads is bound before it.
    """

    target: str
    keys: tuple[Var | Value, ...]
    factors: tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """The floor of (the sum of `terms`, each a coefficient and a map without keys, + `constant`) / `divisor` > 0."""

    terms: tuple[tuple[int, str], ...]
    constant: int = 0
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class KeyEnd:
    """An interval ends at `bound`, which belongs to it: a low end, or a high one."""

    is_low: bool
    bound: Linear


@dataclass(frozen=True, slots=True)
class RunEnd:
    """An interval has the keys for which a running sum of `run`, a map with one key, is at most `bound`, or above it.

    `above`: the sum is that of the larger keys, else of the smaller ones; `inclusive`: and of the key itself. No value
    of `run` is negative, so the keys are those of an interval.
    """

    run: str
    above: bool
    inclusive: bool
    at_most: bool
    bound: Linear


@dataclass(frozen=True, slots=True)
class Final:
    """Maps without keys that are worked out anew after an event, by ranges of others that have one key.

    `intervals`: the ends of each · `targets`: each map, and the products that it adds up: a coefficient, and a map for
    each interval, whose values in it are added up.
    """

    intervals: tuple[tuple[KeyEnd | RunEnd, ...], ...]
    targets: tuple[tuple[str, tuple[tuple[int, tuple[str, ...]], ...]], ...]


@dataclass(frozen=True, slots=True)
class MapEstimate:
    """The entries of a map, and the distinct values of each of its keys."""

    size: float
    distinct: tuple[float, ...]

    def visits(self, read: MapRead, known: set[str]) -> float:
        """The entries that a read visits where variables have values."""
        found = self.size
        for key, values in zip(read.keys, self.distinct, strict=True):
            if not isinstance(key, Var) or key.name in known:
                found /= values
        return found


@dataclass(frozen=True, slots=True)
class TriggerProgram:
    """What events on `relations` do to `maps`.

    `statements`: by (INSERTION or DELETION, relation) · `tops`: the maps that were asked for, in that order; the others
    serve them · `final`: what is worked out anew (lftj/language/thresholds.py) · `estimates`: of maps, where known.
    """

    relations: Mapping[str, Schema]
    maps: Mapping[str, MapDefinition]
    statements: Mapping[tuple[int, str], tuple[Statement, ...]]
    tops: tuple[str, ...] = field(default=())
    final: Final | None = None
    estimates: Mapping[str, MapEstimate] = field(default_factory=dict, compare=False)
