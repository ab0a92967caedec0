"""Null: which variables and columns may hold it, once the types are known.

Null equals nothing. A variable that is joined, compared or computed with, which is one that occurs twice in the atoms
of a body, in a comparison, or among the arguments of a functor, is therefore not null: where every column that binds it
admits null, the clause says so with a condition. The same holds of `coalesce` of what may be null. A variable that
occurs in one atom and in the head only may be null, and then the head's column must admit it: one without a declaration
does, another is an error. `is_null(x)` and the first argument of `coalesce` take null as a value. `or_null(x)` makes
null one value like any other where x stands in atoms: x is null where all its columns are, and a negated atom has the
row with null.

In a negated atom null matches nothing, and of an aggregate's values it is left out: `count`, `sum` and `mean` by a
condition. Where atoms are read as they are, negated or by `min`, `max` and `cat`, they are over the rows without null,
an internal relation where the column admits it. One of numbers that does not may have the number whose code is null's:
where what is negated may be null, the atom is over the rows without that.

    p(x) :- q(x), !r(x).            ->   @r.known.0(x) :- r(x), x != null.     p(x) :- q(x), !@r.known.0(x).
    m[k] = max v : { s(k, v) }.     ->   @s.known.1(k, v) :- s(k, v), v != null.   ...

A number that is not null may go to a column that admits null, but for the one whose code is null's, the least or, if it
is unsigned, the greatest: that is an error, as a term without a value is one.

What an aggregate outside of its braces asks for a group counts as an atom, so that a group is never null there; as a
key of a head (`m[k]`) null is a group of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.clause import INTERNAL, Apply, BodyAtom, Clause, Compare, Term, Value, Var
from lftj.language.diagnostics import Findings
from lftj.language.functors import FUNCTORS, NULL_TESTS, OR_NULL, TEXT_TESTS
from lftj.language.infer import TypedClause
from lftj.language.names import KnownRelation, Names
from lftj.language.types import NUMBER, RANGES, UNSIGNED
from lftj.language.visitors import nodes, subterms
from lftj.values.codes import KEY_MIN
from lftj.values.schema import Column, Schema
from lftj.values.type_table import in_dictionary, is_nullable, type_of, with_null, without_null

KNOWN = ".known."
# The relations that rules are taken apart into.
_NEGATED_WHOLE = re.compile(rf"{INTERNAL}.*\.\d+")
# Types all of whose codes are values: where a column admits null, one of them is its code, and another column may hold
# that value.
FULL = ("number", "unsigned")
# Variables by which a query has cases: each doubles them.
MOST = 6


def admit_null(clauses: Sequence[TypedClause], names: Names, findings: Findings) -> None:
    """Settle which variables of the clauses of one component may be null, and which columns of their heads are."""
    free = {
        name
        for name in {clause.head.name for clause in clauses}
        if name in names.relations and names.relations[name].origin in ("derived", "internal")
    }
    grew = True
    while grew:
        grew = False
        for clause in clauses:
            _settle(clause, names)
            if clause.head.name not in free:
                continue
            relation = names.relations[clause.head.name]
            for position, arg in enumerate(clause.head.args[: relation.arity]):
                only_null = isinstance(arg, ast.Constant) and arg.value is None
                type_ = relation.types[position] or (NUMBER if only_null else None)
                if type_ is not None and not is_nullable(type_) and _may_be_null(clause, position, arg):
                    relation.types[position] = with_null(type_)
                    grew = True
    for clause in clauses:
        if clause.head.name in names.relations:
            clause.admitted = _admitted(clause, names.relations[clause.head.name])
            groups = clause.head.args if clause.fold is None else clause.head.args[: clause.fold.groups]
            _refuse_codes_of_null([replace(clause.head, args=groups)], names, findings, "write `null`")
            if clause.head.name not in free:
                _check_head(clause, names.relations[clause.head.name], findings)


def _admitted(clause: TypedClause, relation: KnownRelation) -> tuple[int, ...]:
    """The arguments of the head that are numbers and never null, in columns that admit null."""
    groups = len(clause.head.args) if clause.fold is None else clause.fold.groups
    return tuple(
        position
        for position, arg in enumerate(clause.head.args[: min(groups, relation.arity)])
        if relation.types[position] in (with_null(NUMBER), with_null(UNSIGNED))
        and not isinstance(arg, ast.Constant)
        and not is_nullable(clause.type_of(arg))
    )


def _may_be_null(clause: TypedClause, position: int, arg: ast.Term) -> bool:
    """Whether an argument of a head may be null."""
    if clause.fold is not None and position >= clause.fold.groups:
        return False
    return is_nullable(clause.type_of(arg))


def _check_head(clause: TypedClause, relation: KnownRelation, findings: Findings) -> None:
    for position, arg in enumerate(clause.head.args[: relation.arity]):
        type_ = relation.types[position]
        if type_ is not None and not is_nullable(type_) and _may_be_null(clause, position, arg):
            text = clause.source(arg)
            findings.error(
                f"`{text}` may be null, and {relation.column(position)} is {type_}",
                arg.span,
                why="a column admits null where its type ends in `?`",
                remedy=f"leave null out with `!is_null({text})`, give it a value as in `coalesce({text}, ...)`, or "
                f"declare the column `{type_}?`",
                predicate=clause.head.name,
                related=(("declared here", relation.place(position)),),
            )


def _settle(clause: TypedClause, names: Names) -> None:
    """Find the variables of a clause that may be null, and those that a condition must keep from it."""
    uses: dict[str, list[bool]] = {}
    matching = {c.left.name for c in clause.body.compares if c.op == OR_NULL and isinstance(c.left, ast.Variable)}
    mixed: set[str] = set()
    strict = set(_computed_with(clause)) | clause.joined
    read = set(_read_as_text(clause))
    for atom in (*clause.body.atoms, *_groups_asked(clause, names)):
        relation = names.relations.get(atom.name)
        positive = atom in clause.body.atoms
        for position, arg in enumerate(atom.args):
            if isinstance(arg, ast.Variable):
                type_ = relation.types[position] if relation is not None and position < relation.arity else None
                admits = bool(positive and type_ is not None and is_nullable(type_))
                uses.setdefault(arg.name, []).append(admits)
                if admits and type_ is not None and (without_null(type_) in FULL or arg.name in read):
                    mixed.add(arg.name)
                if not positive:
                    if arg.name not in matching:
                        strict.add(arg.name)
                    uses[arg.name].pop()
    only_null = {name for name, found in uses.items() if found and all(found)}
    strict |= {name for name, found in uses.items() if len(found) > 1} - (matching & only_null)
    clause.nullable = frozenset(only_null - strict)
    clause.not_null = tuple(name for name in uses if name in strict and (name in only_null or name in mixed))


def _groups_asked(clause: TypedClause, names: Names) -> list[ast.Atom]:
    """The negated atoms that ask whether an aggregate has a group."""
    return [
        atom
        for atom in clause.body.negated
        if atom.name in names.relations
        and names.relations[atom.name].origin == "internal"
        and names.relations[atom.name].functional
    ]


def _computed_with(clause: TypedClause) -> Iterator[str]:
    """The variables that are compared or computed with, or folded."""
    for compare in clause.body.compares:
        for side in (compare.left, compare.right) if compare.op not in NULL_TESTS else ():
            if isinstance(side, ast.Variable):
                yield side.name
            else:
                yield from _arguments(side)
    for atom in (clause.head, *clause.body.atoms, *clause.body.negated):
        for arg in atom.args:
            yield from _arguments(arg)
    values = clause.head.args[clause.fold.groups :] if clause.fold is not None else ()
    for arg in (*values, *(clause.head.args[-1:] if clause.best else ())):
        if isinstance(arg, ast.Variable):
            yield arg.name


def _read_as_text(clause: TypedClause) -> Iterator[str]:
    """The variables that functors and tests over texts read, which may be before all atoms that bind these are joined.

    So another atom, whose column does not admit null, is not enough to keep null from them.
    """
    body = clause.body
    for node in nodes((clause.head, *body.atoms, *body.negated, *body.compares)):
        functor = FUNCTORS.get(node.name) if isinstance(node, ast.Functor) else None
        tests = isinstance(node, ast.Comparison) and node.op in TEXT_TESTS
        if tests or (functor is not None and functor.text is not None):
            yield from (part.name for part in nodes((node,)) if isinstance(part, ast.Variable))


def _arguments(term: ast.Term) -> Iterator[str]:
    """The variables among the arguments of functors, but for those that `coalesce` looks at."""
    for part in subterms(term):
        if isinstance(part, ast.Functor):
            for arg in part.args if part.name != "coalesce" else ():
                if isinstance(arg, ast.Variable):
                    yield arg.name


def values_that_may_be_null(clause: TypedClause) -> list[ast.Functor]:
    """The uses of `coalesce` that may be null, and are compared, computed with or folded."""

    def within(term: ast.Term, used: bool) -> Iterator[ast.Functor]:
        if isinstance(term, ast.Functor):
            if used and term.name == "coalesce" and is_nullable(clause.type_of(term)):
                yield term
            for arg in term.args:
                yield from within(arg, term.name != "coalesce")

    groups = clause.fold.groups if clause.fold is not None else len(clause.head.args) - bool(clause.best)
    terms = [(arg, position >= groups) for position, arg in enumerate(clause.head.args)]
    terms += [(arg, True) for atom in clause.body.atoms for arg in atom.args]
    terms += [(arg, False) for atom in clause.body.negated for arg in atom.args]
    terms += [(side, c.op not in NULL_TESTS) for c in clause.body.compares for side in (c.left, c.right)]
    return list(dict.fromkeys(found for term, used in terms for found in within(term, used)))


def refuse_codes_of_null(clause: TypedClause, names: Names, findings: Findings) -> None:
    """Refuse the constants of a query that would match null by its code: it can read no rows without null."""
    _refuse_codes_of_null((*clause.body.atoms, *clause.body.negated), names, findings, "ask for null with `is_null`")


def _refuse_codes_of_null(atoms: Iterable[ast.Atom], names: Names, findings: Findings, remedy: str) -> None:
    for atom in atoms:
        relation = names.relations.get(atom.name)
        if relation is None:
            continue
        for position, (arg, type_) in enumerate(zip(atom.args, relation.types, strict=False)):
            if isinstance(arg, ast.Constant) and type_ is not None and is_code_of_null(arg.value, type_):
                findings.error(
                    f"{relation.column(position)} never holds {arg.value}",
                    arg.span,
                    why=f"it is {type_}, where the code of this value is that of null",
                    remedy=f"{remedy}, or declare the column `{without_null(type_)}`",
                )


# Clauses


def not_null(term: Term) -> Compare:
    """The condition that a term is not null."""
    nullable = type_of(with_null(term.type))
    op = "!=" if in_dictionary(term.type) else ">" if nullable.null == KEY_MIN else "<"
    return Compare(op, term, Value(None, nullable.name))


def admitted(term: Term) -> Compare:
    """The condition that holds of every number but the one whose code is null's: there it has no value, an error."""
    if term.type == UNSIGNED:
        less = Apply("-", (Value(RANGES[UNSIGNED][1], UNSIGNED), term), UNSIGNED)
        return Compare("!=", Apply("/", (Value(1, UNSIGNED), less), UNSIGNED), Value(2, UNSIGNED))
    least = Value(RANGES[NUMBER][0], NUMBER)
    return Compare("!=", Apply("checked_mul", (Value(1, NUMBER), term), NUMBER), least)


def not_admitted(compare: Compare) -> int | None:
    """The value for which a condition that `admitted` makes has none; None of any other condition."""
    term = compare.left
    if not isinstance(term, Apply) or len(term.args) != 2:
        return None
    inner = term.args[1]
    if isinstance(inner, Apply) and len(inner.args) == 2 and compare == admitted(inner.args[1]):
        return RANGES[UNSIGNED][1]
    return RANGES[NUMBER][0] if compare == admitted(inner) and inner.type != UNSIGNED else None


def is_null(term: Term, *, holds: bool) -> Compare:
    """The condition that a term is null, or that it is not."""
    return Compare("=" if holds else "!=", term, Value(None, with_null(term.type)))


def over_known(
    clause: Clause, schema: Callable[[str], Schema], known: dict[str, Clause], *, query: bool = False
) -> Clause:
    """The clause over relations without null where it would match or fold one; their clauses are added to `known`.

    A `query` can have no such relation: what it negates has cases of its own (`cases_of_query`). So has what is negated
    along acyclic data (acyclic.py), of whose recursion the relation would be a part.
    """
    types = {v.name: v.type for atom in clause.atoms for v in atom.args if isinstance(v, Var)}
    negated = (
        clause.negated
        if clause.acyclic or query
        else tuple(
            _read_known(
                atom,
                [
                    i
                    for i in range(len(atom.args))
                    if _may_match_wrongly(clause, atom, i, schema(atom.predicate).types[i], types)
                ],
                schema(atom.predicate),
                known,
            )
            for atom in clause.negated
        )
    )
    atoms = tuple(
        _read_known(
            atom,
            [
                i
                for i, arg in enumerate(atom.args)
                if isinstance(arg, Value) and is_code_of_null(arg.value, schema(atom.predicate).types[i])
            ],
            schema(atom.predicate),
            known,
        )
        for atom in clause.atoms
    )
    compares = (*clause.compares, *_computed_and_matched(clause, schema))
    if clause.aggregate is not None and AGGREGATES[clause.aggregate.op].by_rows:
        folded = {v.name for v in clause.head_args[clause.aggregate.groups :] if isinstance(v, Var)}
        read_schema = schema(atoms[0].predicate)
        places = [
            i
            for i, (arg, column) in enumerate(zip(atoms[0].args, read_schema.types, strict=True))
            if isinstance(arg, Var) and arg.name in folded and is_nullable(column)
        ]
        read = _read_known(atoms[0], places, read_schema, known)
        if read is not atoms[0]:
            atoms = (read, *atoms[1:])
            compares = tuple(c for c in compares if not _keeps_from_null(c, folded))
    if negated == clause.negated and atoms == clause.atoms and compares == clause.compares:
        return clause
    return replace(clause, negated=negated, atoms=atoms, compares=compares)


def cases_of_query(clause: Clause, schema: Callable[[str], Schema]) -> list[Clause]:
    """A query as clauses of which one holds at most, and together hold what it says; the first has all its atoms.

    A negated atom would find null's code where it asks for null, or for the number that has it: it is left out where a
    variable has that code, and holds.
    """
    types = {v.name: v.type for v in clause.variables()}
    wrongly = {
        atom: [
            Var(arg.name, types[arg.name])
            for i, arg in enumerate(atom.args)
            if isinstance(arg, Var) and _may_match_wrongly(clause, atom, i, schema(atom.predicate).types[i], types)
        ]
        for atom in clause.negated
    }
    asked = dict.fromkeys(variable for variables in wrongly.values() for variable in variables)
    variables = [v for v in asked if {not_null(v), is_null(v, holds=False)}.isdisjoint(clause.compares)]
    if len(variables) > MOST:
        findings = Findings()
        findings.unsupported(
            f"a query with {len(variables)} negated variables of which null has to be told apart",
            clause.span,
            remedy=f"ask for `!is_null` of all but {MOST}, or write a rule with the negations, and query its head",
        )
        findings.raise_if_failed()
    found = [clause]
    for variable in variables:
        known = [replace(case, compares=(*case.compares, not_null(variable))) for case in found]
        others = [
            replace(
                case,
                compares=(*case.compares, is_null(variable, holds=True)),
                negated=tuple(atom for atom in case.negated if variable not in wrongly[atom]),
            )
            for case in found
        ]
        found = [*known, *others]
    return found


def _computed_and_matched(clause: Clause, schema: Callable[[str], Schema]) -> Iterator[Compare]:
    """The conditions that what is computed for an argument of an atom is not the value whose code is null there."""
    computed = {
        c.left.name for c in clause.compares if c.op == "=" and isinstance(c.left, Var) and isinstance(c.right, Apply)
    }
    found: dict[Compare, None] = {}
    for atom in clause.atoms:
        for arg, column in zip(atom.args, schema(atom.predicate).types, strict=False):
            matched = isinstance(arg, Var) and arg.name in computed and not is_nullable(arg.type)
            if matched and is_nullable(column) and without_null(column) in FULL:
                assert isinstance(arg, Var)
                found[not_null(arg)] = None
    return (condition for condition in found if condition not in clause.compares)


def _is_row_of(atom: BodyAtom, arg: object, types: Mapping[str, str]) -> bool:
    """Whether a variable that may be null stands in the atom of a negated conjunction, which has rows with null, too.

    It holds for these then: `!(is_null(x), ...)`.
    """
    return (
        _NEGATED_WHOLE.fullmatch(atom.predicate) is not None
        and isinstance(arg, Var)
        and is_nullable(types.get(arg.name, arg.type))
    )


def _keeps_from_null(compare: Compare, names: set[str]) -> bool:
    """Whether a comparison says no more than that one of the variables is not null."""
    null = isinstance(compare.right, Value) and compare.right.value is None
    return null and compare.op != "=" and isinstance(compare.left, Var) and compare.left.name in names


def meets_null(arg: object, types: Mapping[str, str], column: str) -> bool:
    """Whether an argument of a negated atom may be null, or be the value whose code is null in the column."""
    if isinstance(arg, Var) and is_nullable(types.get(arg.name, arg.type)):
        return True
    return isinstance(arg, Var | Value) and is_nullable(column) and without_null(column) in FULL


def _may_match_wrongly(clause: Clause, atom: BodyAtom, place: int, column: str, types: Mapping[str, str]) -> bool:
    """Whether an argument of a negated atom may have the code of what it does not equal.

    Null has that of null, unless it matches null here. Where only one of the two sides admits null, a number of the
    other may have the code of null.
    """
    arg = atom.args[place]
    if not isinstance(arg, Var | Value):
        return False
    may_be_null = isinstance(arg, Var) and is_nullable(types.get(arg.name, arg.type))
    if may_be_null != is_nullable(column):
        return without_null(column) in FULL
    matches = isinstance(arg, Var) and (arg.name in clause.or_null or _is_row_of(atom, arg, types))
    return may_be_null and not matches


def is_code_of_null(value: object, column: str) -> bool:
    """Whether a constant is the value whose code is null in a column of that type."""
    if not is_nullable(column) or without_null(column) not in FULL:
        return False
    return value == (-(2**63) if without_null(column) == "number" else 2**64 - 1)


def _read_known(atom: BodyAtom, places: list[int], schema: Schema, known: dict[str, Clause]) -> BodyAtom:
    """The atom over the rows that have neither null nor the value of its code in `places`."""
    if not places:
        return atom
    name = f"{INTERNAL}{atom.predicate.removeprefix(INTERNAL)}{KNOWN}{'.'.join(map(str, places))}"
    if name not in known:
        args = tuple(
            Var(column.name, without_null(column.type) if i in places else column.type)
            for i, column in enumerate(schema.columns)
        )
        body = BodyAtom(atom.predicate, args, atom.span)
        conditions = tuple(not_null(args[i]) for i in places)
        known[name] = Clause(name, args, (body,), conditions, atom.span, "", 0)
    return replace(atom, predicate=name)


def is_without_null(name: str) -> bool:
    """Whether a relation of that name has the rows of another one without null."""
    return name.startswith(INTERNAL) and KNOWN in name


def schema_of(clause: Clause) -> Schema:
    """The schema of a relation without null, from its clause."""
    columns = tuple(Column(v.name, v.type) for v in clause.head_args if isinstance(v, Var))
    return Schema(clause.head, columns)
