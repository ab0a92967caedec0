"""Cutting a rule in two: one that a stage derives wherever its bindings are, and one over what it sends on.

    n[c] = mean v : { r(a, b, v), s(b, c) }.
        @n.sent(a, b, c, v) :- r(a, b, v), s(b, c).          a stage before, by b; its rows are sent to the owner of c
        n[c] = mean v : { @n.sent(a, b, c, v) }.

    n[c] = sum v : { r(a, b, v), s(b, c) }.
        @n.part[c] = sum v : { r(a, b, v), s(b, c) }.        every partition its part of each group
        n[c] = sum v : { @n.parts(p, c, v) }.                `@n.parts` is `@n.part`, with the number of the partition

    t(x + 1) :- r(x, _, v), v > 3.
        @t.sent(x, y) :- r(x, _, v), v > 3, y = x + 1.
        t(y) :- @t.sent(_, y).

The first rule can be partitioned by a variable of its body, and the second by any column of its head. What it is sent
holds all variables of the body where an aggregate ranges over them: a binding counts once. Comparisons that compute
what is folded stand in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lftj.language import BodyAtom, CheckedProgram, Clause, Var
from lftj.language.clause import INTERNAL, Column, Plain, Schema, Term, Value, variables_of


def in_parts(program: CheckedProgram, clause: Clause) -> tuple[CheckedProgram, str, str]:
    """An aggregate as parts and what they add up to; the names of `part` and `parts` in the text above."""
    aggregate, schema = clause.aggregate, program.schemas[clause.head]
    assert aggregate is not None, "only aggregates have parts"
    part, parts = _free(program, clause.head, "part"), _free(program, clause.head, "parts")
    columns = tuple(Column(f"c{i}", type) for i, type in enumerate(schema.types))
    found = (
        Schema(part, columns, functional=True, declared=False),
        Schema(parts, (Column("p", "number"), *columns), declared=False),
    )
    own = tuple(Var(column.name, column.type) for column in columns)
    op = aggregate.op if aggregate.op in ("min", "max") else "sum"
    put_together = replace(
        _over(clause, parts, (Var("p", "number"), *own)),
        head_args=own,
        compares=(),
        aggregate=replace(aggregate, op=op),
    )
    return _with(program, clause, [replace(clause, head=part), put_together], found), part, parts


def by_bindings(program: CheckedProgram, clause: Clause) -> tuple[CheckedProgram, str]:
    """An aggregate over the bindings of its body, and these; their name."""
    sent = _free(program, clause.head, "sent")
    args = [arg for atom in clause.atoms for arg in atom.args]
    bound = tuple({var.name: var for arg in args for var in variables_of(arg)}.values())
    # Of a body without variables there is one binding.
    terms: tuple[Plain, ...] = bound or tuple(arg for arg in args[:1] if arg is not None)
    columns = tuple(Column(f"c{i}", term.type) for i, term in enumerate(terms))
    first = replace(clause, head=sent, head_args=terms, aggregate=None)
    clauses = [first, _over(clause, sent, terms)]
    return _with(program, clause, clauses, (Schema(sent, columns, declared=False),)), sent


def by_rows(program: CheckedProgram, clause: Clause) -> Iterator[tuple[CheckedProgram, str]]:
    """A rule over its rows, each with a term of the body by which they are derived: for each term. The rows' name.

    Of a body without terms there is at most one row, with nothing else.
    """
    sent, head = _free(program, clause.head, "sent"), program.schemas[clause.head]
    types = [_type(term, column.type) for term, column in zip(clause.head_args, head.columns, strict=True)]
    for body, by in list(_terms(program, clause)) or [(clause, ())]:
        columns = tuple(Column(f"c{i}", type) for i, type in enumerate((*(term.type for term in by), *types)))
        first = replace(body, head=sent, head_args=(*by, *clause.head_args))
        own = tuple(Var(column.name, column.type) for column in columns[len(by) :])
        second = replace(_over(clause, sent, (*(None for _ in by), *own)), head_args=own, compares=())
        yield _with(program, clause, [first, second], (Schema(sent, columns, declared=False),)), sent


def _terms(program: CheckedProgram, clause: Clause) -> Iterator[tuple[Clause, tuple[Plain, ...]]]:
    """The terms of positive atoms, each once: a wildcard gets a name, in the clause that comes with it."""
    known = set[Plain]()
    for number, atom in enumerate(clause.atoms):
        for place, arg in enumerate(atom.args):
            if arg is None:
                named = Var("_by", program.schemas[atom.predicate].types[place])
                args = (*atom.args[:place], named, *atom.args[place + 1 :])
                atoms = (*clause.atoms[:number], replace(atom, args=args), *clause.atoms[number + 1 :])
                yield replace(clause, atoms=atoms), (named,)
            elif arg not in known:
                known.add(arg)
                yield clause, (arg,)


def _over(clause: Clause, name: str, args: Sequence[Plain | None]) -> Clause:
    """The same head over one atom."""
    return replace(clause, atoms=(BodyAtom(name, tuple(args)),), negated=(), or_null=frozenset())


def _type(term: Term, column: str) -> str:
    return column if isinstance(term, Value) else term.type


def _free(program: CheckedProgram, head: str, what: str) -> str:
    name, i = f"{INTERNAL}{head.lstrip(INTERNAL)}.{what}", 1
    while name in program.schemas:
        i += 1
        name = f"{INTERNAL}{head.lstrip(INTERNAL)}.{what}{i}"
    return name


def _with(
    program: CheckedProgram, clause: Clause, clauses: Sequence[Clause], schemas: Sequence[Schema]
) -> CheckedProgram:
    """The program with these clauses for one."""
    made = []
    for other in program.clauses:
        made += list(clauses) if other is clause else [other]
    strata = []
    for stratum in program.strata:
        strata += [(clauses[0].head,), stratum] if clause.head in stratum else [stratum]
    known = {**program.schemas, **{schema.name: schema for schema in schemas}}
    return replace(program, clauses=tuple(made), schemas=known, strata=tuple(strata))
