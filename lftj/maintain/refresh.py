"""Refreshing: stale heads are evaluated when somebody asks for them.

A load makes everything above the loaded relation stale; asking for a relation evaluates the stale ones below it, in
the order of the strata, and then itself. A relation is published when all of its clauses are evaluated, so a stop in
between (Ctrl-C, time-out, an error in a rule) leaves every published content as it was, and the rest stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lftj.errors import EvaluationError, TimeoutExpired
from lftj.evaluate.empty_relations import check_constraints
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.key_conflicts import check_content
from lftj.evaluate.one_pass import OnePass
from lftj.evaluate.undefined_groups import undefined_of, with_undefined
from lftj.join.run import Limits
from lftj.maintain import background
from lftj.maintain.choose import TRIGGERS
from lftj.maintain.recompute import Evaluated, evaluate
from lftj.maintain.step import KeptHeads, Step
from lftj.program.aliases import permuted_of
from lftj.program.strata import Heads


def refresh(
    evaluator: Evaluator,
    names: Iterable[str],
    limits: Callable[[str], Limits],
    failed: dict[str, EvaluationError] | None = None,
    *,
    again: bool = True,
    kept: KeptHeads | None = None,
    once: bool = False,
) -> None:
    """Bring `names` up to date in the evaluator's state; `limits` is asked once per evaluated relation.

    With `failed`, heads that cannot be computed, and what is derived from them, are put there with their errors and
    stay stale; without `again`, those too that once ran out of time over these relations. `kept`: where maps go that
    a head is better read from than from its join. `once`: only `names` are read of what is evaluated, and then it goes,
    so that heads below that nothing needs may stay stale.
    """
    if not evaluator.state.stale:
        return
    background.begin()
    strata = evaluator.state.strata
    needed = strata.below(names) & evaluator.state.stale
    together = [heads for heads in strata.together if not needed.isdisjoint(heads.names)]
    below = {heads.name for heads in together if _only_derived(evaluator, heads)}.difference(names) if once else ()
    one_pass = evaluator.one_pass = OnePass((clause for heads in together for clause in heads.clauses), below)
    try:
        for heads in together:
            if failed and (causes := [name for name in heads.reads if name in failed]):
                failed |= dict.fromkeys(heads.names, failed[causes[0]])
                continue
            if failed is not None and not again and (stopped := evaluator.state.stopped.get(heads.name)):
                error = EvaluationError(
                    stopped,
                    why="it would take as long again",
                    remedy=f"read `{heads.name}` to evaluate it without a limit",
                )
                failed |= dict.fromkeys(heads.names, error)
                continue
            try:
                most = limits(heads.name)
                if not one_pass.leaves_out(evaluator, heads.name, most):
                    _refresh(evaluator, heads, most, kept)
            except EvaluationError as error:
                if failed is None:
                    raise
                failed |= dict.fromkeys(heads.names, error)
            except TimeoutExpired as expired:
                evaluator.state = evaluator.state.stopped_in(heads.names, expired.what)
                raise
    finally:
        evaluator.one_pass = None


def _only_derived(evaluator: Evaluator, heads: Heads) -> bool:
    """Whether a head has the rows that its clauses derive from others, and nothing is checked in them."""
    relation = evaluator.relations[heads.name]
    schema = relation.schema
    checked = schema.key or schema.constraint or (schema.functional and not _has_groups(evaluator, heads))
    return not (heads.recursive or checked or len(relation.facts))


def _has_groups(evaluator: Evaluator, heads: Heads) -> bool:
    """Whether no two rows of a functional head can have the same key: it has groups, or what another has, as it has."""
    if heads.grouped or len(heads.clauses) != 1:
        return heads.grouped
    copied = permuted_of(heads.clauses[0])
    if copied is None:
        return False
    below = evaluator.relations[copied[0]].schema
    return below.functional and copied[1][-1] == below.arity - 1


def _refresh(evaluator: Evaluator, heads: Heads, limits: Limits, kept: KeptHeads | None) -> None:
    found = evaluator.one_pass is not None and heads.name in evaluator.one_pass
    filled = None if kept is None or found else TRIGGERS.evaluated(Step.at_rest(evaluator, kept), heads, limits)
    followed = kept is not None and not kept.passing
    made = evaluate(evaluator, heads, limits, followed=followed) if filled is None else Evaluated(filled.relations, {})
    without = undefined_of(evaluator, heads, made.relations, made.undefined, limits)
    for head, relation in made.relations.items():
        if relation.schema.key or (relation.schema.functional and (not heads.grouped or len(relation.facts))):
            check_content(evaluator, head, relation, None, limits)
    state = evaluator.state
    relations = {**state.relations, **made.relations}
    if any(relation.schema.constraint for relation in made.relations.values()):
        check_constraints(evaluator.over(state._replace(relations=relations)), made.relations, lambda _: limits)
    evaluator.state = state._replace(
        relations=relations,
        stale=state.stale - set(heads.names),
        evaluations={**state.evaluations, **made.evaluations},
        undefined=with_undefined(state.undefined, heads.names, without),
    )
    if kept is not None and filled is not None and filled.kept is not None:
        kept.heads[heads.name] = filled.kept
