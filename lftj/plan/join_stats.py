"""What the joins of a component did since an evaluation or a commit began, for `explain` and `tx.stats`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lftj.language.clause import Clause
from lftj.plan.joinplan import JoinPlan

# The kinds of joins of a component.
DELTA_RULE, DEPENDENTS, OLDER_DEPENDENTS, REDERIVE, CANDIDATES = (
    "delta rule",
    "dependents",
    "dependents of older rows",
    "rederive",
    "candidates",
)
# A join of a component: its kind, the number of its clause, and of the atom that ranges over changed rows.
Key = tuple[str, int, int | None]


@dataclass(slots=True)
class JoinStats:
    """Runs of one join, the heads they found, their steps and seconds; `plan`: that of the last one.

    `written`: the clause whose join it is; `clause`: the same as it is run (closure.py).
    """

    written: Clause
    clause: Clause
    plan: JoinPlan | None = None
    runs: int = 0
    rows: int = 0
    steps: int = 0
    seconds: float = 0.0


JoinStatsByJoin = Mapping[Key, JoinStats]


def of_clause(stats: JoinStatsByJoin, written: Clause) -> Iterator[tuple[Key, JoinStats]]:
    """Those of a clause that did something."""
    return ((key, one) for key, one in stats.items() if one.written == written and one.steps)


def total(stats: JoinStatsByJoin, written: Clause) -> JoinStats:
    """All of a clause together."""
    found = JoinStats(written, written)
    for _, one in of_clause(stats, written):
        found.runs += one.runs
        found.rows += one.rows
        found.steps += one.steps
        found.seconds += one.seconds
    return found


def purpose(key: Key, clause: Clause) -> str:
    """What the join `key` of a clause finds, for people."""
    kind, _, i = key
    head = f"{clause.head}({', '.join(map(str, clause.head_args))})"
    if kind == REDERIVE:
        return f"other support of {head}"
    if kind == CANDIDATES:
        return f"all values of the key of {head}"
    if i is None:
        return "all rows"
    negated = i >= len(clause.atoms)
    atom = clause.negated[i - len(clause.atoms)] if negated else clause.atoms[i]
    if kind == DELTA_RULE:
        return f"what comes with {'the loss of ' if negated else ''}{atom}"
    return f"what goes with {'' if negated else 'the loss of '}{atom}"


def ran_joins(stats: JoinStatsByJoin, clause: Clause) -> list[dict[str, Any]]:
    """What the joins of a clause of a component did, for explanations."""
    found = []
    for key, one in of_clause(stats, clause):
        plan = one.plan
        order, looked_up = ([], []) if plan is None else (list(plan.order), list(plan.looked_up))
        planned = {"key_order": order, "looked_up": looked_up}
        found.append({"finds": purpose(key, one.clause), **planned, **figures(one)})
    return found


def figures(one: JoinStats) -> dict[str, Any]:
    """What a join did: the counts and the time of `JoinStats`."""
    return {"runs": one.runs, "rows": one.rows, "steps": one.steps, "seconds": one.seconds}
