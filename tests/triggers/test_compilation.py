"""Compilation: every map of a program equals its definition after every event."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lftj.errors import EvaluationError
from lftj.triggers.algebra import DELETION, INSERTION, MapRead, Mul, Rel, Val
from lftj.triggers.compilation import compiled
from tests.triggers.plain_triggers import PlainMaps, view
from tests.triggers.random_queries import SCHEMA, SETS, const, queries, streams, var


def follow(tops, stream, relations):
    """Runs a stream and checks every map, and every top, after every event."""
    program = compiled(tops, relations)
    maps, rows = PlainMaps(program), {name: Counter() for name in relations}
    for sign, name, row in stream:
        maps.event(sign, name, row)
        rows[name][row] += sign
        if not rows[name][row]:
            del rows[name][row]
        maps.check(rows)
        for (keys, body), served_by in zip(tops.values(), program.tops, strict=True):
            assert dict(maps.maps[served_by]) == view(keys, body, rows)
    return maps


@settings(max_examples=300, deadline=None)
@given(queries(), streams())
def test_every_map_equals_its_definition_after_every_event(query, stream):
    follow({"q": query}, stream, {**SCHEMA, **SETS})


@settings(max_examples=60, deadline=None)
@given(st.lists(queries(atoms=3), min_size=2, max_size=3), streams())
def test_programs_of_several_tops_keep_all_of_them(several, stream):
    follow({f"q{i}": query for i, query in enumerate(several)}, stream, {**SCHEMA, **SETS})


k, r, p, x, y, z = map(var, "krpxyz")
ORDERS = {"O": ("number", "number"), "L": ("number", "number")}
REVENUE = ((), Mul((Rel("O", (k, r)), Rel("L", (k, p)), Val(p), Val(r))))


def test_orders_and_lines_take_four_insertion_statements_of_constant_cost():
    program = compiled({"q": REVENUE}, ORDERS)
    assert len(program.maps) == 3
    inserts = [s for (sign, _), statements in program.statements.items() if sign == INSERTION for s in statements]
    assert len(inserts) == 4
    for statement in inserts:
        for factor in statement.factors:
            if isinstance(factor, MapRead):
                assert all(key.name.startswith("@") for key in factor.keys)


def test_deletions_read_what_insertions_read():
    program = compiled({"q": REVENUE}, ORDERS)
    for relation in ORDERS:
        reads = [
            [[f for f in s.factors if isinstance(f, MapRead)] for s in program.statements[sign, relation]]
            for sign in (INSERTION, DELETION)
        ]
        assert reads[0] == reads[1]


def test_self_join_of_a_multiset():
    """cumulus.txt, section 3.4: two copies give 4, the third adds 5, its deletion takes 5."""
    query = ((), Mul((Rel("R", (x, y)), Rel("R", (y, z)), Val(x), Val(z))))
    program = compiled({"q": query}, {"R": ("number", "number")})
    maps, seen = PlainMaps(program), []
    for sign in (1, 1, 1, -1):
        maps.event(sign, "R", (1, 1))
        seen.append(maps.maps["q"][()])
    assert seen == [1, 4, 9, 4]


def test_equal_tops_are_one_map_and_serve_each_other():
    lines = ((k,), Mul((Rel("L", (k, p)), Val(p))))
    same = ((x,), Mul((Rel("L", (x, z)), Val(z))))
    program = compiled({"q": REVENUE, "lines": lines, "again": same}, ORDERS)
    assert program.tops == ("q", "lines", "lines")
    assert set(program.maps) == {"q", "lines", "m1"}


def test_a_sum_within_a_term_is_split_between_the_relations():
    """x + y over R(k, x), S(k, y): a row of R looks two entries up instead of visiting rows of S."""
    from lftj.language.clause import Apply

    body = Mul((Rel("R", (k, x)), Rel("S", (k, y)), Val(Apply("+", (x, y), "number"))))
    program = compiled({"q": ((), body)}, {"R": ("number", "number"), "S": ("number", "number")})
    for statement in program.statements[INSERTION, "R"]:
        for factor in statement.factors:
            assert not isinstance(factor, MapRead) or [key.name for key in factor.keys] == ["@0"]


def test_a_variable_without_a_value_is_named():
    with pytest.raises(EvaluationError, match="variable `y` has no value"):
        compiled({"q": ((), Mul((Rel("T", (x,)), Val(y))))}, {"T": ("number",)})
    with pytest.raises(EvaluationError, match="variable `y` has no value"):
        compiled({"q": ((y,), Rel("T", (x,)))}, {"T": ("number",)})


def test_constants_too_large_are_refused():
    big = Val(const(2**62))
    with pytest.raises(EvaluationError, match="no 64-bit integer"):
        compiled({"q": ((), Mul((Rel("T", (x,)), big, big)))}, {"T": ("number",)})
