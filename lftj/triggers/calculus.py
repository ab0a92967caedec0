"""The calculus of Cumulus (section 3.1): formulae say which rows, terms what is summed over them.

    formulae  p ::=  p and p | p or p | (p) | true | false | R(x, ..) | t = t | t != t | t < t | t <= t
    terms     t ::=  t * t | t + t | (t) | c | x | f(t, ..) | Sum(t, p)

    q[] = Sum(p * r, O(k, r) and L(k, p))

Given *bound* variables, the *safe* variables of a formula are those that it gives values to, or that are bound:

    safe(R(x, ..)) = bound and x, ..        safe(p and q) = safe(p) and safe(q) together
    safe(p or q) = those in both            safe(p and x = y) = also x and y, if one of them is in safe(p)

Here `x = t` makes x safe for any term t over safe variables, which the paper has for variables only. The bound
variables of t in Sum(t, p) are the safe ones of p. What a term or a comparison reads must be bound. No Sum stands in a
comparison or in a built-in function: what these would change is no sum any more.

`calculus_reader.parsed(str(term)) == term`; `-` is read as a product with -1, and `>` as `<` the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lftj.errors import Diagnostic, ProgramError, Span
from lftj.language.ast import NOWHERE
from lftj.values.spelling import symbol_text

_LOOSE, _TIGHT, _ATOM = range(3)


# --- terms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VariableTerm:
    """A variable; as a term it must be bound."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    """An integer, or a text."""

    value: int | str

    def __str__(self) -> str:
        return symbol_text(self.value) if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True, slots=True)
class CallTerm:
    """A built-in function of terms."""

    function: str
    args: tuple[CalculusTerm, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class ProductTerm:
    """The product of two terms or more."""

    parts: tuple[CalculusTerm, ...]

    def __str__(self) -> str:
        return " * ".join(_within(part, _TIGHT + 1) for part in self.parts)


@dataclass(frozen=True, slots=True)
class PlusTerm:
    """The sum of two terms or more."""

    parts: tuple[CalculusTerm, ...]

    def __str__(self) -> str:
        return " + ".join(_within(part, _LOOSE + 1) for part in self.parts)


@dataclass(frozen=True, slots=True)
class SumTerm:
    """The sum of `term` over the valuations of the safe variables of `formula`."""

    term: CalculusTerm
    formula: CalculusFormula
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"Sum({self.term}, {self.formula})"


# --- formulae ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TruthFormula:
    """true or false."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True)
class AtomFormula:
    """R(x, ..): the rows of a relation, each as often as it is there."""

    relation: str
    args: tuple[VariableTerm, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class ConstraintFormula:
    """A comparison of two terms: `op` is one of = != < <=."""

    op: str
    left: CalculusTerm
    right: CalculusTerm
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True)
class AndFormula:
    """The conjunction of two formulae or more."""

    parts: tuple[CalculusFormula, ...]

    def __str__(self) -> str:
        return " and ".join(_within(part, _TIGHT + 1) for part in self.parts)


@dataclass(frozen=True, slots=True)
class OrFormula:
    """The disjunction of two formulae or more: the rows of all of them, as often as they are in each."""

    parts: tuple[CalculusFormula, ...]

    def __str__(self) -> str:
        return " or ".join(_within(part, _LOOSE + 1) for part in self.parts)


CalculusTerm = VariableTerm | ConstantTerm | CallTerm | ProductTerm | PlusTerm | SumTerm
CalculusFormula = TruthFormula | AtomFormula | ConstraintFormula | AndFormula | OrFormula


def _within(part: CalculusTerm | CalculusFormula, level: int) -> str:
    loose, tight = isinstance(part, PlusTerm | OrFormula), isinstance(part, ProductTerm | AndFormula)
    mine = _LOOSE if loose else _TIGHT if tight else _ATOM
    return str(part) if mine >= level else f"({part})"


@dataclass(frozen=True, slots=True)
class CalculusQuery:
    """`name[keys] = term`: the term for all values of the keys, its bound variables."""

    name: str
    keys: tuple[VariableTerm, ...]
    term: CalculusTerm
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.keys))}] = {self.term}"


# --- safe and bound variables -----------------------------------------------------------------------------------------


def term_variables(term: CalculusTerm) -> Iterator[VariableTerm]:
    """The variables of a term outside its Sums."""
    match term:
        case VariableTerm():
            yield term
        case CallTerm(_, args):
            for arg in args:
                yield from term_variables(arg)
        case ProductTerm(parts) | PlusTerm(parts):
            for part in parts:
                yield from term_variables(part)


def sums_of(term: CalculusTerm) -> Iterator[SumTerm]:
    """The maximal Sums of a term."""
    match term:
        case SumTerm():
            yield term
        case CallTerm(_, parts) | ProductTerm(parts) | PlusTerm(parts):
            for part in parts:
                yield from sums_of(part)


def parts_of(formula: CalculusFormula) -> Iterator[CalculusFormula]:
    """The atoms and comparisons of a formula, left to right."""
    if isinstance(formula, AndFormula | OrFormula):
        for part in formula.parts:
            yield from parts_of(part)
    else:
        yield formula


def safe(formula: CalculusFormula, bound: Iterable[str]) -> frozenset[str]:
    """The safe variables of a formula, given the bound ones."""
    known = frozenset(bound)
    match formula:
        case AtomFormula(_, args):
            return known | {arg.name for arg in args}
        case ConstraintFormula():
            return known | _made_safe(formula, known)
        case OrFormula(parts):
            return frozenset.intersection(*(safe(part, known) for part in parts))
        case AndFormula(parts):
            # Until nothing changes: `x = y and y = z` makes x safe by z whatever their order.
            while True:
                more = known.union(*(safe(part, known) for part in parts))
                if more == known:
                    return known
                known = more
    return known


def _made_safe(constraint: ConstraintFormula, known: frozenset[str]) -> frozenset[str]:
    """The variable that an equality gives a value."""
    found = set()
    if constraint.op == "=":
        for var, term in ((constraint.left, constraint.right), (constraint.right, constraint.left)):
            if isinstance(var, VariableTerm) and {other.name for other in term_variables(term)} <= known:
                found.add(var.name)
    return frozenset(found)


def check(term: CalculusTerm, bound: Iterable[str]) -> None:
    """Raises ProgramError with every variable that a term reads and that is not bound, and every misplaced Sum."""
    findings = list(_findings(term, frozenset(bound)))
    if findings:
        raise ProgramError(findings)


def _findings(term: CalculusTerm, bound: frozenset[str]) -> Iterator[Diagnostic]:
    yield from _unbound(term, bound)
    for call in _calls(term):
        for inner in sums_of(call):
            yield _misplaced(inner, "a built-in function")
    for inner in sums_of(term):
        inside = safe(inner.formula, bound)
        yield from _findings_of(inner.formula, inside)
        yield from _findings(inner.term, inside)


def _calls(term: CalculusTerm) -> Iterator[CallTerm]:
    """The maximal calls of a term outside its Sums."""
    if isinstance(term, CallTerm):
        yield term
    elif isinstance(term, ProductTerm | PlusTerm):
        for part in term.parts:
            yield from _calls(part)


def _findings_of(formula: CalculusFormula, context: frozenset[str]) -> Iterator[Diagnostic]:
    """Of a formula whose conjunction makes `context` safe."""
    match formula:
        case AndFormula(parts):
            context = safe(formula, context)
            for part in parts:
                yield from _findings_of(part, context)
        case OrFormula(parts):
            for part in parts:
                yield from _findings_of(part, safe(part, context))
        case ConstraintFormula(_, left, right):
            for term in (left, right):
                yield from _unbound(term, context)
                for inner in sums_of(term):
                    yield _misplaced(inner, "a comparison")


def _unbound(term: CalculusTerm, bound: frozenset[str]) -> Iterator[Diagnostic]:
    for var in {var.name: var for var in term_variables(term) if var.name not in bound}.values():
        known = ", ".join(f"`{name}`" for name in sorted(bound)) or "none"
        yield Diagnostic(
            f"variable `{var.name}` is not bound",
            var.span,
            why=f"a term reads bound variables, and no relation or equality binds it (bound here: {known})",
            remedy=f"bind `{var.name}` in the formula of its Sum, or make it a key of the query",
        )


def _misplaced(inner: SumTerm, where: str) -> Diagnostic:
    return Diagnostic(
        f"a Sum stands in {where}",
        inner.span,
        why="a change of the sum would change which rows count, which is no sum any more",
        remedy="make the sum a query of its own, and compare or compute in a rule above it",
    )
