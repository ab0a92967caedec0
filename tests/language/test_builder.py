"""The builder: the same AST as the text, and every misuse told with the line of the user's file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Optional, Union

import pytest

import lftj.language as lang
from lftj.errors import BuilderError, Error, ProgramError
from lftj.language import agg, any_of, ast, check, fn, parse, unsigned, variables

x, y, z = variables("x y z")


def program() -> lang.Program:
    return lang.Program()


def edge_and(*names: str) -> tuple[lang.Program, lang.Relation, tuple[lang.Relation, ...]]:
    made = lang.Program()
    edge = made.relation("edge", src=int, dst=int)
    return made, edge, made.relations(*names)


def test_the_example_of_the_design() -> None:
    p = lang.Program()
    edge = p.input("edge", src=int, dst=int)
    (tri,) = p.relations("tri")
    a, b, c = variables("a, b, c")
    p.rule(tri(a, b, c), edge(a, b), edge(b, c), edge(a, c))
    p.output("tri")
    text = """
    .decl edge(src:number, dst:number)
    .input edge
    tri(a, b, c) :- edge(a, b), edge(b, c), edge(a, c).
    .output tri
    """
    assert p.ast() == parse(text)
    assert parse(p.to_text()) == p.ast()
    assert [str(clause) for clause in check(p.ast()).clauses] == ["tri(a, b, c) :- edge(a, b), edge(b, c), edge(a, c)."]


BODIES: list[tuple[Callable[[lang.Relation], object], str]] = [
    (lambda e: (e(x, ...), e(..., y)), "edge(x, _), edge(_, y)"),
    (lambda e: e(1, -2), "edge(1, -2)"),
    (lambda e: (e(x, y), x + 1 == y), "edge(x, y), x + 1 = y"),
    (
        lambda e: (x - 1 < y, 2 * x <= y, x / 2 > y, x // 3 >= y, x % 4 != y),
        "x - 1 < y, 2 * x <= y, x / 2 > y, x / 3 >= y, x % 4 != y",
    ),
    (lambda e: (x**2 == y, 2**x == y, -x == y, +x == y), "x ^ 2 = y, 2 ^ x = y, -x = y, x = y"),
    (
        lambda e: (1 + x == y, 1 - x == y, 3 / x == y, 3 // x == y, 3 % x == y),
        "1 + x = y, 1 - x = y, 3 / x = y, 3 / x = y, 3 % x = y",
    ),
    (
        lambda e: ((x & 1) == y, (1 & x) == y, (x | y) == 1, (1 | x) == y),
        "x band 1 = y, 1 band x = y, x bor y = 1, 1 bor x = y",
    ),
    (lambda e: ((x ^ 1) == y, (1 ^ x) == y, ~x == y), "x bxor 1 = y, 1 bxor x = y, bnot x = y"),
    (
        lambda e: ((x << 1) == y, (1 << x) == y, (x >> 1) == y, (1 >> x) == y),
        "x bshl 1 = y, 1 bshl x = y, x bshr 1 = y, 1 bshr x = y",
    ),
    (lambda e: (x == 1, x != 1, x > 1, x <= 1), "x = 1, x != 1, x > 1, x <= 1"),
    (lambda e: ~e(x, y), "!edge(x, y)"),
    (lambda e: ~(x == 1), "!(x = 1)"),
    (lambda e: e(x, y) | e(y, x) | (x == 1), "edge(x, y); edge(y, x); x = 1"),
    (lambda e: (e(x, y), (x == 1) | (y == 2)), "edge(x, y), (x = 1; y = 2)"),
    (lambda e: any_of((e(x, y), x < y), e(y, x)), "edge(x, y), x < y; edge(y, x)"),
    (lambda e: any_of(e(x, y), [e(y, x), x < y]), "edge(x, y); edge(y, x), x < y"),
    (lambda e: any_of(e(x, y)), "edge(x, y)"),
    (lambda e: (e(x, y) & (x < y)) | e(y, x), "edge(x, y), x < y; edge(y, x)"),
    (lambda e: (e(x, y), x < y) | e(y, x), "edge(x, y), x < y; edge(y, x)"),
    (lambda e: (e(x, y), x < y) & e(y, x), "edge(x, y), x < y, edge(y, x)"),
    (lambda e: ~(e(x, y) & (x < y)), "!(edge(x, y), x < y)"),
    (lambda e: ~(e(x, y) | (x < y)), "!(edge(x, y); x < y)"),
    (lambda e: [e(x, y), (e(y, x), x < y)], "edge(x, y), edge(y, x), x < y"),
    (lambda e: (fn.cat("a", "b", x) == y, fn.strlen("a") == x), 'cat("a", "b", x) = y, strlen("a") = x'),
    (
        lambda e: (fn.contains("a", x), fn.match("b.*", y), ~fn.match("c", y)),
        'contains("a", x), match("b.*", y), !match("c", y)',
    ),
    (lambda e: (fn.min(x, y, 1) == 1.5, fn.lnot(x) == 0), "min(x, y, 1) = 1.5, lnot x = 0"),
    (lambda e: (x == unsigned(5), y == Fraction(1, 2)), "x = 5u, y = 0.5"),
    (lambda e: x == 'quote " back \\ line\n', 'x = "quote \\" back \\\\ line\\n"'),
    (lambda e: (x + y) * z == x - (y - z), "(x + y) * z = x - (y - z)"),
    (lambda e: ~((x == 1) | (e(x, y) & e(y, x))), "!(x = 1; edge(x, y), edge(y, x))"),
    (lambda e: x == agg.count(e(x, ...)), "x = count : { edge(x, _) }"),
    (lambda e: agg.sum(y, e(x, y), y > 1) + 1 < x, "sum y : { edge(x, y), y > 1 } + 1 < x"),
    (lambda e: agg.max(x * y, e(x, y) | e(y, x)) == agg.min(1, e(x, x)), None),
    (lambda e: agg.cat(fn.to_string(x), e(x, ...)) == "a", 'cat (to_string(x)) : { edge(x, _) } = "a"'),
]
BODIES = [
    (body, text or "max (x * y) : { edge(x, y); edge(y, x) } = min (1) : { edge(x, x) }") for body, text in BODIES
]


@pytest.mark.parametrize(("body", "text"), BODIES, ids=[text for _, text in BODIES])
def test_a_body_is_what_its_text_parses_to(body: Callable[[lang.Relation], object], text: str) -> None:
    p, edge, (head,) = edge_and("head")
    p.rule(head(x), body(edge))
    written = f".decl edge(src:number, dst:number)\nhead(x) :- {text}.\n"
    assert p.to_text() == written
    assert p.ast() == parse(written)


def test_declarations_facts_heads_and_directives() -> None:
    p = lang.Program()
    node = p.type("Node", int, subtype=True)
    p.type("Name", "symbol")
    p.relation("weighted", a=node, b="Name", w=float, u="unsigned")
    p.input("edge", {"filename": "e.csv", "headers": True}, src=int, dst=int)
    p.relation("flag")
    one, two = p.relations("one two")
    p.fact(one(1), one(-2))
    p.rule((one(x), two(x)), two(x))
    p.output(one, IO="stdout", headers=False)
    p.printsize("two")
    text = """
    .type Node <: number
    .type Name = symbol
    .decl weighted(a:Node, b:Name, w:float, u:unsigned)
    .decl edge(src:number, dst:number)
    .input edge(filename="e.csv", headers=true)
    .decl flag()
    one(1). one(-2).
    one(x), two(x) :- two(x).
    .output one(IO=stdout, headers=false)
    .printsize two
    """
    assert p.ast() == parse(text)
    assert repr(p).startswith("<Program of 11 items>\n.type Node <: number\n")


def test_null() -> None:
    p = lang.Program()
    maybe = Optional[date], Union[None, float]  # noqa: UP007, UP045
    visit = p.relation("visit", who=str, since=maybe[0], spent=maybe[1], n=int | None)
    last, first = p.relations("last first")
    p.rule(last(x, None), visit(x, ..., ..., ...))
    p.fact(first("a", None))
    text = """
    .decl visit(who:symbol, since:date?, spent:float?, n:number?)
    last(x, null) :- visit(x, _, _, _).
    first("a", null).
    """
    assert p.ast() == parse(text) == parse(p.to_text())
    p.rule(last(x, None), visit(x, None, ..., ...))
    with pytest.raises(ProgramError, match="null where a value is matched"):
        check(p.ast())


def test_functional_predicates() -> None:
    p = lang.Program()
    price = p.input("price", {"headers": True}, item=str).to(cost=float)
    distance = p.relation("distance", a=int, b=int).to(steps="unsigned")
    total = p.relation("total").to(sum=float)
    degree, sold = p.relations("degree sold")
    p.fact(price["tea"] == 2.5, price("milk", 1), distance[1, 2] == 3)
    p.rule(sold[x] == price[x] * y, sold(x, y), price[x] > 1)
    p.rule(total[()] == agg.sum(y, price(..., y)))
    p.rule(degree[x] == agg.count(distance(x, ..., ...)))
    text = """
    .decl price(item:symbol) -> cost:float
    .input price(headers=true)
    .decl distance(a:number, b:number) -> steps:unsigned
    .decl total() -> sum:float
    price["tea"] = 2.5. price("milk", 1). distance[1, 2] = 3.
    sold[x] = price[x] * y :- sold(x, y), price[x] > 1.
    total[] = sum y : { price(_, y) }.
    degree[x] = count : { distance(x, _, _) }.
    """
    assert p.ast() == parse(text)
    assert parse(p.to_text()) == p.ast()
    assert repr(price[x]) == "price[x]"


def test_aggregates_are_listed_and_documented() -> None:
    quantiles, variances = ["quantile_cont", "quantile_disc"], ["var_pop", "var_samp"]
    deviations = ["stddev_pop", "stddev_samp"]
    assert dir(agg) == ["cat", "count", "max", "mean", "min", *quantiles, *deviations, "sum", *variances]
    assert repr(agg.count) == "<aggregate count: How many bindings there are; 0 of none.>"
    with pytest.raises(AttributeError, match="lftj has no aggregate 'median'"):
        _ = agg.median


def test_numpy_scalars_are_numbers() -> None:
    np = pytest.importorskip("numpy")
    p, edge, (head,) = edge_and("head")
    p.rule(head(x), edge(x, np.int32(3)), x < np.float32(0.5))
    assert "edge(x, 3), x < 0.5" in p.to_text()


def test_spans_are_lines_of_this_file() -> None:
    p, edge, (head,) = edge_and("head")
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    p.rule(head(x, z), edge(x, y))
    rule = p.ast().items[1]
    assert isinstance(rule, ast.Rule)
    assert (rule.span.source, rule.span.line, rule.span.column) == (__file__, line, 0)
    assert rule.span.line_text.strip() == "p.rule(head(x, z), edge(x, y))"
    with pytest.raises(ProgramError) as caught:
        check(p.ast())
    assert str(caught.value) == (
        f"{__file__}:{line}: error: variable `z` occurs in the head but in no atom of the body\n"
        "    p.rule(head(x, z), edge(x, y))\n"
        "  why: a rule can only derive values that its body binds\n"
        "  do: bind `z` in an atom of the body, or drop it from the head\n"
        "\n"
        f"{__file__}:{line}: warning: variable `y` occurs only once\n"
        "    p.rule(head(x, z), edge(x, y))\n"
        "  why: it joins nothing; a second use may be misspelt\n"
        "  do: write `_`, or `_y` if the name is worth keeping"
    )


def test_terms_are_hashed_by_identity_and_kept_in_sets() -> None:
    assert len({x, y, z, x}) == 3
    assert repr(x + 1) == "x + 1"
    assert repr(program().relation("r", a=int)) == "<relation r/1>"
    assert repr(program().relations("r")[0]) == "<relation r>"
    assert repr(fn.strlen) == "<functor strlen(symbol):number: The length of a text.>"
    assert {"cat", "contains", "match", "min"} <= set(dir(fn))
    with pytest.raises(AttributeError, match="lftj has no functor 'nosuch'"):
        _ = fn.nosuch


MISUSES: list[tuple[Callable[[lang.Program, lang.Relation], object], str]] = [
    (
        lambda p, e: p.rule(e(x, y), 1 < x < 3),
        "the condition `x > 1` has no truth value in Python\n"
        "  why: `and`, `or`, `not`, `if` and chains such as `1 < x < 3` ask for one\n"
        "  do: separate conditions by `,` in `rule`, use `|` for alternatives and `~` for negation",
    ),
    (
        lambda p, e: p.rule(e(x, y), e(x, y) and e(y, x)),
        "the condition `edge(x, y)` has no truth value in Python\n"
        "  why: `and`, `or`, `not`, `if` and chains such as `1 < x < 3` ask for one\n"
        "  do: separate conditions by `,` in `rule`, use `|` for alternatives and `~` for negation",
    ),
    (lambda p, e: x in [y], None),  # type: ignore[list-item]
    (
        lambda p, e: p.rule(e(x, y), not x),
        "the term `x` has no truth value\n"
        "  why: its values are known when the rule is evaluated, not when Python reads it\n"
        "  do: write conditions as separate arguments of `rule`",
    ),
    (
        lambda p, e: list(x),
        "the term `x` cannot be iterated over\n"
        "  why: it stands for one value\n"
        '  do: `lftj.variables("x y")` makes several variables',
    ),
    (
        lambda p, e: e(x),
        "`edge` has 2 columns, and 1 argument is given\n"
        "  why: an atom is about whole rows\n"
        "  do: give every column one argument; `...` stands for any value",
    ),
    (
        lambda p, e: e(x, e(x, y)),
        "`edge(x, y)` is a condition, and `edge` takes terms\n"
        "  why: a condition holds or does not, and a term is a value\n"
        "  do: write the condition as its own argument of `rule` and use its variables",
    ),
    (
        lambda p, e: e(x, e),
        "`edge` is a relation, and `edge` takes terms\n"
        "  why: a relation holds rows, and a term is one value\n"
        "  do: call it with terms: `edge(x, y)`",
    ),
    (
        lambda p, e: x == None,  # noqa: E711
        "a value of type NoneType cannot be a term of `=`\n"
        "  why: no column holds such values\n"
        "  do: terms are variables, `...`, expressions, and values of int, float, str, bool, datetime, Decimal, UUID "
        "and bytes",
    ),
    (
        lambda p, e: x < float("inf"),
        "the float inf cannot be written in a rule\n"
        "  why: rule text has no spelling for it\n"
        "  do: load it as data, or compare with the largest float",
    ),
    (
        lambda p, e: p.rule(e(x, y), e),
        "`edge` is a relation, not a condition\n"
        "  why: a condition says which rows of it are meant\n"
        "  do: call it with terms: `edge(x, y)`",
    ),
    (
        lambda p, e: p.rule(e(x, y), x),
        "`x` is a term, not a condition\n"
        "  why: a term is a value, and a condition holds or does not\n"
        "  do: compare it with something, or use it in an atom",
    ),
    (
        lambda p, e: p.rule(e(x, y), 1 < 2),
        "a body holds the Python value True\n"
        "  why: a comparison of two Python values is computed by Python before the rule sees it\n"
        "  do: compare terms; constants in a body are written by an equality such as `x == 1`",
    ),
    (
        lambda p, e: p.rule(e(x, y), "edge(x, y)"),
        "a value of type str is not a condition\n"
        "  why: a body is what must hold for the head to be derived\n"
        "  do: a body is made of atoms such as `edge(x, y)` and comparisons such as `x < y`",
    ),
    (
        lambda p, e: p.rule(e(x, y)),
        "a rule without a body\n"
        "  why: a rule derives rows from what its body binds\n"
        "  do: give it conditions, or state a fact with `fact`",
    ),
    (
        lambda p, e: p.rule((), e(x, y)),
        "a rule without a head\n"
        "  why: a rule says what holds wherever its body does\n"
        "  do: give an atom, or a tuple of atoms",
    ),
    (
        lambda p, e: p.rule(x == y, e(x, y)),
        "a head must be an atom such as `tri(x, y, z)`, not `x = y`\n"
        "  why: a rule derives rows of the relation that its head names\n"
        "  do: call a relation with terms",
    ),
    (
        lambda p, e: p.fact((1, 2)),
        "a head must be an atom such as `tri(x, y, z)`, not `tuple`\n"
        "  why: a rule derives rows of the relation that its head names\n"
        "  do: call a relation with terms",
    ),
    (
        lambda p, e: any_of(),
        "`any_of` without alternatives\n"
        "  why: a disjunction of nothing would never hold\n"
        "  do: give it two or more conditions",
    ),
    (
        lambda p, e: any_of([x == 1, x == 2]),
        "`any_of` with one list of conditions\n"
        "  why: each argument is an alternative, and the conditions of one must hold together\n"
        "  do: give each as an argument of its own, as in `any_of(*conditions)`",
    ),
    (
        lambda p, e: any_of(e(x, y), ()),
        "an alternative without conditions\n"
        "  why: it would always hold\n"
        "  do: give every alternative at least one condition",
    ),
    (
        lambda p, e: variables(""),
        "`variables` without a name\n"
        "  why: it makes one variable per name\n"
        '  do: name them, as in `x, y = variables("x y")`',
    ),
    (
        lambda p, e: variables("x-y"),
        "'x-y' cannot name a variable\n"
        "  why: the program can be written as rule text, where a name has a form\n"
        "  do: a name is made of ASCII letters, digits, `_` and `?`, and starts with no digit",
    ),
    (
        lambda p, e: variables("band"),
        "`band` cannot name a variable: it is a reserved word\n"
        "  why: the word has a meaning of its own in rules\n"
        "  do: choose another name",
    ),
    (
        lambda p, e: p.relation("cat"),
        "`cat` cannot name a relation: it is a reserved word\n"
        "  why: the word has a meaning of its own in rules\n"
        "  do: choose another name",
    ),
    (
        lambda p, e: p.type("number", int),
        "`number` cannot name a type: it is a reserved word\n"
        "  why: the word has a meaning of its own in rules\n"
        "  do: choose another name",
    ),
    (
        lambda p, e: p.relation("r", a=list),
        "list is not a type for `a`\n"
        "  why: a column holds values of one type\n"
        "  do: types are int, float, str, bool, datetime.date and other classes of values (`int | None` with null), "
        'or a name such as "unsigned", "decimal(10,2)" or that of a declared type',
    ),
    (
        lambda p, e: p.relation("r", a=3),
        "3 is not a type for `a`\n"
        "  why: a column holds values of one type\n"
        "  do: types are int, float, str, bool, datetime.date and other classes of values (`int | None` with null), "
        'or a name such as "unsigned", "decimal(10,2)" or that of a declared type',
    ),
    (
        lambda p, e: p.output("r", **{"a b": 1}),
        "'a b' cannot name an option\n"
        "  why: the program can be written as rule text, where a name has a form\n"
        "  do: a name is made of ASCII letters, digits, `_` and `?`, and starts with no digit",
    ),
    (
        lambda p, e: fn.strlen(x, y),
        "`strlen` does not take 2 arguments\n"
        "  why: a functor has a value for the arguments it is defined for only\n"
        "  do: strlen(symbol):number: The length of a text.",
    ),
    (
        lambda p, e: fn.contains(x),
        "`contains` does not take 1 argument\n"
        "  why: a functor has a value for the arguments it is defined for only\n"
        "  do: contains(part, text): the text contains the part.",
    ),
    (
        lambda p, e: agg.count(),
        "`count` without a condition\n"
        "  why: an aggregate folds what its conditions bind\n"
        "  do: write what it ranges over, as in `agg.count(edge(x, ...))`",
    ),
    (
        lambda p, e: agg.sum(x),
        "`sum` without a condition\n"
        "  why: an aggregate folds what its conditions bind\n"
        "  do: write what it ranges over, as in `agg.sum(v, sale(x, v))`",
    ),
    (
        lambda p, e: agg.sum(e(x, y), e(x, y)),
        "`edge(x, y)` is a condition, and `sum` takes terms\n"
        "  why: a condition holds or does not, and a term is a value\n"
        "  do: write the condition as its own argument of `rule` and use its variables",
    ),
    (
        lambda p, e: e[x],
        "`edge` is a relation, not a functional predicate\n"
        "  why: `edge[...]` is the one value at a key, and a relation may have many rows\n"
        '  do: declare the value with `to`, as in `p.relation("price", item=str).to(cost=float)`',
    ),
    (
        lambda p, e: p.relation("price", item=str).to(cost=float)[x, y],
        "`price` has 1 key, and 2 keys are given\n"
        "  why: `price` has one value for all its keys together\n"
        "  do: give every key one term",
    ),
    (
        lambda p, e: p.relation("price", item=str).to(),
        "`to` takes one column, and 0 arguments are given\n"
        "  why: a functional predicate has one value per key\n"
        '  do: name the value and its type, as in `p.relation("price", item=str).to(cost=float)`',
    ),
    (
        lambda p, e: p.relation("price", item=str).to(cost=float).to(more=int),
        "`price` has its value already\n"
        "  why: a functional predicate has one value per key\n"
        "  do: declare keys by columns, and one value by `to`",
    ),
    (
        lambda p, e: list(e),
        "the relation `edge` cannot be iterated over\n"
        "  why: it names rows that do not exist before a database evaluates the program\n"
        "  do: the database has its rows, not the program",
    ),
    (
        lambda p, e: unsigned(-1),
        "-1 is not an unsigned integer\n"
        "  why: an unsigned constant is a whole number of 0 or more\n"
        "  do: unsigned holds 0 to 18446744073709551615",
    ),
]
MISUSES = [(use, message) for use, message in MISUSES if message is not None]


@pytest.mark.parametrize(("misuse", "message"), MISUSES, ids=[message[:40] for _, message in MISUSES])
def test_misuse(misuse: Callable[[lang.Program, lang.Relation], object], message: str) -> None:
    p, edge, _ = edge_and()
    with pytest.raises(BuilderError) as caught:
        misuse(p, edge)
    file, line, said = str(caught.value).split(":", 2)
    assert said == f" {message}"
    assert file == __file__
    lines = Path(__file__).read_text().splitlines()
    assert misuse.__code__.co_firstlineno <= int(line) <= misuse.__code__.co_firstlineno + 1, lines[int(line) - 1]
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, Error)


def test_membership_asks_for_a_truth_value() -> None:
    with pytest.raises(BuilderError, match="the condition `y = x` has no truth value"):
        _ = x in [y]


def test_a_sum_too_deep_for_the_stack() -> None:
    p, edge, (head,) = edge_and("head")
    total = x
    for _ in range(5000):
        total = total + x
    p.rule(head(total), edge(x, x))
    for use in (p.to_text, lambda: check(p.ast())):
        with pytest.raises(ProgramError, match="a clause is nested too deeply"):
            use()
