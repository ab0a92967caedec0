"""The same sums and counts under every strategy by turns, and as the planner chooses: milliseconds of a transaction.

Each case is one rule over tables of some ten thousand rows or more, changed by transactions of 1, 100 and 10,000 rows:
half of these go, half are new. Every strategy has a database of its own, and each transaction is made in all of them
before the next, so that what disturbs the machine disturbs all. Their order is another each time: whoever comes after
an evaluation finds the caches cold, and pays half as much again for one row. In the end all answers are the same
as that of evaluating anew, or the case is reported as wrong. The planner is held to 1.2 times the best.
"""

from __future__ import annotations

import itertools
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench import graphs, orderbook, tpch
from bench.triggers_join import PROGRAM as JOIN
from bench.triggers_join import Pair
from bench.triggers_run import differ, kept_by

WAYS = ("planner", "trace", "delta", "recompute", "triggers")
#: Rows of a transaction -> how many transactions count.
TURNS = {1: 150, 100: 30, 10_000: 9}
SIZES = tuple(TURNS)
BUDGET, BOUND = 10.0, 1.2
HELD = 0.25

EDGES = ".decl e(x:number, y:number)\n"


class Case(NamedTuple):
    """A rule for `head`, and the rows of its relations; the first of `changing` counts most."""

    head: str
    program: str
    facts: Callable[[bool], dict[str, Any]]
    changing: tuple[str, ...]


def only(head: str, program: str) -> str:
    """The declarations of a program, and its one rule for `head`, an aggregate."""
    rule = re.search(rf"^{head}\[.*?\}}\.$", program, re.MULTILINE | re.DOTALL)
    assert rule is not None, head
    return "\n".join([*re.findall(r"\.decl \w+\([^)]*\)", program), rule[0]])


def _book(tiny: bool) -> dict[str, Any]:
    return {"order": sorted(orderbook.facts(1, 60 if tiny else 30_000, 1)["order"]), "trade": [], "listed": []}


def _tpch(tiny: bool) -> dict[str, Any]:
    return {name: sorted(rows) for name, rows in tpch.facts(1, 40 if tiny else 15_000).items()}


def _edges(tiny: bool) -> dict[str, Any]:
    rows = graphs.load("wiki-Vote").rows
    return {"e": rows[:300] if tiny else rows}


CASES = {
    "join of two": Case("worth", JOIN, lambda tiny: Pair(400 if tiny else 100_000, 0).start(), ("r", "s")),
    "levels of a book": Case("level", orderbook.PROGRAM, _book, ("order",)),
    "q1, price": Case("q1_price", tpch.PROGRAM, _tpch, ("lineitem",)),
    "q3": Case("q3", tpch.PROGRAM, _tpch, ("lineitem", "orders")),
    "q12": Case("q12", tpch.PROGRAM, _tpch, ("lineitem", "orders")),
    "q14": Case("q14", tpch.PROGRAM, _tpch, ("orders",)),
    "paths": Case("paths", f"{EDGES}paths[x] = count : {{ e(x, y), e(y, _z) }}.", _edges, ("e",)),
    "triangles": Case("triangles", f"{EDGES}triangles[x] = count : {{ e(x, y), e(y, z), e(x, z) }}.", _edges, ("e",)),
}


class Churn:
    """Rows of relations, a quarter of them held back; changes take rows that are there and bring others."""

    def __init__(self, facts: dict[str, Any], changing: tuple[str, ...], seed: int = 32) -> None:
        self.rng = np.random.default_rng(seed)
        self.facts, self.changing = facts, changing
        self.there: dict[str, list[int]] = {}
        self.away: dict[str, list[int]] = {}
        for name in changing:
            order = self.rng.permutation(len(facts[name])).tolist()
            cut = int(len(order) * (1 - HELD))
            self.there[name], self.away[name] = order[:cut], order[cut:]

    def now(self) -> dict[str, Any]:
        """The rows that are there."""
        return {
            name: self._rows(name, self.there[name]) if name in self.there else rows
            for name, rows in self.facts.items()
        }

    def change(self, size: int) -> list[tuple[str, int, Any]]:
        """`size` rows, or the one or two in their place: blocks (relation, +1 or -1, rows)."""
        blocks = []
        for name in self.changing if size > 1 else (self.changing[self.rng.integers(len(self.changing))],):
            share = max(1, size // 2 // len(self.changing))
            ways = (-1, 1) if size > 1 else (int(self.rng.choice((-1, 1))),)
            goes, comes = (self._drawn(of[name], share) for of in (self.there, self.away))
            for sign, drawn, back in ((-1, goes, self.away), (1, comes, self.there)):
                used = drawn if sign in ways else []
                (self.there if sign < 0 else self.away)[name].extend(() if used else drawn)
                back[name].extend(used)
                if used:
                    blocks.append((name, sign, self._rows(name, used)))
        return blocks

    def _drawn(self, of: list[int], count: int) -> list[int]:
        drawn = []
        for _ in range(min(count, len(of) // 2)):
            at = int(self.rng.integers(len(of)))
            of[at], of[-1] = of[-1], of[at]
            drawn.append(of.pop())
        return drawn

    def _rows(self, name: str, numbers: list[int]) -> Any:
        facts = self.facts[name]
        return facts[np.array(numbers, np.int64)] if isinstance(facts, np.ndarray) else [facts[i] for i in numbers]


def database(case: Case, way: str, facts: dict[str, Any]) -> Any:
    """A database whose head is kept in one way; None if that way does not keep it."""
    import lftj

    db = lftj.Database()
    try:
        chosen: Any = None if way == "planner" else {case.head: way}
        db.rules(only(case.head, case.program), maintain=chosen)
        for name, rows in facts.items():
            if name in db:
                db.load(name, rows)
        db.evaluate()
    except lftj.Error:
        return None
    return db


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """A case with transactions of one size: median milliseconds by way, and what the planner chose."""
    case, size, tiny = CASES[request["case"]], request["size"], request.get("tiny", False)
    churn = Churn(case.facts(tiny), case.changing)
    start = churn.now()
    here = {way: db for way in WAYS if (db := database(case, way, start)) is not None}
    spent: dict[str, list[float]] = {way: [] for way in here}
    chosen: Counter[str] = Counter()
    # All orders by turns, so that each way comes after each other one as often.
    orders = np.random.default_rng(29).permutation(list(itertools.permutations(here)))
    for turn, changes in enumerate(_changes(churn, size)):
        for way in orders[turn % len(orders)].tolist():
            seconds, told = _transaction(here[way], changes)
            if turn >= 2:  # the first two record and compile
                spent[way].append(seconds)
                if way == "planner":
                    chosen.update(told)
        if turn >= request.get("turns", TURNS[size]) + 1 or (turn > 4 and sum(map(sum, spent.values())) > BUDGET):
            break
    median = {way: statistics.median(times) * 1e3 for way, times in spent.items()}
    anew = database(case, "recompute", churn.now())
    wrong = [f"{way}: {how}" for way, db in here.items() if (how := differ(db[case.head], anew[case.head]))]
    best = min((way for way in here if way != "planner"), key=median.__getitem__)
    found = {"ms": median, "chosen": dict(chosen), "best": best, "ratio": median["planner"] / median[best]}
    return {"status": "error", "reason": "; ".join(wrong), **found} if wrong else {"status": "ok", **found}


def _changes(churn: Churn, size: int) -> Iterator[list[tuple[str, int, Any]]]:
    while True:
        yield churn.change(size)


def _transaction(db: Any, changes: list[tuple[str, int, Any]]) -> tuple[float, list[str]]:
    """CPU seconds, and how the head and its parts were kept."""
    began = time.process_time()
    with db.transaction() as tx:
        for name, sign, rows in changes:
            (tx.insert if sign > 0 else tx.erase)(name, rows)
    seconds = time.process_time() - began
    return seconds, [strategy for _, strategy in kept_by(tx.stats) if strategy != "none"]
