"""DuckDB as an oracle: it says of random programs what the plain evaluator says, and finds a wrong answer of lftj."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.fuzz import twin
from tests.fuzz.case import Case, make_case, run
from tests.fuzz.duckdb_oracle import DuckDB
from tests.fuzz.sql_terms import Untranslated
from tests.fuzz.twin import Disagreement
from tests.mixed import programs
from tests.mixed.programs import Mixed
from tests.mixed.twin import FAILURES
from tests.plain.evaluate import evaluate, parse

pytest.importorskip("duckdb")

DECLARED = """
.decl e(x:number, y:number)
.decl q(x:number)
.decl u(x:unsigned)
.decl w(k:number, x:float)
.decl s(k:number, t:symbol)
.decl f(k:number) -> v:number
"""
DATA: dict[str, list[tuple[Any, ...]]] = {
    "e": [(1, 2), (1, 3), (2, 3), (3, 3), (-7, 2), (2**63 - 1, -(2**63))],
    "q": [(1,), (2,), (3,), (-1,)],
    "u": [(0,), (3,), (2**64 - 1,)],
    "w": [(1, 0.1), (1, 0.5), (2, 0.1), (2, 1e15), (3, -1.5)],
    "s": [(1, "a"), (1, "éb"), (2, ""), (3, "a'\nb")],
    "f": [(1, 10), (2, 2)],
}


def both(rules: str) -> tuple[Any, Any]:
    """What DuckDB says of a program's `p`, and what the plain evaluator says."""
    program = parse(DECLARED + rules)
    return DuckDB(program).evaluate(DATA)["p"], evaluate(program, DATA)["p"]


@pytest.mark.parametrize(
    "rules",
    [
        # Conjunctions, negation, disjunction, lookups.
        ".decl p(x:number, y:number)\np(x, z) :- e(x, y), e(y, z), x != z.",
        ".decl p(x:number)\np(x) :- q(x), !e(x, _).",
        ".decl p(x:number)\np(x) :- q(x), !(e(x, y), q(y)), !e(_, x + 1).",
        ".decl p(x:number)\np(x) :- e(x, y), (y = 2 ; y > 2, !q(x)).",
        ".decl p(x:number)\np(f[x] + 1) :- q(x), f[x] > 5.",
        ".decl p()\np() :- q(x), e(x, x).",
        ".decl p(x:number)\np(1).\np(x) :- q(x), x > 2.\np(y) :- e(_, y).",
        # Aggregates.
        ".decl p(x:number, c:number)\np(x, c) :- q(x), c = count : { e(x, _) }.",
        ".decl p(x:number, c:number)\np(x, c) :- q(x), c = count : { e(x, y) ; e(y, x), q(y) }.",
        ".decl p(x:number, m:number)\np(x, m) :- q(x), m = max y : { e(x, y), !e(y, y) }.",
        ".decl p(x:number, s:number)\np(x, s) :- q(x), s = sum n : { e(x, y), n = count : { e(y, z), z > x } }.",
        ".decl p(x:number)\np(x) :- q(x), !(x > min y : { e(x, y) }).",
        ".decl p(x:number) -> s:number\np[y] = sum z : { e(y, z), z > 0 }.",
        ".decl p() -> s:number\np[] = sum x : { q(x), x > 100 }.",
        ".decl p(m:float)\np(m) :- m = mean x : { e(x, _) }.\np(m) :- m = mean y : { e(_, y), y > 0 }.",
        ".decl p(m:float)\np(m) :- q(k), m = sum x : { w(k, x) }.\np(m) :- q(k), m = mean x : { w(k, x) }.",
        ".decl p(s:unsigned)\np(s) :- s = max x : { u(x) }.\np(s) :- s = sum x : { u(x), x < 5u }.",
        # 64 bits, texts, floats.
        ".decl p(x:number)\np(x * y + x - y) :- e(x, y).\np(x / 2 % 5) :- e(x, _).\np(-x) :- e(_, x).",
        ".decl p(x:number)\np(x bshl y) :- e(x, y).\np(x bshr 1) :- e(x, _).\np(x bshru y) :- e(x, y).",
        ".decl p(x:number)\np((x band y) bor (x bxor 5)) :- e(x, y).\np(bnot x) :- e(x, _).",
        ".decl p(x:number)\np((x land y) + (x lor 0) + (x lxor 1) + (lnot y)) :- e(x, y).",
        ".decl p(x:number)\np(x ^ (y band 7)) :- e(x, y).\np(utoi(x)) :- u(x).",
        ".decl p(x:unsigned)\np(x * x - 5) :- u(x).\np(x / 2u % 7u) :- u(x).\np(itou(x)) :- e(x, _).\np(-x) :- u(x).",
        ".decl p(x:unsigned)\np(x ^ (x band 7u)) :- u(x).\np(bnot x) :- u(x).\np(x bshl 63u) :- u(x).",
        ".decl p(t:symbol)\np(cat(t, to_string(k))) :- s(k, t).\np(substr(t, k - 1, k - 2)) :- s(k, t).",
        '.decl p(k:number)\np(strlen(t)) :- s(_, t).\np(k) :- s(k, t), contains("b", t), !match("a.*", t).',
        '.decl p(t:symbol)\np(min(t, "b")) :- s(_, t).\np(t) :- t = max x : { s(_, x) }.',
        ".decl p(x:float)\np(-x * 2.0 + 0.5) :- w(_, x).\np(max(itof(k), 0.5)) :- w(k, _).\np(x / 3) :- w(_, x).",
        # Recursion.
        ".decl p(x:number, y:number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).",
        ".decl p(x:number)\n.decl o(x:number)\np(0).\no(x + 1) :- p(x), x < 9.\np(x + 1) :- o(x), x < 9, !q(x).",
        ".decl p(x:number) -> n:number\np[y] = min v : { q(y), v = 0 ; p[x] = c, e(x, y), v = c + 1 }.",
        ".decl p(x:number) -> n:number\n.decl o(x:number) -> n:number\n"
        "p[y] = max v : { q(y), v = y ; o[x] = v, e(x, y) }.\no[y] = max v : { p[x] = v, e(x, y) }.",
    ],
)
def test_forms(rules: str) -> None:
    found, expected = both(rules)
    assert found == expected != set()


def test_what_is_empty() -> None:
    assert both(".decl p() -> s:number\np[] = min x : { q(x), x > 100 }.") == (set(), set())


def test_most_programs_are_translated() -> None:
    """Of the random programs, and their contents are those of the plain evaluator."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        rng = Random(seed)
        mixed = programs.make_program(rng, keyed=False)
        program = parse(mixed.text)
        facts = {name: set(programs.make_rows(rng, program.kinds[name], 12)) for name in mixed.base}
        for name in mixed.functional & set(mixed.base):  # one value per key
            facts[name] = set({row[:-1]: row for row in facts[name]}.values())
        try:
            expected = evaluate(program, facts)
            found = DuckDB(program).evaluate(facts)
        except FAILURES:  # a program without an answer
            continue
        except Untranslated as error:
            seen[str(error)] += 1
            continue
        assert found == expected, f"seed {seed}"
        seen[""] += 1
    assert seen[""] > 0.9 * seen.total() > 0.8 * 200, seen


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (".decl p(t:symbol)\np(t) :- q(k), t = cat x : { s(k, x) }.", "aggregates cat of symbol"),
        (".decl p(x:number)\np(2 ^ x) :- q(x).", "powers without a bound of the exponent"),
        (".decl p(x:float)\np(s) :- s = sum x * 1e100 : { w(_, x) }.", "sums of floats too far apart"),
        (".decl p(x:number)\np(to_number(t)) :- s(_, t).", "functors to_number of symbol"),
    ],
)
def test_what_is_not_translated_is_named(rules: str, why: str) -> None:
    with pytest.raises(Untranslated, match=why.replace("(", r"\(")):
        DuckDB(parse(DECLARED + rules)).evaluate(DATA)


def case_of(text: str, history: tuple[Any, ...]) -> Case:
    mixed = Mixed(lines=text.splitlines(), base=["e"], maintain={"p": "auto"})
    mixed.known["e"] = ("number", "number")
    return Case(0, "mixed", mixed, text, (), "auto", history)


TEXT = ".decl e(x:number, y:number)\n.decl p(x:number)\np(x) :- e(x, y), !e(y, x)."


def test_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if lftj and the plain evaluator left out the same negation."""
    case = case_of(TEXT, ((("insert", "e", [(1, 2), (2, 1), (2, 3)]),),))
    assert run(case).untranslated == ""
    monkeypatch.setattr(twin, "DuckDB", lambda program: DuckDB(parse(TEXT.replace(", !e(y, x)", ""))))
    with pytest.raises(Disagreement, match=r"p: DuckDB alone has \{\(1,\)\}, lftj alone set\(\)"):
        run(case)


def test_a_wrong_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = DuckDB.evaluate

    def less(self: DuckDB, facts: Any) -> Any:
        return {name: set(sorted(rows)[1:]) for name, rows in evaluated(self, facts).items()}

    monkeypatch.setattr(DuckDB, "evaluate", less)
    with pytest.raises(Disagreement, match=r"e: DuckDB alone has set\(\), lftj alone \{\(1, 2\)\}"):
        run(case_of(TEXT, ((("insert", "e", [(1, 2), (2, 3)]),),)))


def test_cases_tell_why_duckdb_did_not_see_them() -> None:
    case = case_of(TEXT + "\n.decl r(x:number)\nr(2 ^ x) :- e(x, _).", ((("insert", "e", [(1, 2)]),),))
    assert run(case).untranslated == "powers without a bound of the exponent"
    assert make_case(0).untranslated == ""
