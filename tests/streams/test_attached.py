"""Circuits attached to a database: a commit is a tick, all or nothing with it.

Catches: a tick made twice or not at all (previews, discarded commits, interrupted publications, loads), outputs that
rules read and that are not followed, a circuit that goes on from a commit that never was.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import lftj
from lftj import streams
from lftj.maintain.commit import Commit
from lftj.streams.graph import Graph

RULES = ".decl e(a:number, b:number)  .decl other(a:number)  edge(x, y) :- e(x, y), x != y."


def circuit() -> streams.Circuit:
    """Outputs that follow from the rows alone, and one that counts ticks."""
    made = streams.Circuit("graph")
    edge = made.input("edge", a=int, b=int)
    made.output("degree", edge.group_by("a").aggregate(n=streams.count()))
    made.output("farthest", edge.group_by("a").top(1, "-b"))
    with made.nested("reach") as inner:
        edges = inner.enter(edge)
        loop = inner.placeholder("reach", a=int, b=int)
        step = loop.delay().rename(b="via").join(edges.rename(a="via"), on="via").select("a", "b")
        reach = (edges + step).distinct()
        inner.connect(loop, reach)
        found = inner.leave(reach)
    made.output("reach", found)
    return made


def attached() -> lftj.Database:
    db = lftj.Database(RULES)
    db.load("e", [(1, 2), (1, 3), (1, 1), (2, 3)])
    db.attach(circuit(), outputs={"farthest": "far"})
    db.rules("busy(x) :- degree(x, n), n > 1.")
    return db


def expected(edges: set[tuple[int, int]]) -> dict[str, set[tuple[int, ...]]]:
    edges = {(a, b) for a, b in edges if a != b}
    degree = {a: sum(a == x for x, _ in edges) for a, _ in edges}
    reach = set(edges)
    while more := {(a, d) for a, b in reach for c, d in edges if b == c} - reach:
        reach |= more
    return {
        "degree": set(degree.items()),
        "far": {(a, max(b for x, b in edges if x == a)) for a in degree},
        "busy": {(a,) for a, n in degree.items() if n > 1},
        "reach": reach,
    }


def holds(db: lftj.Database, edges: set[tuple[int, int]]) -> None:
    for name, rows in expected(edges).items():
        assert set(db[name]) == rows, name


def test_outputs_are_relations_that_rules_read() -> None:
    db = attached()
    holds(db, {(1, 2), (1, 3), (1, 1), (2, 3)})
    with db.transaction() as tx:
        tx.insert("e", [(2, 4)])
        tx.erase("e", [(1, 3)])
    assert (set(tx.delta["degree"].inserted), set(tx.delta["degree"].erased)) == ({(1, 1), (2, 2)}, {(1, 2), (2, 1)})
    assert (set(tx.delta["busy"].inserted), set(tx.delta["busy"].erased)) == ({(2,)}, {(1,)})
    assert tx.stats["heads"]["degree"]["strategy"] == "circuit"
    assert "the circuit `graph`" in str(db.explain("degree"))
    assert any("circuit: integrals" in kinds for kinds in db.memory().values())


def test_random_histories() -> None:
    """Transactions, previews, discarded blocks and loads, read or not read in between."""
    for seed in range(6):
        random, db = Random(seed), attached()
        edges = {(1, 2), (1, 3), (1, 1), (2, 3)}
        for _ in range(25):
            kind = random.choice(["commit", "commit", "preview", "discard", "load", "read"])
            rows = {(random.randrange(5), random.randrange(5)) for _ in range(random.randrange(1, 4))}
            if kind == "load":
                db.load("e", list(rows))
                edges |= rows
            elif kind == "read":
                holds(db, edges)
            else:
                try:
                    with db.transaction() as tx:
                        tx.insert("e", list(rows - edges))
                        tx.erase("e", list(rows & edges))
                        if kind == "preview":
                            list(tx.preview()["reach"].inserted)
                            tx.insert("e", [(0, 9)])
                        if kind == "discard":
                            tx.preview()
                            raise ZeroDivisionError
                    edges ^= rows
                    if kind == "preview":
                        edges.add((0, 9))
                except ZeroDivisionError:
                    pass
        holds(db, edges)


def test_deltas_are_the_difference() -> None:
    random, db = Random(7), attached()
    edges, before = {(1, 2), (1, 3), (1, 1), (2, 3)}, expected({(1, 2), (1, 3), (1, 1), (2, 3)})
    for _ in range(20):
        rows = {(random.randrange(5), random.randrange(5)) for _ in range(3)}
        with db.transaction() as tx:
            tx.insert("e", list(rows - edges))
            tx.erase("e", list(rows & edges))
        edges ^= rows
        after = expected(edges)
        for name in after:
            assert set(tx.delta[name].inserted) == after[name] - before[name], name
            assert set(tx.delta[name].erased) == before[name] - after[name], name
        before = after


def test_an_interrupted_publication_leaves_the_circuit_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: the moment before must not be lost with the second."""
    db = attached()
    assert len(db["reach"]) == 3

    def stop(commit: Commit) -> None:
        for _, staged in commit._staged:
            staged.adopt()
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Commit, "publish", stop)
            with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
                tx.insert("e", [(3, 4)])
        holds(db, {(1, 2), (1, 3), (1, 1), (2, 3)})
    with db.transaction() as tx:
        tx.insert("e", [(3, 5)])
    holds(db, {(1, 2), (1, 3), (1, 1), (2, 3), (3, 5)})
    assert set(tx.delta["reach"].inserted) == {(1, 5), (2, 5), (3, 5)}


def test_a_step_that_fails_discards_the_commit() -> None:
    made = streams.Circuit("quotients")
    made.output("q", made.input("e", a=int, b=int).map("a", q="a / b"))
    db = lftj.Database(".decl e(a:number, b:number)")
    db.attach(made)
    db.rules("r(x) :- q(_, x).")
    with db.transaction() as tx:
        tx.insert("e", [(6, 2)])
    with pytest.raises(lftj.Error, match="has no value for some row"), db.transaction() as tx:
        tx.insert("e", [(6, 3), (1, 0)])
    assert (list(db["e"]), list(db["r"])) == ([(6, 2)], [(3,)])
    with db.transaction() as tx:
        tx.insert("e", [(6, 3)])
    assert list(db["r"]) == [(2,), (3,)]


def late() -> streams.Circuit:
    """Outputs that hang on the number of ticks."""
    made = streams.Circuit("late")
    e = made.input("e", a=int)
    made.output("last", e.delay())
    made.output("last_but_one", e.delay().delay())
    made.output("left", (e.delay() - e).distinct())
    made.output("now", e.distinct())
    return made


def test_every_commit_is_a_tick() -> None:
    """Those that change something else, or nothing, too; those that are discarded, and previews, are none."""
    for seed in range(4):
        random, db, beside = Random(seed), lftj.Database(".decl e(a:number)  .decl f(a:number)"), late().incremental()
        db.attach(late())
        db.rules("both(x) :- last(x), now(x).")
        beside.step()
        held: set[tuple[int]] = set()
        values: dict[str, dict[tuple[int], int]] = {name: {} for name in beside.outputs}
        for number in range(40):
            kind = random.choice(["input", "input", "other", "same", "nothing", "discard", "preview"])
            change: set[tuple[int]] = set()
            try:
                with db.transaction() as tx:
                    if kind in ("input", "preview", "discard"):
                        change = {(random.randrange(3),) for _ in range(random.randrange(3))}
                        tx.insert("e", list(change - held))
                        tx.erase("e", list(change & held))
                    if kind == "other":
                        tx.insert("f", [(number,)])
                    if kind == "same":
                        tx.insert("e", list(held))
                    if kind in ("preview", "discard"):
                        list(tx.preview()["last"].inserted)
                    if kind == "discard":
                        raise ZeroDivisionError
            except ZeroDivisionError:
                continue
            delta = streams.zset(list(change), [-1 if row in held else 1 for row in change], columns={"a": int})
            held ^= change
            for name, made in beside.step({"e": delta}).items():
                for row, weight in made:
                    values[name][row] = values[name].get(row, 0) + weight
            for name, rows in values.items():
                assert set(db[name]) == {row for row, weight in rows.items() if weight > 0}, (name, number, kind)
            assert set(db["both"]) == set(db["last"]) & set(db["now"])


def test_a_load_and_a_commit_are_two_ticks() -> None:
    db = lftj.Database(".decl e(a:number)  .decl f(a:number)")
    db.attach(late())
    db.load("e", [(1,)])
    with db.transaction() as tx:
        tx.insert("f", [(1,)])
    assert list(db["last"]) == [(1,)]
    assert (list(tx.delta["last"].inserted), list(tx.delta["now"].inserted)) == ([(1,)], [])
    assert "a commit was made" in tx.stats["heads"]["last"]["why"]


def test_a_circuit_that_reads_nothing_has_its_facts() -> None:
    """Its outputs stayed empty."""
    db = lftj.Database()
    db.attach(streams.from_rules("p(1). q(x) :- p(x)."))
    assert (list(db["p"]), list(db["q"])) == ([(1,)], [(1,)])
    db.rules("two(x + 1) :- q(x).")
    with db.transaction() as tx:
        pass
    assert not tx.delta["q"].inserted
    assert list(db["two"]) == [(2,)]


def test_the_tick_of_a_load_is_not_made_again_after_a_preview() -> None:
    """It evaluated the derived input, which was evaluated once more after it: that was another tick."""
    db = lftj.Database(".decl f(a:number)  e(x) :- f(x), x > 0.")
    db.attach(late())
    db.load("f", [(1,)])
    with contextlib.suppress(ZeroDivisionError), db.transaction() as tx:
        tx.insert("f", [(2,)])
        assert list(tx.preview()["last"].inserted) == [(1,)]
        raise ZeroDivisionError
    assert (list(db["now"]), list(db["last"])) == ([(1,)], [])
    db.load("f", [(0,)])  # which does not change `e`
    assert (list(db["now"]), list(db["last"])) == ([(1,)], [])


def test_a_load_of_no_rows_is_no_tick() -> None:
    """Into a relation without rows it was one."""
    db = lftj.Database(".decl e(a:number)")
    db.attach(late())
    for change in (lambda tx: tx.insert("e", [(1,)]), lambda tx: tx.erase("e", [(1,)])):
        with db.transaction() as tx:
            change(tx)
        before = list(db["last"]), list(db["left"])
        db.load("e", [])
        assert (list(db["last"]), list(db["left"])) == before


def test_a_commit_is_no_work_for_a_circuit_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only passes changes on is at rest always, one with delays when these have passed."""
    db, ticks = attached(), list[Graph]()
    db.rules(".decl one(a:number)")
    db.attach(late(), inputs={"e": "one"})
    for _ in range(2):
        with db.transaction() as tx:
            tx.insert("other", [(-1,)])
    step = Graph.tick
    monkeypatch.setattr(Graph, "tick", lambda graph, *args: ticks.append(graph) or step(graph, *args))
    for number in range(6):
        with db.transaction() as tx:
            tx.insert("other", [(number,)])
    assert not ticks
    with db.transaction() as tx:
        tx.insert("e", [(7, 8)])
        tx.insert("one", [(7,)])
    before = len(ticks)
    assert len({id(graph) for graph in ticks}) == 3  # both, and a nested one
    for number in range(6, 12):
        with db.transaction() as tx:
            tx.insert("other", [(number,)])
    assert before < len(ticks) <= before + 4
    assert len({id(graph) for graph in ticks[before:]}) == 1
    assert not set(map(id, ticks[before:])) & {id(next(iter(db._evaluator.circuits.values())).graph)}


def test_rows_that_come_too_late_are_told() -> None:
    made = streams.Circuit("sales")
    bid = made.input("bid", price=int, time=int).watermark("time", 5)
    made.output("high", bid.group_by().aggregate(price=streams.max("price")))
    db = lftj.Database(".decl bid(price:number, time:number)  .decl other(a:number)")
    db.attach(made)
    assert "watermark: bid.time 0" in str(db.explain("high"))
    for rows, late in (([(1, 100)], 0), ([(2, 103), (9, 94), (8, 93)], 2), ([(7, 90)], 1), ([(3, 110)], 0)):
        with db.transaction() as tx:
            tx.insert("bid", rows)
        assert tx.stats["heads"]["high"]["late"] == {"bid.time": late}
    with contextlib.suppress(ZeroDivisionError), db.transaction() as tx:
        tx.insert("bid", [(5, 1)])
        tx.preview()
        raise ZeroDivisionError
    assert "watermark: bid.time 3" in str(db.explain("high"))
    assert list(db["high"]) == [(3,)]


def test_texts_are_those_of_the_database() -> None:
    made = streams.Circuit("names")
    people = made.input("person", id=int, name=str)
    made.output("loud", people.map("id", name='cat(name, "!")'))
    db = lftj.Database(".decl person(id:number, name:symbol)")
    db.load("person", [(1, "ann"), (2, "ann!")])
    db.attach(made)
    db.rules("same(x) :- loud(x, y), person(_, y).")
    assert set(db["loud"]) == {(1, "ann!"), (2, "ann!!")}
    assert list(db["same"]) == [(1,)]


def test_two_circuits_one_above_the_other_and_their_end() -> None:
    db = attached()
    above = streams.Circuit("above")
    above.output("count", above.input("degree", a=int, n=int).group_by().aggregate(n=streams.count()))
    db.attach(above, outputs={"count": "nodes"})
    assert list(db["nodes"]) == [(2,)]
    with db.transaction() as tx:
        tx.insert("e", [(5, 6)])
    assert list(tx.delta["nodes"].inserted) == [(3,)]
    with db.transaction() as tx:
        tx.remove_rules("nodes")
    assert list(db["nodes"]) == []
    with db.transaction() as tx:
        tx.insert("e", [(6, 7)])
    assert set(db["degree"]) >= {(5, 1), (6, 1)}
    gc.collect()


@pytest.mark.parametrize(
    ("attach", "message"),
    [
        (
            lambda db: db.attach(5),
            "5 is no circuit\n  why: what is attached steps with every commit\n"
            "  do: make one with `streams.Circuit()` or `streams.from_rules(...)`",
        ),
        (
            lambda db: db.attach(circuit(), inputs={"edges": "e"}),
            "the circuit has no input 'edges'\n  why: its inputs are edge\n  do: did you mean `edge`?",
        ),
        (
            lambda db: db.attach(circuit(), outputs={"far": "x"}),
            "the circuit has no output 'far'\n  why: its outputs are degree, farthest, reach\n"
            "  do: give one of these names",
        ),
        (
            lambda db: db.attach(circuit(), inputs={"edge": "names"}),
            "the input `edge` cannot read `names`\n"
            "  why: its columns are edge(a:number, b:number), those of the relation names(a:number, b:symbol)\n"
            "  do: make the input with the types of the relation, or name another one in `inputs=`",
        ),
        (
            lambda db: db.attach(circuit(), outputs={"degree": "e"}),
            "there is a relation `e` already: e(a:number, b:number)\n"
            "  why: an output of a circuit is a relation of its own\n"
            '  do: give it another name: `outputs={"...": "another_e"}`',
        ),
        (
            lambda db: db.attach(circuit(), outputs={"degree": "reach"}),
            "the outputs `degree` and `reach` would both become `reach`\n"
            "  why: an output of a circuit is a relation of its own\n"
            '  do: give one of them another name: `outputs={"reach": "another_reach"}`',
        ),
        (
            lambda db: db.attach(circuit(), outputs={"degree": 5}),
            "`degree` cannot be 5\n  why: relations are known by their names\n"
            "  do: give the name of a relation as a str",
        ),
        (
            lambda db: db.attach(circuit(), inputs=["edge"]),
            "`inputs` cannot be ['edge']\n  why: it is the relation of an input, by the name of this\n"
            '  do: give `inputs={"best": "best_bid"}`, say',
        ),
    ],
)
def test_what_cannot_be_attached(attach: object, message: str) -> None:
    db = lftj.Database(RULES + "  .decl names(a:number, b:symbol)")
    before = db._state
    with pytest.raises(lftj.Error) as caught:
        attach(db)  # type: ignore[operator]
    assert str(caught.value) == message
    assert db._state is before


def test_nothing_else_can_be_put_into_an_output() -> None:
    db = attached()
    for put in (lambda: db.load("degree", [(1, 1)]), lambda: db.rules("degree(1, 2).")):
        with pytest.raises(lftj.DataError, match="is an output of a circuit, and nothing else can be put there"):
            put()
    with pytest.raises(lftj.ProgramError):
        db.rules("e(x, y) :- reach(x, y).")


def test_an_input_that_depends_on_an_output_is_told() -> None:
    """The circuit was "the aggregate `circuit 1`", and the remedy one for aggregates."""
    db, circuit = lftj.Database(".decl s(a:number)"), streams.Circuit("c")
    circuit.output("o", circuit.input("s", a=int).delay())
    db.attach(circuit)
    with pytest.raises(lftj.ProgramError) as caught:
        db.rules("s(a) :- o(a).")
    (told,) = caught.value.diagnostics
    assert told.what == "a negative cycle: `o` -> `s` -> `o`, through `attach(c)`"
    assert told.remedy == "derive one of these relations without the others"


def test_a_circuit_of_rules_is_attached_by_its_names() -> None:
    """It has every relation as an input and as an output: those that are there are read, the others are given."""
    rules = (
        ".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z).\nn[x] = count : { t(x, _) }.\n"
        "long[x] = 1 + max l : { e(x, y), long[y] = l }.\nlong[x] = 0 :- e(_, x), !e(x, _)."
    )
    db, expected = lftj.Database(".decl e(x:number, y:number)"), lftj.Database(rules)
    rows = {(1, 2), (2, 3)}
    for one in (db, expected):
        one.load("e", sorted(rows))
    db.attach(streams.from_rules(rules))
    db.rules("big(x) :- n(x, c), c > 1.")
    rng = Random(1)
    for _ in range(12):
        low, high = sorted(rng.sample(range(7), 2))
        for one in (db, expected):
            with one.transaction() as tx:
                (tx.erase if (low, high) in rows else tx.insert)("e", [(low, high)])
        rows ^= {(low, high)}
        for head in ("t", "n", "long"):
            assert list(db[head]) == list(expected[head])
        assert set(db["big"]) == {(x,) for x, count in expected["n"] if count > 1}


def watched(made: streams.Stream) -> streams.Stream:
    return made.watermark("t", 0)


def delayed(made: streams.Stream) -> streams.Stream:
    return made.delay()


def delayed_twice(made: streams.Stream) -> streams.Stream:
    return made.delay().delay()


@pytest.mark.parametrize("build", [watched, delayed, delayed_twice], ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", range(6))
def test_a_branch_goes_on_by_itself(build: Any, seed: int) -> None:
    """Its ticks took the place of the database's, and the database's of its."""
    random = Random(seed)

    def made() -> lftj.Database:
        db = lftj.Database(".decl x(t:number)  .decl other(a:number)")
        circuit = streams.Circuit("c")
        circuit.output("o", build(circuit.input("x", t=int)))
        db.attach(circuit)
        return db

    def commit(db: lftj.Database, change: tuple[str, int]) -> None:
        if change[0] == "load":
            db.load("x", [(change[1],)])
        else:
            with db.transaction() as tx:
                tx.insert(change[0], [(change[1],)])

    def some() -> list[tuple[str, int]]:
        return [(random.choice(("x", "x", "other", "load")), random.randrange(30)) for _ in range(3)]

    def alone(changes: list[tuple[str, int]]) -> list[tuple[int, ...]]:
        db = made()
        for change in changes:
            commit(db, change)
            list(db["o"])
        return list(db["o"])

    db, before = made(), some()
    for change in before:
        commit(db, change)
        list(db["o"])
    both = {name: (one, list(before)) for name, one in (("database", db), ("branch", db.branch()))}
    for _ in range(6):
        one, done = both[random.choice(("database", "branch"))]
        change = some()[0]
        commit(one, change)
        done.append(change)
        assert list(one["o"]) == alone(done), (one is db, done)


def test_a_branch_outlives_its_database() -> None:
    """Its circuits were gone with the database, and a commit ended in an AssertionError."""
    db = lftj.Database(".decl x(t:number)")
    made = streams.Circuit("c")
    made.output("o", watched(made.input("x", t=int)))
    db.attach(made)
    branch = db.branch()
    del db, made
    gc.collect()
    with branch.transaction() as tx:
        tx.insert("x", [(9,)])
    assert list(branch["o"]) == [(9,)]


def changing(db: lftj.Database, row: int, change: Callable[[], object]) -> list[str]:
    """Attach a circuit whose output `o` a function computes of `e`, which makes a change when it first meets a row.

    Returns what the change is told.
    """
    told: list[str] = []

    def same(a: Any) -> Any:
        if not told and row in a.to_pylist():
            try:
                change()
            except lftj.errors.TransactionError as error:
                told.append(str(error))
        return a

    made = streams.Circuit("c")
    made.output("o", made.input("e", a=int).apply(same, "a", b=int))
    db.attach(made)
    return told


@pytest.mark.parametrize("call", ["transaction", "load", "rules"])
@pytest.mark.parametrize("apart", [False, True])
def test_a_function_of_a_circuit_changes_nothing(call: str, apart: bool) -> None:
    """What it changed while the commit was computed was lost, or waited for itself in an asynchronous block."""
    db = lftj.Database(".decl e(a:number)  .decl f(a:number)")

    def transaction() -> None:
        with db.transaction() as tx:
            tx.insert("f", [(1,)])

    changes = {"transaction": transaction, "load": lambda: db.load("f", [(1,)]), "rules": lambda: db.rules("f(1).")}
    told = changing(db, 1, changes[call])

    async def main() -> None:
        async with db.transaction() as tx:
            tx.insert("e", [(1,)])

    if apart:
        asyncio.run(asyncio.wait_for(main(), 30))
    else:
        with db.transaction() as tx:
            tx.insert("e", [(1,)])
    assert "inside" in told[0]
    assert list(db["f"]) == []
    assert list(db["o"]) == [(1, 1)]


@pytest.mark.parametrize("read", ["relation", "snapshot"])
def test_a_function_changes_nothing_while_a_head_is_evaluated(read: str) -> None:
    """The head counted as up to date, without what its function had loaded."""
    db = lftj.Database(".decl e(a:number)")
    told = changing(db, 3, lambda: db.load("e", [(9,)]))
    db.load("e", [(3,)])
    assert list((db if read == "relation" else db.snapshot())["o"]) == [(3, 3)]
    assert "`load` inside `evaluate`" in told[0]
    db.load("e", [(4,)])
    assert list(db["o"]) == [(3, 3), (4, 4)]


def test_a_circuit_without_outputs_holds_nothing() -> None:
    """What it kept stayed for as long as the database."""
    db = lftj.Database(".decl x(t:number)")
    db.load("x", [(i,) for i in range(100)])
    for _ in range(3):
        made = streams.Circuit("c")
        made.output("o", made.input("x", t=int).distinct())
        db.attach(made)
        snapshot = db.snapshot()
        with db.transaction() as tx:
            tx.remove_rules("o")
            tx._drop("o")
        assert not db._evaluator.circuits
        assert len(snapshot["o"]) == 100
