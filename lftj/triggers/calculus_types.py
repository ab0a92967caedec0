"""Types of the calculus: variables have those of the columns that they stand in, or of what they are equal to.

What is compared or added is of one type, decimals of as many digits behind the point. A product of decimals has the
digits of all of its factors. What is added or multiplied are numbers, decimals and durations, none of them null.

A name stands for one variable within a Sum and the Sums in its term; beside them it may be of another type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lftj.errors import Diagnostic, ProgramError, Span
from lftj.language.functors import FUNCTORS
from lftj.language.signature import EACH, SAME
from lftj.language.types import DECIMAL, DURATION, NUMBER, SYMBOL, comparable, decimal_of, scale_of
from lftj.triggers.calculus import (
    AtomFormula,
    CalculusFormula,
    CalculusQuery,
    CalculusTerm,
    CallTerm,
    ConstantTerm,
    ConstraintFormula,
    PlusTerm,
    ProductTerm,
    SumTerm,
    VariableTerm,
    parts_of,
    safe,
    sums_of,
    term_variables,
)
from lftj.triggers.computable import INTEGERS
from lftj.values.decimal_type import DIGITS
from lftj.values.schema import Schema
from lftj.values.type_table import family_of, is_nullable


class VariableType(NamedTuple):
    """The type of a variable, and what it has it from, in words and in the text."""

    type: str
    reason: str
    span: Span


@dataclass(frozen=True, slots=True)
class TypeScope:
    """What is known of variables at a place of a query: the schemas of relations, and the types of those seen there."""

    relations: Mapping[str, Schema] = field(default_factory=dict)
    types: Mapping[str, VariableType] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """The type of a variable: a number where nothing says otherwise."""
        return self.types[name].type if name in self.types else NUMBER

    def inside(self, formula: CalculusFormula, bound: Iterable[str]) -> TypeScope:
        """That of a formula, of whose variables `bound` are those outside."""
        types = {name: self.types[name] for name in bound if name in self.types}
        parts = list(parts_of(formula))
        for part in parts:
            if isinstance(part, AtomFormula) and part.relation in self.relations:
                columns = self.relations[part.relation].columns
                for arg, column in zip(part.args, columns, strict=True):
                    reason = f"as column `{column.name}` of `{part.relation}`"
                    types.setdefault(arg.name, VariableType(column.type, reason, arg.span))
        equal = [part for part in parts if isinstance(part, ConstraintFormula) and part.op == "="]
        while found := next(filter(None, (_typed_by(part, types) for part in equal)), None):
            var, term = found
            kind = _Types(TypeScope(self.relations, types)).term(term, frozenset(), var.span)  # no Sum is compared
            types[var.name] = VariableType(kind or NUMBER, f"as `{term}`", var.span)
        return TypeScope(self.relations, types)

    def with_keys(self, term: CalculusTerm, keys: Sequence[str], bound: Iterable[str]) -> TypeScope:
        """The same, and the types that keys of the query have in the Sums of a term under its bound variables."""
        types = dict(self.types)
        for found in sums_of(term):
            inside = self.inside(found.formula, bound).with_keys(found.term, keys, safe(found.formula, bound))
            types = {name: inside.types[name] for name in keys if name in inside.types} | types
        return TypeScope(self.relations, types)


def _typed_by(
    equality: ConstraintFormula, types: Mapping[str, VariableType]
) -> tuple[VariableTerm, CalculusTerm] | None:
    """(the variable without a type, the term that it equals) where an equality says what type it has."""
    for var, term in ((equality.left, equality.right), (equality.right, equality.left)):
        known = all(other.name in types for other in term_variables(term))
        if known and isinstance(var, VariableTerm) and var.name not in types:
            return var, term
    return None


def check_types(query: CalculusQuery, relations: Mapping[str, Schema]) -> TypeScope:
    """The scope of a query. Raises ProgramError with every conflict of types, and every call that has no meaning."""
    keys = [key.name for key in query.keys]
    scope = TypeScope(relations).with_keys(query.term, keys, keys)
    types = _Types(scope)
    types.term(query.term, frozenset(keys), query.span)
    if types.findings:
        raise ProgramError(types.findings)
    return scope


class _Types:
    """The types of terms in a scope; "" where there is none, which was found. `findings`: what is wrong."""

    def __init__(self, scope: TypeScope) -> None:
        self.scope, self.findings = scope, list[Diagnostic]()

    def term(self, term: CalculusTerm, bound: frozenset[str], place: Span) -> str:
        """The type of a term under its bound variables. `place`: where it stands, if it has none of its own."""
        match term:
            case VariableTerm(name):
                return self.scope.of(name)
            case ConstantTerm(value):
                return SYMBOL if isinstance(value, str) else NUMBER
            case SumTerm(inner, formula):
                return self.sum(inner, formula, bound, term.span)
            case ProductTerm(parts):
                return self.product(parts, [self.term(part, bound, place) for part in parts], place)
            case PlusTerm(parts):
                kinds = [self.term(part, bound, place) for part in parts]
                for part, kind in zip(parts, kinds, strict=True):
                    if kind and not _adds_up(kind):
                        return self.no_integers("`+` takes", part, kind, place)
                return self.one_type(parts, kinds, place, "values of different types are not added up")
            case CallTerm(function, args):
                return self.call(function, args, [self.term(arg, bound, term.span) for arg in args], term.span)

    def sum(self, term: CalculusTerm, formula: CalculusFormula, bound: frozenset[str], place: Span) -> str:
        """The type of a Sum, that of its term."""
        outside, self.scope = self.scope, self.scope.inside(formula, bound)
        for part in parts_of(formula):
            if isinstance(part, AtomFormula):
                self.atom(part)
            elif isinstance(part, ConstraintFormula):
                sides = (part.left, part.right)
                kinds = [self.term(side, bound, part.span) for side in sides]
                self.one_type(sides, kinds, part.span, "values of different types are not compared")
        kind = self.term(term, safe(formula, bound), place)
        self.scope = outside
        if kind and not _adds_up(kind):
            return self.no_integers("a Sum adds up", term, kind, place)
        return kind

    def atom(self, atom: AtomFormula) -> None:
        """The arguments of a relation have the types of its columns."""
        for arg, column in zip(atom.args, self.scope.relations[atom.relation].columns, strict=True):
            known = self.scope.types[arg.name]
            if not comparable(known.type, column.type):
                self.conflict(
                    f"`{arg}` is {column.type} here, as column `{column.name}` of `{atom.relation}`, and {known.type} "
                    "elsewhere",
                    arg,
                    arg.span,
                    "a column, and a variable, holds values of one type",
                    ((f"{known.type}, {known.reason}", known.span),),
                )

    def product(self, parts: Sequence[CalculusTerm], kinds: Sequence[str], place: Span) -> str:
        """The type of a product."""
        for part, kind in zip(parts, kinds, strict=True):
            if kind and not _adds_up(kind):
                return self.no_integers("`*` takes", part, kind, place)
        if not all(kinds):
            return ""
        families, scale = [family_of(kind) for kind in kinds], sum(map(scale_of, kinds))
        if families.count(DURATION) > 1 or {DURATION, DECIMAL} <= {*families} or scale > DIGITS:
            return self.conflict(f"`*` has no meaning for {' and '.join(kinds)}", parts[0], place)
        return DURATION if DURATION in families else decimal_of(scale) if DECIMAL in families else NUMBER

    def one_type(self, parts: Sequence[CalculusTerm], kinds: Sequence[str], place: Span, why: str) -> str:
        """The type that all terms have."""
        for part, kind in zip(parts[1:], kinds[1:], strict=True):
            if kind and kinds[0] and not comparable(kinds[0], kind):
                what = f"`{parts[0]}` is {kinds[0]}, and `{part}` is {kind}"
                return self.conflict(what, parts[0], place, why)
        return kinds[0] if all(kinds) else ""

    def call(self, function: str, args: Sequence[CalculusTerm], kinds: Sequence[str], place: Span) -> str:
        """The type of the result of a built-in function."""
        if function not in FUNCTORS:
            self.findings.append(
                Diagnostic(
                    f"there is no built-in function `{function}`",
                    place,
                    why="what is summed over rows is written Sum(term, formula)",
                    remedy="`lftj functors` lists them",
                )
            )
            return ""
        signature = FUNCTORS[function]
        if not signature.accepts(len(args)):
            what = f"`{function}` does not take {len(args)} arguments"
            self.findings.append(Diagnostic(what, place, why=f"it is {signature}", remedy="give those it takes"))
            return ""
        if not all(kinds):
            return ""
        overload = signature.overload(kinds)
        if overload is not None:
            return overload.type(kinds)
        for i, (arg, kind) in enumerate(zip(args, kinds, strict=True)):
            wanted = signature.parameter(i)
            takes = signature.domain if wanted in (SAME, EACH) else {wanted}
            if family_of(kind) not in takes:
                taken = " or ".join(sorted(takes))
                return self.conflict(f"`{function}` takes {taken}, and `{arg}` is {kind}", arg, place)
            if wanted == SAME and not comparable(kinds[0], kind):
                return self.one_type(args, kinds, place, f"`{function}` takes values of one type")
        return kinds[0] if signature.result in (SAME, EACH) else signature.result

    def no_integers(self, what: str, term: CalculusTerm, kind: str, place: Span) -> str:
        """Note that a term is of a type that is not added up. `what`: what would do that."""
        what = f"{what} numbers, decimals and durations, and `{term}` is {kind}"
        return self.conflict(what, term, place, "triggers add up integers, and null is none")

    def conflict(
        self,
        what: str,
        term: CalculusTerm,
        place: Span,
        why: str = "values of different types are not converted silently",
        related: tuple[tuple[str, Span], ...] = (),
    ) -> str:
        """Note a conflict at a term; there is no type then."""
        remedy = "use columns of one type, or compute in a rule what the sum is of"
        span = next(_places(term), place)
        self.findings.append(Diagnostic(f"type conflict: {what}", span, why=why, remedy=remedy, related=related))
        return ""


def _places(term: CalculusTerm) -> Iterator[Span]:
    """The places of the parts of a term, from left to right."""
    if isinstance(term, VariableTerm | CallTerm | SumTerm):
        yield term.span
    elif isinstance(term, ProductTerm | PlusTerm):
        for part in term.parts:
            yield from _places(part)


def _adds_up(kind: str) -> bool:
    """Whether values of a type are added up by their codes."""
    return family_of(kind) in INTEGERS and not is_nullable(kind)
