"""How each head follows changes, in words: the strategy's own, and how the last commit went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lftj.language.options import TRIGGERS
from lftj.maintain.choose import at_rest, named
from lftj.maintain.report import amount
from lftj.maintain.step import Step
from lftj.program.evaluation import Evaluation


def maintenance_of(step: Step, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """How `head` follows changes: `by` a strategy of `tx.stats`, and `why` so; `step` is at rest.

    `recorded` says whether there is a trace (or rounds) of it, `current` whether that holds for the present content;
    `support_bytes` are those of derivation counts and branch filters, `last_commit` the statistics of the last commit
    that derived the head, `rules` one dict per clause. Where it follows by delta, or is recursive, `joins`: one dict
    per clause, of their `plans`, or of those that `ran` in that commit. Of a recursive head the heads of its
    `component`, a bound of the `rounds`, and `bytes_per_row` in all key orders; `closure`: the clause that a transitive
    closure is run by, if it is written otherwise. `unfit`: why triggers, which were asked for, do not keep it.
    `evaluations`: those of its clauses.
    """
    heads = step.state.strata.heads_of(head)
    strategy, reason = at_rest(step, heads)
    report = step.kept.reports.get(head)
    found: dict[str, Any] = {
        "by": strategy.name,
        "why": "",
        "recorded": False,
        "current": False,
        "support_bytes": 0,
        "last_commit": None if report is None else report.stats(),
        "rules": [None for _ in evaluations],
    }
    if TRIGGERS in step.asked(heads) and strategy.name != TRIGGERS and (unfit := named(TRIGGERS).fits(step, heads)):
        found["unfit"] = unfit
    found |= strategy.explain(step, heads, head, evaluations)
    return found | {"why": found["why"] or reason}


def maintenance_lines(explained: Mapping[str, Any], indent: str) -> list[str]:
    """The lines about a head as a whole."""
    lines = named(explained["by"]).lines(explained, indent)
    if "unfit" in explained:
        lines.append(f"{indent}  not by triggers, as `maintain` asks: {explained['unfit']}")
    last = explained["last_commit"]
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
        what = (
            f"{' or '.join(plan['moves'])} moves in {plan['changed']}"
            if "moves" in plan
            else f"{plan['changed']} changes"
        )
        lines.append(f"{indent}when {what}: key order {', '.join(plan['key_order'])}; {expected}")
    for join in joins.get("ran", ()):
        how = f"key order {', '.join(join['key_order'])}; " if join["key_order"] else ""
        how += f"{', '.join(join['looked_up'])} looked up; " if join["looked_up"] else ""
        lines.append(f"{indent}last commit, {join['finds']}: {how}{ran_text(join)}")
    return lines


def ran_text(join: Mapping[str, Any]) -> str:
    """What a join of a component did."""
    counts = ", ".join(amount(join[what], what.removesuffix("s")) for what in ("runs", "rows", "steps"))
    return f"{counts}, {join['seconds']:.3f} s"
