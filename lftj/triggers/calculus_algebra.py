"""From the calculus to the algebra: a conjunction and a product are both a Mul, a disjunction and a sum both an Add.

    Sum(t, p)  =  AggSum([], p * t)          true = 1, false = 0          q[keys] = t   has the keys of the query

Within a conjunction relations come first, then equalities that bind, then what is tested, so that a product can be
evaluated from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable

from lftj.language.clause import Apply, Term, Value, Var
from lftj.language.functors import FUNCTORS
from lftj.language.signature import EACH, SAME
from lftj.triggers.algebra import Add, AggSum, Cmp, Formula, Lift, Mul, Rel, Val
from lftj.triggers.calculus import (
    AndFormula,
    AtomFormula,
    CalculusFormula,
    CalculusTerm,
    CallTerm,
    ConstantTerm,
    ConstraintFormula,
    OrFormula,
    PlusTerm,
    ProductTerm,
    SumTerm,
    TruthFormula,
    VariableTerm,
    safe,
    sums_of,
    term_variables,
)
from lftj.triggers.calculus_reader import CalculusProgram
from lftj.triggers.calculus_types import TypeScope, check_types
from lftj.triggers.compilation import Top


def tops(program: CalculusProgram) -> dict[str, Top]:
    """The queries of a program for `compilation.compiled`. Raises ProgramError where types conflict."""
    made: dict[str, Top] = {}
    for query in program.queries:
        scope = check_types(query, program.relations)
        names = [key.name for key in query.keys]
        body = term_formula(query.term, names, scope)
        made[query.name] = tuple(Var(name, scope.of(name)) for name in names), body
    return made


def term_formula(term: CalculusTerm, bound: Iterable[str], scope: TypeScope) -> Formula:
    """A term as a formula, under its bound variables."""
    known = frozenset(bound)
    if next(sums_of(term), None) is None and not isinstance(term, ProductTerm):
        return Val(plain_term(term, scope))
    match term:
        case ProductTerm(parts):
            return Mul(tuple(term_formula(part, known, scope) for part in parts))
        case PlusTerm(parts):
            return Add(tuple(term_formula(part, known, scope) for part in parts))
        case SumTerm(inner, formula):
            within = scope.inside(formula, known)
            inside = term_formula(inner, safe(formula, known), within)
            return AggSum((), Mul((formula_formula(formula, known, within), inside)))
    raise AssertionError(f"{term} holds a Sum, which `calculus.check` refuses")


def plain_term(term: CalculusTerm, scope: TypeScope) -> Term:
    """A term without Sums."""
    match term:
        case VariableTerm(name):
            return Var(name, scope.of(name))
        case ConstantTerm(value):
            return Value(value, "symbol" if isinstance(value, str) else "number")
        case ProductTerm(parts) | PlusTerm(parts):
            op = "*" if isinstance(term, ProductTerm) else "+"
            made = plain_term(parts[0], scope)
            for part in parts[1:]:
                other = plain_term(part, scope)
                made = Apply(op, (made, other), made.type)
            return made
        case CallTerm(function, args):
            signature = FUNCTORS[function]
            given = tuple(plain_term(arg, scope) for arg in args)
            kind = given[0].type if signature.result in (SAME, EACH) else signature.result
            return Apply(function, given, kind)
    raise AssertionError(f"{term} holds a Sum")


def formula_formula(formula: CalculusFormula, bound: frozenset[str], scope: TypeScope) -> Formula:
    """A formula of the calculus as one of the algebra, under its bound variables."""
    match formula:
        case TruthFormula(value):
            return Mul() if value else Add()
        case AtomFormula():
            return _atom(formula, scope)
        case ConstraintFormula():
            return _constraint(formula, bound, scope)
        case OrFormula(parts):
            return Add(tuple(formula_formula(part, bound, scope) for part in parts))
        case AndFormula(parts):
            made, known, todo = [], bound, list(parts)
            while todo:
                part = next((part for part in todo if _ready(part, known)), todo[0])
                todo.remove(part)
                made.append(formula_formula(part, known, scope))
                known = safe(part, known)
            return Mul(tuple(made))


def _ready(formula: CalculusFormula, known: frozenset[str]) -> bool:
    """Whether a formula can be evaluated where `known` variables have values."""
    match formula:
        case ConstraintFormula(_, left, right):
            inside = safe(formula, known)
            return all(var.name in inside for term in (left, right) for var in term_variables(term))
        case AndFormula(parts):
            inside = safe(formula, known)
            return all(_ready(part, inside) for part in parts)
        case OrFormula(parts):
            return all(_ready(part, known) for part in parts)
    return True


def _atom(atom: AtomFormula, scope: TypeScope) -> Formula:
    """A relation over distinct variables: one that occurs again is compared."""
    args: list[Var | Value] = []
    compares: list[Formula] = []
    for i, arg in enumerate(atom.args):
        var = Var(arg.name, scope.of(arg.name))
        if var in args:
            again = Var(f"{arg.name}''{i}", var.type)
            compares.append(Cmp("=", var, again))
            var = again
        args.append(var)
    rel = Rel(atom.relation, tuple(args))
    return Mul((rel, *compares)) if compares else rel


def _constraint(constraint: ConstraintFormula, bound: frozenset[str], scope: TypeScope) -> Formula:
    """A comparison, or the lift of the variable that it gives a value."""
    if constraint.op == "=":
        for var, term in ((constraint.left, constraint.right), (constraint.right, constraint.left)):
            if isinstance(var, VariableTerm) and var.name not in bound:
                return Lift(Var(var.name, scope.of(var.name)), plain_term(term, scope))
    return Cmp(constraint.op, plain_term(constraint.left, scope), plain_term(constraint.right, scope))
