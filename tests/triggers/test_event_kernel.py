"""The event kernel: every map equals its definition after every event, whatever the batches, and can be undone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.language.clause import Apply, Value, Var
from lftj.triggers import maps as map_memory
from lftj.triggers.algebra import Add, Cmp, Mul, Rel, Val
from lftj.triggers.compilation import compiled
from lftj.triggers.maps import Maps, SumOverflow
from lftj.triggers.table_kernel import CAP, WIDTH
from lftj.triggers.twins import twins_of
from tests.conftest import JIT, examples
from tests.triggers.plain_triggers import view
from tests.triggers.random_queries import SCHEMA, SETS, queries, streams

EXAMPLES = 200 if JIT else 10

RELATIONS = {**SCHEMA, **SETS}


def events_of(maps, stream):
    """A stream as the kernel takes it."""
    kinds = np.array([maps.kinds[sign, name] for sign, name, _ in stream], np.int64)
    rows = np.zeros((len(stream), maps.lowered.width), np.int64)
    for i, (_, _, row) in enumerate(stream):
        rows[i, : len(row)] = row
    return kinds, rows


def held(maps, name):
    """The entries of a map as a dict; no key is there twice."""
    keys, values = maps.entries(name)
    found = dict(zip(map(tuple, keys.T.tolist()), values.tolist(), strict=True))
    assert len(found) == len(values)
    return found


def contents(maps):
    return {name: held(maps, name) for name in maps.program.maps}


def check(maps, rows):
    """Every map equals its definition, also key by key."""
    for name, made in maps.program.maps.items():
        expected = view(made.keys, made.body, rows)
        assert held(maps, name) == expected, name
        keys = np.array([*expected, *expected], np.int64).reshape(2 * len(expected), len(made.keys)).T
        assert maps.values(name, keys).tolist() == [*expected.values(), *expected.values()]


@examples(EXAMPLES)
@given(st.lists(queries(), min_size=1, max_size=2), streams(), st.data())
def test_maps_equal_their_definitions(several, stream, data):
    in_reserved_memory = {"RESERVED": 0, "AHEAD": data.draw(st.sampled_from([1, 9])), "LEFT_BEHIND": 1}
    with mock.patch.multiple(map_memory, **in_reserved_memory if data.draw(st.booleans()) else {"LEFT_BEHIND": 1}):
        follow(several, stream, data)


def follow(several, stream, data):
    """Maps of some queries follow a stream, part by part, some of them taken back in between."""
    maps = Maps(compiled({f"q{i}": query for i, query in enumerate(several)}, RELATIONS))
    rows = {name: Counter() for name in RELATIONS}
    kinds, events = events_of(maps, stream)
    at = 0
    if reserved := data.draw(st.sampled_from([0, 10, 1000])):
        maps.reserve(reserved)
    while at < len(stream):
        if data.draw(st.booleans()):
            maps.trim()
        n = data.draw(st.integers(1, len(stream) - at))
        before = contents(maps)
        maps.run(kinds[at : at + n], events[at : at + n])
        log = {top: maps.log(top) for top in maps.program.tops}
        if data.draw(st.booleans()):
            maps.undo(kinds[at : at + n], events[at : at + n])
            assert contents(maps) == before
            maps.run(kinds[at : at + n], events[at : at + n])
        for sign, name, row in stream[at : at + n]:
            rows[name][row] += sign
            if not rows[name][row]:
                del rows[name][row]
        check(maps, rows)
        for top, lines in log.items():
            replayed = dict(before[top])
            for key, old, new in zip(map(tuple, lines.keys.T.tolist()), lines.old, lines.new, strict=True):
                assert replayed.get(key, 0) == old
                replayed[key] = int(new)
            assert {key: value for key, value in replayed.items() if value} == held(maps, top)
        at += n


def test_room_follows_the_entries():
    """Tables have the slots that are reserved, and are trimmed to what their entries need."""
    a, b, c = (Var(x, "number") for x in "abc")
    maps = Maps(compiled({"q": ((a,), Mul((Rel("R", (a, b)), Rel("S", (b, c)), Val(c))))}, RELATIONS))
    maps.reserve(100_000)
    reserved = int(maps.tables.top[0])
    stream = [(1, "R", (i % 90, i % 7)) for i in range(300)] + [(1, "S", (i % 7, i)) for i in range(50)]
    maps.run(*events_of(maps, stream))
    assert maps.tables.top[0] == reserved  # 1,000 rows are expected of a relation that nothing is known of
    before = contents(maps)
    maps.trim()
    assert maps.tables.top[0] < reserved / 2
    assert contents(maps) == before
    maps.run(*events_of(maps, [(-1, name, row) for _, name, row in stream]))
    assert not any(contents(maps).values())


@pytest.mark.jit_only
def test_what_tables_leave_behind_is_given_back(monkeypatch):
    """In reserved memory tables grow without all being moved; what a smaller one took is no memory any more."""
    monkeypatch.setattr(map_memory, "RESERVED", 1 << 8)
    monkeypatch.setattr(map_memory, "AHEAD", 1 << 12)
    monkeypatch.setattr(map_memory, "LEFT_BEHIND", 1 << 6)
    a, b, c = (Var(x, "number") for x in "abc")
    maps = Maps(compiled({"q": ((a,), Mul((Rel("R", (a, b)), Rel("S", (b, c)), Val(c))))}, RELATIONS))
    stream = [(1, "R", (i, i % 300)) for i in range(3_000)] + [(1, "S", (i % 300, i)) for i in range(600)]
    for at in range(0, len(stream), 100):
        maps.run(*events_of(maps, stream[at : at + 100]))
    rows = {name: Counter() for name in RELATIONS}
    for _, name, row in stream:
        rows[name][row] += 1
    check(maps, rows)
    live = int(maps.tables.desc[:, CAP] @ maps.tables.desc[:, WIDTH])
    assert 8 * live <= maps.memory() - maps.work.log.nbytes - maps.work.additions.nbytes < 8 * live * 1.5
    assert maps.tables.top[0] > 1.5 * live
    with pytest.raises(SumOverflow):
        maps.run(*events_of(maps, [(1, "R", (-1, 5)), (1, "S", (5, 2**63 - 1)), (1, "S", (5, 2**63 - 2))]))
    check(maps, rows)
    maps.run(*events_of(maps, [(-1, name, row) for _, name, row in stream]))
    assert len(maps) == 0


@examples(EXAMPLES // 4)
@given(queries(), streams(events=20))
def test_the_log_is_exact_after_each_event(query, stream):
    maps = Maps(compiled({"q": query}, RELATIONS))
    kinds, events = events_of(maps, stream)
    maps.run(kinds, events)
    lines, rows, now = maps.log("q"), {name: Counter() for name in RELATIONS}, {}
    for i, (sign, name, row) in enumerate(stream):
        rows[name][row] += sign
        if not rows[name][row]:
            del rows[name][row]
        here = lines.events == i
        for key, new in zip(map(tuple, lines.keys[:, here].T.tolist()), lines.new[here].tolist(), strict=True):
            now[key] = new
        assert {key: value for key, value in now.items() if value} == view(*query, rows)


LARGE = [0, 1, -1, 2**20, 2**31, 2**33, -(2**33), 2**62, 2**63 - 1, -(2**63)]


@examples(2 * EXAMPLES)
@given(queries(atoms=3), streams(), st.lists(st.sampled_from(LARGE), min_size=3, max_size=3, unique=True), st.data())
def test_numbers_at_the_ends_of_64_bits(query, stream, numbers, data):
    """Every run is exact, or refused with all as it was; and so is taking it back, whatever its own sums are.

    But for a term that is compared, and that only taking back computes: the maps say that they are lost then.
    """
    compared = [side for part in query[1].parts if isinstance(part, Cmp) for side in (part.left, part.right)]
    may_be_lost = any(isinstance(side, Apply) for side in compared)
    maps = Maps(compiled({"q": query}, RELATIONS))
    stream = [(sign, name, tuple(numbers[v] for v in row)) for sign, name, row in stream]
    rows = {name: Counter() for name in RELATIONS}
    kinds, events = events_of(maps, stream)
    at = 0
    while at < len(stream):
        n = data.draw(st.integers(1, len(stream) - at))
        before, part = contents(maps), (kinds[at : at + n], events[at : at + n])
        try:
            maps.run(*part)
        except SumOverflow:
            assert may_be_lost or not maps.lost
            assert maps.lost or contents(maps) == before
            return
        maps.undo(*part)
        if maps.lost:
            assert may_be_lost
            return
        assert contents(maps) == before
        maps.run(*part)
        for sign, name, row in stream[at : at + n]:
            rows[name][row] += sign
            if not rows[name][row]:
                del rows[name][row]
        check(maps, rows)
        at += n


def test_a_value_that_only_taking_back_computes_may_be_too_large():
    """Of P(a) * (a + a) * (1 - P(a)) an insertion finds no P(a) and stops; the deletion computes a + a, twice."""
    a = Var("a", "number")
    present = Rel("P", (a,))
    value = Val(Apply("+", (a, a), "number"))
    absent = Add((Val(Value(1, "number")), Mul((Val(Value(-1, "number")), present))))
    maps = Maps(compiled({"q": ((), Mul((present, value, absent)))}, RELATIONS))
    part = events_of(maps, [(1, "P", (2**62,))])
    before = contents(maps)
    maps.run(*part)
    maps.undo(*part)
    assert not maps.lost
    assert contents(maps) == before


def test_the_least_number_is_taken_back_in_the_middle_of_an_event():
    """One sum takes it and the next overflows: its opposite, which is none of 64 bits, asked for room without end."""
    a, b = Var("a", "number"), Var("b", "number")
    values = Mul((Rel("P", (a,)), Val(a)))
    tops = {"q": ((), values), "r": ((), Add((values, Mul((Rel("R", (a, b)), Val(b))))))}
    maps = Maps(compiled(tops, {"P": ("number",), "R": ("number", "number")}))
    maps.run(*events_of(maps, [(1, "R", (0, -1))]))
    before = contents(maps)
    with pytest.raises(SumOverflow):
        maps.run(*events_of(maps, [(1, "P", (-(2**63),))]))
    assert not maps.lost
    assert contents(maps) == before


def test_the_least_number_goes_where_what_is_left_fits():
    """Its opposite, by which a deletion multiplied, is none of 64 bits: every deletion of it was refused."""
    least, total = -(2**63), ((), Mul((Rel("R", (k, v)), Val(v))))
    for there in (least, -5, -1):
        maps = Maps(compiled({"q": total}, {"R": ("number", "number")}))
        maps.run(*events_of(maps, [(1, "R", (1, there)), (-1, "R", (2, least))]))
        assert held(maps, "q").get((), 0) == there - least
        with pytest.raises(SumOverflow):
            maps.run(*events_of(maps, [(1, "R", (3, 1)), (-1, "R", (4, least))]))
        assert not maps.lost
        assert held(maps, "q").get((), 0) == there - least


k, v, w = (Var(name, "number") for name in "kvw")
JOIN = ((), Mul((Rel("R", (k, v)), Rel("S", (k, w)), Val(v), Val(w))))
PAIR = {"R": ("number", "number"), "S": ("number", "number")}


def test_sum_and_count_are_twins():
    count = ((), Mul((Rel("R", (k, v)), Rel("S", (k, w)))))
    twins = twins_of(compiled({"q": JOIN, "n": count}, PAIR))
    assert [set(made.names) >= {"q", "n"} for made in twins] == [True, False, False]
    assert sum(len(made.names) for made in twins) == 6


def test_a_sum_that_no_integer_holds_leaves_all_as_it_was():
    maps = Maps(compiled({"q": JOIN}, PAIR))
    before = [(1, "R", (1, 2**40)), (1, "R", (2, 5)), (1, "S", (2, 7))]
    maps.run(*events_of(maps, before))
    there = contents(maps)
    with pytest.raises(SumOverflow) as caught:
        maps.run(*events_of(maps, [(1, "R", (3, 9)), (-1, "R", (2, 5)), (1, "S", (1, 2**30)), (1, "R", (4, 4))]))
    assert caught.value.event == 2
    assert contents(maps) == there
    with pytest.raises(SumOverflow):
        maps.run(*events_of(maps, [(1, "R", (1, 2**62)), (1, "R", (1, 2**62 + 1))]))
    assert contents(maps) == there


def test_a_row_whose_deletion_has_larger_products_is_taken_back():
    """The square of a sum: x, then x again. Deleting the first x reads the sum with it: 2 * x * x is too large."""
    square = ((), Mul((Rel("R", (k, v)), Rel("R", (w, Var("u", "number"))), Val(v), Val(Var("u", "number")))))
    maps, x = Maps(compiled({"q": square}, PAIR)), 2_500_000_000
    with pytest.raises(SumOverflow) as caught:
        maps.run(*events_of(maps, [(1, "R", (1, x)), (1, "R", (2, x))]))
    assert caught.value.event == 1
    assert len(maps) == 0
    one = events_of(maps, [(1, "R", (1, x))])
    maps.run(*one)
    assert held(maps, "q") == {(): x * x}
    maps.undo(*one)
    assert len(maps) == 0


def test_what_cannot_be_taken_back_is_told():
    """Statements that disagree: only the deletion computes a key that no 64 bits hold."""
    program, row = compiled({"m": ((k,), Rel("T", (k,)))}, {"T": ("number",)}), Var("@0", "number")
    (statement,) = program.statements[-1, "T"]
    deletion = replace(statement, keys=(Apply("*", (row, row), "number"),))
    maps = Maps(replace(program, statements={**program.statements, (-1, "T"): (deletion,)}))
    one = events_of(maps, [(1, "T", (2**40,))])
    maps.run(*one)
    assert not maps.lost
    maps.undo(*one)
    assert maps.lost


def test_what_is_raised_between_events_leaves_all_as_it_was(monkeypatch):
    from lftj.triggers import maps as module

    monkeypatch.setattr(module, "AT_A_TIME", 3)
    maps = Maps(compiled({"q": JOIN}, PAIR))
    maps.run(*events_of(maps, [(1, "R", (1, 2)), (1, "S", (1, 3))]))
    there = contents(maps)

    def look(done):
        if done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maps.run(*events_of(maps, [(1, "S", (i % 4, i)) for i in range(20)]), look=look)
    assert contents(maps) == there


@pytest.mark.parametrize("n", [50, pytest.param(20_000, marks=pytest.mark.jit_only)])
def test_slices_follow_entries_that_come_and_go(n):
    """A comparison keeps the maps of R and S apart, and slices of them are read; entries come, go and come again."""
    query = ((k,), Mul((Rel("R", (k, v)), Rel("S", (k, w)), Cmp("<", v, w))))
    maps, rng = Maps(compiled({"q": query}, PAIR)), np.random.default_rng(3)
    live, stream = set(), []
    for _ in range(n):
        row = (("R", "S")[rng.integers(2)], (int(rng.integers(max(3, n // 50))), int(rng.integers(4))))
        stream.append((-1 if row in live else 1, *row))
        live ^= {row}
    maps.run(*events_of(maps, stream))
    rows = {name: Counter(row for at, row in live if at == name) for name in PAIR}
    check(maps, rows)
    maps.run(*events_of(maps, [(-1, *row) for row in live]))
    assert len(maps) == 0


def test_steps_do_not_grow_with_the_data():
    """A key's sum over a join: an event takes as many steps whatever there is (a q-hierarchical query)."""
    query = ((k,), Mul((Rel("R", (k, v)), Rel("S", (k, w)), Val(v), Val(w))))
    maps, taken = Maps(compiled({"q": query}, PAIR)), []
    for i in range(4):
        maps.run(*events_of(maps, [(1, "RS"[j % 2], (j % 7, i * 1000 + j)) for j in range(200)]))
        maps.run(*events_of(maps, [(1, "R", (3, -1))]))
        taken.append(maps.steps)
    assert len(set(taken)) == 1


def test_constants_and_comparisons_of_parameters():
    query = ((v,), Mul((Rel("R", (k, v)), Cmp("=", k, Value(3, "number")), Cmp("!=", v, Value(5, "number")))))
    maps = Maps(compiled({"q": query}, PAIR))
    maps.run(*events_of(maps, [(1, "R", (3, 4)), (1, "R", (3, 5)), (1, "R", (2, 4)), (1, "R", (3, 4))]))
    assert held(maps, "q") == {(4,): 2}
