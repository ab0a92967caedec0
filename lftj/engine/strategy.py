"""How a head follows a change: by the traces of its rules, by their deltas, or by evaluating them again.

    shared      the head is another relation under a new name, and has its content (shared.py)
    trace       what the change concerns is redone, the rest stands; needs traces of the state before
    delta       what changed in each atom is joined with the other atoms (clausedelta.py); needs key orders, no traces
    scan        a min, max or cat: of the groups that a change touches the result is read anew (extremes.py)
    record      the head is evaluated over the state after, recording its traces, and compared with what it was
    recompute   the same without recording: for bulk changes, and where traces are not wanted or not possible
    products    path counts (lftj/paths/follow.py), and of these "copy", as numbers for rules

A head whose traces are at hand is maintained, unless that is estimated to take longer than evaluating. Both are
estimated from counts, which do not depend on the machine: steps, records and rows when it was last recorded, and the
steps that the planner expects of a changed row of each relation, corrected by those that it last took to maintain. A
head without traces is recorded: this transaction costs an evaluation anyway, the next ones will not. Where deltas are
expected to do better than traces (recording.deltas_of) nothing is recorded, and nothing evaluated unless derivations
have to be counted. A rule that only asks whether a relation is empty is evaluated again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lftj.engine import extremes
from lftj.engine.aggregate import accumulates, followed, reading, recorded
from lftj.engine.change import Change, change_of_rows
from lftj.engine.clausedelta import ClauseDelta
from lftj.engine.derive import derive
from lftj.engine.estimates import Anew
from lftj.engine.evaluate import Evaluation
from lftj.engine.extremes import Reading
from lftj.engine.headtrace import (
    HeadTrace,
    StagedTrace,
    derives_once,
    support_of,
    supported_change,
)
from lftj.engine.recording import DECLARED, count_clause, deltas_of, known_by_row, record_clause
from lftj.engine.refused import Refused, refused_groups
from lftj.engine.shared import shared_with
from lftj.engine.state import State
from lftj.engine.stored import BULK_PART, BULK_ROWS
from lftj.engine.textsteps import parts_of
from lftj.engine.texttrace import TextTrace
from lftj.engine.told import Reason, Weighed
from lftj.engine.undefined import look_for_error
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.paths.declare import counts_paths
from lftj.plan.body import body_of
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.engine.commit import Commit


class RuleWork(NamedTuple):
    """What one rule took: the place of its clause, steps, records removed and added, surgeries looked at, seconds."""

    clause: int
    steps: int
    removed: int
    added: int
    surgeries: int
    seconds: float


class Derived(NamedTuple):
    """A head's new content, how it differs from the old, how it was found and why so, and what is to be adopted.

    `work`: what the rules took that had anything to do. `refused`: the groups without a result, of an aggregate.
    """

    content: Version
    change: Change
    evaluations: dict[Clause, Evaluation]
    strategy: str
    why: Reason
    steps: int
    removed: int
    added: int
    staged: StagedTrace | None
    work: list[RuleWork]
    refused: tuple[Refused, ...] = ()


def derive_head(commit: Commit, head: str, limits: Limits) -> Derived:
    """The new content of `head` in a commit."""
    strata = commit.staged.state.strata
    clauses = tuple(strata.of(head))
    if clauses and counts_paths(clauses[0]):
        from lftj.paths.follow import follow_paths

        return follow_paths(commit, clauses[0], limits)
    found = reading(commit.staged, clauses[0]) if clauses else None
    held = None
    if found is None:
        mode, why, held = _mode(commit, head, clauses)
    else:
        mode, why = _mode_of_scan(commit, head, clauses[0], found)
    if found is not None and mode == "scan":
        return _scan(commit, head, found, why, limits)
    if mode == "shared":
        return _share(commit, head, clauses, why)
    if held is not None:
        return _maintain(commit, head, clauses, held, why, limits)
    if mode in ("record", "delta"):
        return _record(commit, head, clauses, mode, why, limits)
    commit.untraced.add(head)
    content, done, refused = derive(commit.staged, head, limits)
    old = commit.staged.relations[head].content
    change = Change.between(old, content)
    work = []
    for i, clause in enumerate(clauses):
        taken = sum(part.counters.steps for part in done[clause].parts() if part.counters)
        work.append(RuleWork(i, taken, 0, 0, 0, done[clause].seconds))
    steps = sum(rule.steps for rule in work)
    return Derived(_kept(old, content, change), change, done, "recompute", why, steps, 0, 0, None, work, refused)


def _mode(commit: Commit, head: str, clauses: tuple[Clause, ...]) -> tuple[str, Reason, HeadTrace | None]:
    """(strategy, why, what the head is maintained by if that is the strategy).

    Without the latter "record" and "delta" say what is to be made for the next commits, while the head is evaluated.
    """
    state = commit.staged.state
    wishes: Collection[str] = ()
    if state.maintain:
        wishes = {state.maintain.get(c.rule, "auto") for c in clauses}
    if "recompute" in wishes:
        return "recompute", DECLARED, None
    held = commit.traces.heads.get(head)
    outdated = held is not None and (
        head in commit.new_heads or not held.holds_for(clauses, commit.before.relations, head)
    )
    if held is None or outdated:
        held = None
        if below := _shared(commit, head, clauses):
            return "shared", f"it has the rows of `{below}`", None
        if untraced := why_untraced(clauses, state):
            return "recompute", untraced, None
    deltas: list[ClauseDelta] = []
    if held is None:
        planned = state if head in commit.new_heads else commit.before
        deltas, _ = deltas_of(commit.staged, clauses, planned)
    by_delta = held.by_delta if held is not None else bool(deltas)
    forced = ("delta" if by_delta else "trace") in wishes
    if held is None and by_delta:
        held = _begun(commit, head, clauses, deltas)
    bulk = "" if forced else _bulk(commit, clauses)
    # What deltas take is known well enough to be weighed; records that go and come beside them are not.
    if bulk and not (held is not None and by_delta):
        return "recompute", bulk, None
    if held is None:
        if by_delta:
            return "delta", "its derivations are not counted yet", None
        return "record", "its trace is outdated" if outdated else "there is no trace of it yet", None
    strategy = "delta" if by_delta else "trace"
    if forced:
        return strategy, DECLARED, held
    changed, estimate = held.estimate(commit.changes, commit.staged.relations)
    anew = held.anew(len(commit.staged.relations[head]))
    why = Weighed(changed, estimate, anew)
    if estimate <= anew:
        return strategy, why, held
    return "recompute" if bulk else "delta" if by_delta else "record", why, None


def _begun(commit: Commit, head: str, clauses: tuple[Clause, ...], deltas: list[ClauseDelta]) -> HeadTrace | None:
    """What `head` can be followed by from here on, its content being at hand, without evaluating it once more.

    None if derivations have to be counted.
    """
    relation = commit.before.relations.get(head)
    clause = clauses[0]
    done = commit.before.evaluations.get(clause)
    if head in commit.new_heads or len(clauses) > 1 or relation is None or done is None or done.counters is None:
        return None
    if accumulates(clause) or len(relation.facts) or not derives_once(replace(done.plan, until=len(done.plan.depths))):
        return None
    counters = done.counters
    recorded = Anew(counters.opens, counters.seeks, counters.rows, len(relation))
    return HeadTrace(clauses, [*deltas], None, {}, recorded)


def _shared(commit: Commit, head: str, clauses: tuple[Clause, ...]) -> str:
    """The relation whose content `head` may share, and whose change is its own; empty if there is none."""
    before, after = commit.before.relations, commit.staged.relations
    if head in commit.new_heads or len(before[head].facts) or len(after[head].facts):
        return ""
    below = shared_with(clauses, after)
    return below if shared_with(clauses, before) else ""


def _kept(old: Version, new: Version, change: Change) -> Version:
    """The old content where the new one is equal; but one that was shared ends with the sharing."""
    return new if len(change.kinds) or old.store is not new.store else old


def _mode_of_scan(commit: Commit, head: str, clause: Clause, found: Reading) -> tuple[str, str]:
    """(strategy, why) of a head that can be followed by scans."""
    wish = commit.staged.state.maintain.get(clause.rule, "auto")
    if wish == "recompute":
        return "recompute", DECLARED
    if head in commit.new_heads or found.relation not in commit.changes:
        return "recompute", "there is nothing to go on from"
    if wish != "trace" and (bulk := _bulk(commit, (clause,))):
        return "recompute", bulk
    return "scan", found.said(commit.staged.relations[found.relation])


def _bulk(commit: Commit, clauses: tuple[Clause, ...]) -> str:
    """Why the change is so large that traces do not pay; empty if it is not.

    Then the head is evaluated without recording, for more of the kind may follow; the next small change records it.
    """
    if sum(len(change.kinds) for change in commit.changes.values()) < BULK_ROWS:
        return ""
    names = {name for clause in clauses for name in clause.reads}
    changed = sum(len(commit.changes[name].kinds) for name in names if name in commit.changes)
    if changed < BULK_ROWS:
        return ""
    rows = sum(len(commit.staged.relations[name]) for name in names)
    return f"{changed:,} rows changed where there are {rows:,}" if changed > BULK_PART * rows else ""


def why_untraced(clauses: Sequence[Clause], state: State) -> str:
    """Why a head with these clauses keeps no trace; empty if it may have one."""
    if any(state.maintain.get(c.rule) == "recompute" for c in clauses):
        return DECLARED
    bodies = [body_of(part) for c in clauses for part in parts_of(c)]
    if any(body.guards or body.voids for body in bodies):
        return "a rule asks whether a relation is empty"
    return ""


def _share(commit: Commit, head: str, clauses: tuple[Clause, ...], why: Reason) -> Derived:
    below = clauses[0].atoms[0].predicate
    commit.untraced.add(head)
    content, change = commit.staged.relations[below].content, commit.changes[below]
    return Derived(content, change, {}, "shared", why, 0, 0, 0, None, [])


def _scan(commit: Commit, head: str, found: Reading, why: Reason, limits: Limits) -> Derived:
    relations, began = commit.staged.relations, time.perf_counter()
    content, below = relations[head].content, commit.changes[found.relation]
    change, steps = extremes.followed(found, relations[found.relation], below, content, commit.staged.symbols)
    limits.look(len(change.kinds))
    if len(change.kinds):
        content, _ = content.update(change.rows, change.kinds)
    work = RuleWork(0, steps, 0, 0, len(below.kinds), time.perf_counter() - began)
    return Derived(content, change, {}, "scan", why, steps, 0, 0, None, [work])


def _record(commit: Commit, head: str, clauses: tuple[Clause, ...], mode: str, why: Reason, limits: Limits) -> Derived:
    """Evaluate the head anew; `mode` says what for the next commits: "record" its traces, or prepare for "delta"."""
    staged, relations = commit.staged, commit.staged.relations
    relation = relations[head]
    traces, chunks, done, work = [], [], {}, []
    for i, clause in enumerate(clauses):
        began = time.perf_counter()
        trace, rows, evaluation = (record_clause if mode == "record" else count_clause)(staged, clause, limits)
        chunks += rows
        traces.append(trace)
        seconds = time.perf_counter() - began
        evaluation.seconds = seconds
        done[clause] = evaluation
        kept = sum(part.indexes.count(s) for part in trace.parts for s in part.indexes.packings)
        work.append(RuleWork(i, trace.counters.steps, 0, kept, 0, seconds))
        if trace.trouble:
            look_for_error(staged, clause, limits)
    once = len(traces) == 1 and known_by_row(traces[0])
    support, accumulators = None, None
    if accumulates(clauses[0]):
        accumulators, chunks = recorded(staged, clauses[0], chunks)
    elif not once or len(relation.facts):
        support = support_of(staged.arena, relation.arity, chunks, page_rows=staged.page_rows, dir_rows=staged.dir_rows)
    in_order = accumulators is not None or (once and evaluation.sorted and not len(relation.facts))
    if len(relation.facts):
        chunks.append(relation.facts.columns())
    content = relation.assemble(chunks, in_order=in_order)
    change = Change.between(relation.content, content)
    content = _kept(relation.content, content, change)
    records = sum(rule.added for rule in work)
    opens, seeks, rows = (sum(getattr(t.counters, what) for t in traces) for what in ("opens", "seeks", "rows"))
    texts = sum(trace.stepped_rows for trace in traces if isinstance(trace, TextTrace))
    held = HeadTrace(clauses, traces, support, {}, Anew(opens, seeks, rows, len(content), records, texts))
    plan_for = StagedTrace(head, held, content, relations, support=support, accumulators=accumulators)
    steps = sum(rule.steps for rule in work)
    strategy = "record" if mode == "record" else "recompute"
    refused = () if accumulators is None else refused_groups(clauses[0], accumulators.lacking)
    return Derived(content, change, done, strategy, why, steps, 0, records, plan_for, work, refused)


def _maintain(
    commit: Commit, head: str, clauses: tuple[Clause, ...], held: HeadTrace, why: Reason, limits: Limits
) -> Derived:
    before, after = commit.before.relations, commit.staged.relations
    relation = after[head]
    staged = StagedTrace(head, held, relation.content, after, support=held.support)
    erased, inserted = [], []
    steps = removed = added = 0
    work = []
    try:
        for i, trace in enumerate(held.traces):
            changes = {
                order: commit.trace_change(order, whole=order in trace.whole)
                for order in trace.watched
                if order[0] in commit.changes
            }
            if not changes:
                continue
            began = time.perf_counter()
            result = trace.maintain(
                {order: before[order[0]].order(order[1]) for order in trace.orders},
                {o: after[o[0]].order_after(o[1], before[o[0]], commit.changes.get(o[0])) for o in trace.orders},
                changes,
                limits,
            )
            staged.maintained.append((trace, result))
            if result.trouble:
                look_for_error(commit.staged, clauses[i], limits)
            seconds = time.perf_counter() - began
            work.append(RuleWork(i, result.steps, result.removed, result.added, result.surgeries, seconds))
            steps, removed, added = steps + result.steps, removed + result.removed, added + result.added
            erased += result.erased
            inserted += result.inserted
        facts_before, facts = before[head].facts if head in before else relation.facts, relation.facts
        if held.accumulators is not None:
            staged.accumulators, change = followed(clauses[0], held.accumulators, erased, inserted)
        elif held.support is None and facts is facts_before:
            change = change_of_rows(relation.arity, erased, inserted)
        else:
            support = held.support
            if support is None:
                support = support_of(
                    commit.staged.arena,
                    relation.arity,
                    [relation.content.columns()],
                    page_rows=commit.staged.page_rows,
                    dir_rows=commit.staged.dir_rows,
                )
            fact_change = Change.between(facts_before, facts)
            staged.support, change = supported_change(support, before[head], facts, fact_change, erased, inserted)
        if len(change.kinds):
            staged.content, _ = relation.content.update(change.rows, change.kinds)
    except BaseException:
        staged.discard()
        raise
    held.learn(commit.changes, steps)
    return Derived(
        staged.content,
        change,
        {},
        "delta" if held.by_delta else "trace",
        why,
        steps,
        removed,
        added,
        staged,
        work,
        () if staged.accumulators is None else refused_groups(clauses[0], staged.accumulators.lacking),
    )
