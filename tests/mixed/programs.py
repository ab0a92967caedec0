"""Random programs that mix everything: joins, projections, negation, aggregates, functional predicates, over strata.

Built on tests/engine/programs.py, whose atoms, expressions and conditions are taken, as text that is well typed and
grounded. Whether a term without a value is met must not depend on the order of evaluation, so divisions by what may be
zero stand in heads of rules with one atom only. Floats are such that no sum is an infinity or a NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.engine import programs
from tests.engine.programs import Body, Draw, Schema, pick

KINDS = (("number",), ("number",), ("number", "symbol"), ("number", "float"), programs.TYPES)
FLOATS = (0.0, 0.5, 0.1, -1.5, 1e300, -1e300, 5e-324, 0.25)
# Those of the executable models, and others; `e`, `t` and `b` are replaced by relations with as many columns.
JOINS = (
    ("t(x,y,z)", "e(x,y), e(y,z), e(x,z)"),
    ("t(x,y,z)", "e(x,y), e(y,z), !e(x,z)"),
    ("b(x)", "e(x,y), e(y,z), e(x,z)"),
    ("e(x,y)", "e(x,y), e(x,z), e(y,z)"),
    ("t(x,y,z)", "e(x,y), e(y,z), !b(z)"),
    ("b(x)", "e(x,y), e(y,z), !b(z), !e(x,z)"),
    ("e(x,y)", "e(x,y), e(x,y), !e(y,x)"),
    ("t(x,y,z)", "b(x), e(y,z), !e(x,z), e(x,y)"),
    ("e(x,z)", "e(x,y), e(y,z), x != z"),
    ("b(x)", "e(x,y), e(y,_)"),
    ("b(x)", "e(x,x), !b(x)"),
    ("e(x,y)", "b(x), b(y), x < y, !e(x,y)"),
    ("b(y)", "b(x), y = x + 1, !b(y)"),
    ("e(x,c)", "b(x), c = count : { e(x,y), e(y,_) }"),
    ("e(x,c)", "b(x), c = max y : { e(x,y), !b(y) }"),
    ("b(c)", "c = count : { e(x,y), e(y,z), e(x,z) }"),
    ("e(x,s)", "b(x), s = sum y + z : { e(x,y), e(y,z) }"),
    ("b(x)", "b(x), !(e(x,y), e(y,x))"),
)
# What a body may have besides atoms.
EXTRAS = ("computed", "condition", "negated", "negated", "group", "aggregate", "test", "lookup", "either", "opposite")


class Scope(Body):
    """A body whose new variables are new in the whole rule."""

    def __init__(self, names: Any = None, bound: dict[str, str] | None = None) -> None:
        super().__init__(bound=dict(bound or {}))
        self.names = names if names is not None else count()

    def fresh(self) -> str:
        return f"v{next(self.names)}"


@dataclass
class Mixed:
    """A program, the relations that facts are given to with their types, and how the database is to be set up."""

    lines: list[str] = field(default_factory=list)
    known: dict[str, Schema] = field(default_factory=dict)
    base: list[str] = field(default_factory=list)
    functional: set[str] = field(default_factory=set)
    maintain: dict[str, str] = field(default_factory=dict)
    granularity: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def declare(self, name: str, schema: Schema, *, functional: bool = False, key: Sequence[int] = ()) -> None:
        self.known[name] = schema
        columns = [f"c{i}:{kind}" for i, kind in enumerate(schema)]
        if functional:
            self.functional.add(name)
            self.lines.append(f".decl {name}({', '.join(columns[:-1])}) -> {columns[-1]}")
        else:
            primary = f" primary-key ({', '.join(f'c{i}' for i in key)})" if key else ""
            self.lines.append(f".decl {name}({', '.join(columns)}){primary}")


# Literals -------------------------------------------------------------------------------------------------------


def operand(draw: Draw, mixed: Mixed, body: Body, kind: str) -> str:
    """An expression, or the value of a functional predicate."""
    lookups = [
        name
        for name in sorted(mixed.functional)
        if mixed.known[name][-1] == kind and set(mixed.known[name][:-1]) <= set(body.bound.values())
    ]
    if lookups and not pick(draw, range(3)):
        name = pick(draw, lookups)
        return f"{name}[{', '.join(pick(draw, body.variables(k)) for k in mixed.known[name][:-1])}]"
    return programs.expression(draw, body, kind, 1)


def negated(draw: Draw, mixed: Mixed, body: Body) -> str:
    """A negated atom over bound variables, constants and wildcards."""
    name = pick(draw, sorted(mixed.known))
    args = []
    for kind in mixed.known[name]:
        names, choice = body.variables(kind), pick(draw, range(10))
        if names and choice < 6:
            args.append(pick(draw, names))
        elif choice < 8:
            args.append("_")
        elif choice == 8:
            args.append(programs.constant(draw, kind))
        else:
            args.append(programs.expression(draw, body, kind, 1))
    return f"!{name}({', '.join(args)})"


def lookup_test(draw: Draw, mixed: Mixed, body: Scope) -> str:
    """A comparison with what may be a value of a functional predicate."""
    kind = pick(draw, sorted(set(body.bound.values())))
    op = pick(draw, programs.COMPARISONS)
    return f"{operand(draw, mixed, body, kind)} {op} {programs.operand(draw, body, kind)}"


def either(draw: Draw, mixed: Mixed, body: Scope) -> str:
    """A disjunction, whose alternatives bind the same variables: two atoms of a relation."""
    before, name = dict(body.bound), pick(draw, sorted(mixed.known))
    first = programs.atom(draw, body, name, mixed.known[name])
    while "_" in first:  # what braces count would differ
        body.bound = dict(before)
        first = programs.atom(draw, body, name, mixed.known[name])
    new = [v for v in body.bound if v not in before]
    args = []
    for kind in mixed.known[name]:
        fitting = [v for v in new if body.bound[v] == kind]
        args.append(pick(draw, fitting) if fitting else programs.operand(draw, Body(bound=before), kind))
        new = [v for v in new if v != args[-1]]
    second = f"{name}({', '.join(args)})"
    if body.bound and pick(draw, (True, False)):
        second = f"{second}, {programs.condition(draw, body)}"
    return f"({first} ; {second})"


def inner(draw: Draw, mixed: Mixed, body: Scope, most: int, depth: int = 0) -> Scope:
    """The body of an aggregate or a negated group: atoms that may hold variables of `body`, and others.

    `depth`: how many more of them it may have within.
    """
    found = Scope(body.names, body.bound)
    for _ in range(pick(draw, range(1, most + 1))):
        name = pick(draw, sorted(mixed.known))
        found.literals.append(programs.atom(draw, found, name, mixed.known[name]))
    if found.bound and not pick(draw, range(4)):
        found.literals.append(programs.condition(draw, found))
    if found.bound and not pick(draw, range(6)):
        found.literals.append(lookup_test(draw, mixed, found))
    if not pick(draw, range(8)):
        found.literals.append(either(draw, mixed, found))
    if depth and not pick(draw, range(4)):
        found.literals.append(group(draw, mixed, found, depth - 1))
    if depth and not pick(draw, range(4)):
        define(found, *aggregate(draw, mixed, found, depth - 1))
    return found


QUANTILES = ("quantile_disc(0.5)", "quantile_cont(0.3)")
TO_FLOATS = ("mean", "quantile_cont(0.3)", "var_pop", "stddev_samp")


def group(draw: Draw, mixed: Mixed, body: Scope, depth: int = 1) -> str:
    """A negated conjunction, of two literals or more: one atom must not have variables of its own."""
    found = inner(draw, mixed, body, 2, depth)
    while len(found.literals) < 2:
        name = pick(draw, sorted(mixed.known))
        found.literals.append(programs.atom(draw, found, name, mixed.known[name]))
    other = f" ; {programs.condition(draw, body)}" if body.bound and not pick(draw, range(6)) else ""
    return f"!({', '.join(found.literals)}{other})"


def aggregate(draw: Draw, mixed: Mixed, body: Scope, depth: int = 1) -> tuple[str, str]:
    """An aggregate and the type of its value."""
    around = Scope(body.names, {v: k for v, k in body.bound.items() if pick(draw, (True, True, False))})
    found = inner(draw, mixed, around, 2, depth)
    if not pick(draw, range(4)):
        found.literals.append(negated(draw, mixed, found))
    braces = f"{{ {', '.join(found.literals)} }}"
    op = pick(draw, ("count", "count", "sum", "sum", "min", "max", QUANTILES[0], *TO_FLOATS))
    own = {v: k for v, k in found.bound.items() if v not in body.bound} or found.bound
    usable = sorted({k for k in own.values() if op in ("min", "max") or "disc" in op or k != "symbol"})
    if op == "count" or not usable:
        return f"count : {braces}", "number"
    kind = pick(draw, usable)
    return f"{op} {folded(draw, own, kind)} : {braces}", "float" if op in TO_FLOATS else kind


def folded(draw: Draw, own: dict[str, str], kind: str) -> str:
    """What an aggregate folds: a variable, or seldom a term of one."""
    term = "" if pick(draw, range(3)) else programs.expression(draw, Body(bound=own), kind, 1)
    if any(v in term for v in own):
        return f"({term})"  # `min max(x) : { ... }` would read as a minimum of a maximum
    return pick(draw, [v for v, k in own.items() if k == kind])


def body_of(draw: Draw, mixed: Mixed) -> Scope:
    """A body with whatever a body may have."""
    body = Scope()
    for _ in range(pick(draw, (1, 1, 2, 2, 3))):
        name = pick(draw, sorted(mixed.known))
        body.literals.append(programs.atom(draw, body, name, mixed.known[name]))
    for _ in range(pick(draw, (0, 0, 1, 1, 2))):
        extra = pick(draw, EXTRAS)
        if extra == "computed" and body.bound:
            kind = pick(draw, sorted(set(body.bound.values())))
            define(body, programs.expression(draw, body, kind, 1), kind)
        elif extra == "condition" and body.bound:
            body.literals.append(programs.condition(draw, body))
        elif extra == "negated":
            body.literals.append(negated(draw, mixed, body))
        elif extra == "either":
            body.literals.append(either(draw, mixed, body))
        elif extra == "opposite" and body.bound:
            body.literals.append(f"!({pick(draw, (lookup_test(draw, mixed, body), programs.condition(draw, body)))})")
        elif extra == "group":
            body.literals.append(group(draw, mixed, body))
        elif extra == "aggregate":
            define(body, *aggregate(draw, mixed, body))
        elif extra == "test":
            term, kind = aggregate(draw, mixed, body)
            op = pick(draw, programs.COMPARISONS)
            body.literals.append(f"{programs.operand(draw, body, kind)} {op} {term}")
        elif extra == "lookup" and body.bound:
            kind = pick(draw, sorted(set(body.bound.values())))
            define(body, operand(draw, mixed, body, kind), kind)
    if body.literals[0].startswith("!") or pick(draw, (True, False)):
        return body
    order = list(range(len(body.literals)))
    if isinstance(draw, Random):
        draw.shuffle(order)  # the order of literals means nothing
    body.literals = [body.literals[i] for i in order]
    return body


def define(body: Scope, term: str, kind: str) -> None:
    new = body.fresh()
    body.literals.append(f"{new} = {term}")
    body.bound[new] = kind


# Rules ----------------------------------------------------------------------------------------------------------


def value(draw: Draw, mixed: Mixed, body: Scope, kind: str) -> str:
    """An argument of a head: seldom an aggregate."""
    if not pick(draw, range(12)):
        term, found = aggregate(draw, mixed, body)
        if found == kind:
            return term
    return programs.operand(draw, body, kind) if pick(draw, range(5)) else operand(draw, mixed, body, kind)


def rule_of(draw: Draw, mixed: Mixed, body: Scope, name: str, schema: Schema) -> str:
    """The rule of a body for a head."""
    return f"{name}({', '.join(value(draw, mixed, body, kind) for kind in schema)}) :- {', '.join(body.literals)}."


def add_free(draw: Draw, mixed: Mixed, name: str) -> None:
    """One to three rules of any form."""
    schema: Schema | None = None
    for _ in range(pick(draw, (1, 1, 1, 2, 3))):
        body = body_of(draw, mixed)
        if schema is None:
            usable = sorted(set(body.bound.values())) or ["number"]
            schema = tuple(pick(draw, usable) for _ in range(pick(draw, (1, 1, 2, 2, 3, 0))))
            mixed.declare(name, schema)
            del mixed.known[name]  # not to be read by the other rules
        mixed.lines.append(rule_of(draw, mixed, body, name, schema))
    assert schema is not None
    mixed.known[name] = schema


def add_join(draw: Draw, mixed: Mixed, name: str) -> None:
    """A shape of the models over relations of numbers, the same one or several."""
    head, body = pick(draw, JOINS)
    places = {"e": 2, "b": 1, "t": 3}
    fitting = {p: [n for n, s in sorted(mixed.known.items()) if s == ("number",) * a] for p, a in places.items()}
    if not fitting["e"] or not fitting["b"]:
        add_free(draw, mixed, name)
        return
    one = {p: pick(draw, found) for p, found in fitting.items() if found}
    same = pick(draw, (True, True, False))
    pieces = []
    for piece in body.replace("(", "(\0").split("\0"):
        letter = piece[-2:-1]
        before = piece[-3:-2]
        if piece.endswith("(") and letter in one and not before.isalpha():
            piece = f"{piece[:-2]}{one[letter] if same else pick(draw, fitting[letter])}("
        pieces.append(piece)
    mixed.declare(name, ("number",) * places[head[0]])
    mixed.lines.append(f"{name}{head[1:]} :- {''.join(pieces)}.")


def add_folding(draw: Draw, mixed: Mixed, name: str) -> None:
    """A functional head: an aggregate by the head's keys, or an aggregate or lookup per row of a relation."""
    source = pick(draw, sorted(mixed.known))
    schema = mixed.known[source]
    if schema and pick(draw, (True, False)):
        body = Scope()
        body.literals.append(programs.atom(draw, body, source, schema))
        extra = inner(draw, mixed, body, 1) if pick(draw, (True, False)) else body
        literals = [*body.literals, *extra.literals] if extra is not body else body.literals
        keys = [v for v in extra.bound if pick(draw, (True, False))][:2]
        own = {v: k for v, k in extra.bound.items() if v not in keys}
        kind = pick(draw, sorted(set(own.values())) or ["number"])
        ops = ["count", "min", "max", QUANTILES[0], *(("sum", *TO_FLOATS) if kind != "symbol" else ())]
        # Of what one atom binds, the rest orders the bindings, and what is folded comes last.
        if kind == "symbol" and extra is body and len(own) == 1 and "_" not in literals[0]:
            ops.append("cat")
        op = pick(draw, ops) if own else "count"
        term = folded(draw, own, kind) if op != "count" else ""
        kinds = (
            *(extra.bound[v] for v in keys),
            "float" if op in TO_FLOATS else "number" if op == "count" else kind,
        )
        if keys and not pick(draw, range(6)):
            at = pick(draw, range(len(keys)))
            keys[at] = programs.expression(draw, extra, kinds[at], 1)
        mixed.declare(name, kinds, functional=True)
        mixed.lines.append(f"{name}[{', '.join(keys)}] = {op} {term} : {{ {', '.join(literals)} }}.")
        return
    body = Scope()
    names = [body.fresh() for _ in schema]
    body.bound.update(zip(names, schema, strict=True))
    body.literals.append(f"{source}({', '.join(names)})")
    define(body, *aggregate(draw, mixed, body)) if pick(draw, (True, False)) else None
    if not pick(draw, range(8)):  # several values of one key may come
        names = names[1:]
    value, kind = pick(draw, list(body.bound.items())) if body.bound else ("1", "number")
    if value not in names and value in body.bound and not body.literals[-1].startswith(f"{value} ="):
        value, kind = "1", "number"
    mixed.declare(name, (*(body.bound[v] for v in names), kind), functional=True)
    mixed.lines.append(f"{name}[{', '.join(names)}] = {value} :- {', '.join(body.literals)}.")


def add_dividing(draw: Draw, mixed: Mixed, name: str) -> None:
    """A rule whose head has no value for some rows."""
    usable = [n for n, s in sorted(mixed.known.items()) if "number" in s]
    if not usable:
        add_free(draw, mixed, name)
        return
    source = pick(draw, usable)
    args = [f"x{i}" for i in range(len(mixed.known[source]))]
    divisor = args[mixed.known[source].index("number")]
    mixed.declare(name, ("number",))
    mixed.lines.append(f"{name}(10 {pick(draw, '/%')} ({divisor} - 3)) :- {source}({', '.join(args)}).")


FORMS = (add_free,) * 5 + (add_join,) * 5 + (add_folding,) * 3


def make_program(draw: Draw, *, keyed: bool = True) -> Mixed:
    """A program over one to three relations, a functional one and one with a primary key (`keyed`).

    With up to five derived ones.
    """
    mixed, kinds = Mixed(), pick(draw, KINDS)
    mixed.declare("r0", ("number", "number"))
    mixed.declare("r1", ("number",))
    for i in range(pick(draw, (0, 1, 2))):
        arity = pick(draw, (1, 2, 2, 3, 3))
        mixed.declare(f"r{i + 2}", tuple(pick(draw, kinds) for _ in range(arity)))
    if pick(draw, (True, False)):
        keys = tuple(pick(draw, kinds) for _ in range(pick(draw, (1, 1, 2, 0))))
        mixed.declare("f0", (*keys, pick(draw, kinds)), functional=True)
    if keyed and pick(draw, (True, False)):
        wide = tuple(pick(draw, kinds) for _ in range(pick(draw, (2, 4, 5, 6))))
        key = sorted({pick(draw, range(len(wide))) for _ in range(pick(draw, (1, 1, 2)))})
        mixed.declare("k0", wide, key=key)
    mixed.base = sorted(mixed.known)
    for i in range(pick(draw, range(1, 6))):
        form = add_dividing if not pick(draw, range(25)) else pick(draw, FORMS)
        form(draw, mixed, f"p{i}")
        mixed.maintain[f"p{i}"] = pick(draw, ("trace", "triggers", "triggers", "delta", "recompute", "auto"))
        mixed.granularity[f"p{i}"] = pick(draw, ("node", "interval", "auto"))
    mixed.sizes = {**programs.make_sizes(draw), "columns_from": pick(draw, (0, 1 << 13))}
    return mixed


def make_rows(draw: Draw, schema: Schema, most: int) -> list[tuple[Any, ...]]:
    """Rows of tiny domains; seldom the ends of the types."""
    data = {**programs.DATA, "float": FLOATS}
    pools = [data[k] if not pick(draw, range(8)) else data[k][: pick(draw, (2, 3, 4))] for k in schema]
    return [tuple(pick(draw, pool) for pool in pools) for _ in range(pick(draw, (1, 1, 2, most)))]


@st.composite
def mixed_programs(draw: Draw) -> Mixed:
    """Programs that shrink."""
    return make_program(draw)
