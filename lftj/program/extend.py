"""Adding a program to a state: all of it is checked first, then the state that has it is made.

The program's rules are in the new state's strata, and new relations in it are empty; its facts are handed to the
caller, since a load and a transaction store them in different ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj import arguments
from lftj.errors import Diagnostic, Span
from lftj.language import ast
from lftj.language.builder import Program
from lftj.language.checker import check
from lftj.language.clause import INTERNAL
from lftj.language.first_rows import check_order, marked
from lftj.language.names import VIEW
from lftj.language.parse import parse
from lftj.language.thresholds import folded
from lftj.program.closed_heads import refuse_rows, refuse_rules
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values import gate
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable


class Extension(NamedTuple):
    """The state with the program's rules, its facts by relation (int64[arity, n]; how many), its heads, its warnings.

    What the heads derive is not in the state yet, and no head is marked stale.
    """

    state: State
    facts: dict[str, tuple[npt.NDArray[np.int64], int]]
    heads: frozenset[str]
    warnings: tuple[Diagnostic, ...]


def extended(
    state: State,
    program: str | Program | ast.Program,
    options: RuleOptions,
    new: Callable[[Schema], StoredRelation],
    symbols: SymbolTable,
    *,
    taken: Mapping[str, StoredRelation] | None = None,
) -> Extension:
    """`state` with a program; `new` makes an empty relation.

    `taken`: relations whose names no internal one is given, though they may have left `state` by now.

    Raises `ProgramError` with every finding, and `DataError` for facts and rules of path counts.
    """
    parsed = program.ast() if isinstance(program, Program) else program
    if not isinstance(parsed, ast.Program):
        why = "rules are a text, or a `lftj.Program`"
        parsed = parse(arguments.text("program", parsed, why, 'give rules, as in `db.rules("p(x) :- e(x).")`'))
    known = {name: relation.schema for name, relation in {**(taken or {}), **state.relations}.items()}
    checked = check(_of_view(parsed), known=known, clauses=state.strata.clauses)
    for name in dict.fromkeys((*checked.facts, *(clause.head for clause in checked.clauses))):
        refuse_rows(state, name)
    options.check(checked.clauses)
    clauses, gone = folded(marked(checked.clauses, checked.schemas))
    fresh = {name: new(schema) for name, schema in checked.schemas.items() if name not in known and name not in gone}
    relations = {**state.relations, **fresh}
    facts = {}
    for name, rows in checked.facts.items():
        codes = [gate.encode_row(row, relations[name].schema, symbols) for row in rows]
        columns = np.array(codes, np.int64).reshape(len(codes), relations[name].arity).T
        facts[name] = (np.ascontiguousarray(columns), len(codes))
    order = [name for stratum in checked.strata for name in stratum if name not in gone]
    after = state._replace(
        relations=relations,
        strata=state.strata.extended(clauses, order),
        key_orders={**state.key_orders, **options.orders_by_rule(checked)},
        directives=(*state.directives, *checked.directives),
        maintain={**state.maintain, **options.by_rule(checked, "maintain")},
        granularity={**state.granularity, **options.by_rule(checked, "granularity")},
    )
    ordered = [clause for clause in after.strata.marked if relations[clause.head].schema.mark]
    check_order(after.strata.recursive, ordered)
    heads = frozenset(clause.head for clause in clauses)
    for name in heads:
        if name in checked.facts or (name in state.relations and len(state.relations[name].facts)):
            refuse_rules(after, name)
    return Extension(after, facts, heads, checked.warnings)


def _of_view(program: ast.Program) -> ast.Program:
    """The program; the rules of a view of SQL, which stand in no text, are at the view for whom they are told of."""
    items = program.items
    view = next((item.name for item in items if isinstance(item, ast.Declaration) and VIEW in item.qualifiers), None)
    if view is None:
        return program
    place = Span(f"view `{view.lstrip(INTERNAL)}`")
    return replace(
        program,
        items=tuple(
            replace(item, span=place) if isinstance(item, ast.Rule) and not item.span.line else item for item in items
        ),
    )
