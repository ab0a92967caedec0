"""Every workload of the registry at size "tiny": each engine against the plain evaluator, and so against each other.

Catches: a pattern that means something else in SQL or Cypher, an engine adapter that counts duplicates, a rival's
kernel that is fast and wrong, a registry entry that names no data.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from bench import graphs
from bench.measure import Mode, measure
from bench.pattern import Pattern
from bench.rivals.csr import TRIANGLE, compressed, count_by_intersection, count_by_marking
from bench.worker import ENGINES, engine, engine_class
from bench.workloads import LEFT_OUT, WORKLOADS, Case, Workload, by_name
from tests.bench.naive import answers

NAMES = [workload.name for workload in WORKLOADS]
MODES: tuple[Mode, ...] = ("count", "materialise")
TAKING_PART = [
    (workload.name, rival, mode)
    for workload in WORKLOADS
    for rival in ENGINES
    for mode in MODES
    if rival != "lftj" and not engine_class(rival).refuses(workload.pattern(workload.tiny), mode)
]


def expected(pattern: Pattern, relations: dict[str, graphs.Rows]) -> int:
    return len(answers(pattern, {name: {tuple(row) for row in rows.tolist()} for name, rows in relations.items()}))


def tiny(workload: Workload) -> tuple[Pattern, dict[str, graphs.Rows]]:
    data = workload.relations(workload.tiny)
    return workload.pattern(workload.tiny), {name: d.rows for name, d in data.items()}


def test_names_are_unique_and_cases_known() -> None:
    assert len(set(NAMES)) == len(NAMES)
    cases = [(w.name, case.graph) for w in WORKLOADS for case in w.cases]
    assert len(set(cases)) == len(cases)
    assert {graph for _, graph in cases} <= set(graphs.names())
    assert not set(cases) & set(LEFT_OUT)


def test_a_pair_that_is_left_out_has_a_reason() -> None:
    """Binary patterns are asked of all published graphs; where one is not, LEFT_OUT says why."""
    asked = {(w.name, c.graph) for w in WORKLOADS for c in w.cases} | set(LEFT_OUT)
    published = ("ego-Facebook", "wiki-Vote", "email-Enron", "pl200k", "pl1m", "pl1m_skew")
    assert [(w.name, g) for w in WORKLOADS if w.relation == "e" for g in published if (w.name, g) not in asked] == []


def test_by_name_says_what_there_is() -> None:
    with pytest.raises(KeyError, match="no workload 'square'; there are: triangle, 4-clique"):
        by_name("square")


@pytest.mark.parametrize("name", NAMES)
def test_tiny_answers_are_not_trivial(name: str) -> None:
    assert expected(*tiny(by_name(name))) > 3


@pytest.mark.parametrize(("name", "rival", "mode"), TAKING_PART)
def test_rivals_agree_with_the_plain_evaluator(name: str, rival: str, mode: Mode) -> None:
    pattern, relations = tiny(by_name(name))
    assert measure(engine(rival), pattern, relations, relations, mode, 2).count == expected(pattern, relations)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_lftj_agrees_with_the_plain_evaluator(name: str, mode: Mode) -> None:
    pattern, relations = tiny(by_name(name))
    assert measure(engine("lftj"), pattern, relations, relations, mode, 2).count == expected(pattern, relations)


def test_refusals_give_their_reason() -> None:
    square = by_name("4-cycle").pattern(Case("tiny"))
    assert engine_class("csr").refuses(square, "count") == "a kernel for triangles only"
    assert engine_class("csr").refuses(TRIANGLE, "materialise") == "counts only"
    assert engine_class("csr").refuses(TRIANGLE, "count") is None
    assert engine_class("kuzu").refuses(TRIANGLE, "materialise") == "no statement that stores a query's rows as a table"


@pytest.mark.parametrize("seed", range(40))
def test_triangle_kernels_on_random_graphs(seed: int) -> None:
    """Degrees from even to one hub, so that merging, galloping, marking and skipping all happen; loops included."""
    rng = random.Random(seed)
    vertices = rng.choice((3, 8, 40))
    hub = rng.randrange(vertices)
    arcs = {(rng.randrange(vertices), rng.randrange(vertices)) for _ in range(rng.randrange(1, 5 * vertices))}
    if seed % 2:
        arcs |= {(hub, v) for v in range(vertices)} | {(v, hub) for v in range(0, vertices, 7)}
    rows = np.array(sorted(arcs), dtype=np.int64)
    arrays = compressed(rows)
    count = len(answers(TRIANGLE, {"e": arcs}))
    assert int(count_by_intersection(*arrays)) == count
    assert int(count_by_marking(*arrays)) == count


def test_triangle_kernels_on_the_empty_graph() -> None:
    arrays = compressed(np.empty((0, 2), dtype=np.int64))
    assert int(count_by_intersection(*arrays)) == 0
    assert int(count_by_marking(*arrays)) == 0
