"""What `explain` says about following changes: how each head does it, what its traces keep, and how it last went.

For each clause of a head that may have a trace: the granularity of each depth and why, and the indexes, each with its
records and bytes. They are those of the recorded trace or, before one is recorded, what would be recorded with the plan
the clause has now. For a recursive head: its rounds, and what the joins of its component did in the last commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lftj.engine.aggregate import reading
from lftj.engine.recording import DECLARED, deltas_of, planned_trace
from lftj.engine.shared import shared_with
from lftj.engine.strategy import why_untraced
from lftj.paths.declare import counts_paths
from lftj.plan.joinplan import ROOT_VARIABLE, JoinPlan
from lftj.plan.traceplan import TracePlan
from lftj.rounds.closure import as_run, run_as_written, written_of
from lftj.rounds.content import Noted, has_rounds
from lftj.rounds.tally import Tallies, Tally, of_clause, purpose
from sensitivity.records import NAMES, NONE

if TYPE_CHECKING:
    from lftj.engine.clausedelta import ClauseDelta
    from lftj.engine.evaluate import Evaluation, Evaluator
    from lftj.engine.headtrace import Traces
    from lftj.engine.state import State
    from lftj.engine.trace import ClauseTrace
    from lftj.language.clause import Clause


def upkeep_of(evaluator: Evaluator, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """How `head` follows changes: `by` a strategy of `tx.stats`, and `why` so.

    `recorded` says whether there is a trace (or rounds) of it, `current` whether that holds for the present content;
    `support_bytes` are those of derivation counts and branch filters, `last_commit` the statistics of the last commit
    that derived the head, `rules` one dict per clause. Where it follows by delta, or is recursive, `joins`: one dict
    per clause, of their `plans`, or of those that `ran` in that commit. Of a recursive head the heads of its
    `component`, a bound of the `rounds`, and `bytes_per_row` in all key orders; `closure`: the clause that a transitive
    closure is run by, if it is written otherwise. `evaluations`: those of its clauses.
    """
    state, traces = evaluator.state, evaluator.traces
    clauses = tuple(state.strata.of(head))
    if members := state.together(head):
        shown = ", ".join(f"`{member}`" for member in members)
        relation = state.relations[head]
        noted = None if head in state.stale else evaluator.rounds.of([relation.content])
        return {
            "by": "rounds",
            "why": f"{shown} {'is' if len(members) == 1 else 'are'} recursive",
            "recorded": has_rounds(relation),
            "current": head not in state.stale,
            "support_bytes": 0,
            "last_commit": _told(traces, head),
            "rules": [None for _ in clauses],
            "component": list(members),
            "rounds": None if noted is None else noted.top,
            "closure": _closure(state, members, noted),
            "bytes_per_row": sum(relation.memory().values()) / max(1, len(relation)),
            "joins": [{"ran": _ran(traces.ran.get(head, {}), clause)} for clause in clauses],
        }
    if clauses and counts_paths(clauses[0]):
        return {
            "by": "products",
            "why": "an edge changes the counts by the paths to it times the paths from it",
            "recorded": True,
            "current": head not in state.stale,
            "support_bytes": 0,
            "last_commit": _told(traces, head),
            "rules": [None for _ in clauses],
        }
    wishes = {state.maintain.get(c.rule) for c in clauses}
    untraced = why_untraced(clauses, state)
    found_by = reading(evaluator, clauses[0]) if clauses else None
    scanned = ""
    if found_by is not None and "recompute" not in wishes:
        scanned = untraced = found_by.said(state.relations[found_by.relation])
    held = traces.heads.get(head)
    below = shared_with(clauses, state.relations) if held is None and "recompute" not in wishes else ""
    shared = bool(below) and not len(state.relations[head].facts)
    if shared:
        untraced = f"it has the rows of `{below}`"
    if held is not None and (untraced or held.clauses != clauses):
        held = None
    deltas: Sequence[Any] = ()
    reason = ""
    if not untraced:
        deltas, reason = deltas_of(evaluator, clauses, state)
        if held is not None:
            # Of what was chosen when relations had other sizes, the reasons are not known any more.
            reason = reason if bool(deltas) == held.by_delta else ""
            deltas = held.traces if held.by_delta else ()
    by_delta = bool(deltas)
    by = "delta" if by_delta else "trace"
    found: dict[str, Any] = {
        "by": "scan" if scanned else "shared" if shared else "recompute" if untraced else by,
        "why": untraced or (DECLARED if by in wishes else reason),
        "recorded": held is not None,
        "current": held is not None and head not in state.stale and held.holds_for(clauses, state.relations, head),
        "support_bytes": 0 if held is None else held.memory(),
        "last_commit": _told(traces, head),
    }
    if untraced or by_delta:
        return found | {"rules": [None for _ in clauses], "joins": [{"plans": _plans(delta)} for delta in deltas]}
    if held is not None:
        return found | {"rules": [_parts(trace.parts) for trace in held.traces]}
    rules = []
    for evaluation in evaluations:
        # Of a clause that computes texts, the first part: what the others will read is not there yet.
        *_, first = evaluation.parts()
        rules.append(_rule(*planned_trace(evaluator, first.clause), None))
    return found | {"rules": rules}


def _closure(state: State, members: tuple[str, ...], noted: Noted | None) -> str | None:
    """The clause that a transitive closure is run by, if it is written otherwise."""
    written = written_of(state.strata, members)
    run = as_run(written, as_written=run_as_written(state, members) if noted is None else noted.as_written)
    return next((str(clause) for clause, other in zip(run, written, strict=True) if clause != other), None)


def _told(traces: Traces, head: str) -> dict[str, Any] | None:
    """The statistics of the last commit that derived a head."""
    told = traces.told.get(head)
    return None if told is None else told.stats()


def _ran(tallies: Tallies, clause: Clause) -> list[dict[str, Any]]:
    """What the joins of a clause of a component did in the last commit."""
    found = []
    for key, tally in of_clause(tallies, clause):
        plan = tally.plan
        order, looked_up = ([], []) if plan is None else (list(plan.order), list(plan.looked_up))
        planned = {"key_order": order, "looked_up": looked_up}
        found.append({"finds": purpose(key, tally.clause), **planned, **figures(tally)})
    return found


def _plans(delta: ClauseDelta) -> list[dict[str, Any]]:
    """The plans of a clause that is followed by delta: one per atom."""
    return [{"changed": v.shown, "key_order": list(v.plan.order), "steps_per_row": v.steps} for v in delta.variants]


def figures(tally: Tally) -> dict[str, Any]:
    """What a join did, for explanations."""
    return {"runs": tally.runs, "rows": tally.rows, "steps": tally.steps, "seconds": tally.seconds}


def _parts(parts: Sequence[ClauseTrace]) -> dict[str, Any]:
    """What the trace of a clause keeps: of its first part, and under "then" of those after it, where it has more."""
    first, *others = [_rule(part.plan, part.trace_plan, part) for part in parts]
    return first | ({"then": others} if others else {})


def _rule(plan: JoinPlan, chosen: TracePlan, trace: ClauseTrace | None) -> dict[str, Any]:
    """What the trace of a clause keeps: the granularity of each depth with its reason, and the indexes."""
    depths = []
    for d, depth in enumerate(plan.depths):
        if depth.variable == ROOT_VARIABLE:
            continue
        kinds = [site.granularity for site in chosen.sites if site.depth == d]
        depths.append(
            {
                "variable": plan.shown.get(depth.variable, depth.variable),
                "granularity": NAMES[kinds[0]] if kinds else NAMES[NONE],
                "why": chosen.reasons[d],
            }
        )
    indexes = []
    for s in chosen.recorded:
        depth = plan.depths[chosen.sites[s].depth]
        indexes.append(
            {
                "participant": plan.node_text(chosen.sites[s].frame),
                "variable": plan.shown.get(depth.variable, depth.variable),
                "records": None if trace is None else trace.indexes.count(s),
                "bytes": None if trace is None else trace.indexes.memory(s),
            }
        )
    return {"key_order": list(plan.order), "depths": depths, "indexes": indexes}


def upkeep_lines(upkeep: Mapping[str, Any], indent: str) -> list[str]:
    """The lines about a head as a whole."""
    if upkeep["by"] == "rounds":
        lines = [f"{indent}follows changes by rounds: {upkeep['why']}"]
        if upkeep["current"] and upkeep["rounds"] is not None:
            lines[0] += f"; rounds up to {upkeep['rounds']:,}, {upkeep['bytes_per_row']:,.0f} bytes a row"
        if upkeep["closure"] is not None:
            lines.append(f"{indent}  a transitive closure, run as {upkeep['closure']}")
    elif upkeep["by"] == "delta":
        why = ", as declared" if upkeep["why"] == DECLARED else ""
        lines = [f"{indent}follows changes by delta{why}: what changed in an atom is joined with the others"]
        if upkeep["support_bytes"]:
            lines.append(f"{indent}  support: {size(upkeep['support_bytes'])}")
    elif upkeep["by"] == "scan":
        lines = [f"{indent}follows changes by scans: {upkeep['why']}"]
    elif upkeep["by"] == "shared":
        lines = [f"{indent}follows changes without work: {upkeep['why']}"]
    elif upkeep["by"] == "products":
        lines = [f"{indent}follows changes by products: {upkeep['why']}"]
    elif upkeep["by"] == "recompute":
        lines = [f"{indent}follows changes by evaluation: {upkeep['why']}"]
    else:
        why = ", as declared" if upkeep["why"] == DECLARED else ""
        held = "not recorded yet"
        if upkeep["recorded"]:
            held = "recorded" if upkeep["current"] else "outdated: the next commit records it again"
        lines = [f"{indent}follows changes by its trace{why} ({held})"]
        if upkeep["support_bytes"]:
            lines.append(f"{indent}  support and filters: {size(upkeep['support_bytes'])}")
    if upkeep["by"] in ("delta", "trace") and upkeep["why"] not in ("", DECLARED):
        lines.insert(1, f"{indent}  {upkeep['why']}")
    last = upkeep["last_commit"]
    if last is not None:
        what = f"records +{last['added']:,} -{last['removed']:,}"
        if "rounds" in last:
            back = f" ({last['returned']:,} returned)"
            what = f"{amount(last['rounds'], 'round')}, {amount(last['examined'], 'row')} examined{back}"
        done = f"{last['strategy']}, {amount(last['steps'], 'step')}, {what}, {last['seconds'] * 1e3:.3f} ms"
        lines += [f"{indent}last commit: {done}", f"{indent}  {last['why']}"]
    return lines


def join_lines(joins: Mapping[str, Any], indent: str) -> list[str]:
    """The lines about the joins that one rule follows changes by: how they are planned, or what they last did."""
    lines = []
    for plan in joins.get("plans", ()):
        expected = f"about {amount(max(1, round(plan['steps_per_row'])), 'step')} a changed row"
        lines.append(f"{indent}when {plan['changed']} changes: key order {', '.join(plan['key_order'])}; {expected}")
    for join in joins.get("ran", ()):
        how = f"key order {', '.join(join['key_order'])}; " if join["key_order"] else ""
        how += f"{', '.join(join['looked_up'])} looked up; " if join["looked_up"] else ""
        lines.append(f"{indent}last commit, {join['finds']}: {how}{ran_text(join)}")
    return lines


def ran_text(join: Mapping[str, Any]) -> str:
    """What a join of a component did."""
    counts = ", ".join(amount(join[what], what.removesuffix("s")) for what in ("runs", "rows", "steps"))
    return f"{counts}, {join['seconds']:.3f} s"


def trace_lines(rule: Mapping[str, Any], indent: str) -> list[str]:
    """The lines about the trace of one clause."""
    wide = max((len(d["variable"]) for d in rule["depths"]), default=0)
    lines = [f"{indent}trace (key order {', '.join(rule['key_order'])})"]
    for d in rule["depths"]:
        lines.append(f"{indent}  {d['variable']:{wide}}  {d['granularity']:8}  {d['why']}")
        for index in rule["indexes"]:
            if index["variable"] == d["variable"] and index["records"] is not None:
                records = f"{amount(index['records'], 'record')}, {size(index['bytes'])}"
                lines.append(f"{indent}  {'':{wide}}  {'':8}  {index['participant']}: {records}")
    for part in rule.get("then", ()):
        lines += trace_lines(part, indent)
    return lines


def amount(count: int, noun: str) -> str:
    """The count with its noun: 1 row, 2 rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(bytes: int) -> str:
    """Bytes for people."""
    return f"{bytes / 1e6:,.1f} MB" if bytes >= 50_000 else f"{bytes / 1e3:,.1f} kB"
