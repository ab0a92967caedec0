"""Erased rows that are still there: no facts, and rules derive them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lftj.language.clause import Clause
from lftj.maintain.commit import Commit
from lftj.store.change import Batch


def erased_in_vain(commit: Commit, batches: Mapping[str, Sequence[Batch]]) -> Iterator[tuple[str, int]]:
    """Per relation that rules derive, how many erased rows are no facts, and were none.

    Heads that are not up to date are not evaluated for it.
    """
    strata, before, after = commit.state.strata, commit.base.relations, commit.state.relations
    for name, given in batches.items():
        if name not in strata.by_head or name in commit.state.stale:
            continue
        erased = [rows for batch in given if (rows := batch.erased()) is not None]
        if not erased:
            continue
        rows = erased[0] if len(erased) == 1 else np.concatenate(erased, axis=1)
        rows = np.compress(after[name].content.contains(rows), rows, axis=1)
        for facts in (before[name].facts if name in before else None, after[name].facts):
            if facts is not None and rows.shape[1]:
                rows = np.compress(~facts.contains(rows), rows, axis=1)
        if rows.shape[1]:
            yield name, len(set(map(tuple, rows.T.tolist())))


def only_derived(name: str, clauses: Sequence[Clause]) -> str:
    """What to say of erased rows of `name` that only rules derive; the same each time, so that it is said once."""
    rules = {clause.text or str(clause): clause.span for clause in clauses}
    text, span = next(iter(rules.items()), ("a rule", ""))
    return (
        f"of `{name}`, rows were erased that only rules derive, so they are still there\n"
        f"  why: only facts can be erased, and `{name}` is derived by {span}: `{text}`"
        + (f" and {len(rules) - 1} more" if len(rules) > 1 else "")
        + '\n  do: erase the facts that the rule reads, or change the rule; missing="error" refuses such rows'
    )
