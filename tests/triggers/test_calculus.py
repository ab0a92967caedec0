"""The calculus: printed and read, safe and bound variables, and what it means in the algebra."""

from __future__ import annotations

import pytest
from hypothesis import given

from lftj.errors import EvaluationError, ProgramError
from lftj.triggers.algebra import INSERTION, Rel
from lftj.triggers.calculus import ConstantTerm, ConstraintFormula, ProductTerm, SumTerm, VariableTerm, check, safe
from lftj.triggers.calculus_algebra import tops
from lftj.triggers.calculus_reader import parsed, parsed_term
from lftj.triggers.compilation import compiled, normal
from lftj.triggers.m3f import statement_lines
from tests.conftest import examples
from tests.triggers.plain_triggers import PlainMaps
from tests.triggers.random_calculus import databases, term_value, terms

INVALID = "Sum(u * f(z), (R(x, z) or y = z) and z = w)"


def test_the_papers_invalid_example_is_refused_by_name():
    """Cumulus, section 3.1: safe are y, z, w; u is not bound, and is where it is given with y."""
    term = parsed_term(INVALID, "query.calc")
    assert isinstance(term, SumTerm)
    assert safe(term.formula, {"y"}) == {"y", "z", "w"}
    with pytest.raises(ProgramError) as error:
        check(term, {"y"})
    (found,) = error.value.diagnostics
    assert "`u`" in found.what
    assert str(found.span) == "query.calc:1:5"
    assert found.why
    assert "`u`" in found.remedy
    check(term, {"u", "y"})


@pytest.mark.parametrize(
    ("formula", "bound", "expected"),
    [
        ("R(x, y)", "", "xy"),
        ("R(x, z) or y = z", "y", "yz"),
        ("R(x, y) and S(y, z)", "b", "bxyz"),
        ("x = y and y = z and T(z)", "", "xyz"),
        ("x = y + 1 and T(y)", "", "xy"),
        ("x < y", "x", "x"),
        ("x = y", "", ""),
        ("true", "x", "x"),
    ],
)
def test_safe_variables(formula, bound, expected):
    term = parsed_term(f"Sum(1, {formula})")
    assert safe(term.formula, set(bound)) == set(expected)


@examples(300)
@given(terms())
def test_terms_are_read_as_they_were_printed(term):
    assert parsed_term(str(term)) == term


def test_other_spellings():
    assert parsed_term("x - y") == parsed_term("x + y * -1")
    assert parsed_term("Sum(1, x > y ∧ y ≥ 3 or x ≠ 1)".replace("≥", ">=")) == parsed_term(
        "Sum(1, y < x and 3 <= y or x != 1)"
    )
    assert parsed_term("-3") == ConstantTerm(-3)
    assert parsed_term("-x") == ProductTerm((VariableTerm("x"), ConstantTerm(-1)))
    assert parsed_term("Sum(1, (x < 2))").formula == ConstraintFormula("<", VariableTerm("x"), ConstantTerm(2))
    text = "relation R(a: number, b: date)\nq[a] = Sum(1, R(a, b))\np[] = Sum(x, R(x, y))"
    assert str(parsed(text)) == text


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("q[] = Sum(1, R(x) and y < x)", "`y` is not bound", "1:23"),
        ("q[] = Sum(x, R(x) or true)", "`x` is not bound", "1:11"),
        ("q[] = Sum(1, R(x) and Sum(1, R(y)) < x)", "a Sum stands in a comparison", "1:23"),
        ("q[] = max(1, Sum(1, R(y)))", "a Sum stands in a built-in function", "1:14"),
        ("q[] = Sum(1, R(x, 1))", "takes variables", "1:19"),
        ("q[] = Sum(1, R(x) and R(x, y))", "`R` has 1 columns, not 2", "1:23"),
        ("q[] = Sum(R(x) and true, 1)", "a formula stands where a term is due", "1:11"),
        ("q[] = Sum(1, x + 1)", "a term stands where a formula is due", "1:14"),
        ("q[] = Sum(1, R(x)) q[] = 1", "`q` is defined twice", "1:20"),
        ("q[] = Sum(1 R(x))", "`R` cannot stand here", "1:13"),
        ("q[] = Sum(frob(x), R(x))", "there is no built-in function `frob`", "1:11"),
        ("q[] = Sum(max(), R(x))", "`max` does not take 0 arguments", "1:11"),
        ("q[] = Sum(1, R(x)", "the text ends too early", "1:18"),
    ],
)
def test_errors_say_what_and_where(text, what, place):
    with pytest.raises(ProgramError) as error:
        tops(parsed(text))
    found = error.value.diagnostics[0]
    assert what in found.what
    assert str(found.span) == f"<calculus>:{place}"
    assert found.why
    assert found.remedy


TYPED = "relation R(x: {0})\nrelation S(x: {1})\n"


@pytest.mark.parametrize(
    ("types", "query", "what", "place"),
    [
        (("number", "symbol"), "q[] = Sum(x, R(x) and S(x))", "`x` is symbol here, as column `x` of `S`", "3:25"),
        (("symbol", "date"), "q[] = Sum(1, R(x) or S(x))", "`x` is date here, as column `x` of `S`", "3:24"),
        (("date", "number"), "q[x] = Sum(1, R(x)) + Sum(1, S(x))", "and date elsewhere", "3:32"),
        (("symbol", "number"), "q[] = Sum(x, R(x))", "and `x` is symbol", "3:11"),
        (("number?", "number"), "q[] = Sum(x, R(x))", "and `x` is number?", "3:11"),
        (("float", "number"), "q[] = Sum(x + 1, R(x))", "and `x` is float", "3:11"),
        (("symbol", "number"), "q[] = Sum(2 * x, R(x))", "`*` takes numbers", "3:15"),
        (("symbol", "number"), "q[] = Sum(1, R(x) and x < 3)", "`x` is symbol, and `3` is number", "3:23"),
        (("symbol", "number"), "q[] = Sum(y, R(x) and y = x)", "and `y` is symbol", "3:11"),
        (("date", "number"), "q[] = Sum(1, R(x) and S(y) and x < y)", "`x` is date, and `y` is number", "3:32"),
        (("decimal(8,2)", "number"), "q[] = Sum(x + y, R(x) and S(y))", "`x` is decimal(8,2), and `y`", "3:11"),
        (("decimal(8,2)", "number"), "q[] = Sum(x * x + x, R(x))", "`x * x` is decimal(18,4), and `x`", "3:11"),
        (("duration", "number"), "q[] = Sum(x * x, R(x))", "`*` has no meaning for duration and duration", "3:11"),
        (("number", "number"), "q[] = Sum(strlen(x), R(x))", "`strlen` takes symbol, and `x` is number", "3:18"),
        (("symbol", "number"), "q[] = Sum(1, R(x) and max(x, 2) = x)", "`x` is symbol, and `2` is number", "3:27"),
    ],
)
def test_types_that_conflict_have_their_place(types, query, what, place):
    with pytest.raises(ProgramError) as error:
        tops(parsed(TYPED.format(*types) + query))
    (found,) = error.value.diagnostics
    assert found.what.startswith("type conflict: ")
    assert what in found.what
    assert str(found.span) == f"<calculus>:{place}"
    assert found.why
    assert found.remedy


@pytest.mark.parametrize(
    ("types", "query", "key"),
    [
        (("number", "symbol"), "q[] = Sum(x, R(x)) + Sum(1, S(x))", ""),
        (("symbol", "date"), "q[d] = Sum(1, R(x) and S(d))", "date"),
        (("symbol", "number"), "q[d] = Sum(1, R(x) and x = y and y = d)", "symbol"),
        (("symbol", "number"), "q[d] = Sum(Sum(1, d = x), R(x))", "symbol"),
        (("number?", "number"), "q[x] = Sum(1, R(x) and S(x))", "number?"),
        (('timestamp("Europe/Berlin")', "number"), "q[x] = Sum(y, R(x) and S(y))", 'timestamp("Europe/Berlin")'),
        (("decimal(8,2)", "decimal(4,2)"), "q[] = Sum(x + y * 2, R(x) and S(y))", ""),
        (("duration", "number"), "q[] = Sum(x * y, R(x) and S(y))", ""),
        (("symbol", "number"), "q[] = Sum(strlen(x) + y, R(x) and S(y))", ""),
    ],
)
def test_variables_have_the_types_of_what_they_are_equal_to(types, query, key):
    keys, _ = tops(parsed(TYPED.format(*types) + query))["q"]
    assert "".join(var.type for var in keys) == key


def test_orders_and_lines_in_the_calculus():
    """Cumulus, section 3.5: the four insertion triggers, and no others."""
    program = parsed("q[] = Sum(p * r, O(k, r) and L(k, p))")
    made = compiled(tops(program), program.relations)
    assert statement_lines(made, INSERTION) == [
        "on +O(k, r): q[] += r * m_O[k]",
        "on +O(k, r): m_L[k] += r",
        "on +L(k, p): q[] += p * m_L[k]",
        "on +L(k, p): m_O[k] += p",
    ]


def test_a_group_by_column_is_a_bound_variable():
    program = parsed("q[x] = Sum(y, R(x, y))")
    maps = PlainMaps(compiled(tops(program), program.relations))
    for row in ((1, 5), (1, 6), (2, 7)):
        maps.event(INSERTION, "R", row)
    assert maps.maps["q"] == {(1,): 11, (2,): 7}


@examples(200)
@given(terms(), databases())
def test_a_compiled_term_has_the_value_that_its_definition_has(term, rows):
    """The calculus by its own meaning, against the maps of its program after the rows came one by one."""
    relations = {name: ("number",) * arity for name, (arity, _) in rows.items()}
    program = parsed(f"q[] = {term}")
    constant = any(
        not any(isinstance(factor, Rel) for factor in monomial.factors)
        for monomial in normal((), tops(program)["q"][1])
    )
    if constant:
        with pytest.raises(EvaluationError, match="reads no relation"):
            compiled(tops(program), {**program.relations, **relations})
        return
    maps = PlainMaps(compiled(tops(program), {**program.relations, **relations}))
    for name, (_, there) in rows.items():
        for row in there.elements():
            maps.event(INSERTION, name, row)
    expected = term_value(term, {name: there for name, (_, there) in rows.items()}, {})
    assert maps.maps["q"][()] == expected
