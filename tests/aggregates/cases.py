"""Databases with aggregate clauses made by hand, and what they must hold, in dicts and loops.

The language makes such clauses from braces; here they are put into a database's state as it would.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import lftj
from lftj.language.clause import Aggregate, BodyAtom, Clause, Compare, Term, Value, Var
from lftj.store.stored import StoredRelation
from lftj.values.schema import Column, Schema

__all__ = ["Compare", "Value", "add", "aggregate", "folded", "grouped", "result_type"]

Row = tuple[Any, ...]


def result_type(op: str, operand: str) -> str:
    return {"count": "number", "mean": "float"}.get(op, operand)


def aggregate(
    head: str,
    op: str,
    groups: Sequence[Var],
    operand: Term | None,
    atoms: Sequence[tuple[str, Sequence[Var | Value]]],
    compares: Iterable[Compare] = (),
    rule: int = 1,
) -> Clause:
    """`head(groups, op operand) :- atoms, compares.`"""
    args = (*groups, *([] if operand is None else [operand]))
    kind = result_type(op, operand.type if operand is not None else "")
    body = tuple(BodyAtom(name, tuple(terms)) for name, terms in atoms)
    return Clause(
        head, args, body, tuple(compares), rule=rule, text=f"{op} rule", aggregate=Aggregate(op, len(groups), kind)
    )


def schema_of(clause: Clause) -> Schema:
    groups, folding = clause.head_args[: clause.aggregate.groups], clause.aggregate
    columns = [Column(f"g{i}", term.type) for i, term in enumerate(groups)]
    return Schema(clause.head, (*columns, Column("result", folding.type)), functional=True)


def add(db: lftj.Database, clause: Clause, strategy: str | None = None) -> None:
    """What `db.rules` does with an aggregate clause; `strategy`: how it is maintained."""
    evaluator = db._evaluator
    state, sizes = evaluator.state, {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
    relation = StoredRelation(schema_of(clause), evaluator.arena, **sizes)
    strata = state.strata.extended((clause,), (*state.strata.order, clause.head))
    maintain = state.maintain if strategy is None else {**state.maintain, clause.rule: strategy}
    evaluator.state = state._replace(
        relations={**state.relations, clause.head: relation},
        strata=strata,
        stale=state.stale | {clause.head},
        maintain=maintain,
    )


def grouped(bindings: Iterable[Row], groups: int) -> dict[Row, list[Any]]:
    """(group..., operand) per binding -> operands per group."""
    found: dict[Row, list[Any]] = defaultdict(list)
    for row in bindings:
        found[row[:groups]].append(row[groups] if len(row) > groups else None)
    return found


def folded(op: str, operand: str, values: list[Any]) -> Any:
    """The result of one group. `OverflowError` or `ValueError` where there is none."""
    if op == "count":
        return len(values)
    if op == "min":
        return min(values)
    if op == "max":
        return max(values)
    if op == "cat":
        return "".join(values)
    if operand != "float":
        total = sum(values)
        if op == "mean":
            return total / len(values)
        low, high = (-(2**63), 2**63 - 1) if operand == "number" else (0, 2**64 - 1)
        if not low <= total <= high:
            raise OverflowError(total)
        return total
    if op == "mean" and not any(map(math.isinf, values)):
        return float(sum(map(Fraction, values)) / len(values))
    return math.fsum(values)
