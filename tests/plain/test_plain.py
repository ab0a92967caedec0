"""The plain reference itself: answers worked out by hand.

Souffle's semantics are in tests/souffle_semantics; here is what random tests rely on besides: scopes, types, exact
sums, errors, and that text is read as lftj reads it.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import lftj
from tests.plain.aggregates import Overflow, folded
from tests.plain.evaluate import Cycle, KeyConflict, Undefined, Ungrounded, evaluate, parse
from tests.plain.syntax import Unsigned

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

DECLARED = """
.decl e(x:number, y:number)
.decl q(x:number)
.decl f(k:number) -> v:number
"""
EDGES = [(1, 2), (1, 3), (2, 3)]


def answer(rules: str, **data: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """The rows of `p`."""
    return evaluate(parse(DECLARED + rules), {"e": EDGES, "q": [(1,), (2,), (3,)], **data})["p"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        # A name in two braces only is local to each; one in the rule as well groups.
        ("p(a, b) :- a = count : { e(1, y) }, b = count : { e(y, 3) }.", {(2, 2)}),
        ("p(y, a) :- q(y), a = count : { e(1, y) }.", {(1, 0), (2, 1), (3, 1)}),
        ("p(a) :- q(y), a = count : { e(1, y) }, !(e(y, _), q(y)).", {(1,)}),
        ("p(n) :- n = count : { q(x), (q(1 + 0) ; q(x)) }.", {(3,)}),
        # In a nested aggregate, names of the outer braces group.
        ("p(s) :- s = sum n : { q(x), n = count : { e(x, y) } }.", {(3,)}),
        ("p(s) :- s = sum n + x : { q(x), n = count : { e(x, y) } }.", {(9,)}),
        ("p(x, s) :- q(x), s = sum n : { e(x, y), n = count : { e(y, z), z > x } }.", {(1, 1), (2, 0), (3, 0)}),
        # What the value is compared with may be bound by it, or before it.
        ("p(n) :- q(n), n = count : { e(1, _) }.", {(2,)}),
        ("p(x) :- n = count : { e(x, _) }, q(x), n = x - 1.", {(2,)}),
        # A negated group sees what is bound; its other names are its own.
        ("p(x) :- q(x), !(e(x, y), e(y, _)).", {(2,), (3,)}),
        ("p(x) :- q(x), y = 2, !(e(x, y)).", {(2,), (3,)}),
        # Lookups: absent keys make a literal fail; a negated atom's lookup is outside of the negation.
        ("p(x) :- q(x), f[x] > 5.", {(1,)}),
        ("p(f[x] + 1) :- q(x).", {(11,), (3,)}),
        ("p(x) :- q(x), !q(f[x]).", {(1,)}),
        ("p(s) :- s = sum f[x] : { q(x) }.", {(12,)}),
        ("p(k) :- f[k] = 2.", {(2,)}),
        # Alone in a negation, in parentheses too, a condition has its values outside; of several there are none.
        ("p(x) :- q(x), !(f[x] > 5).", {(2,)}),
        ("p(x) :- q(x), !f[x] = 2.", {(1,)}),
        ("p(x) :- q(x), !(q(f[x]) ; x < 1).", {(1,)}),
        ("p(x) :- q(x), !(q(x), f[x] > 5).", {(2,), (3,)}),
        ("p(x) :- q(x), !(q(x), f[x] = 2).", {(1,), (3,)}),
        ("p(x) :- q(x), !(!q(max y : { e(x, y) })).", {(1,), (2,)}),
        ("p(x) :- q(x), !(q(x), !q(max y : { e(x, y) })).", {(1,), (2,), (3,)}),
        # Expressions as arguments.
        ("p(x) :- e(x, x + 1).", {(1,), (2,)}),
        ("p(x) :- q(x), !q(x + 1).", {(3,)}),
        ("p(x, count : { e(x, _) }) :- q(x).", {(1, 2), (2, 1), (3, 0)}),
        # Precedence, and literals of both types.
        ("p(x) :- x = -2 ^ 2 + 2 * 3 - 1 bshl 1.", {(((-4 + 6) - 1) << 1,)}),
        ("p(x) :- x = 7 / -2 + (7 % -2).", {(-2,)}),
        ("p(x) :- q(x), (x = 1 ; x > 2), !(x = 3).", {(1,)}),
        ("p(min(x, 2), max(x, 2)) :- q(x).", {(1, 2), (2, 2), (2, 3)}),
    ],
)
def test_by_hand(rules: str, expected: set[Any]) -> None:
    assert answer(rules, f=[(1, 10), (2, 2)]) == expected


def test_types_come_from_columns() -> None:
    text = """
    .type id <: unsigned
    .decl u(x:id)
    .decl w(x:float)
    .decl p(x:unsigned)
    .decl r(x:float)
    p(x - 3) :- u(x).
    r(x / 2) :- w(x).
    r(s) :- s = sum x : { w(x) }.
    """
    found = evaluate(parse(text), {"u": [(2,)], "w": [(3,), (-0.0,)]})
    assert found["p"] == {(2**64 - 1,)}
    assert found["r"] == {(1.5,), (0.0,), (3.0,)}
    assert all(math.copysign(1.0, x) == 1.0 for (x,) in found["r"])


def test_heads_that_fold() -> None:
    """A row per group of the keys' variables; without these the one group is there, empty or not, as in a body."""
    text = ".decl p(k:number) -> n:number\np[x / 4] = count : { q(x) }.\np[9] = sum y : { e(y, y) }."
    assert answer(text) == {(0, 1), (9, 0)}
    assert set(lftj.Database(f"{DECLARED}{text}\ne(1, 2). q(1). q(2). q(3).")["p"]) == {(0, 1), (9, 0)}
    assert answer(".decl p(x:number) -> c:number\np[x] = count : { e(x, _), q(x) }.") == {(1, 2), (2, 1)}
    assert answer(".decl p() -> c:number\np[] = sum y : { e(_, y) }.", e=[]) == {(0,)}
    assert answer(".decl p() -> c:number\np[] = max y : { e(_, y) }.", e=[]) == set()


def test_folds() -> None:
    assert folded("sum", [0.1] * 10) == 1.0
    assert folded("sum", [1e300, 1.0, -1e300]) == 1.0
    assert folded("mean", [2**63 - 1, 2**63 - 1]) == float(2**63 - 1)
    assert folded("mean", [1, 2]) == 1.5
    assert folded("sum", [1.7e308, 1.7e308, -1.7e308]) == 1.7e308
    assert folded("sum", [math.inf, 1.0]) == math.inf
    assert folded("sum", [2**63 - 1, -5, 5]) == 2**63 - 1
    assert folded("sum", [Unsigned(2**63), Unsigned(2**63 - 1)]) == 2**64 - 1
    assert folded("cat", ["b", "a"]) == "ba"
    assert folded("count", []) == folded("sum", []) == 0
    with pytest.raises(Overflow):
        folded("sum", [2**63 - 1, 1])
    with pytest.raises(Overflow):
        folded("sum", [Unsigned(2**63), Unsigned(2**63)])
    with pytest.raises(Overflow):
        folded("sum", [1.7e308, 1.7e308])
    with pytest.raises(Overflow):
        folded("sum", [math.inf, -math.inf])


def test_texts_are_joined_in_key_order() -> None:
    text = ".decl w(g:number, i:number) -> t:symbol\np(g, c) :- w(g, _, _), c = cat t : { w(g, i, t) }."
    rows = [(1, 2, "a"), (1, 10, "b"), (1, -1, "z"), (2, 0, "y")]
    assert evaluate(parse(text), {"w": rows})["p"] == {(1, "zab"), (2, "y")}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        # It is kept and grouped, and equals nothing.
        ("p(x, y) :- n(x, y).", {(None, 1), (1, None), (None, None), (2, 3)}),
        ("p(x) :- n(x, x).", set()),
        ("p(x, y) :- n(x, _), n(_, y), x = y.", {(1, 1)}),
        ("p(x, y) :- n(x, y), s(y).", {(2, 3)}),
        ("p(x, y) :- n(x, y), s(y), or_null(y).", {(1, None), (None, None), (2, 3)}),
        ("p(x, y) :- n(x, y), !s(y).", {(None, 1), (1, None), (None, None)}),
        ("p(x, y) :- n(x, y), !s(y), or_null(y).", {(None, 1)}),
        # What is computed with is not null; `coalesce` looks at it.
        ("p(x, y + 1) :- n(x, y).", {(None, 2), (2, 4)}),
        ("p(x, y) :- n(x, y), !s(y + 0).", {(None, 1)}),
        ("p(x, coalesce(y, x)) :- n(x, y).", {(None, 1), (1, 1), (None, None), (2, 3)}),
        ("p(x, v) :- n(x, y), v = coalesce(y, x).", {(None, 1), (1, 1), (2, 3)}),
        ("p(x, null) :- n(x, _), !is_null(x).", {(1, None), (2, None)}),
        # A negated comparison is the opposite one, but not beside a variable or a wildcard of its own.
        ("p(x) :- n(x, y), !(y < 2).", {(2,)}),
        ("p(x) :- n(x, y), !(q(x), y < 2).", {(None,), (2,)}),
        ("p(x) :- n(x, y), !(q(_), y < 2).", {(None,), (1,), (2,)}),
        ("p(x, y) :- n(x, y), !(is_null(x), s(y)).", {(None, 1), (1, None), (None, None), (2, 3)}),
        ("p(x, y) :- n(x, y), !(is_null(x), s(y), or_null(y)).", {(None, 1), (1, None), (2, 3)}),
        # Aggregates leave it out, and count bindings; a group of a body is joined.
        ("p[x] = sum y : { n(x, y) }.", {(None, 1), (2, 3)}),
        ("p[x] = count : { n(x, y) }.", {(None, 2), (1, 1), (2, 1)}),
        ("p(x, c) :- n(x, _), c = count : { n(x, _) }.", {(1, 1), (2, 1)}),
        ("p(x, c) :- n(x, _), c = count : { n(x, _) }, or_null(x).", {(None, 2), (1, 1), (2, 1)}),
        ("p(x, c) :- n(x, _), c = max y : { (n(x, y) ; q(y), y < 1) }, or_null(x).", {(None, 1), (2, 3)}),
        ("p(x) :- n(x, _), !(!(x < 2) ; q(7)).", {(1,)}),
        ("p(x, c) :- q(x), c = sum y : { n(x, y) }.", {(1, 0), (2, 3), (3, 0)}),
        ("p(x, c) :- q(x), c = max y : { n(x, y) }.", {(2, 3)}),
        ("p(x, c) :- q(x), g[x] = c.", {(1, None), (2, 7)}),
    ],
)
def test_null(rules: str, expected: set[Any]) -> None:
    text = """
    .decl n(x:number?, y:number?)
    .decl s(y:number?)
    .decl g(x:number) -> y:number?
    """
    rows = [(None, 1), (1, None), (None, None), (2, 3)]
    assert answer(text + rules, n=rows, s=[(None,), (3,)], g=[(1, None), (2, 7)]) == expected


def test_the_number_whose_code_is_that_of_null_is_refused_in_columns_that_admit_it() -> None:
    text = ".decl p(x:number?)\np(x) :- q(x)."
    assert answer(text, q=[(3,)]) == {(3,)}
    with pytest.raises(Undefined):
        answer(text, q=[(-(2**63),)])


@pytest.mark.parametrize(
    ("rules", "failure"),
    [
        ("f[x] = y :- e(x, y).", KeyConflict),
        ("f[x] = 1 :- q(x).\nf[2] = 5.", KeyConflict),
        ("p(10 / (x - 1)) :- q(x).", Undefined),
        ("p(s) :- s = sum x + 9223372036854775800 - 1 : { q(x) }.", Overflow),
        ("p(y) :- q(x).", Ungrounded),
        ("p(x, n) :- n = count : { e(x, _) }.", Ungrounded),
        ("p(x) :- q(x), x < z.", Ungrounded),
        ("p(x) :- q(x), !p(x).", Cycle),
        ("p(n) :- n = count : { q(x), r(x) }.\nr(n) :- p(n).", Cycle),
    ],
)
def test_failures(rules: str, failure: type[Exception]) -> None:
    with pytest.raises(failure):
        answer(rules)


def test_what_is_negated_twice_may_be_recursive() -> None:
    """It was taken for a negative cycle: the fuzz asked for one that is none."""
    assert answer("p(x) :- e(x, _), !(q(x), !c(x)).\nc(x) :- q(x), e(x, y), p(y).", q=[(1,)]) == {(1,), (2,)}
    with pytest.raises(Cycle):
        answer("p(x) :- e(x, _), !(q(y), !c(y)).\nc(x) :- q(x), p(x).")


def test_a_sum_of_unsigned_sums_is_unsigned() -> None:
    """It was held to the range of numbers: the fuzz asked for a failure that is none."""
    inner = folded("sum", [Unsigned(2**63 - 1)] * 2)
    assert folded("sum", [inner]) == 2**64 - 2
    with pytest.raises(Overflow):
        folded("sum", [inner, inner])
