"""The benchmark of recursion on tiny data: what it says of a stream, and that it notices a wrong end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lftj
from bench import erased, forms, maintained, recursion, report_recursion
from bench.graphs import Rows
from bench.updates import Batch

NONE = np.empty((0, 2), np.int64)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few facts in the place of GALEN's."""

    def relation(folder: str, stem: str, columns: int) -> Rows:
        rng = np.random.default_rng([columns, *stem.encode()])
        return np.unique(rng.integers(0, 20, size=(8, columns)), axis=0)

    monkeypatch.setattr(recursion, "relation", relation)


def test_facts_go_one_by_one_and_come_back(tiny: None) -> None:
    found = recursion.one_by_one("facts:galen", 6)
    assert found["status"] == "ok"
    assert found["median_ms"].keys() == found["p99_ms"].keys() == {"erase", "insert"}
    assert found["examined_per_changed"]["insert"] == 0


def test_a_fact_that_does_not_come_back_is_noticed(tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    apply = maintained.apply

    def forgetful(db: Any, relation: str, batch: Batch) -> Any:
        return apply(db, relation, Batch(batch.erase, batch.insert[:0]))

    monkeypatch.setattr(maintained, "apply", forgetful)
    assert recursion.one_by_one("facts:galen", 20)["status"] == "wrong"


def test_rows_examined_and_changed_are_counted() -> None:
    """Without 2-3, of 1-2-3-4 and 1-3 the pairs 2-3 and 2-4 go; 1-3, 1-4 were suspects too if 2-3 was used for them."""
    db = lftj.Database(recursion.CLOSURE)
    db.load("e", np.array([[1, 2], [2, 3], [3, 4], [1, 3]]))
    db.evaluate()
    followed = recursion.Followed()
    followed.take(db, "e", Batch(np.array([[2, 3]]), NONE))
    assert followed.changed == 2
    assert followed.examined >= 2
    followed.take(db, "e", Batch(NONE, np.array([[2, 3]])))
    assert (followed.changed, len(followed.seconds)) == (4, 2)
    figures = recursion.figures({"1": followed})
    assert figures["examined_per_changed"] == {"1": followed.examined / 4}


def test_edges_go_at_once_in_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    edges = np.unique(rng.integers(0, 60, size=(400, 2)), axis=0)
    monkeypatch.setattr(recursion, "relation", lambda folder, stem, columns: edges)
    monkeypatch.setattr(erased, "PARTS", (0.01, 0.5))
    found = erased.measured({"workload": "closure", "graph": "cal", "draws": 1})
    assert found["status"] == "ok"
    few, many = found["parts"]
    assert (few["edges"], few["chosen"], few["ms"].keys()) == (4, "rounds", erased.WAYS.keys())
    assert (many["edges"], many["chosen"]) == (round(len(edges) / 2), "recompute")


def test_every_workload_that_follows_changes_has_a_name() -> None:
    follow = {tuple(w.split(":")) for w in recursion.USUAL.split(",") if w.split(":")[0] in recursion.STREAMS}
    assert follow == set(report_recursion.PROGRAMS)


def test_forms_are_followed_as_they_are_written_and_end_alike(tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "EDGES", 3)
    monkeypatch.setattr(recursion, "warm", lambda workload: None)
    told, apply = [], maintained.apply

    def watched(db: Any, relation: str, batch: Batch) -> Any:
        tx = apply(db, relation, batch)
        told.append((tx.stats["heads"]["t"]["strategy"], "run as" in str(db.explain())))
        return tx

    monkeypatch.setattr(maintained, "apply", watched)
    found = []
    for request in forms.requests(quick=True):
        found.append(forms.measured(request))
        assert forms.note(found[-1])
    rows = [line["digests"]["rows"] for line in found]
    closure, turned, (asked, fact) = rows[:3], rows[3:6], rows[6:]
    assert len(set(closure)) == len(set(turned)) == 1
    assert asked == closure[0]
    assert len({asked, turned[0], fact}) == 3
    assert set(told) == {("rounds", False)}
