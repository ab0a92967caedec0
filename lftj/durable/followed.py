"""What heads are followed by, as far as it is pages: kept in a checkpoint, no change need make it again after opening.

    key orders    of all relations, where they are built
    support       of heads that follow by delta: how many derivations each row has (lftj/maintain/derivations.py)

Traces, accumulators and the maps of triggers are arrays with addresses in them, and are made by the first change that
needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.maintain.cost import RebuildCost
from lftj.maintain.delta import deltas_of
from lftj.maintain.derivations import KeptDerivations
from lftj.program.state import State
from scantree.version import Store, Version

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile
    from lftj.store.stored import StoredRelation


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
    relations, found = database._state.relations, {}
    for head, kept in database._kept.heads.items():
        if not isinstance(kept, KeptDerivations) or not kept.by_delta or kept.accumulators is not None:
            continue
        if kept.seen and all(name in relations and ref() is relations[name].content for name, ref in kept.seen.items()):
            found[head] = Support(kept.support, [dict(steps) for steps in kept.steps], kept.rebuild)
    return found


def support_store(relation: StoredRelation) -> Store:
    """A store for the support of a head."""
    store = relation.declared_store()
    page_rows, dir_rows = 1 << store.shape.page_bits, 1 << store.shape.dir_bits
    return Store(store.arena, relation.arity, 1, page_rows=page_rows, dir_rows=dir_rows)


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
