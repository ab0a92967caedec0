"""The relations of a database at a glance: rows, memory, and what keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lftj import html
from lftj.maintain.choose import at_rest
from lftj.maintain.report import amount, size
from lftj.maintain.step import Step


def table_of(names: Sequence[str], step: Step, memory: Mapping[str, Mapping[str, int]]) -> str:
    """Relations as a table of a page. `step` is at rest; `memory`: bytes by relation, by what they are for."""
    state = step.state
    rows = []
    for name in names:
        relation, rules = state.relations[name], state.strata.of(name)
        stale = name in state.stale
        kept = f"{amount(len({c.rule for c in rules}), 'rule')}, " if rules else "facts"
        if rules:
            kept += "evaluated when read" if stale else at_rest(step, state.strata.heads_of(name))[0].name
        bytes = size(sum(memory.get(name, {}).values()))
        rows.append((str(relation.schema), "not evaluated" if stale else f"{len(relation):,}", bytes, kept))
    return html.plain_table(("relation", "rows", "memory", "kept by"), rows, numbers=("rows", "memory"))
