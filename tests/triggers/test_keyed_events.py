"""Streams of events of relations with keys, wherever these stand: `Database.apply` beside a feed of one each.

Catches: a key that is taken to be all columns but the last; a delete of a key that is not there; a replacement that
keeps what it replaces; a head that misses the row that goes.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import DataObject, data, integers, lists, sampled_from, tuples

import lftj
from tests.conftest import examples

COLUMNS = ("a", "b", "c")
KEYS = [key for size in (1, 2, 3) for key in combinations(COLUMNS, size)] + [("c", "a"), ("b", "a"), ("c", "b", "a")]
HEADS = "s[c] = sum a + 3 * b : { t(a, b, c) }.  n[b] = count : { t(a, b, _), a > 0 }."
# Of a bag, whose rows have their copies behind them.
OF_COPIES = "s[c] = sum (a + 3 * b) * k : { t(a, b, c, k) }.  n[b] = sum k : { t(a, b, _, k), a > 0 }."
BY_KEY = ("insert", "i", "c", "update", "u", "upsert", "delete", "d")
BY_ROW = ("+1", 1, "insert", "-1", -1, "delete")


def declarations() -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Programs that declare `t`, each with the ops that it takes."""
    columns = "a:number, b:number, c:symbol"
    found: dict[str, tuple[str, tuple[Any, ...]]] = {
        "none": (f".decl t({columns})", BY_ROW),
        "functional": (".decl t(a:number, b:number) -> c:symbol", BY_KEY),
        "bag": ("a bigint not null, b bigint not null, c text not null", BY_ROW),
    }
    for key in KEYS:
        named = ", ".join(key)
        found[f"key ({named})"] = (f".decl t({columns}) primary-key ({named})", BY_KEY)
        found[f"SQL key ({named})"] = (f"{found['bag'][0]}, primary key ({named})", BY_KEY)
    return found


DECLARED = declarations()
ROWS = tuples(integers(0, 2), integers(0, 1), sampled_from("xyz"))


def made(kind: str) -> lftj.Database:
    db, (declared, _) = lftj.Database._sized(page_rows=4, directory_rows=4), DECLARED[kind]
    if declared.startswith(".decl"):
        db.rules(declared)
    else:
        db.sql(f"create table t ({declared})")
    db.rules(OF_COPIES if kind == "bag" else HEADS, maintain={"s": "triggers", "n": "triggers"})
    return db


@pytest.mark.parametrize("kind", DECLARED)
@given(data())
@examples(10, 1)
def test_events_are_those_of_a_feed_one_by_one(kind: str, choices: DataObject) -> None:
    """`db.apply` took the columns but the last for the key, whichever were."""
    ops, at_once, plain = DECLARED[kind][1], made(kind), made(kind)
    op_and_row = tuples(sampled_from(ops), ROWS)
    for _ in range(2):
        blocks = choices.draw(lists(lists(op_and_row, min_size=1, max_size=4), max_size=5))
        states = {head: set(at_once[head]) for head in ("s", "n")}
        given = [("t", [str(op) for op, _ in block], [row for _, row in block]) for block in blocks]
        done = at_once.apply(given, watch=["s", "n"])
        events = [event for block in blocks for event in block]
        logs = {head: [tuple(line.values()) for line in done.logs[head].to_pylist()] for head in states}
        effective = 0
        for number, (op, row) in enumerate(events):
            before = list(plain["t"])
            plain.load_changes("t", [dict(zip((*COLUMNS, "op"), (*row, str(op)), strict=True))])
            effective += list(plain["t"]) != before
            for head, state in states.items():
                for _, *line, change in (line for line in logs[head] if line[0] == number):
                    (state.add if change > 0 else state.remove)(tuple(line))
                assert state == set(plain[head])
        assert list(at_once["t"]) == list(plain["t"])
        assert (done.events, done.effective) == (len(events), effective)
        assert all(set(at_once[head]) == set(plain[head]) for head in states)


def test_a_key_that_is_not_all_columns_but_the_last() -> None:
    """What an event named stayed, and what it did not name went."""
    db = lftj.Database(
        ".decl book(v:number, id:number) primary-key (id)\n.decl item(id:number, v:number, s:number) primary-key (id)"
    )
    db.load("book", [(1, 7), (1, 8)])
    db.load("item", [(2, 1, 5), (3, 1, 5)])
    db.apply([("book", "u", [(1, 9)]), ("book", "delete", [(1, 4)])])
    assert list(db["book"]) == [(1, 7), (1, 8), (1, 9)]
    db.apply([("item", "delete", [(2, 9, 9)]), ("item", "u", [(3, 0, 5)])])
    assert list(db["item"]) == [(3, 0, 5)]
    db.sql("create table seat (train int, no int, primary key (train, no))")
    db.load("seat", [(1, 7), (1, 8)])
    assert db.apply([("seat", "insert", [(1, 9), (1, 8)])]).effective == 1
    assert list(db["seat"]) == [(1, 7), (1, 8), (1, 9)]


def test_facts_are_keyed_where_rules_derive_other_rows() -> None:
    db = lftj.Database(".decl t(v:number, id:number) primary-key (id)\n.decl o(id:number)\nt(0, i) :- o(i).")
    db.load("t", [(1, 7)])
    db.load("o", [(8,)])
    db.apply([("t", "u", [(2, 7), (3, 9)]), ("t", "d", [(0, 8)])])
    assert sorted(db["t"]) == [(0, 8), (2, 7), (3, 9)]
