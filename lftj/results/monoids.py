"""Monoids for scans: the built-in ones, and those that users register.

    lftj.monoid("gcd", combine=math.gcd, identity=0, commutative=True)
    db["sales"].scan("gcd", "amount", lo=(2,), hi=(2,))

A monoid is an associative function of two *elements* and an identity. Every value of the scanned column is *lifted* to
an element (default: the value itself: int, float or str), the elements are combined in key order, and the last one is
the answer (built-in ones *lower* it to a value). "count", and "sum", "min", "max" and "mean" of numbers are compiled
and appear here by name only; the others fold by Python functions, remembered page by page (lftj/store/page_folds.py):

    sum, mean of floats   elements (sum * 2^1074 as an integer, inf met, -inf met); rounded once, as `math.fsum`
    min, max of symbols   texts, by code point
    cat of symbols        ropes (paper, section 2.3.3): a text or a pair of ropes, joined when the answer is given

The registry is one for the process: a monoid is a pure function and belongs to no database. A name may be registered
again, which replaces it for later scans (notebooks run cells twice); a built-in name may not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lftj import arguments
from lftj.errors import DataError, EvaluationError

# The aggregates that scans give, in the order in which messages list them.
BUILT_IN = ("count", "sum", "min", "max", "mean", "cat")

# Finite floats are multiples of 2^-1074.
FLOAT_BITS = 1074
# Texts up to this length are joined at once; a rope of single characters would take more than what it holds.
JOINED = 1024

_registered: dict[str, UserMonoid] = {}


@dataclass(frozen=True, slots=True, eq=False)
class UserMonoid:
    """An associative Python function and its identity; what `lftj.monoid` returns. `scan` takes it or its name.

    `commutative`: the order of the rows does not matter.
    """

    name: str
    combine: Callable[[Any, Any], Any]
    identity: Any
    lift: Callable[[Any], Any] | None = None
    commutative: bool = False
    lower: Callable[[Any], Any] | None = None

    def fold(self, values: list[Any]) -> Any:
        """The fold of one or more values of the column, in order."""
        elements = iter(values if self.lift is None else map(self.lift, values))
        folded, combine = next(elements), self.combine
        for element in elements:
            folded = combine(folded, element)
        return folded

    def answer(self, element: Any) -> Any:
        """What a user sees of the last element."""
        return element if self.lower is None else self.lower(element)


def monoid(
    name: str,
    *,
    combine: Callable[[Any, Any], Any],
    identity: Any,
    lift: Callable[[Any], Any] | None = None,
    commutative: bool = False,
) -> UserMonoid:
    """Register a monoid for `Relation.scan` under `name`, in every database of this process.

    `combine(a, b)` must be associative, `identity` neutral (it is the answer for an empty interval), and neither may
    change its arguments: elements are remembered. `lift(value)` makes an element of a value of the column, as Python
    value (default: itself). Say `commutative=True` if the order of the rows does not matter: then a scan never has to
    sort texts. `DataError` if the name is built in, or something that is called cannot be.
    """
    arguments.text("name", name, "a monoid is known by its name", 'give a name such as "gcd"')
    if not name or name in BUILT_IN:
        raise DataError(
            f"a monoid cannot be called {name!r}",
            why="the name is built in" if name else "it is empty",
            remedy="choose another name",
        )
    arguments.function("combine", combine, "combine(a, b)")
    if lift is not None:
        arguments.function("lift", lift, "lift(value)")
    made = UserMonoid(name, combine, identity, lift, commutative)
    _registered[name] = made
    return made


def find(asked: str | UserMonoid) -> str | UserMonoid:
    """The monoid that is meant: a compiled or built-in one by name, a registered one as it is."""
    if isinstance(asked, UserMonoid):
        return asked
    arguments.text(
        "monoid", asked, "a monoid is known by its name", f"give one of {', '.join(BUILT_IN)}, or one of yours"
    )
    if asked in BUILT_IN:
        return asked
    known = _registered.get(asked)
    if known is None:
        from lftj.language.diagnostics import did_you_mean

        raise DataError(
            f"there is no monoid {asked!r}",
            why=f"built in are {', '.join(BUILT_IN)}",
            remedy=did_you_mean(asked, (*BUILT_IN, *_registered), "register it with `lftj.monoid`"),
        )
    return known


# -- exact sums of floats ---------------------------------------------------------------------------------------------

ExactFloat = tuple[int, bool, bool]


def _lift_float(value: float) -> ExactFloat:
    if math.isinf(value):
        return 0, value > 0, value < 0
    numerator, denominator = value.as_integer_ratio()
    return numerator << (FLOAT_BITS + 1 - denominator.bit_length()), False, False


def _add_floats(a: ExactFloat, b: ExactFloat) -> ExactFloat:
    return a[0] + b[0], a[1] or b[1], a[2] or b[2]


def rounded(total: ExactFloat, count: int = 1) -> float:
    """The float nearest to an exact sum divided by `count`, ties to even."""
    scaled, plus, minus = total
    if plus and minus:
        raise EvaluationError(
            "the sum of these rows is not defined", why="inf and -inf are among them", remedy="scan without one of them"
        )
    if plus or minus:
        return math.inf if plus else -math.inf
    try:
        return scaled / (count << FLOAT_BITS) + 0.0  # never -0.0
    except OverflowError:
        raise EvaluationError(
            "the sum of these rows is too large for a float",
            why="it is beyond 1.7976931348623157e+308",
            remedy="scan a smaller interval",
        ) from None


# -- ropes ------------------------------------------------------------------------------------------------------------

Rope = str | tuple[Any, Any]


def _add_ropes(a: Rope, b: Rope) -> Rope:
    if isinstance(a, str) and isinstance(b, str) and len(a) + len(b) <= JOINED:
        return a + b
    return a, b


def _text_of(rope: Rope) -> str:
    pieces, todo = [], [rope]
    while todo:
        top = todo.pop()
        if isinstance(top, str):
            pieces.append(top)
        else:
            todo += (top[1], top[0])
    return "".join(pieces)


FLOAT_SUM = UserMonoid("sum", _add_floats, (0, False, False), _lift_float, True)
TEXT_MIN = UserMonoid("min", min, None, None, True)
TEXT_MAX = UserMonoid("max", max, None, None, True)
CAT = UserMonoid("cat", _add_ropes, "", None, False, _text_of)
