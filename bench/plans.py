"""How good the chosen key orders are: their steps against those of the best order that is found, and as estimated.

    python -m bench.plans [--quick]

Bodies of binary atoms in shapes that rules have (chains, stars, trees, cycles, cliques with a tail, random ones), of 3
to 50 atoms, some with a comparison or a negated atom, with heads of none, some or all of their variables; over graphs
that are random, path-like, skewed, dense, or layered so that most ways end before the last layer.

A body of at most `FEW` variables is walked in all its orders, any other in `SAMPLED` of them: random ones, random ones
that bind only what is connected, and of these such as begin with the head. No walk goes on beyond the least steps
found so far. All key orders of the relations are built before, so that steps are all that orders differ in: *steps*
here are those of the leapfrog joins, the landings of opened nodes, and what the rows that come out take, as the
planner charges it. Trials and pilot runs of the planner are not counted, and an order that an evaluation would abandon
is walked on, up to `MOST` steps. `SLACK` steps are added on both sides, for a body of tens of steps has orders that
differ by its first node.

The bound of 2 is for chains, stars, trees and cycles over random and path-like graphs (*plain*), the bound of 10 for
the others (*hard*), of which estimates from averages say little.

Everything is seeded and counted, so the figures do not depend on the machine. They go to `bench/results/plans.jsonl`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import permutations
from math import factorial
from random import Random
from typing import Any, NamedTuple

import numpy as np

import lftj
from bench import results
from bench.graphs import Rows
from lftj.join import join_state as cells
from lftj.join.run import Limits, Overdue, Run
from lftj.language.clause import Clause
from lftj.plan.body import Body, body_of
from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import DEDUPE, EMIT, OrderSearch

SHAPES = ("chain", "star", "tree", "cycle", "clique", "random")
DATA = ("random", "path", "skewed", "dense", "layered")
# The steps of the chosen order are at most so many times the best one's: of plain shapes over plain data, and of the
# others, which are there to show where estimates end.
PLAIN_SHAPES, PLAIN_DATA, BOUND, HARD_BOUND = ("chain", "star", "tree", "cycle"), ("random", "path"), 2.0, 10.0
PLANS = results.RESULTS / "plans.jsonl"
CASES, QUICK = 300, 40
FEW, SAMPLED = 5, 200
# Steps that no walk goes beyond.
MOST = 1_000_000
SLACK = 64


class Case(NamedTuple):
    """A rule over relations `e` and `f`, and where it came from."""

    shape: str
    data: str
    atoms: int
    head: tuple[str, ...]
    rule: str
    relations: dict[str, Rows]


class Outcome(NamedTuple):
    """Steps of the chosen order and of the best one; steps that estimates alone call the least, and what they are."""

    case: Case
    chosen: int
    best: int
    estimated: float
    actual: int
    order: tuple[str, ...]
    better: tuple[str, ...]
    tried: int

    @property
    def ratio(self) -> float:
        """Chosen over best."""
        return (self.chosen + SLACK) / (self.best + SLACK)

    @property
    def q_error(self) -> float:
        """By which factor the estimate is off, either way."""
        return max((self.actual + SLACK) / (self.estimated + SLACK), (self.estimated + SLACK) / (self.actual + SLACK))

    @property
    def untried(self) -> float:
        """What the ratio would be if estimates alone chose."""
        return (self.actual + SLACK) / (self.best + SLACK)


def edges_of(shape: str, atoms: int, rng: Random) -> list[tuple[int, int]]:
    """The pairs of variables that the atoms of a body join."""
    if shape == "chain":
        return [(i, i + 1) for i in range(atoms)]
    if shape == "star":
        return [(0, i + 1) for i in range(atoms)]
    if shape == "tree":
        return [(rng.randrange(max(0, i - 3), i + 1), i + 1) for i in range(atoms)]
    if shape == "cycle":
        return [(i, (i + 1) % atoms) for i in range(atoms)]
    if shape == "clique":
        size = 3 if atoms < 6 else 4
        inner = [(i, j) for i in range(size) for j in range(i + 1, size)]
        return inner + [(size - 1 + i, size + i) for i in range(atoms - len(inner))]
    variables = max(3, atoms * 2 // 3)
    tree = [(rng.randrange(i + 1), i + 1) for i in range(min(atoms, variables - 1))]
    pairs = ((rng.randrange(variables), rng.randrange(variables)) for _ in iter(int, 1))
    while len(tree) < atoms:
        pair = next(pairs)
        if pair[0] != pair[1] and pair not in tree:
            tree.append(pair)
    return tree


def rows_of(data: str, rng: np.random.Generator) -> Rows:
    """A graph int64[n, 2]."""
    if data == "random":
        vertices = int(rng.integers(20, 150))
        rows = rng.integers(0, vertices, (int(vertices * rng.uniform(0.8, 3)), 2))
    elif data == "path":
        length, paths = int(rng.integers(15, 80)), int(rng.integers(1, 4))
        start = np.arange(paths * (length + 1)).reshape(paths, length + 1)
        rows = np.stack([start[:, :-1].ravel(), start[:, 1:].ravel()], axis=1)
    elif data == "skewed":
        vertices, arcs = int(rng.integers(20, 150)), int(rng.integers(40, 300))
        rows = np.minimum(rng.zipf(1.6, (arcs, 2)), vertices)
    elif data == "dense":
        vertices = int(rng.integers(3, 8))
        rows = np.argwhere(rng.random((vertices, vertices)) < rng.uniform(0.3, 0.9))
    else:
        layers, width = int(rng.integers(3, 9)), int(rng.integers(4, 15))
        arcs = width * int(rng.integers(1, 4))
        rows = np.concatenate([
            np.stack([rng.integers(0, width, arcs) + k * width, rng.integers(0, width, arcs) + (k + 1) * width], 1)
            for k in range(layers)
        ])  # fmt: skip
    return np.unique(rows.astype(np.int64), axis=0)


def case_of(number: int, seed: int = 1) -> Case:
    """The case of that number."""
    rng = Random(f"{seed}/{number}")
    shape, data = SHAPES[number % len(SHAPES)], DATA[number // len(SHAPES) % len(DATA)]
    atoms = rng.choice([3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9, 10, 12, 15, 20, 30, 50])
    if shape == "random":
        atoms = min(atoms, 12)
    numpy = np.random.default_rng([seed, number])
    relations = {"e": rows_of(data, numpy), "f": rows_of(data, numpy)}
    pairs = edges_of(shape, atoms, rng)
    names = sorted({v for pair in pairs for v in pair})
    mixed, turned = rng.random() < 0.4, rng.random() < 0.3
    literals = []
    for a, b in pairs:
        x, y = (b, a) if turned and rng.random() < 0.5 else (a, b)
        literals.append(f"{rng.choice('ef') if mixed else 'e'}(y{x}, y{y})")
    if rng.random() < 0.15:
        a, b = rng.sample(names, 2)
        literals.append(f"!f(y{a}, y{b})")
    if rng.random() < 0.15:
        a, b = rng.choice(pairs)
        literals.append(f"y{a} {rng.choice(['<', '>', '!='])} y{b}")
    if rng.random() < 0.15:
        literals.append(f"y{rng.choice(names)} = {int(rng.choice(relations['e'].ravel().tolist()))}")
    count = rng.choice([1, 1, 1, 2, 2, 3, len(names) if atoms < 6 else 4])
    head = tuple(f"y{v}" for v in sorted(rng.sample(names, min(count, len(names)))))
    return Case(shape, data, atoms, head, f"r({', '.join(head)}) :- {', '.join(literals)}.", relations)


class Walks:
    """The walks of one case: its relations stored, each in both key orders."""

    def __init__(self, case: Case) -> None:
        self.db = lftj.Database(".decl e(a:number, b:number)\n.decl f(a:number, b:number)")
        for name, rows in case.relations.items():
            self.db.load(name, rows)
            self.db._relations[name].order((1, 0))
        self.db.rules(case.rule)
        self.clause: Clause = self.db._strata.of("r")[0]
        self.body: Body = body_of(self.clause)
        statistics = {name: relation.statistics for name, relation in self.db._relations.items()}
        self.search = OrderSearch(self.body, statistics, counting=False)

    def forced(self, order: tuple[str, ...]) -> JoinPlan:
        """The plan of an order."""
        return plan_join(self.body, self.search.forced(order), self.db._relations)

    def steps(self, plan: JoinPlan, most: int) -> int:
        """Steps of a walk, stopped where it takes more than `most`."""
        return self.walked(plan, most)[0]

    def walked(self, plan: JoinPlan, most: int) -> tuple[int, bool]:
        """Steps of a walk, and whether it ended within `most`."""
        run = self.db._evaluator._run(self.clause, self.body, plan, Limits(), {})
        return (0, True) if run is None else walked(run, plan, most)

    def orders(self, rng: Random) -> Iterator[tuple[str, ...]]:
        """The orders that are tried: all, or random ones."""
        names = [v for v in self.body.variables if v not in self.body.shown]
        if factorial(len(names)) <= factorial(FEW):
            yield from permutations(names)
            return
        scopes = self.body.scopes
        near = {v: {u for scope in scopes if v in scope for u in scope} - {v} for v in names}
        for i in range(SAMPLED):
            if i % 4 == 0:
                yield tuple(rng.sample(names, len(names)))
                continue
            head = [v for v in names if v in self.body.head_variables] if i % 4 > 1 else []
            order: list[str] = rng.sample(head, len(head)) if i % 4 == 2 else []
            while len(order) < len(names):
                left = [v for v in head if v not in order] or [v for v in names if v not in order]
                joined = [v for v in left if near[v] & set(order)]
                if i % 8 > 3 and joined:
                    # Depth first: what is connected to the last one that has more.
                    last = next(u for u in reversed(order) if near[u] & set(joined))
                    joined = [v for v in joined if v in near[last]]
                order.append(rng.choice(joined or left))
            yield tuple(order)


def weight(plan: JoinPlan) -> float:
    """Steps that a row takes which comes out."""
    return EMIT if plan.in_order else DEDUPE


def walked(run: Run, plan: JoinPlan, most: int) -> tuple[int, bool]:
    """Steps of `run`, which is stopped once it takes more than `most`, and whether it was not."""
    run.most, rows = most, 0
    with suppress(Overdue):
        for chunk in run.chunks():
            rows += chunk.shape[1]
            if weight(plan) * rows > most:
                break
    control = run.walk.control
    steps = int(control[cells.STEPS] + control[cells.LANDED] + weight(plan) * rows)
    return steps, steps <= most


def measure(case: Case, seed: int = 1) -> Outcome:
    """Walk a case in the chosen order, and in others."""
    walks = Walks(case)
    _, plan = walks.db._evaluator.plan(walks.clause)
    chosen = walks.steps(plan, MOST)
    best, better, tried = chosen, plan.order, 0
    for order in walks.orders(Random(f"orders/{seed}")):
        found, ended = walks.walked(walks.forced(order), min(best, MOST))
        tried += 1
        # Of two walks that were stopped nobody knows which would have been longer.
        if ended and found < best:
            best, better = found, order
    first = walks.search.ranked()[0]
    actual = walks.steps(plan_join(walks.body, first, walks.db._relations), MOST)
    return Outcome(case, chosen, best, first.cost, actual, plan.order, better, tried)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 90 %, 99 % and worst."""
    ordered = sorted(values)
    at = {"median": 0.5, "p90": 0.9, "p99": 0.99, "worst": 1.0}
    return {name: round(ordered[min(len(ordered) - 1, int(q * len(ordered)))], 2) for name, q in at.items()}


def group_of(case: Case) -> str:
    """The row of the table that a case is counted in."""
    plain = case.shape in PLAIN_SHAPES and case.data in PLAIN_DATA
    return "plain" if plain else "hard"


def summary(group: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures of a group of cases, and the rule and the orders of the worst of them."""
    worst = max(outcomes, key=lambda o: o.ratio)
    return {
        "workload": group,
        "cases": len(outcomes),
        "within": sum(o.ratio <= BOUND for o in outcomes),
        "orders": sum(o.tried for o in outcomes),
        "ratio": quantiles([o.ratio for o in outcomes]),
        "untried": quantiles([o.untried for o in outcomes]),
        "q_error": quantiles([o.q_error for o in outcomes]),
        "worst": {
            "rule": worst.case.rule,
            "data": worst.case.data,
            "chosen": [worst.chosen, " ".join(worst.order)],
            "best": [worst.best, " ".join(worst.better)],
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record; exit code 1 if a case exceeds the bound of its group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} cases, and nothing is recorded")
    quick = parser.parse_args(arguments).quick
    found: dict[str, list[Outcome]] = {}
    for number in range(QUICK if quick else CASES):
        outcome = measure(case_of(number))
        found.setdefault(group_of(outcome.case), []).append(outcome)
        if outcome.ratio > BOUND:
            case = outcome.case
            sys.stdout.write(
                f"{number:4} {case.shape} {case.data}: {outcome.chosen:,} steps, {outcome.best:,} possible\n"
            )
            sys.stdout.flush()
    for group, outcomes in found.items():
        line = summary(group, outcomes)
        sys.stdout.write(f"{group}: {line['cases']} cases, ratio {line['ratio']}, q-error {line['q_error']}\n")
        if not quick:
            results.append(PLANS, line)
    bounds = {"plain": BOUND, "hard": HARD_BOUND}
    return int(any(o.ratio > bounds[group] for group, outcomes in found.items() for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
