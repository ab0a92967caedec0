"""The accumulators of an aggregate that is followed by delta, in a checkpoint: pages like those of a relation."""

from __future__ import annotations

from lftj.durable.followed_lists import KeptParts, SavedParts
from lftj.evaluate.accumulators import Accumulators, Folding, folding_of
from lftj.evaluate.evaluator import Evaluator
from lftj.maintain.cost import RebuildCost
from lftj.maintain.delta import deltas_of
from lftj.maintain.derivations import KeptDerivations
from lftj.maintain.step import Step
from lftj.program.strata import Heads
from scantree.version import Version

SUMS = "sums"
_TABLE, _FLOATS = "accumulators", "segments of floats"


def sums_of(kept: KeptDerivations, accumulators: Accumulators) -> KeptParts:
    """The accumulators of a head, all groups of which have a result."""
    noted = {"steps": [dict(steps) for steps in kept.steps], "rebuild": list(kept.rebuild)}
    return KeptParts(SUMS, noted, versions_of(accumulators), {})


def sums_again(step: Step, heads: Heads, saved: SavedParts) -> KeptDerivations | None:
    """Accumulators as they were saved; None if the head is not followed by delta now. Raises `DatabaseFileError`."""
    deltas, _ = deltas_of(step.evaluator, heads.clauses, step.before)
    if not deltas:
        return None
    accumulators = accumulators_again(step.evaluator, folding_of(heads.clauses[0]), saved)
    rebuild = RebuildCost(*saved.noted["rebuild"])
    return KeptDerivations(heads.clauses, [*deltas], saved.noted["steps"], None, None, rebuild, accumulators)


def versions_of(accumulators: Accumulators) -> dict[str, Version]:
    """The pages of accumulators, by name."""
    floats = {} if accumulators.segments is None else {_FLOATS: accumulators.segments}
    return {_TABLE: accumulators.table, **floats}


def accumulators_again(evaluator: Evaluator, folding: Folding, saved: SavedParts) -> Accumulators:
    """Accumulators of their pages. Raises `DatabaseFileError`."""
    sizes = {"page_rows": evaluator.page_rows, "dir_rows": evaluator.dir_rows}
    made = Accumulators.none(evaluator.arena, folding, **sizes)
    floats = None if made.segments is None else saved.version(_FLOATS, made.segments.store)
    return Accumulators(folding, saved.version(_TABLE, made.table.store), floats)
