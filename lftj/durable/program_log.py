"""The rules of a database as the steps that made them: what a file keeps of a program, and makes it of again.

    {"rules": items, "options": {...}}      a program was added, with what was asked for its rules
    {"remove": head}                        the rules of a head were removed
    {"drop": relation}                      a relation was dropped
    {"paths": [relation, into]}             path counts were begun

A checkpoint leaves out steps that made only what is gone (gone_steps.py).

The items are those of the syntax tree, as data (kept_ast.py): views of SQL have names that no text writes. The same
steps over the same relations give the same rules, and the same names to the parts that these were taken apart into.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from lftj.durable.kept_ast import kept, restored
from lftj.language import ast
from lftj.language.builder import Program
from lftj.language.parse import parse
from lftj.program.declare_paths import declared
from lftj.program.extend import extended
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable

Step = dict[str, Any]


def rules_step(program: str | Program | ast.Program, options: RuleOptions) -> Step:
    """The step that adds a program."""
    parsed = program.ast() if isinstance(program, Program) else program
    parsed = parse(parsed) if isinstance(parsed, str) else parsed
    asked = {name: dict(given) for name, given in options._asdict().items() if given}
    step: Step = {"rules": kept(parsed.items), "source": parsed.source}
    if asked:
        step["options"] = asked
    return step


def after(state: State, step: Step, new: Callable[[Schema], StoredRelation], symbols: SymbolTable) -> State:
    """The state after a step, without facts: the log has those."""
    if "drop" in step:
        return state.without_relation(step["drop"])
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
        added = extended(state, ast.Program(restored(step["rules"]), step["source"]), options, new, symbols)
    return added.state.made_stale(added.heads)


def _without(state: State, head: str) -> State:
    """The state without the rules of a head: what it holds are its facts."""
    state = state.without_rules(head)
    relation = state.relations[head]
    relations = {**state.relations, head: relation.successor(relation.facts, relation.facts)}
    above = state.strata.above((head,))
    return state._replace(relations=relations, stale=(state.stale - {head}) | above)
