"""The layout of a trace: how the records of each site are packed, and the arrays that tell a recording kernel.

The range of a field is the range of the keys its variable can take, which the relations know when the trace is
recorded; a transaction that brings keys from outside is found by `widened`, and what could not hold them is packed
anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lftj.language.clause import Value, Var
from lftj.plan.joinplan import JoinPlan
from lftj.plan.lowering import Encode
from lftj.plan.traceplan import TracePlan
from sensitivity import records
from sensitivity.packing import Packing, Range

Ints = npt.NDArray[np.int64]
Order = tuple[str, tuple[int, ...]]
Ranges = dict[int, Range | None]


@dataclass(frozen=True, slots=True)
class TraceLayout:
    """What follows from the plans of a trace alone. `encode` gives the code of a constant."""

    plan: JoinPlan
    trace_plan: TracePlan
    encode: Encode

    def packing(self, s: int, ranges: Mapping[int, Range | None]) -> Packing:
        """How the records of site `s` are packed, the keys of its variables being in `ranges`."""
        site = self.trace_plan.sites[s]
        interval = site.granularity == records.INTERVAL
        return Packing.of(
            site.prefix,
            site.context,
            dict(ranges),
            start=False if site.granularity == records.NODE else self.start_range(site.depth, ranges),
            agree=len(self.plan.depths[site.depth].participants) if interval else 0,
        )

    def start_range(self, d: int, ranges: Mapping[int, Range | None]) -> Range | None:
        """The range of the starts of depth `d` but KEY_MIN, one past the greatest key not counted."""
        depth = self.plan.depths[d]
        own = ranges[d]
        if depth.definition is not None or own is None:
            return None
        low, high = own.low, own.high
        place = {x.variable: i for i, x in enumerate(self.plan.depths)}
        for _, term in depth.bounds:
            if isinstance(term, Var) and ranges[place[term.name]] is not None:
                limit = ranges[place[term.name]]
                assert limit is not None
                low, high = min(low, limit.low - 1), max(high, limit.high + 1)
            elif isinstance(term, Value):
                code = self.encode(term.value, term.type)
                low, high = min(low, code - 1), max(high, code + 1)
            else:
                return None
        return Range(low, high)

    def key_ranges(self, columns: Callable[[Order, int], tuple[int, int] | None]) -> dict[int, Range | None]:
        """Per depth the keys that atoms have there, negated ones too; None where its one key is computed.

        `columns`: (least, greatest) key of a column of an order, None if there is no row.
        """
        ranges: dict[int, Range | None] = {}
        for d, depth in enumerate(self.plan.depths):
            if depth.definition is not None:
                ranges[d] = None
                continue
            found = [
                columns((node.predicate, node.key_order), node.level)
                for node in self.plan.nodes
                if node.variable == depth.variable
            ]
            known = [f for f in found if f is not None]
            ranges[d] = Range(min((f[0] for f in known), default=0), max((f[1] for f in known), default=0))
        return ranges

    def sites(self, packings: Mapping[int, Packing]) -> tuple[Ints, Ints]:
        """The arrays `sites` and `fields` of a recorder."""
        rows = np.zeros((len(self.trace_plan.sites), records.SITE_WIDTH), np.int64)
        fields: list[tuple[int, int, int, int, int]] = []
        for s, site in enumerate(self.trace_plan.sites):
            row = rows[s]
            row[records.GRANULARITY] = site.granularity
            row[records.FRAME], row[records.DEPTH], row[records.TURN] = site.frame, site.depth, site.turn
            row[records.LEVEL] = self.plan.nodes[site.frame].level
            if s not in packings:
                continue
            packing = packings[s]
            row[records.WORDS] = packing.words
            row[records.FIELD_LO], row[records.PREFIX_HI] = len(fields), len(fields) + len(packing.prefix)
            fields.extend((f.source, f.word, f.shift, f.low, f.bits) for f in packing.fields)
            row[records.FIELD_HI] = len(fields)
            if packing.start is not None:
                row[records.START_WORD : records.START_BITS + 1] = (
                    packing.start.word,
                    packing.start.shift,
                    packing.start.low,
                    packing.start.bits,
                )
            if packing.agree is not None:
                row[records.AGREE_WORD : records.AGREE_BITS + 1] = (
                    packing.agree.word,
                    packing.agree.shift,
                    packing.agree.bits,
                )
        return rows, np.array(fields or [(0, 0, 0, 0, 0)], np.int64)

    def places(self) -> dict[Order, list[tuple[int, int]]]:
        """Per key order, (level, depth) of those of its trie nodes whose keys are in `key_ranges`."""
        depths = {depth.variable: d for d, depth in enumerate(self.plan.depths) if depth.definition is None}
        found: dict[Order, list[tuple[int, int]]] = {}
        for node in self.plan.nodes:
            if node.variable in depths:
                at = (node.level, depths[node.variable])
                found.setdefault((node.predicate, node.key_order), []).append(at)
        return found


def widened(ranges: Ranges, inserted: Iterable[tuple[int, int, int]]) -> Ranges:
    """`ranges`, or wider ones where keys are inserted outside of them; `inserted`: (depth, least, greatest key)."""
    fresh: dict[int, Range] = {}
    for d, low, high in inserted:
        known = fresh.get(d) or ranges[d]
        if known is not None and (low < known.low or high > known.high):
            fresh[d] = Range(min(low, known.low), max(high, known.high))
    return {**ranges, **fresh} if fresh else ranges
