"""The engine against an executable model of evaluation and exact trace maintenance, on the same random cases.

Two programs that were written apart: the model evaluates and maintains with lists and tuples, and its own change
oracle. Skipped where the model is not at hand (it does not ship). Where atoms share no trie node, and participants
stand in the same order, both take the same steps; the model's records carry the end of their interval, which the
engine does not store.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import JIT, ROOT
from tests.trace.traced import Sizes, Traced, rows_of

MODEL = ROOT.parent / "shared" / "spec" / "trace_model.py"
# The model's shapes without shared trie nodes.
SHAPES = ("triangle", "intersection", "path", "star", "ternary", "product", "late join")
NAMES = "abcdefg"
PREDICATES = {"R": "r", "S": "s", "T": "t", "A": "u", "B": "v", "C": "w", "P": "p", "Q": "q"}


@pytest.fixture(scope="module")
def model() -> ModuleType:
    if not Path(MODEL).is_file():
        pytest.skip("needs the executable model in ../shared/spec")
    spec = importlib.util.spec_from_file_location("trace_model", MODEL)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Pair:
    """The model and the engine on one query, its variables bound in the order of their numbers."""

    def __init__(self, model: Any, name: str, data: dict[str, set[Any]], rng: Random) -> None:
        self.model = model
        self.atoms, self.variables = model.SHAPES[name]
        self.query = model.Query(self.atoms, self.variables)
        text = ", ".join(f"{PREDICATES[r]}({', '.join(NAMES[v] for v in own)})" for r, own in self.atoms)
        order = tuple(NAMES[: self.variables])
        self.engine = Traced(
            text,
            {PREDICATES[r]: rows for r, rows in data.items()},
            lambda found: found[0],
            "interval",
            Sizes.tiny(rng),
            order=order,
        )
        # What the query names first comes first in its answers.
        self.shown = [str(term) for term in self.engine.plan.head]
        self.numbered = self.numbering()
        for participants in self.query.participants:  # their canonical order is the plan's
            participants.sort(key=self.numbered.__getitem__)
        self.tries = self.grown(data)
        self.index, self.outputs = model.from_scratch(self.query, self.tries)

    def grown(self, data: dict[str, set[Any]]) -> dict[str, Any]:
        arity = {relation: len(own) for relation, own in self.atoms}
        return {r: self.model.Trie(rows, arity[r]) for r, rows in data.items()}

    def numbering(self) -> dict[tuple[int, int], int]:
        """(atom, level) of the model -> site of the engine."""
        plan, found = self.engine.plan, {}
        for s, site in enumerate(self.engine.trace_plan.sites):
            node = plan.nodes[site.frame]
            atoms = [a for a, (relation, _) in enumerate(self.atoms) if PREDICATES[relation] == node.predicate]
            assert len(atoms) == 1
            found[atoms[0], node.level] = s
        return found

    def records(self) -> dict[int, list[Any]]:
        """The model's records as the engine has them."""
        found: dict[int, list[Any]] = {s: [] for s in self.engine.trace_plan.recorded}
        for atom, level, prefix, start, _, context, agree in self.index:
            start = -(2**63) if start == self.model.KEY_MIN else start
            found[self.numbered[atom, level]].append((*prefix, start, *context, agree))
        return {s: sorted(rows) for s, rows in found.items()}

    def check(self) -> None:
        assert sorted(self.engine.rows.elements()) == self.ordered(self.outputs)
        assert self.engine.records() == self.records()

    def ordered(self, bindings: Any) -> list[Any]:
        """The model's outputs, their columns as the query shows them."""
        return sorted(tuple(row[NAMES.index(name)] for name in self.shown) for row in bindings)

    def change(self, data: dict[str, set[Any]]) -> None:
        tries = self.grown(data)
        erased, inserted, self.index, _, _ = self.model.maintain(self.query, self.tries, tries, self.index)
        self.tries, self.outputs = tries, (self.outputs - set(erased)) | set(inserted)
        result = self.engine.apply({PREDICATES[r]: rows for r, rows in data.items()})
        if result is None:
            assert not erased
            assert not inserted
        else:
            assert sorted(rows_of(result.erased)) == self.ordered(erased)
            assert sorted(rows_of(result.inserted)) == self.ordered(inserted)


@pytest.mark.parametrize("name", SHAPES)
def test_model_and_engine_agree(model: ModuleType, name: str) -> None:
    atoms, _ = model.SHAPES[name]
    arity = {relation: len(own) for relation, own in atoms}
    for seed in range(25 if JIT else 3):
        rng = Random(f"{name} {seed}")
        domain = rng.choice((3, 5, 8, 12))

        def row(relation: str, rng: Random = rng, domain: int = domain) -> tuple[int, ...]:
            return tuple(rng.randrange(domain) for _ in range(arity[relation]))

        data = {r: {row(r) for _ in range(rng.randint(0, 40 if JIT else 8))} for r in arity}
        pair = Pair(model, name, data, rng)
        pair.check()
        for _ in range(4):
            data = {r: set(rows) for r, rows in data.items()}
            for _ in range(rng.choice((1, 1, 2, 5, 20))):
                r = rng.choice(sorted(arity))
                if data[r] and rng.random() < 0.5:
                    data[r].discard(rng.choice(sorted(data[r])))
                else:
                    data[r].add(row(r))
            pair.change(data)
            pair.check()
