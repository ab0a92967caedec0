"""The rules of a database as the steps that made them: what a file keeps of a program, and makes it of again.

    {"rules": text, "options": {...}}       a program was added, with what was asked for its rules
    {"remove": head}                        the rules of a head were removed
    {"paths": [relation, into]}             path counts were begun
    {"relations": [...]}                    relations as they are declared, where no text says it

The text is that of the syntax tree, so a builder's program is kept as one, too. The same steps over the same relations
give the same rules, and the same names to the parts that these were taken apart into.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from lftj.language import ast
from lftj.language.builder import Program
from lftj.language.parse import parse
from lftj.language.text import to_text
from lftj.program.declare_paths import declared
from lftj.program.extend import extended
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values.codes import Column, Schema
from lftj.values.symbols import SymbolTable

Step = dict[str, Any]


def rules_step(program: str | Program | ast.Program, options: RuleOptions) -> Step:
    """The step that adds a program."""
    parsed = program.ast() if isinstance(program, Program) else program
    parsed = parse(parsed) if isinstance(parsed, str) else parsed
    asked = {name: dict(given) for name, given in options._asdict().items() if given}
    by_rule = [list(item.options) for item in parsed.items if isinstance(item, ast.Rule)]
    step: Step = {"rules": to_text(parsed), "source": parsed.source}
    if asked:
        step["options"] = asked
    if any(by_rule):
        step["by_rule"] = by_rule
    return step


def relations_step(schemas: list[Schema]) -> Step:
    """The step that declares relations as they are."""
    return {"relations": [asdict(schema) for schema in schemas]}


def schema_of(kept: dict[str, Any]) -> Schema:
    """A schema from what a step keeps of it."""
    known = {field.name for field in fields(Schema)}
    columns = tuple(Column(**column) for column in kept["columns"])
    rest: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in kept.items()
        if name in known and name != "columns"
    }
    return Schema(columns=columns, **rest)


def after(state: State, step: Step, new: Callable[[Schema], StoredRelation], symbols: SymbolTable) -> State:
    """The state after a step, without facts: the log has those."""
    if "relations" in step:
        missing = [schema_of(kept) for kept in step["relations"] if kept["name"] not in state.relations]
        return state._replace(relations={**state.relations, **{schema.name: new(schema) for schema in missing}})
    if "remove" in step:
        return _without(state, step["remove"])
    if "paths" in step:
        relation, into = step["paths"]
        return declared(state, relation, into, new)
    asked = step.get("options", {})
    options = RuleOptions(
        {head: tuple(order) for head, order in asked.get("key_orders", {}).items()},
        asked.get("maintain", {}),
        asked.get("granularity", {}),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were told when the rules were added
        added = extended(state, _program(step), options, new, symbols)
    return added.state.made_stale(added.heads)


def _without(state: State, head: str) -> State:
    """The state without the rules of a head: what it holds are its facts."""
    state = state.without_rules(head)
    relation = state.relations[head]
    relations = {**state.relations, head: relation.successor(relation.facts, relation.facts)}
    above = state.strata.above((head,))
    return state._replace(relations=relations, stale=(state.stale - {head}) | above)


def _program(step: Step) -> ast.Program:
    from dataclasses import replace

    parsed = replace(parse(step["rules"]), source=step["source"])
    if "by_rule" not in step:
        return parsed
    given = iter(step["by_rule"])
    items = [
        replace(item, options=tuple((key, value) for key, value in next(given))) if isinstance(item, ast.Rule) else item
        for item in parsed.items
    ]
    return replace(parsed, items=tuple(items))
