"""M3F: what is printed is parsed back to the same program; errors name what and where."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import ProgramError
from lftj.language.clause import Apply, Value, Var
from lftj.triggers.algebra import (
    INSERTION,
    Add,
    AggSum,
    Cmp,
    Final,
    KeyEnd,
    Lift,
    Linear,
    MapDefinition,
    MapRead,
    Mul,
    Rel,
    RunEnd,
    TriggerProgram,
    Val,
)
from lftj.triggers.compilation import compiled
from lftj.triggers.m3f import statement_lines, text
from lftj.triggers.m3f_reader import parsed
from lftj.triggers.maps import Maps
from lftj.values.schema import Column, Schema
from tests.conftest import examples
from tests.triggers.plain_triggers import PlainMaps
from tests.triggers.random_queries import SCHEMA, SETS, const, queries, streams, var

k, r, p = map(var, "krp")
ORDERS = {
    "O": Schema("O", (Column("k", "number"), Column("r", "number"))),
    "L": Schema("L", (Column("k", "number"), Column("p", "number"))),
}
REVENUE = ((), Mul((Rel("O", (k, r)), Rel("L", (k, p)), Val(p), Val(r))))


def test_orders_and_lines_print_the_four_insertion_triggers_of_the_paper():
    """Cumulus, section 3.5."""
    program = compiled({"q": REVENUE}, ORDERS)
    assert statement_lines(program, INSERTION) == [
        "on +O(k, r): q[] += r * m_O[k]",
        "on +O(k, r): m_L[k] += r",
        "on +L(k, p): q[] += p * m_L[k]",
        "on +L(k, p): m_O[k] += p",
    ]
    assert statement_lines(program, -1) == [
        line.replace("on +", "on -").replace("+=", "-=") for line in statement_lines(program, INSERTION)
    ]


@examples(150)
@given(st.lists(queries(atoms=3), min_size=1, max_size=3), st.booleans())
def test_programs_are_read_as_they_were_written(several, naive):
    program = compiled({f"q{i}": query for i, query in enumerate(several)}, {**SCHEMA, **SETS}, naive=naive)
    assert parsed(text(program)) == program


@examples(20)
@given(queries(atoms=2), streams())
def test_a_program_read_from_text_keeps_the_same_maps(query, stream):
    program = compiled({"q": query}, {**SCHEMA, **SETS})
    maps, again = PlainMaps(program), PlainMaps(parsed(text(program)))
    for event in stream:
        maps.event(*event)
        again.event(*event)
    assert maps.maps == again.maps


terms = st.recursive(
    st.sampled_from([k, r, p, const(-3), const(0), Value('a`"\n', "symbol"), Value(None, "number?")])
    | st.builds(lambda n: Value(n, "unsigned"), st.integers(0, 2**64 - 1)),
    lambda inner: st.builds(
        Apply,
        st.sampled_from(["+", "-", "*", "/", "%", "^", "neg", "max", "band"]),
        st.lists(inner, min_size=1, max_size=2).map(tuple),
        st.sampled_from(["number", "unsigned", "decimal(12,2)"]),
    ),
    max_leaves=6,
)
plain = st.sampled_from([k, r, p, const(5), Value("on", "symbol")])
ops = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
atomic = (
    st.builds(lambda args: Rel("on", args), st.tuples(plain, plain))
    | st.builds(lambda key: MapRead("a map", (key,)), plain)
    | st.builds(Lift, st.just(var("lifted")), st.just(const(1)))
    | st.builds(Cmp, ops, terms, terms)
    | st.builds(Val, terms)
)
formulas = st.recursive(
    atomic,
    lambda inner: (
        st.builds(Mul, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Add, st.lists(inner, max_size=3).map(tuple))
        | st.builds(AggSum, st.sampled_from([(), (k,), (k, r)]), inner)
    ),
    max_leaves=8,
)


@examples(300)
@given(formulas)
def test_any_formula_is_read_as_it_was_written(formula):
    """Names that are no identifiers, typed constants, functors, nested products and sums of none or one."""
    body = Mul((Rel("on", (k, r)), Rel("on", (p, Var("z'1", "number"))), formula))
    relations = {"on": Schema("on", (Column("a-b", "number"), Column("top", "number")), functional=True)}
    maps = {
        "a map": MapDefinition("a map", (Var("k", "number"),), Mul()),
        "q": MapDefinition("q", (k, r, p), body),
    }
    program = TriggerProgram(relations, maps, {}, ("q",))
    assert parsed(text(program)) == program


def test_any_name_is_read_as_it_was_written():
    """One in quotes of SQL may hold a line end, too."""
    for name in ("a\nb", "\n", "a`b", "``\r\n`", " ", "// a", "1"):
        schema = Schema(name, (Column(name, "number"),))
        named = Var(name, "number")
        program = compiled({"q": ((), Mul((Rel(name, (named,)), Val(named))))}, {name: schema})
        assert parsed(text(program)) == program


def test_times_of_a_zone_are_read_as_they_were_written():
    """The type of such a column was a syntax error, and a constant was what the clocks show, taken for UTC."""
    zoned = 'timestamp("Europe/Berlin")'
    t, noon = Var("t", zoned), Value(dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC), zoned)
    query = ((t,), Mul((Rel("E", (t,)), Rel("F", (t, p)), Cmp(">", Apply("max", (t, noon), zoned), noon))))
    schemas = {"E": Schema("E", (Column("t", zoned),)), "F": Schema("F", (Column("t", zoned), Column("p", "number")))}
    program = compiled({"q": query}, schemas)
    assert '"2024-07-01T10:00:00+00:00":timestamp("Europe/Berlin")' in text(program)
    assert parsed(text(program)) == program


KEYED = "relation R(a: number)\nmap q[a: number] = R(a)\ntop q\non +R(a): "


@pytest.mark.parametrize(
    ("written", "what", "place"),
    [
        ("map q[] = R(x)", "there is no relation `R`", "1:11"),
        ("relation R(a: number)\nmap q[] = R(x, y)", "`R` takes 1 arguments, not 2", "2:11"),
        ("relation R(a: numbr)", "unknown type `numbr`", "1:15"),
        ("map q[] = 1\nmap q[] = 1", "map `q` is defined twice", "2:1"),
        ("relation R(a: number)\nmap q[] = R(x) * y", "variable `y` has no value", "2:1"),
        ("relation R(a: number)\nmap q[] = R(x)\non +R(a, b): q[] += 1", "has 1 values", "3:1"),
        ("relation R(a: number)\nmap q[] = R(x)\non +R(a): q[] += R(a)", "a statement reads maps", "3:11"),
        ("relation R(a: number)\nmap q[] = R(x)\non +R(a): p[] += 1", "there is no map `p`", "3:11"),
        (f"{KEYED}q[] += 1", "`q` takes 1 arguments, not 0", "4:11"),
        (f"{KEYED}q[a, a] += 1", "`q` takes 1 arguments, not 2", "4:11"),
        (f"{KEYED}q[zz] += 1", "variable `zz` has no value", "4:11"),
        (f"{KEYED}q[a] += z", "variable `z` has no value", "4:11"),
        (f"{KEYED}q[a] += {{b < 3}} * {{b ^= a}}", "variable `b` has no value", "4:11"),
        (f'{KEYED}q["x"] += 1', 'type conflict: `"x"` is symbol, `a` of `q` is number', "4:11"),
        (f'{KEYED}q[a] += q["x"]', 'type conflict: `"x"` is symbol, `a` of `q` is number', "4:11"),
        (f'{KEYED}q[a] += {{a < "x"}}', 'type conflict: `a` is number, `"x"` is symbol', "4:11"),
        (f'{KEYED}q["x":number] += 1', "the constant is not a number", "4:13"),
        (f"{KEYED}q[null:number] += 1", "the constant is not a value", "4:13"),
        (f"{KEYED}q[9223372036854775808] += 1", "the constant does not fit into number", "4:13"),
        (f'{KEYED}q["\\q"] += 1', "unknown escape `\\q`", "4:13"),
        ("map q[] = ", "the text ends too early", "1:10"),
        ("map q[] == 1", "`=` cannot stand here", "1:10"),
    ],
)
def test_errors_say_what_and_where(written, what, place):
    with pytest.raises(ProgramError) as error:
        parsed(written)
    (found,) = error.value.diagnostics
    assert what in found.what
    assert str(found.span) == f"<m3f>:{place}"
    assert found.why
    assert found.remedy


def test_a_program_read_from_text_runs():
    maps = Maps(parsed(text(compiled({"q": REVENUE}, ORDERS))))
    events = [(1, "O", (1, 10)), (1, "L", (1, 7)), (1, "L", (1, 5)), (-1, "L", (1, 7)), (1, "O", (2, 3))]
    kinds = np.array([maps.kinds[sign, relation] for sign, relation, _ in events])
    maps.run(kinds, np.array([row for _, _, row in events]))
    keys, values = maps.entries("q")
    assert keys.shape == (0, 1)
    assert list(values) == [50]


counts = st.integers(-9, 9)
names = st.sampled_from(["a map", "q", "low", "run"])
bounds = st.builds(Linear, st.lists(st.tuples(counts, names), max_size=2).map(tuple), counts, st.integers(1, 9))
ends = st.builds(KeyEnd, st.booleans(), bounds) | st.builds(
    RunEnd, names, st.booleans(), st.booleans(), st.booleans(), bounds
)
products = st.tuples(counts, st.lists(names, max_size=2).map(tuple))
finals = st.builds(
    Final,
    st.lists(st.lists(ends, max_size=2).map(tuple), max_size=2).map(tuple),
    st.lists(st.tuples(names, st.lists(products, max_size=2).map(tuple)), min_size=1, max_size=2).map(tuple),
)


@examples(200)
@given(finals)
def test_what_is_worked_out_after_an_event_is_read_as_it_was_written(final):
    maps = {name: MapDefinition(name, (), Mul()) for name in ("a map", "q", "low", "run")}
    program = TriggerProgram({}, maps, {}, ("q",), final)
    assert parsed(text(program)) == program
