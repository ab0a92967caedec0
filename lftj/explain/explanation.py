"""Explanations: how rules and queries are, or were, evaluated, as text and as JSON.

For each clause: its key order and why (estimated cost, or forced), the key order each atom reads, and one line per
depth with the estimated and the actual bindings. Actual figures are those of the last evaluation; before one there
are none. Then how the head follows changes, and what its trace keeps (`lftj.explain.maintenance`).

The heads of a recursive component are one stratum; under their rules stand the delta joins that ran in the last
evaluation, and in a line each those of the last commit, with what they did. Changed rows are Δ there.

A rule with braces, or with a negated conjunction, is taken apart into relations of its own (`@p.1`; see
`lftj.language.aggregates`). As text, each stands as a *part* under the rule that needs it, with the clause that derives
it, and is no stratum of its own; a part that several rules share stands under the first. As data, all are in one list,
and `parts` of a rule names those that stand under it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lftj import arguments, html
from lftj.explain.maintenance import join_lines, maintenance_lines, ran_text
from lftj.language.clause import INTERNAL, Clause
from lftj.maintain.report import amount, size
from lftj.maintain.trace import trace_lines
from lftj.plan.join_stats import figures, purpose
from lftj.plan.joinplan import ROOT_VARIABLE, JoinPlan
from lftj.recursion.variants import CHANGED
from lftj.store.order_stores import ScanOrder
from lftj.store.stored import StoredRelation

if TYPE_CHECKING:
    from lftj.program.evaluation import Evaluation


def statistics_of(evaluation: Evaluation) -> dict[str, Any]:
    """The counters of an evaluation: rows, steps, seeks, opens, matches per depth, seconds, key_order."""
    counters = evaluation.counters
    plan = evaluation.plan
    found: dict[str, Any] = {"key_order": [] if plan is None else list(plan.order), "seconds": evaluation.seconds}
    if counters is not None:
        found |= {
            "rows": counters.rows,
            "steps": counters.steps,
            "seeks": counters.seeks,
            "opens": counters.opens,
            "matches": list(counters.matches),
        }
    return found


def _node(plan: JoinPlan, node: int) -> str:
    """A trie node, changed rows being Δ."""
    return plan.node_text(node).replace(CHANGED, CHANGED.removeprefix(INTERNAL))


def _depths(plan: JoinPlan, matches: Sequence[int]) -> list[dict[str, Any]]:
    lines = []
    for d, depth in enumerate(plan.depths):
        if depth.variable == ROOT_VARIABLE:
            continue
        computed = str(depth.definition) if depth.definition is not None else None
        conditions = [f"{depth.variable} {op} {term}" for op, term in depth.bounds] + [str(c) for c in depth.filters]
        conditions += [f"not {_node(plan, i)}" for i in depth.negated]
        lines.append(
            {
                "variable": plan.shown.get(depth.variable, depth.variable),
                "how": f"= {computed}"
                if computed is not None
                else "rows of"
                if depth.counts
                else "leapfrog"
                if len(depth.participants) > 1
                else "scan",
                "participants": [_node(plan, i) for i in depth.participants],
                "conditions": conditions,
                "estimated_rows": depth.rows,
                "actual_rows": matches[d] if d < len(matches) else None,
                "counted_apart": depth.block > 0,
                "first_witness_only": d >= plan.until,
            }
        )
    return lines


def _plan(plan: JoinPlan, matches: Sequence[int]) -> dict[str, Any]:
    return {
        "key_order": list(plan.order),
        "forced": plan.forced,
        "estimated_cost": plan.cost,
        **({"instead_of": [late._asdict() for late in plan.abandoned]} if plan.abandoned else {}),
        "reads": [
            {"atom": text, "relation": predicate, "columns": list(order)} for text, predicate, order in plan.uses
        ],
        "guards": list(plan.guards),
        "voids": list(plan.voids),
        "sorted_output": plan.in_order,
        "depths": _depths(plan, matches),
    }


def _unwalked(evaluation: Evaluation) -> dict[str, Any]:
    """What `_plan` says, of a clause that was evaluated without a walk."""
    atoms = evaluation.clause.atoms
    return {
        "instead": evaluation.instead,
        "key_order": [],
        "forced": False,
        "estimated_cost": 0.0,
        "reads": [{"atom": str(atom), "relation": atom.predicate, "columns": []} for atom in atoms],
        "guards": [],
        "voids": [],
        "sorted_output": False,
        "depths": [],
    }


def _delta_plans(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The joins of a clause of a recursive component that ran in the last evaluation, the changed rows being Δ."""
    return [
        {"finds": purpose(key, stats.clause), **_plan(stats.plan, ()), "actual": figures(stats)}
        for key, stats in evaluation.ran
        if stats.plan is not None
    ]


def _clause(evaluation: Evaluation, threads: int) -> dict[str, Any]:
    plan, counters = evaluation.plan, evaluation.counters
    found: dict[str, Any] = {
        "rule": evaluation.clause.text or str(evaluation.clause),
        "clause": str(evaluation.clause),
        **(_unwalked(evaluation) if plan is None else _plan(plan, counters.matches if counters else ())),
    }
    if any(i is not None for (_, _, i), _ in evaluation.ran):
        found["delta_plans"] = _delta_plans(evaluation)
    if counters is not None:
        hidden = ("key_order", "matches", *(("seeks", "opens") if evaluation.ran else ()))
        found["actual"] = {k: v for k, v in statistics_of(evaluation).items() if k not in hidden}
        if threads > 1 and plan is not None:
            found["actual"] |= {"ranges": counters.ranges, "threads": threads if counters.ranges > 1 else 1}
    if evaluation.split is not None:
        found["texts"] = [f"{v} := {t}" for v, t in evaluation.split.definitions] + [
            str(c) for c in evaluation.split.filters
        ]
    if evaluation.inner is not None:
        found["first_part"] = _clause(evaluation.inner, threads)
    return found


class Explanation(str):
    """An explanation: a str for a terminal; `data` is the same as dicts and lists, `json()` as JSON."""

    data: dict[str, Any]

    def __new__(cls, data: dict[str, Any]) -> Explanation:
        """The explanation that `data` says."""
        made = super().__new__(cls, _whole(data))
        made.data = data
        return made

    def __getnewargs__(self) -> tuple[dict[str, Any]]:  # type: ignore[override]
        """What a copy, or one that was pickled, is made of."""
        return (self.data,)

    @classmethod
    def of_strata(
        cls,
        heads: Sequence[str],
        evaluations: Mapping[str, Sequence[Evaluation]],
        relations: Mapping[str, StoredRelation],
        upkeep: Mapping[str, dict[str, Any]],
        *,
        stale: set[str],
        threads: int = 1,
    ) -> Explanation:
        """The strata in evaluation order, each with its clauses, and the key orders that are built.

        `upkeep`: per head, `maintenance_of`; `threads`: of the database.
        """
        parts = _parts_of(heads, evaluations)
        strata = [
            {
                "relation": str(relations[head].schema),
                "name": head,
                "evaluated": head not in stale,
                "rows": len(relations[head]) if head not in stale else None,
                "rules": [
                    {**_clause(e, threads), "trace": trace, **joins, "parts": parts[id(e)]}
                    for e, trace, joins in _rules(evaluations[head], upkeep[head])
                ],
                "upkeep": {key: value for key, value in upkeep[head].items() if key not in ("rules", "joins")},
            }
            for head in heads
        ]
        read = {
            predicate
            for head in heads
            for evaluation in evaluations[head]
            for part in evaluation.parts()
            for predicate in part.clause.reads
            if predicate in relations
        }
        orders = {
            name: [
                {"columns": [relations[name].schema.names[c] for c in order], "bytes": bytes}
                for order, bytes in relations[name].memory().items()
                if not isinstance(order, ScanOrder)
            ]
            for name in sorted(read)
        }
        return cls({"strata": strata, "key_orders": orders})

    @classmethod
    def of_query(cls, clause: Clause, evaluation: Evaluation, threads: int = 1) -> Explanation:
        """The one clause of a query."""
        return cls({"query": _clause(evaluation, threads)})

    def json(self, indent: int | None = 2) -> str:
        """The explanation as JSON, in one line if `indent` is None."""
        if indent is not None and not isinstance(indent, int):
            raise arguments.refused("indent", indent, "it is a number of spaces, or None", "give `indent=2`")
        return json.dumps(self.data, indent=indent)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html.shown(html.text(self))


def _rules(
    evaluations: Sequence[Evaluation], upkeep: Mapping[str, Any]
) -> Iterator[tuple[Evaluation, dict[str, Any] | None, dict[str, Any]]]:
    """(an evaluation, its trace if there may be one, the joins it follows changes by if any) for each clause."""
    joins = upkeep.get("joins", ())
    named = [{"follows_by": found} for found in joins] if joins else [{} for _ in evaluations]
    return zip(evaluations, upkeep["rules"], named, strict=True)


def _parts_of(heads: Sequence[str], evaluations: Mapping[str, Sequence[Evaluation]]) -> dict[int, list[str]]:
    """By the id of an evaluation: the internal relations that stand under it, in evaluation order."""
    placed: set[str] = set()

    def needs(evaluation: Evaluation) -> Iterator[str]:
        for name in evaluation.clause.reads:
            if name.startswith(INTERNAL) and name not in placed and name in evaluations:
                placed.add(name)
                for other in evaluations[name]:
                    yield from needs(other)
                yield name

    named = [head for head in heads if not head.startswith(INTERNAL)]
    under = {id(e): list(needs(e)) for head in named for e in evaluations[head]}
    return {id(e): under.get(id(e), []) for head in heads for e in evaluations[head]}


def _whole(data: dict[str, Any]) -> str:
    """The text of an explanation."""
    if "query" in data:
        return "\n".join(_text(data["query"], ""))
    lines: list[str] = []
    strata = {stratum["name"]: stratum for stratum in data["strata"]}
    parts = {part for stratum in strata.values() for rule in stratum["rules"] for part in rule["parts"]}
    numbers: dict[tuple[str, ...], int] = {}
    for name in (name for name in strata if name not in parts):
        together = tuple(strata[name]["upkeep"].get("component", (name,)))
        number = numbers.setdefault(together, len(numbers) + 1)
        lines += _relation(f"stratum {number}:", strata[name], strata, "")
    shown = {name: orders for name, orders in data["key_orders"].items() if name not in parts}
    if shown:
        lines.append("key orders built:")
        for name, orders in shown.items():
            built = "; ".join(f"({', '.join(o['columns'])}) {size(o['bytes'])}" for o in orders)
            lines.append(f"  {name}: {built}")
    return "\n".join(lines) or "no rules"


def _relation(title: str, stratum: dict[str, Any], strata: Mapping[str, dict[str, Any]], indent: str) -> list[str]:
    """The lines of a derived relation; parts of its rules under these."""
    rows = amount(stratum["rows"], "row") if stratum["evaluated"] else "not evaluated"
    lines = [f"{indent}{title} {stratum['relation']}  {rows}"]
    for rule in stratum["rules"]:
        shown, at = rule, f"{indent}  "
        read = (*(read["relation"] for read in rule["reads"]), *rule["guards"], *rule["voids"])
        apart = not stratum["name"].startswith(INTERNAL) and any(
            name.startswith(INTERNAL) and name != CHANGED for name in read
        )
        if apart or rule["parts"]:
            lines.append(f"{at}{rule['rule']}")
            at += "  "
            for part in rule["parts"]:
                lines += _relation("part", strata[part], strata, at)
        if apart or rule["parts"] or stratum["name"].startswith(INTERNAL):
            shown = {**rule, "rule": rule["clause"]}
        if "delta_plans" in rule:
            lines.append(f"{at}{rule['rule']}")
            for plan in rule["delta_plans"]:
                lines += _text({**plan, "rule": plan["finds"]}, f"{at}  ")
        else:
            lines += _text(shown, at)
        if rule["trace"] is not None:
            lines += trace_lines(rule["trace"], f"{at}  ")
        if "follows_by" in rule:
            lines += join_lines(rule["follows_by"], f"{at}  ")
    return lines + maintenance_lines(stratum["upkeep"], f"{indent}  ")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.2g}"


def _text(rule: dict[str, Any], indent: str) -> list[str]:
    lines = [f"{indent}{rule['rule']}"]
    if "first_part" in rule:
        lines.append(f"{indent}  first:")
        lines += _text({**rule["first_part"], "rule": "the part that binds the texts' variables"}, indent + "    ")
    if "texts" in rule:
        lines.append(f"{indent}  texts: {'; '.join(rule['texts'])}")
    if "instead" in rule:
        lines.append(f"{indent}  without a walk: {rule['instead']}")
    else:
        how = "forced" if rule["forced"] else f"estimated {_number(rule['estimated_cost'])} steps"
        lines.append(f"{indent}  key order {', '.join(rule['key_order']) or '(none)'}  ({how})")
    for late in rule.get("instead_of", ()):
        took = f"abandoned after {late['steps']:,} steps, {_number(late['estimated'])} estimated"
        lines.append(f"{indent}    instead of {', '.join(late['order'])}: {took}")
    if rule["guards"]:
        lines.append(f"{indent}  only if not empty: {', '.join(rule['guards'])}")
    if rule["voids"]:
        lines.append(f"{indent}  only if empty: {', '.join(rule['voids'])}")
    if rule["depths"]:
        wide = max(len(d["variable"]) for d in rule["depths"])
        delta = "finds" in rule  # of these joins, which run in every round, depths are not counted
        lines.append(f"{indent}    {'':{wide}}  {'estimated':>11}{'' if delta else '      actual'}  reads")
        for d in rule["depths"]:
            what = (
                " & ".join(d["participants"])
                if d["how"] in ("leapfrog", "scan")
                else " & ".join([d["how"], *d["participants"]]).replace("rows of & ", "rows of ")
            )
            notes = [*d["conditions"]]
            if d["counted_apart"]:
                notes.append("counted apart")
            if d["first_witness_only"]:
                notes.append("first witness only")
            note = f"  [{'; '.join(notes)}]" if notes else ""
            rows = f"{_number(d['estimated_rows']):>11}"
            rows += "" if delta else f" {_number(d['actual_rows']):>11}"
            lines.append(f"{indent}    {d['variable']:{wide}}  {rows}  {what}{note}")
    if "actual" in rule:
        a = rule["actual"]
        if "runs" in a:
            return [*lines, f"{indent}  {ran_text(a)}"]
        counted = ("rows", "steps", *(() if "instead" in rule else ("seeks",)))
        done = ", ".join(amount(a[what], what.removesuffix("s")) for what in counted if what in a)
        by = ""
        if a.get("threads", 1) > 1:
            by = f", {a['ranges']} ranges of {rule['depths'][0]['variable']} on {a['threads']} threads"
        elif "threads" in a:
            by = ", on one thread"
        lines.append(f"{indent}  {done}, {a['seconds']:.3f} s{by}")
    return lines
