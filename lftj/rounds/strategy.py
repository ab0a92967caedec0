"""How a recursive component follows a change: by maintaining its rounds, or evaluated again.

rounds      suspects are examined, what is new goes on from round to round (maintain.py)
recompute   from scratch, and compared: for bulk changes, where it is asked for, and where rounds are not known
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.engine.change import ERASED, INSERTED, Change
from lftj.engine.evaluate import Evaluation
from lftj.engine.recording import DECLARED
from lftj.engine.stored import StoredRelation
from lftj.engine.told import Counted, Reason
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.rounds.best import TooManyError, UnsettledError
from lftj.rounds.component import STOPS, not_among
from lftj.rounds.content import Noted, has_rounds
from lftj.rounds.evaluation import evaluate, joins_of, work_of
from lftj.rounds.joins import Joins
from lftj.rounds.maintain import maintain
from lftj.rounds.tally import Tallies

if TYPE_CHECKING:
    from lftj.engine.commit import Commit

# A change of such a part of what the rules read is evaluated anew, unless it is small in any case.
BULK_ROWS, BULK_PART = 1_000, 1 / 8
# The same where support goes: rows that may have lost theirs are looked at one by one, and each that goes has others
# looked at. If such a part of what is read goes, and with it as much of what is derived, that takes as long as storing
# all of it anew (bench.erased): for closures, which derive far more than they read, between one row in two hundred and
# one in fifty; for reachability, which derives less, later.
LOST_ROWS, LOST_PART = 100, 1 / 100
# A wish that recursive rules cannot be granted.
TRACE, UNTRACED = "trace", "recursive rules keep no traces"
# Wishes for being maintained, however much changes.
FORCED = (TRACE, "delta")
# Of rounds that are not maintained.
UNKNOWN = Noted(0, True)

Changes = dict[str, Change]


class Followed(NamedTuple):
    """What became of a component: its relations, how their contents differ, and how that was found.

    `more`: for the statistics of each head. `tallies`: of the component's joins.
    """

    relations: dict[str, StoredRelation]
    changes: dict[str, Change]
    evaluations: dict[Clause, Evaluation]
    strategy: str
    why: Reason
    steps: int
    more: dict[str, Any]
    tallies: Tallies


def follow(commit: Commit, heads: tuple[str, ...], limits: Limits) -> Followed:
    """The component `heads` after the changes of a commit."""
    anew, noted = _anew(commit, heads)
    if not anew:
        joins = joins_of(commit.staged, heads, as_written=noted.as_written)
        below, facts = _changes(commit, heads, joins)
        count = sum([len(change.kinds) for change in (*below.values(), *facts.values())])
        anew = _bulk(commit, heads, joins, below, facts, count)
    if not anew:
        try:
            return _maintained(commit, heads, joins, noted.top, below, facts, count, limits)
        except TooManyError as many:
            anew = str(many)
        except UnsettledError:
            anew = "values lost their support, and rules that are not monotone may find others"
    staged, before = commit.staged, commit.before.relations
    work, done = evaluate(staged, heads, limits)
    more = {"rounds": work.rounds, "examined": 0, "returned": 0}
    found = {head: work.relations[head] for head in heads}
    olds = {head: before[head].content if head in before else staged.relations[head].facts for head in heads}
    changes = {head: Change.between(olds[head], relation.content) for head, relation in found.items()}
    joins = work.joins
    return Followed(found, changes, done, "recompute", anew, joins.steps, more, joins.tallies)


def _maintained(
    commit: Commit,
    heads: tuple[str, ...],
    joins: Joins,
    top: int,
    below: Changes,
    facts: Changes,
    count: int,
    limits: Limits,
) -> Followed:
    staged, before = commit.staged, commit.before.relations
    work = work_of(staged, joins, heads, dict(staged.state.relations), limits)
    waiting = {head: work.relations[head].rest() for head in heads}
    try:
        retraction = maintain(work, before, below, facts, top)
    except STOPS as stop:
        raise work.told(stop) from None
    found: dict[str, StoredRelation] = {}
    changes: Changes = {}
    returned, removed = 0, retraction.rows_removed()
    for head in heads:
        relation, gone = work.relations[head], removed.get(head)
        change = work.change(head, before[head], [] if gone is None else [gone])
        relation.rested(waiting[head], change)
        if gone is not None:
            if joins.ops:  # of best values, others went too
                returned += not_among(gone, change.of_kind(ERASED)).shape[1]
            else:
                returned += gone.shape[1] - _count(change, ERASED)
        found[head], changes[head] = relation, change
    more = {"rounds": work.rounds, "examined": retraction.examined + work.examined, "returned": returned}
    wishes = staged.state.maintain
    traced = bool(wishes) and TRACE in {wishes.get(clause.rule) for clause in joins.clauses}
    why = Counted(count, UNTRACED if traced else "")
    return Followed(found, changes, {}, "rounds", why, joins.steps, more, joins.tallies)


def _anew(commit: Commit, heads: tuple[str, ...]) -> tuple[str, Noted]:
    """(why the component is evaluated from scratch, empty if its rounds are maintained; what is known of these)."""
    state, before = commit.staged.state, commit.before.relations
    if not commit.new_heads.isdisjoint(heads):
        return "evaluated for the first time", UNKNOWN
    if state.maintain:
        clauses = [clause for head in heads for clause in state.strata.of(head)]
        if any(state.maintain.get(clause.rule) == "recompute" for clause in clauses):
            return DECLARED, UNKNOWN
    noted = commit.staged.rounds.of([before[head].content for head in heads])
    if noted is None or not all(has_rounds(before[head]) for head in heads):
        return "its rounds are not known", UNKNOWN
    if not noted.as_written and (given := [head for head in heads if len(state.relations[head].facts)]):
        return f"`{given[0]}` has facts: its rules are run as they are written from here on", UNKNOWN
    return "", noted


def _changes(commit: Commit, heads: tuple[str, ...], joins: Joins) -> tuple[Changes, Changes]:
    """(the changes of what the component reads, those of its members' facts)."""
    before, relations = commit.before.relations, commit.staged.state.relations
    below = {name: change for name, change in commit.changes.items() if name in joins.below}
    facts: Changes = {}
    for head in heads:
        if relations[head].facts is not before[head].facts:
            facts[head] = Change.between(before[head].facts, relations[head].facts)
    return below, facts


def _bulk(commit: Commit, heads: tuple[str, ...], joins: Joins, below: Changes, facts: Changes, count: int) -> str:
    """Why changes of `count` rows are so many that the component is evaluated anew, unless it is forced; else empty."""
    if count < min(BULK_ROWS, LOST_ROWS):
        return ""
    state = commit.staged.state
    if state.maintain and not {state.maintain.get(clause.rule) for clause in joins.clauses}.isdisjoint(FORCED):
        return ""
    rows = sum(len(state.relations[name]) for name in joins.below)
    rows += sum(len(state.relations[head].facts) for head in heads)
    if count >= BULK_ROWS and count > BULK_PART * rows:
        return f"{count:,} rows changed where there are {rows:,}"
    lost = sum(_count(change, ERASED) for change in (*below.values(), *facts.values()))
    lost += sum(_count(change, INSERTED) for name, change in below.items() if name in joins.negates)
    derived = sum(len(state.relations[head]) for head in heads)
    if lost >= LOST_ROWS and lost * derived > LOST_PART * rows * (rows + derived):
        return f"{lost:,} rows that supported others went where there are {rows:,}"
    return ""


def _count(change: Change, kind: int) -> int:
    return int((change.kinds == kind).sum())
