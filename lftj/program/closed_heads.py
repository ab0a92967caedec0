"""Heads that hold what no rule and no fact may add to: path counts, outputs of circuits, views, and derived bags."""

from __future__ import annotations

from lftj.errors import DataError
from lftj.language.clause import owner
from lftj.program.declare_outputs import is_output
from lftj.program.declare_paths import big_counts_of, counts_paths
from lftj.program.state import State


def refuse_rows(state: State, name: str) -> None:
    """Raise `DataError` if `name` has no facts and no rules beside what it holds."""
    clauses = state.strata.of(name)
    if clauses and counts_paths(clauses[0]):
        edge = state.strata.of(big_counts_of(owner(name)))[0].atoms[0].predicate
        raise DataError(
            f"`{name}` holds the path counts of `{edge}`, and nothing else can be put there",
            why="every one of its rows is counted",
            remedy=f"change `{edge}`, or collect other rows in a relation that reads `{name}`",
        )
    if clauses and is_output(clauses[0]):
        raise DataError(
            f"`{name}` is an output of a circuit, and nothing else can be put there",
            why="its rows are those that the circuit gives",
            remedy=f"change what the circuit reads, or collect other rows in a relation that reads `{name}`",
        )
    if clauses and state.relations[name].schema.view:
        raise DataError(
            f"`{name}` is a view, and nothing else can be put there",
            why="its rows are those that its definition gives",
            remedy=f"change the tables that it reads, or collect other rows in a relation that reads `{name}`",
        )
    if clauses and state.relations[name].schema.bag:
        raise DataError(
            f"rules derive `{name}`, and nothing else can be put there",
            why="it is a bag: its rules say how often each row is there",
            remedy=f"change what they read, or collect other rows in a relation that reads `{name}`",
        )


def refuse_rules(state: State, name: str) -> None:
    """Raise `DataError` if `name` is a bag that holds rows of its own."""
    if state.relations[name].schema.bag:
        raise DataError(
            f"`{name}` has rows of its own, and no rule can derive others",
            why="it is a bag: how often a row is there, either its rows or its rules say",
            remedy=f"derive another relation, or erase what `{name}` holds first",
        )
