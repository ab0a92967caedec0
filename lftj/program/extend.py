"""Adding a program to a state: all of it is checked first, then the state that has it is made.

The program's rules are in the new state's strata, and new relations in it are empty; its facts are handed to the
caller, since a load and a transaction store them in different ways.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj import arguments
from lftj.errors import Diagnostic, ProgramError, Span
from lftj.language import ast
from lftj.language.builder import Program
from lftj.language.checker import check
from lftj.language.clause import INTERNAL, CheckedProgram, owner
from lftj.language.first_rows import check_order, marked
from lftj.language.names import VIEW, constraint_of
from lftj.language.parse import parse
from lftj.language.thresholds import folded
from lftj.language.visitors import nodes
from lftj.program.closed_heads import refuse_rows, refuse_rules
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values import gate
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable

# No rules are such a text, and somebody who takes them for a file, or the database for one, gives it.
_NAME_OF_A_FILE = re.compile(r":memory:|(?!/[/*])[^\s()]+\.[A-Za-z]\w*")


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
        parsed = parse(_text(parsed))
    known = {name: relation.schema for name, relation in {**(taken or {}), **state.relations}.items()}
    checked = _checked(_of_view(parsed), known, state)
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
        types={**state.types, **checked.types},
    )
    ordered = [clause for clause in after.strata.marked if relations[clause.head].schema.mark]
    check_order(after.strata.recursive, ordered)
    heads = frozenset(clause.head for clause in clauses)
    for name in heads:
        if name in checked.facts or (name in state.relations and len(state.relations[name].facts)):
            refuse_rules(after, name)
    return Extension(after, facts, heads, checked.warnings)


def _checked(program: ast.Program, known: Mapping[str, Schema], state: State) -> CheckedProgram:
    """The program, checked on top of all relations and clauses that are there.

    Where nothing that is there reads what it derives, it is checked beside what it names alone: so it takes no longer
    the more there is. If something is wrong with it, all is looked at to say what: a name may be that of another.
    """
    strata, types = state.strata, state.types
    rules = [item for item in program.items if isinstance(item, ast.Rule)]
    heads = {head.name for rule in rules for head in rule.heads}
    if not any(strata.of(name) or strata.read(name) for name in heads):
        owners = {owner(name) for name in heads | _named(program)}
        near = {name: schema for name, schema in known.items() if owner(name) in owners}
        below = [clause for name in near for clause in strata.of(name)]
        last = max((clause.rule for clause in strata.clauses), default=0)
        with contextlib.suppress(ProgramError):
            checked = check(program, known=near, clauses=below, types=types, last=last)
            new = tuple(stratum for stratum in checked.strata if not strata.of(stratum[0]))
            return replace(checked, strata=(strata.order, *new))
    return check(program, known=known, clauses=strata.clauses, types=types)


def _named(program: ast.Program) -> set[str]:
    """All names in a program that may be those of relations."""
    found: set[str] = set()
    for item in program.items:
        if isinstance(item, ast.Rule):
            found |= {name for node in nodes((*item.heads, *item.body)) if (name := getattr(node, "name", ""))}
        elif isinstance(item, ast.Declaration):
            found.add(item.name)
        elif isinstance(item, ast.Directive):
            found.add(item.relation)
    return found


def _of_view(program: ast.Program) -> ast.Program:
    """The program; the rules of a view of SQL, or of a constraint, are at what they are told of as, not in a text."""
    items = program.items
    view = next((item for item in items if isinstance(item, ast.Declaration) and VIEW in item.qualifiers), None)
    if view is None:
        return program
    name, constraint = view.name.lstrip(INTERNAL), constraint_of(view)
    place = Span(f"table `{name.rpartition('.')[0]}`: {constraint}" if constraint else f"view `{name}`")
    return replace(
        program,
        items=tuple(
            replace(item, span=place) if isinstance(item, ast.Rule) and not item.span.line else item for item in items
        ),
    )


def _text(program: object) -> str:
    """A text of rules."""
    why = "rules are a text, or a `lftj.Program`"
    if isinstance(program, os.PathLike) or (isinstance(program, str) and _NAME_OF_A_FILE.fullmatch(program)):
        remedy = 'give its text, as in `Path("prog.dl").read_text()`; data is kept in a file by `path="shop.lftj"`'
        raise arguments.refused("program", program, f"{why}, and this seems to be the name of a file", remedy)
    return arguments.text("program", program, why, 'give rules, as in `db.rules("p(x) :- e(x).")`')
