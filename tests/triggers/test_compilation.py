"""Compilation: every map of a program equals its definition after every event."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import EvaluationError
from lftj.triggers import compilation
from lftj.triggers.algebra import DELETION, INSERTION, MapRead, Mul, Rel, Val
from lftj.triggers.compilation import compiled
from lftj.triggers.formulas import relations_of
from lftj.triggers.m3f import text
from lftj.triggers.worth_keeping import EventStatistics
from tests.conftest import examples
from tests.triggers.plain_triggers import PlainMaps, view
from tests.triggers.random_queries import SCHEMA, SETS, const, queries, streams, var


def follow(tops, stream, relations, **how):
    """Runs a stream and checks every map, and every top, after every event."""
    program = compiled(tops, relations, **how)
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


@examples(300)
@given(queries(), streams())
def test_every_map_equals_its_definition_after_every_event(query, stream):
    follow({"q": query}, stream, {**SCHEMA, **SETS})


@examples(60)
@given(st.lists(queries(atoms=3), min_size=2, max_size=3), streams())
def test_programs_of_several_tops_keep_all_of_them(several, stream):
    follow({f"q{i}": query for i, query in enumerate(several)}, stream, {**SCHEMA, **SETS})


@examples(300)
@given(queries())
def test_deletions_that_are_read_off_insertions_are_those_that_are_worked_out(query):
    """Names of maps and the order of statements included: nothing tells the two ways apart."""
    tables = {**SCHEMA, **SETS}
    read_off = compiled({"q": query}, tables)
    with patch.object(compilation, "_most_times", lambda formula, relation: 2):
        compilation._compiled.cache_clear()
        worked_out = compiled({"q": query}, tables)
        compilation._compiled.cache_clear()
    assert text(read_off) == text(worked_out)


def test_an_equal_program_is_compiled_once_and_another_one_anew():
    """What is known of rows decides which maps there are, and is asked for with the formulas."""
    tables = {"R": ("number", "number"), "S": ("number", "number")}
    known = EventStatistics({"R": 10.0, "S": 20.0})

    def of(factor, statistics=None, **how):
        body = Mul((Rel("R", (x, y)), Rel("S", (y, z)), Val(factor)))
        return compiled({"q": ((x,), body)}, tables, statistics=statistics, **how)

    first = of(const(2), known)
    assert of(const(2), EventStatistics({"R": 10.0, "S": 20.0})) is first
    others = [of(const(3), known), of(const(2)), of(const(2), EventStatistics({"R": 10.0, "S": 21.0})), of(z, known)]
    assert all(other is not first for other in (*others, of(const(2), known, naive=True)))
    assert others[0] != first


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
    """Cumulus, section 3.4: two copies give 4, the third adds 5, its deletion takes 5."""
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
    assert set(program.maps) == {"q", "lines", "m_L"}


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


TRIANGLES = ((), Mul((Rel("R", (x, y)), Rel("S", (y, z)), Rel("T", (z, x)))))
EDGES = dict.fromkeys("RST", ("number", "number"))


def test_triangles_are_counted_from_slices_of_the_relations():
    """A map of pairs of edges would be larger than the relations, and an edge changes an entry for every neighbour."""
    program = compiled({"q": TRIANGLES}, EDGES)
    for name, definition in program.maps.items():
        assert name == "q" or len(relations_of(definition.body)) == 1


def test_a_map_of_a_join_is_kept_where_it_is_cheap():
    """Orders of customers: a line looks up what its order's customer weighs instead of joining."""
    tables = {"L": ("number", "number"), "O": ("number", "number"), "C": ("number", "number")}
    query = ((), Mul((Rel("L", (k, p)), Rel("O", (k, x)), Rel("C", (x, y)), Val(p), Val(y))))
    known = EventStatistics(
        {"L": 6e6, "O": 1.5e6, "C": 1.5e5}, {"L": (1.5e6, 1e5), "O": (1.5e6, 1e5), "C": (1.5e5, 25)}
    )
    program = compiled({"q": query}, tables, statistics=known)
    (statement,) = program.statements[INSERTION, "L"][:1]
    reads = [factor for factor in statement.factors if isinstance(factor, MapRead)]
    assert [[key.name for key in read.keys] for read in reads] == [["@0"]]


def test_the_naive_transform_makes_a_view_of_every_delta():
    """The naive viewlet transform: Q and one for each of its four first deltas; the second ones are constants."""
    query = ((), Mul((Rel("R", (x, y)), Rel("S", (y, z)), Val(x))))
    program = compiled({"Q": query}, {"R": ("number", "number"), "S": ("number", "number")}, naive=True)
    assert len(program.maps) == 5
    assert len(compiled({"Q": query}, program.relations).maps) == 3
    for (_, relation), statements in program.statements.items():
        (of_q,) = [statement for statement in statements if statement.target == "Q"]
        (read,) = [factor for factor in of_q.factors if isinstance(factor, MapRead)]
        assert set(relations_of(program.maps[read.name].body)) == {"R", "S"} - {relation}
        for statement in statements:
            assert statement is of_q or not any(isinstance(factor, MapRead) for factor in statement.factors)


@examples(60)
@given(queries(atoms=3), streams())
def test_the_naive_transform_keeps_the_same_views(query, stream):
    follow({"q": query}, stream, {**SCHEMA, **SETS}, naive=True)


@examples(100)
@given(
    queries(),
    streams(),
    st.lists(st.integers(1, 5), min_size=len({**SCHEMA, **SETS}), max_size=len({**SCHEMA, **SETS})),
    st.lists(st.integers(0, 5), min_size=len({**SCHEMA, **SETS}), max_size=len({**SCHEMA, **SETS})),
)
def test_whatever_the_estimates_are_the_views_are_the_same(query, stream, sizes, rates):
    names = {**SCHEMA, **SETS}
    known = EventStatistics(
        {name: 10**size for name, size in zip(names, sizes, strict=True)},
        events=dict(zip(names, rates, strict=True)),
    )
    follow({"q": query}, stream, names, statistics=known)


def test_statements_read_the_smaller_slice_first():
    """A customer's orders lead to their lines, and not to all suppliers of the customer's nation."""
    c, o, s, n = map(var, ("c", "o", "s", "n"))
    tables = dict.fromkeys(("customer", "orders", "lines", "supplier"), ("number", "number"))
    body = Mul((Rel("customer", (c, n)), Rel("supplier", (s, n)), Rel("orders", (o, c)), Rel("lines", (o, s))))
    known = EventStatistics(
        {"customer": 1e5, "supplier": 1e4, "orders": 1e6, "lines": 4e6},
        {"customer": (1e5, 25), "supplier": (1e4, 25), "orders": (1e6, 1e5), "lines": (1e6, 1e4)},
    )
    program = compiled({"q": ((), body)}, tables, statistics=known)
    (statement,) = [s for s in program.statements[INSERTION, "customer"] if s.target == "q"]
    reads = [program.maps[factor.name].body for factor in statement.factors]
    assert [next(iter(relations_of(read))) for read in reads] == ["orders", "lines", "supplier"]


def test_of_relations_of_different_sizes_the_smaller_one_has_the_key():
    """Without counts of distinct values the maps are those that the true counts give: orders have one customer each."""
    tables = {"lines": ("number", "number"), "orders": ("number", "number"), "customer": ("number", "number")}
    o, c, n = map(var, "ocn")
    body = Mul((Rel("lines", (o, p)), Rel("orders", (o, c)), Rel("customer", (c, n)), Val(p)))
    rows = {"lines": 6e6, "orders": 1.5e6, "customer": 1.5e5}
    distinct = {"lines": (1.5e6, 1e5), "orders": (1.5e6, 1.5e5), "customer": (1.5e5, 25)}
    for keys in ((), (c,), (n,)):
        known, guessed = (
            compiled({"q": (keys, body)}, tables, statistics=EventStatistics(rows, counts)) for counts in (distinct, {})
        )
        assert known == guessed
