"""The next content of a component after a change of what it reads, and of its facts.

    suspects   rows of some derivation that is no longer there: which of them go (retraction.py)
    returning  rows that went and have a derivation still: they come back, in a new round
    new        rows that the inserted rows, and those that returned, derive: semi-naive rounds from there

New rounds begin past the greatest so far, so that every row stays younger than some derivation of it. Rounds need not
be the least possible. What is different where rows are the best of their key is in min_max_fixpoint.py.

Design section 7; spec/rounds_model.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lftj.recursion.component_join import Relations
from lftj.recursion.fixpoint import Deltas, Work, not_among, settle
from lftj.recursion.retraction import Retraction
from lftj.recursion.round_column import as_facts, rounds_of
from lftj.store.change import ERASED, INSERTED, Change

Rows = npt.NDArray[np.int64]


def maintain(
    work: Work,
    before: Relations,
    changes: Mapping[str, Change],
    facts: Mapping[str, Change],
    top: int,
) -> Retraction:
    """Bring the members in `work.relations` to what they are after a change.

    `work.relations`: those below as they are after it, the members as before it · `before`: all as before it ·
    `changes` of those below · `facts`: changes of the members' facts · `top`: no round is greater.
    """
    retraction = Retraction(work)
    work.round = top
    negated = {name: changes[name] for name in work.joins.negates if name in changes}
    for name, change in changes.items():
        retraction.suspect(work.consumers(name, change.of_kind(ERASED), before))
    for name, change in negated.items():
        retraction.suspect(work.consumers(name, change.of_kind(INSERTED), before, negated=True))
    gone: Deltas = {}
    for head, change in facts.items():
        # A fact that a better value stood before is not there.
        erased = rounds_of(work.relations[head], change.of_kind(ERASED))
        if erased.shape[1]:
            gone[head] = erased
    if gone:
        retraction.remove(gone, {head: rows[:-1] for head, rows in gone.items()})
    retraction.examine()
    removed = retraction.rows_removed()
    new = _new_facts(work, facts, removed) if facts or removed else {}
    work.begin_round(work.round + 1)
    found = _returning(work, removed, retraction.rows_derivable(), new) if removed else {}
    for name, change in changes.items():
        work.ask(work.joins.forward_from(name), work.relations, change.of_kind(INSERTED), found)
    for name, change in negated.items():
        work.ask(work.joins.forward_from(name, negated=True), work.relations, change.of_kind(ERASED), found)
    for head, rows in work.grow(found).items():
        new[head] = rows if head not in new else work.distinct([new[head], rows], len(rows))
    work.go_on(new)
    settle(work)
    work.finish()
    for head in work.heads:
        if work.relations[head].content is not before[head].content:
            content, as_written = work.relations[head].content, work.joins.as_written
            work.evaluator.rounds.note(content, work.round, as_written=as_written)
    return retraction


def _returning(work: Work, removed: Deltas, derivable: Deltas, new: Deltas) -> dict[str, list[Rows]]:
    """The rows that went and have a derivation still, by head, those without that are `new` as facts."""
    found: dict[str, list[Rows]] = {}
    for head, rows in work.may_return(removed, derivable).items():
        back = work.returning(head, not_among(rows, new[head]) if head in new else rows)
        if back.shape[1]:
            found[head] = [back]
    return found


def _new_facts(work: Work, facts: Mapping[str, Change], removed: Deltas) -> Deltas:
    """Store the members' new facts, and those that removed rows stood before; the rows that were not there."""
    new: Deltas = {}
    for head in {**facts, **removed}:
        relation = work.relations[head]
        rows = [facts[head].of_kind(INSERTED)] if head in facts else []
        if head in removed:
            rows.append(work.uncovered(head, removed[head]))
        come = work.distinct(rows, relation.arity)
        if not come.shape[1]:
            continue
        there = relation.content.contains(come)
        work.relations[head] = as_facts(relation, np.compress(there, come, axis=1))
        fresh = np.compress(~there, come, axis=1)
        if fresh.shape[1]:
            held, work.round = work.round, 0
            new |= work.grow({head: [fresh]})
            work.round = held
    return new
