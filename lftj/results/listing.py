"""A database as it is shown: its relations, one a line, with their rows."""

from __future__ import annotations

from collections.abc import Mapping

from lftj import html
from lftj.language.clause import INTERNAL
from lftj.maintain.choose import at_rest
from lftj.maintain.report import amount, size
from lftj.maintain.step import Step
from lftj.program.state import State


def as_text(state: State, used: int) -> str:
    """The relations of a state, and their rows; `used`: bytes of pages."""
    lines = [f"lftj.Database: {_amounts(state, used)}"]
    for name, relation in state.relations.items():
        if not name.startswith(INTERNAL):
            rows = "not evaluated" if name in state.stale else amount(len(relation), "row")
            lines.append(f"  {relation.schema}  {rows}")
    return "\n".join(lines)


def as_html(state: State, step: Step, memory: Mapping[str, Mapping[str, int]], used: int) -> str:
    """The same for notebooks, with the bytes of each relation (`Database.memory`) and how it is kept."""
    rows = []
    for name, relation in state.relations.items():
        if name.startswith(INTERNAL):
            continue
        rules, stale = state.strata.of(name), name in state.stale
        kept = f"{amount(len({c.rule for c in rules}), 'rule')}, " if rules else "facts"
        if rules:
            kept += "evaluated when read" if stale else at_rest(step, state.strata.heads_of(name))[0].name
        bytes = size(sum(memory.get(name, {}).values()))
        rows.append((str(relation.schema), "not evaluated" if stale else f"{len(relation):,}", bytes, kept))
    table = html.plain_table(("relation", "rows", "memory", "kept by"), rows, numbers=("rows", "memory"))
    return html.shown(html.title("lftj.Database", _amounts(state, used)), table)


def _amounts(state: State, used: int) -> str:
    rules = amount(len({clause.rule for clause in state.strata.clauses}), "rule")
    names = [name for name in state.relations if not name.startswith(INTERNAL)]
    return f"{amount(len(names), 'relation')}, {rules}, {used / 1e6:,.1f} MB of pages"
