"""Souffle's semantics, program by program: the table against the engine at once and step by step, and against the
plain reference, which random tests trust.

Catches: an aggregate over values where bindings are meant, an empty group that derives or does not, a variable that
groups where it should not, a negation that looks at too little; and any of these that only a change brings out.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import lftj
from tests.conftest import JIT
from tests.plain.aggregates import Overflow
from tests.plain.evaluate import KeyConflict, Undefined, evaluate, parse
from tests.souffle_semantics.table import DECLARED, FACTS, FAILING, PROGRAMS, REFUSED

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

SIZES = {"page_rows": 2, "directory_rows": 2, "buffer_rows": 3}
Rows = dict[str, list[tuple[Any, ...]]]


def facts() -> Rows:
    found: Rows = {}
    for name, row in parse(DECLARED + FACTS).facts:
        found.setdefault(name, []).append(row)
    return found


def contents(db: lftj.Database) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(db[name]) for name in db}


def insert(db: lftj.Database, rows: Rows) -> None:
    with db.transaction() as tx:
        for name, some in rows.items():
            tx.insert(name, some)


def check_contents(db: lftj.Database, rules: str, rows: Rows) -> None:
    for name, expected in evaluate(parse(DECLARED + rules), rows).items():
        assert set(db[name]) == expected, name


@pytest.mark.parametrize("name", PROGRAMS)
def test_reference(name: str) -> None:
    rules, expected = PROGRAMS[name]
    found = evaluate(parse(DECLARED + FACTS + rules))
    assert {relation: found[relation] for relation in expected} == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_at_once(name: str) -> None:
    rules, expected = PROGRAMS[name]
    db = lftj.Database._sized(DECLARED + FACTS + rules, **SIZES)
    assert {relation: set(db[relation]) for relation in expected} == expected
    assert not [relation for relation in db if relation.startswith("@")]


# A few are enough for the interpreter.
@pytest.mark.parametrize("name", PROGRAMS if JIT else sorted(PROGRAMS)[::6])
def test_row_by_row(name: str) -> None:
    """From nothing to all facts and back, in random order, one or a few rows in a transaction."""
    rules, expected = PROGRAMS[name]
    rng = Random(name)
    db = lftj.Database._sized(DECLARED + rules, **SIZES)
    present: Rows = {relation: [] for relation in parse(DECLARED).kinds}
    moves = [(relation, row) for relation, rows in facts().items() for row in rows]
    for insert in (True, False):
        rng.shuffle(moves)
        at = 0
        while at < len(moves):
            batch = moves[at : at + rng.choice((1, 1, 2, 5))]
            at += len(batch)
            with db.transaction() as tx:
                for relation, row in batch:
                    (tx.insert if insert else tx.erase)(relation, [row])
                    (present[relation].append if insert else present[relation].remove)(row)
            check_contents(db, rules, present)
        if insert:
            assert {relation: set(db[relation]) for relation in expected} == expected


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    rules, word = REFUSED[name]
    with pytest.raises(lftj.errors.ProgramError) as refused:
        lftj.Database(DECLARED + rules)
    assert word in str(refused.value)


@pytest.mark.parametrize("name", FAILING)
def test_failing(name: str) -> None:
    """The change fails by transaction and leaves nothing behind; without it the next one goes through."""
    rules, relation, rows = FAILING[name]
    with pytest.raises((Overflow, KeyConflict, Undefined)):
        evaluate(parse(DECLARED + FACTS + rules), {relation: rows})
    db = lftj.Database._sized(DECLARED + FACTS + rules, **SIZES)
    before = contents(db)
    for _ in range(2):
        with pytest.raises(lftj.Error):
            insert(db, {"n": [(77,)], relation: rows})
        assert contents(db) == before
    insert(db, {"n": [(77,)]})
    assert contents(db) == {**before, "n": before["n"] | {(77,)}}
