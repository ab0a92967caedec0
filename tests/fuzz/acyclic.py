"""Programs with recursion along acyclic data: functional predicates computed from their own values of later keys.

Every step goes from a node to a greater one, or every one to a smaller, so the data have no cycle. Values stay small:
the plain evaluator computes a key before those that it reads, too, and must not meet a failure there.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.engine import programs
from tests.fuzz.accepted import accepted
from tests.mixed.programs import Mixed, add_folding, add_free, pick
from tests.plain.syntax import Program
from tests.recursion.programs import POOLS

Row = tuple[Any, ...]
VALUES = {"number": (0, 1, 2, 3, -1), "unsigned": (0, 1, 2), "float": (0.0, 0.5, -1.5, 1.0), "symbol": ("a", "b", "é")}
OPS = {
    "number": ("sum", "sum", "min", "max", "count", "mean"),
    "unsigned": ("sum", "min", "max", "count"),
    "float": ("sum", "sum", "min", "max", "mean", "stddev_samp"),
    "symbol": ("min", "max"),
}


class Recursion:
    """One component while its rules are made.

    `node`, `kind`: the types of nodes and values · `below`: how a node compares with those that its value comes from ·
    `keys`: of a head, of one node or of a node and another key that stays as it is.
    """

    def __init__(self, rng: Random, mixed: Mixed) -> None:
        self.rng, self.mixed = rng, mixed
        self.node = pick(rng, ("number", "number", "symbol"))
        self.kind = pick(rng, ("number", "number", "number", "unsigned", "float", "symbol"))
        self.below = pick(rng, "<>")
        self.heads = [f"t{i}" for i in range(pick(rng, (1, 1, 1, 2)))]
        self.wide = not pick(rng, range(4))
        self.made = 0

    def fresh(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def declare(self) -> None:
        mixed, node, kind = self.mixed, self.node, self.kind
        mixed.declare("b", (node,))
        mixed.declare("e", (node, node))
        mixed.declare("q", (node, node, kind))
        mixed.declare("w", (node, kind), functional=True)
        mixed.base = sorted(mixed.known)
        for head in self.heads:
            mixed.declare(head, (node, *[node] * self.wide, kind), functional=True)
            mixed.maintain[head] = "auto"

    def constant(self, kind: str) -> str:
        return programs.literal_text(pick(self.rng, VALUES[kind]), kind)

    def value(self, names: list[str], depth: int = 1) -> str:
        """A term over variables of the values' type, or a constant."""
        term = pick(self.rng, names) if names and pick(self.rng, range(5)) else f"({self.constant(self.kind)})"
        if not depth or not pick(self.rng, range(3)):
            return term
        other = self.value(names, depth - 1)
        if self.kind == "symbol":
            return f"{pick(self.rng, ('min', 'max'))}({term}, {other})"
        if self.kind == "unsigned":  # differences would wrap, and their sums leave 64 bits
            return f"({term} {pick(self.rng, ('+', 'band', 'bor'))} {other})"
        return pick(self.rng, (f"({term} + {other})", f"({term} - {other})", f"max({term}, {other})", f"-({term})"))

    def key(self, at: str, other: str) -> str:
        return f"{at}, {other}" if self.wide else at

    # -- what a value comes from ---------------------------------------------------------------------------------------

    def step(self, at: str, values: list[str]) -> tuple[list[str], str]:
        """(Literals that lead from a node to another, that one); adds to `values` what they bind."""
        there = self.fresh("y")
        ways = [f"e({at}, {there})", f"e({at}, {there})", f"e({there}, {at})", f"q({at}, {there}, _)"]
        value = self.fresh("k")
        way = pick(self.rng, (*ways, f"q({at}, {there}, {value})"))
        if way.endswith(f"{value})"):
            values.append(value)
        literals = [way, f"{at} {self.below} {there}"]
        if not pick(self.rng, range(8)):
            literals.append(pick(self.rng, (f"b({there})", f"!b({there})", f"e({at}, _)", f"!e({there}, {at})")))
        return literals, there

    def looked_up(self, there: str, other: str, values: list[str]) -> str:
        """A literal that reads the recursion at a node."""
        head, key = pick(self.rng, self.heads), self.key(there, other)
        choice = pick(self.rng, range(12))
        if choice < 7:
            value = self.fresh("v")
            values.append(value)
            return pick(self.rng, (f"{head}({key}, {value})", f"{head}[{key}] = {value}"))
        if choice < 8:
            return f"{head}({key}, _)"
        if choice < 10:
            return f"!{head}({key}, _)"
        return f"!{head}({key}, {self.value(values, 0)})"

    def denied(self, at: str, values: list[str]) -> str:
        """A negated atom, or two, over rows outside of the recursion with a value that may be looked up."""
        value = self.value(values, pick(self.rng, (0, 0, 1)))
        forms = (
            f"!w({at}, {value})",
            f"!q({at}, _, {value})",
            f"!q(_, {at}, {value})",
            f"!(q({at}, u, {value}), b(u))",
        )
        return pick(self.rng, forms)

    def braces(self, at: str, other: str, values: list[str], *, deep: bool = False) -> tuple[str, str]:
        """An aggregate over the values that a node's value comes from, and its type."""
        rng, own = self.rng, list[str]()
        literals, there = self.step(at, own)
        literals.append(self.looked_up(there, other, own))
        if not pick(rng, range(4)):
            literals.append(self.looked_up(there, other, own))
        if not pick(rng, range(6)):
            more, further = self.step(there, own)
            literals += [*more, self.looked_up(further, other, own)]
        if not deep and not pick(rng, range(6)):
            term, kind = self.braces(there, other, own, deep=True)
            name = self.fresh("n")
            literals.append(f"{name} = {term}")
            own += [name] * (kind == self.kind)
        if own and not pick(rng, range(4)):
            op = pick(rng, ("<", ">", "!=", "<="))
            literals.append(f"{pick(rng, own)} {op} {self.value([*own, *values], 0)}")
        if own and not pick(rng, range(6)):
            literals.append(self.denied(pick(rng, (at, there)), own))
        if not pick(rng, range(8)):
            texts = (at, there) if self.node == "symbol" else (f"to_string({at})", f"to_string({there})")
            tests = ("!contains(A, B)", 'contains(A, cat(A, B, "b"))', "A != substr(B, 0, 1)", "strlen(A) <= strlen(B)")
            literals.append(pick(rng, tests).replace("A", texts[0]).replace("B", texts[1]))
        if not pick(rng, range(6)):
            value = own[0] if len(own) == 1 else ""
            if value:
                literals = [f"({', '.join(literals)} ; w({at}, {value}), {there} = {at})"]
        rng.shuffle(literals)
        op = pick(rng, OPS[self.kind]) if own else "count"
        body = f"{{ {', '.join(literals)} }}"
        if op == "count":
            return f"count : {body}", "number"
        if not pick(rng, range(8)) and "[" not in body and ";" not in body:
            lookup = f"{pick(rng, self.heads)}[{self.key(there, other)}]"
            own = [*own, lookup]
        term = self.value(own)
        if not any(name in term for name in own):  # a constant alone has no type that a column gives it
            term = pick(rng, own)
        return f"{op} {term} : {body}", "float" if op in ("mean", "stddev_samp") else self.kind

    # -- rules ---------------------------------------------------------------------------------------------------------

    def rule(self, head: str) -> str:
        rng = self.rng
        at, other = "x", "z"
        key = self.key(at, other)
        if not pick(rng, range(6)):
            term, kind = self.braces(at, other, [])
            # A least or greatest value is that of all rules (tests/fuzz/extremes.py).
            if kind == self.kind and not self.wide and not term.startswith(("min", "max")):
                return f"{head}[{key}] = {term}."
        values: list[str] = []
        start = pick(rng, (f"b({at})", f"w({at}, v0)", f"e({at}, _)", f"w[{at}] = v0"))
        body = [start, *([pick(rng, (f"b({other})", f"e({at}, {other})"))] if self.wide else [])]
        if "v0" in start:
            values.append("v0")
        for _ in range(pick(rng, (0, 1, 1, 2))):
            choice = pick(rng, range(9))
            if choice < 5:
                term, kind = self.braces(at, other, values)
                name = self.fresh("n")
                body.append(f"{name} = {term}")
                values += [name] * (kind == self.kind)
            elif choice < 6:
                term, kind = self.braces(at, other, values)
                limit = self.value(values, 0) if kind == self.kind else self.constant(kind)
                body.append(f"{term} {pick(rng, ('<', '>=', '!='))} {limit}")
            elif choice < 7:
                literals, there = self.step(at, values)
                body += [*literals, self.looked_up(there, other, values)]
            elif choice < 8 and values and pick(rng, (True, False)):
                body.append(self.denied(at, values))
            elif choice < 8:
                literals, _ = self.step(at, [])
                body.append(f"!({', '.join(literals)})")
            elif values:
                body.append(f"{pick(rng, values)} {pick(rng, ('<', '!=', '>='))} {self.value(values, 0)}")
        rng.shuffle(body)
        return f"{head}[{key}] = {self.value(values)} :- {', '.join(body)}."


def make_program(rng: Random) -> Mixed:
    """One recursion, and up to three rules above it."""
    mixed = Mixed()
    recursion = Recursion(rng, mixed)
    recursion.declare()
    for head in recursion.heads:
        for _ in range(pick(rng, (1, 1, 2))):
            # One that lftj refuses binds no key, or is an aggregate of which it says so.
            while not accepted("\n".join((*mixed.lines, rule := recursion.rule(head)))):
                pass
            mixed.lines.append(rule)
    for i in range(pick(rng, (0, 1, 1, 2, 3))):
        pick(rng, (add_free, add_free, add_folding))(rng, mixed, f"p{i}")
        mixed.maintain[f"p{i}"] = pick(rng, ("trace", "triggers", "delta", "recompute", "auto"))
    mixed.sizes = programs.make_sizes(rng)
    return mixed


def make_rows(rng: Random, program: Program, name: str, most: int) -> list[Row]:
    """Rows of few nodes and small values."""
    *nodes, kind = program.kinds[name]
    pools = [POOLS[node] for node in nodes] + [VALUES[kind] if name in ("q", "w") else POOLS[kind]]
    return [tuple(pick(rng, pool) for pool in pools) for _ in range(pick(rng, (1, 2, most)))]


def some_calls(rng: Random, twin: Any, most: int) -> list[tuple[str, str, list[Row]]]:
    """Calls of one transaction."""
    calls = []
    for _ in range(pick(rng, (1, 2, 2, 4))):
        name = pick(rng, twin.mixed.base)
        rows = make_rows(rng, twin.program, name, most)
        known = sorted(twin.facts[name], key=repr)
        if known and pick(rng, (True, False)):
            calls.append(("erase", name, [pick(rng, known) for _ in range(pick(rng, (1, 2)))]))
        calls.append(("upsert" if name in twin.mixed.functional else "insert", name, rows))
    return calls
