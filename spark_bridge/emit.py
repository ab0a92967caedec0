"""The program that every partition runs: the rules of a plan over its copies, written as text.

A copy of a relation becomes a relation of its own, `edge__x_0` for `edge` by its first column, declared with the types
of the original; what a rule was taken apart into (an aggregate, a negated group) becomes one as well. The text is
ordinary lftj, so a partition's database knows nothing of partitions:

    .decl edge__x_0(src:number, dst:number)
    .decl edge__all(src:number, dst:number)
    .decl tri__x_0(x:number, y:number, z:number)
    tri__x_0(x, y, z) :- edge__x_0(x, y), edge__all(y, z), edge__x_0(x, z).

What one partition derives for all has an atom more in its body, `here__one()`, which holds there alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from lftj.language import BodyAtom
from lftj.language.clause import owner
from spark_bridge.plan import ONE, Copy, PartitionPlan, Pattern, PlanStep

HERE = "here__one"


def copy_names(copies: Iterable[Copy]) -> dict[Copy, str]:
    """A name in the language for each copy, each another."""
    names: dict[Copy, str] = {}
    taken = {HERE}
    for relation, pattern in copies:
        name = re.sub(r"[^A-Za-z0-9_]", "_", relation).lstrip("_") + f"__{pattern}"
        if not name[0].isalpha():
            name = "r" + name
        while name in taken:
            name += "_"
        taken.add(name)
        names[relation, pattern] = name
    return names


def program_text(plan: PartitionPlan) -> str:
    """The program of a partition."""
    return "\n".join([*_declarations(plan), *(_rule(step, copy_names(plan.copies)) for step in plan.steps)]) + "\n"


def users_text(text: str, plan: PartitionPlan) -> str:
    """What a partition says of its program, in the rules, names and places of the user's."""
    names, first = copy_names(plan.copies), len(_declarations(plan)) + 1
    spans = {str(first + i): step.clause.span for i, step in enumerate(plan.steps)}
    rules = {_rule(step, names): step.clause.text or str(step.clause) for step in plan.steps}
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
    lines = []
    for (relation, _), name in copy_names(plan.copies).items():
        schema = plan.program.schemas[relation]
        columns = [f"{column.name}:{column.type}" for column in schema.columns]
        if schema.functional:
            lines.append(f".decl {name}({', '.join(columns[:-1])}) -> {columns[-1]}")
        else:
            lines.append(f".decl {name}({', '.join(columns)})")
    if any(step.head == ONE for step in plan.steps):
        lines.append(f".decl {HERE}()")
    return lines


def _rule(step: PlanStep, names: dict[Copy, str]) -> str:
    def renamed(atoms: tuple[BodyAtom, ...], patterns: tuple[Pattern, ...]) -> tuple[BodyAtom, ...]:
        pairs = zip(atoms, patterns, strict=True)
        return tuple(replace(atom, predicate=names[atom.predicate, pattern]) for atom, pattern in pairs)

    head = names[step.clause.head, step.head]
    clause = replace(
        step.clause,
        head=head,
        atoms=((BodyAtom(HERE, ()),) if step.head == ONE else ()) + renamed(step.clause.atoms, step.positive),
        negated=renamed(step.clause.negated, step.negated),
    )
    matching = "".join(f", or_null({name})" for name in sorted(clause.or_null))
    if clause.aggregate is None and not clause.best:
        return f"{str(clause).removesuffix('.')}{matching}."
    # The text of an aggregate clause, or of one that proposes best values, is no rule; that of the rule it comes from
    # is: its head's keys are the groups.
    op, groups = clause.best, len(clause.head_args) - 1
    if clause.aggregate is not None:
        op, groups = clause.aggregate.op, clause.aggregate.groups
    keys = ", ".join(map(str, clause.head_args[:groups]))
    operand = "".join(f" {term}" for term in clause.head_args[groups:])
    body = str(replace(clause, aggregate=None, best="", head_args=())).partition(" :- ")[2].removesuffix(".") + matching
    return f"{head}[{keys}] = {op}{operand} : {{ {body} }}."
