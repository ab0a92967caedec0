"""Random sum-product queries and random streams of events, for tests of triggers against plain evaluation."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st

from lftj.language.clause import Apply, Value, Var
from lftj.triggers.algebra import Add, Cmp, Formula, Lift, Mul, Rel, Val

SCHEMA = {"R": ("number", "number"), "S": ("number", "number"), "T": ("number",)}
# Relations that hold a row once or not at all: what is negated.
SETS = {"P": ("number",), "W": ("number", "number")}


def var(name: str) -> Var:
    """A variable of type number."""
    return Var(name, "number")


def const(n: int) -> Value:
    """A number."""
    return Value(n, "number")


@st.composite
def queries(draw, atoms: int = 4) -> tuple[tuple[Var, ...], Formula]:
    """Keys and a body: up to `atoms` atoms, self joins, comparisons, computed keys, negated set atoms, sums."""
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731
    parts: list[Formula] = []
    have: list[str] = []
    for i in range(draw(st.integers(1, atoms))):
        name = pick(["R", "R", "R", "S", "S", "T", "P", "W"])
        args: list[Var | Value] = []
        for _ in range(len({**SCHEMA, **SETS}[name])):
            x = pick("abcd")
            if not draw(st.integers(0, 9)):
                args.append(const(1))
                continue
            if var(x) in args:
                parts.append(Cmp("=", var(x), var(y := f"{x}{i}")))
                x = y
            args.append(var(x))
            have.append(x)
        parts.insert(0, Rel(name, tuple(args)))
    variables = [*map(var, sorted(set(have)))]
    terms = [*variables, const(2)]

    def term():
        kind = draw(st.integers(0, 3))
        if kind < 2:
            return pick(terms)
        return Apply(pick(["+", "-", "*"]), (pick(terms), pick(terms)), "number")

    for _ in range(draw(st.integers(0, 2))):
        parts.append(Cmp(pick(["<", "<=", ">", ">=", "!=", "="]), pick(terms), term()))
    if draw(st.booleans()) and variables:
        lifted = var(pick(["l", "a"]))
        parts.append(Lift(lifted, term()) if lifted.name == "l" or lifted in variables else Val(const(3)))
        if lifted not in variables and isinstance(parts[-1], Lift):
            variables.append(lifted)
    for _ in range(draw(st.integers(0, 2))):
        parts.append(Val(term()))
    if draw(st.integers(0, 2)) == 0 and variables:
        name = pick(["P", "W"])
        negated = Rel(name, tuple(pick(variables) for _ in SETS[name]))
        if len(set(negated.args)) == len(negated.args):
            parts.append(Add((Val(const(1)), Mul((Val(const(-1)), negated)))))
    keys = draw(st.permutations(variables))[: draw(st.integers(0, 2))]
    return tuple(keys), Mul(tuple(parts))


@st.composite
def streams(draw, events: int = 25) -> list[tuple[int, str, tuple]]:
    """Insertions and deletions over multisets, and over sets for `SETS`: only what is there is deleted."""
    rows = Counter()
    stream = []
    for _ in range(draw(st.integers(1, events))):
        there = sorted(rows)
        if there and draw(st.integers(0, 9)) < 4:
            sign, (name, row) = -1, draw(st.sampled_from(there))
        else:
            name = draw(st.sampled_from(sorted({**SCHEMA, **SETS})))
            row = tuple(draw(st.integers(0, 2)) for _ in {**SCHEMA, **SETS}[name])
            sign = -1 if name in SETS and rows[name, row] else 1
        rows[name, row] += sign
        if not rows[name, row]:
            del rows[name, row]
        stream.append((sign, name, row))
    return stream
