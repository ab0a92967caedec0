"""What a commit did, in figures: heads, their parts, rules, and all of it together (`Transaction.stats`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lftj.language.clause import INTERNAL, owner
from lftj.maintain.commit import Commit
from lftj.plan.join_stats import total

# What the figures of rules, parts and heads add up to, besides seconds.
_SUMMED = ("steps", "removed", "added")
# Of a head that was not derived, while parts of its rules were.
_IDLE = {"strategy": "none", "why": "what its parts hold did not change", **dict.fromkeys(_SUMMED, 0), "seconds": 0.0}


def stats_of(commit: Commit, derived_only: Mapping[str, int]) -> dict[str, Any]:
    """The figures, as `Transaction.stats` describes them; `derived_only`: per relation, the rows erased in vain."""
    derived = {head: report.stats() for head, report in commit.reports.items()}
    sums: dict[str, Any] = {key: sum(h[key] for h in derived.values()) for key in _SUMMED}
    heads: dict[str, dict[str, Any]] = {}
    for name, report in derived.items():
        if name.startswith(INTERNAL):
            head = heads.setdefault(owner(name), {**_IDLE, "parts": {}})
            head.setdefault("parts", {})[name] = dict(report)
        else:
            heads[name] = report | {key: parts for key, parts in heads.get(name, {}).items() if key == "parts"}
    for head in heads.values():
        for key in (*_SUMMED, "seconds"):
            head[key] += sum(part[key] for part in head.get("parts", {}).values())
    return {
        "heads": heads,
        "rules": list(_rules_of(commit)),
        "total": {**sums, "seconds": commit.seconds},
        "derived": dict(derived_only),
    }


def _rules_of(commit: Commit) -> Iterator[dict[str, Any]]:
    """What each rule of a derived head took."""
    for head, (clauses, work) in commit.work.items():
        known = {rule.clause: rule._asdict() for rule in work}
        report = commit.reports[head]
        idle = dict.fromkeys(("steps", "removed", "added", "surgeries"), 0) | {"seconds": 0.0}
        for i, clause in enumerate(clauses):
            figures = known.get(i, idle)
            if head in commit.join_stats:
                done = total(commit.join_stats[head], clause)
                figures = idle | {"steps": done.steps, "seconds": done.seconds}
            yield {
                "rule": clause.text or str(clause),
                "head": owner(head),
                "clause": str(clause),
                "strategy": report.strategy,
                "why": report.why,
                **{name: figures[name] for name in idle},
                **({"abandoned": late} if (late := figures.get("abandoned", 0)) else {}),
            }
