"""Random programs and data for them: every feature of the language that this engine evaluates, on tiny domains.

Programs are generated as text together with the types of everything in it, so each is well typed and grounded. Floats
never meet an operation that could make a NaN, divisors are non-zero constants: whether a term without a value is
reached depends on the key order, and has tests of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st

from lftj.language.notation import literal_text
from tests.conftest import JIT

TYPES = ("number", "unsigned", "float", "symbol")
MIN, MAX, TOP = -(2**63), 2**63 - 1, 2**64 - 1
DATA: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, 2, 3, -1, MAX, MIN, MAX - 1),
    "unsigned": (0, 1, 2, 3, TOP, 2**63, 2**63 - 1),
    "float": (0.0, 0.5, 1.0, -1.5, 1e300, float("inf"), float("-inf"), 5e-324),
    "symbol": ("a", "b", "", "ab", "é", "a\nb", "B"),
}
# Written in the text of a program: infinities have no literal.
CONSTANTS = {**DATA, "float": (0.0, 0.5, 1.0, -1.5, 1e300)}
# Most values are of two or three, so that joins find partners.
TINY = {kind: values[:2] for kind, values in DATA.items()}
SMALL = {kind: values[:3] for kind, values in DATA.items()}
WORDS = ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor")
COMPARISONS = ("<", "<=", ">", ">=", "<=", ">=", "!=", "!=", "=")

# What `pick` chooses by: hypothesis' draw, or a random.Random.
Draw = Any
Schema = tuple[str, ...]


def pick(draw: Draw, options: Any) -> Any:
    """One of `options`, chosen by hypothesis or by a seeded generator."""
    return draw.choice(options) if isinstance(draw, Random) else draw(st.sampled_from(options))


@dataclass
class Body:
    """A body as it grows: its literals, and the variables bound so far with their types."""

    literals: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)

    def variables(self, kind: str) -> list[str]:
        return [name for name, other in self.bound.items() if other == kind]

    def fresh(self) -> str:
        return f"v{len(self.bound)}"


def constant(draw: Draw, kind: str) -> str:
    return literal_text(pick(draw, (*TINY[kind] * 4, *CONSTANTS[kind])), kind)


def operand(draw: Draw, body: Body, kind: str) -> str:
    names = body.variables(kind)
    if names and pick(draw, range(4)):
        return pick(draw, names)
    text = constant(draw, kind)
    return f"({text})" if text.startswith("-") else text  # `-1 ^ 2` is -(1 ^ 2)


def expression(draw: Draw, body: Body, kind: str, depth: int = 2) -> str:
    """A term of type `kind` over bound variables."""
    if depth == 0 or not pick(draw, range(3)):
        return operand(draw, body, kind)

    def sub(other: str = kind) -> str:
        return expression(draw, body, other, depth - 1)

    if kind == "symbol":
        options = [
            lambda: f"cat({sub()}, {sub()})",
            lambda: f"substr({sub()}, {pick(draw, range(-1, 3))}, {pick(draw, range(-1, 3))})",
            lambda: f"to_string({sub(pick(draw, ('number', 'unsigned')))})",
            lambda: f"{pick(draw, ('min', 'max'))}({sub()}, {sub()})",
            lambda: f"{pick(draw, ('min', 'max'))}({sub()})",
        ]
    elif kind == "float":
        options = [
            lambda: f"({sub()} * 2.0)",
            lambda: f"({sub()} + 0.5)",
            lambda: f"(-({sub()}))",
            lambda: f"{pick(draw, ('min', 'max'))}({sub()}, {sub()}, 0.5)",
            lambda: f"itof({sub('number')})",
            lambda: f"utof({sub('unsigned')})",
        ]
    else:
        u = "u" if kind == "unsigned" else ""
        other = "unsigned" if kind == "number" else "number"
        options = [
            lambda: f"({sub()} {pick(draw, '+-*')} {sub()})",
            lambda: f"({sub()} {pick(draw, '/%')} {pick(draw, (1, 2, 3))}{u})",
            lambda: f"({sub()} {pick(draw, WORDS)} {sub()})",
            lambda: f"{pick(draw, ('bnot', 'lnot', '-'))}({sub()})",
            lambda: f"({sub()} ^ ({sub()} band 7{u}))",  # a negative exponent of 0 has no value
            lambda: f"{pick(draw, ('min', 'max'))}({sub()}, {sub()})",
            lambda: f"{'utoi' if kind == 'number' else 'itou'}({sub(other)})",
        ]
        if kind == "number":
            options.append(lambda: f"strlen({sub('symbol')})")
    return pick(draw, options)()


def atom(draw: Draw, body: Body, name: str, schema: Schema) -> str:
    """An atom; its bare variables become bound."""
    before = dict(body.bound)
    args = []
    for kind in schema:
        names = body.variables(kind)
        choice = pick(draw, range(20))
        if choice < 6 and names:
            args.append(pick(draw, names))
        elif choice < 16:
            args.append(body.fresh())
            body.bound[args[-1]] = kind
        elif choice < 17:
            args.append(constant(draw, kind))
        elif choice < 18 and before:
            args.append(expression(draw, Body(bound=before), kind, 1))
        else:
            args.append("_")
    return f"{name}({', '.join(args)})"


def condition(draw: Draw, body: Body) -> str:
    kind = pick(draw, sorted(set(body.bound.values())) or ["number"])
    if kind == "symbol" and not pick(draw, range(3)):
        test = pick(draw, ("contains", "!contains", "match", "!match"))
        first = literal_text(pick(draw, ("a", "b", "", "a.*", "[ab]")), "symbol")
        return f"{test}({first}, {expression(draw, body, kind, 1)})"
    op = pick(draw, COMPARISONS)
    return f"{expression(draw, body, kind, 1)} {op} {operand(draw, body, kind)}"


def make_body(draw: Draw, schemas: dict[str, Schema], *, most: int = 4) -> Body:
    """A body over some of `schemas`, of at most `most` atoms."""
    body = Body()
    for _ in range(pick(draw, [n for n in (1, 2, 2, 3, 3, 4) if n <= most])):
        name = pick(draw, sorted(schemas))
        body.literals.append(atom(draw, body, name, schemas[name]))
        if body.bound and not pick(draw, range(4)):  # a computed key, which later atoms may use
            kind = pick(draw, sorted(set(body.bound.values())))
            term = expression(draw, body, kind, 1)
            new = body.fresh()
            body.bound[new] = kind
            body.literals.append(pick(draw, (f"{new} = {term}", f"{term} = {new}")))
    for _ in range(pick(draw, (0, 0, 0, 1, 1, 2, 3))):
        body.literals.append(condition(draw, body))
    return body


def make_schemas(draw: Draw, prefix: str, count: int, *, kinds: tuple[str, ...] = TYPES) -> dict[str, Schema]:
    found = {}
    for i in range(count):
        arity = pick(draw, (0, 1, 1, 2, 2, 2, 3, 3, 4))
        one_type = pick(draw, (False, True))
        kind = pick(draw, kinds)
        found[f"{prefix}{i}"] = tuple(kind if one_type else pick(draw, kinds) for _ in range(arity))
    return found


# Rows of a relation: the product of four relations has 65,000, which interpreted kernels take minutes for.
MOST = 16 if JIT else 6


def make_rows(draw: Draw, schema: Schema, *, most: int = MOST) -> list[tuple[Any, ...]]:
    if not schema:
        return [()] * pick(draw, (1, 2, 0))
    pools = [pick(draw, (SMALL[kind], TINY[kind], SMALL[kind], DATA[kind])) for kind in schema]
    count = pick(draw, (most, most // 2, 1, 0, most))
    return [tuple(pick(draw, pool) for pool in pools) for _ in range(count)]


def declaration(name: str, schema: Schema) -> str:
    return f".decl {name}({', '.join(f'c{i}:{kind}' for i, kind in enumerate(schema))})"


def fact(name: str, row: tuple[Any, ...], schema: Schema) -> str:
    return f"{name}({', '.join(literal_text(value, kind) for value, kind in zip(row, schema, strict=True))})."


@dataclass
class Case:
    """A program in parts (one call of `db.rules` each), loads (relation, rows) in two waves, sizes of the database."""

    parts: list[str]
    loads: list[tuple[str, list[tuple[Any, ...]]]]
    later: list[tuple[str, list[tuple[Any, ...]]]]
    sizes: dict[str, int]
    schemas: dict[str, Schema]


def make_sizes(draw: Draw) -> dict[str, int]:
    """Sizes of pages, directories and output buffers."""
    return {
        "page_rows": pick(draw, (2, 4, 8)),
        "directory_rows": pick(draw, (2, 4, 8)),
        "buffer_rows": pick(draw, (1, 3, 64)),
    }


def make_case(draw: Draw, *, kinds: tuple[str, ...] = TYPES, derived: int = 3) -> Case:
    base = make_schemas(draw, "r", pick(draw, range(1, 4)), kinds=kinds)
    known = dict(base)
    lines = [declaration(name, schema) for name, schema in base.items()]
    parts = []
    heads: dict[str, Schema] = {}
    for i in range(pick(draw, range(1, derived + 1))):
        name = f"p{i}"
        head_schema: Schema | None = None
        for number in range(pick(draw, (1, 1, 2, 3))):
            body = make_body(draw, known)
            if head_schema is None:
                arity = pick(draw, (2, 3, 1, 4, 0))
                usable = sorted(set(body.bound.values())) or list(kinds)
                head_schema = tuple(pick(draw, usable) for _ in range(arity))
                lines.append(declaration(name, head_schema))
            args = [
                expression(draw, body, kind, 1) if not pick(draw, range(4)) else operand(draw, body, kind)
                for kind in head_schema
            ]
            lines.append(f"{name}({', '.join(args)}) :- {', '.join(body.literals)}.")
            if number == 0 and pick(draw, (False, True)):  # the program goes on in another call of rules()
                parts.append("\n".join(lines))
                lines = []
        assert head_schema is not None
        known[name] = heads[name] = head_schema
        if pick(draw, (False, True)):
            for row in make_rows(draw, head_schema, most=2):
                if all(value not in (float("inf"), float("-inf")) for value in row):
                    lines.append(fact(name, row, head_schema))
    parts.append("\n".join(lines))
    loads = [(name, make_rows(draw, schema)) for name, schema in base.items()]
    loads += [(name, make_rows(draw, schema, most=3)) for name, schema in heads.items() if pick(draw, (False, True))]
    chosen = [pick(draw, sorted(known)) for _ in range(pick(draw, (0, 1, 2)))]
    later = [(name, make_rows(draw, known[name], most=4)) for name in chosen]
    return Case(parts, loads, later, make_sizes(draw), known)


def make_question(draw: Draw) -> tuple[dict[str, Schema], dict[str, list[Any]], str, dict[str, int]]:
    """Relations, their rows, a query, and sizes of the database."""
    kinds = pick(draw, (("number",), ("number",), TYPES))
    found = make_schemas(draw, "r", pick(draw, (1, 2, 3)), kinds=kinds)
    body = make_body(draw, found)
    rows = {name: make_rows(draw, schema) for name, schema in found.items()}
    return found, rows, ", ".join(body.literals), make_sizes(draw)


@st.composite
def cases(draw: Draw, **options: Any) -> Case:
    """Cases that shrink."""
    return make_case(draw, **options)


@st.composite
def questions(draw: Draw) -> tuple[dict[str, Schema], dict[str, list[Any]], str, dict[str, int]]:
    """Questions that shrink."""
    return make_question(draw)


# Hypothesis likes few and equal elements, which leaves most answers empty. These do not shrink, but are full.
seeds = st.integers(0, 2**48).map(Random)
