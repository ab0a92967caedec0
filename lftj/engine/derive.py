"""Deriving heads by evaluation: one head anew, and all stale ones that somebody asks for.

A load makes everything above the loaded relation stale; asking for a relation evaluates the stale ones below it, in
the order of the strata, and then itself. A relation is published when all of its clauses are evaluated, so a stop in
between (Ctrl-C, time-out, an error in a rule) leaves every published content as it was, and the rest stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.engine.aggregate import aggregated
from lftj.engine.evaluate import Evaluation, Evaluator
from lftj.engine.functional import check_content
from lftj.engine.refused import Refused, refused_groups, refused_in, refused_together
from lftj.engine.state import State
from lftj.errors import EvaluationError, TimeoutExpired
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.paths.declare import counts_paths
from scantree.version import Version

Rows = npt.NDArray[np.int64]


class Made(NamedTuple):
    """What the rules of a head derive: its content, how each was evaluated, its own groups without a result."""

    content: Version
    evaluations: dict[Clause, Evaluation]
    refused: tuple[Refused, ...] = ()


def derive(evaluator: Evaluator, head: str, limits: Limits) -> Made:
    """What the rules of `head` derive from the evaluator's state, with the head's facts, as a version of its own."""
    relation = evaluator.relations[head]
    clauses = evaluator.state.strata.of(head)
    if clauses and counts_paths(clauses[0]):
        from lftj.paths.follow import derive_paths

        return Made(derive_paths(evaluator, clauses[0], limits), {})
    if clauses and clauses[0].aggregate is not None:
        content, evaluation, lacking = aggregated(evaluator, clauses[0], limits)
        return Made(content, {clauses[0]: evaluation}, refused_groups(clauses[0], lacking))
    chunks: list[Rows] = []
    done: dict[Clause, Evaluation] = {}
    for clause in clauses:
        done[clause] = evaluator.rows(clause, limits, chunks.append)
    alone = len(clauses) == 1 and len(relation.facts) == 0
    in_order = alone and done[clauses[0]].sorted
    if len(relation.facts):
        chunks.append(relation.facts.columns())
    return Made(relation.assemble(chunks, in_order=in_order), done)


def _component(evaluator: Evaluator, heads: tuple[str, ...], limits: Limits) -> State:
    """The state in which `heads` are evaluated together, with rounds."""
    from lftj.rounds.evaluation import evaluate

    work, done = evaluate(evaluator, heads, limits)
    state = evaluator.state
    members = {head: work.relations[head] for head in heads}
    refused = refused_together(evaluator, heads, work.relations, limits)
    for head, relation in members.items():
        if relation.schema.functional:
            check_content(evaluator, head, relation.content, None, limits)
    return state._replace(
        relations={**state.relations, **members},
        stale=state.stale - set(heads),
        evaluations={**state.evaluations, **done},
        refused=refused,
    )


def refresh(
    evaluator: Evaluator,
    names: Iterable[str],
    limits: Callable[[str], Limits],
    failed: dict[str, EvaluationError] | None = None,
    *,
    again: bool = True,
) -> None:
    """Bring `names` up to date in the evaluator's state; `limits` is asked once per evaluated relation.

    With `failed`, heads that cannot be computed, and what is derived from them, are told there and stay stale; without
    `again`, those too that once ran out of time over these relations.
    """
    if not evaluator.state.stale:
        return
    strata = evaluator.state.strata
    needed = strata.below(names) & evaluator.state.stale
    for head in strata.order:
        if head not in needed:
            continue
        if failed and (causes := [name for name in strata.reads(head) if name in failed]):
            failed[head] = failed[causes[0]]
            continue
        if failed is not None and not again and head in evaluator.state.stopped:
            failed[head] = EvaluationError(
                evaluator.state.stopped[head],
                why="it would take as long again",
                remedy=f"read `{head}` to evaluate it without a limit",
            )
            continue
        try:
            within = limits(head)
            if members := evaluator.state.together(head):
                if head in evaluator.state.stale:
                    evaluator.state = _component(evaluator, members, within)
                continue
            content, done, own = derive(evaluator, head, within)
            refused = refused_in(evaluator, head, own, within)
            if evaluator.relations[head].schema.functional:
                check_content(evaluator, head, content, None, within)
        except EvaluationError as error:
            if failed is None:
                raise
            failed[head] = error
            continue
        except TimeoutExpired as expired:
            evaluator.state = evaluator.state.stopped_in(head, expired.what)
            raise
        evaluator.state = evaluator.state.evaluated(head, content, done, refused)
