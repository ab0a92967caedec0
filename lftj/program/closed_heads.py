"""Heads that hold what no rule and no fact may add to: path counts, and outputs of circuits."""

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
