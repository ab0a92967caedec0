"""The abstract syntax of a program: what the parser and the builder both make, and what `to_text()` prints.

A `Program` is a tuple of items in source order: declarations, directives, rules, facts (a rule without body). Nodes
are frozen and compare by content; their spans do not take part in comparison, so that text -> AST -> text -> AST is
the identity that the tests check.

    program  = item*
    item     = Declaration | TypeDeclaration | Directive | Rule | Unsupported
    head     = Atom | Assignment
    literal  = Atom | Comparison | Negation | Disjunction | Unsupported
    term     = Variable | Wildcard | Constant | Parameter | Functor | Lookup | Aggregate | Unsupported

`Unsupported` stands for a construct that the grammar knows and the engine does not evaluate yet; the checker refuses
it by its name. Degenerate cases: an atom of arity 0 is `p()`; a rule with an empty body is a fact; a disjunction has
at least two alternatives, or it is the one of a negated conjunction: `!(a, b)` is a Negation of a Disjunction of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lftj.errors import Span

NOWHERE = Span()


@dataclass(frozen=True, slots=True)
class Variable:
    """A named variable."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_` in text, `...` in the builder."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value. `kind` is the type it is written as: "number" (any numeric type), "symbol", "date", ...

    A decimal is of the least type that holds it. Of null, whose value is None, it is "" where the text does not say; so
    it is of the 0 that is the sum of nothing, whatever is added up.
    """

    value: Any
    kind: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name` in a query: a constant whose value comes with each question."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Functor:
    """An operator or intrinsic applied to terms: ("+", (x, y)), ("neg", (x,)), ("cat", (x, y, z))."""

    name: str
    args: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Lookup:
    """`name[keys]`: the value of a functional predicate at a key."""

    name: str
    keys: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`op operand : { body }`; op is one of `aggregate_specs.AGGREGATES`, which says whether it has one.

    A parameter belongs to op: "quantile_disc(0.5)".
    """

    op: str
    operand: Term | None
    body: tuple[Literal, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A construct recognised by the grammar and refused by name. `text` is its source.

    `defines` are the types or relations it would have declared, so that their uses are not reported a second time.
    """

    feature: str
    text: str
    defines: tuple[str, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Term = Variable | Wildcard | Constant | Parameter | Functor | Lookup | Aggregate | Unsupported


@dataclass(frozen=True, slots=True)
class Atom:
    """`name(args)`."""

    name: str
    args: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`; op is one of = != < <= > >= contains match (the last two are written as functions)."""

    op: str
    left: Term
    right: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`!literal`."""

    literal: Literal
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`(a, b ; c)`: a tuple of alternatives, each a conjunction; a single one only under a negation, as `!(a, b)`."""

    alternatives: tuple[tuple[Literal, ...], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Literal = Atom | Comparison | Negation | Disjunction | Unsupported


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name[keys] = value` as a head: the functional predicate has this value at this key."""

    name: str
    keys: tuple[Term, ...]
    value: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def args(self) -> tuple[Term, ...]:
        """The columns of the row: keys, then value."""
        return (*self.keys, self.value)


Head = Atom | Assignment


@dataclass(frozen=True, slots=True)
class Rule:
    """`heads :- body.`; an empty body is a fact. Several heads share one body.

    `options` are the builder's (`lftj.language.options`). Text has none, so they take no part in comparisons.
    """

    heads: tuple[Head, ...]
    body: tuple[Literal, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of a declaration: `name:type`."""

    name: str
    type: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.decl name(attributes) qualifiers`, or `.decl name(keys) -> value:type` with the value as the last attribute.

    Qualifiers that change nothing here (`btree`, `brie`) are kept for the round trip. `bag` says that the value is how
    often the row is there, `primary-key (a, b)` that no two rows are alike in these columns, `view` that
    the relation has no rows but those that its rules derive, `empty` that no commit may leave a row in it, `first`
    which of the rows that its rule copies it has (first_rows.py). One that
    changes what the relation means and is not supported (`eqrel`, `choice-domain x`) is kept too, and refused by the
    checker.
    """

    name: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    functional: bool = False


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`.type name = base` (alias, `subtype` False) or `.type name <: base` (subtype)."""

    name: str
    base: str
    subtype: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input` / `.output` / `.printsize` name(key=value, ...). Several names in one directive make several items."""

    kind: str
    relation: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Item = Declaration | TypeDeclaration | Directive | Rule | Unsupported


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program. `source` is its file name, or where the builder made it."""

    items: tuple[Item, ...]
    source: str = field(default="<rules>", compare=False)
