"""Bodies with negated atoms and heads that are projections, for the tests of traces.

A shape is written `head variables :- body`, its negated atoms with `!`. Those of the executable model
(test_bodies_model.py) come first, then others: negation with constants, repeated variables, wildcards and computed
keys, over the relation that is joined, and suffixes of every kind. `BodyTraced` traces them, in key orders that let the
search end at the first witness and in others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from lftj.language.checker import check_query
from lftj.language.clause import BodyAtom, Clause, Schema, Value, Var
from lftj.plan.keyorder import Choice
from lftj.plan.traceplan import TracePlan
from tests.trace.cases import Domain, some_data, written
from tests.trace.traced import GRANULARITIES, Sizes, Traced

MODEL_SHAPES = {
    "has a common neighbour": "x,y :- e(x,y), e(x,z), e(y,z)",
    "starts a triangle": "x :- e(x,y), e(y,z), e(x,z)",
    "is there a triangle": ":- e(x,y), e(y,z), e(x,z)",
    "open wedge": "x,y,z :- e(x,y), e(y,z), !e(x,z)",
    "wedge end not blocked": "x,y,z :- e(x,y), e(y,z), !v(z)",
    "some unblocked wedge": "x :- r(x,y), s(y,z), !v(z), !e(x,z)",
    "set difference": "x :- u(x), !v(x)",
    "not linked back": "x,y :- r(x,y), s(x,y), !e(x,y)",
    "late negation": "x,y,z :- u(x), r(y,z), !e(x,z), s(x,y)",
}
NEGATED = {
    "one way only": "x,y :- e(x,y), !e(y,x)",
    "no loop": "x,y :- e(x,y), !e(x,x)",
    "induced 4-cycle": "a,b,c,d :- e(a,b), e(b,c), e(c,d), e(a,d), !e(a,c), !e(b,d)",
    "independent": "x,y,z :- u(x), u(y), u(z), !e(x,y), !e(y,z), !e(x,z)",
    "no successor": "x :- u(x), !e(x,_)",
    "no predecessor": "x :- u(x), !e(_,x)",
    "wildcard in the middle": "x,z :- r(x,z), !p(x,_,z)",
    "of three": "x,y,z :- r(x,y), s(y,z), !p(x,y,z), !q(z,_,x)",
    "constant": "x,y :- r(x,y), !s(KEY,y)",
    "constant behind": "x,y :- r(x,y), !s(y,KEY)",
    "constants only": "x :- u(x), !s(KEY,KEY)",
    "computed": "x,y,z :- r(x,y), z=x+y, !u(z)",
    "computed, of two": "x,y,z :- r(x,y), z=x+1, s(z,y), !e(z,x), !v(z)",
    "negated before computed": "x,z :- u(x), !v(x), z=x+1, w(z)",
    "narrowed": "x,y :- u(x), v(y), x<y, !e(x,y)",
    "filtered": "x,y,z :- r(x,y), s(y,z), x!=z, !t(x,z)",
    "equal atoms": "x,y :- r(x,y), !r(y,_), !s(x,y), !s(x,_)",
    "product": "x,y :- u(x), v(y), !r(x,y)",
    "apart": "x,y,z :- u(x), r(y,z), !v(x), !s(y,z)",
}
PROJECTED = {
    "sources": "x :- r(x,y), s(y,z)",
    "middle": "y :- r(x,y), s(y,z)",
    "ends": "x,z :- r(x,y), s(y,z)",
    "any": ":- r(x,y), s(y,z)",
    "semi-join": "x,y :- r(x,y), s(y,z), t(z,w)",
    "semi-join of a product": "x :- u(x), r(y,z), v(y)",
    "suffix with a range": "x :- u(x), v(y), x<y",
    "suffix with a filter": "x,y :- r(x,y), s(y,z), z%2=0",
    "suffix with a computed key": "x :- r(x,y), z=x+y, s(z,w)",
    "suffix with a constant": "x :- r(x,y), s(y,KEY), t(y,w)",
    "suffix of three": "x :- r(x,y), s(y,z), t(z,w), e(w,a)",
    "suffix that blocks": "x :- u(x), r(x,y), !s(y,_), t(y,z), !v(z)",
    "computed head": "x,z :- r(x,y), z=x+1, s(y,w)",
    "blocked head": "x,y :- r(x,y), !s(y,x), t(y,z)",
    "ternary": "x,w :- p(x,y,z), q(y,z,w)",
    "blocked at every depth": "x :- u(x), !v(x), r(x,y), !v(y), s(y,z), !v(z)",
    "none with a loop": ":- r(x,y), !r(y,x), !u(x)",
}
SHAPES = {**MODEL_SHAPES, **NEGATED, **PROJECTED}
SUFFIXES = ("kept", "counted", "planner")


@dataclass
class BodyTraced(Traced):
    """A shape over data, traced. `suffix`: one of SUFFIXES, what becomes of an existential suffix."""

    suffix: str = "kept"

    def __post_init__(self) -> None:
        self.head, self.body = (part.strip() for part in self.text.split(":-"))
        super().__post_init__()

    def clause(self, schemas: Mapping[str, Schema]) -> Clause:
        """The clause without help of a parser that knows negation."""
        parts = re.split(r",\s+", self.body)
        positive = [part for part in parts if not part.startswith("!")]
        clause = check_query(", ".join(positive), schemas)
        variables = {v.name: v for v in clause.variables()}
        negated = tuple(negated_atom(part, variables) for part in parts if part.startswith("!"))
        head = tuple(variables[name] for name in self.head.split(",") if name)
        return replace(clause, head_args=head, negated=negated)

    def granulated(self) -> TracePlan:
        plan = super().granulated()
        if self.suffix == "planner":
            return plan
        return replace(plan, until=self.plan.until if self.suffix == "kept" else len(self.plan.depths))


def negated_atom(text: str, variables: Mapping[str, Var]) -> BodyAtom:
    """`!s(KEY,y)` as a BodyAtom, its key written out."""
    found = re.fullmatch(r"!(\w+)\((.*)\)", text)
    assert found is not None
    args: list[Var | Value | None] = []
    for arg in found[2].split(","):
        bare = arg.strip("()")
        args.append(None if bare == "_" else variables[bare] if bare.isalpha() else Value(int(bare), "number"))
    return BodyAtom(found[1], tuple(args))


def some_body(
    rng: Random,
    *,
    shapes: Mapping[str, str] = SHAPES,
    granularity: str | None = None,
    suffix: str | None = None,
    domain: Domain | None = None,
    most: int = 30,
) -> tuple[BodyTraced, Domain]:
    """A random shape in a random key order, traced; and its domain."""
    domain = domain or Domain.any(rng)
    text = written(shapes[rng.choice(sorted(shapes))], domain)
    head = text.split(":-")[0].strip().split(",")

    def choose(found: Sequence[Choice]) -> Choice:
        ending = [c for c in found if set(c.order[: len(head)]) == set(head) or head == [""]]
        return rng.choice(ending if ending and rng.random() < 0.7 else found)

    return BodyTraced(
        text,
        some_data(rng, text, domain, most),
        choose,
        granularity or rng.choice(GRANULARITIES),
        Sizes.tiny(rng),
        rng,
        suffix or rng.choice(SUFFIXES),
    ), domain
