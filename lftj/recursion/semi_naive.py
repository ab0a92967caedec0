"""Evaluating a component from scratch: semi-naive, round by round.

    round 0   facts
    round 1   what the rules derive from the strata below, and from facts of the component
    round r   what has a derivation with a row of round r - 1, and is not there yet

Of best values a round stores only what is better than the present value of its key, in the place of that
(min_max_fixpoint.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Counters, Limits
from lftj.language.clause import Clause
from lftj.plan.join_stats import of_clause, total
from lftj.program.evaluation import Evaluation
from lftj.recursion import variants
from lftj.recursion.closure import as_run, run_as_written, written_of
from lftj.recursion.component_joins import DeltaJoin, Joins
from lftj.recursion.fixpoint import STOPS, Deltas, Fixpoint, settle
from lftj.recursion.min_max_fixpoint import MinMaxFixpoint
from lftj.recursion.round_column import with_rounds
from lftj.store.stored import StoredRelation

Rows = npt.NDArray[np.int64]


def joins_of(evaluator: Evaluator, heads: tuple[str, ...], *, as_written: bool) -> Joins:
    """The variants of the clauses of `heads`, kept from one evaluation to the next.

    `as_written`: of the clauses as they are written; else they are those of a closure, and run as such. What is kept of
    a join has the codes of constants, so where parameters have values there are new ones.
    """
    strata, kept = evaluator.state.strata, {} if evaluator.given else evaluator.rounds.joins
    joins: Joins | None = kept.get((heads, as_written))
    relations = evaluator.relations
    # A table of the same name may have other primary keys, or one that a transaction has broken so far.
    if joins is not None and any(n not in relations or relations[n].key != key for n, key in joins.keys.items()):
        joins = None
    if joins is None or joins.strata is not strata:
        written = written_of(strata, heads)
        if joins is None or joins.written != written:
            for others in [others for others in kept if strata.recursive.get(others[0][0]) != others[0]]:
                del kept[others]
            kept[heads, as_written] = joins = Joins(written, as_run(written, as_written=as_written), heads)
            joins.keys = {name: relations[name].key for name in joins.below}
        joins.strata = strata
    joins.begin()
    return joins


def fixpoint_kind(
    joins: Joins,
) -> Callable[[Evaluator, Joins, tuple[str, ...], dict[str, StoredRelation], Limits], Fixpoint]:
    """What makes the component of `joins` over relations, before anything is done."""
    return partial(MinMaxFixpoint, ops=joins.ops) if joins.ops else Fixpoint


def _evaluate(fixpoint: Fixpoint) -> None:
    joins = fixpoint.joins
    new: Deltas = {}
    for head in fixpoint.heads:
        relation = fixpoint.relations[head]
        facts = relation.facts.columns()
        fixpoint.relations[head] = with_rounds(relation, facts, 0)
        fixpoint.private.add(fixpoint.relations[head].content)
        if len(relation.facts):
            new[head] = facts if relation.arity else np.empty((0, 1), np.int64)
    fixpoint.begin_round(1)
    found: dict[str, list[Rows]] = {}
    for c, clause in enumerate(joins.clauses):
        if not joins.members & clause.reads.keys():
            found.setdefault(clause.head, []).append(fixpoint.run(joins.delta_rule(c, None), fixpoint.relations))
    for name, rows in new.items():
        fixpoint.ask(joins.delta_rules(name), fixpoint.relations, rows, found)
    fixpoint.go_on(fixpoint.grow(found))
    settle(fixpoint)
    fixpoint.finish()


def evaluate(evaluator: Evaluator, heads: tuple[str, ...], limits: Limits) -> tuple[Fixpoint, dict[Clause, Evaluation]]:
    """The component `heads` over the evaluator's state, from scratch: its relations are in `Fixpoint.relations`."""
    joins = joins_of(evaluator, heads, as_written=run_as_written(evaluator.state, heads))
    fixpoint = fixpoint_kind(joins)(evaluator, joins, heads, dict(evaluator.relations), limits)
    fixpoint.anew = True
    try:
        _evaluate(fixpoint)
    except STOPS as stop:
        raise fixpoint.located(stop) from None
    for head in heads:
        evaluator.rounds.note(fixpoint.relations[head].content, fixpoint.round, as_written=joins.as_written)
    done = {}
    for c, clause in enumerate(joins.written):
        first, ran = joins.any_delta_rule(c), tuple(of_clause(joins.join_stats, clause))
        if first.texts:
            described = evaluator.describe(clause)
        else:
            plan = first.plan({**fixpoint.relations, variants.CHANGED: _none(fixpoint, first)})
            described = Evaluation(clause, plan)
        all_runs = total(joins.join_stats, clause)
        counters = Counters(rows=all_runs.rows, steps=all_runs.steps)
        done[clause] = replace(described, counters=counters, seconds=all_runs.seconds, ran=ran)
    return fixpoint, done


def _none(fixpoint: Fixpoint, join: DeltaJoin) -> StoredRelation:
    """No changed rows, of the arity that `join` reads."""
    columns = next((len(a.args) for a in join.clause.atoms if a.predicate == variants.CHANGED), 0)
    return fixpoint.changed(np.empty((columns, 0), np.int64))
