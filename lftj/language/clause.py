"""The checked program: what the checker makes and the planner consumes.

A `Clause` is one alternative of one rule for one head: a conjunction of atoms and comparisons over typed terms, in
which every type is a base type, every variable is bound and every name exists. A rule with two heads and a
disjunction of three alternatives becomes six clauses with the same `rule` number. Nothing here is written by hand;
the life of a clause is

    text or builder -> ast.Rule -> check() -> Clause -> planner

Terms are `Var`, `Value`, `Parameter` and `Apply`. Atoms hold no `Apply`, and `None` for a wildcard: an expression as an
argument of a body atom has become a fresh variable and an `=`. `str()` of any of them is rule text.

A negated atom holds where the relation has no such row; its variables are bound by the positive part. An aggregate is
a clause of its own, over a relation of its own (`Aggregate`): what a rule writes in braces has become the body of that
clause, and an atom of the rule. Relations made so have names that begin with `@` (`INTERNAL`).

Degenerate cases: a clause without atoms derives at most one row, from its comparisons alone (`p(x) :- x = 1.`, or the
fact `p(1 + 1).`); a head of arity 0 has no argument; a comparison of two constants is kept as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lftj.errors import Diagnostic, Span
from lftj.language import ast
from lftj.language.aggregate_specs import COUNTED, squares
from lftj.language.notation import ATOMIC_LEVEL, comparison_text, functor_text, literal_level, literal_text
from lftj.values.schema import Column, Schema

if TYPE_CHECKING:
    from lftj.language.thresholds import ThresholdClause

__all__ = [
    "INTERNAL",
    "Aggregate",
    "Apply",
    "BodyAtom",
    "CheckedProgram",
    "Clause",
    "Column",
    "Compare",
    "Directive",
    "Parameter",
    "Schema",
    "Term",
    "Value",
    "Var",
    "parameters_of",
    "replaced",
    "variables_of",
]

# What the names of relations begin with that no program names: the parts that rules were taken apart into.
INTERNAL = "@"


def owner(name: str) -> str:
    """The relation in whose rules `name` is a part: `p` of `@p.1.groups`, and any other name itself."""
    return name.lstrip(INTERNAL).partition(".")[0] if name.startswith(INTERNAL) else name


@dataclass(frozen=True, slots=True)
class Var:
    """A variable and its base type. Within a clause the name identifies it."""

    name: str
    type: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Value:
    """A constant: a Python value within the range of its type; None for null."""

    value: Any
    type: str

    def __str__(self) -> str:
        return literal_text(self.value, self.type)


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name` of a query, of a base type: a constant that each question gives its value, as a code (`Evaluator.given`).

    `reason`: what its type comes from, in words that follow "number, as".
    """

    name: str
    type: str
    reason: str = field(default="", compare=False, repr=False)
    span: Span = field(default=ast.NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"${self.name}"


@dataclass(frozen=True, slots=True)
class Apply:
    """A functor applied to terms. `op` is its name in `functors.FUNCTORS`; `type` is the base type of the result.

    An arithmetic `op` means the operation of its result type (`+` on unsigned wraps at 2**64, on float is IEEE); a
    conversion such as `to_string` is told apart by the type of its argument.
    """

    op: str
    args: tuple[Term, ...]
    type: str

    def __str__(self) -> str:
        return _print(self)[0]


Term = Var | Value | Parameter | Apply
# What an atom holds.
Plain = Var | Value | Parameter


def _print(term: Term) -> tuple[str, int]:
    if isinstance(term, Apply):
        return functor_text(term.op, [_print(arg) for arg in term.args])
    text = str(term)
    return text, literal_level(text) if isinstance(term, Value) else ATOMIC_LEVEL


def variables_of(term: Term | None) -> Iterator[Var]:
    """The variables of a term, left to right, with repetitions; none for a wildcard."""
    if isinstance(term, Var):
        yield term
    elif isinstance(term, Apply):
        for arg in term.args:
            yield from variables_of(arg)


def names_of(*terms: Term | None) -> set[str]:
    """The names of all variables of some terms."""
    return {var.name for term in terms for var in variables_of(term)}


def replaced(term: Term, by: Mapping[str, Term]) -> Term:
    """The term with terms in the place of variables, by name."""
    if isinstance(term, Var):
        return by.get(term.name, term)
    if isinstance(term, Apply):
        return Apply(term.op, tuple(replaced(arg, by) for arg in term.args), term.type)
    return term


def parameters_of(terms: Iterable[Term | None]) -> Iterator[Parameter]:
    """The parameters within terms, left to right, with repetitions."""
    for term in terms:
        if isinstance(term, Parameter):
            yield term
        elif isinstance(term, Apply):
            yield from parameters_of(term.args)


@dataclass(frozen=True, slots=True)
class BodyAtom:
    """An atom of a body, positive or negated (`Clause.negated`).

    A `None` argument is a wildcard; a variable may occur more than once.
    """

    predicate: str
    args: tuple[Plain | None, ...]
    span: Span = field(default=ast.NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join('_' if arg is None else str(arg) for arg in self.args)})"


@dataclass(frozen=True, slots=True)
class Compare:
    """A condition on two terms of one type. `op` is one of = != < <= > >= contains match not_contains not_match.

    `contains(left, right)`: the text `right` contains `left`. `match(left, right)`: the regular expression `left`
    matches all of `right`. An `=` may also be what binds a variable: `x = y + 1` or `y + 1 = x`, where `y` is bound
    by an atom or by another such equality.
    """

    op: str
    left: Term
    right: Term
    span: Span = field(default=ast.NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        if isinstance(self.right, Value) and self.right.value is None:
            return comparison_text("is_null" if self.op == "=" else "not_is_null", str(self.left), "")
        return comparison_text(self.op, str(self.left), str(self.right))


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What the head of a clause folds the bindings of its body to: one row per group that has a binding.

    `op` is one of `aggregate_specs.AGGREGATES`. The first `groups` arguments of the clause's head are the group; the
    argument after them, of all aggregates with an operand, is what is folded. The relation has a column more than the
    group, for the result, of type `type`. Every distinct binding of all variables of the body counts once; a wildcard
    is a variable of its own.

    The body of an aggregate by rows is one atom of distinct variables, and what is folded is one of them.

    The heads of `Database.path_counts` have ops of their own, which no rule can write (lftj/program/declare_paths.py).
    """

    op: str
    groups: int
    type: str


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule alternative for one head: `head(head_args) :- atoms, !negated, compares`.

    `text` is the source rule on one line, `rule` its number in the program (from 1; 0 for a query). With `aggregate`
    the clause is the only one of its head.

    `acyclic`: its component is evaluated key by key (acyclic.py); its first atom is over the rows along which that is
    done, and an aggregate may have a clause for each alternative in its braces.

    `threshold`: it is a sum over intervals that running sums decide (thresholds.py); its atoms only say what it reads.

    `best`, "min" or "max", makes a functional predicate in recursion one of best values: what all clauses of the head
    derive under a key, and the fact that may be there, are candidates, of which the least or the greatest value stands.

    `or_null`: the variables that match null with null in negated atoms (`or_null(x)`); in positive ones all do that a
    condition does not keep from null.
    """

    head: str
    head_args: tuple[Term, ...]
    atoms: tuple[BodyAtom, ...]
    compares: tuple[Compare, ...]
    span: Span = field(default=ast.NOWHERE, compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)
    rule: int = 0
    negated: tuple[BodyAtom, ...] = ()
    aggregate: Aggregate | None = None
    best: str = ""
    acyclic: bool = False
    threshold: ThresholdClause | None = None
    or_null: frozenset[str] = frozenset()
    # How its texts are split off, once that was asked for (`program/text_split.py`); a changed clause has its own.
    text_split: list[object] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def reads(self) -> dict[str, None]:
        """The relations of its body, each once, negated ones after the others."""
        return {atom.predicate: None for atom in (*self.atoms, *self.negated)}

    @property
    def folded(self) -> str:
        """What its aggregate folds, as it is written: "" of a count, `v` or `counted(v, n)`."""
        assert self.aggregate is not None
        operand = map(str, self.head_args[self.aggregate.groups :])
        return f"{COUNTED}({', '.join(operand)})" if self.is_counted else " ".join(operand)

    @property
    def is_counted(self) -> bool:
        """Whether a binding of its aggregate counts as often as the last term of its head says."""
        aggregate = self.aggregate
        return aggregate is not None and squares(aggregate.op) and len(self.head_args) > aggregate.groups + 1

    def variables(self) -> tuple[Var, ...]:
        """Every variable of the clause once, in order of first appearance: atoms, then comparisons."""
        seen: dict[str, Var] = {}
        for atom in self.atoms:
            for arg in atom.args:
                for var in variables_of(arg):
                    seen.setdefault(var.name, var)
        for compare in self.compares:
            for term in (compare.left, compare.right):
                for var in variables_of(term):
                    seen.setdefault(var.name, var)
        return tuple(seen.values())

    def __str__(self) -> str:
        shown = [str(arg) for arg in self.head_args]
        if self.aggregate is not None:
            groups = self.aggregate.groups
            shown[groups:] = [f"{self.aggregate.op} {self.folded}".rstrip()]
        if self.best:
            shown[-1] = f"{self.best} {shown[-1]}"
        head = f"{self.head}({', '.join(shown)})"
        parts = [*map(str, self.atoms), *(f"!{atom}" for atom in self.negated), *map(str, self.compares)]
        body = ", ".join(parts)
        return f"{head} :- {body}." if body else f"{head}."


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output` or `.printsize` of one relation, with its options read and defaults filled in.

    `io` is "file", "stdin" or "stdout". `filename` is as written or Souffle's default (`edge.facts` to read,
    `edge.csv` to write); it is relative to the facts or output directory. `columns` gives, per column of the
    relation, the column of the file (None: in order).
    """

    kind: str
    relation: str
    io: str
    filename: str
    delimiter: str
    headers: bool = False
    rfc4180: bool = False
    compress: bool = False
    columns: tuple[int, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()
    span: Span = field(default=ast.NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        options = ", ".join(f"{key}={literal_text(value, 'symbol')}" for key, value in self.options)
        return f".{self.kind} {self.relation}({options})" if options else f".{self.kind} {self.relation}"


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program that may be planned. Everything in it is deterministic in the source text.

    `schemas`: every relation the program declares or derives, and the known ones it names. `facts`: ground facts of
    the text as Python values, without duplicates, in source order. `strata`: the heads of clauses, bottom up.
    `options`: those the builder gave with a rule, by rule number. `types`: what the names it gives to types stand for.
    """

    schemas: dict[str, Schema]
    clauses: tuple[Clause, ...]
    facts: dict[str, list[tuple[int | float | str, ...]]]
    strata: tuple[tuple[str, ...], ...]
    directives: tuple[Directive, ...]
    warnings: tuple[Diagnostic, ...]
    program: ast.Program
    options: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(str(clause) for clause in self.clauses)
