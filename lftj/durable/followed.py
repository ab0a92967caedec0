"""What heads are followed by: kept in a checkpoint, no change need make it again after opening.

    key orders    of all relations, where they are built
    support       of heads that follow by delta: how many derivations each row has (lftj/maintain/derivations.py)
    sums          accumulators of aggregates that follow by delta (kept_sums.py)
    maps          of heads that triggers follow (kept_maps.py)
    traces        of heads that follow by them, but for rules that compute texts (kept_traces.py)

Key orders and support are versions among those of the relations; the others are lists of their own (followed_lists.py).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.durable.chunks import Chunks
from lftj.durable.followed_lists import KeptParts, SavedParts
from lftj.durable.kept_maps import MAPS, maps_again, maps_of
from lftj.durable.kept_sums import SUMS, sums_again, sums_of
from lftj.durable.kept_traces import TRACES, traces_again, traces_of
from lftj.durable.segments import Segments
from lftj.errors import DatabaseFileError
from lftj.maintain.cost import RebuildCost
from lftj.maintain.delta import deltas_of
from lftj.maintain.derivations import KeptDerivations
from lftj.maintain.kept_triggers import KeptTriggers
from lftj.maintain.step import Step
from lftj.program.state import State
from lftj.program.strata import Heads
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile


class Support(NamedTuple):
    """The support of a head, and what is known of following it: `steps` of a changed row, by rule and relation.

    `version`: None of a head whose rows have one derivation each.
    """

    version: Version | None
    steps: list[dict[str, float]]
    rebuild: RebuildCost

    def noted(self) -> dict[str, Any]:
        """What is known, as JSON."""
        return {"counted": self.version is not None, "steps": self.steps, "rebuild": list(self.rebuild)}


def with_orders(state: State) -> State:
    """The state with key orders that have caught up, and that go on as they are whatever others build."""
    for relation in state.relations.values():
        for columns in list(relation.orders):
            relation.order(columns)
    return state._replace(relations={name: relation.frozen() for name, relation in state.relations.items()})


def supports_of(database: InFile) -> dict[str, Support]:
    """The support of heads that follow by delta, where it is that of their contents."""
    return {
        head: Support(kept.support, [dict(steps) for steps in kept.steps], kept.rebuild)
        for head, kept in database._kept.heads.items()
        if isinstance(kept, KeptDerivations)
        and kept.by_delta
        and kept.accumulators is None
        and _is_of(kept.seen, database._state)
    }


def followed_of(database: InFile) -> dict[str, KeptParts]:
    """What heads are followed by besides, where it is that of their contents."""
    found, state = dict[str, KeptParts](), database._state
    firsts: dict[int, str] = {}
    for head, kept in database._kept.heads.items():
        if isinstance(kept, KeptTriggers):
            if kept.is_of(state.relations):
                found[head] = maps_of(kept, firsts.setdefault(id(kept.body), head))
        elif isinstance(kept, KeptDerivations) and _is_of(kept.seen, state):
            sums = kept.accumulators
            if not kept.by_delta:
                if (traces := traces_of(kept)) is not None:
                    found[head] = traces
            elif sums is not None and not sums.without_result:
                found[head] = sums_of(kept, sums)
    return found


def _is_of(seen: Mapping[str, weakref.ref[Version]] | None, state: State) -> bool:
    """Whether what was made over contents is that of a state."""
    if not seen:
        return False
    relations = state.relations
    return all(name in relations and ref() is relations[name].content for name, ref in seen.items())


def follow_again(database: InFile, supports: Mapping[str, Version], noted: Mapping[str, Any]) -> None:
    """Let heads be followed with the support that a checkpoint has of them, if they would be by delta still."""
    state = database._state
    for heads in state.strata.together:
        head = heads.name
        if heads.recursive or head not in noted or head in state.stale or noted[head]["counted"] > (head in supports):
            continue
        deltas, _ = deltas_of(database._evaluator, heads.clauses, state)
        if not deltas:
            continue
        known, rebuild = noted[head], RebuildCost(*noted[head]["rebuild"])
        kept = KeptDerivations(heads.clauses, [*deltas], known["steps"], supports.get(head), {}, rebuild)
        kept.hold_for(state.relations, head, state.relations[head].content)
        database._kept.heads[head] = kept


# What makes each kind of what heads are followed by again; None if the head is not followed so any more.
_AGAIN: dict[str, Callable[[Step, Heads, SavedParts], KeptDerivations | KeptTriggers | None]] = {
    MAPS: maps_again,
    SUMS: sums_again,
    TRACES: traces_again,
}


def follow_further(database: InFile, saved: Iterable[SavedParts], segments: Segments, chunks: Chunks) -> None:
    """Let heads be followed by what a checkpoint has of them besides, unless it is damaged, or of other rules."""
    state = database._state
    together = {heads.name: heads for heads in state.strata.together if not heads.recursive}
    step = Step.at_rest(database._evaluator, database._kept)
    for one in saved:
        head = one.head
        if head not in together or head in state.stale or one.by not in _AGAIN:
            continue
        try:
            kept = _AGAIN[one.by](step, together[head], one)
        except DatabaseFileError:
            continue  # `lftj check` names it, and the next change makes it again
        if kept is None:
            continue
        content = state.relations[head].content
        if isinstance(kept, KeptTriggers):
            kept.hold_for(content)
        else:
            kept.hold_for(state.relations, head, content)
        database._kept.heads[head] = kept
        one.adopt(segments, chunks)
