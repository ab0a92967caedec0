"""Pilot runs: where estimates call a join expensive, its best orders are tried on a sample before one is chosen.

Estimates from averages cannot tell that the frequent vertices of a graph are also the ones that paths run through;
the walk itself can. For each candidate order some rows of the atom that binds its first variables are drawn, those
variables are set to each drawn row in turn, the real kernel walks below, and the steps are scaled up. Rows are drawn
evenly, so a binding with many rows is drawn often and counts less each time (Hansen and Hurwitz, 1943): the estimate
is unbiased, up to walks that exceed the budget. Of an order with such a walk the estimate from averages is believed, if
it says more.

At least `CANDIDATES` orders are tried, and more while the pilots have walked less than `SHARE` of the best walk
found. A candidate that needs key orders to be sorted which the best estimate does not need is tried only where that
costs less than `SORT_SHARE` of the best walk found so far; what was sorted for a candidate that lost is dropped.
Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.join import join_state as cells
from lftj.join import trie, triejoin
from lftj.join.profile import draw_rows, rows_under
from lftj.join.run import SLICE, Limits
from lftj.language.clause import Compare, Value, Var
from lftj.plan.joinplan import Depth, JoinPlan
from lftj.plan.keyorder import DEDUPE, EMIT, SORT, Choice
from lftj.plan.lowering import Encode, lower
from lftj.plan.statistics import Stored
from scantree.version import Version

WORTHWHILE = 4e6
# Steps of one pilot: a share of the walk it tries, between these; planning stays a matter of tenths of a second.
LEAST, MOST = 3e4, 2e6
SHARE = 0.08
SORT_SHARE = 0.1
CLEARLY = 0.8
CANDIDATES = 6
# A walk below one binding is cut short where it would take more than this part of a pilot's steps. Frequent ones are
# drawn first, and of a pilot that ended in the first there was nothing to learn.
PART = 1 / 8
# Rows drawn: a power of two between these, about one per `PER_ROW` steps of the budget; drawn in strides that visit
# each once.
LEAST_DRAWN, MOST_DRAWN, PER_ROW, STRIDE = 128, 2048, 200, 117
LANDING = 16
# Candidates whose estimate exceeds the best one by more than this are not tried.
KEEP = 16.0

Relations = Mapping[str, Stored]
Ranks = Callable[[], npt.NDArray[np.int64]]


class Pilot(NamedTuple):
    """What a pilot found: `steps` of the whole walk, the standard `error` of that, and the steps it `spent`.

    `cut`: it takes more than that, since a walk below some binding was not finished.
    """

    steps: float
    error: float
    spent: int
    cut: bool = False


def best_of(
    choices: Sequence[Choice],
    plan: Callable[[Choice], JoinPlan],
    relations: Relations,
    encode: Encode,
    ranks: Ranks,
    limits: Limits,
    *,
    worthwhile: float = WORTHWHILE,
    walked: Mapping[tuple[str, ...], int] | None = None,
) -> JoinPlan:
    """The plan of the best of `choices` (cheapest estimate first).

    By estimate where that is cheaper than `worthwhile` steps, else by pilot runs, whose estimate is then its cost.
    `walked`: orders that were abandoned after so many steps, so that estimates are not to be relied on.
    """
    first = plan(choices[0])
    if not walked and (len(choices) == 1 or choices[0].cost < worthwhile):
        return first
    walked = walked or {}
    expected = max([choices[0].cost, *walked.values()])
    built = {name: set(relation.orders) for name, relation in relations.items()}
    needed = _orders(first)

    def to_sort(candidate: JoinPlan, apart_from: set[tuple[str, tuple[int, ...]]]) -> float:
        """Cost of the key orders that `candidate` would have to sort."""
        missing = {(name, order) for name, order in _orders(candidate) - apart_from if order not in built[name]}
        return SORT * sum(len(relations[name]) for name, _ in missing)

    budget = min(MOST, max(LEAST, SHARE * expected / CANDIDATES))
    best, limit, error, tried, spent = first, np.inf, 0.0, 0, 0
    seen = set[tuple[str, ...]]()
    built_for: list[JoinPlan] = []
    for choice in _varied(choices):
        if tried >= CANDIDATES and spent > min(SHARE * limit, CANDIDATES * MOST):
            break
        if not walked and choice.cost > KEEP * choices[0].cost:
            continue
        candidate = plan(choice)
        if candidate.order in seen or to_sort(candidate, needed) > (SORT_SHARE * limit if tried else budget):
            continue
        seen.add(candidate.order)
        built_for.append(candidate)
        tried += 1
        found = _pilot(candidate, relations, encode, ranks, budget, limit, limits)
        least = max(walked.get(candidate.order, 0), choice.cost if found.cut else 0.0)
        steps = max(found.steps, least) + to_sort(candidate, set())
        spent += found.spent
        # Samples err: an order has to be better by more than that to take the place of one whose estimate is better.
        if tried == 1 or (steps < CLEARLY * limit and limit - steps > np.hypot(error, found.error)):
            best, limit, error = candidate, steps, found.error
    for name, order in {node_order for candidate in built_for for node_order in _orders(candidate)} - _orders(best):
        if order not in built[name]:
            relations[name].forget(order)
    return replace(best, cost=limit) if np.isfinite(limit) else best


def _varied(choices: Sequence[Choice]) -> list[Choice]:
    """`choices` with the best order for each pair of first variables ahead, then the second best ones.

    Orders that begin alike cost alike.
    """
    begun: dict[tuple[str, ...], int] = {}
    rounds = []
    for i, choice in enumerate(choices):
        prefix = choice.order[:2]
        begun[prefix] = begun.get(prefix, -1) + 1
        rounds.append((begun[prefix], i))
    return [choices[i] for _, i in sorted(rounds)]


def _orders(plan: JoinPlan) -> set[tuple[str, tuple[int, ...]]]:
    return {(node.predicate, node.key_order) for node in plan.nodes}


def _set(depth: Depth) -> Depth:
    """`depth` with its variable given from outside: a constant, and what limits its keys as filters."""
    limits = tuple(Compare(op, Var(depth.variable, term.type), term) for op, term in depth.bounds)
    return replace(depth, definition=Value(depth.variable, "number"), bounds=(), filters=(*depth.filters, *limits))


def _pilot(
    plan: JoinPlan,
    relations: Relations,
    encode: Encode,
    ranks: Ranks,
    budget: float,
    limit: float,
    limits: Limits,
) -> Pilot:
    """Walk a sample of `plan`; all of it if its first variable is computed, infinite steps where that is not done.

    Spends `budget` steps, or a like share of what it finds.

    Gives up early, with what it has seen, once it is clear that the estimate will be above `limit`.
    """
    top = plan.depths[0]
    if not plan.nodes:
        return Pilot(np.inf, 0.0, 0)
    versions = {(n.predicate, n.key_order): relations[n.predicate].order(n.key_order) for n in plan.nodes}
    whole = top.definition is not None or not top.participants
    node = plan.nodes[0 if whole else top.participants[0]]
    drawn = versions[node.predicate, node.key_order]
    if not len(drawn):
        return Pilot(0.0, 0.0, 0)
    given = [] if whole else [0]
    if not whole and len(plan.depths) > 2 and plan.depths[1].definition is None:
        below = [i for i in plan.depths[1].participants if plan.nodes[i].above == top.participants[0]]
        given = [0, 1] if below and not plan.depths[1].first else [0]
    depths = tuple(_set(depth) if d in given else depth for d, depth in enumerate(plan.depths))
    lowered = lower(
        replace(plan, depths=depths),
        versions,
        # A "number" that is a name stands for a given variable (`_set`).
        lambda v, t: 0 if t == "number" and isinstance(v, str) else encode(v, t),
        np.zeros(1, np.int64),
    )
    walk = lowered.walk._replace(ranks=ranks()) if lowered.ranked else lowered.walk
    # The constant that stands for a given variable is what the last step of its definition moves.
    registers = [walk.code[walk.depths[d, cells.VALUE_HI] - 1, 2] for d in given]
    out = np.empty((len(walk.head), 1 << 12), np.int64)
    control, spent = walk.control, 0
    costs: list[float] = []
    cut = False
    wanted = 1 << int(np.log2(min(MOST_DRAWN, max(LEAST_DRAWN, budget / PER_ROW))))
    bindings, weights = (np.empty((1, 0), np.int64), [1.0]) if whole else _draw(drawn, len(given), wanted)
    n = len(weights)
    for i in range(n):
        estimate = sum(costs) / i if i else 0.0
        allowance = min(MOST, max(budget, SHARE / CANDIDATES * estimate))
        if spent >= allowance or (i >= n // 4 and sum(costs) / n > limit):
            break
        most = allowance if whole else PART * allowance
        before = _work(control)
        walk.regs[registers] = bindings[i]
        walk.frames[:, trie.OPENED] = 0
        walk.blocks[:, cells.COUNT :] = 0
        control[cells.DEPTH], control[cells.ENTER] = 0, triejoin.OPENING
        status = triejoin.FULL
        rows = 0
        while status in (triejoin.FULL, triejoin.PAUSED) and _work(control) - before < most:
            limits.look(0)
            rows += int(control[cells.WRITTEN])
            control[cells.WRITTEN] = 0
            status = triejoin.triejoin(drawn.store.arena.space.mem, walk, out, min(SLICE, int(most) + 1))
        rows += int(control[cells.WRITTEN])
        control[cells.WRITTEN] = 0
        steps = _work(control) - before
        cut |= status != triejoin.FINISHED
        spent += steps
        if status >= triejoin.OVERFLOW or (whole and status != triejoin.FINISHED):
            return Pilot(np.inf, 0.0, spent)
        costs.append((steps + (EMIT if plan.in_order else DEDUPE) * rows) * weights[i])
    return Pilot(float(np.mean(costs)), float(np.std(costs) / np.sqrt(len(costs))), spent, cut)


def _work(control: npt.NDArray[np.int64]) -> int:
    """Steps walked so far; opening a participant takes as long as `LANDING` steps."""
    return int(control[cells.STEPS] + LANDING * control[cells.LANDED])


def _draw(version: Version, columns: int, wanted: int) -> tuple[npt.NDArray[np.int64], list[float]]:
    """(bindings int64[n, columns], weights).

    The leading keys of evenly spaced rows, and all rows over the rows that share them.

    Spread over the relation from the first on: a pilot may end early.
    """
    space, shape = version.store.arena.space, version.store.shape
    n = min(wanted, len(version))
    rows, counts = np.empty((shape.cols, n), np.int64), np.empty(n, np.int64)
    draw_rows(space.mem, version.root, shape, (2 * np.arange(n) + 1) * len(version) // (2 * n), rows)
    bindings = np.ascontiguousarray(rows[:columns].T)
    rows_under(space.mem, version.root, shape, bindings, counts)
    order = np.arange(n) * STRIDE % n if n == wanted else np.arange(n)
    return bindings[order], (len(version) / counts[order]).tolist()
