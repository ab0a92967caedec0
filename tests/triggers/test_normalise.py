"""Normal forms: the equations of Cumulus, sections 3.3 and 3.4, as laws over random databases, and its examples.

A law is checked three times: its sides have one value by the meaning of the calculus, by the algebra, and by their
polynomials.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lftj.language.clause import Apply, Value, Var
from lftj.triggers.algebra import DELETION, INSERTION, Add, AggSum, Cmp, Mul, Rel, Val
from lftj.triggers.calculus import (
    AndFormula,
    ConstantTerm,
    OrFormula,
    PlusTerm,
    ProductTerm,
    SumTerm,
    TruthFormula,
    VariableTerm,
    safe,
)
from lftj.triggers.calculus_algebra import term_formula
from lftj.triggers.calculus_reader import parsed_term
from lftj.triggers.calculus_types import TypeScope
from lftj.triggers.evaluation_order import in_order
from lftj.triggers.event_delta import delta
from lftj.triggers.extraction import extracted
from lftj.triggers.formulas import variables
from lftj.triggers.normalise import Monomial, components, polynomial, split_sums, unified
from tests.conftest import examples
from tests.triggers.plain_triggers import view
from tests.triggers.random_calculus import databases, formulae, term_value, terms, valid
from tests.triggers.random_queries import const, var

ROW = {name: tuple(Var(f"@{i}", "number") for i in range(arity)) for name, arity in (("R", 2), ("S", 1))}


def algebra_value(formula, rows, at=None):
    """The value of a formula without keys."""
    return view((), formula, rows, at=at or {}).get((), 0)


def agree(left, right, rows):
    """That two terms without bound variables have one value, whoever computes it."""
    assume(valid(left, ()) and valid(right, ()))
    there = {name: counted for name, (_, counted) in rows.items()}
    value = term_value(left, there, {})
    assert term_value(right, there, {}) == value
    for side in (left, right):
        formula = term_formula(side, (), TypeScope())
        assert algebra_value(formula, there) == value
        assert sum(algebra_value(in_turn(monomial), there) for monomial in polynomial(formula, ())) == value
        for monomial in polynomial(formula, ()):
            simple = unified(monomial, ())
            split = split_sums(simple.monomial) if simple is not None else []
            assert sum(algebra_value(in_turn(part), there) for part in split) == algebra_value(in_turn(monomial), there)


def in_turn(monomial):
    """A monomial in an order in which it can be evaluated."""
    return Monomial(monomial.coefficient, in_order(monomial.factors, ())).formula()


def law(draw_sides):
    """A test of a law whose sides are drawn."""

    @examples(150)
    @given(st.data(), databases())
    def test(data, rows):
        agree(*draw_sides(data.draw), rows)

    return test


def apart(part, but=frozenset()):
    """A term or formula in variables that no other has, except for those of `but`."""
    if isinstance(part, VariableTerm):
        return part if part.name in but else VariableTerm(f"{part.name}0")
    if isinstance(part, tuple):
        return tuple(apart(inner, but) for inner in part)
    if dataclasses.is_dataclass(part):
        fields = {f.name: apart(getattr(part, f.name), but) for f in dataclasses.fields(part) if f.name != "span"}
        return type(part)(**fields)
    return part


@law
def test_sum_over_true(draw):
    t = draw(terms())
    return SumTerm(t, TruthFormula(True)), t


@law
def test_sum_over_false(draw):
    return SumTerm(draw(terms()), TruthFormula(False)), ConstantTerm(0)


@law
def test_sum_of_zero(draw):
    return SumTerm(ConstantTerm(0), draw(formulae())), ConstantTerm(0)


@law
def test_sum_of_a_sum(draw):
    p = draw(formulae())
    s, t = (draw(terms(safe(p, ()), 1)) for _ in range(2))
    return SumTerm(PlusTerm((s, t)), p), PlusTerm((SumTerm(s, p), SumTerm(t, p)))


@law
def test_sum_over_a_disjunction(draw):
    p, q = draw(formulae(depth=1)), draw(formulae(depth=1))
    seen = safe(OrFormula((p, q)), ())
    t = apart(draw(terms(seen, 1)), seen)  # what t sums itself is nothing to p and q
    return SumTerm(t, OrFormula((p, q))), PlusTerm((SumTerm(t, p), SumTerm(t, q)))


@law
def test_factorisation(draw):
    p, q = draw(formulae(depth=1)), draw(formulae(depth=1))
    s, t = draw(terms(safe(p, ()), 1)), draw(terms(safe(q, ()), 1))
    q, t = apart(q), apart(t)
    return SumTerm(ProductTerm((s, t)), AndFormula((p, q))), ProductTerm((SumTerm(s, p), SumTerm(t, q)))


@law
def test_products_distribute_over_sums(draw):
    a, b, c = (draw(terms(depth=1)) for _ in range(3))
    return ProductTerm((a, PlusTerm((b, c)))), PlusTerm((ProductTerm((a, b)), ProductTerm((a, c))))


@law
def test_conjunctions_distribute_over_disjunctions(draw):
    p, q, r = (draw(formulae(depth=1)) for _ in range(3))
    return SumTerm(ConstantTerm(1), AndFormula((p, OrFormula((q, r))))), SumTerm(
        ConstantTerm(1), OrFormula((AndFormula((p, q)), AndFormula((p, r))))
    )


@law
def test_products_and_sums_commute(draw):
    a, b = draw(terms(depth=1)), draw(terms(depth=1))
    p, q = draw(formulae(depth=1)), draw(formulae(depth=1))
    both = ProductTerm((PlusTerm((a, b)), SumTerm(ConstantTerm(1), AndFormula((p, q)))))
    return both, ProductTerm((SumTerm(ConstantTerm(1), AndFormula((q, p))), PlusTerm((b, a))))


@law
def test_neutral_elements(draw):
    a, p = draw(terms(depth=1)), draw(formulae(depth=1))
    left = ProductTerm(
        (PlusTerm((a, ConstantTerm(0))), ConstantTerm(1), SumTerm(ConstantTerm(1), AndFormula((p, TruthFormula(True)))))
    )
    return left, ProductTerm((a, SumTerm(ConstantTerm(1), OrFormula((p, TruthFormula(False))))))


@examples(200)
@given(terms(), databases(), st.data())
def test_deltas_of_insertions_and_deletions(term, rows, data):
    """Equation 1 of section 3.4: the value after an event is the value before it plus the delta, read before it."""
    there = {name: counted for name, (_, counted) in rows.items()}
    sign, name = data.draw(st.sampled_from((INSERTION, DELETION))), data.draw(st.sampled_from("RS"))
    row = tuple(data.draw(st.integers(0, 2)) for _ in ROW[name])
    assume(sign == INSERTION or there[name][row])
    at = {f"@{i}": v for i, v in enumerate(row)}
    formula = AggSum((), Add(tuple(map(in_turn, polynomial(term_formula(term, (), TypeScope()), ())))))
    change = algebra_value(delta(formula, sign, name, ROW[name]), there, at)
    before = algebra_value(formula, there)
    there[name][row] += sign
    assert algebra_value(formula, there) == before + change


# --- examples of the paper --------------------------------------------------------------------------------------------

r, u, v, w, x, y, z, q = map(var, "ruvwxyzq")


def monomial_of(text, bound=()):
    """The only monomial of a term."""
    (monomial,) = polynomial(term_formula(parsed_term(text), {b.name for b in bound}, TypeScope()), bound)
    return monomial


def test_factorisation_of_the_papers_term():
    """{5}, {x, R(x, y), Sum(1, R(y, z)), S(z)} and {w, R(v, w)}: the inner Sum reads y and z, which are bound there."""
    monomial = monomial_of("Sum(5 * x * Sum(1, R(y, z)) * w, R(x, y) and S(z) and R(v, w))")
    assert monomial.coefficient == 5
    parts = [set(part) for part in components(monomial.factors, frozenset())]
    assert parts == [
        {Rel("R", (x, y)), Rel("S", (z,)), Val(x), Rel("R", (y, z))},
        {Rel("R", (v, w)), Val(w)},
    ]


def test_variable_elimination_of_the_papers_term():
    """Of the bound x, y, z the equalities x = z and y = z remain, q becomes the bound r, u and w become v.

    The paper takes w of u, v, w, which it may choose freely, and prints z for y, which y = z makes the same.
    """
    text = "Sum(y*v*r, R(z, v) and v<q and x=y and x=z and u=v and v=w and q=r)"
    bound = (x, y, z, r)
    monomial = monomial_of(text, bound)
    simple = unified(monomial, bound)
    assert set(simple.monomial.factors) == {
        Rel("R", (z, v)),
        Cmp("<", v, r),
        Val(y),
        Val(v),
        Val(r),
        Cmp("=", x, z),
        Cmp("=", y, z),
    }
    assert dict(simple.replaced_by) == {"u": v, "w": v, "q": r}


def test_variable_elimination_leaves_only_what_is_bound_or_read():
    """Unbound variables of a class have one representative, which is bound if one of the class is."""
    simple = unified(monomial_of("Sum(a * c, T(a) and a = b and b = c and c = d)", (var("d"),)), (var("d"),))
    assert set(simple.monomial.factors) == {Rel("T", (var("d"),)), Val(var("d"))}


def test_extraction_of_the_papers_aggregates():
    """Sum(x * m1[z], x<y and y=z) * 5 * y * m2[x]; z is y, of which nothing but the key of m1 remains."""
    text = "Sum(x * Sum(w, R(v, w) and R(w, z)), x<y and y=z) * 5 * y * Sum(u, R(u, x))"
    bound = (x, y)
    simple = unified(monomial_of(text, bound), bound)
    assert simple.monomial.coefficient == 5
    kept, maps = extracted(simple.monomial.factors, frozenset("xy"), ())
    assert sorted(map(str, kept)) == sorted(map(str, [Val(x), Cmp("<", x, y), Val(y)]))
    one, two = maps
    assert [outer for _, outer in one.keys] == [y]
    ((key, _),) = one.keys
    (atoms, others) = one.factors[:2], one.factors[2:]
    assert [atom.name for atom in atoms] == ["R", "R"]
    assert atoms[0].args[1] == atoms[1].args[0]
    assert atoms[1].args[1] == key
    assert others == (Val(atoms[0].args[1]),)
    assert [outer for _, outer in two.keys] == [x]
    assert two.factors == (Rel("R", (two.factors[0].args[0], two.keys[0][0])), Val(two.factors[0].args[0]))


def test_constraints_only_terms_stay_in_place():
    """(if u = v then u * v else 0): no map has an entry for every pair of values that could be."""
    simple = unified(monomial_of("Sum(u * v, u = v and u < 5)", (u, v)), (u, v))
    kept, maps = extracted(simple.monomial.factors, frozenset("uv"), ())
    assert maps == []
    assert set(kept) == {Cmp("=", u, v), Cmp("<", u, const(5)), Val(u), Val(v)}


def test_the_delta_of_the_papers_self_join():
    """+-Sum(u * z, R(v, z)) +-Sum(x * v, R(x, u)) + (if u = v then u * v else 0), with the row (u, v) = (@0, @1)."""
    formula = term_formula(parsed_term("Sum(x * z, R(x, y) and R(y, z))"), (), TypeScope())
    a, b = ROW["R"]
    for sign in (INSERTION, DELETION):
        found = [unified(m, (a, b)).monomial for m in polynomial(delta(formula, sign, "R", (a, b)), (a, b))]
        assert [m.coefficient for m in found] == [sign, sign, 1]
        assert set(found[0].factors) == {Val(a), Val(z), Rel("R", (b, z))}
        assert set(found[1].factors) == {Val(x), Val(b), Rel("R", (x, a))}
        assert set(found[2].factors) == {Val(a), Val(b), Cmp("=", b, a)}


def test_a_product_with_zero_and_an_impossible_comparison_are_nothing():
    assert polynomial(Mul((Rel("T", (x,)), Val(const(0)))), ()) == []
    assert polynomial(Mul((Rel("T", (x,)), Add())), ()) == []
    assert unified(Monomial(1, (Rel("T", (x,)), Cmp("<", x, x))), ()) is None
    assert unified(Monomial(1, (Cmp("=", const(1), const(2)),)), ()) is None


def test_what_is_summed_inside_gets_names_of_its_own():
    body = Mul((Rel("S", (x,)), AggSum((), Rel("S", (y,))), AggSum((), Mul((Rel("S", (y,)), Val(y))))))
    (monomial,) = polynomial(body, ())
    assert len(variables(Mul(monomial.factors))) == 3


@pytest.mark.parametrize(
    ("types", "parts"),
    [
        (("number", "number", "number"), 2),
        (("decimal(9,2)", "decimal(9,2)", "decimal(9,2)"), 2),
        (("float", "float", "float"), 1),
        (("unsigned", "unsigned", "unsigned"), 1),
        (("number?", "number", "number?"), 1),
    ],
)
def test_only_arithmetic_of_integer_codes_is_split(types, parts):
    """A float's sum is not the sum of codes, and null plus 1 is null."""
    a, b = Var("a", types[0]), Var("b", types[1])
    value = Val(Apply("+", (a, b), types[2]))
    assert len(split_sums(Monomial(1, (Rel("S", (a,)), Rel("S", (b,)), value)))) == parts


def test_constants_of_other_types_are_no_coefficients():
    half = Value("0.5", "decimal(2,1)")
    (monomial,) = polynomial(Mul((Val(half), Val(const(3)))), ())
    assert monomial == Monomial(3, (Val(half),))
