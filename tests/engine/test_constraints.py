"""Relations that are declared `empty`: whatever would leave a row in one is refused, and changes nothing.

Catches: a constraint that is looked at in one way of changing rows and not in another, one that is judged before the
end of a transaction, one that is lost with a file, a snapshot or the rules of others, a refusal that leaves something.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import lftj
from lftj.errors import ConstraintError, EvaluationError

PROGRAM = """
    .decl item(id:number)
    .decl sale(item:number, n:number)
    .decl orphan(item:number) empty
    .input item
    .input sale
    orphan(i) :- sale(i, _), !item(i).
"""


def shop() -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("item", [(1,), (2,)])
    db.load("sale", [(1, 5), (2, 6)])
    return db


def in_transaction(*calls: tuple[str, str, tuple[int, ...]]) -> Callable[[lftj.Database], None]:
    def change(db: lftj.Database) -> None:
        with db.transaction() as tx:
            for method, name, row in calls:
                getattr(tx, method)(name, [row])

    return change


BROKEN = {
    "load": lambda db: db.load("sale", [(3, 1)]),
    "insert": in_transaction(("insert", "sale", (3, 1))),
    "erase": in_transaction(("erase", "item", (2,))),
    "events": lambda db: db.apply([("sale", 1, [(3, 1)])]),
    "changes": lambda db: db.load_changes("sale", [{"item": 3, "n": 1, "op": "insert"}]),
    "fact": lambda db: db.rules("sale(3, 1)."),
    "rule": lambda db: db.rules("orphan(n) :- sale(_, n)."),
    "another": lambda db: db.rules(".decl big(n:number) empty  big(n) :- sale(_, n), n > 5."),
    "row": in_transaction(("insert", "orphan", (1,))),
    "row loaded": lambda db: db.load("orphan", [(1,)]),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_what_breaks_a_constraint_changes_nothing(change: Callable[[lftj.Database], None]) -> None:
    db = shop()
    with pytest.raises(ConstraintError, match="must stay empty"):
        change(db)
    assert (list(db["item"]), list(db["sale"]), list(db["orphan"])) == ([(1,), (2,)], [(1, 5), (2, 6)], [])
    assert "big" not in list(db)
    in_transaction(("insert", "sale", (3, 1)), ("insert", "item", (3,)))(db)
    assert len(db["sale"]) == 3


def test_what_the_error_says() -> None:
    db = shop()
    with pytest.raises(ConstraintError) as caught:
        db.load("sale", [(3, 1), (4, 1)])
    assert str(caught.value).splitlines() == [
        "`orphan` must stay empty, and would have the row orphan(3), and 1 more",
        "  orphan(3): <rules>:7:5: `orphan(i) :- sale(i, _), !item(i).` with i = 3",
        "  why: `orphan` is declared `empty`; nothing was changed",
        "  do: change the rows that its rules read in the same transaction, so that they derive nothing",
    ]
    assert (caught.value.relation, caught.value.row) == ("orphan", (3,))


def test_a_preview_tells_and_the_block_may_go_on() -> None:
    db = shop()
    with db.transaction() as tx:
        tx.insert("sale", [(3, 1)])
        with pytest.raises(ConstraintError):
            tx.preview()
        tx.insert("item", [(3,)])
        assert tx.preview()["sale"]
    assert len(db["sale"]) == 3


def test_inputs_are_checked_together(tmp_path: Path) -> None:
    (tmp_path / "sale.facts").write_text("1\t5\n")
    (tmp_path / "item.facts").write_text("2\n")
    program = PROGRAM.replace(".input item\n    .input sale", ".input sale\n    .input item")
    db = lftj.Database(program)
    with pytest.raises(ConstraintError):
        db.read_inputs(tmp_path)
    assert not len(db["sale"])
    (tmp_path / "item.facts").write_text("1\n")
    db.read_inputs(tmp_path)
    assert list(db["sale"]) == [(1, 5)]
    with pytest.raises(ConstraintError):
        db.load("sale", [(3, 3)])


def test_a_constraint_without_a_value_is_an_error() -> None:
    db = shop()
    db.rules(".decl odd(n:number) empty  odd(n) :- sale(_, n), 10 / (n - 7) = 99.")
    with pytest.raises(EvaluationError, match="has no value"):
        db.load("sale", [(1, 7)])
    with pytest.raises(EvaluationError, match="has no value"):
        in_transaction(("insert", "sale", (1, 7)))(db)
    assert len(db["sale"]) == 2


def test_a_file_keeps_constraints(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with lftj.Database(PROGRAM, path=path) as db:
        db.load("item", [(1,)])
        with pytest.raises(ConstraintError):
            db.load("sale", [(2, 2)])
    for checkpoint in (False, True):
        with lftj.Database(path=path) as db:
            for name in ("insert", "load"):
                with pytest.raises(ConstraintError):
                    BROKEN[name](db)
            in_transaction(("insert", "sale", (1, int(checkpoint))))(db)
            if checkpoint:
                db.checkpoint()
            with pytest.raises(ConstraintError):
                in_transaction(("erase", "item", (1,)))(db)
    with lftj.Database(path=path) as db:
        assert list(db["sale"]) == [(1, 0), (1, 1)]
        with pytest.raises(ConstraintError):
            db.load("sale", [(2, 2)])


@pytest.mark.parametrize("maintain", ["auto", "trace", "delta", "triggers", "recompute"])
def test_random_changes_are_refused_just_where_they_break_it(maintain: str) -> None:
    random = Random(5)
    db = lftj.Database(PROGRAM.replace("orphan(i) :- sale(i, _), !item(i).", ""))
    db.rules("orphan(i) :- sale(i, _), !item(i).", maintain={"orphan": maintain})
    items: set[tuple[int, ...]] = set()
    sales: set[tuple[int, ...]] = set()
    refused = 0
    for _ in range(60):
        after = set(items), set(sales)
        calls = []
        for _ in range(random.randint(1, 3)):
            at = random.randint(0, 1)
            row = (random.randint(0, 3),) if at == 0 else (random.randint(0, 3), random.randint(0, 2))
            come = random.random() < 0.6
            calls.append(("insert" if come else "erase", ("item", "sale")[at], row))
            (after[at].add if come else after[at].discard)(row)
        if {row[:1] for row in after[1]} <= after[0]:
            in_transaction(*calls)(db)
            items, sales = after
        else:
            refused += 1
            with pytest.raises(ConstraintError):
                in_transaction(*calls)(db)
        assert (set(db["item"]), set(db["sale"])) == (items, sales)
    assert 10 < refused < 50
