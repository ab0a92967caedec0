"""The program that every partition runs: the rules of a plan over its copies, written as text.

A copy of a relation becomes a relation of its own, `edge__x_0` for `edge` by its first column, declared with the types
of the original; what a rule was taken apart into (an aggregate, a negated group) becomes one as well. The text is
ordinary lftj, so a partition's database knows nothing of partitions:

    .decl edge__x_0(src:number, dst:number)
    .decl edge__all(src:number, dst:number)
    .decl tri__x_0(x:number, y:number, z:number)
    tri__x_0(x, y, z) :- edge__x_0(x, y), edge__all(y, z), edge__x_0(x, z).

What one partition derives for all has an atom more in its body, `here__one()`, which holds there alone. So has a rule
without atoms: `here__1()`, which holds in the partition that the constants in its head belong to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from lftj.language import BodyAtom, Clause
from lftj.language.aggregate_specs import COUNTED, by_counts
from lftj.language.clause import Term, Var, owner, replaced
from spark_bridge.plan import ONE, Copy, PartitionPlan, Pattern, Place, PlanStep

HERE = "here__"


def copy_names(copies: Iterable[Copy]) -> dict[Copy, str]:
    """A name in the language for each copy, each another."""
    names: dict[Copy, str] = {}
    taken = set[str]()
    for relation, pattern in copies:
        name = re.sub(r"[^A-Za-z0-9_]", "_", relation).lstrip("_") + f"__{pattern}"
        if not name[0].isalpha() or name.startswith(HERE):
            name = "r" + name
        while name in taken:
            name += "_"
        taken.add(name)
        names[relation, pattern] = name
    return names


def place_names(plan: PartitionPlan) -> dict[Place, str]:
    """A name for what holds in one partition alone, for each that derives a rule alone."""
    places = dict.fromkeys(place for step in plan.steps if (place := step.place) is not None)
    return {place: f"{HERE}{'one' if place[0] == ONE else number}" for number, place in enumerate(places, 1)}


def program_text(plan: PartitionPlan) -> str:
    """The program of a partition."""
    return "\n".join([*_declarations(plan), *(text for _, text in _rules(plan))]) + "\n"


def users_text(text: str, plan: PartitionPlan) -> str:
    """What a partition says of its program, in the rules, names and places of the user's."""
    names, first = copy_names(plan.copies), len(_declarations(plan)) + 1
    written = _rules(plan)
    spans = {str(first + i): clause.span for i, (clause, _) in enumerate(written)}
    rules = {text: clause.text or str(clause) for clause, text in written}
    relations = {name: owner(relation) for (relation, _), name in names.items()}

    def place(found: re.Match[str]) -> str:
        span = spans.get(found[1])
        return str(span) if span is not None and span.line else found[0]

    # In one pass, as the user's own rules and names may read like those of a partition.
    ours = "|".join(re.escape(rule) for rule in sorted(rules, key=len, reverse=True)) or r"(?!)"
    words = re.compile(rf"<rules>:(\d+):\d+|({ours})|\b(\w+)\b")
    return words.sub(
        lambda found: place(found) if found[1] else rules[found[2]] if found[2] else relations.get(found[3], found[3]),
        text,
    )


def _declarations(plan: PartitionPlan) -> list[str]:
    lines, functional = [], _functional(plan)
    for (relation, _), name in copy_names(plan.copies).items():
        schema = plan.program.schemas[relation]
        columns = [f"{_column(i, column.name)}:{column.type}" for i, column in enumerate(schema.columns)]
        if relation in functional:
            lines.append(f".decl {name}({', '.join(columns[:-1])}) -> {columns[-1]}")
        else:
            lines.append(f".decl {name}({', '.join(columns)})")
    return [*lines, *(f".decl {name}()" for name in place_names(plan).values())]


def _functional(plan: PartitionPlan) -> set[str]:
    """The relations with one value per key."""
    looked_up = {step.clause.head for step in plan.steps if _is_looked_up(step.clause)}
    return looked_up | {name for name, schema in plan.program.schemas.items() if schema.functional}


def _column(at: int, name: str) -> str:
    """A column's name in the language: one that no program can write has a number."""
    return name if name.isidentifier() else f"c__{at}"


def _is_looked_up(clause: Clause) -> bool:
    """Whether a clause is an aggregate within a recursion by keys, one of several alternatives as the case may be."""
    return clause.acyclic and clause.aggregate is not None


def _rules(plan: PartitionPlan) -> list[tuple[Clause, str]]:
    """The rules as text, each with a clause that it says; the alternatives of an aggregate are one rule."""
    names, places, written = copy_names(plan.copies), place_names(plan), list[list[PlanStep]]()
    for step in plan.steps:
        last = written[-1][0] if written else None
        if last and _is_looked_up(step.clause) and (last.clause.head, last.head) == (step.clause.head, step.head):
            written[-1].append(step)
        else:
            written.append([step])
    functional = {name for copy, name in names.items() if copy[0] in _functional(plan)}
    return [(steps[0].clause, _rule(steps, names, places, functional)) for steps in written]


def _rule(
    steps: Sequence[PlanStep], names: dict[Copy, str], places: dict[Place, str], functional: Collection[str]
) -> str:
    clauses = [_renamed(step, names, places) for step in steps]
    clause = clauses[0]
    if clause.aggregate is None and not clause.best:
        return f"{str(clause).removesuffix('.')}{_matching(clause)}."
    # The text of an aggregate clause, or of one that proposes best values, is no rule; that of the rule it comes from
    # is: its head's keys are the groups.
    op, groups = clause.best, len(clause.head_args) - 1
    if clause.aggregate is not None:
        op, groups = clause.aggregate.op, clause.aggregate.groups
    keys = ", ".join(map(str, clause.head_args[:groups]))
    operand = str(clause.head_args[-1]) if clause.aggregate is None else clause.folded
    if by_counts(op):  # the last column of what it reads is how often the value is there
        operand = f"{COUNTED}({operand}, {clause.atoms[-1].args[-1]})"
    operand = f" {operand}" if operand else ""
    if len(clauses) > 1:
        shared = set.intersection(*({variable.name for variable in each.variables()} for each in clauses))
        clauses = [_alternative(each, shared, functional) for each in clauses]
    bodies = " ; ".join(map(_body, clauses))
    # With a body of its own, the least or greatest is a value to be looked up, and no recursion of best values.
    return f"{clause.head}[{keys}] = {op}{operand} : {{ {bodies} }}{' :- 0 = 0' if _is_looked_up(clause) else ''}."


def _renamed(step: PlanStep, names: dict[Copy, str], places: dict[Place, str]) -> Clause:
    """The clause of a step, over the copies that it reads."""

    def renamed(atoms: tuple[BodyAtom, ...], patterns: tuple[Pattern, ...]) -> tuple[BodyAtom, ...]:
        pairs = zip(atoms, patterns, strict=True)
        return tuple(replace(atom, predicate=names[atom.predicate, pattern]) for atom, pattern in pairs)

    place = step.place
    return replace(
        step.clause,
        head=names[step.clause.head, step.head],
        atoms=((BodyAtom(places[place], ()),) if place else ()) + renamed(step.clause.atoms, step.positive),
        negated=renamed(step.clause.negated, step.negated),
    )


def _alternative(clause: Clause, shared: Collection[str], functional: Collection[str]) -> Clause:
    """One of several clauses of an aggregate, without variables and wildcards that are not in all of them (`shared`).

    Such a one is the value of a key, so it can be written as that: `t(y, u), u != 2` as `t[y] != 2`. That there is one
    need not be said where another atom looks it up.
    """
    values, atoms = dict[str, Term](), list[BodyAtom]()
    looked_up = {(atom.predicate, atom.args[:-1]) for atom in clause.atoms if atom.args and atom.args[-1] is not None}
    for atom in clause.atoms:
        value = atom.args[-1] if atom.predicate in functional else atom
        if isinstance(value, Var) and value.name not in shared:
            values[value.name] = Var(f"{atom.predicate}[{', '.join(map(str, atom.args[:-1]))}]", value.type)
        elif value is not None or (atom.predicate, atom.args[:-1]) not in looked_up:
            atoms.append(atom)
    compares = tuple(
        replace(compare, left=replaced(compare.left, values), right=replaced(compare.right, values))
        for compare in clause.compares
    )
    return replace(clause, atoms=tuple(atoms), compares=compares)


def _body(clause: Clause) -> str:
    """What an aggregate has in braces."""
    plain = replace(clause, aggregate=None, best="", head_args=())
    return str(plain).partition(" :- ")[2].removesuffix(".") + _matching(clause)


def _matching(clause: Clause) -> str:
    return "".join(f", or_null({name})" for name in sorted(clause.or_null))
