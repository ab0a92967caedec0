"""Random programs over columns of every type, under changes and every strategy, against the plain evaluator's numbers.

A map of small integers to a type that keeps their order makes of a program over numbers one over that type, and of its
answer the other's. So the reference stays one over numbers (tests/plain), which knows nothing of types: formulation A
equals formulation B. Constants, comparisons, negation, recursion, groups, min, max and count go through the map;
what is computed of values does not (test_functors.py).
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.values.type_table import type_of
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.plain.evaluate import evaluate, parse
from tests.types.cases import CASES, TYPES

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

SIZES = {"page_rows": 4, "directory_rows": 4}
BASE = {"a": 2, "b": 2, "c": 1}
ORDERED = [type for type in TYPES if type != "bool"]  # whose two values do not keep the order of eight
OPS = ("<", "<=", "=", "!=", ">", ">=")


def body(rng: Random, seen: list[str]) -> tuple[str, list[str]]:
    """A conjunction over the relations so far, and its variables."""
    names = [f"x{i}" for i in range(rng.randint(2, 4))]
    literals, used = [], []
    for _ in range(rng.randint(1, 3)):
        relation = rng.choice([*BASE, *seen])
        args = [rng.choice(names) for _ in range(BASE.get(relation, 2))]
        used += args
        literals.append(f"{relation}({', '.join(a if rng.random() < 0.9 else '_' for a in args)})")
    bound = [n for n in dict.fromkeys(used) if any(n in literal for literal in literals)]
    if not bound:
        return "c(x0)", ["x0"]
    for _ in range(rng.randint(0, 2)):
        other = rng.choice(bound) if rng.random() < 0.6 else f"<{rng.randrange(8)}>"
        literals.append(f"{rng.choice(bound)} {rng.choice(OPS)} {other}")
    if rng.random() < 0.4:
        relation = rng.choice(list(BASE))
        literals.append(f"!{relation}({', '.join(rng.choice([*bound, '_']) for _ in range(BASE[relation]))})")
    return ", ".join(literals), bound


def make(rng: Random) -> tuple[str, list[str]]:
    """Rules with `<n>` for a constant, and their heads of two columns of the type."""
    rules, heads = [], []
    for i in range(rng.randint(2, 4)):
        name = f"p{i}"
        kind = rng.choice(("plain", "plain", "closure", "fold"))
        inside, bound = body(rng, heads)
        kind = "plain" if kind == "fold" and len(bound) < 2 else kind
        rules.append(f".decl {name}(x:<T>) -> y:<T>" if kind == "fold" else f".decl {name}(x:<T>, y:<T>)")
        if kind == "closure":
            edge = rng.choice(("a", "b"))
            rules += [f"{name}(x, y) :- {edge}(x, y).", f"{name}(x, z) :- {name}(x, y), {edge}(y, z), c(z)."]
        elif kind == "fold":
            op, (group, value) = rng.choice(("min", "max")), rng.sample(bound, 2)
            rules.append(f"{name}[{group}] = {op} {value} : {{ {inside} }}.")
        else:
            head = [rng.choice(bound) if rng.random() < 0.9 else f"<{rng.randrange(8)}>" for _ in range(2)]
            rules.append(f"{name}({', '.join(head)}) :- {inside}.")
        if kind != "fold":
            heads.append(name)
    return "\n".join(rules), [f"p{i}" for i in range(i + 1)]


def written(text: str, type: str) -> str:
    """The rules over a type: constants as its literals."""
    for n in range(8):
        text = text.replace(f"<{n}>", type_of(type).literal(CASES[type].of(n)) if type != "number" else str(n))
    declared = " ".join(
        f".decl {name}({', '.join(f'c{i}:{type}' for i in range(width))})" for name, width in BASE.items()
    )
    return f"{declared}\n{text.replace('<T>', type)}"


def run(rng: Random, type: str, strategy: str) -> None:
    rules, heads = make(rng)
    db = lftj.Database._sized(**SIZES)
    db.rules(written(rules, type), maintain={} if strategy == "auto" else dict.fromkeys(heads, strategy))
    program = parse(written(rules, "number"))
    of, facts = CASES[type].of, {name: set[tuple[Any, ...]]() for name in BASE}
    for _ in range(4 if JIT else 2):
        with db.transaction() as tx:
            for name, width in BASE.items():
                come = {tuple(rng.randrange(8) for _ in range(width)) for _ in range(rng.randrange(6))}
                gone = set(rng.sample(sorted(facts[name]), min(2, len(facts[name])))) - come
                tx.erase(name, [tuple(map(of, row)) for row in gone])
                tx.insert(name, [tuple(map(of, row)) for row in come])
                facts[name] = facts[name] - gone | come
        expected = evaluate(program, facts)
        for name in heads:
            mapped = {tuple(map(of, row)) for row in expected[name]}
            assert set(db[name]) == mapped, (name, rules, facts)
            assert list(db[name]) == sorted(mapped)


@examples(120, 8)
@given(programs.seeds, st.sampled_from(ORDERED), st.sampled_from(("auto", "delta", "triggers", "recompute")))
def test_programs_over_every_type(rng: Random, type: str, strategy: str) -> None:
    run(rng, type, strategy)


@pytest.mark.parametrize("type", ORDERED)
@pytest.mark.parametrize("strategy", ["auto", "trace", "delta", "triggers", "recompute"])
def test_a_program_over_each_type(type: str, strategy: str) -> None:
    for seed in range(2 if JIT else 1):
        run(Random(f"{type} {seed}"), type, strategy)
