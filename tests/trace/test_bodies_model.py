"""The engine against the executable model of negation and existential suffixes.

As test_model.py: two programs written apart, on the same random cases, each keeping its own index. Outputs and their
changes agree, and so do the records of every site that the engine keeps: the model's carry the end of their interval
too, and it keeps some of negated atoms whose own keys name the node.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from lftj.plan.keyorder import Choice
from sensitivity.records import INTERVAL, NODE, POINT
from tests.conftest import JIT, ROOT
from tests.trace.bodies import MODEL_SHAPES, BodyTraced
from tests.trace.cases import Domain
from tests.trace.traced import ARITY, Sizes, rows_of

MODEL = ROOT.parent / "shared" / "spec" / "bodies_model.py"
NAMES = "xyz"
# The model's relations as those of the tests.
RENAMED = {"E": "e", "R": "r", "S": "s", "A": "u", "B": "v"}


@pytest.fixture(scope="module")
def model() -> ModuleType:
    if not Path(MODEL).is_file():
        pytest.skip("needs the executable model in ../shared/spec")
    sys.path.insert(0, str(MODEL.parent))
    try:
        spec = importlib.util.spec_from_file_location("bodies_model", MODEL)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    finally:
        sys.path.pop(0)
    return loaded


class Pair:
    """The model and the engine on one shape, its variables bound in the order of their numbers."""

    def __init__(self, model: Any, name: str, data: dict[str, set[Any]], rng: Random) -> None:
        self.model = model
        atoms, variables, self.n_head = model.SHAPES[name]
        order = tuple(NAMES[:variables])

        def choose(found: Sequence[Choice]) -> Choice:
            return next(choice for choice in found if choice.order == order)

        granularity = rng.choice(("node", "interval", "mixed"))
        data = {RENAMED[r]: rows for r, rows in data.items()}
        self.engine = BodyTraced(MODEL_SHAPES[name], data, choose, granularity, Sizes.tiny(rng), rng)
        assert self.engine.trace_plan.until == self.n_head
        grains = self.grains()
        renamed = [(sign, RENAMED[r], own) for sign, r, own in atoms]
        self.body = model.Body(renamed, variables, self.n_head, lambda depth: grains[depth])
        self.sites = self.numbering()
        for participants in self.body.participants:  # their canonical order is the plan's
            participants.sort(key=self.sites.__getitem__)
        self.tries = self.grown(data)
        self.index, self.outputs = model.from_scratch(self.body, self.tries)

    def grains(self) -> dict[int, str]:
        """The granularity of each depth as the model has it."""
        named = {NODE: self.model.NODE, INTERVAL: self.model.INTERVAL, POINT: self.model.INTERVAL}
        return {
            site.depth: named[site.granularity] for site in self.engine.trace_plan.sites if site.granularity in named
        }

    def grown(self, data: dict[str, set[Any]]) -> dict[str, Any]:
        return {r: self.model.Trie(rows, ARITY[r]) for r, rows in data.items()}

    def numbering(self) -> dict[tuple[Any, ...], int]:
        """(atom, level), or ("not", depth, number) of the model -> site of the engine."""
        plan, found = self.engine.plan, {}
        for s, site in enumerate(self.engine.trace_plan.sites):
            node = plan.nodes[site.frame]
            depth = plan.depths[site.depth]
            own = tuple(sorted((*site.prefix, site.depth)))
            if site.turn < len(depth.participants):
                for a, (relation, variables) in enumerate(self.body.atoms):
                    if relation == node.predicate and variables[: len(own)] == own:
                        found[a, len(own) - 1] = s
            else:
                n = self.body.negative[site.depth].index((node.predicate, own))
                found["not", site.depth, n] = s
        return found

    def records(self) -> dict[int, list[Any]]:
        """The model's records as the engine has them."""
        trace_plan = self.engine.trace_plan
        found: dict[int, list[Any]] = {s: [] for s in trace_plan.recorded}
        for record in self.index:
            if record[0] == "not":
                at, (prefix, start, _, context), agree = record[:3], record[3:], ()
            else:
                at, (prefix, start, _, context), agree = record[:2], record[2:6], (record[6],)
            s = self.sites[at]
            if s not in found:  # its own keys name the node
                assert record[0] == "not"
                continue
            if trace_plan.sites[s].granularity == NODE:
                found[s].append((*prefix, *context))
            else:
                found[s].append((*prefix, -(2**63) if start == self.model.KEY_MIN else start, *context, *agree))
        return {s: sorted(rows) for s, rows in found.items()}

    def check(self) -> None:
        assert sorted(self.engine.rows.elements()) == sorted(self.outputs)
        assert self.engine.records() == self.records()

    def change(self, data: dict[str, set[Any]]) -> None:
        data = {RENAMED[r]: rows for r, rows in data.items()}
        tries = self.grown(data)
        erased, inserted, self.index, _ = self.model.maintain(self.body, self.tries, tries, self.index)
        self.tries, self.outputs = tries, (self.outputs - erased) | inserted
        result = self.engine.apply(data)
        gone = set(rows_of(result.erased)) if result else set()
        come = set(rows_of(result.inserted)) if result else set()
        assert gone - come == erased
        assert come - gone == inserted


@pytest.mark.parametrize("name", MODEL_SHAPES)
def test_model_and_engine_agree(model: ModuleType, name: str) -> None:
    atoms, _, _ = model.SHAPES[name]
    relations = sorted({relation for _, relation, _ in atoms})
    for seed in range(30 if JIT else 2):
        rng = Random(f"{name} {seed}")
        domain = Domain(0, rng.choice((3, 5, 8)))
        data = {r: {domain.row(rng, RENAMED[r]) for _ in range(rng.randint(0, 25))} for r in relations}
        pair = Pair(model, name, data, rng)
        pair.check()
        for _ in range(5):
            data = {r: set(rows) for r, rows in data.items()}
            for _ in range(rng.choice((1, 1, 2, 5, 15))):
                r = rng.choice(relations)
                if data[r] and rng.random() < 0.5:
                    data[r].discard(rng.choice(sorted(data[r])))
                else:
                    data[r].add(domain.row(rng, RENAMED[r]))
            pair.change(data)
            pair.check()


def test_the_shapes_are_the_models(model: ModuleType) -> None:
    assert set(model.SHAPES) == set(MODEL_SHAPES)
