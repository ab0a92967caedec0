"""Programs with recursive minima and maxima: shortest and widest paths, labels of components; and rules above them."""

from __future__ import annotations

from random import Random

from tests.engine import programs
from tests.mixed.programs import Mixed, add_folding, add_free, pick

# Each is well-founded whatever the data are: values of rows of `b` or constants, made worse by steps along `e` or `w`.
RECURSIONS = (
    "d0[y] = min v : { b(y), v = 0 ; d0[x] = c, e(x, y), v = c + 1 }.",
    "d0[y] = min v : { b(y), v = 0 ; d0[x] = c, w[x, y] = l, v = c + max(l % 5, 1) }.",
    "d0[x] = OP v : { b(x), v = x ; d0[y] = v, e(y, x) }.",
    "d0[x] = OP v : { b(x), v = x ; d0[y] = v, e(x, y) ; d0[y] = v, e(y, x) }.",
    "d0[y] = min v : { b(y), v = y ; d0[x] = c, w[x, y] = l, v = max(c, l) }.",
    "d0[y] = max v : { b(y), v = y ; d0[x] = c, w[x, y] = l, v = min(c, l) }.",
    "d0[y] = min v : { b(y), v = 0 ; d0[x] = c, e(x, y), !b(y), c < 3, v = c + 1 }.",
    "d0[y] = OP v : { b(y), v = y ; d1[x] = v, e(x, y) }.\nd1[y] = OP v : { d0[x] = v, w[x, y] = _ }.",
)


def make_program(rng: Random) -> Mixed:
    """One recursion over relations of numbers, and up to three rules above it."""
    mixed = Mixed()
    mixed.declare("b", ("number",))
    mixed.declare("e", ("number", "number"))
    mixed.declare("w", ("number", "number", "number"), functional=True)
    mixed.base = sorted(mixed.known)
    rules = pick(rng, RECURSIONS).replace("OP", pick(rng, ("min", "max"))).splitlines()
    for i in range(len(rules)):
        mixed.declare(f"d{i}", ("number", "number"), functional=True)
        mixed.maintain[f"d{i}"] = "auto"
    mixed.lines += rules
    for i in range(pick(rng, (0, 1, 1, 2, 3))):
        pick(rng, (add_free, add_free, add_folding))(rng, mixed, f"p{i}")
        mixed.maintain[f"p{i}"] = pick(rng, ("trace", "triggers", "delta", "recompute", "auto"))
    mixed.sizes = programs.make_sizes(rng)
    return mixed
