"""Names: what the relations and types of a program are, and whether every use agrees with them.

A relation comes from a `.decl`, from the database (`known`), or from being the head of a rule; its first appearance
fixes its arity. A type name resolves to a base type. The pass walks the program twice: once for what it defines, once
for what it uses. Constructs that the engine does not evaluate are refused here, by name, at their own place.

If the program includes other files or macros, names may come from there: unknown names are then not reported (the
inclusion itself is).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from lftj.errors import Span
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, COUNTED
from lftj.language.clause import INTERNAL
from lftj.language.diagnostics import Findings, did_you_mean, given
from lftj.language.first_rows import FIRST
from lftj.language.functors import CONSTRAINTS, FUNCTORS, RESERVED
from lftj.language.text import term_source
from lftj.language.types import BASE_TYPES, FOREIGN, FOREIGN_NOTES, base_type, chain
from lftj.language.visitors import literals_of, nodes, terms_of
from lftj.language.window_functions import WINDOW
from lftj.values.faults import counted
from lftj.values.schema import Schema
from lftj.values.type_table import family_of, type_of

_AS_ONE = ("give both texts as one, as in `cat types.dl rules.dl | lftj run -`",)
_INSTEAD = {"`.include`": _AS_ONE, "preprocessor line (`#include`)": _AS_ONE}  # remedies, by the feature
_REFUSED_QUALIFIERS = ("eqrel", "overridable", "choice-domain")
# What a declaration says of the multiplicity of rows, the name that a bag's last column has in SQL, that a relation has
# the rows that its rules derive, and none of its own, and that it must have none at all (behind it: what for).
BAG, PRIMARY_KEY, COPIES, VIEW, EMPTY = "bag", "primary-key", "copies", "view", "empty"


@dataclass(slots=True)
class KnownRelation:
    """A relation while the program is being checked. A type is None until it is inferred, or if it has no base."""

    name: str
    columns: list[str]
    types: list[str | None]
    span: Span
    origin: str  # "declared", "known", "derived" or "internal"
    places: list[Span] = field(default_factory=list)  # of the columns, if declared
    functional: bool = False
    bag: bool = False
    key: tuple[int, ...] = ()
    view: bool = False
    constraint: str = ""
    mark: str = ""
    words: list[str] = field(default_factory=list)  # what the columns are, if internal

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.types)

    def column(self, position: int) -> str:
        """The column in words."""
        if self.words:
            return self.words[position]
        if self.columns and self.origin != "derived":
            return f"column `{self.columns[position]}` of `{self.name}`"
        return f"column {position + 1} of `{self.name}`"

    def place(self, position: int) -> Span:
        """Where the column is declared; the relation's own place if it is not, and none if it is internal."""
        if self.origin == "internal":
            return ast.NOWHERE
        return self.places[position] if position < len(self.places) else self.span


@dataclass(slots=True)
class Names:
    """The relations and the base types of the named types. `open`: the program includes text that was not read."""

    relations: dict[str, KnownRelation]
    definitions: dict[str, str]
    opaque: set[str]
    open: bool = False

    def named(self) -> list[str]:
        """The relations that a program may name."""
        return [name for name in self.relations if not name.startswith(INTERNAL)]


def resolve(program: ast.Program, known: Mapping[str, Schema], types: Mapping[str, str], findings: Findings) -> Names:
    """The names a program defines, on top of the `known` relations and `types`, whose names it may give anew."""
    relations = {
        name: KnownRelation(
            name,
            [c.name for c in schema.columns],
            [c.type for c in schema.columns],
            ast.NOWHERE,
            "known",
            functional=schema.functional,
        )
        for name, schema in known.items()
    }
    names = Names(relations, dict(types), set())
    for item in program.items:
        if isinstance(item, ast.Unsupported):
            findings.unsupported(item.feature, item.span, *_INSTEAD.get(item.feature, ()))
            names.opaque.update(item.defines)
            names.open |= item.feature.startswith(("preprocessor", "`.include`"))
    _resolve_types(program, names, findings)
    for item in program.items:
        if isinstance(item, ast.Declaration):
            _declare(item, names, known, findings)
    for item in program.items:
        if isinstance(item, ast.Rule):
            for head in item.heads:
                if head.name in RESERVED:
                    _reserved(head.name, head.span, findings)
                    names.opaque.add(head.name)
                elif head.name not in relations and head.name not in names.opaque:
                    columns: list[str | None] = [None] * len(head.args)
                    functional = isinstance(head, ast.Assignment)
                    relations[head.name] = KnownRelation(
                        head.name, [], columns, head.span, "derived", functional=functional
                    )
    return names


def _reserved(name: str, span: Span, findings: Findings) -> None:
    kind = "a functor" if name in FUNCTORS else "a constraint" if name in CONSTRAINTS else "a reserved word"
    findings.error(
        f"`{name}` cannot name a relation: it is {kind}",
        span,
        why="the word has a meaning of its own in rules",
        remedy="choose another name",
        predicate=name,
    )


# Types


def _resolve_types(program: ast.Program, names: Names, findings: Findings) -> None:
    first: dict[str, Span] = {}
    for item in program.items:
        if not isinstance(item, ast.TypeDeclaration):
            continue
        if item.name in BASE_TYPES:
            findings.error(
                f"`{item.name}` is a base type and cannot be declared again",
                item.span,
                why="base types mean the same in every program",
                remedy="choose another name",
            )
        elif item.name in first:
            related = (("declared here", first[item.name]),)
            findings.error(
                f"type `{item.name}` is declared twice",
                item.span,
                why="only one of the two declarations could hold",
                remedy="drop one of the two",
                related=related,
            )
        else:
            first[item.name] = item.span
            names.definitions[item.name] = item.base
    for name, span in first.items():
        steps = chain(name, names.definitions)
        if base_type(steps[-1], {}) is not None or steps[-1] in names.opaque:
            continue
        if steps[-1] in steps[:-1]:
            cycle = " -> ".join(f"`{step}`" for step in steps[steps.index(steps[-1]) :])
            findings.error(
                f"type `{name}` has no base type: {cycle}",
                span,
                why="values are those of a base type, and following the names never leads to one",
                remedy="define one of them by a base type",
            )
            names.opaque.add(name)
        elif len(steps) == 2:  # a longer chain is reported where the unknown name is written
            _unknown_type(steps[-1], span, names, findings)


def named_types(program: ast.Program, names: Names) -> dict[str, str]:
    """What the names that a program gives to types stand for."""
    given = [item.name for item in program.items if isinstance(item, ast.TypeDeclaration)]
    return {name: base for name in given if (base := base_type(name, names.definitions))}


def _unknown_type(name: str, span: Span, names: Names, findings: Findings) -> None:
    if "." in name:
        findings.unsupported(f"component type `{name}`", span)
    elif not names.open:
        word = name.lower().removesuffix("?")
        if family_of(name) in BASE_TYPES:
            _bad_parameters(name, span, findings)
            return
        if word in FOREIGN:
            remedy = f"write `{FOREIGN[word]}`{FOREIGN_NOTES.get(word, '')}"
        else:
            bases = f"the base types are {', '.join(BASE_TYPES)}"
            remedy = did_you_mean(name, [*BASE_TYPES, *names.definitions], bases)
        why = "a column holds values of one type, and no type has this name"
        findings.error(f"unknown type `{name}`", span, why=why, remedy=remedy)


def _bad_parameters(name: str, span: Span, findings: Findings) -> None:
    """Report a type whose parameters make no sense."""
    try:
        type_of(name)
    except ValueError as error:
        why = str(error)
    findings.error(
        f"`{name}` is no type",
        span,
        why=f"`{family_of(name)}`: {why}",
        remedy='write it as in `decimal(10,2)` or `timestamp("Europe/Berlin")`',
    )


# Declarations


def _declare(item: ast.Declaration, names: Names, known: Mapping[str, Schema], findings: Findings) -> None:
    if item.name in RESERVED:
        _reserved(item.name, item.span, findings)
        names.opaque.add(item.name)
        return
    for qualifier in item.qualifiers:
        if qualifier.startswith(_REFUSED_QUALIFIERS):
            findings.unsupported(f"qualifier `{qualifier}` of relation `{item.name}`", item.span)
    types: list[str | None] = []
    seen: dict[str, Span] = {}
    for attribute in item.attributes:
        if attribute.name in seen:
            findings.error(
                f"column `{attribute.name}` of `{item.name}` is declared twice",
                attribute.span,
                why="columns are known by their names",
                remedy="give every column its own name",
                predicate=item.name,
                related=(("declared here", seen[attribute.name]),),
            )
        seen.setdefault(attribute.name, attribute.span)
        types.append(_column_type(attribute, names, findings))
    bag, key = _is_bag(item, types, findings), _primary_key(item, types, findings)
    view, constraint = VIEW in item.qualifiers, constraint_of(item)
    before = names.relations.get(item.name)
    if before is not None and before.origin == "known":
        schema = known[item.name]
        same = [(c.name, c.type) for c in schema.columns] == list(
            zip((a.name for a in item.attributes), types, strict=True)
        )
        said = (schema.functional, schema.bag, schema.key, schema.view, schema.constraint)
        if not same or said != (item.functional, bag, key, view, constraint):
            findings.error(
                f"relation `{item.name}` is declared again, differently",
                item.span,
                why=f"the database knows it as `{schema}`",
                remedy="repeat the same declaration, or choose another name",
                predicate=item.name,
            )
            return
    elif before is not None:
        findings.error(
            f"relation `{item.name}` is declared twice",
            item.span,
            why="only one of the two declarations could hold",
            remedy="drop one of the two declarations",
            predicate=item.name,
            related=(("declared here", before.span),),
        )
        return
    columns, places = [a.name for a in item.attributes], [a.span for a in item.attributes]
    relation = KnownRelation(
        item.name, columns, types, item.span, "declared", places, item.functional, bag, key, view, constraint
    )
    relation.mark = next((q for q in item.qualifiers if q.startswith((f"{FIRST} ", f"{WINDOW} "))), "")
    names.relations[item.name] = relation


def constraint_of(item: ast.Declaration) -> str:
    """What the relation must be empty for, in words; "" if it may have rows."""
    said = next((q for q in item.qualifiers if q.partition(" ")[0] == EMPTY), "")
    return said.partition(" ")[2] or said


def _is_bag(item: ast.Declaration, types: list[str | None], findings: Findings) -> bool:
    """Whether the relation is a bag, whose last column says how often a row is there."""
    if BAG not in item.qualifiers:
        return False
    if not item.functional or types[-1] != "number":
        findings.error(
            f"`{item.name}` is a bag without a number of copies",
            item.span,
            why="a bag says in its last column how often a row is there",
            remedy=f"declare it as in `.decl {item.name}(x:symbol) -> {COPIES}:number bag`",
            predicate=item.name,
        )
        return False
    return True


def _primary_key(item: ast.Declaration, types: list[str | None], findings: Findings) -> tuple[int, ...]:
    """The positions of the columns of the primary key; none if there is none, or it is refused."""
    qualifiers = [q for q in item.qualifiers if q.startswith(PRIMARY_KEY)]
    if not qualifiers:
        return ()
    written = qualifiers[0]
    if len(qualifiers) > 1:
        findings.error(
            f"`{item.name}` has {len(qualifiers)} primary keys",
            item.span,
            why="one tells its rows apart, and others take their keys by it",
            remedy="name all columns of the key in one, as in `primary-key (a, b)`",
            predicate=item.name,
        )
    columns = [attribute.name for attribute in item.attributes]
    listed = written[written.index("(") + 1 : written.rindex(")")]
    # Files of earlier versions have names with blanks without quotes.
    pairs = re.findall(r'"((?:[^"]|"")*)"|([^\s,](?:[^",]*[^\s,])?)', listed)
    parts = [(quoted.replace('""', '"'), plain) for quoted, plain in pairs]
    named = [
        name for quoted, plain in parts for name in ([quoted or plain] if quoted or plain in columns else plain.split())
    ]
    wrong, why = "", ""
    if item.functional:
        wrong, why = "a functional predicate", "its key is all columns but the last"
    elif not named or len({*named}) < len(named) or not {*named} <= {*columns}:
        wrong, why = "columns that it does not have", f"its columns are {', '.join(columns)}, each named once in a key"
    elif null := [name for name in named if (types[columns.index(name)] or "").endswith("?")]:
        wrong, why = f"`{null[0]}`, which may be null", "null equals nothing, so that it tells no rows apart"
    if wrong:
        findings.error(
            f"the primary key of `{item.name}` is of {wrong}",
            item.span,
            why=why,
            remedy="name columns without null, as in `.decl city(id:number, name:symbol) primary-key (id)`",
            predicate=item.name,
        )
        return ()
    return tuple(columns.index(name) for name in named)


def _column_type(attribute: ast.Attribute, names: Names, findings: Findings) -> str | None:
    written = attribute.type
    if written.endswith("<>"):
        findings.unsupported(f"lattice attribute `{attribute.name}:{written}`", attribute.span)
        return None
    base = base_type(written, names.definitions)
    plain = written.removesuffix("?")
    if base is None and not {written, plain} & (names.definitions.keys() | names.opaque):
        _unknown_type(written, attribute.span, names, findings)
    return base


# Uses


def check_uses(rule: ast.Rule, names: Names, findings: Findings) -> None:
    """Report unknown relations and functors, wrong arities, and what is not supported, in one rule."""
    heads = (head for head in rule.heads if head.name not in RESERVED)  # a reserved name is reported by `resolve`
    arguments = (arg for head in rule.heads for arg in head.args)
    atoms = (node for node in nodes((*arguments, *rule.body)) if isinstance(node, ast.Atom))
    for atom in (*heads, *atoms):
        if isinstance(atom, ast.Assignment):
            _check_keyed(atom, names, findings)
        else:
            _check_atom(atom, names, findings)
    weights = {id(term.operand) for term in terms_of(rule) if isinstance(term, ast.Aggregate) and has_counts(term)}
    for term in terms_of(rule):
        if isinstance(term, ast.Functor) and id(term) not in weights:
            _check_functor(term, names, findings)
        elif isinstance(term, ast.Lookup):
            _check_keyed(term, names, findings)
        elif isinstance(term, ast.Unsupported):
            findings.unsupported(term.feature, term.span)
    for literal in literals_of(rule.body):
        if isinstance(literal, ast.Unsupported):
            findings.unsupported(literal.feature, literal.span)


def _check_atom(atom: ast.Atom, names: Names, findings: Findings) -> None:
    count = len(atom.args)
    relation = names.relations.get(atom.name)
    if relation is None:
        if atom.name in CONSTRAINTS:
            test = CONSTRAINTS[atom.name]
            what = f"`{atom.name}` takes {counted(len(test.parameters), 'argument')}, and {given(count)}"
            why = "it compares two texts" if len(test.parameters) > 1 else "it looks at one value"
            findings.error(what, atom.span, why=why, remedy=str(test))
        elif atom.name in AGGREGATES:
            args = [term_source(arg) for arg in atom.args]
            _called_aggregate(atom.name, args, atom.span, findings)
        elif atom.name in FUNCTORS:
            call = f"{atom.name}({', '.join(f'x{i}' for i in range(1, count + 1))})"
            findings.error(
                f"`{atom.name}` is a functor, not a relation",
                atom.span,
                why="a functor computes a value, and a condition is what holds or does not",
                remedy=f"use its value in a condition, as in `y = {call}`",
            )
        elif atom.name in RESERVED - names.opaque:
            _reserved(atom.name, atom.span, findings)
        elif atom.name not in names.opaque and not names.open:
            columns = ", ".join(f"c{i}:number" for i in range(count))
            findings.error(
                f"unknown relation `{atom.name}`",
                atom.span,
                why="it is neither declared nor the head of a rule",
                remedy=did_you_mean(atom.name, names.named(), f"declare it, as in `.decl {atom.name}({columns})`"),
                predicate=atom.name,
            )
    elif relation.arity != count:
        word = {"declared": "declared here", "derived": "first used here", "known": ""}[relation.origin]
        columns = ", ".join(relation.columns)
        findings.error(
            f"`{atom.name}` has {counted(relation.arity, 'column')}, and {given(count)}",
            atom.span,
            why=f"the database knows it as `{relation.name}({columns})`"
            if relation.origin == "known"
            else "an atom is about whole rows",
            remedy="give every column one argument; `_` stands for any value",
            predicate=atom.name,
            related=((word, relation.span),),
        )


def _check_keyed(term: ast.Lookup | ast.Assignment, names: Names, findings: Findings) -> None:
    """Report `name[keys]` for a relation that is unknown, no functional predicate, or has other keys."""
    relation = names.relations.get(term.name)
    count = len(term.keys)
    if relation is None:
        if term.name in RESERVED - names.opaque:
            _reserved(term.name, term.span, findings)
        elif term.name not in names.opaque and not names.open:
            keys = ", ".join(f"k{i}:number" for i in range(count))
            functional = [name for name, other in names.relations.items() if other.functional]
            findings.error(
                f"unknown functional predicate `{term.name}`",
                term.span,
                why="it is neither declared nor the head of a rule",
                remedy=did_you_mean(
                    term.name, functional, f"declare it, as in `.decl {term.name}({keys}) -> value:number`"
                ),
                predicate=term.name,
            )
    elif not relation.functional:
        columns = relation.columns or [f"c{i}" for i in range(relation.arity)]
        shown = [f"{column}:{type_ or 'number'}" for column, type_ in zip(columns, relation.types, strict=True)]
        arrow = f".decl {term.name}({', '.join(shown[:-1])}) -> {(shown or ['value:number'])[-1]}"
        findings.error(
            f"`{term.name}` is a relation, not a functional predicate",
            term.span,
            why=f"`{term.name}[...]` is the one value at a key, and a relation may have many rows",
            remedy=f"declare it as `{arrow}`, or write an atom and use its variables",
            predicate=term.name,
            related=(("declared here" if relation.origin == "declared" else "first used here", relation.span),),
        )
    elif relation.arity - 1 != count:
        word = {"declared": "declared here", "derived": "first used here"}.get(relation.origin, "")
        findings.error(
            f"`{term.name}` has {counted(relation.arity - 1, 'key')}, and {counted(count, 'key')} "
            f"{'is' if count == 1 else 'are'} given",
            term.span,
            why=f"`{term.name}` has one value for all its keys together",
            remedy="give every key one term",
            predicate=term.name,
            related=((word, relation.span),),
        )


def has_counts(aggregate: ast.Aggregate) -> bool:
    """Whether the operand is a value with how often it counts."""
    return AGGREGATES[aggregate.op].takes_counted and is_counted(aggregate.operand)


def is_counted(term: ast.Term | None) -> TypeGuard[ast.Functor]:
    """Whether a term is `counted(v, n)`."""
    return isinstance(term, ast.Functor) and term.name == COUNTED and len(term.args) == 2


def _called_aggregate(op: str, args: list[str], span: Span, findings: Findings) -> None:
    operand = f" {args[0] if args else 'x'}" if AGGREGATES[op].operand else ""
    operand = f"(0.5){operand}" if AGGREGATES[op].by_counts else operand
    findings.error(
        f"`{op}` is an aggregate, not a functor",
        span,
        why="what it ranges over stands in braces, not among the other conditions",
        remedy=f"write `n = {op}{operand} : {{ ... }}`, with the atoms that bind the values in the braces",
    )


def _check_functor(term: ast.Functor, names: Names, findings: Findings) -> None:
    signature = FUNCTORS.get(term.name)
    count = len(term.args)
    if signature is None:
        if term.name in names.relations:
            functional = names.relations[term.name].functional
            findings.error(
                f"`{term.name}` is a relation, and an atom is not a value",
                term.span,
                why="a relation holds rows, and a term is one value",
                remedy=f"write `{term.name}[...]` for the value at a key"
                if functional
                else "write the atom as its own condition and use its variables",
                predicate=term.name,
            )
        elif term.name in AGGREGATES:
            _called_aggregate(term.name, [term_source(arg) for arg in term.args], term.span, findings)
        elif is_counted(term):
            findings.error(
                f"`{COUNTED}(v, n)` is no value",
                term.span,
                why="it says how often a value counts, in a quantile or a variance",
                remedy=f"write it behind its name, as in `quantile_disc(0.5) {term_source(term)} : {{ ... }}`",
            )
        elif not names.open:
            callable_names = [name for name in FUNCTORS if name.isidentifier()]
            remedy = did_you_mean(term.name, callable_names, "the functors are listed by `lftj.fn`")
            findings.error(
                f"unknown functor `{term.name}`", term.span, why="lftj computes no function of that name", remedy=remedy
            )
    elif not signature.accepts(count):
        wanted = ("at least " if signature.variadic else "") + counted(len(signature.parameters), "argument")
        findings.error(
            f"`{term.name}` takes {wanted}, and {given(count)}",
            term.span,
            why="a functor has a value for the arguments it is defined for only",
            remedy=f"{signature}: {signature.doc}",
        )
