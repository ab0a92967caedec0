"""Bounds that move: old and new rows of an atom that is only compared are joined as pairs, with what lies between.

Catches: a row between old and new value that is missed, or counted twice; ties; a pair that is joined with other rows
before the change than after it; a row without a partner that is joined as if it had one; of two bounds that move at
once what only both of them tell.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import lftj
from lftj.errors import EvaluationError
from lftj.maintain import clause_delta
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.plain.evaluate import evaluate, parse

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

Row = tuple[Any, ...]
Facts = dict[str, set[Row]]
Columns = dict[str, list[Row]]

NUMBERS = """
.decl item(i:number, g:number, p:number)
.decl t(g:number, x:number)
.decl u(g:number, x:number, y:number)
"""
SHAPES = {
    "above": "p(i, v) :- item(i, g, v), t(g, x), v > x.",
    "below, and equal": "p(i, v) :- item(i, g, v), t(g, x), x >= v.",
    "both are only compared": "p(i) :- item(i, g, v), t(g, x), v >= x.",
    "different": "p(i) :- item(i, g, v), t(g, x), v != x.",
    "one value": "p(i, v) :- item(i, _, v), t(0, x), v < x.",
    "a band": "p(i, v) :- item(i, g, v), t(g, x), v > x, v < 2 * x.",
    "a gate": "p(i, v) :- item(i, g, v), u(g, x, n), v > x, n > 2.",
    "two columns": "p(i, v) :- item(i, g, v), u(g, x, y), v >= x, v < y.",
    "a wildcard": "p(i, v) :- item(i, g, v), u(g, x, _), v <= x.",
    "two bounds": "p(i, v) :- item(i, g, v), t(g, x), u(g, y, _), v > x, v < y.",
    "bounds of each other": "p(i, v) :- item(i, g, v), t(g, x), u(g, y, z), v > x, x < y, z >= v.",
    "one relation twice": "p(i, v) :- item(i, g, v), t(g, x), t(1, y), v > x, v != y.",
    "joined and compared": "p(i, v) :- item(i, g, v), t(g, x), t(v, g), v > x.",
    "what is compared is also a bound": "p(i, j) :- item(i, g, v), item(j, g, w), v < w.",
    "no range": "p(i, j) :- item(i, g, v), item(j, g, w), t(g, x), v + w > x.",
    "blocked": "p(i, v) :- item(i, g, v), t(g, x), v > x, !u(g, v, _), !t(v, g).",
    "a head of groups": "p(g) :- item(_, g, v), t(g, x), v > x.",
    "a computed bound": "p(i, v) :- item(i, g, v), t(g, x), y = x + 1, v > y.",
    "a mean": "p(i, v) :- item(i, g, v), m = sum w : { item(_, g, w) }, 4 * v > m.",
    "a sum": "p[g] = sum v : { item(_, g, v), t(g, x), v > x }.",
    "a count": "p[] = count : { item(i, g, _), u(g, x, y), i >= x, i < y }.",
    "facts": "p(i, v) :- item(i, g, v), t(g, x), v > x.\np(i, 3) :- item(i, i, _).\np(2, 2).",
}
VALUES: dict[str, Row] = {
    "number": (-(2**63), -1, 0, 1, 2, 2**63 - 1),
    "number?": (None, -1, 0, 1, 2, 2**63 - 1),
    "unsigned": (0, 1, 2, 2**64 - 1),
    "float": (float("-inf"), -0.5, 0.0, 1.5, 2.0, float("inf")),
    "float?": (None, float("-inf"), -0.5, 0.0, 1.5, float("inf")),
    "symbol": ("", "a", "b", "ab", "c"),
    "symbol?": (None, "", "a", "b", "ab"),
    "date": (date(1, 1, 1), date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(9999, 12, 31)),
    "decimal(9,2)": tuple(Decimal(n) / 100 for n in (-150, -1, 0, 1, 150)),
}


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}


def changes(rng: Random, facts: Facts, columns: Columns) -> list[tuple[str, str, Row]]:
    """Rows come, go and are replaced by others that begin as they do."""
    found = []
    for _ in range(rng.choice((1, 1, 2, 5))):
        name = rng.choice(sorted(columns))
        row = tuple(map(rng.choice, columns[name]))
        if facts[name] and rng.random() < 0.6:
            old = rng.choice(sorted(facts[name], key=repr))
            found.append(("erase", name, old))
            kept = rng.randrange(len(row))
            row = (*old[:kept], *row[kept:])
            if rng.random() < 0.3:
                continue
        found.append(("insert", name, row))
    return found


def follow(rng: Random, text: str, columns: Columns, derived: Callable[[Facts], set[Row]], maintain: str) -> None:
    """Contents and deltas of `p` after every transaction."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clause_delta, "LEAST_ROWS", rng.choice((1, 2, 256)))  # room for few derivations at a time
        db = lftj.Database._sized(page_rows=2, directory_rows=2)
        db.rules(text, maintain={"p": maintain})
        facts = {name: {tuple(map(rng.choice, c)) for _ in range(rng.randint(0, 12))} for name, c in columns.items()}
        note(f"{facts}")
        for name, rows in facts.items():
            db.load(name, list(rows))
        for _ in range(6):
            before, calls = derived(facts), changes(rng, facts, columns)
            note(f"{calls}")
            with db.transaction() as tx:
                for op, name, row in calls:
                    getattr(tx, op)(name, [row])
                    (facts[name].add if op == "insert" else facts[name].discard)(row)
            after = derived(facts)
            assert set(db["p"]) == after
            assert set(tx.delta["p"].inserted) == after - before
            assert set(tx.delta["p"].erased) == before - after


@examples(12, 2)
@given(programs.seeds, st.sampled_from((3, 6)))
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str, rng: Random, domain: int) -> None:
    values = tuple(range(domain))
    program = parse(NUMBERS + SHAPES[shape])

    def derived(facts: Facts) -> set[Row]:
        return set(evaluate(program, facts)["p"])

    follow(rng, NUMBERS + SHAPES[shape], {"item": [values] * 3, "t": [values] * 2, "u": [values] * 3}, derived, "delta")


@examples(12, 2)
@given(programs.seeds, st.sampled_from(sorted(OPERATORS)), st.sampled_from(("delta", "auto")))
@pytest.mark.parametrize("kind", VALUES)
def test_types(kind: str, rng: Random, op: str, maintain: str) -> None:
    """Every type in its order, with the values at its ends, and null, which nothing compares with."""
    text = f".decl a(i:number, v:{kind})\n.decl b(k:number, x:{kind})\np(i, v) :- a(i, v), b(_, x), v {op} x."

    def derived(facts: Facts) -> set[Row]:
        bounds = [x for _, x in facts["b"] if x is not None]
        return {(i, v) for i, v in facts["a"] if v is not None and any(OPERATORS[op](v, x) for x in bounds)}

    follow(rng, text, {"a": [(1, 2, 3), VALUES[kind]], "b": [(1, 2), VALUES[kind]]}, derived, maintain)


#: Conditions on a bound x that may be null, of floats, and where they hold.
TERMS: dict[str, Callable[[float, float], bool]] = {
    "v > max(x, 0.0)": lambda v, x: v > max(x, 0.0),
    "v < -x, v != x": lambda v, x: v < -x and v != x,
    "v > 0.5 * x, v < 2.0 * x, v != 1.0": lambda v, x: 0.5 * x < v < 2.0 * x and v != 1.0,
    "v >= x / 2.0, v <= x + 1.0": lambda v, x: x / 2.0 <= v <= x + 1.0,
}


@examples(25, 3)
@given(programs.seeds, st.sampled_from(("delta", "auto")))
@pytest.mark.parametrize("conditions", TERMS)
def test_terms_of_null(conditions: str, rng: Random, maintain: str) -> None:
    """A term of null has no value, nor is it an error; that there is null is known before it."""
    text = f".decl a(i:number, v:float?)\n.decl b(k:number, x:float?)\np(i) :- a(i, v), b(_, x), {conditions}."
    floats = (None, -2.0, -0.5, 0.0, 0.75, 1.0, 1.5, 4.0)

    def derived(facts: Facts) -> set[Row]:
        pairs = [(i, v, x) for i, v in facts["a"] for _, x in facts["b"] if v is not None and x is not None]
        return {(i,) for i, v, x in pairs if TERMS[conditions](v, x)}

    follow(rng, text, {"a": [(1, 2, 3), floats], "b": [(1, 2), floats]}, derived, maintain)


WHOLE = (-(2**63) + 1, -(2**53) - 1, -2, -1, 0, 1, 2, 2**53 + 1, 2**62 + 1, 2**63 - 513, 2**63 - 512, 2**63 - 1)
REAL = (float("-inf"), -(2.0**53), -1.5, -1.0, 0.0, 0.5, 1.0, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63, float("inf"))


@examples(25, 3)
@given(programs.seeds, st.sampled_from(sorted(OPERATORS)), st.sampled_from(("itof({}) {} {}", "{2} {1} to_float({0})")))
@pytest.mark.parametrize("null", ["", "?"])
def test_numbers_as_floats(null: str, rng: Random, op: str, written: str) -> None:
    """A range of numbers, though it is their floats that are compared."""
    text = f".decl a(i:number, v:number{null})\n.decl b(k:number, x:float{null})\n"
    text += f"p(i, v) :- a(i, v), b(_, x), {written.format('v', op, 'x')}."

    def derived(facts: Facts) -> set[Row]:
        found = set()
        for i, v in facts["a"]:
            for _, x in facts["b"]:
                if v is not None and x is not None:
                    one, other = (float(v), x) if written.startswith("itof") else (x, float(v))
                    found |= {(i, v)} if OPERATORS[op](one, other) else set()
        return found

    missing = (None,) if null else ()
    follow(rng, text, {"a": [(1, 2, 3), WHOLE + missing], "b": [(1, 2), REAL + missing]}, derived, "delta")


EXACT = tuple(Decimal(v).scaleb(-2) for v in (1 - 10**18, -(2**53) - 1, -150, -1, 0, 1, 50, 100, 2**53 + 1, 10**18 - 1))
NEAR = (-1e16, -90071992547409.93, -1.5, -0.01, 0.0, 0.01, 0.5, 1.0, 90071992547409.93, 1e16, float("inf"))


@examples(25, 3)
@given(programs.seeds, st.sampled_from(sorted(OPERATORS)))
@pytest.mark.parametrize("null", ["", "?"])
def test_decimals_as_floats(null: str, rng: Random, op: str) -> None:
    """As numbers: their conversion was no operation of kernels, so that each change was followed by a trace."""
    text = f".decl a(i:number, v:decimal(18,2){null})\n.decl b(k:number, x:float{null})\n"
    text += f"p(i, v) :- a(i, v), b(_, x), to_float(v) {op} x."

    def derived(facts: Facts) -> set[Row]:
        pairs = [(i, v, x) for i, v in facts["a"] for _, x in facts["b"] if v is not None and x is not None]
        return {(i, v) for i, v, x in pairs if OPERATORS[op](float(v), x)}

    missing = (None,) if null else ()
    follow(rng, text, {"a": [(1, 2, 3), EXACT + missing], "b": [(1, 2), NEAR + missing]}, derived, "delta")


@examples(12, 2)
@given(programs.seeds)
@pytest.mark.parametrize(
    "conditions", ["v > 10 / x", "v > 10 / x, v < x", "v > 6 / x, v < 12 / y", "v * (4 / x) > 3, v != y", "x / v > y"]
)
def test_bounds_without_a_value(conditions: str, rng: Random) -> None:
    """A commit fails where evaluating anew does, and goes on from what was."""
    columns: Columns = {"item": [(0, 1, 2)] * 2 + [(0, 1, 3, 5, 9)], "u": [(0, 1), (0, 1, 2, 4), (0, 1, 3)]}
    text = f"{NUMBERS}p(i, v) :- item(i, g, v), u(g, x, y), {conditions}."
    facts: Facts = {name: set() for name in columns}
    databases = [lftj.Database._sized(page_rows=2, directory_rows=2) for _ in range(2)]
    for db, maintain in zip(databases, ("delta", "recompute"), strict=True):
        db.rules(text, maintain={"p": maintain})
    for _ in range(10):
        calls = changes(rng, facts, columns)
        note(f"{calls}")
        errors = []
        for db in databases:
            try:
                with db.transaction() as tx:
                    for op, name, row in calls:
                        getattr(tx, op)(name, [row])
                errors.append("")
            except EvaluationError as error:
                errors.append(str(error))
        assert errors[0] == errors[1]
        assert set(databases[0]["p"]) == set(databases[1]["p"])
        facts = {name: set(databases[1][name]) for name in columns}


@pytest.mark.parametrize(
    ("bounds", "old", "new"),
    [
        ("t(g, x), u(g, 0, y)", (5, 9), (0, 0)),
        ("u(g, 0, y), t(g, x)", (0, 0), (5, 9)),
        ("t(g, x), u(g, 0, y)", (5, 9), (0, None)),
    ],
)
def test_no_value_beside_another_bound_that_moves(
    bounds: str, old: tuple[int, int], new: tuple[int, int | None]
) -> None:
    """Where x is 0, y is never 9: `10 / x` has no value for what was never there; rows stayed, or lacked."""
    text, found = f"{NUMBERS}p(i, v) :- item(i, g, v), {bounds}, v > 10 / x, v < y.", []
    for maintain in ("delta", "recompute"):
        db = lftj.Database()
        db.rules(text, maintain={"p": maintain})
        db.load("item", [(i, i % 4, i // 4) for i in range(400)])
        db.load("t", [(0, old[0]), (1, 5)])
        db.load("u", [(0, 0, old[1]), (1, 0, 9)])
        with db.transaction() as tx:
            tx.insert("item", [(400, 1, 4)])
        with db.transaction() as tx:
            tx.erase("t", [(0, old[0])])
            tx.erase("u", [(0, 0, old[1])])
            tx.insert("t", [(0, new[0])])
            tx.insert("u", [] if new[1] is None else [(0, 0, new[1])])
        assert tx.stats["heads"]["p"]["strategy"] == maintain
        found.append(set(db["p"]))
    assert found[0] == found[1]
    assert any(v == 4 for _, v in found[0])


def commits(db: lftj.Database, head: str, rows: list[tuple[Row, Row]]) -> Any:
    """The statistics of the last of transactions that replace one row of `item` each, and how many rows of `head`."""
    for old, new in rows:
        before = set(db[head])
        with db.transaction() as tx:
            tx.erase("item", [old])
            tx.insert("item", [new])
        assert set(db[head]) == before - set(tx.delta[head].erased) | set(tx.delta[head].inserted)
    return tx.stats["heads"][head]


@pytest.mark.parametrize(
    ("body", "type", "most"),
    [
        ("item(i, _, p), t = mean v : { item(_, _, v) }, p > t", "float", 40),
        ("item(i, g, p), t = mean v : { item(_, g, v) }, p > t", "float", 40),
        ("item(i, _, p), t = mean v : { item(_, _, v) }, to_float(p) > t", "number", 40),
        ("item(i, _, p), t = mean v : { item(_, _, v) }, to_float(p) > t", "decimal(10,2)", 40),
        ("item(i, g, p), t = mean v : { item(_, g, v) }, p > 0.5 * t, p < 2.0 * t", "float", 100),
        ("item(i, _, p), t = mean v : { item(_, _, v) }, u = max v : { item(_, _, v) }, p > t, p < u", "float", 120),
    ],
)
def test_one_row_takes_few_steps(body: str, type: str, most: int) -> None:
    """However many rows are above a mean: what changes is between where it was and where it is."""
    n, value = 100_000 if JIT else 600, {"number": int, "float": float}.get(type, Decimal)
    db = lftj.Database(f".decl item(i:number, g:number, p:{type})\nabove(i, p) :- {body}.")
    rows: list[Row] = [(i, i % 100, value(i * 7919 % n)) for i in range(n)]
    db.load("item", rows)
    told = commits(db, "above", [(rows[i], (*rows[i][:2], rows[i][2] + 10)) for i in (3, 50, 333, 444, 555)])
    assert told["strategy"] == "delta"
    assert told["steps"] < most
    assert "t moves in @above.1(" in str(db.explain("above"))
