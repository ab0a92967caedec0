"""What `Database.explain` says of relations: of all that they are derived from, as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from lftj.evaluate.empty_relations import constraints_of
from lftj.evaluate.evaluator import Evaluator
from lftj.explain.explanation import Explanation
from lftj.explain.maintenance import maintenance_of
from lftj.language.clause import owner
from lftj.maintain.step import KeptHeads, Step


def explained(evaluator: Evaluator, kept: KeptHeads, names: Sequence[str], threads: int) -> Explanation:
    """How relations are evaluated and follow changes; what was not evaluated yet is planned, without running it."""
    state = evaluator.state
    wanted = state.strata.below(names).union(
        constraint for constraint in constraints_of(state) if owner(constraint) in names
    )
    heads = [head for head in state.strata.order if head in wanted]
    evaluations = {
        head: [state.evaluations.get(c) or evaluator.describe(c) for c in state.strata.of(head)] for head in heads
    }
    step = Step.at_rest(evaluator, kept)
    upkeep = {head: maintenance_of(step, head, evaluations[head]) for head in heads}
    return Explanation.of_strata(heads, evaluations, state.relations, upkeep, stale=set(state.stale), threads=threads)
