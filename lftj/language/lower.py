"""Lowering: from a checked conjunction with inferred types to a `Clause`.

Constants take the type of their place (`1` in a float column is 1.0), expressions that are arguments of body atoms
become fresh variables with an equality, and everything else keeps the order in which it was written.
"""

from __future__ import annotations

from lftj.language import ast
from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Term, Value, Var
from lftj.language.findings import Findings
from lftj.language.infer import TypedClause
from lftj.language.names import subterms, terms_of
from lftj.language.types import FLOAT, RANGES, SYMBOL

_RANGE_SHOWN = {"number": "-2^63 to 2^63 - 1", "unsigned": "0 to 2^64 - 1"}


def check_constants(clause: TypedClause, findings: Findings) -> None:
    """Report the constants of a clause that do not fit the type inferred for them."""
    literals = [clause.head, *clause.body.atoms]
    terms = [arg for atom in literals for arg in atom.args]
    terms += [term for compare in clause.body.compares for term in (compare.left, compare.right)]
    for term in terms:
        for part in subterms(term):
            if isinstance(part, ast.Constant):
                _check_constant(part, clause.type_of(part), findings)


def _check_constant(constant: ast.Constant, type_: str, findings: Findings) -> None:
    value = constant.value
    if type_ in RANGES and isinstance(value, int):
        low, high = RANGES[type_]
        if not low <= value <= high:
            remedy = f"{type_} holds {_RANGE_SHOWN[type_]}"
            if type_ == "number" and high < value <= RANGES["unsigned"][1]:
                remedy += f"; write `{value}u` where unsigned is meant"
            findings.error(f"the constant {value} is out of range for {type_}", constant.span, remedy=remedy)
    elif type_ == FLOAT and isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            remedy = "the largest float is about 1.8e308"
            findings.error("an integer constant is out of range for float", constant.span, remedy=remedy)
    elif type_ == SYMBOL and isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        findings.error(
            "a string holds half of a surrogate pair", constant.span, remedy="a symbol is text that UTF-8 can encode"
        )


def fact_row(clause: TypedClause) -> tuple[int | float | str, ...] | None:
    """The row that a ground fact states; None if an argument has to be computed."""
    row: list[int | float | str] = []
    for arg in clause.head.args:
        if not isinstance(arg, ast.Constant):
            return None
        row.append(_value(arg, clause).value)
    return tuple(row)


def _value(constant: ast.Constant, clause: TypedClause) -> Value:
    type_ = clause.type_of(constant)
    # -0.0 and 0.0 are one key
    value = float(constant.value) + 0.0 if type_ == FLOAT else constant.value
    return Value(value, type_)


def _term(term: ast.Term, clause: TypedClause) -> Term:
    if isinstance(term, ast.Variable):
        return Var(term.name, clause.type_of(term))
    if isinstance(term, ast.Constant):
        return _value(term, clause)
    assert isinstance(term, ast.Functor), f"{term!r} was to be refused by the checks"
    return Apply(term.name, tuple(_term(arg, clause) for arg in term.args), clause.type_of(term))


def lower(clause: TypedClause, text: str, rule: int) -> Clause:
    """The clause that planning starts from."""
    taken = {term.name for term in terms_of(clause.rule) if isinstance(term, ast.Variable)}
    atoms: list[BodyAtom] = []
    compares: list[Compare] = []
    fresh = 0
    for atom in clause.body.atoms:
        args: list[Var | Value | None] = []
        for arg in atom.args:
            if isinstance(arg, ast.Wildcard):
                args.append(None)
                continue
            term = _term(arg, clause)
            if isinstance(term, Apply):
                while True:
                    fresh += 1
                    if f"_e{fresh}" not in taken:
                        break
                variable = Var(f"_e{fresh}", term.type)
                compares.append(Compare("=", variable, term, arg.span))
                term = variable
            args.append(term)
        atoms.append(BodyAtom(atom.name, tuple(args), atom.span))
    for compare in clause.body.compares:
        compares.append(Compare(compare.op, _term(compare.left, clause), _term(compare.right, clause), compare.span))
    head_args = tuple(_term(arg, clause) for arg in clause.head.args)
    return Clause(clause.head.name, head_args, tuple(atoms), tuple(compares), clause.rule.span, text, rule)
