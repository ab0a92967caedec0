"""The seam holds one more strategy: a toy in one file is chosen, follows changes, and is explained and counted.

Catches: a place beside `maintain/choose.py` that knows strategies by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.join.run import Limits
from lftj.language import options
from lftj.maintain import choose
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, Staged
from lftj.program.evaluation import Evaluation
from lftj.program.strata import Heads
from lftj.store.change import Change


class KeptSwaps:
    """How often the toy has followed a change."""

    strategy = "swap"

    def __init__(self, heads: Heads, content: object) -> None:
        self.clauses, self.content, self.followed = heads.clauses, content, 0

    def holds_for(self, step: Step, heads: Heads) -> bool:
        return self.clauses == heads.clauses and step.before.relations[heads.name].content is self.content

    def estimate(self, step: Step, heads: Heads) -> Cost:
        rows = len(step.changes[heads.reads[0]].kinds)
        return Cost(f"{rows} rows to turn round", worth=rows < 4)

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        below = step.changes[heads.reads[0]]
        if (below.rows == 13).any():
            raise Declined("thirteen is bad luck")
        order = np.lexsort(below.rows)
        change = Change(np.ascontiguousarray(below.rows[::-1, order]), below.kinds[order])
        relation = step.after[heads.name]
        content, _ = relation.content.update(change.rows, change.kinds)
        made = KeptSwaps(heads, content)
        made.followed = self.followed + 1
        return Staged(
            self.strategy,
            why,
            {heads.name: relation.successor(content, change=change)},
            {heads.name: change},
            steps=len(below.kinds),
            kept=made,
        )

    def memory(self) -> dict[str, int]:
        return {"swaps": 8 * self.followed}


class Swap:
    """A toy: keeps `p(y, x) :- e(x, y).` where it is asked for."""

    name = "swap"

    def fits(self, step: Step, heads: Heads) -> str:
        if self.name not in step.asked(heads):
            return "it is not asked for"
        (clause,) = heads.clauses
        return "" if clause.atoms[0].args == clause.head_args[::-1] else "it does not swap"

    def kept(self, step: Step, heads: Heads) -> KeptSwaps | None:
        return None

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        return "it has never been swapped"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        staged = RECOMPUTE.prepare(step, heads, why, limits)
        staged.kept = KeptSwaps(heads, staged.relations[heads.name].content)
        return staged

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        return {"why": "columns are swapped", "recorded": head in step.kept.heads}

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        return [f"{indent}follows changes by swapping: {explained['why']}"]


@pytest.fixture
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "STRATEGIES", list(choose.STRATEGIES))
    monkeypatch.setitem(options.VALUES, "maintain", options.VALUES["maintain"])
    choose.register(Swap())


@pytest.mark.usefixtures("_toy")
def test_a_toy_strategy_works_is_chosen_explained_and_counted() -> None:
    db = lftj.Database(".decl e(x:number, y:number)")
    db.rules("p(y, x) :- e(x, y).", maintain={"p": "swap"})
    db.rules("q(x) :- p(x, _).")
    db.load("e", [(1, 2), (3, 4)])
    assert set(db["p"]) == {(2, 1), (4, 3)}
    told = []
    for rows in ([(5, 6)], [(6, 5)], [(1, 13)], [(i, i) for i in range(20, 25)], [(7, 8)]):
        with db.transaction() as tx:
            tx.insert("e", rows)
            tx.erase("e", [(1, 2)])
        assert set(db["p"]) == {(y, x) for x, y in db["e"]}
        assert set(tx.delta["p"].inserted) == {(y, x) for x, y in rows}
        assert set(db["q"]) == {(y,) for _, y in db["e"]}
        stats = tx.stats["heads"]["p"]
        told.append((stats["strategy"], stats["why"], stats["steps"]))
    assert told[0][:2] == ("recompute", "`e` changed; it has never been swapped")
    assert told[1] == ("swap", "`e` changed; 1 rows to turn round", 1)
    assert told[2][:2] == ("recompute", "`e` changed; thirteen is bad luck")
    assert told[3][:2] == ("recompute", "`e` changed; 5 rows to turn round")
    assert told[4] == ("swap", "`e` changed; 1 rows to turn round", 1)
    assert "follows changes by swapping: columns are swapped" in str(db.explain("p"))
    assert db.explain("p").data["strata"][0]["upkeep"]["by"] == "swap"
    assert db.memory()["p"]["trace: swaps"] == 8


@pytest.mark.usefixtures("_toy")
def test_a_discarded_transaction_leaves_the_toy_as_it_was() -> None:
    db = lftj.Database(".decl e(x:number, y:number)")
    db.rules("p(y, x) :- e(x, y).", maintain={"p": "swap"})
    db.load("e", [(1, 2)])
    for row in ((3, 4), (5, 6)):
        with db.transaction() as tx:
            tx.insert("e", [row])
    kept = db._kept.heads["p"]
    with suppress(ZeroDivisionError), db.transaction() as tx:
        tx.insert("e", [(7, 8)])
        assert set(tx.preview()["p"].inserted) == {(8, 7)}
        raise ZeroDivisionError
    assert (8, 7) not in db["p"]
    assert db._kept.heads["p"] is kept
    assert set(db["p"]) == {(2, 1), (4, 3), (6, 5)}
