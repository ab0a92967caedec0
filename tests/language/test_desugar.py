"""What rules with negation, aggregates and functional predicates are taken apart into: the exact clauses."""

from __future__ import annotations

import pytest

from lftj.errors import ProgramError
from lftj.language import CheckedProgram, ast, check, check_query, normal_form, parse, visitors
from lftj.language.clause import Aggregate

DECLARED = """
.decl q(x:number)
.decl e(x:number, y:number)
.decl f(x:number)
.decl m(g:number, k:number, v:float)
.decl s(k:number, t:symbol)
.decl price(x:number) -> c:float
"""


def checked(text: str) -> CheckedProgram:
    return check(parse(DECLARED + text))


def shown(text: str) -> list[str]:
    return [str(clause) for clause in checked(text).clauses]


NEGATION = [
    ("p(x) :- e(x, y), !e(y, x).", ["p(x) :- e(x, y), !e(y, x)."]),
    (
        "p(x) :- e(x, y), !e(y, _), !e(x + 1, 2), !e(x, x).",
        ["p(x) :- e(x, y), !e(y, _), !e(_e1, 2), !e(x, x), _e1 = x + 1."],
    ),
    ("p(x) :- !q(1), x = 2.", ["p(x) :- !q(1), x = 2."]),
    ("p() :- !q(_).", ["p() :- !q(_)."]),
    ("p(x) :- q(x), !!f(x).", ["p(x) :- q(x), f(x)."]),
    # all variables are bound outside: de Morgan
    ("p(x) :- e(x, y), !(f(x), x < y).", ["p(x) :- e(x, y), !f(x).", "p(x) :- e(x, y), x >= y."]),
    ("p(x) :- q(x), !(f(x) ; e(x, _)).", ["p(x) :- q(x), !f(x), !e(x, _)."]),
    ("p(x) :- q(x), !(f(x), !(e(x, y), f(y))).", ["p(x) :- q(x), !f(x).", "p(x) :- q(x), e(x, y), f(y)."]),
    # a variable of its own: there is none
    ("p(x) :- q(x), !(e(x, y), f(y)).", ["@p.1(x) :- e(x, y), f(y).", "p(x) :- q(x), !@p.1(x)."]),
    ("p() :- !(e(x, y), f(y)), x = 1.", ["@p.1(x) :- e(x, y), f(y).", "p() :- !@p.1(x), x = 1."]),
    (
        "p(x) :- q(x), !(e(x, y), (f(y) ; y > 1)), !(e(y, x), f(y)).",
        [
            "@p.1(x) :- e(x, y), f(y).",
            "@p.1(x) :- e(x, y), y > 1.",
            "@p.2(x) :- e(y, x), f(y).",
            "p(x) :- q(x), !@p.1(x), !@p.2(x).",
        ],
    ),
    (
        "p(x) :- e(x, z), !(f(y), y < x + z).",
        [
            "@p.1(x, z) :- f(y), @p.1.groups(x, z), y < x + z.",
            "@p.1.groups(x, z) :- e(x, z).",
            "p(x) :- e(x, z), !@p.1(x, z).",
        ],
    ),
    (
        "p(x) :- q(x), !(e(x, y), !(e(y, z), f(z))).",
        [
            "@p.2(y) :- e(y, z), f(z).",
            "@p.1(x) :- e(x, y), !@p.2(y).",
            "p(x) :- q(x), !@p.1(x).",
        ],
    ),
]

AGGREGATES = [
    (
        "p(x, n) :- q(x), n = count : { e(x, y), f(y) }.",
        [
            "@p.1(x, count) :- e(x, y), f(y).",
            "p(x, n) :- q(x), @p.1(x, n).",
            "p(x, n) :- q(x), !@p.1(x, _), n = 0.",
        ],
    ),
    # a rule that joins more is not taken in two, nor one with several aggregates, or whose 0 may be a float
    (
        "p(x, n) :- q(x), f(x), n = count : { e(x, _) }.",
        [
            "@p.1(x, count) :- e(x, _w1).",
            "@p.1.groups(x) :- q(x).",
            "@p.1.with0(x, _v1) :- @p.1(x, _v1).",
            "@p.1.with0(x, 0) :- @p.1.groups(x), !@p.1(x, _).",
            "p(x, n) :- q(x), f(x), @p.1.with0(x, n).",
        ],
    ),
    (
        "p(x, n) :- q(x), n = sum y : { e(x, y) }.",
        [
            "@p.1(x, sum y) :- e(x, y).",
            "@p.1.groups(x) :- q(x).",
            "@p.1.with0(x, _v1) :- @p.1(x, _v1).",
            "@p.1.with0(x, 0) :- @p.1.groups(x), !@p.1(x, _).",
            "p(x, n) :- q(x), @p.1.with0(x, n).",
        ],
    ),
    # the result wherever it stands: in other literals, and twice
    (
        "p(x, n + k) :- e(x, k), n = count : { e(_, x) }, m = count : { e(_, x) }, !e(x, n), n * k < m, n != 3.",
        [
            "@p.1(x, count) :- e(_w1, x).",
            "p(x, n + k) :- e(x, k), @p.1(x, n), @p.1(x, m), !e(x, n), n * k < m, n != 3.",
            "p(x, n + k) :- e(x, k), !e(x, n), !@p.1(x, _), n = 0, m = 0, n * k < m, n != 3.",
        ],
    ),
    (
        "p(x) :- e(x, n), n = count : { e(_, x) }.",
        [
            "@p.1(x, count) :- e(_w1, x).",
            "p(x) :- e(x, n), @p.1(x, n).",
            "p(x) :- e(x, n), !@p.1(x, _), n = 0.",
        ],
    ),
    (
        "p(n) :- n = count : e(_, _).",
        [
            "@p.1(count) :- e(_w1, _w2).",
            "p(n) :- @p.1(n).",
            "p(n) :- !@p.1(_), n = 0.",
        ],
    ),
    # min, max, mean and cat say nothing of an empty group
    ("p(x, n) :- q(x), n = max y : { e(x, y) }.", ["@p.1(x, max y) :- e(x, y).", "p(x, n) :- q(x), @p.1(x, n)."]),
    (
        "p(x) :- m(x, _, w), w > mean v + 1.5 : { m(x, _, v), !f(x) }.",
        [
            "@p.1(x, mean v + 1.5) :- m(x, _w1, v), !f(x).",
            "p(x) :- m(x, _, w), @p.1(x, _v1), w > _v1.",
        ],
    ),
    ("p(t) :- t = cat u : { s(_, u) }.", ["@p.1(cat u) :- s(_w1, u).", "p(t) :- @p.1(t)."]),
    # what they fold is one atom of distinct variables
    (
        "p(n) :- n = min x : { e(x, x) }.",
        ["@p.1.all(x) :- e(x, x).", "@p.1(min x) :- @p.1.all(x).", "p(n) :- @p.1(n)."],
    ),
    (
        "p(n) :- n = min 2 * x : { e(x, 1) }.",
        [
            "@p.1.all(x, _v1) :- e(x, 1), _v1 = 2 * x.",
            "@p.1(min _v1) :- @p.1.all(x, _v1).",
            "p(n) :- @p.1(n).",
        ],
    ),
    # equal braces share their rows, whatever the groups and the names
    (
        "p(x, n) :- q(x), n = min y : { e(x, y), f(y) }. r(n) :- n = max b : { e(a, b), f(b) }.",
        [
            "@p.1.all(x, y) :- e(x, y), f(y).",
            "@p.1(x, min y) :- @p.1.all(x, y).",
            "p(x, n) :- q(x), @p.1(x, n).",
            "@r.1(max b) :- @p.1.all(a, b).",
            "r(n) :- @r.1(n).",
        ],
    ),
    # of a minimum or maximum they keep no wildcards
    (
        "r(n) :- n = max b : { e(_, b), f(b) }.",
        [
            "@r.1.all(b) :- e(_w1, b), f(b).",
            "@r.1(max b) :- @r.1.all(b).",
            "r(n) :- @r.1(n).",
        ],
    ),
    # a variable that occurs only in braces is theirs, and two braces may use one name
    (
        "p(a, b) :- a = max y : { e(_, y) }, b = min y : { e(y, _) }.",
        [
            "@p.1(max y) :- e(_w1, y).",
            "@p.2(min y) :- e(y, _w2).",
            "p(a, b) :- @p.1(a), @p.2(b).",
        ],
    ),
    # the group is bound from outside where the braces do not bind it
    (
        "p(x) :- e(x, z), x = max y : { f(y), y < x + z }.",
        [
            "@p.1.all(y, x, z) :- f(y), @p.1.groups(x, z), y < x + z.",
            "@p.1(x, z, max y) :- @p.1.all(y, x, z).",
            "@p.1.groups(x, z) :- e(x, z).",
            "p(x) :- e(x, z), @p.1(x, z, x).",
        ],
    ),
    # what binds the group: one atom if it can, else what is joined with it
    (
        "p(n) :- e(x, a), e(a, z), q(w), w > 2, n = sum y : { e(x, y), e(y, z) }.",
        [
            "@p.1(x, z, sum y) :- e(x, y), e(y, z).",
            "@p.1.groups(x, z) :- e(x, a), e(a, z).",
            "@p.1.with0(x, z, _v1) :- @p.1(x, z, _v1).",
            "@p.1.with0(x, z, 0) :- @p.1.groups(x, z), !@p.1(x, z, _).",
            "p(n) :- e(x, a), e(a, z), q(w), @p.1.with0(x, z, n), w > 2.",
        ],
    ),
    # one aggregate names the group of the next
    (
        "p(k) :- n = max y : { f(y) }, k = max z : { e(j, z) }, j = n + 1.",
        [
            "@p.1(max y) :- f(y).",
            "@p.2(j, max z) :- e(j, z).",
            "p(k) :- @p.1(n), @p.2(j, k), j = n + 1.",
        ],
    ),
    # inside one another
    (
        "p(x, n) :- q(x), n = max c : { f(y), c = mean v : { m(x, y, v) } }.",
        [
            "@p.2(x, y, mean v) :- m(x, y, v).",
            "@p.1.all(y, x, c) :- f(y), @p.1.groups(x), @p.2(x, y, c).",
            "@p.1(x, max c) :- @p.1.all(y, x, c).",
            "@p.1.groups(x) :- q(x).",
            "p(x, n) :- q(x), @p.1(x, n).",
        ],
    ),
    # alternatives
    (
        "p(n) :- n = max x : { q(x) ; f(x) }.",
        [
            "@p.1.all(x) :- q(x).",
            "@p.1.all(x) :- f(x).",
            "@p.1(max x) :- @p.1.all(x).",
            "p(n) :- @p.1(n).",
        ],
    ),
    (
        "p(x) :- (q(x) ; f(x)), 2 < count : { e(x, _) }.",
        [
            "@p.1(x, count) :- e(x, _w1).",
            "p(x) :- q(x), @p.1(x, _v1), 2 < _v1.",
            "p(x) :- q(x), !@p.1(x, _), _v1 = 0, 2 < _v1.",
            "p(x) :- f(x), @p.1(x, _v2), 2 < _v2.",
            "p(x) :- f(x), !@p.1(x, _), _v2 = 0, 2 < _v2.",
        ],
    ),
    # in a head, in an atom, and in several heads
    (
        "p(x, max y : { e(x, y) }), r(n) :- e(x, min y : { f(y) }), n = max y : { e(x, y) }.",
        [
            "@p.1(x, max y) :- e(x, y).",
            "@p.2(min y) :- f(y).",
            "p(x, n) :- e(x, _v1), @p.1(x, n), @p.2(_v1).",
            "r(n) :- e(x, _v2), @p.1(x, n), @p.2(_v2).",
        ],
    ),
    ("p(max x : { q(x) }).", ["@p.1(max x) :- q(x).", "p(_v1) :- @p.1(_v1)."]),
    (
        "p(n) :- n = max x : { x = 1 }.",
        ["@p.1.all(x) :- x = 1.", "@p.1(max x) :- @p.1.all(x).", "p(n) :- @p.1(n)."],
    ),
]

FUNCTIONAL = [
    ("p(x, c) :- q(x), price[x] = c.", ["p(x, c) :- q(x), price(x, c)."]),
    (
        "p(x, 2 * price[x]) :- q(x), price[x] > 3, !(price[x] > 9).",
        ["p(x, 2.0 * _v1) :- q(x), price(x, _v1), _v1 > 3.0, _v1 <= 9.0."],
    ),
    ("p(x) :- q(x), 1.5 = price[x + 1].", ["p(x) :- q(x), price(_e1, 1.5), _e1 = x + 1."]),
    ("p(x) :- q(x), 1.0 < price[_].", ["p(x) :- q(x), price(_, _v1), 1.0 < _v1."]),
    ("g[x] = y :- e(x, y). p(g[g[x]]) :- q(x).", ["g(x, y) :- e(x, y).", "p(_v1) :- q(x), g(x, _v2), g(_v2, _v1)."]),
    ("p(x) :- q(x), !e(x, g[x]). g[1] = 2.", ["p(x) :- q(x), g(x, _v1), !e(x, _v1)."]),
    (
        "p(n) :- n = mean price[x] : { q(x) }.",
        ["@p.1(mean _v1) :- q(x), price(x, _v1).", "p(n) :- @p.1(n)."],
    ),
    # the head form: its groups are those with a binding
    ("deg[x] = count : { e(x, _) }.", ["@deg.1(x, count) :- e(x, _w1).", "deg(x, _v1) :- @deg.1(x, _v1)."]),
    (
        "avg[x] = sum y : { e(x, y) } / count : { e(x, _) }.",
        [
            "@avg.1(x, sum y) :- e(x, y).",
            "@avg.2(x, count) :- e(x, _w1).",
            "avg(x, _v1 / _v2) :- @avg.1(x, _v1), @avg.2(x, _v2).",
        ],
    ),
    (
        "deg[x] = n :- n = count : { e(x, _) }, n > 2.",
        ["@deg.1(x, count) :- e(x, _w1).", "deg(x, n) :- @deg.1(x, n), n > 2."],
    ),
    (
        "deg[x] = n :- n = count : { e(x, _) }, q(x).",
        [
            "@deg.1(x, count) :- e(x, _w1).",
            "deg(x, n) :- q(x), @deg.1(x, n).",
            "deg(x, n) :- q(x), !@deg.1(x, _), n = 0.",
        ],
    ),
    (
        "deg[x] = n :- agg<<n = count()>> e(x, _), f(x). top[x] = n :- agg<< n = max(y) >> e(x, y).",
        [
            "@deg.1(x, count) :- e(x, _w1), f(x).",
            "deg(x, n) :- @deg.1(x, n).",
            "@top.1(x, max y) :- e(x, y).",
            "top(x, n) :- @top.1(x, n).",
        ],
    ),
    (
        "total[] = sum c : { price(_, c) }.",
        [
            "@total.1(sum c) :- price(_w1, c).",
            "@total.1.with0(_v2) :- @total.1(_v2).",
            "@total.1.with0(0.0) :- !@total.1(_).",
            "total(_v1) :- @total.1.with0(_v1).",
        ],
    ),
]


@pytest.mark.parametrize(("rules", "clauses"), [*NEGATION, *AGGREGATES, *FUNCTIONAL])
def test_clauses(rules: str, clauses: list[str]) -> None:
    program = checked(rules)
    assert [str(clause) for clause in program.clauses] == clauses
    heads = {clause.head for clause in program.clauses}
    assert {name for component in program.strata for name in component} == heads
    done: set[str] = set()
    for (name,) in program.strata:
        for clause in program.clauses:
            assert clause.head != name or set(clause.reads) & heads <= done
        done.add(name)
    assert all(clause.reads.keys() <= program.schemas.keys() for clause in program.clauses)


@pytest.mark.parametrize(("rules", "clauses"), [*NEGATION, *FUNCTIONAL[:6]])
def test_plain_clauses_can_be_read_again(rules: str, clauses: list[str]) -> None:
    if any("@" in clause for clause in clauses):
        return
    functional = ".decl g(x:number) -> y:number g[1] = 2." if "g(" in "".join(clauses) else ""
    assert [str(clause) for clause in checked(functional + "\n".join(clauses)).clauses] == clauses


def test_values_in_a_head_are_variables_of_each_alternative() -> None:
    """Random programs found `p(f[]) :- q(x), !(q(x), q(x)).` refused: "not bound in every alternative"."""
    assert shown("p(price[1]) :- q(x), !(f(x), q(x)).") == [
        "p(_v1) :- q(x), price(1, _v1), !f(x).",
        "p(_v2) :- q(x), price(1, _v2), !q(x).",
    ]
    assert shown("p(price[x]) :- q(x) ; e(x, _).") == [
        "p(_v1) :- q(x), price(x, _v1).",
        "p(_v2) :- e(x, _), price(x, _v2).",
    ]
    assert shown("g[] = 1. h[x] = x :- q(x). p(h[g[]]) :- q(x), !(f(x), h[x] > g[]).") == [
        "h(x, x) :- q(x).",
        "@p.1(x) :- f(x), h(x, _v3), g(_v4), _v3 > _v4.",
        "p(_v1) :- q(x), g(_v2), h(_v2, _v1), !@p.1(x).",
    ]
    assert shown("p(max y : { e(x, y) }) :- q(x) ; f(x).") == [
        "@p.1(x, max y) :- e(x, y).",
        "p(_v1) :- q(x), @p.1(x, _v1).",
        "p(_v2) :- f(x), @p.1(x, _v2).",
    ]


def test_a_group_that_an_equality_with_its_own_aggregate_was_to_bind() -> None:
    """Random programs found these refused: "`x` is bound only inside the braces", where the rule binds it."""
    assert shown("p(x) :- q(x), !(e(x, y), x = max z : { e(y, z), z < x }).") == [
        "@p.2.all(y, z, x) :- e(y, z), @p.2.groups(y, x), z < x.",
        "@p.2(y, x, max z) :- @p.2.all(y, z, x).",
        "@p.2.groups(y, x) :- e(x, y).",
        "@p.1(x) :- e(x, y), @p.2(y, x, x).",
        "p(x) :- q(x), !@p.1(x).",
    ]
    assert shown("p(x) :- q(x), !(f(y), x = max z : { e(x, z) }).") == [
        "@p.2(x, max z) :- e(x, z).",
        "@p.1(x) :- f(y), @p.1.groups(x), @p.2(x, x).",
        "@p.1.groups(x) :- q(x).",
        "p(x) :- q(x), !@p.1(x).",
    ]
    assert shown("p(n) :- f(x), n = max y : { q(y), x = max z : { e(x, z) } }.") == [
        "@p.2(x, max z) :- e(x, z).",
        "@p.1.all(y, x) :- q(y), @p.1.groups(x), @p.2(x, x).",
        "@p.1(x, max y) :- @p.1.all(y, x).",
        "@p.1.groups(x) :- f(x).",
        "p(n) :- f(x), @p.1(x, n).",
    ]


def test_aggregates_that_bind_the_keys_of_a_head_together_are_taken_in_any_order() -> None:
    """Evaluating the first was a KeyError: the groups that it asked for were to come from the other one."""
    one, other = "(count : { q(y), !e(x, y) })", "(count : { q(x) })"
    after, before = shown(f"p[x] = {one} + {other}."), shown(f"p[x] = {other} + {one}.")
    assert before[-2:] == ["@p.2.groups(x) :- @p.1(x, _).", "p(x, _v1 + _v2) :- @p.1(x, _v1), @p.2(x, _v2)."]
    assert after[-2:] == ["@p.1.groups(x) :- @p.2(x, _).", "p(x, _v1 + _v2) :- @p.2(x, _v2), @p.1(x, _v1)."]


def test_aggregates_have_their_types() -> None:
    program = checked(
        "p(a, b, c, d, t) :- a = count : { q(_) }, b = sum 2 : { q(_) }, c = mean x : { q(x) },"
        " d = max v : { m(_, _, v) }, t = cat u : { s(_, u) }."
    )
    assert [clause.aggregate for clause in program.clauses if clause.aggregate] == [
        Aggregate("count", 0, "number"),
        Aggregate("sum", 0, "number"),
        Aggregate("mean", 0, "float"),
        Aggregate("max", 0, "float"),
        Aggregate("cat", 0, "symbol"),
    ]
    assert str(program.schemas["p"]) == "p(a:number, b:number, c:float, d:float, t:symbol)"
    assert str(program.schemas["@p.5"]) == "@p.5() -> cat:symbol"
    assert str(checked("p(n) :- n = sum x : { u(x) }. u(1u).").schemas["p"]) == "p(n:unsigned)"


def test_parts_of_a_rule_have_its_number_its_text_and_its_place() -> None:
    program = checked("p(x) :- q(x).\nr(x, n) :- q(x), n = count : { e(x, _) }.\nt(x) :- q(x).")
    rules = {clause.rule: (clause.text, clause.span.line) for clause in program.clauses}
    assert rules == {
        1: ("p(x) :- q(x).", 8),
        2: ("r(x, n) :- q(x), n = count : { e(x, _) }.", 9),
        3: ("t(x) :- q(x).", 10),
    }
    assert [clause.rule for clause in program.clauses] == [1, 2, 2, 2, 3]


def test_facts_of_functional_predicates() -> None:
    program = checked("price[1] = 2. price(2, 2.5). total[] = 7.")
    assert program.facts == {"price": [(1, 2.0), (2, 2.5)], "total": [(7,)]}
    assert program.schemas["price"].functional
    assert str(program.schemas["total"]) == "total() -> c0:number"
    assert program.clauses == ()


def test_rules_on_top_of_a_database_get_names_of_their_own() -> None:
    first = checked("p(n) :- n = max x : { q(x) }.")
    second = check(parse("p(n) :- n = min x : { q(x) }."), known=first.schemas, clauses=first.clauses)
    assert [str(clause) for clause in second.clauses] == ["@p.2(min x) :- q(x).", "p(n) :- @p.2(n)."]
    assert second.strata == (("@p.1",), ("@p.2",), ("p",))
    with pytest.raises(ProgramError, match="a negative cycle: `q` -> `p` -> `q`, through the aggregate `max`"):
        check(parse("q(x) :- p(x)."), known=first.schemas, clauses=first.clauses)


def test_a_functional_predicate_is_declared_again_alike_or_not_at_all() -> None:
    known = checked("").schemas
    check(parse(".decl price(x:number) -> c:float p(price[1]) :- true."), known=known)
    with pytest.raises(ProgramError, match="the database knows it as `price\\(x:number\\) -> c:float`"):
        check(parse(".decl price(x:number, c:float)"), known=known)


def test_a_variable_used_once_in_braces_is_warned_of() -> None:
    program = checked("p(n) :- q(x), n = count : { e(x, y) }, n < count : { e(y, x), f(y) }, !(f(y), e(y, z)).")
    assert [(found.what, found.span.column) for found in program.warnings] == [
        ("variable `y` occurs only once", 34),
        ("variable `z` occurs only once", 84),
    ]


@pytest.mark.parametrize(
    ("query", "feature"),
    [
        ("q(x), n = count : { e(x, y), e(y, x) }", "aggregate `count` in a query"),
        ("q(x), !(e(x, y), f(y))", "negated conjunction in a query"),
        ("q(x), !(f(x), f(2))", "negated conjunction in a query"),
    ],
)
def test_what_takes_several_clauses_is_no_query(query: str, feature: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check_query(query, checked("").schemas)
    assert [found.what for found in caught.value.diagnostics] == [f"not supported yet: {feature}"]


def test_queries_negate_and_look_up() -> None:
    known = checked("").schemas
    assert str(check_query("q(x), !e(x, _), price[x] > 2", known)) == (
        "query(x) :- q(x), price(x, _v1), !e(x, _), _v1 > 2.0."
    )


def test_a_literal_is_looked_at_once_however_many_alternatives_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alternative was looked through anew: a condition of SQL with a thousand took four seconds to refuse."""
    looked = []
    parts = visitors.parts
    monkeypatch.setattr(visitors, "parts", lambda node: looked.append(node) or parts(node))
    negated = ", ".join(f"!(e(x, {n}), e({n}, x))" for n in range(8))
    (rule,) = parse(f"p(x) :- q(x), f(x), {negated}.").items
    assert isinstance(rule, ast.Rule)
    alternatives = normal_form.conjunctions(rule.body, rule.heads)
    assert alternatives is not None
    assert len(alternatives) == 2**8
    # Two literals come of each that is opened, and are looked at with the atom in it.
    assert len(looked) <= 5 * len(alternatives)
