"""Lowering: from a checked conjunction with inferred types to a `Clause`.

Constants take the type of their place (`1` in a float column is 1.0), expressions that are arguments of body atoms
become fresh variables with an equality, and everything else keeps the order in which it was written.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, sum_of_nothing
from lftj.language.clause import Aggregate, Apply, BodyAtom, Clause, Compare, Parameter, Plain, Term, Value, Var
from lftj.language.diagnostics import Findings
from lftj.language.functors import FUNCTORS, IS_NULL, OR_NULL
from lftj.language.infer import TypedClause, either_of
from lftj.language.null import admitted, is_null, not_null, values_that_may_be_null
from lftj.language.text import term_source
from lftj.language.types import ANY, FLOAT, NUMBER, RANGES, SYMBOL, TIMESTAMP
from lftj.language.visitors import subterms, terms_of
from lftj.values.time_types import Timestamp
from lftj.values.type_table import is_nullable, type_of
from lftj.values.value_type import Misfit

_RANGE_SHOWN = {"number": "-2^63 to 2^63 - 1", "unsigned": "0 to 2^64 - 1"}


def check_constants(clause: TypedClause, findings: Findings) -> None:
    """Report the constants of a clause that do not fit the type inferred for them."""
    literals = [*clause.body.atoms, *clause.body.negated]
    terms = [arg for arg in clause.head.args if not _is_null(arg)]
    terms += [arg for atom in literals for arg in atom.args]
    terms += [term for compare in clause.body.compares for term in (compare.left, compare.right)]
    for term in terms:
        for part in subterms(term):
            if _is_null(part):
                findings.error(
                    "null where a value is matched, compared or computed with",
                    part.span,
                    why="null equals nothing, so no row would satisfy the condition; it may only be derived by a head",
                    remedy="ask for it with `is_null(x)`, or for its absence with `!is_null(x)`",
                )
            elif isinstance(part, ast.Constant):
                _check_constant(part, clause.type_of(part), findings)


def _is_null(term: ast.Term) -> bool:
    return isinstance(term, ast.Constant) and term.value is None


def _check_constant(constant: ast.Constant, type_: str, findings: Findings) -> None:
    value = constant.value
    if type_ not in (constant.kind, FLOAT, *RANGES):
        try:
            _typed_value(constant, type_)
        except Misfit as misfit:
            findings.error(
                f"the constant `{term_source(constant)}` {misfit.fault.reason}",
                constant.span,
                why=misfit.fault.why,
                remedy=misfit.fault.remedy,
            )
    elif type_ in RANGES and isinstance(value, int):
        low, high = RANGES[type_]
        if not low <= value <= high:
            remedy = f"{type_} holds {_RANGE_SHOWN[type_]}"
            if type_ == "number" and high < value <= RANGES["unsigned"][1]:
                remedy += f"; write `{value}u` where unsigned is meant"
            findings.error(
                f"the constant {value} is out of range for {type_}",
                constant.span,
                why=f"{type_} has 64 bits",
                remedy=remedy,
            )
    elif type_ == FLOAT and isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            remedy = "the largest float is about 1.8e308"
            findings.error(
                "an integer constant is out of range for float",
                constant.span,
                why="it stands where a float is meant",
                remedy=remedy,
            )
    elif type_ == SYMBOL and isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        findings.error(
            "a string holds half of a surrogate pair",
            constant.span,
            why="it stands for no character, and no UTF-8 text has it",
            remedy="a symbol is text that UTF-8 can encode",
        )


def check_parameters(clause: TypedClause, findings: Findings) -> None:
    """Report the parameters of a query that could be of several types, none of them a number."""
    for term in terms_of(clause.rule):
        slot = clause.slot(term) if isinstance(term, ast.Parameter) else None
        if not isinstance(term, ast.Parameter) or slot is None:
            continue
        domain = slot.root().domain
        if domain == ANY or (slot.type is None and NUMBER not in domain):
            findings.error(
                f"the type of `${term.name}` is not known"
                + ("" if domain == ANY else f": it may be {either_of(domain)} here"),
                term.span,
                why="a parameter has the type of the column or the term that it stands in or is compared with",
                remedy=f"use `${term.name}` as an argument of an atom, or compare it with a variable of one",
            )


def fact_row(clause: TypedClause) -> tuple[Any, ...] | None:
    """The row that a ground fact states; None if an argument has to be computed."""
    row: list[Any] = []
    for arg in clause.head.args:
        if not isinstance(arg, ast.Constant):
            return None
        row.append(_value(arg, clause).value)
    return tuple(row)


def _value(constant: ast.Constant, clause: TypedClause) -> Value:
    type_ = clause.type_of(constant)
    if constant.value is None:
        return Value(None, type_)
    # -0.0 and 0.0 are one key
    value = float(constant.value) + 0.0 if type_ == FLOAT else _typed_value(constant, type_)
    return Value(value, type_)


def _typed_value(constant: ast.Constant, type_: str) -> Any:
    """The value of a constant as one of a type: a text may write one, and a decimal has the type's scale."""
    made = type_of(type_)
    if not constant.kind:
        return made.known(made.read(sum_of_nothing(type_)))
    if constant.kind == SYMBOL and type_ != SYMBOL:
        return made.known(made.parse(constant.value))
    if type_ in RANGES or (type_ == constant.kind and type_ != TIMESTAMP):
        return constant.value
    return made.known(made.read(constant.value))


def _term(term: ast.Term, clause: TypedClause) -> Term:
    if isinstance(term, ast.Variable):
        return Var(term.name, clause.type_of(term))
    if isinstance(term, ast.Constant):
        return _value(term, clause)
    if isinstance(term, ast.Parameter):
        slot = clause.slot(term)
        reason = slot.root().reason if slot is not None else ""
        return Parameter(term.name, clause.type_of(term), reason, term.span)
    assert isinstance(term, ast.Functor), f"{term!r} was to be refused by the checks"
    args = tuple(_term(arg, clause) for arg in term.args)
    if FUNCTORS[term.name].on_clocks:
        args = tuple(_on_clocks(arg) for arg in args)
    if term.name == "coalesce" and not is_nullable(args[0].type):  # a value may have the code of null
        return args[0]
    return Apply(term.name, args, clause.type_of(term))


def _on_clocks(term: Term) -> Term:
    """What the clocks of its zone show, of a timestamp that has one."""
    made = type_of(term.type)
    return Apply("local", (term,), TIMESTAMP) if isinstance(made, Timestamp) and made.zone else term


def lower(clause: TypedClause, text: str, rule: int) -> Clause:
    """The clause that planning starts from."""
    computed = _Computed(clause)
    atoms = tuple(computed.atom(atom) for atom in clause.body.atoms)
    negated = tuple(computed.atom(atom) for atom in clause.body.negated)
    matching = [c.left for c in clause.body.compares if c.op == OR_NULL]
    compared = [_compare(compare, clause) for compare in clause.body.compares if compare.op != OR_NULL]
    compares = [compare for compare in compared if not _is_sure(compare)]
    compares += [not_null(Var(name, clause.variables[name].type or NUMBER)) for name in clause.not_null]
    compares += [not_null(_term(term, clause)) for term in values_that_may_be_null(clause)]
    head_args = tuple(_term(arg, clause) for arg in clause.head.args)
    compares += [admitted(head_args[position]) for position in clause.admitted]
    return Clause(
        clause.head.name,
        head_args,
        atoms,
        (*computed.equalities, *compares),
        clause.rule.span,
        text,
        rule,
        negated=negated,
        aggregate=_aggregate(clause),
        best=clause.best,
        or_null=frozenset(term.name for term in matching if isinstance(term, ast.Variable)),
    )


def _compare(compare: ast.Comparison, clause: TypedClause) -> Compare:
    left = _term(compare.left, clause)
    if compare.op.removeprefix("not_") == OR_NULL:  # negated: it never holds
        return Compare("!=", left, left, compare.span)
    if compare.op.removeprefix("not_") == IS_NULL:
        if is_nullable(left.type):
            return is_null(left, holds=compare.op == IS_NULL)
        # It has a value, which may have the code of null, or the clause does not hold.
        return Compare("!=" if compare.op == IS_NULL else "=", left, left, compare.span)
    return Compare(compare.op, left, _term(compare.right, clause), compare.span)


def _is_sure(compare: Compare) -> bool:
    """Whether a comparison always holds: of a variable that is not null, with itself."""
    left = compare.left
    return compare.op == "=" and isinstance(left, Var) and left == compare.right and not is_nullable(left.type)


def _aggregate(clause: TypedClause) -> Aggregate | None:
    if clause.fold is None:
        return None
    op, groups = clause.fold.op, clause.fold.groups
    operand = clause.type_of(clause.head.args[groups]) if AGGREGATES[op].operand else ""
    return Aggregate(op, groups, AGGREGATES[op].result_of(operand))


class _Computed:
    """Expressions among the arguments of body atoms, each replaced by a fresh variable that equals it."""

    def __init__(self, clause: TypedClause) -> None:
        self.clause = clause
        self.equalities: list[Compare] = []
        self._taken = {term.name for term in terms_of(clause.rule) if isinstance(term, ast.Variable)}
        self._names = (name for i in count(1) if (name := f"_e{i}") not in self._taken)

    def atom(self, atom: ast.Atom) -> BodyAtom:
        """The atom over variables, values and wildcards."""
        args: list[Plain | None] = []
        for arg in atom.args:
            term = None if isinstance(arg, ast.Wildcard) else _term(arg, self.clause)
            if isinstance(term, Apply):
                variable = Var(next(self._names), term.type)
                self.equalities.append(Compare("=", variable, term, arg.span))
                term = variable
            args.append(term)
        return BodyAtom(atom.name, tuple(args), atom.span)
