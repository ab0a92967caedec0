"""What the groups of an aggregate say already: atoms and rules that go, those that must not, and the same answers."""

from __future__ import annotations

from random import Random

import pytest

import lftj
from lftj.language import check, parse
from tests.plain.evaluate import evaluate
from tests.plain.evaluate import parse as plainly

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

DECLARED = ".decl e(x:number, y:number)  .decl f(y:number)  .decl g(x:number, y:number, z:number)\n"
GOES = [
    (
        "d(x, n) :- e(x, _), n = count : { e(x, _) }.",
        ["@d.1(x, count) :- e(x, _w1).", "d(x, n) :- @d.1(x, n)."],
    ),
    # a variable stands for a wildcard, and more conditions in the braces change nothing about the atom
    (
        "d(x, n) :- e(x, y), n = max z : { e(x, z), f(z), z > 3 }.",
        [
            "@d.1.all(x, z) :- e(x, z), f(z), z > 3.",
            "@d.1(x, max z) :- @d.1.all(x, z).",
            "d(x, n) :- e(x, y), @d.1(x, n).",
        ],
    ),
    (
        "d(x, n) :- e(x, y), n = mean z : { e(x, z), f(z) }.",
        ["@d.1(x, mean z) :- e(x, z), f(z).", "d(x, n) :- @d.1(x, n)."],
    ),
    # the atom is needed, and no group is empty all the same
    (
        "d(x, y, n) :- e(x, y), n = count : { e(x, _) }.",
        ["@d.1(x, count) :- e(x, _w1).", "d(x, y, n) :- e(x, y), @d.1(x, n)."],
    ),
    (
        "d(x, n) :- e(x, y), f(y), n = sum z : { e(x, z) }.",
        ["@d.1(x, sum z) :- e(x, z).", "d(x, n) :- e(x, y), f(y), @d.1(x, n)."],
    ),
    # with a constant, and a larger body
    (
        "d(x, n) :- f(y), g(3, x, _), n = count : { g(3, x, z) }, y < 3.",
        ["@d.1(x, count) :- g(3, x, z).", "d(x, n) :- f(y), @d.1(x, n), y < 3."],
    ),
]
STAYS = [
    # the braces ask for more
    "d(x, n) :- e(x, _), n = count : { e(x, y), f(y) }.",
    "d(x, n) :- e(x, _), n = count : { e(x, y), y > 3 }.",
    "d(x, n) :- e(x, _), n = count : { e(x, y), !f(y) }.",
    "d(x, n) :- e(x, y), n = count : { e(x, z), e(z, x) }.",
    # another column, the same value twice, another constant
    "d(x, n) :- e(_, x), n = count : { e(x, _) }.",
    "d(x, n) :- e(x, _), n = count : { e(x, x) }.",
    "d(x, n) :- g(2, x, _), n = count : { g(3, x, _) }.",
    "d(x, n) :- e(x, _), e(_, x), n = count : { g(x, y, x) }.",
    "d(n) :- e(3, _), n = count : { e(4, _) }.",
]


def clauses(rules: str) -> list[str]:
    return [str(clause) for clause in check(parse(DECLARED + rules)).clauses]


@pytest.mark.parametrize(("rule", "expected"), GOES)
def test_what_changes_nothing_goes(rule: str, expected: list[str]) -> None:
    program = check(parse(DECLARED + rule))
    assert [str(clause) for clause in program.clauses] == expected
    internal = {name for name in program.schemas if name.startswith("@")}
    assert internal == {clause.head for clause in program.clauses} - {"d"}


@pytest.mark.parametrize("rule", STAYS)
def test_groups_without_a_binding_stay(rule: str) -> None:
    found = clauses(rule)
    assert any("!@d.1" in clause for clause in found)
    assert len(check(parse(DECLARED + rule)).clauses) >= 3


def test_an_atom_that_narrows_the_groups_stays() -> None:
    found = clauses("d(x, n) :- e(x, x), n = max y : { e(x, y) }.")
    assert "d(x, n) :- e(x, x), @d.1(x, n)." in found
    found = clauses("d(x, n) :- g(x, y, y), n = max z : { g(x, _, z) }.")
    assert "d(x, n) :- g(x, y, y), @d.1(x, n)." in found


def test_null_has_no_group_in_braces() -> None:
    db = lftj.Database(".decl e(x:number?, y:number?)  d(x, n) :- e(x, _), n = count : { e(x, _) }.")
    db.load("e", [(1, 2), (1, None), (None, 3)])
    assert list(db["d"]) == [(1, 2)]
    with db.transaction() as tx:
        tx.erase("e", [(1, None)])
        tx.insert("e", [(2, None)])
    assert list(db["d"]) == [(1, 1), (2, 1)]


def test_a_sum_without_room_is_still_an_error() -> None:
    db = lftj.Database(".decl e(x:number, y:number)  d(x, s) :- e(x, _), s = sum y : { e(x, y) }.")
    db.load("e", [(1, 2**62), (1, 2**62 - 1)])
    assert list(db["d"]) == [(1, 2**63 - 1)]
    with pytest.raises(lftj.errors.EvaluationError, match="sum"), db.transaction() as tx:
        tx.insert("e", [(1, 1)])
    assert list(db["d"]) == [(1, 2**63 - 1)]


def test_answers_are_those_of_the_rules_as_written() -> None:
    rng = Random(5)
    rules = [rule for rule, _ in GOES] + STAYS[:-1]
    for number, rule in enumerate(rules):
        text = DECLARED + rule
        db = lftj.Database(text)
        facts: dict[str, set[tuple[int, ...]]] = {"e": set(), "f": set(), "g": set()}
        for _ in range(4):
            with db.transaction() as tx:
                for name, width in (("e", 2), ("f", 1), ("g", 3)):
                    rows = {tuple(rng.randrange(5) for _ in range(width)) for _ in range(5)}
                    gone = {row for row in facts[name] if rng.random() < 0.4}
                    tx.erase(name, gone)
                    tx.insert(name, rows)
                    facts[name] = (facts[name] - gone) | rows
            expected = evaluate(plainly(text), {name: set(rows) for name, rows in facts.items()})["d"]
            assert set(db["d"]) == expected, (number, rule)


def test_an_atom_may_be_in_the_braces_of_two_aggregates() -> None:
    found = clauses("d(x) :- e(x, _), mean y : { e(x, y) } != 0.5, sum y : { e(x, y) } > 1.")
    assert found[-1] == "d(x) :- @d.1(x, _v1), @d.2(x, _v2), _v1 != 0.5, _v2 > 1."
