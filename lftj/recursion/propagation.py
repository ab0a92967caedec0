"""The next content of a component after a change of what it reads, and of its facts.

    suspects   rows of some derivation that is no longer there: which of them go (retraction.py)
    returning  rows that went and have a derivation still: they come back, in a new round
    new        rows that the inserted rows, and those that returned, derive: semi-naive rounds from there

New rounds begin past the greatest so far, so that every row stays younger than some derivation of it. Rounds need not
be the least possible. What is different where rows are the best of their key is in min_max_fixpoint.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.recursion.component_join import Relations
from lftj.recursion.fixpoint import Deltas, Fixpoint, not_among, settle
from lftj.recursion.retraction import Retraction
from lftj.recursion.round_column import as_facts, rounds_of
from lftj.store.change import ERASED, INSERTED, Change

Rows = npt.NDArray[np.int64]


class Lost(NamedTuple):
    """By head, the rows that went, some of which may have come back; how many rows were examined for that."""

    rows: Deltas
    examined: int


def maintain(
    fixpoint: Fixpoint,
    before: Relations,
    changes: Mapping[str, Change],
    facts: Mapping[str, Change],
    top: int,
) -> Lost:
    """Bring the members in `fixpoint.relations` to what they are after a change; what went on the way.

    `fixpoint.relations`: those below as they are after it, the members as before it · `before`: all as before it ·
    `changes` of those below · `facts`: changes of the members' facts · `top`: no round is greater.
    """
    fixpoint.round = top
    negated = {name: changes[name] for name in fixpoint.joins.negates if name in changes}
    unsupported = [
        found for name, change in changes.items() for found in fixpoint.dependents(name, change.of_kind(ERASED), before)
    ]
    for name, change in negated.items():
        unsupported += fixpoint.dependents(name, change.of_kind(INSERTED), before, negated=True)
    gone: Deltas = {}
    for head, change in facts.items():
        # A fact that a better value stood before is not there.
        erased = rounds_of(fixpoint.relations[head], change.of_kind(ERASED))
        if erased.shape[1]:
            gone[head] = erased
    removed, derivable, examined = Deltas(), Deltas(), 0
    if unsupported or gone:
        retraction = Retraction(fixpoint)
        retraction.suspect(unsupported)
        if gone:
            retraction.remove(gone, {head: rows[:-1] for head, rows in gone.items()})
        retraction.examine()
        removed, derivable, examined = retraction.rows_removed(), retraction.rows_derivable(), retraction.examined
    new = _new_facts(fixpoint, facts, removed) if facts or removed else {}
    fixpoint.begin_round(fixpoint.round + 1)
    found = _returning(fixpoint, removed, derivable, new) if removed else {}
    for name, change in changes.items():
        fixpoint.ask(fixpoint.joins.delta_rules(name), fixpoint.relations, change.of_kind(INSERTED), found)
    for name, change in negated.items():
        fixpoint.ask(fixpoint.joins.delta_rules(name, negated=True), fixpoint.relations, change.of_kind(ERASED), found)
    for head, rows in fixpoint.grow(found).items():
        new[head] = rows if head not in new else fixpoint.distinct([new[head], rows], len(rows))
    fixpoint.go_on(new)
    settle(fixpoint)
    fixpoint.finish()
    for head in fixpoint.heads:
        if fixpoint.relations[head].content is not before[head].content:
            content, as_written = fixpoint.relations[head].content, fixpoint.joins.as_written
            fixpoint.evaluator.rounds.note(content, fixpoint.round, as_written=as_written)
    return Lost(removed, examined)


def _returning(fixpoint: Fixpoint, removed: Deltas, derivable: Deltas, new: Deltas) -> dict[str, list[Rows]]:
    """The rows that went and have a derivation still, by head, those without that are `new` as facts."""
    found: dict[str, list[Rows]] = {}
    for head, rows in fixpoint.may_return(removed, derivable).items():
        back = fixpoint.returning(head, not_among(rows, new[head]) if head in new else rows)
        if back.shape[1]:
            found[head] = [back]
    return found


def _new_facts(fixpoint: Fixpoint, facts: Mapping[str, Change], removed: Deltas) -> Deltas:
    """Store the members' new facts, and those that removed rows stood before; the rows that were not there."""
    new: Deltas = {}
    for head in {**facts, **removed}:
        relation = fixpoint.relations[head]
        rows = [facts[head].of_kind(INSERTED)] if head in facts else []
        if head in removed:
            rows.append(fixpoint.uncovered(head, removed[head]))
        come = fixpoint.distinct(rows, relation.arity)
        if not come.shape[1]:
            continue
        there = relation.content.contains(come)
        fixpoint.relations[head] = as_facts(relation, np.compress(there, come, axis=1))
        fresh = np.compress(~there, come, axis=1)
        if fresh.shape[1]:
            held, fixpoint.round = fixpoint.round, 0
            new |= fixpoint.grow({head: [fresh]})
            fixpoint.round = held
    return new
