"""What the parts of `bench.triggers` share: streams followed within a budget, and what a database says of itself.

    followed(db, batches, budget)      events by calls of `db.apply`, every call with up to `CALL` of them
    transacted(db, batches, budget)    one transaction a batch

A *batch* is a list of blocks (relation, +1 or -1, rows): numpy int64[n, k] or an Arrow table. CPU seconds throughout.
Making the blocks is not in the figures: a batch is there before the clock starts.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

from bench.maintained import percentile

Block = tuple[str, int, Any]
Batch = Sequence[Block]
CALL = 100_000
#: Relative difference up to which floats count as equal: means and quotients are rounded somewhere.
NEAR = 1e-9


class Followed(NamedTuple):
    """Batches and events that were taken in, and the CPU seconds of every call or transaction."""

    batches: int
    events: int
    seconds: list[float]

    @property
    def per_second(self) -> float:
        """Events a second; 0 if there were none."""
        return self.events / sum(self.seconds) if self.seconds else 0.0

    def figures(self) -> dict[str, Any]:
        """For the results."""
        return {
            "events": self.events,
            "per_second": self.per_second,
            "median_ms": statistics.median(self.seconds) * 1e3,
            "p99_ms": percentile(self.seconds, 0.99) * 1e3,
        }


def rows_in(batch: Batch) -> int:
    """Events of a batch."""
    return sum(len(rows) for _, _, rows in batch)


def followed(db: Any, batches: Iterable[Batch], budget: float, call: int = CALL) -> Followed:
    """Give events to `db.apply`, in calls of `call` of them or a few more, until the CPU seconds are spent."""
    done, events, spent = 0, 0, []
    calls: list[list[Batch]] = [[]]
    size = 0
    for batch in batches:
        calls[-1].append(batch)
        size += rows_in(batch)
        if size >= call:
            calls.append([])
            size = 0
    for held in filter(None, calls):
        blocks = list(chain.from_iterable(held))
        began = time.process_time()
        db.apply(blocks)
        spent.append(time.process_time() - began)
        done += len(held)
        events += rows_in(blocks)
        if sum(spent) > budget:
            break
    return Followed(done, events, spent)


def transacted(db: Any, batches: Iterable[Batch], budget: float) -> tuple[Followed, dict[str, str]]:
    """One transaction a batch until the CPU seconds are spent; with it, the strategy that each head mostly had."""
    done, events, spent = 0, 0, []
    told: dict[str, Counter[str]] = {}
    for batch in batches:
        began = time.process_time()
        with db.transaction() as tx:
            for name, sign, rows in batch:
                (tx.insert if sign > 0 else tx.erase)(name, rows)
        spent.append(time.process_time() - began)
        done += 1
        events += rows_in(batch)
        for head, strategy in kept_by(tx.stats):
            told.setdefault(head, Counter())[strategy] += 1
        if sum(spent) > budget:
            break
    return Followed(done, events, spent), {head: counts.most_common(1)[0][0] for head, counts in told.items()}


def kept_by(stats: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The strategy of every head that a transaction changed, and of the parts it was taken into; none for aliases."""
    for head, told in stats["heads"].items():
        for name, one in ((head, told), *told.get("parts", {}).items()):
            if one["strategy"] != "alias":
                yield name, one["strategy"]


def derived_bytes(db: Any, given: Iterable[str]) -> int:
    """Bytes that a database holds for what it derives: all but the pages of the relations `given`."""
    memory = db.memory()
    return sum(sum(held.values()) for name, held in memory.items() if name != "total" and name not in set(given))


def differ(found: Iterable[Sequence[Any]], expected: Iterable[Sequence[Any]]) -> str:
    """How two answers differ, in words; empty if they hold the same rows. Columns with floats are compared nearly."""
    ours, theirs = ([tuple(row) for row in rows] for rows in (found, expected))
    if len(ours) != len(theirs):
        return f"{len(ours):,} rows where {len(theirs):,} are expected"
    floats = {i for row in chain(ours, theirs) for i, value in enumerate(row) if isinstance(value, float)}

    def order(row: tuple[Any, ...]) -> tuple[Any, ...]:
        sure = tuple((value is not None, _exact(value)) for i, value in enumerate(row) if i not in floats)
        return sure, tuple((row[i] is not None, float(row[i] or 0)) for i in sorted(floats))

    for one, other in zip(sorted(ours, key=order), sorted(theirs, key=order), strict=True):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            if a is None or b is None:
                same = a is b
            else:
                same = math.isclose(float(a), float(b), rel_tol=NEAR) if i in floats else _exact(a) == _exact(b)
            if not same:
                return f"{one} where {other} is expected"
    return ""


def _exact(value: Any) -> Any:
    """A value as it is compared: numbers of all types as one, None before everything."""
    if value is None:
        return 0
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def strategies(told: Mapping[str, str]) -> str:
    """The strategies of some heads, in words: "triggers" or "3 triggers, 1 delta"."""
    counts = Counter(told.values())
    if len(counts) <= 1:
        return next(iter(counts), "none")
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
