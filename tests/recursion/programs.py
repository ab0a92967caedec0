"""Recursive programs: hand-written ones, and random ones of several components with negation and aggregates between.

Every program stops: what a recursive rule computes lies in a range that the rule itself bounds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from lftj.language.notation import literal_text
from tests.engine import programs
from tests.engine.programs import Draw, Schema, pick
from tests.mixed.programs import Mixed, Scope, add_free, negated

POOLS: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, 2, 3, 4, 5),
    "unsigned": (0, 1, 2, 2**64 - 1),
    "float": (0.0, 0.5, -1.5, 1e300),
    "symbol": ("a", "b", "", "é"),
}
KINDS = ("number", "number", "number", "symbol", "float", "unsigned")


@dataclass(frozen=True)
class Written:
    """A program by hand. `given`: relations that facts are given to, after `/` their columns; `heads` likewise.

    Columns are numbers, or a letter each: n(umber), s(ymbol), f(loat), u(nsigned).
    """

    given: str
    heads: str
    rules: str

    def mixed(self, *, sizes: dict[str, int] | None = None, facts_in_heads: bool = True) -> Mixed:
        """The program with its declarations."""
        made = Mixed(sizes=sizes or {})
        for name, schema, functional in _read(self.given):
            made.declare(name, schema, functional=functional)
            made.base.append(name)
        for name, schema, functional in _read(self.heads):
            made.declare(name, schema, functional=functional)
            if facts_in_heads and not functional:
                made.base.append(name)
        made.lines.append(self.rules)
        return made


def _read(text: str) -> list[tuple[str, Schema, bool]]:
    found = []
    for name, columns, functional in re.findall(r"(\w+)/(\w+)(!?)", text):
        letters = "n" * int(columns) if columns.isdigit() else columns
        kinds = {"n": "number", "s": "symbol", "f": "float", "u": "unsigned"}
        found.append((name, tuple(kinds[letter] for letter in letters), bool(functional)))
    return found


WRITTEN = {
    "closure, right": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- e(x, y), t(y, z)."),
    "closure, left": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z)."),
    "closure, nonlinear": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z)."),
    "closure, three ways": Written(
        "e/2",
        "t/2",
        "t(x, y) :- e(x, y).\nt(x, z) :- e(x, y), t(y, z).\nt(x, z) :- t(x, y), e(y, z).\nt(x, z) :- t(x, y), t(y, z).",
    ),
    "closure of texts": Written("e/ss", "t/ss", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z), x != z."),
    "closure of texts made": Written(
        "e/ss", "t/ss", 't(cat(x, "!"), y) :- e(x, y), strlen(y) < 2.\nt(x, z) :- t(x, y), e(y, z).'
    ),
    "closure of floats": Written("e/ff", "t/ff", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z), x < 100.5."),
    "closure of unsigned": Written("e/uu", "t/uu", "t(x, y) :- e(x, y).\nt(x, z) :- e(x, y), t(y, z), z < 4u."),
    "symmetric": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(y, x) :- t(x, y).\nt(x, z) :- t(x, y), t(y, z)."),
    "reflexive": Written("e/2", "t/2", "t(x, x), t(y, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z)."),
    "same generation": Written("e/2", "s/2", "s(x, y) :- e(p, x), e(p, y).\ns(x, y) :- e(a, x), s(a, b), e(b, y)."),
    "same generation, apart": Written(
        "e/2", "s/2", "s(x, y) :- e(a, x), e(a, y), x != y.\ns(x, y) :- e(a, x), s(a, b), e(b, y)."
    ),
    "mutual": Written(
        "e/2 f/2", "a/2 c/2", "a(x, y) :- e(x, y).\nc(x, z) :- a(x, y), f(y, z).\na(x, z) :- c(x, y), e(y, z)."
    ),
    "three members": Written(
        "e/2",
        "a/1 b/2 c/3",
        "a(x) :- e(x, x).\nb(x, y) :- a(x), e(x, y).\nc(x, y, z) :- b(x, y), e(y, z).\na(z) :- c(_, _, z).",
    ),
    "guarded": Written("e/2 f/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z), f(x, z)."),
    "reachable": Written("b/1 e/2", "r/1", "r(x) :- b(x).\nr(y) :- r(x), e(x, y)."),
    "reachable by any": Written("b/1 e/2", "r/1", "r(x) :- b(x).\nr(y) :- r(_), e(_, y), y > 1."),
    "even and odd": Written(
        "e/2", "even/1 odd/1", "even(0).\nodd(y) :- even(x), e(x, y).\neven(y) :- odd(x), e(x, y)."
    ),
    "labelled": Written(
        "e/3",
        "w/3",
        "w(x, y, l) :- e(x, l, y).\nw(x, z, l) :- w(x, y, l), e(y, l, z).\nw(x, y, 0) :- w(x, y, 1), w(y, x, 1).",
    ),
    "switches": Written(
        "b/1",
        "on/0 off/0 r/1",
        "on() :- b(1).\nr(x) :- on(), b(x).\noff() :- r(2), on().\non() :- off().\nr(3) :- off().",
    ),
    "cross product": Written(
        "b/1 e/2", "d/1 p/2", "d(x) :- b(x).\np(x, y) :- d(x), d(y).\nd(y) :- p(x, z), e(x, y), e(z, y)."
    ),
    "cross product within": Written("b/1 e/2", "t/2", "t(x, y) :- b(x), e(y, _).\nt(x, y) :- t(x, _), t(_, y)."),
    "diagonal": Written(
        "e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, x) :- t(x, y), t(y, x).\nt(y, z) :- t(x, x), e(x, y), e(y, z)."
    ),
    "facts only": Written("e/2 b/1", "t/2", "t(x, y) :- t(y, x), b(x).\nt(x, z) :- t(x, y), e(y, z)."),
    "facts in the text": Written("e/2", "t/2", "t(0, 1).\nt(1, 1).\nt(x, z) :- t(x, y), e(y, z).\ne(1, 2)."),
    "constants": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, 2), e(2, z).\nt(3, z) :- t(z, 3)."),
    "filters": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z), x < z, y != 3."),
    "counter": Written("b/1", "n/1", "n(x) :- b(x).\nn(x + 1) :- n(x), x < 6, x >= 0."),
    "remainders": Written("b/1", "m/1", "m(x) :- b(x).\nm((x * 3 + 1) % 7) :- m(x)."),
    "steps": Written("b/1 e/2", "d/2", "d(x, 0) :- b(x).\nd(y, n + 1) :- d(x, n), e(x, y), n < 4, n >= 0."),
    "computed key": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), z = y + 1, e(z, _)."),
    "expression in an atom": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y + 1, z)."),
    "sum of two": Written("b/1", "s/1", "s(x) :- b(x).\ns(z) :- s(x), s(y), z = x + y, z <= 9, x > 0, y > 0."),
    "disjunction": Written("e/2 f/2", "t/2", "t(x, z) :- e(x, z) ; t(x, y), (e(y, z) ; f(y, z))."),
    "same rule twice": Written(
        "e/2",
        "t/2",
        "t(x, y) :- e(x, y).\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z).\nt(a, c) :- t(a, b), e(b, c).",
    ),
    "triangles of its own": Written("e/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z), t(z, x)."),
    "negation below": Written(
        "e/2 f/2", "t/2", "t(x, y) :- e(x, y), !f(x, y).\nt(x, z) :- t(x, y), e(y, z), !f(x, z)."
    ),
    "negated conjunction below": Written(
        "e/2 f/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z), !(f(x, w), f(w, z))."
    ),
    "count below": Written(
        "e/2 f/2", "t/2", "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z), n = count : { f(x, _) }, n < 2."
    ),
    "lookups below": Written(
        "g/2! e/2", "t/2", "t(x, y) :- y = g[x].\nt(x, z) :- t(x, y), z = g[y].\nt(x, z) :- t(x, y), e(y, z), g[x] < 3."
    ),
    "negation between": Written(
        "e/2 b/1",
        "t/2 u/2 v/2",
        "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z).\nu(x, y) :- b(x), b(y), !t(x, y).\n"
        "v(x, y) :- u(x, y).\nv(x, z) :- v(x, y), u(y, z), !t(z, x).",
    ),
    "aggregates between": Written(
        "e/2",
        "t/2 deg/2! h/2",
        "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z).\ndeg[x] = count : { t(x, _) }.\n"
        "h(x, y) :- e(x, y), deg[x] > 2.\nh(x, z) :- h(x, y), t(y, z), n = sum w : { t(y, w) }, n > 3.",
    ),
    "minimum above": Written(
        "b/1 e/2",
        "d/2 far/2! r/1",
        "d(x, 0) :- b(x).\nd(y, n + 1) :- d(x, n), e(x, y), n < 5, n >= 0.\nfar[x] = min n : { d(x, n) }.\n"
        "r(x) :- far[x] = 1.\nr(y) :- r(x), e(x, y), far[y] > far[x].",
    ),
    "a tower": Written(
        "e/2",
        "a/2 b/2 c/2 top/1",
        "a(x, y) :- e(x, y).\na(x, z) :- a(x, y), e(y, z).\nb(x, y) :- a(x, y), a(y, x).\n"
        "b(x, z) :- b(x, y), b(y, z).\n"
        "c(x, y) :- a(x, y), !b(x, y).\nc(x, z) :- c(x, y), c(y, z).\ntop(x) :- c(x, _), !c(_, x).",
    ),
    "points to": Written(
        "new/2 assign/2 load/3 store/3",
        "v/2 h/3",
        "v(x, o) :- new(x, o).\nv(x, o) :- assign(x, y), v(y, o).\nh(p, f, o) :- store(x, f, y), v(x, p), v(y, o).\n"
        "v(x, o) :- load(x, y, f), v(y, p), h(p, f, o).",
    ),
    "galen": Written(
        "c/3 u/3 s/2 r/3",
        "p/2 q/3",
        "p(x, z) :- p(x, y), p(y, z).\nq(x, r, z) :- p(x, y), q(y, r, z).\np(x, z) :- p(y, w), u(w, r, z), "
        "q(x, r, y).\n"
        "p(x, z) :- c(y, w, z), p(x, w), p(x, y).\nq(x, o, z) :- q(x, r, z), s(r, o).\n"
        "q(x, e, o) :- q(x, y, z), r(y, u, e), q(z, u, o).",
    ),
    "paths as texts": Written(
        "e/ss", "t/sss", "t(x, y, cat(x, y)) :- e(x, y).\nt(x, z, cat(p, z)) :- t(x, y, p), e(y, z), strlen(p) < 4."
    ),
    "texts cut": Written("b/s e/ss", "r/s", "r(x) :- b(x).\nr(substr(cat(x, y), 1, 2)) :- r(x), e(x, y)."),
    "texts cut, by two ways": Written(
        "b/s e/ss f/s",
        "r/s s/ss",
        "r(x) :- b(x).\nr(y) :- s(x, y), strlen(x) < 2.\ns(x, y) :- r(x), e(x, y), !f(y).\n"
        "s(y, substr(cat(x, y), 0, 2)) :- s(x, y), r(y).\ns(x, z) :- s(x, y), s(y, z).",
    ),
    "texts compared": Written(
        "e/ss", "t/ss", 't(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z), match("[ab]*", y), z = cat(z, "").'
    ),
    "numbers of texts": Written(
        "b/1 e/2",
        "n/1 t/s",
        'n(x) :- b(x).\nt(to_string(x)) :- n(x).\nn(y) :- t(s), match("[0-9]+", s), x = to_number(s), e(x, y).',
    ),
}


# Random programs ------------------------------------------------------------------------------------------------


def _constant(draw: Draw, kind: str) -> str:
    return literal_text(pick(draw, POOLS[kind][:3]), kind)


def _bounded(draw: Draw, body: Scope) -> None:
    """A number computed in a range of its own, as a new variable; `min` and `max` make no new value."""
    names = body.variables("number")
    a, b = pick(draw, names), pick(draw, names)
    new = body.fresh()
    form = pick(draw, range(4))
    if form == 0:
        body.literals += [f"{new} = {a} + 1", f"{a} >= 0", f"{a} < 4"]
    elif form == 1:
        body.literals.append(f"{new} = ({a} + {b}) % 5")
    elif form == 2:
        body.literals.append(f"{new} = {pick(draw, ('min', 'max'))}({a}, {b})")
    else:
        body.literals += [f"{new} = {a} - 1", f"{a} > 0", f"{a} < 6"]
    body.bound[new] = "number"


def _cut(draw: Draw, body: Scope) -> None:
    """A text of at most two characters that is computed, or its length."""
    names = body.variables("symbol")
    a, b = pick(draw, names), pick(draw, names)
    new = body.fresh()
    if pick(draw, (True, True, False)):
        body.literals.append(f"{new} = substr(cat({a}, {b}), {pick(draw, (0, 1))}, {pick(draw, (1, 2))})")
        body.bound[new] = "symbol"
    else:
        body.literals.append(f"{new} = strlen({a})")
        body.bound[new] = "number"


def _count_below(draw: Draw, mixed: Mixed, body: Scope, lower: list[str]) -> None:
    """A condition on how many rows a relation below has, per value of a variable, or in all."""
    name = pick(draw, lower)
    args = ["_"] * len(mixed.known[name])
    for i, kind in enumerate(mixed.known[name]):
        if body.variables(kind) and pick(draw, (True, False)):
            args[i] = pick(draw, body.variables(kind))
            break
    body.literals.append(
        f"{pick(draw, (0, 1, 2))} {pick(draw, ('<', '>=', '!='))} count : {{ {name}({', '.join(args)}) }}"
    )


def make_rule(draw: Draw, mixed: Mixed, lower: list[str], members: dict[str, Schema], head: str, *, start: bool) -> str:
    """A rule of a component: over what lies below to `start` it, else over members too."""
    body, heads = Scope(), sorted(members)
    known = {**{name: mixed.known[name] for name in lower}, **members}
    chosen = [pick(draw, lower)] if start else [pick(draw, heads)]
    for _ in range(pick(draw, (0, 0, 1) if start else (0, 1, 1, 1, 2))):
        chosen.append(pick(draw, lower) if start else pick(draw, lower if pick(draw, (True, True, False)) else heads))
    for name in chosen:
        args = []
        for kind in known[name]:
            names, choice = body.variables(kind), pick(draw, range(20))
            if names and choice < 9:
                args.append(pick(draw, names))
            elif choice < 17:
                args.append(body.fresh())
                body.bound[args[-1]] = kind
            else:
                args.append("_" if choice < 19 else _constant(draw, kind))
        body.literals.append(f"{name}({', '.join(args)})")
    for _ in range(pick(draw, (0, 0, 1, 1, 2))):
        extra = pick(draw, ("computed", "condition", "negated", "negated", "count"))
        if extra == "computed" and body.variables("symbol") and pick(draw, (True, False)):
            _cut(draw, body)
        elif extra == "computed" and body.variables("number"):
            _bounded(draw, body)
        elif extra == "condition" and body.bound:
            kind = pick(draw, sorted(set(body.bound.values())))
            op = pick(draw, programs.COMPARISONS)
            body.literals.append(f"{pick(draw, body.variables(kind))} {op} {programs.operand(draw, body, kind)}")
        elif extra == "negated":
            below = Mixed(known={name: mixed.known[name] for name in lower})
            body.literals.append(negated(draw, below, body))
        elif extra == "count":
            _count_below(draw, mixed, body, lower)
    args = []
    for kind in members[head]:
        names = body.variables(kind)
        args.append(pick(draw, names) if names and pick(draw, range(12)) else _constant(draw, kind))
    return f"{head}({', '.join(args)}) :- {', '.join(body.literals)}."


def add_component(draw: Draw, mixed: Mixed, prefix: str) -> None:
    """One to three heads that may read each other."""
    lower = [name for name in sorted(mixed.known) if name not in mixed.functional]
    kinds = sorted({kind for name in lower for kind in mixed.known[name]})
    members: dict[str, Schema] = {}
    for i in range(pick(draw, (1, 1, 2, 2, 3))):
        arity = pick(draw, (2, 2, 2, 1, 1, 3, 0))
        usual = ("number",) * 3 if pick(draw, (True, True, False)) else tuple(pick(draw, kinds) for _ in range(3))
        members[f"{prefix}{'abc'[i]}"] = usual[:arity]
    for name, schema in members.items():
        mixed.declare(name, schema)
        del mixed.known[name]
        if pick(draw, (True, False)):
            mixed.base.append(name)
    for name in members:
        for _ in range(pick(draw, (1, 1, 2, 0))):
            mixed.lines.append(make_rule(draw, mixed, lower, members, name, start=True))
        for _ in range(pick(draw, (1, 1, 2, 3))):
            mixed.lines.append(make_rule(draw, mixed, lower, members, name, start=False))
    mixed.known.update(members)


def make_program(draw: Draw, *, kinds: tuple[str, ...] | None = None) -> Mixed:
    """A program of one to three components, with heads in between that are not recursive."""
    mixed = Mixed()
    kinds = kinds or pick(draw, (("number",), ("number",), KINDS))
    mixed.declare("r0", ("number", "number"))
    mixed.declare("r1", ("number",))
    for i in range(pick(draw, (0, 1, 1))):
        mixed.declare(f"r{i + 2}", tuple(pick(draw, kinds) for _ in range(pick(draw, (1, 2, 2, 3)))))
    mixed.base = sorted(mixed.known)
    for i in range(pick(draw, (1, 1, 2, 3))):
        add_component(draw, mixed, f"c{i}")
        if not pick(draw, range(3)):
            add_free(draw, mixed, f"p{i}")
            mixed.maintain[f"p{i}"] = pick(draw, ("trace", "recompute", "auto"))
    mixed.sizes = programs.make_sizes(draw)
    return mixed


@st.composite
def recursive_programs(draw: Draw) -> Mixed:
    """Programs that shrink."""
    return make_program(draw)


# Facts and changes ----------------------------------------------------------------------------------------------


def make_rows(draw: Draw, schema: Schema, most: int, wide: int = 6) -> list[tuple[Any, ...]]:
    """Rows of tiny domains."""
    return [tuple(pick(draw, POOLS[kind][:wide]) for kind in schema) for _ in range(pick(draw, (1, 1, 2, most)))]


def shuffled(rng: Random, rows: list[Any]) -> list[Any]:
    return rng.sample(rows, len(rows))
