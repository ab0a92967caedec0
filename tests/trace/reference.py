"""The recording triejoin in plain Python: what a join plan derives, and the trace it leaves.

Relations are sets of tuples, a key set is a sorted list, the state of a node is (candidate, turn, agree). Written from
arXiv 1303.5313, section 4.1; no kernel, no page, no packing of the engine's is used, only the plan (which names trie
nodes, definitions, bounds and filters) and the granularity chosen per site.

    outputs   every row derived, with repeats: one per binding; where the trace plan keeps an existential suffix, one
              per binding of the head that has a witness, and the search ends at the first
    records   per site, sorted: (prefix ..., start, context ..., agree), as `SensitivityIndexes.records` has them;
              without agree where the site is POINT, without start and agree where it is NODE. The sites of negated
              atoms are looked at after a match: at an INTERVAL depth they are POINT
    steps     the whole trace, every step of every depth whatever its granularity, with the key it landed on: what the
              paper's promise is measured by

Values are numbers, so a code is its value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lftj.plan.joinplan import Depth, JoinPlan
from lftj.plan.traceplan import TracePlan
from sensitivity.records import INTERVAL, NODE, NONE, POINT
from tests.plain import checked

KEY_MIN, KEY_MAX = -(2**63), 2**63 - 1

Row = tuple[int, ...]
Binding = dict[str, int]


@dataclass
class Recording:
    """An evaluation of `plan` over `relations` that records."""

    plan: JoinPlan
    trace_plan: TracePlan
    relations: Mapping[str, Iterable[Row]]
    outputs: list[Row] = field(default_factory=list)
    records: dict[int, list[Row]] = field(default_factory=dict)
    steps: set[tuple[object, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.computed = {depth.variable for depth in self.plan.depths if depth.definition is not None}
        self.paths = [self.path(f) for f in range(len(self.plan.nodes))]
        self.tries = [self.children(f) for f in range(len(self.plan.nodes))]
        self.frames = [(*depth.participants, *depth.negated) for depth in self.plan.depths]
        self.until = self.trace_plan.until
        self.first_site: list[int] = []
        sites = 0
        for frames in self.frames:
            self.first_site.append(sites)
            sites += len(frames)
        assert len(self.trace_plan.sites) == sites
        self.granularity = [site.granularity for site in self.trace_plan.sites]
        self.records = {s: [] for s, g in enumerate(self.granularity) if g != NONE}
        for d in range(len(self.plan.depths)):
            self.check_granularity(d)
        if self.below(0, {}) and self.until == 0 < len(self.plan.depths):
            self.derive({})
        for s, found in self.records.items():
            assert len(set(found)) == len(found), f"site {s}: two steps of a trace leave the same record"
            found.sort()

    # -- the trie ------------------------------------------------------------------------------------------------------

    def path(self, frame: int) -> tuple[str, ...]:
        """The variables above a trie node, in the order of its trie."""
        above = self.plan.nodes[frame].above
        return () if above < 0 else (*self.path(above), self.plan.nodes[above].variable)

    def children(self, frame: int) -> dict[Row, list[int]]:
        """The sorted keys of a trie node under every prefix."""
        node = self.plan.nodes[frame]
        found: dict[Row, set[int]] = {}
        for row in self.relations[node.predicate]:
            keys = tuple(row[c] for c in node.key_order)
            found.setdefault(keys[: node.level], set()).add(keys[node.level])
        return {prefix: sorted(keys) for prefix, keys in found.items()}

    def keys(self, frame: int, binding: Binding) -> list[int]:
        return self.tries[frame].get(tuple(binding[v] for v in self.paths[frame]), [])

    # -- what is recorded ----------------------------------------------------------------------------------------------

    def needed(self, d: int) -> list[str]:
        """The variables bound above depth `d` that are not computed."""
        return [depth.variable for depth in self.plan.depths[:d] if depth.variable not in self.computed]

    def check_granularity(self, d: int) -> None:
        """NONE exactly where each participant's own keys name the node; POINT only where the key is computed."""
        depth, lo = self.plan.depths[d], self.first_site[d]
        hi = lo + len(depth.participants)
        mine = self.granularity[lo:hi]
        named = [set(self.needed(d)) <= set(self.paths[f]) for f in self.frames[d]]
        allowed = {NONE} if all(named) else {POINT} if depth.definition is not None else {NODE, INTERVAL}
        assert set(mine) <= allowed
        assert len(set(mine)) <= 1
        for s in range(hi, lo + len(named)):
            same = {POINT} if allowed == {POINT} or INTERVAL in mine else set(mine) if mine else {NODE, POINT}
            assert self.granularity[s] in ({NONE} if named[s - lo] else same)

    def note(self, d: int, turn: int, binding: Binding, start: int, agree: int) -> None:
        """The record of a step, or of a node, for participant `turn` of depth `d`."""
        s = self.first_site[d] + turn
        own = self.paths[self.frames[d][turn]]
        row = [binding[v] for v in own]
        if self.granularity[s] != NODE:
            row.append(start)
        row += [binding[v] for v in self.needed(d) if v not in own]
        if self.granularity[s] == INTERVAL:
            row.append(agree)
        self.records[s].append(tuple(row))

    def step(self, d: int, turn: int, binding: Binding, start: int, agree: int, landed: int | None) -> None:
        node = tuple(binding[v] for v in self.needed(d))
        self.steps.add((d, turn, node, start, agree, landed))
        if self.granularity[self.first_site[d] + turn] == INTERVAL:
            self.note(d, turn, binding, start, agree)

    # -- the walk ------------------------------------------------------------------------------------------------------

    def derive(self, binding: Binding) -> None:
        self.outputs.append(tuple(int(checked.value_of(term, binding)) for term in self.plan.head))

    def below(self, d: int, binding: Binding) -> bool:
        """Evaluate the subtree under `binding`, which binds the variables of the depths above `d`; is there any?"""
        if d == len(self.plan.depths):
            if self.until == d:
                self.derive(binding)
            return True
        depth = self.plan.depths[d]
        sets = [self.keys(f, binding) for f in depth.participants]
        if depth.definition is not None:
            return self.at_point(d, depth, binding, sets)
        for turn in range(len(self.frames[d])):
            if self.granularity[self.first_site[d] + turn] == NODE:
                self.note(d, turn, binding, 0, 0)
        return self.leapfrog(d, depth, binding, sets)

    def at_point(self, d: int, depth: Depth, binding: Binding, sets: list[list[int]]) -> bool:
        assert depth.definition is not None
        key = int(checked.value_of(depth.definition, binding))
        for turn, frame in enumerate(self.frames[d]):
            node = tuple(binding[v] for v in self.needed(d))
            self.steps.add((d, turn, node, key, 0, key in self.keys(frame, binding)))
            if self.granularity[self.first_site[d] + turn] == POINT:
                self.note(d, turn, binding, key, 0)
        return all(key in keys for keys in sets) and self.matched(d, depth, binding, key)

    def leapfrog(self, d: int, depth: Depth, binding: Binding, sets: list[list[int]]) -> bool:
        low, high = limits(depth, binding)
        start, turn, agree, found = low, 0, 0, False
        while low <= high:
            keys = sets[turn]
            at = bisect_left(keys, start)
            landed = keys[at] if at < len(keys) else None
            self.step(d, turn, binding, start, agree, landed)
            if landed is None or landed > high:
                break
            agree = agree + 1 if landed == start else 1
            start, turn = landed, (turn + 1) % len(sets)
            if agree == len(sets):
                found = self.matched(d, depth, binding, landed) or found
                if landed == KEY_MAX or (found and d >= self.until):  # no key can follow; no other is asked for
                    break
                start, agree = landed + 1, 0
        return found

    def matched(self, d: int, depth: Depth, binding: Binding, key: int) -> bool:
        """All participants hold `key`: if the rule admits it, look into negated atoms, then go on below."""
        extended = {**binding, depth.variable: key}
        if not all(checked.holds(compare, extended) for compare in depth.filters):
            return False
        if self.is_blocked(d, depth, binding, key):
            return False
        witness = self.below(d + 1, extended)
        if witness and d + 1 == self.until < len(self.plan.depths):
            self.derive(extended)
        return witness

    def is_blocked(self, d: int, depth: Depth, binding: Binding, key: int) -> bool:
        """Whether a negated atom has a row that it must not have. All of them are looked at."""
        held = [key in self.keys(frame, binding) for frame in depth.negated]
        if depth.definition is None:
            node = tuple(binding[v] for v in self.needed(d))
            for turn, is_held in enumerate(held, len(depth.participants)):
                self.steps.add((d, turn, node, key, 0, is_held))
                if self.granularity[self.first_site[d] + turn] == POINT:
                    self.note(d, turn, binding, key, 0)
        return any(held)


def limits(depth: Depth, binding: Binding) -> tuple[int, int]:
    """The keys that the bounds of a depth allow, both ends inclusive."""
    low, high = KEY_MIN, KEY_MAX
    for op, term in depth.bounds:
        limit = int(checked.value_of(term, binding))
        if op in (">", ">="):
            low = max(low, limit + (op == ">"))
        else:
            high = min(high, limit - (op == "<"))
    return low, high


def distance(old: Recording, new: Recording) -> int:
    """The trace edit distance: steps that only one of two recordings of a plan took."""
    return len(old.steps ^ new.steps)
