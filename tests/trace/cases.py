"""Random queries, data and changes for the tests of traces.

Keys come from a small domain, so that they collide, at any place of int64: `KEY` is its third one, for constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.trace.traced import ARITY, GRANULARITIES, Data, Row, Sizes, Traced, relations_in

KEY_MIN, KEY_MAX = -(2**63), 2**63 - 1

# Those of the executable model (test_model.py) ...
PLAIN = {
    "triangle, self join": "e(x,y), e(y,z), e(x,z)",
    "triangle": "r(x,y), s(y,z), t(x,z)",
    "4-clique": "e(x,y), e(x,z), e(x,w), e(y,z), e(y,w), e(z,w)",
    "4-cycle": "e(a,b), e(b,c), e(c,d), e(a,d)",
    "intersection": "u(x), v(x), w(x)",
    "path": "r(x,y), s(y,z)",
    "star": "r(x,y), s(x,z), t(x,w)",
    "ternary": "p(x,y,z), q(y,z,w), s(x,w)",
    "product": "u(x), v(y), r(x,y)",
    "late join": "r(x,z), s(y,z), u(z)",
    # ... and others without conditions
    "directed cycle": "e(x,y), e(y,z), e(z,x)",
    "both ways": "e(x,y), e(y,x)",
    "bowtie": "e(x,y), e(y,z), e(x,z), e(x,a), e(a,b), e(x,b)",
    "long path": "e(x,y), e(y,z), e(z,w)",
    "shared node": "r(x,y), r(x,z), s(y,z)",
    "one relation": "p(x,y,z)",
    "apart": "u(x), r(y,z)",
    "Loomis-Whitney": "p(x,y,z), p(y,z,w), p(x,z,w), p(x,y,w)",
    "wildcards": "r(x,y), s(y,_), t(x,_)",
    "wildcards in front": "p(x,y,_), q(_,y,z)",
}
# Those with computed keys; narrowed to a range; filtered after the match.
COMPUTED = {
    "constants": "r(x,KEY), s(KEY,y), t(x,y)",
    "constant behind": "p(x,KEY,y), s(y,z)",
    "loop": "r(x,x), s(x,y)",
    "repeated": "p(x,y,x), s(y,z)",
    "repeated twice": "p(x,x,y), q(y,_,x)",
    "sum": "r(x,y), z=x+y, s(z,w)",
    "sum of both": "u(x), v(y), z=x+y, w(z)",
    "chain": "u(x), y=x+1, v(y), z=y*2, r(z,w)",
    "computed behind": "r(x,y), s(y,z), t(x,w), w=z+1",
}
NARROWED = {
    "below": "r(x,y), s(y,z), x<z",
    "between": "r(x,y), s(y,z), x<z, z<=y+2",
    "pairs": "u(x), v(y), x<y",
    "window": "u(x), v(y), x<=y, y<=x+3",
    "squeezed": "u(x), v(y), w(z), x<=z, z<y",
    "constant": "r(x,y), s(y,z), z>=KEY, x<KEY",
    "half triangle": "e(x,y), e(y,z), e(x,z), x<y, y<z",
    "two below": "r(x,y), s(y,z), t(z,w), x<w, y<w",
    "narrowed and computed": "u(x), v(y), x<y, z=x*2, r(z,y)",
}
FILTERED = {
    "unequal": "r(x,y), s(y,z), x!=z",
    "unequal wildcards": "p(x,y,_), q(_,y,z), z!=x",
    "of both": "r(x,y), s(y,z), x+z!=y",
    "equal sums": "r(x,y), s(z,w), x+y=z+w",
    "of the last": "u(x), v(y), x%2=0",
    "parity": "r(x,y), s(y,z), (x+y+z)%2=0",
}
SHAPES = {**PLAIN, **COMPUTED, **NARROWED, **FILTERED}


@dataclass(frozen=True)
class Domain:
    """The keys `low`, `low` + 1, ... of which there are `size`."""

    low: int
    size: int

    def key(self, rng: Random) -> int:
        return self.low + rng.randrange(self.size)

    def row(self, rng: Random, name: str) -> Row:
        return tuple(self.key(rng) for _ in range(ARITY[name]))

    @classmethod
    def any(cls, rng: Random) -> Domain:
        size = rng.choice((3, 5, 8, 12))
        return cls(rng.choice((0, 0, 0, -4, KEY_MIN, KEY_MAX - size + 1)), size)


def written(text: str, domain: Domain) -> str:
    """The query with its constant in the domain."""
    return text.replace("KEY", f"({domain.low + 2})" if domain.low + 2 < 0 else str(domain.low + 2))


def some_data(rng: Random, text: str, domain: Domain, most: int = 40) -> Data:
    return {name: {domain.row(rng, name) for _ in range(rng.randint(0, most))} for name in relations_in(text)}


def changed(rng: Random, data: Data, domain: Domain, *, most: int = 20) -> Data:
    """The data with a few rows inserted or erased."""
    following = {name: set(rows) for name, rows in data.items()}
    for _ in range(rng.choice((1, 1, 2, min(5, most), most))):
        name = rng.choice(sorted(data))
        if following[name] and rng.random() < 0.5:
            following[name].discard(rng.choice(sorted(following[name])))
        else:
            following[name].add(domain.row(rng, name))
    return following


def some_traced(
    rng: Random,
    *,
    shapes: dict[str, str] = SHAPES,
    granularity: str | None = None,
    domain: Domain | None = None,
    most: int = 40,
) -> tuple[Traced, Domain]:
    """A query of a random shape in a random key order, traced; and its domain."""
    domain = domain or Domain.any(rng)
    text = written(shapes[rng.choice(sorted(shapes))], domain)
    return Traced(
        text,
        some_data(rng, text, domain, most),
        rng.choice,
        granularity or rng.choice(GRANULARITIES),
        Sizes.tiny(rng),
        rng,
    ), domain
