"""Options of rules: how what they derive is kept up to date. They change what an answer costs, never the answer.

    maintain       how a head follows changes: by the traces of its rules, by joining what changed with the rest
                   ("delta": key orders instead of records), by maps of higher-order deltas ("triggers": a count, sum
                   or mean; other heads as with "auto"), or by evaluating them again ("recompute")
    granularity    what a trace keeps where there is a choice: a record per interval of keys looked at, or per node

"auto", the default, leaves the choice to lftj. The builder takes them with a rule, `Database.rules` by head; the text
of a program has no syntax for them.
"""

from __future__ import annotations

from collections.abc import Iterable

AUTO = "auto"
TRIGGERS = "triggers"
VALUES = {"maintain": (AUTO, "trace", "delta", TRIGGERS, "recompute"), "granularity": (AUTO, "node", "interval")}
WHY = {
    "maintain": "what rules derive follows changes by traces, delta joins or triggers, or they are evaluated again",
    "granularity": "a trace keeps a record per node of the join, or per interval of keys that a step looked at",
}


def listed(values: Iterable[str], quote: str = '"') -> str:
    """The values as a sentence lists them, each in quotes."""
    *first, last = (f"{quote}{value}{quote}" for value in values)
    return f"{', '.join(first)} or {last}"
