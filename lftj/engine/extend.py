"""Adding a program to a state: all of it is checked first, then the state that has it is made.

The program's rules are in the new state's strata, and new relations in it are empty; its facts are handed to the
caller, since a load and a transaction store them in different ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.engine.state import State
from lftj.engine.stored import StoredRelation
from lftj.errors import DataError, Diagnostic, UnknownRelationError
from lftj.language import ast
from lftj.language.builder import Program
from lftj.language.check import check
from lftj.language.clause import Clause
from lftj.language.parse import parse
from lftj.values import gate
from lftj.values.codes import Schema
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
    key_orders: Mapping[str, tuple[str, ...] | list[str]],
    new: Callable[[Schema], StoredRelation],
    symbols: SymbolTable,
) -> Extension:
    """`state` with a program; `new` makes an empty relation. Raises `ProgramError` with every finding."""
    parsed = parse(program) if isinstance(program, str) else program.ast() if isinstance(program, Program) else program
    known = {name: relation.schema for name, relation in state.relations.items()}
    checked = check(parsed, known=known, clauses=state.strata.clauses)
    _check_orders(key_orders, checked.clauses)
    fresh = {name: new(schema) for name, schema in checked.schemas.items() if name not in state.relations}
    relations = {**state.relations, **fresh}
    facts = {}
    for name, rows in checked.facts.items():
        codes = [gate.encode_row(row, relations[name].schema, symbols) for row in rows]
        columns = np.array(codes, np.int64).reshape(len(codes), relations[name].arity).T
        facts[name] = (np.ascontiguousarray(columns), len(codes))
    forced = {c.rule: tuple(key_orders[c.head]) for c in checked.clauses if c.head in key_orders}
    order = [name for stratum in checked.strata for name in stratum]
    after = state._replace(
        relations=relations,
        strata=state.strata.extended(checked.clauses, order),
        key_orders={**state.key_orders, **forced},
        directives=(*state.directives, *checked.directives),
    )
    return Extension(after, facts, frozenset(c.head for c in checked.clauses), checked.warnings)


def _check_orders(key_orders: Mapping[str, Any], clauses: tuple[Clause, ...]) -> None:
    for head, order in key_orders.items():
        own = [clause for clause in clauses if clause.head == head]
        if not own:
            raise UnknownRelationError(
                f"a key order is given for `{head}`, which no rule of this program derives",
                remedy="name the head of a rule of the same program",
            )
        for clause in own:
            check_order(clause, tuple(order))


def check_order(clause: Clause, order: tuple[str, ...]) -> None:
    """Raise `DataError` unless `order` names every variable of the clause, each once."""
    # Arguments that are expressions became variables, which nobody has to name.
    names = {v.name for v in clause.variables() if not re.fullmatch(r"_e\d+", v.name) or v.name in order}
    if set(order) != names or len(order) != len(names):
        raise DataError(
            f"the key order ({', '.join(order)}) does not name each variable of the rule once",
            where=str(clause.span),
            why=f"the variables of `{clause.text}` are {', '.join(sorted(names))}",
            remedy="list all of them, outermost first",
        )
