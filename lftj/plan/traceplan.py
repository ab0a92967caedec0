"""The trace plan: at which granularity each depth of a join records its trace, and what a record of each site holds.

NONE where a changed branch names its node: every participant's own keys, with what is computed from them, are the
whole binding. POINT at depths whose one candidate is computed. Elsewhere it is a choice:

    NODE      a record per participant and node; a change looks at every context of its prefix
    INTERVAL  a record per step; a change finds the contexts whose steps it concerns, and repairs their records

NODE is chosen where a prefix has few contexts (`CONTEXTS` on average, by the planner's estimates, or no more than a
node has matches, each of which would be a record), for records are what costs memory and repairs; INTERVAL where it has
many: at a depth where some participant has no keys of its own every node would be a context. A negated atom is looked
at after a match: where its own keys do not name the node, it leaves a NODE record per node, or at INTERVAL and POINT
depths a POINT record per look.

An existential suffix is kept as such, every head binding with what its search for the first witness looked at, where
many witnesses are expected (`WITNESSES`): the search is short, and a change of it redoes it as a whole. Else every
derivation is in the trace, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lftj.plan.joinplan import JoinPlan
from sensitivity.records import INTERVAL, NAMES, NODE, NONE, POINT

# Contexts of a prefix up to which looking at all of them is cheaper than repairing a record per step.
CONTEXTS = 64.0
# Witnesses below a binding of the head from which on searching for the first again is cheaper than counting them all.
WITNESSES = 2.0


@dataclass(frozen=True, slots=True)
class Site:
    """One participant of one depth, or one negated atom looked at there (`turn` beyond the participants').

    What its records hold:

    `frame`: its trie node in the plan · `prefix`: depths whose keys lead to it, in the order of its trie · `context`:
    the other depths above it that are not computed.
    """

    frame: int
    depth: int
    turn: int
    granularity: int
    prefix: tuple[int, ...]
    context: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TracePlan:
    """The sites of a join in the order of its participants, and per depth why it has its granularity.

    `contexts`: an estimate of the records a changed row meets at all sites together · `until`: depths from here on are
    an existential suffix (their number: every derivation counts).
    """

    sites: tuple[Site, ...]
    reasons: tuple[str, ...]
    contexts: float
    until: int

    @property
    def recorded(self) -> tuple[int, ...]:
        """The sites that keep an index."""
        return tuple(s for s, site in enumerate(self.sites) if site.granularity != NONE)


def plan_trace(plan: JoinPlan, distinct: Mapping[int, float], *, force: str | None = None) -> TracePlan:
    """Choose granularities for `plan`; `force` ("node" or "interval") makes the choice where there is one.

    `distinct`: per trie node, an estimate of the prefixes it ranges under (1 at level 0).
    """
    place = {d.variable: i for i, d in enumerate(plan.depths)}
    computed = {i for i, d in enumerate(plan.depths) if d.definition is not None}
    sites: list[Site] = []
    reasons: list[str] = []
    nodes, met = 1.0, 0.0
    for d, depth in enumerate(plan.depths):
        prefixes = []
        frames = (*depth.participants, *depth.negated)
        for frame in frames:
            path: list[int] = []
            above = plan.nodes[frame].above
            while above >= 0:
                path.append(place[plan.nodes[above].variable])
                above = plan.nodes[above].above
            prefixes.append(tuple(reversed(path)))
        needed = set(range(d)) - computed
        contexts = max((nodes / max(1.0, distinct[f]) for f in frames), default=1.0)
        about = f"about {contexts:,.0f} {'context' if round(contexts) == 1 else 'contexts'} of a prefix"
        if all(needed <= set(prefix) for prefix in prefixes):
            granularity, why = NONE, "a changed branch names its node"
        elif d in computed:
            granularity, why = POINT, "its key is computed"
        elif force is not None:
            granularity, why = NAMES.index(force), "forced"
        elif contexts <= max(CONTEXTS, depth.rows / nodes):
            granularity, why = NODE, about
        else:
            granularity, why = INTERVAL, about
        for turn, (frame, prefix) in enumerate(zip(frames, prefixes, strict=True)):
            context = tuple(e for e in range(d) if e in needed and e not in prefix)
            own = granularity
            if turn >= len(depth.participants):
                own = NONE if not context else POINT if granularity == INTERVAL else granularity
            if own == NODE:
                met += nodes / max(1.0, distinct[frame])
            sites.append(Site(frame, d, turn, own, prefix, context))
        reasons.append(why if frames else "no atom holds it")
        nodes = max(1.0, depth.rows)
    until = plan.until if plan.witnesses >= WITNESSES else len(plan.depths)
    return TracePlan(tuple(sites), tuple(reasons), met, until)
