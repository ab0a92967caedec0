"""Calculus text to queries: lark parses by `calculus.lark`, this page tells formulae from terms.

    relation O(k: number, r: number)          of undeclared relations the columns are numbers, called as where
    q[] = Sum(p * r, O(k, r) and L(k, p))     it is used first
    by_k[k] = Sum(p, L(k, p))

A text may hold several queries. Each is checked: what its terms read is bound, no Sum stands where none may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from lftj.errors import Diagnostic, ProgramError, Span
from lftj.language.notation import UnknownEscapeError, symbol_value
from lftj.language.source import Source
from lftj.language.tables import lalr
from lftj.triggers.calculus import (
    AndFormula,
    AtomFormula,
    CalculusFormula,
    CalculusQuery,
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
    check,
    sums_of,
)
from lftj.triggers.syntax_error import parse_tree
from lftj.values.schema import Column, Schema
from lftj.values.type_table import is_type

if TYPE_CHECKING:
    from lark import Lark

_FORM = "queries are written `name[keys] = term`, terms such as `Sum(p * r, O(k, r) and L(k, p))`"
# Other spellings of comparisons; those with True are read the other way round.
_COMPARISONS = {"≠": ("!=", False), "≤": ("<=", False), ">": ("<", True), ">=": ("<=", True)}


@dataclass(frozen=True, slots=True)
class CalculusProgram:
    """The queries of a text in order, and the schemas of the relations that they read."""

    queries: tuple[CalculusQuery, ...]
    relations: Mapping[str, Schema]

    def __str__(self) -> str:
        lines = []
        for name, schema in self.relations.items():
            lines.append(f"relation {name}({', '.join(f'{c.name}: {c.type}' for c in schema.columns)})")
        return "\n".join([*lines, *map(str, self.queries)])


@cache
def _lark() -> Lark:
    import pkgutil

    grammar = pkgutil.get_data("lftj.triggers", "calculus.lark")
    assert grammar is not None, "every loader of packages reads their files"
    return lalr(grammar.decode("utf-8"), ["start", "single"])


def parsed(text: str, source: str = "<calculus>") -> CalculusProgram:
    """The queries that a text writes. Raises ProgramError with the place of what is wrong."""
    place = Source(text, source)
    reader = _QueryReader(place)
    tree = parse_tree(_lark(), place, _FORM)
    return reader.program(tree)


def parsed_term(text: str, source: str = "<calculus>") -> CalculusTerm:
    """A single term; which variables are bound where it stands is the caller's business (`calculus.check`)."""
    place = Source(text, source)
    tree: Any = parse_tree(_lark(), place, "terms are written such as `Sum(p * r, O(k, r) and L(k, p))`", "single")
    return _QueryReader(place).term(tree.children[0])


class _QueryReader:
    """Turns trees of the cover grammar into formulae and terms."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def program(self, tree: Any) -> CalculusProgram:
        relations: dict[str, Schema] = {}
        queries: dict[str, CalculusQuery] = {}
        for item in tree.children:
            name = str(item.children[0])
            if name in relations or name in queries:
                raise self.error(item, f"`{name}` is defined twice", "a name stands for one thing", "rename one")
            if item.data == "relation":
                relations[name] = Schema(name, self.columns(item.children[1]))
            else:
                keys = item.children[1].children if item.children[1] is not None else ()
                variables = tuple(VariableTerm(str(key), self.span(key)) for key in keys)
                queries[name] = CalculusQuery(name, variables, self.term(item.children[2]), self.span(item))
        for query in queries.values():
            check(query.term, {key.name for key in query.keys})
            for atom in _atoms(query.term):
                self.declare(atom, relations)
        return CalculusProgram(tuple(queries.values()), relations)

    def columns(self, tree: Any) -> tuple[Column, ...]:
        """Names with types that exist."""
        columns = []
        for column in tree.children if tree is not None else ():
            name, kind = column.children
            if not is_type(str(kind)):
                raise self.error(kind, f"unknown type `{kind}`", "a column has a type of lftj", "see docs/types.md")
            columns.append(Column(str(name), str(kind)))
        return tuple(columns)

    def declare(self, atom: AtomFormula, relations: dict[str, Schema]) -> None:
        """The schema of a relation that is used: as declared, or columns of numbers called as its variables."""
        if atom.relation not in relations:
            names = [arg.name for arg in atom.args]
            distinct = names if len(set(names)) == len(names) else [f"c{i}" for i in range(len(names))]
            columns = tuple(Column(name, "number") for name in distinct)
            relations[atom.relation] = Schema(atom.relation, columns, declared=False)
        arity = relations[atom.relation].arity
        if len(atom.args) != arity:
            what = f"`{atom.relation}` has {arity} columns, not {len(atom.args)}"
            why, remedy = "a relation has the same columns wherever it stands", "give a variable for each column"
            raise ProgramError([Diagnostic(what, atom.span, why=why, remedy=remedy)])

    # --- terms ---

    def term(self, tree: Any) -> CalculusTerm:
        """A term."""
        children = tree.children
        match tree.data:
            case "variable":
                return VariableTerm(str(children[0]), self.span(tree))
            case "number":
                return ConstantTerm(int(children[0]))
            case "text":
                return ConstantTerm(self.text(children[0]))
            case "paren":
                return self.term(children[0])
            case "minus":
                return _negated(self.term(children[0]))
            case "call":
                args = children[1].children if children[1] is not None else ()
                return CallTerm(str(children[0]), tuple(map(self.term, args)), self.span(tree))
            case "aggregate":
                return SumTerm(self.term(children[0]), self.formula(children[1]), self.span(tree))
            case "product":
                return ProductTerm(tuple(map(self.term, children)))
            case "sum":
                parts = [self.term(children[0])]
                for sign, part in zip(children[1::2], children[2::2], strict=True):
                    parts.append(self.term(part) if sign == "+" else _negated(self.term(part)))
                return PlusTerm(tuple(parts))
        raise self.error(
            tree,
            "a formula stands where a term is due",
            "a Sum has a term first and a formula second: `Sum(term, formula)`",
            "write 1 to count the rows of the formula",
        )

    def text(self, token: Any) -> str:
        """The text of a literal."""
        try:
            return symbol_value(str(token))
        except UnknownEscapeError as error:
            what = f"unknown escape `{error}`"
            raise self.error(token, what, "a backslash begins an escape", "write `\\\\` for a backslash") from None

    # --- formulae ---

    def formula(self, tree: Any) -> CalculusFormula:
        """A formula."""
        children = tree.children
        match tree.data:
            case "truth":
                return TruthFormula(children[0] == "true")
            case "paren":
                return self.formula(children[0])
            case "conj":
                return AndFormula(tuple(map(self.formula, children)))
            case "disj":
                return OrFormula(tuple(map(self.formula, children)))
            case "compare":
                left, op, right = self.term(children[0]), str(children[1]), self.term(children[2])
                op, mirrored = _COMPARISONS.get(op, (op, False))
                return ConstraintFormula(op, right if mirrored else left, left if mirrored else right, self.span(tree))
            case "call":
                args = children[1].children if children[1] is not None else ()
                for arg in args:
                    if arg.data != "variable":
                        raise self.error(
                            arg,
                            f"`{children[0]}` takes variables",
                            "the arguments of a relation are variables",
                            "write a variable, and what it equals as a comparison: `R(x) and x = 1`",
                        )
                variables = tuple(VariableTerm(str(arg.children[0]), self.span(arg)) for arg in args)
                return AtomFormula(str(children[0]), variables, self.span(tree))
        raise self.error(
            tree,
            "a term stands where a formula is due",
            "a Sum has a term first and a formula second: `Sum(term, formula)`",
            "write a relation or a comparison, or `true`",
        )

    # --- places ---

    def span(self, tree: Any) -> Span:
        """The place of a tree or token."""
        at = tree if hasattr(tree, "start_pos") else tree.meta
        return self.source.span(at.start_pos, at.end_pos)

    def error(self, tree: Any, what: str, why: str, remedy: str) -> ProgramError:
        """An error with its place."""
        return ProgramError([Diagnostic(what, self.span(tree), why=why, remedy=remedy)])


def _negated(term: CalculusTerm) -> CalculusTerm:
    """The term times -1."""
    if isinstance(term, ConstantTerm) and isinstance(term.value, int):
        return ConstantTerm(-term.value)
    parts = term.parts if isinstance(term, ProductTerm) else (term,)
    return ProductTerm((*parts, ConstantTerm(-1)))


def _atoms(part: CalculusTerm | CalculusFormula) -> Iterator[AtomFormula]:
    """The relational atoms, left to right."""
    match part:
        case AtomFormula():
            yield part
        case AndFormula(parts) | OrFormula(parts):
            for inner in parts:
                yield from _atoms(inner)
        case VariableTerm() | ConstantTerm() | CallTerm() | ProductTerm() | PlusTerm() | SumTerm():
            for found in sums_of(part):
                yield from _atoms(found.formula)
                yield from _atoms(found.term)
