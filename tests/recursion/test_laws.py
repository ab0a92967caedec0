"""The laws of streams that maintained recursion keeps (Budiu et al., DBSP, sections 4 to 6).

the delta of a program is the difference of its integrals            (Twin holds that after every transaction)
a batch may be split, merged and reordered: the end state is the same, and the deltas add up
the delta of a composition is the composition of the deltas
a change and its inverse leave what was
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, note

import lftj
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.mixed.programs import Mixed
from tests.recursion.programs import WRITTEN, make_program, make_rows
from tests.recursion.twin import Twin

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

Row = tuple[Any, ...]
Change = tuple[str, str, Row]
State = dict[str, set[Row]]


def some_program(rng: Random) -> Mixed:
    if rng.random() < 0.5:
        return make_program(rng)
    names = [name for name, written in WRITTEN.items() if "!" not in written.given]
    return WRITTEN[rng.choice(names)].mixed(sizes=programs.make_sizes(rng))


def changes(rng: Random, twin: Twin, count: int) -> list[Change]:
    """Changes of distinct rows that are not there before, or are."""
    found: dict[tuple[str, Row], str] = {}
    for _ in range(count):
        name = rng.choice(twin.mixed.base)
        known = sorted(twin.facts[name])
        if known and rng.random() < 0.5:
            found[name, rng.choice(known)] = "erase"
        else:
            (row, *_) = make_rows(rng, twin.program.kinds[name], 1, 5)
            if row not in twin.facts[name]:
                found[name, row] = "insert"
    return [(verb, name, row) for (name, row), verb in found.items()]


def started(rng: Random, mixed: Mixed) -> Twin:
    note(f"{mixed.text} {mixed.sizes}")
    twin = Twin(mixed)
    start = [("insert", name, make_rows(rng, twin.program.kinds[name], 8, 5)) for name in mixed.base for _ in range(3)]
    note(str(start))
    twin.transact(start, [False] * len(start))
    return twin


def state(db: lftj.Database) -> State:
    return {name: set(db[name]) for name in db}


def batch(db: lftj.Database, made: list[Change]) -> Any:
    with db.transaction() as tx:
        for verb, name, row in made:
            getattr(tx, verb)(name, [row])
    return tx.delta


def added(before: State, delta: Any) -> State:
    """A state with a delta; every row of it is a change."""
    after = {name: set(rows) for name, rows in before.items()}
    for name in delta:
        inserted, erased = set(delta[name].inserted), set(delta[name].erased)
        assert inserted.isdisjoint(after[name]), name
        assert erased <= after[name], name
        after[name] = (after[name] | inserted) - erased
    return after


@examples(50, 3)
@given(programs.seeds)
def test_batches_may_be_split_merged_and_reordered(rng: Random) -> None:
    mixed = some_program(rng)
    twin = started(rng, mixed)
    made = changes(rng, twin, rng.choice((2, 4, 8)))
    note(str(made))
    pieces = [[one] for one in rng.sample(made, len(made))]
    at = rng.randint(0, len(made))
    ends = []
    for parts in ([made], pieces, [made[:at], made[at:]]):
        db = lftj.Database._sized(mixed.text, **mixed.sizes)
        facts = [("insert", name, row) for name, rows in twin.facts.items() for row in sorted(rows)]
        facts += [("erase", name, row) for name in db for row in sorted(db[name]) if row not in twin.contents[name]]
        batch(db, facts)
        reached = state(db)
        assert reached == twin.contents
        for part in parts:
            reached = added(reached, batch(db, part))
            assert reached == state(db)
        ends.append(reached)
    assert ends[0] == ends[1] == ends[2]
    calls = [(verb, name, [row]) for verb, name, row in made]
    twin.transact(calls, [False] * len(calls))
    assert twin.contents == ends[0]


@examples(50, 3)
@given(programs.seeds)
def test_a_change_and_its_inverse_leave_what_was(rng: Random) -> None:
    twin = started(rng, some_program(rng))
    before = twin.contents
    made = changes(rng, twin, rng.choice((1, 3, 8)))
    note(str(made))
    inverse = {"insert": "erase", "erase": "insert"}
    for step in (made, [(inverse[verb], name, row) for verb, name, row in reversed(made)]):
        calls = [(verb, name, [row]) for verb, name, row in step]
        twin.transact(calls, [False] * len(calls))  # and rounds that support everything
    assert twin.contents == before


FIRST = "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z)."
SECOND = (
    "s(x, y) :- t(p, x), t(p, y), e(x, _).\ns(x, y) :- s(x, z), s(z, y), !t(y, x).\n"
    "deg[x] = count : { s(x, _) }.\nr(x) :- f(x, x).\nr(y) :- r(x), t(x, y), deg[y] < 4."
)
EDGES = ".decl e(x:number, y:number)\n.decl f(x:number, y:number)\n"


@examples(40, 3)
@given(programs.seeds)
def test_composed_programs_compose_their_deltas(rng: Random) -> None:
    """The second program over the outputs of the first, in one database and in two."""
    whole = lftj.Database._sized(EDGES + FIRST + "\n" + SECOND, **programs.make_sizes(rng))
    lower = lftj.Database._sized(EDGES + FIRST, **programs.make_sizes(rng))
    upper = lftj.Database._sized(EDGES + ".decl t(x:number, y:number)\n" + SECOND, **programs.make_sizes(rng))
    held: set[tuple[str, Row]] = set()
    for size in (10, 1, 1, 4, 1, 8) if JIT else (4, 1):
        made: list[Change] = []
        for _ in range(size):
            name, row = rng.choice("eeef"), (rng.randrange(6), rng.randrange(6))
            if held and rng.random() < 0.5 and size < 10:
                name, row = rng.choice(sorted(held))
            verb = "erase" if (name, row) in held else "insert"
            if not any(change[1:] == (name, row) for change in made):
                made.append((verb, name, row))
        held ^= {change[1:] for change in made}
        note(str(made))
        delta, first = batch(whole, made), batch(lower, made)
        passed = [("insert", "t", row) for row in first["t"].inserted] + [
            ("erase", "t", row) for row in first["t"].erased
        ]
        second = batch(upper, made + passed)
        for name in ("t", "s", "deg", "r"):
            assert set(delta[name].inserted) == set(second[name].inserted), name
            assert set(delta[name].erased) == set(second[name].erased), name
            assert set(whole[name]) == set(upper[name])
